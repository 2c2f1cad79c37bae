"""How the data is divided: which modes there are, and which of them meet in each relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.storage import savable


@savable
@dataclass(frozen=True, eq=False)
class Structure:
    """Named modes, each clustered once, and the relations (factors) in which they meet."""

    modes: tuple[Mode, ...]
    # For each relation, which mode stands at each of its positions. A grid has one factor (0, 1, …, d − 1); a graph
    # has one factor (0, 0); shared matrices have several.
    factors: tuple[tuple[int, ...], ...]
    # Modes whose assignments are given beforehand (every item its own cluster, say) and never move; they carry no
    # information about the data and cost nothing.
    frozen: tuple[int, ...] = ()

    @classmethod
    def grid(cls, modes: Sequence[Mode]) -> Structure:
        """One relation in which every mode stands once: the checkerboard of P0."""
        return cls(tuple(modes), (tuple(range(len(modes))),))

    @property
    def n_modes(self) -> int:
        return len(self.modes)

    @property
    def repeats(self) -> bool:
        """Whether some relation meets a mode twice; its loss is then not linear in that assignment."""
        return any(len(set(factor)) < len(factor) for factor in self.factors)

    def columns(self, relation: int = 0) -> tuple[Mode, ...]:
        """The mode of each column of a relation's tuples."""
        return tuple(self.modes[mode] for mode in self.factors[relation])

    def titles(self, modes: Sequence[int]) -> list[str]:
        """Names of some modes; their numbers where two have one name."""
        names = [self.modes[mode].name for mode in modes]
        return names if len(set(names)) == len(names) else [f"mode {mode}" for mode in modes]

    def uses(self, mode: int) -> list[tuple[int, int]]:
        """(relation, position) pairs at which a mode stands."""
        return [
            (relation, position)
            for relation, factor in enumerate(self.factors)
            for position, at in enumerate(factor)
            if at == mode
        ]


@savable
@dataclass(frozen=True, eq=False)
class Tree(Structure):
    """Leaves that merge step by step, as in P0 Fig. 8: only the nodes left at the top meet the labels.

    Leaves are nodes 0, …, d − 1. Inner node d + i has children ``children[i]``; its items are the
    combinations of their clusters, which it clusters in turn. The nodes without a parent are the roots:
    their clusters form the grid of cells (the single relation). Modes are what is clustered: items of leaves, then
    cells of inner nodes.
    """

    tables: tuple[int, ...] = ()  # which mode stands at each node; nodes that share a clustering name the same mode
    children: tuple[tuple[int, ...], ...] = ()  # nodes below each inner node
    price: float = 0.0  # −ln of the prior of this tree, nats, when it was chosen by looking at the data; else 0

    @classmethod
    def build(
        cls,
        modes: Sequence[Mode],
        n_clusters: Sequence[int],
        merges: Sequence[Sequence[int | None]],
        tied: Sequence[Sequence[int]] = (),
        price: float = 0.0,
    ) -> tuple[Tree, tuple[int, ...]]:
        """A tree from the modes and sizes of its leaves, and the number of clusters of each of its modes.

        Merge i, (child, …, child, D), makes node d + i with D clusters; D = None keeps every combination by itself.
        ``tied`` are groups of nodes that share one clustering: leaves that hold the same Mode, or inner nodes that
        merge equal sizes.
        """
        d = len(modes)
        check_merges(d, merges)
        sizes = list(n_clusters)
        items = [mode.n_items for mode in modes]
        group = {node: min(nodes) for nodes in tied for node in nodes}
        found: list[Mode] = []
        tables: list[int] = []
        widths, frozen = [], []
        for node in range(d + len(merges)):
            if node >= d:
                *below, width = merges[node - d]
                cells = prod(sizes[child] for child in below if child is not None)
                items.append(cells)
                sizes.append(cells if width is None else width)
            first = group.get(node, node)
            if first < node:
                if (items[first], sizes[first]) != (items[node], sizes[node]) or (first < d) != (node < d):
                    raise GinghamError(
                        f"Nodes {first} and {node} cannot share a clustering: {items[first]} items in "
                        f"{sizes[first]} clusters against {items[node]} in {sizes[node]}."
                    )
                tables.append(tables[first])
                continue
            if node >= d and merges[node - d][-1] is None:
                frozen.append(len(found))
            tables.append(len(found))
            name = "·".join(str(child) for child in merges[node - d][:-1]) if node >= d else ""
            found.append(modes[node] if node < d else Mode(f"merge {name}", np.arange(items[node])))
            widths.append(sizes[node])
        children = tuple(tuple(int(c) for c in merge[:-1] if c is not None) for merge in merges)
        below_any = {child for nodes in children for child in nodes}
        roots = tuple(node for node in range(d + len(merges)) if node not in below_any)
        tree = cls(tuple(found), (tuple(tables[r] for r in roots),), tuple(frozen), tuple(tables), children, price)
        return tree, tuple(widths)

    def columns(self, relation: int = 0) -> tuple[Mode, ...]:
        return tuple(self.modes[mode] for mode in self.tables[: self.n_leaves])

    @property
    def n_leaves(self) -> int:
        return len(self.tables) - len(self.children)

    @property
    def roots(self) -> tuple[int, ...]:
        """Nodes without a parent; their clusters span the cells."""
        below = {child for nodes in self.children for child in nodes}
        return tuple(node for node in range(len(self.tables)) if node not in below)

    @property
    def tied(self) -> tuple[int, ...]:
        """Modes that stand at several nodes; the loss is not linear in their assignments."""
        return tuple(mode for mode in range(self.n_modes) if self.tables.count(mode) > 1)


def check_merges(n_leaves: int, merges: Sequence[Sequence[int | None]]) -> None:
    """Refuse merges that are no tree: every node below at most one merge, children before parents."""
    used: dict[int, int] = {}
    for i, merge in enumerate(merges):
        if len(merge) < 2:
            raise GinghamError(f"merges[{i}]={tuple(merge)} needs at least one child and the number of clusters.")
        *below, width = merge
        if width is not None and (not isinstance(width, int | np.integer) or width < 1):
            raise GinghamError(f"merges[{i}] asks for {width!r} clusters; give a positive number or None.")
        for child in below:
            if not isinstance(child, int | np.integer) or not 0 <= child < n_leaves + i:
                raise GinghamError(
                    f"merges[{i}] names node {child!r}; before it there are nodes 0 to {n_leaves + i - 1} "
                    f"(leaves 0 to {n_leaves - 1}, then one node per merge)."
                )
            if child in used:
                raise GinghamError(f"Node {child} is merged twice, in merges[{used[child]}] and merges[{i}].")
            used[int(child)] = i
