"""From views to score functions: choose a representation, solve, and turn coefficients into functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.data.views import Matrix
from gingham.errors import GinghamError, one_of
from gingham.models.views import eigen
from gingham.models.views.primal import parallel_sum_of_products
from gingham.models.views.representations import Kernel, Representation, exact, primal

SOLVERS = ("auto", "exact", "primal")
EXACT_UP_TO = 4000  # objects up to which solver="auto" holds kernels exactly
NARROW = 1000  # linear views with at most so many features are held as dense features


Method = Callable[[Sequence[Representation], Sequence[float], int, int], eigen.Components]


def represent(
    views: Sequence[Matrix], kernels: Sequence[Kernel], solver: str, present: Sequence[Bools] | None = None
) -> list[Representation]:
    """A representation of every view, of which ``present`` says which objects have it (all by default).

    ``solver="auto"`` is exact up to 4000 objects and where a kernel is not linear; beyond, primal.
    """
    n = views[0].shape[0]
    one_of("solver", solver, SOLVERS)
    having = [np.ones(n, dtype=bool)] * len(views) if present is None else present
    curved = [kernel.name for kernel in kernels if not kernel.linear]
    if solver == "auto":
        solver = "primal" if n > EXACT_UP_TO and not curved else "exact"
    every = list(zip(views, kernels, having))
    if solver == "exact":
        return [exact(*each) for each in every]
    if curved:
        raise GinghamError(f"solver='primal' needs linear kernels; that of {curved[0]} is not: use 'exact'.")
    dense = all(view.shape[1] <= NARROW for view in views)
    return [primal(view, kernel, dense, has) for view, kernel, has in every]


def pairwise(
    representations: Sequence[Representation], ridges: Sequence[float], n_components: int, seed: int
) -> eigen.Components:
    """Pairwise cluster analysis: the parallel sum."""
    present = [r.present for r in representations]
    grams = [r.gram for r in representations if r.gram is not None]
    if grams:
        return eigen.parallel_sum(grams, ridges, n_components, present)
    products = [r.products for r in representations if r.products is not None]
    if products:
        return parallel_sum_of_products(products, ridges, n_components, seed)
    features = [r.features for r in representations if r.features is not None]
    return eigen.parallel_sum_of_features(features, ridges, n_components, present)


def correlated(
    representations: Sequence[Representation], ridges: Sequence[float], n_components: int, seed: int
) -> eigen.Components:
    """Multi-view kernel CCA, the block problem."""
    present = [r.present for r in representations]
    features = [r.features for r in representations if r.features is not None]
    if features:
        return eigen.canonical_correlations(features, ridges, n_components, present)
    if any(r.gram is None for r in representations):
        raise GinghamError(
            "Kernel CCA of many objects needs narrow views: reduce them first, or use PairwiseClusterAnalysis."
        )
    pairs = [r.decomposed for r in representations]
    solved = eigen.canonical_correlations([phi for phi, _ in pairs], ridges, n_components, present)
    columns = tuple(to_columns @ w for (_, to_columns), w in zip(pairs, solved.coefficients))
    return eigen.Components(solved.strengths, solved.consensus, columns)


def solve(
    representations: Sequence[Representation],
    ridges: Sequence[float],
    n_components: int,
    seed: int,
    method: Method = pairwise,
) -> eigen.Components:
    """Components in units in which the consensus has mean square one over the training objects.

    The sign of a component is such that its heavier tail, where a cluster sits, is positive.
    """
    limit = max_components(representations)
    if not 1 <= n_components <= limit:
        raise GinghamError(
            f"n_components={n_components} must lie between 1 and {limit}, "
            "the number of directions that these views have after centring."
        )
    found = method(representations, ridges, n_components, seed)
    spread = np.sqrt(np.mean(found.consensus**2, axis=0))
    tail = np.where(np.sum(found.consensus**3, axis=0) < 0, -1.0, 1.0)
    unit = tail / np.where(spread > 0, spread, 1.0)
    return eigen.Components(found.strengths, found.consensus * unit, tuple(a * unit for a in found.coefficients))


def max_components(representations: Sequence[Representation], objects: Ints | None = None) -> int:
    """How many components can be asked for, of all objects or of some."""
    some = slice(None) if objects is None else objects
    present = [r.present[some] for r in representations]
    return min(len(present[0]) - 1, sum(min(r.rank, int(p.sum()) - 1) for r, p in zip(representations, present)))


def pair_correlations(scores: Sequence[Floats]) -> Floats:
    """ρ of the scores of every two views, shape (n_components, n_views, n_views), over objects that have both.

    Objects that lack a view have NaN. ρ = αᵀK_aK_bβ / √(αᵀK_a²α · βᵀK_b²β); P3's (39) divides by αᵀK_aα instead and
    is not a correlation.
    """
    table = np.tile(np.eye(len(scores)), (scores[0].shape[1], 1, 1))
    for a, b in combinations(range(len(scores)), 2):
        both = ~(np.isnan(scores[a][:, 0]) | np.isnan(scores[b][:, 0]))
        if not both.any():
            continue
        first, second = (each[both] - each[both].mean(axis=0) for each in (scores[a], scores[b]))
        product = np.einsum("nc,nc->c", first, second)
        size = np.sqrt(np.einsum("nc,nc->c", first, first) * np.einsum("nc,nc->c", second, second))
        table[:, a, b] = table[:, b, a] = np.divide(product, size, out=np.zeros_like(product), where=size > 0)
    return table


def mean_correlations(scores: Sequence[Floats]) -> Floats:
    """ρ averaged over all pairs of different views, shape (n_components,)."""
    table = pair_correlations(scores)
    upper = np.triu_indices(table.shape[1], 1)
    return np.asarray(table[:, upper[0], upper[1]].mean(axis=1))
