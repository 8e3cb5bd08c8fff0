"""Run directories as `select` and `compare` leave them, made in milliseconds, with hostile names and texts in them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sidequest.learning.fit import single_run_work
from sidequest.methods import get_method
from sidequest.recipe import Cost, Phase, Recipe, Subset
from sidequest.records.comparisons import Comparison, Difference, Outcome, Row
from sidequest.records.runs import (
    Evaluation,
    RunRecord,
    ScoresRecord,
    SelectionRecord,
    Spent,
    TaskWork,
    WorkRecord,
)
from sidequest.runs.driver import run_method
from sidequest.runs.recording import record_run
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings, parse
from sidequest.simulation.learner import SimulatedLearner, helpful
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

HOSTILE = "<script>alert(1)</script>"
ENDING = "</script><img src=x onerror=alert(2)>"
TASKS = ("reviews", HOSTILE, "plain")
SEEDS = 3


def text_task(name: str, rows: int = 30) -> Task:
    texts = [f'{HOSTILE} & "row" {number} of <b>{name}</b> {ENDING} {"long " * 20}' for number in range(rows)]
    texts[-1] = texts[0]  # something for `check` to warn of
    splits = {}
    for index, split in enumerate(("train", "select", "report")):
        columns = {"text": pa.array([f"{split} {text}" for text in texts])}
        splits[split] = Examples(columns, np.arange(rows, dtype=np.int64) % 2, np.arange(rows) + 100 * index)
    return Task(name, Objective.CLASSIFICATION, Form.TEXT, splits, ("good", HOSTILE), notes=(f"a note {HOSTILE}",))


def hostile_suite() -> Suite:
    primary, *others = (text_task(name) for name in TASKS)
    return Suite.of(primary, others, name=HOSTILE)


def provenance(seed: int = 0) -> dict[str, Any]:
    suite = hostile_suite()
    return {
        "suite": HOSTILE,
        "seed": seed,
        "goal": "primary",
        "method_settings": {"note": ENDING},
        "model": {"kind": HOSTILE},
        "train": TrainSettings().model_dump(mode="json"),
        "data": {name: dict(task.fingerprints) for name, task in suite.tasks.items()},
        "rows": {name: {split: len(rows) for split, rows in task.splits.items()} for name, task in suite.tasks.items()},
    }


def evidences() -> dict[str, dict[str, Any]]:
    """By method, evidence of every shape that there are figures for, about hostile tasks."""
    rng = np.random.default_rng(0)
    names = list(TASKS)
    curve = {"step": [10, 20, 30], "policy": {name: [0.3, 0.4, 0.2] for name in names}}
    return {
        "heu-size": {"ranking": names[1:], "criterion": {}, "select_scores": [0.5, 0.7, 0.6]},
        "exp3s": {"policy_over_time": curve, "mean_policy": dict.fromkeys(names, 1 / 3)},
        "counterfactual": {
            "candidates": [{"iteration": 1, "entropy_weight": w, "score": w / 2} for w in (0.1, 0.5)],
            "entropy_weight": 0.5,
            "policy": dict.fromkeys(names, 1 / 3),
        },
        "alphavil": {
            "tasks": names,
            "best_epoch": 1,
            "epochs": [{"alphas": [1.0, 0.5, 0.2], "weights": [1.0, 0.6, 0.3], "score": 0.5}] * 2,
        },
        "similarity": {
            "pool": dict.fromkeys(names[1:], 30),
            "taken": dict.fromkeys(names[1:], 15),
            "trials": [{"rows": rows, "select": 0.5 + rows / 100} for rows in (0, 10, 20)],
            "ranked": {
                name: {"histogram": [10, 20], "rows": 30, "best": [[2, 0.9]], "worst": [[3, 0.1]]} for name in names[1:]
            },
            "bins": [0.0, 0.5, 1.0],
            "threshold": 0.5,
            "features": {name: rng.random((6, 3)).tolist() for name in names},
        },
        "gradts-fg": {
            "heads": {name: rng.random((2, 4)).tolist() for name in names},
            "tau": dict.fromkeys(names[1:], 0.5),
            "tau_between": {"names": names, "values": np.eye(3).tolist()},
            "ranking": names[1:],
            "trials": [{"tasks": names[1 : 1 + size], "select": 0.5 + size / 10} for size in range(3)],
            "instances": {name: {"rows": 30, "share": 0.5, "histogram": [10, 20]} for name in names[1:]},
            "bins": [-1.0, 0.0, 1.0],
            "threshold": 0.1,
        },
    }


def autosem_evidence() -> dict[str, Any]:
    """From a real run on a simulated learner: the process must be one that was fitted."""
    cls, train = get_method("autosem"), TrainSettings(epochs=2, patience=None)
    learner = SimulatedLearner(helpful(2, 2), seed=0)
    settings = {"rounds": 12, "batches": 2, "trials": 6, "initial": 4, "top": 2}
    recipe = run_method(
        cls(parse(cls.Settings, settings, "autosem"), seed=0),
        learner,
        learner.pool(train),
        LocalTrials(learner, train),
        single_run_work=single_run_work(320, 100, train),
    )
    return recipe.evidence


def make_recipe(method: str, evidence: dict[str, Any], seed: int = 0) -> Recipe:
    half = {name: Subset(ids=tuple(range(0, 30, 2))) for name in TASKS[1:]} if method == "gradts-fg" else {}
    shares = {TASKS[0]: 1} if method == "single" else dict.fromkeys(TASKS, 1)
    return Recipe(
        method=method,
        primary=TASKS[0],
        phases=(Phase(shares=shares, subsets=half, weights={TASKS[0]: 0.5} if method == "alphavil" else {}),),
        evidence=evidence,
        cost=Cost(x=2.0, trials=2),
        provenance=provenance(seed),
        verdict=f"train with {HOSTILE}",
    )


def make_run(directory: Path, method: str = "gradts-fg", evidence: dict[str, Any] | None = None) -> Path:
    """What `select` and `train` leave."""
    make_recipe(method, evidence if evidence is not None else evidences()[method]).write(directory / "recipe.json")
    RunRecord(method=method, facts={}, identity="", suite_path=f"{HOSTILE}.yaml", versions={"numpy": "2"}).write(
        directory
    )
    work = TaskWork(batches=4, examples=90, tokens=90, seconds=0.5)
    SelectionRecord(meter=WorkRecord(tasks={TASKS[0]: work})).write(directory)
    ScoresRecord(
        report={"accuracy": 0.7},
        select={"accuracy": 0.6},
        history=history(),
        training=Spent(x=1.0, batches=8, examples=180, seconds=1.0),
        majority=0.5,
    ).write(directory)
    record_run(directory, hostile_suite(), "select", f"sidequest select '{HOSTILE}.yaml' -m {method}")
    return directory


def history() -> tuple[Evaluation, ...]:
    return (Evaluation(phase=0, batches=4, score=0.4), Evaluation(phase=0, batches=8, score=0.6))


def make_comparison(directory: Path, seeds: int = SEEDS) -> Path:
    """What `compare` leaves; the second method helps."""
    by_method = {"single": {}, **evidences(), "autosem": autosem_evidence()}
    rows, outcomes = [], []
    spread = 0.02 if seeds > 1 else math.nan
    for index, (method, evidence) in enumerate(by_method.items()):
        mean = 0.6 + 0.1 * (method == "heu-size") - 0.01 * index
        for seed in range(seeds):
            place = directory / method / f"seed-{seed}"
            make_recipe(method, evidence, seed).write(place / "recipe.json")
            outcome = Outcome(
                method=method,
                seed=seed,
                score=mean,
                report={"accuracy": mean},
                select={"accuracy": mean},
                tasks={},
                auxiliaries=[],
                history=history(),
                directory=f"{method}/seed-{seed}",
            )
            outcome.write(place)
            outcomes.append(outcome)
        verdict = "baseline" if method == "single" else "helps" if method == "heu-size" else "hurts"
        difference = Difference(
            to="single", mean=mean - 0.6, low=mean - 0.6 - spread, high=mean - 0.6 + spread, p_value=0.01, n=seeds
        )
        rows.append(
            Row(
                method=method,
                role="baseline" if method == "single" else "method",
                seeds=list(range(seeds)),
                scores=[mean] * seeds,
                mean=mean,
                low=mean - spread,
                high=mean + spread,
                against=() if method == "single" else (difference,),
                verdict=verdict if seeds > 2 or method == "single" else "no verdict",
                x=1.0 + 7 * index,
                seconds=1.5,
                chosen={TASKS[1]: 1.0 if index else 0.0, TASKS[2]: 0.5},
            )
        )
    Comparison(
        suite=HOSTILE,
        primary=TASKS[0],
        metric="accuracy",
        seeds=list(range(seeds)),
        majority=0.5,
        rows=tuple(rows),
        outcomes=tuple(outcomes),
    ).write(directory)
    record_run(directory, hostile_suite(), "compare", f"sidequest compare '{HOSTILE}.yaml' -m heu-size")
    return directory
