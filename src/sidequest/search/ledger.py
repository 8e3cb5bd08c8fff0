"""The ledger: every trial of a search as a trial of an Optuna study, so that `optuna-dashboard` and Optuna's own tools
can read it.

A file beside the run by default, or a database for many machines, which then also share results through it. The ledger decides
nothing: what to try next is the method's business, and no Optuna sampler is used.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from sidequest.errors import Damaged, SettingsError, WorldError
from sidequest.files import sealed, unsealed, write_atomically
from sidequest.locks import locked
from sidequest.methods.base import Plan
from sidequest.search.storage import bad_storage, database_url, is_url, without_password
from sidequest.search.trials import TrialResult

TABLE_ATTEMPTS = 6
_SHARE = FloatDistribution(0.0, 1.0)  # the parameter of a trial: a task's share of the batches


class Ledger:
    """A study and how plans are written into it. One study may serve many runs and machines: plans are told apart by
    their keys."""

    def __init__(self, study: optuna.Study, *, claimed: bool = False) -> None:
        """claimed: whether nobody begins a trial without having claimed it."""
        self.study = study
        self.claimed = claimed
        self._running: dict[str, optuna.Trial] = {}

    @classmethod
    def open(cls, where: Path | str, name: str) -> Ledger:
        """where: a file for a journal, or a database URL (`sqlite:///trials.db`, `postgresql://…`). name: of the study."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(study_name=name, storage=_storage(where), direction="maximize", load_if_exists=True)
        return cls(study, claimed=is_url(where))

    def result(self, key: str) -> TrialResult | None:
        """What an earlier run, here or on another machine, found for the plan with this key."""
        for trial in self.study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]):
            if trial.user_attrs.get("key") == key:
                try:
                    stored = unsealed(json.loads(trial.user_attrs["result"]), Path("trials.log"), must_be_sealed=True)
                except (Damaged, ValueError, KeyError):
                    continue  # it is run again
                return TrialResult.from_json(stored)
        return None

    # A listener of trials

    def begun(self, plan: Plan, key: str) -> None:
        """Write a trial as running. What another process has left running under the same key has failed: a process of this
        machine that is gone, or, where trials are claimed, whoever has lost the claim."""
        for trial in self.study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            if trial.user_attrs.get("key") == key and (self.claimed or _dead(trial.user_attrs.get("owner", ""))):
                self._tell(trial.number, None)
        shares = batch_shares(plan)
        self.study.sampler = _Given(shares)
        self._running[key] = begun = self.study.ask(fixed_distributions=dict.fromkeys(shares, _SHARE))
        owner = f"{socket.gethostname()}:{os.getpid()}"
        for name, value in {"key": key, "label": plan.label, "seed": plan.seed, "owner": owner}.items():
            begun.set_user_attr(name, value)

    def ended(self, plan: Plan, key: str, result: TrialResult) -> None:
        """Write a trial's score, and all that `result` needs to give it back."""
        if key not in self._running:  # it was found
            if self.result(key) is not None:
                return
            self.begun(plan, key)
        trial = self._running.pop(key)
        with suppress(UpdateFinishedTrialError):  # another process has taken it over, and its result counts
            trial.set_user_attr("result", json.dumps(sealed(result.to_json())))
            self._tell(trial.number, result.score)

    def failed(self, plan: Plan, key: str) -> None:
        if (trial := self._running.pop(key, None)) is not None:
            self._tell(trial.number, None)

    def _tell(self, number: int, score: float | None) -> None:
        """None: it failed. What another process has told already stays as it is."""
        with suppress(ValueError, RuntimeError):  # of Optuna, about a trial that has ended
            if score is None:
                self.study.tell(number, state=TrialState.FAIL)
            else:
                self.study.tell(number, score)


class _Given(optuna.samplers.BaseSampler):
    """Optuna's way of writing down parameters that were decided elsewhere."""

    def __init__(self, values: dict[str, float]) -> None:
        self._values = values

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._values[param_name]


def batch_shares(plan: Plan) -> dict[str, float]:
    """A plan as Optuna's parameters: each task's share of the batches; with several phases, of each phase."""
    out: dict[str, float] = {}
    for number, phase in enumerate(plan.phases, start=1):
        total = sum(phase.shares.values())
        prefix = f"phase {number}: " if len(plan.phases) > 1 else ""
        out |= {f"{prefix}{name}": share / total for name, share in phase.shares.items()}
    return out


def check_storage(url: str) -> None:
    """Refuse, before any work, what is no database URL, or one whose driver is not installed."""
    from sqlalchemy import create_engine

    try:
        create_engine(database_url(url))
    except Exception as error:  # SQLAlchemy and the drivers have errors of their own, of many kinds
        raise bad_storage(url, error) from None


@contextmanager
def speaking_for_database(url: str) -> Iterator[None]:
    """Around a search with a database: what it says when it is gone becomes one sentence."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        words = (str(error.__cause__ or error).splitlines() or [type(error).__name__])[0]
        raise WorldError(
            f"storage {without_password(url)!r} does not answer any more: {words}. What has ended is kept; the same command "
            "goes on"
        ) from error


def _storage(where: Path | str) -> BaseStorage:
    if isinstance(where, str):
        return _database(where)
    path = Path(where)
    path.parent.mkdir(parents=True, exist_ok=True)
    _repair(path)
    try:
        return JournalStorage(_backend(path))
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError):  # a line that Optuna did not write
        os.replace(path, path.with_name(f"{path.name}.damaged"))
        return JournalStorage(_backend(path))


def _database(url: str) -> BaseStorage:
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    for attempt in range(TABLE_ATTEMPTS):
        try:
            # A connection may be hours old when a trial ends: it is tried before it is used.
            return optuna.storages.RDBStorage(database_url(url), engine_kwargs={"pool_pre_ping": True})
        except (IntegrityError, ProgrammingError) as error:  # another process makes the tables at the same moment
            if attempt == TABLE_ATTEMPTS - 1:
                raise bad_storage(url, error) from None
            time.sleep(0.2 * (attempt + 1))
        except Exception as error:  # SQLAlchemy and the drivers have errors of their own, of many kinds
            raise bad_storage(url, error) from None
    raise AssertionError("unreachable")


def _backend(path: Path) -> JournalFileBackend:
    return JournalFileBackend(str(path), _Lock(path))  # type: ignore[arg-type]  # Optuna hides the base class of its locks


def _repair(path: Path) -> None:
    """Cut off a last line that a killed process has not finished: Optuna would write on in the middle of it."""
    if path.is_symlink():
        raise SettingsError(f"{path}: is a symbolic link; the ledger of a run is a plain file. Remove the link")
    if path.is_file():
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            write_atomically(path, data[: data.rfind(b"\n") + 1])


class _Lock:
    """A lock as Optuna wants it. Its own ones are files that a killed process leaves behind, and then everybody waits."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        self._held: AbstractContextManager[None] | None = None

    def acquire(self) -> bool:
        self._held = locked(self._path)
        self._held.__enter__()
        return True

    def release(self) -> None:
        if self._held is not None:
            self._held.__exit__(None, None, None)
            self._held = None


def _dead(owner: str) -> bool:
    """Whether the process that began a trial was on this machine and is gone."""
    host, _, number = owner.rpartition(":")
    if host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
