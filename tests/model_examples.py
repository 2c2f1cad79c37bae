"""Every estimator that gingham ships, found by walking `gingham.models`, with the examples that its tests bring.

A family keeps its examples in ``tests/models/<family>/examples.py``: a list ``EXAMPLES``. Contracts that all models
must keep run over what is found here, so that a new model is under contract as soon as its folder exists.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, clone

import gingham.models

FOLDER = Path(__file__).parent / "models"


@dataclass(frozen=True, eq=False)
class Example:
    """One estimator with data that it fits in well under a second.

    Attributes
    ----------
    model : unfitted estimator, all of its randomness fixed
    data : arguments of ``fit``
    answers : what a fitted model says, as arrays: equal answers mean an equal model
    tiny : arguments of ``fit`` that are as small as data can be, by name; each is fitted or refused in a sentence
    checked : an instance that goes through scikit-learn's checks, whose data have labels of all kinds; or the reason
        why the estimator cannot take part; None where another example of the class says it
    keeps_nothing : why a fit has nothing to go on from after Ctrl-C, None where it keeps checkpoints
    excused : names of scikit-learn's checks that cannot hold for the estimator, each with the reason
    """

    name: str
    model: BaseEstimator
    data: tuple[Any, ...]
    answers: Callable[[Any], Any]
    tiny: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    checked: BaseEstimator | str | None = None
    excused: dict[str, str] = field(default_factory=dict)
    keeps_nothing: str | None = None

    def fit(self, **more: Any) -> Any:
        """A fresh fit on the data."""
        return clone(self.model).fit(*self.data, **more)


def discovered() -> dict[str, type]:
    """Public estimators defined anywhere below `gingham.models`, by name."""
    found = {}
    for module in pkgutil.walk_packages(gingham.models.__path__, "gingham.models."):
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # a backend that is not installed here
            continue
        for name, thing in vars(loaded).items():
            own = inspect.isclass(thing) and thing.__module__ == module.name
            if own and issubclass(thing, BaseEstimator) and name in gingham.models.MODULES:
                found[name] = thing
    return found


def examples() -> list[Example]:
    """The examples of all families."""
    found: list[Example] = []
    for file in sorted(FOLDER.glob("*/examples.py")):
        spec = importlib.util.spec_from_file_location(f"examples_of_{file.parent.name}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.EXAMPLES
    return found
