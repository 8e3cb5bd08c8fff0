"""A suite with a model and training settings: everything that a run needs besides a method and a seed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.errors import RunMismatch, SettingsError
from sidequest.files import digest
from sidequest.learning.fit import single_run_work
from sidequest.model_settings import (
    AUTO,
    AlphaVILSettings,
    AutosemSettings,
    BiLstmSettings,
    ConvnetSettings,
    EncoderSettings,
    ModelSettings,
    PooledSettings,
    model_settings,
    settings_class,
)
from sidequest.models import resolved_kind
from sidequest.models.defaults import training_settings
from sidequest.runs.consent import check_consent
from sidequest.search.code_version import training_code_version
from sidequest.search.executors import Executor, WorkerJournal
from sidequest.settings import Settings, TrainSettings
from sidequest.tasks.joining import with_select
from sidequest.tasks.lengths import long_texts_message
from sidequest.tasks.pool import Pool
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import TaskCard
from sidequest.version import __version__

if TYPE_CHECKING:
    from sidequest.learning.torch.core import EncodedTasks
    from sidequest.learning.torch.learner import TorchLearner
    from sidequest.learning.torch.powers import PowerStores
    from sidequest.models.base import Family
    from sidequest.progress import Progress


# Trained from the start or over frozen features; what was measured about short runs of them is in docs/methods/auto.md.
SMALL_NETWORKS = (PooledSettings, BiLstmSettings, AutosemSettings, ConvnetSettings, AlphaVILSettings)


def length_card(suite: Suite) -> TaskCard:
    """What the length of a training follows from: the primary's card; with the goal `average` it has the rows of all tasks."""
    card = suite.tasks[suite.primary].card
    if suite.goal != "average":
        return card
    cards = [task.card for task in suite.tasks.values()]
    return dataclasses.replace(card, rows=sum(c.rows for c in cards), select_rows=sum(c.select_rows for c in cards))


@dataclass(frozen=True)
class Setup:
    """A suite with a model and training settings. Cheap to make; torch is imported when a learner is asked for.

    Attributes:
        suite: The tasks.
        model: The settings of the model.
        train: The settings of the training.
        tuning: What tuning the primary found and cost, in a sentence, where the settings come from it.
        given: The names of the settings that a user chose (`train.learning_rate`), here or in the suite: they are not tuned.
    """

    suite: Suite
    model: ModelSettings
    train: TrainSettings
    tuning: str | None = None
    given: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        suite: Suite,
        model: str | Mapping[str, Any] | ModelSettings | None = None,
        train: Mapping[str, Any] | TrainSettings | None = None,
        where: str = "settings",
        *,
        allow_code: bool = False,
    ) -> Setup:
        """Settings given here win over the suite's own defaults, and those over the defaults of the kind of model.

        Args:
            suite: The tasks, with defaults of their own.
            model: A kind, or settings as a dictionary or an object.
            train: Settings of the training, as a dictionary or an object.
            where: What messages call the place of these settings.
            allow_code: Whether a suite file may name code to run; what is given here always may.
        """
        defaults = suite.defaults or {}
        section, given = defaults.get("model", {}), plain_model(model)
        kind = resolved_kind(suite, str(given.get("kind", section.get("kind", AUTO))))
        if kind != resolved_kind(suite, str(section.get("kind", AUTO))):
            # The section is for a model of another kind: what means the same for both is kept.
            shared = {*EncoderSettings.model_fields} & {*settings_class(kind).model_fields}
            section = {name: value for name, value in section.items() if name in shared}
        settings = model_settings({**section, **given, "kind": kind}, f"{where}: model")
        if suite.path is not None:
            check_consent(settings, given, str(suite.path), allow_code=allow_code)
        card, own = length_card(suite), defaults.get("train", {})
        chosen = plain_train(train)
        lengths = training_settings(kind, card, own, chosen, f"{where}: train")
        lengths.check_tasks(suite.tasks, f"{where}: train")
        return cls(suite, settings, lengths, given=names_given({**section, **given}, {**own, **chosen}))

    def with_all_rows(self) -> Setup:
        """*select* joins *train*, as nothing is left to choose: the same passes over more rows, which no score can end.

        *select* stays a split of its own, for the learner; what it scores there says nothing any more.
        """
        learned = self.suite.tasks if self.suite.goal == "average" else [self.suite.primary]
        tasks = {name: with_select(task) if name in learned else task for name, task in self.suite.tasks.items()}
        train = self.train.model_copy(update={"keep": "last", "patience": None})
        return dataclasses.replace(self, suite=dataclasses.replace(self.suite, tasks=tasks), train=train)

    def __getstate__(self) -> dict[str, Any]:
        """For a worker process: without what this process has already loaded."""
        names = ("suite", "model", "train", "tuning", "given")
        return {name: getattr(self, name) for name in names}

    @functools.cached_property
    def family(self) -> Family:
        from sidequest.models import family
        from sidequest.runs.encoder_files import check_encoder

        check_encoder(self.model)
        return family(self.suite, self.model)

    def long_texts(self) -> dict[str, str]:
        """By task, what is to be said about texts that the model does not read whole; tasks without such texts are left out."""
        from sidequest.models.token_limit import token_limit
        from sidequest.runs.encoder_files import check_encoder

        check_encoder(self.model)
        limit = token_limit(self.model)
        if limit is None:
            return {}
        messages: dict[str, str] = {}
        for name, task in self.suite.tasks.items():
            long = {split: limit.long_rows(task, rows) for split, rows in task.splits.items()}
            if message := long_texts_message(task, long, limit.most):
                messages[name] = message
        return messages

    def prepare(
        self,
        progress: Progress | None = None,
        executor: Executor | None = None,
        journal: WorkerJournal | None = None,
    ) -> None:
        """Compute once what a frozen encoder's models share, before learners or worker processes want it: on the executor's
        workers, or here with all cores."""
        if not self.family.keeps_states:
            return
        if progress is not None:
            self.family.progress = progress.encoding
        from sidequest.runs.encoding import encoding_on

        suite = self.suite
        with encoding_on(executor or Executor(), self.family, progress, journal):
            for name, task in suite.tasks.items():
                every = suite.goal == "average" or name == suite.primary
                for split in task.splits if every else ("train",):
                    self.family.inputs(task, task.splits[split])

    def learner(self, seed: int, stores: PowerStores | None = None) -> TorchLearner:
        """A new learner; rows are encoded once for all learners of this setup. stores: where its powers keep results."""
        from sidequest.learning.torch.learner import TorchLearner

        return TorchLearner(self.suite, self.family, self.train, seed=seed, data=self.encoded, stores=stores)

    @functools.cached_property
    def encoded(self) -> EncodedTasks:
        from sidequest.learning.torch.core import EncodedTasks

        return EncodedTasks(self.family)

    @functools.cached_property
    def pool(self) -> Pool:
        cards = {name: task.card for name, task in self.suite.tasks.items()}
        small = isinstance(self.model, SMALL_NETWORKS)
        return Pool(self.suite.primary, cards, self.suite.goal, self.train, fine_tunes=not small)

    @property
    def single_run_work(self) -> float:
        """What 1x is: one training of the primary alone, or of all tasks together where the goal is their average."""
        card = length_card(self.suite)
        return single_run_work(card.rows, card.select_rows, self.train)

    def facts(self, tasks: Sequence[str]) -> dict[str, Any]:
        """All that decides the score of a plan over these tasks, for its key. Candidates that a plan does not use are left
        out, so that a new candidate leaves old results valid."""
        used = self.suite.tasks if self.suite.goal == "average" else {self.suite.primary, *tasks}
        return {
            "data": {name: self._data(name) for name in sorted(used)},
            "primary": self.suite.primary,
            "goal": self.suite.goal,
            "model": self.model.model_dump(mode="json"),
            "weights": self.family.fingerprint(),
            "train": self.train.model_dump(mode="json"),
            "code": training_code_version(),
        }

    def facts_alone(self, task: str) -> dict[str, Any]:
        """All that decides what a model learns from one task's train rows alone, for the key of its head importances. Neither the
        primary, nor other tasks, nor the length of a whole training run have a part in it."""
        no_part = {"epochs", "patience", "max_batches", "eval_batch_size", "loss_scale"}
        return {
            "task": task,
            "train_rows": self.suite.tasks[task].fingerprints["train"],
            "model": self.model.model_dump(mode="json"),
            "weights": self.family.fingerprint(),
            "train": self.train.model_dump(mode="json", exclude=no_part),
            "code": training_code_version(),
        }

    def facts_together(self) -> dict[str, Any]:
        """All that decides what a model learns from the train rows of all tasks, for the place of a discriminator. Which task is
        the primary has no part in it: one discriminator tells all tasks apart."""
        names = sorted(self.suite.tasks)
        alone = self.facts_alone(names[0])
        return {**alone, "task": names, "train_rows": [self.suite.tasks[name].fingerprints["train"] for name in names]}

    def _data(self, name: str) -> dict[str, str]:
        prints = self.suite.tasks[name].fingerprints
        return {split: prints[split] for split in ("train", "select") if split in prints}

    def provenance(self, method: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
        """What a recipe says about where it comes from: enough to repeat it and to refuse other data."""
        return {
            "sidequest": __version__,
            "suite": self.suite.name,
            "goal": self.suite.goal,
            "seed": seed,
            "method_settings": settings,
            **({} if self.tuning is None else {"tuning": self.tuning}),
            "model": self.model.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json"),
            "data": {name: dict(task.fingerprints) for name, task in sorted(self.suite.tasks.items())},
            "rows": {
                name: {split: len(rows) for split, rows in task.splits.items()}
                for name, task in sorted(self.suite.tasks.items())
            },
        }

    def check_data(self, provenance: dict[str, Any], tasks: Sequence[str], where: Path | str) -> None:
        """Refuse to train a recipe on other data than it was made for, and say what differs."""
        differences = []
        for name in sorted({self.suite.primary, *tasks}):
            wanted, rows = provenance.get("data", {}).get(name), provenance.get("rows", {}).get(name, {})
            if wanted is None:
                continue  # a recipe written by hand
            if name not in self.suite.tasks:
                differences.append(f"task {name!r} is not in the suite")
                continue
            task = self.suite.tasks[name]
            for split, value in wanted.items():
                found = task.fingerprints.get(split)
                if found != value:
                    count = len(task.splits[split]) if split in task.splits else 0
                    differences.append(
                        f"task {name!r}, split {split!r}: the recipe saw {rows.get(split)} rows with content {value[:12]}, "
                        f"the suite has {count} rows with content {str(found)[:12]}"
                    )
        if differences:
            raise RunMismatch(f"{where}: the data changed since the recipe was made:\n" + "\n".join(differences))

    def identity(self, method: str, settings: dict[str, Any], seed: int) -> str:
        """What makes two runs the same run."""
        return digest(self.provenance(method, settings, seed) | {"method": method})


def names_given(model: Mapping[str, Any], train: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings that these sections decide, by their whole names; null leaves one open."""
    rooms = {"model": model, "train": train}
    return tuple(
        sorted(f"{room}.{name}" for room, values in rooms.items() for name in values if values[name] is not None)
    )


def plain_model(model: str | Mapping[str, Any] | ModelSettings | None) -> dict[str, Any]:
    """A kind, or settings as a dictionary or an object, as a dictionary."""
    return {"kind": model} if isinstance(model, str) else _plain(model, ModelSettings, "model")


def plain_train(train: Mapping[str, Any] | TrainSettings | None) -> dict[str, Any]:
    return _plain(train, TrainSettings, "train")


def _plain(given: Any, cls: type[Settings], name: str) -> dict[str, Any]:
    """Settings as a dictionary, whether they came as one or as an object."""
    if isinstance(given, cls):
        return given.model_dump(exclude_unset=True) | ({"kind": given.kind} if isinstance(given, ModelSettings) else {})
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    raise SettingsError(f"{name}: a dictionary or a {cls.__name__}, found {type(given).__name__} {given!r}")
