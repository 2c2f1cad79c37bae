"""Holdout certificates: a finished predictor on tuples it has never seen, covered exactly as it is used."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from gingham.arrays import Anything, Floats
from gingham.cells import CellModel, Logarithmic, Pinball, Quadratic, TableLoss, make_cell
from gingham.certificates.betting import LATEX, REFERENCE, TEXT, betting
from gingham.certificates.bounds import Bound
from gingham.certificates.certificate import Assumption, Certificate
from gingham.certificates.complexity import FREE, Complexity
from gingham.certificates.evidence import Evidence, check_alphabet, continuous_law, in_full_precision, loss_scale
from gingham.certificates.law import GibbsLaw
from gingham.certificates.theorems import find
from gingham.data import Alphabet
from gingham.data.graphs import PairSample
from gingham.data.sample import Sample, checked_weights
from gingham.errors import GinghamError, RefusedCertificate
from gingham.posterior import Posterior

UNSEEN = Assumption(
    "The predictor, and every choice that led to it, was made without these tuples; the candidates among which they "
    "decided are all counted.",
    "given",
)
_INDEPENDENT = Assumption("The tuples were drawn independently from the population new tuples come from.", "given")
METHODS = ("log-wealth", "betting", "kl", "maurer-pontil")
MAURER_PONTIL = "Maurer and Pontil 2009, Empirical Bernstein bounds"


def certify_predictions(
    y_pred: Any,
    y: Any,
    *,
    loss: Any = "absolute",
    alphabet: Any = None,
    label_bounds: tuple[float, float] | None = None,
    delta: float = 0.05,
    candidates: int = 1,
    method: str = "log-wealth",
    sample_weight: Any = None,
    predictor: str = "predictions",
) -> Certificate:
    """A guarantee for finished predictions of any library on tuples that were not used to make them.

    Parameters
    ----------
    y_pred : array of shape (N,), or (N, |Y|) distributions for the log loss
    y : array of shape (N,)
    loss : {"absolute", "quadratic", "zero-one", "pinball", "log"}, table or callable
    alphabet : sequence, optional
        The possible labels; ``label_bounds`` = (smallest, largest) serves absolute and quadratic loss too.
    candidates : int
        Among how many predictors these tuples decided; each costs its share of δ.
    method : {"log-wealth", "betting", "kl", "maurer-pontil"}
        "betting" was the tightest on ratings (see :mod:`gingham.certificates.betting`); decide before you look.
    """
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    if letters is None and label_bounds is None:
        raise RefusedCertificate(
            "State the possible labels (alphabet=) or the smallest and largest (label_bounds=): "
            "no theorem covers an unbounded loss."
        )
    y, y_pred = np.asarray(y), np.asarray(y_pred)
    if len(y) != len(y_pred):
        raise GinghamError(f"y has {len(y)} rows, y_pred {len(y_pred)}.")
    if letters is None and label_bounds is not None:
        values, scale = _on_interval(loss, y, y_pred, label_bounds)
        low, name, known = 0.0, str(loss), f"Labels lie between {label_bounds[0]:g} and {label_bounds[1]:g}."
    else:
        cell = make_cell(loss, letters)
        values, (low, scale) = losses_of(cell, y, y_pred), loss_scale(cell)
        name, known = str(loss) if isinstance(loss, str) else type(cell).__name__, "Labels are among those stated."
    return _certificate(
        values,
        low,
        scale,
        checked_weights(sample_weight, len(y)),
        delta,
        candidates,
        method,
        predictor,
        name,
        Assumption(known, "given"),
        None,
    )


def certify_posterior(
    posterior: Posterior,
    sample: Sample,
    statement: Assumption,
    delta: float,
    predictor: str,
    *,
    relation: int = 0,
    candidates: int = 1,
    method: str = "log-wealth",
) -> Certificate:
    """A guarantee for one predictor of a posterior on tuples that its fit has not seen."""
    cell = posterior.cells[relation]
    check_alphabet(cell, sample)
    if not sample.has_counts:
        raise RefusedCertificate("Some weights are not whole numbers; a certificate counts independent tuples.")
    low, scale = loss_scale(cell)
    name = type(cell).__name__.lower()
    if predictor == "gibbs":
        law = _gibbs_law(posterior, sample, relation, low, scale)
        return _from_law(law, low, scale, int(sample.n_tuples), delta, candidates, method, predictor, name, statement)
    if isinstance(sample, PairSample) and sample.complete:
        raise RefusedCertificate("List the pairs that were held out (pairs='listed'); absent ones are not predicted.")
    if sample.labels is None:
        raise GinghamError("A certificate needs the labels of the tuples.")
    labels: Anything = sample.labels if sample.alphabet is None else sample.alphabet.values[sample.label_codes]
    if isinstance(cell, Logarithmic):
        if predictor != "mean":
            raise RefusedCertificate("The log loss is that of the predicted distribution: predictor='mean'.")
        predictions: Anything = posterior.predict_distribution(sample.codes, relation)
    else:
        predictions = posterior.predict(sample.codes, predictor, relation)
        if sample.alphabet is not None and not sample.alphabet.numeric:
            if predictor != "mode":
                raise RefusedCertificate("Labels are names: only predictor='mode' or 'gibbs' predicts them.")
            predictions = sample.alphabet.values[predictions.astype(np.int64)]
    values = losses_of(cell, labels, predictions)
    return _certificate(
        values, low, scale, sample.weights, delta, candidates, method, predictor, name, statement, posterior
    )


def losses_of(cell: CellModel, y: Anything, y_pred: Anything) -> Floats:
    """The loss of each prediction, in the loss's own unit; predictions need not be possible answers."""
    if isinstance(cell, Logarithmic):
        floor = cell.smoothing / cell.alphabet.size
        if y_pred.shape != (len(y), cell.alphabet.size) or (y_pred < floor * (1 - 1e-9)).any():
            raise RefusedCertificate(
                f"The log loss needs predicted distributions of shape ({len(y)}, {cell.alphabet.size}) with every "
                f"probability at least {floor:.4g}, or the loss is unbounded."
            )
        return -np.log(np.take_along_axis(y_pred, cell.alphabet.encode(y)[:, None], axis=1)[:, 0])
    if type(cell) is TableLoss or (isinstance(cell, TableLoss) and not cell.convex):
        result: Floats = cell.table[cell.alphabet.encode(y), cell.alphabet.encode(y_pred)]
        return result
    if isinstance(cell, (TableLoss, Quadratic)):
        if cell.alphabet is None and isinstance(cell, Quadratic) and cell.bounds is not None:
            return _on_interval("quadratic", y, y_pred, cell.bounds)[0]
        if cell.alphabet is None:
            raise RefusedCertificate("The loss is unbounded: state the possible labels.")
        cell.alphabet.encode(y)
        name = "quadratic" if isinstance(cell, Quadratic) else "pinball" if isinstance(cell, Pinball) else "absolute"
        span = (float(cell.alphabet.numbers.min()), float(cell.alphabet.numbers.max()))
        return _on_interval(name, y, y_pred, span, getattr(cell, "quantile", 0.5))[0]
    raise RefusedCertificate(f"{type(cell).__name__}: gingham does not know the loss of a single prediction.")


def _on_interval(
    loss: Any, y: Anything, y_pred: Anything, span: tuple[float, float], quantile: float = 0.5
) -> tuple[Floats, float]:
    """Losses of numbers within an interval, and the largest possible one."""
    low, high = span
    for what, values in (("label", y), ("prediction", y_pred)):
        outside = ~((values >= low - 1e-9) & (values <= high + 1e-9))
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise RefusedCertificate(
                f"The {what} {values[row]} in row {row} lies outside {low:g} to {high:g}, where the loss is unbounded. "
                "Clip predictions to the range of the labels, or widen it."
            )
    gap = np.asarray(y, dtype=np.float64) - np.clip(y_pred, low, high)
    width = high - low
    if loss == "absolute":
        return np.abs(gap), width
    if loss == "quadratic":
        return gap**2, width**2
    if loss == "pinball":
        return np.maximum(quantile * gap, (quantile - 1) * gap), width * max(quantile, 1 - quantile)
    raise RefusedCertificate(f"loss={loss!r} needs alphabet=, the possible labels.")


def _gibbs_law(posterior: Posterior, sample: Sample, relation: int, low: float, scale: float) -> GibbsLaw:
    posterior = in_full_precision(posterior)
    if sample.alphabet is None:
        return continuous_law(posterior, sample, relation)
    law = posterior.loss_law(sample, relation)
    return GibbsLaw.of(np.clip((law.values - low) / scale, 0.0, 1.0), law.weights)


def _certificate(
    values: Floats,
    low: float,
    scale: float,
    weights: Floats | None,
    delta: float,
    candidates: int,
    method: str,
    predictor: str,
    name: str,
    statement: Assumption,
    covered: Posterior | None,
) -> Certificate:
    if weights is not None and not bool(np.all(weights == np.floor(weights))):
        raise RefusedCertificate("Some weights are not whole numbers; a certificate counts independent tuples.")
    counts = np.ones(len(values)) if weights is None else weights
    scaled = np.clip((values - low) / scale, 0.0, 1.0)
    single = np.repeat(scaled, counts.astype(np.int64)) if method == "betting" else None
    law = GibbsLaw.of(scaled, counts)
    return _from_law(
        law, low, scale, int(counts.sum()), delta, candidates, method, predictor, name, statement, covered, single
    )


def _from_law(
    law: GibbsLaw,
    low: float,
    scale: float,
    n: int,
    delta: float,
    candidates: int,
    method: str,
    predictor: str,
    name: str,
    statement: Assumption,
    covered: Posterior | None = None,
    single: Floats | None = None,
) -> Certificate:
    if method not in METHODS:
        raise GinghamError(f"method={method!r} is unknown; choose one of {', '.join(METHODS)}.")
    if candidates < 1:
        raise GinghamError(f"candidates={candidates} must be a whole number from 1.")
    if method in ("maurer-pontil", "betting") and predictor == "gibbs":
        raise RefusedCertificate(f"{method} covers deterministic predictors; use method='log-wealth' for gibbs.")
    price = Complexity({"union over candidates": log(candidates)}) if candidates > 1 else FREE
    if method == "maurer-pontil":
        bound = maurer_pontil(law, price.total, n, delta)
        text = "L ≤ L̂ + sqrt(2 V ln(2/δ)/N) + 7 ln(2/δ)/(3(N − 1)), V the sample variance of the loss."
        latex = r"L \le \hat L + \sqrt{\frac{2 \hat V \ln(2/\delta)}{N}} + \frac{7 \ln(2/\delta)}{3(N-1)}"
        reference = MAURER_PONTIL
    elif single is not None:
        bound = betting(single, price.total, delta)
        text, latex, reference = TEXT, LATEX, REFERENCE
    else:
        theorem = find(method)
        bound = theorem.function(law, price.total, n, delta)
        text, latex = theorem.text + " Here Q is fixed beforehand, so KL(Q‖P) = 0.", theorem.latex
        reference = theorem.reference + ", on tuples the predictor has not seen"
    evidence = Evidence(law, low, scale, n, {"exact": price, "papers": price}, covered)
    return Certificate(
        value=evidence.in_unit(bound.value),
        empirical=evidence.empirical,
        bound="holdout",
        predictor=predictor,
        delta=delta,
        n_tuples=n,
        terms={**price.terms, **bound.price},
        assumptions=(_INDEPENDENT, UNSEEN, statement),
        worst=evidence.in_unit(1.0),
        evidence=evidence,
        parameters=bound.parameters,
        loss=name,
        text=text,
        latex=latex,
        reference=reference,
    )


def maurer_pontil(law: GibbsLaw, union: float, n: int, delta: float) -> Bound:
    """L ≤ L̂ + √(2 V ln(2/δ)/N) + 7 ln(2/δ)/(3(N − 1)), for one deterministic predictor.

    ``union`` is the logarithm of the number of candidates; this is no bound for posteriors chosen by
    looking at the data.
    """
    if n < 2:
        raise RefusedCertificate("Maurer-Pontil needs at least two tuples.")
    price = {"confidence ln 2/δ": log(2.0 / delta)}
    paid = union + price["confidence ln 2/δ"]
    variance = n / (n - 1) * max(float(law.weights @ (law.values - law.mean) ** 2), 0.0)
    value = law.mean + sqrt(2 * variance * paid / n) + 7 * paid / (3 * (n - 1))
    return Bound(min(value, 1.0), price, {"variance": variance})
