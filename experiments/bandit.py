"""`python -m experiments bandit`: the MTL bandit of Glover & Hokamp 2019 (Sec. 4.1, Figure 1), and what its result depends on.

Three parts. The paper's experiment: one environment, ten seeds, five policies (and the best fixed one). Ten environments with one
seed each, because the draw of the environment decides more than the seed does. And how the counterfactual policy depends on
the length T, on λ, and on which logs are kept. `--small` is the first part alone.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from sidequest.files import write_json
from sidequest.methods.base import Method
from sidequest.methods.policies.counterfactual import Counterfactual, CounterfactualSettings
from sidequest.methods.policies.exp3s import Exp3S, Exp3SSettings
from sidequest.methods.policies.log import read_log
from sidequest.numerics.off_policy import LogSums, improve_policy, improvement_rewards
from sidequest.recipe import Recipe
from sidequest.report.images import save
from sidequest.report.policies import scores_over_time
from sidequest.report.tables import markdown_table
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.simulation.mtl_bandit import BanditEnvironment, MTLBandit, losses_of, replay

ARMS, STEPS, SEEDS = 8, 2000, 10
CMA_ITERATIONS = 20  # the paper's, with a population of 64
ENVIRONMENTS = 10
LENGTHS = (500, 2000, 8000)
ENTROPY_WEIGHTS = (0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0)
TRAIN = TrainSettings(epochs=1)  # a trial looks at its score once, at the end
POINTS = 100  # of each curve in the figure
# The oracle ignores forgetting, so in some environments it is far from the best fixed policy, and learning beats it. The paper
# finds the oracle on top, so its environment was not one of those: take the first whose oracle is this close to the best.
LARGEST_ORACLE_GAP = 0.02


def main(options: Options) -> dict[str, Any]:
    seeds = options.seeds or SEEDS
    number = paper_environment()
    experiment = run_policies(number, seeds)
    print(f"One environment (number {number}), T = {STEPS}, {seeds} seeds: average score after the last step")
    print(policy_table(experiment["final"]))
    gaps = np.subtract(experiment["final"]["counterfactual"], experiment["final"]["random"])
    print(
        f"counterfactual above random in {int((gaps > 0).sum())} of {seeds} seeds, by {np.median(gaps):.3f} (median)\n"
    )
    results: dict[str, Any] = {"environment": number, "steps": STEPS, "seeds": seeds, "experiment": experiment}
    title = "MTL bandit: average score over time (median and range over seeds)"
    save(scores_over_time(experiment["curves"], title, "average score of 8 arms"), options.out / "bandit")
    if not options.small:
        results["environments"] = environments = run_environments()
        print(f"{ENVIRONMENTS} environments, one seed each: average score after the last step")
        print(environment_table(environments) + "\n")
        results["dependence"] = dependence = run_dependence()
        print(f"Counterfactual minus random by λ and T: mean over {ENVIRONMENTS} environments (in how many above 0)")
        print(dependence_table(dependence))
    write_json(options.out / "results.json", results, seal=False)
    return results


def environment_of(number: int, steps: int = STEPS) -> BanditEnvironment:
    """Environments by number; the length scales the increments and changes nothing else."""
    return BanditEnvironment.draw(np.random.default_rng(number), arms=ARMS, steps=steps)


def oracle_gap(environment: BanditEnvironment) -> float:
    """By how much the best fixed policy's expected score is above the oracle's."""
    best, oracle = (
        environment.expected_scores(policy).mean() for policy in (environment.best_policy(), environment.oracle)
    )
    return float(best - oracle)


def paper_environment() -> int:
    """The first environment in which the oracle is nearly the best policy."""
    return next(number for number in itertools.count() if oracle_gap(environment_of(number)) < LARGEST_ORACLE_GAP)


def run_policies(number: int, seeds: int) -> dict[str, Any]:
    """All policies in one environment: `final` scores by seed, and `curves` over time."""
    environment = environment_of(number)
    fixed = {
        "random": np.full(ARMS, 1 / ARMS),
        "size": environment.sizes / environment.sizes.sum(),
        "oracle": environment.oracle,
        "best fixed": environment.best_policy(),
    }
    runs = {
        name: draw([policy] * seeds, STEPS, np.random.default_rng([number, index]))
        for index, (name, policy) in enumerate(fixed.items())
    }
    runs["exp3s"] = np.stack([online_run(environment, seed) for seed in range(seeds)], axis=1)
    recipes = [learn_counterfactual(environment, seed) for seed in range(seeds)]
    learned = [policy_of(recipe, environment) for recipe in recipes]
    runs["counterfactual"] = draw(learned, STEPS, np.random.default_rng([number, len(fixed)]))
    final, curves = {}, {}
    steps = np.linspace(0, STEPS - 1, POINTS).astype(int)
    for name in ("best fixed", "oracle", "counterfactual", "exp3s", "random", "size"):
        means = replay([environment] * seeds, runs[name])[1]
        final[name] = means[-1].tolist()
        shown = means[steps]
        curves[name] = {
            "step": (steps + 1).tolist(),
            "median": np.median(shown, axis=1).tolist(),
            "low": shown.min(axis=1).tolist(),
            "high": shown.max(axis=1).tolist(),
        }
    chosen = [recipe.evidence["entropy_weight"] for recipe in recipes]
    return {"final": final, "curves": curves, "entropy_weights": chosen, "oracle_gap": oracle_gap(environment)}


def draw(policies: Sequence[np.ndarray], steps: int, rng: np.random.Generator) -> np.ndarray:
    """Arms [T, M]: column m drawn from policy m."""
    edges = np.cumsum(policies, axis=1)[:, :-1]
    return np.asarray((rng.random((steps, len(policies), 1)) > edges).sum(axis=2))


def online_run(environment: BanditEnvironment, seed: int) -> np.ndarray:
    """The arms [T] that Exp3.S drew: in the paper the run itself is the result, not a recipe made from it."""
    method = Exp3S(Exp3SSettings(steps=environment.steps), seed=seed)
    with tempfile.TemporaryDirectory() as directory:
        run(method, environment, Path(directory))
        log = read_log(Path(directory) / "logs" / "exp3s.parquet")
    return log.steps["task"].astype(np.int64)


def learn_counterfactual(environment: BanditEnvironment, seed: int) -> Recipe:
    settings = CounterfactualSettings(
        steps=environment.steps, cma_iterations=CMA_ITERATIONS, entropy_weights=ENTROPY_WEIGHTS
    )
    return run(Counterfactual(settings, seed=seed), environment)


def run(method: Method[Any, Any], environment: BanditEnvironment, directory: Path | None = None) -> Recipe:
    """Run a method on the bandit with the goal `average`."""
    bandit = MTLBandit(environment)
    trials = LocalTrials(bandit, TRAIN, goal="average")
    return run_method(
        method, bandit, bandit.pool(TRAIN), trials, single_run_work=environment.steps, directory=directory
    )


def policy_of(recipe: Recipe, environment: BanditEnvironment) -> np.ndarray:
    shares = np.array([recipe.phases[0].shares[name] for name in environment.names])
    return shares / shares.sum()


def run_environments() -> list[dict[str, Any]]:
    """One seed in each of several environments."""
    rows = []
    for number in range(ENVIRONMENTS):
        found = run_policies(number, 1)
        final = {name: scores[0] for name, scores in found["final"].items()}
        rows.append({"environment": number, "oracle_gap": found["oracle_gap"], **final})
    return rows


def run_dependence() -> list[dict[str, Any]]:
    """The gap counterfactual − random for a fixed λ, by T, λ, number of improvements and logs kept."""
    return [row for steps in LENGTHS for row in _dependence_at(steps)]


def _dependence_at(steps: int) -> Iterator[dict[str, Any]]:
    environments = [environment_of(number, steps) for number in range(ENVIRONMENTS)]
    rng = np.random.default_rng([steps])
    uniform = [np.full(ARMS, 1 / ARMS)] * ENVIRONMENTS
    random = np.mean([replay(environments, draw(uniform, steps, rng))[1][-1] for _ in range(3)], axis=0)
    first = logged(environments, uniform, steps, rng)
    for weight in ENTROPY_WEIGHTS:
        once = [improve_policy(sums, weight, seed=0, iterations=CMA_ITERATIONS) for sums in first]
        second = logged(environments, once, steps, rng)
        policies = {
            "one": once,
            "two, all logs": _improve_all([a + b for a, b in zip(first, second, strict=True)], weight),
            "two, latest log": _improve_all(second, weight),
        }
        for improvements, each in policies.items():
            gaps = replay(environments, draw(each, steps, rng))[1][-1] - random
            yield {
                "steps": steps,
                "entropy_weight": weight,
                "improvements": improvements,
                "gap": float(gaps.mean()),
                "above": int((gaps > 0).sum()),
            }


def _improve_all(sums: Sequence[LogSums], weight: float) -> list[np.ndarray]:
    return [improve_policy(each, weight, seed=0, iterations=CMA_ITERATIONS) for each in sums]


def logged(
    environments: Sequence[BanditEnvironment], policies: Sequence[np.ndarray], steps: int, rng: np.random.Generator
) -> list[LogSums]:
    """A logging run of T steps in each environment, as sums."""
    arms = draw(policies, steps, rng)
    losses = losses_of(replay(environments, arms)[0])
    found = []
    for column, policy in enumerate(policies):
        drawn = arms[:, column]
        rewards, _ = improvement_rewards(drawn, losses[:, column], np.full(ARMS, np.nan))
        found.append(LogSums.of(drawn, policy[drawn], rewards, ARMS))
    return found


# Tables


def policy_table(final: dict[str, list[float]]) -> str:
    rows = [
        [name, f"{np.median(scores):.3f}", f"{min(scores):.3f}", f"{max(scores):.3f}"] for name, scores in final.items()
    ]
    return markdown_table(["policy", "median", "lowest", "highest"], rows)


def environment_table(rows: list[dict[str, Any]]) -> str:
    names = [name for name in rows[0] if name not in ("environment", "oracle_gap")]
    table = [[row["environment"], *(f"{row[name]:.3f}" for name in names)] for row in rows]
    table.append(["median", *(f"{np.median([row[name] for row in rows]):.3f}" for name in names)])
    above = [str(sum(row[name] > row["random"] for row in rows)) for name in names]
    table.append(["above random", *above])
    return markdown_table(["environment", *names], table)


def dependence_table(rows: list[dict[str, Any]]) -> str:
    columns = [(steps, kind) for steps in LENGTHS for kind in dict.fromkeys(row["improvements"] for row in rows)]
    cells = {(row["entropy_weight"], row["steps"], row["improvements"]): row for row in rows}
    table = []
    for weight in ENTROPY_WEIGHTS:
        found = [cells[weight, *column] for column in columns]
        table.append([f"{weight:g}", *(f"{cell['gap']:+.3f} ({cell['above']})" for cell in found)])
    return markdown_table(["λ", *(f"T={steps}: {kind}" for steps, kind in columns)], table)
