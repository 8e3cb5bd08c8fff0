"""Ranking of rows by a trained task discriminator: in chunks, rows of similar length together, bounded memory, resumable.

Of a chunk only are texts and tokens in memory. What stays is one float32 per row and task; with a directory it goes to a file per
chunk, so that a killed ranking goes on after its last whole chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from sidequest.files import digest
from sidequest.models.base import Family, Inputs
from sidequest.models.devices import batch_tokens, computes_bf16
from sidequest.models.hf_model import HfModel
from sidequest.models.pooled_output import PooledOutput
from sidequest.models.ragged import token_batches
from sidequest.store import ContentStore, save_arrays
from sidequest.tasks.task import Task

LEAST_AGREEMENT = 0.999  # Spearman's ρ with float32, for bfloat16 to be used
AGREEMENT_ROWS = 256  # of each task, on which the two are compared


@dataclass
class Ranker:
    """A trained discriminator. names: of the tasks, in the order of its outputs."""

    family: Family
    pooled: PooledOutput
    discriminator: torch.nn.Linear
    names: list[str]
    device: torch.device

    def logits(self, task: Task, positions: np.ndarray) -> np.ndarray:
        """How much rows of a task's train split look like each task: float32 [rows, tasks], in evaluation mode."""
        return self._run(task, positions, features=False)

    def features(self, task: Task, positions: np.ndarray) -> np.ndarray:
        """Their pooled output, float32 [rows, width]."""
        return self._run(task, positions, features=True)

    def _run(self, task: Task, positions: np.ndarray, *, features: bool) -> np.ndarray:
        inputs: Inputs = self.family.inputs(task, task.train.take(positions))
        self.pooled.model.eval()
        width = self.pooled.width if features else len(self.names)
        out = np.empty((len(positions), width), dtype=np.float32)
        with torch.inference_mode():
            for rows in token_batches(inputs.lengths, batch_tokens(self.device)):
                batch = {name: tensor.to(self.device) for name, tensor in inputs.collate(rows).items()}
                _, found = self.pooled(task.name, batch)
                # The discriminator itself always works in float32: half-precision scores would tie.
                out[rows] = (found if features else self.discriminator(found)).float().cpu().numpy()
        return out

    def choose_precision(self, tasks: Mapping[str, Task]) -> str:
        """`bf16` where the processor has it and it ranks rows as float32 does, else `fp32`; the model is left so."""
        model = self.pooled.model
        if not isinstance(model, HfModel):
            return "fp32"
        has_bf16 = computes_bf16(self.device)
        found = []
        for bf16 in (False, True) if has_bf16 else ():
            model.bf16_evaluation = bf16
            parts = [self.logits(task, np.arange(min(AGREEMENT_ROWS, len(task.train)))) for task in tasks.values()]
            found.append(np.concatenate(parts))
        model.bf16_evaluation = has_bf16 and agreement(*found) > LEAST_AGREEMENT
        return "bf16" if model.bf16_evaluation else "fp32"


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """The least of Spearman's ρ between equal columns, [rows, tasks]; a column without differences agrees with nothing."""
    from scipy.stats import spearmanr  # slow to import, and few machines need it

    if min(np.ptp(first, axis=0).min(), np.ptp(second, axis=0).min()) == 0:
        return 0.0
    found = [spearmanr(first[:, column], second[:, column]).statistic for column in range(first.shape[1])]
    return float(np.nan_to_num(found, nan=0.0).min())


@dataclass
class RankedChunks:
    """Results by (task, chunk): logits float32 [rows, tasks] and the seconds that they took.

    directory: None keeps them in memory.
    """

    directory: Path | None
    size: int
    kept: dict[tuple[str, int], tuple[np.ndarray, float]] = field(default_factory=dict)

    def get(self, task: str, chunk: int) -> tuple[np.ndarray, float] | None:
        if self.directory is None:
            return self.kept.get((task, chunk))
        entry = ContentStore("chunks", self.directory).get(self._key(task, chunk))
        return None if entry is None else (entry.arrays()["logits"], float(entry.data["seconds"]))

    def put(self, task: str, chunk: int, logits: np.ndarray, seconds: float) -> None:
        if self.directory is None:
            self.kept[task, chunk] = logits, seconds
            return

        def make(directory: Path) -> dict[str, float]:
            save_arrays(directory, {"logits": logits})
            return {"seconds": seconds}

        ContentStore("chunks", self.directory).put(self._key(task, chunk), make)

    def place(self, task: str, chunk: int) -> Path:
        """The directory of a chunk that is kept on disk, whether it is there or not."""
        assert self.directory is not None
        return ContentStore("chunks", self.directory).place(self._key(task, chunk))

    def _key(self, task: str, chunk: int) -> str:
        return digest([self.size, task, chunk])
