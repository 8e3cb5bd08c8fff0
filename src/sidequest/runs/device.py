"""The device that was asked for, before any work: where jobs fail by themselves, one that is not there fails each of them."""

from __future__ import annotations

import os

from sidequest.search.executors import Executor
from sidequest.search.processes import DEVICE


def check_device(executor: Executor) -> None:
    """Refuse a device that this machine does not have. Of a cluster's machines nothing is known here."""
    if os.environ.get(DEVICE, "cpu") in ("", "cpu") or (executor.kind == "ray" and executor.address != "local"):
        return
    from sidequest.models.devices import chosen_device  # imports torch

    chosen_device()
