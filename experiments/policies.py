"""`python -m experiments policies`: task-selection policies on GLUE (Glover & Hokamp 2019, Sec. 4.2, Tables 1 to 3, Figure 2).

One shared model, the same number of steps for every policy, every model scored at its last step, the mean over eight tasks as
the goal. As in the paper the counterfactual policy is learned once, from one logging run and one run per λ, and then trained with
every seed; Exp3.S is the model that its own run trained. `single` is one model per task (Table 2, on *report*), `probe` one plain
read-out per task.

Full size has two parts (`--only`): `paper` is BERT and 200,000 steps; `cpu` is a fine-tuned MiniLM with 2,500 steps of 16 rows
over every row at hand. `--small` is a small network over frozen sentence vectors, with 750 steps over 250 to 2,000 rows of each
task, whose numbers fall from MNLI to RTE as in GLUE, only less steeply: about three passes, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.cells import claims, claims_table, method_result
from experiments.data import GLUE_FOLDERS, data_directory
from experiments.jobs import ExperimentJob, Result
from sidequest.files import write_json
from sidequest.methods.policies.counterfactual import Counterfactual, CounterfactualSettings
from sidequest.methods.policies.exp3s import Exp3S, Exp3SSettings
from sidequest.methods.policies.task_policy import policy_phase
from sidequest.model_settings import EncoderSettings, HfSettings, PooledSettings
from sidequest.numerics.statistics import paired_comparison
from sidequest.recipe import Recipe
from sidequest.records.controls import PROBE
from sidequest.report.images import save
from sidequest.report.policies import policy_against_sizes, scores_over_time
from sidequest.report.tables import markdown_table
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite

# Labelled rows of each task: 5 times the square root of GLUE's, at most 2,000.
SMALL_ROWS = {
    "cola": 460,
    "mnli": 2000,
    "mrpc": 305,
    "qnli": 1620,
    "qqp": 2000,
    "rte": 250,
    "sst2": 1300,
    "stsb": 380,
}
SMALL_REPORT_ROWS = 500


@dataclass(frozen=True)
class PoliciesPart:
    """train: every policy's; its last model is scored, and there are as many evaluations on *select* as it has epochs."""

    model: EncoderSettings
    train: TrainSettings
    rows: Mapping[str, int] = field(default_factory=dict)
    report_rows: int | None = None

    @property
    def steps(self) -> int:
        assert self.train.max_batches is not None
        return self.train.max_batches


FIXED: dict[str, Any] = {"patience": None, "keep": "last"}
SMALL = PoliciesPart(
    PooledSettings(max_length=64, precision="bf16"),  # encoding every row once is the most expensive part of this size
    TrainSettings(epochs=5, batch_size=32, max_batches=750, **FIXED),
    SMALL_ROWS,
    SMALL_REPORT_ROWS,
)
PARTS = {
    "cpu": PoliciesPart(HfSettings(max_length=64), TrainSettings(epochs=5, batch_size=16, max_batches=2500, **FIXED)),
    "paper": PoliciesPart(
        HfSettings(encoder="bert-base-uncased", max_length=256),
        TrainSettings(epochs=10, batch_size=16, learning_rate=2e-5, max_batches=200_000, **FIXED),
    ),
}
SEEDS = 3
ENTROPY_WEIGHTS = (0.1, 0.15, 0.2, 0.5, 1.0)  # the paper's three, and two beyond
CMA_ITERATIONS, IMPROVEMENTS = 50, 1  # the paper's
# The mean score on report in per cent, paper's Table 1; the policy of its Table 3; and Table 2: (single, policy), test.
PAPER = {"random": 79.1, "size": 74.9, "exp3s": 78.9, "counterfactual": 80.5}
PAPER_POLICY = dict(zip(GLUE_FOLDERS, (0.089, 0.255, 0.086, 0.134, 0.154, 0.086, 0.094, 0.102), strict=True))
PAPER_SINGLE = {
    "cola": ("52.1", "48.5"),
    "mnli": ("84.6", "83.5"),
    "mrpc": ("88.9/84.8", "88.0/83.7"),
    "qnli": ("90.5", "90.5"),
    "qqp": ("71.2/89.2", "70.4/88.7"),
    "rte": ("66.4", "74.5"),
    "sst2": ("93.5", "93.1"),
    "stsb": ("87.1/85.1", "80.7/80.6"),
}
LEARN, MEAN_POLICY = "counterfactual: learn", "exp3s, mean policy"
PAPER_PACKAGE = "policies"
ALONE = ("single", PROBE)  # one model, or one plain read-out, per task
ORDER = ("random", "size", "exp3s", MEAN_POLICY, "counterfactual", *ALONE)


def parts_of(options: Options) -> dict[str, PoliciesPart]:
    if options.small:
        return {"small": SMALL}
    return {name: PARTS[name] for name in options.of_parts(list(PARTS))}


def jobs_of(options: Options) -> list[ExperimentJob]:
    """The policy first, then all policies of a seed."""
    seeds, jobs = options.seed_range(SEEDS), []
    for name, part in parts_of(options).items():
        facts = {
            "model": part.model.model_dump(mode="json"),
            "train": part.train.model_dump(mode="json"),
            "rows": [dict(part.rows), part.report_rows],
            "weights": ENTROPY_WEIGHTS,
        }
        learn = ExperimentJob(LEARN, name, seeds[0], facts, PAPER_PACKAGE)
        jobs.append(learn)
        for seed in seeds:
            exp3s = ExperimentJob("exp3s", name, seed, facts, PAPER_PACKAGE)
            needs = {MEAN_POLICY: exp3s.name, "counterfactual": learn.name}
            others = ("counterfactual", MEAN_POLICY, *ALONE)
            jobs += [ExperimentJob(policy, name, seed, facts) for policy in ("random", "size")]
            jobs.append(exp3s)
            jobs += [
                ExperimentJob(each, name, seed, facts, None if each in ALONE else PAPER_PACKAGE, needs.get(each))
                for each in others
            ]
    return jobs


@dataclass(frozen=True)
class PoliciesShared:
    parts: Mapping[str, PoliciesPart]
    data: Path
    out: Path
    encoder: str | None

    def setup(self, name: str) -> Setup:
        part, tasks = self.parts[name], []
        for task, folder in GLUE_FOLDERS.items():
            limits = {"limit": part.rows[task]} if task in part.rows else {}
            limits |= {} if part.report_rows is None else {"report_limit": part.report_rows}
            # A task's score is the mean of its metrics; CoLA's is Matthews correlation alone.
            metric = {"metric": "matthews"} if task == "cola" else {}
            spec = {"catalog": task, "path": folder, **limits, **metric}
            tasks.append(load_task(task, spec, self.data, primary=task == "cola"))
        model = part.model if self.encoder is None else part.model.model_copy(update={"encoder": self.encoder})
        return Setup(Suite.of(tasks[0], tasks[1:], name="glue", goal="average"), model, part.train)


def shared_of(options: Options) -> PoliciesShared:
    return PoliciesShared(parts_of(options), data_directory(options, "glue"), options.out, options.encoder)


def run_job(shared: PoliciesShared, job: ExperimentJob, needed: Mapping[str, Result]) -> Result:
    import torch

    torch.set_num_threads(1)
    setup, part = shared.setup(job.task), shared.parts[job.task]
    names = list(setup.pool.names)
    rows = np.array([setup.pool.cards[name].rows for name in names])
    if job.method in (LEARN, "exp3s"):
        return learn(setup, part, job, shared.out / job.task / f"{job.name}-{job.code}") | {
            "rows": dict(zip(names, rows.tolist(), strict=True))
        }
    if job.method in ALONE:
        place = shared.out / job.task / f"{job.name}-{job.code}"
        found = method_result(setup, job.method, {}, job.seed, place)
        return {"tasks": {name: float(np.mean([*each.values()])) for name, each in found["tasks"].items()}} | {
            "report": found["report"]
        }
    fixed = {"random": np.ones(len(names)), "size": rows}
    given = fixed[job.method] if job.method in fixed else _shares(next(iter(needed.values()))["policy"], names)
    return train(setup, part, job, given / given.sum())


def learn(setup: Setup, part: PoliciesPart, job: ExperimentJob, place: Path) -> Result:
    """A policy; for Exp3.S also the scores of the model that the run itself trained, which is the paper's result."""
    learner = setup.learner(job.seed)
    trials = LocalTrials(learner, setup.train, goal="average", facts=setup.facts)
    method: Exp3S | Counterfactual
    if job.method == "exp3s":
        method = Exp3S(Exp3SSettings(steps=part.steps), seed=job.seed)
    else:
        settings = CounterfactualSettings(
            steps=part.steps,
            iterations=IMPROVEMENTS,
            entropy_weights=ENTROPY_WEIGHTS,
            cma_iterations=CMA_ITERATIONS,
        )
        method = Counterfactual(settings, seed=job.seed)
    recipe = run_method(method, learner, setup.pool, trials, single_run_work=setup.single_run_work, directory=place)
    result: Result = {"policy": {name: round(share, 6) for name, share in recipe.phases[0].shares.items()}}
    if job.method == "exp3s":
        return result | scores_of({name: learner.evaluate_all(name, "report") for name in setup.suite.tasks})
    evidence = recipe.evidence
    by_weight = {
        f"{each['entropy_weight']:g}": {"policy": each["policy"], "select": each["score"]}
        for each in evidence["candidates"]
    }
    return result | {"by_weight": by_weight, "weight": evidence["entropy_weight"]}


def train(setup: Setup, part: PoliciesPart, job: ExperimentJob, shares: np.ndarray) -> Result:
    names = list(setup.pool.names)
    phase = policy_phase(names, shares, goal="average", steps=part.steps)
    trained = train_recipe(setup, Recipe(method=job.method, primary=names[0], phases=(phase,)), job.seed)
    return scores_of(trained.tasks) | {"history": trained.history}


def scores_of(tasks: Mapping[str, Mapping[str, float]]) -> Result:
    """A score per task, the mean of its metrics, and the mean over tasks."""
    scores = {name: float(np.mean(list(metrics.values()))) for name, metrics in tasks.items()}
    return {"tasks": scores, "report": float(np.mean(list(scores.values())))}


def _shares(policy: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    return np.array([policy[name] for name in names])


def show(options: Options, by_job: Mapping[str, Result]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, part in parts_of(options).items():
        of_task = [kept for kept in by_job.values() if kept["task"] == name]
        if not of_task:
            continue
        table = {policy: by_task(of_task, policy) for policy in ORDER if any(k["method"] == policy for k in of_task)}
        print(f"\nGLUE ({name}), {part.steps} steps of {part.train.batch_size} rows: scores on report in per cent")
        print(score_table(table))
        results[name] = {"table": table, "claims": claims(by_job, [(name, "counterfactual", "random")])}
        if results[name]["claims"]:
            print(claims_table(results[name]["claims"]))
        for learned in (kept for kept in of_task if kept["method"] == LEARN):
            print("\nThe policy at every λ, its Table 3, and the rows that tasks have")
            print(policy_table(learned))
            save(policy_against_sizes(learned["policy"], learned["rows"]), options.out / f"policy-{name}")
            results[name] |= {"policy": learned["policy"], "by_weight": learned["by_weight"]}
        curves = {policy: curve_of(of_task, policy) for policy in table if policy not in ("exp3s", *ALONE)}
        if curves:
            title = "GLUE: average score over time (median and range)"
            save(scores_over_time(curves, title, "score on select"), options.out / f"scores-{name}")
    write_json(options.out / "results.json", results, seal=False)
    return results


def by_task(outcomes: Sequence[Mapping[str, Any]], policy: str) -> dict[str, dict[int, float]]:
    """Scores by seed of the average and of each task."""
    of_policy = sorted((each for each in outcomes if each["method"] == policy), key=lambda each: each["seed"])
    tasks = {name: {each["seed"]: each["tasks"][name] for each in of_policy} for name in GLUE_FOLDERS}
    return {"average": {each["seed"]: each["report"] for each in of_policy}, **tasks}


def curve_of(outcomes: Sequence[Mapping[str, Any]], policy: str) -> dict[str, list[float]]:
    """The average on *select* at each look, over seeds."""
    histories = [each["history"] for each in outcomes if each["method"] == policy]
    scores = np.array([[look["score"] for look in history] for history in histories])
    return {
        "step": [look["batches"] for look in histories[0]],
        "median": np.median(scores, axis=0).tolist(),
        "low": scores.min(axis=0).tolist(),
        "high": scores.max(axis=0).tolist(),
    }


def score_table(table: Mapping[str, Mapping[str, Mapping[int, float]]]) -> str:
    """Tables 1 and 2: policies, and one model per task, against the uniform policy."""
    rows = []
    for name, scores in table.items():
        cells = [f"{100 * np.mean([*values.values()]):.1f}" for values in scores.values()]
        both = sorted({*scores["average"]} & {*table.get("random", scores)["average"]})
        against = ""
        if name != "random" and "random" in table and len(both) > 1:
            pair = ([t["average"][seed] for seed in both] for t in (scores, table["random"]))
            found = paired_comparison(*pair)
            against = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
        paper = f"{PAPER[name]:.1f}" if name in PAPER else ""
        rows.append([name, str(len(scores["average"])), *cells, against, paper])
    theirs = [f"{single} → {policy}" for single, policy in PAPER_SINGLE.values()]
    rows.append(["paper's Table 2: single → policy, test", "", "78.3 → 77.9", *theirs, "", ""])
    return markdown_table(["policy", "seeds", "average", *GLUE_FOLDERS, "against random", "paper's average"], rows)


def policy_table(learned: Mapping[str, Any]) -> str:
    rows, total = learned["rows"], sum(learned["rows"].values())
    by_weight = learned["by_weight"]
    policies = {weight: each["policy"] for weight, each in by_weight.items()}
    table = [
        [
            name,
            *(f"{policy[name]:.3f}" for policy in policies.values()),
            f"{PAPER_POLICY[name]:.3f}",
            f"{rows[name] / total:.3f}",
        ]
        for name in sorted(rows, key=lambda name: -rows[name])
    ]
    far = [distance(policy) for policy in policies.values()]
    table.append(["total variation from the paper's", *(f"{each:.3f}" for each in far), "", ""])
    table.append(["score on select", *(f"{100 * each['select']:.1f}" for each in by_weight.values()), "", ""])
    return markdown_table(["task", *(f"λ = {weight}" for weight in policies), "paper", "by size"], table)


def distance(policy: Mapping[str, float]) -> float:
    """Total variation between a policy and the paper's Table 3."""
    return 0.5 * sum(abs(policy[name] - share) for name, share in PAPER_POLICY.items())
