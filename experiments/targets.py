"""What the two experiments of Kourdis et al. (2020) share: every task in turn is the primary, and four ways of training compete.

`single` and `multitask` are the paper's baselines: plain training on the primary alone, or on all tasks with equal weights; one
multi-task run serves all tasks, with a snapshot of its own for each task's best epoch. `diw` and `alphavil` run once per task.
Two controls are not the paper's: `single-long`, the primary alone for as many batches as a multi-task run has, and `probe`, the
model before any training, for a model that starts at its plain read-out.
A training that is stopped goes on from its last minute.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.claims import judged
from experiments.jobs import ExperimentJob
from sidequest.learning.checkpoints import Checkpoints, SavedLearner
from sidequest.learning.torch.learner import TorchLearner
from sidequest.methods.alphavil.alphavil import AlphaVIL, AlphaVILSettings
from sidequest.methods.alphavil.diw import DIW, DIWSettings
from sidequest.methods.base import Method, Pool
from sidequest.models.base import Family
from sidequest.numerics.statistics import paired_comparison
from sidequest.report.tables import markdown_table
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite

METHODS = ("single", "multitask", "alphavil", "diw")  # the most expensive last
PLAIN = ("probe", "single", "single-long", "multitask")  # these choose nothing
FOR_ALL = ("probe", "multitask")  # one job serves every target
ALL = "all"  # the task of such a job
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
    model: what the family is, in words. out: where a training that is stopped is kept.
    probabilities: keep them for *report*, for ensembles over seeds.
    """

    name: str
    suite: Callable[[TargetsPlan, int], Suite]
    family: Callable[[Suite], Family]
    data: Path | None
    tasks: tuple[str, ...]
    train: TrainSettings
    epochs: int
    seeds: Sequence[int]
    out: Path
    fraction: float = 1.0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    methods: tuple[str, ...] = METHODS
    probabilities: bool = False

    def jobs(self) -> list[ExperimentJob]:
        """By method, the most expensive last: what is told first is what the paper's claims need."""
        return [
            ExperimentJob(method, target, seed, self._facts(method), paper=None if method in PLAIN else "alphavil")
            for method in self.methods
            for seed in self.seeds
            for target in ((ALL,) if method in FOR_ALL else self.tasks)
        ]

    def _facts(self, method: str) -> dict[str, Any]:
        return {
            "train": self.train.model_dump(mode="json"),
            "epochs": self.epochs,
            "fraction": self.fraction,
            "rows": dict(self.rows),
            "model": self.model,
            "method": dict(self.settings.get(method, {})),
        }


def run_job(plan: TargetsPlan, job: ExperimentJob, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Scores on both splits by target, and what the method learned."""
    import torch

    torch.set_num_threads(1)
    suite = plan.suite(plan, job.seed)
    targets = plan.tasks if job.task == ALL else (job.task,)
    learner = TorchLearner(suite.with_primary(targets[0]), plan.family(suite), plan.train, seed=job.seed)
    place = plan.out / "unfinished" / f"{job.name}-{job.plan}-{job.code}"
    if job.method == "probe":
        outcomes = [outcome_of(plan, learner, target) for target in targets]
    elif job.method in PLAIN:
        as_long_as = plan.tasks if job.method == "single-long" else targets
        outcomes = train_jointly(plan, learner, targets, job.seed, place, as_long_as)
    else:
        outcomes = [learn_weights(plan, learner, job, place)]
    shutil.rmtree(place, ignore_errors=True)
    return {"targets": {each.pop("target"): each for each in outcomes}}


def outcomes_of(by_job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per method, target and seed."""
    return [
        {"method": kept["method"], "seed": kept["seed"], "target": target, **outcome}
        for kept in by_job.values()
        for target, outcome in kept["targets"].items()
    ]


def train_jointly(
    plan: TargetsPlan,
    learner: TorchLearner,
    tasks: Sequence[str],
    seed: int,
    place: Path,
    as_long_as: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Plain training on all `tasks` with equal weights, and for each the weights of its best epoch on *select*.

    as_long_as: an epoch of a single task has as many batches as one of all these.
    """
    batches = [max(1, round(plan.fraction * learner.epoch_batches(task))) for task in as_long_as or tasks]
    if len(tasks) == 1:
        batches = [sum(batches)]
    learner.begin(plan.epochs * sum(batches))
    states = Checkpoints(place)
    best, first = _resumed(states, learner)
    for epoch in range(first, plan.epochs):
        order = np.random.default_rng([seed, epoch]).permutation(np.repeat(np.arange(len(tasks)), batches))
        for pick in order:
            learner.train(tasks[pick], 1, weight=1 / len(tasks))
        for task in tasks:
            score = learner.evaluate(task)
            if task not in best or score > best[task].score:
                best[task] = _Best(score, epoch, learner.snapshot(weights_only=True))
        if states.due():
            _save(states, learner, best, epoch)
    outcomes = []
    for task, kept in best.items():
        learner.restore(kept.weights)
        outcomes.append(outcome_of(plan, learner, task))
    return outcomes


@dataclass(frozen=True)
class _Best:
    score: float
    epoch: int
    weights: Any


def _save(states: Checkpoints, learner: TorchLearner, best: Mapping[str, _Best], epoch: int) -> None:
    parts = {"learner": SavedLearner(epoch, learner.save)}
    for task, kept in best.items():
        parts[f"best-{task}"] = SavedLearner(kept.epoch, functools.partial(learner.save, snapshot=kept.weights))
    scores = {task: [kept.score, kept.epoch] for task, kept in best.items()}
    states.save({"epoch": epoch, "best": scores}, parts)


def _resumed(states: Checkpoints, learner: TorchLearner) -> tuple[dict[str, _Best], int]:
    """The best of each task so far, and the epoch with which the training goes on."""
    loaded = states.load()
    if loaded is None:
        return {}, 0
    record, place = loaded
    best = {}
    for task, (score, epoch) in record["best"].items():
        learner.load(place / f"best-{task}")
        best[task] = _Best(score, epoch, learner.snapshot(weights_only=True))
    learner.load(place / "learner")
    return best, record["epoch"] + 1


def learn_weights(plan: TargetsPlan, learner: TorchLearner, job: ExperimentJob, place: Path) -> dict[str, Any]:
    """`alphavil` (in any variant) or `diw`; the learner ends with the best weights on *select*."""
    settings = {"epochs": plan.epochs, "fraction": plan.fraction, **plan.settings.get(job.method, {})}
    method: Method[Any, Any]
    if job.method == "diw":
        method = DIW(DIWSettings(**settings), seed=job.seed)
    else:
        method = AlphaVIL(AlphaVILSettings(**settings), seed=job.seed)
    pool = Pool(learner.primary, {name: task.card for name, task in learner.suite.tasks.items()}, train=plan.train)
    trials = LocalTrials(learner, plan.train)
    recipe = run_method(method, learner, pool, trials, single_run_work=1.0, directory=place)
    return outcome_of(plan, learner, job.task) | {"evidence": rounded(recipe.evidence)}


def rounded(evidence: Any) -> Any:
    """Six digits are enough for figures, and the files stay small."""
    if isinstance(evidence, float):
        return float(f"{evidence:.6g}")
    if isinstance(evidence, dict):
        return {name: rounded(value) for name, value in evidence.items()}
    return [rounded(value) for value in evidence] if isinstance(evidence, list) else evidence


def outcome_of(plan: TargetsPlan, learner: TorchLearner, target: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "target": target,
        "select": learner.evaluate(target),
        "report": learner.evaluate(target, "report"),
    }
    if plan.probabilities:
        found["probabilities"] = report_probabilities(learner, target).round(4).tolist()
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


def scores(outcomes: Sequence[Mapping[str, Any]], method: str, target: str, split: str) -> dict[int, float]:
    """By seed, in their order."""
    mine = {each["seed"]: each[split] for each in outcomes if each["method"] == method and each["target"] == target}
    return dict(sorted(mine.items()))


def spread(values: Sequence[float]) -> dict[str, float]:
    """The columns of the paper's Table 1, in per cent."""
    x = 100 * np.asarray(values)
    deviation = float(x.std(ddof=1)) if len(x) > 1 else 0.0
    return {"min": float(x.min()), "max": float(x.max()), "mean": float(x.mean()), "deviation": deviation}


def claims(
    outcomes: Sequence[Mapping[str, Any]], targets: Sequence[str], pairs: Sequence[tuple[str, str]] = CLAIMS
) -> list[dict[str, Any]]:
    """The paper's comparisons on *report*, paired by seed; verdicts hold for all of them together (Holm, 5 %).
    Comparisons of which fewer than two seeds are done are left out."""
    rows = []
    for target in targets:
        for ours, baseline in pairs:
            first, second = (scores(outcomes, name, target, "report") for name in (ours, baseline))
            if len(both := sorted({*first} & {*second})) > 1:
                pair = paired_comparison([first[seed] for seed in both], [second[seed] for seed in both])
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
