"""Alternating projections on a GPU: the same descent as `projection`, with nothing but the objective coming back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gingham.cells.base import refuse_unmet
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective, Problem
from gingham.errors import GinghamError
from gingham.fitting.loop import (
    NO_CHECKPOINT,
    Checkpoint,
    Report,
    Schedule,
    Solution,
    Trace,
    iterate,
    last_objective,
    settled,
)
from gingham.fitting.projection import TORCH_NEEDS, supports_torch
from gingham.storage import State

if TYPE_CHECKING:
    from torch import Tensor

    from gingham.kernels.grid_torch import Cell

    Snapshot = dict[str, list[Tensor]]


def solve(
    problem: Problem,
    start: Posterior,
    schedule: Schedule,
    tol: float,
    max_iter: int,
    report: Report | None,
    dtype: str | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Solution:
    """`Projection.solve` on the device; by default float32 on a GPU, float64 without one."""
    refuse_unmet("backend='torch'", TORCH_NEEDS, problem.cells)
    if not supports_torch(problem):
        raise GinghamError(
            "backend='torch' serves one grid, nothing frozen, not several relations: use backend='compiled'."
        )
    from gingham.kernels import grid_torch as device_grid

    (beta,) = problem.betas
    tuples, cell, kind = _on_device(problem)
    grid = device_grid.make_grid(
        **tuples, cell=cell, assigns=start.assign, answers=start.answers[0], dtype=dtype or kind
    )

    def snapshot() -> Snapshot:
        """What a checkpoint needs; it stays on the device until it is written."""
        return grid.snapshot() if checkpoint.active else {}

    def restore(state: State) -> Snapshot:
        grid.restore(state)
        return snapshot()

    def sweep(_: Snapshot, factor: float) -> tuple[Snapshot, Objective]:
        objective = _objective(grid.sweep(beta * factor).tolist(), problem)
        return snapshot(), objective

    course = iterate(
        sweep, snapshot(), schedule, to_state=_on_host, from_state=restore,
        converges=partial(settled, schedule=schedule, tol=tol), max_iter=max_iter, report=report, checkpoint=checkpoint,
    )  # fmt: skip
    posterior = _posterior(start, grid.assigns, grid.answers) if course.trace.factors else start
    return Solution(posterior, last_objective(course.trace), course.trace, course.converged, course.interrupted)


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
                if settled(objectives[b], schedule, tol):
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


def _on_device(problem: Problem) -> tuple[State, Cell, str]:
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


def _on_host(snapshot: Snapshot) -> State:
    return {name: [tensor.cpu().numpy() for tensor in tensors] for name, tensors in snapshot.items()}


def _objective(terms: Sequence[float], problem: Problem) -> Objective:
    loss, *information = terms
    return Objective((loss,), tuple(max(0.0, i) for i in information), problem.betas)


def _posterior(start: Posterior, assigns: Sequence[Tensor], answers: Tensor) -> Posterior:
    """What the device holds, in float64; float32 rows sum to one only nearly."""
    rows = [q.double().cpu().numpy() for q in assigns]
    assign = tuple(q / q.sum(axis=1, keepdims=True) for q in rows)
    return Posterior(start.structure, start.cells, assign, (answers.cpu().numpy(),))
