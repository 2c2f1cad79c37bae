"""What labels can be, and whether somebody said so: a guarantee must not depend on what happened to be observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gingham.arrays import AnyArray
from gingham.cells import LOSSES, loss_kind
from gingham.cli.label_kind import parse_alphabet
from gingham.cli.session import Asked
from gingham.data import Alphabet
from gingham.errors import GinghamError
from gingham.models.base import default_loss


@dataclass(frozen=True, eq=False)
class LabelSpace:
    """The possible labels, stated: a list of values, or the smallest and largest.

    ``alphabet`` is what a certificate of the posterior must be told, None where the model knows.
    """

    values: AnyArray | None
    bounds: tuple[float, float] | None
    alphabet: AnyArray | None = None

    def loss_of_predictions(self, model: Any) -> str:
        """The loss by which finished predictions are judged."""
        named = self.values is not None and self.values.dtype.kind not in "biuf"
        if named or is_classifier(model):
            return "zero-one"
        loss = getattr(model, "loss", "absolute")
        if isinstance(loss, str) and loss == "auto":
            return default_loss(self.values if self.values is not None else np.zeros(0), True, self.bounds)
        kind = loss_kind("absolute" if isinstance(loss, str) and loss not in LOSSES else loss)
        if not getattr(kind, "ordered", True):
            return "zero-one"
        return "absolute" if getattr(kind, "needs_alphabet", True) else str(kind.name)


def alphabet_of(model: Any) -> Alphabet | None:
    """The labels a model knows."""
    members = getattr(model, "members_", None)
    if members:
        return alphabet_of(members[0])
    known = vars(model).get("alphabet_")
    if isinstance(known, Alphabet):
        return known
    posterior = getattr(model, "beliefs_", None) or getattr(model, "posterior_", None)
    letters = None if posterior is None else getattr(posterior.cells[0], "alphabet", None)
    return letters if isinstance(letters, Alphabet) else None


def letters_of(model: Any) -> AnyArray:
    """The label values, in the order of the columns of ``predict_distribution``."""
    if hasattr(model, "members_"):
        return np.asarray(model.alphabet_)
    letters = alphabet_of(model)
    if letters is None:
        raise GinghamError(f"This {type(model).__name__} predicts numbers, not distributions: leave --proba out.")
    return letters.values


def has_posterior(model: Any) -> bool:
    """Whether a theorem for all posteriors covers the model on the rows it was fitted to."""
    members = getattr(model, "members_", None)
    return has_posterior(members[0]) if members else getattr(model, "posterior_", None) is not None


def of(model: Any, labels: AnyArray, notes: dict[str, Any], asked: Asked) -> LabelSpace:
    """The stated labels of a model; refuses those that were read off the data."""
    return _stated(alphabet_of(model), bounds_of(model), labels, notes, asked)


def of_cell(cell: Any, labels: AnyArray, notes: dict[str, Any], asked: Asked) -> LabelSpace:
    """The same for one relation of a model with several."""
    return _stated(getattr(cell, "alphabet", None), getattr(cell, "bounds", None), labels, notes, asked)


def _stated(
    letters: Alphabet | None, bounds: tuple[float, float] | None, labels: AnyArray, notes: dict[str, Any], asked: Asked
) -> LabelSpace:
    if letters is None:
        return LabelSpace(None, stated_bounds(bounds, labels, notes, asked))
    if asked.alphabet is not None:
        values = parse_alphabet(asked.alphabet, labels.dtype.kind not in "biuf")
        return LabelSpace(np.asarray(values), None, values)
    if not letters.given:
        shown = ",".join(map(str, letters.values[:20])) + (",…" if letters.size > 20 else "")
        raise GinghamError(
            "The model read the possible labels off the data, and a guarantee must not depend on what happened to be "
            f"observed. If they are {shown}, say so with --alphabet {shown}; if there are more, fit with all of them."
        )
    return LabelSpace(letters.values, None)


def bounds_of(model: Any) -> tuple[float, float] | None:
    members = getattr(model, "members_", None)
    if members:
        return bounds_of(members[0])
    posterior = getattr(model, "posterior_", None)
    bounds = None if posterior is None else getattr(posterior.cells[0], "bounds", None)
    return None if bounds is None else (float(bounds[0]), float(bounds[1]))


def stated_bounds(
    known: tuple[float, float] | None, labels: AnyArray, notes: dict[str, Any], asked: Asked
) -> tuple[float, float]:
    """The smallest and largest possible label that somebody stated."""
    low, high = (float(np.min(labels)), float(np.max(labels))) if known is None else known
    if asked.bounds is not None:
        if known is not None and asked.bounds != known:
            raise GinghamError(
                f"The model was fitted with labels from {low:g} to {high:g}; fit with --bounds "
                f"{asked.bounds[0]:g},{asked.bounds[1]:g} if they can be others."
            )
        return asked.bounds
    stated = notes.get("bounds")
    if stated is not None:
        return float(stated[0]), float(stated[1])
    raise GinghamError(
        "The smallest and largest possible label were read off the data, and a guarantee must not depend on what "
        f"happened to be observed. If no label lies outside {low:g} to {high:g}, say so: --bounds {low:g},{high:g}."
    )


def parse_bounds(listed: str | None) -> tuple[float, float] | None:
    """Two numbers from "0,1"."""
    if listed is None:
        return None
    try:
        low, high = (float(part) for part in listed.split(","))
    except ValueError:
        raise GinghamError(
            f"--bounds {listed!r} must be two numbers, the smallest and largest: --bounds 0,1."
        ) from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise GinghamError(f"--bounds {listed!r}: the smallest must be below the largest, and both finite.")
    return low, high
