"""CPU seconds that each command takes before it does anything: user and system time of a fresh process, best of three.

    python benchmarks/startup.py [--repeats 3]

The goals: `check` in less than 1.5 s, a prediction of three rows with a `pooled` model in less than 3 s, `--help` at once.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "docs" / "tutorial" / "data"
GOALS = {"check": 1.5, "predict": 3.0}


def cpu_seconds(directory: Path, *command: object) -> float:
    """User and system time of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    arguments = [sys.executable, "-m", "sidequest", *map(str, command)]
    done = subprocess.run(arguments, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"sidequest {' '.join(map(str, command))}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def torch_seconds() -> float:
    """What importing torch takes by itself, on this machine at this moment."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        files = [DATA / "dialogue_emotions.csv", DATA / "product_reviews.csv"]
        cpu_seconds(place, "init", *files, "--primary", "dialogue_emotions", "-o", "suite.yaml")
        cpu_seconds(place, "select", "suite.yaml", "-m", "all", "--model", "pooled", "-o", "run")
        cpu_seconds(place, "train", "run")
        (place / "three.csv").write_text("".join(files[0].read_text().splitlines(keepends=True)[:4]))
        commands: dict[str, tuple[object, ...]] = {
            "--help": ("--help",),
            "--version": ("--version",),
            "train --help": ("train", "--help"),
            "methods": ("methods",),
            "init": ("init", files[0], "-o", "again.yaml", "--force"),
            "check": ("check", "suite.yaml"),
            "check digits": ("check", "digits"),
            "show": ("show", "run"),
            "predict": ("predict", "run/model", "three.csv"),
        }
        print(f"{'command':<14} {'CPU s':>6}  goal")
        print(
            f"{'(import torch)':<14} {min(torch_seconds() for _ in range(repeats)):>6.2f}  for comparison: predict needs it"
        )
        for label, command in commands.items():
            best = min(cpu_seconds(place, *command) for _ in range(repeats))
            goal = f"< {GOALS[label]:g}" if label in GOALS else ""
            print(f"{label:<14} {best:>6.2f}  {goal}")


if __name__ == "__main__":
    main()
