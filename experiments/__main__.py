"""`python -m experiments NAME [--small]`: run what is missing of an experiment and show what there is; without a name, the list
of them; `status`: which of their jobs are done."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments import EXPERIMENTS, Options, run, run_again, status_lines
from sidequest.cli.common import use_device
from sidequest.errors import SidequestError


def main(arguments: list[str] | None = None) -> int:
    """0 is success, 2 bad input with one clear message."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", nargs="?", help=", ".join([*EXPERIMENTS, "status"]))
    parser.add_argument("--small", action="store_true", help="a size that a laptop does in minutes")
    parser.add_argument("--data", type=Path, help="the directory with the benchmark files; default: $SIDEQUEST_DATA")
    parser.add_argument("--seeds", type=int, help="how many; default: the experiment's own")
    parser.add_argument("--first-seed", type=int, default=0, help="seeds are counted from here")
    parser.add_argument("--minutes", type=float, help="after so many minutes no further job begins")
    parser.add_argument("--repeat", metavar="METHOD", help="run a stored job again: does its code count as today's?")
    parser.add_argument("--workers", type=int, default=1, help="processes at once, one torch thread each")
    parser.add_argument("--encoder", help="instead of the experiment's own")
    parser.add_argument("--primary", type=_names, metavar="A,B", help="these primaries only")
    parser.add_argument("--only", type=_names, metavar="A,B", help="these parts only")
    parser.add_argument("-o", "--out", type=Path, help="default: runs/experiment-NAME")
    parser.add_argument(
        "--device", help="cpu, cuda, cuda:1, …; default: $SIDEQUEST_DEVICE, else a GPU where there is one"
    )
    given = parser.parse_args(arguments)
    if given.name is None:
        print("\n".join(f"{name:12} {what}" for name, what in EXPERIMENTS.items()))
        return 0
    use_device(given.device)
    out = given.out or Path("runs") / f"experiment-{given.name}"
    options = Options(
        out,
        given.small,
        given.data,
        given.seeds,
        given.workers,
        given.encoder,
        given.primary,
        given.only,
        given.first_seed,
        given.minutes,
    )
    try:
        if given.name == "status":
            print("\n".join(status_lines(options)))
            return 0
        if given.repeat is not None:
            return 0 if run_again(given.name, options, given.repeat) else 1
        run(given.name, options)
    except SidequestError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2
    print(f"written to {out}")
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


if __name__ == "__main__":
    raise SystemExit(main())
