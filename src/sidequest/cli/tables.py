"""Results in the terminal: what each command prints of its record."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from sidequest.records.comparisons import Comparison, PrimariesTable, Row
    from sidequest.records.standings import Standing
    from sidequest.runs.truth import TruthTable


def print_comparison(comparison: Comparison) -> None:
    """What each method scored, costs and is worth; what the verdicts rest on; what was chosen; then the verdict in words."""
    from rich.console import Console

    from sidequest.formatting import fixed
    from sidequest.records import verdicts

    console = Console()
    _print_scores(console, comparison)
    if any(row.against for row in comparison.rows):
        _print_differences(console, comparison)
    _print_chosen(console, comparison)
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


def _print_scores(console: Console, comparison: Comparison) -> None:
    from sidequest.cli.printing import Column, print_table
    from sidequest.formatting import between, fixed, half, seeds_of, signed

    rows = comparison.rows
    firsts = [row.to_baseline for row in rows]
    differences = ["" if one is None else f"{signed(one.mean)} {between(*one.interval)}".rstrip() for one in firsts]
    columns = [
        Column("method", [row.method for row in rows], right=False),
        Column("verdict", [row.verdict for row in rows], right=False),
        Column("cost", [f"{fixed(row.x, 1)}x" + ("!" if row.stopped else "") for row in rows]),
        Column("mean ± 95 %", [fixed(row.mean) + half(row.mean, row.high) for row in rows]),
        Column(f"against {comparison.baseline}", differences),
    ]
    title = f"{comparison.primary}: {comparison.metric} on report, {seeds_of(len(comparison.seeds))}"
    print_table(console, title, columns, keep=3)


def _print_differences(console: Console, comparison: Comparison) -> None:
    """The interval over seeds beside the one that the table above has, the other controls, and both p-values."""
    from sidequest.cli.printing import Column, print_table
    from sidequest.formatting import between, fixed, signed

    rows = [row for row in comparison.rows if row.against]
    with_rows = any(difference.has_rows for row in rows for difference in row.against)
    caption = "Differences above: 95 % for other seeds and other report rows; here: for other seeds on these rows."

    def to(row: Row, control: str) -> str:
        other = row.to(control)
        return "" if other is None else signed(other.mean)

    columns = [
        Column("method", [row.method for row in rows], right=False),
        Column("over seeds\nalone", [between(row.against[0].low, row.against[0].high) for row in rows]),
        *(Column(f"against\n{name}", [to(row, name) for row in rows]) for name in comparison.controls),
        Column("p\nalone", ["" if row.role == "control" else fixed(row.p_value) for row in rows]),
        Column("p\ncorrected", ["" if row.role == "control" else fixed(row.p_corrected) for row in rows]),
    ]
    print_table(console, "what the verdicts rest on", columns, caption=caption if with_rows else "")


def _print_chosen(console: Console, comparison: Comparison) -> None:
    from sidequest.cli.printing import Column, print_table

    rows = [row for row in comparison.rows if row.role == "method"]
    chosen = [
        ", ".join(name if share == 1 else f"{name} {share:.0%}" for name, share in row.chosen.items() if share > 0)
        for row in rows
    ]
    columns = [
        Column("method", [row.method for row in rows], right=False),
        Column("auxiliaries", [names or "none" for names in chosen], right=False, wraps=True),
    ]
    print_table(console, "auxiliaries chosen (share of seeds where not all)", columns)


def print_primaries(table: PrimariesTable) -> None:
    """The large table: a row per method, a column per primary; + and − mark clear differences from single-task training."""
    from rich.console import Console

    from sidequest.cli.printing import Column, print_table
    from sidequest.formatting import UNKNOWN, fixed

    marks = {"helps": " +", "hurts": " −"}

    def scores(primary: str) -> list[str]:
        cells = [row.cells.get(primary) for row in table.methods.values()]
        return [UNKNOWN if cell is None else fixed(cell.mean) + marks.get(cell.verdict, "  ") for cell in cells]

    columns = [
        Column("method", list(table.methods), right=False),
        *(Column(f"{primary}\n{metric}", scores(primary)) for primary, metric in table.metrics.items()),
        Column("average", [fixed(row.average) for row in table.methods.values()]),
    ]
    console = Console()
    print_table(console, "report, mean over seeds", columns)
    console.print("+ helps: above all controls beyond the noise; − hurts: below the baseline.")


def print_truth(table: TruthTable) -> None:
    """The best and the worst subsets, and whether the choice matters."""
    from rich.console import Console

    from sidequest.cli.printing import Column, print_table
    from sidequest.formatting import fixed
    from sidequest.runs.truth import named

    ranked = sorted(table.means, key=lambda chosen: -table.means[chosen])
    shown = ranked if len(ranked) <= 16 else [*ranked[:8], *ranked[-4:]]
    columns = [
        Column("rank", [str(table.rank(chosen)) for chosen in shown]),
        Column("mean", [fixed(table.means[chosen], 4) for chosen in shown]),
        Column("regret", [fixed(table.regret(chosen), 4) for chosen in shown]),
        Column("auxiliaries", [named(chosen) or "none" for chosen in shown], right=False, wraps=True),
    ]
    console = Console()
    print_table(console, f"{table.primary}: {table.metric} on report", columns)
    of = "all" if table.complete else "a sample of"
    console.print(f"{of} {len(ranked)} subsets, {len(table.seeds)} seeds. {table.signal.words}", style="bold")
    if table.mostly_untrained:
        console.print(
            f"in {table.untrained} of {table.scores.size} trainings the best model on select was the one before any training: "
            "subsets differ by which of them kept it, not by what an auxiliary is worth",
            style="bold",
        )
    if () in table.means:
        gain, error = table.held_out
        said = "something helps" if table.something_helps else "nothing helps"
        console.print(f"the best by other seeds, over the primary alone: {fixed(gain, 4)} ± {fixed(error, 4)}: {said}")


def print_standings(standings: Sequence[Standing]) -> None:
    """Regret, rank and cost of every method, a table for each truth table."""
    from rich.console import Console

    from sidequest.cli.printing import Column, print_table
    from sidequest.formatting import fixed, half, signed

    console = Console()
    for truth in dict.fromkeys(row.truth for row in standings):
        rows = [row for row in standings if row.truth == truth]
        done = sorted((row for row in rows if row.seeds), key=lambda row: row.regret)
        columns = [
            Column("method", [row.method for row in done], right=False),
            Column("regret ± 95 %", [fixed(row.regret, 4) + half(row.regret, row.high, 4) for row in done]),
            Column("cost", [f"{fixed(row.x, 1)}x" for row in done]),
            Column("of the gap", [fixed(row.relative, 2) for row in done]),
            Column("rank", [f"{fixed(row.rank, 1)} of {row.subsets}" for row in done]),
        ]
        if any(math.isfinite(row.delivered) for row in rows):
            shares = [fixed(row.delivered, 2) + half(row.delivered, row.delivered_high) for row in done]
            columns.append(Column("gain delivered ± 95 %", shares))
        elif any(row.trained for row in rows):  # nothing helps: no part of a gain, but harm is harm
            gains = [signed(row.gained, 4) + half(row.gained, row.gained_high, 4) for row in done]
            columns.append(Column("trained, over the primary alone ± 95 %", gains))
        if len({row.seeds for row in done}) > 1:
            columns.append(Column("seeds", [str(row.seeds) for row in done]))
        print_table(console, truth, columns, keep=3)
        for row in rows:
            if row.failed:
                console.print(f"{row.method}: {row.failed}", markup=False)
