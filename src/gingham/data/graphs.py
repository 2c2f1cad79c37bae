"""PairSample: the observed pairs of one mode met twice (a graph) or more often (a hypergraph), absent ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import comb, factorial
from string import ascii_lowercase

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.data.features import Features
from gingham.data.sample import Sample

LETTERS = ascii_lowercase  # names of positions in einsum


@dataclass(frozen=True, eq=False)
class PairSample(Sample):
    """Labelled pairs of nodes, each stored once, none with itself.

    Attributes
    ----------
    directed : bool
        Whether (i, j) and (j, i) are two pairs. If not, i < j, and block (a, b) is block (b, a).
    complete : bool
        Whether every pair was observed: those that are not listed have label 0. Their sums are totals
        minus listed ones, so that nothing of size n² is ever held.
    """

    directed: bool = False
    complete: bool = True

    @property
    def n_nodes(self) -> int:
        return self.modes[0].n_items

    @property
    def n_tuples(self) -> float:
        """N: observed pairs (sets of d nodes in a hypergraph), absent ones counted where all were observed."""
        if not self.complete:
            return Sample.n_tuples.fget(self)  # type: ignore[attr-defined]
        pairs = comb(self.n_nodes, self.n_modes)
        return float(pairs * factorial(self.n_modes) if self.directed else pairs)

    def take(self, rows: AnyArray) -> PairSample:
        """Only the given rows of the list; absent pairs are left behind."""
        part = super().take(rows)
        return PairSample(
            part.modes, part.codes, part.labels, part.alphabet, part.label_codes, part.weights,
            directed=self.directed, complete=False,
        )  # fmt: skip

    def listed(self) -> PairSample:
        """The listed pairs alone."""
        return self.take(np.arange(self.n_rows))

    def absent_features(self, features: Features) -> Floats:
        """t(0), the statistics of one absent pair, shape (K,)."""
        zero = np.zeros(1)
        return features.evaluate(zero, None if self.alphabet is None else self.alphabet.encode(zero))[0]

    def completed(self, table: Floats, assigns: Sequence[Floats], features: Features) -> Floats:
        """Cell statistics of all observed pairs from those of the listed ones, shape (m, …, m, K).

        S_0 = (s sᵀ − QᵀQ)/2 pairs meet in each block, s = Σ_x q(·|x); what is not listed has t(0).
        """
        d = self.n_modes
        if not self.directed:
            orders = [(*order, d) for order in permutations(range(d))]
            table = np.mean([table.transpose(order) for order in orders], axis=0)
        if not self.complete:
            return table
        seen = features.count(table)
        absent = np.maximum(all_pairs(assigns[0], d, self.directed) - seen, 0.0)
        return table + absent[..., None] * self.absent_features(features)


def all_pairs(assign: Floats, d: int = 2, directed: bool = False) -> Floats:
    """How many tuples of d different nodes meet in each block, shape (m, …, m).

    Ordered tuples when directed; otherwise each set once, spread evenly over the d! orders of its blocks.
    """
    q = np.asarray(assign, dtype=np.float64)
    axes = LETTERS[:d]
    tuples = np.zeros((q.shape[1],) * d)
    for weight, groups in coincidences(axes):
        tuples += weight * np.einsum(",".join(groups) + "->" + axes, *[same_node(q, group) for group in groups])
    return tuples if directed else tuples / factorial(d)


def coincidences(positions: str) -> Iterator[tuple[int, list[str]]]:
    """Ways in which nodes at some positions can be equal, weighted so that only sums over different nodes remain.

    Inclusion and exclusion over the partitions of the positions into groups, Π (−1)^{|group|−1} (|group| − 1)!.
    """
    if not positions:
        yield 1, []
        return
    for weight, groups in coincidences(positions[:-1]):
        yield weight, [*groups, positions[-1]]
        for at, group in enumerate(groups):
            yield -weight * len(group), [*groups[:at], group + positions[-1], *groups[at + 1 :]]


def same_node(assign: Floats, group: str, keep: str = "") -> Floats:
    """Σ_x Π_j q(c_j|x) over a group of positions, shape (m, …, m); ``keep="X"`` keeps the node, (n, m, …, m)."""
    factors = ",".join("X" + position for position in group)
    table: Floats = np.einsum(f"{factors}->{keep}{group}", *[assign] * len(group), optimize=True)
    return table
