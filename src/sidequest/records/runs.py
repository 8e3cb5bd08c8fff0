"""What a run directory holds besides its recipe and its model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from sidequest.recipe import Cost
from sidequest.records.base import Known, Part, Record


class RunRecord(Record):
    """Whose directory it is. facts: all that decides what the run gives. suite_path: an embedded suite's name, or where the
    suite's file is."""

    FILE: ClassVar[str] = "run.json"
    MADE_BY: ClassVar[str] = "sidequest select"

    method: str
    facts: dict[str, Any]
    identity: str
    suite_path: str
    versions: dict[str, str]


class TaskWork(Part):
    """One task's part of what was done."""

    batches: int = 0
    examples: int = 0
    tokens: int = 0
    evaluations: int = 0
    evaluated_examples: int = 0
    seconds: float = 0.0


class WorkRecord(Part):
    """A meter's counts, as plain data."""

    tasks: dict[str, TaskWork] = Field(default_factory=dict)
    trials: int = 0
    trials_reused: int = 0


class Spent(Part):
    """What a piece of work cost, in all units. x: in single-task training runs of the primary; unknown (NaN) in old files."""

    x: Known = 0.0
    batches: int = 0
    examples: int = 0
    tokens: int = 0
    evaluations: int = 0
    evaluated_examples: int = 0
    trials: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, cost: Cost, seconds: float = 0.0) -> Spent:
        return cls(**cost.model_dump(), seconds=seconds)

    @classmethod
    def of_work(cls, work: WorkRecord, x: float) -> Spent:
        total = {name: sum(getattr(task, name) for task in work.tasks.values()) for name in TaskWork.model_fields}
        return cls(x=x, trials=work.trials, **total)


class SelectionRecord(Record):
    """What choosing cost on this machine. meter: with what was reused, which depends on what ran before. heads: which tasks' head
    importances were found and which were computed."""

    FILE: ClassVar[str] = "selection.json"
    MADE_BY: ClassVar[str] = "sidequest select"

    meter: WorkRecord
    heads: dict[str, list[str]] = Field(default_factory=dict)


class Evaluation(Part):
    """An evaluation on *select* in the middle of training, after this many batches of the phase."""

    phase: int
    batches: int
    score: Known


class ScoresRecord(Record):
    """The exported model: every metric of the primary on *select* and *report*, and of all tasks where the goal is their average.

    training: what the final training cost. majority: what the best constant answer scores. interval: of the primary's metric on
    *report*, at 95 % for other rows of the same kind; None where it is unknown.
    """

    FILE: ClassVar[str] = "scores.json"
    MADE_BY: ClassVar[str] = "sidequest train"

    seed: int = 0
    select: dict[str, Known]
    report: dict[str, Known]
    tasks: dict[str, dict[str, Known]] = Field(default_factory=dict)
    history: tuple[Evaluation, ...] = ()
    training: Spent | None = None
    majority: float | None = None
    interval: tuple[float, float] | None = None

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        kept = {key: data[key] for key in ("select", "report", "tasks", "history", "majority") if key in data}
        if "meter" in data:
            x = data.get("training_x", math.nan)  # `train` left it out, `compare` did not
            kept["training"] = Spent.of_work(WorkRecord.model_validate(data["meter"]), x)
        return kept


class Lenient(Part):
    """Facts that another room writes and may add to: what the page does not know it leaves alone."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())


class FoundProblem(Lenient):
    message: str
    task: str = ""
    split: str | None = ""


class Words(Lenient):
    """How many words the texts of a split have."""

    median: float | None = None
    max: float | None = None


class TargetFacts(Lenient):
    """The numbers that a regression learns."""

    min: float | None = None
    max: float | None = None
    mean: float | None = None


class SplitFacts(Lenient):
    """labels: the share of each."""

    rows: int | None = None
    labels: dict[str, float] = Field(default_factory=dict)
    words: Words | None = None
    target: TargetFacts | None = None


class RecordedTask(Lenient):
    objective: str = ""
    notes: list[str] = Field(default_factory=list)
    splits: dict[str, SplitFacts] = Field(default_factory=dict)


class DataFacts(Lenient):
    """What `sidequest check --json` gives."""

    problems: list[FoundProblem] = Field(default_factory=list)
    tasks: dict[str, RecordedTask] = Field(default_factory=dict)


class FactsRecord(Record):
    """commands: by name, as they were given. data: None where nothing was recorded."""

    FILE: ClassVar[str] = "record.json"
    MADE_BY: ClassVar[str] = "sidequest select, train or compare"

    commands: dict[str, str] = Field(default_factory=dict)
    machine: dict[str, str | int | None] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    data: DataFacts | None = None


class ExampleRow(Part):
    """texts: by column; an image is a `data:` URI. score: of the ranking. taken: by the recipe."""

    id: int
    texts: dict[str, str]
    target: str
    score: float | None = None
    taken: bool = True


class ExampleGroup(Part):
    title: str
    rows: list[ExampleRow]


class ExampleTask(Part):
    """rows: of the train split. taken: how many of them the recipe trains on."""

    name: str
    primary: bool
    rows: int
    taken: int
    groups: list[ExampleGroup]


class ExamplesRecord(Record):
    FILE: ClassVar[str] = "examples.json"
    MADE_BY: ClassVar[str] = "sidequest select, train or compare"

    tasks: list[ExampleTask] = Field(default_factory=list)

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        return data if isinstance(data, Mapping) else {"tasks": data}
