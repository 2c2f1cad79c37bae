"""Clusterings of the items, from their factors: k-means is a hundred times cheaper here than a fit of counts."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from gingham.arrays import Floats, Ints
from gingham.engine.threads import one_library_thread

RARE = 3  # items with fewer users say too little of where they belong: they share the last cluster


def cluster_items(
    points: Floats, popularity: Floats, n_clusters: int, rng: np.random.Generator, sweeps: int = 10
) -> Ints:
    """The cluster of each item, numbered from 0 without gaps, shape (n_items,).

    k-means on the points (n_items, f) of items with at least ``RARE`` users, weighted by the root of their number; the
    first centres are items drawn by that weight.
    """
    frequent = np.flatnonzero(popularity >= RARE)
    labels = np.zeros(len(popularity), dtype=np.int64)
    different = len(np.unique(points[frequent], axis=0)) if len(frequent) else 0
    k = min(n_clusters, different)
    if k <= 1:
        labels[popularity < RARE] = 1 if len(frequent) else 0
        return np.unique(labels, return_inverse=True)[1]
    weights = np.sqrt(popularity[frequent])
    seeds = rng.choice(len(frequent), k, replace=False, p=weights / weights.sum())
    with one_library_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few sweeps are enough for a board
        found = KMeans(k, init=points[frequent[seeds]], n_init=1, max_iter=sweeps, random_state=0).fit(
            points[frequent], sample_weight=weights
        )
    labels[:] = k
    labels[frequent] = found.labels_
    return np.unique(labels, return_inverse=True)[1]
