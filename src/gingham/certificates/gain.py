"""Does clustering help? The excess loss over a constant answer, or over any fixed reference predictor.

The difference of two losses varies much less than either of them, and log-wealth sees that: a gain can
be proven where the two separate bounds overlap. A negative value is a proven gain.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log

import numpy as np
import numpy.typing as npt

from gingham.arrays import Floats, Ints, TableLike
from gingham.cells import CellModel
from gingham.certificates import bounds
from gingham.certificates.assumptions import given
from gingham.certificates.bounds import GibbsLaw
from gingham.certificates.certificate import Certificate
from gingham.certificates.evidence import Evidence, answer_label_counts, answer_losses, paired
from gingham.certificates.losses import loss_scale, scaled_losses
from gingham.certificates.observed import (
    check_sample,
    coverage,
    in_full_precision,
    posterior_of,
    sample_of,
    source,
    stated_cell,
    with_cell,
)
from gingham.certificates.prices import GRIDS, PARTS, Complexity, log_binomial, quantised_and_priced, smoothed
from gingham.data import Alphabet, Sample
from gingham.errors import RefusedCertificate

TEXT = (
    "With probability at least 1 − δ, for all posteriors Q and all constants r at once: L(Q) − L(r) is below the "
    "log-wealth bound of the difference of their losses; the constant's prior is paid for."
)
LATEX = (
    r"L(Q) - L(r) \le \min_{\nu} \nu - \exp\left\{\frac1N \sum_i \mathbb E_Q \ln\left(\nu - [\ell_Q - \ell_r]_i\right)"
    r" - \frac{\mathrm{KL}(Q\|P) + \ln K + \ln(|\mathcal G|/\delta)}{N}\right\}"
)


def over_reference(
    model: object,
    X: TableLike | Sample,
    y: npt.ArrayLike | None = None,
    *,
    delta: float,
    reference: str | npt.ArrayLike = "constant",
    sample_weight: npt.ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    relation: int = 0,
) -> Certificate:
    """bound="gain": L(Q) − L(reference); below zero, co-clustering provably predicts better.

    Parameters
    ----------
    reference : "constant" or array of shape (N,)
        "constant": the constant answer that fits the sample best (on a small set of answers: the value
        holds against every constant). An array: predictions, one per row, of a predictor that was fixed
        without these rows; they must be possible answers of a cell.
    """
    posterior = in_full_precision(posterior_of(model))
    cell, statement = stated_cell(posterior.label_cell(relation), alphabet)
    posterior = with_cell(posterior, cell, relation)
    covers = coverage(posterior, relation)
    sample = sample_of(posterior, X, y, sample_weight, relation)
    check_sample(posterior, sample, relation)
    drawn = source(posterior, relation, sample, given("independent or without replacement"))
    assumptions = [*drawn, statement, *covers]
    if sample.alphabet is None:
        raise RefusedCertificate("The gain is certified for labels on an alphabet: give alphabet= when fitting.")
    covered, rounded, accounts = quantised_and_priced(posterior, sample, relation)
    price = accounts["exact"]
    losses = answer_losses(cell, rounded.distinct, sample.alphabet)  # (A, |Y|)
    scaled_losses(losses, cell)  # none of them beyond its range
    scale = loss_scale(cell)[1]
    if isinstance(reference, str):
        if reference != "constant":
            raise RefusedCertificate("reference= is 'constant' or an array of predictions.")
        counts = answer_label_counts(covered, sample, rounded.distinct, rounded.index, relation)
        others, union = constants(cell, sample.alphabet, counts.sum(axis=0))
        price = Complexity({**price.terms, "choice of the constant": union})
        laws = [GibbsLaw.of((losses - other[None, :]) / scale, counts) for other in others]
        against = others @ counts.sum(axis=0) / counts.sum()
        title = "constant"
    else:
        table, codes = _reference_losses(cell, sample, reference)
        pairs = paired(sample, codes, table.shape[1])
        counts = answer_label_counts(covered, pairs, rounded.distinct, rounded.index, relation).reshape(
            len(losses), -1, table.shape[1]
        )
        laws = [GibbsLaw.of((losses[:, :, None] - table[None]) / scale, counts)]
        against = np.array([(counts.sum(axis=0) * table).sum() / counts.sum()])
        assumptions.append(given("reference fixed"))
        title = "reference"
    n = int(sample.n_tuples)
    results = [bounds.log_wealth(law, price.total, n, delta) for law in laws]
    worst = int(np.argmax([result.value for result in results]))
    evidence = Evidence(laws[worst], 0.0, scale, n, {"exact": price, "papers": price}, covered)
    return Certificate(
        value=scale * results[worst].value,
        empirical=scale * laws[worst].mean,
        bound="gain",
        predictor="gibbs",
        delta=delta,
        n_tuples=n,
        terms={**price.terms, **results[worst].price},
        assumptions=tuple(assumptions),
        worst=scale,
        evidence=evidence,
        parameters={**results[worst].parameters, f"empirical loss of the {title}": float(against[worst])},
        loss=f"{cell.name} loss minus that of the {title}",
        text=TEXT,
        latex=LATEX,
        reference="gingham, docs/theory/gain",
    )


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
    raise RefusedCertificate(f"{type(cell).__name__}: gingham knows no set of constant answers for these cells.")


def _reference_losses(cell: CellModel, sample: Sample, reference: npt.ArrayLike) -> tuple[Floats, Ints]:
    """Losses (|Y|, R) of the reference's different predictions, and which one each tuple got."""
    if sample.complete:
        raise RefusedCertificate("A reference predictor needs the pairs listed (pairs='listed').")
    predictions = np.asarray(reference)
    if predictions.shape != (sample.n_rows,):
        raise RefusedCertificate(f"reference has shape {predictions.shape}; it needs one prediction per tuple.")
    distinct, codes = np.unique(predictions, return_inverse=True)
    if cell.table is not None and cell.alphabet is not None:
        return cell.table[:, cell.alphabet.encode(distinct)], codes
    if cell.answers == "number" and sample.alphabet is not None and cell.bounds is not None:
        if len(distinct) > 4096:
            raise RefusedCertificate("Round the reference predictions to at most 4096 different values.")
        if distinct.min() < cell.bounds[0] or distinct.max() > cell.bounds[1]:
            raise RefusedCertificate("Clip the reference predictions to the range of the labels.")
        numbers, guesses = sample.alphabet.numbers, distinct.astype(np.float64)
        by_gap = cell.of_gap(numbers[:, None] - guesses[None, :])
        return cell.features.of_labels(numbers) @ cell.coef(guesses).T if by_gap is None else by_gap, codes
    raise RefusedCertificate(f"{type(cell).__name__}: a reference predictor cannot be compared with these cells.")
