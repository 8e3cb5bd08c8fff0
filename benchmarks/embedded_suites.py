"""What each candidate of an embedded suite does to its primary: the numbers in docs/log.

    python benchmarks/embedded_suites.py digits --seeds 10
    python benchmarks/embedded_suites.py planted --seeds 5

Trains the primary alone, 1:1 with each candidate, and with the known best set, by the suite's default settings; every seed has
data of its own. Scores are on *report*, differences are paired by seed.
"""

from __future__ import annotations

import argparse

import torch

from sidequest.learning.fit import fit
from sidequest.numerics.statistics import mean_interval, paired_comparison
from sidequest.recipe import Phase
from sidequest.runs.setup import Setup
from sidequest.tasks.digits import digits_suite
from sidequest.tasks.planted import planted_suite, planted_truth

BEST = {"digits": ("large", "parity"), "planted": planted_truth().best}


def score(setup: Setup, auxiliaries: tuple[str, ...], seed: int) -> float:
    learner, primary = setup.learner(seed), setup.suite.primary
    fit(learner, [Phase(shares=dict.fromkeys([primary, *auxiliaries], 1))], setup.train, seed)
    return learner.evaluate(primary, "report")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=sorted(BEST))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    make = digits_suite if arguments.suite == "digits" else planted_suite
    setups = [Setup.of(make(seed)) for seed in range(arguments.seeds)]
    candidates = [(name,) for name in setups[0].suite.candidates]
    alone = [score(setup, (), seed) for seed, setup in enumerate(setups)]
    print(f"{'primary alone':24} {mean_interval(alone).mean:.3f}", flush=True)
    for auxiliaries in [*candidates, BEST[arguments.suite]]:
        scores = [score(setup, auxiliaries, seed) for seed, setup in enumerate(setups)]
        found = paired_comparison(scores, alone)
        line = f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})  {found.verdict}"
        print(f"{' + '.join(auxiliaries):24} {mean_interval(scores).mean:.3f}  {line}", flush=True)


if __name__ == "__main__":
    main()
