"""Retrieval across views: the documents nearest to a query, and where its mate stands among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from gingham.arrays import Floats, Ints

BATCH = 1024  # queries at a time
TIE = 1e-12


def nearest(queries: Floats, documents: Floats, count: int) -> tuple[Ints, Floats]:
    """``count`` documents with the largest cosine to every query, best first, and their cosines: (n, count)."""
    left, right = normalize(queries), normalize(documents)
    indices = np.empty((len(left), count), dtype=np.intp)
    cosines = np.empty((len(left), count))
    for batch in gen_batches(len(left), BATCH):
        similarity = left[batch] @ right.T
        candidates = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(similarity, candidates, axis=1)
        order = np.lexsort((candidates, -values), axis=1)  # equal cosines: the earlier document first
        indices[batch] = np.take_along_axis(candidates, order, axis=1)
        cosines[batch] = np.take_along_axis(values, order, axis=1)
    return indices, cosines


def mate_ranks(queries: Floats, documents: Floats) -> Ints:
    """Rank of document r for query r, 1 for the first; documents that tie with the mate count before it, P3 (41)."""
    left, right = normalize(queries), normalize(documents)
    own = np.einsum("nk,nk->n", left, right)
    ranks = np.empty(len(left), dtype=np.intp)
    for batch in gen_batches(len(left), BATCH):
        similarity = left[batch] @ right.T
        above = np.sum(similarity >= own[batch, None] - TIE, axis=1)
        ranks[batch] = np.maximum(above, 1)
    return ranks


def mean_reciprocal_rank(queries: Floats, documents: Floats) -> float:
    """MRR, P3 (41) (there called average precision): the mean of 1/rank of the mate."""
    return float(np.mean(1.0 / mate_ranks(queries, documents)))


def mean_over_views(embedded: Sequence[Floats]) -> float:
    """MRR averaged over ordered pairs of views; row r of every view is the same object."""
    return float(np.mean([mean_reciprocal_rank(a, b) for a, b in permutations(embedded, 2)]))


def component_weights(strengths: Floats, weighting: float) -> Floats:
    """How much each component counts in a cosine: (γ_c/γ_0)^weighting."""
    return np.asarray(np.maximum(strengths / strengths[0], 0.0) ** weighting)
