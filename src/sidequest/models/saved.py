"""Exported models on disk: a directory with `sidequest.json` beside the weights.

`sidequest.json` says which task the model solves and how its inputs are made, so that `sidequest.models.load` needs nothing else.
A directory is written beside its place and then renamed: a crash leaves the old model or the new one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, FiniteFloat, model_validator
from safetensors.torch import save
from torch import Tensor, nn

from sidequest.errors import SettingsError, unknown
from sidequest.files import check_files, file_digests, read_json, write_atomically
from sidequest.model_settings import AnyModelSettings, ModelSettings
from sidequest.models.base import CHAINS, TargetScale, head_key
from sidequest.models.encoders import Encoder
from sidequest.paths import what_is_at
from sidequest.records.base import Part, Record
from sidequest.settings import brief
from sidequest.tasks.examples import Examples
from sidequest.tasks.metrics import METRICS
from sidequest.tasks.task import LABELLED, Form, Objective, Task
from sidequest.version import __version__

CARD = "sidequest.json"
READING = "reading.json"  # of sidequest 0.1, beside the card: how the user's files are read
WEIGHTS = "model.safetensors"
ENCODER = "encoder"


Side = Annotated[int, Field(ge=1, le=2**14)]
MOST_LABELS = 10**5
# What models of each form are shown
COLUMNS = {
    Form.TEXT: {"text"},
    Form.PAIR: {"text", "text_b"},
    Form.CHOICES: {"text", "choices"},
    Form.TOKENS: {"tokens"},
    Form.IMAGE: {"image"},
}
# Which forms an objective can have; where nothing is said, texts, pairs and images
FORMS = {Objective.TAGGING: (Form.TOKENS,), Objective.CHOICE: (Form.CHOICES,)}


class ImageFacts(Part):
    """shape: channels, height, width."""

    shape: tuple[Side, Side, Side]
    dtype: Annotated[str, Field(pattern=r"^(u?int(8|16|32|64)|float(16|32|64))$")]


class TaskFacts(Part):
    """Everything about a task but its rows. inputs: as in `Task`: how the user's files are read, and how labels are written."""

    name: str
    objective: Objective
    form: Form
    labels: tuple[str, ...] = Field(max_length=MOST_LABELS)
    metrics: tuple[str, ...] = Field(min_length=1)
    columns: tuple[Literal["text", "text_b", "choices", "tokens", "image"], ...]
    image: ImageFacts | None = None
    inputs: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _images_have_a_shape(self) -> Self:
        if ("image" in self.columns) != (self.image is not None):
            raise ValueError("columns: a task on images, and no other, has the shape of its images")
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """A card may come from anybody: what contradicts itself would end in strange predictions, or in none."""
        if self.form not in FORMS.get(self.objective, (Form.TEXT, Form.PAIR, Form.IMAGE)):
            raise ValueError(f"form: a {self.objective} task is not of the form {self.form.value!r}")
        if self.columns and {*self.columns} != COLUMNS[self.form]:
            raise ValueError(f"columns: the form {self.form.value!r} has {', '.join(sorted(COLUMNS[self.form]))}")
        if self.objective in LABELLED and (len(self.labels) < 2 or len({*self.labels}) < len(self.labels)):
            raise ValueError(
                f"labels: a {self.objective} task has at least two different ones, found {brief(self.labels)}"
            )
        for name, column in self.inputs.get("columns", {}).items():
            parts = column if isinstance(column, list) else [column]
            if not all(isinstance(part, str | int) for part in parts):
                raise ValueError(
                    f"inputs.columns.{name}: the name of a column, or a list of them; found {brief(column)}"
                )
        if strange := [metric for metric in self.metrics if metric not in METRICS]:
            raise ValueError(f"metrics: {unknown('metric', strange[0], METRICS)}")
        return self


class Units(Part):
    """mean, deviation: what a regression's output is multiplied with and moved by."""

    mean: FiniteFloat = 0.0
    deviation: Annotated[FiniteFloat, Field(gt=0)] = 1.0


class Calibration(Part):
    """The temperature that makes probabilities fit the truth best on a split, and what it changed there: the mean negative
    log-likelihood and the expected calibration error, before and after. items: rows, words or decisions that it was fitted to."""

    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    split: str
    items: int
    loss: tuple[float, float]
    error: tuple[float, float]


class ModelCard(Record):
    """`sidequest.json`: which task a model solves, and how its inputs are made.

    loads_with: the class that reads the directory, of transformers or of sidequest. target: the units of a regression's output;
    the plain ones where the weights already give the original units. tasks: the suite's, for a user's own network, which is built
    from them. files: the digests of all other files; weights: of the weights alone, for older versions. calibration: None where
    nobody asked for one.
    """

    FILE: ClassVar[str] = CARD
    MADE_BY: ClassVar[str] = "sidequest train"
    VERSION: ClassVar[int] = 2

    version: int = 2
    sidequest: str
    loads_with: str
    task: TaskFacts
    model: AnyModelSettings
    target: Units = Units()
    tasks: tuple[TaskFacts, ...] = ()
    weights: str = ""
    files: dict[str, str] = Field(default_factory=dict)
    calibration: Calibration | None = None

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        if data.get("format") != 1:
            raise ValueError(
                f"this sidequest reads cards of version 2 and format 1, found {data.get('format', version)!r}"
            )
        return {key: value for key, value in data.items() if key != "format"}

    @classmethod
    def read_from(cls, directory: Path) -> ModelCard:
        """The card of an exported model."""
        if not (directory / CARD).is_file():
            inside = directory / "model"
            hint = f"; did you mean {inside}?" if (inside / CARD).is_file() else ""
            raise SettingsError(f"{directory}: not a model exported by sidequest: it has no {CARD}{hint}")
        card = cls.read(directory)
        if card.task.inputs or not (directory / READING).is_file():
            return card
        try:  # sidequest 0.1 kept them in a file of their own
            inputs = read_json(directory / READING)
        except OSError as error:
            raise SettingsError(f"{directory / READING}: cannot be read: {error.strerror}") from None
        task = card.task.model_dump(mode="json") | {"inputs": inputs}
        return cls.of(card.to_json() | {"task": task}, directory / READING)


def write_card(
    directory: Path,
    task: Task,
    settings: ModelSettings,
    *,
    loads_with: str,
    scale: TargetScale | None = None,
    tasks: Sequence[Task] = (),
) -> None:
    """Write `sidequest.json` into a directory that has all its other files. scale: the units of a regression's output; None where
    the weights already give the original ones."""
    scale = scale or TargetScale()
    files = file_digests(directory)
    ModelCard(
        sidequest=__version__,
        loads_with=loads_with,
        task=task_facts(task),
        model=settings,
        target=Units(mean=scale.mean, deviation=scale.deviation),
        tasks=tuple(map(task_facts, tasks)),
        weights=files.get(WEIGHTS, ""),
        files=files,
    ).write(directory)


def check_weights(directory: Path, card: ModelCard) -> None:
    """Refuse weights that are not those which were exported: a flipped bit would predict without a word. So would one in a frozen
    encoder or a tokeniser."""
    inside = directory.resolve()
    for name in (WEIGHTS, *card.files):
        if not (directory / name).resolve().is_relative_to(inside):
            raise SettingsError(f"{directory}: files: an exported model's files are inside it, found {name!r}")
        if what_is_at(directory / name) == "other":
            raise SettingsError(f"{directory / name}: one of the weights' files is a pipe or a device")
    check_files(directory, {**card.files, **({WEIGHTS: card.weights} if card.weights else {})})


def task_facts(task: Task) -> TaskFacts:
    """What a model needs to know about a task that it was trained on."""
    columns = next(iter(task.splits.values())).columns if task.splits else {}
    image = columns.get("image")
    return TaskFacts(
        name=task.name,
        objective=task.objective,
        form=task.form,
        labels=task.labels,
        metrics=task.metrics,
        columns=tuple(sorted(columns)),
        image=None if image is None else ImageFacts(shape=image.shape[1:], dtype=str(image.dtype)),
        inputs={key: dict(value) for key, value in task.inputs.items()},
    )


def rowless_task(facts: TaskFacts) -> Task:
    """A task without rows, from its facts; images keep their shape."""
    columns: dict[str, Any] = {}
    for name in facts.columns:
        if name == "image":
            assert facts.image is not None
            columns[name] = np.zeros((0, *facts.image.shape), dtype=facts.image.dtype)
        else:
            listed = name in ("tokens", "choices")
            columns[name] = pa.array([], type=pa.list_(pa.string()) if listed else pa.string())
    return Task(
        name=facts.name,
        objective=facts.objective,
        form=facts.form,
        splits={"train": Examples(columns, None, np.zeros(0, dtype=np.int64))},
        labels=facts.labels,
        metrics=facts.metrics,
        inputs=facts.inputs,
    )


def write_weights(directory: Path, state: Mapping[str, Tensor]) -> None:
    data = save({name: value.detach().cpu().contiguous() for name, value in state.items()})
    write_atomically(directory / WEIGHTS, data)


def task_state(model: nn.Module, task: str) -> dict[str, Tensor]:
    """The parameters that one task's predictions need: everything shared, and what is this task's own."""
    groups = ("heads.", "direct.", CHAINS)
    mine = tuple(f"{group}{head_key(task)}." for group in groups)
    return {
        name: value
        for name, value in model.state_dict().items()
        if name.startswith(mine) or not name.startswith(groups)
    }


def copy_encoder(encoder: Encoder, directory: Path) -> None:
    """The frozen encoder goes with the model, so that a directory is all that a prediction needs."""
    (directory / ENCODER).mkdir()
    for path in encoder.files():
        shutil.copyfile(path, directory / ENCODER / path.name)
