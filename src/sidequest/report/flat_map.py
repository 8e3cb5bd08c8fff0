"""Rows of several tasks on one plane, by t-SNE, as in Figure 1 of Kung et al. (2021)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sidequest.numerics.principal_components import split_like

FEWEST_POINTS = 10  # with fewer there is nothing to see
PERPLEXITY = 30.0


def flat_map(features: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """By name, features [n, width] become places [n, 2]; nothing if there are too few rows in all."""
    from sklearn.manifold import TSNE

    rows = sum(map(len, features.values()))
    if rows < FEWEST_POINTS:
        return {}
    perplexity = min(PERPLEXITY, (rows - 1) / 3)
    tsne = TSNE(random_state=seed, init="pca", perplexity=perplexity)
    flat = tsne.fit_transform(np.concatenate(list(features.values())).astype(np.float64))
    return split_like(features, flat)
