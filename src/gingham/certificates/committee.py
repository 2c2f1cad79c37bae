"""A committee is one randomised predictor: draw a member, then its co-clustering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gingham.cells import CellModel
from gingham.certificates.bounds import mixture
from gingham.certificates.certificate import Certificate
from gingham.certificates.complexity import Complexity
from gingham.certificates.evidence import Evidence
from gingham.certificates.holdout import certify_predictions
from gingham.core.posterior import Posterior
from gingham.errors import RefusedCertificate


def committee_members(model: Any) -> list[Posterior]:
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


def certify_held_out(model: Any, cell: CellModel, X: Any, y: Any, predictor: str, **options: Any) -> Certificate:
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
