"""Experiment trackers: what a run shows round by round, its scores and costs, to TensorBoard or MLflow.

They come through accelerate's trackers, as extras, and are off by default: nothing is imported then. A tracker only listens.
It has no part in what a run decides, and one that fails in the middle of a run is given up with a message.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError, unknown

KINDS = ("tensorboard", "mlflow")

Log = Callable[[Mapping[str, Any], int], None]  # (values, nested or not; step)


def check_trackers(kinds: Sequence[str]) -> None:
    """Refuse unknown trackers, and those whose packages are missing, before any work starts."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("tracker", kind, KINDS)
        missing = [name for name in ("accelerate", kind) if importlib.util.find_spec(name) is None]
        if missing:
            raise SettingsError(
                f"--track {kind}: needs {' and '.join(missing)}, not installed here; pip install 'sidequest[{kind}]'"
            )


@contextmanager
def tracking(kinds: Sequence[str], directory: Path, name: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    """A function that logs numbers at a step, to every tracker named; without any, one that does nothing.

    directory: TensorBoard's files go into its `tensorboard/NAME`; MLflow's where its own settings say (MLFLOW_TRACKING_URI).
    settings: nested plain data, logged once as hyper-parameters.
    """
    if not kinds:
        yield _nowhere
        return
    check_trackers(kinds)
    trackers = [_start(kind, directory, name) for kind in dict.fromkeys(kinds)]
    plain = {key: _parameter(value) for key, value in flat(settings, ".").items()}

    def tell(what: Callable[[Any], None]) -> None:
        for tracker in list(trackers):
            try:
                what(tracker)
            except Exception as error:  # a full disk or a server that is gone: the run's own results matter more
                trackers.remove(tracker)
                print(f"tracking with {tracker.name} stopped: {type(error).__name__}: {error}", file=sys.stderr)

    def log(values: Mapping[str, Any], step: int) -> None:
        shown = numbers(values)
        if shown:
            tell(lambda tracker: tracker.log(shown, step=step))

    tell(lambda tracker: tracker.store_init_configuration(plain))
    try:
        yield log
    finally:
        tell(lambda tracker: tracker.finish())


def _nowhere(values: Mapping[str, Any], step: int) -> None:
    """Where numbers go without a tracker."""


def _start(kind: str, directory: Path, name: str) -> Any:
    from accelerate import PartialState
    from accelerate.tracking import MLflowTracker, TensorBoardTracker

    PartialState(cpu=True)  # accelerate's trackers ask it which process they are in
    if kind == "tensorboard":
        tracker: Any = TensorBoardTracker(name, directory / "tensorboard")
    else:
        tracker = MLflowTracker(experiment_name="sidequest", run_name=f"{directory.name} {name}")
    tracker.start()
    return tracker


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers in nested data, by their path: `{"policy": {"a": 0.5}}` → `{"policy/a": 0.5}`.

    Signs that MLflow does not take in names become `_`.
    """
    return {
        re.sub(r"[^\w\-. /:]", "_", key): float(value)
        for key, value in flat(values, "/").items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


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
