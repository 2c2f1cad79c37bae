"""Committees: one randomised predictor (draw a member, then its co-clustering), or members tested on folds.

In a cross-committee all the data are used, and yet every member was tested on tuples it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import TableLike
from gingham.cells import CellModel
from gingham.certificates.bounds import mixture
from gingham.certificates.certificate import Assumption, Certificate
from gingham.certificates.complexity import Complexity
from gingham.certificates.evidence import Evidence
from gingham.certificates.holdout import certify_predictions
from gingham.core.posterior import Posterior
from gingham.errors import GinghamError, RefusedCertificate

CONVEX = ("absolute", "quadratic", "pinball")


def committee_members(model: object) -> list[Posterior]:
    """The posteriors of a committee, if the model is one and all its members have the same items."""
    members = getattr(model, "members_", None)
    if members is None or isinstance(model, Posterior):
        return []
    posteriors = [getattr(member, "posterior_", None) for member in members]
    if not posteriors or not all(isinstance(posterior, Posterior) for posterior in posteriors):
        raise RefusedCertificate(
            "The members of this committee have no posterior over co-clusterings, so that no Gibbs bound covers them. "
            "Certify the committee's predictions with certify_predictions."
        )
    known: list[Posterior] = [posterior for posterior in posteriors if isinstance(posterior, Posterior)]
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
    letters, bounds = getattr(cell, "alphabet", None), getattr(cell, "bounds", None)
    if letters is None:
        return certify_predictions(
            predictions, y, loss="quadratic", label_bounds=bounds, predictor=predictor, **options
        )
    return certify_predictions(
        predictions, y, loss=lambda _: cell, alphabet=letters.values, predictor=predictor, **options
    )


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
    y: npt.ArrayLike,
    *,
    loss: str = "absolute",
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
    delta: float = 0.05,
) -> Certificate:
    """A guarantee for the mean prediction of a committee whose member j has not seen fold j.

    Each member is bounded on its own fold with δ/K (log-wealth, no complexity); the loss is convex, so the
    average of the members loses at most the average of their losses.

    Parameters
    ----------
    model : fitted committee with ``folds_`` and ``fold_predictions_`` (``Committee(..., cross=True)``)
    y : the labels it was fitted on, in the same order
    loss : {"absolute", "quadratic", "pinball"}
    """
    folds, predictions = getattr(model, "folds_", None), getattr(model, "fold_predictions_", None)
    if folds is None or predictions is None:
        raise GinghamError("certify_folds needs a committee fitted with cross=True.")
    if loss not in CONVEX:
        raise RefusedCertificate(
            f"loss={loss!r}: averaging members is covered for convex losses only ({', '.join(CONVEX)})."
        )
    y = np.asarray(y)
    if len(y) != len(folds):
        raise GinghamError(f"The committee was fitted on {len(folds)} rows, y has {len(y)}.")
    numbers = np.unique(folds)
    parts = [
        certify_predictions(
            predictions[folds == fold],
            y[folds == fold],
            loss=loss,
            alphabet=alphabet,
            label_bounds=label_bounds,
            delta=delta / len(numbers),
            predictor="mean",
        )
        for fold in numbers
    ]
    prices = [sum(part.terms.values()) - log(len(numbers)) for part in parts]
    return Certificate(
        value=float(np.mean([part.value for part in parts])),
        empirical=float(np.mean([part.empirical for part in parts])),
        bound="folds",
        predictor="mean of the committee",
        delta=delta,
        n_tuples=len(y),
        terms={"union over folds": log(len(numbers)), "grid and confidence, mean of the folds": float(np.mean(prices))},
        assumptions=(
            parts[0].assumptions[0],
            Assumption("Member j, and every choice that led to it, was made without fold j.", "given"),
            parts[0].assumptions[-1],
        ),
        worst=parts[0].worst,
        evidence=None,
        loss=loss,
        text="With probability at least 1 − δ every member's loss is below the log-wealth bound on its own fold, "
        "with δ/K each; the committee's mean prediction loses at most the average (Jensen).",
        latex=r"L(\bar f) \le \frac1K\sum_j L(f_j) \le \frac1K\sum_j \mathrm{LW}_{\delta/K}[\ell_{f_j}\mid S_j]",
        reference="gingham, docs/theory/split",
    )
