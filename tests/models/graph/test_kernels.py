"""Compiled graph kernels move in lockstep with the plain ones."""

import numpy as np
import pytest

from gingham.datasets import planted_graph
from gingham.models.graph import kernels as graph
from gingham.models.graph import kernels_reference as graph_reference
from gingham.models.graph.kernels import BERNOULLI, QUADRATIC, block_sums


def example(seed=0, n=40, k=3):
    rng = np.random.default_rng(seed)
    adjacency = planted_graph(n, k, inside=6, outside=3, seed=seed).adjacency
    arrays = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32), adjacency.data.astype(float)
    return rng, arrays, rng.integers(0, k, n)


def visits(kernel, order, arguments):
    chosen = np.empty(len(order), np.int64)
    kernel(order, *arguments, False, chosen)
    return chosen.tolist()


def looks(kernel, order, arguments):
    """Where each node would go; whoever looks changes nothing, whatever looked before."""
    before = [np.copy(argument) for argument in arguments]
    chosen, again = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    kernel(order, *arguments, True, chosen)
    for x in range(len(order)):
        kernel(order[x : x + 1], *arguments, True, again[x : x + 1])
    for argument, kept in zip(arguments, before):
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


@pytest.mark.parametrize("complete", [True, False])
def test_hard_nodes(complete):
    rng, (indptr, others, values), start = example(1)
    slots = rng.integers(0, 2, len(others)).astype(np.int32)
    present, absent = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 3)) / 40
    order = rng.permutation(len(start))
    results = []
    for kernel in (graph, graph_reference):
        labels, sizes = start.copy(), np.bincount(start, minlength=3).astype(float)
        arguments = (indptr, others, slots, values, present, absent, complete, 0.7, 1.0, labels, sizes)
        looked = looks(kernel.hard_nodes, order, arguments)
        chosen = visits(kernel.hard_nodes, order, arguments)
        assert labels[order].tolist() == chosen
        results.append((looked, chosen, sizes.tolist()))
    assert results[0] == results[1]
    assert results[0][1] != start[order].tolist()


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("kind", [QUADRATIC, BERNOULLI])
def test_hard_sweep(kind, complete):
    rng, (indptr, others, values), start = example(2)
    if not complete:  # some of the listed pairs are zeros
        upper = {(min(i, j), max(i, j)) for i in range(40) for j in others[indptr[i] : indptr[i + 1]]}
        zero = {pair for pair in sorted(upper) if rng.random() < 0.4}
        owner = np.repeat(np.arange(40), np.diff(indptr))
        values = np.array([0.0 if (min(i, j), max(i, j)) in zero else 1.0 for i, j in zip(owner, others)])
    orders = [rng.permutation(len(start)) for _ in range(3)]
    results = []
    for kernel in (graph, graph_reference):
        labels, sizes = start.copy(), np.bincount(start, minlength=3).astype(float)
        weight = block_sums(indptr, others, values, labels, 3)
        listed = block_sums(indptr, others, np.ones_like(values), labels, 3)
        pairs = np.outer(sizes, sizes) - np.diag(sizes) if complete else listed
        arguments = (indptr, others, values, complete, kind, 3.0, 1.0, labels, weight, pairs, sizes)
        looked = looks(kernel.hard_sweep, orders[0], arguments)
        chosen = [visits(kernel.hard_sweep, order, arguments) for order in orders]
        results.append((looked, chosen, labels, weight, pairs, sizes))
    assert results[0][:2] == results[1][:2]
    assert results[0][1][0] != start[orders[0]].tolist()
    for compiled, plain in zip(results[0][2:], results[1][2:]):
        np.testing.assert_allclose(compiled, plain, atol=1e-9)


@pytest.mark.parametrize("share_of_zeros", [0.0, 0.9])
def test_degree_sweep(share_of_zeros):
    """Listed pairs may have weight 0, more of them at a node than there are clusters."""
    rng, (indptr, others, values), start = example(3)
    owner = np.repeat(np.arange(40), np.diff(indptr))
    kept = np.triu(rng.random((40, 40)) >= share_of_zeros)
    values = values * (kept | kept.T)[owner, others]
    degree = np.bincount(owner, values, minlength=40)
    orders = [rng.permutation(len(start)) for _ in range(3)]
    results = []
    for kernel in (graph, graph_reference):
        labels, sizes = start.copy(), np.bincount(start, minlength=3).astype(float)
        weight = block_sums(indptr, others, values, labels, 3)
        shares = np.bincount(labels, degree, minlength=3).astype(float)
        arguments = (indptr, others, values, degree, 1.0, labels, weight, sizes, shares)
        looked = looks(kernel.degree_sweep, orders[0], arguments)
        chosen = [visits(kernel.degree_sweep, order, arguments) for order in orders]
        results.append((looked, chosen, labels, weight, sizes, shares))
    assert results[0][:2] == results[1][:2]
    assert results[0][1][0] != start[orders[0]].tolist()
    for compiled, plain in zip(results[0][2:], results[1][2:]):
        np.testing.assert_allclose(compiled, plain, atol=1e-9)
