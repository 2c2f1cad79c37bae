"""Evidence: everything a bound may know of a posterior and a sample, the law of the loss and the price, in nats.

The price is KL(Q‖P), of having chosen the co-clustering by looking at the data. A hypothesis is a hard co-clustering
with an answer in each cell; the posterior Q draws every item's cluster independently from q(c|x) and has fixed
answers. Two accounts of the same price:

papers
    Σ_i (n_i Ī_i + m_i ln n_i) + M ln|Y|   (P0 Lemma 9, eq. 22).
exact
    The divergence itself, for a prior that allows empty clusters (P0's Lemma 8 does not, so that its
    divergence from any soft Q would be infinite): number of clusters, then cluster sizes, then who
    belongs where; cell answers by how often each occurs, then where.

Answers from a continuum are rounded to a finite grid so that a prior can pay for them. The rounded model is a model of
its own, and its exact Gibbs loss enters the bound: no correction term is needed (P0 appendix B adds 2Δ + Δ², P1 eq. 15
adds Δ + Δ²/4). Which grid is used may depend on the data, because a prior over a few grids is paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, factorial, log
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma, xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import CellModel
from gingham.certificates.bounds import GibbsLaw
from gingham.certificates.divergence import kl_upper
from gingham.core.problem import Posterior
from gingham.data import Alphabet, Bounds, Mode, Moments, OneHot, Sample
from gingham.data.fit_rows import need_rows_once
from gingham.data.sample import whole_counts
from gingham.engine.project import STEP_BYTES, row_blocks
from gingham.engine.threads import over_blocks
from gingham.errors import GinghamError, RefusedCertificate

POWERS = 5  # of memberships that are summed
TINY = 1e-60  # memberships below add nothing to any sum
CLOSE = 1e-6  # nats to which the price of a cluster is right
# Probabilities of coins whose sum follows from power sums, so many of them, and of which the first POWERS are enough.
RARE, RARE_POWERS, FAINT = 2.0**-3, 24, 2.0**-10


@dataclass(frozen=True)
class Complexity:
    """KL(Q‖P) as a sum of named terms."""

    # nats by name; single terms may be negative; their sum is a divergence or a bound on one
    terms: Mapping[str, float]

    @property
    def total(self) -> float:
        """KL(Q‖P) = Σ terms, never below zero."""
        return max(0.0, float(sum(self.terms.values())))


def of_posterior(
    assigns: Mapping[str, Floats],
    answers: AnyArray,
    n_answers: int,
    *,
    kind: str = "exact",
    symmetric: bool = False,
    quantised: bool = False,
) -> Complexity:
    """The price of one checkerboard.

    Parameters
    ----------
    assigns : mapping from mode name to (n, m) assignments
        A mode that is met twice (a graph) is named, and paid for, once.
    answers : int array of shape (m_1, …, m_d)
        Index of each cell's answer among ``n_answers`` possible ones.
    kind : {"exact", "papers"}
    symmetric : bool
        Whether cells (a, b) and (b, a) are one cell (undirected graph): k(k + 1)/2 answers to pay for.
        Ignored by the papers, which pay for all k² (P0 eq. 53).
    quantised : bool
        Whether the answers are numbers rounded to a grid, for which few cells share an answer.
    """
    terms = of_partitions(assigns, kind)
    if kind == "papers":
        terms.update(labels_uniform(int(np.size(answers)), n_answers))
    else:
        cells = cells_once(answers) if symmetric else answers
        terms.update(labels_either_way(cells, n_answers) if quantised else labels_by_type(cells, n_answers))
    return Complexity(terms)


class ClusterSums(NamedTuple):
    """A clustering and the sums over its items that prices are made of."""

    assign: Floats  # (n, m)
    powers: Floats  # (POWERS, m): Σ_x q(c|x)^j for j = 1, 2, …
    neg_entropy: float  # Σ_x Σ_c q ln q


Memberships = Floats | ClusterSums  # (n, m), or with their sums


def cluster_sums(assign: Memberships) -> ClusterSums:
    """One pass over memberships whose sums are not known, in blocks that stay in cache, on all cores."""
    if isinstance(assign, ClusterSums):
        return assign
    assign = np.asarray(assign)
    n, m = assign.shape

    def run(block: tuple[int, int]) -> tuple[Floats, float]:
        q = np.asarray(assign[block[0] : block[1]], dtype=np.float64)
        q = np.where(q > TINY, q, 0.0)  # powers of less would be numbers that processors are slow with
        power, powers = q.copy(), np.empty((POWERS, m))
        for j in range(POWERS):
            powers[j] = power.sum(axis=0)
            power *= q
        np.log(np.maximum(q, TINY, out=power), out=power)
        power *= q  # not by BLAS, whose other threads would wait at the cost of a core
        return powers, float(power.sum())

    parts = list(over_blocks(run, row_blocks(n, m, STEP_BYTES)))
    return ClusterSums(assign, np.sum([powers for powers, _ in parts], axis=0), sum(entropy for _, entropy in parts))


def of_partitions(assigns: Mapping[str, Memberships], kind: str = "exact") -> dict[str, float]:
    """The price of who belongs to which cluster, mode by mode."""
    if kind not in ("exact", "papers"):
        raise GinghamError(f"complexity={kind!r} is unknown; choose exact or papers.")
    price = partition_papers if kind == "papers" else partition_exact
    return {f"{name}: {part}": value for name, q in assigns.items() for part, value in price(q).items()}


def partition_papers(assign: Memberships) -> dict[str, float]:
    """n Ī + m ln n (P0 eq. 22): what the partition says about the items, and the cluster sizes."""
    of = cluster_sums(assign)
    n, m = of.assign.shape
    return {"information n·I": partition_information(of), "cluster sizes m·ln n": m * log(n)}


def partition_exact(assign: Memberships) -> dict[str, float]:
    """KL_i = ln m(m+1) + ln C(n+m−1, m−1) + [ln n! − Σ_c E ln N_c!] + Σ q ln q."""
    of = cluster_sums(assign)
    n, m = of.assign.shape
    arrangements = float(gammaln(n + 1) - expected_log_factorials(of).sum())
    return {
        "number of clusters": log(m) + log(m + 1),
        "cluster sizes": log_binomial(n + m - 1, m - 1),
        "who belongs where": arrangements + of.neg_entropy,
    }


def labels_uniform(n_cells: int, n_answers: float) -> dict[str, float]:
    """M ln|Y| (P0 eq. 20): every way of answering is as likely as every other."""
    return {"cell answers": n_cells * log(n_answers)}


def labels_by_type(answers: AnyArray, n_answers: int) -> dict[str, float]:
    """ln C(M+|Y|−1, |Y|−1) + ln M!/Π cnt_y!: how often each answer occurs, then in which cells."""
    cells = np.asarray(answers).ravel()
    counts = np.bincount(cells, minlength=n_answers)
    return {
        "answer counts": log_binomial(len(cells) + n_answers - 1, n_answers - 1),
        "which cell answers what": float(gammaln(len(cells) + 1) - gammaln(counts + 1).sum()),
    }


def labels_either_way(answers: AnyArray, n_answers: int) -> dict[str, float]:
    """Half a prior by type and half a uniform one: for grids of many possible answers."""
    cells = np.asarray(answers).ravel()
    by_type = sum(labels_by_type(cells, n_answers).values())
    uniform = len(cells) * log(n_answers)
    return {"cell answers": log(2.0) - float(np.logaddexp(-by_type, -uniform))}


def cells_once(answers: AnyArray) -> AnyArray:
    """The k(k + 1)/2 different cells of a symmetric table of answers."""
    answers = np.asarray(answers)
    if answers.ndim != 2 or answers.shape[0] != answers.shape[1] or (answers != answers.T).any():
        raise GinghamError("The answers of an undirected graph must form a symmetric table.")
    return answers[np.triu_indices(len(answers))]


def renamings(assigns: Sequence[Floats]) -> float:
    """Σ_i ln (m_i!/empty_i!): what a hard co-clustering may deduct, in nats.

    That many renamings of its clusters (answers moved along) are one and the same predictor and have
    the same prior probability. Soft posteriors may deduct nothing.
    """
    total = 0.0
    for assign in assigns:
        # A few items tell most soft ones.
        if not all(bool(((part == 0.0) | (part == 1.0)).all()) for part in (assign[:1000], assign)):
            return 0.0
        used = int(assign.any(axis=0).sum())
        m = assign.shape[1]
        total += float(gammaln(m + 1) - gammaln(m - used + 1))
    return total


def sequence_price(n_leaves: int, merges: Sequence[Sequence[object]]) -> float:
    """−ln P(tree) when pairs are merged one after the other: with f nodes at the top, stop or pick a pair.

    The C(f, 2) pairs and stopping are equally likely, so the prior sums to one over all merge histories
    and a bound may hold for all of them at once (P0 §7.2).
    """
    price, top = 0.0, n_leaves
    for _ in merges:
        price += log(comb(top, 2) + 1)
        top -= 1
    return price + (log(comb(top, 2) + 1) if top > 1 else 0.0)


def partition_information(assign: Memberships) -> float:
    """n Ī(X; C) = Σ_x Σ_c q(c|x) ln [q(c|x)/qbar(c)], items weighted uniformly."""
    of = cluster_sums(assign)
    n = len(of.assign)
    mass = of.powers[0] / n
    return max(0.0, of.neg_entropy - n * float(xlogy(mass, mass).sum()))


def poisson_binomial(probabilities: Floats) -> Floats:
    """P(N_c = 0), …, P(N_c = n) of sums N_c of independent coins, shape (m, n + 1), by divide and conquer.

    Column c of ``probabilities`` (n, m) holds the success probabilities of the n coins of sum c.
    """
    q = np.asarray(probabilities, dtype=np.float64)
    n, m = q.shape
    if n == 0:
        return np.ones((m, 1))
    block = 32  # coins put together one by one; longer sums are convolved in pairs by Fourier transform
    n_blocks = 1 << max(0, (-(-n // block) - 1).bit_length())
    from scipy.fft import irfft, next_fast_len, rfft  # takes a while to import

    padded = np.zeros((n_blocks * block, m))
    padded[:n] = q
    coins = padded.reshape(n_blocks, block, m).transpose(1, 2, 0)[..., None]  # (block, m, n_blocks, 1)
    laws = np.zeros((m, n_blocks, block + 1))
    laws[..., 0] = 1.0
    for j in range(block):
        moved = coins[j] * laws[..., :-1]
        laws *= 1 - coins[j]
        laws[..., 1:] += moved
    while laws.shape[1] > 1:
        length = 2 * (laws.shape[2] - 1)  # highest count of a pair
        period = next_fast_len(length + 1, real=True)
        spectrum = rfft(laws, n=period, axis=2)
        laws = irfft(spectrum[:, 0::2] * spectrum[:, 1::2], n=period, axis=2)[..., : length + 1]
        np.maximum(laws, 0.0, out=laws)
        # High counts that are out of reach, and the transform's noise there, are cut off. That makes
        # E ln N! smaller and the divergence larger, never the other way round.
        reachable = np.flatnonzero(laws.max(axis=(0, 1)) > 1e-14)
        laws = laws[..., : reachable[-1] + 1]
    width = min(laws.shape[2], n + 1)
    result: Floats = np.zeros((m, n + 1))
    result[:, :width] = laws[:, 0, :width]
    return result / np.maximum(result.sum(axis=1, keepdims=True), 1.0)


def expected_log_factorials(assign: Memberships) -> Floats:
    """E ln N_c! for each cluster, N_c the number of items drawn into it, Poisson-binomial(q(c|·)), shape (m,).

    ln x! has even derivatives above zero, so its Taylor polynomials of odd degree lie below it everywhere: the one of
    degree 5 at E N_c, which needs moments alone, gives a price that is never too low. It is taken where it is right to
    `CLOSE` nats, that is for all but small clusters of uncertain items; for these the law itself is made.
    """
    of = cluster_sums(assign)
    mean, *moments = _central_moments(of.powers)
    derivatives = [polygamma(k, mean + 1.0) for k in (1, 2, 3, 4, 5)]
    result = gammaln(mean + 1.0)
    for k, (derivative, moment) in enumerate(zip(derivatives, moments), start=2):
        result = result + derivative * moment / factorial(k)
    variance = np.maximum(moments[0], 0.0)
    # Cumulants of coins are at most their variance, so the sixth moment is at most σ² + 25 σ⁴ + 15 σ⁶. Twice what it
    # makes at the mean is enough where ten standard deviations below the mean are still far from zero.
    sixth = variance + 25.0 * variance**2 + 15.0 * variance**3
    rest = 2.0 * derivatives[4] * sixth / factorial(6)
    small = np.flatnonzero((variance > 0) & ((rest > CLOSE) | (20.0 * np.sqrt(variance) > mean)))
    if len(small):
        result[small] = _of_laws(of.assign[:, small], of.powers[:, small])
    return np.asarray(result)


def _central_moments(powers: Floats) -> list[Floats]:
    """Mean and central moments 2 to 5 of a sum of coins from the power sums of their probabilities, each (m,)."""
    s1, s2, s3, s4, s5 = powers
    k2, k3 = s1 - s2, s1 - 3 * s2 + 2 * s3
    k4, k5 = s1 - 7 * s2 + 12 * s3 - 6 * s4, s1 - 15 * s2 + 50 * s3 - 60 * s4 + 24 * s5
    return [s1, k2, k3, k4 + 3 * k2**2, k5 + 10 * k2 * k3]


def _of_laws(q: Floats, powers: Floats) -> Floats:
    """E ln N_c! of few clusters by the law of N_c, shape (m,); ``powers`` are their sums over all items."""
    m = q.shape[1]
    columns, items = np.nonzero(q.T > FAINT)
    coins = q[items, columns].astype(np.float64)
    sure = np.bincount(columns[coins == 1.0], minlength=m)
    open_, few = (coins >= RARE) & (coins < 1.0), coins < RARE
    likely, at = coins[open_], columns[open_]
    # What neither is sure nor likely is rare; faint coins count in the first power sums alone.
    sums = _power_sums(coins[few], columns[few], RARE_POWERS, m)
    sums[:POWERS] = np.maximum(powers[:POWERS] - sure - _power_sums(likely, at, POWERS, m), 0.0)
    n_open = np.bincount(at, minlength=m)
    place = np.arange(len(at)) - (np.cumsum(n_open) - n_open)[at]  # of a coin among those of its cluster
    table = np.zeros((int(n_open.max(initial=0)), m))
    table[place, at] = likely
    result = np.empty(m)
    # Clusters of about equal support go together.
    order = np.argsort(n_open, kind="stable")
    start = 0
    while start < m:
        longest = int(n_open[order[start]])
        stop = start + 1
        while stop < m and n_open[order[stop]] <= max(64, 1.3 * longest) and stop - start < 64:
            stop += 1
        group = order[start:stop]
        laws = poisson_binomial(table[: int(n_open[group].max()), group])
        for c, law, rare in zip(group, laws, rare_law(sums[:, group])):
            law = np.convolve(law[: np.flatnonzero(law)[-1] + 1], rare)
            result[c] = law @ gammaln(sure[c] + np.arange(len(law)) + 1.0)
        start = stop
    return result


def _power_sums(values: Floats, columns: Ints, n_powers: int, m: int) -> Floats:
    """Σ value^k of each column for k = 1, 2, …, shape (n_powers, m)."""
    sums, power = np.empty((n_powers, m)), values.copy()
    for k in range(n_powers):
        sums[k] = np.bincount(columns, power, minlength=m)
        power *= values
    return sums


def rare_law(powers: Floats) -> Floats:
    """P(0), P(1), … of sums of rare coins with these power sums (K, …) of their probabilities, as far as they reach.

    The generating function of one is exp Σ_k (−1)^(k+1) s_k (z − 1)^k/k.
    """
    from scipy.fft import irfft, next_fast_len  # takes a while to import

    powers = np.asarray(powers, dtype=np.float64)
    most = float(powers[0].max(initial=0.0))
    last = int(most + 12.0 * most**0.5) + 40
    period = next_fast_len(last + 1, real=True)
    turned = 1.0 - np.exp(-2j * np.pi * np.arange(period // 2 + 1) / period)
    exponent = np.zeros((*powers.shape[1:], len(turned)), dtype=np.complex128)
    for k in range(len(powers), 0, -1):
        exponent = (exponent + powers[k - 1, ..., None] / k) * turned
    law = np.maximum(irfft(np.exp(-exponent), n=period)[..., : last + 1], 0.0)
    return law / np.maximum(law.sum(axis=-1, keepdims=True), 1.0)


def log_binomial(n: float, k: float) -> float:
    """ln C(n, k)."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


GRIDS = tuple(2**j + 1 for j in range(1, 13))  # 3, 5, …, 4097 evenly spaced numbers, both ends included
PARTS = (4, 8, 16, 32, 64, 128, 256)  # into how many parts a distribution is cut


@dataclass(frozen=True, eq=False)
class QuantisedAnswers:
    """Answers a prior can pay for."""

    answers: AnyArray  # (m_1, …, m_d) or (m_1, …, m_d, |Y|): as the cell model gives them
    distinct: AnyArray  # (A,) or (A, |Y|): the different ones
    index: Ints  # (m_1, …, m_d): which of the distinct answers a cell gives
    price: dict[str, float]  # nats by name
    price_papers: dict[str, float]
    n_answers: float  # how many answers a cell could have given
    rounded: bool


def quantise_answers(
    cell: CellModel, answers: AnyArray, statistics: Floats, symmetric: bool, others: float = 0.0
) -> QuantisedAnswers:
    """The answers of one relation with their prices; rounded where they come from a continuum.

    Parameters
    ----------
    statistics : ndarray of shape (m_1, …, m_d, K)
        The cell statistics on the sample, which guide the choice of the grid.
    symmetric : bool
        Whether cells (a, b) and (b, a) are one and the same.
    others : float
        Nats that are paid for all but the answers.
    """
    if cell.answers == "label" and cell.n_answers is not None:
        size = cell.n_answers
        distinct, index = pooled_answers(answers, 0)
        return QuantisedAnswers(
            answers,
            distinct,
            index,
            labels_by_type(cells_once(answers) if symmetric else answers, size),
            labels_uniform(answers.size, size),
            size,
            False,
        )
    if cell.answers == "number":
        return _best(cell, statistics, [_on_grid(cell, answers, size, symmetric) for size in GRIDS], others)
    if cell.answers == "distribution":
        return _best(cell, statistics, [_in_parts(cell, answers, parts, symmetric) for parts in PARTS], others)
    raise RefusedCertificate(
        f"{type(cell).__name__} cells answer from a continuum that gingham cannot round, so that no prior pays "
        "for their answers. Certify the finished predictions on other data: certify(..., bound='holdout')."
    )


def _on_grid(cell: CellModel, answers: Floats, size: int, symmetric: bool) -> QuantisedAnswers:
    """Numbers to the nearest of ``size`` evenly spaced ones between the bounds."""
    bounds = Bounds.of(cell.bounds, given=True)
    if bounds is None:
        raise unbounded(cell)
    bounds.check(answers, "The answer of cell", SINGLE_PRECISION)
    step = (bounds.high - bounds.low) / (size - 1)
    at = np.rint((answers - bounds.low) / step) if step > 0 else 0.0 * answers
    at = np.minimum(np.maximum(at, 0), size - 1).astype(np.int64)  # of answers that are outside by rounding
    fresh = bounds.low + step * at
    distinct, index = pooled_answers(fresh, 0)
    price = labels_either_way(cells_once(at) if symmetric else at, size)
    return QuantisedAnswers(fresh, distinct, index, price, labels_uniform(at.size, size), size, True)


def _in_parts(cell: CellModel, answers: Floats, parts: int, symmetric: bool) -> QuantisedAnswers:
    """Distributions to multiples of 1/parts by largest remainders, then smoothed as the cell smooths."""
    size = answers.shape[-1]
    counts = _cut(answers, cell.smoothing, parts)
    fresh = smoothed(counts, parts, cell)
    distinct, index = pooled_answers(fresh, 1)
    ways = float(np.exp(log_binomial(parts + size - 1, size - 1)))
    cells = cells_once(index) if symmetric else index
    return QuantisedAnswers(
        fresh, distinct, index, labels_uniform(cells.size, ways), labels_uniform(index.size, ways), ways, True
    )


def smoothed(counts: Floats, parts: int, cell: CellModel) -> Floats:
    """Distributions counts/parts with the cell's share of the uniform one mixed in."""
    return (1 - cell.smoothing) * counts / parts + cell.smoothing / counts.shape[-1]


def _best(cell: CellModel, statistics: Floats, options: list[QuantisedAnswers], others: float) -> QuantisedAnswers:
    """Any rule may choose; this one takes the lowest kl bound, with what is paid for all ``others``, too.

    Nats cost less where there are many already: with the answers' price alone the grid would be too coarse.
    """
    total = float(cell.features.count(statistics).sum())

    def promise(option: QuantisedAnswers) -> float:
        loss = float(cell.loss(option.answers, statistics).sum()) - total * cell.low
        loss = loss / (total * cell.range) if cell.range > 0 else 0.0
        return float(kl_upper(min(max(loss, 0.0), 1.0), (others + sum(option.price.values())) / total))

    best = min(options, key=promise)
    extra = {"choice of the answers' grid": log(len(options))}
    return replace(best, price={**best.price, **extra}, price_papers={**best.price_papers, **extra})


def pooled_answers(answers: AnyArray, tail: int) -> tuple[AnyArray, Ints]:
    """The different answers, and which of them each cell gives; the last ``tail`` axes are one answer."""
    shape = answers.shape[: answers.ndim - tail]
    distinct, index = np.unique(answers.reshape(-1, *answers.shape[answers.ndim - tail :]), axis=0, return_inverse=True)
    return distinct, index.reshape(shape)


def _cut(answers: Floats, smoothing: float, parts: int) -> Floats:
    """The nearest distributions with denominator ``parts`` (largest remainders), as counts."""
    size = answers.shape[-1]
    free = np.clip((answers - smoothing / size) / (1 - smoothing), 0, None)
    free = free / free.sum(-1, keepdims=True) * parts
    counts = np.floor(free)
    missing = np.rint(parts - counts.sum(-1)).astype(np.int64)
    rank = np.argsort(np.argsort(-(free - counts), axis=-1, kind="stable"), axis=-1, kind="stable")
    return counts + (rank < missing[..., None])


Population = Sequence[int] | Mapping[str, int]  # how many items there are of each mode
ROUNDING = 1e-9  # of a scaled loss
SINGLE_PRECISION = 1e-6  # by which answers of single precision may lie outside their bounds, as a share of their size
MAX_SUPPORT = 1000  # possible losses up to which type-KL and split-kl are offered
BINS = 2**16  # of |y − answer| for labels without an alphabet; losses are rounded up, so never understated


@dataclass(frozen=True, eq=False)
class Evidence:
    """The law of the Gibbs loss on a sample, and the price of the posterior."""

    law: GibbsLaw  # of (loss − low)/range
    low: float  # in the loss's own unit
    range: float
    n_tuples: int  # N
    prices: Mapping[str, Complexity]  # by "exact" and "papers"
    # the very model that is covered; its answers are rounded where they came from a continuum
    covered: Posterior | None = None
    n_answers: float = 0.0
    rounded: bool = False

    def in_unit(self, scaled: float) -> float:
        """A scaled loss in the loss's own unit."""
        return self.low + self.range * scaled

    @property
    def empirical(self) -> float:
        """L̂(Q) in the loss's own unit."""
        return self.in_unit(self.law.mean)


def collect(posterior: Posterior, sample: Sample, relation: int = 0, population: Population | None = None) -> Evidence:
    """The evidence a sample gives about one relation of a posterior, whose unseen items are drawn from the urn.

    ``population`` says how many items there are, see `stated_population`.
    """
    posterior = in_full_precision(posterior)
    check_sample(posterior, sample, relation)
    cell = posterior.cells[relation]
    if not (np.isfinite(cell.range) and cell.range >= 0):
        raise unbounded(cell)
    covered, quantised, accounts = quantised_and_priced(posterior, sample, relation, population)
    low, scale = loss_scale(cell)
    if sample.alphabet is not None:
        law = law_on_alphabet(covered, sample, quantised.distinct, quantised.index, relation)
    else:
        law = continuous_law(covered, sample, relation)
    return Evidence(
        law=law,
        low=low,
        range=scale,
        n_tuples=int(sample.n_tuples),
        prices=accounts,
        covered=covered,
        n_answers=quantised.n_answers,
        rounded=quantised.rounded,
    )


def quantised_and_priced(
    posterior: Posterior, sample: Sample, relation: int, population: Population | None = None
) -> tuple[Posterior, QuantisedAnswers, dict[str, Complexity]]:
    """The posterior with answers a prior can pay for, these answers, and both accounts of the price."""
    answers = list(posterior.answers)
    table = answers[relation]
    symmetric = posterior.structure.is_graph(relation) and bool((table == np.swapaxes(table, 0, 1)).all())
    if not posterior.has_known_price:
        raise RefusedCertificate(
            f"gingham does not know what {type(posterior).__name__} costs. Certify its predictions on tuples it was "
            "not fitted on: certify_predictions."
        )
    cell = posterior.cells[relation]
    # Labels need no rounding, and so no look at the cells.
    statistics = np.zeros(0) if cell.answers == "label" else posterior.statistics(sample, relation)
    sizes = checked_population(posterior, sample, relation, population)
    items = item_prices(posterior, relation, sizes)
    quantised = quantise_answers(cell, table, statistics, symmetric, sum(items.values()))
    answers[relation] = quantised.answers
    covered = replace(posterior, answers=tuple(answers))
    return covered, quantised, prices(covered, quantised, relation, sizes, items)


def item_prices(posterior: Posterior, relation: int, sizes: Mapping[int, int]) -> dict[str, float]:
    """What the exact prior is paid for the memberships of the modes that meet in one relation, nats by name."""
    names = posterior.structure.clusterings(posterior.assign, relation, sizes)
    paid = dict(of_partitions({name: cluster_sums(q) for name, q in names.items()}, "exact"))
    if posterior.structure.is_graph(relation):
        paid["directed or undirected"] = log(2)
    saved = renamings(list(names.values()))
    if saved > 0:
        paid["renamings of clusters"] = -saved
    return {**paid, **posterior.structure.choices()}


def prices(
    posterior: Posterior,
    quantised: QuantisedAnswers,
    relation: int,
    sizes: Mapping[int, int],
    items: Mapping[str, float],
) -> dict[str, Complexity]:
    """KL(Q‖P) exactly and as in the papers, for the modes that meet in one relation.

    The exact prior is an urn, which pays for items that nobody has seen. The papers' price is for a number of items
    that is known, and so it is given where ``sizes`` says how many there are.
    """
    undirected, chosen = posterior.structure.is_graph(relation), posterior.structure.choices()
    found = {"exact": Complexity({**items, **quantised.price})}
    every = {mode: sizes.get(mode, 0) for mode in posterior.structure.column_modes(relation)}
    # Ends of a pair that are both unseen come from one urn, which the papers' prior is not.
    if min(every.values()) > 0 and not (undirected and any(n > len(posterior.assign[m]) for m, n in every.items())):
        wide = posterior.structure.clusterings(with_unseen(posterior, every).assign, relation, sizes)
        found["papers"] = Complexity({**of_partitions(wide, "papers"), **quantised.price_papers, **chosen})
    return found


def stated_population(posterior: Posterior, population: Population | None) -> dict[int, int]:
    """How many items there are of each mode, where somebody said so: one number a mode, or by the modes' names."""
    if population is None:
        return {}
    modes = sorted(
        {mode for at in range(len(posterior.structure.factors)) for mode in posterior.structure.column_modes(at)}
    )
    names = dict(zip(posterior.structure.titles(modes), modes))
    if isinstance(population, Mapping):
        unknown = [name for name in population if name not in names]
        if unknown:
            raise GinghamError(f"population names {unknown[0]!r}; the modes are {', '.join(names)}.")
        said = {names[name]: size for name, size in population.items()}
    else:
        if len(population) != len(modes):
            raise GinghamError(f"population has {len(population)} entries, the model {len(modes)} modes.")
        said = dict(zip(modes, population))
    for mode, size in said.items():
        known, name = len(posterior.assign[mode]), posterior.structure.modes[mode].name
        if not float(size).is_integer() or size < known:
            raise GinghamError(f"population says {size} items of {name!r}, but the model knows {known}.")
    return {mode: int(size) for mode, size in said.items()}


def checked_population(
    posterior: Posterior, sample: Sample, relation: int, population: Population | None
) -> dict[int, int]:
    """The stated numbers of items; refuses items without a place in the urn, and tuples that contradict the numbers."""
    sizes, structure, places = (
        stated_population(posterior, population),
        posterior.structure,
        posterior.structure.column_modes(relation),
    )
    drawn_apart = structure.drawn_apart or posterior.shares_urn(relation) or len(set(places)) == len(places)
    for mode, code in zip(places, sample.codes):
        name, known = structure.modes[mode].name, len(posterior.assign[mode])
        if sizes.get(mode) == known:
            if (code < 0).any():
                raise GinghamError(f"population says {known} items of {name!r}, but the tuples have more.")
        elif mode in structure.frozen or not drawn_apart:
            why = (
                "stands more than once in a tuple of more than two"
                if mode not in structure.frozen
                else "is not clustered"
            )
            raise RefusedCertificate(
                f"{name!r} {why}, and nothing is known of items that were never seen. If there are no others than the "
                f"{known:,} that the model knows, say so: population=."
            )
    return sizes


def with_unseen(posterior: Posterior, sizes: Mapping[int, int]) -> Posterior:
    """The posterior with a row for every item that was never seen, where there are so many items in all."""
    assign = list(posterior.assign)
    for mode, size in sizes.items():
        assign[mode] = np.vstack([assign[mode], np.tile(posterior.unseen_rows[mode], (size - len(assign[mode]), 1))])
    return replace(posterior, assign=tuple(assign))


def loss_scale(cell: CellModel) -> tuple[float, float]:
    """(low, range): every loss lies between low and low + range; a constant loss gets range 1."""
    return cell.low, float(cell.range) if cell.range > 0 else 1.0


def scaled_losses(losses: Floats, cell: CellModel) -> Floats:
    """(loss − low)/range, between 0 and 1; a loss that leaves its range is an error, and never moved into it."""
    low, scale = loss_scale(cell)
    scaled = (np.asarray(losses) - low) / scale
    if scaled.size and not (scaled.min() >= -ROUNDING and scaled.max() <= 1 + ROUNDING):
        worst = scaled.max() if scaled.max() > 1 + ROUNDING else scaled.min()
        raise GinghamError(
            f"A {cell.name} loss of {low + scale * worst:.6g} lies outside the range that it is said to have, {low:g} "
            f"to {low + scale:g}: {type(cell).__name__}.range is wrong, or a label or answer is not among those stated."
        )
    return np.minimum(np.maximum(scaled, 0.0), 1.0)


def answer_losses(cell: CellModel, answers: AnyArray, alphabet: Alphabet) -> Floats:
    """The loss of each answer on each label, shape (A, |Y|)."""
    numbers = alphabet.numbers
    by_gap = cell.of_gap(numbers[None, :] - answers[:, None]) if cell.answers == "number" else None
    return cell.coef(answers) @ cell.features.of_labels(numbers).T if by_gap is None else by_gap


def law_on_alphabet(posterior: Posterior, sample: Sample, distinct: AnyArray, index: Ints, relation: int) -> GibbsLaw:
    """The law of the scaled loss; ``distinct`` are the different answers, ``index`` which of them each cell gives."""
    cell, letters = posterior.cells[relation], sample.alphabet
    if letters is None:
        raise RefusedCertificate("This law needs labels on an alphabet.")  # pragma: no cover - callers have asked
    support = None if cell.table is None else np.unique(cell.table)  # all losses that could occur
    support = support if support is None or len(support) <= MAX_SUPPORT else None
    joint = answer_label_counts(posterior, sample, distinct, index, relation)
    losses = scaled_losses(answer_losses(cell, distinct, letters), cell)
    return GibbsLaw.of(losses, joint, None if support is None else scaled_losses(support, cell))


def answer_label_counts(posterior: Posterior, sample: Sample, distinct: AnyArray, index: Ints, relation: int) -> Floats:
    """Expected number of tuples (A, |Y|) with each answer and each label."""
    size = sample.alphabet.size if sample.alphabet is not None else 1
    histogram = posterior.statistics(sample, relation, OneHot(size)).reshape(-1, size)
    counts = np.zeros((len(distinct), size))
    np.add.at(counts, index.ravel(), histogram)
    return counts


def continuous_law(posterior: Posterior, sample: Sample, relation: int) -> GibbsLaw:
    """The law of the loss for labels without an alphabet, tuple by tuple.

    The cell's `miss` (|y − answer| for squares) is rounded up to one of 2^16 steps, so that no loss is understated.
    """
    posterior, sample = posterior.at_root(sample)
    cell = posterior.cells[relation]
    bounds = Bounds.of(cell.bounds, given=True)
    if bounds is None or sample.labels is None:
        raise RefusedCertificate("A certificate needs numeric labels between known bounds.")
    if sample.complete and not bounds.low <= 0 <= bounds.high:
        raise GinghamError(f"Absent pairs have label 0, which lies outside bounds=({bounds.low:g}, {bounds.high:g}).")
    bounds.check(sample.labels, "The label of row")
    answers = posterior.answers[relation].ravel()
    bounds.check(answers, "The answer of cell", SINGLE_PRECISION)
    distinct, at = np.unique(answers, return_inverse=True)
    total = np.zeros(BINS + 1)
    listed = np.zeros(len(distinct))
    order = np.argsort(at, kind="stable")
    starts = np.flatnonzero(np.diff(at[order], prepend=-1))
    for start, stop in row_blocks(sample.n_rows, 4 * len(at)):
        cells = posterior.cell_laws([code[start:stop] for code in sample.codes], relation)
        by_answer = np.add.reduceat(cells[:, order], starts, axis=1)
        if sample.weights is not None:
            by_answer *= sample.weights[start:stop, None]
        listed += by_answer.sum(axis=0)
        bins = _bins(cell, sample.labels[start:stop, None], distinct[None, :])
        total += np.bincount(bins.ravel(), by_answer.ravel(), minlength=BINS + 1)
    # A sample may have observed tuples that it does not list, all with label 0 (absent edges).
    everything = posterior.statistics(sample, relation, Moments(0)).ravel()
    absent = np.bincount(at.ravel(), everything, minlength=len(distinct)) - listed
    if absent.sum() > 1e-6:
        total += np.bincount(_bins(cell, np.zeros(1), distinct), np.maximum(absent, 0.0), minlength=BINS + 1)
    seen = total > 0
    return GibbsLaw.of(cell.loss_of_miss(np.arange(BINS + 1)[seen] / BINS), total[seen])


def _bins(cell: CellModel, labels: Floats, answers: Floats) -> Ints:
    """Which of the steps a miss is rounded up to."""
    miss = cell.miss(labels, answers)
    if miss.size and not (miss.min() >= -ROUNDING and miss.max() <= 1 + SINGLE_PRECISION):
        raise GinghamError(
            f"A {cell.name} loss lies outside the range that it is said to have ({type(cell).__name__}.miss goes from "
            f"{miss.min():.6g} to {miss.max():.6g}, not from 0 to 1): range or bounds are wrong."
        )
    return np.ceil(np.minimum(np.maximum(miss, 0.0), 1.0) * BINS * (1 - 1e-12)).astype(np.int64)


def in_full_precision(posterior: Posterior) -> Posterior:
    """Assignments in float64 with rows that sum to one."""
    assign = []
    for mode, given in zip(posterior.structure.modes, posterior.assign):
        q = np.empty(given.shape)

        def run(block: tuple[int, int], given: Floats = given, q: Floats = q) -> bool:
            part = np.asarray(given[block[0] : block[1]], dtype=np.float64)
            rows = part.sum(axis=1, keepdims=True)
            np.divide(part, np.where(rows > 0, rows, 1.0), out=q[block[0] : block[1]])
            # A sum that is not finite is not near one, and what is below zero is not above it.
            return bool((np.abs(rows - 1) < 1e-3).all() and part.min() >= 0)

        if not all(over_blocks(run, row_blocks(len(given), given.shape[1], STEP_BYTES))):
            raise GinghamError(f"The memberships of mode {mode.name!r} are not distributions over clusters.")
        assign.append(q)
    return replace(posterior, assign=tuple(assign))


def unbounded(cell: CellModel) -> RefusedCertificate:
    """What to say of a loss that no theorem covers."""
    return RefusedCertificate(
        f"{type(cell).__name__}: the loss is unbounded, and no theorem covers an unbounded loss. "
        "Give alphabet= (the possible labels) or bounds=(smallest, largest) to the model."
    )


def paired(sample: Sample, codes: Ints, n_codes: int) -> Sample:
    """The sample labelled by pairs (label, one of ``n_codes`` predictions of a reference)."""
    if sample.alphabet is None or sample.label_codes is None:
        raise RefusedCertificate("A reference predictor needs labels on an alphabet.")
    pairs = sample.label_codes.astype(np.int64) * n_codes + codes
    letters = Alphabet(np.arange(sample.alphabet.size * n_codes), given=True)
    return replace(sample, labels=pairs.astype(np.float64), label_codes=pairs.astype(np.int32), alphabet=letters)


def check_alphabet(cell: CellModel, sample: Sample) -> None:
    """Label codes mean the same to the sample and to the cells."""
    letters = cell.alphabet
    if letters is None or sample.alphabet is None:
        if cell.table is not None:
            raise GinghamError("The sample has no alphabet, and the loss needs one.")
        return
    if letters.size != sample.alphabet.size or (letters.values != sample.alphabet.values).any():
        raise GinghamError("The sample's labels are numbered by another alphabet than the model's.")


def check_items(columns: Sequence[Mode], sample: Sample) -> None:
    """Codes of items mean the same to the sample and to the model."""
    if len(columns) != sample.n_modes:
        raise GinghamError(f"The sample has {sample.n_modes} columns of ids, the model {len(columns)}.")
    items = tuple(mode.n_items for mode in columns)
    if sample.shape != items:
        raise GinghamError(f"The sample counts {sample.shape} items, the model {items}: number both alike.")
    for mode, own in zip(columns, sample.modes):
        if own is not mode and not np.array_equal(own.items, mode.items):
            raise GinghamError(
                f"The sample numbers the items of {mode.name!r} otherwise than the model: number both alike, as "
                "model.sample(X, y) does, or give the rows themselves."
            )


def check_order(names: Sequence[str], columns: Sequence[Mode]) -> None:
    """Columns with the names of modes stand where these modes do."""
    own = [mode.name for mode in columns]
    for name, mode in zip(names, own):
        if name != mode and name in own:
            raise GinghamError(
                f"Column {name!r} stands where the model has {mode!r}: its columns are {', '.join(own)}, in this order."
            )


def check_pairs_once(ends: Sequence[AnyArray], labels: AnyArray | None, weights: Floats | None) -> None:
    """Refuse pairs of an undirected graph that are listed in both directions: each was observed once."""
    _, codes = np.unique(np.concatenate(ends), return_inverse=True)
    one, other = codes.reshape(2, -1)
    facts = [
        np.zeros(len(one)) if column is None else np.unique(column, return_inverse=True)[1].ravel()
        for column in (labels, weights)
    ]
    apart = one != other
    there, back = (np.stack([*ends, *facts])[:, apart] for ends in ((one, other), (other, one)))
    there, back = (rows[:, np.lexsort(rows)] for rows in (there, back))
    if len(np.unique(there[:2], axis=1).T) > 4 and np.array_equal(there, back):
        raise RefusedCertificate(
            "Every pair is listed in both directions, (a, b) and (b, a), and would count twice: list each pair once."
        )


def check_sample(posterior: Posterior, sample: Sample, relation: int) -> None:
    """Refuse posteriors and samples that no theorem speaks of."""
    if posterior.offsets is not None and relation == 0:
        raise RefusedCertificate(
            "This model adds effects of single items (offsets) to its checkerboard, and no bound here covers them on "
            "rows that may be those of the fit. Test it on other rows (bound='holdout', bound='split'), by "
            "certify_progressive, or fit with offsets=False."
        )
    check_alphabet(posterior.cells[relation], sample)
    whole_counts(sample.weights)
    check_items(posterior.structure.columns(relation), sample)
    factor = posterior.structure.factors[relation]
    if len(set(factor)) < len(factor) and not posterior.structure.drawn_apart:
        for a in range(len(factor)):
            for b in range(a):
                same = (sample.codes[a] == sample.codes[b]) & (sample.codes[a] >= 0)
                if factor[a] == factor[b] and same.any():
                    raise RefusedCertificate(
                        "The graph has self loops, for which both ends fall into one cluster together; "
                        "leave them out before certifying."
                    )
    if not sample.pairs_once:
        need_rows_once(sample)
        if posterior.structure.is_graph(relation):
            check_pairs_once(sample.codes, sample.labels, sample.weights)
