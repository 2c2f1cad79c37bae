"""Finding a hard partition of a graph: too many clusters from a spectrum, sweeps, merging, sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, svds
from sklearn.cluster import KMeans

from gingham.arrays import Floats, Ints
from gingham.core.problem import Problem
from gingham.data import Moments
from gingham.data.graphs import PairSample
from gingham.kernels.threads import one_library_thread
from gingham.models.graph.adjacency import hard_statistics, weighted_pairs
from gingham.models.graph.merging import Blocks, Code, DegreeCorrected, ExactBernoulli, TradeOff, merge_greedily
from gingham.models.graph.moves import HardMoves
from gingham.models.graph.solvers import graph_backend, hard_moves, pair_sample

FIRST_SWEEPS, LATER_SWEEPS = 3, 30
FIRST_CLUSTERS, MOST_CLUSTERS = 20, 320  # when the number of clusters is not known: tried first, and at most
DIMENSIONS = 20  # of the spectral embedding when the number of clusters is not known


@dataclass(frozen=True, eq=False)
class Partition:
    """Hard clusters of the nodes and their description length in nats."""

    labels: Ints
    n_clusters: int
    cost: float


@dataclass(frozen=True, eq=False)
class Finder:
    """Everything a search for a partition needs: how nodes move, what a partition costs, how blocks are summed."""

    sample: PairSample
    moves: HardMoves
    code: Code
    tables: Callable[[Ints, int], Floats]

    def blocks(self, labels: Ints, k: int) -> Blocks:
        return Blocks(
            self.tables(labels, k),
            np.bincount(labels, minlength=k).astype(np.float64),
            np.bincount(labels, self.moves.degree, minlength=k).astype(np.float64),
            self.sample.directed,
        )

    def search(
        self,
        start: Callable[[int], Ints],
        rng: np.random.Generator,
        cap: int = FIRST_CLUSTERS,
        most: int = MOST_CLUSTERS,
    ) -> Partition:
        """The number of clusters by description length, from ``cap`` clusters at first.

        A cap that binds is doubled, up to ``most``; ``start(k)`` gives a partition into about k clusters.
        """
        best = self.descend(start(min(cap, most)), rng)
        while best.n_clusters > 0.6 * cap and cap < most:
            cap *= 2
            finer = self.descend(start(min(cap, most)), rng)
            if finer.cost >= best.cost:
                break
            best = finer
        return best

    def descend(self, start: Ints, rng: np.random.Generator, n_clusters: int | None = None) -> Partition:
        """Sweep a fine partition, merge down to ``n_clusters`` (or while the cost falls), sweep again.

        Over-clustering and merging is what makes the result reliable: a start with the right number of
        clusters often has two planted clusters in one, and no single-node move leads out of that.
        """
        labels, k = compact(start)
        labels, k = compact(self.moves.improve(labels, k, rng, FIRST_SWEEPS))
        labels, k = compact(merge_greedily(self.blocks(labels, k), self.code, n_clusters)[labels])
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


def finder(problem: Problem, backend: str = "auto", degree_correction: bool = False) -> Finder:
    """The search that fits a problem's loss: exact code lengths for 0/1 graphs, objective plus answers otherwise."""
    sample, cell, beta = pair_sample(problem, "The search for a partition", 2), problem.cells[0], problem.betas[0]
    kernel = graph_backend(backend)
    double = 1.0 if sample.directed else 2.0

    def statistics(labels: Ints, k: int) -> Floats:
        return double * hard_statistics(sample, cell.features, labels, k)

    if degree_correction:
        pairs = weighted_pairs(sample)
        moves = HardMoves(kernel, sample, cell, 1.0, pairs=pairs)

        def edges(labels: Ints, k: int) -> Floats:
            return double * hard_statistics(sample.listed(), Moments(1), labels, k)[..., 1:]

        return Finder(sample, moves, DegreeCorrected(float(pairs.values.sum() / 2.0)), edges)
    moves = hard_moves(problem, sample, kernel)
    two = sample.alphabet is not None and np.array_equal(sample.alphabet.numbers, [0.0, 1.0])
    code: Code = ExactBernoulli() if cell.code_length and two else TradeOff(cell, beta)
    return Finder(sample, moves, code, statistics)


def compact(labels: Ints) -> tuple[Ints, int]:
    """The same partition with clusters 0, …, k − 1, none empty."""
    used, labels = np.unique(labels, return_inverse=True)
    return labels.ravel().astype(np.int64), len(used)


def spectral_labels(
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
