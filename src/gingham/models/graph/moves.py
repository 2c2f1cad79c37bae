"""HardMoves: sweeps of single-node moves over a partition of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel
from gingham.data.graphs import PairSample
from gingham.kernels.batched_moves import Visit, batch_size, move_in_batches
from gingham.models.graph.adjacency import Neighbours, Pairs, hard_statistics
from gingham.models.graph.kernels import block_sums


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
        listed = self.entries if self.pairs is None else self.pairs
        if listed is None:
            raise ValueError("moves need pairs or entries")
        effort = (np.diff(listed.indptr) + k) * k
        at_once = batch_size(effort)
        following = None if self.pairs is None else self._following(self.pairs, labels, k)
        for _ in range(n_sweeps):
            before, order = labels.copy(), rng.permutation(len(labels))
            visit = following or self._fixed(labels, k)
            move_in_batches(visit, order, at_once, labels, effort[order])
            if np.array_equal(labels, before):
                break
        return labels

    def _following(self, pairs: Pairs, labels: Ints, k: int) -> Visit:
        """Visits with answers that follow; labels and tables move in place."""
        weight = block_sums(pairs.indptr, pairs.others, pairs.values, labels, k)
        sizes = np.bincount(labels, minlength=k).astype(np.float64)
        listed = (pairs.indptr, pairs.others, pairs.values)
        if self.kind is None:
            shares = np.bincount(labels, self.degree, minlength=k).astype(np.float64)
            tables: tuple[Floats, ...] = (weight, sizes, shares)
            return lambda items, evaluate_only, chosen: self.kernel.degree_sweep(
                items, *listed, self.degree, self.price, labels, *tables, evaluate_only, chosen
            )
        count: Floats
        if self.sample.complete:
            count = np.outer(sizes, sizes) - np.diag(sizes)
        else:
            count = block_sums(pairs.indptr, pairs.others, np.ones(len(pairs.others)), labels, k)
        rule, tables = (self.sample.complete, self.kind, self.beta, self.price), (weight, count, sizes)
        return lambda items, evaluate_only, chosen: self.kernel.hard_sweep(
            items, *listed, *rule, labels, *tables, evaluate_only, chosen
        )

    def _fixed(self, labels: Ints, k: int) -> Visit:
        """Visits at the best answers of the moment."""
        entries = self.entries
        if entries is None:
            raise ValueError("moves need pairs or entries")
        answers = self.cell.answer(hard_statistics(self.sample, self.cell.features, labels, k))
        present, absent = entries.costs(self.cell.coef(answers))
        sizes = np.bincount(labels, minlength=k).astype(np.float64)
        graph = (entries.indptr, entries.others, entries.slots, entries.values)
        costs = (present, absent, self.sample.complete, self.beta, self.price)
        return lambda items, evaluate_only, chosen: self.kernel.hard_nodes(
            items, *graph, *costs, labels, sizes, evaluate_only, chosen
        )
