"""Soft co-clustering by alternating projections (P0 Algorithm 1), any d ≥ 1, any cell model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import softmax

from gingham.arrays import Floats
from gingham.cells.losses import ON_DEVICE, unmet
from gingham.core.problem import Objective, Posterior, Problem, check_table, information_terms
from gingham.data.graphs import PairSample
from gingham.engine.half_step import by_cell, by_cluster, memberships
from gingham.engine.place import USUAL_SWEEPS, Work, check_name, goes_to_device
from gingham.engine.project import project_cost
from gingham.engine.threads import one_blas_thread
from gingham.errors import GinghamError, positive_integer
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, fixed_point
from gingham.fitting.schedules import Down, Schedule, checked_schedule
from gingham.storage import savable

if TYPE_CHECKING:
    from gingham.engine.project_compiled import Tiles

DTYPES = ("float64", "float32")
HALVINGS = 12  # of a damped step, before it is given up
TORCH_NEEDS = (ON_DEVICE,)  # of cells


@savable
@dataclass(frozen=True)
class Projection:
    """Block descent on F(Q, β): each mode's memberships, then its masses, then the answers, exactly.

    Every half step minimises F over one block, so at constant β the objective never rises. Where a mode stands more
    than once in a relation, the loss is not linear in it: it takes a damped step, which is kept only when F falls.

    Parameters
    ----------
    schedule : Down or Constant
        ``Down()`` begins at 5β, so that clusters form before information is priced.
    tol : float
        A fit has converged when the objective changes relatively by less than this.
    max_iter : int
        Sweeps; an estimator that is given this solver uses its own ``max_iter``.
    backend : {"auto", "compiled", "torch"}
        "auto" compiles for the CPU, and goes to a GPU through torch when there is one and the data is large enough to
        pay; "torch" asks for torch, on a GPU (float32) or without one (float64).
    dtype : {"float64", "float32"}, optional
        Of memberships and sums while it runs; by default float64 on the CPU, float32 on a GPU. float32 needs half the
        memory and, on large data, about half the time. The objective is right to about 1e-6, so that it may seem to
        rise by as much; the posterior is float64.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, solver=gg.fitting.Projection(tol=1e-4, dtype="float32"))
    """

    one_core: ClassVar[bool] = False  # its blocks are spread over all cores

    schedule: Schedule = field(default_factory=Down)
    tol: float = 1e-6
    max_iter: int = 200
    backend: str = "auto"
    dtype: str | None = None

    def __post_init__(self) -> None:
        checked_schedule(self.schedule)
        check_name(self.backend)
        if self.dtype not in (None, *DTYPES):
            raise GinghamError(f"dtype={self.dtype!r} is unknown; choose one of {', '.join(DTYPES)}.")
        positive_integer("max_iter", self.max_iter)
        if not self.tol >= 0:
            raise GinghamError(f"tol={self.tol!r} must be a number ≥ 0.")

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        structure = problem.structure
        if structure.repeats and any(isinstance(sample, PairSample) for sample in problem.samples):
            raise GinghamError("Projection does not know pairs that are not listed: use a solver of graphs.")
        for relation, cell in enumerate(problem.cells):
            check_table([q.shape[1] for q in start.factor(relation)], cell.features.size)
        if problem.samples[0].on_device or self.backend == "torch":
            from gingham.fitting import projection_torch

            rule = (self.schedule, self.tol, self.max_iter)
            return projection_torch.solve(problem, start, *rule, report, self.dtype, checkpoint)
        dtype = self.dtype or "float64"
        tiles: dict[int, Tiles | None] = {}
        moving = [mode for mode in range(structure.n_modes) if mode not in structure.frozen and structure.uses(mode)]
        repeated = {mode for factor in structure.factors for mode in factor if factor.count(mode) > 1}
        if self.backend in ("auto", "compiled") and len(problem.samples) == 1 and not repeated:
            tiles = {mode: tiles_of(problem, start, mode, dtype) for mode in moving}

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            losses = dict.fromkeys(range(len(problem.samples)), 0.0)
            for mode in moving:
                posterior, changed = (
                    damped_step(problem, posterior, mode, factor, self.backend)
                    if mode in repeated
                    else half_step(problem, posterior, mode, factor, self.backend, dtype, tiles.get(mode))
                )
                losses |= changed
            return posterior, Objective(
                losses=tuple(losses[r] for r in range(len(problem.samples))),
                information=information_terms(posterior),
                betas=problem.betas,
            )

        with one_blas_thread():
            solution = fixed_point(sweep, start, self.schedule, self.tol, self.max_iter, report, checkpoint)
        return solution if dtype == "float64" else replace(solution, posterior=in_double(solution.posterior))


def fits_together(backend: str, problem: Problem, n_clusters: tuple[int, ...], n_fits: int) -> bool:
    """Whether several fits of one problem go through torch side by side (two modes)."""
    (sample, *_), (cell, *_) = problem.samples, problem.cells
    if sample.n_modes != 2 or not supports_torch(problem):
        return False
    return sample.on_device or goes_to_device(
        backend, lambda: Work(sample.n_rows, sample.shape, n_clusters, cell.features.size, n_fits * USUAL_SWEEPS)
    )


def supports_torch(problem: Problem) -> bool:
    """One grid of at least one mode, every mode once and none frozen, with cells the device knows."""
    structure = problem.structure
    plain = len(problem.samples) == 1 and not structure.frozen and not structure.repeats
    return plain and unmet(TORCH_NEEDS, problem.cells) is None


def half_step(
    problem: Problem,
    posterior: Posterior,
    mode: int,
    factor: float = 1.0,
    backend: str = "auto",
    dtype: str = "float64",
    tiles: Tiles | None = None,
) -> tuple[Posterior, dict[int, float]]:
    """Minimise F over one mode's memberships, then over its masses and the answers it meets.

    q(c|x) ∝ qbar(c) exp(−Σ_r β_r G_r[x, c]) with G = N ∂L̂/∂q (P0 eqs. 40-42).

    Returns the new posterior and N_r L̂_r of the relations that this mode meets.
    """
    uses = problem.structure.uses(mode)
    coefs = [
        by_cluster(posterior.cells[relation].coef(posterior.answers[relation]), position) for relation, position in uses
    ]
    others = [[q for j, q in enumerate(posterior.factor(relation)) if j != position] for relation, position in uses]
    layouts = [
        problem.samples[relation].rows(position, problem.cells[relation].features) for relation, position in uses
    ]
    betas = [factor * problem.betas[relation] for relation, _ in uses]
    new, mass, entropy, statistics = memberships(
        layouts, others, coefs, betas, posterior.mass[mode], backend, dtype, tiles
    )
    answers = list(posterior.answers)
    losses = {}
    for (relation, position), table in zip(uses, statistics):
        cell = problem.cells[relation]
        cells = by_cell(table, [q.shape[1] for q in posterior.factor(relation)], position)
        answers[relation] = cell.answer(cells)
        losses[relation] = float(cell.loss(answers[relation], cells).sum())
    return posterior.moved(mode, new, mass / len(new), entropy / len(new), tuple(answers)), losses


def damped(old: Floats, target: Floats) -> Iterator[Floats]:
    """Memberships on the way from a target back to the old ones, in the log domain, each step half the one before.

    For modes in which the loss is not linear: the full step may overshoot.
    """
    with np.errstate(divide="ignore"):
        log_old, log_target = np.log(old), np.log(target)
    yield target
    for step in 0.5 ** np.arange(1, HALVINGS):
        yield softmax((1.0 - step) * log_old + step * log_target, axis=1)


def mode_cost(problem: Problem, posterior: Posterior, mode: int, backend: str = "auto") -> Floats:
    """Σ_r β_r N_r ∂L̂_r/∂q(c|x), shape (n, m), over all places at which the mode stands."""
    cost = np.zeros(posterior.assign[mode].shape)
    for relation, position in problem.structure.uses(mode):
        rows = problem.samples[relation].rows(position, problem.cells[relation].features)
        others = [q for j, q in enumerate(posterior.factor(relation)) if j != position]
        coef = by_cluster(posterior.cells[relation].coef(posterior.answers[relation]), position)
        cost += problem.betas[relation] * project_cost(rows, others, coef, backend)
    return cost


def damped_step(
    problem: Problem, posterior: Posterior, mode: int, factor: float = 1.0, backend: str = "auto"
) -> tuple[Posterior, dict[int, float]]:
    """Move one mode along its gradient step in the log domain, halving it until the objective falls.

    Where a mode meets itself the loss is not linear in its memberships, and the full step may overshoot
    (P1's parallel update oscillates). Returns the new posterior and N_r L̂_r of its relations.
    """
    relations = sorted({relation for relation, _ in problem.structure.uses(mode)})

    def settled(q: Floats) -> tuple[Posterior, dict[int, float], float]:
        """The posterior with these memberships and best answers, its losses, and what of F depends on them."""
        assign = list(posterior.assign)
        assign[mode] = q
        answers, losses = list(posterior.answers), {}
        moved = replace(posterior, assign=tuple(assign))
        for relation in relations:
            cell = problem.cells[relation]
            cells = moved.statistics(problem.samples[relation], relation, backend=backend)
            answers[relation] = cell.answer(cells)
            losses[relation] = float(cell.loss(answers[relation], cells).sum())
        moved = replace(moved, answers=tuple(answers))
        total = factor * sum(problem.betas[r] * loss for r, loss in losses.items()) + information_terms(moved)[mode]
        return moved, losses, total

    old = posterior.assign[mode]
    stay = settled(old)
    with np.errstate(divide="ignore"):  # a dead cluster stays dead
        target = softmax(np.log(posterior.mass[mode]) - factor * mode_cost(problem, posterior, mode, backend), axis=1)
    steps = (settled(q) for q in damped(old, target))
    moved, losses, _ = next((found for found in steps if found[2] <= stay[2]), stay)
    return moved, losses


def tiles_of(problem: Problem, start: Posterior, mode: int, dtype: str) -> Tiles | None:
    """How one mode's observations are laid out for the cache, where there is one relation and that pays."""
    ((relation, position),) = problem.structure.uses(mode)
    others = prod(q.shape[1] for j, q in enumerate(start.factor(relation)) if j != position)
    features = problem.cells[relation].features
    return problem.samples[relation].tiles(position, features, others * np.dtype(dtype).itemsize)


def in_double(posterior: Posterior) -> Posterior:
    """The posterior in float64; float32 rows sum to one only nearly."""
    wide = [q.astype(np.float64) for q in posterior.assign]
    return replace(posterior, assign=tuple(q / q.sum(axis=1, keepdims=True) for q in wide))
