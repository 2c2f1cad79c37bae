"""Retrieval across views: the documents nearest to a query, and where its mate stands among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

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


def mate_ranks(first: Floats, second: Floats, counts: Sequence[int]) -> Ints:
    """Ranks of the mates with the first few components only, for each of these numbers in turn.

    Row r of both is the same object. Returns (n_counts, 2, n): the rank of row r of the second for row r of the first,
    1 for the best, and the other way round; what ties with the mate counts before it, P3 (41).
    """
    ranks = np.zeros((len(counts), 2, len(first)), dtype=np.intp)
    last = np.array(counts) - 1
    own = np.cumsum(first * second, axis=1)[:, last].T
    sizes = (np.sqrt(np.cumsum(part**2, axis=1)[:, last].T) for part in (first, second))
    left, right = (np.divide(1.0, size, out=np.ones_like(size), where=size > 0) for size in sizes)
    own *= left * right
    own -= TIE
    for batch in gen_batches(len(first), BATCH):
        products = np.zeros((batch.stop - batch.start, len(first)))
        for number, (start, stop) in enumerate(pairwise((0, *counts))):
            products += first[batch, start:stop] @ second[:, start:stop].T
            cosines = products * left[number, batch, None] * right[number]
            ranks[number, 0, batch] = (cosines >= own[number, batch, None]).sum(axis=1)
            ranks[number, 1] += (cosines >= own[number]).sum(axis=0)
    return np.maximum(ranks, 1)


def mean_reciprocal_ranks(embedded: Sequence[Floats], counts: Sequence[int]) -> Floats:
    """MRR, P3 (41) (there called average precision), with the first few components, averaged over pairs of views.

    It is the mean of 1/rank of the mate. Row r of every view is the same object, NaN where it lacks the view.
    """
    found = []
    for a, b in combinations(embedded, 2):
        both = ~(np.isnan(a[:, 0]) | np.isnan(b[:, 0]))
        if both.any():
            found.append((1.0 / mate_ranks(a[both], b[both], counts)).mean(axis=(1, 2)))
    return np.mean(found, axis=0) if found else np.zeros(len(counts))


def component_weights(strengths: Floats, weighting: float) -> Floats:
    """How much each component counts in a cosine: (γ_c/γ_0)^weighting."""
    return np.asarray(np.maximum(strengths / strengths[0], 0.0) ** weighting)
