"""Standings from single judgements, and several records of them as one: a run grows by methods, seeds and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

from sidequest.errors import RunMismatch
from sidequest.files import digest
from sidequest.locks import locked
from sidequest.numerics.statistics import Mean, mean_interval
from sidequest.records.standings import Judged, Standing, StandingsRecord, TableFacts
from sidequest.runs.truth import LARGEST_P, TruthTable

LOCK = ".standings.lock"


def facts_of(table: TruthTable) -> TableFacts:
    about = table.model_dump(mode="json", exclude={"command", "suite"})  # neither says what is worth what
    gap = table.gap if table.something_helps else nan
    return TableFacts(subsets=len(table.subsets), gap=gap, content=digest(about))


def is_noise(table: TruthTable) -> bool:
    return table.signal.p_value > LARGEST_P


def standing(truth: str, method: str, facts: TableFacts, judged: Sequence[Judged], failed: str = "") -> Standing:
    """judged: the method on this table, a seed each."""
    if not judged:
        unknown = dict.fromkeys(("regret", "low", "high", "relative", "rank", "x"), nan)
        return Standing(truth=truth, method=method, subsets=facts.subsets, seeds=0, failed=failed, **unknown)
    regret, count = mean_interval([each.regret for each in judged]), len(judged)
    gains = [each.gained for each in judged if math.isfinite(each.gained)]
    gained = mean_interval(gains) if gains else Mean(nan, nan, nan, nan, 0)
    delivered = _over(gained, facts.gap)
    return Standing(
        truth=truth,
        method=method,
        regret=regret.mean,
        low=regret.low,
        high=regret.high,
        relative=regret.mean / facts.gap,
        rank=sum(each.rank for each in judged) / count,
        subsets=facts.subsets,
        x=sum(each.x for each in judged) / count,
        seeds=count,
        failed=failed,
        delivered=delivered.mean,
        delivered_low=delivered.low,
        delivered_high=delivered.high,
        gained=gained.mean,
        gained_low=gained.low,
        gained_high=gained.high,
        trained=len(gains),
        chosen=sum(bool(each.auxiliaries) for each in judged) / count,
    )


def _over(gain: Mean, gap: float) -> Mean:
    return replace(gain, mean=gain.mean / gap, low=gain.low / gap, high=gain.high / gap)


def grown(directory: Path | None, records: Sequence[StandingsRecord]) -> StandingsRecord:
    """What a directory holds and these records, joined and written there; two processes may do so at a time. None: joined."""
    if directory is None:
        return joined(records)
    with locked(directory / LOCK):
        before = StandingsRecord.read_if_there(directory)
        both = joined([*([] if before is None else [before]), *records])
        if records:
            both.write(directory)
    return both


def joined(records: Sequence[StandingsRecord]) -> StandingsRecord:
    """All that was judged, each method, table and seed once: the later record counts. A recipe that one of them has trained
    stays trained. Tables of one name must be the same."""
    tables: dict[str, TableFacts] = {}
    judged: dict[tuple[str, str, int], Judged] = {}
    methods: dict[tuple[str, str], str] = {}  # why it failed, if it did
    for record in records:
        for name, facts in record.tables.items():
            tables[name] = _same(name, tables[name], facts) if name in tables else facts
        for one in record.judged:
            key = (one.truth, one.method, one.seed)
            judged[key] = _with_training(one, judged.get(key))
        for row in record.standings:
            methods[row.truth, row.method] = row.failed
    by_method: dict[tuple[str, str], list[Judged]] = {key: [] for key in methods}
    for one in judged.values():
        by_method.setdefault((one.truth, one.method), []).append(one)
    return StandingsRecord(
        standings=[
            standing(truth, method, tables[truth], by_method[truth, method], methods.get((truth, method), ""))
            for truth in tables
            for named, method in by_method
            if named == truth
        ],
        judged=list(judged.values()),
        tables=tables,
        noise=_unique(name for record in records for name in record.noise),
    )


def _same(name: str, first: TableFacts, second: TableFacts) -> TableFacts:
    """What is known of one table by two records."""
    if first.content and second.content and first.content != second.content:
        raise RunMismatch(f"{name}: two different truth tables have this name; standings of them don't go together")
    known, other = (second, first) if second.content else (first, second)
    if known.subsets != other.subsets or not (
        math.isnan(other.gap) or math.isclose(known.gap, other.gap, rel_tol=1e-6)
    ):
        raise RunMismatch(f"{name}: one file judges by a gap of {known.gap:.6g}, another by one of {other.gap:.6g}")
    if not known.content and math.isnan(known.gap):  # two files of version 1, which did not always say it
        return other
    return known


def _with_training(one: Judged, before: Judged | None) -> Judged:
    """What was judged again without training keeps the scores of the same choice."""
    if before is None or math.isfinite(one.score) or one.auxiliaries != before.auxiliaries or one.x != before.x:
        return one
    return one.model_copy(update={"score": before.score, "alone": before.alone})


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
