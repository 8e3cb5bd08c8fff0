"""Carving splits and samples: seeded, stratified, and a function of the task alone.

Every draw depends on (suite seed, task name, purpose) and on the rows; never on the other tasks of a suite.
"""

from __future__ import annotations

import hashlib

import numpy as np

from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Objective

SELECT_SHARE, SELECT_ROWS = 0.1, 100
REPORT_SHARE = 0.2
QUANTILES = 10  # strata of a regression target


def generator(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that are a function of a seed and names, equal in every process."""
    text = "\0".join((str(seed), *names))
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little"))


def select_rows(n: int) -> int:
    """How many of `n` train rows *select* takes: 10 %, at least 100 rows or a quarter, whichever is smaller."""
    return max(round(SELECT_SHARE * n), min(SELECT_ROWS, n // 4))


def report_rows(n: int) -> int:
    """How many of `n` train rows *report* takes where the primary has none: 20 %."""
    return round(REPORT_SHARE * n)


def strata(examples: Examples, objective: Objective) -> np.ndarray:
    """int64 [n]: the group of each row. Classes; of several labels the rarest, so that rare labels are shared out first (rows
    without a label are a group); tenths of a regression target; one group for tags and choices."""
    if objective is Objective.CLASSIFICATION:
        return np.asarray(examples.target, dtype=np.int64)
    if objective is Objective.MULTILABEL:
        labels = np.asarray(examples.target, dtype=bool)
        from_rare_to_frequent = np.argsort(labels.sum(axis=0), kind="stable")
        rarest = from_rare_to_frequent[labels[:, from_rare_to_frequent].argmax(axis=1)]
        return np.where(labels.any(axis=1), rarest, labels.shape[1])
    if objective is Objective.REGRESSION:
        target = np.asarray(examples.target, dtype=np.float64)
        edges = np.unique(np.quantile(target, np.linspace(0, 1, QUANTILES + 1)[1:-1]))
        return np.searchsorted(edges, target, side="right")
    return np.zeros(len(examples), dtype=np.int64)


def quotas(counts: np.ndarray, take: int) -> np.ndarray:
    """How many rows to take of groups with these counts, `take` in all: each as near to its exact share as it can be.

    Shares are rounded down and the rest goes to the largest remainders. A group gives its last row only when no other group
    can give one: a class must not vanish from train because *select* got it.
    """
    total = int(counts.sum())
    exact = counts * (take / total) if total else np.zeros(len(counts))
    quota = np.minimum(np.floor(exact + 1e-9).astype(np.int64), counts)
    while (short := take - int(quota.sum())) > 0:
        giving = np.flatnonzero(counts - quota > 1)
        if not len(giving):
            giving = np.flatnonzero(counts > quota)
        quota[giving[np.argsort(quota[giving] - exact[giving], kind="stable")][:short]] += 1
    return quota


def sample(groups: np.ndarray, take: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted positions of `take` rows, drawn without replacement and stratified by group."""
    if take >= len(groups):
        return np.arange(len(groups))
    _, member, counts = np.unique(groups, return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(member[shuffled], kind="stable")]
    begin = np.cumsum(counts) - counts
    chosen = [by_group[b : b + q] for b, q in zip(begin, quotas(counts, take), strict=True)]
    return np.sort(np.concatenate(chosen))


def carve(examples: Examples, take: int, objective: Objective, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """(the rows that stay, the `take` rows carved out), each in the order of the source and with its ids."""
    chosen = sample(strata(examples, objective), take, rng)
    stays = np.ones(len(examples), dtype=bool)
    stays[chosen] = False
    return examples.take(np.flatnonzero(stays)), examples.take(chosen)


def limit(examples: Examples, rows: int, objective: Objective, rng: np.random.Generator) -> Examples:
    """At most `rows` rows, a stratified sample in the order of the source; no class loses its last row before another."""
    if len(examples) <= rows:
        return examples
    return carve(examples, len(examples) - rows, objective, rng)[0]
