"""The suite file: what a user may write, field by field (`docs/data.md` explains it with examples)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from sidequest.errors import SettingsError
from sidequest.model_settings import check_section
from sidequest.settings import Settings, TrainSettings, parse
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import ReadSettings
from sidequest.tasks.readers.dispatch import SUFFIXES
from sidequest.tasks.suite import Goal
from sidequest.tasks.task import LABELLED, SPLITS, Objective

PositiveWeight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
LONGEST_NAME = 100
ColumnName = str | int  # a name, or a 0-based position (negative: from the end)


class SplitSpec(ReadSettings):
    """Where the rows of one split are: a `file`, or `image` and `label` idx files; and what is special about reading them."""

    file: str | None = None
    image: str | None = None
    label: str | None = None


class TaskSpec(ReadSettings):
    """One task of a suite file. Reading settings (`format`, `encoding`, `quoting`, …) hold for all its splits.

    catalog: a known benchmark; `path` is its directory in the official layout, without it the hub is asked.
    hub, config, revision: a dataset on the Hugging Face hub; saved: a directory written by `save_to_disk`. With either,
        `train`, `select` and `report` are names of splits.
    text, text_b: columns; a text with braces is a template: "{title}. {body}".
    choices: the columns of the alternatives, or one column of lists. tokens, tags: columns of lists, of texts with spaces,
        or (CoNLL, CoNLL-U) word columns.
    labels: the labels in order, or a mapping from what the file says to what it means, in order. For a multi-label task without
        `label`: the 0/1 columns, one per label, or a mapping from such columns to the labels' names.
    label_separator: multi-label: what stands between the labels of a row where `label` is a column of texts.
    allow_empty: multi-label: whether a row's list may be empty; it then has no label. Rows of zeros in 0/1 columns always may.
    class_weights: `balanced`, or weights by label (others count 1), see `class_weights`.
    tag_scheme: `iob` turns IOB1 into IOB2, `plain` leaves tags alone; `auto`: `iob` if all tags look like B-X, I-X or O.
    limit: at most this many labelled rows for train and a carved select together, a stratified sample; see `splits`.
    unlabelled: what to do with rows whose label is missing; no_label: texts that stand for a missing label, such as SNLI's `-`.
    decimal: regression: the mark before the decimals of a number that is written as text.
    shuffle_labels: permute the targets of train and select, a deliberately harmful control.
    """

    catalog: str | None = None
    path: str | None = None
    hub: str | None = None
    config: str | None = None
    revision: str | None = None
    saved: str | None = None

    objective: Objective | None = None
    train: SplitSpec | None = None
    select: SplitSpec | None = None
    report: SplitSpec | None = None

    text: ColumnName | None = None
    text_b: ColumnName | None = None
    choices: ColumnName | tuple[ColumnName, ...] | None = None
    tokens: ColumnName | None = None
    tags: ColumnName | None = None
    label: ColumnName | None = None
    labels: tuple[str, ...] | dict[str, str] | None = None
    label_separator: str | None = Field(default=None, min_length=1)
    allow_empty: bool = False
    tag_scheme: Literal["auto", "iob", "plain"] = "auto"
    unlabelled: Literal["refuse", "drop"] = "refuse"
    no_label: tuple[str, ...] = ()
    decimal: Literal[".", ","] = "."

    class_weights: Literal["balanced"] | dict[str, PositiveWeight] | None = None
    metric: tuple[str, ...] | None = None
    kind: str = ""
    limit: int | None = Field(default=None, ge=4, lt=2**63)
    select_limit: int | None = Field(default=None, ge=1, lt=2**63)
    report_limit: int | None = Field(default=None, ge=1, lt=2**63)
    shuffle_labels: bool = False

    @field_validator("train", "select", "report", mode="before")
    @classmethod
    def _file_name(cls, value: Any) -> Any:
        return {"file": value} if isinstance(value, str) else value

    @field_validator("metric", mode="before")
    @classmethod
    def _one_metric(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("metric")
    @classmethod
    def _different_metrics(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (not value or len({*value}) < len(value)):
            raise ValueError("the name of a metric, or a list of different ones")
        return value

    @field_validator("no_label", mode="before")
    @classmethod
    def _no_label_texts(cls, value: Any) -> Any:
        return tuple(map(_label, value if isinstance(value, (list, tuple)) else (value,)))

    @field_validator("class_weights", mode="before")
    @classmethod
    def _weighted_labels(cls, value: Any) -> Any:
        return {_label(key): weight for key, weight in value.items()} if isinstance(value, Mapping) else value

    @field_validator("labels", mode="before")
    @classmethod
    def _label_texts(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {_label(key): _label(name) for key, name in value.items()}
        return tuple(map(_label, value)) if isinstance(value, (list, tuple)) else value

    @property
    def splits(self) -> dict[str, SplitSpec]:
        """The splits that the user named; a Hugging Face dataset's train split need not be."""
        named = {name: split for name in SPLITS if (split := getattr(self, name)) is not None}
        if (self.hub or self.saved) and self.catalog is None and "train" not in named:
            return {"train": SplitSpec(file="train")} | named
        return named

    @property
    def hub_name(self) -> tuple[str, str | None]:
        """Name and configuration; `org/name/config` is short for `hub: org/name` and `config: config`."""
        parts = str(self.hub).split("/")
        return ("/".join(parts[:2]), parts[2]) if len(parts) == 3 else (str(self.hub), self.config)

    def reading(self, split: SplitSpec) -> ReadSettings:
        """How to read one split: the task's settings, overridden by the split's own."""
        fields = set(ReadSettings.model_fields)
        chosen = self.model_dump(include=self.model_fields_set & fields)
        return ReadSettings(**(chosen | split.model_dump(include=split.model_fields_set & fields)))

    def faults(self) -> list[str]:
        """What is wrong with the fields taken together; empty if nothing is."""
        return [*self._source_faults(), *self._column_faults()]

    def _source_faults(self) -> list[str]:
        sources = [name for name in ("catalog", "hub", "saved") if getattr(self, name) is not None]
        faults = []
        if self.no_label and self.unlabelled == "refuse":
            faults.append("`no_label:` says which texts stand for a missing label; say `unlabelled: drop` with it")
        if not sources and self.train is None:
            faults.append("where are the rows? Say `train:` with a file, or `catalog:`, `hub:` or `saved:`")
        if self.hub is not None and len(sources) > 1:
            faults.append(f"rows come from one place, found {' and '.join(sources)}")
        if self.path is not None and self.catalog is None:
            faults.append("`path:` is the directory of a catalog entry; for files of your own say `train:`")
        if self.hub is None and self.catalog is None and (self.config or self.revision):
            faults.append("`config:` and `revision:` belong to `hub:`")
        for name, split in self.splits.items():
            if (split.file is None) == (split.image is None):
                faults.append(f"`{name}:` takes a file, or `{{image: FILE, label: FILE}}`")
            elif split.image is not None and split.label is None:
                faults.append(f"`{name}:` has an image file but no `label:` file")
        return faults

    def _column_faults(self) -> list[str]:
        if self.objective is None:
            allowed = ", ".join(Objective)
            return [] if self.catalog else [f"`objective:` is missing; one of {allowed}"]
        images = any(split.image is not None for split in self.splits.values()) or self.format == "idx"
        word_file = self.format in ("conll", "conllu") or (
            self.train is not None and str(self.train.file).removesuffix(".gz").endswith(WORD_SUFFIXES)
        )
        wanted: dict[str, bool] = {}  # column → whether it must be named
        if self.objective is Objective.TAGGING:
            wanted = {"tokens": not word_file, "tags": not word_file}
        elif self.objective is Objective.CHOICE:
            wanted = {"text": True, "choices": True, "label": True}
        elif not images:
            columns = (
                self.objective is Objective.MULTILABEL and self.labels is not None
            )  # `labels` may name 0/1 columns
            wanted = {"text": True, "text_b": False, "label": not columns}
        faults = [
            f"`{name}:` is missing; it names the column that a {self.objective} task needs"
            for name, needed in wanted.items()
            if needed and getattr(self, name) is None
        ]
        for name in ("text", "text_b", "choices", "tokens", "tags", "label"):
            if getattr(self, name) is not None and name not in wanted:
                what = "a task on images" if images else f"a {self.objective} task"
                faults.append(f"`{name}:` means nothing for {what}")
        if isinstance(self.choices, tuple) and len(self.choices) < 2:
            faults.append(f"`choices:` is one column of lists, or at least two columns; found {list(self.choices)}")
        if self.objective is Objective.REGRESSION and self.labels is not None:
            faults.append("`labels:` means nothing for a regression task: its target is a number")
        if self.objective is not Objective.REGRESSION and "decimal" in self.model_fields_set:
            faults.append(f"`decimal:` means nothing for a {self.objective} task: its target is no number")
        if self.objective not in LABELLED and self.class_weights is not None:
            faults.append(f"`class_weights:` means nothing for a {self.objective} task: it has no classes")
        return [*faults, *self._multilabel_faults()]

    def _multilabel_faults(self) -> list[str]:
        given = [name for name in ("label_separator", "allow_empty") if name in self.model_fields_set]
        if self.objective is not Objective.MULTILABEL:
            return [
                f"`{name}:` means nothing for a {self.objective} task; it is for multi-label ones" for name in given
            ]
        faults = []
        if self.label is None and self.labels is not None:
            faults += [f"`{name}:` means nothing for 0/1 columns, which `labels:` names" for name in given]
        if self.labels is not None and len(self.labels) < 2:
            faults.append("`labels:` needs at least two labels; for a single one say `objective: classification`")
        return faults


WORD_SUFFIXES = tuple(suffix for suffix, format in SUFFIXES.items() if format in ("conll", "conllu"))


class SuiteSpec(Settings):
    """A suite file. `seed` decides carved splits and samples; it is not the training seed: data is fixed per suite.

    drop_overlap: leave out train rows, the primary's own and those of other tasks, that are rows of the primary's select or
        report split; `others`: leave the primary's own overlap alone.
    model, train: defaults for `--model` and `--set`, passed on to the learner.
    """

    suite: str = Field(default="suite", min_length=1, max_length=100)
    primary: str
    goal: Goal = "primary"
    seed: int = Field(default=0, ge=0, lt=2**63)
    drop_overlap: bool | Literal["others"] = False
    tasks: dict[str, dict[str, Any]] = Field(min_length=1)
    model: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any] = Field(default_factory=dict)

    @field_validator("suite")
    @classmethod
    def _names_a_place(cls, value: str) -> str:
        if fault := name_fault(value):
            raise ValueError(fault)
        return value


def name_fault(name: str) -> str:
    """Why something cannot be a suite's name, which names directories and stands in messages; empty if it can."""
    if not name.isprintable() or name != name.strip():
        return "a suite's name is a line of printable characters"
    return "a suite's name is no path: it has no slash and begins with no dot" if re.search(r"^\.|[/\\]", name) else ""


def parse_suite(
    data: Mapping[str, Any], where: str, problems: Problems
) -> tuple[SuiteSpec | None, dict[str, TaskSpec]]:
    """The suite and its tasks; faults go to `problems`, and a task with faults is left out."""
    suite: SuiteSpec | None = None
    with problems.catch():
        suite = parse(SuiteSpec, data, where)
    for name in ("model", "train"):
        with problems.catch():
            if isinstance(section := data.get(name) or {}, Mapping):
                values = {str(key): value for key, value in section.items()}
                if name == "model":
                    check_section(values, f"{where}: model")
                else:
                    settings = parse(TrainSettings, values, f"{where}: train")
                    if isinstance(data.get("tasks"), Mapping):
                        settings.check_tasks(map(str, data["tasks"]), f"{where}: train")
    tasks: dict[str, TaskSpec] = {}
    written = data.get("tasks")
    named = {str(name): values for name, values in written.items()} if isinstance(written, Mapping) else {}
    for name, values in named.items():
        with problems.catch(task=name):  # even if the suite itself has faults: a user wants to see all of them
            if isinstance(values, Mapping):
                tasks[name] = parse_task(name, values, where)
    if suite is not None and suite.primary not in suite.tasks:
        problems.error(f"{where}: primary: no task is called {suite.primary!r}; tasks are {', '.join(suite.tasks)}")
    return suite, tasks


def parse_task(name: str, values: Mapping[str, Any], where: str) -> TaskSpec:
    """One task of a suite file, or an error that lists all its faults."""
    if not name.replace("-", "").replace("_", "").isalnum() or len(name) > LONGEST_NAME:
        rule = f"a name has letters, digits, - and _, at most {LONGEST_NAME}"
        raise SettingsError(f"{where}: tasks: {rule}, found {name[:200]!r}")
    spec = parse(TaskSpec, {str(key): value for key, value in values.items()}, where)
    if faults := spec.faults():
        raise SettingsError("\n".join(f"{where}: {fault}" for fault in faults))
    return spec


def _label(value: Any) -> str:
    if isinstance(value, bool):
        raise ValueError("YAML reads yes, no, on and off as true and false; put such labels in quotes")
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"a label is a text or a number, found {type(value).__name__}")
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"half of a character, {value!r}, cannot be written to a file")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
