"""Recipe: what to train on, as a file that any trainer can read. The portable result of every method.

A recipe holds only what is a function of (suite, method, settings, seed): no time, no path, no host name. So a killed and
resumed run writes the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sidequest.errors import RunMismatch, SettingsError
from sidequest.files import npy_bytes, write_atomically

VERSION: Literal[1] = 1


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class Subset(_Plain):
    """Rows of a task by id. In the JSON file large subsets live in a sidecar `.npy`, named by their digest."""

    ids: tuple[int, ...]

    @functools.cached_property
    def key(self) -> str:
        # Asked for at every batch of a phase; a million ids take 40 ms.
        return hashlib.sha256(np.asarray(self.ids, dtype=np.int64).tobytes()).hexdigest()[:16]


class Phase(_Plain):
    """One stretch of training.

    order: `cycle`: integer shares run as blocks (share_i batches of task i, then the next task); `shuffle`: every epoch holds
        each task exactly in its share, in random order; `sample`: each batch's task is drawn independently.
    shares: batches per task, relative; a task with share 0 is not trained on.
    weights: a factor on the task's loss, 1 where absent.
    subsets: rows of a task to use, all where absent.
    epochs: passes over the primary's rows; None takes the trainer's setting. batches: a length in batches instead.
    stop_early: whether training may end before the length when *select* stops improving.
    """

    order: Literal["cycle", "shuffle", "sample"] = "cycle"
    shares: dict[str, float]
    weights: dict[str, float] = Field(default_factory=dict)
    subsets: dict[str, Subset] = Field(default_factory=dict)
    epochs: float | None = Field(default=None, gt=0)
    batches: int | None = Field(default=None, ge=1)
    stop_early: bool = True

    @field_validator("shares")
    @classmethod
    def _by_name(cls, shares: dict[str, float]) -> dict[str, float]:
        # A cycle runs its tasks in this order. JSON keeps no order of its own, so name order is the one that survives a file.
        return dict(sorted(shares.items()))

    @model_validator(mode="after")
    def _consistent(self) -> Phase:
        if not any(share > 0 for share in self.shares.values()):
            raise ValueError("a phase needs at least one task with a share above 0")
        bad = {k: v for k, v in {**self.shares, **self.weights}.items() if not np.isfinite(v) or v < 0}
        if bad:
            raise ValueError(f"shares and weights are finite and at least 0, found {bad}")
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


class Recipe(_Plain):
    """The decision: tasks, mixture, weights, instances and their order, with the evidence for it."""

    version: Literal[1] = VERSION
    method: str
    primary: str
    phases: tuple[Phase, ...] = Field(min_length=1)
    evidence: dict[str, Any] = Field(default_factory=dict)
    cost: Cost = Field(default_factory=Cost)
    provenance: dict[str, Any] = Field(default_factory=dict)
    verdict: str = ""

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
        """Write the recipe, with instance ids in `<digest>.npy` files beside it."""
        data = self.model_dump(mode="json")
        for phase, plain in zip(self.phases, data["phases"], strict=True):
            for name, subset in phase.subsets.items():
                sidecar = path.with_name(f"rows-{subset.key}.npy")
                if not sidecar.exists():
                    write_atomically(sidecar, npy_bytes(np.asarray(subset.ids, dtype=np.int64)))
                plain["subsets"][name] = {"file": sidecar.name, "rows": len(subset.ids)}
        text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        write_atomically(path, text.encode())

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """Read a recipe file and its sidecar files."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SettingsError(f"{path}: no such recipe file") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not a recipe: {error}") from None
        if not isinstance(data, dict) or data.get("version") != VERSION:
            found = data.get("version") if isinstance(data, dict) else type(data).__name__
            raise SettingsError(f"{path}: this sidequest reads recipe version {VERSION}, found {found!r}")
        for phase in data.get("phases", []):
            for name, entry in phase.get("subsets", {}).items():
                if "file" in entry:
                    sidecar = path.with_name(entry["file"])
                    if sidecar.parent != path.parent or not sidecar.is_file():
                        raise RunMismatch(
                            f"{path}: the rows of {name!r} should be in {entry['file']!r}, which is missing"
                        )
                    phase["subsets"][name] = {"ids": np.load(sidecar, allow_pickle=False).tolist()}
        try:
            return cls(**data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise SettingsError(f"{path}: {place}: {first['msg']}; found {first['input']!r}") from None
