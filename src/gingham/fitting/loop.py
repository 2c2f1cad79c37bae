"""The one fixed-point loop: how β approaches its value, progress, convergence, interruption, checkpoints, restarts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from gingham import storage
from gingham.arrays import Floats
from gingham.core.problem import Objective, Posterior, Problem
from gingham.engine.threads import ThreadBudget, available_threads, result_at_hand, stay_alone
from gingham.errors import GinghamError, InterruptedWarning
from gingham.files import CHECKPOINT
from gingham.storage import State

TIE = 1e-9  # relative: of two restarts closer than this the first is kept, so that rounding does not choose
POLL = 0.2  # seconds: on some systems a wait without end does not hear Ctrl-C

# schedules: how β approaches its value


@dataclass(frozen=True)
class Constant:
    """β from the first sweep on.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, schedule=gg.Constant())
    """

    n_steps: int = 0

    def factor(self, iteration: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Down:
    """From ``start``·β geometrically down to β in ``n_steps`` sweeps, then constant.

    Coming down lets clusters form before information is charged for; going up loses clusters, and an empty cluster does
    not come back.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, schedule=gg.Down(start=3.0, n_steps=10))
    """

    start: float = 5.0
    n_steps: int = 20

    def factor(self, iteration: int) -> float:
        if iteration >= self.n_steps:
            return 1.0
        return float(self.start ** (1.0 - iteration / self.n_steps))


Schedule = Constant | Down


def make_schedule(schedule: object) -> Schedule:
    """A schedule by name ("down", "constant") or as it is."""
    if isinstance(schedule, (Constant, Down)):
        return schedule
    if schedule == "down":
        return Down()
    if schedule == "constant":
        return Constant()
    raise GinghamError(f"schedule={schedule!r} is unknown; choose 'down', 'constant', Down(...) or Constant().")


# progress and results


class Progress(NamedTuple):
    """What a callback is told after every sweep."""

    restart: int
    n_restarts: int
    iteration: int
    max_iter: int
    factor: float  # by which β is still raised
    objective: Objective


Callback = Callable[[Progress], None]
Report = Callable[[int, float, Objective], None]  # sweep, factor by which β is raised, objective
Notify = Callable[[int, int, float, Objective], None]  # the restart, and what it reported


@dataclass(frozen=True)
class Trace:
    """The objective after each sweep, with the factor by which β was raised then."""

    factors: tuple[float, ...]
    objectives: tuple[Objective, ...]

    @property
    def totals(self) -> Floats:
        """F at the final β after each sweep; falls once the schedule has come down."""
        return np.array([objective.total for objective in self.objectives])


@dataclass(frozen=True, eq=False)
class Solution:
    """The best posterior found, its objective, and how it was found."""

    posterior: Posterior
    objective: Objective
    trace: Trace
    converged: bool
    interrupted: bool = False

    @property
    def n_iter(self) -> int:
        return len(self.trace.factors)


# checkpoints: where a fit stands, kept by whoever wants it, and taken up again in another process


class CheckpointStore(Protocol):
    """Keeps the stages of one fit by their names; see `gingham.fitting.loop.CheckpointFile`."""

    def bind(self, stage: str, data: str) -> None:
        """A fit on this data begins, the digest says which; refused where what is known of it is of other data."""

    def begin(self, stage: str) -> State | None:
        """A stage begins: what an earlier process kept of it; ``finished`` says whether it came to its end."""

    def keep(self, stage: str, state: Callable[[], State], finished: bool, now: bool) -> None:
        """Offer where a stage stands; the state is asked for only where it is kept. ``now``: Ctrl-C has ended it."""

    def stop(self) -> None:
        """Ctrl-C has ended the fit: what is known is written, and nothing more is kept."""


@dataclass(frozen=True)
class Checkpoint:
    """A named stage of a fit, and what is known of it from an earlier process; by default nothing is kept.

    Solvers are deterministic, so a stage that goes on from what was kept ends where it would have ended. States are
    plain values and arrays: they can stand in a file. Names must not repeat within a stage.
    """

    store: CheckpointStore | None = None
    name: str = ""
    known: State | None = field(default=None, repr=False)

    def bound_to(self, estimator: BaseEstimator, *data: object) -> Checkpoint:
        """The same, for a fit of this estimator to this data: with other data or settings it is refused.

        Settings that are neither numbers nor text, a generator say, cannot be told apart and are passed over.
        """
        if self.store is not None:
            plain = (bool, int, float, str, tuple, type(None))
            settings = {key: value for key, value in estimator.get_params(False).items() if type(value) in plain}
            self.store.bind(self.name, str(joblib.hash((type(estimator).__name__, settings, data))))
        return self

    def stage(self, name: str) -> Checkpoint:
        """A stage within this one; it is forgotten when this one is finished."""
        if self.store is None:
            return self
        path = f"{self.name}/{name}" if self.name else name
        return Checkpoint(self.store, path, self.store.begin(path))

    @property
    def active(self) -> bool:
        """Whether anybody keeps anything."""
        return self.store is not None

    @property
    def finished(self) -> bool:
        return self.known is not None and bool(self.known["finished"])

    def keep(self, state: Callable[[], State], *, finished: bool = False, now: bool = False) -> None:
        """Offer where the stage stands; with ``now`` it was interrupted, and the state is that of the last sweep."""
        if self.store is not None:
            self.store.keep(self.name, state, finished, now)

    def result(self, compute: Callable[[], State], rng: np.random.Generator | None = None) -> State:
        """The result of the stage, recalled where an earlier process has finished it.

        A generator that the stage draws from is left where the stage would have left it.
        """
        if self.known is not None and self.finished:
            if rng is not None:
                rng.bit_generator.state = self.known["random"]
            return dict(self.known["result"])
        result = compute()
        self.keep(lambda: {"result": result, "random": None if rng is None else rng.bit_generator.state}, finished=True)
        return result


NO_CHECKPOINT = Checkpoint()


class Memory(NamedTuple):
    """What a solver remembers from sweep to sweep beside its posterior."""

    get: Callable[[], object]
    set: Callable[[object], None]


def rng_state(rng: np.random.Generator) -> Memory:
    """Where a generator stands."""

    def restore(state: object) -> None:
        rng.bit_generator.state = cast("dict[str, object]", state)

    return Memory(lambda: rng.bit_generator.state, restore)


def posterior_state(posterior: Posterior) -> State:
    """What a run changes of its posterior, whatever its kind: all but structure and cells, to the last bit."""
    changed = [field.name for field in fields(posterior) if field.init and field.name not in ("structure", "cells")]
    return {"values": {name: getattr(posterior, name) for name in changed}, "known": posterior.known_sums}


def posterior_from(start: Posterior, state: State) -> Posterior:
    """The posterior that `posterior_state` described, with the structure and cells of a start."""
    return replace(start, **state["values"]).with_sums(state["known"])


def objective_state(objective: Objective) -> State:
    """The terms of an objective, and which kind it is."""
    values = {field.name: getattr(objective, field.name) for field in fields(objective)}
    return {"kind": type(objective).__name__, "values": values}


def objective_from(state: State) -> Objective:
    every: list[type[Objective]] = [Objective, *Objective.__subclasses__()]
    kinds = {kind.__name__: kind for kind in every}
    return kinds[state["kind"]](**state["values"])


# the loop

Place = TypeVar("Place")


@dataclass(frozen=True, eq=False)
class Course(Generic[Place]):
    """Where a loop has ended, and how it went."""

    place: Place
    trace: Trace
    converged: bool
    interrupted: bool


def iterate(
    step: Callable[[Place, float], tuple[Place, Objective]],
    start: Place,
    schedule: Schedule,
    *,
    to_state: Callable[[Place], State],
    from_state: Callable[[State], Place],
    converges: Callable[[Sequence[Objective]], bool],
    max_iter: int,
    report: Report | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    memory: Memory | None = None,
) -> Course[Place]:
    """Repeat a step until it ``converges``, at most ``max_iter`` times; Ctrl-C ends the loop where it is.

    Parameters
    ----------
    step : a place and the factor by which β is raised → the next place and its objective at the final β
    to_state, from_state : a place as a checkpoint holds it, and back
    converges : whether the objectives so far say that nothing more will change
    memory : what steps remember beside the place, where a checkpoint must hold it
    """
    place, known = start, checkpoint.known
    factors: list[float] = []
    objectives: list[Objective] = []
    converged = interrupted = False
    if known is not None:
        place = from_state(known["place"])
        factors = list(known["factors"])
        objectives = [objective_from(state) for state in known["objectives"]]
        converged = known["converged"]
        if memory is not None:
            memory.set(known["memory"])
    remembered = None if memory is None else memory.get()  # after the last whole step: one may end half done

    def so_far() -> State:
        return {
            "place": to_state(place),
            "factors": list(factors),
            "objectives": [objective_state(objective) for objective in objectives],
            "converged": converged,
            "memory": remembered,
        }

    try:
        while not (checkpoint.finished or converged) and len(objectives) < max_iter:
            iteration = len(objectives)
            factor = schedule.factor(iteration)
            after, objective = step(place, factor)
            now = None if memory is None else memory.get()
            place, remembered, factors, objectives = after, now, [*factors, factor], [*objectives, objective]
            converged = converges(objectives)
            if report is not None:
                report(iteration, factor, objective)
            if not converged:
                checkpoint.keep(so_far)
        result_at_hand()
    except KeyboardInterrupt:
        interrupted = True
        checkpoint.keep(so_far, now=True)
    if not (checkpoint.finished or interrupted) and objectives:
        checkpoint.keep(so_far, finished=True)
    return Course(place, Trace(tuple(factors), tuple(objectives)), converged, interrupted)


class Step(Protocol):
    """One sweep: a new posterior and its objective at the final β."""

    def __call__(self, posterior: Posterior, factor: float) -> tuple[Posterior, Objective]: ...


def fixed_point(
    step: Step,
    start: Posterior,
    schedule: Schedule,
    tol: float = 1e-6,
    max_iter: int = 200,
    report: Report | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    memory: Memory | None = None,
) -> Solution:
    """Repeat a sweep until the objective changes by less than ``tol``, relatively.

    Ctrl-C ends the loop; the best posterior so far is returned, marked as interrupted. ``memory`` is what the
    sweeps remember beside the posterior, where a checkpoint must hold it.
    """
    course = iterate(
        step, start, schedule, to_state=posterior_state, from_state=partial(posterior_from, start),
        converges=partial(settled, schedule=schedule, tol=tol), max_iter=max_iter, report=report,
        checkpoint=checkpoint, memory=memory,
    )  # fmt: skip
    return Solution(course.place, last_objective(course.trace), course.trace, course.converged, course.interrupted)


def last_objective(trace: Trace) -> Objective:
    """The objective of the last sweep; not a number where nothing was done, and the start is the best so far."""
    return trace.objectives[-1] if trace.objectives else Objective((float("nan"),), (float("nan"),), (0.0,))


def settled(objectives: Sequence[Objective], schedule: Schedule, tol: float) -> bool:
    """Whether β has come to its value and the last sweep changed the objective by at most ``tol``, relatively."""
    if len(objectives) - 1 <= schedule.n_steps:
        return False
    before, now = objectives[-2].total, objectives[-1].total
    return abs(before - now) <= tol * max(abs(now), 1e-300)


class Solver(Protocol):
    """Anything that improves a start."""

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution: ...

    @property
    def max_iter(self) -> int: ...


# restarts


class Found(Protocol):
    """What a restart leaves: how it went."""

    @property
    def trace(self) -> Trace: ...
    @property
    def converged(self) -> bool: ...
    @property
    def interrupted(self) -> bool: ...


AnyFound = TypeVar("AnyFound", bound=Found)
Job = Callable[[Report], AnyFound]


class Restart(NamedTuple):
    """One of several starts, with a generator, a report and a stage of its own."""

    number: int
    rng: np.random.Generator
    report: Report
    checkpoint: Checkpoint


def best_of(
    solve: Callable[[Restart], AnyFound],
    n_restarts: int,
    rng: np.random.Generator,
    *,
    max_iter: int,
    callback: Callback | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    one_core: bool = False,
    cost: Callable[[AnyFound], float] | None = None,
) -> AnyFound:
    """Solve from several starts, each with a spawned seed of its own, and keep the one of lowest cost.

    Parameters
    ----------
    solve : makes a start and goes on from it
    max_iter : sweeps of a start at most, for the callback
    one_core : whether a start keeps one core busy, so that several run side by side on threads
    cost : by default the total of the objective

    An interruption keeps what is done: the best so far is returned, marked as interrupted.
    """

    def job(number: int, own: np.random.Generator, stage: Checkpoint, report: Report) -> AnyFound:
        return solve(Restart(number, own, report, stage))

    jobs = (
        partial(job, number, own, checkpoint.stage(f"start {number + 1}"))
        for number, own in enumerate(rng.spawn(n_restarts))
    )

    results = side_by_side(jobs, n_restarts if one_core else 1, notifier(callback, n_restarts, max_iter))
    found = lowest(results, cost or _total, n_restarts)
    if found.interrupted and checkpoint.store is not None:
        checkpoint.store.stop()  # starts on other threads may have come to their end just then
    return found


def best_from(
    solver: Solver,
    problem: Problem,
    start: Posterior,
    callback: Callback | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Solution:
    """Solve from one given start; after Ctrl-C, with a warning, the best so far."""

    def job(report: Report) -> Solution:
        return solver.solve(problem, start, report, checkpoint)

    return lowest(side_by_side([job], 1, notifier(callback, 1, solver.max_iter)), _total, 1)


def _total(found: Found) -> float:
    objective: Objective = found.objective  # type: ignore[attr-defined]
    return objective.total


def notifier(callback: Callback | None, n_restarts: int, max_iter: int) -> Notify:
    """What tells a callback of the sweeps of all restarts."""

    def notify(restart: int, iteration: int, factor: float, objective: Objective) -> None:
        if callback is not None:
            callback(Progress(restart, n_restarts, iteration, max_iter, factor, objective))

    return notify


def lowest(results: Iterable[AnyFound], cost: Callable[[AnyFound], float], n_restarts: int) -> AnyFound:
    """The restart of lowest cost; after Ctrl-C the best so far, marked as interrupted whichever restart it was in."""
    best: AnyFound | None = None
    restart, n_iter = 0, 0  # of the last that ended
    try:
        for found in results:
            restart, n_iter = restart + 1, len(found.trace.factors)
            if best is None or cost(found) < cost(best) - TIE * abs(cost(best)):
                best = found
    except Interrupted:
        if best is None:
            raise
        warnings.warn(
            f"Interrupted in restart {restart} of {n_restarts} after {n_iter} sweeps; "
            "the best solution so far is returned.",
            InterruptedWarning,
            stacklevel=4,
        )
        best = cut_short(best)
    if best is None:
        raise ValueError("no start was given")
    return best


def cut_short(found: AnyFound) -> AnyFound:
    """The same, marked as interrupted: Ctrl-C came in what was to follow."""
    marked: AnyFound = replace(found, interrupted=True)  # type: ignore[type-var]
    return marked


def completed(found: AnyFound) -> AnyFound:
    """A result that only helps to decide something; half of it would decide wrongly, so Ctrl-C in it ends the fit."""
    if found.interrupted:
        raise Interrupted
    return found


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after all that the jobs have found so far."""


def ignore_progress(*facts: object) -> None:
    """Nobody asked for progress."""


def side_by_side(
    jobs: Iterable[Job[AnyFound]], n_jobs: int, notify: Notify = ignore_progress
) -> Generator[AnyFound, None, None]:
    """Run jobs on as many threads as numba may use; results and reports come in the order of the jobs.

    A job is asked for, on the calling thread, when a thread is free for it.

    Parameters
    ----------
    jobs : functions of a report, which they call after every sweep
    notify : callable
        Called on the calling thread with the number of the job and what it reported.

    Raises
    ------
    Interrupted
        After the last result, where the jobs were interrupted; those at work end with what they have.
    """
    n_threads = min(available_threads(), n_jobs)
    if n_threads > 1:
        yield from _on_threads(jobs, n_threads, notify)
        return
    for number, job in enumerate(jobs):
        result = job(partial(notify, number))
        yield result
        if result.interrupted:
            raise Interrupted


Reported = tuple[int, float, Objective]


def _on_threads(jobs: Iterable[Job[AnyFound]], n_threads: int, notify: Notify) -> Generator[AnyFound, None, None]:
    budget = ThreadBudget(available_threads())
    events: SimpleQueue[tuple[int, Reported | None]] = SimpleQueue()  # a job's report; None: it has ended
    runs: dict[int, Future[AnyFound]] = {}
    waiting_reports: dict[int, list[Reported]] = {}  # of jobs whose turn has not come
    ended: set[int] = set()

    def work(number: int, job: Job[AnyFound]) -> AnyFound:
        def report(iteration: int, factor: float, objective: Objective) -> None:
            events.put((number, (iteration, factor, objective)))
            budget.end_if_stopped()

        try:
            with budget.on_this_thread():
                return job(report)
        finally:
            events.put((number, None))

    # What a thread calls must not spread out beyond its share.
    with ThreadPoolExecutor(n_threads, initializer=stay_alone) as pool:
        waiting, begun, turn = iter(jobs), 0, 0
        try:
            while True:
                while budget.busy < n_threads and (job := next(waiting, None)) is not None:
                    budget.busy += 1
                    # In a copy of the caller's context: numpy keeps there what it does about overflows.
                    with ctrl_c_in_locks():
                        runs[begun] = pool.submit(copy_context().run, work, begun, job)
                    begun += 1
                if not runs:
                    return
                number, reported = _next(events)
                if reported is None:
                    budget.busy -= 1
                    ended.add(number)
                else:
                    waiting_reports.setdefault(number, []).append(reported)
                for facts in waiting_reports.pop(turn, ()):
                    notify(turn, *facts)
                while turn in ended:
                    result = runs.pop(turn).result()
                    yield result
                    turn += 1
                    for facts in waiting_reports.pop(turn, ()):
                        notify(turn, *facts)
        except KeyboardInterrupt:
            budget.stopped = True
            try:
                for run in runs.values():
                    failure = run.exception()
                    if failure is None:
                        yield run.result()
                    elif not isinstance(failure, KeyboardInterrupt):
                        raise failure from None
            except GeneratorExit:  # nobody asks for the rest, and yet it was interrupted
                raise Interrupted from None
            raise Interrupted from None
        finally:
            budget.stopped = True


@contextmanager
def ctrl_c_in_locks() -> Iterator[None]:
    """Ctrl-C as such where it met the main thread in a lock of Python's, which makes a RuntimeError of it.

    A condition that is waited for, as when a thread starts, releases its lock meanwhile; interrupted while it takes it
    again, it releases what it does not have.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def _next(events: SimpleQueue[tuple[int, Reported | None]]) -> tuple[int, Reported | None]:
    while True:
        try:
            return events.get(timeout=POLL)
        except Empty:
            continue


class CheckpointFile:
    """Keeps the stages of one fit in a file, written whole or not at all, at most every so many seconds.

    A stage is known by its name, "beta/pilot" or "start 2/partition" say. Several threads may keep theirs at a time.

    Parameters
    ----------
    key : str
        Says which fit it is: the file of another one is refused before the data is looked at. Fits say beside it
        which data and settings they have, so that with the same key other data is refused, too.
    every : float
        Seconds between two writes.
    """

    def __init__(self, path: Path, key: str, every: float) -> None:
        self.path, self.key, self.every = path, key, every
        self.stages: dict[str, State] = {}
        self.data: dict[str, str] = {}  # of each fit, known by its stage: a digest of data and settings
        self.begun: set[str] = set()
        self.written = time.monotonic()
        self.pause = every
        self.stopped = False
        self.lock = Lock()

    def read(self) -> int:
        """Take up the file of an earlier process; returns how many sweeps it knows."""
        kind, state = storage.read(self.path)
        if kind != CHECKPOINT or state.get("key") != self.key:
            raise self.of_another_fit()
        try:
            stages = state["stages"].items()
            self.data = {str(stage): str(digest) for stage, digest in state["data"].items()}
            self.stages = {str(name): {"finished": bool(kept["finished"]), **kept} for name, kept in stages}
            return sum(len(kept.get("objectives", ())) for kept in self.stages.values())
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GinghamError(f"The checkpoint {str(self.path)!r} is damaged; leave --resume out.") from None

    def of_another_fit(self) -> GinghamError:
        return GinghamError(
            f"The checkpoint {str(self.path)!r} belongs to other data or other options. "
            "Repeat the options of the interrupted run, or leave --resume out to begin again."
        )

    def bind(self, stage: str, data: str) -> None:
        with self.lock:
            if self.data.setdefault(stage, data) != data:
                raise self.of_another_fit()

    def begin(self, stage: str) -> State | None:
        with self.lock:
            if self.stopped:
                return None
            if stage in self.begun:
                raise RuntimeError(f"Two stages of a fit are named {stage!r}: a resumed fit would mix them up.")
            self.begun.add(stage)
            return self.stages.get(stage)

    def keep(self, stage: str, state: Callable[[], State], finished: bool, now: bool) -> None:
        with self.lock:
            # After Ctrl-C only what was at work then is kept: what is done later, with what there is, a fit that goes
            # on must not take for its own stages.
            if self.stopped and not (now and (stage in self.begun or not stage)):
                return
            due = now or time.monotonic() - self.written >= self.pause
            if finished or due:
                self.stages[stage] = {**state(), "finished": finished}
            if finished:
                self.stages = {name: kept for name, kept in self.stages.items() if not name.startswith(f"{stage}/")}
            self.stopped = self.stopped or now
            if due:
                self.write()

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            self.write()

    def write(self) -> None:
        began = time.monotonic()
        storage.write(self.path, CHECKPOINT, {"key": self.key, "data": self.data, "stages": self.stages})
        self.written = time.monotonic()
        if self.every:  # large states are written less often, so that a fit is not slowed by more than a tenth
            self.pause = max(self.every, 10 * (self.written - began))


@contextmanager
def kept_in(path: Path, key: str, resume: bool, every: float) -> Iterator[tuple[Checkpoint, int | None]]:
    """A checkpoint for a fit, in a file, and the sweeps that are known; None where there is no file to go on from.

    The caller removes the file when the fit has come to its end.
    """
    file = CheckpointFile(path, key, every)
    known = file.read() if resume and path.exists() else None
    try:
        with ctrl_c_in_locks():
            yield Checkpoint(file), known
    except KeyboardInterrupt:
        file.stop()
        raise
