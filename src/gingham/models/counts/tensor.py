"""Counts of more than two sides: which items occurred together, and how often."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from gingham.data.adapt import check_counts
from gingham.data.sample import need_unmasked

Counts = sparse.csr_array | sparse.coo_array  # two sides are a matrix; more are a tensor
CountsT = TypeVar("CountsT", sparse.csr_array, sparse.coo_array)


def count_tensor(X: Any, model: str) -> sparse.coo_array:
    """Counts of more than two sides from a dense or a sparse array, in the order of their cells, without stored zeros.

    Entries that are no counts are refused, and the message names their cell.
    """
    need_unmasked(X, "X")
    if hasattr(X, "coords"):
        coords, data = tuple(np.asarray(code) for code in X.coords), np.asarray(X.data, dtype=np.float64)
    else:
        X = np.asarray(X, dtype=np.float64)
        coords, data = np.nonzero(X), X[np.nonzero(X)]
    check_counts(data, lambda at: f"cell {tuple(int(code[at]) for code in coords)}", model)
    cells, inverse = np.unique(np.ravel_multi_index(coords, X.shape), return_inverse=True)
    total = np.bincount(inverse.ravel(), data, minlength=len(cells))
    counts = sparse.coo_array((total, np.unravel_index(cells, X.shape)), shape=X.shape)
    counts.eliminate_zeros()
    return counts


def beside(counts: sparse.coo_array, side: int) -> sparse.csr_array:
    """How often each item of a side occurred with each item of every other side, those next to one another."""
    others = [
        sparse.coo_array((counts.data, (counts.coords[side], code)), shape=(counts.shape[side], n))
        for j, (code, n) in enumerate(zip(counts.coords, counts.shape))
        if j != side
    ]
    return sparse.csr_array(sparse.hstack(others))


def side_names(d: int) -> tuple[str, ...]:
    """What sides are called where nobody has named them."""
    return ("row", "column") if d == 2 else tuple(f"side {at + 1}" for at in range(d))
