"""What all estimators share: the door for (X, y, weights), saving and loading, facts of a fitted posterior."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham import models as estimators
from gingham import storage
from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells.registry import cell_from_state, cell_state, loss_from_state
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns, id_columns
from gingham.data.sample import checked_weights
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.fitting.loop import Found, Progress, Solution


class Persistent(BaseEstimator):
    """An estimator that can be saved to one file and loaded again.

    A model whose clusters can be merged offers ``posterior_``, ``sample(X, y, sample_weight)``, ``beta_`` and
    ``with_posterior(posterior)``, the same model with other memberships and answers (see `GridModel`). One that merges
    in a way of its own offers ``simplified(X, y, max_clusters, max_loss, sample_weight)`` instead, and ``gg.simplify``
    asks it.

    Attributes
    ----------
    interrupted_ : bool
        Whether Ctrl-C ended the last fit early, so that the model is only the best so far.
    """

    interrupted_: bool = False

    def save(self, path: str | os.PathLike[str], notes: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file (a zip of arrays and JSON, no pickle), atomically.

        ``notes`` are plain values to keep with it (names of columns, say); `load` returns them as ``notes_``.
        """
        check_is_fitted(self)
        kind, record = self._record()
        storage.write(path, kind, {**record, "notes": getattr(self, "notes_", {}) if notes is None else notes})

    def _record(self) -> tuple[str, dict[str, Any]]:
        """The kind of the model and all that a file keeps of it."""
        every = self.get_params(deep=False)
        params = {name: value for name, value in every.items() if _savable(value)}
        record: dict[str, Any] = {"params": params, "fitted": self._state()}
        if "loss" in every and "loss" not in params:
            record["loss"] = self._loss_state()
        if self.interrupted_:
            record["interrupted"] = True
        return type(self).__name__, record

    def _set_course(self, found: Found) -> None:
        """How the fit went: for every estimator that sweeps."""
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace.factors)
        self.converged_ = found.converged
        self.interrupted_ = found.interrupted

    def _loss_state(self) -> Any:
        """What a file keeps of a ``loss`` that is a callable: what the cells are that it made."""
        return cell_state(self.posterior_.cells[0])

    def _loss_from_state(self, state: Any) -> Any:
        """A ``loss`` that makes the cells which `_loss_state` described."""
        loss = loss_from_state(state)
        return loss if loss.keywords else state["loss"]

    def _state(self) -> dict[str, Any]:
        """Fitted attributes as plain values and arrays."""
        raise NotImplementedError  # pragma: no cover - every estimator says what it keeps

    def _restore(self, state: dict[str, Any]) -> None:
        """Set fitted attributes from what `_state` returned."""
        raise NotImplementedError  # pragma: no cover


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was written by ``model.save(path)``. Nothing in the file is executed."""
    kind, state = storage.read(path)
    try:
        fitted = revive(kind, state)
        fitted.notes_ = dict(state.get("notes", {}))
    except GinghamError:
        raise
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise GinghamError(f"{os.fspath(path)!r} is a damaged or foreign model file ({error}).") from None
    return fitted


def revive(kind: str, state: dict[str, Any]) -> Any:
    """The fitted model of a record."""
    if kind not in estimators.MODULES:
        raise GinghamError(f"The file holds a model of unknown kind {kind!r}. Update gingham.")
    model = getattr(estimators, kind)
    if not (isinstance(model, type) and issubclass(model, Persistent)):
        raise GinghamError(f"The file names {kind!r}, which is not a model.")
    fitted = model(**state["params"])
    fitted._restore(state["fitted"])
    fitted.interrupted_ = bool(state.get("interrupted", False))
    if "loss" in state:
        fitted.set_params(loss=fitted._loss_from_state(state["loss"]))
    return fitted


def _savable(value: Any) -> bool:
    """Whether a parameter can stand in a model file; a callable or a starting posterior cannot."""
    if isinstance(value, (list, tuple)):
        return all(_savable(v) for v in value)
    if isinstance(value, dict):
        return all(_savable(v) for v in value.values())
    return value is None or isinstance(value, (bool, int, float, str, range, np.ndarray, np.generic))


class TupleModel(Persistent):
    """The door for ids, labels and weights; the modes number the items."""

    def _modes(self) -> tuple[Mode, ...]:
        raise NotImplementedError  # pragma: no cover

    def _labels(self, y: Any) -> AnyArray:
        raise NotImplementedError  # pragma: no cover

    def _columns(self, X: Any, reset: bool) -> Columns:
        columns = id_columns(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        return columns if names is None else Columns(columns.columns, [str(n) for n in names])

    def _observed(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Columns, AnyArray, Floats | None]:
        """Columns of ids, labels and weights of the rows to learn from; rows of weight 0 are left out."""
        columns, names = self._columns(X, reset=reset)
        if y is None:
            raise GinghamError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        labels = self._labels(y)
        if len(labels) != len(columns[0]):
            raise GinghamError(
                f"Found input variables with inconsistent numbers of samples: X has {len(columns[0])} rows, "
                f"y has {len(labels)}."
            )
        weights = checked_weights(sample_weight, len(labels))
        if weights is not None:
            kept = weights > 0
            columns, labels, weights = [c[kept] for c in columns], labels[kept], weights[kept]
        return Columns(columns, names), labels, weights

    def _codes(self, X: Any) -> list[Ints]:
        """Codes of the training items; unseen ids become −1 and are counted in a warning."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        modes = self._modes()
        codes = [mode.encode(column) for mode, column in zip(modes, columns.columns)]
        unseen = {mode.name: int((code < 0).sum()) for mode, code in zip(modes, codes)}
        if any(unseen.values()):
            counts = ", ".join(f"{n} in {name!r}" for name, n in unseen.items() if n)
            warnings.warn(
                f"Ids never seen in training ({counts}, of {len(codes[0])} rows): "
                "they are predicted with their mode's average memberships.",
                UnseenItemsWarning,
                stacklevel=3,
            )
        return codes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class GridModel(TupleModel):
    """Ids in, a posterior over checkerboards out: what every one-grid estimator shares."""

    posterior_: Posterior

    def _modes(self) -> tuple[Mode, ...]:
        return self.posterior_.structure.columns()

    def sample(self, X: Any, y: Any, sample_weight: Any = None) -> Sample:
        """Labelled tuples in the model's own numbering, as certificates and tests need them."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        cell = self.posterior_.cells[0]
        return Sample.of(
            columns.columns,
            y,
            sample_weight,
            modes=self.posterior_.structure.columns(),
            alphabet=getattr(cell, "alphabet", None),
        )

    def with_posterior(self, posterior: Posterior) -> Self:
        """The same model with other memberships and answers."""
        new = copy(self)
        new.posterior_ = posterior
        return new

    # facts of the fit

    def _set_solution(self, solution: Solution) -> None:
        self.posterior_ = solution.posterior
        self.objective_ = solution.objective
        self._set_course(solution)

    @property
    def assign_(self) -> tuple[Floats, ...]:
        """q(c|x): memberships of each mode, arrays of shape (n_items, n_clusters)."""
        return self.posterior_.assign

    @property
    def labels_(self) -> tuple[Ints, ...]:
        """Most probable cluster of each item, one array per mode."""
        return self.posterior_.labels

    @property
    def items_(self) -> tuple[AnyArray, ...]:
        """Ids of each mode, in the order of the rows of ``assign_``."""
        return tuple(mode.items for mode in self.posterior_.structure.modes)

    @property
    def n_clusters_(self) -> tuple[int, ...]:
        return self.posterior_.n_clusters

    @property
    def answers_(self) -> AnyArray:
        """The answer of each cell as a label or a number (distributions for the log loss)."""
        cell = self.posterior_.cells[0]
        answers = self.posterior_.answers[0]
        return answers if cell.distribution(answers) is answers else cell.values(answers)

    @property
    def factors_(self) -> tuple[Any, ...]:
        """(Q1, F, Q2) with A ≈ Q1 F Q2ᵀ for two modes, Tucker's (F, (Q1, …, Qd)) otherwise."""
        return self.posterior_.factors()

    @property
    def biclusters_(self) -> tuple[AnyArray, AnyArray]:
        """Which rows and which columns belong to each cell, as scikit-learn's ``consensus_score`` takes them."""
        if len(self.posterior_.assign) != 2:
            raise AttributeError("biclusters_ are those of two modes")
        r, c = self.posterior_.n_clusters
        rows, columns = self.posterior_.labels
        return np.repeat(np.arange(r)[:, None] == rows, c, axis=0), np.tile(np.arange(c)[:, None] == columns, (r, 1))

    @property
    def information_(self) -> tuple[float, ...]:
        """Ī of each mode, nats."""
        return self.posterior_.information

    def _state(self) -> dict[str, Any]:
        return {
            **posterior_state(self.posterior_),
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": getattr(self, "feature_names_in_", None),
            "n_iter_": self.n_iter_,
            "converged_": self.converged_,
            "beta_": getattr(self, "beta_", None),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.posterior_ = posterior_from_state(state)
        for name in ("n_features_in_", "feature_names_in_", "n_iter_", "converged_", "beta_"):
            if state.get(name) is not None:
                setattr(self, name, state[name])


def posterior_state(posterior: Posterior) -> dict[str, Any]:
    """A posterior as plain values and arrays."""
    alphabets = [getattr(cell, "alphabet", None) for cell in posterior.cells]
    return {
        "modes": [{"name": mode.name, "items": mode.items} for mode in posterior.structure.modes],
        "factors": [list(factor) for factor in posterior.structure.factors],
        "frozen": list(posterior.structure.frozen),
        "assign": list(posterior.assign),
        "answers": list(posterior.answers),
        "cells": [cell_state(cell) for cell in posterior.cells],
        "alphabets": [a if a is None else {"values": a.values, "given": a.given} for a in alphabets],
    }


def posterior_from_state(state: dict[str, Any]) -> Posterior:
    """The posterior that `posterior_state` described."""
    modes = tuple(Mode(mode["name"], mode["items"]) for mode in state["modes"])
    structure = Structure(modes, tuple(tuple(factor) for factor in state["factors"]), tuple(state.get("frozen", ())))
    alphabets = [None if a is None else Alphabet(a["values"], a["given"]) for a in state["alphabets"]]
    cells = tuple(cell_from_state(c, a) for c, a in zip(state["cells"], alphabets))
    posterior = Posterior(structure, cells, tuple(state["assign"]), tuple(state["answers"]))
    for mode, q in zip(modes, posterior.assign):
        if q.ndim != 2 or len(q) != mode.n_items:
            raise GinghamError(f"The model file is damaged: mode {mode.name!r} has memberships of shape {q.shape}.")
    return posterior


def expand_clusters(n_clusters: Any, shape: Sequence[int], n_tuples: float) -> tuple[int, ...]:
    """The number of clusters of each mode from an int, one int per mode, or "auto" (by the size of the data)."""
    d = len(shape)
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise GinghamError(f"n_clusters={n_clusters!r} is unknown; give an int, one int per mode, or 'auto'.")
        # About 40 tuples a cell, at most 20 clusters; two where a grid of twos is still small.
        even = round((n_tuples / 40) ** (1 / d))
        wanted = [min(20, max(2 if d <= 12 else 1, even))] * d
    elif np.ndim(n_clusters) == 0:
        wanted = [n_clusters] * d
    else:
        wanted = list(n_clusters)
        if len(wanted) != d:
            raise GinghamError(f"n_clusters has {len(wanted)} entries, but the data has {d} modes (columns of X).")
    for m in wanted:
        if isinstance(m, (bool, np.bool_)) or not isinstance(m, (int, np.integer)) or m < 1:
            raise GinghamError(f"n_clusters={n_clusters!r}: a number of clusters is a whole number from 1.")
    # More clusters than items could never all be filled.
    return tuple(min(int(m), n) for m, n in zip(wanted, shape))


def stderr_progress(progress: Progress) -> None:
    """The ``verbose`` callback: one line that is rewritten after every sweep."""
    sys.stderr.write(
        f"\rstart {progress.restart + 1}/{progress.n_restarts}  sweep {progress.iteration + 1}"
        f"  objective {progress.objective.total:.6g}   "
    )
    sys.stderr.flush()
