"""From costs to memberships: the exponential half of every soft step."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, boundscheck=False)
def gibbs_rows(log_mass, cost, out, sums):
    """Fill ``out`` with q(c|x) ∝ exp(log_mass[c] − cost[x, c]), add its column sums to ``sums``.

    Returns Σ q ln q. Equivalent to ``out[:] = softmax(log_mass − cost, axis=1); sums += out.sum(axis=0)``.
    """
    n, m = cost.shape
    total = 0.0
    for x in range(n):
        top = -np.inf
        for c in range(m):
            top = max(top, log_mass[c] - cost[x, c])
        norm = 0.0
        for c in range(m):
            out[x, c] = np.exp(log_mass[c] - cost[x, c] - top)
            norm += out[x, c]
        log_norm = np.log(norm)
        for c in range(m):
            q = out[x, c] / norm
            out[x, c] = q
            sums[c] += q
            if q > 0.0:
                total += q * (log_mass[c] - cost[x, c] - top - log_norm)
    return total
