"""`compare` and `select` for Python: suites, methods, settings and paths in whatever shape a user has them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidequest.api.results import ComparisonResult, Selection
from sidequest.api.suites import as_setup
from sidequest.api.tuning import TuneLike, tuned
from sidequest.errors import SettingsError
from sidequest.files import digest
from sidequest.methods.registry import MethodChoice, MethodLike, Methods, choices_of
from sidequest.model_settings import ModelSettings
from sidequest.progress import Progress, Several, show_progress
from sidequest.records.comparisons import Outcome
from sidequest.runs import comparing, selecting
from sidequest.runs.pages import write_run_page
from sidequest.runs.setup import Setup
from sidequest.runs.tracking import check_trackers, log_outcome, tracking
from sidequest.search.executors import Executor, as_executor
from sidequest.settings import Settings, TrainSettings, brief
from sidequest.tasks.suite import Suite as LoadedSuite

MOST_SEEDS = 10_000  # more is a slip
SuiteLike = str | Path | LoadedSuite | Setup
ModelLike = str | Mapping[str, Any] | ModelSettings
TrainLike = Mapping[str, Any] | TrainSettings


def compare(
    suite: SuiteLike,
    methods: Methods = ("auto",),
    *,
    model: ModelLike | None = None,
    train: TrainLike | None = None,
    tune: TuneLike | None = None,
    seeds: int | Sequence[int] = 5,
    directory: str | Path | None = None,
    budget: float | None = None,
    workers: int | Executor = 1,
    track: Sequence[str] = (),
    progress: bool | Progress = True,
    command: str = "",
    allow_code: bool = False,
) -> ComparisonResult:
    """Compare methods over seeds: each selects on *select*, trains, and is scored on *report*.

    Args:
        suite: A `Suite`, the path of a suite file, or a `Setup`.
        methods: Names, classes or objects (`AutoSeM(trials=8)`), or settings by name. The baselines and controls are always
            there.
        model: A kind (`"pooled"`), or settings as a dictionary or an object.
        train: Settings of the training, as a dictionary or an object.
        tune: Tune the primary alone first, over this many trainings; or what `tune` gave back, or the file of it.
        seeds: How many, or which.
        directory: Keeps every run: the same call continues, and methods and seeds can be added. By default one under `runs/`,
            named after the suite and the content of all that decides the results.
        budget: The most that a selection may cost, in single-task runs.
        workers: Processes with one torch thread each, or an `Executor`. A script that uses more than one starts its work under
            `if __name__ == "__main__":`.
        track: Trackers to log to: `tensorboard`, `mlflow`, `wandb`.
        progress: Bars on the error stream, or a listener of your own.
        command: How the comparison was asked for, for its page.
        allow_code: Whether a suite file may name code that builds the model; what `model` names always may.

    Returns:
        The table, the verdict and the best choice.

    Raises:
        SidequestError: Something that was given is wrong; the message lists all of it, before any work.
    """
    check_trackers(track)
    setup, chosen = as_setup(suite, model, train, allow_code=allow_code), choices_of(methods)
    which = _seeds(seeds)
    executor = as_executor(workers)
    _check_budget(budget)
    setup = tuned(setup, tune, executor, progress)
    place = _place(directory, setup, "compare")
    followed = {
        "methods": {name: choice.settings for name, choice in chosen.items()},
        "seeds": which,
        "budget": budget,
        "model": setup.model.model_dump(mode="json"),
        "train": setup.train.model_dump(mode="json"),
    }
    with listening(progress) as listener, tracking(track, place, "compare", followed) as log:

        class Tracked(Progress):
            def job(self, done: int, total: int, label: str, result: Any, x: float) -> None:
                if isinstance(result, Outcome):
                    scores = {"score": result.score, "x": result.x}
                    log_outcome(log, place / result.directory, result.method, result.seed, scores)

        record = comparing.compare(
            setup,
            list(chosen.values()),
            which,
            place,
            budget=budget,
            workers=executor,
            command=command,
            progress=Several(listener, Tracked()),
        )
    return ComparisonResult(record, setup, place)


def select(
    suite: SuiteLike,
    method: MethodLike = "auto",
    *,
    settings: Mapping[str, Any] | Settings | None = None,
    model: ModelLike | None = None,
    train: TrainLike | None = None,
    tune: TuneLike | None = None,
    seed: int = 0,
    directory: str | Path | None = None,
    budget: float | None = None,
    workers: int | Executor = 1,
    storage: str | None = None,
    track: Sequence[str] = (),
    progress: bool | Progress = True,
    command: str = "",
    allow_code: bool = False,
) -> Selection:
    """Let one method choose: its decision as a recipe, which can be trained.

    Args:
        suite: A `Suite`, the path of a suite file, or a `Setup`.
        method: A name, `file.py:Class`, a class or an object.
        settings: Settings of a method that is not given as an object.
        model: A kind (`"pooled"`), or settings as a dictionary or an object.
        train: Settings of the training, as a dictionary or an object.
        tune: Tune the primary alone first, over this many trainings; or what `tune` gave back, or the file of it.
        seed: Decides initial weights, order and every draw.
        directory: Keeps the run: the same call continues or finds it. By default one under `runs/`, named after the suite, the
            method and the content of all that decides the result.
        budget: The most that the selection may cost, in single-task runs.
        workers: How many of the method's training runs go on at once, or an `Executor`.
        storage: A database URL for the ledger of trials; several processes with the same URL share one search.
        track: Trackers to log to: `tensorboard`, `mlflow`, `wandb`.
        progress: Bars on the error stream, or a listener of your own.
        command: How the selection was asked for, for its page.
        allow_code: Whether a suite file may name code that builds the model; what `model` names always may.

    Returns:
        The decision, from which a model can be trained.

    Raises:
        SidequestError: Something that was given is wrong; the message lists all of it, before any work.
    """
    check_trackers(track)
    setup, choice = as_setup(suite, model, train, allow_code=allow_code), MethodChoice.of(method, settings)
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise SettingsError(f"seed: a whole number from 0 to 2^63 - 1, found {brief(seed)}")
    _check_budget(budget)
    setup = tuned(setup, tune, workers, progress)
    place = _place(directory, setup, choice.name, choice.settings, seed, budget)
    facts = setup.provenance(choice.name, choice.settings, seed)
    followed = {"method": choice.name} | {key: value for key, value in facts.items() if key not in ("data", "rows")}
    with listening(progress) as listener, tracking(track, place, "select", followed) as log:

        class Tracked(Progress):
            def round(self, done: int, total: int | None, entry: Mapping[str, Any], x: float) -> None:
                log({**entry, "x": x}, done)

        recipe = selecting.select(
            setup,
            choice,
            seed=seed,
            directory=place,
            workers=workers,
            storage=storage,
            budget=budget,
            progress=Several(listener, Tracked()),
        )
        log({"cost": recipe.cost.model_dump(), "shares": recipe.phases[-1].shares}, 0)
    page = write_run_page(place, setup.suite, "select", command, setup.model)
    if page.problem is not None and not command:  # a command says it itself
        warnings.warn(page.problem, stacklevel=2)
    return Selection(recipe, setup, place, page)


@contextmanager
def listening(progress: bool | Progress) -> Iterator[Progress]:
    """The listener that was given, bars, or one that does nothing."""
    if isinstance(progress, Progress):
        yield progress
    elif progress:
        with show_progress() as shown:
            yield shown
    else:
        yield Progress()


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= MOST_SEEDS:
        return list(range(seeds))
    if isinstance(seeds, Sequence) and not isinstance(seeds, str) and all(isinstance(seed, int) for seed in seeds):
        return list(seeds)
    raise SettingsError(f"seeds: how many, 1 to {MOST_SEEDS}, or a list of whole numbers; found {brief(seeds)}")


def _check_budget(budget: float | None) -> None:
    if budget is not None and not (isinstance(budget, int | float) and 0 <= budget < math.inf):
        raise SettingsError(f"budget: a finite number from 0, found {budget!r}")


def _place(directory: str | Path | None, setup: Setup, name: str, *more: Any) -> Path:
    if directory is None:
        decides = digest([setup.facts(list(setup.suite.tasks)), *more])[:8]
        return Path("runs") / f"{setup.suite.name}-{name}-{decides}"
    if isinstance(directory, str | Path):
        return Path(directory).expanduser()
    raise SettingsError(f"directory: a path, found {type(directory).__name__} {directory!r}")
