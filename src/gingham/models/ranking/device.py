"""The three large steps (Gram table, inverse, scores) on the processor or, where there is one, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
from numba import njit
from scipy import sparse
from scipy.linalg import lapack

from gingham.arrays import AnyArray, Floats
from gingham.engine.place import on_torch
from gingham.engine.threads import one_blas_thread
from gingham.errors import GinghamError
from gingham.models.ranking import kernels

BLOCK = 8192  # users whose baskets are dense on the device at a time


def _device() -> str:
    return "cuda" if import_module("torch").cuda.is_available() else "cpu"


def gram(taken: sparse.csr_array, weights: Floats) -> Floats:
    """Equivalent to ``(taken.T @ diags(weights) @ taken).toarray()``, float32, with torch."""
    torch = import_module("torch")
    m = taken.shape[1]
    total = torch.zeros((m, m), device=_device())
    for a in range(0, taken.shape[0], BLOCK):
        rows = torch.from_numpy(_scaled(taken[a : a + BLOCK], np.sqrt(weights[a : a + BLOCK]))).to(total.device)
        total.addmm_(rows.T, rows)
    result: Floats = total.cpu().numpy()
    return result


def _scaled(rows: sparse.csr_array, factors: Floats) -> Floats:
    dense: Floats = rows.toarray()
    dense *= factors[:, None].astype(np.float32)
    return dense


def inverse(system: Floats, backend: str) -> Floats:
    """The inverse of a symmetric positive definite float32 table, by Cholesky; the table is used up."""
    if on_torch(backend):
        torch = import_module("torch")
        factor, failed = torch.linalg.cholesky_ex(torch.from_numpy(system).to(_device()))
        if not int(failed):
            result: Floats = torch.cholesky_inverse(factor).cpu().numpy()
            return result
    else:
        with one_blas_thread():
            lower, failed = lapack.spotrf(system.T, lower=1, overwrite_a=1)
            if not failed:
                lower, failed = lapack.spotri(lower, lower=1, overwrite_c=1)
        if not failed:
            _mirror(lower.T)
            return np.ascontiguousarray(lower.T)
    raise GinghamError("The ridge is too small for this table: some items are nearly identical.")


@njit(cache=True, nogil=True)
def _mirror(table):  # type: ignore[no-untyped-def]
    """Copy the upper half of a square table to the lower, in tiles that fit the cache."""
    m = len(table)
    for a in range(0, m, 64):
        for b in range(0, a + 1, 64):
            for i in range(a, min(a + 64, m)):
                for j in range(b, min(b + 64, i)):
                    table[i, j] = table[j, i]


def product_with(table: Floats, backend: str) -> Callable[[sparse.csr_array], Floats]:
    """A function that multiplies sparse baskets (n, n_items) by the table; a GPU is sent the table once."""
    if not on_torch(backend):
        return lambda baskets: kernels.times(baskets, table)
    torch = import_module("torch")
    there = torch.from_numpy(table).to(_device())

    def product(baskets: sparse.csr_array) -> AnyArray:
        return (torch.from_numpy(baskets.toarray()).to(there.device) @ there).cpu().numpy()

    return product
