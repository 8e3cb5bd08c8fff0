"""sidequest methods: what there is, what each needs, costs and returns."""

from __future__ import annotations

from typing import Any

from sidequest.cli.common import JsonOption

NAME = "methods"
HELP = "List the methods: what each needs, costs and returns.\n\nExample: sidequest methods --json"
NEEDS_ARGUMENTS = False
WIDE = 120  # characters, from which a terminal has room for all columns


def command(as_json: JsonOption = False) -> None:
    import json

    from rich.console import Console
    from rich.table import Table

    from sidequest.learning.protocol import power_name
    from sidequest.methods import METHODS, get_method
    from sidequest.models.kinds import KINDS, kinds_with
    from sidequest.records.controls import CONTROLS

    rows: list[dict[str, Any]] = []
    for name in METHODS:
        method = get_method(name)
        rows.append(
            {
                "name": name,
                "summary": method.summary,
                "needs": [power_name(power) for power in method.requires],
                "models": sorted(set.intersection(set(KINDS), *(set(kinds_with(power)) for power in method.requires))),
                "cost": method.cost,
                "returns": method.returns,
                "paper": method.paper,
                "settings": {
                    key: None if field.is_required() else field.get_default(call_default_factory=True)
                    for key, field in method.Settings.model_fields.items()
                },
            }
        )
    if as_json:
        print(json.dumps(rows, indent=2, default=str))
        return
    console = Console()
    wide = console.width >= WIDE
    columns = ("summary", "models", "cost", "returns", "paper") if wide else ("summary", "models", "cost")
    table = Table()
    table.add_column("method", no_wrap=True, min_width=max(len(row["name"]) for row in rows))  # it will be copied
    for column in columns:
        table.add_column("what it does" if column == "summary" else column)
    for row in rows:
        shown = {**row, "models": ", ".join(row["models"]) if row["needs"] else "any"}
        table.add_row(*(str(shown[column]) for column in ("name", *columns)))
    console.print(table)
    console.print("Controls, in every comparison; they choose nothing:")
    for name, summary in CONTROLS.items():
        console.print(f"  {name}: {summary}")
    console.print("x: single-task training runs of the primary. Settings: sidequest methods --json")
