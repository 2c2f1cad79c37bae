"""The order in which a checkerboard shows at its best, and its picture as an array. No drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.posterior import Posterior
from gingham.data import Sample
from gingham.errors import GinghamError


@dataclass(frozen=True, eq=False)
class Arrangement:
    """How two modes are laid out side by side.

    Attributes
    ----------
    clusters : pair of int arrays
        Clusters of the row and of the column mode, in the order shown.
    items : pair of int arrays of shape (n_items,)
        Items in the order shown: by cluster, and within a cluster by their memberships in the others.
    bounds : pair of int arrays
        Position after the last item of each cluster shown.
    """

    clusters: tuple[Ints, Ints]
    items: tuple[Ints, Ints]
    bounds: tuple[Ints, Ints]


def arrange(posterior: Posterior, positions: tuple[int, int] = (0, 1), relation: int = 0) -> Arrangement:
    """Clusters in the order of the first singular vectors of the centred cell values, so that like cells meet."""
    factor = posterior.structure.factors[relation]
    if len(factor) < 2 or max(positions) >= len(factor):
        raise GinghamError(f"A checkerboard needs two modes; this relation has {len(factor)}.")
    table = cell_table(posterior, positions, relation)
    masses = [posterior.mass[factor[position]] for position in positions]
    scores = _seriate(table, masses)
    clusters, items, bounds = [], [], []
    for position, score in zip(positions, scores):
        assign = posterior.assign[factor[position]]
        order = np.argsort(score, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        at = rank[assign.argmax(axis=1)]
        clusters.append(order)
        items.append(np.lexsort((assign @ score, at)))
        bounds.append(np.cumsum(np.bincount(at, minlength=len(order))))
    return Arrangement((clusters[0], clusters[1]), (items[0], items[1]), (bounds[0], bounds[1]))


def cell_table(posterior: Posterior, positions: tuple[int, int] = (0, 1), relation: int = 0) -> Floats:
    """Numeric answers of the cells of two modes, shape (m_row, m_column); other modes averaged by mass."""
    factor = posterior.structure.factors[relation]
    values = np.asarray(posterior.cells[relation].values(posterior.answers[relation]), dtype=np.float64)
    for axis in reversed(range(len(factor))):
        if axis not in positions:
            values = np.tensordot(values, posterior.mass[factor[axis]], axes=([axis], [0]))
    return values if positions[0] < positions[1] else values.T


def _seriate(table: Floats, masses: Sequence[Floats]) -> list[Floats]:
    """A number per cluster of each mode: by the mean answer where one direction says nothing more."""
    rows, columns = (np.sqrt(np.maximum(mass, 1e-12)) for mass in masses)
    centred = table - float(masses[0] @ table @ masses[1])
    left, _, right = np.linalg.svd(rows[:, None] * centred * columns[None, :], full_matrices=False)
    scores = [left[:, 0] / rows, right[0] / columns]
    # The sign is free: rows with low answers come first, columns likewise.
    means = [table @ masses[1], masses[0] @ table]
    return [s if np.dot(mass * s, m) >= 0 else -s for s, m, mass in zip(scores, means, masses)]


def picture(
    sample: Sample,
    items: tuple[Ints, Ints] | None = None,
    positions: tuple[int, int] = (0, 1),
    max_pixels: int = 1000,
    zeros: bool = False,
) -> Floats:
    """The mean label under each pixel, rows and columns in the given order; NaN where nothing was observed.

    At most ``max_pixels`` pixels a side: several items share a pixel when there are more of them. With ``zeros``
    what is not listed counts as zero, so that a pixel shows the mean over all its pairs.
    """
    shape = tuple(sample.shape[position] for position in positions)
    at, size, shared = [], [], []
    for side, position in enumerate(positions):
        rank = np.arange(shape[side])
        if items is not None:
            rank = np.empty(shape[side], dtype=np.int64)
            rank[items[side]] = np.arange(shape[side])
        n_pixels = min(shape[side], max_pixels)
        pixels = rank * n_pixels // max(shape[side], 1)
        at.append(pixels[sample.codes[position]])
        shared.append(np.bincount(pixels, minlength=n_pixels))
        size.append(n_pixels)
    flat = at[0] * size[1] + at[1]
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    count = np.bincount(flat, weights, minlength=size[0] * size[1])
    total = np.bincount(flat, weights * labels, minlength=size[0] * size[1])
    if zeros:
        count = np.outer(shared[0], shared[1]).ravel().astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (total / count).reshape(size[0], size[1])


def embedding(posterior: Posterior, positions: tuple[int, int], relation: int) -> tuple[Floats, Floats]:
    """Both modes on one map: an item and the items it gets high answers from lie in the same direction.

    The singular vectors of the centred cells, weighted by cluster masses, as in correspondence analysis.
    """
    factor = posterior.structure.factors[relation]
    table = cell_table(posterior, positions, relation)
    masses = [posterior.mass[factor[position]] for position in positions]
    rows, columns = (np.sqrt(np.maximum(mass, 1e-12)) for mass in masses)
    centred = table - (masses[0] @ table)[None, :] - (table @ masses[1])[:, None] + masses[0] @ table @ masses[1]
    left, scale, right = np.linalg.svd(rows[:, None] * centred * columns[None, :], full_matrices=False)
    places = []
    for side, (vectors, root) in enumerate(((left, rows), (right.T, columns))):
        coordinates = np.zeros((len(root), 2))
        k = min(2, vectors.shape[1])
        coordinates[:, :k] = vectors[:, :k] * np.sqrt(scale[:k]) / root[:, None]
        assign = np.asarray(posterior.assign[factor[positions[side]]], dtype=np.float64)
        places.append(assign @ coordinates)
    return places[0], places[1]
