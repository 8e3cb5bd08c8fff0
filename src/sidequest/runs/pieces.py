"""Pieces of a method's rounds on workers: head matrices of tasks and chunks of a ranking, computed before a round asks for them.

A piece is an entry of the content store, so computing it early changes nothing but the time: the round finds it, and is charged
what it cost. Workers of this machine write it into the same store; a node without this disk sends its files back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sidequest.files import cache_directory
from sidequest.learning.protocol import HeadImportance, HeadMatrix, Piece, RankedChunk, TaskDiscriminator
from sidequest.progress import Progress
from sidequest.runs.luggage import Files, Luggage, pack, unpack
from sidequest.runs.setup import Setup
from sidequest.search.discriminator_places import DiscriminatorPlaces
from sidequest.search.executors import Executor, TimedOut, WorkerJournal, WorkerLost, run_jobs
from sidequest.search.head_cache import HeadStore

if TYPE_CHECKING:
    from sidequest.learning.torch.learner import TorchLearner
    from sidequest.learning.torch.powers import PowerStores


def power_stores(setup: Setup, heads: HeadStore) -> PowerStores:
    from sidequest.learning.torch.powers import PowerStores

    return PowerStores(heads, DiscriminatorPlaces(setup.facts_together))


@dataclass
class Pieces:
    """Computes pieces on an executor's workers, each once.

    heads: told which matrices were computed for this run. progress: told what runs where. for_cells: whether cells will ask
    for the pieces, each in a worker and under a timeout of its own. Where it is the round of this process, what hangs or kills
    a worker would do the same here: it ends the run.
    """

    setup: Setup
    executor: Executor
    directory: Path | None = None
    heads: HeadStore | None = None
    progress: Progress | None = None
    for_cells: bool = False
    _known: dict[Piece, bool] = field(default_factory=dict)  # whether it was looked at

    def add(self, pieces: Sequence[Piece]) -> None:
        """To be computed with the next call of `compute`."""
        for piece in pieces:
            self._known.setdefault(piece, False)

    def _failed(self, piece: Piece, error: Exception) -> None:
        """What a piece raises is left to the round that asks for it, which says why."""
        if isinstance(error, WorkerLost | TimedOut) and not self.for_cells:
            raise error

    def compute(self, pieces: Sequence[Piece] = ()) -> None:
        """Those that are not there yet."""
        self.add(pieces)
        new = [piece for piece, looked_at in self._known.items() if not looked_at]
        self._known = dict.fromkeys(self._known, True)
        missing = [piece for piece in new if not _place(self.setup, piece).is_dir()]
        if self.executor.is_here or len(missing) < 2:  # nothing to do at the same time
            return
        ended = run_jobs(
            _make,
            _Common(self._luggage(missing), away=not self.executor.shares_disk),
            missing,
            self.executor,
            labels=[str(piece) for piece in missing],
            failed=self._failed,
            journal=WorkerJournal(self.directory),
            running=None if self.progress is None else self.progress.running,
        )
        for index, files in ended:
            piece = missing[index]
            if files:
                unpack(files, _place(self.setup, piece))
            if self.heads is not None and isinstance(piece, HeadMatrix) and files is not None:
                self.heads.note_computed(piece.task)

    def files(self) -> Files:
        """Of the pieces that are there, by their path in the cache: for nodes without this disk."""
        return packed_entries(_place(self.setup, piece) for piece in self._known)

    def _luggage(self, pieces: Sequence[Piece]) -> Luggage:
        """With the weights of the discriminators that are to rank."""
        places = DiscriminatorPlaces(self.setup.facts_together)
        models = {places(piece.discrimination) / "models" for piece in pieces if isinstance(piece, RankedChunk)}
        return Luggage.of(self.setup, self.executor, {} if self.executor.shares_disk else packed_entries(models))


def packed_entries(places: Iterable[Path]) -> Files:
    """The files of these directories of the cache, by their path in it."""
    root = cache_directory()
    return {
        f"{place.relative_to(root).as_posix()}/{name}": content
        for place in sorted(places)
        for name, content in pack(place).items()
    }


# In a worker


@dataclass
class _Common:
    """away: whether the results have to be sent back."""

    luggage: Luggage
    away: bool
    _learner: TorchLearner | None = None

    @property
    def learner(self) -> TorchLearner:
        if self._learner is None:
            setup = self.luggage.unpacked()
            self._learner = setup.learner(0, power_stores(setup, HeadStore(setup.facts_alone)))
        return self._learner


def _make(common: _Common, piece: Piece) -> Files | None:
    """Compute a piece into this machine's store; its files, if they have to be sent."""
    learner = common.learner
    if isinstance(piece, HeadMatrix):
        learner[HeadImportance].head_importance(piece.task, piece.warmup)
    else:
        learner[TaskDiscriminator].rank_chunk(piece.task, piece.chunk, piece.discrimination)
    return pack(_place(common.luggage.setup, piece)) if common.away else {}


def _place(setup: Setup, piece: Piece) -> Path:
    """The directory of a piece's entry, whether it is there or not."""
    if isinstance(piece, HeadMatrix):
        return HeadStore(setup.facts_alone).place(piece.task, piece.warmup)
    from sidequest.learning.torch.ranking import RankedChunks

    of = piece.discrimination
    directory = DiscriminatorPlaces(setup.facts_together)(of)
    return RankedChunks(directory, of.chunk).place(piece.task, piece.chunk)
