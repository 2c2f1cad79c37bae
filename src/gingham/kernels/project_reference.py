"""Plain numpy: slow, obviously right, shipped. Every other backend must equal it."""

from __future__ import annotations

import numpy as np

from gingham.arrays import Floats
from gingham.kernels.project import Rows


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
