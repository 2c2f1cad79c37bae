"""Tables that kernels gather rows from, and the sum of some of their rows."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gingham.arrays import Floats
from gingham.kernels.vectors import sum_rows

CACHE_LINE = 64  # bytes
RUN = 256  # tuples added up before their sum joins the total: keeps float32 sums exact to about 1e-6


def padded(assign: Floats, dtype: Any = None) -> tuple[Floats, int]:
    """The table with rows filled up with zeros to a multiple of 8 numbers, flat, and the row length.

    It begins at a multiple of CACHE_LINE bytes, so that a row touches no more lines than it must.
    """
    n, m = assign.shape
    dtype = np.dtype(assign.dtype if dtype is None else dtype)
    stride = -(-m // 8) * 8
    room = np.empty(n * stride * dtype.itemsize + CACHE_LINE, dtype=np.uint8)
    skip = -room.ctypes.data % CACHE_LINE
    table: Floats = room[skip : skip + n * stride * dtype.itemsize].view(dtype).reshape(n, stride)
    table[:, :m] = assign
    table[:, m:] = 0
    return table.reshape(-1), stride


@njit(nogil=True)  # inlined into its cached callers
def add_run(sums, at, table, stride, codes, scale, start, stop):
    """Equivalent to ``sums[at:at+stride] += scale @ table.reshape(-1, stride)[codes[start:stop]]``."""
    shift = 0
    while shift + 32 <= stride:
        sum_rows(32, sums, at + shift, table, shift, stride, codes, scale, start, stop)
        shift += 32
    if shift + 16 <= stride:
        sum_rows(16, sums, at + shift, table, shift, stride, codes, scale, start, stop)
        shift += 16
    if shift < stride:
        sum_rows(8, sums, at + shift, table, shift, stride, codes, scale, start, stop)
