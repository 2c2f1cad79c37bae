"""The one fixed-point loop: progress, trace, convergence, interruption, restarts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
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


@dataclass(frozen=True, eq=False)
class Kept:
    """Where a run of the loop stands, so that another process can go on from there."""

    solution: Solution
    finished: bool


class Keeper(Protocol):
    """Remembers the runs of the loop within one fit, in the order in which they begin."""

    def begin(self) -> int:
        """The number of the run that begins."""

    def recall(self, run: int, start: Posterior) -> Kept | None:
        """What is known of a run from an earlier process."""

    def keep(self, run: int, kept: Kept) -> None:
        """Note where a run stands; called after every sweep."""


# Set by who wants checkpoints; sweeps are deterministic, so a run that goes on ends where it would have ended.
KEEPER: ContextVar[Keeper | None] = ContextVar("KEEPER", default=None)


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
    report: Callable[[int, float, Objective], None] | None = None,
) -> Solution:
    """Repeat a sweep until the objective changes by less than ``tol``, relatively.

    Ctrl-C ends the loop; the best posterior so far is returned, marked as interrupted.
    """
    keeper = KEEPER.get()
    at = keeper.begin() if keeper is not None else 0
    kept = keeper.recall(at, start) if keeper is not None else None
    if kept is not None and kept.finished:
        return kept.solution
    posterior: Posterior = start if kept is None else kept.solution.posterior
    factors = [] if kept is None else list(kept.solution.trace.factors)
    objectives = [] if kept is None else list(kept.solution.trace.objectives)
    objective = objectives[-1] if objectives else None
    converged = interrupted = False

    def so_far(finished: bool) -> Kept:
        trace = Trace(tuple(factors), tuple(objectives))
        return Kept(Solution(posterior, objectives[-1], trace, converged), finished)

    try:
        for iteration in range(len(objectives), max_iter):
            factor = schedule.factor(iteration)
            posterior, objective = step(posterior, factor)
            factors.append(factor)
            objectives.append(objective)
            if report is not None:
                report(iteration, factor, objective)
            if iteration > schedule.n_steps:
                converged = settled(objectives, tol)
                if converged:
                    break
            if keeper is not None:
                keeper.keep(at, so_far(finished=False))
    except KeyboardInterrupt:
        interrupted = True
    if keeper is not None and objectives:
        keeper.keep(at, so_far(finished=not interrupted))
    if objective is None:  # nothing was done: the start is the best so far
        posterior, objective = start, Objective((float("nan"),), (float("nan"),), (0.0,))
    return Solution(posterior, objective, Trace(tuple(factors), tuple(objectives)), converged, interrupted)


def settled(objectives: Sequence[Objective], tol: float) -> bool:
    """Whether the last sweep changed the objective by no more than ``tol``, relatively."""
    before, now = objectives[-2].total, objectives[-1].total
    return abs(before - now) <= tol * max(abs(now), 1e-300)


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
