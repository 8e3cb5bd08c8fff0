"""Tables for people: results in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidequest.runs.comparing import Comparison


def print_comparison(comparison: Comparison) -> None:
    """The comparison as a table: mean ± interval over seeds, paired difference, cost, verdict."""
    from rich.console import Console
    from rich.table import Table

    title = f"{comparison.primary}: {comparison.metric} on report, {len(comparison.seeds)} seeds"
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    table.add_column("mean ± 95 %", justify="right")
    table.add_column("against single", justify="right")
    table.add_column("cost", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("verdict")
    table.add_column("auxiliaries (share of seeds)")
    for row in comparison.rows:
        against = (
            ""
            if row.verdict == "baseline"
            else (f"{row.difference:+.3f} [{row.difference_low:+.3f}, {row.difference_high:+.3f}]")
        )
        chosen = ", ".join(
            name if share == 1 else f"{name} {share:.0%}" for name, share in row.chosen.items() if share > 0
        )
        table.add_row(
            row.method,
            f"{row.mean:.3f} ± {row.mean - row.low:.3f}",
            against,
            f"{row.x:.1f}x",
            f"{row.seconds:.0f}",
            row.verdict,
            chosen or "none",
        )
    console = Console()
    console.print(table)
    if comparison.majority is not None:
        console.print(f"Always the most frequent class: {comparison.majority:.3f}.")
        single = next(row for row in comparison.rows if row.verdict == "baseline")
        if single.low <= comparison.majority:
            console.print(
                "Single-task training is not clearly above the most frequent class here: this model may be too weak for the "
                "primary task, and choices made with it should not be trusted for another model.",
                style="bold",
            )
    console.print(f"Verdict: {comparison.verdict}.", style="bold")
