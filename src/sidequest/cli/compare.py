"""sidequest compare: methods over seeds, with intervals, cost and a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import EncoderOption, JsonOption, ModelOption, SetOption, SuiteArgument, WorkersOption

NAME = "compare"
HELP = (
    "Compare methods over seeds: each selects on the select split, trains, and is scored on the report split.\n\n"
    "single, all, size and random-subset are always included. Results are kept: the same command continues.\n\n"
    "Example: sidequest compare suite.yaml -m heu-size,heu-type --seeds 5 -o runs/compare\n\n"
    "A method's own settings: --set heu-size.name=value."
)
NEEDS_ARGUMENTS = True


def command(
    suite: SuiteArgument,
    methods: Annotated[str, typer.Option("--methods", "-m", help="Names, separated by commas.")] = "",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 5,
    out: Annotated[Path, typer.Option("--out", "-o", help="The directory of the comparison.")] = Path("runs/compare"),
    model: ModelOption = None,
    encoder: EncoderOption = None,
    assignments: SetOption = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    import json

    from sidequest.cli.common import default_workers, make_setup, progress_bar, warm
    from sidequest.cli.tables import print_comparison
    from sidequest.methods import METHODS
    from sidequest.runs.comparing import ALWAYS, Outcome, compare

    names = [name.strip() for name in methods.split(",") if name.strip()]
    own: dict[str, list[str]] = {}
    shared = []
    for assignment in assignments or []:
        prefix = assignment.partition("=")[0].partition(".")[0]
        if prefix in METHODS and "." in assignment.partition("=")[0]:
            own.setdefault(prefix, []).append(assignment.partition(".")[2])
        else:
            shared.append(assignment)
    setup, stray = make_setup(suite, model, encoder, shared)
    if stray:
        from sidequest.errors import SettingsError

        raise SettingsError(f"--set {next(iter(stray))}: say which method it is for, as in --set METHOD.name=value")
    from sidequest.settings import parse_assignments

    chosen = {name: parse_assignments(own.get(name, []))["method"] for name in dict.fromkeys([*ALWAYS, *names])}
    if setup.model.kind in ("bilstm", "pooled"):
        warm(setup)
    with progress_bar() as progress:
        bar = progress.add_task("comparing", total=None, note="")

        def on_done(count: int, total: int, outcome: Outcome) -> None:
            note = f"{outcome.method} seed {outcome.seed}: {outcome.score:.3f}"
            progress.update(bar, completed=count, total=total, note=note)

        comparison = compare(
            setup,
            {name: chosen[name] for name in names},
            range(seeds),
            out,
            workers=workers or default_workers(),
            on_done=on_done,
        )
    if as_json:
        typer.echo(json.dumps(comparison.to_json(), indent=2))
    else:
        from sidequest.report.comparison import scores_with_intervals
        from sidequest.report.style import save

        print_comparison(comparison)
        save(scores_with_intervals(comparison.to_json()), out / "comparison")
        typer.echo(f"written to {out / 'comparison.json'}; the figure: {out / 'comparison.html'}")
