"""numba loops of the per-entry step: one thread owns an entry or a label, so threads change no bits."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.kernels.threads import in_blocks
from gingham.models.bayesian.entry_kernels import Pairs


def inner(left: Floats, right: Floats, left_codes: Ints, right_codes: Ints, out: Floats) -> None:
    def run(a: int, b: int) -> None:
        _inner(left, right, left_codes, right_codes, a, b, out)

    in_blocks(run, np.arange(len(out) + 1), 0, len(out), out.size * left.shape[1])


def contract(tables: Floats, pairs: Pairs, factor: Floats, out: Floats) -> None:
    def run(a: int, b: int) -> None:
        _contract(tables, pairs.indptr, pairs.items, factor, a, b, out)

    in_blocks(run, pairs.indptr, 0, len(tables), len(pairs.items) * tables[0].size if len(tables) else 0)


def expand(tables: Floats, pairs: Pairs, factor: Floats, sums: Floats, back: Floats, cells: Floats) -> None:
    def run(a: int, b: int) -> None:
        _expand(tables, pairs.indptr, pairs.items, factor, sums, a, b, back, cells)

    in_blocks(run, pairs.indptr, 0, len(tables), 2 * len(pairs.items) * tables[0].size if len(tables) else 0)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, boundscheck=False)
def _inner(left, right, left_codes, right_codes, start, stop, out):
    """Equivalent to ``out[:] = np.einsum("ec,ec->e", left[left_codes], right[right_codes])``."""
    m = left.shape[1]
    for e in range(start, stop):
        a, b = left[left_codes[e]], right[right_codes[e]]
        z = 0.0
        for c in range(m):
            z += a[c] * b[c]
        out[e] = z


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, boundscheck=False)
def _contract(tables, indptr, items, factor, start, stop, out):
    """Equivalent to ``out[:] = np.einsum("pij,pj->pi", tables[labels], factor[items])``."""
    k1, k2 = tables.shape[1], tables.shape[2]
    for label in range(start, stop):
        table = tables[label]
        for p in range(indptr[label], indptr[label + 1]):
            b = factor[items[p]]
            for i in range(k1):
                z = 0.0
                for j in range(k2):
                    z += table[i, j] * b[j]
                out[p, i] = z


@njit(cache=True, nogil=True, fastmath={"contract"}, boundscheck=False)
def _expand(tables, indptr, items, factor, sums, start, stop, back, cells):
    """Equivalent to ``back[:] = np.einsum("pij,pi->pj", tables[labels], sums)`` and
    ``np.add.at(cells, labels, np.einsum("pi,pj->pij", sums, factor[items]))`` with ``cells *= tables``.
    """
    k1, k2 = tables.shape[1], tables.shape[2]
    for label in range(start, stop):
        table, cell = tables[label], cells[label]
        cell[:] = 0.0
        for p in range(indptr[label], indptr[label + 1]):
            b, t = factor[items[p]], back[p]
            t[:] = 0.0
            for i in range(k1):
                s = sums[p, i]
                for j in range(k2):
                    t[j] += s * table[i, j]
                    cell[i, j] += s * b[j]
        for i in range(k1):
            for j in range(k2):
                cell[i, j] *= table[i, j]
