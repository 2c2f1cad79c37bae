"""What all estimators share: the door for (X, y, weights), saving and loading, facts of a fitted posterior."""

from __future__ import annotations

import os
import sys
import warnings
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham import models, storage
from gingham.arrays import AnyArray, ArrayLike, Floats, Ints, TableLike, on_host
from gingham.cells.losses import cell_state, loss_from_state
from gingham.core.posterior import Posterior
from gingham.data import Mode, Sample
from gingham.data.adapt import Columns, id_columns
from gingham.data.sample import checked_weights
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.fitting.loop import Found, Progress, Solution
from gingham.models.old_files import model_of_version_1

KEPT_WHERE_KNOWN = ("n_features_in_", "feature_names_in_", "interrupted_")
FEW = 64  # so many different numbers are taken for a scale (stars, grey levels), more for a measurement


class Saved:
    """A model that can be saved to one file and loaded again; what the file keeps is said by ``to_file``."""

    notes_: dict[str, Any]  # plain values that were saved with the model; only a loaded model has them

    def save(self, path: str | os.PathLike[str], notes: dict[str, object] | None = None) -> None:
        """Write the fitted model to a file (a zip of arrays and JSON, no pickle), atomically.

        ``notes`` are plain values to keep with it (names of columns, say); `load` returns them as ``notes_``.
        """
        notes = getattr(self, "notes_", {}) if notes is None else notes
        storage.write(path, type(self).__name__, {"model": self, "notes": notes})


class Persistent(Saved, BaseEstimator):
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
    saved_attributes: ClassVar[tuple[str, ...]] = ()  # fitted attributes that a model file keeps

    def save(self, path: str | os.PathLike[str], notes: dict[str, object] | None = None) -> None:
        """Write the fitted model to a file (a zip of arrays and JSON, no pickle), atomically.

        ``notes`` are plain values to keep with it (names of columns, say); `load` returns them as ``notes_``.
        """
        check_is_fitted(self)
        super().save(path, notes)

    def _set_course(self, found: Found) -> None:
        """How the fit went: for every estimator that sweeps."""
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace.factors)
        self.converged_ = found.converged
        self.interrupted_ = found.interrupted

    def to_file(self) -> storage.State:
        """Parameters and fitted attributes, as far as a file can hold them."""
        every = self.get_params(deep=False)
        params = {name: value for name, value in every.items() if _savable(value)}
        fitted = {name: getattr(self, name) for name in self.saved_attributes}
        known = {name: getattr(self, name) for name in KEPT_WHERE_KNOWN if hasattr(self, name)}
        made = {"loss": self._loss_state()} if "loss" in every and "loss" not in params else {}
        return {"params": params, "fitted": {**known, **fitted}, **made}

    def _loss_state(self) -> Any:
        """What a file keeps of a ``loss`` that is a callable: what the cells are that it made."""
        return cell_state(self.posterior_.cells[0])

    def _loss_from_state(self, state: Any) -> Any:
        """A ``loss`` that makes the cells which `_loss_state` described."""
        loss = loss_from_state(state)
        return loss if loss.keywords else state["loss"]

    @classmethod
    def from_file(cls, state: storage.State) -> Self:
        model, fitted = cls(**state["params"]), state["fitted"]
        for name in model.saved_attributes:
            setattr(model, name, fitted[name])
        for name in KEPT_WHERE_KNOWN:
            if fitted.get(name) is not None:
                setattr(model, name, fitted[name])
        if "loss" in state:
            model.set_params(loss=model._loss_from_state(state["loss"]))
        return model


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was written by ``model.save(path)``. Nothing in the file is executed."""
    kind, state = storage.read(path, _class_named)
    try:
        model = state["model"] if "model" in state else model_of_version_1(_class_named(kind), kind, state)
        if not isinstance(model, Saved) or type(model).__name__ != kind:
            raise GinghamError(f"The file names {kind!r}, which is not the model in it.")
        model.notes_ = dict(state.get("notes", {}))
    except GinghamError:
        raise
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise GinghamError(f"{os.fspath(path)!r} is a damaged or foreign model file ({error}).") from None
    return model


def _class_named(name: str) -> type | None:
    """The class of a model, or of a value that a model file may hold."""
    found = getattr(models, name) if name in models.MODULES else storage.VALUES.get(name)
    return found if isinstance(found, type) else None


def _savable(value: object) -> bool:
    """Whether a parameter can stand in a model file; a callable or a starting posterior cannot."""
    if isinstance(value, (list, tuple)):
        return all(_savable(v) for v in value)
    if isinstance(value, dict):
        return all(_savable(v) for v in value.values())
    return value is None or isinstance(value, (bool, int, float, str, range, np.ndarray, np.generic))


class TupleModel(Persistent):
    """The door for ids, labels and weights; the modes number the items."""

    def item_modes(self) -> tuple[Mode, ...]:
        """The modes whose items the columns of X name, in their order."""
        raise NotImplementedError  # pragma: no cover

    def _labels(self, y: ArrayLike) -> AnyArray:
        raise NotImplementedError  # pragma: no cover

    def _columns(self, X: TableLike, reset: bool) -> Columns:
        columns = id_columns(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        return columns if names is None else Columns(columns.columns, [str(n) for n in names])

    def _observed(
        self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None, reset: bool = True
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

    def _sample_kind(self, columns: Columns) -> type[Sample]:
        """Where rows go to be predicted: by default they stay where they are."""
        return Sample

    def _codes(self, X: TableLike) -> list[Ints]:
        """Codes of the training items; unseen ids become −1 and are counted in a warning."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        modes = self.item_modes()
        kind = self._sample_kind(columns)
        codes = [kind.encoded(mode, column) for mode, column in zip(modes, kind.brought(columns.columns))]
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

    saved_attributes: ClassVar[tuple[str, ...]] = ("posterior_", "n_iter_", "converged_")
    posterior_: Posterior

    def item_modes(self) -> tuple[Mode, ...]:
        return self.posterior_.structure.columns()

    def sample(self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Sample:
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
    def factors_(self) -> tuple[Floats | tuple[Floats, ...], ...]:
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


class GridPredictor(TransformerMixin, GridModel):
    """A grid whose cells predict labels: their laws, and the memberships of items as features for other models."""

    def predict_distribution(self, X: TableLike) -> Floats:
        """Law of the answer when the partition is drawn from Q, shape (N, |Y|), columns as ``alphabet_``."""
        codes = self._codes(X)
        return on_host(self.posterior_.predict_distribution(codes))

    def transform(self, X: TableLike) -> Floats:
        """Memberships of each row's items side by side, shape (N, Σ m_i): features for a next estimator."""
        codes = self._codes(X)
        posterior = self.posterior_
        known = [np.vstack([q, mass]) for q, mass in zip(posterior.assign, posterior.mass)]
        return np.hstack([q[on_host(code)] for q, code in zip(known, codes)])

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the columns of ``transform``: mode and cluster."""
        check_is_fitted(self)
        modes = zip(self.posterior_.structure.modes, self.n_clusters_)
        return np.array([f"{mode.name}_cluster{c}" for mode, m in modes for c in range(m)], dtype=object)

    @property
    def alphabet_(self) -> AnyArray:
        """The label values, in the order of the columns of ``predict_distribution``."""
        alphabet = getattr(self.posterior_.cells[0], "alphabet", None)
        if alphabet is None:
            raise AttributeError("labels are numbers without an alphabet")
        return alphabet.values


def stderr_progress(progress: Progress) -> None:
    """The ``verbose`` callback: one line that is rewritten after every sweep."""
    sys.stderr.write(
        f"\rstart {progress.restart + 1}/{progress.n_restarts}  sweep {progress.iteration + 1}"
        f"  objective {progress.objective.total:.6g}   "
    )
    sys.stderr.flush()


def default_loss(labels: AnyArray, stated: bool = False, bounds: tuple[float, float] | None = None) -> str:
    """The loss where none is named: names are right or wrong, a scale has absolute errors, a measurement squares.

    ``stated`` says that the possible labels were listed, ``bounds`` that a range of measurements was.
    """
    if labels.dtype.kind not in "biuf":
        return "zero-one"
    if bounds is not None:
        return "quadratic"
    return "absolute" if stated or len(np.unique(labels)) <= FEW else "quadratic"


def named_auto(setting: object) -> bool:
    """Whether a setting is left to the data; arrays and callables are settings too."""
    return isinstance(setting, str) and setting == "auto"


def finite_labels(labels: AnyArray) -> AnyArray:
    """The labels, unless one is NaN or infinite."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        what = "NaN" if np.isnan(labels[row]) else "infinity (inf)"
        raise GinghamError(f"Input y contains {what} in row {row}. Missing labels are left out of X and y.")
    return labels


def numeric_labels(y: ArrayLike, model: str) -> AnyArray:
    """Labels as finite numbers, shape (N,)."""
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError):
            raise GinghamError(f"Labels must be numbers for {model}; for names use CoClusteringClassifier.") from None
    return finite_labels(labels)
