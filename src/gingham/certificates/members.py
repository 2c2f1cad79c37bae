"""Models that are fitted here, anew: unfitted copies, and whether anything else could have told them of later draws."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from gingham.certificates.assumptions import Assumption, checked, given
from gingham.core.problem import find_posterior
from gingham.errors import GinghamError

PLAIN_VALUES = 100  # of a list of settings; a longer one may hold labels of later draws
LONG_TEXT = 1000  # characters, of which the same is true


def unfitted(model: Any) -> Any:
    """A copy of a model to be fitted; refuses one that would be fitted without what its file could not hold."""
    lost = getattr(model, "_lost_parameters", ())
    if lost:
        raise GinghamError(
            f"The model comes from a file, which could not hold {', '.join(f'{name}=' for name in lost)}, and what is "
            f"fitted here would be another model without it. Give it again: model.set_params({lost[0]}=...)."
        )
    return clone(model)


def who_fitted(model: object, by_function: bool = False) -> Assumption:
    """Whether the members were fitted here, from nothing but the draws that they were handed."""
    why = "fit= is a function that was handed in" if by_function else _outside(model, type(model).__name__)
    return checked("members fitted here") if why is None else given("members fitted outside", why=why)


def _outside(value: object, name: str, room: int = PLAIN_VALUES) -> str | None:
    """Where a setting may hold what was learned elsewhere, from later draws perhaps; None where all is plain.

    Plain are numbers, texts and a few of them together, the models of gingham and scikit-learn that begin anew when
    they are cloned, and frozen settings of gingham. What such values were chosen by is another assumption ("settings").
    """
    if value is None or isinstance(value, (bool, int, float, str, range, np.generic, np.random.RandomState)):
        return f"{name} is a long text" if isinstance(value, str) and len(value) > LONG_TEXT else None
    kind = value if isinstance(value, type) else type(value)
    home = sys.modules.get(kind.__module__)
    ours = kind.__module__.partition(".")[0] in ("gingham", "sklearn") and getattr(home, kind.__name__, None) is kind
    if isinstance(value, type):
        return None if ours else f"{name} is a class of another library"
    if hasattr(value, "get_params"):
        if getattr(kind, "__sklearn_clone__", None) is not getattr(BaseEstimator, "__sklearn_clone__", None):
            return f"{name} decides itself what a clone of it is, and may keep what it has learned"
        if not ours:
            return f"{name} is a model of another library, whose fit nobody here has read"
        inner = ((f"{one} of {name}", own) for one, own in value.get_params(deep=False).items())
        return next((why for one, own in inner if (why := _outside(own, one, room)) is not None), None)
    values: Iterable[object] | None = None
    if isinstance(value, (list, tuple, set, frozenset)):
        values = value
    elif isinstance(value, dict):
        values = [*value, *value.values()]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUS":
        values = value.ravel().tolist()
    elif ours and is_dataclass(value) and find_posterior(value) is None and not hasattr(value, "assign"):
        values = [getattr(value, one.name) for one in fields(value)]
    if values is None or len(values := list(values)) > room:
        return f"{name} holds more than plain settings"
    return next((why for own in values if (why := _outside(own, name, room // 2)) is not None), None)
