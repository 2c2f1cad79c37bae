"""A merge tree a side, one path down all of them, and the order in which clusters are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import leaves_list, optimal_leaf_ordering
from scipy.spatial.distance import pdist

from gingham.arrays import Floats, Ints
from gingham.reading.measures import Measure

Part = tuple[Measure, Floats]  # how a side meets others: sums (m, columns, K) of its clusters


@dataclass(frozen=True, eq=False)
class Tree:
    """Merges of m leaves, cheapest first. Node m + t is what merge t makes."""

    merges: Ints  # (m − 1, 2)
    losses: Floats  # (m − 1,): what each merge loses of what the parts explain, never falling

    @property
    def n_leaves(self) -> int:
        return len(self.merges) + 1

    def groups(self, k: int) -> Ints:
        """The cluster (0 … k − 1, by their first leaf) of each leaf after all merges but the last k − 1."""
        into = list(range(self.n_leaves))
        for t, (a, b) in enumerate(self.merges[: self.n_leaves - k].tolist()):
            into = [self.n_leaves + t if node in (a, b) else node for node in into]
        first = {node: at for at, node in reversed(list(enumerate(into)))}
        return np.unique([first[node] for node in into], return_inverse=True)[1].astype(np.int64)


def merge_tree(parts: Sequence[Part]) -> Tree:
    """Merge the rows of some tables, each time the two that lose least; the columns stay as fine as they are.

    loss(a, b) = explained(a) + explained(b) − explained(a + b), summed over the parts: N times the weighted
    Jensen-Shannon divergence for counts, the squares between groups for numbers. A merge never makes a later one
    cheaper than itself, so heights of the tree do not cross.
    """
    tables = [(measure, np.array(sums, dtype=np.float64)) for measure, sums in parts]
    m = len(tables[0][1])
    node, alive = np.arange(m), np.ones(m, dtype=bool)
    worth = sum(measure.explained(sums) for measure, sums in tables) + np.zeros(m)
    costs = np.full((m, m), np.inf)
    for a in range(m):
        costs[a, a + 1 :] = _joining(tables, worth, a, np.arange(a + 1, m))
    costs = np.minimum(costs, costs.T)
    merges, losses, least = np.zeros((m - 1, 2), dtype=np.int64), np.zeros(m - 1), 0.0
    for t in range(m - 1):
        a, b = sorted(int(i) for i in np.unravel_index(np.argmin(costs), costs.shape))
        least = max(least, float(costs[a, b]))  # rounding must not make a tree cross itself
        merges[t], losses[t] = sorted((node[a], node[b])), least
        for _, sums in tables:
            sums[a] += sums[b]
        worth[a] = sum(float(measure.explained(sums[a])) for measure, sums in tables)
        node[a], alive[b] = m + t, False
        costs[b] = costs[:, b] = np.inf
        others = np.flatnonzero(alive & (np.arange(m) != a))
        costs[a, others] = costs[others, a] = _joining(tables, worth, a, others)
    return Tree(merges, losses)


def _joining(tables: Sequence[Part], worth: Floats, a: int, others: Ints) -> Floats:
    """What is lost by merging row a with each of the others."""
    joint = sum((measure.explained(sums[others] + sums[a]) for measure, sums in tables), np.zeros(len(others)))
    return np.maximum(worth[a] + worth[others] - joint, 0.0)


@dataclass(frozen=True, eq=False)
class Met:
    """Two sides that meet, by their positions, and the sums over the blocks of their leaves (m_1, m_2, K)."""

    sides: tuple[int, int]
    measure: Measure
    sums: Floats

    def part(self, side: int) -> list[Part]:
        """What a side sees of it: its clusters × those of the other side; both ways where it meets itself."""
        turned = np.swapaxes(self.sums, 0, 1)
        if self.sides[0] == self.sides[1] == side and np.array_equal(self.sums, turned):
            return [(self.measure, self.sums)]
        seen = [self.sums] * (self.sides[0] == side) + [turned] * (self.sides[1] == side)
        return [(self.measure, sums) for sums in seen]


def trees_of(tables: Sequence[Met], n_sides: int) -> list[Tree]:
    """The merge tree of every side, each with all others as fine as they are."""
    return [merge_tree([part for table in tables for part in table.part(side)]) for side in range(n_sides)]


def joint_path(trees: Sequence[Tree], tables: Sequence[Met]) -> Ints:
    """Which tree to climb next, from all leaves to one block: the one whose next merge loses least as things stand."""
    groups: list[Ints] = [np.arange(tree.n_leaves) for tree in trees]
    done = [0] * len(trees)
    path = []
    while any(at < len(tree.merges) for at, tree in zip(done, trees)):
        current = [Met(t.sides, t.measure, summed(t.sums, groups[t.sides[0]], groups[t.sides[1]])) for t in tables]
        costs = {}
        for side, (at, tree) in enumerate(zip(done, trees)):
            if at < len(tree.merges):
                before, after = groups[side], tree.groups(tree.n_leaves - at - 1)
                costs[side] = _lost(current, side, before, after)
        side = min(costs, key=lambda s: (costs[s], s))
        done[side] += 1
        groups[side] = trees[side].groups(trees[side].n_leaves - done[side])
        path.append(side)
    return np.array(path, dtype=np.int64)


def _lost(tables: Sequence[Met], side: int, before: Ints, after: Ints) -> float:
    """What going from one cut of a side to the next coarser one loses."""
    into = np.zeros(int(before.max()) + 1, dtype=np.int64)
    into[before] = after
    total = 0.0
    for table in tables:
        for measure, sums in table.part(side):
            coarse = np.zeros((int(into.max()) + 1, *sums.shape[1:]))
            np.add.at(coarse, into, sums)
            total += float(measure.explained(sums).sum() - measure.explained(coarse).sum())
    return total


def summed(sums: Floats, rows: Ints, columns: Ints) -> Floats:
    """Sums of coarser blocks (k_1, k_2, K), from the cluster of each row and each column."""
    out: Floats = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1, sums.shape[2]))
    np.add.at(out, (rows[:, None], columns[None, :]), sums)
    return out


def rungs(trees: Sequence[Tree], path: Ints) -> list[tuple[int, ...]]:
    """The sizes along a path, all leaves first."""
    sizes = [tuple(tree.n_leaves for tree in trees)]
    for side in path.tolist():
        last = list(sizes[-1])
        last[side] -= 1
        sizes.append(tuple(last))
    return sizes


def leaf_order(tree: Tree, profiles: Floats, towards: Floats | None = None) -> Ints:
    """Leaves such that every node is a run of them, neighbours alike; or by where they point, where that is told.

    ``profiles`` (m, columns) say which leaves are alike; ``towards`` (m,) is a place on the other side for each leaf:
    every node is then flipped so that places rise, and a diagonal appears.
    """
    m = tree.n_leaves
    if m < 3 and towards is None:
        return np.arange(m)
    if towards is None:
        heights = np.arange(1.0, m)  # only the shape of the tree matters here
        linkage = np.column_stack([tree.merges, heights, np.ones(m - 1)])
        return np.asarray(leaves_list(optimal_leaf_ordering(linkage, pdist(profiles) + 1e-12)), dtype=np.int64)
    below = [[leaf] for leaf in range(m)]
    for a, b in tree.merges.tolist():
        first, second = below[a], below[b]
        straight = np.mean(towards[first]) <= np.mean(towards[second])
        below.append(first + second if straight else second + first)
    return np.array(below[-1], dtype=np.int64)


def orders(trees: Sequence[Tree], tables: Sequence[Met]) -> list[Ints]:
    """The order of every side: the first by likeness, others towards the side they first meet."""
    found: dict[int, Ints] = {}
    for table in tables:
        values = table.measure.coefficients(table.sums)[..., -1]
        a, b = table.sides
        if a not in found and b not in found:
            found[a] = leaf_order(trees[a], np.clip(values, *_reach(values)))
        for new, old, seen in ((b, a, values), (a, b, values.T)):
            if new not in found:
                place = np.empty(len(found[old]))
                place[found[old]] = np.arange(len(place))
                pull = np.maximum(seen, 0.0) ** 2 + 1e-9
                found[new] = leaf_order(trees[new], seen.T, (pull * place[:, None]).sum(axis=0) / pull.sum(axis=0))
    return [found[side] for side in range(len(trees))]


def _reach(values: Floats) -> tuple[float, float]:
    """Absences say less than presences: blue only as far as red."""
    top = float(np.abs(values).max()) if values.size else 1.0
    high = float(values.max()) if values.size else 1.0
    return -max(high, 1e-12), max(top, 1e-12)
