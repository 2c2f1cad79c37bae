"""Three small operations of the per-entry variational step, behind one door per backend.

An entry's joint distribution over (row cluster, column cluster) is the outer product of two factors
with a table that depends on the entry's label only, so everything about it follows from inner products
of length k: nothing of size k × k is ever formed for an entry.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError
from gingham.kernels.project import BACKENDS


class Pairs(NamedTuple):
    """Distinct (item, label) pairs, sorted by label: label l owns pairs ``indptr[l]:indptr[l + 1]``."""

    indptr: Ints  # (D + 1,) int64
    items: Ints  # (P,) int32


def inner(left: Floats, right: Floats, left_codes: Ints, right_codes: Ints, backend: str = "auto") -> Floats:
    """z[e] = Σ_c left[left_codes[e], c] · right[right_codes[e], c], shape (N,)."""
    out = np.empty(len(left_codes))
    _backend(backend).inner(
        np.ascontiguousarray(left), np.ascontiguousarray(right), left_codes, right_codes, out
    )  # fmt: skip
    return out


def contract(tables: Floats, pairs: Pairs, factor: Floats, backend: str = "auto") -> Floats:
    """C[p, i] = Σ_j tables[label_p, i, j] · factor[item_p, j], shape (P, k1)."""
    out = np.empty((len(pairs.items), tables.shape[1]))
    _backend(backend).contract(np.ascontiguousarray(tables), pairs, np.ascontiguousarray(factor), out)
    return out


def expand(tables: Floats, pairs: Pairs, factor: Floats, sums: Floats, backend: str = "auto") -> tuple[Floats, Floats]:
    """The way back of `contract`: what the sums (P, k1) of the pairs say of columns and of cells.

    Returns
    -------
    back : ndarray of shape (P, k2)
        Σ_i tables[label_p, i, j] · sums[p, i].
    cells : ndarray of shape (D, k1, k2)
        tables[l, i, j] · Σ_{p of label l} sums[p, i] · factor[item_p, j].
    """
    back = np.empty((len(pairs.items), tables.shape[2]))
    cells = np.empty(tables.shape)
    _backend(backend).expand(
        np.ascontiguousarray(tables), pairs, np.ascontiguousarray(factor), np.ascontiguousarray(sums), back, cells
    )
    return back, cells


def _backend(name: str) -> Any:
    if name not in BACKENDS:
        raise GinghamError(f"backend={name!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    # Backends of other machines take `project`; these small steps stay with the compiled loops.
    return import_module(f"{__name__}_{'reference' if name == 'reference' else 'compiled'}")
