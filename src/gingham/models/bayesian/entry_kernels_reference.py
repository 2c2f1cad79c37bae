"""The per-entry step in plain numpy: slow, obviously right. The compiled loops must equal it."""

from __future__ import annotations

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.models.bayesian.entry_kernels import Pairs


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
