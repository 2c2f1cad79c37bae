"""Where the search begins: random, item means, spectral, given labels, any posterior.

Starts ask for sums over observations, wherever the observations are. Where these are on a GPU, all that has a row an
item stays there, too: the same formulas serve arrays and tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, cast

import numpy as np

from gingham.arrays import AnyArray, ArrayLike, Floats, beside, hstack, namespace, on_host, vstack, where
from gingham.core.problem import Posterior, Problem, check_table
from gingham.data import Mode
from gingham.engine.k_means import k_means
from gingham.engine.threads import one_library_thread
from gingham.errors import GinghamError

STARTS = ("spectral", "singular", "means", "random")
SHRINK = 5.0  # observations by which item means are pulled to the overall mean
FIRMNESS = 0.95  # probability of the k-means cluster in an informed start
LOOSE_FIRMNESS = 0.9  # the same for mixed memberships
RANK = 4  # singular vectors in the spectral start


Start = str | Sequence[AnyArray] | Posterior  # a start by its name, the labels of each mode, or a posterior


def make_start(start: Start, problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> Posterior:
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
    """Memberships uniform on the simplex and answers from a handful of random observations a cell.

    The best answers of a uniform random Q would be the same in every cell, and the solver would
    stay at that trivial point; so answers start random.
    """
    assign = tuple(rng.dirichlet(np.ones(m), mode.n_items) for mode, m in zip(problem.structure.modes, n_clusters))
    answers = []
    for relation, (cell, factor) in enumerate(zip(problem.cells, problem.structure.factors)):
        shape = tuple(n_clusters[mode] for mode in factor)
        sums = problem.sums(relation)
        # All observations in a row, by item and label, each as wide as its weight: the order in which they came is no
        # matter.
        ends = np.cumsum(on_host(item_sums(problem, relation, 0).counts))
        at = rng.random(prod(shape) * 3) * ends[-1]
        items = np.minimum(np.searchsorted(ends, at, side="right"), np.searchsorted(ends, ends[-1]))
        begins = np.concatenate([[0.0], ends])[items]
        answers.append(cell.answer(sums.drawn(items, at - begins).reshape(*shape, 3, -1).sum(axis=-2)))
    frozen = problem.structure.frozen
    kept = tuple(np.eye(q.shape[1]) if mode in frozen else q for mode, q in enumerate(assign))
    return Posterior(problem.structure, problem.cells, kept, tuple(answers))


def informed(problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator, rank: int = 0) -> Posterior:
    """k-means on shrunken item means and, with a rank, on singular vectors of what the means leave over.

    Where the means of some mode do not tell its items apart they are not used alone: cells would answer alike along
    that mode, which is where a fit ends at once, in one cluster. Relations of properties, in which a frozen mode
    stands, speak only of the items that no other relation has.
    """
    structure = problem.structure
    if rank == 0 and len(n_clusters) > 1 and len(problem.structure.factors) == 1 and not means_tell(problem):
        rank = RANK
    embeddings = item_embeddings(problem, rank, rng)
    own = without_properties(problem)
    found = embeddings if own is None else item_embeddings(own, rank, rng)
    labels = []
    for mode, m in enumerate(n_clusters):
        spoken_of = own is not None and bool(own.structure.uses(mode))
        at = np.arange(m) if mode in structure.frozen else k_means(*(found if spoken_of else embeddings)[mode], m, rng)
        labels.append(at)
    return from_labels(problem, labels, n_clusters, FIRMNESS)


def without_properties(problem: Problem) -> Problem | None:
    """The problem without its relations of properties, which would outvote the others; None where that is no other."""
    structure = problem.structure
    frozen = set(structure.frozen)
    kept = [r for r, factor in enumerate(structure.factors) if not frozen & set(factor)]
    if not kept or len(kept) == len(structure.factors):
        return None
    return Problem(
        replace(structure, factors=tuple(structure.factors[r] for r in kept)),
        tuple(problem.samples[r] for r in kept),
        tuple(problem.cells[r] for r in kept),
        tuple(problem.betas[r] for r in kept),
    )


def means_tell(problem: Problem) -> bool:
    """Whether the means of every mode's items differ by more than chance would make them."""
    for relation, factor in enumerate(problem.structure.factors):
        for position in range(len(factor)):
            of = item_sums(problem, relation, position)
            if not (variance(of.shrunken) > of.noise * (1.0 + 3.0 * sqrt(2.0 / len(of.counts)))).any():
                return False
    return True


def singular(problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> Posterior:
    """k-means on singular vectors of the centred labels, each divided by the root of both items' counts.

    Means are not taken out first, so the leading vectors carry them and coordinates keep their
    natural scale: the start for mixed memberships, where a wrong firm start is slow to mend.
    Two modes only.
    """
    if problem.structure.factors != ((0, 1),):
        raise GinghamError("start='singular' needs one table of two modes; use start='spectral'.")
    found = [item_sums(problem, 0, position) for position in range(2)]
    roots = [(of.counts + SHRINK) ** 0.5 for of in found]
    labels = []
    for position in range(2):
        matrix = Contrasts(problem, 0, position, found, scales=[1.0 / root for root in roots])
        left, values, _ = matrix.leading(RANK, rng, spare=10, rounds=7)
        points = left * values / roots[position][:, None]
        labels.append(k_means(points, found[position].counts + 1.0, n_clusters[position], rng, n_init=3))
    return from_labels(problem, labels, n_clusters, LOOSE_FIRMNESS)


def from_labels(
    problem: Problem, labels: Sequence[AnyArray], n_clusters: Sequence[int] | None = None, firmness: float = 1.0
) -> Posterior:
    """Given clusters, one array of integers per mode; ``firmness`` < 1 gives every cluster some probability.

    Items of frozen modes are sure of their clusters.
    """
    assign = []
    if len(labels) != problem.structure.n_modes:
        raise GinghamError(f"{len(labels)} label arrays were given for {problem.structure.n_modes} modes.")
    for at, (mode, given) in enumerate(zip(problem.structure.modes, labels)):
        xp = namespace(given)
        given = np.asarray(given) if xp is np else given
        whole = not xp.is_floating_point(given) if xp is not np else given.dtype.kind in "iu"
        if tuple(given.shape) != (mode.n_items,) or not whole or (len(given) and given.min() < 0):
            raise GinghamError(
                f"Labels of mode {mode.name!r} must be {mode.n_items} integers from 0, one per item; "
                f"got shape {tuple(given.shape)}, dtype {given.dtype}."
            )
        most = int(given.max()) + 1
        m = most if n_clusters is None else max(n_clusters[at], most)
        sure = 1.0 if at in problem.structure.frozen else firmness
        rows = beside(sure * np.eye(m) + (1.0 - sure) / m, given)
        assign.append(rows[given])
    return with_best_answers(problem, assign)


def from_votes(problem: Problem, clusters: AnyArray, n_clusters: Sequence[int]) -> Posterior:
    """Clusters known for some observations, (N, d) with −1 where unknown: each observation votes for its items."""
    sample = problem.samples[0]
    clusters = np.asarray(clusters)
    if clusters.shape != (sample.n_rows, sample.n_modes) or clusters.dtype.kind not in "iu":
        raise GinghamError(
            f"clusters= must be integers of shape {(sample.n_rows, sample.n_modes)}, −1 where unknown; "
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
    answers = []
    for relation, cell in enumerate(problem.cells):
        check_table([q.shape[1] for q in posterior.factor(relation)], cell.features.size)
        answers.append(cell.answer(problem.sums(relation).table(posterior.factor(relation))))
    return replace(posterior, answers=tuple(answers))


@dataclass(frozen=True)
class ItemSums:
    """What the items of one position were seen with."""

    counts: Floats  # (n,) weight of the tuples of each item
    responses: Floats  # (n, r) sums of what is averaged, centred
    centre: Floats  # (r,) the mean that was taken out
    spread: Floats  # (r,) Σ response² over all observations

    @property
    def noise(self) -> Floats:
        """Variance of shrunken means that chance alone would give, (r,)."""
        average = self.spread / max(float(self.counts.sum()), 1e-300)
        return average * float((self.counts / (self.counts + SHRINK) ** 2).mean())

    @property
    def shrunken(self) -> Floats:
        """Σ response/(count + SHRINK), shape (n, r)."""
        return self.responses / (self.counts + SHRINK)[:, None]


def label_parts(problem: Problem, relation: int) -> tuple[Floats, Floats]:
    """As combinations of t(y): what is averaged per item, (K, r), and the count of an observation, (K,).

    Averaged are labels, or their one-hot codes where they are names.
    """
    cell, sums = problem.cells[relation], problem.sums(relation)
    size = cell.features.size
    if cell.features.one_hot:
        values = sums.numbers[:, None] if cell.ordered and sums.numbers is not None else np.eye(size)
        return values, np.ones(size)
    return np.eye(size)[:, 1:2] if size > 1 else np.zeros((1, 1)), np.eye(size)[0]


def item_sums(problem: Problem, relation: int, position: int) -> ItemSums:
    sums = problem.sums(relation)
    size = problem.cells[relation].features.size
    factor = problem.structure.factors[relation]
    ones = [np.ones((problem.structure.modes[mode].n_items, 1)) for j, mode in enumerate(factor) if j != position]
    table = sums.project(position, ones, np.eye(size))  # (n, K)
    values, count = (beside(part, table) for part in label_parts(problem, relation))
    counts = table @ count
    total = table.sum(axis=0)
    n = max(float(total @ count), 1e-300)
    centre = total @ values / n
    # Where labels are on an alphabet their squares follow from the histogram.
    if problem.cells[relation].features.one_hot:
        spread, rounding = total @ (values - centre) ** 2, 1e-24 * (total @ values**2)
    else:
        squares = beside([sums.squares()], table)
        spread, rounding = squares - n * centre**2, 1e-14 * squares
    # Labels that are all the same leave rounding over, which says nothing and differs with the order of sums.
    responses = where(spread > rounding, table @ values - counts[:, None] * centre, 0.0)
    return ItemSums(counts, responses, centre, where(spread > rounding, spread, 0.0))


def item_embeddings(problem: Problem, rank: int, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """For each mode, points (n_items, dim) in which similar items are near, and weights (n_items,)."""
    columns: list[list[Floats]] = [[] for _ in problem.structure.modes]
    weights: list[Any] = [0.0] * problem.structure.n_modes
    for relation, factor in enumerate(problem.structure.factors):
        sums = [item_sums(problem, relation, position) for position in range(len(factor))]
        vectors = _spectral(problem, relation, sums, rank, rng) if rank and len(factor) > 1 else []
        for position, mode in enumerate(factor):
            weights[mode] = weights[mode] + sums[position].counts
            of = sums[position]
            means = _scaled(of.shrunken, of.noise, of.spread / max(float(of.counts.sum()), 1e-300))
            columns[mode] += [1.5 * means, *vectors[position : position + 1]]
    found = []
    for known, parts, weight in zip(problem.structure.modes, columns, weights):
        nothing = np.zeros((known.n_items, 1))  # of a mode that stands in no relation
        found.append((hstack(parts), weight + 1.0) if parts else (nothing, nothing[:, 0] + 1.0))
    return found


def _spectral(
    problem: Problem, relation: int, sums: Sequence[ItemSums], rank: int, rng: np.random.Generator
) -> list[Floats]:
    """For each position points (n_items, ≤ rank) in singular vectors of the residuals, its items against the others.

    Each coordinate has the spread √(share of it that noise does not explain).
    """
    offsets = [of.shrunken for of in sums]
    found = []
    for position in range(len(sums)):
        matrix = Contrasts(problem, relation, position, sums, offsets=offsets)
        left, values, right = matrix.leading(rank, rng)
        found.append((matrix, left, values))
        if len(sums) == 2 and len(matrix.blocks) == 1:  # the other position's matrix is this one transposed
            found.append((matrix, right, values))
            break
    embedded = []
    for (matrix, vectors, values), of in zip(found, sums):
        # A matrix of pure noise with these entries has singular values up to σ√p(√n + √n').
        edge = sqrt(matrix.square() / prod(matrix.shape)) * sum(sqrt(n) for n in matrix.shape)
        points = vectors * values / (of.counts + SHRINK)[:, None] ** 0.5
        # Of what is zero there are no vectors, only rounding.
        points = where(values > 1e-10 * float(of.spread.sum()) ** 0.5, points, 0.0)
        embedded.append(_scaled(points, variance(points) * (edge / values.clip(1e-9 * edge + 1e-300)) ** 2))
    return embedded


class Contrasts:
    """A matrix that is never held: what observations say of the items of one position against those of the others.

    Entry (x, x_j) of the block of another position j and of a response is Σ_e w_e s_x s_j (response_e − a_x − a_j) over
    the tuples of both items, with centred responses and, for each position, ``offsets`` a (n, r) and ``scales`` s (n,).
    Its products are sums over observations.
    """

    def __init__(
        self,
        problem: Problem,
        relation: int,
        position: int,
        of: Sequence[ItemSums],
        offsets: Sequence[Floats] | None = None,
        scales: Sequence[Floats] | None = None,
    ) -> None:
        self.sums, self.position, self.of = problem.sums(relation), position, of
        self.others = [j for j in range(len(of)) if j != position]
        values, self.count = label_parts(problem, relation)
        self.values = values - self.count[:, None] * on_host(of[0].centre)
        n_responses = values.shape[1]
        self.offsets = offsets or [0.0 * items.responses for items in of]
        self.scales = scales or [0.0 * items.counts + 1.0 for items in of]
        self.blocks = [(j, r) for j in self.others for r in range(n_responses)]
        self.shape = (len(of[position].counts), sum(len(of[j].counts) for j, _ in self.blocks))

    def leading(
        self, rank: int, rng: np.random.Generator, spare: int = 0, rounds: int = 4
    ) -> tuple[Floats, Floats, Floats]:
        """Left singular vectors, (n, ≤ rank), singular values and right vectors, by subspace iteration.

        A start needs no exact vectors, but the same ones wherever the observations are; signs do not matter to k-means.
        """
        like = self.scales[self.position]
        xp = namespace(like)
        basis = beside(rng.standard_normal((self.shape[1], min(rank + spare, *self.shape))), like)
        for _ in range(rounds):
            product = self.times(basis)
            transposed = vstack([self._block(j, self.position, r, product) for j, r in self.blocks])
            basis, _ = xp.linalg.qr(transposed)
        # Of a matrix as narrow as this the triangle has the values and the small rotation.
        wide, triangle = xp.linalg.qr(self.times(basis))
        left, values, within = xp.linalg.svd(triangle)
        return wide @ left[:, :rank], values[:rank], basis @ within.T[:, :rank]

    def times(self, vectors: Floats) -> Floats:
        """The matrix times vectors (columns, m)."""
        total: Any = 0.0
        first = 0
        for j, r in self.blocks:
            last = first + len(self.of[j].counts)
            total = total + self._block(self.position, j, r, vectors[first:last])
            first = last
        return total

    def square(self) -> float:
        """Σ_e w_e (response_e − a_x − a_j)² over all blocks: the sum of squared entries where no pair is met twice."""
        total = 0.0
        x, a = self.of[self.position], self.offsets[self.position]
        for j, r in self.blocks:
            y, b = self.of[j], self.offsets[j]
            both = self.sums.project(
                self.position, self._beside(self.position, j, b[:, r : r + 1]), self.count[None, :]
            )
            total += float(x.spread[r] - 2.0 * (a[:, r] @ x.responses[:, r] + b[:, r] @ y.responses[:, r]))
            total += float(a[:, r] ** 2 @ x.counts + b[:, r] ** 2 @ y.counts + 2.0 * a[:, r] @ both[:, 0])
        return max(total, 0.0)

    def _block(self, to: int, other: int, r: int, vectors: Floats) -> Floats:
        """The block of two positions and a response, items of ``to`` in its rows, times vectors."""
        m = vectors.shape[1]
        vectors = vectors * self.scales[other][:, None]
        both = hstack([vectors, vectors * self.offsets[other][:, r : r + 1]])
        each, none = np.eye(m), np.zeros((m, m))
        said = np.hstack([np.hstack([v * each, -n * each]) for v, n in zip(self.values[:, r], self.count)])
        met = np.hstack([np.hstack([n * each, none]) for n in self.count])
        found = self.sums.project(to, self._beside(to, other, both), np.vstack([said, met]))
        return (found[:, :m] - self.offsets[to][:, r : r + 1] * found[:, m:]) * self.scales[to][:, None]

    def _beside(self, to: int, other: int, vectors: Floats) -> list[Floats]:
        """What is summed over the tuples of the items of ``to``: vectors of one position; others do not matter."""
        ones = (np.ones((len(items.counts), 1)) for items in self.of)
        return [vectors if j == other else o for j, o in enumerate(ones) if j != to]


def variance(points: Floats) -> Floats:
    """The variance of every column, (dim,)."""
    return ((points - points.mean(axis=0)) ** 2).mean(axis=0)


def _scaled(points: Floats, noise: Floats, unit: Floats | float = 0.0) -> Floats:
    """Columns of spread √(share of their variance that noise does not explain), never quite zero.

    A column whose variance is rounding of numbers of size √``unit`` says nothing, and is zero.
    """
    spread = variance(points)
    points, spread = where(spread > 1e-20 * unit, points, 0.0), where(spread > 1e-20 * unit, spread, 0.0)
    share = 1.0 - noise / spread.clip(1e-300)
    return points * (share.clip(0.02, 1.0) / where(spread > 0, spread, 1.0)) ** 0.5


Sizes = int | Sequence[int] | str  # clusters of all modes alike, of each mode, or "auto"


def expand_clusters(
    n_clusters: Sizes | Sequence[int | None], shape: Sequence[int], n_observations: float
) -> tuple[int, ...]:
    """The number of clusters of each mode from an int, one int per mode, or "auto" (by the size of the data)."""
    d = len(shape)
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise GinghamError(f"n_clusters={n_clusters!r} is unknown; give an int, one int per mode, or 'auto'.")
        # About 40 observations a cell, at most 20 clusters; two where a grid of twos is still small.
        even = round((n_observations / 40) ** (1 / d))
        wanted: list[object] = [min(20, max(2 if d <= 12 else 1, even))] * d
    elif np.ndim(cast(ArrayLike, n_clusters)) == 0:
        wanted = [n_clusters] * d
    else:
        wanted = list(cast(Sequence[object], n_clusters))
        if len(wanted) != d:
            raise GinghamError(f"n_clusters has {len(wanted)} entries, but the data has {d} modes (columns of X).")
    sizes = []
    for m, n in zip(wanted, shape):
        if isinstance(m, (bool, np.bool_)) or not isinstance(m, (int, np.integer)) or m < 1:
            raise GinghamError(f"n_clusters={n_clusters!r}: a number of clusters must be an integer ≥ 1.")
        sizes.append(min(int(m), n))  # more clusters than items could never all be filled
    return tuple(sizes)
