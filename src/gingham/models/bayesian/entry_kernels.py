"""Three small operations of the per-entry variational step.

An entry's joint distribution over (row cluster, column cluster) is the outer product of two factors
with a table that depends on the entry's label only, so everything about it follows from inner products
of length k: nothing of size k × k is ever formed for an entry. One thread owns an entry or a label, so
threads change no bits.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.engine.threads import in_blocks


class LabelledItems(NamedTuple):
    """Distinct (item, label) pairs, sorted by label: label l owns pairs ``indptr[l]:indptr[l + 1]``."""

    indptr: Ints  # (D + 1,) int64
    items: Ints  # (P,) int32

    @property
    def labels(self) -> Ints:
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


def inner(left: Floats, right: Floats, left_codes: Ints, right_codes: Ints) -> Floats:
    """z[e] = Σ_c left[left_codes[e], c] · right[right_codes[e], c], shape (N,)."""
    out = np.empty(len(left_codes))
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    run = partial(_inner, left, right, left_codes, right_codes, out)
    in_blocks(run, np.arange(len(out) + 1), 0, len(out), out.size * left.shape[1])
    return out


def contract(tables: Floats, pairs: LabelledItems, factor: Floats) -> Floats:
    """C[p, i] = Σ_j tables[label_p, i, j] · factor[item_p, j], shape (P, k1)."""
    out = np.empty((len(pairs.items), tables.shape[1]))
    run = partial(_contract, np.ascontiguousarray(tables), *pairs, np.ascontiguousarray(factor), out)
    in_blocks(run, pairs.indptr, 0, len(tables), len(pairs.items) * tables[0].size if len(tables) else 0)
    return out


def expand(tables: Floats, pairs: LabelledItems, factor: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """The way back of `contract`: what the sums (P, k1) of the pairs say of columns and of cells.

    Returns
    -------
    back : ndarray of shape (P, k2)
        Σ_i tables[label_p, i, j] · sums[p, i].
    cells : ndarray of shape (D, k1, k2)
        tables[l, i, j] · Σ_{p of label l} sums[p, i] · factor[item_p, j].
    """
    back, cells = np.empty((len(pairs.items), tables.shape[2])), np.empty(tables.shape)
    arrays = (np.ascontiguousarray(array) for array in (factor, sums))
    run = partial(_expand, np.ascontiguousarray(tables), *pairs, *arrays, back, cells)
    in_blocks(run, pairs.indptr, 0, len(tables), 2 * len(pairs.items) * tables[0].size if len(tables) else 0)
    return back, cells


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, boundscheck=False)
def _inner(left, right, left_codes, right_codes, out, start, stop):
    """Equivalent to ``out[:] = np.einsum("ec,ec->e", left[left_codes], right[right_codes])``."""
    m = left.shape[1]
    for e in range(start, stop):
        a, b = left[left_codes[e]], right[right_codes[e]]
        z = 0.0
        for c in range(m):
            z += a[c] * b[c]
        out[e] = z


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, boundscheck=False)
def _contract(tables, indptr, items, factor, out, start, stop):
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
def _expand(tables, indptr, items, factor, sums, back, cells, start, stop):
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
