"""Run a share of the kept trainings again and compare: does what is kept still come out on this machine, with this code?

`--recheck 0.02` asks for it. Which ones are run again is drawn again for every command; the draw is in the environment, so worker
processes make the same one.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import Any

from sidequest.errors import SettingsError, WorldError

VARIABLE = "SIDEQUEST_RECHECK"  # share:draw

_confirmed: set[str] = set()  # by this process


def ask_for(share: float | None) -> float | None:
    """Let this process and its workers run this share again."""
    if share is not None:
        if not 0 <= share <= 1:
            raise SettingsError(f"--recheck: a share from 0 to 1, found {share:g}")
        os.environ[VARIABLE] = f"{share!r}:{secrets.token_hex(8)}"
    return share


def is_due(key: str) -> bool:
    """Whether the training with this key is to be run again; once in a process."""
    given = os.environ.get(VARIABLE, "")
    share, _, draw = given.partition(":")
    if not share or key in _confirmed:
        return False
    drawn = int.from_bytes(hashlib.sha256(f"{draw}{key}".encode()).digest()[:8], "big") / 2**64
    try:
        if 0 <= float(share) <= 1:
            return drawn < float(share)
    except ValueError:
        pass
    raise SettingsError(f"{VARIABLE}: `--recheck` sets it, to a share from 0 to 1; found {given!r}")


def confirm(key: str, kept: Any, now: Any, where: object) -> None:
    """Compare what was kept with what came out now. where: the kept entry."""
    _confirmed.add(key)
    if kept != now:
        raise WorldError(
            f"{where}: a training that was run again came out otherwise: kept {_short(kept)}, now {_short(now)}. Was it kept by "
            "another machine or other versions? Delete the cache, or do not trust results that rest on it"
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
