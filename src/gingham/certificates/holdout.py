"""Holdout certificates: a finished predictor on tuples it has never seen, covered exactly as it is used; committees.

In a cross-committee all the data are used, and yet every member was tested on tuples it has not seen.
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
from gingham.cells import CellModel, make_cell, needs_alphabet
from gingham.certificates.bounds import GRID, Bound, GibbsLaw, find, mixture
from gingham.certificates.certificate import Assumption, Certificate, drawn_order, drawn_rows
from gingham.certificates.confidence import checked_candidates, checked_delta, log_inverse
from gingham.certificates.evidence import (
    ROUNDING,
    Complexity,
    Evidence,
    check_alphabet,
    check_items,
    check_pairs_once,
    continuous_law,
    in_full_precision,
    law_on_alphabet,
    loss_scale,
    pooled_answers,
    scaled_losses,
)
from gingham.certificates.record import Record, cell_facts
from gingham.certificates.row_losses import between_labels, check_distributions, stated_labels
from gingham.core.problem import Offsets, Posterior, find_posterior
from gingham.data import Alphabet, Bounds
from gingham.data.fit_rows import FitRows, copies, need_rows_once
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

UNSEEN = Assumption(
    "The predictor, and every choice that led to it, was made without these tuples; the candidates among which they "
    "decided are all counted.",
    "given",
)
_INDEPENDENT = Assumption("The tuples were drawn independently from the population new tuples come from.", "given")
METHODS = ("log-wealth", "betting", "kl", "maurer-pontil")
SMALLEST = 1e-3  # of ν − 1: no single loss may take the whole wealth
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


def without_rows_of_the_fit(model: object, sample: Sample, relation: int = 0) -> tuple[Assumption, ...]:
    """Refuse rows that a model has learned from, where it keeps a sketch of them; what the comparison has shown."""
    kept: tuple[FitRows, ...] = getattr(model, "fit_rows_", ())
    if not kept:
        return ()
    met = kept[relation].met(sample)
    part = "" if met.everything else f" of the {met.n_compared:,} that were compared, drawn at random from them,"
    if met.seen:
        which = ", ".join(f"{row:,}" for row in met.rows[:5].tolist()) + (", …" if len(met.rows) > 5 else "")
        some = f"{met.n_same:,}{part or f' of the {met.n_compared:,} rows'} (row {which})"
        raise RefusedCertificate(
            f"{'These are the' if met.whole_fit else f'{some} are'} rows that the model was fitted on, and "
            "bound='holdout' tests it on rows that it has not seen. Use bound='log-wealth', which is for the rows of "
            "the fit, bound='split', or other rows. If they were drawn anew and are equal by chance, certify finished "
            "predictions: certify_predictions."
        )
    if met.n_same:
        return (
            Assumption(
                f"{met.n_same:,}{part or f' of the {met.n_compared:,} tuples'} are equal to tuples of the fit, which "
                "repetitions may explain; they were drawn anew.",
                "given",
            ),
        )
    if met.everything:
        return (Assumption("None of the tuples is a row of the fit.", "checked"),)
    return (Assumption(f"None{part} is a row of the fit.", "checked"),)


def certify_predictions(
    y_pred: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    loss: Any = "absolute",
    alphabet: Iterable[object] | None = None,
    label_bounds: Sequence[float] | Bounds | None = None,
    delta: float = 0.05,
    candidates: int = 1,
    method: str = "log-wealth",
    sample_weight: npt.ArrayLike | None = None,
    predictor: str = "predictions",
    random_state: int | None = None,
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
        "betting" was the tightest on ratings (see :func:`betting`); decide before you look.
    sample_weight : whole numbers, optional
        A row of weight w stands for w draws.
    random_state : int, optional
        Seed of the orders in which bets are made; drawn afresh by default, and recorded in ``parameters["seed"]``.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> y = np.random.default_rng(0).integers(1, 6, 2000)
    >>> predicted = np.clip(y + 0.5, 1, 5)  # of any model that has not seen these ratings
    >>> certificate = gg.certify_predictions(predicted, y, alphabet=range(1, 6))
    >>> round(certificate.empirical, 2) < certificate.value < 0.5
    True
    """
    checked_delta(delta)
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    if letters is None and label_bounds is None:
        raise RefusedCertificate(
            "State the possible labels (alphabet=) or the smallest and largest (label_bounds=): "
            "no theorem covers an unbounded loss."
        )
    need_unmasked(y_pred, "y_pred")
    y, y_pred = checked_labels(y), np.asarray(y_pred)
    if len(y) != len(y_pred):
        raise GinghamError(f"y has {len(y)} rows, y_pred {len(y_pred)}.")
    span = Bounds.of(label_bounds, given=True)
    cell = _stated_cell(loss, letters, span)
    if span is not None:
        if letters is not None:
            letters.encode(y)
        values = _of_numbers(cell, y, y_pred, (span.low, span.high))
        known = f"Labels lie between {span.low:g} and {span.high:g}."
        stated = {**cell_facts(cell), "answers": "number", "alphabet": None, "table": None, "bounds": list(span)}
    elif letters is not None:  # one of them is there, or it was refused above
        values = losses_of(cell, y, y_pred)
        known, stated = stated_labels(letters), cell_facts(cell)
    weights, statement = checked_weights(sample_weight, len(y)), Assumption(known, "given")
    seed = recorded_seed(random_state)
    test = Trial(delta, candidates, method, predictor, seed, random_state is None)
    certificate = _of_losses(values, weights, cell, test, statement)
    facts = {"loss": stated, "nu_grid": GRID, **test.facts}
    columns = y_pred if y_pred.ndim == 2 else y_pred[:, None]
    return replace(certificate, record=Record("predictions", columns, y, sample_weight, partial(dict, facts)))


def _stated_cell(loss: Any, letters: Alphabet | None, span: Bounds | None) -> CellModel:
    """The loss on stated labels: all of them, or the smallest and largest, which contain those that are listed."""
    if span is None:
        return make_cell(loss, letters)
    if letters is not None:
        span.check(letters.numbers, "The alphabet's label")
    # Both ends stand for all numbers between them: the loss is a function of numbers.
    cell = make_cell(loss, Alphabet.of(tuple(span), given=True) if needs_alphabet(loss) else None, span)
    if cell.answers != "number" and cell.of_gap(np.zeros(0)) is None:
        raise RefusedCertificate(
            f"loss={loss!r} needs alphabet=, the possible labels; label_bounds= is for losses of numbers."
        )
    return cell


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
    random_state: int | None = None,
) -> tuple[Certificate, dict[str, object]]:
    """A guarantee for one predictor of a posterior on tuples that its fit has not seen, and how it was tested."""
    cell = posterior.label_cell(relation)
    test = Trial(delta, candidates, method, predictor, recorded_seed(random_state), random_state is None)
    check_alphabet(cell, sample)
    check_items(posterior.structure.columns(relation), sample)
    if not sample.pairs_once:
        need_rows_once(sample)
        if posterior.structure.is_graph(relation):
            check_pairs_once(sample.codes, sample.labels, sample.weights)
    whole_counts(sample.weights)
    if predictor == "gibbs":
        law, given = _gibbs_law(posterior, sample, relation), (*drawn_rows(sample.weights), statement)
        return _certificate(law, cell, int(sample.n_tuples), test, given), test.facts
    if sample.complete:
        raise RefusedCertificate("List the pairs that were held out (pairs='listed'); absent ones are not predicted.")
    if sample.labels is None:
        raise GinghamError("A certificate needs the labels of the tuples.")
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
    values = losses_of(cell, labels, predictions)
    return _of_losses(values, sample.weights, cell, test, statement, posterior), test.facts


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
    statement: Assumption,
    covered: Posterior | None = None,
) -> Certificate:
    """The certificate of losses of single tuples, in the loss's own unit."""
    draws = whole_counts(weights)
    counts = np.ones(len(values)) if weights is None else weights
    scaled = scaled_losses(values, cell)
    single = scaled[rows_of_draws(len(scaled), draws)] if test.method == "betting" else None
    law, n = GibbsLaw.of(scaled, counts), int(counts.sum())
    return _certificate(law, cell, n, test, (*drawn_rows(weights), statement), covered, single)


def losses_of(cell: CellModel, y: AnyArray, y_pred: AnyArray) -> Floats:
    """The loss of each prediction, in the loss's own unit; predictions need not be possible answers."""
    letters = cell.alphabet
    if cell.answers == "distribution" and letters is not None:
        floor = cell.smoothing / letters.size
        if y_pred.shape != (len(y), letters.size) or (y_pred < floor * (1 - 1e-9)).any():
            raise RefusedCertificate(
                f"The {cell.name} loss needs predicted distributions of shape ({len(y)}, {letters.size}) with every "
                f"probability at least {floor:.4g}, or the loss is unbounded."
            )
        check_distributions(y_pred)
        return np.take_along_axis(cell.coef(y_pred), letters.encode(y)[:, None], axis=1)[:, 0]
    if cell.table is not None and letters is not None and not (cell.convex and letters.numeric):
        return cell.table[letters.encode(y), letters.encode(y_pred)]
    if letters is not None and cell.answers is not None:
        letters.encode(y)
        span = (float(letters.numbers.min()), float(letters.numbers.max()))
        return _of_numbers(cell, y, y_pred, span)
    if cell.answers == "number" and cell.bounds is not None:
        return _of_numbers(cell, y, y_pred, (cell.bounds[0], cell.bounds[1]))
    if cell.answers is None:
        raise RefusedCertificate(f"{type(cell).__name__}: gingham does not know the loss of a single prediction.")
    raise RefusedCertificate("The loss is unbounded: state the possible labels.")


def _of_numbers(cell: CellModel, y: AnyArray, y_pred: AnyArray, span: tuple[float, float]) -> Floats:
    """Losses of numeric predictions within an interval, possible answers or not."""
    low, high = span
    room = ROUNDING * (high - low) / 4  # of a loss, which may be a square
    for what, values in (("label", y), ("prediction", y_pred)):
        outside = ~((values >= low - room) & (values <= high + room))
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise RefusedCertificate(
                f"The {what} {values[row]} in row {row} lies outside {low:g} to {high:g}, where the loss is unbounded. "
                "Clip predictions to the range of the labels, or widen it."
            )
    y, guesses = np.asarray(y, dtype=np.float64), np.asarray(y_pred, dtype=np.float64)
    by_gap = cell.of_gap(y - guesses)
    if by_gap is not None:
        return by_gap
    if cell.answers == "number":
        return np.einsum("ek,ek->e", cell.coef(guesses), cell.features.evaluate(y))
    if cell.table is None or cell.alphabet is None:  # pragma: no cover - every kind of answer was served
        raise RefusedCertificate(f"{type(cell).__name__}: gingham does not know the loss of a single prediction.")
    return between_labels(cell.table, cell.alphabet.numbers, cell.alphabet.encode(y), guesses)


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
    given: tuple[Assumption, ...],
    covered: Posterior | None = None,
    single: Floats | None = None,
) -> Certificate:
    """The certificate of a law of scaled losses; ``single`` are those of the tuples, one by one, for betting."""
    low, scale = loss_scale(cell)
    delta, method = test.delta, test.method
    # A predictor that was chosen without a look at these tuples costs nothing else.
    union = log(test.candidates)
    price = Complexity({"union over candidates": union} if union else {})
    if method == "maurer-pontil":
        bound = maurer_pontil(law, price.total, n, delta)
        text = "L ≤ L̂ + sqrt(2 V ln(2/δ)/N) + 7 ln(2/δ)/(3(N − 1)), V the sample variance of the loss."
        latex = r"L \le \hat L + \sqrt{\frac{2 \hat V \ln(2/\delta)}{N}} + \frac{7 \ln(2/\delta)}{3(N-1)}"
        reference = MAURER_PONTIL
    elif single is not None:
        bound = betting(single, price.total, delta, test.seed)
        given = (*given, drawn_order(test.seed, test.drawn_here, "order of the bets"))
        text, latex, reference = BETTING_TEXT, BETTING_LATEX, BETTING_REFERENCE
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
        predictor=test.predictor,
        delta=delta,
        n_tuples=n,
        terms={**price.terms, **bound.price},
        assumptions=(_INDEPENDENT, UNSEEN, *given),
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


def certify_held_out(
    model: Any, cell: CellModel, X: TableLike, y: npt.ArrayLike, predictor: str, **options: Any
) -> Certificate:
    """A guarantee for a committee's averaged prediction, exactly as used, on tuples that no member has seen."""
    if predictor not in ("mean", "median", "mode"):
        raise RefusedCertificate(
            f"predictor={predictor!r}: a committee is certified on tuples it has not seen by what it predicts, "
            "predictor='mean', 'median' or 'mode'."
        )
    predictions = model.predict(X, rule=predictor)
    return certify_predictions(predictions, y, predictor=predictor, **_own_loss(cell), **options)


def _own_loss(cell: CellModel) -> dict[str, Any]:
    """What `certify_predictions` is told of a loss that is known as a cell."""
    labels = {"label_bounds": cell.bounds} if cell.alphabet is None else {"alphabet": cell.alphabet.values}
    return {"loss": lambda _: cell, **labels}


def pooled(parts: Sequence[Evidence]) -> Evidence:
    """The evidence about a committee: draw a member, then its co-clustering.

    KL(mixture‖P) ≤ mean of the members' KL (convexity, no ln K), and the law of the Gibbs loss is the
    average law.
    """
    first = parts[0]
    prices = {}
    for kind in first.prices:
        names = dict.fromkeys(name for part in parts for name in part.prices[kind].terms)
        prices[kind] = Complexity(
            {name: sum(part.prices[kind].terms.get(name, 0.0) for part in parts) / len(parts) for name in names}
        )
    law = mixture([part.law for part in parts])
    return replace(first, law=law, prices=prices, covered=None, n_answers=max(part.n_answers for part in parts))


def certify_folds(
    model: object,
    y: npt.ArrayLike | None = None,
    *,
    loss: Any = None,
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
    delta: float = 0.05,
) -> Certificate:
    """A guarantee for the mean prediction of a committee whose member j has not seen fold j.

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

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> board = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0)
    >>> committee = gg.Committee(board, n_members=3, cross=True).fit(X, y)
    >>> gg.certify_folds(committee).predictor
    'mean of the committee'
    """
    checked_delta(delta)
    kept = [getattr(model, name, None) for name in ("folds_", "fold_predictions_", "fold_rows_", "fold_labels_")]
    if kept[0] is None:
        raise GinghamError(
            "certify_folds needs a committee fitted with cross=True whose members have not changed since "
            "(fold_in changes them, and nothing has tested them then)."
        )
    if any(value is None for value in kept):
        raise GinghamError("This committee does not know the labels of its folds: fit it again.")
    folds, predictions, rows, labels = (np.asarray(value) for value in kept)
    if y is not None:
        given = checked_labels(y)
        if given.shape != labels.shape:
            raise GinghamError(f"The committee was fitted on {len(labels)} rows, y has {len(given)}.")
        if (given != labels).any():
            row = int(np.flatnonzero(given != labels)[0])
            raise RefusedCertificate(
                f"Row {row} of y is {given[row]}, and the committee was fitted on {labels[row]}: its folds test "
                "the labels that it was fitted on. Leave y out."
            )
    counts = getattr(model, "fold_counts_", None)
    for learned in getattr(model, "fit_rows_", ()):
        if counts is None and learned.times > 1:
            raise copies(learned.times)
    counts = np.ones(len(folds), dtype=np.int64) if counts is None else np.asarray(counts)
    posterior = find_posterior(next(iter(getattr(model, "members_", ())), None))
    if loss is None and label_bounds is None and posterior is not None:
        from gingham.certificates.certify import stated_cell

        cell = stated_cell(posterior.label_cell(), alphabet)[0]
        stated = _own_loss(cell)
    else:
        loss = "absolute" if loss is None else loss
        letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
        stated = {"loss": loss, "alphabet": None if letters is None else letters.values, "label_bounds": label_bounds}
        cell = _stated_cell(loss, letters, Bounds.of(label_bounds, given=True))
    if not cell.convex:
        raise RefusedCertificate(
            f"The {cell.name} loss is not known to be convex in the prediction, so that averaging members may hurt. "
            "State a convex one (loss='absolute', say), or certify predictions on other rows."
        )
    return certify_cross_fitted(
        predictions, labels[rows], folds, delta=delta, sample_weight=counts, predictor="mean of the committee", **stated
    )


def certify_cross_fitted(
    y_pred: npt.ArrayLike,
    y: npt.ArrayLike,
    folds: npt.ArrayLike,
    *,
    predictor: str,
    delta: float = 0.05,
    sample_weight: npt.ArrayLike | None = None,
    **stated: Any,
) -> Certificate:
    """A guarantee for models of which each predicted the one fold that it has not seen: for their average loss.

    Each is bounded on its own fold with δ/K (log-wealth, no complexity), so that all K bounds hold together, whatever
    the models have in common.

    Parameters
    ----------
    y_pred, y, folds : arrays of shape (N,)
        What the model without fold ``folds[i]`` predicts of row i, its label, and its fold.
    predictor : str
        What is covered: one of the models, drawn at random, or for a convex loss their mean.
    stated : loss, alphabet, label_bounds
        See `certify_predictions`.
    """
    y_pred, y, folds = np.asarray(y_pred), np.asarray(y), np.asarray(folds)
    counts = None if sample_weight is None else np.asarray(sample_weight)
    parts = []
    numbers = np.unique(folds)
    for fold in numbers:
        mine = folds == fold
        part = certify_predictions(
            y_pred[mine], y[mine], delta=checked_delta(delta) / len(numbers),
            sample_weight=None if counts is None else counts[mine], **stated,
        )  # fmt: skip
        parts.append(part)
    prices = [sum(part.terms.values()) - log(len(numbers)) for part in parts]
    convex = predictor.startswith("mean")
    who = "the mean prediction of all members" if convex else "a member drawn at random"
    return Certificate(
        value=float(np.mean([part.value for part in parts])),
        empirical=float(np.mean([part.empirical for part in parts])),
        bound="folds",
        predictor=predictor,
        delta=delta,
        n_tuples=sum(part.n_tuples for part in parts),
        terms={"union over folds": log(len(numbers)), "grid and confidence, mean of the folds": float(np.mean(prices))},
        assumptions=(
            _INDEPENDENT,
            *drawn_rows(None if counts is None else counts.astype(np.float64)),
            Assumption("Member j, and every choice that led to it, was made without fold j.", "given"),
            parts[0].assumptions[-1],
        ),
        worst=parts[0].worst,
        evidence=None,
        loss=parts[0].loss,
        text="With probability at least 1 − δ every member's loss is below the log-wealth bound on its own fold, "
        f"with δ/K each; {who} loses at most the average{' (Jensen)' if convex else ''}.",
        latex=r"L(\bar f) \le \frac1K\sum_j L(f_j) \le \frac1K\sum_j \mathrm{LW}_{\delta/K}[\ell_{f_j}\mid S_j]"
        if convex
        else r"\frac1K\sum_j L(f_j) \le \frac1K\sum_j \mathrm{LW}_{\delta/K}[\ell_{f_j}\mid S_j]",
        reference="gingham, docs/theory/split",
    )
