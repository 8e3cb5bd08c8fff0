"""Rows of several tasks on one plane, by principal components and t-SNE, as in Figure 1 of Kung et al. (2021)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

FEWEST_POINTS = 10  # with fewer there is nothing to see
PERPLEXITY = 30.0


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
    return _split(features, (left * sizes * signs)[:, :width])


def flat_map(features: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """By name, features [n, width] become places [n, 2]; nothing if there are too few rows in all."""
    from sklearn.manifold import TSNE

    rows = sum(map(len, features.values()))
    if rows < FEWEST_POINTS:
        return {}
    perplexity = min(PERPLEXITY, (rows - 1) / 3)
    tsne = TSNE(random_state=seed, init="pca", perplexity=perplexity)
    flat = tsne.fit_transform(np.concatenate(list(features.values())).astype(np.float64))
    return _split(features, flat)


def _split(features: Mapping[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    ends = np.cumsum([len(each) for each in features.values()])[:-1]
    return dict(zip(features, np.split(rows, ends), strict=True))
