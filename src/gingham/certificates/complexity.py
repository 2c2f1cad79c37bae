"""KL(Q‖P), the price of having chosen the co-clustering by looking at the data, term by term, in nats.

A hypothesis is a hard co-clustering with an answer in each cell; the posterior Q draws every item's
cluster independently from q(c|x) and has fixed answers. Two accounts of the same price:

papers
    Σ_i (n_i Ī_i + m_i ln n_i) + M ln|Y|   (P0 Lemma 9, eq. 22).
exact
    The divergence itself, for a prior that allows empty clusters (P0's Lemma 8 does not, so that its
    divergence from any soft Q would be infinite): number of clusters, then cluster sizes, then who
    belongs where; cell answers by how often each occurs, then where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, log

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln, xlogy

from gingham.arrays import AnyArray, Floats
from gingham.errors import GinghamError


@dataclass(frozen=True)
class Complexity:
    """KL(Q‖P) as a sum of named terms.

    Attributes
    ----------
    terms : mapping from a term's name to nats
        Single terms may be negative; their sum is a divergence, or a bound on one.
    """

    terms: Mapping[str, float]

    @property
    def total(self) -> float:
        """KL(Q‖P) = Σ terms, never below zero."""
        return max(0.0, float(sum(self.terms.values())))

    def plus(self, **terms: float) -> Complexity:
        """The same with further terms (spaces for underscores in their names)."""
        return Complexity({**self.terms, **{k.replace("_", " "): v for k, v in terms.items()}})


FREE = Complexity({})  # a predictor chosen without looking at the data costs nothing


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


def of_partitions(assigns: Mapping[str, Floats], kind: str = "exact") -> dict[str, float]:
    """The price of who belongs to which cluster, mode by mode."""
    if kind not in ("exact", "papers"):
        raise GinghamError(f"complexity={kind!r} is unknown; choose exact or papers.")
    price = partition_papers if kind == "papers" else partition_exact
    return {f"{name}: {part}": value for name, q in assigns.items() for part, value in price(q).items()}


def partition_papers(assign: Floats) -> dict[str, float]:
    """n Ī + m ln n (P0 eq. 22): what the partition says about the items, and the cluster sizes."""
    n, m = assign.shape
    return {"information n·I": partition_information(assign), "cluster sizes m·ln n": m * log(n)}


def partition_exact(assign: Floats) -> dict[str, float]:
    """KL_i = ln m(m+1) + ln C(n+m−1, m−1) + [ln n! − Σ_c E ln N_c!] + Σ q ln q."""
    n, m = assign.shape
    arrangements = float(gammaln(n + 1) - expected_log_factorials(assign).sum())
    return {
        "number of clusters": log(m) + log(m + 1),
        "cluster sizes": log_binomial(n + m - 1, m - 1),
        "who belongs where": arrangements + float(xlogy(assign, assign).sum()),
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
        if not np.isin(assign, (0.0, 1.0)).all():
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


def against(assigns: Sequence[Floats], priors: Sequence[Floats]) -> dict[str, float]:
    """Σ_x KL(q(·|x)‖p(·|x)) per mode, for priors p(c|x) learned on other data."""
    return {f"mode {i}: change of memberships": _rows_divergence(q, p) for i, (q, p) in enumerate(zip(assigns, priors))}


def _rows_divergence(q: Floats, p: Floats) -> float:
    if (p[q > 0] <= 0).any():
        return float("inf")
    return max(0.0, float((xlogy(q, q) - xlogy(q, np.where(q > 0, p, 1.0))).sum()))


def partition_information(assign: Floats) -> float:
    """n Ī(X; C) = Σ_x Σ_c q(c|x) ln [q(c|x)/qbar(c)], items weighted uniformly. Assignments are (n, m)."""
    mass = assign.mean(axis=0)
    return max(0.0, float(xlogy(assign, assign).sum() - len(assign) * xlogy(mass, mass).sum()))


def poisson_binomial(probabilities: Floats) -> Floats:
    """Laws of sums of independent coins, by divide and conquer.

    Parameters
    ----------
    probabilities : ndarray of shape (n, m)
        Column c holds the success probabilities of the n coins of sum c.

    Returns
    -------
    ndarray of shape (m, n + 1)
        Row c: P(N_c = 0), …, P(N_c = n).
    """
    q = np.asarray(probabilities, dtype=np.float64)
    n, m = q.shape
    if n == 0:
        return np.ones((m, 1))
    block = 32  # coins put together one by one; longer sums are convolved in pairs by Fourier transform
    n_blocks = 1 << max(0, (-(-n // block) - 1).bit_length())
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


def expected_log_factorials(assign: Floats) -> Floats:
    """E ln N_c! for each cluster, N_c the number of items drawn into it, Poisson-binomial(q(c|·)).

    Parameters
    ----------
    assign : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (m,)
    """
    q = np.asarray(assign, dtype=np.float64)
    m = q.shape[1]
    result = np.empty(m)
    certain = q == 1.0
    uncertain = (q > 0.0) & ~certain
    n_sure, n_open = certain.sum(axis=0), uncertain.sum(axis=0)
    # Clusters of about equal support go together, so that hard posteriors cost nothing.
    order = np.argsort(n_open, kind="stable")
    start = 0
    while start < m:
        longest = int(n_open[order[start]])
        stop = start + 1
        while stop < m and n_open[order[stop]] <= max(64, 1.3 * longest) and stop - start < 64:
            stop += 1
        group = order[start:stop]
        depth = int(n_open[group].max())
        coins = np.zeros((depth, len(group)))
        for j, c in enumerate(group):
            coins[: n_open[c], j] = q[uncertain[:, c], c]
        counts = n_sure[group][:, None] + np.arange(depth + 1)[None, :]
        result[group] = (poisson_binomial(coins) * gammaln(counts + 1.0)).sum(axis=1)
        start = stop
    return result


def log_binomial(n: float, k: float) -> float:
    """ln C(n, k)."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
