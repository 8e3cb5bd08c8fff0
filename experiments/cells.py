"""What experiments over the library's own methods share: one cell of a comparison as a small result, and claims over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.claims import judged
from experiments.jobs import Result
from sidequest.numerics.statistics import paired_comparison
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Outcome
from sidequest.report.tables import markdown_table
from sidequest.runs.cells import Job, run_job
from sidequest.runs.finals import train_once
from sidequest.runs.oracle import stayed
from sidequest.runs.setup import Setup


def method_result(setup: Setup, method: str, settings: Mapping[str, Any], seed: int, directory: Path) -> Result:
    """A method or control on one seed. What was started in the directory goes on there."""
    _one_thread()
    outcome = run_job(setup, Job(method, dict(settings), seed, directory))
    path = directory / "recipe.json"  # controls may have none
    return outcome_result(outcome, Recipe.read(path) if path.exists() else None)


def outcome_result(outcome: Outcome, recipe: Recipe | None) -> Result:
    """The small part of an outcome. `report`, `select`: the primary's own metric; `metrics`: all of them on *report*."""
    result: Result = {
        "report": outcome.score,
        "select": outcome.select_score,
        "metrics": dict(outcome.report),
        **({"tasks": outcome.tasks} if outcome.tasks else {}),
        "auxiliaries": outcome.auxiliaries,
        "x": {"choose": round(outcome.selection.x, 3), "train": round(outcome.training.x, 3)},
        "batches": outcome.training.batches or outcome.selection.batches,
    }
    if recipe is not None:
        result |= {"shares": [dict(phase.shares) for phase in recipe.phases], "verdict": recipe.verdict}
    return result


def recipe_result(setup: Setup, recipe: Recipe, seed: int) -> Result:
    """A given recipe, trained and scored. `untrained`: whether the model as it was before any training is what was kept."""
    _one_thread()
    record = train_once(setup, recipe, seed).record
    return {
        "report": record.score,
        "select": record.select_score,
        "metrics": dict(record.report),
        "auxiliaries": sorted(recipe.auxiliaries),
        "x": {"choose": 0.0, "train": round(record.training.x, 3)},
        "batches": record.training.batches,
        "untrained": stayed(setup, record),
    }


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def by_seed(by_job: Mapping[str, Result], task: str, method: str, metric: str | None = None) -> dict[int, float]:
    """Scores on *report* in the order of seeds; metric: another one than the primary's own."""
    scores = {
        kept["seed"]: kept["report"] if metric is None else kept["metrics"][metric]
        for kept in by_job.values()
        if kept["task"] == task and kept["method"] == method
    }
    return dict(sorted(scores.items()))


def claims(
    by_job: Mapping[str, Result], pairs: Iterable[tuple[str, str, str]], metric: str | None = None
) -> list[dict[str, Any]]:
    """(task, ours, baseline), paired over the seeds that both have, Holm over all of them; without two seeds it is left out."""
    rows = []
    for task, ours, baseline in pairs:
        first, second = (by_seed(by_job, task, name, metric) for name in (ours, baseline))
        if len(both := sorted({*first} & {*second})) > 1:
            pair = paired_comparison([first[seed] for seed in both], [second[seed] for seed in both])
            rows.append({"task": task, "ours": ours, "baseline": baseline, **vars(pair)})
    return judged(rows)


def claims_table(rows: Sequence[Mapping[str, Any]]) -> str:
    table = [
        [
            row["task"],
            f"{row['ours']} − {row['baseline']}",
            str(row["n"]),
            f"{100 * row['mean']:+.2f}",
            f"{100 * row['low']:+.2f} to {100 * row['high']:+.2f}",
            f"{row['adjusted_p']:.3f}",
            row["verdict"],
        ]
        for row in rows
    ]
    return markdown_table(["", "report, points", "seeds", "mean", "95 % interval", "p (Holm)", ""], table)


def mean_and_deviation(values: Iterable[float], digits: int = 1) -> str:
    """In per cent; empty where there is nothing."""
    x = 100 * np.array(list(values))
    if not len(x):
        return ""
    deviation = f" ± {x.std(ddof=1):.{digits}f}" if len(x) > 1 else ""
    return f"{x.mean():.{digits}f}{deviation}"


def score_table(task: str, by_job: Mapping[str, Result], titles: Mapping[str, str]) -> str:
    """A row per method, named by its title: scores in per cent, and the mean cost."""
    rows = []
    for method, title in titles.items():
        of_method = [kept for kept in by_job.values() if kept["task"] == task and kept["method"] == method]
        if not of_method:
            continue
        metrics = list(of_method[0]["metrics"])
        reports = " / ".join(mean_and_deviation(by_seed(by_job, task, method, metric).values()) for metric in metrics)
        select = mean_and_deviation(kept["select"] for kept in of_method)
        x = [np.mean([kept["x"][part] for kept in of_method]) for part in ("choose", "train")]
        seconds = np.mean([kept["seconds"] for kept in of_method])
        rows.append([title, str(len(of_method)), select, reports, f"{x[0]:.1f}", f"{x[1]:.1f}", f"{seconds:.0f}"])
    return markdown_table(["", "seeds", "select", "report", "x to choose", "x to train", "seconds"], rows)
