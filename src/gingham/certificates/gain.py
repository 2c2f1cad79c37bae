"""Does clustering help? The excess loss over a constant answer.

The difference of two losses varies much less than either of them, and log-wealth sees that: a gain can
be proven where the two separate bounds overlap. A negative value is a proven gain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import log

import numpy as np
import numpy.typing as npt

from gingham.arrays import Floats, TableLike
from gingham.cells import CellModel
from gingham.certificates.assumptions import given
from gingham.certificates.bounds import LossDistribution, log_wealth
from gingham.certificates.certificate import Certificate, of_bound
from gingham.certificates.evidence import answer_label_counts, answer_losses, collect, distinct_answers
from gingham.certificates.observed import (
    coverage,
    posterior_of,
    sample_of,
    source,
    stated_labels,
)
from gingham.certificates.prices import GRIDS, PARTS, Complexity, log_binomial, smoothed
from gingham.data import Alphabet, Sample
from gingham.errors import RefusedCertificate

TEXT = (
    "With probability at least 1 − δ, for all posteriors Q and all constants r at once: L(Q) − L(r) is below the "
    "log-wealth bound of the difference of their losses; the constant's prior is paid for."
)


def over_constants(
    model: object,
    X: TableLike | Sample,
    y: npt.ArrayLike | None = None,
    *,
    delta: float,
    sample_weight: npt.ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    relation: int = 0,
) -> Certificate:
    """bound="gain": L(Q) − L(constant); below zero, co-clustering provably predicts better.

    Compared is the constant answer that fits the sample best; on a small set of answers the value holds against all.
    """
    posterior = posterior_of(model)
    cell = posterior.label_cell(relation)
    statement = stated_labels(cell, alphabet)
    covers = coverage(posterior, relation)
    sample = sample_of(posterior, X, y, sample_weight, relation)
    drawn = source(posterior, relation, sample, given("independent or without replacement"))
    if sample.alphabet is None:
        raise RefusedCertificate("The gain is certified for labels on an alphabet: give alphabet= when fitting.")
    evidence = collect(posterior, sample, relation)
    covered, n = evidence.covered or posterior, evidence.n_observations
    distinct, index = distinct_answers(covered, relation)
    losses = answer_losses(cell, distinct, sample.alphabet)  # (A, |Y|)
    counts = answer_label_counts(covered, sample, distinct, index, relation)
    others, union = constants(cell, sample.alphabet, counts.sum(axis=0))
    price = Complexity({**evidence.prices["exact"].terms, "choice of the constant": union})
    distributions = [LossDistribution.of((losses - other[None, :]) / evidence.range, counts) for other in others]
    against = others @ counts.sum(axis=0) / counts.sum()
    results = [log_wealth(distribution, price.total, n, delta) for distribution in distributions]
    worst = int(np.argmax([result.value for result in results]))
    evidence = replace(evidence, distribution=distributions[worst], low=0.0, prices={"exact": price, "papers": price})
    return of_bound(
        results[worst], evidence, price, bound="gain", predictor="gibbs", delta=delta,
        assumptions=(*drawn, statement, *covers),
        parameters={**results[worst].parameters, "empirical loss of the constant": float(against[worst])},
        loss=f"{cell.name} loss minus that of the constant", text=TEXT, reference="gingham, docs/theory/gain",
    )  # fmt: skip


def constants(cell: CellModel, alphabet: Alphabet, histogram: Floats) -> tuple[Floats, float]:
    """Losses (R, |Y|) of constant answers to compare with, and ln of how many there were to choose from.

    All of them where they are few labels; of a continuum the one that fits best, rounded to the finest grid.
    """
    if cell.table is not None:
        return cell.table.T, log(cell.table.shape[1])
    features = cell.features.of_labels(alphabet.numbers)
    if cell.answers == "number" and cell.bounds is not None:
        low, high = cell.bounds
        mean = float(histogram @ alphabet.numbers / histogram.sum())
        steps = GRIDS[-1] - 1
        width = high - low if high > low else 1.0
        answer = np.array([low + width * round((mean - low) / width * steps) / steps])
        return cell.coef(answer) @ features.T, log(GRIDS[-1])
    if cell.answers == "distribution":
        parts, size = PARTS[-1], alphabet.size
        counts = np.floor(histogram / histogram.sum() * parts)
        counts[np.argmax(histogram)] += parts - counts.sum()
        answer = smoothed(counts, parts, cell)
        return cell.coef(answer[None, :]), log_binomial(parts + size - 1, size - 1)
    raise RefusedCertificate(f"{type(cell).__name__}: these cells have no set of constant answers.")
