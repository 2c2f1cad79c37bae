"""The layout kernels work on, and the door that picks a backend."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError

BACKENDS = ("auto", "compiled", "reference", "torch")
_MODULES = {"auto": "compiled", "torch": "accelerated"}


class Rows(NamedTuple):
    """Weighted tuples grouped by the items of one mode (compressed rows).

    Row x holds tuples ``indptr[x]:indptr[x + 1]``. Features are either one-hot (``labels`` is the
    index, sorted within a row) or dense (``features``).
    """

    indptr: Ints  # (n + 1,) int64
    others: Ints  # (d - 1, N) int32: codes of the other modes, in order
    labels: Ints | None  # (N,) int32
    features: Floats | None  # (N, K) float64
    weights: Floats | None  # (N,) float64; None means one each
    n_features: int  # K
    runs: Ints | None = None  # (n · K + 1,) int64: where each (item, label) begins; None: found on the way

    @property
    def n_items(self) -> int:
        return len(self.indptr) - 1


def project(
    rows: Rows,
    assigns: Sequence[Floats],
    start: int = 0,
    stop: int | None = None,
    backend: str = "auto",
) -> Floats:
    """A[x, k, r] = Σ_{tuples e of item x} w_e t_k(y_e) Π_j q_j(r_j | x_j), the product over other modes.

    Parameters
    ----------
    rows : Rows
    assigns : d − 1 arrays of shape (n_j, m_j), all of one dtype, float32 or float64
        Soft assignments of the other modes, in the order of ``rows.others``.
    start, stop : int
        Which items; all by default.

    Returns
    -------
    ndarray of shape (stop − start, K, Π m_j)
        The other modes' clusters are flattened in C order; dtype that of the assignments.

    Notes
    -----
    Equivalent to ``np.add.at(zeros, item, w[:, None, None] * t[:, :, None] * product[:, None, :])`` with
    ``product[e] = q_1[others[0, e]] ⊗ q_2[others[1, e]] ⊗ …``. A backend fills the whole of ``out``.
    """
    stop = rows.n_items if stop is None else stop
    width = prod(q.shape[1] for q in assigns)
    dtype = assigns[0].dtype if assigns else np.dtype(np.float64)
    out: Floats = np.empty((stop - start, rows.n_features, width), dtype=dtype)
    _backend(backend).project(rows, tuple(assigns), start, stop, out)
    return out


def _backend(name: str) -> Any:
    if name not in BACKENDS:
        raise GinghamError(f"backend={name!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    return import_module("gingham.kernels." + _MODULES.get(name, name))
