"""The density of a tree (P0 Fig. 9): cells of the roots, combinations given their cluster, items given theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln, xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.core.structure import Tree
from gingham.storage import savable

PRIOR_WEIGHTS = np.geomspace(0.1, 1e6, 29)  # pseudo-counts among which the evidence chooses


@savable
@dataclass(frozen=True, eq=False)
class TreeDensity:
    """p(x) = P(roots) Π_inner P(child clusters | cluster) Π_leaves p(x | cluster), hard clusters.

    Every factor is a conditional law, so p sums to one however its tables are smoothed. Clusterings may
    be shared between nodes; the laws are each node's own.

    Attributes
    ----------
    tree : Tree
    labels : int arrays, one per mode: cluster of every item, or of every combination of child clusters
    widths : clusters of every node
    leaves : arrays (n_items,), one per leaf: p_j(x)
    inner : arrays (combinations,), one per inner node: P(child clusters)
    roots : array (D_1, …, D_R): joint law of the root clusters
    """

    tree: Tree
    labels: tuple[Ints, ...]
    widths: tuple[int, ...]
    leaves: tuple[Floats, ...]
    inner: tuple[Floats, ...]
    roots: Floats

    @cached_property
    def conditional(self) -> list[Floats]:
        """ln p(item | its cluster) of every node, by item."""
        result = []
        for law, mode in zip((*self.leaves, *self.inner), self.tree.tables):
            mass = np.bincount(self.labels[mode], law)
            result.append(np.log(law) - np.log(mass[self.labels[mode]]))
        return result

    def log_density(self, codes: Sequence[Ints]) -> Floats:
        """ln p of each tuple, shape (N,); −∞ for items never seen (code −1)."""
        at, items_at = clusters_of(self.tree, self.labels, codes, self.widths)
        known = np.all([np.asarray(code) >= 0 for code in codes], axis=0)
        density = np.log(self.roots[tuple(at[root] for root in self.tree.roots)])
        for conditional, items in zip(self.conditional, items_at):
            density = density + conditional[items]
        return np.where(known, density, -np.inf)


def clusters_of(
    tree: Tree, labels: Sequence[Ints], codes: Sequence[Ints], widths: Sequence[int]
) -> tuple[list[Ints], list[Ints]]:
    """Cluster, and item, of every node in every tuple."""
    items = [np.maximum(np.asarray(code), 0) for code in codes]
    at = [labels[mode][code] for mode, code in zip(tree.tables, items)]
    for children, mode in zip(tree.children, tree.tables[tree.n_leaves :]):
        cell = np.ravel_multi_index([at[child] for child in children], [widths[child] for child in children])
        items.append(cell)
        at.append(labels[mode][cell])
    return at, items


def smoothed(counts: AnyArray, prior: Floats) -> Floats:
    """(counts + α·prior)/(N + α) with the α that makes the counts most probable.

    The evidence is that of a Dirichlet law with mean ``prior`` and weight α, so nothing is left to tune.
    """
    counts, prior = np.asarray(counts, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    prior = prior / prior.sum()
    seen = prior > 0
    c, p, total = counts[seen], prior[seen], counts.sum()
    evidence = [
        float((gammaln(c + a * p) - gammaln(a * p)).sum() + gammaln(a) - gammaln(total + a)) for a in PRIOR_WEIGHTS
    ]
    weight = PRIOR_WEIGHTS[int(np.argmax(evidence))]
    return np.asarray((counts + weight * prior) / (total + weight))


def product_law(table: Floats) -> Floats:
    """The independent law with a table's margins."""
    result: Floats = np.ones(())
    for axis in range(table.ndim):
        margin = table.sum(axis=tuple(k for k in range(table.ndim) if k != axis))
        result = np.multiply.outer(result, margin / table.sum())
    return result


def multi_information(table: Floats) -> float:
    """Σ_k H(C_k) − H(C_1, …, C_K), nats."""
    law = table / table.sum()
    margins = [law.sum(axis=tuple(j for j in range(law.ndim) if j != k)) for k in range(law.ndim)]
    return float(xlogy(law, law).sum() - sum(xlogy(m, m).sum() for m in margins))
