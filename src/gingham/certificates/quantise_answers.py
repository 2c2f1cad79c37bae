"""Answers from a continuum, rounded to a finite grid so that a prior can pay for them.

The rounded model is a model of its own, and its exact Gibbs loss enters the bound: no correction term
is needed (P0 appendix B adds 2Δ + Δ², P1 eq. 15 adds Δ + Δ²/4). Which grid is used may depend on the
data, because a prior over a few grids is paid for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import CellModel
from gingham.certificates.complexity import cells_once, labels_by_type, labels_either_way, labels_uniform, log_binomial
from gingham.certificates.divergence import kl_upper
from gingham.errors import RefusedCertificate

GRIDS = tuple(2**j + 1 for j in range(1, 13))  # 3, 5, …, 4097 evenly spaced numbers, both ends included
PARTS = (4, 8, 16, 32, 64, 128, 256)  # into how many parts a distribution is cut


@dataclass(frozen=True, eq=False)
class QuantisedAnswers:
    """Answers a prior can pay for.

    Attributes
    ----------
    answers : array of shape (m_1, …, m_d) or (m_1, …, m_d, |Y|)
        As the cell model gives them.
    distinct : array of shape (A,) or (A, |Y|)
        The different ones.
    index : int array of shape (m_1, …, m_d)
        Which of the distinct answers a cell gives.
    price, price_papers : mapping from name to nats
    n_answers : float
        How many answers a cell could have given.
    rounded : bool
    """

    answers: AnyArray
    distinct: AnyArray
    index: Ints
    price: dict[str, float]
    price_papers: dict[str, float]
    n_answers: float
    rounded: bool


def quantise_answers(cell: CellModel, answers: AnyArray, statistics: Floats, symmetric: bool) -> QuantisedAnswers:
    """The answers of one relation with their prices; rounded where they come from a continuum.

    Parameters
    ----------
    statistics : ndarray of shape (m_1, …, m_d, K)
        The cell statistics on the sample, which guide the choice of the grid.
    symmetric : bool
        Whether cells (a, b) and (b, a) are one and the same.
    """
    if cell.answers == "label" and cell.n_answers is not None:
        size = cell.n_answers
        distinct, index = _pooled(answers, 0)
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
        return _best(cell, statistics, [_on_grid(cell, answers, size, symmetric) for size in GRIDS])
    if cell.answers == "distribution":
        return _best(cell, statistics, [_in_parts(cell, answers, parts, symmetric) for parts in PARTS])
    raise RefusedCertificate(
        f"{type(cell).__name__} cells answer from a continuum that gingham cannot round, so that no prior pays "
        "for their answers. Certify the finished predictions on other data: certify(..., bound='holdout')."
    )


def _on_grid(cell: CellModel, answers: Floats, size: int, symmetric: bool) -> QuantisedAnswers:
    """Numbers to the nearest of ``size`` evenly spaced ones between the bounds."""
    if cell.bounds is None:
        raise RefusedCertificate(
            f"The {cell.name} loss is unbounded here, and no theorem covers an unbounded loss. "
            "Give alphabet= (the possible labels) or bounds=(smallest, largest) to the model."
        )
    low, high = cell.bounds
    step = (high - low) / (size - 1)
    at = np.clip(np.rint((answers - low) / step), 0, size - 1).astype(np.int64) if step > 0 else 0 * answers.astype(int)
    fresh = low + step * at
    distinct, index = _pooled(fresh, 0)
    price = labels_either_way(cells_once(at) if symmetric else at, size)
    return QuantisedAnswers(fresh, distinct, index, price, labels_uniform(at.size, size), size, True)


def _in_parts(cell: CellModel, answers: Floats, parts: int, symmetric: bool) -> QuantisedAnswers:
    """Distributions to multiples of 1/parts by largest remainders, then smoothed as the cell smooths."""
    size = answers.shape[-1]
    counts = _cut(answers, cell.smoothing, parts)
    fresh = smoothed(counts, parts, cell)
    distinct, index = _pooled(fresh, 1)
    ways = float(np.exp(log_binomial(parts + size - 1, size - 1)))
    cells = cells_once(index) if symmetric else index
    return QuantisedAnswers(
        fresh, distinct, index, labels_uniform(cells.size, ways), labels_uniform(index.size, ways), ways, True
    )


def smoothed(counts: Floats, parts: int, cell: CellModel) -> Floats:
    """Distributions counts/parts with the cell's share of the uniform one mixed in."""
    result: Floats = (1 - cell.smoothing) * counts / parts + cell.smoothing / counts.shape[-1]
    return result


def _best(cell: CellModel, statistics: Floats, options: list[QuantisedAnswers]) -> QuantisedAnswers:
    """Any rule may choose; this one takes the lowest kl bound with the answers' price alone."""
    total = float(cell.features.count(statistics).sum())

    def promise(option: QuantisedAnswers) -> float:
        loss = float(cell.loss(option.answers, statistics).sum()) - total * cell.low
        loss = loss / (total * cell.range) if cell.range > 0 else 0.0
        return float(kl_upper(min(max(loss, 0.0), 1.0), sum(option.price.values()) / total))

    best = min(options, key=promise)
    extra = {"choice of the answers' grid": log(len(options))}
    return replace(best, price={**best.price, **extra}, price_papers={**best.price_papers, **extra})


def _pooled(answers: AnyArray, tail: int) -> tuple[AnyArray, Ints]:
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
