"""The parallel sum of wide linear kernels without an n × n matrix: only products with the views are taken.

The components are the leading eigenvectors of S = Σ_i X_i (X_iᵀX_i + τ_i I)⁻¹ X_iᵀ / τ_i. Applying S is a ridge
regression on every view, done for a block of vectors at once by conjugate gradients; a block Krylov space of a
few such applications holds the leading eigenvectors. Memory grows with n·n_components. (P3 §3.4 keeps Σ X_i X_iᵀ
only, the limit of an infinite ridge: it is where the Krylov space starts.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import eigh

from gingham.arrays import Bools, Floats
from gingham.data.views import Matrix, column_squares
from gingham.engine.threads import over_blocks
from gingham.errors import GinghamWarning
from gingham.models.views.eigen import Components, described

EXTRA = 20  # vectors beyond n_components in a block: they speed up the last components
MAX_BLOCKS = 4
RITZ_TOLERANCE = 5e-3  # blocks are added until no eigenvalue of S moves by more than this share of its bound
ROUGH, FINE = 1e-2, 1e-4  # relative residuals of the ridge regressions: while the space grows, for the final weights
MAX_STEPS = 500


@dataclass(frozen=True, eq=False)
class LinearView:
    """The centred, scaled matrix X = scale·(view − p meanᵀ), of which only products are ever formed.

    p says which objects have the view; the rows of the others are zero. It is held in single precision: products take
    half the time, and the Krylov space needs no more.
    """

    matrix: Matrix
    mean: Floats
    present: Floats  # p, (n_samples,)

    @classmethod
    def of(cls, view: Matrix, mean: Floats, scale: float, present: Bools) -> LinearView:
        return cls((view * scale).astype(np.float32), (mean * scale).astype(np.float32), present.astype(np.float32))

    @property
    def n_samples(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def diagonal(self) -> Floats:
        """The diagonal of XᵀX."""
        return np.maximum(column_squares(self.matrix) - self.present.sum() * self.mean.astype(np.float64) ** 2, 0.0)

    def forward(self, weights: Floats) -> Floats:
        """X·weights, shape (n, k)."""
        product: Floats = np.asarray(self.matrix @ weights)
        product -= np.outer(self.present, self.mean @ weights)
        return product

    def backward(self, targets: Floats) -> Floats:
        """Xᵀ·targets, shape (d, k)."""
        product: Floats = np.asarray(self.matrix.T @ targets)
        product -= np.outer(self.mean, (self.present[:, None] * targets).sum(axis=0))
        return product

    def ridge_regression(self, targets: Floats, ridge: float, tolerance: float) -> Floats:
        """W = (XᵀX + τI)⁻¹ Xᵀ·targets by conjugate gradients, all columns in step, diagonal preconditioner."""
        residual = self.backward(targets.astype(np.float32))
        goal = tolerance * np.linalg.norm(residual, axis=0)
        inverse_diagonal = (1.0 / (self.diagonal + ridge)).astype(np.float32)[:, None]
        weights = np.zeros_like(residual)
        search = residual * inverse_diagonal
        slope = np.einsum("dk,dk->k", residual, search)
        for _ in range(MAX_STEPS):
            image = self.backward(self.forward(search))
            image += np.float32(ridge) * search
            step = _ratio(slope, np.einsum("dk,dk->k", search, image))
            weights += step * search
            image *= step
            residual -= image
            if np.all(np.linalg.norm(residual, axis=0) <= goal):
                return weights
            preconditioned = residual * inverse_diagonal
            before, slope = slope, np.einsum("dk,dk->k", residual, preconditioned)
            search *= _ratio(slope, before)
            search += preconditioned
        warnings.warn(
            f"A ridge regression was still inaccurate after {MAX_STEPS} steps: use a larger ridge.",
            GinghamWarning,
            stacklevel=2,
        )
        return weights


def parallel_sum_of_products(
    views: Sequence[LinearView], ridges: Sequence[float], n_components: int, seed: int
) -> Components:
    """The leading eigenvectors of the parallel sum of the views' linear kernels.

    Ridges τ_i > 0 are in the units of the scaled views; the seed draws the first block.
    """
    n = views[0].n_samples
    width = min(n_components + EXTRA, n - 1)
    root = np.sqrt(described([view.present > 0 for view in views], ridges)).astype(np.float32)[:, None]

    def plain(block: Floats, number: int) -> Floats:
        return views[number].forward(views[number].backward(block))

    def ridged(block: Floats, number: int) -> Floats:
        view, ridge = views[number], ridges[number]
        return view.forward(view.ridge_regression(block, ridge, ROUGH)) / np.float32(ridge)

    def added(term: Callable[[Floats, int], Floats], block: Floats) -> Floats:
        """Sum over the views, in their order, so that threads do not change a bit."""
        scaled = block.astype(np.float32) / root
        return sum(over_blocks(partial(term, scaled), range(len(views))), start=np.zeros(())) / root

    start = np.random.default_rng(seed).standard_normal((n, width))
    for _ in range(2):  # P3 §3.4's solution, roughly
        start, _ = np.linalg.qr(added(plain, start))
    total = sum(1.0 / ridge for ridge in ridges)
    values, vectors = _block_krylov(partial(added, ridged), start, n_components, RITZ_TOLERANCE * total)
    consensus = vectors / root

    def weights(number: int) -> Floats:
        return views[number].ridge_regression(consensus, ridges[number], FINE).astype(np.float64)

    coefficients = tuple(over_blocks(weights, range(len(views))))
    return Components(1.0 / np.maximum(total - values, np.finfo(float).tiny), consensus, coefficients)


def _block_krylov(
    apply: Callable[[Floats], Floats], start: Floats, count: int, tolerance: float
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
        if np.max(values - before) <= tolerance:
            break
        before = values
        for _ in range(2):  # twice: what is left of the new block is orthogonal to the basis to rounding
            image = image - basis @ (basis.T @ image)
            image, _ = np.linalg.qr(image)
        basis = np.hstack([basis, image])
    return values, basis[:, : len(vectors)] @ vectors


def _ratio(above: Floats, below: Floats) -> Floats:
    """above/below, 0 where nothing is left to divide by."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
