"""Where a fit runs, on this machine's cores or on its GPU.

When nobody says, that follows from costs that are counted in operations and turned into seconds by rates;
``benchmarks/speed/place.py`` holds these against measured fits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import NamedTuple

from gingham.engine.threads import thread_limit
from gingham.errors import GinghamError

BACKENDS = ("auto", "compiled", "torch")

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


def goes_to_device(backend: str, work: Callable[[], Work]) -> bool:
    """Whether a fit goes to the GPU: when torch is asked for, or when there is a GPU and it is faster.

    A fit asks once, when it begins; ``work`` is estimated only where there may be a GPU.
    """

    def faster() -> bool:
        torch, estimated = sys.modules.get("torch"), work()
        awake = torch is not None and torch.cuda.is_initialized()
        return estimated.core_seconds(thread_limit()) >= MARGIN * estimated.device_seconds(awake)

    return on_torch(backend, faster)


def on_torch(backend: str, worth_it: Callable[[], bool] = lambda: True) -> bool:
    """Whether torch computes: when it is asked for, or by itself when there is a GPU and it is worth it there."""
    check_name(backend)
    if backend == "torch" and find_spec("torch") is None:
        raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
    if backend == "auto" and find_spec("numba") is None:  # then nothing else serves
        return find_spec("torch") is not None
    return backend == "torch" or (backend == "auto" and may_have_gpu() and worth_it() and has_gpu())


def has_gpu() -> bool:
    """Whether torch finds a GPU."""
    return may_have_gpu() and find_spec("torch") is not None and bool(import_module("torch").cuda.is_available())


def chosen(backend: str, work: Callable[[], Work]) -> str:
    """The backend of a fit that asks for ``backend``: "compiled", on the cores, or "torch"."""
    return "torch" if goes_to_device(backend, work) else "compiled"


def check_name(backend: str) -> None:
    """Refuse names of no backend."""
    if backend not in BACKENDS:
        raise GinghamError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")


def may_have_gpu() -> bool:
    """Whether to look for a GPU, which takes as long as importing torch: not where no driver is loaded."""
    return sys.platform != "linux" or any(Path(place).exists() for place in DRIVERS)
