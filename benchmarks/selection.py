"""AutoSeM's stage 1 on a simulated learner: how often helpful tasks are selected, and how many of no use.

    python benchmarks/selection.py [--seeds 50]

200 rounds of 10 batches with one primary and eight candidates. Rows: what helps, and γ. Columns: the posterior that tasks are
selected by (`all` rounds alike, or the `decayed` one, as in the paper) and the rule. A cell has the share of runs that selected
every helpful task, and after the plus sign the mean number of others that were selected.
"""

from __future__ import annotations

import argparse

import numpy as np

from sidequest.methods.autosem import stage1
from sidequest.report.tables import markdown_table
from sidequest.simulation.learner import SimulatedLearner, Simulation, helpful

CASES = {
    "2 of 8 help, 6 harm": helpful(2, 8),
    "2 of 8 help, 6 do nothing": helpful(2, 8, harm=0.0),
    "2 of 8 help a little, slowly": helpful(2, 8, gain=0.2, primary_gain=0.2, harm=0.05, tau=200.0),
    "none helps, 8 harm": helpful(0, 8),
    "none helps, 8 do nothing": helpful(0, 8, harm=0.0),
}
COLUMNS = [(utility, rule) for utility in ("all", "decayed") for rule in ("top-plus", "top", "credible")]


def play(simulation: Simulation, settings: stage1.BanditSettings, seed: int) -> stage1.BanditState:
    learner = SimulatedLearner(simulation, seed=seed)
    state = stage1.start(learner.pool(), settings)
    for number in range(settings.rounds):
        state = stage1.play(state, learner, np.random.default_rng([seed, number + 1]), settings)
    return state


def cells(simulation: Simulation, settings: stage1.BanditSettings, seeds: int) -> list[str]:
    good = {name for name, gain in zip(simulation.names[1:], simulation.transfer[0, 1:], strict=True) if gain > 0}
    states = [play(simulation, settings, seed) for seed in range(seeds)]
    out = []
    for utility, rule in COLUMNS:
        chosen = settings.model_copy(update={"utility": utility, "rule": rule})
        selected = [set(stage1.select(state, chosen)) for state in states]
        found, others = np.mean([good <= each for each in selected]), np.mean([len(each - good) for each in selected])
        out.append(f"{found:.2f} + {others:.2f}" if good else f"{others:.2f}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    seeds = parser.parse_args().seeds
    default = stage1.BanditSettings().gamma
    rows = [
        [f"{name}, γ = {gamma:g}", *cells(simulation, stage1.BanditSettings(gamma=gamma), seeds)]
        for name, simulation in CASES.items()
        for gamma in ((0.0, 0.02, default, 0.1, 0.3) if name == next(iter(CASES)) else (default, 0.3))
    ]
    print(markdown_table(["", *(f"{utility}: {rule}" for utility, rule in COLUMNS)], rows))


if __name__ == "__main__":
    main()
