"""Plain numpy: slow, obviously right, shipped. Every other backend must equal it."""

from __future__ import annotations

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.kernels.project import Rows
from gingham.models.bayesian.entry_kernels import Pairs


def project(rows: Rows, assigns: tuple[Floats, ...], start: int, stop: int, out: Floats) -> None:
    """Add each tuple's share to its item's row of ``out``, one tuple at a time."""
    out[...] = 0
    for x in range(start, stop):
        for e in range(rows.indptr[x], rows.indptr[x + 1]):
            product = np.ones(1)
            for j, q in enumerate(assigns):
                product = np.outer(product, q[rows.others[j, e]]).ravel()
            weight = 1.0 if rows.weights is None else rows.weights[e]
            if rows.labels is not None:
                out[x - start, rows.labels[e]] += weight * product
            elif rows.features is not None:
                out[x - start] += weight * np.outer(rows.features[e], product)


def inner(left: Floats, right: Floats, left_codes: Ints, right_codes: Ints, out: Floats) -> None:
    out[:] = np.einsum("ec,ec->e", left[left_codes], right[right_codes])


def contract(tables: Floats, pairs: Pairs, factor: Floats, out: Floats) -> None:
    out[:] = np.einsum("pij,pj->pi", tables[_labels(pairs)], factor[pairs.items])


def expand(tables: Floats, pairs: Pairs, factor: Floats, sums: Floats, back: Floats, cells: Floats) -> None:
    labels = _labels(pairs)
    back[:] = np.einsum("pij,pi->pj", tables[labels], sums)
    cells[:] = 0.0
    np.add.at(cells, labels, np.einsum("pi,pj->pij", sums, factor[pairs.items]))
    cells *= tables


def _labels(pairs: Pairs) -> Ints:
    return np.repeat(np.arange(len(pairs.indptr) - 1), np.diff(pairs.indptr))
