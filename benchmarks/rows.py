"""Ten million generated rows: fingerprinted, searched for repeats, ranked and drawn into a recipe, under a bound of memory.

    python benchmarks/rows.py [--rows 10000000] [--bound-mb 1000] [--suite]

Prints CPU seconds and the peak of the process's memory after each step, and fails above the bound. The scorer is a linear one
over hashed words, as cheap as a scorer can be: what is measured is the streaming around it.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sidequest.recipe import Phase, Recipe, Subset
from sidequest.tasks import streaming

CHUNK = 100_000


def generate(path: Path, rows: int) -> None:
    """Rows of three words; about one in fifty repeats another one up to case and spaces."""
    words = pa.array([f"w{number}" for number in range(2000)])
    schema = pa.schema({"text": pa.string(), "label": pa.int64()})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            rng = np.random.default_rng([0, start])
            size = min(CHUNK, rows - start)
            parts = [words.take(pa.array(rng.integers(0, 2000, size))) for _ in range(3)]
            text = pc.binary_join_element_wise(*parts, " ")
            writer.write_table(pa.table({"text": text, "label": rng.integers(0, 3, size)}, schema=schema))


def score(batch: pa.RecordBatch) -> np.ndarray:
    """A linear function of the words' numbers."""
    first = pc.utf8_slice_codeunits(batch.column("text"), 1, 5)
    digits = pc.utf8_replace_slice(first, 4, 5, "")
    return np.array([hash(value) % 10_007 for value in digits.to_pylist()], dtype=np.float64)


def load(rows: int) -> None:
    """A suite reads its rows into memory, as columns: what that takes."""
    from sidequest.tasks.loading import load_suite

    with tempfile.TemporaryDirectory() as place:
        generate(Path(place) / "large.parquet", rows)
        generate(Path(place) / "small.parquet", 2000)
        lines = (
            f"  {name}: {{train: {name}.parquet, text: text, label: label, objective: classification}}\n"
            for name in ("small", "large")
        )
        (Path(place) / "suite.yaml").write_text("suite: big\nprimary: small\ntasks:\n" + "".join(lines))
        begun = time.process_time()
        found = load_suite(str(Path(place) / "suite.yaml")).tasks["large"].fingerprints["train"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"a suite with {rows:,} rows: {time.process_time() - begun:.1f} s CPU, peak {peak:.0f} MB, {found[:12]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--bound-mb", type=int, default=1000)
    parser.add_argument(
        "--suite", action="store_true", help="load the rows as a candidate of a suite instead, in memory"
    )
    options = parser.parse_args()
    if options.suite:
        load(options.rows)
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.parquet"

        def step(name: str, work):
            begun = time.process_time()
            found = work()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{name:<42} {time.process_time() - begun:8.1f} s CPU   peak {peak:6.0f} MB", flush=True)
            return found, peak

        step(f"write {options.rows:,} rows", lambda: generate(path, options.rows))
        print(f"the file: {path.stat().st_size / 1e6:.0f} MB", flush=True)
        (fingerprint, _) = step("fingerprint", lambda: streaming.fingerprint(path, ["text"], "label"))
        ((repeated, _), _) = step("repeated rows", lambda: streaming.repeated_rows(path, ["text"]))
        ((ids, _), _) = step("rank, keep the best 1,000,000", lambda: streaming.best_rows(path, ["text"], score, 10**6))

        def write_recipe() -> None:
            subset = Subset(ids=tuple(np.sort(ids).tolist()))
            phase = Phase(shares={"primary": 1, "large": 1}, subsets={"large": subset})
            recipe = Recipe(method="rows", primary="primary", phases=(phase,))
            recipe.write(Path(place) / "recipe.json")
            assert Recipe.read(Path(place) / "recipe.json").phases[0].subsets["large"].key == subset.key

        _, peak = step("recipe of 1,000,000 rows, and read again", write_recipe)
        print(
            f"fingerprint {fingerprint[:12]}, {len(repeated):,} repeated rows, peak {peak:.0f} of {options.bound_mb} MB"
        )
        if peak > options.bound_mb:
            raise SystemExit("above the bound")


if __name__ == "__main__":
    main()
