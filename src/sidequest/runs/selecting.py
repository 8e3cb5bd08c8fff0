"""Run a method on a suite: from settings to a recipe, in a directory or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.errors import SidequestError
from sidequest.methods.base import Plan
from sidequest.methods.registry import AnyMethod, MethodChoice, MethodLike
from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.records.runs import SelectionRecord, WorkRecord
from sidequest.runs.directory import forget_run_without_work, open_run
from sidequest.runs.driver import OnRound, check_kind, forget_checkpoints, run_method
from sidequest.runs.holding import holding
from sidequest.runs.luggage import Luggage
from sidequest.runs.pieces import Pieces, power_stores
from sidequest.runs.setup import Setup
from sidequest.search.executors import Executor, Session, WorkerJournal, as_executor
from sidequest.search.head_cache import HeadStore
from sidequest.search.parallel_trials import Shared, TrialListener, Trials
from sidequest.search.trials import LocalTrials, TrialResult, TrialRunner
from sidequest.settings import Settings

if TYPE_CHECKING:
    from sidequest.learning.meter import Meter
    from sidequest.learning.protocol import Learner


def make_method(method: MethodLike, settings: Mapping[str, Any] | Settings | None = None, seed: int = 0) -> AnyMethod:
    """A method by name, `file.py:Class`, class or object; its settings are checked."""
    return MethodChoice.of(method, settings).make(seed)


def select(
    setup: Setup,
    method: MethodLike,
    *,
    settings: Mapping[str, Any] | Settings | None = None,
    seed: int = 0,
    directory: Path | None = None,
    workers: int | Executor = 1,
    storage: str | None = None,
    budget: float | None = None,
    progress: Progress | None = None,
) -> Recipe:
    """The method's recipe for the suite. A directory keeps the run: the same call continues or finds it.

    method: a name, `file.py:Class`, a class or an object.

    workers: how many of a method's trials run at once, each in a process of its own; or an `Executor`. The recipe is the same,
        byte for byte on a CPU, whatever their number.
    storage: a database URL for the ledger of trials, which any number of processes may share: none pays for a trial that
        another one has run or is at. None: the file `trials.log` of the run directory.
    budget: the most that the selection may cost, in x; see `run_method`.
    progress: told of every round, and of batches and texts on the way.
    """
    chosen = make_method(method, settings, seed)
    check_kind(chosen, setup.model.kind)
    if storage is not None:
        from sidequest.search.claims import lease_asked_for  # imports Optuna
        from sidequest.search.ledger import check_storage

        check_storage(storage)
        lease_asked_for()
    with holding(directory):
        try:
            return _select(setup, chosen, directory, as_executor(workers), storage, budget, progress)
        except SidequestError:
            if directory is not None:
                forget_run_without_work(directory)
            raise


def _select(
    setup: Setup,
    method: AnyMethod,
    directory: Path | None,
    executor: Executor,
    storage: str | None,
    budget: float | None,
    progress: Progress | None,
) -> Recipe:
    plain = method.settings.model_dump(mode="json")
    bounded = plain if budget is None else {**plain, "budget": budget}  # another budget is another run
    if directory is not None and open_run(directory, setup, method.name, bounded, method.seed):
        done = directory / "recipe.json"
        if done.exists():
            forget_checkpoints(directory)
            return Recipe.read(done)
    if not executor.is_here:
        setup.prepare(progress, executor, WorkerJournal(directory))
    heads = HeadStore(setup.facts_alone)
    learner = setup.learner(method.seed, power_stores(setup, heads))
    on_round: OnRound | None = None
    if progress is not None:
        setup.family.progress = progress.encoding
        unit = setup.single_run_work

        def on_round(done: int, total: int | None, entry: dict[str, Any], meter: Meter) -> None:
            progress.round(done, total, entry, meter.work / unit)

    study = f"{setup.suite.name}, {method.name}, seed {method.seed}"
    with _trials(setup, executor, storage, directory, study, progress) as trials:
        recipe = run_method(
            method,
            learner,
            setup.pool,
            trials,
            single_run_work=setup.single_run_work,
            provenance=setup.provenance(method.name, plain, method.seed),
            directory=directory,
            budget=budget,
            on_round=on_round,
            ahead=None if executor.is_here else Pieces(setup, executor, directory, heads, progress).compute,
        )
    if directory is not None:
        # What was reused depends on what ran before: it stands here, not in the recipe.
        meter = WorkRecord.model_validate(learner.meter.to_json())
        SelectionRecord(meter=meter, heads=heads.summary()).write(directory)
        recipe.write(directory / "recipe.json")  # last: where it is, all is
        forget_checkpoints(directory)
    return recipe


@contextmanager
def _trials(
    setup: Setup,
    executor: Executor,
    storage: str | None,
    directory: Path | None,
    study: str,
    progress: Progress | None,
) -> Iterator[TrialRunner]:
    """Where trials run, and the ledger that listens if there is a place for one."""
    with ExitStack() as stack:
        if storage is not None:
            from sidequest.search.ledger import speaking_for_database

            stack.enter_context(speaking_for_database(storage))

        def listening() -> tuple[list[TrialListener], Shared | None]:
            from sidequest.search.ledger import Ledger

            if storage is None and directory is None:
                return [], None
            ledger = Ledger.open(storage or (directory or Path()) / "trials.log", study)
            if storage is None:
                return [ledger], None
            from sidequest.search.claims import Claims

            claims = Claims(storage, study, ledger)
            stack.callback(claims.close)
            return [ledger, claims], claims  # the result is written before the claim is given back

        def open_session() -> Session[Plan, TrialResult]:
            if executor.is_here:
                return executor.open(_run_plan, _Runner(Luggage(setup), progress))
            running = None if progress is None else progress.running
            luggage = Luggage.of(setup, executor)
            return executor.open(_run_plan, _Runner(luggage), journal=WorkerJournal(directory), running=running)

        yield stack.enter_context(
            Trials(
                open_session,
                executor.workers,
                facts=setup.facts,
                listening=listening,
                shared=storage is not None,
            )
        )


class _Runner:
    """The trials of a worker; its data and model are loaded with its first plan."""

    def __init__(self, luggage: Luggage, progress: Progress | None = None) -> None:
        self._luggage, self._progress = luggage, progress
        self._trials: LocalTrials | None = None

    def run(self, plan: Plan) -> TrialResult:
        if self._trials is None:
            self._trials = local_trials(self._luggage.unpacked(), progress=self._progress)
        return self._trials.run([plan])[0]


def _run_plan(runner: _Runner, plan: Plan) -> TrialResult:
    return runner.run(plan)


def local_trials(setup: Setup, learner: Learner | None = None, progress: Progress | None = None) -> LocalTrials:
    """Trials in this process."""
    learner = learner if learner is not None else setup.learner(0)
    return LocalTrials(learner, setup.train, goal=setup.suite.goal, facts=setup.facts, progress=progress)
