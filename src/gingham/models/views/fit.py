"""From views to score functions: choose a representation, solve, and turn coefficients into functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import Floats
from gingham.data.views import Matrix
from gingham.errors import GinghamError
from gingham.models.views import eigen
from gingham.models.views.primal import parallel_sum_of_products
from gingham.models.views.representations import Kernel, Representation, ScoreFunction, exact, nystroem, primal

SOLVERS = ("auto", "exact", "nystroem", "primal")
EXACT_UP_TO = 4000  # objects up to which solver="auto" holds kernels exactly
NARROW = 1000  # linear views with at most so many features are held as dense features


@dataclass(frozen=True)
class Settings:
    """How the views are held: the solver, the landmarks a view may have, and the seed that draws them."""

    solver: str = "auto"
    n_landmarks: int = 500
    seed: int = 0


Method = Callable[[Sequence[Representation], Sequence[float], int, Settings], eigen.Components]


@dataclass(frozen=True, eq=False)
class Shared:
    """Components of a fit: ``functions[i](X)`` scores new objects of view i, shape (rows, n_components).

    Scores are in units in which the consensus has mean square one over the training objects, and the sign of a
    component is such that its heavier tail, where a cluster sits, is positive.
    """

    strengths: Floats
    consensus: Floats
    functions: tuple[ScoreFunction, ...]


def represent(views: Sequence[Matrix], kernels: Sequence[Kernel], settings: Settings) -> list[Representation]:
    """A representation of every view.

    ``solver="auto"`` is exact up to 4000 objects; beyond, primal if all kernels are linear and Nyström if not.
    """
    solver, n = settings.solver, views[0].shape[0]
    if solver not in SOLVERS:
        raise GinghamError(f"Unknown solver {solver!r}: use one of {', '.join(SOLVERS)}.")
    curved = [kernel.name for kernel in kernels if not kernel.linear]
    if solver == "auto":
        solver = "exact" if n <= EXACT_UP_TO else "nystroem" if curved else "primal"
    if solver == "exact":
        return [exact(view, kernel) for view, kernel in zip(views, kernels)]
    if solver == "primal":
        if curved:
            raise GinghamError(f"solver='primal' needs linear kernels; that of {curved[0]} is not: use 'nystroem'.")
        dense = all(view.shape[1] <= NARROW for view in views)
        return [primal(view, kernel, dense) for view, kernel in zip(views, kernels)]
    # The same landmarks in every view: an object is known by all of its descriptions.
    landmarks = np.sort(np.random.default_rng(settings.seed).permutation(n)[: settings.n_landmarks])
    return [nystroem(view, kernel, landmarks) for view, kernel in zip(views, kernels)]


def pairwise(
    representations: Sequence[Representation], ridges: Sequence[float], n_components: int, settings: Settings
) -> eigen.Components:
    """Pairwise cluster analysis: the parallel sum."""
    grams = [r.gram for r in representations if r.gram is not None]
    if grams:
        return eigen.parallel_sum(grams, ridges, n_components)
    products = [r.products for r in representations if r.products is not None]
    if products:
        return parallel_sum_of_products(products, ridges, n_components, settings.seed)
    features = [r.features for r in representations if r.features is not None]
    return eigen.parallel_sum_of_features(features, ridges, n_components)


def correlated(
    representations: Sequence[Representation], ridges: Sequence[float], n_components: int, settings: Settings
) -> eigen.Components:
    """Multi-view kernel CCA, the block problem."""
    features = [r.features for r in representations if r.features is not None]
    if features:
        return eigen.canonical_correlations(features, ridges, n_components)
    grams = [r.gram for r in representations if r.gram is not None]
    if not grams:
        raise GinghamError(
            "Kernel CCA of many objects with wide views needs solver='nystroem', or PairwiseClusterAnalysis."
        )
    pairs = [eigen.features_of_kernel(gram) for gram in grams]
    solved = eigen.canonical_correlations([phi for phi, _ in pairs], ridges, n_components)
    columns = tuple(to_columns @ w for (_, to_columns), w in zip(pairs, solved.coefficients))
    return eigen.Components(solved.strengths, solved.consensus, columns)


def solve(
    representations: Sequence[Representation],
    ridges: Sequence[float],
    n_components: int,
    settings: Settings,
    method: Method = pairwise,
) -> Shared:
    """Solve and normalise; see :class:`Shared` for the units."""
    limit = max_components(representations)
    if not 1 <= n_components <= limit:
        raise GinghamError(
            f"n_components={n_components} must lie between 1 and {limit}, "
            "the number of directions that these views have after centring."
        )
    found = method(representations, ridges, n_components, settings)
    spread = np.sqrt(np.mean(found.consensus**2, axis=0))
    tail = np.where(np.sum(found.consensus**3, axis=0) < 0, -1.0, 1.0)
    unit = tail / np.where(spread > 0, spread, 1.0)
    functions = tuple(r.score_function(a * unit) for r, a in zip(representations, found.coefficients))
    return Shared(found.strengths, found.consensus * unit, functions)


def max_components(representations: Sequence[Representation]) -> int:
    """How many components can be asked for."""
    return min(representations[0].n_samples - 1, sum(r.rank for r in representations))


def pair_correlations(scores: Sequence[Floats]) -> Floats:
    """ρ of the scores of every two views, shape (n_components, n_views, n_views).

    ρ = αᵀK_aK_bβ / √(αᵀK_a²α · βᵀK_b²β); P3's (39) divides by αᵀK_aα instead and is not a correlation.
    """
    stacked = np.stack(scores)
    centred = stacked - stacked.mean(axis=1, keepdims=True)
    products = np.einsum("inc,jnc->cij", centred, centred, optimize=True)
    size = np.sqrt(np.einsum("cii->ci", products))
    norm = size[:, :, None] * size[:, None, :]
    return np.divide(products, norm, out=np.zeros_like(products), where=norm > 0)


def mean_correlations(scores: Sequence[Floats]) -> Floats:
    """ρ averaged over all pairs of different views, shape (n_components,)."""
    table = pair_correlations(scores)
    upper = np.triu_indices(table.shape[1], 1)
    return table[:, upper[0], upper[1]].mean(axis=1)
