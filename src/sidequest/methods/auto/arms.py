"""What `auto` tries: candidates beside the primary, and controls that show what any extra training does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sidequest.methods.base import Plan
from sidequest.recipe import Phase, Subset

Kind = Literal["single", "longer", "permuted", "candidate", "set", "read-out"]
CONTROLS: tuple[Kind, ...] = ("single", "longer", "permuted")


class Arm(BaseModel):
    """One thing to train, at a length that a round decides.

    kind: `single` the primary alone; `longer` the primary alone for as many batches as the sets it stands beside; `permuted` a
        candidate whose targets are shuffled; `read-out` the plain linear read-out of the model's features;
        `candidate` and `set` one or several candidates beside the primary.
    tasks: the auxiliaries. beside: for `longer`, how many auxiliaries the sets have whose batches it equals.
    primary_share, share: batches of the primary and of each auxiliary in turn. finish: the part of the primary's epochs that
        comes at the end, without auxiliaries. rows: `all`, or those of the candidates with many rows that look most like the
        primary's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    tasks: tuple[str, ...] = ()
    beside: int = 0
    primary_share: int = 1
    share: int = 1
    finish: float = 0.0
    permutation: int = 0
    rows: str = "all"

    @property
    def name(self) -> str:
        """For people, and the key of its results."""
        if self.kind == "single":
            return "the primary alone"
        if self.kind == "read-out":
            return "the read-out, untrained"
        if self.kind == "longer":
            return f"the primary alone, {1 + self.beside} times as long"
        tasks = " + ".join(self.tasks)
        if self.kind == "permuted":
            return f"{tasks}, targets shuffled ({self.permutation})"
        ratio = "" if self.primary_share == self.share else f", {self.primary_share}:{self.share}"
        rows = "" if self.rows == "all" else f", {self.rows} of the rows"
        return tasks + ratio + rows + (", then the primary alone" if self.finish else "")

    @property
    def is_control(self) -> bool:
        return self.kind in CONTROLS

    def cost(self, length: float, beside: float = 1.0) -> float:
        """In x, without evaluations on *select*. beside: what one batch of an auxiliary costs for one of the primary."""
        if self.kind == "read-out":
            return 0.0
        if self.kind in ("single", "longer"):
            return length * (1 + self.beside)
        return length * (1 + (1 - self.finish) * len(self.tasks) * beside * self.share / self.primary_share)

    def phases(
        self,
        primary: str,
        epochs: float,
        length: float = 1.0,
        *,
        whole: bool = False,
        subsets: Mapping[str, Subset] | None = None,
    ) -> tuple[Phase, ...]:
        """The training at a fraction of the primary's epochs. whole: as a recipe, whose length is the trainer's business."""
        if self.kind in ("single", "longer", "read-out"):
            return (Phase(shares={primary: 1}, epochs=epochs * length * (1 + self.beside), stop_early=False),)
        shares: dict[str, float] = {primary: self.primary_share, **dict.fromkeys(self.tasks, self.share)}
        rows = dict(subsets or {})
        if whole and not self.finish:
            return (Phase(shares=shares, subsets=rows),)
        together = Phase(shares=shares, subsets=rows, epochs=epochs * length * (1 - self.finish), stop_early=whole)
        if not self.finish:
            return (together,)
        return (together, Phase(shares={primary: 1}, epochs=epochs * length * self.finish, stop_early=whole))

    def plan(
        self,
        primary: str,
        epochs: float,
        length: float,
        seed: int,
        hold_out: int = 0,
        subsets: Mapping[str, Subset] | None = None,
    ) -> Plan:
        permuted = {self.tasks[0]: self.permutation} if self.kind == "permuted" else {}
        phases = self.phases(primary, epochs, length, subsets=subsets)
        label = f"auto: {self.name}, {length:.2f} of the length"
        measure: Literal["truth", "read-out"] = "read-out" if self.kind == "read-out" else "truth"
        return Plan(
            phases=phases,
            seed=seed,
            label=label,
            measure=measure,
            hold_out=hold_out,
            permuted=permuted,
            note={"arm": self.name},
        )
