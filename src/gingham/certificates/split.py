"""With a split: learn on one part of the data, certify on the other.

``holdout``
    The finished predictor of the first part on the second: no complexity at all, any predictor.
``prior``
    The first part's memberships and answers become the prior, and the second part chooses a posterior
    near it: p(c|x) = .98 q⁰ + .02 qbar⁰, and each of the M cells keeps its answer with probability
    M/(M + 1), so that about one may change. Items that the first part has not seen are drawn from the urn of those
    it has, by prior and posterior alike. Covers Gibbs, and mean by Jensen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, prod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.utils import _safe_indexing

from gingham.arrays import AnyArray, Floats, Ints, TableLike
from gingham.cells.losses import TABLE, refuse_unmet
from gingham.certificates import bounds
from gingham.certificates.assumptions import Assumption, drawn_order, given
from gingham.certificates.bounds import LossDistribution, checked_candidates
from gingham.certificates.certificate import Certificate, of_bound
from gingham.certificates.divergence import relative_entropy
from gingham.certificates.evidence import Evidence
from gingham.certificates.holdout import Trial, on_unseen_rows, require_rows
from gingham.certificates.losses import scaled_losses
from gingham.certificates.members import unfitted
from gingham.certificates.observed import (
    check_sample,
    coverage,
    covered_predictor,
    in_full_precision,
    posterior_of,
    rows_as_draws,
    sample_of,
    source,
    stated_labels,
)
from gingham.certificates.prices import Complexity
from gingham.certificates.record import Record, grid_facts, posterior_facts
from gingham.core.problem import Posterior
from gingham.data import OneHot, Sample
from gingham.data.adapt import id_columns
from gingham.data.draws import Part, recorded_seed, taken, whole_counts
from gingham.data.sample import checked_labels, checked_weights, tuples
from gingham.engine.project import project
from gingham.errors import GinghamError, RefusedCertificate

METHODS = ("holdout", "prior")
LOOSENESS = 0.02  # share of the masses in the prior memberships


def on_a_split(
    model: object,
    X: TableLike,
    y: npt.ArrayLike,
    *,
    delta: float,
    predictor: str = "gibbs",
    sample_weight: npt.ArrayLike | None = None,
    fraction: float = 0.75,
    method: str = "holdout",
    random_state: int | None = None,
    candidates: int = 1,
    rows: tuple[AnyArray, AnyArray] | None = None,
) -> Certificate:
    """bound="split": split at random, fit a clone on the first part, certify on the second; the model comes with it.

    Parameters
    ----------
    model : estimator, fitted or not
    fraction : float
        Share of the draws that the model is fitted on; a row of weight w stands for w draws, which may fall on both
        sides.
    method : {"holdout", "prior"}
    random_state : int, optional
        Seed of the split; drawn afresh by default, and recorded in ``parameters["seed"]``.
    candidates : int
        How many settings were tried on the second part; each costs its share of δ.
    rows : pair of index arrays, optional
        The two parts, instead of a random split: no row twice, and every row one draw.

    Returns
    -------
    Certificate
        With ``model``, the estimator fitted on the first part, and ``posterior``, what is covered.
    """
    if method not in METHODS:
        raise GinghamError(f"method={method!r} is unknown; choose one of {', '.join(METHODS)}.")
    X, y = require_rows(X, y)
    checked_candidates(candidates)
    y = checked_labels(y)
    counts = whole_counts(checked_weights(sample_weight, len(y)))
    if rows is None:
        seed = recorded_seed(random_state)
        first, second = random_parts(len(y), counts, fraction, seed)
        how = drawn_order(seed, random_state is None, "split")
    else:
        first, second = given_parts(rows, len(y), counts)
        how = given("parts decided beforehand")
    columns = id_columns(X).columns
    rows_as_draws(tuples(columns, y, counts))  # copies would lie on both sides
    fitted = unfitted(model).fit(_safe_indexing(X, first.rows), y[first.rows], **first.weights)
    posterior = posterior_of(fitted)
    statement = stated_labels(posterior.label_cell(), None)
    sample = sample_of(posterior, _safe_indexing(X, second.rows), y[second.rows], second.counts, 0)
    parts: dict[str, Any] = {"rows": second.rows, **({} if second.counts is None else {"counts": second.counts})}
    if method == "holdout":
        test = Trial(delta, candidates, "log-wealth", predictor, 0, True)
        certificate = on_unseen_rows(posterior, sample, statement, test)(None, 1)
        if posterior.offsets is None:
            facts = partial(grid_facts, posterior, 0, **parts, **test.facts)
            certificate = replace(certificate, record=Record("holdout", X, y, sample_weight, facts))
    else:
        covered_predictor(posterior.label_cell(), predictor)
        certificate = certify_prior(posterior, sample, delta, statement, candidates, predictor)
        if certificate.posterior is not None:
            before = posterior_facts(in_full_precision(posterior))
            facts = partial(grid_facts, certificate.posterior, 0, **parts, candidates=candidates, prior=before)
            certificate = replace(certificate, record=Record("split prior", X, y, sample_weight, facts))
    parameters = {**certificate.parameters, **({} if rows is not None else {"seed": float(seed)})}
    return replace(
        certificate,
        model=fitted,
        parameters=parameters,
        assumptions=(*certificate.assumptions, how),
        first_part=first.n_draws,
    )


def certify_prior(
    prior: Posterior,
    sample: Sample,
    delta: float,
    statement: Assumption,
    candidates: int = 1,
    predictor: str = "gibbs",
) -> Certificate:
    """The split-prior certificate for a prior learned elsewhere, minimised over posteriors on this sample."""
    checked_candidates(candidates)
    covers = coverage(prior, 0)
    prior = in_full_precision(prior)
    cell = prior.cells[0]
    refuse_unmet("The split prior (method='holdout' is for others)", (TABLE,), prior.cells[:1], RefusedCertificate)
    if cell.alphabet is None or cell.table is None or sample.alphabet is None or sample.label_codes is None:
        raise RefusedCertificate("The split prior is for losses on an alphabet; use method='holdout' for others.")
    if type(prior) is not Posterior or prior.structure.repeats or prior.structure.frozen:
        raise RefusedCertificate("The split prior is for plain grids; use method='holdout' for other structures.")
    check_sample(prior, sample, 0)
    n = int(sample.n_observations)
    union = {"union over candidates": log(candidates)} if candidates > 1 else {}
    loose = [(1 - LOOSENESS) * q + LOOSENESS * m for q, m in zip(prior.assign, prior.mass)]
    chosen = _minimise(loose, prior, sample, scaled_losses(cell.table, cell), delta)  # the table is (|Y|, A)
    price = Complexity({**chosen.price.terms, **union})
    bound = bounds.log_wealth(chosen.distribution, price.total, n, delta)
    evidence = Evidence.of(chosen.distribution, cell, n, price, chosen.posterior)
    drawn = source(prior, 0, sample, given("independent or without replacement"))
    return of_bound(
        bound, evidence, price, bound="split-prior", predictor=predictor, delta=delta,
        assumptions=(*drawn, statement, *covers, given("prior from elsewhere")), loss=cell.name,
        text="Log-wealth with a prior learned on the first part of the data; the bound uses the second part only.",
        reference="gingham, docs/theory/split",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Chosen:
    posterior: Posterior
    distribution: LossDistribution
    price: Complexity


def _minimise(
    loose: Sequence[Floats],
    prior: Posterior,
    sample: Sample,
    table: Floats,
    delta: float,
    n_rounds: int = 12,
    n_sweeps: int = 10,
) -> _Chosen:
    """Alternate ν with block descent on N·E[−ln(1 − ℓ/ν)] + KL(Q‖P): log-wealth falls in every step."""
    answers, first = prior.answers[0].copy(), prior.answers[0]
    assigns = [q.copy() for q in loose]
    features = OneHot(table.shape[0])
    faith = first.size / (first.size + 1)  # prior probability that a cell keeps its answer
    others = max(table.shape[1] - 1, 1)
    answer_price = np.full((*answers.shape, table.shape[1]), log(others) - log(1 - faith))
    np.put_along_axis(answer_price, first[..., None], -log(faith), axis=-1)
    n, all_items = int(sample.n_observations), sample.with_others()
    best: tuple[float, _Chosen] | None = None
    for _ in range(n_rounds):
        current = replace(prior, assign=tuple(assigns), answers=(answers,))
        statistics = current.statistics(sample, 0, features)
        distribution = LossDistribution.of(table.T[answers], statistics)
        price = _price(assigns, loose, answers, answer_price, prior)
        result = bounds.log_wealth(distribution, price.total, n, delta)
        if best is not None and result.value > best[0] - 1e-7:
            break
        best = (result.value, _Chosen(current, distribution, price))
        effective = bounds.effective_loss(table, result.parameters["nu"])
        for _ in range(n_sweeps):
            coef = effective.T[answers]  # (m_1, …, m_d, |Y|)
            moved = 0.0
            for mode in range(len(assigns)):
                # Rows of unseen items move along with the others once a round; the distribution above counts them
                # exactly.
                wide = [np.vstack([q, row]) for q, row in zip(assigns, current.unseen_rows)]
                cost = _mode_cost(wide, coef, all_items, features, mode)[:-1]
                with np.errstate(divide="ignore"):
                    fresh = softmax(np.log(loose[mode]) - cost, axis=1)
                moved = max(moved, float(np.abs(fresh - assigns[mode]).max()))
                assigns[mode] = fresh
            statistics = replace(prior, assign=tuple(assigns)).statistics(sample, 0, features)
            before, answers = answers, np.argmin(statistics @ effective + answer_price, axis=-1)
            if moved < 1e-6 and (before == answers).all():
                break
    if best is None:
        raise GinghamError("No posterior was found.")  # pragma: no cover - the first round always sets it
    return best[1]


def _mode_cost(assigns: Sequence[Floats], coef: Floats, sample: Sample, features: OneHot, mode: int) -> Floats:
    """G[x, c] = Σ_tuples of x, other clusters: weight · coef (P0 eq. 42), shape (n, m)."""
    others = [q for j, q in enumerate(assigns) if j != mode]
    moved = np.moveaxis(coef, (mode, -1), (0, 1)).reshape(coef.shape[mode], -1)
    part = project(sample.rows(mode, features), others)
    return part.reshape(len(part), prod(part.shape[1:])) @ moved.T


def _price(
    assigns: Sequence[Floats], loose: Sequence[Floats], answers: AnyArray, answer_price: Floats, prior: Posterior
) -> Complexity:
    paid = float(np.take_along_axis(answer_price, answers[..., None], axis=-1).sum())
    moved = zip(prior.structure.modes, assigns, loose)
    terms = {f"{mode.name}: change of memberships": relative_entropy(q, p) for mode, q, p in moved}
    return Complexity({**terms, "answers kept or changed": paid})


def random_parts(n_rows: int, counts: Ints | None, fraction: float, seed: int) -> tuple[Part, Part]:
    """Two random parts of the draws; the draws of a row of weight w may fall on both sides."""
    if not 0 < fraction < 1:
        raise GinghamError(f"fraction={fraction} must lie strictly between 0 and 1.")
    draws = np.ones(n_rows, dtype=np.int64) if counts is None else counts
    total = int(draws.sum())
    if total < 2:
        raise GinghamError(f"There is {total} draw: it cannot be divided.")
    first = taken(draws, min(max(round(fraction * total), 1), total - 1), np.random.default_rng(seed))
    return Part.of(first, counts is not None), Part.of(draws - first, counts is not None)


def given_parts(rows: tuple[AnyArray, AnyArray], n_rows: int, counts: Ints | None) -> tuple[Part, Part]:
    """Two parts of the rows as they were named; no row may be named twice, or stand for several draws."""
    parts = [np.asarray(part) for part in rows]
    parts = [np.flatnonzero(part) if part.dtype == bool and part.shape == (n_rows,) else part for part in parts]
    if len(parts) != 2 or any(part.ndim != 1 or part.dtype.kind not in "iu" or len(part) == 0 for part in parts):
        raise GinghamError("rows= needs two parts, each with the numbers of some rows: (rows to fit, rows to certify).")
    named = np.concatenate(parts)
    outside = (named < 0) | (named >= n_rows)
    if outside.any():
        raise GinghamError(f"rows= names row {named[outside][0]}; there are rows 0 to {n_rows - 1}.")
    twice = np.flatnonzero(np.bincount(named) > 1)
    if len(twice):
        raise RefusedCertificate(
            f"rows= names row {twice[0]} twice. Rows that the model has seen cannot test it, and a row that is counted "
            "twice is not two draws."
        )
    if counts is not None and (counts[named] > 1).any():
        row = int(named[counts[named] > 1][0])
        raise RefusedCertificate(
            f"rows= divides rows, and row {row} of weight {counts[row]} stands for {counts[row]} draws, which must be "
            "divided one by one: leave rows= out, or write each draw as a row of its own."
        )
    chosen = [np.bincount(part, minlength=n_rows) for part in parts]
    if counts is not None:
        chosen = [np.minimum(part, counts) for part in chosen]
    return Part.of(chosen[0], counts is not None), Part.of(chosen[1], counts is not None)
