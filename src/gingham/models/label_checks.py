"""Which labels a model takes: finite, and numbers where it predicts numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from gingham.arrays import AnyArray
from gingham.errors import GinghamError

FEW = 64  # so many different numbers are taken for a scale (stars, grey levels), more for a measurement


def default_loss(labels: AnyArray, stated: bool = False, bounds: Any = None) -> str:
    """The loss where none is named: names are right or wrong, a scale has absolute errors, a measurement squares.

    ``stated`` says that the possible labels were listed, ``bounds`` that a range of measurements was.
    """
    if labels.dtype.kind not in "biuf":
        return "zero-one"
    if bounds is not None:
        return "quadratic"
    return "absolute" if stated or len(np.unique(labels)) <= FEW else "quadratic"


def named_auto(setting: Any) -> bool:
    """Whether a setting is left to the data; arrays and callables are settings too."""
    return isinstance(setting, str) and setting == "auto"


def finite_labels(labels: AnyArray) -> AnyArray:
    """The labels, unless one is NaN or infinite."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        what = "NaN" if np.isnan(labels[row]) else "infinity (inf)"
        raise GinghamError(f"Input y contains {what} in row {row}. Missing labels are left out of X and y.")
    return labels


def numeric_labels(y: Any, model: str) -> AnyArray:
    """Labels as finite numbers, shape (N,)."""
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError):
            raise GinghamError(f"Labels must be numbers for {model}; for names use CoClusteringClassifier.") from None
    return finite_labels(labels)
