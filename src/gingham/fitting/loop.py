"""The one fixed-point loop: progress, trace, convergence, interruption, restarts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective, Problem
from gingham.errors import InterruptedWarning
from gingham.fitting.checkpoint import Memory, begin_run
from gingham.fitting.parallel_starts import Interrupted, side_by_side
from gingham.fitting.parallel_starts import Report as Report
from gingham.fitting.schedule import Schedule


class Progress(NamedTuple):
    """What a callback is told after every sweep."""

    restart: int
    n_restarts: int
    iteration: int
    max_iter: int
    factor: float  # by which β is still raised
    objective: Objective


Callback = Callable[[Progress], None]


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


def posterior_state(posterior: Posterior) -> dict[str, Any]:
    """What a run changes of its posterior, whatever its kind: all but structure and cells, to the last bit."""
    changed = [field.name for field in fields(posterior) if field.init and field.name not in ("structure", "cells")]
    return {"values": {name: getattr(posterior, name) for name in changed}, "known": posterior.known_sums}


def posterior_from(start: Posterior, state: dict[str, Any]) -> Posterior:
    """The posterior that `posterior_state` described, with the structure and cells of a start."""
    return replace(start, **state["values"]).with_sums(state["known"])


def objective_state(objective: Objective) -> dict[str, Any]:
    """The terms of an objective, and which kind it is."""
    values = {field.name: getattr(objective, field.name) for field in fields(objective)}
    return {"kind": type(objective).__name__, "values": values}


def objective_from(state: dict[str, Any]) -> Objective:
    every: list[type[Objective]] = [Objective, *Objective.__subclasses__()]
    kinds = {kind.__name__: kind for kind in every}
    return kinds[state["kind"]](**state["values"])


class Step(Protocol):
    """One sweep: a new posterior and its objective at the final β."""

    def __call__(self, posterior: Posterior, factor: float) -> tuple[Posterior, Objective]: ...


def fixed_point(
    step: Step,
    start: Posterior,
    schedule: Schedule,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    report: Report | None = None,
    memory: Memory | None = None,
) -> Solution:
    """Repeat a sweep until the objective changes by less than ``tol``, relatively.

    Ctrl-C ends the loop; the best posterior so far is returned, marked as interrupted. ``memory`` is what the
    sweeps remember beside the posterior, where a checkpoint must hold it.
    """
    run = begin_run()
    posterior: Posterior = start
    factors: list[float] = []
    objectives: list[Objective] = []
    converged = interrupted = False
    if run.known is not None:
        posterior = posterior_from(start, run.known["posterior"])
        factors = list(run.known["factors"])
        objectives = [objective_from(state) for state in run.known["objectives"]]
        converged = run.known["converged"]
        if memory is not None:
            memory.set(run.known["memory"])
    remembered = None if memory is None else memory.get()  # after the last whole sweep: a sweep may end half done

    def so_far() -> dict[str, Any]:
        return {
            "posterior": posterior_state(posterior),
            "factors": list(factors),
            "objectives": [objective_state(objective) for objective in objectives],
            "converged": converged,
            "memory": remembered,
        }

    try:
        while not (run.finished or converged) and len(objectives) < max_iter:
            iteration = len(objectives)
            factor = schedule.factor(iteration)
            after, objective = step(posterior, factor)
            now = None if memory is None else memory.get()
            posterior, remembered, factors, objectives = after, now, [*factors, factor], [*objectives, objective]
            converged = iteration > schedule.n_steps and settled(objectives, tol)
            if report is not None:
                report(iteration, factor, objective)
            if not converged:
                run.keep(so_far)
    except KeyboardInterrupt:
        interrupted = True
        run.stop(so_far)
    if not (run.finished or interrupted) and objectives:
        run.keep(so_far, finished=True)
    # Where nothing was done, the start is the best so far.
    last = objectives[-1] if objectives else Objective((float("nan"),), (float("nan"),), (0.0,))
    return Solution(posterior, last, Trace(tuple(factors), tuple(objectives)), converged, interrupted)


def settled(objectives: Sequence[Objective], tol: float) -> bool:
    """Whether the last sweep changed the objective by no more than ``tol``, relatively."""
    before, now = objectives[-2].total, objectives[-1].total
    return abs(before - now) <= tol * max(abs(now), 1e-300)


class Solver(Protocol):
    """AnyArray that improves a start."""

    def solve(
        self,
        problem: Problem,
        start: Posterior,
        report: Report | None = None,
    ) -> Solution: ...

    @property
    def max_iter(self) -> int: ...


def progress(callback: Callback | None, n_restarts: int, max_iter: int) -> Callable[[int, int, float, Objective], None]:
    """What tells a callback of the sweeps of all restarts."""

    def tell(restart: int, iteration: int, factor: float, objective: Objective) -> None:
        if callback is not None:
            callback(Progress(restart, n_restarts, iteration, max_iter, factor, objective))

    return tell


def best_of(
    solver: Solver,
    problem: Problem,
    starts: Iterable[Posterior] | Iterator[Posterior],
    n_restarts: int = 1,
    callback: Callback | None = None,
) -> Solution:
    """Solve from each start and keep the lowest objective; an interruption keeps what is done.

    A solver that says ``one_core`` solves from several starts at a time, on threads.
    """
    jobs = (partial(solver.solve, problem, start) for start in starts)
    n_jobs = n_restarts if getattr(solver, "one_core", False) else 1
    results = side_by_side(jobs, n_jobs, progress(callback, n_restarts, solver.max_iter))
    return lowest(results, lambda solution: solution.objective.total, n_restarts)


class Found(Protocol):
    """What a restart leaves: how it went."""

    @property
    def trace(self) -> Trace: ...
    @property
    def converged(self) -> bool: ...
    @property
    def interrupted(self) -> bool: ...


AnyFound = TypeVar("AnyFound", bound=Found)


def lowest(results: Iterable[AnyFound], cost: Callable[[AnyFound], float], n_restarts: int) -> AnyFound:
    """The restart of lowest cost; after Ctrl-C the best so far, marked as interrupted whichever restart it was in."""
    best: AnyFound | None = None
    restart, n_iter = 0, 0  # of the last that ended
    try:
        for found in results:
            restart, n_iter = restart + 1, len(found.trace.factors)
            if best is None or cost(found) < cost(best):
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
