"""Kendall's τ of many rows against one matrix: vectorised against one call of scipy per row. `python benchmarks/kendall.py`.

For the heads of MiniLM (6 × 12) and of BERT-base (12 × 12). Exit code 1 if the two differ by more than 1e-12, or below 10 times.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.stats import kendalltau

from sidequest.numerics.kendall import kendall_tau

ROWS = 2_000
LEAST_SPEEDUP, LARGEST_DIFFERENCE = 10, 1e-12


def main() -> int:
    passed = True
    for heads in (72, 144):
        rng = np.random.default_rng(heads)
        rows, reference = rng.random((ROWS, heads), dtype=np.float32), rng.random(heads)
        for name, values in {"without ties": rows, "with ties": np.round(rows, 1)}.items():
            start = time.perf_counter()
            found = kendall_tau(values, reference)
            vectorised = time.perf_counter() - start
            start = time.perf_counter()
            expected = np.array([kendalltau(row, reference).statistic for row in values])
            loop = time.perf_counter() - start
            difference = float(np.abs(found - expected).max())
            print(
                f"{heads:4} heads, {name:12}: {vectorised / ROWS * 1e6:6.1f} µs a row, scipy {loop / ROWS * 1e6:6.1f} µs, "
                f"{loop / vectorised:5.1f} times faster, largest difference {difference:.0e}"
            )
            passed &= loop / vectorised >= LEAST_SPEEDUP and difference <= LARGEST_DIFFERENCE
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
