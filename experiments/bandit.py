"""`python -m experiments bandit`: the MTL bandit of Glover & Hokamp 2019 (Sec. 4.1, Figure 1), and what its result depends on.

Three parts. The paper's experiment: one environment, ten seeds, five policies (and the best fixed one), beside them the
counterfactual policy with each of the paper's λ, and a random search that costs as much as the counterfactual method. Ten
environments with one seed each, because the draw of the environment decides more than the seed does. And how the counterfactual
policy depends on the length T, on λ, and on which logs are kept. `--small` is the first part alone.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.jobs import ExperimentJob
from sidequest.files import write_json
from sidequest.methods.base import Method
from sidequest.methods.policies.counterfactual import Counterfactual, CounterfactualSettings
from sidequest.methods.policies.exp3s import Exp3S, Exp3SSettings
from sidequest.methods.policies.log import read_log
from sidequest.numerics.off_policy import LogSums, improve_policy, improvement_rewards
from sidequest.numerics.statistics import paired_comparison
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
PARTS = ("one environment", "ten environments", "dependence")
PAPER_WEIGHTS = (0.1, 0.15, 0.2, 0.25)
PAPER_POLICIES = ("best fixed", "oracle", "counterfactual", "exp3s", "random", "size")  # of the figure
POINTS = 100  # of each curve in the figure
# The oracle ignores forgetting, so in some environments it is far from the best fixed policy, and learning beats it. The paper
# finds the oracle on top, so its environment was not one of those: take the first whose oracle is this close to the best.
LARGEST_ORACLE_GAP = 0.02


def jobs_of(options: Options) -> list[ExperimentJob]:
    facts = {
        "steps": STEPS,
        "seeds": list(options.seed_range(SEEDS)),
        "weights": ENTROPY_WEIGHTS,
        "cma": CMA_ITERATIONS,
    }
    some = PARTS[:1] if options.small else PARTS
    return [ExperimentJob("policies", part, options.first_seed, facts, "policies") for part in some]


def shared_of(options: Options) -> list[int]:
    return list(options.seed_range(SEEDS))


def run_job(seeds: list[int], job: ExperimentJob, needed: Mapping[str, Any]) -> dict[str, Any]:
    if job.task == "one environment":
        number = paper_environment()
        return {"environment": number, **run_policies(number, seeds)}
    return {"rows": run_environments() if job.task == "ten environments" else run_dependence()}


def show(options: Options, by_job: Mapping[str, Any]) -> dict[str, Any]:
    parts = {kept["task"]: kept for kept in by_job.values()}
    results: dict[str, Any] = {"steps": STEPS}
    if (one := parts.get("one environment")) is not None:
        final = one["final"]
        print(f"One environment (number {one['environment']}), T = {STEPS}: average score after the last step")
        print(policy_table(final))
        rows = [
            {"policy": f"counterfactual − {other}", **vars(paired_comparison(final["counterfactual"], final[other]))}
            for other in final
            if other != "counterfactual" and len(final[other]) > 1
        ]
        print(difference_table(rows))
        title = "MTL bandit: average score over time (median and range over seeds)"
        save(scores_over_time(one["curves"], title, "average score of 8 arms"), options.out / "bandit")
        results["experiment"] = {"final": final, "differences": rows, "environment": one["environment"]}
    if (ten := parts.get("ten environments")) is not None:
        print(f"{ENVIRONMENTS} environments, one seed each: average score after the last step")
        print(environment_table(ten["rows"]) + "\n")
        results["environments"] = ten["rows"]
    if (dependence := parts.get("dependence")) is not None:
        print(f"Counterfactual minus random by λ and T: mean over {ENVIRONMENTS} environments (in how many above 0)")
        print(dependence_table(dependence["rows"]))
        results["dependence"] = dependence["rows"]
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


def run_policies(number: int, seeds: Sequence[int]) -> dict[str, Any]:
    """All policies in one environment: `final` scores by seed, and `curves` over time."""
    environment, count = environment_of(number), len(seeds)
    fixed = {
        "random": np.full(ARMS, 1 / ARMS),
        "size": environment.sizes / environment.sizes.sum(),
        "oracle": environment.oracle,
        "best fixed": environment.best_policy(),
    }
    runs = {
        name: draw([policy] * count, STEPS, np.random.default_rng([number, index, seeds[0]]))
        for index, (name, policy) in enumerate(fixed.items())
    }
    runs["exp3s"] = np.stack([online_run(environment, seed) for seed in seeds], axis=1)
    recipes = [learn_counterfactual(environment, seed) for seed in seeds]
    learned = {"counterfactual": [policy_of(recipe, environment) for recipe in recipes]}
    for weight in PAPER_WEIGHTS:
        found = [learn_counterfactual(environment, seed, (weight,)) for seed in seeds]
        learned[f"counterfactual, λ = {weight:g}"] = [policy_of(recipe, environment) for recipe in found]
    learned["random search"] = [searched(environment, seed, 1.0) for seed in seeds]
    learned["random search near uniform"] = [searched(environment, seed, 8.0) for seed in seeds]
    for index, (name, policies) in enumerate(learned.items()):
        runs[name] = draw(policies, STEPS, np.random.default_rng([number, len(fixed) + index, seeds[0]]))
    final, curves = {}, {}
    steps = np.linspace(0, STEPS - 1, POINTS).astype(int)
    for name in ("best fixed", "oracle", *learned, "exp3s", "random", "size"):
        means = replay([environment] * count, runs[name])[1]
        final[name] = means[-1].round(6).tolist()
        shown = means[steps].round(5)
        if name in PAPER_POLICIES:
            curves[name] = {
                "step": (steps + 1).tolist(),
                "median": np.median(shown, axis=1).tolist(),
                "low": shown.min(axis=1).tolist(),
                "high": shown.max(axis=1).tolist(),
            }
    chosen = [recipe.evidence["entropy_weight"] for recipe in recipes]
    return {"final": final, "curves": curves, "entropy_weights": chosen, "oracle_gap": oracle_gap(environment)}


def searched(environment: BanditEnvironment, seed: int, concentration: float) -> np.ndarray:
    """The best of as many random policies as the counterfactual method pays runs: one log and one run for each λ, twice."""
    rng = np.random.default_rng([seed, 2019])
    policies = list(rng.dirichlet(np.full(ARMS, concentration), size=2 * (1 + len(ENTROPY_WEIGHTS))))
    scores = replay([environment] * len(policies), draw(policies, STEPS, rng))[1][-1]
    return np.asarray(policies[int(np.argmax(scores))])


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


def learn_counterfactual(
    environment: BanditEnvironment, seed: int, weights: tuple[float, ...] = ENTROPY_WEIGHTS
) -> Recipe:
    settings = CounterfactualSettings(steps=environment.steps, cma_iterations=CMA_ITERATIONS, entropy_weights=weights)
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
        found = run_policies(number, [0])
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


def difference_table(rows: Sequence[Mapping[str, Any]]) -> str:
    table = [[row["policy"], f"{row['mean']:+.4f}", f"{row['low']:+.4f} to {row['high']:+.4f}"] for row in rows]
    return markdown_table(["paired over seeds", "mean", "95 % interval"], table)


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
