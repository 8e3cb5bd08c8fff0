"""Tables for people: results in the terminal, readable at a width of 80."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidequest.runs.comparing import Comparison


def print_comparison(comparison: Comparison) -> None:
    """The comparison as a table: mean ± interval over seeds, paired difference, cost, verdict; then what was chosen."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    seeds = len(comparison.seeds)
    title = f"{comparison.primary}: {comparison.metric} on report, {seeds} seed{'s' if seeds > 1 else ''}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    for column in ("mean ± 95 %", "against single", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in comparison.rows:
        half, low, high = row.mean - row.low, row.difference_low, row.difference_high
        interval = f" [{low:+.3f}, {high:+.3f}]" if math.isfinite(low) else ""
        table.add_row(
            row.method,
            f"{row.mean:.3f}" + (f" ± {half:.3f}" if math.isfinite(half) else ""),
            "" if row.verdict == "baseline" else f"{row.difference:+.3f}{interval}",
            f"{row.x:.1f}x",
            "unclear" if row.verdict == "no clear difference" else row.verdict,
        )
    console = Console()
    console.print(table)
    chosen = Table(title="auxiliaries chosen (share of seeds where not all)", title_justify="left", box=SIMPLE_HEAD)
    chosen.add_column("method", no_wrap=True)
    chosen.add_column("auxiliaries")
    for row in comparison.rows:
        names = [name if share == 1 else f"{name} {share:.0%}" for name, share in row.chosen.items() if share > 0]
        chosen.add_row(row.method, ", ".join(names) or "none")
    console.print(chosen)
    single = next(row for row in comparison.rows if row.verdict == "baseline")
    if comparison.majority is not None:
        console.print(f"Always the most frequent class: {comparison.majority:.3f}.")
        if math.isfinite(single.low) and single.low <= comparison.majority:
            console.print(
                "Single-task training is not clearly above the most frequent class: this model may be too weak for the "
                "primary task, and choices made with it should not be trusted for another model.",
                style="bold",
            )
    console.print(f"Verdict: {comparison.verdict}.", style="bold")
