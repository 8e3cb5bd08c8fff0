"""`python -m experiments policies`: task-selection policies on GLUE (Glover & Hokamp 2019, Sec. 4.2, Tables 1 to 3, Figure 2).

One shared model, the same number of steps for every policy, every model scored at its last step, the mean over eight tasks as
the goal. As in the paper the counterfactual policy is learned once, from one logging run and one run per λ, and then trained with
every seed; Exp3.S is the model that its own run trained. `single` is one model per task (Table 2, on *report*), `probe` one plain
read-out per task.

Full size has three parts (`--only`): `paper` is BERT and 200,000 steps; `cpu` is a fine-tuned MiniLM with 2,500 steps of 16 rows
over every row at hand; `short` is the same with 400 steps, in bfloat16, which two cores do for three seeds in an hour.
`--small` is a small network over frozen sentence vectors, with 750 steps over 250 to 2,000 rows of each
task, whose numbers fall from MNLI to RTE as in GLUE, only less steeply: about three passes, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.cells import claims, claims_table, method_result
from experiments.data import GLUE_FOLDERS, data_directory
from experiments.jobs import ExperimentJob, Result
from experiments.policies_plan import ALONE, LEARN, MEAN_POLICY, PARTS, SMALL, PoliciesPart
from sidequest.files import write_json
from sidequest.learning.meter import Meter
from sidequest.learning.torch.learner import TorchLearner
from sidequest.methods.policies.counterfactual import Counterfactual, CounterfactualSettings
from sidequest.methods.policies.exp3s import Exp3S, Exp3SSettings
from sidequest.methods.policies.task_policy import policy_phase
from sidequest.numerics.statistics import paired_comparison
from sidequest.recipe import Recipe
from sidequest.report.images import save
from sidequest.report.policies import policy_against_sizes, scores_over_time
from sidequest.report.tables import markdown_table
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.search.trials import LocalTrials
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite

SEEDS = 3
CLAIM = ("counterfactual", "random")
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
PAPER_PACKAGE = "policies"
ORDER = ("random", "size", "exp3s", MEAN_POLICY, "counterfactual", *ALONE)


def parts_of(options: Options) -> dict[str, PoliciesPart]:
    if options.small:
        return {"small": SMALL}
    return {name: PARTS[name] for name in options.of_parts(list(PARTS))}


def jobs_of(options: Options) -> list[ExperimentJob]:
    """The policy first, then for every seed what the claim needs, then its controls, then the other arms of each seed."""
    seeds, jobs = options.seed_range(SEEDS), []
    for name, part in parts_of(options).items():
        facts = part.facts()
        learn = ExperimentJob(LEARN, name, seeds[0], facts, PAPER_PACKAGE)
        jobs.append(learn)
        for arms in (CLAIM, ALONE, [arm for arm in part.arms if arm not in (*CLAIM, *ALONE)]):
            for seed in seeds:
                exp3s = ExperimentJob("exp3s", name, seed, facts)
                needs = {MEAN_POLICY: exp3s.name, "counterfactual": learn.name}
                chosen = ("exp3s", *needs)
                jobs += [
                    ExperimentJob(arm, name, seed, facts, PAPER_PACKAGE if arm in chosen else None, needs.get(arm))
                    for arm in arms
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
            limits |= {} if part.select_rows is None else {"select_limit": part.select_rows}
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
        if part.steps_alone is not None:
            setup = replace(setup, train=part.train.model_copy(update={"max_batches": part.steps_alone}))
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
            entropy_weights=part.weights,
            cma_iterations=CMA_ITERATIONS,
        )
        method = Counterfactual(settings, seed=job.seed)
    looks = Looks(part, learner, list(setup.suite.tasks)) if job.method == "exp3s" else None
    recipe = run_method(
        method, learner, setup.pool, trials, single_run_work=setup.single_run_work, directory=place, on_round=looks
    )
    result: Result = {"policy": {name: round(share, 6) for name, share in recipe.phases[0].shares.items()}}
    if job.method == "exp3s":
        scores = scores_of({name: learner.evaluate_all(name, "report") for name in setup.suite.tasks})
        return result | scores | {"history": [] if looks is None else looks.history}
    evidence = recipe.evidence
    by_weight = {
        f"{each['entropy_weight']:g}": {"policy": each["policy"], "select": each["score"]}
        for each in evidence["candidates"]
    }
    return result | {"by_weight": by_weight, "weight": evidence["entropy_weight"]}


class Looks:
    """The mean score on *select* while Exp3.S trains its model, as often as the other policies' trainings look. A run that was
    stopped lacks the looks before, and is left out of the figure."""

    def __init__(self, part: PoliciesPart, learner: TorchLearner, tasks: Sequence[str]) -> None:
        self.history: list[dict[str, float]] = []
        self._seen: int | None = None
        self._every, self._learner, self._tasks = part.steps / part.train.epochs, learner, tasks

    def __call__(self, done: int, total: int | None, entry: Mapping[str, Any], meter: Meter) -> None:
        batches = sum(work.batches for work in meter.tasks.values())
        if self._seen is None:  # a run that goes on where it was stopped looks from there on
            self._seen = 0 if done == 1 else int(batches // self._every)
        if batches >= self._every * (self._seen + 1):
            self._seen += 1
            score = float(np.mean([self._learner.evaluate(name) for name in self._tasks]))
            self.history.append({"batches": batches, "score": score})


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
        results[name] = {"table": table, "claims": claims(by_job, [(name, *CLAIM)])}
        if results[name]["claims"]:
            print(claims_table(results[name]["claims"]))
        for learned in (kept for kept in of_task if kept["method"] == LEARN):
            print("\nThe policy at every λ, its Table 3, and the rows that tasks have")
            print(policy_table(learned))
            save(policy_against_sizes(learned["policy"], learned["rows"]), options.out / f"policy-{name}")
            results[name] |= {"policy": learned["policy"], "by_weight": learned["by_weight"]}
        curves = {policy: curve for policy in table if policy not in ALONE and (curve := curve_of(of_task, policy))}
        if any(len(curve["step"]) > 1 for curve in curves.values()):
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
    """The average on *select* at each look, over the seeds that have all looks; empty where none has any."""
    histories = [each.get("history", []) for each in outcomes if each["method"] == policy]
    most = max(map(len, histories), default=0)
    if most == 0:
        return {}
    histories = [history for history in histories if len(history) == most]
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
