"""Experiment trackers: what a run shows round by round, its scores and costs, to TensorBoard, MLflow or Weights & Biases.

They are extras, used directly, and off by default: nothing is imported then. A tracker only listens. It has no part in what a
run decides, and one that fails in the middle of a run is given up with a message.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sidequest.errors import SettingsError, unknown

Log = Callable[[Mapping[str, Any], int], None]  # (values, nested or not; step)
PROJECT = "sidequest"


class Tracker(Protocol):
    """What is asked of a tracker; every call may fail."""

    def settings(self, values: Mapping[str, Any]) -> None: ...

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def finish(self) -> None: ...


class _TensorBoard:
    """Event files in the run's directory."""

    def __init__(self, directory: Path, name: str) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(directory / "tensorboard" / name))

    def settings(self, values: Mapping[str, Any]) -> None:
        lines = [f"| {key} | {value} |" for key, value in values.items()]
        self._writer.add_text("settings", "\n".join(["| setting | value |", "| --- | --- |", *lines]))

    def log(self, values: Mapping[str, float], step: int) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)
        self._writer.flush()

    def finish(self) -> None:
        self._writer.close()


class _MLflow:
    """A run where MLflow's own settings say (MLFLOW_TRACKING_URI)."""

    def __init__(self, directory: Path, name: str) -> None:
        from mlflow import MlflowClient

        self._client: Any = MlflowClient()
        experiment = self._client.get_experiment_by_name(PROJECT)
        number = self._client.create_experiment(PROJECT) if experiment is None else experiment.experiment_id
        self._run = self._client.create_run(number, run_name=f"{directory.name} {name}").info.run_id

    def settings(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            self._client.log_param(self._run, _mlflow_name(key), str(value)[:500])

    def log(self, values: Mapping[str, float], step: int) -> None:
        for key, value in values.items():
            self._client.log_metric(self._run, _mlflow_name(key), value, step=step)

    def finish(self) -> None:
        self._client.set_terminated(self._run)


class _Wandb:
    """A run of Weights & Biases, in its own files below the run's directory; WANDB_MODE=offline sends nothing anywhere."""

    def __init__(self, directory: Path, name: str) -> None:
        import wandb

        directory.mkdir(
            parents=True, exist_ok=True
        )  # wandb takes the temporary directory instead of one that is missing
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=f"{directory.name} {name}",
            dir=str(directory),
            reinit="create_new",
            settings=wandb.Settings(console="off"),
        )
        # Its own steps only rise, but cells of a comparison each begin at their first: the step is a number like the others.
        self._run.define_metric("*", step_metric="step")

    def settings(self, values: Mapping[str, Any]) -> None:
        self._run.config.update(dict(values), allow_val_change=True)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._run.log({**values, "step": step})

    def finish(self) -> None:
        self._run.finish()


KINDS: dict[str, Callable[[Path, str], Tracker]] = {"tensorboard": _TensorBoard, "mlflow": _MLflow, "wandb": _Wandb}


def check_trackers(kinds: Sequence[str]) -> None:
    """Refuse unknown trackers, and those whose packages are missing, before any work starts."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("tracker", kind, KINDS)
        if importlib.util.find_spec(kind) is None:
            raise SettingsError(f"--track {kind}: needs {kind}, not installed here; pip install 'sidequest[{kind}]'")


@contextmanager
def tracking(kinds: Sequence[str], directory: Path, name: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    """A function that logs numbers at a step, to every tracker named; without any, one that does nothing.

    directory: of the run; TensorBoard's files go into its `tensorboard/NAME`, those of Weights & Biases into its `wandb`.
    settings: nested plain data, logged once as hyper-parameters.
    """
    if not kinds:
        yield _nowhere
        return
    check_trackers(kinds)
    trackers: dict[str, Tracker] = {}

    def attempt(kind: str, what: Callable[[], object]) -> None:
        try:
            what()
        except (
            Exception
        ) as error:  # a full disk, a server that is gone, a key that is missing: the run's results matter more
            trackers.pop(kind, None)
            print(f"tracking with {kind} stopped: {type(error).__name__}: {error}", file=sys.stderr)

    for kind in dict.fromkeys(kinds):
        attempt(kind, lambda kind=kind: trackers.__setitem__(kind, KINDS[kind](directory, name)))  # type: ignore[misc]
    plain = {key: _parameter(value) for key, value in flat(settings, ".").items()}

    def tell(what: Callable[[Tracker], None]) -> None:
        for kind, tracker in list(trackers.items()):
            attempt(kind, lambda tracker=tracker: what(tracker))  # type: ignore[misc]

    def log(values: Mapping[str, Any], step: int) -> None:
        shown = numbers(values)
        if shown:
            tell(lambda tracker: tracker.log(shown, step))

    tell(lambda tracker: tracker.settings(plain))
    try:
        yield log
    finally:
        tell(lambda tracker: tracker.finish())


def _nowhere(values: Mapping[str, Any], step: int) -> None:
    """Where numbers go without a tracker."""


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers in nested data, by their path: `{"policy": {"a": 0.5}}` → `{"policy/a": 0.5}`."""
    return {
        _mlflow_name(key): float(value)
        for key, value in flat(values, "/").items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _mlflow_name(name: str) -> str:
    """Signs that MLflow does not take in names become `_`."""
    return re.sub(r"[^\w\-. /:]", "_", name)


def flat(values: Mapping[str, Any], separator: str, prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{prefix}{key}"
        out |= flat(value, separator, path + separator) if isinstance(value, Mapping) else {path: value}
    return out


def _parameter(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else json.dumps(value)


def log_outcome(log: Log, directory: Path, method: str, seed: int, values: Mapping[str, Any]) -> None:
    """A cell of a comparison, by its directory: its journal round by round, and its numbers at the step of its seed."""
    if log is _nowhere:
        return
    journal = directory / "journal.jsonl"
    if journal.is_file():
        for line in journal.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            log({f"{method}/seed-{seed}": entry}, int(entry.pop("call")))
    log({method: values}, seed)
