"""Run cases and count how they end."""

from __future__ import annotations

import random
import shutil
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzzing.targets import REFUSED, Silent, Target, targets
from tests.helpers.command_line import TooLong, time_limit
from tests.helpers.good_runs import Good

SECONDS = 20.0  # that a case may take on a busy machine; it takes milliseconds


@dataclass
class Counts:
    """accepted: what was broken into something that is still sound. failures: the first of each kind, with how to repeat it."""

    cases: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    hangs: int = 0
    silent: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        return self.tracebacks + self.hangs + self.silent

    def __str__(self) -> str:
        per = ", ".join(f"{name} {count}" for name, count in sorted(self.cases.items()))
        return (
            f"{self.cases.total()} cases ({per}): {self.refused} refused, {self.accepted} still sound, "
            f"{self.tracebacks} tracebacks, {self.hangs} hangs, {self.silent} silent"
        )


def fuzz(good: Good, place: Path, cases: int, seed: int = 0, first: int = 0, only: str = "") -> Counts:
    """Cases `first` to `first + cases` of every target, in proportion, or of one alone."""
    counts = Counts()
    every = targets(good)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (target, share) in every.items():
            if only in ("", name):
                for number in range(first, first + (cases if only else max(1, cases * share // 100))):
                    _one(counts, name, target, number, seed, place / "case")
    return counts


def _one(counts: Counts, name: str, target: Target, number: int, seed: int, place: Path) -> None:
    place.mkdir(parents=True)
    counts.cases[name] += 1
    try:
        with time_limit(SECONDS):
            target(random.Random(f"{seed} {name} {number}"), place)
        counts.accepted += 1
    except REFUSED as error:
        counts.refused += 1
        if not str(error).strip():
            _note(counts, name, number, seed, "a message without words")
            counts.silent += 1
    except Silent as error:
        counts.silent += 1
        _note(counts, name, number, seed, f"silent: {error}")
    except TooLong:
        counts.hangs += 1
        _note(counts, name, number, seed, traceback.format_exc())
    except Exception:
        counts.tracebacks += 1
        _note(counts, name, number, seed, traceback.format_exc())
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _note(counts: Counts, name: str, number: int, seed: int, words: str) -> None:
    kind = "\n".join(words.strip().splitlines()[-4:])
    again = f"python -m tests.fuzzing --seed {seed} --only {name!r} --first {number} --cases 1"
    counts.failures.setdefault(kind, f"{again}\n{words}")


def timed(good: Good, place: Path, cases: int, seed: int, first: int, only: str) -> tuple[Counts, float]:
    begun = time.perf_counter()
    return fuzz(good, place, cases, seed, first, only), time.perf_counter() - begun
