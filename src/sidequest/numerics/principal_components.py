"""Principal components of the rows of several tasks together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def principal_components(features: Mapping[str, np.ndarray], width: int) -> dict[str, np.ndarray]:
    """By name, features [n, many] become their first components [n, ≤ width] over all rows together: enough for a map of them,
    and small enough to keep. The sign of a component is that of its largest loading, so that it does not depend on the solver.
    Rows that are not finite, as of a model that diverged, are left out."""
    features = {name: each[np.isfinite(each).all(axis=1)] for name, each in features.items()}
    rows = np.concatenate(list(features.values())).astype(np.float64)
    if not len(rows):
        return features
    left, sizes, right = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    return split_like(features, (left * sizes * signs)[:, :width])


def split_like(features: Mapping[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Rows [n, width] given back to the names whose features they came from, in order."""
    ends = np.cumsum([len(each) for each in features.values()])[:-1]
    return dict(zip(features, np.split(rows, ends), strict=True))
