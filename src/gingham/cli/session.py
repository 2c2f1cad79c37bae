"""A saved model beside the rows of a file, whatever its kind: what certify, report and simplify work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from gingham.arrays import Floats, Ints
from gingham.cli.tables import read_table
from gingham.core.posterior import Posterior
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.models.base import load as load_model
from gingham.report.summary import Words


@dataclass(frozen=True, eq=False)
class Drawing:
    """What a report draws of a model: two modes side by side, and the words for it; see `report.summarize`."""

    posterior: Posterior
    sample: Sample
    label: str
    relation: int = 0
    predict: Callable[[Ints, Ints], Floats] | None = None
    words: Words | None = None
    cluster_names: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None)
    zeros: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What is asked of a certificate."""

    delta: float = 0.05
    bound: str = "log-wealth"
    predictor: str = "gibbs"
    alphabet: str | None = None
    bounds: tuple[float, float] | None = None

    def only_own(self, what: str) -> None:
        """Refuse a bound or predictor where the model has one theorem of its own."""
        if self.bound != "log-wealth" or self.predictor != "gibbs":
            raise GinghamError(f"{what} has a certificate of its own: leave --bound and --predictor out.")


class Opened:
    """One kind of model with its data; every kind answers these questions."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.notes: dict[str, Any] = model.notes_

    def drawing(self) -> Drawing:
        """What a report draws."""
        raise NotImplementedError  # pragma: no cover

    def certificates(self, asked: Asked) -> dict[str, Any]:
        """Named certificates; a sentence (GinghamError) where none applies."""
        raise NotImplementedError  # pragma: no cover

    def errors(self) -> dict[str, float]:
        """What predictions cost on data that the fit has not seen."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Lines for the overview."""
        return {}

    def simplified(self, clusters: tuple[int, ...] | None, max_loss: float | None) -> tuple[Any, dict[str, Any]]:
        """A coarser model and the facts to show."""
        raise GinghamError(f"{type(self.model).__name__} cannot be simplified. {self.instead}")

    instead = "Fit again with fewer --clusters."


@dataclass(frozen=True)
class Source:
    """The file beside the model and how to read it."""

    file: str
    format: str | None = None
    label: str | None = None
    drop: bool = False
    axes: tuple[str, ...] | None = None
    _table: list[Any] = field(default_factory=list, init=False, repr=False)

    @property
    def table(self) -> Any:
        """The table, read once."""
        if not self._table:
            self._table.append(read_table(self.file, self.format))
        return self._table[0]


# class of the model → where its kind is opened
OPENERS = {
    "CoClusteringRegressor": "of_tuples",
    "CoClusteringClassifier": "of_tuples",
    "TreeCoClustering": "of_tuples",
    "BayesianCoClustering": "of_tuples",
    "Committee": "of_tuples",
    "LayeredCoClusteringRegressor": "of_tuples",
    "GraphClustering": "of_graphs",
    "CoOccurrenceClustering": "of_counts",
    "InformationClustering": "of_features",
    "PairwiseClusterAnalysis": "of_views",
    "KernelCCA": "of_views",
    "JointCoClustering": "of_relations",
}


def module_of(model: Any) -> Any:
    """The module that knows the kind of a model: ``reopen(model, source)`` and ``predict(model, table, …)``."""
    kind = type(model).__name__
    if kind not in OPENERS:
        raise GinghamError(f"The command line does not know {kind} models; use them in Python.")
    return import_module(f"gingham.cli.{OPENERS[kind]}")


def open_model(path: str, source: Source) -> Opened:
    """A model and its data."""
    model = load_model(path)
    opened: Opened = module_of(model).reopen(model, source)
    return opened
