"""numba: one node after another on a graph, softly here, by hard moves in `graph_moves`; sums over blocks.

`graph_reference` is the same in plain numpy.

Entries are grouped by node (compressed rows): entry e of node x says that x and ``others[e]`` form a pair
of kind ``slots[e]`` with value ``values[e]``. An undirected pair is an entry of both its nodes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.models.graph.kernels_moves import BERNOULLI, QUADRATIC, cost_in, degree_sweep, hard_nodes, hard_sweep

__all__ = [
    "BERNOULLI",
    "QUADRATIC",
    "block_fit",
    "block_sums",
    "degree_sweep",
    "hard_nodes",
    "hard_sweep",
    "soft_nodes",
]


@njit(cache=True, boundscheck=False)
def soft_nodes(order, indptr, others, slots, values, present, absent, complete, beta, assign, mass):  # type: ignore[no-untyped-def]
    """q(c|x) ∝ mass(c) exp(−β cost(x, c)) for one node after another, ``assign`` and ``mass`` updated in place.

    cost(x, c) = Σ_e values_e Σ_b q(b|others_e) present[slots_e, c, b] + Σ_b (mass_b − q(b|x)) absent[c, b],
    the second sum when ``complete``. Equivalent to ``graph_reference.soft_nodes``.
    """
    n_slots, k = present.shape[0], present.shape[1]
    seen = np.zeros((n_slots, k))
    score, rest = np.zeros(k), np.zeros(k)
    for x in order:
        seen[:] = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            row = seen[slots[e]]
            q = assign[others[e]]
            v = values[e]
            for b in range(k):
                row[b] += v * q[b]
        for b in range(k):
            rest[b] = mass[b] - assign[x, b]
        top = -np.inf
        for c in range(k):
            cost = cost_in(c, seen, present, rest, absent, complete)
            score[c] = math.log(mass[c]) - beta * cost if mass[c] > 0.0 else -np.inf
            top = max(top, score[c])
        total = 0.0
        for c in range(k):
            score[c] = math.exp(score[c] - top)
            total += score[c]
        for c in range(k):
            q_new = score[c] / total
            mass[c] = max(mass[c] + q_new - assign[x, c], 0.0)
            assign[x, c] = q_new


def block_fit(weight: Floats, pairs: Floats, kind: int) -> Floats:
    """Minus the least loss of each block (constants left out), as the sweep counts it; any shape."""
    if kind == QUADRATIC:
        return np.divide(weight**2, pairs, out=np.zeros_like(weight), where=pairs > 1e-9)
    rest = np.maximum(pairs - weight, 0.0)
    fit: Floats = xlogy(weight, weight) + xlogy(rest, rest) - xlogy(pairs, pairs)
    return fit


def block_sums(indptr: Ints, others: Ints, values: Floats, labels: Ints, k: int) -> Floats:
    """Sums of values over ordered pairs of nodes in each pair of clusters, shape (k, k)."""
    at = np.repeat(labels, np.diff(indptr)).astype(np.int64) * k + labels[others]
    return np.bincount(at, values, minlength=k * k).reshape(k, k).astype(np.float64)
