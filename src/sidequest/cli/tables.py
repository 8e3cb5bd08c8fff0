"""Tables for people: results in the terminal, readable at a width of 80."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sidequest.runs.comparing import Comparison
    from sidequest.runs.scoring import Standing
    from sidequest.runs.truth import TruthTable


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
            f"{row.x:.1f}x" + ("!" if row.stopped else ""),
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
    likely = sorted(comparison.rows, key=lambda row: -row.probability_best)
    shares = [f"{row.method} {row.probability_best:.0%}" for row in likely if row.probability_best >= 0.05]
    if len(comparison.seeds) > 1:
        console.print(f"Best when the seeds are drawn anew: {', '.join(shares)}.")
    if any(row.stopped for row in comparison.rows):
        console.print(f"! stopped by the budget of {comparison.budget:g}x, at least on some seeds.")
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


def print_primaries(table: Mapping[str, Any]) -> None:
    """The large table: a row per method, a column per primary; + and − mark clear differences from single-task training."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    marks = {"helps": " +", "hurts": " −"}
    shown = Table(title="report, mean over seeds", title_justify="left", box=SIMPLE_HEAD)
    shown.add_column("method", no_wrap=True)
    for primary, metric in table["metrics"].items():
        shown.add_column(f"{primary}\n{metric}", justify="right")
    shown.add_column("average", justify="right")
    for method, cells in table["methods"].items():
        scores = [f"{cells[name]['mean']:.3f}{marks.get(cells[name]['verdict'], '  ')}" for name in table["metrics"]]
        shown.add_row(method, *scores, f"{cells['average']['mean']:.3f}")
    console = Console()
    console.print(shown)
    console.print("+ helps, − hurts: beyond the noise, against single-task training.")


def print_truth(table: TruthTable) -> None:
    """The best and the worst subsets, and whether the choice matters."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    ranked = sorted(table.means, key=lambda chosen: -table.means[chosen])
    shown = ranked if len(ranked) <= 16 else [*ranked[:8], *ranked[-4:]]
    truth = Table(title=f"{table.primary}: {table.metric} on report", title_justify="left", box=SIMPLE_HEAD)
    for column in ("rank", "mean", "regret"):
        truth.add_column(column, justify="right")
    truth.add_column("auxiliaries")
    for chosen in shown:
        mean, regret = table.means[chosen], table.regret(chosen)
        truth.add_row(str(table.rank(chosen)), f"{mean:.4f}", f"{regret:.4f}", ", ".join(chosen) or "none")
    console = Console()
    console.print(truth)
    of = "all" if table.complete else "a sample of"
    console.print(f"{of} {len(ranked)} subsets, {len(table.seeds)} seeds. {table.signal.words}", style="bold")


def print_standings(standings: Sequence[Standing]) -> None:
    """Regret, rank and cost of every method, a table for each truth table."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for truth in dict.fromkeys(row.truth for row in standings):
        rows = [row for row in standings if row.truth == truth]
        table = Table(title=truth, title_justify="left", box=SIMPLE_HEAD)
        table.add_column("method", no_wrap=True)
        for column in ("regret ± 95 %", "best 0, worst 1", "rank", "cost"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in sorted((row for row in rows if not row.failed), key=lambda row: row.regret):
            half = row.high - row.regret
            table.add_row(
                row.method,
                f"{row.regret:.4f}" + (f" ± {half:.4f}" if math.isfinite(half) else ""),
                f"{row.relative:.2f}",
                f"{row.rank:.1f} of {row.subsets}",
                f"{row.x:.1f}x",
            )
        console.print(table)
        for row in rows:
            if row.failed:
                console.print(f"{row.method}: {row.failed}", markup=False)
