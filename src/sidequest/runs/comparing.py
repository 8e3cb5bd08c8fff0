"""Compare methods over seeds: select, train, score on *report*, and say what the differences are worth.

A comparison is a table of cells, one for each method and seed. Cells are independent of each other, but for two kinds that come
last because they depend on what the others did: a random subset is as large as what the methods chose, and `single-long` trains
as long as the best of them. All that can be refused is refused before the first training; a cell that fails by itself fails
alone.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import SettingsError, SidequestError, end_if_all_would_fail
from sidequest.files import atomic_file
from sidequest.formatting import fixed
from sidequest.methods.base import Method
from sidequest.methods.registry import MethodChoice, MethodClass, Methods, choices_of
from sidequest.progress import Progress
from sidequest.records.comparisons import Comparison, MissingCell, Outcome
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.runs.cells import Job, attempt, finished, place_job
from sidequest.runs.controls import has_probe, long_batches
from sidequest.runs.device import check_device
from sidequest.runs.driver import check_kind, check_requirements
from sidequest.runs.growing import changes_since, comparison_before
from sidequest.runs.holding import holding
from sidequest.runs.luggage import Luggage
from sidequest.runs.pages import write_run_page
from sidequest.runs.pieces import Pieces
from sidequest.runs.setup import Setup
from sidequest.runs.summarising import AVERAGE_BASELINE, BASELINE, baseline_of, summarise
from sidequest.runs.travelling import ReturnedCell, TravellingJob, attempt_away
from sidequest.search.executors import Executor, Session, WorkerJournal, as_executor, run_in

CHANCE = "random-subset"
# What every comparison shows besides the methods asked for: without them a score means nothing.
ALWAYS = (BASELINE, "all", "size", CHANCE)
# Where the goal is the average of all tasks, a set that leaves tasks out is no alternative.
ALWAYS_AVERAGE = (AVERAGE_BASELINE, BASELINE, "all", "size")


def compare(
    setup: Setup,
    methods: Methods,
    seeds: Sequence[int],
    directory: Path | str,
    *,
    budget: float | None = None,
    workers: int | Executor = 1,
    command: str = "",
    progress: Progress | None = None,
) -> Comparison:
    """Every method on every seed, each in `directory/METHOD/seed-N`; what is done already is not done again, so methods, seeds
    and a budget can be added to a finished comparison. Ends with `comparison.json`, `outcomes.parquet` and the page.

    methods: names, classes or objects, or settings by name; the baselines of `ALWAYS` and the controls are added. A random
        subset without a size of its own is as large as what the methods asked for chose on the same seed.
    budget: the most that a selection may cost, in x. workers: processes, one torch thread each, or an `Executor`: the results
        are the same wherever they come from. command: what repeats this call.
    progress: told of every cell that ends.
    """
    asked = choices_of(methods)
    at_home = [name for name, choice in asked.items() if not choice.travels]
    executor = as_executor(workers)
    if at_home and not executor.is_here:
        warnings.warn(
            f"{', '.join(at_home)}: defined in this session, so worker processes cannot import it; one process does all. "
            "Put the class into a file to use more",
            stacklevel=2,
        )
        executor = Executor()
    table = _Table(setup, asked, list(seeds), Path(directory), budget, executor, progress)
    table.check()
    with holding(table.directory):
        table.run()
        comparison = summarise(
            setup,
            table.outcomes,
            table.rows,
            table.seeds,
            budget,
            directory=table.directory,
            missing=table.missing,
            command=command,
            controls=table.controls,
        ).model_copy(update=table.dependent)
        comparison.write(table.directory)
        write_outcomes(table.outcomes, setup.suite.primary, table.directory / "outcomes.parquet")
    if (problem := write_run_page(table.directory, setup.suite, "compare", command, setup.model).problem) is not None:
        warnings.warn(problem, stacklevel=2)
    return comparison


def cells_to_run(
    setup: Setup, methods: Methods, seeds: Sequence[int], directory: Path | str, budget: float | None = None
) -> tuple[list[tuple[MethodChoice, int]], int]:
    """Each method of a comparison with the number of seeds on which it is still to be run; and how many cells are done."""
    table = _Table(setup, choices_of(methods), list(seeds), Path(directory), budget, Executor(), None)
    table.check()
    done = [job.method for job in table.first if finished(job.directory) is not None]
    return [(choice, len(seeds) - done.count(name)) for name, choice in table.methods.items()], len(done)


@dataclass
class _Table:
    """A comparison in the making."""

    setup: Setup
    asked: dict[str, MethodChoice]
    seeds: list[int]
    directory: Path
    budget: float | None
    executor: Executor
    progress: Progress | None
    outcomes: list[Outcome] = field(default_factory=list)
    missing: list[MissingCell] = field(default_factory=list)
    x: float = 0.0
    _open: Session[Any, Any] | None = None
    dependent: dict[str, Any] = field(default_factory=dict)  # of the record: what depends on all the methods

    def __post_init__(self) -> None:
        suite = self.setup.suite
        always: tuple[str, ...] = ALWAYS_AVERAGE if suite.goal == "average" else ALWAYS
        if not suite.candidates:
            always, self.asked = (BASELINE,), {}
        names = dict.fromkeys([*always, *self.asked])
        self.methods = {name: self.asked.get(name) or MethodChoice(name) for name in names}
        self.chosen_by = {*self.asked} - {*always}
        # A random subset is a control of size only where there is a choice to be like.
        self.sized_by_others = (
            CHANCE in self.methods and "size" not in self.methods[CHANCE].settings and bool(self.chosen_by)
        )
        self.pieces = Pieces(self.setup, self.executor, self.directory, progress=self.progress, for_cells=True)
        self.with_long = bool(suite.candidates) and suite.goal != "average"

    @property
    def rows(self) -> list[str]:
        """The names of the table's rows, in their order: the baseline, the other controls, then the methods."""
        first = baseline_of(self.setup)
        return [first, SINGLE_LONG, PROBE, *(name for name in self.methods if name != first)]

    @property
    def controls(self) -> list[str]:
        """Those that this table has, whatever becomes of their cells."""
        return [SINGLE_LONG] * self.with_long + [PROBE] * self.with_probe

    @property
    def _total(self) -> int:
        return len(self.seeds) * (len(self.methods) + self.with_long) + self.with_probe

    def check(self) -> None:
        """Refuse all that can be refused, before any training and before any directory is claimed."""
        if not self.seeds or len({*self.seeds}) != len(self.seeds) or min(self.seeds) < 0:
            raise SettingsError(f"seeds: different whole numbers from 0, at least one; found {self.seeds}")
        check_device(self.executor)
        made = [choice.make() for choice in self.methods.values()]
        for method in made:
            check_kind(method, self.setup.model.kind)
        if any(method.requires for method in made):
            learner = self.setup.learner(0)
            for method in made:
                check_requirements(method, learner)
        self.first = [
            self._job(name, choice.settings, seed, self.budget, choice.source)
            for seed in self.seeds
            for name, choice in self.methods.items()
            if not (name == CHANCE and self.sized_by_others)
        ]
        self.with_probe = has_probe(self.setup)
        if self.with_probe:
            self.first.append(self._job(PROBE, {}, 0))

    def run(self) -> None:
        if any(finished(job.directory) is None for job in self.first):
            self.setup.prepare(self.progress, self.executor, WorkerJournal(self.directory))
            self._compute_ahead()
        with ExitStack() as stack:
            self._stack = stack
            self._run(self.first)
            self._run(self._last())
        self.outcomes = [o for o in self.outcomes if o.method != PROBE] + [
            o.model_copy(update={"seed": seed}) for o in self.outcomes if o.method == PROBE for seed in self.seeds
        ]

    def _compute_ahead(self) -> None:
        """What is known at the start of cells and shared by some of them (head matrices of tasks): each piece is a job."""
        if self.executor.is_here:
            return
        left = {job.method for job in self.first if finished(job.directory) is None}
        for name, choice in self.methods.items():
            for seed in self.seeds if name in left else ():
                method = choice.make(seed)
                if type(method).ahead is not Method.ahead:
                    with suppress(SidequestError):  # the cell says what is wrong
                        state = method.start(self.setup.pool, np.random.default_rng([seed, 0]))
                        self.pieces.add(method.ahead(state))
        self.pieces.compute()

    def _last(self) -> list[Job]:
        """The cells that depend on what the others did."""
        last, before = [], comparison_before(self.directory)
        if self.sized_by_others:
            # Drawn once: a method that is added later trains itself and nothing else.
            drawn = {} if before is None else before.random_sizes
            sizes = {seed: drawn.get(seed) or _usual_size(self.outcomes, seed, self.chosen_by) for seed in self.seeds}
            last += [self._job(CHANCE, {"size": size}, seed, self.budget) for seed, size in sizes.items()]
            sized_by = before.sized_by if before is not None and drawn else sorted(self.chosen_by)
            self.dependent |= {"random_sizes": sizes, "sized_by": sized_by}
        if self.with_long:
            candidates = [name for name in self.methods if name not in (BASELINE, CHANCE)]
            longest, lengths = long_batches(self.outcomes, candidates, self.seeds)
            last += [self._job(SINGLE_LONG, {"batches": batches}, seed) for seed, batches in lengths.items()]
            changes = changes_since(before, longest, lengths)
            self.dependent |= {"long_as": longest, "long_batches": lengths, "changes": changes}
        return last

    def _job(
        self,
        name: str,
        settings: dict[str, Any],
        seed: int,
        budget: float | None = None,
        source: str | MethodClass | None = None,
    ) -> Job:
        return place_job(self.directory, self.setup, name, settings, seed, budget, source)

    def _run(self, jobs: Sequence[Job]) -> None:
        """Cells in the order of the jobs, whichever ends first."""
        cells: dict[int, Outcome | MissingCell] = {}
        before = len(self.outcomes) + len(self.missing)
        for index, cell in self._cells(jobs):
            if isinstance(cell, Outcome):
                where = jobs[index].directory.relative_to(self.directory).as_posix()
                cell = cell.model_copy(update={"directory": where})
                self.x += cell.x
            cells[index] = cell
            if self.progress is not None:
                shown = "failed" if isinstance(cell, MissingCell) else fixed(cell.score)
                label = f"{cell.method} seed {cell.seed}: {shown}"
                self.progress.job(before + len(cells), self._total, label, cell, self.x)
        ordered = [cells[index] for index in range(len(jobs))]
        self.outcomes += [cell for cell in ordered if isinstance(cell, Outcome)]
        self.missing += [cell for cell in ordered if isinstance(cell, MissingCell)]

    def _cells(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome | MissingCell]]:
        """Each job's number and cell, as they end; those that are done first."""
        missing = []
        for index, job in enumerate(jobs):
            done = finished(job.directory)
            if done is None:
                missing.append(index)
            else:
                yield index, done
        if not missing:
            return
        if self.executor.workers > 1:
            missing.sort(key=lambda index: self._is_short(jobs[index].method))
        left = [jobs[index] for index in missing]
        labels = [f"{job.method} seed {job.seed}" for job in left]
        if self.executor.shares_disk:
            for number, cell in run_in(self._session(attempt), left, labels=labels, failed=_gone):
                yield missing[number], cell
            return
        travelling = [TravellingJob.of(job) for job in left]
        session = self._session(attempt_away)
        for number, returned in run_in(session, travelling, labels=labels, failed=_gone_away):
            yield missing[number], returned.unpacked(left[number].directory)

    def _is_short(self, method: str) -> int:
        """Long cells begin first, so that no worker is left alone with one at the end; their order decides nothing else."""
        return 0 if method in (*self.chosen_by, SINGLE_LONG) else 2 if method in (BASELINE, PROBE) else 1

    def _session(self, function: Callable[[Any, Any], Any]) -> Session[Any, Any]:
        """One session for all cells: workers load the data once."""
        if self._open is None:
            common: Any = (
                self.setup if self.executor.shares_disk else Luggage.of(self.setup, self.executor, self.pieces.files())
            )
            running = None if self.progress is None else self.progress.running
            journal = WorkerJournal(self.directory)
            self._open = self._stack.enter_context(
                self.executor.open(function, common, journal=journal, running=running)
            )
        return self._open


def _gone(job: Job, error: Exception) -> MissingCell:
    """A cell whose workers were lost, or that ran too long."""
    end_if_all_would_fail(error)
    return MissingCell(method=job.method, seed=job.seed, error=(str(error).splitlines() or [type(error).__name__])[0])


def _gone_away(travelling: TravellingJob, error: Exception) -> ReturnedCell:
    return ReturnedCell(_gone(travelling.job, error))


def _usual_size(outcomes: Sequence[Outcome], seed: int, methods: Collection[str]) -> int:
    """The median number of auxiliaries that these methods chose, at least one."""
    sizes = [len(outcome.auxiliaries) for outcome in outcomes if outcome.seed == seed and outcome.method in methods]
    return max(1, math.floor(statistics.median(sizes))) if sizes else 1


def write_outcomes(outcomes: Sequence[Outcome], primary: str, path: Path) -> None:
    """One row per method and seed, for other tools."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = ("method", "seed", "score", "auxiliaries", "seconds", "examples", "tokens", "stopped", "peak_memory")
    columns: dict[str, list[Any]] = {"primary": [primary] * len(outcomes)}
    columns |= {name: [getattr(outcome, name) for outcome in outcomes] for name in plain}
    columns["selection_x"] = [outcome.selection.x for outcome in outcomes]
    columns["training_x"] = [outcome.training.x for outcome in outcomes]
    for metric in sorted({name for outcome in outcomes for name in outcome.report}):
        columns[f"report.{metric}"] = [outcome.report.get(metric) for outcome in outcomes]
        columns[f"select.{metric}"] = [outcome.select.get(metric) for outcome in outcomes]
    table = pa.table(columns)
    with atomic_file(path) as file:
        pq.write_table(table, file)
