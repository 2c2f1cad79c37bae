"""Work shared out among threads, with results that do not depend on how many there are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from time import perf_counter, sleep
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from gingham.arrays import Floats, Ints

Block = TypeVar("Block")
Result = TypeVar("Result")

SERIAL_WORK = 2**21  # fewer multiply-adds than this are done before a second thread has started
LEAST_PART = 32  # the smallest block is this part of what falls to a thread
SPIN_SECONDS = 5e-4  # for which the end of the last block is awaited: to fall asleep and wake takes longer
POLL_SECONDS = 0.2  # on some systems a wait without end does not let signals through


class _ThisThread(threading.local):
    shared: Shared | None = None  # by the jobs of which the calling thread does one


_this_thread = _ThisThread()


@dataclass(eq=False)
class Shared:
    """Threads that jobs share which run side by side. No result depends on how many fall to each."""

    n_threads: int
    running: int = 1  # jobs at work; the last ones use the threads of those that have ended
    unneeded: bool = False  # whether nobody waits for the results any more

    @contextmanager
    def on_this_thread(self) -> Iterator[None]:
        """What the calling thread does inside keeps to its share."""
        before, _this_thread.shared = _this_thread.shared, self
        try:
            yield
        finally:
            _this_thread.shared = before


class UnneededError(Exception):
    """Ends a job for whose result nobody waits any more."""


def available_threads() -> int:
    """How many threads the caller may use: what numba may, or its share where other jobs run beside it."""
    shared = _this_thread.shared
    return thread_limit() if shared is None else max(1, shared.n_threads // max(1, shared.running))


def thread_limit() -> int:
    """What numba may use; it is asked where something has loaded it, and not loaded."""
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(numba, "get_num_threads"):  # it may be half imported, on another thread
        return int(numba.get_num_threads())
    return int(os.environ.get("NUMBA_NUM_THREADS", 0)) or _cores()


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_blocks(
    run: Callable[[int, int], None], indptr: Ints, start: int, stop: int, work: int, least_part: int = LEAST_PART
) -> None:
    """Call ``run(a, b)`` on blocks of rows that cover start:stop, on as many threads as numba may use.

    Threads share nothing but what they read; compiled code releases the interpreter lock. With a ``least_part`` of 1
    each thread has one block.
    """
    n_threads = available_threads() if work > SERIAL_WORK else 1
    if n_threads == 1:
        run(start, stop)
        return
    spread(run, balanced(indptr, start, stop, shares(n_threads, least_part)), n_threads)


def spread(run: Callable[[int, int], None], cuts: Ints, n_threads: int) -> None:
    """Call ``run(a, b)`` between all neighbours of ``cuts``; each goes to the first thread that is free."""
    blocks = iter(list(pairwise(cuts.tolist())))

    def take() -> None:
        for a, b in blocks:
            run(a, b)

    helpers = [_pool(n_threads - 1).submit(take) for _ in range(n_threads - 1)]
    take()
    until = perf_counter() + SPIN_SECONDS
    for helper in helpers:
        if not helper.cancel():  # one that has not begun would find nothing left to do
            while not helper.done() and perf_counter() < until:
                sleep(0)  # lets the helper have the interpreter
            helper.result()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work: starting one costs as much as summing ten thousand observations."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gingham")


@cache
def shares(n_threads: int, least_part: int) -> Floats:
    """Which part of the work the first blocks have together, from 0 to 1, for each number of blocks.

    A block is half of what falls to a thread of the work that is left: large ones first, because each costs a call,
    and small ones at the end, so that threads end together though they begin one after the other.
    """
    if least_part == 1:
        return np.linspace(0.0, 1.0, n_threads + 1)
    done, least = [0.0], 1.0 / (n_threads * least_part)
    while done[-1] < 1.0 - least / 2:
        done.append(done[-1] + max((1.0 - done[-1]) / (2 * n_threads), least))
    return np.array([*done[:-1], 1.0])


def balanced(indptr: Ints, start: int, stop: int, done: Sequence[float] | Floats) -> Ints:
    """Row boundaries between start and stop, with about the given parts of the observations before each."""
    first, last = int(indptr[start]), int(indptr[stop])
    targets = (first + np.asarray(done) * (last - first)).astype(indptr.dtype)  # of its type: it is not copied then
    cuts: Ints = np.searchsorted(indptr[start : stop + 1], targets) + start
    cuts[0], cuts[-1] = start, stop
    return np.maximum.accumulate(np.minimum(cuts, stop))


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Knows the libraries that are loaded when it is made, so each import asks for a new one."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Matrix products on the calling thread alone: their sums have one order, and small ones cost no hand-over."""
    return _controller(len(sys.modules)).limit(limits=1, user_api="blas")


def one_library_thread() -> AbstractContextManager[object]:
    """The same for all that libraries spread out, k-means too: a start must not hang on the number of cores."""
    return _controller(len(sys.modules)).limit(limits=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything on the calling thread alone, as a worker that has other threads at work expects of a task."""
    with Shared(1).on_this_thread(), one_blas_thread():
        yield


def over_blocks(run: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[Result]:
    """``map(run, blocks)`` on as many threads as the caller may use; results come in the order of the blocks."""
    n_threads = min(available_threads(), len(blocks))
    if n_threads <= 1:
        yield from map(run, blocks)
        return
    several = max(1, len(blocks) // (LEAST_PART * n_threads))  # at a time: a hand-over costs as much as a block
    parts = [blocks[at : at + several] for at in range(0, len(blocks), several)]
    running = [_pool_without_nesting(n_threads).submit(lambda part: list(map(run, part)), part) for part in parts]
    try:
        for results in running:
            yield from results.result()
    finally:  # what has begun ends before the caller goes on
        wait([part for part in running if not part.cancel()])


@cache
def _pool_without_nesting(n_threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work and do not spread out: those of `_pool` are for callers, who do."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gingham block", initializer=disable_nested_threads)


def disable_nested_threads() -> None:
    """The calling thread is one of a pool: what it calls stays on it."""
    _this_thread.shared = Shared(1)


def side_by_side(
    jobs: Sequence[Callable[[Callable[..., None]], Result]], n_jobs: int, notify: Callable[..., None]
) -> Generator[Result, None, None]:
    """The results of jobs, in their order; at most ``n_jobs`` run at a time, on as many threads as the caller may use.

    Parameters
    ----------
    jobs : functions of a report, which they call after every step
    notify : callable
        Called with the number of a job and what it reported, by one job at a time, on the thread of the job.
    """
    n_threads = min(available_threads(), n_jobs, len(jobs))
    if n_threads <= 1:
        for number, job in enumerate(jobs):
            yield job(partial(notify, number))
        return
    shared, lock = Shared(available_threads(), 0), threading.Lock()

    def work(number: int) -> Result:
        def report(*facts: object) -> None:
            if shared.unneeded:
                raise UnneededError
            with lock:
                notify(number, *facts)

        with lock:
            shared.running += 1
        try:
            with shared.on_this_thread():
                return jobs[number](report)
        finally:
            with lock:
                shared.running -= 1

    pool = ThreadPoolExecutor(n_threads)
    try:
        # In a copy of the caller's context: numpy keeps there what it does about overflows.
        for run in [pool.submit(copy_context().run, work, number) for number in range(len(jobs))]:
            while not run.done():
                wait([run], POLL_SECONDS)
            yield run.result()
    finally:
        shared.unneeded = True
        pool.shutdown(cancel_futures=True)


def _forget_pools() -> None:
    _pool.cache_clear()
    _pool_without_nesting.cache_clear()


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_forget_pools)
