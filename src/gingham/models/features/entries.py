"""The entries of a table of categories, and how often each value stands in each cluster of instances."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from scipy import sparse
from scipy.special import gammaln, xlogy

from gingham.arrays import AnyArray, Bools, Floats, Ints, TableLike
from gingham.data.adapt import categorical_entries
from gingham.fitting.merging import MergeTree, merge_tree
from gingham.storage import savable


@dataclass(frozen=True, eq=False)
class Entries:
    """Observed entries of a table of categories."""

    rows: Ints
    columns: Ints
    values: Ints
    shape: tuple[int, int]  # instances, features
    n_values: int  # most values a feature has

    @classmethod
    def of(cls, X: TableLike) -> Self:
        return cls(*categorical_entries(X))

    @property
    def flat(self) -> Ints:
        """One number per value of a feature."""
        return self.columns.astype(np.int64) * self.n_values + self.values

    def only(self, kept: Bools) -> Self:
        """Some of the entries, in a table of the same shape."""
        return replace(self, rows=self.rows[kept], columns=self.columns[kept], values=self.values[kept])

    def feature_information(self, labels: Ints, n_clusters: int) -> Floats:
        """P(X_j observed)·I(T; X_j | observed) of each feature, nats, shape (features,).

        Their mean is I_ob of P4 (which forgets the 1/n in the version with missing values).
        """
        n, d = self.shape
        width = d * self.n_values
        table = np.bincount(labels[self.rows] * width + self.flat, minlength=n_clusters * width)
        table = table.reshape(n_clusters, d, self.n_values)
        by_cluster, by_value = table.sum(axis=2), table.sum(axis=0)
        seen = by_value.sum(axis=1)
        total = xlogy(table, table).sum(axis=(0, 2)) - xlogy(by_cluster, by_cluster).sum(axis=0)
        total += xlogy(seen, seen) - xlogy(by_value, by_value).sum(axis=1)
        return np.maximum(np.asarray(total) / n, 0.0)

    def digests(self) -> AnyArray:
        """Equal for features with the same values in the same instances; 0 where all values are the same."""
        order = np.argsort(self.columns, kind="stable")
        edges = np.searchsorted(self.columns[order], np.arange(self.shape[1] + 1))
        found = np.zeros(self.shape[1], dtype=np.uint64)
        for j, (start, stop) in enumerate(pairwise(edges)):
            mine = order[start:stop]
            if stop > start and np.ptp(self.values[mine]):
                whole = np.stack([self.rows[mine], self.values[mine]]).astype(np.int64).tobytes()
                found[j] = int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")
        return found


@savable
@dataclass(frozen=True, eq=False)
class ValueTable:
    """How many instances of each cluster have each value; the values of a feature stand side by side."""

    counts: Floats  # (n_clusters, n_values of all features)
    feature_of: Ints  # (n_values of all features,), never falling
    n_features: int

    @classmethod
    def of(cls, entries: Entries, labels: Ints, n_clusters: int) -> ValueTable:
        """Of the values that were observed."""
        present, at = np.unique(entries.flat, return_inverse=True)
        counts = np.bincount(labels[entries.rows] * len(present) + at.ravel(), minlength=n_clusters * len(present))
        shape = (n_clusters, len(present))
        return cls(counts.reshape(shape).astype(np.float64), present // entries.n_values, entries.shape[1])

    def by_feature(self, values: Floats) -> Floats:
        """Sums over the values of each feature, (…, n_features)."""
        out = np.zeros((*values.shape[:-1], self.n_features))
        starts = np.flatnonzero(np.diff(self.feature_of, prepend=-1))
        if len(starts):
            out[..., self.feature_of[starts]] = np.add.reduceat(values, starts, axis=-1)
        return out

    def shares(self) -> Floats:
        """How common each value of a feature is in each cluster, among its instances that have the feature.

        One instance more has the values of all.
        """
        seen, whole = self.by_feature(self.counts), self.counts.sum(axis=0)
        whole = whole / np.maximum(self.by_feature(whole), 1.0)[self.feature_of]
        return np.asarray((self.counts + whole) / (seen[:, self.feature_of] + 1.0))

    def tree(self) -> MergeTree:
        """Clusters merged two at a time, those that lose the least information."""

        def cost(sums: Floats) -> Floats:
            seen = self.by_feature(sums)
            return np.asarray(xlogy(seen, seen).sum(axis=1) - xlogy(sums, sums).sum(axis=1))

        return merge_tree([(cost, self.counts)])

    def grown(self, tree: MergeTree) -> ValueTable:
        """With a row for every node of the tree."""
        counts = np.vstack([self.counts, np.zeros((len(tree.merges), self.counts.shape[1]))])
        for t, (a, b) in enumerate(tree.merges.tolist()):
            counts[tree.n_leaves + t] = counts[a] + counts[b]
        return replace(self, counts=counts)

    def evidence(self, prior: Floats | None = None) -> Floats:
        """ln P(values of a cluster's instances), each feature with a Dirichlet prior of weight 1.

        ``prior`` says how that weight is shared among the values of a feature, (n_values of all features,); even by
        default.
        """
        if prior is None:
            prior = 1.0 / np.maximum(np.bincount(self.feature_of, minlength=self.n_features), 1)[self.feature_of]
        found = gammaln(self.counts + prior) - gammaln(prior)
        return np.asarray(found.sum(axis=1) - gammaln(self.by_feature(self.counts) + 1.0).sum(axis=1))

    def place(self, rows: Ints, values: Ints, n_rows: int) -> Ints:
        """The cluster that each new instance joins at the least loss of information, as in a sweep of the fit.

        Its values are given by their position in this table. Where several clusters lose as little, the largest.
        """
        seen = self.by_feature(self.counts)
        rises = (xlogy(seen + 1, seen + 1) - xlogy(seen, seen))[:, self.feature_of]
        rises -= xlogy(self.counts + 1, self.counts + 1) - xlogy(self.counts, self.counts)
        has = sparse.csr_array((np.ones(len(rows)), (rows, values)), shape=(n_rows, len(self.feature_of)))
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        return np.asarray(order[np.argmin((has @ rises.T).round(9)[:, order], axis=1)])


def positions(entries: Entries, names: Sequence[Sequence[str]], known: AnyArray) -> tuple[Ints, Ints]:
    """Rows of the entries whose value is among the known ones ("feature number = value"), and its position there."""
    at = {text: position for position, text in enumerate(known.tolist())}
    flat, inverse = np.unique(entries.flat, return_inverse=True)
    texts = value_names(flat, entries.n_values, names)
    found = np.array([at.get(text, -1) for text in texts.tolist()], dtype=np.int64)[inverse.ravel()]
    return entries.rows[found >= 0], found[found >= 0]


def value_names(flat: Ints, n_values: int, names: Sequence[Sequence[str]], titles: Sequence[object] = ()) -> AnyArray:
    """Values of features by name: "fever = yes", or "3 = yes" where features have no titles."""
    parts = [divmod(int(value), n_values) for value in flat.tolist()]
    return np.array([f"{titles[j] if titles else j} = {names[j][code]}" for j, code in parts], dtype=str)
