"""Alternating projections on a GPU: the same descent as `projection`, with nothing but the objective coming back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gingham.arrays import AnyArray
from gingham.cells.losses import refuse_unmet
from gingham.core.problem import Objective, Posterior, Problem
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, Trace, iterate, settled, solution_of
from gingham.fitting.projection import TORCH_NEEDS, supports_torch
from gingham.fitting.schedules import Schedule
from gingham.storage import State

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gingham.engine.grid_torch import Cell, Grid
    from gingham.engine.project_torch import DeviceRows


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
        raise GinghamError("backend='torch' supports a single grid without frozen modes: use backend='compiled'.")
    from gingham.engine.grid_torch import Grid

    (beta,) = problem.betas
    assigns, answers = _tables(start.assign, start.answers[0], dtype)
    layouts, cell = _on_device(problem, start.n_clusters, assigns[0].dtype)
    grid = Grid(layouts, cell, assigns, answers)

    def sweep(grid: Grid, factor: float) -> tuple[Grid, Objective]:
        return grid, _objective(grid.sweep(beta * factor).tolist(), problem)

    def kept(grid: Grid) -> State:
        return {name: [tensor.cpu().numpy() for tensor in tensors] for name, tensors in grid.snapshot().items()}

    def restored(state: State) -> Grid:
        grid.restore(state)
        return grid

    run = iterate(
        sweep, grid, schedule, to_file=kept, from_file=restored,
        terminate=partial(settled, schedule=schedule, tol=tol), max_iter=max_iter, report=report, checkpoint=checkpoint,
    )  # fmt: skip
    return solution_of(run, _posterior(start, grid.assigns, grid.answers))


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
    import torch

    from gingham.engine.grid_torch import Members

    (beta,) = problem.betas
    tables = [_tables(start.assign, start.answers[0], dtype) for start in starts]
    assigns = [torch.stack(of_mode) for of_mode in zip(*(of_start for of_start, _ in tables))]
    answers = torch.stack([own for _, own in tables])
    widths = [len(starts) * m for m in starts[0].n_clusters]
    layouts, cell = _on_device(problem, widths, assigns[0].dtype)
    grid = Members(layouts, cell, assigns, answers)
    done: dict[int, Solution] = {}
    objectives: list[list[Objective]] = [[] for _ in starts]

    def end(b: int, converged: bool, interrupted: bool) -> None:
        trace = Trace(tuple(map(schedule.factor, range(len(objectives[b])))), tuple(objectives[b]))
        found = _posterior(starts[b], [q[b] for q in grid.assigns], grid.answers[b])
        done[b] = Solution(found, objectives[b][-1], trace, converged, interrupted)

    def sweep(_: None, factor: float) -> tuple[None, Objective]:
        terms = grid.sweep(beta * factor).tolist()
        for b in set(range(len(starts))) - set(done):
            objectives[b].append(_objective(terms[b], problem))
            if settled(objectives[b], schedule, tol):
                end(b, converged=True, interrupted=False)
        return None, objectives[0][-1]

    run = iterate(
        sweep, None, schedule, to_file=lambda _: {}, from_file=lambda _: None,
        terminate=lambda _: len(done) == len(starts), max_iter=max_iter,
    )  # fmt: skip
    for b in set(range(len(starts))) - set(done):
        end(b, converged=False, interrupted=run.interrupted)
    return [done[b] for b in range(len(starts))]


def _on_device(problem: Problem, widths: Sequence[int], kind: torch.dtype) -> tuple[list[DeviceRows], Cell]:
    """The observations sorted for every mode, for so many clusters, and the cell in the device's terms."""
    from gingham.engine.project_torch import to_device

    sample, (cell,) = problem.samples[0].placed(), problem.cells
    layouts = []
    for axis in range(sample.n_modes):
        others = [width for j, width in enumerate(widths) if j != axis]
        layouts.append(sample.layout(axis, cell.features, others, kind))
    return layouts, cell.placed(to_device)


def _tables(assigns: Sequence[AnyArray], answers: AnyArray, dtype: str | None) -> tuple[list[Tensor], Tensor]:
    """A start on the device; memberships are copies, for sweeps write into them."""
    import torch

    from gingham.engine.project_torch import device_name, to_device

    kind = getattr(torch, dtype or ("float32" if device_name() == "cuda" else "float64"))
    return [to_device(q).to(kind, copy=True) for q in assigns], to_device(answers)


def _objective(terms: Sequence[float], problem: Problem) -> Objective:
    loss, *information = terms
    return Objective((loss,), tuple(max(0.0, i) for i in information), problem.betas)


def _posterior(start: Posterior, assigns: Sequence[Tensor], answers: Tensor) -> Posterior:
    """What the device holds, in float64, with its sums; float32 rows sum to one only nearly."""
    from torch.special import xlogy

    assign, mass, information = [], [], []
    for q in assigns:
        rows = q.double()
        rows = rows / rows.sum(1, keepdim=True)
        share = rows.mean(0)
        information.append(max(0.0, float(xlogy(rows, rows).sum() / len(rows) - xlogy(share, share).sum())))
        assign.append(rows.cpu().numpy())
        mass.append(share.cpu().numpy())
    found = Posterior(start.structure, start.cells, tuple(assign), (answers.cpu().numpy(),))
    return found.with_sums({"mass": tuple(mass), "information": tuple(information)})
