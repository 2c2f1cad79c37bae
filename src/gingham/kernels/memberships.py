"""From costs to memberships: the exponential half of every soft step."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from gingham.arrays import Floats
from gingham.kernels.compile import njit


def gibbs_rows(log_mass: Floats, cost: Floats, out: Floats, sums: Floats) -> float:
    """Fill ``out`` with q(c|x) ∝ exp(log_mass[c] − cost[x, c]), add its column sums to ``sums``; uses up ``cost``.

    Returns Σ q ln q. Equivalent to ``out[:] = softmax(log_mass − cost, axis=1); sums += out.sum(axis=0)``.
    """
    _exponents(log_mass, cost)
    np.exp(cost, out=out)  # numpy's runs in vector registers, the compiler's does not
    return float(_normalise(cost, out, sums))


@njit(cache=True, nogil=True, boundscheck=False)
def _exponents(log_mass, cost):
    """Replace costs by log_mass − cost less the row's largest, so that no exponential overflows."""
    n, m = cost.shape
    for x in range(n):
        top = -np.inf
        for c in range(m):
            cost[x, c] = log_mass[c] - cost[x, c]
            top = max(top, cost[x, c])
        for c in range(m):
            cost[x, c] -= top


@njit(cache=True, nogil=True, boundscheck=False)
def _normalise(exponents, out, sums):
    """Divide rows of exponentials by their sums, add columns up; Σ q ln q, where ln q = exponent − ln norm."""
    n, m = out.shape
    total = 0.0
    for x in range(n):
        norm = 0.0
        for c in range(m):
            norm += out[x, c]
        log_norm = np.log(norm)
        for c in range(m):
            q = out[x, c] / norm
            out[x, c] = q
            sums[c] += q
            if q > 0.0:
                total += q * (exponents[x, c] - log_norm)
    return total
