"""Recipe: what to train on, as a file that any trainer can read. The portable result of every method.

A recipe holds only what is a function of (suite, method, settings, seed): no time, no path, no host name. So a killed and
resumed run writes the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from sidequest.errors import RunMismatch, SettingsError, first_line
from sidequest.evidence import Shown
from sidequest.files import npy_bytes, unsealed, write_atomically, write_json
from sidequest.paths import input_file, what_is_at
from sidequest.settings import MOST_BATCHES, brief

VERSION: Literal[1] = 1
MOST_BATCHES_OF_A_BLOCK = 10**6  # a cycle is written out, one entry per batch
MOST_PHASES = 10_000


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


def _row_ids(value: Any) -> np.ndarray:
    """Whole numbers as int64 that nobody can write to."""
    if not isinstance(value, np.ndarray):
        if not isinstance(value, (list, tuple, range)):
            raise ValueError("row ids are a list of whole numbers")
        for each in value:
            if not isinstance(each, (int, np.integer)) or isinstance(each, bool) or not 0 <= each < 2**63:
                raise ValueError(f"row ids are whole numbers from 0, found {brief(each)}")
    elif value.ndim != 1 or value.dtype.kind not in "iu" or (len(value) and int(value.min()) < 0):
        raise ValueError(f"row ids are one column of whole numbers from 0, found {value.dtype} {value.shape}")
    ids = np.array(value, dtype=np.int64)
    ids.flags.writeable = False
    return ids


RowIds = Annotated[
    np.ndarray,
    PlainValidator(_row_ids),
    PlainSerializer(lambda ids: ids.tolist()),
    WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": 0}}),
]


class Subset(_Plain):
    """Rows of a task by id, int64 [rows]. In a recipe's file they live in a sidecar `.npy`, named by their digest."""

    ids: RowIds

    @functools.cached_property
    def key(self) -> str:
        # Asked for at every batch of a phase; a million ids take milliseconds.
        return hashlib.sha256(self.ids.tobytes()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subset) and np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash(self.key)


class Phase(_Plain):
    """One stretch of training.

    Attributes:
        order: `cycle`: integer shares run as blocks (share_i batches of task i, then the next task); `shuffle`: every epoch
            holds each task exactly in its share, in random order; `sample`: each batch's task is drawn independently.
        shares: Batches per task, relative; a task with share 0 is not trained on.
        weights: A factor on the task's loss, 1 where absent.
        subsets: Rows of a task to use, all where absent.
        epochs: Passes over the primary's rows; None takes the trainer's setting.
        batches: A length in batches instead.
        stop_early: Whether training may end before the length when *select* stops improving.
    """

    order: Literal["cycle", "shuffle", "sample"] = "cycle"
    shares: dict[str, float]
    weights: dict[str, float] = Field(default_factory=dict)
    subsets: dict[str, Subset] = Field(default_factory=dict)
    epochs: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    batches: int | None = Field(default=None, ge=1, le=MOST_BATCHES)
    stop_early: bool = True

    @field_validator("shares")
    @classmethod
    def _by_name(cls, shares: dict[str, float]) -> dict[str, float]:
        # JSON keeps no order of its own, so name order is the one that survives a file. Cycles begin with the primary.
        return dict(sorted(shares.items()))

    @model_validator(mode="after")
    def _consistent(self) -> Phase:
        if not any(share > 0 for share in self.shares.values()):
            raise ValueError("a phase needs at least one task with a share above 0")
        bad = {k: v for k, v in {**self.shares, **self.weights}.items() if not np.isfinite(v) or v < 0}
        if bad:
            raise ValueError(f"shares and weights are finite and at least 0, found {bad}")
        if large := {name: share for name, share in self.shares.items() if share > MOST_BATCHES_OF_A_BLOCK}:
            raise ValueError(f"shares are at most {MOST_BATCHES_OF_A_BLOCK}, found {large}")
        if large := {name: weight for name, weight in self.weights.items() if weight > 1e6}:
            raise ValueError(f"weights are at most 1e6, found {large}")
        for part, names in (("weights", self.weights), ("subsets", self.subsets)):
            if strange := [name for name in names if name not in self.shares]:
                raise ValueError(f"{part} are of tasks that have a share, found {', '.join(map(repr, strange))}")
        if empty := [name for name, subset in self.subsets.items() if not len(subset.ids) and self.shares[name]]:
            raise ValueError(f"{empty[0]!r} has a share and no rows")
        if self.order == "cycle" and any(share != int(share) for share in self.shares.values()):
            raise ValueError(f"a cycle takes whole-number shares, found {self.shares}")
        if self.epochs is not None and self.batches is not None:
            raise ValueError("a phase is as long as `epochs` or `batches` says, not both")
        return self

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(name for name, share in self.shares.items() if share > 0)


class Cost(_Plain):
    """What was spent, in units that do not depend on the machine. `x` is in single-task training runs of the primary."""

    x: float = 0.0
    batches: int = 0
    examples: int = 0
    tokens: int = 0
    evaluations: int = 0
    evaluated_examples: int = 0
    trials: int = 0


class Provenance(BaseModel):
    """What is known of where a recipe comes from, all of it optional; what a newer sidequest adds is left alone."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    suite: str = ""
    goal: str = ""
    tuning: str | None = None
    model: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any] = Field(default_factory=dict)
    method_settings: dict[str, Any] = Field(default_factory=dict)
    chosen_with: dict[str, dict[str, Any]] = Field(default_factory=dict)
    data: dict[str, dict[str, str]] = Field(default_factory=dict)
    rows: dict[str, dict[str, int]] = Field(default_factory=dict)


class Evidence(BaseModel):
    """What other rooms read of a method's evidence; all else is the method's own. figures: drawn on the page."""

    model_config = ConfigDict(extra="allow")

    notes: list[str] = Field(default_factory=list)
    figures: list[Shown] = Field(default_factory=list)


class Recipe(_Plain):
    """The decision: tasks, mixture, weights, instances and their order, with the evidence for it.

    Attributes:
        version: Of the file's format.
        method: The name of the method that decided.
        primary: The task to improve.
        phases: What to train on, one stretch after another.
        evidence: What the method found; `notes` and `figures` of it are shown on the page.
        cost: What the decision cost.
        provenance: Where it comes from: suite, seed, settings, and the content of the data.
        verdict: The decision in words.
    """

    version: Literal[1] = VERSION
    method: str
    primary: str
    phases: tuple[Phase, ...] = Field(min_length=1, max_length=MOST_PHASES)
    evidence: dict[str, Any] = Field(default_factory=dict)
    cost: Cost = Field(default_factory=Cost)
    provenance: dict[str, Any] = Field(default_factory=dict)
    verdict: str = ""

    @field_validator("provenance")
    @classmethod
    def _known_provenance(cls, value: dict[str, Any]) -> dict[str, Any]:
        Provenance.model_validate(value)
        return value

    @field_validator("evidence")
    @classmethod
    def _known_evidence(cls, value: dict[str, Any]) -> dict[str, Any]:
        known = Evidence.model_validate(value)
        return (
            {**value, "figures": [each.model_dump(mode="json") for each in known.figures]} if known.figures else value
        )

    @property
    def figures(self) -> list[Shown]:
        """What the method has left for the page, by kind."""
        return Evidence.model_validate(self.evidence).figures

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task that some phase trains on, in order of first use."""
        return tuple(dict.fromkeys(name for phase in self.phases for name in phase.tasks))

    @property
    def auxiliaries(self) -> tuple[str, ...]:
        return tuple(name for name in self.tasks if name != self.primary)

    def to_json(self) -> str:
        """Canonical JSON: the same recipe is the same bytes."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def write(self, path: Path) -> None:
        """Write the recipe, sealed with its digest, and instance ids in `<digest>.npy` files beside it."""
        data = self.model_dump(mode="json")
        for phase, plain in zip(self.phases, data["phases"], strict=True):
            for name, subset in phase.subsets.items():
                sidecar = path.with_name(f"rows-{subset.key}.npy")
                if not sidecar.exists():
                    write_atomically(sidecar, npy_bytes(subset.ids))
                plain["subsets"][name] = {"file": sidecar.name, "rows": len(subset.ids)}
        write_json(path, data)

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """Read a recipe file and its sidecar files. It may come from anybody: nothing of it is believed before it is checked."""
        input_file(path, "a recipe")
        try:
            data = json.loads(path.read_bytes().decode("utf-8"))
        except RecursionError:
            raise SettingsError(f"{path}: not a recipe: nested too deeply") from None
        except (OSError, ValueError) as error:
            raise SettingsError(f"{path}: not a recipe: {first_line(error)}") from None
        if not isinstance(data, dict) or data.get("version") != VERSION:
            version = data.get("version") if isinstance(data, dict) else type(data).__name__
            raise SettingsError(f"{path}: this sidequest reads recipe version {VERSION}, found {brief(version)}")
        try:
            json.dumps(data, ensure_ascii=False).encode()
            data = unsealed(data, path)  # one that was written by hand has no seal
            _read_subsets(data, path)
            return cls(**data)
        except UnicodeEncodeError:
            raise SettingsError(f"{path}: not a recipe: it holds half of a character") from None
        except RecursionError:
            raise SettingsError(f"{path}: not a recipe: nested too deeply") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise SettingsError(f"{path}: {place}: {first['msg']}; found {brief(first['input'])}") from None


def _read_subsets(data: dict[str, Any], path: Path) -> None:
    """Put row ids in the place of the names of their files. What has another shape is left to the checks that follow."""
    phases = data.get("phases")
    if isinstance(phases, list) and len(phases) > MOST_PHASES:  # each may name files
        raise SettingsError(f"{path}: phases: at most {MOST_PHASES}, found {len(phases)}")
    for number, phase in enumerate(phases if isinstance(phases, list) else []):
        subsets = phase.get("subsets") if isinstance(phase, dict) else None
        if not isinstance(subsets, dict):
            continue
        for name, entry in subsets.items():
            if isinstance(entry, dict) and "file" in entry:
                place = f"{path}: phases.{number}.subsets.{name}"
                if not isinstance(entry["file"], str):
                    raise SettingsError(f"{place}: file: the name of a file, found {brief(entry['file'])}")
                subsets[name] = {"ids": _read_ids(path, entry["file"], place)}


def _read_ids(recipe: Path, name: str, place: str) -> np.ndarray:
    """The rows in a file beside the recipe, which has their digest in its name."""
    if Path(name).name != name or "\0" in name or len(name) > 200:
        raise SettingsError(f"{place}: its rows are in a file beside the recipe, found {brief(name)}")
    file = recipe.with_name(name)
    if what_is_at(file) == "nothing":
        raise RunMismatch(f"{place}: its rows should be in {name!r}, which is missing")
    input_file(file, "a file of row ids")
    if file.is_symlink():
        raise SettingsError(f"{file}: a file of row ids is a plain file, this is a link to {str(file.readlink())!r}")
    try:
        # Mapped, not read: a header that promises more than the file holds is refused before any memory is taken.
        ids = np.load(file, allow_pickle=False, mmap_mode="r")
    except Exception as error:  # numpy reads a header with Python's own parser: it may fail in many ways
        raise SettingsError(f"{file}: not a file of row ids: {first_line(error)}") from None
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype != np.int64:
        found = f"{ids.dtype} {ids.shape}" if isinstance(ids, np.ndarray) else "several arrays"
        raise SettingsError(f"{file}: not a file of row ids: one column of int64 is needed, found {found}")
    if name.startswith("rows-") and name != _sidecar(np.asarray(ids)):
        raise SettingsError(f"{file}: is damaged: its rows are not those of the digest in its name")
    return np.array(ids)


def _sidecar(ids: np.ndarray) -> str:
    return f"rows-{hashlib.sha256(ids.tobytes()).hexdigest()[:16]}.npy"
