"""Held-out rows: a finished predictor on rows that it has never seen, covered exactly as it is used; committees.

In a cross-committee all the data are used, and yet every member was tested on rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

from gingham.arrays import AnyArray, Floats, TableLike
from gingham.cells import CellModel
from gingham.certificates.assumptions import Assumption, checked, drawn_order, drawn_rows, given
from gingham.certificates.bounds import GRID, Bound, GibbsLaw, find
from gingham.certificates.certificate import Certificate
from gingham.certificates.confidence import checked_candidates, checked_delta, log_inverse
from gingham.certificates.evidence import Evidence, continuous_law, law_on_alphabet
from gingham.certificates.losses import StatedLoss, loss_scale, scaled_losses, stated_loss
from gingham.certificates.observed import (
    check_alphabet,
    check_items,
    check_pairs_once,
    in_full_precision,
    posterior_of,
    sample_of,
    source,
    stated_cell,
    with_cell,
)
from gingham.certificates.prices import Complexity, pooled_answers
from gingham.certificates.record import Record, grid_facts
from gingham.core.problem import Offsets, Posterior, find_posterior
from gingham.data import Bounds
from gingham.data.fit_rows import FitRows, share_of_copies
from gingham.data.sample import (
    Sample,
    checked_labels,
    checked_weights,
    need_unmasked,
    recorded_seed,
    rows_of_draws,
    whole_counts,
)
from gingham.errors import GinghamError, RefusedCertificate

UNSEEN = given("not fitted on these")
SMALLEST = 1e-3  # of ν − 1: no single loss may take the whole wealth
METHODS = ("log-wealth", "betting", "kl", "maurer-pontil")
MOST_DRAWS = 2**27  # rows times cells whose losses are listed one by one
ORDERS, MOST_BETS = 32, 2**16  # orders in which bets are made, fewer where there are many tuples
BETTING_TEXT = (
    "With probability at least 1 − δ over N independent tuples the wealth Π (ν_t − X_t)/(ν_t − L), averaged over a few "
    "random orders of the tuples, stays below 1/δ, where the bet ν_t looks at the tuples before t only; L is at most "
    "where it meets 1/δ."
)
BETTING_LATEX = (
    r"L \le \sup\left\{\ell : \frac1K \sum_{k=1}^K \prod_{t=1}^N \frac{\nu_{kt} - X_{kt}}{\nu_{kt} - \ell} "
    r"\le \frac1\delta\right\},\quad \nu_{kt} = \hat\mu_{k,t-1} + \hat\sigma_{k,t-1}\sqrt{N / (2 \ln(1/\delta))}"
)
BETTING_REFERENCE = "Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting"
MAURER_PONTIL = "Maurer and Pontil 2009, Empirical Bernstein bounds"


def certify_predictions(
    y: npt.ArrayLike,
    predictions: npt.ArrayLike,
    *,
    loss: Any = "absolute",
    alphabet: Iterable[object] | None = None,
    label_bounds: Sequence[float] | Bounds | None = None,
    delta: float = 0.05,
    candidates: int = 1,
    method: str = "log-wealth",
    sample_weight: npt.ArrayLike | None = None,
    folds: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    predictor: str = "predictions",
    random_state: int | None = None,
) -> Certificate:
    """A guarantee for finished predictions of any library on rows that were not used to make them.

    Parameters
    ----------
    y : array of shape (N,)
        The labels.
    predictions : array of shape (N,), or (N, |Y|) distributions for the log loss
    loss : {"absolute", "quadratic", "zero-one", "pinball", "log"}, table or callable
    alphabet : sequence, optional
        The possible labels; ``label_bounds`` = (smallest, largest) serves losses of numbers too.
    candidates : int
        Among how many predictors these rows decided; each costs its share of δ.
    method : {"log-wealth", "betting", "kl", "maurer-pontil"}
        "betting" was the tightest on ratings (see :func:`betting`); decide before you look.
    sample_weight : whole numbers, optional
        A row of weight w stands for w draws.
    folds : array of shape (N,), optional
        Each row was predicted by a model that has not seen its fold. Each model is bounded on its own fold with δ/K,
        so that all bounds hold together; covered is a model drawn at random or, for a convex loss, their mean.
    groups : array of shape (N,), optional
        Rows of one group (one user, say) need not be independent, groups are: each counts once, by its mean loss.
        Covered is the mean over groups. For rows of weight 1.
    predictor : str
        What is covered, in words.
    random_state : int, optional
        Seed of the orders in which bets are made; drawn afresh by default, and recorded in ``parameters["seed"]``.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> y = np.random.default_rng(0).integers(1, 6, 2000)
    >>> predicted = np.clip(y + 0.5, 1, 5)  # of any model that has not seen these ratings
    >>> certificate = gg.certify_predictions(y, predicted, alphabet=range(1, 6))
    >>> round(certificate.empirical, 2) < certificate.value < 0.5
    True
    """
    stated = stated_loss(loss, alphabet, label_bounds)
    if label_bounds is not None and stated.bounds is None:
        raise RefusedCertificate(f"loss={loss!r} needs alphabet= alone; label_bounds= is for losses of numbers.")
    need_unmasked(predictions, "predictions")
    labels, guesses = checked_labels(y), np.asarray(predictions)
    if len(labels) != len(guesses):
        raise GinghamError(f"y has {len(labels)} rows, predictions {len(guesses)}.")
    seed = recorded_seed(random_state)
    test = Trial(delta, candidates, method, predictor, seed, random_state is None)
    if folds is not None:
        if groups is not None or candidates != 1 or method != "log-wealth":
            raise RefusedCertificate("Predictions by folds are bounded by log-wealth: leave groups=, candidates= out.")
        weights = checked_weights(sample_weight, len(labels))
        return _cross_fitted(stated, labels, guesses, np.asarray(folds), weights, test)
    certificate = _of_predictions(stated, labels, guesses, sample_weight, groups, test)
    if groups is not None:
        return certificate
    facts = {"loss": stated.facts(), "nu_grid": GRID, **test.facts}
    columns = guesses if guesses.ndim == 2 else guesses[:, None]
    return replace(certificate, record=Record("predictions", columns, labels, sample_weight, partial(dict, facts)))


def _of_predictions(
    stated: StatedLoss,
    y: AnyArray,
    predictions: AnyArray,
    sample_weight: npt.ArrayLike | None,
    groups: npt.ArrayLike | None,
    test: Trial,
) -> Certificate:
    values = stated.losses(y, predictions)
    weights = checked_weights(sample_weight, len(y))
    drawn = given("independent")
    if groups is not None:
        values, drawn = _by_group(values, weights, groups)
        weights = None
    elif weights is None or (weights == 1).all():
        _need_no_copies(y, predictions)
    assumptions = (drawn, UNSEEN, *drawn_rows(weights), stated.statement)
    return _of_losses(values, weights, stated.cell, test, assumptions)


def _need_no_copies(y: AnyArray, predictions: AnyArray) -> None:
    """Refuse labels and predictions that all come several times; without ids, some of them may well be equal."""
    rows = [np.unique(column, return_inverse=True)[1].ravel() for column in (y, *np.atleast_2d(predictions.T))]
    times = np.unique(np.column_stack(rows), axis=0, return_counts=True)[1]
    if np.gcd.reduce(times) > 1:
        share_of_copies(times)


def _by_group(values: Floats, weights: Floats | None, groups: npt.ArrayLike) -> tuple[Floats, Assumption]:
    """The mean loss of each group, and that groups are the independent draws."""
    names = np.asarray(groups)
    if names.shape != values.shape:
        raise GinghamError(f"groups has shape {names.shape}; it needs the group of each of the {len(values)} rows.")
    if weights is not None and (weights != 1).any():
        raise RefusedCertificate("With groups= every row counts once: leave sample_weight out.")
    _, at = np.unique(names, return_inverse=True)
    counts = np.bincount(at.ravel())
    return np.bincount(at.ravel(), values) / counts, given("independent groups", n=len(counts))


def on_other_rows(
    model: Any,
    X: TableLike | Sample,
    y: npt.ArrayLike | None,
    *,
    delta: float,
    predictor: str = "gibbs",
    sample_weight: npt.ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    relation: int = 0,
    candidates: int = 1,
    method: str = "log-wealth",
    random_state: int | None = None,
) -> Certificate:
    """bound="holdout": one predictor of a model, or of a committee, on rows that its fit has not seen."""
    test = Trial(delta, candidates, method, predictor, recorded_seed(random_state), random_state is None)
    members = committee_members(model) if hasattr(model, "members_") else []
    posterior = posterior_of(members[0] if members else model)
    cell, statement = stated_cell(posterior.label_cell(relation), alphabet)
    if posterior.offsets is None:
        posterior = with_cell(posterior, cell, relation)
    sample = sample_of(posterior, X, y, sample_weight, relation)
    if members:
        rows, labels = rows_and_labels(X, y)
        if predictor not in ("mean", "median", "mode"):
            raise RefusedCertificate(
                f"predictor={predictor!r}: a committee is certified on rows it has not seen by what it predicts, "
                "predictor='mean', 'median' or 'mode'."
            )
        drawn = (*source(posterior, relation, sample, given("independent")), UNSEEN)
        stated, guesses = StatedLoss.of_cell(cell), np.asarray(model.predict(rows, rule=predictor))
        losses = stated.losses(checked_labels(labels), guesses)
        certificate = _of_losses(losses, sample.weights, cell, test, (*drawn, stated.statement))
    else:
        certificate = of_posterior_on(posterior, sample, statement, test, relation)
        if posterior.offsets is None:
            record = Record("holdout", X, y, sample_weight, partial(grid_facts, posterior, relation, **test.facts))
            certificate = replace(certificate, record=record)
    known = without_rows_of_the_fit(model, sample, relation)
    return replace(certificate, assumptions=(*certificate.assumptions, *known))


def rows_and_labels(X: TableLike | Sample, y: npt.ArrayLike | None) -> tuple[TableLike, npt.ArrayLike]:
    """Rows of ids and their labels, for what fits or predicts anew."""
    if isinstance(X, Sample) or y is None:
        raise GinghamError("This certificate fits or predicts anew: give the rows of ids X and their labels y.")
    return X, y


def without_rows_of_the_fit(model: object, sample: Sample, relation: int = 0) -> tuple[Assumption, ...]:
    """Refuse rows that a model has learned from, where it keeps a sketch of them; what the comparison has shown."""
    kept: tuple[FitRows, ...] = getattr(model, "fit_rows_", ())
    if not kept:
        return ()
    met = kept[relation].met(sample)
    compared = {} if met.everything else {"compared": met.n_compared}
    if met.seen:
        which = ", ".join(f"{row:,}" for row in met.rows[:5].tolist()) + (", …" if len(met.rows) > 5 else "")
        drawn = "rows that were compared, drawn at random from them," if compared else "rows"
        some = f"{met.n_same:,} of the {met.n_compared:,} {drawn} (row {which})"
        raise RefusedCertificate(
            f"{'These are the' if met.whole_fit else f'{some} are'} rows that the model was fitted on, and "
            "bound='holdout' tests it on rows that it has not seen. Use bound='log-wealth', which is for the rows of "
            "the fit, bound='split', or other rows. If they were drawn anew and are equal by chance, certify finished "
            "predictions: certify_predictions."
        )
    # Labels that were rounded or changed cannot be told from new ones: where most rows may be such, that is said.
    most = 2 * met.n_other >= met.n_compared > 0
    other = [given("other labels than in the fit", other=met.n_other, compared=met.n_compared)] if most else []
    if met.n_same:
        return (given("equal to rows of the fit", same=met.n_same, **compared), *other)
    return (checked("no row of the fit", **compared), *other)


def of_posterior_on(
    posterior: Posterior, sample: Sample, statement: Assumption, test: Trial, relation: int = 0
) -> Certificate:
    """A guarantee for one predictor of a posterior on rows that its fit has not seen."""
    cell, predictor = posterior.label_cell(relation), test.predictor
    check_alphabet(cell, sample)
    check_items(posterior.structure.columns(relation), sample)
    if not sample.pairs_once and posterior.structure.is_graph(relation):
        check_pairs_once(sample.codes, sample.labels, sample.weights)
    whole_counts(sample.weights)
    drawn = (*source(posterior, relation, sample, given("independent")), UNSEEN, statement)
    if predictor == "gibbs":
        law, n = _gibbs_law(posterior, sample, relation), int(sample.n_tuples)
        return _certificate(law, cell, n, test, drawn)
    if sample.complete:
        raise RefusedCertificate("List the pairs that were held out (pairs='listed'); absent ones are not predicted.")
    if sample.labels is None:
        raise GinghamError("A certificate needs the labels of the rows.")
    labels: AnyArray = sample.labels if sample.alphabet is None else sample.alphabet.values[sample.label_codes]
    if cell.answers == "distribution":
        if predictor != "mean":
            raise RefusedCertificate("The log loss is that of the predicted distribution: predictor='mean'.")
        predictions: AnyArray = posterior.predict_distribution(sample.codes, relation)
    else:
        predictions = posterior.predict(sample.codes, predictor, relation)
        if sample.alphabet is not None and not sample.alphabet.numeric:
            if predictor != "mode":
                raise RefusedCertificate("Labels are names: only predictor='mode' or 'gibbs' predicts them.")
            predictions = sample.alphabet.values[predictions.astype(np.int64)]
    values = StatedLoss.of_cell(cell).losses(labels, predictions)
    return _of_losses(values, sample.weights, cell, test, drawn, posterior)


@dataclass(frozen=True)
class Trial:
    """How a finished predictor is tested."""

    delta: float
    candidates: int
    method: str
    predictor: str
    seed: int  # of the orders in which bets are made
    drawn_here: bool

    def __post_init__(self) -> None:
        checked_delta(self.delta)
        checked_candidates(self.candidates)
        if self.method not in METHODS:
            raise GinghamError(f"method={self.method!r} is unknown; choose one of {', '.join(METHODS)}.")
        if self.method in ("maurer-pontil", "betting") and self.predictor == "gibbs":
            raise RefusedCertificate(
                f"{self.method} covers deterministic predictors; use method='log-wealth' for gibbs."
            )

    @property
    def facts(self) -> dict[str, object]:
        """What a certificate file says of it."""
        ordered = {"seed": self.seed} if self.method == "betting" else {}
        return {"method": self.method, "candidates": self.candidates, **ordered}


def _of_losses(
    values: Floats,
    weights: Floats | None,
    cell: CellModel,
    test: Trial,
    assumptions: tuple[Assumption, ...],
    covered: Posterior | None = None,
) -> Certificate:
    """The certificate of losses of single rows, in the loss's own unit."""
    draws = whole_counts(weights)
    counts = np.ones(len(values)) if weights is None else weights
    scaled = scaled_losses(values, cell)
    single = scaled[rows_of_draws(len(scaled), draws)] if test.method == "betting" else None
    law, n = GibbsLaw.of(scaled, counts), int(counts.sum())
    return _certificate(law, cell, n, test, assumptions, covered, single)


def _gibbs_law(posterior: Posterior, sample: Sample, relation: int) -> GibbsLaw:
    posterior = in_full_precision(posterior)
    if posterior.offsets is not None and relation == 0:
        return _law_with_offsets(posterior, posterior.offsets, sample)
    if sample.alphabet is None:
        return continuous_law(posterior, sample, relation)
    answers = posterior.answers[relation]
    distinct, index = pooled_answers(answers, answers.ndim - len(posterior.structure.factors[relation]))
    return law_on_alphabet(posterior, sample, distinct, index, relation)


def _law_with_offsets(posterior: Posterior, offsets: Offsets, sample: Sample) -> GibbsLaw:
    """The law of the loss where a cell is drawn for each row and its answer added to the offsets."""
    cell, answers = posterior.label_cell(), posterior.cells[0].values(posterior.answers[0]).ravel()
    if sample.n_rows * len(answers) > MOST_DRAWS:
        raise RefusedCertificate(
            f"The law of the loss of {sample.n_rows:,} rows in {len(answers):,} cells is too large with offsets: "
            "certify the prediction itself, predictor='mean'."
        )
    counts = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    gaps = sample.numbers()[:, None] - offsets.clipped(offsets.at(sample.codes)[:, None] + answers)
    losses = cell.of_gap(gaps)
    if losses is None:
        raise RefusedCertificate(
            f"{cell.name!r} is no function of what a prediction misses: offsets do not go with it."
        )
    return GibbsLaw.of(scaled_losses(losses, cell), counts[:, None] * posterior.cell_laws(sample.codes))


def _certificate(
    law: GibbsLaw,
    cell: CellModel,
    n: int,
    test: Trial,
    assumptions: tuple[Assumption, ...],
    covered: Posterior | None = None,
    single: Floats | None = None,
) -> Certificate:
    """The certificate of a law of scaled losses; ``single`` are those of the tuples, one by one, for betting."""
    low, scale = loss_scale(cell)
    delta, method = test.delta, test.method
    # A predictor that was chosen without a look at these tuples costs nothing else.
    union = log(test.candidates)
    order: tuple[Assumption, ...] = ()
    price = Complexity({"union over candidates": union} if union else {})
    if method == "maurer-pontil":
        bound = maurer_pontil(law, price.total, n, delta)
        text = "L ≤ L̂ + sqrt(2 V ln(2/δ)/N) + 7 ln(2/δ)/(3(N − 1)), V the sample variance of the loss."
        latex = r"L \le \hat L + \sqrt{\frac{2 \hat V \ln(2/\delta)}{N}} + \frac{7 \ln(2/\delta)}{3(N-1)}"
        reference = MAURER_PONTIL
    elif single is not None:
        bound = betting(single, price.total, delta, test.seed)
        order = (drawn_order(test.seed, test.drawn_here, "order of the bets"),)
        text, latex, reference = BETTING_TEXT, BETTING_LATEX, BETTING_REFERENCE
    else:
        theorem = find(method)
        bound = theorem.function(law, price.total, n, delta)
        text, latex = theorem.text + " Here Q is fixed beforehand, so KL(Q‖P) = 0.", theorem.latex
        reference = theorem.reference + ", on rows the predictor has not seen"
    evidence = Evidence(law, low, scale, n, {"exact": price, "papers": price}, covered)
    return Certificate(
        value=evidence.in_unit(bound.value),
        empirical=evidence.empirical,
        bound="holdout",
        predictor=test.predictor,
        delta=delta,
        n_tuples=n,
        terms={**price.terms, **bound.price},
        assumptions=(*assumptions, *order),
        worst=evidence.in_unit(1.0),
        evidence=evidence,
        parameters=bound.parameters,
        loss=cell.name,
        text=text,
        latex=latex,
        reference=reference,
        first_part=None,
    )


def maurer_pontil(law: GibbsLaw, union: float, n: int, delta: float) -> Bound:
    """L ≤ L̂ + √(2 V ln(2/δ)/N) + 7 ln(2/δ)/(3(N − 1)), for one deterministic predictor.

    ``union`` is the logarithm of the number of candidates; this is no bound for posteriors chosen by
    looking at the data.
    """
    if n < 2:
        raise RefusedCertificate("Maurer-Pontil needs at least two tuples.")
    price = {"confidence ln 2/δ": log(2.0) + log_inverse(delta)}
    paid = union + price["confidence ln 2/δ"]
    variance = n / (n - 1) * max(float(law.weights @ (law.values - law.mean) ** 2), 0.0)
    value = law.mean + sqrt(2 * variance * paid / n) + 7 * paid / (3 * (n - 1))
    return Bound(min(value, 1.0), price, {"variance": variance})


def betting(losses: Floats, union: float, delta: float, seed: int) -> Bound:
    """The largest L with (1/K) Σ_k Π_t (ν_kt − X_kt)/(ν_kt − L) ≤ e^union/δ, for losses between 0 and 1, shape (N,).

    Given the tuples before, each factor has mean at most 1, so every product is a wealth with mean at most 1, and so is
    their average over K orders: it exceeds 1/δ with probability at most δ (Markov). The bet ν_t = μ̂ + σ̂ √(N/(2 ln 1/δ))
    comes from the mean and the variance of the losses before t. Where log-wealth pays for a grid of fixed bets, this
    pays with what is not yet known at the start: about a quarter of the gap between the bound and the observed loss is
    saved. The orders are drawn here without a look at the losses, from a seed that nobody knew when the rows were
    written down; with several of them the value hardly depends on it. For rows sorted by something the losses depend
    on, δ counts over that draw too. It covers one predictor, not all posteriors.
    """
    n, paid = len(losses), union + log_inverse(delta)
    orders = max(1, min(ORDERS, MOST_BETS // n))
    x: Floats = np.random.default_rng(seed).permuted(np.tile(losses, (orders, 1)), axis=1)
    seen = np.arange(2, n + 2)
    # Half a loss of ½ with variance ¼ stands for the tuples before the first.
    means: Floats = (0.5 + np.cumsum(x, axis=1)) / seen
    variances = (0.25 + np.cumsum((x - means) ** 2, axis=1)) / seen
    before = np.insert(means[:, :-1], 0, 0.5, axis=1)
    spread = np.sqrt(np.insert(variances[:, :-1], 0, 0.25, axis=1))
    nu = np.maximum(before + spread * sqrt(n / (2.0 * paid)), 1.0 + SMALLEST)
    gained = np.log(nu - x).sum(axis=1)
    # The log of the average wealth grows with L and is convex, so Newton's steps from above never pass where it meets
    # the price.
    value = 1.0
    for _ in range(100):
        logs = gained - np.log(nu - value).sum(axis=1)
        over = float(logsumexp(logs)) - log(orders) - paid
        step = max(over, 0.0) / float(softmax(logs) @ (1.0 / (nu - value)).sum(axis=1))
        value -= step
        if step < 1e-12:
            break
    value = max(value, float(losses.mean()))
    return Bound(value, {"confidence ln 1/δ": log_inverse(delta)}, {"seed": float(seed), "orders": float(orders)})


def committee_members(model: object) -> list[Posterior]:
    """The posteriors of a committee, if the model is one and all its members have the same items."""
    members = getattr(model, "members_", None)
    if members is None:
        return []
    if getattr(model, "shares_", None) is not None:  # a bound on a committee counts all members alike
        raise RefusedCertificate(
            f"{type(model).__name__} weighs its members by shares and came with a certificate of its own. "
            "Certify it on other rows with certify_predictions."
        )
    known = [posterior for posterior in map(find_posterior, members) if posterior is not None]
    if not known or len(known) < len(members):
        raise RefusedCertificate(
            "The members of this committee have no posterior over co-clusterings, so that no Gibbs bound covers them. "
            "Certify the committee's predictions with certify_predictions."
        )
    for posterior in known[1:]:
        for one, other in zip(known[0].structure.columns(), posterior.structure.columns()):
            if one.n_items != other.n_items or (one.items != other.items).any():
                raise RefusedCertificate(
                    "The members of this committee have not seen the same items, so that no Gibbs bound covers them "
                    "together. Certify the committee's predictions with certify_predictions."
                )
    return known


def of_folds(
    model: object,
    X: None = None,
    y: npt.ArrayLike | None = None,
    *,
    delta: float,
    loss: Any = None,
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
) -> Certificate:
    """bound="folds": the mean prediction of a committee whose member j has not seen fold j.

    Each member is bounded on its own fold with δ/K (log-wealth, no complexity); the loss is convex, so the
    average of the members loses at most the average of their losses.

    Parameters
    ----------
    model : fitted committee (``Committee(..., cross=True)``), which keeps its folds with their labels and weights
    y : optional
        The labels it was fitted on, in the same order; others are refused.
    loss : name, table or callable, convex in the prediction
        The members' own by default, "absolute" where they have none that is known.
    alphabet, label_bounds
        The possible labels, or the smallest and largest.
    """
    if X is not None:
        raise GinghamError("A cross-committee keeps its rows and their folds: leave X out.")
    kept = [getattr(model, name, None) for name in ("folds_", "fold_predictions_", "fold_rows_", "fold_labels_")]
    if kept[0] is None:
        raise GinghamError(
            "bound='folds' needs a committee fitted with cross=True whose members have not changed since "
            "(fold_in changes them, and nothing has tested them then)."
        )
    if any(value is None for value in kept):
        raise GinghamError("This committee does not know the labels of its folds: fit it again.")
    folds, predictions, rows, labels = (np.asarray(value) for value in kept)
    if y is not None:
        stated_labels = checked_labels(y)
        if stated_labels.shape != labels.shape:
            raise GinghamError(f"The committee was fitted on {len(labels)} rows, y has {len(stated_labels)}.")
        if (stated_labels != labels).any():
            row = int(np.flatnonzero(stated_labels != labels)[0])
            raise RefusedCertificate(
                f"Row {row} of y is {stated_labels[row]}, and the committee was fitted on {labels[row]}: its folds "
                "test the labels that it was fitted on. Leave y out."
            )
    counts = getattr(model, "fold_counts_", None)
    for learned in getattr(model, "fit_rows_", ()):
        if counts is None or (counts == 1).all():
            share_of_copies(learned.draws)
    posterior = find_posterior(next(iter(getattr(model, "members_", ())), None))
    if loss is None and label_bounds is None and posterior is not None:
        stated = StatedLoss.of_cell(stated_cell(posterior.label_cell(), alphabet)[0])
    else:
        stated = stated_loss("absolute" if loss is None else loss, alphabet, label_bounds)
    test = Trial(delta, 1, "log-wealth", "mean of the committee", 0, True)
    weights = None if counts is None else np.asarray(counts, dtype=np.float64)
    return _cross_fitted(stated, labels[rows], predictions, folds, weights, test)


def _cross_fitted(
    stated: StatedLoss, y: AnyArray, predictions: AnyArray, folds: AnyArray, weights: Floats | None, test: Trial
) -> Certificate:
    """Models of which each predicted the one fold that it has not seen: a guarantee on their average loss.

    Each is bounded on its own fold with δ/K (log-wealth, no complexity), so that all K bounds hold together, whatever
    the models have in common.
    """
    if folds.shape != y.shape:
        raise GinghamError(f"folds has shape {folds.shape}; it needs the fold of each of the {len(y)} rows.")
    convex = test.predictor.startswith("mean")
    if convex and not stated.convex:
        raise RefusedCertificate(
            f"The {stated.name} loss is not known to be convex in the prediction, so that averaging members may hurt. "
            "State a convex one (loss='absolute', say), or certify predictions on other rows."
        )
    numbers, parts = np.unique(folds), []
    share = replace(test, delta=checked_delta(test.delta) / len(numbers))
    for fold in numbers:
        mine = folds == fold
        own = None if weights is None else weights[mine]
        parts.append(_of_predictions(stated, y[mine], predictions[mine], own, None, share))
    prices = [sum(part.terms.values()) - log(len(numbers)) for part in parts]
    who = "the mean prediction of all members" if convex else "a member drawn at random"
    each = r"\frac1K\sum_j L(f_j) \le \frac1K\sum_j \mathrm{LW}_{\delta/K}[\ell_{f_j}\mid S_j]"
    return Certificate(
        value=float(np.mean([part.value for part in parts])),
        empirical=float(np.mean([part.empirical for part in parts])),
        bound="folds",
        predictor=test.predictor,
        delta=test.delta,
        n_tuples=sum(part.n_tuples for part in parts),
        terms={"union over folds": log(len(numbers)), "grid and confidence, mean of the folds": float(np.mean(prices))},
        assumptions=(given("independent"), *drawn_rows(weights), given("folds"), stated.statement),
        worst=parts[0].worst,
        evidence=None,
        loss=parts[0].loss,
        text="With probability at least 1 − δ every member's loss is below the log-wealth bound on its own fold, "
        f"with δ/K each; {who} loses at most the average{' (Jensen)' if convex else ''}.",
        latex=(r"L(\bar f) \le " if convex else "") + each,
        reference="gingham, docs/theory/split",
    )
