"""What a posterior costs: KL(Q‖P), the price in nats of having chosen the co-clustering by looking at the data.

A hypothesis is a hard co-clustering with an answer in each cell; the posterior Q draws every item's cluster
independently from q(c|x) and has fixed answers. Two accounts of the same price:

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
from math import comb, log

import numpy as np
from scipy.special import gammaln, xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import CellModel
from gingham.certificates.divergence import kl_upper
from gingham.certificates.observed import Population, checked_population, unbounded, with_unseen
from gingham.certificates.poisson_binomial import Memberships, cluster_sums, expected_log_factorials
from gingham.core.problem import Posterior
from gingham.data import Bounds, Sample
from gingham.errors import GinghamError, RefusedCertificate

GRIDS = tuple(2**j + 1 for j in range(1, 13))  # 3, 5, …, 4097 evenly spaced numbers, both ends included
PARTS = (4, 8, 16, 32, 64, 128, 256)  # into how many parts a distribution is cut
SINGLE_PRECISION = 1e-6  # by which answers of single precision may lie outside their bounds, as a share of their size


@dataclass(frozen=True)
class Complexity:
    """KL(Q‖P) as a sum of named terms."""

    # nats by name; single terms may be negative; their sum is a divergence or a bound on one
    terms: Mapping[str, float]

    @property
    def total(self) -> float:
        """KL(Q‖P) = Σ terms, never below zero."""
        return max(0.0, float(sum(self.terms.values())))


def of_posterior(assigns: Mapping[str, Floats], answers: AnyArray, n_answers: int, kind: str = "exact") -> Complexity:
    """The price of one checkerboard whose cells answer labels, "exact" or as in the "papers".

    Parameters
    ----------
    assigns : mapping from mode name to (n, m) assignments
        A mode that is met twice (a graph) is named, and paid for, once.
    answers : int array of shape (m_1, …, m_d)
        Index of each cell's answer among ``n_answers`` possible ones.
    """
    papers = kind == "papers"
    labels = labels_uniform(np.size(answers), n_answers) if papers else labels_by_type(answers, n_answers)
    return Complexity({**of_partitions(assigns, kind), **labels})


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


def partition_information(assign: Memberships) -> float:
    """n Ī(X; C) = Σ_x Σ_c q(c|x) ln [q(c|x)/qbar(c)], items weighted uniformly."""
    of = cluster_sums(assign)
    n = len(of.assign)
    mass = of.powers[0] / n
    return max(0.0, of.neg_entropy - n * float(xlogy(mass, mass).sum()))


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


def log_binomial(n: float, k: float) -> float:
    """ln C(n, k)."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


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
        f"{type(cell).__name__} cells have real-valued answers that cannot be rounded, so no prior covers them"
        ". Certify the finished predictions on other data: certify(..., bound='holdout')."
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


def quantised_and_priced(
    posterior: Posterior, sample: Sample, relation: int, population: Population | None = None
) -> tuple[Posterior, QuantisedAnswers, dict[str, Complexity]]:
    """The posterior with answers a prior can pay for, these answers, and both accounts of the price."""
    answers = list(posterior.answers)
    table = answers[relation]
    symmetric = posterior.structure.is_graph(relation) and bool((table == np.swapaxes(table, 0, 1)).all())
    if not posterior.has_known_price:
        raise RefusedCertificate(
            f"gingham has no prior for {type(posterior).__name__}. Certify its predictions on rows it was "
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
