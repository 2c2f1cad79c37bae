"""Plain numpy counterparts of `kernels`: slow, obviously right, shipped; the compiled kernels move in lockstep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax, xlogy

from gingham.arrays import Floats, Ints
from gingham.models.graph.kernels import QUADRATIC


def soft_nodes(
    order: Ints, indptr: Ints, others: Ints, slots: Ints, values: Floats, present: Floats, absent: Floats,
    complete: bool, beta: float, assign: Floats, mass: Floats,
) -> None:  # fmt: skip
    """One softmax per node, sums from scratch; the masses are those of the moment."""
    for x in order:
        cost = np.zeros(assign.shape[1])
        for e in range(indptr[x], indptr[x + 1]):
            cost += values[e] * (present[slots[e]] @ assign[others[e]])
        if complete:
            cost += absent @ (mass - assign[x])
        with np.errstate(divide="ignore"):
            assign[x] = softmax(np.log(mass) - beta * cost)
        mass[:] = assign.sum(axis=0)


def hard_nodes(
    order: Ints, indptr: Ints, others: Ints, slots: Ints, values: Floats, present: Floats, absent: Floats,
    complete: bool, beta: float, price: float, labels: Ints, sizes: Floats, evaluate_only: bool, chosen: Ints,
) -> None:  # fmt: skip
    """The cheapest cluster for each node at fixed answers."""
    for step, x in enumerate(order):
        here = int(labels[x])
        rest = sizes - np.eye(len(sizes))[here]
        cost = absent @ rest if complete else np.zeros(len(sizes))
        for e in range(indptr[x], indptr[x + 1]):
            cost = cost + values[e] * present[slots[e]][:, labels[others[e]]]
        cost = beta * cost - price * (xlogy(rest + 1.0, rest + 1.0) - xlogy(rest, rest))
        best = int(np.argmin(cost))
        chosen[step] = best if cost[best] < cost[here] - 1e-9 else here
        if not evaluate_only:
            labels[x] = chosen[step]
            sizes[:] = rest + np.eye(len(sizes))[chosen[step]]


def hard_sweep(
    order: Ints, indptr: Ints, others: Ints, values: Floats, complete: bool, kind: int, beta: float, price: float,
    labels: Ints, weight: Floats, pairs: Floats, sizes: Floats, evaluate_only: bool, chosen: Ints,
) -> None:  # fmt: skip
    """Try every cluster for every node and keep the highest objective, each time from scratch."""
    n, k = len(labels), len(sizes)
    listed, count = _dense(indptr, others, values), _dense(indptr, others, np.ones(len(others)))
    if complete:
        count = 1.0 - np.eye(n)

    def tables(labels: Ints) -> tuple[Floats, Floats, Floats]:
        q = np.eye(k)[labels]
        return q.T @ listed @ q, q.T @ count @ q, q.sum(axis=0)

    def objective(labels: Ints) -> float:
        weight, pairs, sizes = tables(labels)
        return float(beta * block_fit(weight, pairs, kind).sum() / 2.0 + price * xlogy(sizes, sizes).sum())

    _best_moves(order, labels, k, objective, evaluate_only, chosen)
    if not evaluate_only:
        weight[:], pairs[:], sizes[:] = tables(labels)


def degree_sweep(
    order: Ints, indptr: Ints, others: Ints, values: Floats, degree: Floats, price: float, labels: Ints,
    weight: Floats, sizes: Floats, shares: Floats, evaluate_only: bool, chosen: Ints,
) -> None:  # fmt: skip
    """The same with the objective of the degree-corrected model."""
    k = len(sizes)
    listed = _dense(indptr, others, values)

    def tables(labels: Ints) -> tuple[Floats, Floats, Floats]:
        q = np.eye(k)[labels]
        return q.T @ listed @ q, q.sum(axis=0), q.T @ degree

    def objective(labels: Ints) -> float:
        weight, sizes, shares = tables(labels)
        return float(
            xlogy(weight, weight).sum() / 2.0 - xlogy(shares, shares).sum() + price * xlogy(sizes, sizes).sum()
        )

    _best_moves(order, labels, k, objective, evaluate_only, chosen)
    if not evaluate_only:
        weight[:], sizes[:], shares[:] = tables(labels)


def block_fit(weight: Floats, pairs: Floats, kind: int) -> Floats:
    """Minus the least loss of each block (constants left out), as the sweep counts it; any shape."""
    if kind == QUADRATIC:
        return np.divide(weight**2, pairs, out=np.zeros_like(weight), where=pairs > 1e-9)
    rest = np.maximum(pairs - weight, 0.0)
    return xlogy(weight, weight) + xlogy(rest, rest) - xlogy(pairs, pairs)


def _dense(indptr: Ints, others: Ints, values: Floats) -> Floats:
    n = len(indptr) - 1
    matrix = np.zeros((n, n))
    np.add.at(matrix, (np.repeat(np.arange(n), np.diff(indptr)), others), values)
    return matrix


def _best_moves(
    order: Ints, labels: Ints, k: int, objective: Callable[[Ints], float], evaluate_only: bool, chosen: Ints
) -> None:
    for step, x in enumerate(order):
        here = int(labels[x])
        totals = np.empty(k)
        for c in range(k):
            tried = labels.copy()
            tried[x] = c
            totals[c] = objective(tried)
        best = int(np.argmax(totals))
        chosen[step] = best if totals[best] > totals[here] + 1e-9 else here
        if not evaluate_only:
            labels[x] = chosen[step]
