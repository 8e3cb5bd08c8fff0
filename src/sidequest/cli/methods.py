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

    from sidequest.errors import SettingsError
    from sidequest.learning.protocol import power_name
    from sidequest.methods import get_method, method_names
    from sidequest.models.kinds import KINDS, kinds_with
    from sidequest.records.controls import CONTROLS

    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    for name in method_names():
        try:
            method = get_method(name)
        except SettingsError as error:  # another package's; the rest are listed all the same
            failed.append(str(error))
            continue
        able = [set(kinds_with(power)) for power in method.requires]
        rows.append(
            {
                "name": name,
                "summary": method.summary,
                "needs": [power_name(power) for power in method.requires],
                "models": sorted(set(KINDS).intersection(*able)),
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
        shown = {**row, "models": "any" if len(row["models"]) == len(KINDS) else ", ".join(row["models"])}
        table.add_row(*(str(shown[column]) for column in ("name", *columns)))
    console.print(table)
    console.print("Controls, in every comparison; they choose nothing:")
    for name, summary in CONTROLS.items():
        console.print(f"  {name}: {summary}")
    for line in failed:
        console.print(line, style="red")
    console.print("Your own: -m file.py:Class, or a package with the entry point sidequest.methods.")
    console.print("x: single-task training runs of the primary. Settings: sidequest methods --json")
