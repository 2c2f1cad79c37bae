"""The natural logarithm without a call, so that compiled loops over clusters run in vector registers."""

# mypy: allow-untyped-defs
from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from scipy.special import xlogy

from gingham.arrays import Floats


@njit(inline="always", error_model="numpy")
def ln(x):
    """ln x to about 1e-15 for normal x > 0; finite at 0, where 0·ln 0 = 0.

    x = 2^e·m with m in [√½, √2) and ln m = 2 artanh((m − 1)/(m + 1)). Callers need ``error_model="numpy"``:
    a division that may raise keeps a loop out of the vector registers.
    """
    bits = np.float64(x).view(np.int64) - np.int64(0x3FE6A09E667F3BCD)  # the bits of √½
    exponent = np.float64(bits >> np.int64(52))
    mantissa = np.int64((bits & np.int64(0xFFFFFFFFFFFFF)) + np.int64(0x3FE6A09E667F3BCD)).view(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17))))
    series = 1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * series)))
    return exponent * 0.6931471805599453 + 2.0 * s * series


@cache
def x_ln_x(size: int) -> Floats:
    """x ln x of the counts 0, 1, …, size − 1."""
    counts = np.arange(size, dtype=np.float64)
    return np.asarray(xlogy(counts, counts))


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def x_ln_x_of(table):
    """Equivalent to ``xlogy(table, table)`` of a table with two axes."""
    out = np.empty(table.shape)
    for row in range(table.shape[0]):
        for c in range(table.shape[1]):
            x = np.float64(table[row, c])
            out[row, c] = x * ln(x)
    return out
