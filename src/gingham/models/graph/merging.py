"""Merging clusters of a graph by what a pair of clusters costs apart and together: codes, and the greedy merge."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log
from typing import Protocol

import numpy as np
from scipy.special import gammaln

from gingham.arrays import Bools, Floats, Ints
from gingham.cells import CellModel

FEW, NEAREST = 48, 12  # up to FEW clusters all pairs are tried, beyond that the NEAREST of each
GRID = 65  # answers a cell of continuous answers is charged for: ln 65 nats, a grid of 1/64


class Code(Protocol):
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
        result: Floats = -gammaln(sizes + 1.0)
        return result

    def count(self, n: int, k: int) -> float:
        return lgamma(n + 1) + log_binomial(n + k - 1, k - 1)


@dataclass(frozen=True)
class ExactBernoulli(_Partition):
    """Σ_blocks ln C(S, M) + ln(S + 1): M ones among S pairs, exactly; statistics are (zeros, ones)."""

    def blocks(self, table: Floats, within: bool) -> Floats:
        pairs, ones = table.sum(axis=-1), table[..., 1]
        result: Floats = gammaln(pairs + 1.0) - gammaln(ones + 1.0) - gammaln(pairs - ones + 1.0) + np.log(pairs + 1.0)
        return result


@dataclass(frozen=True)
class TradeOff(_Partition):
    """Σ_blocks β · (least loss) + ln(number of answers), for any cell model."""

    cell: CellModel
    beta: float

    def blocks(self, table: Floats, within: bool) -> Floats:
        price = log(self.cell.n_answers or GRID)
        loss: Floats = self.beta * self.cell.envelope(table) + price
        return loss


@dataclass(frozen=True)
class DegreeCorrected(_Partition):
    """Edges of a multigraph with the degrees given: ln Π e_r! − Σ_{r<s} ln e_rs! − Σ_r ln e_rr!! (Peixoto 2017).

    Statistics are (edges,); a cluster's share e_r is the sum of its degrees. The block counts cost
    ln C(k(k + 1)/2 + E − 1, E).
    """

    n_edges: float

    def blocks(self, table: Floats, within: bool) -> Floats:
        edges = table[..., 0]
        result: Floats = -gammaln(edges + 1.0) - (edges * log(2.0) if within else 0.0)
        return result

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        result: Floats = gammaln(shares + 1.0) - gammaln(sizes + 1.0)
        return result

    def count(self, n: int, k: int) -> float:
        return super().count(n, k) + log_binomial(k * (k + 1) / 2 + self.n_edges - 1, self.n_edges)


def log_binomial(n: float, k: float) -> float:
    """ln C(n, k)."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sums over the blocks of a partition.

    Attributes
    ----------
    table : ndarray of shape (k, k, K)
        Statistics of pairs in each block; of an undirected graph, block (a, b) and block (b, a) hold the
        same pairs, and block (a, a) holds each pair twice.
    sizes, shares : ndarrays of shape (k,)
    """

    table: Floats
    sizes: Floats
    shares: Floats
    directed: bool = False

    @property
    def k(self) -> int:
        return len(self.sizes)

    def cost(self, code: Code) -> float:
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

    def gains(self, code: Code) -> Floats:
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

    def merged(self, into: Ints) -> Blocks:
        """Clusters with equal entries of ``into`` (k,) become one; entries are 0, 1, …"""
        one_hot = np.eye(int(into.max()) + 1)[into]
        return Blocks(
            np.einsum("ap,abk,bq->pqk", one_hot, self.table, one_hot, optimize=True),
            one_hot.T @ self.sizes,
            one_hot.T @ self.shares,
            self.directed,
        )

    def _between(self, table: Floats, turned: Floats, code: Code) -> Floats:
        cost = code.blocks(table, within=False)
        return cost + code.blocks(turned, within=False) if self.directed else cost

    def _within(self, table: Floats, code: Code) -> Floats:
        return code.blocks(table if self.directed else table / 2.0, within=True)


def merge_greedily(blocks: Blocks, code: Code, target: int | None = None) -> Ints:
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
