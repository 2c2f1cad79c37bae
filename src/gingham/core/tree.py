"""Q over trees (messages carry leaf memberships up to the roots, where a tree is a grid), and the density of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.core.problem import Posterior, Problem, Structure, Tree, contract
from gingham.data import Features, Mode, Sample
from gingham.errors import GinghamError
from gingham.storage import savable


class TreeLayout(NamedTuple):
    """Which combinations of items occur below each node."""

    below: tuple[Ints, ...]  # (items, children) of each inner node: the children's items in each combination
    top: tuple[Ints, ...]  # (N,) of each root: its item in each observation


def lay_out(tree: Tree, codes: Sequence[Ints]) -> TreeLayout:
    """Number the combinations that occur below each inner node; observations meet at the roots only."""
    at = [np.asarray(code) for code in codes]
    below = []
    for children in tree.children:
        combination = np.stack([at[child] for child in children], axis=1)
        distinct, inverse = unique_rows(combination)
        below.append(distinct)
        at.append(inverse)
    return TreeLayout(tuple(below), tuple(at[root] for root in tree.roots))


def unique_rows(columns: Ints) -> tuple[Ints, Ints]:
    """Different rows of an integer array (N, k), sorted, and which of them each row is."""
    inverse = np.zeros(len(columns), dtype=np.int64)
    for column in columns.T:
        width = int(column.max(initial=0)) + 1
        # Renumbered after every column, so that the key stays below 2⁶³.
        _, inverse = np.unique(inverse * width + column, return_inverse=True)
    first = np.full(int(inverse.max(initial=-1)) + 1, len(columns))
    np.minimum.at(first, inverse, np.arange(len(columns)))
    return columns[first], inverse.astype(np.int32)


def ascend(tree: Tree, layout: TreeLayout, leaves: Sequence[Floats], tables: Sequence[Floats]) -> list[Floats]:
    """Forward messages a[items of the node, clusters] of all nodes (P0 eq. 50, the inner sums).

    ``leaves`` are arrays (n_items, m), ``tables`` of inner nodes (combinations of child clusters, D).
    """
    messages = list(leaves)
    for children, below, table in zip(tree.children, layout.below, tables):
        messages.append(merge([messages[child] for child in children], below, table))
    return messages


def merge(messages: Sequence[Floats], below: Ints, table: Floats) -> Floats:
    """a[p, D] = Σ_c Π_j a_j[item j of p, c_j] r[c, D] for each combination p of child items."""
    cube = table.reshape(*(a.shape[1] for a in messages), table.shape[1])
    return contract(list(below.T), messages, cube)


@savable
@dataclass(frozen=True, eq=False)
class TreePosterior(Posterior):
    """A distribution over trees of partitions: tables of leaves and inner nodes, answers of the root cells.

    ``assign`` holds q(c|x) of the leaves and then q(D|c, c') of the inner nodes, in the order of the
    tree's modes, so that masses, information and complexity count leaves and inner nodes alike (P0 eq. 51).
    Leaves that share a clustering draw it independently at each position.
    """

    structure: Tree
    has_known_price: ClassVar[bool] = True

    def at_root(self, sample: Sample, named: bool = False) -> tuple[Posterior, Sample]:
        """The same predictor as a grid whose items are the combinations at the roots.

        ``named`` gives the combinations readable names, for pictures.
        """
        layout = lay_out(self.structure, self._with_last(sample.codes))
        messages = self._messages(layout, sample.has_unseen)
        if named:
            modes = combination_modes(self.structure, layout)
        else:
            modes = tuple(Mode(f"root {root}", np.arange(len(messages[root]))) for root in self.structure.roots)
        assign = tuple(messages[root] for root in self.structure.roots)
        grid = Posterior(Structure.grid(modes), self.cells, assign, self.answers)
        return grid, replace(sample, modes=modes, codes=layout.top)

    def statistics(
        self, sample: Sample, relation: int = 0, features: Features | None = None, backend: str = "auto"
    ) -> Floats:
        """What each root cell sees of a sample."""
        grid, tops = self.at_root(sample)
        return grid.statistics(tops, relation, features, backend)

    def factors(self, relation: int = 0) -> tuple[Any, ...]:
        raise GinghamError("A tree is no tri-factorisation; its tables are assign_, its root cells answers_.")

    def shares_urn(self, relation: int = 0) -> bool:
        return False  # nodes draw their clusters independently of each other

    def _with_last(self, codes: Sequence[Ints]) -> list[Ints]:
        """The same codes, in which an unseen item (−1) is the one after the last."""
        return [np.where(code < 0, len(self.assign[mode]), code) for code, mode in zip(codes, self.structure.tables)]

    def _messages(self, layout: TreeLayout, unseen: bool) -> list[Floats]:
        at, d = self.structure.tables, self.structure.n_leaves
        leaves = [self.with_unseen(mode) if unseen else self.assign[mode] for mode in at[:d]]
        return ascend(self.structure, layout, leaves, [self.assign[mode] for mode in at[d:]])

    def expectation(self, codes: Sequence[Ints], table: Floats, relation: int) -> Floats:
        layout = lay_out(self.structure, self._with_last(codes))
        messages = self._messages(layout, unseen=True)
        return contract(layout.top, [messages[root] for root in self.structure.roots], table)


def need_tree(posterior: Posterior, refusal: str) -> TreePosterior:
    """The posterior of a tree; any other is refused in these words."""
    if not isinstance(posterior, TreePosterior):
        raise GinghamError(refusal)
    return posterior


def tree_of(problem: Problem) -> Tree:
    """The tree of a problem."""
    if not isinstance(problem.structure, Tree):
        raise GinghamError("A tree start needs a tree.")
    return problem.structure


def combination_modes(tree: Tree, layout: TreeLayout) -> tuple[Mode, ...]:
    """The items of each root by name: "ann · jaws" for a combination of two leaves."""
    nodes = list(tree.columns())
    for children, below in zip(tree.children, layout.below):
        parts = [nodes[child].items[below[:, k]].astype(str) for k, child in enumerate(children)]
        items = np.array([" · ".join(names) for names in zip(*parts)])
        nodes.append(Mode(" · ".join(nodes[child].name for child in children), items))
    return tuple(nodes[root] for root in tree.roots)


PRIOR_WEIGHTS = np.geomspace(0.1, 1e6, 29)  # pseudo-counts among which the evidence chooses


@savable
@dataclass(frozen=True, eq=False)
class TreeDensity:
    """p(x) = P(roots) Π_inner P(child clusters | cluster) Π_leaves p(x | cluster), hard clusters.

    Every factor is a conditional distribution, so p sums to one however its tables are smoothed. Clusterings may
    be shared between nodes; the distributions are each node's own.
    """

    tree: Tree
    # int arrays, one per mode: cluster of every item, or of every combination of child clusters
    labels: tuple[Ints, ...]
    widths: tuple[int, ...]  # clusters of every node
    leaves: tuple[Floats, ...]  # arrays (n_items,), one per leaf: p_j(x)
    inner: tuple[Floats, ...]  # arrays (combinations,), one per inner node: P(child clusters)
    roots: Floats  # (D_1, …, D_R): joint distribution of the root clusters

    @cached_property
    def conditional(self) -> list[Floats]:
        """ln p(item | its cluster) of every node, by item."""
        result = []
        for distribution, mode in zip((*self.leaves, *self.inner), self.tree.tables):
            mass = np.bincount(self.labels[mode], distribution)
            result.append(np.log(distribution) - np.log(mass[self.labels[mode]]))
        return result

    def log_density(self, codes: Sequence[Ints]) -> Floats:
        """ln p of each observation, shape (N,); −∞ for items never seen (code −1)."""
        at, items_at = clusters_of(self.tree, self.labels, codes, self.widths)
        known = np.all([np.asarray(code) >= 0 for code in codes], axis=0)
        density = np.log(self.roots[tuple(at[root] for root in self.tree.roots)])
        for conditional, items in zip(self.conditional, items_at):
            density = density + conditional[items]
        return np.where(known, density, -np.inf)


def clusters_of(
    tree: Tree, labels: Sequence[Ints], codes: Sequence[Ints], widths: Sequence[int]
) -> tuple[list[Ints], list[Ints]]:
    """Cluster, and item, of every node in every observation."""
    items = [np.maximum(np.asarray(code), 0) for code in codes]
    at = [labels[mode][code] for mode, code in zip(tree.tables, items)]
    for children, mode in zip(tree.children, tree.tables[tree.n_leaves :]):
        cell = np.ravel_multi_index([at[child] for child in children], [widths[child] for child in children])
        items.append(cell)
        at.append(labels[mode][cell])
    return at, items


def smoothed(counts: AnyArray, prior: Floats) -> Floats:
    """(counts + α·prior)/(N + α) with the α that makes the counts most probable.

    The evidence is that of a Dirichlet distribution with mean ``prior`` and weight α, so nothing is left to tune.
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
    """The independent distribution with a table's margins."""
    result: Floats = np.ones(())
    for axis in range(table.ndim):
        margin = table.sum(axis=tuple(k for k in range(table.ndim) if k != axis))
        result = np.multiply.outer(result, margin / table.sum())
    return result


def multi_information(table: Floats) -> float:
    """Σ_k H(C_k) − H(C_1, …, C_K), nats."""
    distribution = table / table.sum()
    margins = [
        distribution.sum(axis=tuple(j for j in range(distribution.ndim) if j != k)) for k in range(distribution.ndim)
    ]
    return float(xlogy(distribution, distribution).sum() - sum(xlogy(m, m).sum() for m in margins))
