"""The layout kernels work on, and the door that picks a backend.

Where a fit runs when nobody says, on this machine's cores or on its GPU, follows from costs that are counted in
operations and turned into seconds by rates; ``benchmarks/speed/place.py`` holds these against measured fits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import prod
from pathlib import Path
from threading import local
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError
from gingham.kernels.threads import one_blas_thread, over_blocks, thread_limit

if TYPE_CHECKING:
    from gingham.kernels.project_compiled import Tiles

CACHE_LINE = 64  # bytes
BLOCK_BYTES = 2**27  # largest temporary of one pass
STEP_BYTES = 2**21  # one block of a step: small enough to stay in cache and to share out among threads
WORTHWHILE = 2 * 10**8  # multiply-adds a pass from which moving the work to a GPU pays
BACKENDS = ("auto", "compiled", "reference", "torch")
_MODULES = {"auto": "compiled"}


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


def row_starts(codes: Ints, n_rows: int) -> Ints:
    """``Rows.indptr`` of tuples that are sorted by these codes, (n_rows + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_rows))])


def project(
    rows: Rows,
    assigns: Sequence[Floats],
    start: int = 0,
    stop: int | None = None,
    backend: str = "auto",
    tiles: Tiles | None = None,
) -> Floats:
    """A[x, k, r] = Σ_{tuples e of item x} w_e t_k(y_e) Π_j q_j(r_j | x_j), the product over other modes.

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
    backend: str = "auto",
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
    module = _backend(backend)
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


def project_cost(rows: Rows, assigns: Sequence[Floats], coef: Floats, backend: str = "auto") -> Floats:
    """A · coefᵀ, shape (n, m), for coef (m, K · Π m_j): A is made and used up in blocks where it is made.

    Unlike `project`, "auto" may choose a GPU: little has to come back from it.
    """
    if on_device(backend, int(rows.indptr[-1]) * prod(q.shape[1] for q in assigns)):
        return import_module("gingham.kernels.project_torch").project_cost(rows, tuple(assigns), coef)
    out: Floats = np.empty((rows.n_items, len(coef)))
    part = projector(rows, assigns, backend, reuse=True)

    def run(block: tuple[int, int]) -> None:
        start, stop = block
        np.matmul(part(start, stop).reshape(stop - start, -1), coef.T, out=out[start:stop])

    with one_blas_thread():
        for _ in over_blocks(run, row_blocks(rows.n_items, coef.shape[1], STEP_BYTES)):
            pass
    return out


def project_table(rows: Rows, assigns: Sequence[Floats], own: Floats, backend: str = "auto") -> Floats:
    """ownᵀ · A, shape (m, K · Π m_j), for own (n, m), in the same way."""
    width = rows.n_features * prod(q.shape[1] for q in assigns)
    if on_device(backend, int(rows.indptr[-1]) * width // rows.n_features):
        return import_module("gingham.kernels.project_torch").project_table(rows, tuple(assigns), own)
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


def asks_for_torch(backend: str) -> bool:
    """Whether torch is asked for; refuses where it is and there is none."""
    if backend == "torch" and find_spec("torch") is None:
        raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
    return backend == "torch"


def on_device(backend: str, work: float) -> bool:
    """Whether work (multiply-adds) goes through torch: when asked for, or when there is a GPU and enough for it."""
    if asks_for_torch(backend):
        return True
    if backend != "auto" or work < WORTHWHILE or find_spec("torch") is None:
        return False
    return bool(import_module("torch").cuda.is_available())


def _backend(name: str) -> ModuleType:
    if name not in BACKENDS:
        raise GinghamError(f"backend={name!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    return import_module("gingham.kernels.project_" + _MODULES.get(name, name))


# where a fit runs when nobody says

# seconds on one core: of a row and mode that is read and sorted, of a row and mode in a start, of a multiply-add in a
# sum over rows and in a product of matrices, of a membership
READ, START, GATHER, PRODUCT, MEMBERSHIP = 60e-9, 250e-9, 0.27e-9, 0.085e-9, 6e-9
SPREAD = 0.7  # share of a core's speed that each of many has
# seconds on a GPU: to import torch and wake it, to begin a fit, of a call, of a byte that is moved, of the same work
WAKE, BEGIN, CALL, BYTE, DEVICE_ROW, DEVICE_GATHER, DEVICE_PRODUCT = 3.0, 0.25, 1.5e-3, 1e-10, 1.5e-9, 5e-13, 1e-13
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # of Nvidia, of AMD, of Windows below Linux
USUAL_SWEEPS = 50  # of a fit
MARGIN = 1.5  # times that a GPU must be faster by: others are slower than the one that was measured


class Work(NamedTuple):
    """What a fit has to do."""

    n_rows: int
    n_items: tuple[int, ...]  # of each mode
    n_clusters: tuple[int, ...]
    n_features: int  # numbers of a label: as many as there are labels, where they are counted
    n_sweeps: int

    @property
    def gathered(self) -> float:
        """Multiply-adds of sums over rows in a sweep."""
        return sum(self.n_rows * prod(self.n_clusters) / m for m in self.n_clusters)

    @property
    def multiplied(self) -> float:
        """Multiply-adds of products of matrices in a sweep."""
        return 2.0 * sum(self.n_items) * self.n_features * prod(self.n_clusters)

    @property
    def memberships(self) -> int:
        return sum(n * m for n, m in zip(self.n_items, self.n_clusters))

    def core_seconds(self, n_cores: int) -> float:
        """On the CPU."""
        sweep = GATHER * self.gathered + PRODUCT * self.multiplied + MEMBERSHIP * self.memberships
        rows = len(self.n_items) * self.n_rows
        return READ * rows + (START * rows + self.n_sweeps * sweep) / (1 + SPREAD * (n_cores - 1))

    def device_seconds(self, awake: bool) -> float:
        """On the GPU, moving rows there and memberships back included."""
        sweep = CALL + DEVICE_GATHER * self.gathered + DEVICE_PRODUCT * self.multiplied
        rows, d = self.n_rows, len(self.n_items)
        moved = 8.0 * (rows * (d + 1) + self.memberships)
        return (0.0 if awake else WAKE) + BEGIN + BYTE * moved + d * DEVICE_ROW * rows + self.n_sweeps * sweep


def goes_to_device(backend: str, work: Work) -> bool:
    """Whether a fit goes to the GPU: when torch is asked for, or when there is a GPU and it is faster."""
    if asks_for_torch(backend):
        return True
    if backend != "auto":
        return False
    if find_spec("numba") is None:  # then nothing else serves
        return find_spec("torch") is not None
    if not may_have_gpu():
        return False
    torch = sys.modules.get("torch")
    awake = torch is not None and torch.cuda.is_initialized()
    if work.core_seconds(thread_limit()) < MARGIN * work.device_seconds(awake) or find_spec("torch") is None:
        return False
    return bool(import_module("torch").cuda.is_available())


def may_have_gpu() -> bool:
    """Whether to look for a GPU, which takes as long as importing torch: not where no driver is loaded."""
    return sys.platform != "linux" or any(Path(place).exists() for place in DRIVERS)
