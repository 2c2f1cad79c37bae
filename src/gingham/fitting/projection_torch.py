"""Alternating projections on a GPU: the same descent as `projection`, with nothing but the objective coming back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gingham.cells.base import ON_DEVICE, refuse_unmet, unmet
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective, Problem
from gingham.errors import GinghamError
from gingham.fitting.loop import Solution, Trace, fixed_point, settled
from gingham.fitting.schedule import Schedule
from gingham.kernels.project import on_device

NEEDS = (ON_DEVICE,)


def chosen(backend: str, problem: Problem, start: Posterior) -> bool:
    """Whether the fit runs through torch: when asked for, or when there is a GPU and the data is large enough."""
    if backend == "auto" and not fits(problem):
        return False
    return on_device(backend, problem.samples[0].n_rows * sum(start.n_clusters))


def together(backend: str, problem: Problem, n_clusters: Sequence[int], n_members: int) -> bool:
    """Whether several fits of one problem go through torch side by side (two modes)."""
    if problem.samples[0].n_modes != 2 or not fits(problem):
        return False
    return on_device(backend, problem.samples[0].n_rows * sum(n_clusters) * n_members)


def fits(problem: Problem) -> bool:
    """One grid of at least one mode, every mode once and none frozen, with cells the device knows."""
    return len(problem.samples) == 1 and not problem.structure.frozen and unmet(NEEDS, problem.cells) is None


def solve(
    problem: Problem,
    start: Posterior,
    schedule: Schedule,
    tol: float,
    max_iter: int,
    report: Callable[[int, float, Objective], None] | None,
    dtype: str | None = None,
) -> Solution:
    """`Projection.solve` on the device; by default float32 on a GPU, float64 without one."""
    refuse_unmet("backend='torch'", NEEDS, problem.cells)
    if not fits(problem):
        raise GinghamError(
            "backend='torch' serves one grid, nothing frozen, not several relations: use backend='compiled'."
        )
    from gingham.kernels import grid_torch as device_grid

    (beta,) = problem.betas
    tuples, cell, kind = _on_device(problem)
    grid = device_grid.make_grid(
        **tuples, cell=cell, assigns=start.assign, answers=start.answers[0], dtype=dtype or kind
    )

    def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
        return posterior, _objective(grid.sweep(beta * factor).tolist(), problem)

    solution = fixed_point(sweep, start, schedule, tol=tol, max_iter=max_iter, report=report)
    if solution.n_iter == 0:
        return solution
    return replace(solution, posterior=_posterior(start, grid.assigns, grid.answers))


def solve_together(
    problem: Problem,
    starts: Sequence[Posterior],
    schedule: Schedule,
    tol: float,
    max_iter: int,
    dtype: str | None = None,
) -> list[Solution]:
    """`solve` from several starts of equal sizes in one go; each member ends where it would have ended alone.

    Ctrl-C ends all of them; what they have reached is returned, marked as interrupted.
    """
    from gingham.kernels import grid_torch as device_grid

    (beta,) = problem.betas
    tuples, cell, kind = _on_device(problem)
    assigns = [np.stack([start.assign[mode] for start in starts]) for mode in range(2)]
    answers = np.stack([start.answers[0] for start in starts])
    grid = device_grid.make_members(**tuples, cell=cell, assigns=assigns, answers=answers, dtype=dtype or kind)
    done: dict[int, Solution] = {}
    factors: list[float] = []
    objectives: list[list[Objective]] = [[] for _ in starts]

    def end(b: int, converged: bool, interrupted: bool) -> None:
        trace = Trace(tuple(factors), tuple(objectives[b]))
        found = _posterior(starts[b], [q[b] for q in grid.assigns], grid.answers[b])
        done[b] = Solution(found, objectives[b][-1], trace, converged, interrupted)

    interrupted = False
    try:
        for iteration in range(max_iter):
            factor = schedule.factor(iteration)
            terms = grid.sweep(beta * factor).tolist()
            factors.append(factor)
            for b in set(range(len(starts))) - set(done):
                objectives[b].append(_objective(terms[b], problem))
                if iteration > schedule.n_steps and settled(objectives[b], tol):
                    end(b, converged=True, interrupted=False)
            if len(done) == len(starts):
                break
    except KeyboardInterrupt:
        if not all(objectives):
            raise
        interrupted = True
    for b in set(range(len(starts))) - set(done):
        end(b, converged=False, interrupted=interrupted)
    return [done[b] for b in range(len(starts))]


def _on_device(problem: Problem) -> tuple[dict[str, Any], Any, str]:
    """The tuples and the cell in the device's terms, and the dtype to use: float32 on a GPU, float64 without."""
    from gingham.kernels import project_torch as accelerated

    (sample,), (cell,) = problem.samples, problem.cells
    one_hot = cell.features.one_hot
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    tuples = {
        "codes": sample.codes,
        "labels": sample.label_codes if one_hot else None,
        "features": None if one_hot else cell.features.evaluate(labels),
        "weights": sample.weights,
        "shape": sample.shape,
    }
    placed = cell.placed(accelerated.to_device)
    return tuples, placed, "float32" if accelerated.device_name() == "cuda" else "float64"


def _objective(terms: Sequence[float], problem: Problem) -> Objective:
    loss, *information = terms
    return Objective((loss,), tuple(max(0.0, i) for i in information), problem.betas)


def _posterior(start: Posterior, assigns: Sequence[Any], answers: Any) -> Posterior:
    """What the device holds, in float64; float32 rows sum to one only nearly."""
    rows = [q.double().cpu().numpy() for q in assigns]
    assign = tuple(q / q.sum(axis=1, keepdims=True) for q in rows)
    return Posterior(start.structure, start.cells, assign, (answers.cpu().numpy(),))
