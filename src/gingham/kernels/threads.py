"""Blocks of work on all cores, with results that do not depend on how many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numba
from threadpoolctl import ThreadpoolController

Block = TypeVar("Block")
Result = TypeVar("Result")


@dataclass
class Crew:
    """Threads that share the cores, each with a job of its own."""

    n_threads: int
    busy: int = 0  # threads that have a job
    stopped: bool = False  # whether jobs are to end


CREW: ContextVar[Crew | None] = ContextVar("CREW", default=None)  # of the thread that asks


def free_threads() -> int:
    """How many threads the caller may use: what numba may, or in a crew its share of it.

    The last jobs of a crew use the cores of those that have ended. A crew that is stopped learns it here, as the
    main thread learns of Ctrl-C between two lines.
    """
    crew = CREW.get()
    if crew is None:
        return int(numba.get_num_threads())
    if crew.stopped:
        raise KeyboardInterrupt
    return max(1, crew.n_threads // max(1, crew.busy))


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Knows the libraries that are loaded when it is made, so each import asks for a new one."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Matrix products on the calling thread alone: their sums have one order, and small ones cost no hand-over."""
    limit: AbstractContextManager[Any] = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    return limit


def one_library_thread() -> AbstractContextManager[Any]:
    """The same for all that libraries spread out, k-means too: a start must not hang on the number of cores."""
    limit: AbstractContextManager[Any] = _controller(len(sys.modules)).limit(limits=1)
    return limit


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything on the calling thread alone, as a worker that has other threads at work expects of a task."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with one_blas_thread():
            yield
    finally:
        numba.set_num_threads(before)


def over_blocks(run: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[Result]:
    """``map(run, blocks)`` on as many threads as numba may use; results come in the order of the blocks."""
    n_threads = min(numba.get_num_threads(), len(blocks))
    if n_threads <= 1:
        yield from map(run, blocks)
        return
    # Each worker is one thread, so what it calls must not spread out again.
    with ThreadPoolExecutor(n_threads, initializer=numba.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(run, blocks)
