"""The sizes of `python -m experiments policies`: models, lengths, rows and arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.data import GLUE_FOLDERS
from sidequest.model_settings import EncoderSettings, HfSettings, PooledSettings
from sidequest.records.controls import PROBE
from sidequest.settings import TrainSettings

# Labelled rows of each task: 5 times the square root of GLUE's, at most 2,000.
SMALL_ROWS = {
    "cola": 460,
    "mnli": 2000,
    "mrpc": 305,
    "qnli": 1620,
    "qqp": 2000,
    "rte": 250,
    "sst2": 1300,
    "stsb": 380,
}
SMALL_REPORT_ROWS = 500
ENTROPY_WEIGHTS = (0.1, 0.15, 0.2, 0.5, 1.0)  # the paper's three, and two beyond
LEARN, MEAN_POLICY = "counterfactual: learn", "exp3s, mean policy"
ALONE = ("single", PROBE)  # one model, or one plain read-out, per task


@dataclass(frozen=True)
class PoliciesPart:
    """train: every policy's; its last model is scored, and there are as many evaluations on *select* as it has epochs.

    rows: labelled ones of each task; no entry takes all. select_rows, report_rows: of every task, at most.
    weights: λ that the counterfactual policy tries. steps_alone: of each task's model of `single`; None: as many as a policy's.
    arms: of every seed.
    """

    model: EncoderSettings
    train: TrainSettings
    rows: Mapping[str, int] = field(default_factory=dict)
    report_rows: int | None = None
    select_rows: int | None = None
    weights: tuple[float, ...] = ENTROPY_WEIGHTS
    steps_alone: int | None = None
    arms: tuple[str, ...] = ("random", "size", "exp3s", "counterfactual", MEAN_POLICY, *ALONE)

    @property
    def steps(self) -> int:
        assert self.train.max_batches is not None
        return self.train.max_batches

    def facts(self) -> dict[str, Any]:
        """All that decides a result besides the policy and the seed."""
        bounds = {name: value for name, value in (("select", self.select_rows), ("alone", self.steps_alone)) if value}
        return {
            "model": self.model.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json"),
            "rows": [dict(self.rows), self.report_rows],
            "weights": self.weights,
            **bounds,
        }


FIXED: dict[str, Any] = {"patience": None, "keep": "last"}
SMALL = PoliciesPart(
    PooledSettings(max_length=64, precision="bf16"),  # encoding every row once is the most expensive part of this size
    TrainSettings(epochs=5, batch_size=32, max_batches=750, **FIXED),
    SMALL_ROWS,
    SMALL_REPORT_ROWS,
)
PARTS = {
    "cpu": PoliciesPart(HfSettings(max_length=64), TrainSettings(epochs=5, batch_size=16, max_batches=2500, **FIXED)),
    "short": PoliciesPart(
        HfSettings(max_length=64, precision="bf16"),
        TrainSettings(epochs=1, batch_size=16, max_batches=400, **FIXED),
        report_rows=200,
        select_rows=100,
        weights=ENTROPY_WEIGHTS[:3],
        steps_alone=400 // len(GLUE_FOLDERS),  # together as many as a policy has
        arms=("random", "counterfactual", PROBE, "size", "exp3s", "single"),
    ),
    "paper": PoliciesPart(
        HfSettings(encoder="bert-base-uncased", max_length=256),
        TrainSettings(epochs=10, batch_size=16, learning_rate=2e-5, max_batches=200_000, **FIXED),
    ),
}
