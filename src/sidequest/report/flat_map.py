"""Rows of several tasks on one plane: by t-SNE where scikit-learn is installed (extra `figures`), as in Figure 1 of Kung et al.
(2021), else by their first two principal components."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

import numpy as np

from sidequest.numerics.principal_components import principal_components, split_like

FEWEST_POINTS = 10  # with fewer there is nothing to see
PERPLEXITY = 30.0
T_SNE, COMPONENTS = "t-SNE", "principal components"


def projection() -> str:
    """How rows get onto the plane."""
    return T_SNE if importlib.util.find_spec("sklearn") is not None else COMPONENTS


def flat_map(features: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """By name, features [n, width] become places [n, 2]; nothing if there are too few rows in all."""
    rows = sum(map(len, features.values()))
    if rows < FEWEST_POINTS:
        return {}
    if projection() == COMPONENTS:
        return principal_components(features, 2)
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (rows - 1) / 3)
    tsne = TSNE(random_state=seed, init="pca", perplexity=perplexity)
    flat = tsne.fit_transform(np.concatenate(list(features.values())).astype(np.float64))
    return split_like(features, flat)
