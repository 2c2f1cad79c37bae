"""A merge tree per side, one path down all of them, and the order in which clusters are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.fitting.merging import MergeTree, merge_tree
from gingham.summary.values import BlockTable


def trees_of(tables: Sequence[BlockTable], n_sides: int) -> list[MergeTree]:
    """The merge tree of every side, each with all others as fine as they are."""
    return [
        merge_tree([(table.rule.cost, sums) for table in tables for sums in table.part(side)])
        for side in range(n_sides)
    ]


def joint_path(trees: Sequence[MergeTree], tables: Sequence[BlockTable]) -> Ints:
    """Which tree to climb next, from all leaves to one block: the one whose next merge loses least as things stand."""
    groups: list[Ints] = [np.arange(tree.n_leaves) for tree in trees]
    done = [0] * len(trees)
    path = []
    while any(at < len(tree.merges) for at, tree in zip(done, trees)):
        current = [table.coarser(groups) for table in tables]
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


def _lost(tables: Sequence[BlockTable], side: int, before: Ints, after: Ints) -> float:
    """What going from one cut of a side to the next coarser one loses."""
    into = np.zeros(int(before.max()) + 1, dtype=np.int64)
    into[before] = after
    total = 0.0
    for table in tables:
        for sums in table.part(side):
            coarse = np.zeros((int(into.max()) + 1, *sums.shape[1:]))
            np.add.at(coarse, into, sums)
            total += float(table.rule.cost(coarse).sum() - table.rule.cost(sums).sum())
    return total


def rungs(trees: Sequence[MergeTree], path: Ints) -> list[tuple[int, ...]]:
    """The sizes along a path, all leaves first."""
    sizes = [tuple(tree.n_leaves for tree in trees)]
    for side in path.tolist():
        last = list(sizes[-1])
        last[side] -= 1
        sizes.append(tuple(last))
    return sizes


def leaf_order(tree: MergeTree, profiles: Floats, towards: Floats | None = None) -> Ints:
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
        from scipy.cluster.hierarchy import leaves_list, optimal_leaf_ordering  # loaded when a tree is drawn
        from scipy.spatial.distance import pdist

        return np.asarray(leaves_list(optimal_leaf_ordering(linkage, pdist(profiles) + 1e-12)), dtype=np.int64)
    below = [[leaf] for leaf in range(m)]
    for a, b in tree.merges.tolist():
        first, second = below[a], below[b]
        straight = np.mean(towards[first]) <= np.mean(towards[second])
        below.append(first + second if straight else second + first)
    return np.array(below[-1], dtype=np.int64)


def orders(trees: Sequence[MergeTree], tables: Sequence[BlockTable]) -> list[Ints]:
    """The order of every side: the first by likeness, others towards the side they first meet."""
    found: dict[int, Ints] = {}
    for table in tables:
        values = table.rule.coefficients(table.sums)[..., -1]
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
