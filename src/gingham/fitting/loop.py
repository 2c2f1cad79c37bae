"""The one loop of all solvers, and restarts: progress, convergence, interruption, the best of several starts.

A solver is four things: a first state (`init`), a `step` to the next one, a rule that ends the loop (`terminate`), and
what it makes of the last state. The loop keeps the trace and the checkpoint, and reads the flag of Ctrl-C.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from gingham.arrays import Floats
from gingham.core.problem import Objective, Posterior, Problem
from gingham.engine.threads import side_by_side
from gingham.errors import InterruptedWarning, positive_integer
from gingham.fitting.checkpoints import (
    NO_CHECKPOINT,
    Checkpoint,
    objective_from,
    objective_state,
    posterior_from,
    posterior_state,
)
from gingham.fitting.interruption import end_if_interrupted, interrupted
from gingham.fitting.schedules import Schedule
from gingham.storage import State

TIE = 1e-9  # relative: of two restarts closer than this the first is kept, so that rounding does not choose

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


# the loop

LoopState = TypeVar("LoopState")


class Memory(NamedTuple):
    """What a solver remembers from sweep to sweep beside its posterior."""

    get: Callable[[], object]
    set: Callable[[object], None]


def rng_state(rng: np.random.Generator) -> Memory:
    """Where a generator stands."""

    def restore(state: object) -> None:
        rng.bit_generator.state = cast("dict[str, object]", state)

    return Memory(lambda: rng.bit_generator.state, restore)


@dataclass(frozen=True, eq=False)
class Run(Generic[LoopState]):
    """The state in which a loop ended, and how it went."""

    state: LoopState
    trace: Trace
    converged: bool
    interrupted: bool


def iterate(
    step: Callable[[LoopState, float], tuple[LoopState, Objective]],
    init: LoopState,
    schedule: Schedule,
    *,
    to_file: Callable[[LoopState], State],
    from_file: Callable[[State], LoopState],
    terminate: Callable[[Sequence[Objective]], bool],
    max_iter: int,
    report: Report | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    memory: Memory | None = None,
) -> Run[LoopState]:
    """Repeat a step until the solver says that it is done, once at least; Ctrl-C ends the loop after a step.

    Parameters
    ----------
    step : a state and the factor by which β is raised → the next state and its objective at the final β
    to_file, from_file : a state as a checkpoint holds it, with arrays that no later step changes, and back
    terminate : whether the objectives so far say that nothing more will change
    memory : what steps remember beside the state, where a checkpoint must hold it
    """
    state, known = init, checkpoint.known
    factors: list[float] = []
    objectives: list[Objective] = []
    converged = ended = stopped = False
    if known is not None:
        state = from_file(known["state"])
        factors = list(known["factors"])
        objectives = [objective_from(kept) for kept in known["objectives"]]
        converged, ended = known["converged"], checkpoint.finished
        if memory is not None:
            memory.set(known["memory"])

    def so_far() -> State:
        return {
            "state": to_file(state),
            "factors": list(factors),
            "objectives": [objective_state(objective) for objective in objectives],
            "converged": converged,
            "memory": None if memory is None else memory.get(),
        }

    while not (ended or stopped):
        iteration = len(objectives)
        factors.append(schedule.factor(iteration))
        state, objective = step(state, factors[-1])
        objectives.append(objective)
        converged = terminate(objectives)
        if report is not None:
            report(iteration, factors[-1], objective)
        ended = converged or len(objectives) >= max_iter
        stopped = interrupted() and not ended
        checkpoint.keep(so_far, finished=ended, now=stopped)
    return Run(state, Trace(tuple(factors), tuple(objectives)), converged, stopped)


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

    Ctrl-C ends the loop after a sweep; the posterior so far is returned, marked as interrupted. ``memory`` is what
    the sweeps remember beside the posterior, where a checkpoint must hold it.
    """
    run = iterate(
        step, start, schedule, to_file=posterior_state, from_file=partial(posterior_from, start),
        terminate=partial(settled, schedule=schedule, tol=tol), max_iter=max_iter, report=report,
        checkpoint=checkpoint, memory=memory,
    )  # fmt: skip
    return solution_of(run, run.state)


def solution_of(run: Run[LoopState], posterior: Posterior) -> Solution:
    """What a loop has found, with the posterior of its last state."""
    return Solution(posterior, run.trace.objectives[-1], run.trace, run.converged, run.interrupted)


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

    After Ctrl-C the best so far is returned, marked as interrupted whichever restart it was in; no other one begins.

    Parameters
    ----------
    solve : makes a start and goes on from it
    max_iter : sweeps of a start at most, for the callback
    one_core : whether a start keeps one core busy, so that several run side by side on threads
    cost : by default the total of the objective
    """
    end_if_interrupted()
    n_restarts = positive_integer("n_init", n_restarts)
    price: Callable[[AnyFound], float] = cost or attrgetter("objective.total")
    notify = notifier(callback, n_restarts, max_iter)

    def job(number: int, own: np.random.Generator, stage: Checkpoint, report: Report) -> AnyFound | None:
        return None if number and interrupted() else solve(Restart(number, own, report, stage))

    jobs = [
        partial(job, number, own, checkpoint.stage(f"start {number + 1}"))
        for number, own in enumerate(rng.spawn(n_restarts))
    ]
    ended: list[AnyFound] = []
    best: AnyFound | None = None
    for found in side_by_side(jobs, n_restarts if one_core else 1, notify):
        if found is not None:
            ended.append(found)
            if best is None or price(found) < price(best) - TIE * abs(price(best)):
                best = found
    if best is None:
        raise ValueError("no start has ended")
    if len(ended) == n_restarts and not any(found.interrupted for found in ended):
        return best
    warn_interrupted(len(ended), n_restarts, ended[-1])
    checkpoint.stop()  # starts on other threads may have come to their end just then
    return mark_interrupted(best)


def best_from(
    solver: Solver,
    problem: Problem,
    start: Posterior,
    callback: Callback | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Solution:
    """Solve from one given start; after Ctrl-C, with a warning, the best so far."""

    notify = partial(notifier(callback, 1, solver.max_iter), 0)
    found = solver.solve(problem, start, notify, checkpoint)
    if found.interrupted:
        warn_interrupted(1, 1, found)
    return found


def notifier(callback: Callback | None, n_restarts: int, max_iter: int) -> Notify:
    """What tells a callback of the sweeps of all restarts."""

    def notify(restart: int, iteration: int, factor: float, objective: Objective) -> None:
        if callback is not None:
            callback(Progress(restart, n_restarts, iteration, max_iter, factor, objective))

    return notify


def warn_interrupted(restart: int, n_restarts: int, found: Found) -> None:
    """Say where a fit was interrupted, to whoever called it."""
    warnings.warn(
        f"Interrupted in restart {restart} of {n_restarts} after {len(found.trace.factors)} sweeps; "
        "the best solution so far is returned.",
        InterruptedWarning,
        stacklevel=4,
    )


def mark_interrupted(found: AnyFound) -> AnyFound:
    """The same, marked as interrupted: Ctrl-C came in what was to follow."""
    marked: AnyFound = replace(found, interrupted=True)  # type: ignore[type-var]
    return marked


def completed(found: AnyFound) -> AnyFound:
    """A result that only helps to decide something; half of it would decide wrongly, so Ctrl-C in it ends the fit."""
    if found.interrupted:
        raise KeyboardInterrupt
    return found


def ignore_progress(*facts: object) -> None:
    """Nobody asked for progress."""
