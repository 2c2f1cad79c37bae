"""HardMoves: sweeps of single-node moves over a partition of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel
from gingham.data.graphs import PairSample
from gingham.kernels.graph import block_sums
from gingham.solvers.neighbours import Neighbours, Pairs, hard_statistics


@dataclass(frozen=True, eq=False)
class HardMoves:
    """How nodes are moved: block answers follow each move (``pairs``), or stay for a sweep (``entries``).

    Attributes
    ----------
    kernel : module
        `kernels.graph` or its reference.
    kind : int or None
        Of the block fit, quadratic or Bernoulli; None corrects for degrees (i and j are joined in
        proportion to degree_i · degree_j).
    """

    kernel: Any
    sample: PairSample
    cell: CellModel
    beta: float
    entries: Neighbours | None = None
    pairs: Pairs | None = None
    kind: int | None = None
    price: float = 1.0  # of a nat of n Ī

    @cached_property
    def degree(self) -> Floats:
        """Sum of the weights of each node's edges, shape (n,)."""
        return np.zeros(self.sample.n_nodes) if self.pairs is None else self.pairs.strengths

    def improve(self, labels: Ints, k: int, rng: np.random.Generator, n_sweeps: int) -> Ints:
        """Sweep until nothing moves, at most ``n_sweeps`` times; returns new labels."""
        labels = np.array(labels, dtype=np.int64)
        sweep = self._fixed(labels, k) if self.pairs is None else self._following(self.pairs, labels, k)
        for _ in range(n_sweeps):
            if sweep(rng.permutation(len(labels))) == 0:
                break
        return labels

    def _following(self, pairs: Pairs, labels: Ints, k: int) -> Callable[[Ints], int]:
        """One sweep with answers that follow, as a function of the order; labels and tables move in place."""
        weight = block_sums(pairs.indptr, pairs.others, pairs.values, labels, k)
        sizes = np.bincount(labels, minlength=k).astype(np.float64)
        listed = (pairs.indptr, pairs.others, pairs.values)
        if self.kind is None:
            shares = np.bincount(labels, self.degree, minlength=k).astype(np.float64)
            return lambda order: self.kernel.degree_sweep(
                order, *listed, self.degree, self.price, labels, weight, sizes, shares
            )
        count: Floats
        if self.sample.complete:
            count = np.outer(sizes, sizes) - np.diag(sizes)
        else:
            count = block_sums(pairs.indptr, pairs.others, np.ones(len(pairs.others)), labels, k)
        return lambda order: self.kernel.hard_sweep(
            order, *listed, self.sample.complete, self.kind, self.beta, self.price, labels, weight, count, sizes
        )

    def _fixed(self, labels: Ints, k: int) -> Callable[[Ints], int]:
        """One sweep at the best answers of the moment, as a function of the order."""
        entries = self.entries
        if entries is None:
            raise ValueError("moves need pairs or entries")

        def sweep(order: Ints) -> int:
            answers = self.cell.answer(hard_statistics(self.sample, self.cell.features, labels, k))
            present, absent = entries.costs(self.cell.coef(answers))
            sizes = np.bincount(labels, minlength=k).astype(np.float64)
            graph = (entries.indptr, entries.others, entries.slots, entries.values)
            costs = (present, absent, self.sample.complete, self.beta, self.price)
            return int(self.kernel.hard_nodes(order, *graph, *costs, labels, sizes))

        return sweep
