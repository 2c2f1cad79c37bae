"""Work shared out among threads, with results that do not depend on how many there are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
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
SOON = 5e-4  # seconds for which the end of the last block is looked for: falling asleep and waking take longer


@dataclass(eq=False)
class ThreadBudget:
    """Cores shared by jobs that run side by side, each on a thread of its own. No result depends on it."""

    n_threads: int  # of all jobs together
    busy: int = 0  # jobs at work; the last ones use the cores of those that have ended
    stopped: bool = False  # whether jobs are to end

    def share(self) -> int:
        """What falls to one job. One that is to end learns it here, as the main thread learns of Ctrl-C."""
        if not _this_thread.told:  # once: what was found so far has still to be put together
            self.end_if_stopped()
        return max(1, self.n_threads // max(1, self.busy))

    def end_if_stopped(self) -> None:
        """Tell a job that is to end."""
        if self.stopped:
            _this_thread.told = True
            raise KeyboardInterrupt

    @contextmanager
    def on_this_thread(self) -> Iterator[None]:
        """What the calling thread starts keeps to its share."""
        _this_thread.budget, _this_thread.told = self, False
        try:
            yield
        finally:
            _this_thread.budget = None


class _ThisThread(threading.local):
    budget: ThreadBudget | None = None
    told = False  # that the jobs are to end
    alone: bool = False  # what it calls must not spread out again


_this_thread = _ThisThread()


def available_threads() -> int:
    """How many threads the caller may use: what numba may, or its share where other jobs run beside it."""
    budget = _this_thread.budget
    return thread_limit() if budget is None else budget.share()


def thread_limit() -> int:
    """What numba may use, were nothing else at work; numba is asked where something has loaded it, and not loaded."""
    if _this_thread.alone:
        return 1
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(numba, "get_num_threads"):  # it may be half imported, on another thread
        return int(numba.get_num_threads())
    return int(os.environ.get("NUMBA_NUM_THREADS", 0)) or _cores()


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def result_at_hand() -> None:
    """The job on this thread has swept: what it found has to be put together, which Ctrl-C must not take away.

    Its next report still tells it of Ctrl-C, as in a later stage of the same job.
    """
    _this_thread.told = True


def stay_alone() -> None:
    """The calling thread is one of a pool: what it calls stays on it."""
    _this_thread.alone = True


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
    until = perf_counter() + SOON
    for helper in helpers:
        if not helper.cancel():  # one that has not begun would find nothing left to do
            while not helper.done() and perf_counter() < until:
                sleep(0)  # lets the helper have the interpreter
            helper.result()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work: starting one costs as much as summing ten thousand tuples."""
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
    """Row boundaries between start and stop, with about the given parts of the tuples before each."""
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
    before, _this_thread.alone = _this_thread.alone, True
    try:
        with one_blas_thread():
            yield
    finally:
        _this_thread.alone = before


def over_blocks(run: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[Result]:
    """``map(run, blocks)`` on as many threads as the caller may use; results come in the order of the blocks."""
    n_threads = min(available_threads(), len(blocks))
    if n_threads <= 1:
        yield from map(run, blocks)
        return
    several = max(1, len(blocks) // (LEAST_PART * n_threads))  # at a time: a hand-over costs as much as a block
    parts = [blocks[at : at + several] for at in range(0, len(blocks), several)]
    running = [_pool_alone(n_threads).submit(lambda part: list(map(run, part)), part) for part in parts]
    try:
        for results in running:
            yield from results.result()
    finally:  # what has begun ends before the caller goes on
        wait([part for part in running if not part.cancel()])


@cache
def _pool_alone(n_threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work and do not spread out: those of `_pool` are for callers, who do."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gingham block", initializer=stay_alone)


def _forget_pools() -> None:
    _pool.cache_clear()
    _pool_alone.cache_clear()


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_forget_pools)
