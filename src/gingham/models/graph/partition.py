"""Finding a hard partition of a graph: too many clusters from a spectrum, sweeps, merging, sweeps.

What a partition is worth is its description length: the cost of its blocks, of who belongs where, and of there being
so many clusters. `BlockSums` says by how much it changes when two clusters become one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import lgamma, log
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, svds
from scipy.special import gammaln, xlogy
from sklearn.cluster import KMeans

from gingham.arrays import Bools, Floats, Ints
from gingham.cells import CellModel
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.data import Moments
from gingham.data.graphs import PairSample
from gingham.kernels.threads import one_library_thread
from gingham.models.graph.adjacency import hard_statistics, weighted_pairs
from gingham.models.graph.solvers import (
    DegreeMoves,
    HardMoves,
    answered,
    cluster_sizes,
    codes_edges,
    hard_moves,
    node_kernels,
    pair_sample,
)

FIRST_SWEEPS, LATER_SWEEPS = 3, 30
FIRST_CLUSTERS, MOST_CLUSTERS = 20, 320  # when the number of clusters is not known: tried first, and at most
DIMENSIONS = 20  # of the spectral embedding when the number of clusters is not known
FEW, NEAREST = 48, 12  # up to FEW clusters all pairs are tried, beyond that the NEAREST of each
GRID = 65  # answers a cell of continuous answers is charged for: ln 65 nats, a grid of 1/64


# what a partition costs


class DescriptionLength(Protocol):
    """What a partition costs, in nats: a sum over blocks, one over clusters, and a price of k clusters."""

    def blocks(self, table: Floats, within: bool) -> Floats:
        """Cost of blocks with statistics (…, K), shape (…)."""

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        """Cost of clusters of given sizes and shares (degree sums), shape (…)."""

    def count(self, n: int, k: int) -> float:
        """Cost of there being k clusters of n nodes, and of everything that no move changes."""


class _Partition:
    """ln n!/Π s! + ln C(n + k − 1, k − 1): the sizes of the clusters, then who belongs where."""

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        return -gammaln(sizes + 1.0)

    def count(self, n: int, k: int) -> float:
        return lgamma(n + 1) + log_binomial(n + k - 1, k - 1)


@dataclass(frozen=True)
class ExactBernoulli(_Partition):
    """Σ_blocks ln C(S, M) + ln(S + 1): M ones among S pairs, exactly; statistics are (zeros, ones)."""

    def blocks(self, table: Floats, within: bool) -> Floats:
        pairs, ones = table.sum(axis=-1), table[..., 1]
        return gammaln(pairs + 1.0) - gammaln(ones + 1.0) - gammaln(pairs - ones + 1.0) + np.log(pairs + 1.0)


@dataclass(frozen=True)
class TradeOff(_Partition):
    """Σ_blocks β · (least loss) + ln(number of answers), for any cell model."""

    cell: CellModel
    beta: float

    def blocks(self, table: Floats, within: bool) -> Floats:
        price = log(self.cell.n_answers or GRID)
        return self.beta * self.cell.envelope(table) + price


@dataclass(frozen=True)
class DegreeCorrected(_Partition):
    """Edges of a multigraph with the degrees given: ln Π e_r! − Σ_{r<s} ln e_rs! − Σ_r ln e_rr!! (Peixoto 2017).

    Statistics are (edges,); a cluster's share e_r is the sum of its degrees. The block counts cost
    ln C(k(k + 1)/2 + E − 1, E).
    """

    n_edges: float

    def blocks(self, table: Floats, within: bool) -> Floats:
        edges = table[..., 0]
        return -gammaln(edges + 1.0) - (edges * log(2.0) if within else 0.0)

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        return gammaln(shares + 1.0) - gammaln(sizes + 1.0)

    def count(self, n: int, k: int) -> float:
        return super().count(n, k) + log_binomial(k * (k + 1) / 2 + self.n_edges - 1, self.n_edges)


def log_binomial(n: float, k: float) -> float:
    """ln C(n, k)."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums over the blocks of a partition."""

    # (k, k, K): statistics of pairs in each block; of an undirected graph, block (a, b) and block (b, a) hold the
    # same pairs, and block (a, a) holds each pair twice
    table: Floats
    sizes: Floats  # (k,), and so are the shares
    shares: Floats
    directed: bool = False

    @property
    def k(self) -> int:
        return len(self.sizes)

    def cost(self, code: DescriptionLength) -> float:
        """Description length of the partition and of the pairs given the partition, nats."""
        between = self._between(self.table, self.table.transpose(1, 0, 2), code)
        off = between[np.triu_indices(self.k, 1)].sum()
        own = self._within(np.einsum("aak->ak", self.table), code).sum()
        n = round(float(self.sizes.sum()))
        return float(off + own + code.clusters(self.sizes, self.shares).sum()) + code.count(n, self.k)

    def near(self) -> Bools:
        """Which pairs of clusters are worth trying, (k, k): all, or among many clusters those with like profiles.

        A profile is how a cluster's weight is spread over the others; NEAREST by Hellinger distance.
        """
        if self.k <= FEW:
            return np.ones((self.k, self.k), dtype=bool)
        weight = np.maximum(self.table[..., -1], 0.0)
        root = np.sqrt(weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300))
        alike = root @ root.T
        np.fill_diagonal(alike, -1.0)
        best = np.argpartition(-alike, NEAREST, axis=1)[:, :NEAREST]
        chosen = np.zeros((self.k, self.k), dtype=bool)
        np.put_along_axis(chosen, best, True, axis=1)
        return chosen | chosen.T

    def gains(self, code: DescriptionLength) -> Floats:
        """Change of cost when clusters i < j become one, (k, k), +inf elsewhere; the price of k left out."""
        near = self.near()
        k, table = self.k, self.table
        turned = table.transpose(1, 0, 2)
        between = self._between(table, turned, code)
        np.fill_diagonal(between, 0.0)
        own = self._within(np.einsum("aak->ak", table), code)
        rows, single = between.sum(axis=1), code.clusters(self.sizes, self.shares)
        change = np.full((k, k), np.inf)
        for i in range(k - 1):
            js = i + 1 + np.flatnonzero(near[i, i + 1 :])
            both = self._between(table[i] + table[js], turned[i] + turned[js], code)
            both[:, i] = 0.0
            both[np.arange(len(js)), js] = 0.0
            inside = table[i, i] + table[js, js] + table[i, js] + table[js, i]
            after = both.sum(axis=1) + self._within(inside, code)
            before = rows[i] + rows[js] - between[i, js] + own[i] + own[js]
            joined = code.clusters(self.sizes[i] + self.sizes[js], self.shares[i] + self.shares[js])
            change[i, js] = after - before + joined - single[i] - single[js]
        return change

    def merged(self, into: Ints) -> BlockSums:
        """Clusters with equal entries of ``into`` (k,) become one; entries are 0, 1, …"""
        one_hot = np.eye(int(into.max()) + 1)[into]
        table = np.einsum("ap,abk,bq->pqk", one_hot, self.table, one_hot, optimize=True)
        return BlockSums(table, one_hot.T @ self.sizes, one_hot.T @ self.shares, self.directed)

    def _between(self, table: Floats, turned: Floats, code: DescriptionLength) -> Floats:
        cost = code.blocks(table, within=False)
        return cost + code.blocks(turned, within=False) if self.directed else cost

    def _within(self, table: Floats, code: DescriptionLength) -> Floats:
        return code.blocks(table if self.directed else table / 2.0, within=True)


def merge_greedily(blocks: BlockSums, code: DescriptionLength, target: int | None = None) -> Ints:
    """Merge the best pairs until ``target`` clusters are left or, without a target, while the cost falls.

    Among many clusters several disjoint pairs are merged at a time. Returns the new cluster of each old
    one, shape (k,).
    """
    into = np.arange(blocks.k)
    n = round(float(blocks.sizes.sum()))
    while blocks.k > (target or 1):
        change = blocks.gains(code)
        flat = np.argsort(change, axis=None)
        at_once = max(1, blocks.k // 12)
        if target is not None:
            at_once = min(at_once, blocks.k - target)
        taken = np.zeros(blocks.k, dtype=bool)
        now, done = np.arange(blocks.k), 0
        fewer = code.count(n, blocks.k - 1) - code.count(n, blocks.k)
        for i, j in zip(*np.unravel_index(flat[: 4 * at_once * blocks.k], change.shape)):
            worse = change[i, j] + fewer >= 0
            if done == at_once or not np.isfinite(change[i, j]) or (worse and (target is None or done)):
                break
            if taken[i] or taken[j]:
                continue
            taken[[i, j]] = True
            now[j] = i
            done += 1
        if done == 0:
            break
        _, now = np.unique(now, return_inverse=True)
        into, blocks = now[into], blocks.merged(now)
    return into


# the search


@dataclass(frozen=True, eq=False)
class Partition:
    """Hard clusters of the nodes and their description length in nats."""

    labels: Ints
    n_clusters: int
    cost: float


@dataclass(frozen=True, eq=False)
class PartitionSearch:
    """All that a search for a partition needs: how nodes move, what a partition costs, how blocks are summed."""

    sample: PairSample
    moves: HardMoves
    code: DescriptionLength
    # of labels and k: statistics of the blocks, shape (k, k, K), as in `BlockSums`
    statistics: Callable[[Ints, int], Floats]
    degree: Floats  # (n,): what clusters have shares of where degrees are corrected for; zeros otherwise

    @classmethod
    def of(cls, problem: Problem, backend: str = "auto", degree_correction: bool = False) -> PartitionSearch:
        """The search that fits a loss: exact code lengths for 0/1 graphs, objective plus answers otherwise."""
        sample, cell = pair_sample(problem, "The search for a partition", 2), problem.cells[0]
        kernels = node_kernels(backend)
        double = 1.0 if sample.directed else 2.0
        if degree_correction:
            pairs, listed = weighted_pairs(sample), sample.listed()
            degree = pairs.strengths
            code = DegreeCorrected(float(pairs.values.sum() / 2.0))

            def edges(labels: Ints, k: int) -> Floats:
                return double * hard_statistics(listed, Moments(1), labels, k)[..., 1:]

            return cls(sample, DegreeMoves(kernels, pairs, degree), code, edges, degree)

        def statistics(labels: Ints, k: int) -> Floats:
            return double * hard_statistics(sample, cell.features, labels, k)

        exact = ExactBernoulli() if codes_edges(problem) else TradeOff(cell, problem.betas[0])
        return cls(sample, hard_moves(problem, sample, kernels), exact, statistics, np.zeros(sample.n_nodes))

    def blocks(self, labels: Ints, k: int) -> BlockSums:
        sizes, shares = cluster_sizes(labels, k), cluster_sizes(labels, k, self.degree)
        return BlockSums(self.statistics(labels, k), sizes, shares, self.sample.directed)

    def choose_size(self, start: Callable[[int], Ints], rng: np.random.Generator, most: int) -> Partition:
        """The number of clusters by description length; ``start(k)`` gives a partition into about k clusters.

        FIRST_CLUSTERS are a cap at first. A cap that binds is doubled, up to ``most``.
        """
        cap = FIRST_CLUSTERS
        best = self.descend(start(min(cap, most)), rng)
        while best.n_clusters > 0.6 * cap and cap < most:
            cap *= 2
            finer = self.descend(start(min(cap, most)), rng)
            if finer.cost >= best.cost:
                break
            best = finer
        return best

    def merge(self, labels: Ints, n_clusters: int | None = None) -> tuple[Ints, int]:
        """Merge clusters down to ``n_clusters``, or while the cost falls; new labels and their number."""
        labels, k = compact(labels)
        return compact(merge_greedily(self.blocks(labels, k), self.code, n_clusters)[labels])

    def descend(self, start: Ints, rng: np.random.Generator, n_clusters: int | None = None) -> Partition:
        """Sweep a fine partition, merge down to ``n_clusters`` (or while the cost falls), sweep again.

        Over-clustering and merging is what makes the result reliable: a start with the right number of
        clusters often has two planted clusters in one, and no single-node move leads out of that.
        """
        labels, k = compact(start)
        labels, k = self.merge(self.moves.improve(labels, k, rng, FIRST_SWEEPS), n_clusters)
        labels, k = compact(self.moves.improve(labels, k, rng, LATER_SWEEPS))
        best = Partition(labels, k, self.blocks(labels, k).cost(self.code))
        while n_clusters is None and best.n_clusters > 1:
            blocks = self.blocks(best.labels, best.n_clusters)
            i, j = np.unravel_index(int(blocks.gains(self.code).argmin()), (best.n_clusters, best.n_clusters))
            labels, k = compact(np.where(best.labels == j, i, best.labels))
            labels, k = compact(self.moves.improve(labels, k, rng, 5))
            cost = self.blocks(labels, k).cost(self.code)
            if cost >= best.cost:
                break
            best = Partition(labels, k, cost)
        return best


def find_partition(
    problem: Problem,
    n_clusters: int | None,
    rng: np.random.Generator,
    *,
    at_random: bool = False,
    most: int = MOST_CLUSTERS,
    degree_correction: bool = False,
    backend: str = "auto",
) -> Partition:
    """A partition into ``n_clusters``, or into as many as the description length says, at most ``most``.

    The search begins with about twice as many clusters, from a spectrum or ``at_random``.
    """
    search = PartitionSearch.of(problem, backend, degree_correction)
    n = search.sample.n_nodes

    def start(k: int) -> Ints:
        k = min(k, n)
        if at_random or n < 4:
            return rng.integers(0, k, n)
        dimensions = n_clusters or max(DIMENSIONS, min(60, k // 2))
        return spectral_partition(search.sample, k, rng, dimensions, degree_correction)

    if n_clusters is None:
        return search.choose_size(start, rng, min(most, n))
    if n_clusters == 1:
        return Partition(np.zeros(n, dtype=np.int64), 1, 0.0)
    return search.descend(start(2 * n_clusters), rng, n_clusters)


def compact(labels: Ints) -> tuple[Ints, int]:
    """The same partition with clusters 0, …, k − 1, none empty."""
    used, labels = np.unique(labels, return_inverse=True)
    return labels.ravel().astype(np.int64), len(used)


def spectral_partition(
    sample: PairSample, k: int, rng: np.random.Generator, dimensions: int | None = None, by_degree: bool = False
) -> Ints:
    """k-means of nodes on the leading eigenvectors of the weights; see `embedding`."""
    with one_library_thread():
        points = embedding(sample, min(dimensions or k, sample.n_nodes - 2), rng, by_degree)
        seed = int(rng.integers(2**31 - 1))
        distinct = len(np.unique(points.round(12), axis=0))
        fitted = KMeans(min(k, distinct), n_init=1, max_iter=50, random_state=seed).fit(points)
    return fitted.labels_.astype(np.int64)


def embedding(sample: PairSample, dimensions: int, rng: np.random.Generator, by_degree: bool = False) -> Floats:
    """Points (n, ≤ dimensions) in which nodes with like neighbours are near.

    Eigenvectors of the weights (of the weights less their mean where only listed pairs were observed),
    those of largest magnitude whatever their sign, scaled by √|eigenvalue|: a disassortative block has
    negative ones. ``by_degree`` divides each weight by the root of both degrees and puts the points on
    the sphere, so that nodes of one cluster with few and many edges are near.
    """
    pairs = weighted_pairs(sample)
    n = sample.n_nodes
    values = pairs.values if sample.complete else pairs.values - pairs.values.mean()
    matrix = sparse.csr_array((values, pairs.others, pairs.indptr), shape=(n, n))
    if sample.directed:
        labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
        values = labels if sample.complete else labels - labels.mean()
        matrix = sparse.csr_array((values, (sample.codes[0], sample.codes[1])), shape=(n, n))
    if by_degree:
        degree = np.abs(pairs.strengths)
        root = sparse.dia_array((1.0 / np.sqrt(degree + degree.mean()), 0), shape=(n, n))
        matrix = (root @ matrix @ root).tocsr()
    if dimensions < 1 or n <= 3:
        return matrix.toarray()
    if sample.directed:
        left, size, right = svds(matrix, k=dimensions, v0=rng.standard_normal(n), tol=1e-2)
        points = np.hstack([left, right.T]) * np.sqrt(np.tile(size, 2))
    else:
        points = _eigen(matrix, dimensions, rng)
    if by_degree:
        length = np.linalg.norm(points, axis=1, keepdims=True)
        points = points / np.where(length > 0, length, 1.0)
    return points


def _eigen(matrix: sparse.csr_array, dimensions: int, rng: np.random.Generator) -> Floats:
    try:
        values, vectors = eigsh(
            matrix, k=dimensions, which="LM", v0=rng.standard_normal(matrix.shape[0]), tol=1e-2
        )  # a start needs no more than rough eigenvectors
    except ArpackNoConvergence as stopped:
        values, vectors = stopped.eigenvalues, stopped.eigenvectors
    return vectors * np.sqrt(np.abs(values))


# soft clusters that say the same


@dataclass(frozen=True)
class _SoftTradeOff(TradeOff):
    """β · loss + answers + profile; the information of soft memberships is counted apart."""

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        return np.zeros_like(sizes)

    def count(self, n: int, k: int) -> float:
        return log_binomial(n + k - 1, k - 1)


def merge_duplicates(problem: Problem, posterior: Posterior) -> Posterior:
    """Drop clusters with less than half a node, then merge greedily while F + complexity falls.

    A soft fit with many clusters often splits one cluster into several with the same answers. They predict
    alike, but a certificate pays for the cells of each.
    """
    sample, cell, beta = pair_sample(problem, "Merging", positions=2), problem.cells[0], problem.betas[0]
    assign = np.asarray(posterior.assign[0], dtype=np.float64)
    alive = assign.sum(axis=0) >= 0.5
    assign = assign[:, alive] / assign[:, alive].sum(axis=1, keepdims=True)
    code = _SoftTradeOff(cell, beta)
    n = len(assign)
    while assign.shape[1] > 1:
        k = assign.shape[1]
        table = replace(posterior, assign=(assign,)).statistics(sample) * (1.0 if sample.directed else 2.0)
        blocks = BlockSums(table, assign.sum(axis=0), np.zeros(k), sample.directed)
        change = blocks.gains(code) + _information_change(assign) + code.count(n, k - 1) - code.count(n, k)
        i, j = np.unravel_index(int(np.argmin(change)), change.shape)
        if change[i, j] >= 0:
            break
        assign[:, i] += assign[:, j]
        assign = np.delete(assign, j, axis=1)
    return answered(problem, replace(posterior, assign=(assign,)))[0]


def _information_change(assign: Floats) -> Floats:
    """Change of n Ī when two clusters become one, (k, k)."""
    n, k = assign.shape
    single = xlogy(assign, assign).sum(axis=0) - n * xlogy(assign.mean(axis=0), assign.mean(axis=0))
    change = np.zeros((k, k))
    for i in range(k):
        both = assign + assign[:, i : i + 1]
        change[i] = xlogy(both, both).sum(axis=0) - n * xlogy(both.mean(axis=0), both.mean(axis=0)) - single - single[i]
    return change
