"""Tables that kernels gather rows from, and the sum of some of their rows."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gingham.arrays import Floats
from gingham.kernels.row_sum_simd import sum_rows
from gingham.kernels.threads import available_threads, spread

CACHE_LINE = 64  # bytes
COPY_BYTES = 2**19  # fewer are copied before a second thread has started
RUN = 256  # tuples added up before their sum joins the total: keeps float32 sums exact to about 1e-6


def aligned(shape: tuple[int, int], dtype: Any) -> Floats:
    """An uninitialised table that begins at a cache line, so that a row touches no more lines than it must."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    room = np.empty(size + CACHE_LINE, dtype=np.uint8)
    skip = -room.ctypes.data % CACHE_LINE
    table: Floats = room[skip : skip + size].view(dtype).reshape(shape)
    return table


def padded(assign: Floats, dtype: Any = None) -> tuple[Floats, int]:
    """The table, aligned, with rows filled up with zeros to a multiple of 8 numbers, flat, and the row length.

    A table that is like that already is not copied.
    """
    n, m = assign.shape
    dtype = np.dtype(assign.dtype if dtype is None else dtype)
    stride = -(-m // 8) * 8
    if m == stride and assign.dtype == dtype and assign.flags.c_contiguous and assign.ctypes.data % CACHE_LINE == 0:
        return assign.reshape(-1), stride
    table = aligned((n, stride), dtype)

    def copy(start: int, stop: int) -> None:
        table[start:stop, :m] = assign[start:stop]
        table[start:stop, m:] = 0

    n_threads = available_threads() if table.nbytes > COPY_BYTES else 1
    spread(copy, np.linspace(0, n, n_threads + 1).astype(np.int64), n_threads)
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
