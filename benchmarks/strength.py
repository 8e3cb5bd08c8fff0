"""Is the primary alone as good as a good engineer makes it? sidequest's `single` against plain alternatives on the same rows.

    python benchmarks/strength.py                             all cells that are missing, then the table
    python benchmarks/strength.py --only stsb,mrpc --contenders pooled,probe --seeds 5
    python benchmarks/strength.py --list                      what there is and how many cells are known
    python benchmarks/strength.py --small                     embedded primaries alone, under a minute

What is compared, decided before anything was trained:

- The seed draws the labelled rows (and every contender's initial weights and order), of which *select* is carved. sidequest's
  `single` trains on *train* and chooses on *select*, as it must be where methods are compared; so does an alternative called
  `train-…`. From all labelled rows learn sidequest's `final-…` (`sidequest train --all-rows`) and the other alternatives.
- Verdicts come from both sides with the same rows; beside them stands `single` against alternatives with more rows than it has.
- Every contender is judged on the same *report* rows, which are the same for all seeds (embedded primaries draw theirs, too).
- sidequest's kind is the one that docs/models.md advises for the form of the task (`pooled` for texts, pairs and choices,
  `bilstm` for tags, `convnet` for images); one more table has the kind with the best mean on *select*. The alternative is the
  best on *report*, which favours it.
- "below": the mean of the differences, paired by seed, is negative by more than one standard error.

A cell (primary, contender, seed) is kept in a journal under the content of the rows and the contender's settings; sidequest's own
also under the version of its training code. So a second run computes what is missing, and alternatives are computed once.
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from strength_parts.contenders import CONTENDERS, KINDS, Contender
from strength_parts.journal import Cell, Journal, cell_key, published
from strength_parts.primaries import PRIMARIES, SMALL, Primary, available, content, data_directory
from strength_parts.table import as_json, entries, markdown

from sidequest.errors import SettingsError, unknown
from sidequest.files import cache_directory, write_atomically
from sidequest.tasks.task import Task


def plan(
    primaries: Sequence[Primary], contenders: Sequence[Contender], seeds: int, data: Path
) -> Iterator[tuple[Primary, Task, Contender, int, str]]:
    """Every cell with its key. A primary is read once per seed."""
    for primary in primaries:
        for seed in range(seeds):
            task = primary.load(seed, data)
            rows = content(task)
            for contender in contenders:
                if contender.name not in primary.left_out and contender.missing is None and contender.fits(task):
                    yield primary, task, contender, seed, cell_key(contender.name, contender.facts(task), rows, seed)


def run_cell(primary: Primary, task: Task, contender: Contender, seed: int, key: str) -> Cell:
    if contender.warm is not None:
        contender.warm(task)
    start = time.process_time()
    outcome = contender.run(task, seed)
    return Cell(
        key=key,
        primary=primary.name,
        contender=contender.name,
        seed=seed,
        metric=task.metric,
        score=outcome.report[task.metric],
        report=outcome.report,
        select=outcome.select,
        rows={split: len(rows) for split, rows in task.splits.items()},
        seconds=round(time.process_time() - start, 2),
        code=str(contender.facts(task)["code"]) if contender.ours else "",
        date=datetime.date.today().isoformat(),
    )


def peak_memory() -> int:
    """Bytes that this process has held at most."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


def chosen(names: str | None, there: Sequence[Primary] | Sequence[Contender], what: str) -> list:
    """The named ones of those that there are, in the order of the table."""
    if names is None:
        return list(there)
    wanted = names.split(",")
    for name in wanted:
        if name not in [each.name for each in there]:
            raise unknown(what, name, [each.name for each in there])
    return [each for each in there if each.name in wanted]


def last_cells(
    cells: Sequence[Cell], primaries: Sequence[Primary], contenders: Sequence[Contender], seeds: int
) -> list[Cell]:
    """Of each primary, contender and seed."""
    names = {each.name for each in primaries}, {each.name for each in contenders}
    asked = [c for c in cells if c.primary in names[0] and c.contender in names[1] and c.seed < seeds]
    return list({(cell.primary, cell.contender, cell.seed): cell for cell in asked}.values())


def page(table: str, contenders: Sequence[Contender], seeds: int, *, known: bool) -> str:
    """The table with what a reader needs to judge and repeat it."""
    made = f"Made by `python benchmarks/strength.py {'--known ' if known else ''}--output docs/strength.md`"
    lines = [
        "# The primary alone against plain alternatives",
        "",
        f"{made} on {datetime.date.today().isoformat()}, up to {seeds} seeds.",
        "Mean ± standard deviation over the seeds, which draw the labelled rows; an empty cell has not been computed.",
        "sidequest's `single` learns from *train* and chooses on *select*, as the alternatives called `train-…` do; `final-…` "
        "and the other alternatives learn from both.",
        "The rows of *report* are the same for all.",
        "sidequest's kind is the one that [models](models.md) advises: `pooled` for texts, pairs and choices, `bilstm` for tags, "
        "`convnet` for images; the last table of verdicts has the one that is best on *select*.",
        "In the first four tables of verdicts both sides learn from the same rows; in the last two the alternatives have those "
        "of *select* besides.",
        "The alternative is the one that is best on *report*.",
        '"Below" means by more than one standard error of the difference paired by seed.',
        "Seconds are of one core, without encoding.",
        *(["Cells may be of different versions of the training code (`--known`)."] if known else []),
        "",
        *(f"- `{each.name}`: {each.about}" for each in contenders),
        "",
        table,
    ]
    return "\n".join(lines)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="A,B", help="primaries, by name")
    parser.add_argument("--contenders", metavar="A,B", help="contenders, by name")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--data", metavar="DIR", help="benchmark files; or SIDEQUEST_DATA, or shared/data beside the checkout"
    )
    parser.add_argument(
        "--journal", type=Path, metavar="FILE", help="where cells are kept; default: in sidequest's cache"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the table here (.md), and numbers beside it (.json)"
    )
    parser.add_argument("--list", action="store_true", help="train nothing")
    parser.add_argument("--table", action="store_true", help="train nothing, show the table of what is known")
    parser.add_argument(
        "--known",
        action="store_true",
        help="train and read nothing: the last cell of each primary, contender and seed, of whatever version of the code, in the "
        "journal or else in the table that --output replaces",
    )
    parser.add_argument("--small", action="store_true", help="embedded primaries alone, two seeds")
    parser.add_argument(
        "--code", metavar="VERSION", help="with --table: sidequest's cells of an older version of its code"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    torch.set_num_threads(1)
    journal = Journal(options.journal or cache_directory() / "strength.jsonl")
    data = data_directory(options.data)
    seeds = min(options.seeds, 2) if options.small else options.seeds
    try:
        primaries = chosen(options.only, SMALL if options.small else PRIMARIES, "primary")
        contenders = chosen(options.contenders, CONTENDERS, "contender")
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    for absent in [each for each in primaries if not available(each, data)]:
        print(
            f"{absent.name}: left out, {data / absent.folder} is not there (--data names the directory of the benchmark files)"
        )
        primaries.remove(absent)
    for contender in contenders:
        if contender.missing is not None:
            print(f"{contender.name}: left out, it is not installed ({contender.missing})")

    cells: list[Cell] = []
    if options.known:
        before = [] if options.output is None else published(options.output.with_suffix(".json"))
        cells = last_cells([*before, *journal.cells()], primaries, contenders, seeds)
    for primary, task, contender, seed, key in plan([] if options.known else primaries, contenders, seeds, data):
        known = journal.by_key().get(key)
        if options.list:
            state = "missing" if known is None else f"{known.score:.3f}, {known.seconds:.1f} s"
            print(f"{primary.name:14} {contender.name:13} seed {seed}  {state}")
            continue
        if options.code and contender.ours:
            continue
        if known is None and not options.table:
            known = run_cell(primary, task, contender, seed, key)
            journal.add(known)
            print(
                f"{primary.name:14} {contender.name:13} seed {seed}  {known.score:.3f}  {known.seconds:.1f} s, "
                f"peak memory so far {peak_memory() >> 20} MB",
                flush=True,
            )
        if known is not None:
            cells.append(known)
    if options.list:
        return 0
    if options.code:
        names = {primary.name for primary in primaries}
        cells += [
            each
            for each in journal.cells()
            if each.code == options.code and each.primary in names and each.seed < seeds
        ]
    table = {name: found for name, found in entries(cells).items() if found}
    table = {primary.name: table[primary.name] for primary in primaries if primary.name in table}
    text = markdown(table, KINDS)
    print(f"\n{text}")
    if options.output is not None:
        write_atomically(options.output, page(text, contenders, seeds, known=options.known).encode())
        numbers = json.dumps(as_json(table, KINDS), indent=2)
        write_atomically(options.output.with_suffix(".json"), numbers.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
