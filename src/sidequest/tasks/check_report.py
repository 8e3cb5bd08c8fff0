"""What a check found: problems, and facts about each task for display."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sidequest.errors import printable
from sidequest.tasks.examples import Examples
from sidequest.tasks.majority import majority_score
from sidequest.tasks.problems import Problem
from sidequest.tasks.task import Form, Objective, Task


@dataclass(frozen=True, repr=False)
class CheckReport:
    """Problems, and facts for display: for each task its objective, metric, notes and, per split, rows, labels and lengths.

    Labels have their shares of the rows (tagging: of the words); those of a multi-label task need not add up to one. Splits that
    score have what a constant answer would score, see `majority`.
    """

    problems: tuple[Problem, ...]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "warning")

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": not self.errors,
            "problems": [problem.to_json() for problem in self.problems],
            "tasks": self.facts,
        }

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The report as plain text, errors first."""
        out = []
        for problem in (*self.errors, *self.warnings):
            out += [f"{problem.level}: {problem}", *(f"    {place}" for place in problem.places)]
        for name, task in self.facts.items():
            out.append(f"{name}: {task['objective']}, {task['form']}, {', '.join(task['metrics'])}")
            for split, facts in task["splits"].items():
                labels = ", ".join(f"{label} {share:.0%}" for label, share in list(facts["labels"].items())[:8])
                more = ", …" if len(facts["labels"]) > 8 else ""
                words = "{min} to {max} words, half up to {median}".format(**facts["words"]) if facts["words"] else ""
                score = facts["constant"]
                constant = "" if score is None else f"the best constant answer has {task['metrics'][0]} {score:.3f}"
                target = "targets from {min:.4g} to {max:.4g}, {mean:.4g} on average" if facts["target"] else ""
                parts = filter(
                    None, (f"{facts['rows']} rows", labels + more, target.format(**facts["target"]), words, constant)
                )
                out.append(f"  {split}: " + "; ".join(parts))
            out += [f"  note: {note}" for note in task["notes"]]
        return [printable(line) for line in out]

    def print(self) -> None:
        print("\n".join(self.lines()))


def task_facts(task: Task) -> dict[str, Any]:
    """Of a report: what a task is, and its splits."""
    return {
        "objective": str(task.objective),
        "form": str(task.form),
        "kind": task.kind,
        "metrics": list(task.metrics),
        "labels": list(task.labels),
        "notes": list(task.notes),
        "splits": {split: _split_facts(task, split) for split in task.splits},
    }


def _split_facts(task: Task, split: str) -> dict[str, Any]:
    rows, source = task.splits[split], task.sources.get(split, "")
    facts: dict[str, Any] = {"rows": len(rows), "source": source, "labels": {}, "words": {}, "target": {}}
    facts["constant"] = None if split == "train" else majority_score(task, split)
    if task.objective is Objective.REGRESSION:
        target = np.asarray(rows.target, dtype=np.float64)
        facts["target"] = {"min": float(target.min()), "mean": float(target.mean()), "max": float(target.max())}
    else:
        counts = label_counts(task, rows)
        total = len(rows) if task.objective is Objective.MULTILABEL else counts.sum()
        facts["labels"] = {label: float(count / total) for label, count in zip(task.labels, counts, strict=True)}
    if task.form is not Form.IMAGE:
        low, median, high, top = (int(q) for q in np.quantile(rows.word_counts(), (0, 0.5, 0.95, 1)))
        facts["words"] = {"min": low, "median": median, "p95": high, "max": top}
    return facts


def label_counts(task: Task, rows: Examples) -> np.ndarray:
    target = rows.target
    assert target is not None, "a split has targets"
    if task.objective is Objective.MULTILABEL:
        return np.asarray(target).sum(axis=0, dtype=np.int64)
    flat = target if isinstance(target, np.ndarray) else target.flatten()
    return np.bincount(np.asarray(flat, dtype=np.int64), minlength=len(task.labels))
