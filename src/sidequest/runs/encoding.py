"""The states of a frozen encoder on workers: each batch of texts is a job, and what comes back is stored here.

The batches are those of one process, so a state has the same bits wherever it was computed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np

from sidequest.progress import Progress
from sidequest.search.executors import Executor, Session, WorkerJournal, run_in

if TYPE_CHECKING:  # torch is not needed to know where states are computed
    from sidequest.models.base import Family
    from sidequest.models.states import Encoded, FrozenEncoder, Text, View

    Batch = tuple[View, list[Text]]


@contextmanager
def encoding_on(
    executor: Executor, family: Family, progress: Progress | None, journal: WorkerJournal | None = None
) -> Iterator[None]:
    """Within this, missing states of the family's encoder are computed by the executor's workers."""
    from sidequest.models.frozen import FrozenFamily

    if executor.is_here or not isinstance(family, FrozenFamily):
        yield
        return
    encoder = dataclasses.replace(family.frozen)  # without what this process has loaded
    running = None if progress is None else progress.running
    with ExitStack() as stack:

        @functools.cache
        def session() -> Session[Batch, Encoded]:
            return stack.enter_context(executor.open(_encode, encoder, journal=journal, running=running))

        def compute(view: View, batches: Sequence[list[Text]]) -> Iterator[tuple[int, Encoded]]:
            jobs: list[Batch] = [(view, texts) for texts in batches]
            labels = [f"encoding {number} of {len(jobs)}" for number in range(1, len(jobs) + 1)]
            yield from run_in(session(), jobs, labels=labels)

        family.states.elsewhere = compute
        try:
            yield
        finally:
            family.states.elsewhere = None


def _encode(encoder: FrozenEncoder, batch: Batch) -> Encoded:
    view, texts = batch
    return encoder.encode(encoder.tokenise(texts, view), np.arange(len(texts)), view)
