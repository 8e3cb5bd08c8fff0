"""`python -m experiments policies`: task-selection policies on GLUE (Glover & Hokamp 2019, Sec. 4.2, Tables 1 and 3, Figure 2).

One shared model, the same number of steps for every policy, the mean over eight tasks as the goal. As in the paper the
counterfactual policy is learned once, from one logging run and one run per λ, and then trained with every seed. Full size is
the paper's (BERT, 200,000 steps). `--small` is a small network over frozen sentence vectors, with 1,500 steps over 500 to 4,000
rows of each task, whose numbers fall from MNLI to RTE as in GLUE, only less steeply: about three passes, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.data import GLUE_FOLDERS, data_directory
from sidequest.files import digest, read_json, write_json
from sidequest.methods.policies.counterfactual import Counterfactual, CounterfactualSettings
from sidequest.methods.policies.exp3s import Exp3S, Exp3SSettings
from sidequest.methods.policies.task_policy import policy_phase
from sidequest.model_settings import HfSettings, PooledSettings
from sidequest.numerics.statistics import paired_comparison
from sidequest.recipe import Phase, Recipe
from sidequest.report.images import save
from sidequest.report.policies import candidate_scores, policy_against_sizes, policy_over_time, scores_over_time
from sidequest.report.tables import markdown_table
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.search.code_version import selection_code_version
from sidequest.search.executors import run_jobs
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite

# Labelled rows of each task: 10 times the square root of GLUE's, at most 4,000.
SMALL_ROWS = {
    "cola": 920,
    "mnli": 4000,
    "mrpc": 610,
    "qnli": 3240,
    "qqp": 4000,
    "rte": 500,
    "sst2": 2600,
    "stsb": 760,
}
SMALL_REPORT_ROWS = 500
SMALL_MODEL = PooledSettings()
SMALL_TRAIN = TrainSettings(epochs=5, batch_size=32, patience=None, max_batches=1500)  # five looks at *select*
FULL_MODEL = HfSettings(encoder="bert-base-uncased", max_length=256)
FULL_TRAIN = TrainSettings(epochs=10, batch_size=16, learning_rate=2e-5, patience=None, max_batches=200_000)
SEEDS = 3
ENTROPY_WEIGHTS = (0.1, 0.15, 0.2, 0.5, 1.0)  # the paper's three, and two beyond
CMA_ITERATIONS, IMPROVEMENTS = 50, 1  # the paper's
# The mean score on report in per cent, paper's Table 1.
PAPER = {"random": 79.1, "size": 74.9, "exp3s": 78.9, "counterfactual": 80.5}


@dataclass(frozen=True)
class PolicyJob:
    """Learn a policy (`shares` is None) or train one, with one seed."""

    policy: str
    seed: int
    out: Path
    shares: tuple[float, ...] | None = None

    @property
    def file(self) -> Path:
        return self.out / "jobs" / f"{self.policy}-{'learn' if self.shares is None else 'train'}-{self.seed}.json"


def main(options: Options) -> dict[str, Any]:
    seeds = options.seeds or SEEDS
    setup = make_setup(data_directory(options, "glue"), options)
    names, steps = list(setup.pool.names), steps_of(setup)
    rows = np.array([setup.pool.cards[name].rows for name in names])
    learned = run_all(
        setup,
        [
            PolicyJob("counterfactual", 0, options.out),
            *(PolicyJob("exp3s", seed, options.out) for seed in range(seeds)),
        ],
        options,
    )
    recipes = {"counterfactual": learned[0]["recipe"], "exp3s": [each["recipe"] for each in learned[1:]]}
    policies = {
        "random": [np.full(len(names), 1 / len(names))] * seeds,
        "size": [rows / rows.sum()] * seeds,
        "exp3s, mean policy": [shares_of(recipe, names) for recipe in recipes["exp3s"]],
        "counterfactual": [shares_of(recipes["counterfactual"], names)] * seeds,
    }
    jobs = [
        PolicyJob(name, seed, options.out, tuple(each[seed].tolist()))
        for seed in range(seeds)
        for name, each in policies.items()
    ]
    outcomes = [{**each, "policy": "exp3s"} for each in learned[1:]] + run_all(setup, jobs, options)
    order = ["random", "size", "exp3s", "exp3s, mean policy", "counterfactual"]
    results = {
        "seeds": seeds,
        "steps": steps,
        "rows": dict(zip(names, rows.tolist(), strict=True)),
        "table": {name: by_task(outcomes, name) for name in order},
        "policy": dict(zip(names, policies["counterfactual"][0].tolist(), strict=True)),
        "entropy_weights": {
            f"{each['entropy_weight']:g}": each["score"] for each in recipes["counterfactual"]["evidence"]["candidates"]
        },
        "warnings": recipes["counterfactual"]["evidence"]["warnings"],
        "outcomes": outcomes,
    }
    print(f"\nGLUE, {steps} steps of {setup.train.batch_size} rows, {seeds} seeds: scores on report in per cent")
    print(score_table(results))
    print("\nThe learned policy, and the rows that tasks have")
    print(policy_table(results))
    curves = {name: curve_of(outcomes, name) for name in policies}
    save(
        scores_over_time(curves, "GLUE: average score over time (median and range)", "score on select"),
        options.out / "scores",
    )
    save(policy_against_sizes(results["policy"], results["rows"]), options.out / "policy")
    save(candidate_scores(recipes["counterfactual"]["evidence"]), options.out / "candidates")
    save(policy_over_time(recipes["exp3s"][0]["evidence"]), options.out / "exp3s")
    write_json(options.out / "results.json", results, seal=False)
    return results


def make_setup(data: Path, options: Options) -> Setup:
    tasks = []
    for name, directory in GLUE_FOLDERS.items():
        limits = {"limit": SMALL_ROWS[name], "report_limit": SMALL_REPORT_ROWS} if options.small else {}
        # A task's score is the mean of its metrics; CoLA's is Matthews correlation alone.
        metric = {"metric": "matthews"} if name == "cola" else {}
        spec = {"catalog": name, "path": directory, **limits, **metric}
        tasks.append(load_task(name, spec, data, primary=name == "cola"))
    suite = Suite.of(tasks[0], tasks[1:], name="glue", goal="average")
    if options.small:
        return Setup(suite, options.with_encoder(SMALL_MODEL), SMALL_TRAIN)
    return Setup(suite, options.with_encoder(FULL_MODEL), FULL_TRAIN)


def steps_of(setup: Setup) -> int:
    assert setup.train.max_batches is not None
    return setup.train.max_batches


def run_all(setup: Setup, jobs: list[PolicyJob], options: Options) -> list[dict[str, Any]]:
    """The jobs' results in their order; what an earlier call finished is read, not run."""
    found: dict[int, dict[str, Any]] = {}
    for index, result in run_jobs(run_job, setup, jobs, options.workers):
        found[index] = result
        score = f"{100 * result['average']:.1f}" if "average" in result else "learned"
        print(f"[{len(found)}/{len(jobs)}] {jobs[index].policy}, seed {jobs[index].seed}: {score}", flush=True)
    return [found[index] for index in range(len(jobs))]


def run_job(setup: Setup, job: PolicyJob) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    identity = digest(
        [setup.facts(list(setup.suite.tasks)), job.policy, job.seed, job.shares, selection_code_version()]
    )
    if job.file.exists():
        stored = read_json(job.file)
        if stored["identity"] == identity:
            return stored
    result = learn(setup, job) if job.shares is None else train(setup, job)
    result |= {"identity": identity, "policy": job.policy, "seed": job.seed}
    write_json(job.file, result)
    return result


def learn(setup: Setup, job: PolicyJob) -> dict[str, Any]:
    """A recipe; for Exp3.S also the scores of the model that the run itself trained, which is the paper's result."""
    learner = setup.learner(job.seed)
    trials = LocalTrials(learner, setup.train, goal="average", facts=setup.facts)
    method: Exp3S | Counterfactual
    if job.policy == "exp3s":
        method = Exp3S(Exp3SSettings(steps=steps_of(setup)), seed=job.seed)
    else:
        method = Counterfactual(
            CounterfactualSettings(
                steps=steps_of(setup),
                iterations=IMPROVEMENTS,
                entropy_weights=ENTROPY_WEIGHTS,
                cma_iterations=CMA_ITERATIONS,
            ),
            seed=job.seed,
        )
    directory = job.out / "runs" / f"{job.policy}-{job.seed}"
    recipe = run_method(method, learner, setup.pool, trials, single_run_work=setup.single_run_work, directory=directory)
    result: dict[str, Any] = {"recipe": recipe.model_dump(mode="json")}
    if job.policy == "exp3s":
        tasks = {name: learner.evaluate_all(name, "report") for name in setup.suite.tasks}
        result |= scores_of(tasks)
    return result


def train(setup: Setup, job: PolicyJob) -> dict[str, Any]:
    assert job.shares is not None
    names = list(setup.pool.names)
    phase: Phase = policy_phase(names, np.array(job.shares), goal="average", steps=steps_of(setup))
    trained = train_recipe(setup, Recipe(method=job.policy, primary=names[0], phases=(phase,)), job.seed)
    return scores_of(trained.tasks) | {"history": trained.history}


def scores_of(tasks: dict[str, dict[str, float]]) -> dict[str, Any]:
    """A score per task, the mean of its metrics, and the mean over tasks."""
    scores = {name: float(np.mean(list(metrics.values()))) for name, metrics in tasks.items()}
    return {"tasks": scores, "average": float(np.mean(list(scores.values())))}


def shares_of(recipe: dict[str, Any], names: list[str]) -> np.ndarray:
    shares = np.array([recipe["phases"][0]["shares"][name] for name in names])
    return shares / shares.sum()


def by_task(outcomes: list[dict[str, Any]], policy: str) -> dict[str, list[float]]:
    """Scores by seed of each task and of their average."""
    mine = sorted((each for each in outcomes if each["policy"] == policy), key=lambda each: each["seed"])
    tasks = {name: [each["tasks"][name] for each in mine] for name in GLUE_FOLDERS}
    return {"average": [each["average"] for each in mine], **tasks}


def curve_of(outcomes: list[dict[str, Any]], policy: str) -> dict[str, list[float]]:
    """The average on *select* at each look, over seeds."""
    histories = [each["history"] for each in outcomes if each["policy"] == policy]
    scores = np.array([[look["score"] for look in history] for history in histories])
    return {
        "step": [look["batches"] for look in histories[0]],
        "median": np.median(scores, axis=0).tolist(),
        "low": scores.min(axis=0).tolist(),
        "high": scores.max(axis=0).tolist(),
    }


def score_table(results: dict[str, Any]) -> str:
    table, rows = results["table"], []
    for name, scores in table.items():
        cells = [f"{100 * np.mean(values):.1f}" for values in scores.values()]
        if name == "random" or results["seeds"] < 2:
            against = ""
        else:
            found = paired_comparison(scores["average"], table["random"]["average"])
            against = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
        paper = f"{PAPER[name]:.1f}" if name in PAPER else ""
        rows.append([name, *cells, against, paper])
    header = ["policy", "average", *GLUE_FOLDERS, "average against random", "paper's average"]
    return markdown_table(header, rows)


def policy_table(results: dict[str, Any]) -> str:
    total = sum(results["rows"].values())
    rows = [
        [name, f"{results['policy'][name]:.3f}", f"{count / total:.3f}", f"{count:,}"]
        for name, count in sorted(results["rows"].items(), key=lambda item: -item[1])
    ]
    return markdown_table(["task", "learned", "by size", "rows"], rows)
