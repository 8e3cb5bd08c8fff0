"""Tables for people: results in the terminal, readable at a width of 80."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from sidequest.records.comparisons import Comparison, PrimariesTable
    from sidequest.records.standings import Standing
    from sidequest.runs.truth import TruthTable


def print_comparison(comparison: Comparison) -> None:
    """What each method scored, costs and is worth; what the verdicts rest on; what was chosen; then the verdict in words."""
    from rich.console import Console

    from sidequest.formatting import fixed
    from sidequest.records import verdicts

    console = Console()
    console.print(_scores(comparison))
    if any(row.against for row in comparison.rows):
        console.print(_differences(comparison))
    console.print(_chosen(comparison))
    likely = sorted(comparison.rows, key=lambda row: -row.probability_best)
    shares = [f"{row.method} {row.probability_best:.0%}" for row in likely if row.probability_best >= 0.05]
    if len(comparison.seeds) > 1 and shares:
        console.print(f"Best when the seeds are drawn again: {', '.join(shares)}.")
    if any(row.stopped for row in comparison.rows):
        console.print(f"! stopped by the budget of {comparison.budget:g}x, at least on some seeds.")
    if comparison.majority is not None:
        console.print(f"The best constant answer: {fixed(comparison.majority)}.")
    if comparison.tuning:
        console.print(f"Tuned first, for all methods alike: {comparison.tuning}.", markup=False, highlight=False)
    for note in verdicts.notes(comparison):
        console.print(note, markup=False, highlight=False)
    for warning in verdicts.warnings(comparison):
        console.print(warning, style="bold", markup=False, highlight=False)
    console.print(f"Verdict: {comparison.verdict}.", style="bold", markup=False, highlight=False)


def _scores(comparison: Comparison) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sidequest.formatting import between, fixed, half, seeds_of, signed

    title = f"{comparison.primary}: {comparison.metric} on report, {seeds_of(len(comparison.seeds))}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for column in ("cost", "mean ± 95 %", f"against {comparison.baseline}"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in comparison.rows:
        first = row.to_baseline
        table.add_row(
            row.method,
            row.verdict,
            f"{fixed(row.x, 1)}x" + ("!" if row.stopped else ""),
            fixed(row.mean) + half(row.mean, row.high),
            "" if first is None else f"{signed(first.mean)} {between(*first.interval)}".rstrip(),
        )
    return table


def _differences(comparison: Comparison) -> Table:
    """The interval over seeds beside the one that the table above has, the other controls, and both p-values."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sidequest.formatting import between, fixed, signed

    with_rows = any(difference.has_rows for row in comparison.rows for difference in row.against)
    caption = "Differences above: 95 % for other seeds and other report rows; here: for other seeds on these rows."
    table = Table(caption=caption if with_rows else None, caption_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    others = [f"against\n{name}" for name in comparison.controls]
    for column in ("over seeds\nalone", *others, "p\nalone", "p\ncorrected"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in comparison.rows:
        if not row.against:
            continue
        to_others = [row.to(name) for name in comparison.controls]
        table.add_row(
            row.method,
            between(row.against[0].low, row.against[0].high),
            *("" if other is None else signed(other.mean) for other in to_others),
            *("" if row.role == "control" else fixed(value) for value in (row.p_value, row.p_corrected)),
        )
    return table


def _chosen(comparison: Comparison) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    chosen = Table(title="auxiliaries chosen (share of seeds where not all)", title_justify="left", box=SIMPLE_HEAD)
    chosen.add_column("method", no_wrap=True)
    chosen.add_column("auxiliaries")
    for row in comparison.rows:
        if row.role == "method":
            names = [name if share == 1 else f"{name} {share:.0%}" for name, share in row.chosen.items() if share > 0]
            chosen.add_row(row.method, ", ".join(names) or "none")
    return chosen


def print_primaries(table: PrimariesTable) -> None:
    """The large table: a row per method, a column per primary; + and − mark clear differences from single-task training."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from sidequest.formatting import UNKNOWN, fixed

    marks = {"helps": " +", "hurts": " −"}
    shown = Table(title="report, mean over seeds", title_justify="left", box=SIMPLE_HEAD)
    shown.add_column("method", no_wrap=True)
    for primary, metric in table.metrics.items():
        shown.add_column(f"{primary}\n{metric}", justify="right")
    shown.add_column("average", justify="right")
    for method, row in table.methods.items():
        cells = [row.cells.get(name) for name in table.metrics]
        scores = [UNKNOWN if cell is None else fixed(cell.mean) + marks.get(cell.verdict, "  ") for cell in cells]
        shown.add_row(method, *scores, fixed(row.average))
    console = Console()
    console.print(shown)
    console.print("+ helps: above all controls beyond the noise; − hurts: below the baseline.")


def print_truth(table: TruthTable) -> None:
    """The best and the worst subsets, and whether the choice matters."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from sidequest.formatting import fixed
    from sidequest.runs.truth import named

    ranked = sorted(table.means, key=lambda chosen: -table.means[chosen])
    shown = ranked if len(ranked) <= 16 else [*ranked[:8], *ranked[-4:]]
    truth = Table(title=f"{table.primary}: {table.metric} on report", title_justify="left", box=SIMPLE_HEAD)
    for column in ("rank", "mean", "regret"):
        truth.add_column(column, justify="right")
    truth.add_column("auxiliaries")
    for chosen in shown:
        mean, regret = table.means[chosen], table.regret(chosen)
        truth.add_row(str(table.rank(chosen)), fixed(mean, 4), fixed(regret, 4), named(chosen) or "none")
    console = Console()
    console.print(truth)
    of = "all" if table.complete else "a sample of"
    console.print(f"{of} {len(ranked)} subsets, {len(table.seeds)} seeds. {table.signal.words}", style="bold")
    if () in table.means:
        gain, error = table.held_out
        said = "something helps" if table.something_helps else "nothing helps"
        console.print(f"the best by other seeds, over the primary alone: {fixed(gain, 4)} ± {fixed(error, 4)}: {said}")


def print_standings(standings: Sequence[Standing]) -> None:
    """Regret, rank and cost of every method, a table for each truth table."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from sidequest.formatting import fixed, half

    console = Console()
    for truth in dict.fromkeys(row.truth for row in standings):
        rows = [row for row in standings if row.truth == truth]
        table = Table(title=truth, title_justify="left", box=SIMPLE_HEAD)
        table.add_column("method", no_wrap=True)
        delivered = any(math.isfinite(row.delivered) for row in rows)
        last = ("gain delivered",) if delivered else ()
        for column in ("regret ± 95 %", "of the gap", "rank", "cost", *last):
            table.add_column(column, justify="right", no_wrap=True)
        for row in sorted((row for row in rows if not row.failed), key=lambda row: row.regret):
            table.add_row(
                row.method,
                fixed(row.regret, 4) + half(row.regret, row.high, 4),
                fixed(row.relative, 2),
                f"{fixed(row.rank, 1)} of {row.subsets}",
                f"{fixed(row.x, 1)}x",
                *((fixed(row.delivered, 2),) if delivered else ()),
            )
        console.print(table)
        for row in rows:
            if row.failed:
                console.print(f"{row.method}: {row.failed}", markup=False)
