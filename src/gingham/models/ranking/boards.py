"""Basket boards: what having taken items of one cluster says of every other item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from gingham.arrays import Floats, Ints
from gingham.engine.k_means import k_means
from gingham.engine.threads import one_blas_thread, one_library_thread
from gingham.models.ranking.baskets import Baskets, Tables, Taken, membership
from gingham.models.ranking.kernels import grams
from gingham.storage import savable

SCALE = -0.4  # a basket's groups are counted times |N(u)|^SCALE
USER_WEIGHT = -0.3  # users weigh |N(u)|^USER_WEIGHT in the ridge
FREE = 0.01  # the intercept's share of the penalty
BLOCK = 4096  # targets that are solved at a time
DIRECTIONS = 64  # of the boards' effect on users, by which targets are clustered
SAMPLED = 4096  # users by whom these directions are found
RELATIVE_RIDGE = 0.01  # of the cells of a compressed board, as a share of the average square of its features


@savable
@dataclass(frozen=True, eq=False)
class BasketBoard:
    """score(u, i) = intercept_i + |N(u)|^SCALE Σ_c weights[c, i] |N(u) ∩ c|.

    Attributes
    ----------
    labels : (n_items,) the cluster of each item as part of a basket
    weights : float32 (n_clusters, n_targets)
    intercept : float32 (n_targets,)
    square : (n_clusters + 1, n_clusters + 1), Σ_u w_u f_u f_u' of the features, the last one the constant
    """

    labels: Ints
    weights: Floats
    intercept: Floats
    square: Floats


def features(baskets: Baskets, labels: Ints, n_clusters: int) -> sparse.csr_array:
    """|N(u)|^SCALE |N(u) ∩ c| and a last column of ones, shape (n_users, n_clusters + 1)."""
    counts = sparse.csr_array(baskets.taken @ membership(labels, n_clusters))
    counts.data *= np.repeat(baskets.power(SCALE), np.diff(counts.indptr)).astype(np.float32)
    ones = sparse.csr_array(np.ones((baskets.n_users, 1), dtype=np.float32))
    return sparse.csr_array(sparse.hstack([counts, ones], format="csr"))


@dataclass(frozen=True, eq=False)
class Equations:
    """The normal equations of all targets of a board, to be solved for one penalty or several.

    For target i with cluster d the rows f_u of its owners become f_u − s_u e_d (s_u = |N(u)|^SCALE), because the
    target itself is taken out of the basket: a change of rank two of the Gram A that all targets share,
    A_i = A + U C U' with U = [e_d, v_i], v_i = −Σ_owners w_u s_u f_u and C⁻¹ = [[0, 1], [1, −σ_i]],
    σ_i = Σ_owners w_u s_u². By Woodbury one inverse P of A serves all targets:
    A_i⁻¹ r = P r − P U (C⁻¹ + U' P U)⁻¹ U' P r.

    Attributes
    ----------
    labels : (n_items,)
    own : (n_targets,), the cluster of each target
    square : (k + 1, k + 1), Σ_u w_u f_u f_u'
    right, change : (n_targets, k + 1), Σ_owners w_u f_u and v_i
    first, second : (n_targets,), Σ_owners w_u s_u and σ_i
    """

    labels: Ints
    own: Ints
    square: Floats
    right: Floats
    change: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, baskets: Taken, labels: Ints, targets: Ints | None = None) -> Equations:
        targets = np.arange(baskets.n_items) if targets is None else targets
        k, mean = int(labels.max()) + 1, float(baskets.power(USER_WEIGHT).mean())
        right, change = baskets.tables(len(targets), k + 1, _right, labels, k, mean, targets)
        square, *each = baskets.added(_square, labels, k, mean)
        return cls(
            labels, labels[targets], square.astype(np.float32).astype(np.float64), right, change,
            *(value[targets] for value in each),
        )  # fmt: skip

    def solve(self, penalty: float) -> BasketBoard:
        """The ridge regression of every target on the groups of the basket."""
        k = len(self.square) - 1
        found = np.empty((len(self.own), k + 1), dtype=np.float32)
        with one_blas_thread():
            inverse = np.linalg.inv(self.square + np.diag(np.append(np.full(k, penalty), FREE * penalty)))
            for a in range(0, len(self.own), BLOCK):
                part = slice(a, a + BLOCK)
                found[part] = _solve(
                    inverse, self.own[part], self.right[part], self.change[part], self.first[part], self.second[part]
                )
        return BasketBoard(self.labels, np.ascontiguousarray(found[:, :k].T), found[:, k].copy(), self.square)


def _right(part: Baskets, labels: Ints, k: int, mean: float, targets: Ints, a: int, b: int) -> Tables:
    """Rows a:b of ``right`` and ``change`` that some users make."""
    weights = part.power(USER_WEIGHT) / mean
    wanted = part.taken if b - a == part.n_items else part.of_items(targets[a:b]).taken
    return grams(wanted, features(part, labels, k), weights, -weights * part.power(SCALE))


def _square(part: Baskets, labels: Ints, k: int, mean: float) -> Tables:
    """What some users make of ``square``, and of ``first`` and ``second`` of all items."""
    weights, scale, rows = part.power(USER_WEIGHT) / mean, part.power(SCALE), features(part, labels, k)
    of_items = (
        np.bincount(part.taken.indices, value[part.owners], part.n_items).astype(np.float64)
        for value in (weights * scale, weights * scale**2)
    )
    return (*grams(rows, rows, weights), *of_items)


def fit_board(baskets: Taken, labels: Ints, penalty: float, targets: Ints | None = None) -> BasketBoard:
    """One board: ridge regressions on the basket's groups, every target taken out of its own owners' baskets."""
    return Equations.of(baskets, labels, targets).solve(penalty)


def _solve(inverse: Floats, own: Ints, right: Floats, change: Floats, first: Floats, second: Floats) -> Floats:
    """Columns of the board for one block of targets, shape (targets, k + 1)."""
    at = np.arange(len(own))
    r, v, single = right.copy(), change, inverse.astype(np.float32)
    r[at, own] -= first
    pr, pv = r @ single, v @ single  # the two large products, in float32
    inner = np.empty((len(own), 2, 2))
    inner[:, 0, 0] = inverse[own, own]
    inner[:, 0, 1] = inner[:, 1, 0] = 1.0 + pv[at, own]
    inner[:, 1, 1] = np.einsum("tk,tk->t", v, pv) - second
    outer = np.stack([pr[at, own], np.einsum("tk,tk->t", v, pr)], axis=1)
    x = np.linalg.solve(inner, outer[:, :, None])[:, :, 0]
    return pr - inverse[own] * x[:, :1] - pv * x[:, 1:]


@dataclass(frozen=True, eq=False)
class Board:
    """A board that can be read: groups of what people have × groups of what they are drawn to.

    score(u, i) = intercept_i + |N(u)|^SCALE · size_i · Σ_c table[c, target_group(i)] |N(u) ∩ c|

    Attributes
    ----------
    basket_group, target_group : (n_items,)
    table : float32 (basket groups, target groups)
    size : float32 (n_items,), the root of an item's popularity
    intercept : float32 (n_items,)
    """

    basket_group: Ints
    target_group: Ints
    table: Floats
    size: Floats
    intercept: Floats

    def scores(self, baskets: Baskets) -> Floats:
        """Scores (n_users, n_items); an item is taken out of its own owners' baskets."""
        k = len(self.table)
        rows = features(baskets, self.basket_group, k)[:, :k]
        pulls = np.asarray(rows @ self.table)
        scores: Floats = pulls[:, self.target_group] * self.size + self.intercept
        users, items = baskets.owners, baskets.taken.indices
        own = self.table[self.basket_group[items], self.target_group[items]] * self.size[items]
        scores[users, items] -= baskets.power(SCALE)[users] * own
        return scores


def readable(baskets: Baskets, board: BasketBoard, n_groups: int, rng: np.random.Generator) -> Board:
    """Cluster the targets of a board too: weights[c, i] ≈ size_i table[c, e(i)], intercepts kept.

    Targets are alike when their columns do the same to the users, so columns are compared in the metric of the
    features' covariance (its largest directions): in it, a change of the columns costs what it costs the fit.
    """
    k = len(board.weights)
    size = np.sqrt(baskets.popularity + 1.0)
    mean = board.square / board.square[k, k]
    covariance = mean[:k, :k] - np.outer(mean[k, :k], mean[k, :k])
    columns = board.weights / size
    with one_library_thread():
        values, vectors = np.linalg.eigh(covariance)
        kept = slice(max(k - DIRECTIONS, 0), k)
        effect = (np.sqrt(np.maximum(values[kept], 0.0)) * vectors[:, kept]).T @ columns
        labels = _grouped(effect.T, size**2, n_groups, rng)
    members = membership(labels, int(labels.max()) + 1, size)
    table = np.asarray(members.T @ board.weights.T).T / np.bincount(labels, size**2)
    return Board(board.labels, labels, table.astype(np.float32), size.astype(np.float32), board.intercept)


def compressed(baskets: Baskets, pull: Floats, intercept: Floats, n_groups: int, rng: np.random.Generator) -> Board:
    """The board nearest to a whole ranking intercept_i + |N(u)|^SCALE Σ_{j ∈ N(u)} pull[j, i]: both sides in groups.

    The loss of a linear ranking is its distance to the best one in the metric of the baskets (see the theory page), so
    compressing a good table in that metric is fitting a board. Targets are alike when their columns do the same to
    the users, items of a basket when their rows do the same to the targets; both are compared along the largest
    directions of what the table does to (a sample of) the users. The cells are then least squares over all users.
    """
    weights, scale = baskets.power(USER_WEIGHT), baskets.power(SCALE)
    size = np.sqrt(baskets.popularity + 1.0)
    some = np.sort(rng.choice(baskets.n_users, min(baskets.n_users, SAMPLED), replace=False))
    with one_library_thread():
        effect = _scaled(baskets.of_users(some), scale[some]) @ pull
        effect -= np.average(effect, axis=0, weights=weights[some]).astype(np.float32)
        effect *= np.sqrt(weights[some])[:, None].astype(np.float32)
        n_directions = min(DIRECTIONS, *effect.shape)
        _, values, directions = randomized_svd(effect, n_directions, n_iter=3, random_state=0)
        targets = _grouped((directions * values[:, None]).T / size[:, None], size**2, n_groups, rng)
        weight = np.bincount(baskets.taken.indices, (weights * scale**2)[baskets.owners], baskets.n_items)
        groups = _grouped(pull @ directions.T, weight + weight.mean() * 1e-6, n_groups, rng)
        wanted = _scaled(baskets, scale) @ (
            np.asarray(membership(targets, int(targets.max()) + 1, size).T @ pull.T).T / np.bincount(targets, size**2)
        ).astype(np.float32)
        k = int(groups.max()) + 1
        rows = features(baskets, groups, k)
        (square,) = grams(rows, rows, weights)
        square[np.arange(k), np.arange(k)] += RELATIVE_RIDGE * np.trace(square[:k, :k]) / k
        found = np.linalg.solve(square, rows.T @ (wanted * weights[:, None]))
    table, constant = found[:k].astype(np.float32), (size * found[k, targets]).astype(np.float32)
    return Board(groups, targets, table, size.astype(np.float32), intercept + constant)


def _scaled(baskets: Baskets, scale: Floats) -> sparse.csr_array:
    """|N(u)|^SCALE where a user took an item."""
    return sparse.csr_array(sparse.diags_array(scale.astype(np.float32)) @ baskets.taken)


def _grouped(points: Floats, weights: Floats, n_groups: int, rng: np.random.Generator) -> Ints:
    labels = k_means(np.ascontiguousarray(points, dtype=np.float32), weights, n_groups, rng)
    return np.unique(labels, return_inverse=True)[1]


def coarser(board: Board, groups: Ints, baskets: Baskets) -> Board:
    """The same board seen through one coarse grouping of the items on both sides: averages, for people to read.

    A row averages what the items of a basket group say (each as often as it is taken), a column is the least-squares
    answer of its targets, as in `readable`.
    """
    popularity = baskets.popularity
    k = int(groups.max()) + 1
    taken = np.bincount(groups, popularity, k)
    rows = np.zeros((k, len(board.table)))
    np.add.at(rows, (groups, board.basket_group), popularity / np.maximum(taken, 1.0)[groups])
    mass = np.bincount(groups, board.size**2, k)
    columns = np.zeros((board.table.shape[1], k))
    np.add.at(columns, (board.target_group, groups), board.size**2 / mass[groups])
    table = (rows @ board.table @ columns).astype(np.float32)
    return Board(groups, groups, table, board.size, board.intercept)
