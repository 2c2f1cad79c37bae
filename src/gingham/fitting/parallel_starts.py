"""Several runs of a solver that keeps one core busy, side by side on threads, with the results of one after another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

import numba

from gingham.core.problem import Objective
from gingham.fitting.checkpoint import KEEPER
from gingham.kernels.threads import ThreadBudget, available_threads

POLL = 0.2  # seconds: on some systems a wait without end does not hear Ctrl-C

Report = Callable[[int, float, Objective], None]  # sweep, factor by which β is raised, objective
Tell = Callable[[int, int, float, Objective], None]  # the job, and what it reported


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after all that the jobs have found so far."""


class Ended(Protocol):
    """What a run leaves: at least whether it was interrupted."""

    @property
    def interrupted(self) -> bool: ...


Result = TypeVar("Result", bound=Ended)
Job = Callable[[Report], Result]
Results = Generator[Result, None, None]


def nobody(*facts: Any) -> None:
    """Tell nobody."""


def side_by_side(jobs: Iterable[Job[Result]], n_jobs: int, tell: Tell = nobody) -> Results[Result]:
    """Run jobs on as many threads as numba may use; results and reports come in the order of the jobs.

    A job is asked for, on the calling thread, when a thread is free for it: what it draws at random beforehand is
    drawn in order. Fits that keep checkpoints run one job after the other, and so does one thread.

    Parameters
    ----------
    jobs : functions of a report, which they call after every sweep
    tell : callable
        Called on the calling thread with the number of the job and what it reported.

    Raises
    ------
    Interrupted
        After the last result, where the jobs were interrupted; those at work end with what they have.
    """
    n_threads = min(available_threads(), n_jobs)
    if n_threads > 1 and KEEPER.get() is None:
        yield from _on_threads(jobs, n_threads, tell)
        return
    for number, job in enumerate(jobs):
        result = job(partial(tell, number))
        yield result
        if result.interrupted:
            raise Interrupted


def _on_threads(jobs: Iterable[Job[Result]], n_threads: int, tell: Tell) -> Results[Result]:
    budget = ThreadBudget(available_threads())
    events: SimpleQueue[tuple[int, tuple[Any, ...] | None]] = SimpleQueue()  # a job's report; None: it has ended
    runs: dict[int, Future[Result]] = {}
    reports: dict[int, list[tuple[Any, ...]]] = {}  # of jobs whose turn has not come
    ended: set[int] = set()

    def work(number: int, job: Job[Result]) -> Result:
        def report(*facts: Any) -> None:
            events.put((number, facts))
            if budget.stopped:
                raise KeyboardInterrupt

        try:
            with budget.on_this_thread():
                return job(report)
        finally:
            events.put((number, None))

    # What a thread calls must not spread out beyond its share.
    with ThreadPoolExecutor(n_threads, initializer=numba.set_num_threads, initargs=(1,)) as pool:
        waiting, begun, turn = iter(jobs), 0, 0
        try:
            while True:
                while budget.busy < n_threads and (job := next(waiting, None)) is not None:
                    budget.busy += 1
                    runs[begun] = pool.submit(copy_context().run, work, begun, job)
                    begun += 1
                if not runs:
                    return
                number, facts = _next(events)
                if facts is None:
                    budget.busy -= 1
                    ended.add(number)
                else:
                    reports.setdefault(number, []).append(facts)
                for told in reports.pop(turn, ()):
                    tell(turn, *told)
                while turn in ended:
                    result = runs.pop(turn).result()
                    yield result
                    turn += 1
                    for told in reports.pop(turn, ()):
                        tell(turn, *told)
        except KeyboardInterrupt:
            budget.stopped = True
            for run in runs.values():
                failure = run.exception()
                if failure is None:
                    yield run.result()
                elif not isinstance(failure, KeyboardInterrupt):
                    raise failure from None
            raise Interrupted from None
        finally:
            budget.stopped = True


def _next(events: SimpleQueue[Any]) -> Any:
    while True:
        try:
            return events.get(timeout=POLL)
        except Empty:
            continue
