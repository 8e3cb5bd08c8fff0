"""Settings: plain data, shared by suite files, recipes and the command line. Those of models are in `model_settings`.

`--set train.epochs=5 --set model.hidden=256 --set gamma=0.1` reaches, in order, `TrainSettings`, `ModelSettings` and the
method's own settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sidequest.errors import SettingsError, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def _may_be_bool(annotation: Any) -> bool:
    return annotation in (bool, Any) or any(map(_may_be_bool, get_args(annotation)))


# The most that anybody means. What is beyond is a slip, or was written to hang whoever runs it.
MOST_BATCHES = 10**9
LossScale = Annotated[float, Field(ge=0, le=1e6)]


class Checked(BaseModel):
    """A model whose copies have no fields that it has not: pydantic itself takes a misspelt name in `update` without a word."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        if strange := sorted(set(update or ()) - set(type(self).model_fields)):
            raise TypeError(
                f"{type(self).__name__} has no field {strange[0]!r}. {nearest(strange[0], type(self).model_fields)}"
            )
        return super().model_copy(update=update, deep=deep)


class Settings(Checked):
    """Base of all settings: unknown names are refused, values never change after they are made."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, ser_json_inf_nan="constants", protected_namespaces=(), allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, data: Any) -> Any:
        """YAML reads yes as true, and pydantic would read that as 1."""
        values = data if isinstance(data, Mapping) else {}
        for name, value in values.items():
            field = cls.model_fields.get(str(name))
            if isinstance(value, bool) and field is not None and not _may_be_bool(field.annotation):
                raise ValueError(f"{name}: neither true nor false means something here")
        return data


class TrainSettings(Settings):
    """How a model is trained. What is not given is the model's own default: see `models/defaults.py`.

    epochs: passes over the *primary's* train split in each phase of a recipe (a fraction is allowed). An auxiliary task adds
        batches between them, it never takes any away, so every method's primary sees its data equally often.
    steps: the same length in batches of the primary, instead of `epochs`.
    evaluations: how often *select* is evaluated in a phase, besides once before any training; None: once per primary epoch.
    batch_size: rows of one step.
    eval_batch_size: rows of one forward pass in evaluation and prediction; it changes no result.
    learning_rate: of the optimiser; None takes the model's own default.
    optimizer: `adamw` or `sgd`.
    momentum: of `sgd`.
    weight_decay: of the optimiser, for all weights but biases and normalisations.
    warmup: the share of the steps over which the learning rate rises from 0.
    decay: how the learning rate goes on after that: `linear` or `cosine` to 0, or `constant`.
    layer_decay: hf: each layer of the encoder learns at the rate of the layer above it times this; 1: all at one rate.
    clip: the largest norm of a step's gradients; None: no clipping.
    patience: evaluations on *select* without a new best before training stops; None: never stop early.
    keep: which model of the last phase is the result: the `best` on *select*, or the `last`. A small *select* chooses badly.
    max_batches: an upper bound on the batches of one phase, for suites whose auxiliaries dwarf the primary.
    loss_scale: a factor per task name on top of a recipe's weights.
    micro_batch: rows of one forward pass; a step still sees `batch_size` rows, whose gradients are added up. None: all at once.
    recompute: compute activations again in the backward pass instead of keeping them (hf): less memory, a third more time.
    compile: make kernels for this network, on a GPU (`torch.compile`).
    """

    epochs: float = Field(3.0, gt=0, le=1e6)
    steps: int | None = Field(None, ge=1, le=MOST_BATCHES)
    evaluations: int | None = Field(None, ge=1, le=10**6)
    batch_size: int = Field(32, ge=1, le=10**6)
    eval_batch_size: int = Field(128, ge=1, le=10**6)
    learning_rate: float | None = Field(None, gt=0, le=1e3)
    optimizer: Literal["adamw", "sgd"] = "adamw"
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(0.01, ge=0, le=1e3)
    warmup: float = Field(0.06, ge=0, le=1)
    decay: Literal["linear", "cosine", "constant"] = "linear"
    layer_decay: float = Field(1.0, gt=0, le=1)
    clip: float | None = Field(1.0, gt=0)
    patience: int | None = Field(3, ge=1)
    keep: Literal["best", "last"] = "best"
    max_batches: int | None = Field(None, ge=1, le=MOST_BATCHES)
    loss_scale: dict[str, LossScale] = Field(default_factory=dict)
    micro_batch: int | None = Field(None, ge=1, le=10**6)
    recompute: bool = False
    compile: bool = False

    def check_tasks(self, tasks: Iterable[str], where: str) -> None:
        """Refuse a loss scale for a task that there is not: it would change nothing without a word."""
        known = list(tasks)
        for name in self.loss_scale:
            if name not in known:
                raise SettingsError(f"{where}: loss_scale: there is no task {name!r}. {nearest(name, known)}")


LONGEST_VALUE = 10_000  # characters of a value on the command line

S = TypeVar("S", bound=BaseModel)


def parse(cls: type[S], values: Mapping[str, Any], where: str) -> S:
    """`cls(**values)`, with pydantic's complaints turned into one clear message that lists every fault."""
    try:
        return cls(**values)
    except ValidationError as error:
        faults: dict[tuple[str, str], list[str]] = {}  # (path, value found) → what it should be instead
        for loc, item in _of_nearest_kinds(cls, error):
            path = ".".join(map(str, loc))
            if item["type"] == "extra_forbidden":
                faults[path, ""] = [
                    f"{where}: unknown setting {path!r}. {nearest(str(loc[-1]), _field_names(cls, loc[:-1]))}"
                ]
            else:
                faults.setdefault((path, brief(item["input"])), []).append(_in_words(item["msg"]))
        lines = [
            f"{where}: {path or 'value'}: {' or '.join(wanted).replace(' or input should be', ' or')}; found {found}"
            if found
            else wanted[0]
            for (path, found), wanted in faults.items()
        ]
        raise SettingsError("\n".join(lines)) from None


def _of_nearest_kinds(cls: type[BaseModel], error: ValidationError) -> list[tuple[tuple[int | str, ...], ErrorDetails]]:
    """The faults and where they are. Of a field that may be of several kinds pydantic names each kind that a value is not; those
    that it comes nearest to are kept, which are the faults deepest inside it."""
    found = []
    for item in error.errors():
        loc = item["loc"]
        several = len(loc) > 1 and loc[0] in cls.model_fields and _kinds(cls.model_fields[str(loc[0])].annotation) > 1
        found.append(((loc[0], *loc[2:]) if several else loc, several, item))
    deepest: dict[int | str, int] = {}
    for loc, several, _ in found:
        if several:
            deepest[loc[0]] = max(deepest.get(loc[0], 0), len(loc))
    return [(loc, item) for loc, several, item in found if not several or len(loc) == deepest[loc[0]]]


def _kinds(annotation: Any) -> int:
    """Of how many kinds a value may be, beside nothing."""
    if get_origin(annotation) not in (Union, UnionType):
        return 1
    return sum(kind is not type(None) for kind in get_args(annotation))


def _in_words(message: str) -> str:
    """What pydantic says in Python's words, in those of a suite file."""
    message = re.sub(r" or instance of \w+", "", message[:1].lower() + message[1:])
    return message.replace("a valid dictionary", "a mapping").replace("a valid tuple", "a list")


def brief(value: Any, most: int = 200) -> str:
    """A value for a message, however long it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; something inside itself
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= most else f"{text[:most]}…"


def _field_names(cls: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The fields of the settings that `path` leads to inside `cls`."""
    for part in path:
        annotation = cls.model_fields[str(part)].annotation
        inner = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
        cls = next(kind for kind in inner if issubclass(kind, BaseModel))
    return [field.alias or name for name, field in cls.model_fields.items()]


def parse_assignments(pairs: list[str]) -> dict[str, dict[str, Any]]:
    """`["train.epochs=3", "gamma=0.1"]` → `{"train": {"epochs": 3}, "model": {}, "method": {"gamma": 0.1}}`.

    Values are read as YAML, so numbers, lists, true/false and null mean what they look like.
    """
    out: dict[str, dict[str, Any]] = {"train": {}, "model": {}, "method": {}}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise SettingsError(f"--set takes name=value, found {pair!r}. Example: --set train.epochs=3")
        room, dot, name = key.partition(".")
        if not dot:
            room, name = "method", key
        if room not in out:
            raise SettingsError(f"--set {key}: unknown prefix {room!r}. {nearest(room, ['train', 'model'])}")
        if len(text) > LONGEST_VALUE:
            raise SettingsError(f"--set {key}: a value has at most {LONGEST_VALUE} characters, found {len(text)}")
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):  # 2026-13-45 is a text, and so are 5,000 digits
            value = text
        out[room][name] = _number(value)
    return out


def _number(value: Any) -> Any:
    # YAML 1.1 reads 1e-3 as a string; a user means the number.
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
