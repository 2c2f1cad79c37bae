"""A graph as its nodes see it: the entries of each node, and what a pair costs under given answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.data import Features
from gingham.data.graphs import PairSample

FEW_LABELS = 8  # with at most so many different labels, a slot stands for a label; else for a power of it


class Neighbours(NamedTuple):
    """Entries grouped by node, in the layout of `kernels.graph`.

    An entry's slot says what it contributes to the statistics, ``values`` times ``basis[slot]``. Where all
    pairs were observed, ``basis`` holds the difference to an absent pair, t(y) − t(0), and ``absent`` is t(0).
    """

    indptr: Ints
    others: Ints
    slots: Ints
    values: Floats
    basis: Floats  # (n_slots, K)
    absent: Floats | None  # (K,)
    directed: bool

    def costs(self, coef: Floats) -> tuple[Floats, Floats]:
        """Cost of a pair by slot and block, (n_slots, k, k), and of an absent pair, (k, k).

        Rows are the cluster of the node itself, columns that of the other; in a directed graph the second
        half of the slots are pairs that come in.
        """
        present = np.moveaxis(coef @ self.basis.T, -1, 0)
        absent = np.zeros(coef.shape[:2]) if self.absent is None else coef @ self.absent
        if self.directed:
            present = np.concatenate([present, present.transpose(0, 2, 1)])
            absent = absent + absent.T
        return np.ascontiguousarray(present), np.ascontiguousarray(absent)


def neighbours(sample: PairSample, features: Features) -> Neighbours:
    """Both ends of every listed pair, grouped by node."""
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    slots, values, basis, rows = _slots(sample, features, labels, weights)
    zero = sample.absent_features(features) if sample.complete else None
    if zero is not None and (features.one_hot or len(basis) != features.size):
        basis = basis - zero
    elif zero is not None:
        basis = basis * (zero == 0)  # powers of a label: only t_0 = 1 is not zero at 0
    first, second = sample.codes[0][rows], sample.codes[1][rows]
    inwards = slots + (len(basis) if sample.directed else 0)
    owner = np.concatenate([first, second])
    kept = np.abs(basis).sum(axis=1)[np.concatenate([slots, slots])] > 0  # a slot like an absent pair says nothing
    order = np.flatnonzero(kept)[np.argsort(owner[kept], kind="stable")]
    indptr = np.zeros(sample.n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner[kept], minlength=sample.n_nodes), out=indptr[1:])
    return Neighbours(
        indptr,
        np.concatenate([second, first])[order].astype(np.int32),
        np.concatenate([slots, inwards])[order].astype(np.int32),
        np.concatenate([values, values])[order],
        basis,
        zero,
        sample.directed,
    )


def _slots(
    sample: PairSample, features: Features, labels: Floats, weights: Floats
) -> tuple[Ints, Floats, Floats, Ints]:
    """Slot, value and row of each entry, and t of each slot."""
    every = np.arange(sample.n_rows)
    if features.one_hot:
        return alphabet_codes(sample), weights, np.eye(features.size), every
    distinct, codes = np.unique(labels, return_inverse=True)
    if len(distinct) <= FEW_LABELS:
        return codes.ravel(), weights, features.evaluate(distinct), every
    powers = features.evaluate(labels)
    slots = np.repeat(np.arange(features.size), sample.n_rows)
    return slots, (powers * weights[:, None]).T.ravel(), np.eye(features.size), np.tile(every, features.size)


def alphabet_codes(sample: PairSample) -> Ints:
    """Label codes, which one-hot features need."""
    if sample.label_codes is None:
        raise ValueError("one-hot features need labels on an alphabet")
    return sample.label_codes


class WeightedPairs(NamedTuple):
    """Weighted undirected entries grouped by node, for hard moves and spectra."""

    indptr: Ints
    others: Ints
    values: Floats

    @property
    def strengths(self) -> Floats:
        """Sum of the weights of each node's entries (its degree, if all are 1), shape (n,)."""
        at = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return np.bincount(at, self.values, minlength=len(self.indptr) - 1).astype(np.float64)


def weighted_pairs(sample: PairSample) -> WeightedPairs:
    """Both ends of every pair with its label as the weight; hyperedges as all their pairs."""
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    d = sample.n_modes
    ends = [(i, j) for i in range(d) for j in range(d) if i != j]
    owner = np.concatenate([sample.codes[i] for i, _ in ends])
    other = np.concatenate([sample.codes[j] for _, j in ends])
    values = np.tile(labels, len(ends))
    order = np.argsort(owner, kind="stable")
    indptr = np.zeros(sample.n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=sample.n_nodes), out=indptr[1:])
    return WeightedPairs(indptr, other[order].astype(np.int32), values[order].astype(np.float64))
