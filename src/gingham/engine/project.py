"""The layout that kernels work on, and sums over observations on the cores or through torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import prod
from threading import local
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gingham.arrays import Floats, Ints
from gingham.engine.place import check_name
from gingham.engine.threads import one_blas_thread, over_blocks

if TYPE_CHECKING:
    from gingham.engine.project_compiled import Tiles

CACHE_LINE = 64  # bytes
BLOCK_BYTES = 2**27  # largest temporary of one pass
STEP_BYTES = 2**21  # one block of a step: small enough to stay in cache and to share out among threads


class Rows(NamedTuple):
    """Weighted observations grouped by the items of one mode (compressed rows).

    Row x holds observations ``indptr[x]:indptr[x + 1]``. Features are either one-hot (``labels`` is the
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


def row_starts(codes: Ints, n_rows: int) -> Ints:
    """``Rows.indptr`` of tuples that are sorted by these codes, (n_rows + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_rows))])


def project(
    rows: Rows,
    assigns: Sequence[Floats],
    start: int = 0,
    stop: int | None = None,
    backend: str = "compiled",
    tiles: Tiles | None = None,
) -> Floats:
    """A[x, k, r] = Σ_{observations e of item x} w_e t_k(y_e) Π_j q_j(r_j | x_j), the product over other modes.

    Parameters
    ----------
    rows : Rows
    assigns : d − 1 arrays of shape (n_j, m_j), all of one dtype, float32 or float64
        Soft assignments of the other modes, in the order of ``rows.others``.
    start, stop : int
        Which items; all by default.
    tiles : Tiles, optional
        Of these rows, for the compiled backend.

    Returns
    -------
    ndarray of shape (stop − start, K, Π m_j)
        The other modes' clusters are flattened in C order; dtype that of the assignments.

    Notes
    -----
    Equivalent to ``np.add.at(zeros, item, w[:, None, None] * t[:, :, None] * product[:, None, :])`` with
    ``product[e] = q_1[others[0, e]] ⊗ q_2[others[1, e]] ⊗ …``. A backend fills the whole of ``out``.
    """
    return projector(rows, assigns, backend, tiles=tiles)(start, rows.n_items if stop is None else stop)


def projector(
    rows: Rows,
    assigns: Sequence[Floats],
    backend: str = "compiled",
    dtype: npt.DTypeLike | None = None,
    tiles: Tiles | None = None,
    reuse: bool = False,
) -> Callable[[int, int], Floats]:
    """`project` as a function of (start, stop), where one set of assignments serves many ranges of items.

    Parameters
    ----------
    dtype : float32 or float64
        Of sums and gathered assignments; that of the assignments by default.
    tiles : Tiles, optional
        Of these rows, for the compiled backend: ranges are then made of its blocks.
    reuse : bool
        Write into the same memory every time: a result lasts until the next call on the same thread. Fresh memory
        for every range costs as much as filling it where the allocator gives memory back at once.
    """
    assigns = tuple(assigns)
    width = prod(q.shape[1] for q in assigns)
    kind = np.dtype(dtype or (assigns[0].dtype if assigns else np.float64))
    module = _module(backend)
    fill: Callable[[int, int, Floats], None]
    if hasattr(module, "prepared"):
        fill = module.prepared(rows, assigns, kind, tiles)
    else:
        fill = partial(module.project, rows, tuple(q.astype(kind, copy=False) for q in assigns))

    kept = local()

    def run(start: int, stop: int) -> Floats:
        out: Floats | None = getattr(kept, "room", None)
        if out is None or len(out) < stop - start:
            out = np.empty((stop - start, rows.n_features, width), dtype=kind)
        if reuse:
            kept.room = out
        out = out[: stop - start]
        fill(start, stop, out)
        return out

    return run


def project_cost(rows: Rows, assigns: Sequence[Floats], coef: Floats, backend: str = "compiled") -> Floats:
    """A · coefᵀ, shape (n, m), for coef (m, K · Π m_j): A is made and used up in blocks where it is made."""
    module = _module(backend)
    if hasattr(module, "project_cost"):
        return module.project_cost(rows, tuple(assigns), coef)
    out: Floats = np.empty((rows.n_items, len(coef)))
    part = projector(rows, assigns, backend, reuse=True)

    def run(block: tuple[int, int]) -> None:
        start, stop = block
        np.matmul(part(start, stop).reshape(stop - start, -1), coef.T, out=out[start:stop])

    with one_blas_thread():
        for _ in over_blocks(run, row_blocks(rows.n_items, coef.shape[1], STEP_BYTES)):
            pass
    return out


def project_table(rows: Rows, assigns: Sequence[Floats], own: Floats, backend: str = "compiled") -> Floats:
    """ownᵀ · A, shape (m, K · Π m_j), for own (n, m), in the same way."""
    width = rows.n_features * prod(q.shape[1] for q in assigns)
    module = _module(backend)
    if hasattr(module, "project_table"):
        return module.project_table(rows, tuple(assigns), own)
    out: Floats = np.zeros((own.shape[1], width))
    part = projector(rows, assigns, backend, reuse=True)

    def run(block: tuple[int, int]) -> Floats:
        start, stop = block
        return own[start:stop].T @ part(start, stop).reshape(stop - start, -1)

    with one_blas_thread():
        for table in over_blocks(run, row_blocks(rows.n_items, width, STEP_BYTES)):
            out += table
    return out


def aligned(shape: tuple[int, int], dtype: npt.DTypeLike) -> Floats:
    """An uninitialised table that begins at a cache line, so that a row touches no more lines than it must."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    room = np.empty(size + CACHE_LINE, dtype=np.uint8)
    skip = -room.ctypes.data % CACHE_LINE
    return room[skip : skip + size].view(dtype).reshape(shape)


def row_blocks(n: int, width: int, budget: int = BLOCK_BYTES) -> list[tuple[int, int]]:
    """Ranges of rows such that a float64 block of that width stays within the budget."""
    step = max(1, budget // (8 * max(1, width)))
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _module(backend: str) -> ModuleType:
    check_name(backend)
    return import_module(f"gingham.engine.project_{'compiled' if backend == 'auto' else backend}")
