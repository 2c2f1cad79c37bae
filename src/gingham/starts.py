"""Where the search begins: random, item means, spectral, given labels, any posterior."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd

from gingham.arrays import Anything, Floats
from gingham.data import Mode, Sample
from gingham.errors import GinghamError
from gingham.kernels.threads import one_library_thread
from gingham.posterior import Posterior
from gingham.problem import Problem

STARTS = ("spectral", "singular", "means", "random")
SHRINK = 5.0  # tuples by which item means are pulled to the overall mean
FIRMNESS = 0.95  # probability of the k-means cluster in an informed start
LOOSE_FIRMNESS = 0.9  # the same for mixed memberships
RANK = 4  # singular vectors in the spectral start


def make_start(
    start: str | Posterior | Sequence[Anything],
    problem: Problem,
    n_clusters: Sequence[int],
    rng: np.random.Generator,
) -> Posterior:
    """A posterior to begin with, by name, from given labels (one array per mode), or from another posterior."""
    if isinstance(start, Posterior):
        return from_posterior(problem, start)
    if isinstance(start, str):
        if start not in STARTS:
            raise GinghamError(
                f"start={start!r} is unknown; choose one of {', '.join(STARTS)}, labels (one array per mode), "
                "or a posterior."
            )
        if start == "random":
            return random(problem, n_clusters, rng)
        with one_library_thread():
            if start == "singular":
                return singular(problem, n_clusters, rng)
            return informed(problem, n_clusters, rng, rank=RANK if start == "spectral" else 0)
    return from_labels(problem, start, n_clusters)


def random(problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> Posterior:
    """Memberships uniform on the simplex and answers from a handful of random tuples a cell.

    The best answers of a uniform random Q would be the same in every cell, and the solver would
    stay at that trivial point; so answers start random.
    """
    assign = tuple(rng.dirichlet(np.ones(m), mode.n_items) for mode, m in zip(problem.structure.modes, n_clusters))
    answers = []
    for sample, cell, factor in zip(problem.samples, problem.cells, problem.structure.factors):
        shape = tuple(n_clusters[mode] for mode in factor)
        p = None if sample.weights is None else sample.weights / sample.weights.sum()
        drawn = rng.choice(sample.n_rows, (*shape, 3), p=p)
        labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
        codes = None if sample.label_codes is None else sample.label_codes[drawn].ravel()
        tuples = cell.features.evaluate(labels[drawn].ravel(), codes).reshape(*drawn.shape, -1)
        answers.append(cell.answer(tuples.sum(axis=-2)))
    return Posterior(problem.structure, problem.cells, assign, tuple(answers))


def informed(problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator, rank: int = 0) -> Posterior:
    """k-means on shrunken item means and, with a rank, on singular vectors of what the means leave over."""
    embeddings = item_embeddings(problem, rank, rng)
    labels = []
    for mode, (points, weights) in enumerate(embeddings):
        labels.append(k_means(points, weights, n_clusters[mode], rng))
    return from_labels(problem, labels, n_clusters, FIRMNESS)


def singular(problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> Posterior:
    """k-means on singular vectors of the centred labels, each divided by the root of both items' counts.

    Means are not taken out first, so the leading vectors carry them and coordinates keep their
    natural scale: the start for mixed memberships, where a wrong firm start is slow to mend.
    Two modes only.
    """
    if problem.structure.factors != ((0, 1),):
        raise GinghamError("start='singular' needs one table of two modes; use start='spectral'.")
    sample = problem.samples[0]
    rows, columns = sample.codes
    roots = [np.sqrt(sample.counts(axis) + SHRINK) for axis in range(2)]
    scale = 1.0 / (roots[0][rows] * roots[1][columns])
    if sample.weights is not None:
        scale = scale * sample.weights
    blocks = [
        sparse.coo_array((response * scale, (rows, columns)), shape=sample.shape).tocsr()
        for response in label_responses(problem, 0).T
    ]
    labels = []
    for axis in range(2):
        matrix: Any = sparse.hstack([block if axis == 0 else block.T for block in blocks])
        left, values, _ = randomized_svd(
            matrix, min(RANK, *matrix.shape), random_state=int(rng.integers(2**31 - 1))
        )  # fmt: skip
        points = left * values / roots[axis][:, None]
        labels.append(k_means(points, sample.counts(axis) + 1.0, n_clusters[axis], rng, n_init=3))
    return from_labels(problem, labels, n_clusters, LOOSE_FIRMNESS)


def from_labels(
    problem: Problem, labels: Sequence[Any], n_clusters: Sequence[int] | None = None, firmness: float = 1.0
) -> Posterior:
    """Given clusters, one array of integers per mode; ``firmness`` < 1 leaves every door ajar."""
    assign = []
    if len(labels) != problem.structure.n_modes:
        raise GinghamError(f"{len(labels)} label arrays were given for {problem.structure.n_modes} modes.")
    for at, (mode, given) in enumerate(zip(problem.structure.modes, labels)):
        given = np.asarray(given)
        if given.shape != (mode.n_items,) or given.dtype.kind not in "iu" or (len(given) and given.min() < 0):
            raise GinghamError(
                f"Labels of mode {mode.name!r} must be {mode.n_items} integers from 0, one per item; "
                f"got shape {given.shape}, dtype {given.dtype}."
            )
        m = int(given.max()) + 1 if n_clusters is None else max(n_clusters[at], int(given.max()) + 1)
        assign.append(firmness * np.eye(m)[given] + (1.0 - firmness) / m)
    return with_best_answers(problem, assign)


def from_votes(problem: Problem, clusters: Anything, n_clusters: Sequence[int]) -> Posterior:
    """Clusters known for some tuples, (N, d) integers with −1 where unknown: each tuple votes for its items."""
    sample = problem.samples[0]
    clusters = np.asarray(clusters)
    if clusters.shape != (sample.n_rows, sample.n_modes) or clusters.dtype.kind not in "iu":
        raise GinghamError(
            f"clusters= must be whole numbers of shape {(sample.n_rows, sample.n_modes)}, −1 where unknown; "
            f"got shape {clusters.shape}, dtype {clusters.dtype}."
        )
    assign = []
    for axis, m in enumerate(n_clusters):
        if clusters[:, axis].max(initial=-1) >= m:
            raise GinghamError(f"clusters= names cluster {clusters[:, axis].max()} of mode {axis}, which has only {m}.")
        known = clusters[:, axis] >= 0
        votes = np.full((sample.shape[axis], m), 1.0 - FIRMNESS)  # so that items without votes are even
        np.add.at(votes, (sample.codes[axis][known], clusters[known, axis]), 1.0)
        assign.append(votes / votes.sum(1, keepdims=True))
    return with_best_answers(problem, assign)


def from_posterior(problem: Problem, posterior: Posterior) -> Posterior:
    """Another posterior's memberships, matched by item id; items it does not know get its masses."""
    if posterior.structure.n_modes != problem.structure.n_modes:
        raise GinghamError(
            f"The starting posterior has {posterior.structure.n_modes} modes, the data {problem.structure.n_modes}."
        )
    return with_best_answers(problem, from_items(posterior, problem.structure.modes).assign)


def from_items(posterior: Posterior, modes: Sequence[Mode]) -> Posterior:
    """The same posterior on other items, matched by id; items it does not know get its masses."""
    known = zip(modes, posterior.structure.modes, posterior.assign, posterior.mass)
    assign = tuple(np.vstack([q, mass])[old.encode(mode.items)] for mode, old, q, mass in known)
    return replace(posterior, structure=replace(posterior.structure, modes=tuple(modes)), assign=assign)


def with_best_answers(problem: Problem, assign: Sequence[Floats]) -> Posterior:
    """The posterior with these memberships whose cells answer best on the problem's samples."""
    placeholder = tuple(np.zeros(0) for _ in problem.cells)
    posterior = Posterior(problem.structure, problem.cells, tuple(assign), placeholder)
    for relation, sample in enumerate(problem.samples):
        posterior = posterior.refit(sample, relation)
    return posterior


def item_embeddings(problem: Problem, rank: int, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """For each mode, points (n_items, dim) in which similar items are near, and weights (n_items,)."""
    found: list[tuple[list[Floats], Floats]] = [([], np.zeros(mode.n_items)) for mode in problem.structure.modes]
    for relation, (sample, factor) in enumerate(zip(problem.samples, problem.structure.factors)):
        responses = label_responses(problem, relation)
        for position, mode in enumerate(factor):
            columns, weights = found[mode]
            weights += sample.counts(position)
            columns.extend(1.5 * _means(sample, position, response)[:, None] for response in responses.T)
            if rank:
                columns.append(_spectral(sample, position, responses, rank, rng))
    # A mode that stands in no relation has nothing to go by.
    return [(np.hstack(columns) if columns else weights[:, None], weights + 1.0) for columns, weights in found]


def label_responses(problem: Problem, relation: int) -> Floats:
    """What is averaged per item, centred, (N, r): the labels, or their one-hot codes when they are names."""
    sample, cell = problem.samples[relation], problem.cells[relation]
    if sample.labels is None:
        return np.zeros((sample.n_rows, 1))
    if cell.ordered or sample.label_codes is None:
        responses = sample.labels[:, None]
    else:
        responses = np.eye(sample.alphabet.size if sample.alphabet else 1)[sample.label_codes]
    return responses - np.average(responses, axis=0, weights=sample.weights)


def _shrunken(sample: Sample, position: int, response: Floats) -> Floats:
    """Σ response/(count + SHRINK) of each item, shape (n_items,)."""
    weighted = response if sample.weights is None else response * sample.weights
    sums = np.bincount(sample.codes[position], weighted, minlength=sample.shape[position])
    return sums / (sample.counts(position) + SHRINK)


def _means(sample: Sample, position: int, response: Floats) -> Floats:
    """Shrunken means of the items, (n_items,), of spread 1 where they differ by more than chance."""
    counts = sample.counts(position)
    means = _shrunken(sample, position, response)
    noise = np.average(response**2, weights=sample.weights) * np.mean(counts / (counts + SHRINK) ** 2)
    return _scaled(means[:, None], noise)[:, 0]


def _spectral(sample: Sample, position: int, responses: Floats, rank: int, rng: np.random.Generator) -> Floats:
    """Left singular vectors (n_items, ≤ rank) of the residuals, items against the items of the other modes."""
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    n_items = sample.shape[position]
    blocks = []
    for other in range(sample.n_modes):
        if other == position:
            continue
        for response in responses.T:
            left = _shrunken(sample, position, response)[sample.codes[position]]
            right = _shrunken(sample, other, response)[sample.codes[other]]
            blocks.append(
                sparse.coo_array(
                    (weights * (response - left - right), (sample.codes[position], sample.codes[other])),
                    shape=(n_items, sample.shape[other]),
                ).tocsr()
            )
    if not blocks:
        return np.zeros((n_items, 0))
    matrix = sparse.hstack(blocks).tocsr()
    rank = min(rank, *matrix.shape)
    basis = rng.standard_normal((matrix.shape[1], rank))
    for _ in range(4):  # a start needs no exact vectors
        basis, _ = np.linalg.qr(matrix.T @ (matrix @ basis))
    left, values, _ = np.linalg.svd(matrix @ basis, full_matrices=False)
    # A matrix of pure noise with these entries has singular values up to σ√p(√n + √n').
    edge = np.sqrt(matrix.power(2).sum() / np.prod(matrix.shape)) * np.sum(np.sqrt(matrix.shape))
    points = left * values / np.sqrt(sample.counts(position) + SHRINK)[:, None]
    return _scaled(points, points.var(axis=0) * (edge / np.maximum(values, 1e-9 * edge + 1e-300)) ** 2)


def _scaled(points: Floats, noise: Any) -> Floats:
    """Columns of spread √(share of their variance that noise does not explain), never quite zero."""
    variance = points.var(axis=0)
    share = 1.0 - noise / np.maximum(variance, 1e-300)
    return points * np.sqrt(np.clip(share, 0.02, 1.0) / np.where(variance > 0, variance, 1.0))


def k_means(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator, n_init: int = 1) -> Anything:
    """Labels (n_items,) of a weighted k-means with k-means++ seeds."""
    if n_clusters <= 1:
        return np.zeros(len(points), dtype=np.int64)
    distinct = len(np.unique(points, axis=0))
    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():
        # Points that are nearly equal leave clusters empty; a start may do that.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(min(n_clusters, distinct), n_init=n_init, max_iter=20, random_state=seed).fit(
            points, sample_weight=weights
        )
    return fitted.labels_.astype(np.int64)
