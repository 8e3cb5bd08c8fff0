"""One training in several processes (torchrun): which of them this is. All run the same program; only the first one writes."""

from __future__ import annotations

import os

LAUNCHED = "TORCHELASTIC_RUN_ID"  # torchrun sets it, and the numbers below


def size() -> int:
    """How many processes train together; 1 outside torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1")) if os.environ.get(LAUNCHED) else 1


def rank() -> int:
    return int(os.environ.get("RANK", "0")) if size() > 1 else 0


def local_rank() -> int:
    """The number on this machine, by which a GPU is chosen."""
    return int(os.environ.get("LOCAL_RANK", "0")) if size() > 1 else 0


def is_first() -> bool:
    return rank() == 0
