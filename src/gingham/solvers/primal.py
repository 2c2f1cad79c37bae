"""The parallel sum of wide linear kernels without an n × n matrix: only products with the views are taken.

The components are the leading eigenvectors of S = Σ_i X_i (X_iᵀX_i + τ_i I)⁻¹ X_iᵀ / τ_i. Applying S is a ridge
regression on every view, done for a block of vectors at once by conjugate gradients; a block Krylov space of a
few such applications holds the leading eigenvectors. Memory grows with n·n_components. (P3 §3.4 keeps Σ X_i X_iᵀ
only, the limit of an infinite ridge: it is where the Krylov space starts.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from joblib import cpu_count
from scipy.linalg import eigh

from gingham.arrays import Floats
from gingham.data.views import Matrix, column_squares
from gingham.errors import GinghamWarning
from gingham.solvers.eigen import Components

EXTRA = 20
"""Vectors beyond n_components in a block: they speed up the last components."""
MAX_BLOCKS = 6
RITZ_TOLERANCE = 5e-3
"""Blocks are added until no eigenvalue of S moves by more than this share of the number of views."""
RIDGE_TOLERANCE = 1e-3
MAX_STEPS = 300

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class LinearView:
    """The centred, scaled matrix scale·(X − 1 meanᵀ), of which only products are ever formed."""

    matrix: Matrix
    mean: Floats
    scale: float

    @property
    def n_samples(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def diagonal(self) -> Floats:
        """Column sums of squares: the diagonal of XᵀX."""
        centred: Floats = self.scale**2 * (
            column_squares(self.matrix) - self.n_samples * self.mean**2
        )
        return centred

    def forward(self, weights: Floats) -> Floats:
        """X·weights, shape (n, k)."""
        product: Floats = self.scale * (np.asarray(self.matrix @ weights) - self.mean @ weights)
        return product

    def backward(self, targets: Floats) -> Floats:
        """Xᵀ·targets, shape (d, k)."""
        product: Floats = self.scale * (
            np.asarray(self.matrix.T @ targets) - np.outer(self.mean, targets.sum(axis=0))
        )
        return product

    def ridge_regression(self, targets: Floats, ridge: float) -> Floats:
        """W = (XᵀX + τI)⁻¹ Xᵀ·targets by conjugate gradients, all columns in step, diagonal preconditioner."""
        right = self.backward(targets)
        goal = RIDGE_TOLERANCE * np.linalg.norm(right, axis=0)
        inverse_diagonal = 1.0 / (np.maximum(self.diagonal, 0.0) + ridge)[:, None]
        weights = np.zeros_like(right)
        residual = right
        search = residual * inverse_diagonal
        slope = np.einsum("dk,dk->k", residual, search)
        for _ in range(MAX_STEPS):
            image = self.backward(self.forward(search))
            image += ridge * search
            curvature = np.einsum("dk,dk->k", search, image)
            step = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0)
            weights += step * search
            residual -= step * image
            if np.all(np.linalg.norm(residual, axis=0) <= goal):
                return weights
            preconditioned = residual * inverse_diagonal
            new_slope = np.einsum("dk,dk->k", residual, preconditioned)
            search *= np.divide(new_slope, slope, out=np.zeros_like(slope), where=slope > 0)
            search += preconditioned
            slope = new_slope
        warnings.warn(
            f"Ridge regression stopped after {MAX_STEPS} steps before it was accurate: a larger ridge helps.",
            GinghamWarning,
            stacklevel=2,
        )
        return weights


def parallel_sum_of_products(
    views: Sequence[LinearView], ridges: Sequence[float], n_components: int, seed: int
) -> Components:
    """The leading eigenvectors of the parallel sum of the views' linear kernels.

    Parameters
    ----------
    views : sequence of LinearView
    ridges : sequence of float
        τ_i > 0, in the units of the scaled views.
    n_components : int
    seed : int
        Draws the first block.
    """
    n = views[0].n_samples
    width = min(n_components + EXTRA, n - 1)

    def apply(block: Floats) -> Floats:
        """S·block."""

        def one(number: int) -> Floats:
            view, ridge = views[number], ridges[number]
            return view.forward(view.ridge_regression(block, ridge)) / ridge

        return _sum(_for_each(one, len(views)))

    start = np.random.default_rng(seed).standard_normal((n, width))
    for _ in range(2):  # P3 §3.4's solution, roughly
        start, _ = np.linalg.qr(
            _sum(_for_each(lambda i: views[i].forward(views[i].backward(start)), len(views)))
        )
    values, consensus = _block_krylov(apply, start, n_components, len(views) / min(ridges))
    coefficients = _for_each(lambda i: views[i].ridge_regression(consensus, ridges[i]), len(views))
    gamma = 1.0 / np.maximum(sum(1.0 / r for r in ridges) - values, np.finfo(float).tiny)
    return Components(gamma, consensus, tuple(coefficients))


def _block_krylov(
    apply: Callable[[Floats], Floats], start: Floats, count: int, unit: float
) -> tuple[Floats, Floats]:
    """Leading eigenpairs of a symmetric operator from the space start, S·start, S²·start, …"""
    n, width = start.shape
    basis, images = start, np.empty((n, 0))
    before = np.full(count, -np.inf)
    for _ in range(max(1, min(MAX_BLOCKS, (n - 1) // width))):
        image = apply(basis[:, -width:])
        images = np.hstack([images, image])
        projected = basis.T @ images
        values, vectors = eigh((projected + projected.T) / 2)
        values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
        if np.max(values - before) <= RITZ_TOLERANCE * unit:
            break
        before = values
        for _ in range(
            2
        ):  # twice: what is left of the new block is orthogonal to the basis to rounding
            image = image - basis @ (basis.T @ image)
            image, _ = np.linalg.qr(image)
        basis = np.hstack([basis, image])
    return values, basis[:, : len(vectors)] @ vectors


def _for_each(work: Callable[[int], Result], count: int) -> list[Result]:
    """work(0), …, work(count − 1), one thread per view: sparse products leave the interpreter lock free."""
    with ThreadPoolExecutor(max_workers=min(count, cpu_count())) as pool:
        return list(pool.map(work, range(count)))


def _sum(terms: Sequence[Floats]) -> Floats:
    """Sum in the order of the views, so that threads do not change a bit."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return total
