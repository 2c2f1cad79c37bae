"""Planted tables that share a side, and planted views of the same objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError


class PlantedRelations(NamedTuple):
    """Relations over shared modes.

    Attributes
    ----------
    relations : mapping from a pair of mode names to (X, y), as JointCoClustering takes them
    labels : mapping from mode name to the planted cluster of each item
    risk : float
        Expected zero-one loss of the planted clusters, in every relation.
    """

    relations: Mapping[tuple[str, str], tuple[Ints, Ints]]
    labels: Mapping[str, Ints]
    risk: float


class PlantedViews(NamedTuple):
    """Views of the same objects: arrays (n, d_i), and the planted cluster of each object."""

    views: tuple[Floats, ...]
    labels: Ints


def planted_relations(
    n_items: Mapping[str, int] | None = None,
    n_clusters: Mapping[str, int] | None = None,
    pairs: Sequence[tuple[str, str]] = (("viewer", "movie"), ("movie", "genre")),
    n_tuples: int = 5000,
    *,
    n_labels: int = 3,
    noise: float = 0.1,
    seed: int = 0,
) -> PlantedRelations:
    """Tables whose cells answer by one clustering of each mode, with ``noise`` of the labels replaced."""
    sizes = {"viewer": 80, "movie": 60, "genre": 12} if n_items is None else dict(n_items)
    clusters = dict.fromkeys(sizes, 3) if n_clusters is None else dict(n_clusters)
    for pair in pairs:
        for name in pair:
            if name not in sizes or name not in clusters:
                raise GinghamError(f"Mode {name!r} of pair {pair} has no entry in n_items and n_clusters.")
    if not 0 <= noise <= (n_labels - 1) / n_labels or n_labels < 2:
        raise GinghamError(f"noise={noise} must be from 0 to (n_labels − 1)/n_labels, with at least two labels.")
    rng = np.random.default_rng(seed)
    labels = {name: rng.permutation(np.arange(n) % clusters[name]) for name, n in sizes.items()}
    relations = {}
    for first, second in pairs:
        # a Latin pattern tells all clusters of both sides apart
        answers = (np.arange(clusters[first])[:, None] + np.arange(clusters[second])) % n_labels
        X = np.column_stack([rng.integers(0, sizes[name], n_tuples) for name in (first, second)])
        clean = answers[labels[first][X[:, 0]], labels[second][X[:, 1]]]
        wrong = rng.random(n_tuples) < noise
        y = np.where(wrong, (clean + rng.integers(1, n_labels, n_tuples)) % n_labels, clean)
        relations[first, second] = (X, y)
    return PlantedRelations(relations, labels, float(noise))


def planted_views(
    n: int = 300, n_clusters: int = 3, sizes: Sequence[int] = (10, 8), *, spread: float = 0.3, seed: int = 0
) -> PlantedViews:
    """Gaussian clusters seen through a random linear map in each view, with noise of its own."""
    if n_clusters < 1 or n < n_clusters or len(sizes) < 2 or not spread >= 0:
        raise GinghamError("At least one cluster, an object for each, two views and a spread from 0 are needed.")
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % n_clusters)
    shared = 2.0 * np.eye(n_clusters)[labels] + spread * rng.standard_normal((n, n_clusters))
    views = tuple(shared @ rng.standard_normal((n_clusters, d)) + spread * rng.standard_normal((n, d)) for d in sizes)
    return PlantedViews(views, labels)
