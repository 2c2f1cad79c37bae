"""Compiled graph kernels move in lockstep with the plain ones."""

import copy

import graph_reference
import numpy as np
import pytest

from gingham.cells import Quadratic
from gingham.data.graphs import from_graph
from gingham.datasets import planted_graph
from gingham.models.graph import kernels as graph
from gingham.models.graph.fit import graph_problem, search_problem
from gingham.models.graph.kernels import BERNOULLI, DEGREES, EXACT, LEAST, QUADRATIC, RENEWED, block_sums
from gingham.models.graph.partition import PartitionSearch
from gingham.models.graph.solvers import BlockMoves, WeightedPairs


def example(seed=0, n=40, k=3):
    rng = np.random.default_rng(100 + seed)  # with the seed of the graph, the labels would be the planted ones
    adjacency = planted_graph(n, k, inside=6, outside=3, seed=seed).adjacency
    arrays = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32), adjacency.data.astype(float)
    return rng, arrays, rng.integers(0, k, n)


def visits(kernel, order, arguments):
    chosen = np.empty(len(order), np.int64)
    kernel(order, *arguments, False, chosen)
    return chosen.tolist()


def flat(arguments):
    return [part for argument in arguments for part in (argument if isinstance(argument, tuple) else (argument,))]


def looks(kernel, order, arguments):
    """Where each node would go; whoever looks changes nothing, whatever looked before."""
    before = copy.deepcopy(arguments)
    chosen, again = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    kernel(order, *arguments, True, chosen)
    for x in range(len(order)):
        kernel(order[x : x + 1], *arguments, True, again[x : x + 1])
    for argument, kept in zip(flat(arguments), flat(before)):
        assert np.array_equal(argument, kept)
    assert np.array_equal(chosen, again)
    return chosen.tolist()


@pytest.mark.parametrize("complete", [True, False])
def test_soft_nodes(complete):
    rng, (indptr, others, values), _ = example()
    n, k = len(indptr) - 1, 3
    slots = rng.integers(0, 2, len(others)).astype(np.int32)
    present, absent = rng.normal(size=(2, k, k)), rng.normal(size=(k, k)) / n
    order = rng.permutation(n)
    results = []
    for kernel in (graph, graph_reference):
        assign = np.random.default_rng(5).dirichlet(np.ones(k), n)
        mass = assign.sum(axis=0)
        kernel.soft_nodes(order, indptr, others, slots, values, present, absent, complete, 0.7, assign, mass)
        results.append((assign, mass))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-10)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-9)


ANYWHERE = np.empty(0, np.int64)
PARTNERS = {"anywhere": ANYWHERE, "in pairs": np.array([1, 0, 3, 2, 5, 4, 6])}  # the last of seven has none


@pytest.mark.parametrize("partner", PARTNERS.values(), ids=PARTNERS)
@pytest.mark.parametrize("complete", [True, False])
def test_hard_nodes(complete, partner):
    rng, (indptr, others, values), start = example(1, k=7)
    slots = rng.integers(0, 2, len(others)).astype(np.int32)
    present, absent = rng.normal(size=(2, 7, 7)), rng.normal(size=(7, 7)) / 40
    order = rng.permutation(len(start))
    results = []
    for kernel in (graph, graph_reference):
        labels, sizes = start.copy(), np.bincount(start, minlength=7).astype(float)
        arguments = (indptr, others, slots, values, present, absent, complete, 0.7, 1.0, labels, sizes, partner)
        looked = looks(kernel.hard_nodes, order, arguments)
        chosen = visits(kernel.hard_nodes, order, arguments)
        assert labels[order].tolist() == chosen
        results.append((looked, chosen, sizes.tolist()))
    assert results[0] == results[1]
    assert results[0][1] != start[order].tolist()
    if len(partner):
        assert all(new in (old, partner[old]) for old, new in zip(start[order], results[0][1]))


def some_zeros(rng, indptr, others):
    """Weights 0 and 1 of listed pairs, the same from both ends."""
    n = len(indptr) - 1
    ones = np.triu(rng.random((n, n)) < 0.6)
    return (ones | ones.T)[np.repeat(np.arange(n), np.diff(indptr)), others].astype(float)


def sweeps(arrays, start, rng, kind, complete, beta, price, partner):
    """The same sweeps by the compiled kernel and the plain one; returns where the first led every node."""
    k, orders, results = 7, [rng.permutation(len(start)) for _ in range(3)], []
    for kernel in (graph, graph_reference):
        labels = start.copy()
        tables = BlockMoves(WeightedPairs(*arrays), kind, complete, beta).tables(labels, k)
        kernel.estimates(kind, complete, tables)
        arguments = (*arrays, kind, complete, beta, price, labels, tables, partner)
        looked = looks(kernel.hard_sweep, orders[0], arguments)
        chosen = [visits(kernel.hard_sweep, order, arguments) for order in orders]
        results.append((looked, chosen, labels, *tables))
    assert results[0][:2] == results[1][:2]
    for compiled, plain in zip(results[0][2:], results[1][2:]):
        np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-6)
    return np.count_nonzero(np.array(chosen[0]) != start[orders[0]])


@pytest.mark.parametrize("partner", PARTNERS.values(), ids=PARTNERS)
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("kind", [QUADRATIC, BERNOULLI])
def test_hard_sweep(kind, complete, partner):
    """More clusters than are tried exactly; estimates are renewed on the way."""
    rng, (indptr, others, values), start = example(2, n=100, k=7)
    if not complete:
        values = some_zeros(rng, indptr, others)
    moves = sweeps((indptr, others, values), start, rng, kind, complete, 30.0, 0.1, partner)
    assert moves > (RENEWED * 7 if partner is ANYWHERE else 7)


@pytest.mark.parametrize("partner", PARTNERS.values(), ids=PARTNERS)
def test_hard_sweep_by_the_exact_code(partner):
    rng, (indptr, others, values), start = example(2, n=100, k=7)
    moves = sweeps((indptr, others, np.ones_like(values)), start, rng, EXACT, True, 1.0, 1.0, partner)
    assert moves > (RENEWED * 7 if partner is ANYWHERE else 7)


@pytest.mark.parametrize("partner", PARTNERS.values(), ids=PARTNERS)
@pytest.mark.parametrize("share_of_zeros", [0.0, 0.9])
def test_hard_sweep_with_degrees(share_of_zeros, partner):
    """Listed pairs may have weight 0, more of them at a node than there are clusters."""
    rng, (indptr, others, values), start = example(3, k=7)
    kept = np.triu(rng.random((40, 40)) >= share_of_zeros)
    values = values * (kept | kept.T)[np.repeat(np.arange(40), np.diff(indptr)), others]
    assert sweeps((indptr, others, values), start, rng, DEGREES, True, 1.0, 1.0, partner) > 0


def test_exact_sweeps_end_where_no_single_move_shortens_the_code():
    """With so few clusters all are looked at; every step and the end are weighed by `PartitionSearch`."""
    problem = search_problem(graph_problem(from_graph(planted_graph(60, 3, seed=1).adjacency), Quadratic(), 1.0))
    search, rng = PartitionSearch.of(problem), np.random.default_rng(0)
    assert search.exact is not None
    labels, lengths = rng.integers(0, 4, 60), []
    for _ in range(12):
        labels = search.exact.improve(labels, 4, rng, n_sweeps=1)
        lengths.append(search.partition(labels).cost)
    assert np.all(np.diff(lengths) <= 1e-6)
    for x in range(60):
        for c in np.unique(labels):
            moved = np.where(np.arange(60) == x, c, labels)
            assert search.partition(moved).cost >= lengths[-1] - LEAST - 1e-6


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("kind", [QUADRATIC, BERNOULLI])
def test_sweeps_end_where_no_single_move_helps(kind, complete):
    """With so few clusters all are looked at: the end is a local optimum of the objective, by brute force."""
    rng, (indptr, others, values), start = example(4, k=4)
    if not complete:
        values = some_zeros(rng, indptr, others)
    labels, moves = start.copy(), BlockMoves(WeightedPairs(indptr, others, values), kind, complete, 3.0)

    def objective(labels):
        weight, pairs, sizes = moves.tables(labels, 4)[:3]
        pairs = np.outer(sizes, sizes) - np.diag(sizes) if complete else pairs
        fits = graph_reference.block_fit(weight, pairs, kind).sum() / 2
        return 3.0 * fits + (sizes * np.log(np.maximum(sizes, 1))).sum()

    heights = [objective(labels)]
    for _ in range(20):
        labels = moves.improve(labels, 4, rng, n_sweeps=1)
        heights.append(objective(labels))
    assert np.all(np.diff(heights) >= -1e-9)
    for x in range(len(labels)):
        for c in range(4):
            moved = labels.copy()
            moved[x] = c
            assert objective(moved) <= heights[-1] + 1e-6


def test_block_sums():
    _, (indptr, others, values), labels = example(5, k=4)
    expected = np.zeros((4, 4))
    np.add.at(expected, (labels[np.repeat(np.arange(40), np.diff(indptr))], labels[others]), values)
    np.testing.assert_array_equal(block_sums(indptr, others, values, labels, 4), expected)


def test_around():
    _, (indptr, others, _), _ = example(7)
    for nodes in ([], [3], [5, 0, 17]):
        near = [np.array(nodes, np.int64), *(others[indptr[x] : indptr[x + 1]] for x in nodes)]
        found = graph.around(np.array(nodes, np.int64), indptr, others)
        np.testing.assert_array_equal(found, np.unique(np.concatenate(near)))


def test_uneven_halves():
    rng, (indptr, others, values), labels = example(6, n=60, k=4)
    values = values * rng.random((60, 60))[np.minimum(others, 59), 0]
    chance = rng.random((5, 5))  # the fifth cluster is empty
    compiled = graph.uneven_halves(indptr, others, values, labels, chance)
    np.testing.assert_array_equal(compiled, graph_reference.uneven_halves(indptr, others, values, labels, chance))
    assert 0 < compiled.sum() < 60
