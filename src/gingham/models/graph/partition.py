"""Search for a hard partition of a graph.

The search begins with too many clusters, found in a spectral embedding; sweeps of single-node moves and merges
alternate until few are left. Then clusters are split and merged again for as long as that lowers the cost.

The cost of a partition is its description length: that of the blocks, of the cluster of every node, and of the number
of clusters. `BlockSums` computes its change when two clusters are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import lgamma, log
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from scipy.special import gammaln
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_range_finder

from gingham.arrays import Bools, Floats, Ints
from gingham.cells import CellModel
from gingham.certificates.divergence import kl_upper
from gingham.core.problem import Objective, Posterior, Problem
from gingham.data.graphs import PairSample
from gingham.engine.threads import one_blas_thread, one_library_thread
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interrupted
from gingham.fitting.loop import iterate, rng_state
from gingham.fitting.merging import information_rises
from gingham.fitting.schedules import Constant
from gingham.models.graph import kernels
from gingham.models.graph.kernels import DEGREES, EXACT, block_sums
from gingham.models.graph.solvers import (
    VISITS,
    BlockMoves,
    HardMoves,
    WeightedPairs,
    answered,
    cluster_sizes,
    codes_edges,
    hard_moves,
    pair_sample,
    weighted_pairs,
)
from gingham.storage import State

FIRST_SWEEPS, LATER_STEPS = 3, 7
FIRST_CLUSTERS, MOST_CLUSTERS = 20, 320  # when the number of clusters is not known: tried first, and at most
FINER_CLUSTERS = 160  # tried where the first number was not enough
BINDS = 0.6  # share of the clusters tried: where more are left after merging, they were not enough
DIMENSIONS, MOST_DIMENSIONS = 20, 60  # of the spectral embedding when the number of clusters is not known
POWERS, SPARE = 4, 10  # of the weights that find the range of their eigenvectors, and vectors more than are asked for
SAMPLED = 8000  # nodes from which k-means learns its centres
FINE_SWEEPS, SETTLING_SWEEPS = 2, 3  # of clusters that were split, and after they were merged
POLISHING_SWEEPS = 12  # at the end, by the code itself
JOINING_SWEEPS, TRIALS = 5, 6  # after two clusters were merged at the end, and pairs tried in vain
HALVING_SWEEPS = {False: 2, True: 4}  # between the halves of clusters; more where they were cut at random
MOST_ROUNDS, LEAST_GAIN = 30, 1e-3  # rounds of splitting and merging; share of the cost that two of them must save
FEW, NEAREST = 48, 12  # up to FEW clusters all pairs are tried, beyond that the NEAREST of each
AT_ONCE = 12  # the part of all clusters that is merged before gains are counted anew
COARSER_ROUNDS = 3  # of merging at the end, several disjoint pairs in each


class Coarsening(NamedTuple):
    """When clusters are merged for a certificate."""

    left: float  # share of the cost that rounds of the search must have saved after the first, or nothing is merged
    most: float  # share of the cost that merging may add
    # times the share of the cost that a merge adds, that it must save of a certificate: the best merges first
    rates: tuple[float, ...]
    worth: float  # the same of all merges of a rate together, after nodes have found their places


# Where degrees are given, the code of the edges is several times as long, and a share of it many more nats.
COARSENING = {"ones": Coarsening(5e-3, 1e-2, (4.0, 2.0, 1.5), 2.5), "edges": Coarsening(2e-4, 1e-3, (1.0,), 30.0)}
CELL_PRICE = 0.5  # nats that a certificate pays for the answer of a cell, at least
GRID = 65  # answers a cell of continuous answers is charged for: ln 65 nats, a grid of 1/64


# what a partition costs


class DescriptionLength(Protocol):
    """What a partition costs, in nats: a sum over blocks, one over clusters, and a price of k clusters."""

    counts: ClassVar[str]  # what blocks are coded by where a compiled loop knows it: "ones" or "edges"; or nothing

    def blocks(self, table: Floats, within: bool) -> Floats:
        """Cost of blocks with statistics (…, K), shape (…)."""

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        """Cost of clusters of given sizes and shares (degree sums), shape (…)."""

    def count(self, n: int, k: int) -> float:
        """Cost of there being k clusters of n nodes, and of everything that no move changes."""


class _Partition:
    """ln n!/Π s! + ln C(n + k − 1, k − 1): the sizes of the clusters, then who belongs where."""

    counts: ClassVar[str] = ""

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        return -gammaln(sizes + 1.0)

    def count(self, n: int, k: int) -> float:
        return lgamma(n + 1) + log_binomial(n + k - 1, k - 1)


@dataclass(frozen=True)
class ExactBernoulli(_Partition):
    """Σ_blocks ln C(S, M) + ln(S + 1): M ones among S pairs, exactly; statistics are (zeros, ones)."""

    counts: ClassVar[str] = "ones"

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

    counts: ClassVar[str] = "edges"
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
        first, second = np.nonzero(np.triu(self.near(), 1))
        blocks = self._changes_counted if code.counts and not self.directed else self._changes
        single = code.clusters(self.sizes, self.shares)
        joined = code.clusters(self.sizes[first] + self.sizes[second], self.shares[first] + self.shares[second])
        change = np.full((self.k, self.k), np.inf)
        change[first, second] = blocks(first, second, code) + joined - single[first] - single[second]
        return change

    def _changes_counted(self, first: Ints, second: Ints, code: DescriptionLength) -> Floats:
        """`_changes`, compiled, of codes for whole numbers of edges."""
        table = self.table.copy()
        at = np.arange(self.k)
        table[at, at] /= 2.0  # each pair once
        ones, pairs = np.ascontiguousarray(table[..., -1]), np.ascontiguousarray(table.sum(axis=-1))
        changes: Floats = kernels.merge_changes(first, second, ones, pairs, code.counts == "ones")
        return changes

    def _changes(self, first: Ints, second: Ints, code: DescriptionLength) -> Floats:
        """Change of the cost of all blocks when clusters first[p] and second[p] become one, shape (len(first),)."""
        table, turned = self.table, self.table.transpose(1, 0, 2)
        between = self._between(table, turned, code)
        np.fill_diagonal(between, 0.0)
        own = self._within(np.einsum("aak->ak", table), code)
        rows, change = between.sum(axis=1), np.empty(len(first))
        for i in np.unique(first):
            at = np.flatnonzero(first == i)
            js = second[at]
            both = self._between(table[i] + table[js], turned[i] + turned[js], code)
            both[:, i] = 0.0
            both[np.arange(len(js)), js] = 0.0
            inside = table[i, i] + table[js, js] + table[i, js] + table[js, i]
            after = both.sum(axis=1) + self._within(inside, code)
            change[at] = after - (rows[i] + rows[js] - between[i, js] + own[i] + own[js])
        return change

    def merged(self, into: Ints) -> BlockSums:
        """Clusters with equal entries of ``into`` (k,) become one; entries are 0, 1, …"""
        k, order = int(into.max()) + 1, np.argsort(into, kind="stable")
        begins = np.searchsorted(into[order], np.arange(k))
        table = np.add.reduceat(np.add.reduceat(self.table[order], begins)[:, order], begins, axis=1)
        sizes, shares = (np.bincount(into, of, k).astype(np.float64) for of in (self.sizes, self.shares))
        return BlockSums(table, sizes, shares, self.directed)

    def _between(self, table: Floats, turned: Floats, code: DescriptionLength) -> Floats:
        cost = code.blocks(table, within=False)
        return cost + code.blocks(turned, within=False) if self.directed else cost

    def _within(self, table: Floats, code: DescriptionLength) -> Floats:
        return code.blocks(table if self.directed else table / 2.0, within=True)


@dataclass(frozen=True, eq=False)
class Certified:
    """About what a certificate of the squared error of all pairs says of a partition of a 0/1 graph.

    kl(L̂ ‖ value) = price/pairs: L̂ is the loss of the blocks' densities, the price who belongs where and what the cells
    answer. Block (a, a) holds every pair twice here, too.
    """

    edges: Floats  # (k, k)
    sizes: Floats  # (k,)

    @property
    def pairs(self) -> Floats:
        return np.outer(self.sizes, self.sizes) - np.diag(self.sizes)

    @property
    def loss(self) -> float:
        """Σ over pairs of (edge − density)²."""
        return 0.5 * float((self.edges - _shares(self.edges, self.pairs)).sum())

    @property
    def price(self) -> float:
        n, k = float(self.sizes.sum()), len(self.sizes)
        return float(_Partition().clusters(self.sizes, self.sizes).sum()) + self._count(n, k)

    @staticmethod
    def _count(n: float, k: int) -> float:
        return _Partition().count(round(n), k) + CELL_PRICE * k * (k + 1) / 2

    @property
    def n_pairs(self) -> float:
        n = float(self.sizes.sum())
        return max(n * (n - 1.0) / 2.0, 1.0)

    @property
    def value(self) -> float:
        return float(kl_upper(self.loss / self.n_pairs, self.price / self.n_pairs))

    def savings(self, first: Ints, second: Ints) -> Floats:
        """The share of the value that is saved when clusters first[p] and second[p] become one, to first order."""
        edges, pairs, k = self.edges, self.pairs, len(self.sizes)
        own, every = _shares(edges, pairs), np.arange(len(first))
        row = _shares(edges[first] + edges[second], pairs[first] + pairs[second])
        row[every, first] = row[every, second] = 0.0
        inside = [of[first, first] + of[second, second] + 2.0 * of[first, second] for of in (edges, pairs, own)]
        kept = 2.0 * row.sum(axis=1) + _shares(inside[0], inside[1])
        kept -= 2.0 * (own[first].sum(axis=1) + own[second].sum(axis=1)) - inside[2]
        n, sizes = float(self.sizes.sum()), self.sizes
        code = _Partition()
        price = code.clusters(sizes[first] + sizes[second], sizes) - code.clusters(sizes[first], sizes)
        price += self._count(n, k - 1) - self._count(n, k) - code.clusters(sizes[second], sizes)
        low, high = self.loss / self.n_pairs, self.value
        if not 0.0 < low < high < 1.0:
            return np.zeros(len(first))
        nats_a_loss = log(high * (1.0 - low) / (low * (1.0 - high)))  # −∂kl/∂L̂
        slope = (high - low) / (high * (1.0 - high))  # ∂kl/∂value
        return -(price - 0.5 * nats_a_loss * kept) / (self.n_pairs * slope * high)


def _shares(edges: Floats, pairs: Floats) -> Floats:
    """edges²/pairs, 0 where there are no pairs."""
    return np.divide(edges**2, pairs, out=np.zeros_like(edges), where=pairs > 0)


def merge_path(blocks: BlockSums, code: DescriptionLength, target: int | None = None) -> list[Ints]:
    """Merge the best pairs until ``target`` clusters are left or, without a target, while the cost falls.

    Among many clusters several disjoint pairs are merged at a time. Returns, for each such step from none on, the new
    cluster of each old one, shape (k,).
    """
    path: list[Ints] = [np.arange(blocks.k)]
    n = round(float(blocks.sizes.sum()))
    while blocks.k > (target or 1):
        change = blocks.gains(code)
        at_once = max(1, blocks.k // AT_ONCE)
        if target is not None:
            at_once = min(at_once, blocks.k - target)
        flat = np.argsort(change, axis=None, kind="stable")[: 4 * at_once * blocks.k]
        taken = np.zeros(blocks.k, dtype=bool)
        now, done = np.arange(blocks.k), 0
        fewer = code.count(n, blocks.k - 1) - code.count(n, blocks.k)
        for i, j in zip(*np.unravel_index(flat, change.shape)):
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
        path.append(now[path[-1]])
        blocks = blocks.merged(now)
    return path


def halfway(path: list[Ints]) -> Ints:
    """The first step of a `merge_path` at which half of its merges are done."""
    left = [int(into.max()) + 1 for into in path]
    return next(into for into, k in zip(path, left) if 2 * k <= left[0] + left[-1])


# the search


@dataclass(frozen=True, eq=False)
class Partition:
    """Hard clusters of the nodes and their description length in nats."""

    labels: Ints
    n_clusters: int
    cost: float
    steps: int = 0  # of the search that led to it
    interrupted: bool = False  # by Ctrl-C, on the way to a better one

    def _to_file(self) -> State:
        return {"labels": self.labels, "cost": self.cost, "steps": self.steps}

    @classmethod
    def _from_file(cls, state: State) -> Partition:
        return cls(*compact(state["labels"]), state["cost"], state["steps"])


@dataclass(frozen=True, eq=False)
class PartitionSearch:
    """All that a search for a partition needs: how nodes move, what a partition costs, how blocks are summed."""

    sample: PairSample
    moves: HardMoves
    code: DescriptionLength
    # of labels and k: statistics of the blocks, shape (k, k, K), as in `BlockSums`
    statistics: Callable[[Ints, int], Floats]
    pairs: WeightedPairs
    degree: Floats  # (n,): what clusters have shares of where degrees are corrected for; zeros otherwise
    exact: HardMoves | None = None  # by the code itself, where it is not what ``moves`` go by

    @classmethod
    def of(cls, problem: Problem, degree_correction: bool = False) -> PartitionSearch:
        """The search that fits a loss: exact code lengths for 0/1 graphs, objective plus answers otherwise."""
        sample, cell = pair_sample(problem, "The search for a partition", 2), problem.cells[0]
        pairs = weighted_pairs(sample)
        if degree_correction:
            degree = pairs.strengths
            code = DegreeCorrected(float(pairs.values.sum() / 2.0))

            def edges(labels: Ints, k: int) -> Floats:
                return block_sums(*pairs, labels, k)[..., None]

            return cls(sample, BlockMoves(pairs, DEGREES), code, edges, pairs, degree)
        moves = hard_moves(problem, sample, pairs)
        double = 1.0 if sample.directed else 2.0

        def statistics(labels: Ints, k: int) -> Floats:
            return double * sample.block_statistics(labels, k, cell.features)

        nobody = np.zeros(sample.n_nodes)
        if not codes_edges(problem):
            return cls(sample, moves, TradeOff(cell, problem.betas[0]), statistics, pairs, nobody)
        if sample.directed or not sample.complete or (pairs.values != 1.0).any():
            return cls(sample, moves, ExactBernoulli(), statistics, pairs, nobody)

        def zeros_and_ones(labels: Ints, k: int) -> Floats:
            """``statistics`` of a graph of which all pairs were observed, by its edges and the sizes alone."""
            ones, sizes = block_sums(*pairs, labels, k), cluster_sizes(labels, k)
            return np.stack([np.outer(sizes, sizes) - np.diag(sizes) - ones, ones], axis=-1)

        return cls(sample, moves, ExactBernoulli(), zeros_and_ones, pairs, nobody, BlockMoves(pairs, EXACT))

    def blocks(self, labels: Ints, k: int) -> BlockSums:
        sizes, shares = cluster_sizes(labels, k), cluster_sizes(labels, k, self.degree)
        return BlockSums(self.statistics(labels, k), sizes, shares, self.sample.directed)

    def partition(self, labels: Ints) -> Partition:
        """Labels with what they cost."""
        labels, k = compact(labels)
        return Partition(labels, k, self.blocks(labels, k).cost(self.code))

    def sweep(self, labels: Ints, rng: np.random.Generator, n_sweeps: int) -> tuple[Ints, int]:
        """At most so many sweeps of single-node moves; new labels and their number."""
        labels, k = compact(labels)
        return compact(self.moves.improve(labels, k, rng, n_sweeps))

    def merge(self, labels: Ints, n_clusters: int | None = None) -> tuple[Ints, int]:
        """Merge clusters down to ``n_clusters``, or while the cost falls; new labels and their number."""
        labels, k = compact(labels)
        return compact(merge_path(self.blocks(labels, k), self.code, n_clusters)[-1][labels])

    def find(
        self,
        n_clusters: int | None,
        rng: np.random.Generator,
        *,
        at_random: bool = False,
        checkpoint: Checkpoint = NO_CHECKPOINT,
        rounds: int = MOST_ROUNDS,
    ) -> Partition:
        """A partition into ``n_clusters``; None chooses their number by description length.

        The search begins with about twice as many clusters, from a spectral embedding or ``at_random``.
        """
        n = self.sample.n_nodes

        def start(k: int) -> Ints:
            k = min(k, n)
            if at_random or n < 4:
                return rng.integers(0, k, n)
            dimensions = n_clusters or max(DIMENSIONS, min(MOST_DIMENSIONS, k // 2))
            return spectral_partition(self.sample, self.pairs, k, rng, dimensions, self.code.counts == "edges")

        if n_clusters is None:
            with one_blas_thread():
                return self.choose_size(start, rng, min(MOST_CLUSTERS, n), checkpoint, rounds)
        if n_clusters == 1:
            return Partition(np.zeros(n, dtype=np.int64), 1, 0.0)
        return self.descend(start, rng, n_clusters, checkpoint)

    def descend(
        self,
        start: Callable[[int], Ints],
        rng: np.random.Generator,
        n_clusters: int,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Partition:
        """Sweep a fine partition, merge down to ``n_clusters``, sweep again.

        Over-clustering and merging is what makes the result reliable: a start with the right number of
        clusters often has two planted clusters in one, and no single-node move leads out of that.
        """

        def step(best: Partition) -> Partition:
            if not best.steps:
                labels, _ = self.sweep(start(2 * n_clusters), rng, FIRST_SWEEPS)
                return self.partition(self.merge(labels, n_clusters)[0])
            return self.partition(self.sweep(best.labels, rng, VISITS)[0])

        def terminate(costs: Sequence[Objective]) -> bool:
            return len(costs) > 2 and costs[-2].total == costs[-1].total

        return self._search(step, terminate, LATER_STEPS, rng, checkpoint)[0]

    def _search(
        self,
        step: Callable[[Partition], Partition],
        terminate: Callable[[Sequence[Objective]], bool],
        max_iter: int,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
    ) -> tuple[Partition, list[float]]:
        """Improve the partition into a single cluster step by step; each step receives the best partition so far.

        Returns the last partition and the cost after every step.
        """

        def one(best: Partition, factor: float) -> tuple[Partition, Objective]:
            found = replace(step(best), steps=best.steps + 1)
            return found, Objective((found.cost,), (0.0,), (1.0,))

        run = iterate(
            one, self.partition(np.zeros(self.sample.n_nodes, dtype=np.int64)), Constant(),
            to_file=Partition._to_file, from_file=Partition._from_file, terminate=terminate, max_iter=max_iter,
            checkpoint=checkpoint, memory=rng_state(rng),
        )  # fmt: skip
        costs = [objective.total for objective in run.trace.objectives]
        return replace(run.state, interrupted=run.interrupted), costs

    def settle(self, labels: Ints, rng: np.random.Generator, most: int) -> Partition:
        """Merge while the cost falls, to at most so many clusters, and let nodes find their places in between.

        Half of the merges that pay are made at first, and half of those that still do after a sweep. Made all at
        once they go too far: clusters that were about to take other nodes over are merged away.
        """
        labels, k = compact(labels)
        for _ in range(2):
            path = merge_path(self.blocks(labels, k), self.code)
            if len(path) == 1:
                break
            labels, k = self.sweep(halfway(path)[labels], rng, 1)
        labels, k = self.merge(labels)
        if k > most:
            labels, k = self.merge(labels, most)
        return self.partition(self.sweep(labels, rng, SETTLING_SWEEPS)[0])

    def split(self, labels: Ints, k: int, rng: np.random.Generator, at_random: bool) -> Ints:
        """Every cluster in two halves, cut at random or where its nodes differ most, which nodes then choose between.

        Nodes of a cluster differ most in their edges to the cluster for which these edges are least evenly spread.
        """
        if at_random:
            upper: Ints = rng.integers(0, 2, len(labels))
        else:
            upper = kernels.uneven_halves(*self.pairs, labels, rng.random((k, k)))
        return self.moves.improve(2 * labels + upper, 2 * k, rng, HALVING_SWEEPS[at_random], np.arange(2 * k) ^ 1)

    def split_and_merge(self, found: Partition, rng: np.random.Generator, most: int, at_random: bool) -> Partition:
        """Split clusters in two and merge them again while this lowers the cost; no change if it never does."""
        labels = self.split(found.labels, found.n_clusters, rng, at_random)
        labels, _ = self.sweep(labels, rng, FINE_SWEEPS)
        other = self.settle(labels, rng, most)
        return other if other.cost < found.cost else found

    def join(self, found: Partition, rng: np.random.Generator) -> Partition:
        """Merge two clusters at a time, even where that costs something, if nodes that then move make up for it.

        The TRIALS pairs that cost least are tried; nodes of the two clusters and their neighbours move first.
        """
        trial = 0
        while found.n_clusters > 1 and trial < TRIALS:
            change = self.blocks(found.labels, found.n_clusters).gains(self.code)
            for pair in np.argsort(change, axis=None, kind="stable")[trial:TRIALS]:
                i, j = np.unravel_index(pair, change.shape)
                if not np.isfinite(change[i, j]):
                    return found
                labels, k = compact(np.where(found.labels == j, i, found.labels))
                first = np.flatnonzero((found.labels == i) | (found.labels == j))
                other = self.partition(self.moves.improve(labels, k, rng, JOINING_SWEEPS, first=first))
                if other.cost < found.cost:
                    found, trial = other, 0
                    break
                trial += 1
        return found

    def polish(self, found: Partition, rng: np.random.Generator) -> Partition:
        """Let nodes move by the code itself: what they moved by so far leaves out what small blocks cost."""
        if self.exact is None:
            return found
        return self.partition(self.exact.improve(found.labels, found.n_clusters, rng, POLISHING_SWEEPS))

    def coarsen(self, found: Partition, rng: np.random.Generator, room: float) -> Partition:
        """Merge clusters where that saves far more of a certificate than it adds to the description length.

        ``room`` (nats) is what may be added. Where rounds of the search go on saving, a start from elsewhere would end
        as far off; partitions within that are about as good as one another, while their certificates differ by per
        cents, since clusters that tell little more of the edges may cost thousands of nats of who belongs where. Of a
        graph whose search comes to its end at once there is no room.

        A certificate's prior pays for every partition into any number of clusters, so that it holds for all of them at
        once: choosing among them, by the very edges that are certified and by whatever rule, costs nothing more.
        """
        if not self.code.counts or self.sample.directed or not self.sample.complete or (self.pairs.values != 1.0).any():
            return found
        rule = COARSENING[self.code.counts]
        first, blocks = found, self.blocks(found.labels, found.n_clusters)
        value = Certified(blocks.table[..., -1], blocks.sizes).value
        for least in rule.rates:
            into = self._merged_for_certificate(blocks, abs(found.cost), least, room - (found.cost - first.cost))
            if len(np.unique(into)) == found.n_clusters:
                continue
            labels, k = self.sweep(into[found.labels], rng, SETTLING_SWEEPS)
            other, its = self.partition(labels), self.blocks(labels, k)
            then = Certified(its.table[..., -1], its.sizes).value
            if 1.0 - then / value > rule.worth * (other.cost / found.cost - 1.0):
                found, blocks, value = other, its, then
        return found

    def _merged_for_certificate(self, blocks: BlockSums, cost: float, least: float, room: float) -> Ints:
        """The new cluster of each: merged where that saves ``least`` times as large a share of a certificate."""
        into, n = np.arange(blocks.k), self.sample.n_nodes
        for _ in range(COARSER_ROUNDS):
            if blocks.k < 3:
                break
            added = blocks.gains(self.code) + self.code.count(n, blocks.k - 1) - self.code.count(n, blocks.k)
            first, second = np.nonzero(np.isfinite(added))
            nats = added[first, second]
            rate = Certified(blocks.table[..., -1], blocks.sizes).savings(first, second) / np.maximum(nats / cost, 1e-9)
            now, taken = np.arange(blocks.k), np.zeros(blocks.k, dtype=bool)
            for pair in np.argsort(-rate, kind="stable"):
                i, j = first[pair], second[pair]
                if rate[pair] <= least or taken.sum() > blocks.k // 4:
                    break
                if nats[pair] <= room and not (taken[i] or taken[j]):
                    taken[[i, j]], now[j] = True, i
                    room -= max(float(nats[pair]), 0.0)
            if not taken.any():
                break
            _, now = np.unique(now, return_inverse=True)
            into, blocks = now[into], blocks.merged(now)
        return into

    def choose_size(
        self,
        start: Callable[[int], Ints],
        rng: np.random.Generator,
        most: int,
        checkpoint: Checkpoint = NO_CHECKPOINT,
        rounds: int = MOST_ROUNDS,
    ) -> Partition:
        """The number of clusters by description length; ``start(k)`` gives a partition into about k clusters.

        FIRST_CLUSTERS are merged; where most of them survive, FINER_CLUSTERS are tried as well. What is found is then
        split and merged, by turns as its nodes differ and at random, until two rounds gain next to nothing. Of
        partitions that are as good as that one, a certificate chooses (`coarsen`), and nodes move by the code itself.
        """

        def begin(k: int) -> Partition:
            return self.settle(self.sweep(start(min(k, most)), rng, FIRST_SWEEPS)[0], rng, most)

        def step(best: Partition) -> Partition:
            if not best.steps:
                return begin(FIRST_CLUSTERS)
            if best.steps == 1 and best.n_clusters > BINDS * FIRST_CLUSTERS and most > FIRST_CLUSTERS:
                return min(best, begin(FINER_CLUSTERS), key=lambda partition: partition.cost)
            return self.split_and_merge(best, rng, most, at_random=best.steps % 2 == 1)

        def terminate(costs: Sequence[Objective]) -> bool:
            return len(costs) > 3 and costs[-3].total - costs[-1].total <= LEAST_GAIN * abs(costs[-1].total)

        best, costs = self._search(step, terminate, rounds, rng, checkpoint)
        if best.interrupted:
            return best
        saved = (costs[2] - costs[-1]) / abs(costs[-1]) if len(costs) > 3 else 0.0
        stages: list[Callable[[Partition, np.random.Generator], Partition]] = [self.join, self.polish]
        if self.code.counts and saved > COARSENING[self.code.counts].left:
            stages.insert(1, partial(self.coarsen, room=COARSENING[self.code.counts].most * abs(costs[-1])))
        for stage in stages:
            if interrupted():
                return replace(best, interrupted=True)
            best = stage(best, rng)
        return best


def compact(labels: Ints) -> tuple[Ints, int]:
    """The same partition with clusters 0, …, k − 1, none empty."""
    used = np.bincount(labels) > 0
    return (np.cumsum(used) - 1)[labels], int(used.sum())


def spectral_partition(
    sample: PairSample,
    pairs: WeightedPairs,
    k: int,
    rng: np.random.Generator,
    dimensions: int | None = None,
    by_degree: bool = False,
) -> Ints:
    """k-means of nodes on the leading eigenvectors of the weights; see `embedding`."""
    with one_library_thread():
        points = embedding(sample, pairs, min(dimensions or k, sample.n_nodes - 2), rng, by_degree)
        seed = int(rng.integers(2**31 - 1))
        some = points if len(points) <= SAMPLED else points[rng.choice(len(points), SAMPLED, replace=False)]
        distinct = len(np.unique(some[:, 0].round(12)))
        if distinct < k:  # else there are enough, and rows take long to compare
            distinct = len(np.unique(some.round(12), axis=0))
        fitted = KMeans(min(k, distinct), n_init=1, max_iter=50, random_state=seed).fit(some)
        labels = fitted.labels_ if some is points else fitted.predict(points)
    return labels.astype(np.int64)


def embedding(
    sample: PairSample, pairs: WeightedPairs, dimensions: int, rng: np.random.Generator, by_degree: bool = False
) -> Floats:
    """Points (n, ≤ dimensions) in which nodes with like neighbours are near.

    Eigenvectors of the weights (of the weights less their mean where only listed pairs were observed),
    those of largest magnitude whatever their sign, scaled by √|eigenvalue|: a disassortative block has
    negative ones. ``by_degree`` divides each weight by the root of both degrees and puts the points on
    the sphere, so that nodes of one cluster with few and many edges are near.
    """
    n = sample.n_nodes
    matrix = pairs.matrix(less=0.0 if sample.complete else pairs.values.mean())
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
    """Rough eigenvectors, times √|eigenvalue|: a start needs no more, and a random range is many times cheaper."""
    matrix, seed, size = (
        matrix.astype(np.float32),
        int(rng.integers(2**31 - 1)),
        min(dimensions + SPARE, matrix.shape[0]),
    )
    basis = randomized_range_finder(matrix, size=size, n_iter=POWERS, random_state=seed)
    values, vectors = np.linalg.eigh(basis.T @ (matrix @ basis))
    top = np.argsort(-np.abs(values), kind="stable")[:dimensions]
    return np.asarray((basis @ vectors[:, top]) * np.sqrt(np.abs(values[top])), dtype=np.float64)


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
        change = blocks.gains(code) + information_rises(assign) + code.count(n, k - 1) - code.count(n, k)
        i, j = np.unravel_index(int(np.argmin(change)), change.shape)
        if change[i, j] >= 0:
            break
        assign[:, i] += assign[:, j]
        assign = np.delete(assign, j, axis=1)
    return answered(problem, replace(posterior, assign=(assign,)))[0]
