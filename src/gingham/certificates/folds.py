"""Cross-committees: all the data are used, and yet every member was tested on tuples it has not seen."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from gingham.certificates.certificate import Assumption, Certificate
from gingham.certificates.holdout import certify_predictions
from gingham.errors import GinghamError, RefusedCertificate

CONVEX = ("absolute", "quadratic", "pinball")


def certify_folds(
    model: Any,
    y: Any,
    *,
    loss: str = "absolute",
    alphabet: Any = None,
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
