"""Distillation: one checkerboard from the predictions of a model that adds up or averages many of them.

The predictions of such a model are additive effects plus a product of low rank,

    P[u, i] = base + a_u + b_i + ⟨L_u, R_i⟩.

Double centring takes all additive effects out of the product; what is left, the interaction, is co-clustered by
weighted least squares. Rows see the interaction through weighted means over the clusters of columns, which are products
with the factors: no table of rows × columns is ever made.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.storage import savable

STARTS, FEW_STARTS = 8, 2  # of k-means, each followed by exchanges until no item moves; few of many items
MANY = 10_000
MOST_SWEEPS = 60
DIRECTIONS = 6  # singular vectors that the starts are made of
RANK = 64  # of compressed factors


@dataclass(frozen=True, eq=False)
class Factors:
    """P[u, i] = base + rows[u] + columns[i] + ⟨left[u], right[i]⟩.

    Attributes
    ----------
    base : float
    rows, columns : arrays of shape (n_1,) and (n_2,)
    left, right : arrays of shape (n_1, r) and (n_2, r)
    """

    base: float
    rows: Floats
    columns: Floats
    left: Floats
    right: Floats

    def centred(self, row_weights: Floats, column_weights: Floats) -> Factors:
        """The same predictions; the product has weighted means of zero along every row and every column."""
        means = [
            np.average(part, axis=0, weights=weights) if weights.sum() > 0 else part.mean(axis=0)
            for part, weights in ((self.left, row_weights), (self.right, column_weights))
        ]
        left, right = self.left - means[0], self.right - means[1]
        return Factors(
            self.base + float(means[0] @ means[1]), self.rows + left @ means[1], self.columns + right @ means[0],
            left, right,
        )  # fmt: skip

    def compressed(self, rank: int = RANK) -> Factors:
        """The same with at most ``rank`` columns, the best in least squares."""
        if self.left.shape[1] <= rank:
            return self
        q, s, r = product_svd(self.left, self.right)
        return Factors(self.base, self.rows, self.columns, q[:, :rank] * s[:rank], r[:, :rank])


def product_svd(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """U, s, V with left @ right.T = U diag(s) V.T, without the product."""
    q, r = np.linalg.qr(left)
    p, t = np.linalg.qr(right)
    u, s, v = np.linalg.svd(r @ t.T)
    return q @ u[:, : len(s)], s, p @ v.T[:, : len(s)]


@savable
@dataclass(frozen=True, eq=False)
class Distilled:
    """Additive effects and one checkerboard of the rest.

    Attributes
    ----------
    base : float
    effects : pair of arrays of shape (n_1,) and (n_2,)
    labels : pair of int arrays of shape (n_1,) and (n_2,)
        Clusters without gaps.
    blocks : array of shape (m_1, m_2)
        What each block adds.
    share : float
        Share of the interaction's weighted squares that the blocks explain.
    """

    base: float
    effects: tuple[Floats, Floats]
    labels: tuple[Ints, Ints]
    blocks: Floats
    share: float

    def expected(self, codes: Sequence[Ints]) -> Floats:
        """What the additive effects say of rows of codes; −1 stands for an item that was not seen."""
        first, second = (np.append(own, 0.0)[code] for own, code in zip(self.effects, codes))
        return np.asarray(self.base + first + second)


def distill(factors: Factors, weights: tuple[Floats, Floats], n_clusters: tuple[int, int]) -> Distilled:
    """The checkerboard that reproduces the interaction best, by weighted least squares from several starts.

    ``weights`` say how often each row and each column was observed: pairs count by the product.
    """
    factors = factors.centred(*weights)
    w, v = (np.maximum(own, 1e-3) / max(float(own.mean()), 1e-12) for own in weights)
    u, s, z = product_svd(np.sqrt(w)[:, None] * factors.left, np.sqrt(v)[:, None] * factors.right)
    points = [side[:, :DIRECTIONS] * s[:DIRECTIONS] / np.sqrt(own)[:, None] for side, own in ((u, w), (z, v))]
    sizes = [min(k, len(p)) for k, p in zip(n_clusters, points)]
    best: tuple[float, Ints, Ints] | None = None
    if s[0] > 1e-9:
        from sklearn.cluster import KMeans  # loaded where something is distilled
        from sklearn.exceptions import ConvergenceWarning

        for start in range(STARTS if max(len(w), len(v)) <= MANY else FEW_STARTS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters
                a, b = (
                    KMeans(k, n_init=1, random_state=1000 * start).fit(p, sample_weight=own).labels_
                    for k, p, own in zip(sizes, points, (w, v))
                )
            found = _exchange(factors.left, factors.right, w, v, a.astype(np.int64), b.astype(np.int64))
            best = found if best is None or found[0] > best[0] else best
    explained, a, b = best or (0.0, np.zeros(len(w), dtype=np.int64), np.zeros(len(v), dtype=np.int64))
    a, b = (np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in (a, b))
    blocks = _means(factors.left, w, a) @ _means(factors.right, v, b).T
    share = explained / max(float((s**2).sum()), 1e-300)
    return Distilled(factors.base, (factors.rows, factors.columns), (a, b), blocks, float(share))


def _exchange(left: Floats, right: Floats, w: Floats, v: Floats, a: Ints, b: Ints) -> tuple[float, Ints, Ints]:
    """Rows to the nearest cluster given the columns' clusters, columns likewise, until nothing moves."""
    for _ in range(MOST_SWEEPS):
        before = a, b
        a = _nearest(left, w, a, _means(right, v, b), np.bincount(b, v).astype(float))
        b = _nearest(right, v, b, _means(left, w, a), np.bincount(a, w).astype(float))
        if (a == before[0]).all() and (b == before[1]).all():
            break
    blocks = _means(left, w, a) @ _means(right, v, b).T
    return float(np.bincount(a, w, len(blocks)) @ blocks**2 @ np.bincount(b, v, blocks.shape[1])), a, b


def _nearest(own: Floats, weights: Floats, labels: Ints, others: Floats, masses: Floats) -> Ints:
    """argmin_c Σ_d V_d (⟨own, others_d⟩ − block[c, d])², with blocks at the means of the present clusters."""
    seen = own @ others.T  # means over the clusters of the other side, (n, m)
    blocks = _means(seen, weights, labels)
    return np.asarray((-2 * (seen * masses) @ blocks.T + (blocks**2 @ masses)).argmin(axis=1))


def _means(points: Floats, weights: Floats, labels: Ints) -> Floats:
    """Weighted means of points by cluster, (m, r)."""
    mass = np.bincount(labels, weights)
    sums = np.stack([np.bincount(labels, weights * column, len(mass)) for column in points.T], axis=1)
    return np.asarray(sums / np.maximum(mass, 1e-300)[:, None])
