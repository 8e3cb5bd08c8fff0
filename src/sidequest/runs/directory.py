"""The run directory: `run.json`, `journal.jsonl`, `checkpoints/`, `recipe.json`, `selection.json`; of a stopped selection
`so-far/`; of `train` `model/` and `scores.json`, of `compare` `outcome.json` and `predictions.npz`; `report.html`."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from sidequest.errors import RunMismatch, SettingsError
from sidequest.records.runs import RunRecord
from sidequest.runs.holding import LOCK
from sidequest.runs.setup import Setup

SO_FAR = "so-far"  # the recipe of a selection that was stopped, until it has gone on to its end
PACKAGES = ("sidequest", "torch", "transformers", "numpy", "scikit-learn", "scipy")


def open_run(directory: Path, setup: Setup, method: str, settings: dict[str, Any], seed: int) -> bool:
    """Begin a run, or find that it was started with the same settings and data; True if it continues.

    Another run in the same directory is refused with the difference: nothing is overwritten.
    """
    facts = setup.provenance(method, settings, seed)
    run = RunRecord(
        method=method,
        facts=facts,
        identity=setup.identity(method, settings, seed),
        suite_path=str(setup.suite.path.resolve()) if setup.suite.path else setup.suite.name,
        versions=versions(),
    )
    if (before := RunRecord.read_if_there(directory / RunRecord.FILE)) is not None:
        if before.identity != run.identity:
            raise RunMismatch(
                f"{directory}: holds another run; give another -o, or delete it:\n"
                + "\n".join(differences({"method": before.method, **before.facts}, {"method": method, **facts}))
            )
        return True
    run.write(directory)
    return False


def forget_run_without_work(directory: Path) -> None:
    """A run that was refused before its first round leaves the directory free for the next one."""
    if {path.name for path in directory.iterdir()} <= {"run.json", LOCK}:
        (directory / "run.json").unlink(missing_ok=True)


def differences(before: Any, now: Any, name: str = "") -> list[str]:
    """Lines that say where two nested plain values differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        lines = []
        for key in sorted({*before, *now}):
            lines += differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
        return lines
    if before == now:
        return []
    there, here = ((f"{value:.4g}" if isinstance(value, float) else repr(value)) for value in (before, now))
    return [f"  {name}: there {before!r}, now {now!r}" if there == here else f"  {name}: there {there}, now {here}"]


def read_run(directory: Path) -> RunRecord:
    run = RunRecord.read_if_there(directory / RunRecord.FILE)
    if run is None:
        raise SettingsError(f"{directory}: not a run directory (it has no run.json); `sidequest select` makes one")
    return run


@functools.cache
def versions() -> dict[str, str]:
    """Of the packages that decide what a run gives, and of Python."""
    return {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
