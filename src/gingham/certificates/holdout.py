"""Held-out rows: a finished predictor on rows that it has never seen, covered exactly as it is used; committees.

In a cross-committee all the data are used, and yet every member was tested on rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

from gingham.arrays import AnyArray, Floats, Ints, TableLike
from gingham.cells import CellModel
from gingham.certificates.assumptions import Assumption, checked, drawn_order, drawn_rows, given
from gingham.certificates.bounds import (
    GRID,
    Bound,
    LossDistribution,
    checked_candidates,
    checked_delta,
    find,
    log_inverse,
)
from gingham.certificates.certificate import Certificate, of_bound
from gingham.certificates.evidence import Evidence, continuous_distribution, distinct_answers, distribution_on_alphabet
from gingham.certificates.losses import StatedLoss, loss_scale, scaled_losses, stated_loss
from gingham.certificates.observed import (
    check_rows,
    in_full_precision,
    posteriors_of,
    sample_of,
    source,
    stated_labels,
)
from gingham.certificates.prices import Complexity
from gingham.certificates.record import Record, grid_facts
from gingham.certificates.selection import Propensity, catalogue_mean
from gingham.certificates.strata import (
    Division,
    as_names,
    by_items,
    column_name,
    strata_facts,
    texts_of,
    with_strata,
)
from gingham.core.problem import Offsets, Posterior, find_posterior
from gingham.data import Bounds
from gingham.data.draws import recorded_seed, rows_of_draws, whole_counts
from gingham.data.fit_rows import FitRows, share_of_copies
from gingham.data.sample import Sample, checked_labels, checked_weights, need_unmasked
from gingham.errors import GinghamError, RefusedCertificate

UNSEEN = given("not fitted on these")
SMALLEST = 1e-3  # of ν − 1: no single loss may take the whole wealth
METHODS = ("log-wealth", "betting")
MOST_DRAWS = 2**27  # rows times cells whose losses are listed one by one
ORDERS, MOST_BETS = 32, 2**16  # orders in which bets are made, fewer where there are many observations
BETTING_TEXT = (
    "With probability at least 1 − δ over N independent observations the wealth Π (ν_t − X_t)/(ν_t − L), averaged over "
    "a few random orders of the observations, stays below 1/δ, where the bet ν_t depends on the observations before t "
    "only; L is at most where it meets 1/δ."
)
BETTING_REFERENCE = "Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting"


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
    strata: npt.ArrayLike | None = None,
    propensity: Propensity | None = None,
    predictor: str = "predictions",
    random_state: int | None = None,
) -> Certificate:
    """A guarantee for finished predictions of any library on rows that were not used to make them.

    Parameters
    ----------
    y : array of shape (N,)
        The labels.
    predictions : array of shape (N,), or (N, |Y|) distributions for the log loss and the ranked probability score
    loss : {"absolute", "quadratic", "zero-one", "pinball", "log", "ranked-probability"}, table or callable
    alphabet : sequence, optional
        The possible labels; ``label_bounds`` = (smallest, largest) serves losses of numbers too.
    candidates : int
        Among how many predictors these rows decided; each costs its share of δ.
    method : {"log-wealth", "betting"}
        "betting" was the tightest on ratings (see :func:`betting`); decide before you look.
    sample_weight : whole numbers, optional
        A row of weight w stands for w draws.
    folds : array of shape (N,), optional
        Each row was predicted by a model that has not seen its fold. Each model is bounded on its own fold with δ/K,
        so that all bounds hold together; covered is a model drawn at random or, for a convex loss, their mean.
    groups : array of shape (N,) or (N, k), optional
        Rows of one group (one user, say) need not be independent, groups are: each counts once, by its mean loss.
        Covered is the mean over groups. Where a row belongs to several groups (the two nodes of a pair, a user and a
        film), tested are rows that share none, drawn at random: covered are rows of groups that nobody has met. Ids
        are compared across columns. For rows of weight 1.
    strata : array of shape (N,), optional
        The part of the rows to which each belongs, by a rule that does not look at labels. Each stratum gets a
        guarantee of its own (``certificate.strata``); all hold together, so that `Certificate.for_mix` covers any mix.
    propensity : Propensity, optional
        How likely each row was to be observed. Covered is then the mean over the whole catalogue, and not over pairs
        like those that were observed.
    predictor : str
        What is covered, in words.
    random_state : int, optional
        Seed of what is drawn here, orders of bets and rows that share no group; drawn afresh by default, and recorded.

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
    weights = checked_weights(sample_weight, len(labels))
    test = Trial(delta, candidates, method, predictor, recorded_seed(random_state), random_state is None)
    units = None if groups is None else texts_of(groups, "groups", len(labels), several=True)
    _need_no_copies(labels, guesses, units)
    said = {"groups=": groups, "strata=": strata, "propensity=": propensity, "sample_weight=": weights}
    said |= {"candidates=": None if candidates == 1 else 1, "method=": None if method == "log-wealth" else 1}
    if folds is not None:
        _leave_out(said, "groups=", "strata=", "propensity=", "candidates=", "method=", by="folds=")
        return _cross_fitted(stated, labels, guesses, texts_of(folds, "folds", len(labels)), weights, test)
    if propensity is not None:
        _leave_out(said, "groups=", "strata=", "sample_weight=", "method=", by="propensity=")
    if units is not None and weights is not None and (weights != 1).any():
        _leave_out(said, "sample_weight=", by="groups=")
    values = stated.losses(labels, guesses)
    if propensity is not None:
        return _of_catalogue(stated, values, propensity, test)

    def of_rows(rows: Ints | None, shares: int) -> Certificate:
        every = np.arange(len(values)) if rows is None else rows
        mine, own = values[every], None if weights is None else weights[every]
        drawn: tuple[Assumption, ...] = (given("independent"),)
        if units is not None:
            own, (mine, of_groups) = None, losses_of_groups(mine, units[every], test.seed)
            chosen = drawn_order(test.seed, test.drawn_here, "choice of rows that share no group")
            drawn = (of_groups,) if units.ndim == 1 else (of_groups, chosen)
        assumptions = (*drawn, UNSEEN, *drawn_rows(own), stated.statement)
        return _of_losses(mine, own, stated.cell, replace(test, shares=shares), assumptions)

    names = None if strata is None else as_names(strata, len(labels))
    certificate = with_strata(None if names is None else Division(names), of_rows)
    if units is not None:
        return certificate
    facts = {"loss": stated.facts(), "nu_grid": GRID, **test.facts, **strata_facts(certificate)}
    columns = guesses if guesses.ndim == 2 else guesses[:, None]
    record = Record("predictions", columns, labels, sample_weight, partial(dict, facts), names, column_name(strata))
    return replace(certificate, record=record)


def _leave_out(said: Mapping[str, object], *names: str, by: str) -> None:
    """Refuse options that do not go with another one."""
    wrong = [name for name in names if said[name] is not None]
    if wrong:
        raise RefusedCertificate(f"{' and '.join(wrong)} cannot be combined with {by}: leave one of them out.")


def _of_catalogue(stated: StatedLoss, values: Floats, propensity: Propensity, test: Trial) -> Certificate:
    """The guarantee for the mean over all pairs of a catalogue, from rows observed by their propensities."""
    scaled, (low, width) = scaled_losses(values, stated.cell), loss_scale(stated.cell)
    w = propensity.weights(len(scaled))
    price = log_inverse(test.delta, test.candidates)
    chosen = given("propensities", gamma=float(propensity.gamma), least=float(propensity.least))
    return Certificate(
        value=low + width * catalogue_mean(scaled, propensity, price),
        empirical=low + width * float(w @ scaled / w.sum()),
        bound="catalogue",
        predictor=test.predictor,
        delta=test.delta,
        n_observations=len(scaled),
        terms={"confidence and candidates": price, "grid of ν": log(len(GRID))},
        assumptions=(chosen, UNSEEN, stated.statement),
        worst=low + width,
        loss=stated.name,
        text="Covered is the mean over all pairs of the catalogue, each as likely as the others. With probability at "
        "least 1 − δ it is at most the largest r with mean over ν of Π (1 − X_t(r)/ν) ≤ 1/δ, "
        "X(r) = w ((ℓ − r)⁺ − (ℓ − r)⁻/Γ²), where w is the smallest propensity divided by that of the row.",
        reference="gingham, docs/theory/population",
        first_part=None,
    )


def _need_no_copies(y: AnyArray, predictions: AnyArray, groups: AnyArray | None = None) -> None:
    """Refuse labels and predictions that come several times; without ids, some of them may well be equal.

    Rows count as they are listed, whatever their weights; those of one group may repeat each other.
    """
    rows = np.column_stack([as_codes(column) for column in (y, *np.atleast_2d(predictions.T))])
    if groups is not None:
        both = np.column_stack([rows, *(as_codes(column) for column in np.atleast_2d(groups.T))])
        rows = np.unique(both, axis=0)[:, : rows.shape[1]]
    times = np.unique(rows, axis=0, return_counts=True)[1]
    continuous = y.dtype.kind == "f" and 2 * len(np.unique(y)) > len(times) and bool((y % 1 != 0).any())
    if continuous or np.gcd.reduce(times) > 1:
        share_of_copies(times, continuous)


def as_codes(column: AnyArray) -> Ints:
    """Equal numbers for equal values."""
    return np.asarray(np.unique(column, return_inverse=True)[1]).ravel()


def losses_of_groups(values: Floats, groups: AnyArray, seed: int) -> tuple[Floats, Assumption]:
    """Losses of groups, one each, as independent draws, and what has to be believed of the groups.

    Of one column of groups it is the mean over the rows of each; of several, losses of rows that share no group, which
    are drawn without a look at them.
    """
    if groups.ndim == 1:
        at = as_codes(groups)
        counts = np.bincount(at)
        return np.bincount(at, values) / counts, given("independent groups", n=len(counts))
    codes, taken, chosen = as_codes(groups).reshape(groups.shape), set[int](), list[int]()
    for row in np.random.default_rng(seed).permutation(len(values)).tolist():
        mine = set(codes[row].tolist())
        if taken.isdisjoint(mine):
            taken |= mine
            chosen.append(row)
    return values[chosen], given("rows that share no group", n=len(chosen), of=len(values))


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
    strata: str | npt.ArrayLike | None = None,
    random_state: int | None = None,
) -> Certificate:
    """bound="holdout": one predictor of a model, or of a committee, on rows that its fit has not seen."""
    test = Trial(delta, candidates, method, predictor, recorded_seed(random_state), random_state is None)
    posterior, is_committee = posteriors_of(model)[0], find_posterior(model) is None
    statement = stated_labels(posterior.label_cell(relation), alphabet)
    sample, guesses = sample_of(posterior, X, y, sample_weight, relation), None
    if is_committee:
        if predictor not in ("mean", "median", "mode"):
            raise RefusedCertificate(
                f"predictor={predictor!r}: a committee is certified on rows it has not seen by what it predicts, "
                "predictor='mean', 'median' or 'mode'."
            )
        guesses = np.asarray(model.predict(require_rows(X, y)[0], rule=predictor))
    of_rows = on_unseen_rows(posterior, sample, statement, test, relation, guesses)
    division, modes = None, posterior.structure.columns(relation)
    if by_items(strata):
        known = [code >= 0 for code in sample.codes]
        division = Division.of(known, [mode.items for mode in modes], [mode.name for mode in modes])
    elif strata is not None:
        division = Division(as_names(strata, sample.n_rows))
    certificate = with_strata(division, of_rows)
    if not is_committee and posterior.offsets is None:
        facts = partial(grid_facts, posterior, relation, **test.facts, **strata_facts(certificate))
        told = None if division is None else division.handed_in
        record = Record("holdout", X, y, sample_weight, facts, told, column_name(strata))
        certificate = replace(certificate, record=record)
    not_new = without_rows_of_the_fit(model, sample, relation)
    return replace(certificate, assumptions=(*certificate.assumptions, *not_new))


def require_rows(X: TableLike | Sample, y: npt.ArrayLike | None) -> tuple[TableLike, npt.ArrayLike]:
    """Rows of ids and their labels, for what fits or predicts anew."""
    if isinstance(X, Sample) or y is None:
        raise GinghamError("This certificate fits or predicts anew: give the rows of ids X and their labels y.")
    return X, y


def without_rows_of_the_fit(model: object, sample: Sample, relation: int = 0) -> tuple[Assumption, ...]:
    """Refuse rows that a model has learned from, where it keeps a sketch of them; what the comparison has shown."""
    kept: tuple[FitRows, ...] = getattr(model, "_fit_rows", ())
    if not kept:
        return ()
    met = kept[relation].met(sample)
    compared = {} if met.everything else {"compared": met.n_compared}
    if met.seen:
        which = ", ".join(f"{row:,}" for row in met.rows[:5].tolist()) + (", …" if len(met.rows) > 5 else "")
        drawn = "rows that were compared, drawn at random from them," if compared else "rows"
        some = f"{met.n_same:,} of the {met.n_compared:,} {drawn} (row {which})"
        raise RefusedCertificate(
            f"{'These are the' if met.whole_fit else f'{some} are'} rows that the model was fitted on, but "
            "bound='holdout' needs rows that the fit has not seen. Use bound='log-wealth', which is for the rows of "
            "the fit, bound='split', or other rows. If they were drawn anew and are equal by chance, certify finished "
            "predictions: certify_predictions."
        )
    # Labels that were rounded or changed cannot be told from new ones: where most rows may be such, that is said.
    most = 2 * met.n_other >= met.n_compared > 0
    other = [given("other labels than in the fit", other=met.n_other, compared=met.n_compared)] if most else []
    if met.n_same:
        return (given("equal to rows of the fit", same=met.n_same, **compared), *other)
    if met.n_compared == 0:  # of a huge fit a part is kept, and none of a few rows may be in it
        return (given("no row of the fit"),)
    return (checked("no row of the fit", **compared), *other)


def on_unseen_rows(
    posterior: Posterior,
    sample: Sample,
    statement: Assumption,
    test: Trial,
    relation: int = 0,
    guesses: AnyArray | None = None,
) -> Callable[[Ints | None, int], Certificate]:
    """The guarantee for one predictor on some rows that its fit has not seen, by their numbers and a share of δ.

    ``guesses`` are what a committee predicts; otherwise the posterior itself is tested.
    """
    cell, predictor = posterior.label_cell(relation), test.predictor
    check_rows(posterior, sample, relation)
    drawn = (*source(posterior, relation, sample, given("independent")), UNSEEN, statement)
    covered = None if guesses is not None else posterior
    if predictor != "gibbs":
        if sample.complete:
            raise RefusedCertificate(
                "List the pairs that were held out (pairs='listed'); absent ones are not predicted."
            )
        if sample.labels is None:
            raise GinghamError("A certificate needs the labels of the rows.")
        labels: AnyArray = sample.labels if sample.alphabet is None else sample.alphabet.values[sample.label_codes]
        predictions = predicted_by(posterior, sample, predictor, relation) if guesses is None else guesses
        values = StatedLoss.of_cell(cell).losses(labels, predictions)

    def of_rows(rows: Ints | None, shares: int) -> Certificate:
        some, share = sample if rows is None else sample.take(rows), replace(test, shares=shares)
        if predictor == "gibbs":
            return _certificate(
                _gibbs_distribution(posterior, some, relation), cell, int(some.n_observations), share, drawn
            )
        return _of_losses(values if rows is None else values[rows], some.weights, cell, share, drawn, covered)

    return of_rows


def predicted_by(posterior: Posterior, sample: Sample, predictor: str, relation: int) -> AnyArray:
    """What a posterior predicts of each row, as labels or distributions."""
    if posterior.label_cell(relation).answers == "distribution":
        if predictor != "mean":
            name = posterior.label_cell(relation).name
            raise RefusedCertificate(f"The {name} loss is that of the predicted distribution: predictor='mean'.")
        return posterior.predict_distribution(sample.codes, relation)
    found: AnyArray = posterior.predict(sample.codes, predictor, relation)
    if sample.alphabet is None or sample.alphabet.numeric:
        return found
    if predictor != "mode":
        raise RefusedCertificate("Labels are names: only predictor='mode' or 'gibbs' predicts them.")
    return sample.alphabet.values[found.astype(np.int64)]


@dataclass(frozen=True)
class Trial:
    """How a finished predictor is tested."""

    delta: float
    candidates: int
    method: str
    predictor: str
    seed: int  # of the orders in which bets are made
    drawn_here: bool
    shares: int = 1  # bounds that hold together, each with δ/shares
    among: str = "strata"  # what these bounds are of

    def __post_init__(self) -> None:
        checked_delta(self.delta)
        checked_candidates(self.candidates)
        if self.method not in METHODS:
            raise GinghamError(f"method={self.method!r} is unknown; choose one of {', '.join(METHODS)}.")
        if self.method == "betting" and self.predictor == "gibbs":
            raise RefusedCertificate("Betting covers deterministic predictors; use method='log-wealth' for gibbs.")

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
    distribution, n = LossDistribution.of(scaled, counts), int(counts.sum())
    return _certificate(distribution, cell, n, test, assumptions, covered, single)


def _gibbs_distribution(posterior: Posterior, sample: Sample, relation: int) -> LossDistribution:
    posterior = in_full_precision(posterior)
    if posterior.offsets is not None and relation == 0:
        return _distribution_with_offsets(posterior, posterior.offsets, sample)
    if sample.alphabet is None:
        return continuous_distribution(posterior, sample, relation)
    return distribution_on_alphabet(posterior, sample, *distinct_answers(posterior, relation), relation)


def _distribution_with_offsets(posterior: Posterior, offsets: Offsets, sample: Sample) -> LossDistribution:
    """The distribution of the loss where a cell is drawn for each row and its answer added to the offsets."""
    cell, answers = posterior.label_cell(), posterior.cells[0].values(posterior.answers[0]).ravel()
    if sample.n_rows * len(answers) > MOST_DRAWS:
        raise RefusedCertificate(
            f"The distribution of the loss of {sample.n_rows:,} rows in {len(answers):,} cells is too large with "
            "offsets: certify the prediction itself, predictor='mean'."
        )
    counts = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    gaps = sample.numbers()[:, None] - offsets.clipped(offsets.at(sample.codes)[:, None] + answers)
    losses = cell.of_gap(gaps)
    if losses is None:
        raise RefusedCertificate(
            f"{cell.name!r} does not depend on the prediction error alone, so it cannot be combined with offsets."
        )
    return LossDistribution.of(
        scaled_losses(losses, cell), counts[:, None] * posterior.cell_distributions(sample.codes)
    )


def _certificate(
    distribution: LossDistribution,
    cell: CellModel,
    n: int,
    test: Trial,
    assumptions: tuple[Assumption, ...],
    covered: Posterior | None = None,
    single: Floats | None = None,
) -> Certificate:
    """The certificate of a distribution of scaled losses; ``single`` has one loss per observation, for betting."""
    # A predictor that was chosen without a look at these observations costs nothing else.
    unions = {"candidates": log(test.candidates), test.among: log(test.shares)}
    price = Complexity({f"union over {what}": union for what, union in unions.items() if union})
    if single is None:
        theorem = find("log-wealth")
        bound = theorem.function(distribution, price.total, n, test.delta)
        text = theorem.text + " Here Q is fixed beforehand, so KL(Q‖P) = 0."
        reference = theorem.reference + ", on rows the predictor has not seen"
    else:
        bound = betting(single, price.total, test.delta, test.seed)
        assumptions = (*assumptions, drawn_order(test.seed, test.drawn_here, "order of the bets"))
        text, reference = BETTING_TEXT, BETTING_REFERENCE
    evidence = Evidence.of(distribution, cell, n, price, covered)
    return of_bound(
        bound, evidence, price, bound="holdout", predictor=test.predictor, delta=test.delta, assumptions=assumptions,
        loss=cell.name, text=text, reference=reference, first_part=None,
    )  # fmt: skip


def betting(losses: Floats, union: float, delta: float, seed: int) -> Bound:
    """The largest L with (1/K) Σ_k Π_t (ν_kt − X_kt)/(ν_kt − L) ≤ e^union/δ, for losses between 0 and 1, shape (N,).

    Given the observations before, each factor has mean at most 1, so every product is a wealth with mean at most 1,
    and so is their average over K orders: it exceeds 1/δ with probability at most δ (Markov). The bet
    ν_t = μ̂ + σ̂ √(N/(2 ln 1/δ)) comes from the mean and the variance of the losses before t.
    Where log-wealth pays for a grid of fixed bets, this
    pays with what is not yet known at the start: about a quarter of the gap between the bound and the observed loss is
    saved. The orders are drawn here without a look at the losses, from a seed that nobody knew when the rows were
    written down; with several of them the value hardly depends on it. For rows sorted by something the losses depend
    on, δ counts over that draw too. It covers one predictor, not all posteriors.
    """
    n, paid = len(losses), union + log_inverse(delta)
    orders = max(1, min(ORDERS, MOST_BETS // n))
    x: Floats = np.random.default_rng(seed).permuted(np.tile(losses, (orders, 1)), axis=1)
    seen = np.arange(2, n + 2)
    # Half a loss of ½ with variance ¼ stands for the observations before the first.
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
        raise GinghamError("This committee does not store the labels of its folds: fit it again.")
    folds, predictions, rows, labels = (np.asarray(value) for value in kept)
    if y is not None:
        named = checked_labels(y)
        if named.shape != labels.shape:
            raise GinghamError(f"The committee was fitted on {len(labels)} rows, y has {len(named)}.")
        if (named != labels).any():
            row = int(np.flatnonzero(named != labels)[0])
            raise RefusedCertificate(
                f"Row {row} of y is {named[row]}, and the committee was fitted on {labels[row]}: its folds "
                "test the labels that it was fitted on. Leave y out."
            )
    counts = getattr(model, "fold_counts_", None)
    for learned in getattr(model, "_fit_rows", ()):
        if counts is None or (counts == 1).all():
            share_of_copies(learned.draws)
    posterior = find_posterior(next(iter(getattr(model, "members_", ())), None))
    if loss is None and label_bounds is None and posterior is not None:
        stated_labels(posterior.label_cell(), alphabet)
        stated = StatedLoss.of_cell(posterior.label_cell())
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
            f"The {stated.name} loss is not known to be convex in the prediction, so averaging members may increase "
            "it. State a convex one (loss='absolute', say), or certify predictions on other rows."
        )
    numbers, parts = np.unique(folds), []
    share = replace(test, shares=len(numbers), among="folds")
    for fold in numbers:
        mine = folds == fold
        own = None if weights is None else weights[mine]
        _need_no_copies(y[mine], predictions[mine])
        parts.append(_of_losses(stated.losses(y[mine], predictions[mine]), own, stated.cell, share, ()))
    prices = [sum(part.terms.values()) - log(len(numbers)) for part in parts]
    who = "the mean prediction of all members" if convex else "a member drawn at random"
    return Certificate(
        value=float(np.mean([part.value for part in parts])),
        empirical=float(np.mean([part.empirical for part in parts])),
        bound="folds",
        predictor=test.predictor,
        delta=test.delta,
        n_observations=sum(part.n_observations for part in parts),
        terms={"union over folds": log(len(numbers)), "grid and confidence, mean of the folds": float(np.mean(prices))},
        assumptions=(given("independent"), *drawn_rows(weights), given("folds"), stated.statement),
        worst=parts[0].worst,
        loss=parts[0].loss,
        text="With probability at least 1 − δ every member's loss is below the log-wealth bound on its own fold, "
        f"with δ/K each; {who} loses at most the average{' (Jensen)' if convex else ''}.",
        reference="gingham, docs/theory/split",
    )
