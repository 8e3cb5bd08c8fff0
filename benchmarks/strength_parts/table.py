"""From cells to the table: means, deviations, and a verdict per primary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from strength_parts.journal import Cell

Scores = Mapping[int, float]  # by seed
Choose = Literal["advised", "select"]


@dataclass(frozen=True)
class Entry:
    """All seeds of one contender on one primary."""

    contender: str
    cells: Mapping[int, Cell]

    @property
    def scores(self) -> dict[int, float]:
        return {seed: cell.score for seed, cell in sorted(self.cells.items())}

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores.values())

    @property
    def deviation(self) -> float:
        return statistics.stdev(self.scores.values()) if len(self.cells) > 1 else math.nan

    @property
    def seconds(self) -> float:
        return statistics.fmean(cell.seconds for cell in self.cells.values())

    @property
    def select(self) -> float:
        """The mean on *select*; of cells that do not know it, below everything."""
        known = [cell.select for cell in self.cells.values() if cell.select is not None]
        return statistics.fmean(known) if known else -math.inf


@dataclass(frozen=True)
class Verdict:
    """One kind of sidequest's, chosen without a look at *report*, against the alternative that is best on *report*: this is hard
    on sidequest, because the alternative is chosen by the score that judges it."""

    primary: str
    ours: Entry
    best: Entry
    difference: float
    standard_error: float

    @property
    def below(self) -> bool:
        """By more than one standard error. With one seed there is none, and any difference counts."""
        error = 0.0 if math.isnan(self.standard_error) else self.standard_error
        return self.difference < -error


Table = Mapping[str, Mapping[str, Entry]]  # primary → contender → entry


def entries(cells: Iterable[Cell]) -> dict[str, dict[str, Entry]]:
    grouped: dict[str, dict[str, dict[int, Cell]]] = {}
    for cell in cells:
        grouped.setdefault(cell.primary, {}).setdefault(cell.contender, {})[cell.seed] = cell
    return {p: {c: Entry(c, by_seed) for c, by_seed in inner.items()} for p, inner in grouped.items()}


def paired(one: Scores, other: Scores) -> tuple[float, float]:
    """Mean difference over the seeds that both have, and its standard error (NaN with a single seed)."""
    differences = [one[seed] - other[seed] for seed in sorted(set(one) & set(other))]
    if not differences:
        return math.nan, math.nan
    error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else math.nan
    return statistics.fmean(differences), error


def complete(rivals: Iterable[Entry]) -> list[Entry]:
    """Those with as many seeds as any: a run that is still under way must not be judged by its first seed."""
    every = list(rivals)
    most = max((len(entry.cells) for entry in every), default=0)
    return [entry for entry in every if len(entry.cells) == most]


def best_kind(found: Mapping[str, Entry], own: Sequence[str], choose: Choose = "advised") -> Entry | None:
    """advised: the first of `own` that there is, whose order is the advice of docs/models.md. select: the one with the best mean
    on *select*; a tie goes to the one listed first. *Report* has no part in either."""
    kinds = [found[name] for name in own if name in found]
    if choose == "advised":
        return kinds[0] if kinds else None
    return max(complete(kinds), key=lambda entry: entry.select, default=None)


def verdicts(table: Table, own: Sequence[str], others: Sequence[str], choose: Choose = "advised") -> list[Verdict]:
    out = []
    for primary, found in table.items():
        ours = best_kind(found, own, choose)
        rivals = complete(found[name] for name in others if name in found)
        if ours is None or not rivals:
            continue
        best = max(rivals, key=lambda entry: entry.mean)
        out.append(Verdict(primary, ours, best, *paired(ours.scores, best.scores)))
    return out


def overall(table: Table, own: Sequence[str], others: Sequence[str], choose: Choose = "advised") -> dict[str, float]:
    """Means over the primaries that have both: sidequest's chosen kind, the mean alternative, and the best alternative."""
    rows = []
    for found in table.values():
        ours, rivals = best_kind(found, own, choose), complete(found[name] for name in others if name in found)
        if ours is not None and rivals:
            means = [rival.mean for rival in rivals]
            rows.append((ours.mean, statistics.fmean(means), max(means)))
    if not rows:
        return {}
    names = ("sidequest", "mean of the alternatives", "best alternative")
    return dict(zip(names, map(statistics.fmean, zip(*rows, strict=True)), strict=True))


@dataclass(frozen=True)
class Section:
    """A table of verdicts: who is judged (names in the order of the advice), by whom, and how one kind is chosen."""

    title: str
    own: Sequence[str]
    others: Sequence[str]
    choose: Choose = "advised"


@dataclass(frozen=True)
class Kinds:
    """Names of contenders by how they learn. sidequest's, in the order of the advice: from *train* with the defaults or tuned,
    and from all labelled rows likewise. The alternatives: from all labelled rows, and from *train* alone."""

    own: Sequence[str]
    tuned: Sequence[str]
    final: Sequence[str]
    final_tuned: Sequence[str]
    others: Sequence[str]
    train_only: Sequence[str]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.own, *self.tuned, *self.final, *self.final_tuned, *self.others, *self.train_only)

    def sections(self) -> dict[str, Section]:
        """By the key of the numbers' file. In the first four both sides learn from the same rows."""
        more = "alternatives from all labelled rows"
        return {
            "verdicts": Section("sidequest, from *train*", self.own, self.train_only),
            "tuned_verdicts": Section("sidequest, tuned, from *train*", self.tuned, self.train_only),
            "final_verdicts": Section("sidequest, from all labelled rows", self.final, self.others),
            "final_tuned_verdicts": Section("sidequest, tuned, from all labelled rows", self.final_tuned, self.others),
            "more_rows_verdicts": Section(f"sidequest, from *train*; {more}", self.own, self.others),
            "select_verdicts": Section(
                f"sidequest, from *train*, the kind chosen on *select*; {more}", self.own, self.others, "select"
            ),
        }


def markdown(table: Table, kinds: Kinds) -> str:
    """Scores, a table of verdicts for each way to learn, seconds."""
    columns = [name for name in kinds.columns if any(name in found for found in table.values())]
    lines = [_line(["primary", "labelled / report", "metric", *columns]), _rule(3 + len(columns))]
    for primary, found in table.items():
        cell = next(iter(next(iter(found.values())).cells.values()))
        rows = f"{cell.rows['train']} + {cell.rows['select']} / {cell.rows['report']}"
        lines.append(_line([primary, rows, cell.metric, *(_score(found.get(name)) for name in columns)]))
    for section in kinds.sections().values():
        judged = verdicts(table, section.own, section.others, section.choose)
        if judged:
            means = overall(table, section.own, section.others, section.choose)
            lines += ["", *_verdict_lines(section.title, judged), "", _means(means)]
    lines += ["", _line(["seconds per cell", *columns]), _rule(1 + len(columns))]
    for primary, found in table.items():
        seconds = [f"{found[name].seconds:.1f}" if name in found else "" for name in columns]
        lines.append(_line([primary, *seconds]))
    return "\n".join(lines) + "\n"


def _verdict_lines(title: str, judged: Sequence[Verdict]) -> list[str]:
    lines = [_line(["primary", "kind", title, "best alternative", "its score", "difference", "verdict"]), _rule(7)]
    for each in judged:
        difference = f"{each.difference:+.3f} ± {each.standard_error:.3f}"
        verdict = "**below**" if each.below else "not below"
        scores = [_score(each.ours), each.best.contender, _score(each.best)]
        lines.append(_line([each.primary, each.ours.contender, *scores, difference, verdict]))
    return lines


def _means(means: Mapping[str, float]) -> str:
    return f"Mean over these primaries: {', '.join(f'{name} {value:.3f}' for name, value in means.items())}."


def as_json(table: Table, kinds: Kinds) -> dict[str, Any]:
    return {
        "scores": {
            primary: {
                name: {
                    "scores": entry.scores,
                    "mean": entry.mean,
                    "deviation": _finite(entry.deviation),
                    "seconds": entry.seconds,
                }
                for name, entry in found.items()
            }
            for primary, found in table.items()
        },
        **{
            key: _verdict_json(verdicts(table, section.own, section.others, section.choose))
            for key, section in kinds.sections().items()
        },
        "overall": overall(table, kinds.own, kinds.train_only),
        "cells": [asdict(cell) for found in table.values() for each in found.values() for cell in each.cells.values()],
    }


def _verdict_json(judged: Sequence[Verdict]) -> list[dict[str, Any]]:
    return [
        {
            "primary": each.primary,
            "kind": each.ours.contender,
            "best_alternative": each.best.contender,
            "difference": each.difference,
            "standard_error": _finite(each.standard_error),
            "below": each.below,
        }
        for each in judged
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _score(entry: Entry | None) -> str:
    if entry is None:
        return ""
    if len(entry.cells) == 1:
        return f"{entry.mean:.3f}"
    return f"{entry.mean:.3f} ± {entry.deviation:.3f}"


def _line(parts: Sequence[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _rule(columns: int) -> str:
    return _line(["---"] * columns)
