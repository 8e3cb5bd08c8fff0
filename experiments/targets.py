"""What the two experiments of Kourdis et al. (2020) share: every task in turn is the primary, and four ways of training compete.

`single` and `multitask` are the paper's baselines: plain training on the primary alone, or on all tasks with equal weights; one
multi-task run serves all tasks, with a snapshot of its own for each task's best epoch. `diw` and `alphavil` run once per task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.claims import judged
from sidequest.files import digest, read_json, write_json
from sidequest.learning.torch.learner import TorchLearner
from sidequest.methods.alphavil.alphavil import AlphaVIL, AlphaVILSettings
from sidequest.methods.alphavil.diw import DIW, DIWSettings
from sidequest.methods.base import Method, Pool
from sidequest.models.base import Family
from sidequest.numerics.statistics import paired_comparison
from sidequest.report.tables import markdown_table
from sidequest.runs.driver import run_method
from sidequest.search.code_version import selection_code_version
from sidequest.search.executors import run_jobs
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite

METHODS = ("single", "multitask", "diw", "alphavil")
# The comparisons that the paper's text makes.
CLAIMS = (
    ("multitask", "single"),
    ("diw", "single"),
    ("alphavil", "single"),
    ("alphavil", "multitask"),
    ("alphavil", "diw"),
)


@dataclass(frozen=True)
class TargetsPlan:
    """One experiment at one size; plain data, so that workers can be given it.

    suite, family: module-level functions; `suite(plan, seed)` has any task as its primary.
    fraction: of every train split, per epoch. settings: of `alphavil` and `diw`, besides epochs and fraction.
    probabilities: keep them for *report*, for ensembles over seeds.
    """

    name: str
    suite: Callable[[TargetsPlan, int], Suite]
    family: Callable[[Suite], Family]
    data: Path
    tasks: tuple[str, ...]
    train: TrainSettings
    epochs: int
    seeds: int
    fraction: float = 1.0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    probabilities: bool = False

    @property
    def identity(self) -> str:
        """What must be equal for a stored outcome to count."""
        plain = [self.name, str(self.data), self.tasks, self.train.model_dump(mode="json"), self.epochs, self.fraction]
        return digest([*plain, self.settings, self.rows, self.probabilities, selection_code_version()])


@dataclass(frozen=True)
class TargetJob:
    """One training: of one method for one target (None: all of them) on one seed."""

    method: str
    target: str | None
    seed: int
    out: Path

    @property
    def file(self) -> Path:
        return self.out / "jobs" / f"{self.method}-{self.target or 'all'}-{self.seed}.json"


def run_plan(plan: TargetsPlan, out: Path, workers: int) -> list[dict[str, Any]]:
    """All outcomes of a plan: method, target, seed, `select`, `report`. What an earlier call finished is read, not run."""
    jobs = [
        TargetJob(method, target, seed, out)
        for seed in range(plan.seeds)
        for method in METHODS
        for target in ((None,) if method == "multitask" else plan.tasks)
    ]
    outcomes = []
    for done, (_, found) in enumerate(run_jobs(run_job, plan, jobs, workers), start=1):
        outcomes += found
        told = ", ".join(f"{each['target']} {each['report']:.4f}" for each in found)
        print(f"[{done}/{len(jobs)}] {found[0]['method']}, seed {found[0]['seed']}: {told}", flush=True)
    return outcomes


def run_job(plan: TargetsPlan, job: TargetJob) -> list[dict[str, Any]]:
    import torch

    torch.set_num_threads(1)
    if job.file.exists():
        stored = read_json(job.file)
        if stored["plan"] == plan.identity:
            return stored["outcomes"]
    suite = plan.suite(plan, job.seed)
    learner = TorchLearner(
        suite.with_primary(job.target or plan.tasks[0]), plan.family(suite), plan.train, seed=job.seed
    )
    if job.method == "single":
        assert job.target is not None
        outcomes = train_jointly(plan, learner, (job.target,), job)
    elif job.method == "multitask":
        outcomes = train_jointly(plan, learner, plan.tasks, job)
    else:
        outcomes = [learn_weights(plan, learner, job)]
    write_json(job.file, {"plan": plan.identity, "outcomes": outcomes})
    return outcomes


def train_jointly(
    plan: TargetsPlan, learner: TorchLearner, tasks: Sequence[str], job: TargetJob
) -> list[dict[str, Any]]:
    """Plain training on all `tasks` with equal weights, and for each the weights of its best epoch on *select*."""
    batches = [max(1, round(plan.fraction * learner.epoch_batches(task))) for task in tasks]
    learner.begin(plan.epochs * sum(batches))
    best: dict[str, tuple[float, Any]] = {}
    for epoch in range(plan.epochs):
        order = np.random.default_rng([job.seed, epoch]).permutation(np.repeat(np.arange(len(tasks)), batches))
        for pick in order:
            learner.train(tasks[pick], 1, weight=1 / len(tasks))
        for task in tasks:
            score = learner.evaluate(task)
            if task not in best or score > best[task][0]:
                best[task] = score, learner.snapshot(weights_only=True)
    outcomes = []
    for task, (_, weights) in best.items():
        learner.restore(weights)
        outcomes.append(outcome_of(plan, learner, task, job))
    return outcomes


def learn_weights(plan: TargetsPlan, learner: TorchLearner, job: TargetJob) -> dict[str, Any]:
    """`alphavil` or `diw`; the learner ends with the best weights on *select*."""
    settings = {"epochs": plan.epochs, "fraction": plan.fraction, **plan.settings.get(job.method, {})}
    method: Method[Any, Any]
    if job.method == "alphavil":
        method = AlphaVIL(AlphaVILSettings(**settings), seed=job.seed)
    else:
        method = DIW(DIWSettings(**settings), seed=job.seed)
    pool = Pool(learner.primary, {name: task.card for name, task in learner.suite.tasks.items()}, train=plan.train)
    recipe = run_method(method, learner, pool, LocalTrials(learner, plan.train), single_run_work=1.0)
    assert job.target is not None
    return outcome_of(plan, learner, job.target, job) | {"evidence": recipe.evidence}


def outcome_of(plan: TargetsPlan, learner: TorchLearner, target: str, job: TargetJob) -> dict[str, Any]:
    found: dict[str, Any] = {
        "method": job.method,
        "target": target,
        "seed": job.seed,
        "select": learner.evaluate(target),
        "report": learner.evaluate(target, "report"),
    }
    if plan.probabilities:
        found["probabilities"] = report_probabilities(learner, target).round(6).tolist()
    return found


def report_probabilities(learner: TorchLearner, task: str) -> np.ndarray:
    """Probabilities [rows, classes or choices] on *report*, in row order."""
    import torch

    spec = learner.suite[task]
    inputs = learner.family.inputs(spec, spec.splits["report"])
    learner.model.eval()
    size, found = learner.settings.eval_batch_size, []
    with torch.inference_mode():
        for start in range(0, len(inputs), size):
            batch = learner.to_device(inputs.collate(np.arange(start, min(start + size, len(inputs)))))
            found.append(learner.model(task, batch).softmax(-1).cpu().numpy())
    return np.concatenate(found)


def ensemble_score(plan: TargetsPlan, outcomes: Sequence[Mapping[str, Any]], target: str) -> float:
    """Accuracy on *report* of the mean of the seeds' probabilities."""
    mean = np.mean([outcome["probabilities"] for outcome in outcomes], axis=0)
    truth = np.asarray(plan.suite(plan, 0)[target].splits["report"].target)
    return float(np.mean(mean.argmax(axis=1) == truth))


def scores(outcomes: Sequence[Mapping[str, Any]], method: str, target: str, split: str) -> list[float]:
    """By seed."""
    mine = [each for each in outcomes if each["method"] == method and each["target"] == target]
    return [each[split] for each in sorted(mine, key=lambda each: each["seed"])]


def spread(values: Sequence[float]) -> dict[str, float]:
    """The columns of the paper's Table 1, in per cent."""
    x = 100 * np.asarray(values)
    deviation = float(x.std(ddof=1)) if len(x) > 1 else 0.0
    return {"min": float(x.min()), "max": float(x.max()), "mean": float(x.mean()), "deviation": deviation}


def claims(outcomes: Sequence[Mapping[str, Any]], targets: Sequence[str]) -> list[dict[str, Any]]:
    """The paper's comparisons on *report*, paired by seed; verdicts hold for all of them together (Holm, 5 %)."""
    rows = []
    for target in targets:
        for ours, baseline in CLAIMS:
            pair = paired_comparison(*(scores(outcomes, name, target, "report") for name in (ours, baseline)))
            rows.append({"target": target, "ours": ours, "baseline": baseline, **vars(pair)})
    return judged(rows)


def claims_table(rows: Sequence[Mapping[str, Any]]) -> str:
    table = [
        [
            row["target"],
            f"{row['ours']} − {row['baseline']}",
            f"{100 * row['mean']:+.2f}",
            f"{100 * row['low']:+.2f} to {100 * row['high']:+.2f}",
            f"{row['adjusted_p']:.3f}",
            "beyond noise" if row["verdict"] in ("helps", "hurts") else "within noise",
        ]
        for row in rows
    ]
    return markdown_table(["target", "report, points", "mean", "95 % interval", "p (Holm)", ""], table)
