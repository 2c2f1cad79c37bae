"""Weighted k-means of arrays or tensors: the same labels from the same seed on cores and on a GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints, beside, namespace, on_host
from gingham.engine.threads import over_blocks

MAX_ITER = 20  # a start needs no more
TOLERANCE = 1e-4  # of the average variance of a coordinate: centres that move less, all together, have settled
SEEDED_ON = 2**14  # points that seeds are looked for among; more make seeds dearer and no better
BLOCK = 2**13  # points whose distances stay in cache; on a GPU DEVICE_BLOCK
DEVICE_BLOCK = 2**20


def k_means(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator, n_init: int = 1) -> Ints:
    """Labels (n_items,) of a weighted k-means with k-means++ seeds; points and labels are arrays or tensors.

    The best of ``n_init`` runs. At most `SEEDED_ON` points, drawn at random, are candidates for seeds, which are
    found on the CPU. No result depends on the number of threads.
    """
    if n_clusters <= 1:
        return namespace(points).zeros_like(points[:, 0], dtype=namespace(points).int64)
    few = np.arange(len(points))
    if len(points) > SEEDED_ON:
        few = np.sort(rng.choice(len(points), SEEDED_ON, replace=False))
    random = np.random.RandomState(int(rng.integers(2**31 - 1)))
    points = points - points.mean(axis=0)  # distances are differences of squares: large ones would drown them
    at = beside(few, points)
    candidates, candidate_weights = on_host(points[at]), on_host(weights[at])
    k = min(n_clusters, len(np.unique(candidates, axis=0)))
    best: tuple[float, Ints] | None = None
    for _ in range(n_init):
        seeds = plus_plus(candidates, candidate_weights, k, random)
        inertia, labels = settled(points, weights, beside(seeds, points))
        if best is None or inertia < best[0]:
            best = inertia, labels
    if best is None:
        raise ValueError("n_init must be at least 1")
    return best[1]


def plus_plus(points: Floats, weights: Floats, k: int, random: np.random.RandomState) -> Floats:
    """Seeds (k, dim) by k-means++: each the best of a few points, drawn by their distance to the seeds before.

    Equivalent to ``kmeans_plusplus(points, k, sample_weight=weights, random_state=random)[0]`` of scikit-learn, whose
    package of clusterings takes most of a second to import.
    """
    squares = np.einsum("ij,ij->i", points, points)

    def distances(at: Ints) -> Floats:
        """Squared distances of all points to some of them, (len(at), n)."""
        return np.maximum(-2 * (points[at] @ points.T) + squares[at][:, None] + squares, 0.0)

    chosen = [int(random.choice(len(points), p=weights / weights.sum()))]
    nearest = distances(np.array(chosen))[0]
    left = float(nearest @ weights)
    for _ in range(1, k):
        drawn = np.searchsorted(np.cumsum(weights * nearest), random.uniform(size=2 + int(np.log(k))) * left)
        drawn = np.minimum(drawn, len(points) - 1)
        closer = np.minimum(nearest, distances(drawn))
        costs = closer @ weights
        best = int(costs.argmin())
        chosen.append(int(drawn[best]))
        nearest, left = closer[best], float(costs[best])
    return points[chosen]


def settled(points: Floats, weights: Floats, centres: Floats) -> tuple[float, Ints]:
    """Lloyd's steps from given centres: Σ w·(squared distance to the own centre), and the labels.

    Equivalent to ``KMeans(k, init=centres, n_init=1, max_iter=20).fit(points, sample_weight=weights)`` of scikit-learn.
    """
    tolerance = TOLERANCE * float(((points - points.mean(axis=0)) ** 2).mean())
    labels = None
    for _ in range(MAX_ITER):
        found = nearest(points, weights, centres)
        if labels is not None and bool((found.labels == labels).all()):
            break
        moved = _centres(found, points, weights, centres)
        shift, centres, labels = float(((moved - centres) ** 2).sum()), moved, found.labels
        if shift <= tolerance:
            break
    labels = nearest(points, weights, centres).labels
    return float((weights * ((points - centres[labels]) ** 2).sum(axis=1)).sum()), labels


class Nearest(NamedTuple):
    """The nearest centre of every point, and what lies nearest to each centre."""

    labels: Ints  # (n,)
    weight: Floats  # (k,)
    sums: Floats  # (k, dim) weighted


def nearest(points: Floats, weights: Floats, centres: Floats) -> Nearest:
    """Equivalent to ``((points[:, None] - centres) ** 2).sum(2).argmin(1)``, and sums by label."""
    xp, k = namespace(points), len(centres)
    squares = (centres**2).sum(axis=1)

    def run(part: slice) -> tuple[Ints, Floats]:
        own, mass = points[part], weights[part]
        labels = (squares - own @ (2.0 * centres.T)).argmin(axis=1)
        columns = [mass, *(mass * own[:, j] for j in range(own.shape[1]))]
        if xp is np:
            return labels, np.stack([np.bincount(labels, column, minlength=k) for column in columns], axis=1)
        # A GPU adds weights up in another order every time, unless a product does it.
        member = (labels[:, None] == xp.arange(k, device=labels.device)).to(points.dtype)
        return labels, member.T @ xp.stack(columns, axis=1)

    size = BLOCK if xp is np else DEVICE_BLOCK
    parts = [slice(at, at + size) for at in range(0, len(points), size)]
    found = list(over_blocks(run, parts) if xp is np else map(run, parts))
    sums = sum(table for _, table in found)
    return Nearest(xp.concatenate([labels for labels, _ in found]), sums[:, 0], sums[:, 1:])  # type: ignore[index]


def _centres(found: Nearest, points: Floats, weights: Floats, centres: Floats) -> Floats:
    """The means of the clusters; one that nothing is nearest to gets a point that is far from its own centre."""
    xp = namespace(points)
    weight, sums = found.weight, found.sums
    empty = np.flatnonzero(on_host(weight) == 0)
    if len(empty):
        distances = on_host(((points - centres[found.labels]) ** 2).sum(axis=1))
        if distances.max() > 0:
            weight, sums = xp.clone(weight) if xp is not np else weight.copy(), sums * 1.0
            for cluster, far in zip(empty.tolist(), np.argsort(-distances, kind="stable").tolist()):
                own = int(found.labels[far])
                sums[own] -= weights[far] * points[far]
                weight[own] -= weights[far]
                sums[cluster] = weights[far] * points[far]
                weight[cluster] = weights[far]
    return xp.where(weight[:, None] > 0, sums / xp.where(weight > 0, weight, 1.0)[:, None], centres)
