"""Which directions do several centred kernels share? The eigenproblems of P3, for any number of views.

P3's optimality conditions (34) are K_i α_i = γ c for every view i, with c = Σ α_i, hence

    (Σ_i K_i⁻¹) c = c / γ:

the consensus c is an eigenvector of the *parallel sum* (Σ K_i⁻¹)⁻¹, one n × n problem for any number of
views. With a ridge, R_i = (K_i + τ_i I)⁻¹ stands for K_i⁻¹. (P3 adds τ to the right-hand side of (35)
instead; the leading solutions of that problem have c ≈ 0 and say nothing.)

Since R_i = (I − K_i R_i)/τ_i, the same c are the leading eigenvectors of Σ K_i R_i/τ_i: regularised
MAX-VAR kernel CCA.

Where objects lack some views, each view's ridge regression knows its own objects only: the rows of the others are zero
in K_i and in R_i, and c is scaled by W = Σ_i p_i/τ_i over Σ_i 1/τ_i (p_i says who has view i), Σ R_i c = W c/γ, so that
every description counts alike and not every object.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_solve, cholesky, eigh, lapack, solve_triangular
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from gingham.arrays import Bools, Floats
from gingham.engine.threads import one_blas_thread
from gingham.errors import GinghamError

LANCZOS_FROM = 400  # below this size a dense eigensolver is quicker than Lanczos iterations
LANCZOS_SHARE = 0.05  # Lanczos iterations pay when at most this share of the eigenvectors is wanted


@dataclass(frozen=True, eq=False)
class Components:
    """What the views share; the score of view i is F_i = K_i·coefficients or Φ_i·coefficients."""

    # γ of P3 for pairwise cluster analysis, Σ_{i≠j} cov(F_i, F_j) under the constraint for kernel CCA; decreasing
    strengths: Floats
    consensus: Floats  # c, (n_samples, n_components), orthonormal columns for pairwise cluster analysis
    coefficients: tuple[Floats, ...]  # per view, on the columns of its kernel or of its features, (…, n_components)


def parallel_sum(
    kernels: Sequence[Floats], ridges: Sequence[float], n_components: int, present: Sequence[Bools]
) -> Components:
    """The leading eigenvectors of the parallel sum of kernels: (Σ_i R_i) c = c/γ.

    Kernels (n, n) are centred, ridges τ_i > 0 in their units. There are at most n − 1 components: the constant vector
    is shared by all centred kernels and is the last. One Cholesky factorisation and inverse per view (n³ flops), one
    eigenproblem whatever their number.
    """
    factors = [_factor(kernel, ridge) for kernel, ridge in zip(kernels, ridges)]
    (invert,) = lapack.get_lapack_funcs(("potri",), factors)
    total = np.zeros_like(factors[0])
    for factor, ridge, has in zip(factors, ridges, present):
        total += invert(factor, lower=1)[0]  # R_i; only the lower triangle is meaningful
        absent = np.flatnonzero(~has)
        total[absent, absent] -= 1.0 / ridge
    root = np.sqrt(described(present, ridges)).astype(total.dtype)
    total /= root[:, None] * root
    inverse_gamma, vectors = extreme_eigenpairs(total, n_components, largest=False)
    consensus = vectors / root[:, None]
    coefficients = tuple(  # α_i = R_i c
        cho_solve((factor, True), consensus * has[:, None]) for factor, has in zip(factors, present)
    )
    return Components(1.0 / inverse_gamma, consensus, coefficients)


def parallel_sum_of_features(
    features: Sequence[Floats], ridges: Sequence[float], n_components: int, present: Sequence[Bools]
) -> Components:
    """The same for kernels K_i = Φ_i Φ_iᵀ given by centred features; no n × n matrix is formed.

    Σ K_i R_i/τ_i = M Mᵀ with M_i = Φ_i L_i⁻ᵀ/√τ_i and L_i L_iᵀ = Φ_iᵀΦ_i + τ_i I, so that the small matrix
    MᵀM, of the size of all features together, has the same eigenvalues w, and 1/γ = Σ 1/τ_i − w.
    """
    whitened, factors = _whitened(features, ridges)
    root = np.sqrt(described(present, ridges))[:, None]
    stacked = np.hstack([block / np.sqrt(ridge) for block, ridge in zip(whitened, ridges)]) / root
    _limit(n_components, stacked.shape[1])
    w, small = extreme_eigenpairs(stacked.T @ stacked, n_components, largest=True)
    positive = np.maximum(w, np.finfo(float).tiny)
    consensus = stacked @ (small / np.sqrt(positive)) / root
    coefficients = tuple(cho_solve((factor, True), phi.T @ consensus) for phi, factor in zip(features, factors))
    gamma = 1.0 / np.maximum(sum(1.0 / r for r in ridges) - w, np.finfo(float).tiny)
    return Components(gamma, consensus, coefficients)


def described(present: Sequence[Bools], ridges: Sequence[float]) -> Floats:
    """W: how much of the views describes each object, 1 where all do."""
    weights = 1.0 / np.asarray(ridges)
    return np.asarray(weights @ np.stack(present) / weights.sum())


def canonical_correlations(
    features: Sequence[Floats], ridges: Sequence[float], n_components: int, present: Sequence[Bools]
) -> Components:
    """Multi-view kernel CCA on features: max Σ_{i≠j} w_iᵀΦ_iᵀΦ_j w_j with Σ w_iᵀ(Φ_iᵀΦ_i + τ_i I) w_i = 1.

    The block problem of Bach and Jordan, as large as all features together: for exact kernels
    (views·n) × (views·n). It differs from the parallel sum by its empty diagonal blocks only.
    """
    whitened, factors = _whitened(features, ridges)
    stacked = np.hstack(whitened)
    _limit(n_components, stacked.shape[1])
    between = stacked.T @ stacked
    edges = np.cumsum([0, *(block.shape[1] for block in whitened)])
    parts = [slice(start, stop) for start, stop in pairwise(edges)]
    for part in parts:
        between[part, part] = 0.0
    strengths, small = extreme_eigenpairs(between, n_components, largest=True)
    coefficients = tuple(
        solve_triangular(factor, small[part], lower=True, trans="T") for factor, part in zip(factors, parts)
    )
    scores = sum(phi @ w for phi, w in zip(features, coefficients))
    return Components(strengths, scores / np.sum(present, axis=0)[:, None], coefficients)


def extreme_eigenpairs(matrix: Floats, count: int, largest: bool) -> tuple[Floats, Floats]:
    """The ``count`` largest (smallest) eigenvalues, best first, and eigenvectors of a symmetric matrix.

    Only the lower triangle is read. A few of many: Lanczos; otherwise a dense solver for the needed part.
    """
    n = len(matrix)
    found = None
    if n >= LANCZOS_FROM and count <= LANCZOS_SHARE * n:
        fortran = np.asfortranarray(matrix)
        (times,) = blas.get_blas_funcs(("symv",), (fortran,))
        operator = LinearOperator((n, n), matvec=lambda v: times(1.0, fortran, v.ravel(), lower=1), dtype=matrix.dtype)
        start = np.random.default_rng(0).standard_normal(n).astype(matrix.dtype)  # fixed: the answer must not vary
        # One thread: a product takes no longer than to hand it over. No convergence: clustered eigenvalues.
        with one_blas_thread(), suppress(ArpackError):
            found = eigsh(operator, k=count, which="LA" if largest else "SA", v0=start)
    if found is None:
        first = n - count if largest else 0
        found = eigh(matrix, lower=True, subset_by_index=[first, first + count - 1])
    values, vectors = found
    order = np.argsort(-values if largest else values, kind="stable")
    return values[order], vectors[:, order]


def _factor(kernel: Floats, ridge: float) -> Floats:
    """The lower Cholesky factor of K + τI."""
    ridged = np.array(kernel, order="F")
    np.fill_diagonal(ridged, np.diagonal(ridged) + ridge)
    try:
        factor: Floats = cholesky(ridged, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise GinghamError(
            "A kernel matrix plus ridge is not positive definite. Use a positive semi-definite kernel "
            "(linear, rbf, …) or a larger ridge."
        ) from None
    return factor


def _whitened(features: Sequence[Floats], ridges: Sequence[float]) -> tuple[list[Floats], list[Floats]]:
    """Φ_i L_i⁻ᵀ and L_i with L_i L_iᵀ = Φ_iᵀΦ_i + τ_i I."""
    factors = [_factor(phi.T @ phi, ridge) for phi, ridge in zip(features, ridges)]
    whitened: list[Floats] = [solve_triangular(factor, phi.T, lower=True).T for phi, factor in zip(features, factors)]
    return whitened, factors


def _limit(n_components: int, size: int) -> None:
    if n_components > size:
        raise GinghamError(
            f"n_components={n_components} is more than the {size} features of all views together: "
            "ask for fewer components or a larger rank."
        )
