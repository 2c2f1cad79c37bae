"""Rows and columns as points of one plane (P2 Figure 10)."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.manifold import Isomap

from gingham.arrays import Floats
from gingham.core.problem import Posterior


def joint_coordinates(posterior: Posterior) -> tuple[Floats, Floats]:
    """Rows (n_1, r) and columns (n_2, r) in one space, a row in the direction of the columns it prefers.

    With the cells' values M − mean = U S Vᵀ: rows at q_1 U √S, columns at q_2 V √S, whose inner products are
    centred predictions. Each mode is centred and brought to spread one, so that the two clouds overlap.
    """
    values = posterior.cells[0].values(posterior.answers[0])
    left, sizes, right = np.linalg.svd(values - values.mean(), full_matrices=False)
    kept = sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    root = np.sqrt(sizes[kept])
    rows, columns = (q @ (side * root) for q, side in zip(posterior.factor(), (left[:, kept], right.T[:, kept])))
    return _overlaid(rows), _overlaid(columns)


def _overlaid(points: Floats) -> Floats:
    centred = points - points.mean(axis=0)
    spread = float(np.sqrt((centred**2).sum(1).mean())) if points.shape[1] else 0.0
    return centred / (spread if spread > 0 else 1.0)


def co_embedding(posterior: Posterior, n_components: int, n_neighbors: int, joint: bool) -> tuple[Floats, Floats]:
    """Isomap of the memberships: of both modes together, or (as P2 has it) of each mode's own."""
    if joint:
        rows, columns = joint_coordinates(posterior)
        points = _isomap(np.vstack([rows, columns]), n_components, n_neighbors)
        return points[: len(rows)], points[len(rows) :]
    first, second = (_isomap(q, n_components, n_neighbors) for q in posterior.factor())
    return first, second


def _isomap(points: Floats, n_components: int, n_neighbors: int) -> Floats:
    # The nearest-neighbour graph may fall apart: Isomap then joins its parts, which is as wanted.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of connected components")
        warnings.filterwarnings("ignore", category=np.exceptions.ComplexWarning)
        warnings.filterwarnings("ignore", message="Changing the sparsity structure")
        isomap = Isomap(n_components=n_components, n_neighbors=min(n_neighbors, len(points) - 1))
        result: Floats = isomap.fit_transform(points)
    return result
