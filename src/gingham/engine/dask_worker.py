"""What a worker's process changes about itself while it holds a share of a fit: what it does with freed memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Protocol, TypeVar
from uuid import uuid4
from weakref import finalize

from gingham.engine.threads import one_thread

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # as glibc's mallopt numbers them
KEPT = 2**25  # bytes: arrays up to this size are made in memory that was used before
TRIM = "MALLOC_TRIM_THRESHOLD_"  # dask gives it to its workers

_lock = RLock()  # the collector may call from anywhere
_held: set[int] = set()  # the parts of fits that are in this process, by their id()


Value = TypeVar("Value")
AnyValue = TypeVar("AnyValue", covariant=True)


class Future(Protocol[AnyValue]):
    """A value that is being made somewhere."""

    def result(self) -> AnyValue: ...


class Client(Protocol):
    """What a fit asks of a dask client. Futures among the arguments stand for their values."""

    def submit(self, call: Callable[..., Value], *arguments: object, **scheduling: object) -> Future[Value]: ...

    def gather(self, futures: Sequence[Future[Value]]) -> Sequence[Value]: ...


def submit(client: Client, call: Callable[..., Value], *arguments: object) -> Future[Value]:
    """A future of ``call(…)`` on one thread of a worker."""
    # A name of its own: the scheduler learns how long such tasks take by their names.
    return client.submit(on_one_thread, call, *arguments, pure=False, key=f"{call.__name__}-{uuid4().hex}")


def on_one_thread(call: Callable[..., Value], part: object, *arguments: object) -> Value:
    """``call(part, …)`` on one thread, as a worker expects of a task, in a process that keeps its memory."""
    hold(part)
    with one_thread():
        result = call(part, *arguments)
    hold(result)
    return result


def hold(part: object) -> None:
    """Keep freed memory for as long as ``part`` is in it (if it is a thing that can be watched)."""
    with _lock:
        if id(part) in _held:
            return
        try:
            finalize(part, _let_go, id(part)).atexit = False
        except TypeError:  # observations and numbers cannot be watched
            return
        if not _held:
            _keep(True)
        _held.add(id(part))


def _let_go(part: int) -> None:
    with _lock:
        _held.discard(part)
        if not _held:
            _keep(False)


def _keep(steady: bool) -> None:
    """Keep freed memory; or as it was before.

    A fixed threshold of memory that is given back also fixes the size from which an array has pages of its own,
    128 KiB: they are fetched anew for every array, which takes as long as filling it. Left alone, glibc raises both as
    is done here. That saves a fifth to a third of the CPU seconds of a fit of two million observations.
    """
    if sys.platform == "linux" and TRIM in os.environ:
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(MMAP_THRESHOLD, KEPT if steady else 2**17)
            libc.mallopt(TRIM_THRESHOLD, 2 * KEPT if steady else int(os.environ[TRIM]))
            if not steady:
                libc.malloc_trim(0)
