"""Rows in blocks for threads that wait for work: what short passes over the tuples are shared out with."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from time import perf_counter, sleep

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.kernels.threads import free_threads

SERIAL_WORK = 2**21  # fewer multiply-adds than this are done before a second thread has started
LEAST_PART = 32  # the smallest block is this part of what falls to a thread
SOON = 5e-4  # seconds for which the end of the last block is looked for: falling asleep and waking take longer


def in_blocks(
    run: Callable[[int, int], None],
    indptr: Ints,
    start: int,
    stop: int,
    work: int,
    least_part: int = LEAST_PART,
) -> None:
    """Call ``run(a, b)`` on blocks of rows that cover start:stop, on as many threads as numba may use.

    Threads share nothing but what they read; compiled code releases the interpreter lock. With a ``least_part`` of 1
    each thread has one block.
    """
    n_threads = free_threads() if work > SERIAL_WORK else 1
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


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


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
