"""Alternating projections on a GPU: the same descent as `projection`, with nothing but the objective coming back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from gingham.cells import CellModel, Logarithmic, Quadratic, TableLoss
from gingham.errors import GinghamError
from gingham.posterior import Posterior
from gingham.problem import Objective, Problem
from gingham.solvers.loop import Solution, fixed_point
from gingham.solvers.schedule import Schedule

WORTHWHILE = 2 * 10**8  # multiply-adds a sweep from which moving the data to a GPU pays


def chosen(backend: str, problem: Problem, start: Posterior) -> bool:
    """Whether the fit runs through torch: when asked for, or when there is a GPU and the data is large enough."""
    if backend == "torch":
        if find_spec("torch") is None:
            raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
        return True
    if backend != "auto" or len(problem.samples) > 1 or not fits(problem):
        return False
    work = problem.samples[0].n_rows * sum(start.n_clusters)
    if work < WORTHWHILE or find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def fits(problem: Problem) -> bool:
    """One grid of at least one mode, every mode once, with cells the device knows."""
    return len(problem.samples) == 1 and isinstance(problem.cells[0], TableLoss | Quadratic | Logarithmic)


def solve(
    problem: Problem,
    start: Posterior,
    schedule: Schedule,
    tol: float,
    max_iter: int,
    report: Callable[[int, float, Objective], None] | None,
    dtype: str | None = None,
) -> Solution:
    """`Projection.solve` on the device; float32 on a GPU, float64 without one."""
    if not fits(problem):
        raise GinghamError(
            f"backend='torch' serves one grid with table, quadratic or log loss, not {type(problem.cells[0]).__name__} "
            "cells or several relations: use backend='compiled'."
        )
    from gingham.kernels import accelerated, device_grid

    (sample,), (cell,), (beta,) = problem.samples, problem.cells, problem.betas
    kind = dtype or ("float32" if accelerated.device_name() == "cuda" else "float64")
    one_hot = not isinstance(cell, Quadratic)
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    grid = device_grid.make_grid(
        sample.codes,
        sample.label_codes if one_hot else None,
        None if one_hot else cell.features.evaluate(labels),  # type: ignore[union-attr]
        sample.weights,
        sample.shape,
        _device_cell(cell),
        start.assign,
        start.answers[0],
        dtype=kind,
    )

    def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
        loss, *information = grid.sweep(beta * factor).tolist()
        return posterior, Objective((loss,), tuple(max(0.0, i) for i in information), problem.betas)

    solution = fixed_point(sweep, start, schedule, tol=tol, max_iter=max_iter, report=report)
    if solution.n_iter == 0:
        return solution
    assign = []
    for q in grid.assigns:
        rows = q.double().cpu().numpy()
        assign.append(rows / rows.sum(axis=1, keepdims=True))  # float32 rows sum to one only nearly
    posterior = Posterior(start.structure, start.cells, tuple(assign), (grid.answers.cpu().numpy(),))
    return replace(solution, posterior=posterior)


def _device_cell(cell: CellModel) -> Any:
    """The torch twin of a cell model."""
    import torch

    from gingham.kernels import accelerated, device_grid

    if isinstance(cell, TableLoss):
        return device_grid.TableCell(torch.as_tensor(cell.table).to(accelerated.device_name()))
    if isinstance(cell, Logarithmic):
        return device_grid.LogCell(cell.smoothing / cell.alphabet.size)
    return device_grid.QuadraticCell()
