"""The one fixed-point loop: progress, trace, convergence, interruption, restarts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from gingham.arrays import Floats
from gingham.errors import InterruptedWarning
from gingham.posterior import Posterior
from gingham.problem import Objective, Problem
from gingham.solvers.schedule import Schedule


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


class Step(Protocol):
    """One sweep: a new posterior and its objective at the final β."""

    def __call__(self, posterior: Posterior, factor: float) -> tuple[Posterior, Objective]: ...


def fixed_point(
    step: Step,
    start: Posterior,
    schedule: Schedule,
    *,
    tol: float = 1e-7,
    max_iter: int = 200,
    report: Callable[[int, float, Objective], None] | None = None,
) -> Solution:
    """Repeat a sweep until the objective changes by less than ``tol``, relatively.

    Ctrl-C ends the loop; the best posterior so far is returned, marked as interrupted.
    """
    posterior, objective = start, None
    factors: list[float] = []
    objectives: list[Objective] = []
    converged = interrupted = False
    try:
        for iteration in range(max_iter):
            factor = schedule.factor(iteration)
            posterior, objective = step(posterior, factor)
            factors.append(factor)
            objectives.append(objective)
            if report is not None:
                report(iteration, factor, objective)
            if iteration > schedule.n_steps:
                before, now = objectives[-2].total, objective.total
                if abs(before - now) <= tol * max(abs(now), 1e-300):
                    converged = True
                    break
    except KeyboardInterrupt:
        interrupted = True
    if objective is None:  # nothing was done: the start is the best so far
        posterior, objective = start, Objective((float("nan"),), (float("nan"),), (0.0,))
    return Solution(posterior, objective, Trace(tuple(factors), tuple(objectives)), converged, interrupted)


class Solver(Protocol):
    """Anything that improves a start."""

    def solve(
        self,
        problem: Problem,
        start: Posterior,
        report: Callable[[int, float, Objective], None] | None = None,
    ) -> Solution: ...

    @property
    def max_iter(self) -> int: ...


def best_of(
    solver: Solver,
    problem: Problem,
    starts: Iterable[Posterior] | Iterator[Posterior],
    n_restarts: int = 1,
    callback: Callback | None = None,
) -> Solution:
    """Solve from each start and keep the lowest objective; an interruption keeps what is done."""
    best: Solution | None = None
    for restart, start in enumerate(starts):

        def report(iteration: int, factor: float, objective: Objective, restart: int = restart) -> None:
            if callback is not None:
                callback(Progress(restart, n_restarts, iteration, solver.max_iter, factor, objective))

        solution = solver.solve(problem, start, report)
        if best is None or solution.objective.total < best.objective.total:
            best = solution
        if solution.interrupted:
            warnings.warn(
                f"Interrupted in restart {restart + 1} of {n_restarts} after {solution.n_iter} sweeps; "
                "the best solution so far is returned.",
                InterruptedWarning,
                stacklevel=3,
            )
            break
    if best is None:
        raise ValueError("no start was given")
    return best
