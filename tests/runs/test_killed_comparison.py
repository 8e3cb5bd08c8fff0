"""A comparison that is killed again and again ends as one that was left alone: the same recipes, predictions and rows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sidequest.records.comparisons import Comparison

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
from pathlib import Path
from sidequest.runs.comparing import compare
from sidequest.runs.setup import Setup
from sidequest.tasks.digits import digits_suite

rows = {"top-left": 60, "parity": 60, "large": 60, "bottom-right": 0, "ink": 0, "shuffled": 0}
setup = Setup.of(digits_suite(0, rows=rows, select_rows=20, report_rows=40), {}, {"epochs": 4})
compare(setup, {"heu-size": {}, "exp3s": {"steps": 60}}, [0, 1, 2], Path(sys.argv[1]), workers=int(sys.argv[2]))
"""


def run(directory: Path, cache: Path, workers: int, seconds: float | None = None) -> bool:
    """Whether it came to its end before it was killed."""
    environment = {**os.environ, "SIDEQUEST_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(directory), str(workers)], env=environment)
    try:
        assert process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_kills_change_nothing(tmp_path, workers):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(whole, tmp_path / "cache-whole", 1)
    rng = np.random.default_rng(workers)
    kills, seconds = 0, 4.0
    while not run(killed, tmp_path / "cache-killed", workers, seconds * float(rng.uniform(0.8, 1.2))):
        kills += 1
        seconds += 1.5  # a busy machine must come to an end too
        assert kills < 40
    assert kills > 0
    expected, found = Comparison.read(whole), Comparison.read(killed)
    timeless = {"seconds": 0.0, "peak_memory_mb": None}
    assert [row.model_copy(update=timeless) for row in found.rows] == [
        row.model_copy(update=timeless) for row in expected.rows
    ]
    for outcome in expected.outcomes:
        for name in ("recipe.json", "predictions.npz"):
            if (whole / outcome.directory / name).exists():
                assert (killed / outcome.directory / name).read_bytes() == (
                    whole / outcome.directory / name
                ).read_bytes()
    different = {(whole / outcome.directory / "predictions.npz").read_bytes() for outcome in expected.outcomes}
    assert len(different) > 3  # the control: cells do differ
