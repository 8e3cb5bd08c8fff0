"""Run a method on a suite: from settings to a recipe, in a directory or in memory."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.errors import SidequestError
from sidequest.methods.registry import AnyMethod, MethodChoice, MethodLike
from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.records.runs import SelectionRecord, WorkRecord
from sidequest.runs.directory import forget_run_without_work, open_run
from sidequest.runs.driver import OnRound, check_kind, forget_checkpoints, run_method
from sidequest.runs.holding import holding
from sidequest.runs.setup import Setup
from sidequest.search.discriminator_places import DiscriminatorPlaces
from sidequest.search.executors import ProcessTrials
from sidequest.search.head_cache import EvidenceCache
from sidequest.search.ray_trials import RayTrials
from sidequest.search.trials import LedgerTrials, LocalTrials, TrialRunner
from sidequest.settings import Settings

if TYPE_CHECKING:
    from sidequest.learning.meter import Meter
    from sidequest.learning.protocol import Learner
    from sidequest.search.ledger import Ledger


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
    workers: int = 1,
    storage: str | None = None,
    ray: str | None = None,
    budget: float | None = None,
    progress: Progress | None = None,
) -> Recipe:
    """The method's recipe for the suite. A directory keeps the run: the same call continues or finds it.

    method: a name, `file.py:Class`, a class or an object.

    workers: how many of a method's trials run at once, each in a process of its own. A method that learns from its trials
        asks for as many before it sees a score, so another number may lead it another way.
    storage: a database URL for the ledger of trials; None: the file `trials.log` of the run directory.
    ray: the address of a Ray cluster whose workers run the trials; see `RayTrials`.
    budget: the most that the selection may cost, in x; see `run_method`.
    progress: told of every round, and of batches and texts on the way.
    """
    chosen = make_method(method, settings, seed)
    check_kind(chosen, setup.model.kind)
    with holding(directory):
        try:
            return _select(setup, chosen, directory, workers, storage, ray, budget, progress)
        except SidequestError:
            if directory is not None:
                forget_run_without_work(directory)
            raise


def _select(
    setup: Setup,
    method: AnyMethod,
    directory: Path | None,
    workers: int,
    storage: str | None,
    ray: str | None,
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
    from sidequest.learning.torch.powers import PowerStores  # imports torch, which a run that is done does not need

    heads = EvidenceCache(setup.facts_alone)
    learner = setup.learner(method.seed, PowerStores(heads, DiscriminatorPlaces(setup.facts_together)))
    on_round: OnRound | None = None
    if progress is not None:
        setup.family.progress = progress.encoding
        unit = setup.single_run_work

        def on_round(done: int, total: int | None, entry: dict[str, Any], meter: Meter) -> None:
            progress.round(done, total, entry, meter.work / unit)

    study = f"{setup.suite.name}, {method.name}, seed {method.seed}"
    with _trials(setup, learner, workers, storage, ray, directory, study, progress) as trials:
        recipe = run_method(
            method,
            learner,
            setup.pool,
            trials,
            single_run_work=setup.single_run_work,
            provenance=setup.provenance(method.name, plain, method.seed),
            directory=directory,
            parallel=workers,
            budget=budget,
            on_round=on_round,
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
    learner: Learner,
    workers: int,
    storage: str | None,
    ray: str | None,
    directory: Path | None,
    study: str,
    progress: Progress | None,
) -> Iterator[TrialRunner]:
    """Where trials run, and the ledger that they are written into if there is a place for one."""
    with ExitStack() as stack:
        runner: TrialRunner
        if ray is not None:
            runner = stack.enter_context(RayTrials(functools.partial(local_trials, setup), workers, ray))
        elif workers > 1:
            runner = stack.enter_context(ProcessTrials(functools.partial(local_trials, setup), workers))
        else:
            runner = local_trials(setup, learner, progress)
        if storage is not None or directory is not None:

            def open_ledger() -> Ledger:
                from sidequest.search.ledger import Ledger

                return Ledger.open(storage or (directory or Path()) / "trials.log", study)

            runner = LedgerTrials(runner, open_ledger, setup.facts)
        yield runner


def local_trials(setup: Setup, learner: Learner | None = None, progress: Progress | None = None) -> LocalTrials:
    """Trials in this process."""
    learner = learner if learner is not None else setup.learner(0)
    return LocalTrials(learner, setup.train, goal=setup.suite.goal, facts=setup.facts, progress=progress)
