"""Merge trees against brute force, and what every cut and order of them promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gingham.fitting.merging import MergeTree, merge_tree
from gingham.summary.trees import joint_path, leaf_order, orders, rungs, trees_of
from gingham.summary.values import MEASURES, BlockTable, Measure, measure_named, summed

RNG = np.random.default_rng(0)


def sums_of(measure: Measure, shape: tuple[int, int]) -> np.ndarray:
    """Random sums over blocks, as each kind of data makes them."""
    if measure.name == "lift":
        return RNG.poisson(20, (*shape, 1)).astype(float)
    if measure.name == "difference":
        n = RNG.poisson(20, shape) + 1.0
        return np.stack([n, n * RNG.normal(size=shape)], axis=-1)
    return RNG.poisson(5, (*shape, 3)).astype(float)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_each_merge_is_the_cheapest_of_all_pairs(measure):
    sums = sums_of(measure, (6, 5))
    tree = merge_tree([(measure.cost, sums)])
    clusters = {leaf: sums[leaf] for leaf in range(6)}
    for t, (a, b) in enumerate(tree.merges.tolist()):
        costs = {
            pair: float(
                measure.cost(clusters[pair[0]] + clusters[pair[1]])
                - measure.cost(clusters[pair[0]]) - measure.cost(clusters[pair[1]])
            )
            for pair in itertools.combinations(sorted(clusters), 2)
        }  # fmt: skip
        assert costs[a, b] == pytest.approx(min(costs.values()))
        assert tree.losses[t] == pytest.approx(costs[a, b])
        clusters[6 + t] = clusters.pop(a) + clusters.pop(b)
    assert (np.diff(tree.losses) >= 0).all()


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_losses_add_up_to_what_the_rows_explain(measure):
    sums = sums_of(measure, (7, 4))
    tree = merge_tree([(measure.cost, sums)])
    lost = measure.cost(sums.sum(axis=0, keepdims=True)).sum() - measure.cost(sums).sum()
    assert tree.losses.sum() == pytest.approx(float(lost))


def test_counts_lose_jensen_shannon_divergences():
    sums = sums_of(measure_named("lift"), (2, 5))
    n = sums[..., 0]
    p, weight = n / n.sum(axis=1, keepdims=True), n.sum(axis=1) / n.sum()
    mixed = weight @ p
    divergence = sum(w * (q * np.log(q / mixed)).sum() for w, q in zip(weight, p))
    assert merge_tree([(measure_named("lift").cost, sums)]).losses[0] == pytest.approx(n.sum() * divergence)


def test_a_cut_has_so_many_groups_and_coarser_ones_are_unions():
    tree = merge_tree([(measure_named("lift").cost, sums_of(measure_named("lift"), (9, 6)))])
    finer = tree.groups(9)
    for k in range(8, 0, -1):
        coarser = tree.groups(k)
        assert len(set(coarser.tolist())) == k
        assert len({(f, c) for f, c in zip(finer.tolist(), coarser.tolist())}) == k + 1
        finer = coarser


@pytest.mark.parametrize("leaves", [1, 2, 5, 9])
def test_top_of_a_tree_has_the_same_cuts(leaves: int) -> None:
    tree = merge_tree([(measure_named("lift").cost, sums_of(measure_named("lift"), (9, 6)))])
    top = tree.top(leaves)
    assert top.n_leaves == leaves
    np.testing.assert_array_equal(top.losses, tree.losses[9 - leaves :])
    for k in range(1, leaves + 1):
        np.testing.assert_array_equal(top.groups(k)[tree.groups(leaves)], tree.groups(k))


def test_planted_blocks_are_the_last_to_be_merged():
    rates = np.array([[30, 3, 3], [3, 30, 3], [3, 3, 30]])
    sums = RNG.poisson(np.kron(rates, np.ones((3, 3))))[..., None].astype(float)
    left, right = trees_of([BlockTable((0, 1), "lift", sums, "count")], 2)
    for tree in (left, right):
        assert tree.groups(3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_the_path_goes_from_all_leaves_to_one_block():
    table = BlockTable((0, 1), "lift", sums_of(measure_named("lift"), (5, 7)), "count")
    trees = trees_of([table], 2)
    sizes = rungs(trees, joint_path(trees, [table]))
    assert sizes[0] == (5, 7)
    assert sizes[-1] == (1, 1)
    assert len(sizes) == 5 + 7 - 1


def test_every_node_is_a_run_of_the_order():
    table = BlockTable((0, 1), "lift", sums_of(measure_named("lift"), (8, 6)), "count")
    trees = trees_of([table], 2)
    for tree, order in zip(trees, orders(trees, [table])):
        assert sorted(order.tolist()) == list(range(tree.n_leaves))
        for k in range(1, tree.n_leaves + 1):
            runs = [group for group, _ in itertools.groupby(tree.groups(k)[order].tolist())]
            assert len(runs) == k


def test_nodes_are_flipped_towards_what_they_point_at():
    tree = MergeTree(np.array([[0, 1], [2, 3]]), np.array([1.0, 2.0]), 3)
    assert leaf_order(tree, np.zeros((3, 2)), np.array([2.0, 1.0, 0.0])).tolist() == [2, 1, 0]


def test_sums_of_coarser_blocks():
    sums = sums_of(measure_named("difference"), (4, 3))
    coarse = summed(sums, np.array([0, 0, 1, 1]), np.array([0, 1, 0]))
    assert coarse[0, 0] == pytest.approx(sums[:2, [0, 2]].sum(axis=(0, 1)))
