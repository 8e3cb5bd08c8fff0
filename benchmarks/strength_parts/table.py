"""From cells to the table: means, deviations, and a verdict per primary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from strength_parts.journal import Cell

Scores = Mapping[int, float]  # by seed
FINAL_PREFIX = "final-"  # of a kind that learns from *select*, too


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
    """sidequest's kind that is best on *select* against the alternative that is best on *report*: the comparison is hard on
    sidequest twice, because the alternative is chosen by the score that judges it."""

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


def on_select(found: Mapping[str, Entry], name: str) -> float:
    """The mean on *select* that chooses among kinds; of a final model, which has learned from these rows, that of the training
    without them."""
    entry = found.get(name.removeprefix(FINAL_PREFIX))
    return -math.inf if entry is None else entry.select


def best_kind(found: Mapping[str, Entry], own: Sequence[str]) -> Entry | None:
    """The kind with the best mean on *select*; *report* has no part in it. A tie goes to the one listed first."""
    kinds = complete(found[name] for name in own if name in found)
    return max(kinds, key=lambda entry: on_select(found, entry.contender), default=None)


def without_final_model(table: Table, own: Sequence[str], final: Sequence[str]) -> dict[str, str]:
    """The kind that is best on *select*, by primary, where its final model is missing and that of another kind stands for it."""
    out = {}
    for primary, found in table.items():
        best, finals = best_kind(found, own), complete(found[name] for name in final if name in found)
        if best is not None and finals and FINAL_PREFIX + best.contender not in [each.contender for each in finals]:
            out[primary] = best.contender
    return out


def verdicts(table: Table, own: Sequence[str], others: Sequence[str]) -> list[Verdict]:
    out = []
    for primary, found in table.items():
        ours = best_kind(found, own)
        rivals = complete(found[name] for name in others if name in found)
        if ours is None or not rivals:
            continue
        best = max(rivals, key=lambda entry: entry.mean)
        out.append(Verdict(primary, ours, best, *paired(ours.scores, best.scores)))
    return out


def overall(table: Table, own: Sequence[str], others: Sequence[str]) -> dict[str, float]:
    """Means over the primaries that have both: sidequest's chosen kind, the mean alternative, and the best alternative."""
    rows = []
    for found in table.values():
        ours, rivals = best_kind(found, own), complete(found[name] for name in others if name in found)
        if ours is not None and rivals:
            means = [rival.mean for rival in rivals]
            rows.append((ours.mean, statistics.fmean(means), max(means)))
    if not rows:
        return {}
    names = ("sidequest", "mean of the alternatives", "best alternative")
    return dict(zip(names, map(statistics.fmean, zip(*rows, strict=True)), strict=True))


def markdown(
    table: Table, own: Sequence[str], tuned: Sequence[str], final: Sequence[str], others: Sequence[str]
) -> str:
    """Scores, verdicts with the defaults, with tuning and of final models that learn from all labelled rows, seconds."""
    columns = [name for name in (*own, *tuned, *final, *others) if any(name in found for found in table.values())]
    lines = [_line(["primary", "labelled / report", "metric", *columns]), _rule(3 + len(columns))]
    for primary, found in table.items():
        cell = next(iter(next(iter(found.values())).cells.values()))
        rows = f"{cell.rows['train']} + {cell.rows['select']} / {cell.rows['report']}"
        lines.append(_line([primary, rows, cell.metric, *(_score(found.get(name)) for name in columns)]))
    for title, kinds, new in (
        ("sidequest", own, own),
        ("sidequest, tuned", [*own, *tuned], tuned),
        ("sidequest, from all labelled rows", final, final),
    ):
        if new == own or set(new) & set(columns):
            lines += ["", *_verdict_lines(table, title, kinds, others)]
    if missing := without_final_model(table, own, final):
        named = ", ".join(f"{primary} (`{kind}`)" for primary, kind in missing.items())
        lines += [f"Here the kind that is best on *select* has no final model, and another stands for it: {named}."]
    lines += ["", _line(["seconds per cell", *columns]), _rule(1 + len(columns))]
    for primary, found in table.items():
        seconds = [f"{found[name].seconds:.1f}" if name in found else "" for name in columns]
        lines.append(_line([primary, *seconds]))
    return "\n".join(lines) + "\n"


def _verdict_lines(table: Table, title: str, kinds: Sequence[str], others: Sequence[str]) -> list[str]:
    lines = [_line(["primary", "kind", title, "best alternative", "its score", "difference", "verdict"]), _rule(7)]
    for each in verdicts(table, kinds, others):
        difference = f"{each.difference:+.3f} ± {each.standard_error:.3f}"
        verdict = "**below**" if each.below else "not below"
        scores = [_score(each.ours), each.best.contender, _score(each.best)]
        lines.append(_line([each.primary, each.ours.contender, *scores, difference, verdict]))
    means = [f"{name} {value:.3f}" for name, value in overall(table, kinds, others).items()]
    return [*lines, "", f"Mean over the primaries: {', '.join(means)}."]


def as_json(
    table: Table, own: Sequence[str], tuned: Sequence[str], final: Sequence[str], others: Sequence[str]
) -> dict[str, Any]:
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
        "verdicts": _verdict_json(table, own, others),
        "tuned_verdicts": _verdict_json(table, [*own, *tuned], others),
        "final_verdicts": _verdict_json(table, final, others),
        "overall": overall(table, own, others),
        "cells": [asdict(cell) for found in table.values() for each in found.values() for cell in each.cells.values()],
    }


def _verdict_json(table: Table, kinds: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "primary": each.primary,
            "kind": each.ours.contender,
            "best_alternative": each.best.contender,
            "difference": each.difference,
            "standard_error": _finite(each.standard_error),
            "below": each.below,
        }
        for each in verdicts(table, kinds, others)
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
