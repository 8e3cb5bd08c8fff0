"""`make fuzz`: at least 20,000 cases; the exit code is 1 if one of them ends in a traceback, hangs or is accepted in silence."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzzing.fuzz import timed
from tests.helpers.good_runs import make_good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=21_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="the name of one target")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        good = make_good(place / "good")
        counts, seconds = timed(good, place, asked.cases, asked.seed, asked.first, asked.only)
    for failure in counts.failures.values():
        print(failure, end="\n\n")
    print(f"{counts}; {seconds:.0f} s")
    return 1 if counts.bad else 0


if __name__ == "__main__":
    sys.exit(main())
