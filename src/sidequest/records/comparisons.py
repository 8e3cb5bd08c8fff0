"""What a comparison leaves: a record for each method and seed, the table, and the large table over several primaries."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from sidequest.files import write_json
from sidequest.records.base import Known, Part, Record
from sidequest.records.runs import Evaluation, Spent

# What a row is: the baseline that differences are taken to, another control that a method has to beat, or a method.
Role = Literal["baseline", "control", "method"]
Verdict = Literal["helps", "hurts", "not shown", "no verdict", "baseline", "control"]

_OLD_VERDICTS = {"no clear difference": "not shown"}


class Outcome(Record):
    """One method on one seed.

    score: on *report*, what methods are compared by; select_score: the same on *select*, of the model that was kept.
    report, select: every metric of the primary. tasks: of every task on *report* where the goal is their average.
    selection, training: what each cost. seconds: of both, by the clock. stopped: whether the selection reached its budget.
    peak_memory: of the process, in bytes. directory: of the run, relative to the comparison's.
    """

    FILE: ClassVar[str] = "outcome.json"
    MADE_BY: ClassVar[str] = "sidequest compare"

    method: str
    seed: int
    score: Known
    select_score: Known = math.nan
    report: dict[str, Known]
    select: dict[str, Known]
    tasks: dict[str, dict[str, Known]]
    auxiliaries: list[str]
    selection: Spent = Spent()
    training: Spent = Spent()
    seconds: float = 0.0
    stopped: bool = False
    peak_memory: int | None = None
    history: tuple[Evaluation, ...] = ()
    directory: str = ""

    @property
    def x(self) -> float:
        return self.selection.x + self.training.x

    @property
    def examples(self) -> int:
        return self.selection.examples + self.training.examples

    @property
    def tokens(self) -> int:
        return self.selection.tokens + self.training.tokens

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        new = {key: value for key, value in data.items() if key in cls.model_fields}
        new["selection"] = {"x": data["selection_x"]}
        new["training"] = {key: data.get(key, 0) for key in ("examples", "tokens")} | {"x": data["training_x"]}
        new["directory"] = f"{data['method']}/seed-{data['seed']}"
        return new | {"version": cls.VERSION}


class MissingCell(Part):
    """A method on a seed that failed by itself. error: why, in one line."""

    method: str
    seed: int
    error: str


class Difference(Part):
    """A method's paired difference to a control, over the seeds that both have.

    low, high: the t interval at 95 % over seeds, on these *report* rows; p_seeds: of the two-sided paired t test. rows_low,
    rows_high: the interval for other seeds and other rows; p_value: of the test that goes with it, which verdicts rest on; where
    predictions are not at hand, p_seeds. effect_size: Hedges' g.
    """

    to: str
    mean: Known
    low: Known = math.nan
    high: Known = math.nan
    rows_low: Known = math.nan
    rows_high: Known = math.nan
    p_value: Known = math.nan
    p_seeds: Known = math.nan
    effect_size: Known = math.nan
    n: int = 0

    @property
    def has_rows(self) -> bool:
        return math.isfinite(self.rows_low)

    @property
    def interval(self) -> tuple[float, float]:
        """The one that verdicts rest on: over seeds and rows, or over seeds where predictions are not at hand."""
        return (self.rows_low, self.rows_high) if self.has_rows else (self.low, self.high)


class Row(Part):
    """A method over its seeds. against: its differences to the baseline first, then to the other controls.

    low, high: the t interval of the mean. p_value: of the verdict's claim about this method alone; p_corrected: after Holm's
    correction for all the methods compared, which the verdict rests on. probability_best: how often its mean is the highest when
    the seeds are drawn again. chosen: the share of seeds in which each candidate was. Costs are means over seeds.
    """

    method: str
    role: Role = "method"
    seeds: list[int]
    scores: list[float]
    mean: Known
    low: Known
    high: Known
    against: tuple[Difference, ...] = ()
    verdict: Verdict
    p_value: Known = math.nan
    p_corrected: Known = math.nan
    probability_best: Known = math.nan
    x: Known
    selection_x: Known = 0.0
    seconds: float = 0.0
    examples: float = 0.0
    tokens: float = 0.0
    peak_memory_mb: float | None = None
    stopped: float = 0.0
    chosen: dict[str, float] = Field(default_factory=dict)

    @property
    def to_baseline(self) -> Difference | None:
        """None for the baseline itself, and where no seed has both."""
        return self.against[0] if self.against else None

    @property
    def difference(self) -> float:
        return self.against[0].mean if self.against else math.nan

    def to(self, control: str) -> Difference | None:
        return next((difference for difference in self.against if difference.to == control), None)


class Conduct(Record):
    """What depends on the machine, the day and the number of workers: seconds, memory and the command as it was typed.

    rows, outcomes: in the order of the comparison's.
    """

    FILE: ClassVar[str] = "conduct.json"
    MADE_BY: ClassVar[str] = "sidequest compare"
    OF_ROW: ClassVar[tuple[str, ...]] = ("seconds", "peak_memory_mb")
    OF_OUTCOME: ClassVar[tuple[str, ...]] = ("seconds", "peak_memory")
    OF_WORK: ClassVar[tuple[str, ...]] = ("selection", "training")  # whose seconds they are

    command: str = ""
    rows: tuple[dict[str, Any], ...] = ()
    outcomes: tuple[dict[str, Any], ...] = ()

    @classmethod
    def taken_from(cls, whole: dict[str, Any]) -> Conduct:
        """Takes it out of a comparison's plain data."""
        rows = [{name: row.pop(name) for name in cls.OF_ROW} for row in whole["rows"]]
        outcomes = []
        for outcome in whole["outcomes"]:
            taken = {name: outcome.pop(name) for name in cls.OF_OUTCOME}
            outcomes.append(taken | {name: outcome[name].pop("seconds", 0.0) for name in cls.OF_WORK})
        return cls(command=whole.pop("command"), rows=tuple(rows), outcomes=tuple(outcomes))

    def given_to(self, comparison: Comparison) -> Comparison:
        """A comparison that has it again; one that it does not belong to stays as it is."""
        if (len(self.rows), len(self.outcomes)) != (len(comparison.rows), len(comparison.outcomes)):
            return comparison
        rows = [row.model_copy(update=more) for row, more in zip(comparison.rows, self.rows, strict=True)]
        outcomes = []
        for outcome, more in zip(comparison.outcomes, self.outcomes, strict=True):
            work = {n: getattr(outcome, n).model_copy(update={"seconds": more[n]}) for n in self.OF_WORK}
            outcomes.append(outcome.model_copy(update={**{n: more[n] for n in self.OF_OUTCOME}, **work}))
        return comparison.model_copy(update={"command": self.command, "rows": tuple(rows), "outcomes": tuple(outcomes)})


class Comparison(Record):
    """The table of a comparison. `verdict` and the words around it are in `sidequest.records.verdicts`.

    metric: of the scores, on *report*. baseline: what differences are taken to. controls: what a method has to beat besides, of
    those that this model has, also where their cells failed. majority: what the best constant answer scores. missing: what failed
    by itself; command: what repeats it. budget: the most that a selection could cost, in x. still_improving: whether the primary
    alone was still getting better on *select* when its training ended. tuning: what tuning the primary chose and cost, in a
    sentence. random_sizes: of the random subset on each seed, decided by the choices of `sized_by` when it was first drawn.
    long_as: the method whose length `single-long` has, long_batches: that length on each seed. changes: what methods that were
    added changed of what was there before, in sentences.
    """

    FILE: ClassVar[str] = "comparison.json"
    MADE_BY: ClassVar[str] = "sidequest compare"

    suite: str
    primary: str
    goal: str = "primary"
    metric: str
    report_rows: int | None = None
    seeds: list[int]
    baseline: str = "single"
    controls: list[str] = Field(default_factory=list)
    majority: float | None = None
    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...] = ()
    missing: tuple[MissingCell, ...] = ()
    command: str = ""
    budget: float | None = None
    still_improving: bool = False
    tuning: str = ""
    random_sizes: dict[int, int] = Field(default_factory=dict)
    sized_by: list[str] = Field(default_factory=list)
    long_as: str = ""
    long_batches: dict[int, int | None] = Field(default_factory=dict)
    changes: list[str] = Field(default_factory=list)

    def row(self, method: str) -> Row | None:
        return next((row for row in self.rows if row.method == method), None)

    @property
    def verdict(self) -> str:
        """The answer in words."""
        from sidequest.records.verdicts import headline

        return headline(self)

    @model_serializer(mode="wrap")
    def _with_verdict(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**plain(self), "verdict": self.verdict}

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        rows = [_upgraded_row(row, data["seeds"]) for row in data["rows"]]
        outcomes = [Outcome.upgraded(outcome, 0) for outcome in data.get("outcomes", [])]
        kept = {key: data[key] for key in ("suite", "primary", "metric", "seeds", "majority", "budget") if key in data}
        return {**kept, "rows": rows, "outcomes": outcomes}

    def write(self, path: Path) -> None:
        """Two files: `comparison.json` holds what the settings and the data decide, so that the same comparison is the same bytes
        wherever and however often it is made; `conduct.json` what depends on the machine."""
        if path.suffix == ".json" and not path.is_dir() and path.name != self.FILE:
            return super().write(path)  # a copy by another name holds all of it
        directory = path.parent if path.name == self.FILE else path
        whole = self.to_json()
        Conduct.taken_from(whole).write(directory)
        return write_json(directory / self.FILE, whole)

    @classmethod
    def read(cls, path: Path) -> Comparison:
        read = super().read(path)
        conduct = Conduct.read_if_there((path if path.is_dir() else path.parent) / Conduct.FILE)
        return read if conduct is None else conduct.given_to(read)

    @classmethod
    def of(cls, data: Any, where: Any = "") -> Comparison:
        if isinstance(data, dict):  # written for other readers, made afresh here
            data = {key: value for key, value in data.items() if key != "verdict"}
        return super().of(data, where)


def _upgraded_row(row: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
    """A row of 0.1: only `single` was a control, and the p-value was the corrected one."""
    verdict = _OLD_VERDICTS.get(row["verdict"], row["verdict"])
    new = {key: value for key, value in row.items() if key in Row.model_fields and key != "p_value"}
    new |= {"seeds": seeds, "verdict": verdict, "role": "baseline" if verdict == "baseline" else "method"}
    new["p_corrected"] = row.get("p_value", math.nan)
    if verdict != "baseline":
        new["against"] = [
            {
                "to": "single",
                "mean": row["difference"],
                "low": row["difference_low"],
                "high": row["difference_high"],
                "n": len(seeds),
                "effect_size": row.get("effect_size"),
            }
        ]
    return new


class TableCell(Part):
    """A method on one primary."""

    mean: Known
    half_interval: Known
    difference: Known
    verdict: Verdict
    x: Known


class TableRow(Part):
    """average: the mean over the primaries that the method has."""

    cells: dict[str, TableCell]
    average: Known


class PrimariesTable(Record):
    """A row per method and a column per primary. verdicts: of each primary's own comparison."""

    FILE: ClassVar[str] = "table.json"
    MADE_BY: ClassVar[str] = "sidequest compare --primary"

    metrics: dict[str, str]
    verdicts: dict[str, str]
    methods: dict[str, TableRow]

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        methods = {}
        for method, cells in data["methods"].items():
            own = {
                name: {**cells[name], "verdict": _OLD_VERDICTS.get(cells[name]["verdict"], cells[name]["verdict"])}
                for name in data["metrics"]
            }
            methods[method] = {"cells": own, "average": cells["average"]["mean"]}
        return {"metrics": data["metrics"], "verdicts": data["verdicts"], "methods": methods}
