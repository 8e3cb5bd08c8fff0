"""Tune the primary alone, once per suite: what every method and every seed is then trained with.

A comparison with an untuned primary measures how badly it was trained. So the primary alone is trained a number of times with
other settings, the best on *select* are kept by content, and all methods share them; the cost is counted once.

A small *select* is noise: where it has fewer than `ENOUGH_ROWS`, settings are compared over several splits of the same labelled
rows, and settings that are behind after a split are pruned. Optuna proposes the settings (TPE) and prunes (by the median). Each
training is a trial like any other: found if it was ever paid for. The sampler is made afresh for each proposal from (seed, number
of the proposal, history), so a killed tuning continues to the same result by running the same loop again.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sidequest.errors import SettingsError
from sidequest.files import digest, read_json, write_json
from sidequest.learning.meter import Meter
from sidequest.methods.base import Plan
from sidequest.model_settings import model_settings
from sidequest.models.search_spaces import Range, edges
from sidequest.progress import Progress
from sidequest.recipe import Phase
from sidequest.runs.selecting import local_trials
from sidequest.runs.setup import Setup
from sidequest.runs.tuning_choices import choices
from sidequest.search.executors import Ahead, Executor, Session, WorkerJournal, as_executor
from sidequest.search.trials import TrialResult
from sidequest.settings import TrainSettings, parse
from sidequest.store import ContentStore, sweep
from sidequest.tasks.examples import concatenate
from sidequest.tasks.splits import carve, generator
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

if TYPE_CHECKING:
    import optuna

VERSION = 1
SEARCH_VERSION = 3  # of what is proposed and on which splits: tunings of another are not found again
ENOUGH_ROWS = 1000  # of *select*: its standard error of an accuracy is then below 1.6 points
SPLITS = 3
TRAININGS = 24
STARTUP = 5  # settings that are tried before the sampler learns from scores: the defaults, and four by chance


@dataclasses.dataclass(frozen=True)
class Training:
    """A job: these settings on the split of this number."""

    settings: dict[str, Any]
    split: int


def train_one(common: tuple[Setup, Sequence[Suite]], job: Training) -> TrialResult:
    """Train the primary alone, or find it."""
    base, suites = common
    suite = suites[job.split]
    setup = with_settings(dataclasses.replace(base, suite=suite), job.settings)
    plan = Plan(phases=(Phase(shares={suite.primary: 1}),), seed=job.split)
    return local_trials(setup).run([plan])[0]


class Tried(BaseModel):
    """One choice of settings: its score on *select* of each split it was trained on. pruned: it was behind and given up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    settings: dict[str, Any]
    scores: list[float]
    pruned: bool = False

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)


class Tuning(BaseModel):
    """What tuning found; a file to read, edit and pass on (`--tune tuning.json`).

    chosen: settings by name (`train.learning_rate`, `model.dropout`); empty where nothing beat the defaults.
    default_score, score: means over the splits, on *select*, of the defaults and of the chosen settings. The second is the best
        of many, so it says which settings to take and not how good the model is.
    x: the cost in single-task training runs at the default length. at_edge: the best may lie beyond the search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int = VERSION
    suite: str = ""
    primary: str = ""
    kind: str = ""
    metric: str = ""
    trainings: int = 0
    splits: int = 1
    x: float = 0.0
    chosen: dict[str, Any] = Field(default_factory=dict)
    default_score: float | None = None
    score: float | None = None
    at_edge: list[str] = Field(default_factory=list)
    tried: list[Tried] = Field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Tuning:
        try:
            tuning = cls.model_validate(read_json(path))
        except (ValidationError, ValueError, UnicodeDecodeError) as error:
            first = str(error).splitlines()[0]
            raise SettingsError(f"{path}: is not a file that `sidequest tune` writes: {first}") from None
        if tuning.version != VERSION:
            raise SettingsError(f"{path}: has version {tuning.version}, this sidequest reads version {VERSION}")
        return tuning

    def write(self, path: Path) -> None:
        write_json(path, self.model_dump(mode="json"), seal=False)  # a user may edit it

    @property
    def summary(self) -> str:
        """One sentence for the page and the shell."""
        cost = f"tuning {self.x:.0f}x, shared by all methods"
        if not self.chosen:
            return f"{cost}: nothing beat the default settings on select"
        chosen = ", ".join(f"{name}={_short(value)}" for name, value in sorted(self.chosen.items()))
        return "; ".join([f"{cost}: {chosen}", *self.edges_met])

    @property
    def edges_met(self) -> list[str]:
        """What `at_edge` says of the settings as they are now: a user may have edited them."""
        now = {f"{name}={value:.3g}" for name, value in self.chosen.items() if isinstance(value, (int, float))}
        return [warning for warning in self.at_edge if warning.split(" ")[0] in now]

    def apply(self, setup: Setup) -> Setup:
        """The setup with the chosen settings; everything else stays as it is."""
        kind = setup.model.kind
        if self.kind and kind != self.kind:
            raise SettingsError(f"the tuning is for model.kind={self.kind}, the run has {kind}; tune again")
        if self.primary and setup.suite.primary != self.primary:
            raise SettingsError(f"the tuning is for the primary {self.primary!r}, the run's is {setup.suite.primary!r}")
        return dataclasses.replace(with_settings(setup, self.chosen), tuning=self.summary)


def with_settings(setup: Setup, chosen: dict[str, Any]) -> Setup:
    """The setup with these settings, by their names with `train.` or `model.` in front."""
    rooms: dict[str, dict[str, Any]] = {"train": {}, "model": {}}
    for name, value in chosen.items():
        room, _, field = name.partition(".")
        if room not in rooms or not field:
            raise SettingsError(f"tuning: a setting is called train.NAME or model.NAME, found {name!r}")
        if (room, field) in (("model", "kind"), ("model", "factory"), ("model", "encoder")):
            raise SettingsError(
                f"tuning: {name} is not tuned: a tuning file changes numbers of a model, not which it is"
            )
        rooms[room][field] = value
    model = {**setup.model.model_dump(exclude_unset=True), "kind": setup.model.kind}
    return Setup(
        setup.suite,
        model_settings({**model, **rooms["model"]}, "tuning: model"),
        parse(TrainSettings, {**setup.train.model_dump(), **rooms["train"]}, "tuning: train"),
        given=setup.given,
    )


def tune(
    setup: Setup,
    trainings: int = TRAININGS,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int | Executor = 1,
    directory: Path | None = None,
) -> Tuning:
    """Train the primary alone up to that many times and say which settings are best on *select*.

    trainings: at least two, the defaults and others. Fewer than six take fewer splits.
    workers: trainings at once. Those that come next unless something is pruned are started ahead; what is found does not depend
    on it. directory: where it is written what became of workers that were lost.
    """
    if trainings < 2:
        raise SettingsError(f"tuning compares settings, which takes at least 2 trainings, found {trainings}")
    sweep()
    setup = Setup(setup.suite.subset([]), setup.model, setup.train, given=setup.given)
    space, given = choices(setup)
    if not space:
        raise SettingsError(f"nothing is left to tune: {', '.join(given)} are given; leave one of them out")
    facts = {"facts": setup.facts([]), "trainings": trainings, "seed": seed, "version": [VERSION, SEARCH_VERSION]}
    key = digest(facts | ({"given": given} if given else {}))

    def make(_: Path) -> dict[str, Any]:
        executor, journal = as_executor(workers), WorkerJournal(directory, only_trouble=True)
        setup.prepare(progress, executor, journal)
        search = _Search(setup, trainings, seed, progress)
        running = None if progress is None else progress.running
        with executor.open(train_one, search.common, journal=journal, running=running, most=trainings) as session:
            return search.run(session).model_dump(mode="json")

    return Tuning.model_validate(ContentStore("tunings").get_or_make(key, make).data)


class _Search:
    """The loop: the defaults first, then what Optuna proposes, each on one split after another."""

    def __init__(self, setup: Setup, trainings: int, seed: int, progress: Progress | None) -> None:
        self.setup, self.trainings, self.seed, self.progress = setup, trainings, seed, progress
        self.suites = resplit(setup.suite, seed)[: max(1, trainings // 2)]  # so that other settings are tried at all
        self.kind = setup.model.kind
        self.space, _ = choices(setup)
        self.meter = Meter()
        self.tried: list[Tried] = []

    @property
    def common(self) -> tuple[Setup, list[Suite]]:
        return self.setup, self.suites

    def run(self, session: Session[Training, TrialResult]) -> Tuning:
        self.ahead = Ahead(session)
        self.at_once = 2 * session.slots if session.slots > 1 else 1
        self._try({}, self.trainings)
        while (left := self.trainings - self._done()) > 0:
            self._try(self._propose(), left)
        default = self.tried[0]
        whole = [tried for tried in self.tried if not tried.pruned and len(tried.scores) == len(default.scores)]
        best = max(whole, key=lambda tried: tried.mean)  # the first of equals: ties go to the defaults
        task = self.setup.suite.tasks[self.setup.suite.primary]
        return Tuning(
            suite=self.setup.suite.name,
            primary=task.name,
            kind=self.kind,
            metric=task.metric,
            trainings=self._done(),
            splits=len(self.suites),
            x=self.meter.cost(self.setup.single_run_work).x,
            chosen=best.settings,
            default_score=default.mean,
            score=best.mean,
            at_edge=edges(self.space, best.settings),
            tried=self.tried,
        )

    def _done(self) -> int:
        return sum(len(tried.scores) for tried in self.tried)

    def _try(self, settings: dict[str, Any], most: int) -> None:
        scores: list[float] = []
        pruned = False
        for number in range(len(self.suites[:most])):
            result = self.ahead.first(self._upcoming(settings, number, most))
            self.meter.add(result.meter)
            scores.append(result.score)
            best = max((tried.mean for tried in self.tried), default=scores[0])
            if self.progress is not None:
                x = self.meter.work / self.setup.single_run_work
                label = f"best on select {best:.3f}"
                self.progress.job(self._done() + len(scores), self.trainings, label, scores[-1], x)
            if pruned := self._behind(scores):
                break
        cut = len(scores) < len(self.suites) and not pruned  # the trainings ran out
        self.tried.append(Tried(settings=settings, scores=scores, pruned=pruned or cut))

    def _upcoming(self, settings: dict[str, Any], number: int, most: int) -> dict[str, tuple[Training, str]]:
        """The training that is wanted now, and those that follow unless settings are pruned: the other splits, and the settings
        that the sampler draws by chance before it learns from scores."""
        tried = len(self.tried)
        left = [(tried, settings, split) for split in range(number, min(most, len(self.suites)))]
        for later in range(tried + 1, STARTUP if self.at_once > 1 else 0):
            left += [(later, self._propose(later), split) for split in range(len(self.suites))]
        return {
            f"{index} {split}": (Training(given, split), f"tuning {index + 1}, split {split + 1}")
            for index, given, split in left[: min(self.at_once, most - number)]
        }

    def _behind(self, scores: Sequence[float]) -> bool:
        """Whether Optuna's median rule gives these settings up after the splits seen so far."""
        import optuna

        if not self.tried or len(scores) == len(self.suites):
            return False
        study = self._study()
        trial = study.ask()
        for step in range(len(scores)):
            trial.report(statistics.fmean(scores[: step + 1]), step)
        study.pruner = optuna.pruners.MedianPruner(n_startup_trials=1)
        return trial.should_prune()

    def _propose(self, number: int | None = None) -> dict[str, Any]:
        """The next settings: a function of the seed and of what was tried. number: of settings that are drawn by chance."""
        import optuna

        number = len(self.tried) if number is None else number
        study = self._study()
        own = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        study.sampler = optuna.samplers.TPESampler(seed=own, n_startup_trials=STARTUP)
        trial = study.ask(fixed_distributions=self._distributions())
        return dict(trial.params)

    def _study(self) -> optuna.Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(direction="maximize")
        for tried in self.tried:
            means = {step: statistics.fmean(tried.scores[: step + 1]) for step in range(len(tried.scores))}
            study.add_trial(
                optuna.trial.create_trial(
                    params=tried.settings,
                    distributions=self._distributions() if tried.settings else {},
                    value=tried.mean,
                    intermediate_values=means,
                )
            )
        return study

    def _distributions(self) -> dict[str, optuna.distributions.BaseDistribution]:
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        return {
            name: FloatDistribution(part.low, part.high, log=True)
            if isinstance(part, Range)
            else CategoricalDistribution(part.values)  # type: ignore[arg-type]
            for name, part in sorted(self.space.items())
        }


def resplit(suite: Suite, seed: int) -> list[Suite]:
    """The suite's own split and, where *select* is small, further splits of its labelled rows into train and *select*."""
    primary = suite.tasks[suite.primary]
    rows = len(primary.splits["select"])
    if rows >= ENOUGH_ROWS:
        return [suite]
    labelled = concatenate([primary.train, primary.splits["select"]])
    # Ids are numbers of rows in their source, so rows of two files may share one: number them again.
    labelled = dataclasses.replace(labelled, ids=np.arange(len(labelled), dtype=np.int64))
    suites = [suite]
    for number in range(1, SPLITS):
        rng = generator(seed, primary.name, f"tuning {number}")
        train, select = carve(labelled, rows, primary.objective, rng)
        task: Task = dataclasses.replace(primary, splits={**primary.splits, "train": train, "select": select})
        suites.append(dataclasses.replace(suite, tasks={**suite.tasks, primary.name: task}))
    return suites


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "null" if value is None else str(value)
