"""sidequest methods: what there is, what each needs, costs and returns."""

from __future__ import annotations

from sidequest.cli.common import JsonOption

NAME = "methods"
HELP = "List the methods: what each needs, costs and returns.\n\nExample: sidequest methods --json"
NEEDS_ARGUMENTS = False


def command(as_json: JsonOption = False) -> None:
    import json

    from rich.console import Console
    from rich.table import Table

    from sidequest.methods import METHODS, get_method
    from sidequest.records.controls import CONTROLS

    rows = []
    for name in METHODS:
        method = get_method(name)
        rows.append(
            {
                "name": name,
                "summary": method.summary,
                "needs": [power.__name__ for power in method.requires],
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
    table = Table()
    for column in ("method", "what it does", "needs", "cost", "returns", "paper"):
        table.add_column(column)
    for row in rows:
        table.add_row(
            str(row["name"]),
            str(row["summary"]),
            ", ".join(row["needs"]) or "any model",
            str(row["cost"]),
            str(row["returns"]),
            str(row["paper"]),
        )
    console = Console()
    console.print(table)
    console.print("Controls, in every comparison; they choose nothing:")
    for name, summary in CONTROLS.items():
        console.print(f"  {name}: {summary}")
    console.print("x: single-task training runs of the primary. Settings: sidequest methods --json")
