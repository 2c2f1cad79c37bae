"""The guarantee of a committee whose members are tested on the folds they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gingham.arrays import Anything
from gingham.certificates.certificate import Assumption, Certificate
from gingham.certificates.holdout import certify_predictions
from gingham.errors import GinghamError, RefusedCertificate

FOLDS = Assumption("Each member was fitted without its own fold, every choice included.", "given")
CONVEX = ("absolute", "quadratic", "pinball")


def certify_folds(
    committee: Any,
    y: Any,
    *,
    loss: str = "absolute",
    alphabet: Any = None,
    label_bounds: tuple[float, float] | None = None,
    delta: float = 0.05,
) -> Certificate:
    """The guarantee of a cross-fitted committee's mean prediction; all the data was used to fit it.

    Member k is tested on fold k, which it has not seen, with confidence δ/K. Where the loss is convex, the
    committee's mean loses at most what its members lose on average (Jensen). Labels are not covered.

    Parameters
    ----------
    committee : fitted Committee(cross=True)
    y : the training labels, in the order of fit
    """
    folds, predictions = getattr(committee, "folds_", None), getattr(committee, "fold_predictions_", None)
    if folds is None or predictions is None:
        raise GinghamError("certify_folds needs a committee that was fitted with cross=True.")
    if loss not in CONVEX:
        raise RefusedCertificate(f"loss={loss!r} is not convex in the prediction, so averaging may hurt: use {CONVEX}.")
    labels: Anything = np.asarray(y)
    if len(labels) != len(folds):
        raise GinghamError(f"y has {len(labels)} rows; the committee was fitted to {len(folds)}.")
    span = label_bounds or (None if alphabet is None else (float(np.min(alphabet)), float(np.max(alphabet))))
    n_members = len(committee.members_)
    found: Sequence[Certificate] = [
        certify_predictions(
            predictions[folds == k], labels[folds == k], loss=loss, label_bounds=span, delta=delta / n_members,
            predictor="mean",
        )
        for k in range(n_members)
    ]  # fmt: skip
    first = found[0]
    return replace(
        first,
        value=float(np.mean([c.value for c in found])),
        empirical=float(np.mean([c.empirical for c in found])),
        bound="cross-committee",
        predictor="committee mean",
        delta=delta,
        terms={**first.terms, "union over members": float(np.log(n_members))},
        assumptions=(*first.assumptions, FOLDS),
        text=f"{n_members} members, each on {first.n_tuples:,} tuples it has not seen, with δ/{n_members}; the mean of "
        "their bounds covers the mean prediction of a convex loss (Jensen). " + first.text,
    )
