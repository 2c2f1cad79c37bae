"""What all estimators share: the door for (X, y, weights), saving and loading, facts of a fitted posterior."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham import models, storage
from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, TableLike, on_host
from gingham.cells import CellModel
from gingham.cells.losses import cell_state, loss_from_state
from gingham.core.problem import Posterior, Problem
from gingham.data import Bounds, Mode, Sample
from gingham.data.adapt import Columns, id_columns, tuples_of
from gingham.data.advice import advice_on
from gingham.data.fit_rows import FitRows
from gingham.data.sample import (
    LARGEST,
    Moments,
    checked_weights,
    few_values,
    need_moderate,
    need_unmasked,
)
from gingham.engine.files import in_file
from gingham.errors import AdviceWarning, GinghamError, UnseenItemsWarning
from gingham.fitting.loop import Found, Progress, Solution
from gingham.models.fit_record import FitRecord
from gingham.models.listed import Listed
from gingham.models.questions import Predicted, Questions
from gingham.summary.values import Errors, Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo
    from gingham.summary.values import Summary

KEPT_WHERE_KNOWN = (
    "n_features_in_",
    "feature_names_in_",
    "interrupted_",
    "modes_",
    "side_names_",
    "_size_reason",
    "cell_moments_",
    "_fit_rows",
    "_errors",
    "changes_",
)
DATA = ("_data", "_later", "_times", "_item_info")  # neither saved nor copied to other processes
MOST_REMEMBERED = 20_000_000  # rows of the data that a fitted model remembers, to be read without handing them over
FEW = 64  # so many different numbers are taken for a scale (stars, grey levels), more for a measurement

AnyModel = TypeVar("AnyModel")


class Saved:
    """A model that can be saved to one file and loaded again; what the file keeps is said by ``_to_file``."""

    _record: FitRecord | None = None  # of a model that was fitted by the command line

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file (a zip of arrays and JSON, no pickle), atomically."""
        storage.write(path, type(self).__name__, {"model": self, "record": self._record})


class Persistent(Questions, Saved, BaseEstimator):
    """An estimator that can be saved to one file and loaded again.

    What other rooms ask of a fitted model begins with an underscore, so that users see only what they call:
    ``_observed``, ``_predict_codes`` and ``_item_modes`` for summaries and pages, ``_fit_rows`` and
    ``_lost_parameters`` for certificates, ``_errors`` and ``_record`` from the command line. A model whose clusters can
    be merged offers ``posterior_``, ``sample(X, y, sample_weight)``, ``beta_`` and ``_with_posterior(posterior)``, the
    same model with other memberships and answers (see `GridModel`). One that merges in a way of its own offers
    ``_simplified(X, y, max_clusters, max_loss, sample_weight)`` instead, and ``gg.simplify`` asks it.

    Attributes
    ----------
    interrupted_ : bool
        Whether Ctrl-C ended the last fit early, so that the model is only the best so far.
    """

    interrupted_: bool = False
    _errors: Errors | None = None  # measured by the command line on rows that were held out
    _fit_rows: tuple[FitRows, ...] = ()  # a sketch of the rows learned from, one per relation
    _unsaved: tuple[str, ...] = ()  # parameters that the file of a loaded model could not hold
    _saved_attributes: ClassVar[tuple[str, ...]] = ()  # fitted attributes that a model file keeps
    _data: Any = None  # what the fit was given, for summaries; neither saved nor copied to other processes
    _later: tuple[Sample, ...] = ()  # rows learned from since, which join them when they are asked for
    _times: Floats | None = None  # points in time of these rows, of a model that uses them
    _item_info: ItemInfo | None = None
    _summary: Summary | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file (a zip of arrays and JSON, no pickle), atomically."""
        check_is_fitted(self)
        super().save(path)

    def _set_run(self, found: Found) -> None:
        """How the fit went: for every estimator that sweeps."""
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace.factors)
        self.converged_ = found.converged
        self.interrupted_ = found.interrupted

    def _generator(self) -> np.random.Generator:
        """Random numbers of a fit, the same ones for the same ``random_state``."""
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    # new data

    def update(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        data: tuple[Any, ...] | None = None,
    ) -> Self:  # fmt: skip
        """Fit anew to the rows of the fit and new ones; groups keep numbers and names, ``changes_`` says what changed.

        Parameters
        ----------
        X, y, sample_weight : the new rows, as `fit` takes them
        data : (X, y, sample_weight), (X, y) or (X,), optional
            The rows of the fit, of a model that was loaded from a file and does not remember them.
        """
        from gingham.models.update import update  # what it needs is loaded when somebody updates

        old = None if data is None else self._listed_rows(data)
        return cast("Self", update(self, self._listed_rows((X, y, sample_weight)), old))

    def _listed_rows(self, data: tuple[Any, ...] | None) -> Listed:
        """Rows that are handed over, or those of the fit, with their ids as they are."""
        raise GinghamError(f"{type(self).__name__} cannot be updated: fit it again to all rows.")

    def _arguments_of(self, rows: Listed, like: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Rows as `fit` takes them; ``like`` is the fitted model whose way of taking them is kept."""
        return (rows.table(), rows.labels, rows.weights), {}

    # summary

    def _observed(self, *data: Any) -> Observed:
        """What was observed and which clusters were made of it, for summaries; of the fit's own data by default."""
        raise GinghamError(f"{type(self).__name__} has no clusters of items to summarise.")

    @property
    def summary_(self) -> Summary:
        """A coarse, named summary of the model, see `gingham.summarize`; made when first asked for, and then kept."""
        check_is_fitted(self)
        if self._summary is None:
            from gingham.summary.make_summary import summarize  # what it needs is loaded when somebody reads

            self._summary = summarize(self, item_info=self._item_info)
            self._keep_for_questions()
        return self._summary

    def _made_readable(self, item_info: ItemInfo | None = None) -> Self:
        """The same model with its summary made, and what is known of its items in it."""
        self._summary, self._item_info = None, item_info
        self.summary_  # noqa: B018  # made when it is asked for
        return self

    def _keep_for_questions(self) -> None:
        """Small sums of the data that answers need beside the summary; a model file keeps them with it."""

    def _remember(
        self, data: Any, n_rows: int, item_info: ItemInfo | None = None, samples: Sequence[Sample] = ()
    ) -> None:
        """Keep the data of a fit, as long as the model lives in this process, so that it can be read.

        Of the rows a sketch is kept for good, so that they are not taken for rows that the model has not seen:
        those of ``samples``, one a relation, or of the data where they are a sample.
        """
        self._summary, self._item_info = None, item_info
        self._data, self._errors, self._later = None, None, ()
        if n_rows <= MOST_REMEMBERED:  # a summary is made of arrays, wherever the fit was
            self._data = data.in_arrays() if isinstance(data, Sample) else data
        if isinstance(data, Sample):
            samples = (data if self._data is None else self._data,)
        files = any(sample.in_file for sample in samples)
        if files or getattr(self, "engine_", "files") == "files":
            self.engine_ = "files" if files else "cores"
        too_large = any(sample.on_device for sample in samples)  # to be brought to the host for this alone
        self._fit_rows = () if too_large else tuple(sample.fit_rows() for sample in samples)

    def _remembered(self, what: str) -> Any:
        """The data of the fit and of what was learned since; a sentence where they are not at hand."""
        check_is_fitted(self)
        if self._data is None:
            raise GinghamError(
                "The training data are not available: a model file does not contain them, and very large data are not "
                f"kept. Hand them over: {what}."
            )
        if self._later:
            later, self._later = [listed(sample) for sample in self._later], ()
            rows = self._listed_rows(None).with_rows(reduce(Listed.with_rows, later))
            whole = (rows.table(), rows.labels, rows.weights)
            self._data = cast("Any", self).sample(*whole) if isinstance(self._data, Sample) else whole
        return self._data

    def _extended_summary(self, summary: Summary, rows: Sample) -> Summary | None:
        """A summary with the items that rows have brought; None where it has to be made again."""
        return summary if self._data is None else None  # without data it can only stay what it was

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in DATA}

    def _to_file(self) -> storage.State:
        """Parameters and fitted attributes, as far as a file can hold them."""
        every = self.get_params(deep=False)
        params = {name: value for name, value in every.items() if _savable(value)}
        fitted = {name: getattr(self, name) for name in self._saved_attributes}
        known = {name: getattr(self, name) for name in KEPT_WHERE_KNOWN if hasattr(self, name)}
        if self._summary is not None:
            known["summary_"] = self._summary
        made = {"loss": self._loss_state()} if "loss" in every and "loss" not in params else {}
        unsaved = [name for name in every if name not in (*params, "loss", "start")] + list(self._lost_parameters)
        return {"params": params, "fitted": {**known, **fitted}, **made, **({"unsaved": unsaved} if unsaved else {})}

    @property
    def _lost_parameters(self) -> tuple[str, ...]:
        """Parameters that a file could not hold (tables about items, say) and that nobody has given again."""
        return tuple(name for name in self._unsaved if getattr(self, name) is None)

    def _loss_state(self) -> Any:
        """What a file keeps of a ``loss`` that is a callable: what the cells are that it made."""
        return cell_state(self.posterior_.label_cell())

    def _loss_from_state(self, state: Any) -> Any:
        """A ``loss`` that makes the cells which `_loss_state` described."""
        loss = loss_from_state(state)
        return loss if loss.keywords else state["loss"]

    @classmethod
    def _from_file(cls, state: storage.State) -> Self:
        model, fitted = cls(**state["params"]), state["fitted"]
        for name in model._saved_attributes:
            setattr(model, name, fitted[name])
        for name in KEPT_WHERE_KNOWN:
            if fitted.get(name) is not None:
                setattr(model, name, fitted[name])
        model._summary = fitted.get("summary_")
        model._unsaved = tuple(name for name in state.get("unsaved", ()) if name in model.get_params(deep=False))
        if "loss" in state:
            model.set_params(loss=model._loss_from_state(state["loss"]))
        return model


def has_summary(model: Saved) -> bool:
    """Whether the summary of a model has been made, so that it is at hand without the data and a file keeps it."""
    return isinstance(model, Persistent) and model._summary is not None


def new_rows(known: FitRows, sample: Sample) -> Sample:
    """The rows of a sample that are not among those a fit learned from."""
    met = known.met(sample)
    return sample.take(np.setdiff1d(np.arange(sample.n_rows), met.rows)) if met.seen else sample


def learned_from(model: Persistent, sample: Sample) -> None:
    """Note that a model has learned from these rows, too; those of the fit are not counted twice."""
    model._errors = None  # of another model
    if model._fit_rows:
        sample = new_rows(model._fit_rows[0], sample)
        model._fit_rows = (model._fit_rows[0].with_rows(sample.fit_rows()), *model._fit_rows[1:])
    if model._data is not None and model._times is None:  # new rows have no points in time
        model._later = (*model._later, sample)
    if model._summary is not None:
        model._summary = model._extended_summary(model._summary, sample)


def with_posterior(model: AnyModel, posterior: Posterior, problem: Problem | None = None) -> AnyModel:
    """The same model with other memberships and answers; ``problem`` has the observations that decided them."""
    new: Any = copy(model)
    new.posterior_, new._summary, new._errors = posterior, None, None
    if problem is not None:
        learned_from(new, problem.samples[0])
        new._data = problem.samples[0]
    return cast("AnyModel", new)


def forget_data(model: BaseEstimator) -> None:
    """Let go of the data of a fit; a summary that was made stays. Models of other libraries are left as they are."""
    if isinstance(model, Persistent):
        model._data, model._later, model._times, model._item_info = None, (), None, None


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was written by ``model.save(path)``. Nothing in the file is executed.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> import os, tempfile
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.gingham")
    ...     model.save(path)
    ...     again = gg.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    kind, state = storage.read(path, _class_named)
    try:
        model = state["model"]
        if not isinstance(model, Saved) or type(model).__name__ != kind:
            raise GinghamError(f"The file names {kind!r}, but it contains another model.")
        model._record = state["record"]
    except GinghamError:
        raise
    except Exception as error:  # whatever the class of the model makes of a damaged file
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
    if storage.VALUES.get(type(value).__name__) is type(value):
        return True
    return value is None or isinstance(value, (bool, int, float, str, range, np.ndarray, np.generic))


class TupleModel:
    """The door for ids, labels and weights, beside `Persistent`; the modes number the items."""

    _remembered: Callable[[str], Any]

    def _item_modes(self) -> tuple[Mode, ...]:
        """The modes whose items the columns of X name, in their order."""
        raise NotImplementedError  # pragma: no cover

    def _labels(self, y: ArrayLike) -> AnyArray:
        """Labels as they are learned from: any, unless a family says which."""
        return plain_labels(y)

    def _columns(self, X: TableLike, reset: bool) -> Columns:
        columns = id_columns(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        if isinstance(X, Columns) and reset:
            self.feature_names_in_ = np.array(X.names, dtype=object)
        names = getattr(self, "feature_names_in_", None)
        return columns if names is None else Columns(columns.columns, [str(n) for n in names])

    def _labelled_rows(
        self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None, reset: bool = True
    ) -> tuple[Columns, AnyArray, Floats | None]:
        """Columns of ids, labels and weights of the rows to learn from; rows of weight 0 are left out.

        A wide frame and an AnnData object, without labels beside them, are taken for the matrix of the labels.
        """
        X, y = tuples_of(X, y)
        columns, names = self._columns(X, reset=reset)
        if y is None:
            raise GinghamError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        need_unmasked(y, "y")
        labels = self._labels(y)
        if len(labels) != len(columns[0]):
            raise GinghamError(
                f"Found input variables with inconsistent numbers of samples: X has {len(columns[0])} rows, "
                f"y has {len(labels)}."
            )
        weights = checked_weights(sample_weight, len(labels))
        if weights is not None:
            kept = weights > 0
            if not kept.all():
                columns, labels, weights = [c[kept] for c in columns], labels[kept], weights[kept]
            elif not in_file(weights):
                weights = weights.copy()  # the caller's own may change
        return Columns(columns, names), labels, weights

    def _listed_rows(self, data: tuple[Any, ...] | None) -> Listed:
        """Rows that are handed over, or those of the fit, with their ids as they are."""

        if data is None:
            kept = self._remembered("model.update(X_new, y_new, data=(X, y))")
            if isinstance(kept, Sample):
                return listed(kept)
            data = kept
        X, y, weights = (*data, None, None)[:3]
        X, y = tuples_of(X, y)
        columns = id_columns(X)
        labels = None if y is None else self._labels(y)
        names = getattr(self, "feature_names_in_", columns.names)
        return Listed(
            columns.columns, [str(n) for n in names], labels, checked_weights(weights, len(columns.columns[0]))
        )

    def _sample_kind(self, columns: Columns) -> type[Sample]:
        """Where rows go to be predicted: by default they stay where they are."""
        return Sample

    def _codes(self, X: TableLike) -> list[Ints]:
        """Codes of the training items; unseen ids become −1 and are counted in a warning."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        modes = self._item_modes()
        kind = self._sample_kind(columns)
        codes = [kind.encoded(mode, column) for mode, column in zip(modes, kind.brought(columns.columns))]
        warn_of_unseen(modes, codes)
        return codes

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]  # of scikit-learn's base, which follows
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def warn_of_unseen(modes: Sequence[Mode], codes: Sequence[Ints]) -> None:
    """Say how many ids were not seen in training, where there are some (code −1)."""
    unseen = {mode.name: int((code < 0).sum()) for mode, code in zip(modes, codes)}
    if any(unseen.values()):
        counts = ", ".join(f"{n} in {name!r}" for name, n in unseen.items() if n)
        warnings.warn(
            f"Ids not seen in training ({counts}, of {len(codes[0])} rows): they get the average memberships "
            "of their mode.",
            UnseenItemsWarning,
            stacklevel=4,
        )


class GridModel(TupleModel):
    """Ids in, a posterior over checkerboards out: what every one-grid estimator shares, beside `Persistent`."""

    _saved_attributes: ClassVar[tuple[str, ...]] = ("posterior_", "n_iter_", "converged_")
    posterior_: Posterior
    _summary: Summary | None
    _errors: Errors | None
    _data: Any
    _remembered: Callable[[str], Any]
    _set_run: Callable[[Found], None]

    def _item_modes(self) -> tuple[Mode, ...]:
        return self.posterior_.structure.columns()

    def sample(self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Sample:
        """Labelled observations in the model's own numbering, as certificates and tests need them."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        cell = self.posterior_.label_cell()
        return Sample.of(
            columns.columns,
            y,
            sample_weight,
            modes=self.posterior_.structure.columns(),
            alphabet=getattr(cell, "alphabet", None),
        )

    def _with_posterior(self, posterior: Posterior, problem: Problem | None = None) -> Self:
        return with_posterior(self, posterior, problem)

    def _extended_summary(self, summary: Summary, rows: Sample) -> Summary | None:
        modes, posterior = self._item_modes(), self.posterior_
        sides = {mode.name: at for at, mode in enumerate(posterior.structure.modes)}
        if posterior.structure.frozen or any(side.name not in sides for side in summary.sides):
            return summary if self._data is None else None
        counts = {mode.name: rows.counts(at) for at, mode in enumerate(modes)}
        wide = []
        for side in summary.sides:
            at = sides[side.name]
            mode = posterior.structure.modes[at]
            wide.append(side.with_items(mode, posterior.labels[at], posterior.assign[at], counts[side.name]))
        return replace(summary, sides=tuple(wide), errors=None)  # those were measured of another model

    def _observed(self, *data: Any) -> Observed:
        sample = self.sample(*data) if data else self._remembered("gg.summarize(model, X, y)")
        posterior = self.posterior_
        structure = posterior.structure
        learned = [mode not in structure.frozen for mode in structure.factors[0]]
        return observed_of(
            sample,
            [posterior.labels[mode] if own else None for mode, own in zip(structure.factors[0], learned)],
            memberships=[posterior.assign[mode] if own else None for mode, own in zip(structure.factors[0], learned)],
            given=not named_auto(getattr(self, "n_clusters", "auto")),
            refit=lambda kept: self._refit(sample, kept),
            prediction=str(getattr(self, "selection_", "")),
            expected=expected_by(posterior, sample),
            loss=self._measured_in,
        )

    @property
    def _measured_in(self) -> str:
        """The loss in which the model is measured."""
        return self.posterior_.label_cell().name

    def _refit(self, sample: Sample, kept: Bools) -> Refit:
        """The same model from some of the rows of a sample, and what it predicts of the others."""
        raise NotImplementedError  # pragma: no cover

    def _keep_for_questions(self) -> None:
        if self._data is not None:
            self.cell_moments_ = moments_of(self.posterior_, self._data)

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        return predicted_by(self.posterior_, codes, label, getattr(self, "cell_moments_", None), relation)

    # facts of the fit

    def _set_solution(self, solution: Solution) -> None:
        self.posterior_ = solution.posterior
        self.objective_ = solution.objective
        self._set_run(solution)

    @property
    def assign_(self) -> tuple[Floats, ...]:
        """q(c|x): memberships of each mode, arrays of shape (n_items, n_clusters)."""
        return self.posterior_.assign

    @property
    def labels_(self) -> tuple[Ints, ...]:
        """Most probable cluster of each item, from 0 as in scikit-learn, one array per mode; tables count from 1."""
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
        """The answer of each cell as a label or a number (distributions for the log loss); with offsets, what it adds.

        Offsets are in ``posterior_.offsets``.
        """
        cell = self.posterior_.cells[0]
        answers = self.posterior_.answers[0]
        return answers if cell.distribution(answers) is answers else cell.values(answers)

    @property
    def biclusters_(self) -> tuple[AnyArray, AnyArray]:
        """Which rows and which columns belong to each cell, as scikit-learn's ``consensus_score`` takes them."""
        if len(self.posterior_.assign) != 2:
            raise AttributeError("biclusters_ are those of two modes")
        r, c = self.posterior_.n_clusters
        rows, columns = self.posterior_.labels
        return np.repeat(np.arange(r)[:, None] == rows, c, axis=0), np.tile(np.arange(c)[:, None] == columns, (r, 1))


class GridPredictor(TransformerMixin):
    """Beside `GridModel`: predictive distributions of cells, and the memberships of items as features."""

    posterior_: Posterior
    _codes: Callable[[TableLike], list[Ints]]

    def predict_distribution(self, X: TableLike) -> Floats:
        """Distribution of the answer when the partition is drawn from Q, shape (N, |Y|), columns as ``alphabet_``."""
        codes = self._codes(X)
        return on_host(self.posterior_.predict_distribution(codes))

    def transform(self, X: TableLike) -> Floats:
        """Memberships of each row's items side by side, shape (N, Σ m_i): features for a next estimator."""
        codes = self._codes(X)
        return np.hstack([self.posterior_.with_unseen(mode)[on_host(code)] for mode, code in enumerate(codes)])

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the columns of ``transform``: mode and cluster."""
        check_is_fitted(self)
        modes = zip(self.posterior_.structure.modes, self.posterior_.n_clusters)
        return np.array([f"{mode.name}_cluster{c}" for mode, m in modes for c in range(m)], dtype=object)

    @property
    def alphabet_(self) -> AnyArray:
        """The label values, in the order of the columns of ``predict_distribution``."""
        alphabet = getattr(self.posterior_.label_cell(), "alphabet", None)
        if alphabet is None:
            raise AttributeError("labels are numbers without an alphabet")
        return alphabet.values


def observed_of(
    sample: Sample,
    clusters: Sequence[Ints | None],
    *,
    memberships: Sequence[Floats | None] = (),
    given: bool = False,
    refit: Callable[[Bools], Refit] | None = None,
    prediction: str = "",
    expected: Floats | None = None,
    loss: str = "",
) -> Observed:
    """A sample and the clusters of each of its positions, as a summary needs them.

    ``expected`` is what the model expects of every row without its clusters, the mean of the numbers by default.
    """
    modes, codes, values = sample.modes, sample.codes, sample.labels
    alphabet = sample.alphabet
    named = labels_are_names(sample, loss)
    memberships = list(memberships) or [None] * len(modes)
    if len(modes) == 1:  # the items have no partners: beside them stands everything as one
        modes, codes = (*modes, Mode("all", np.array(["all"]))), (*codes, np.zeros(sample.n_rows, dtype=np.int32))
        clusters, memberships = [*clusters, np.zeros(1, dtype=np.int64)], [*memberships, None]
    sides = {id(mode): at for at, mode in reversed(list(enumerate(modes)))}  # tied positions are one side
    places = sorted(set(sides.values()))
    at = tuple(places.index(sides[id(mode)]) for mode in modes)
    if values is None:
        relation = Relation(at, codes, "lift", weights=sample.weights, label="count")
    elif alphabet is not None and named:
        names = tuple(str(value) for value in alphabet.values.tolist())
        relation = Relation(at, codes, "labels", sample.label_codes, sample.weights, labels=names)
    else:
        if expected is None:
            expected = mean_label(sample)
        relation = Relation(at, codes, "difference", values, sample.weights, expected=expected)
    return Observed(
        tuple(modes[place] for place in places),
        (relation,),
        tuple(clusters[place] for place in places),
        given=(given,) * len(places),
        refit=refit,
        prediction=prediction,
        memberships=tuple(memberships[place] for place in places),
        loss=loss,
    )


def labels_are_names(sample: Sample, loss: str = "") -> bool:
    """Whether labels are classes to a summary: they are no numbers, or the loss does not ask how far apart they are."""
    alphabet = sample.alphabet
    return alphabet is not None and (not alphabet.numeric or loss in ("log", "zero-one"))


def expected_by(posterior: Posterior, sample: Sample) -> Floats | None:
    """What a checkerboard expects of the rows of a sample without its clusters: its offsets; None where it has none."""
    return None if posterior.offsets is None else posterior.offsets.at(sample.codes)


def moments_of(posterior: Posterior, sample: Sample) -> Floats | None:
    """Mean and mean square of the labels in every cell, shape (m_1, …, m_d, 2); None where labels are no numbers."""
    if sample.labels is None or labels_are_names(sample):
        return None
    sums = posterior.statistics(sample, features=Moments(2))
    whole = sums.reshape(-1, 3).sum(axis=0)
    filled = sums + whole / max(float(whole[0]), 1e-300)  # an empty cell has those of all labels
    return np.asarray(filled[..., 1:] / filled[..., :1])


def predicted_by(
    posterior: Posterior, codes: Sequence[Ints], label: object, moments: Floats | None, relation: int = 0
) -> Predicted:
    """What a checkerboard predicts of rows, and the standard deviation of the labels it expects there.

    Of labels that are names, and of a ``label`` that is asked for, its probability, and the chance that it is another.
    """
    cell = posterior.cells[relation]
    label_values = getattr(posterior.label_cell(relation), "alphabet", None)
    if label_values is not None and (label is not None or not label_values.numeric):
        return predicted_class(posterior.predict_distribution(codes, relation), label_values.values, label)
    mean = posterior.predict(codes, "mean", relation)
    values = np.asarray(cell.values(posterior.answers[relation]), dtype=np.float64)
    seen = np.stack([values, values**2], axis=-1) if moments is None else moments
    first, second = posterior.expectation(codes, seen, relation).T
    return Predicted(mean, np.sqrt(np.maximum(second - first**2, 0.0)))


def predicted_class(probabilities: Floats, classes: AnyArray, label: object) -> Predicted:
    """The probability of one class, of the most probable one for a single row, and the chance that it is another."""
    names = [str(value) for value in classes.tolist()]
    if label is None and len(probabilities) > 1:
        raise GinghamError(f"Labels are names: say which one is wanted, label={names[-1]!r} for one of {names[:6]}.")
    if label is not None and str(label) not in names:
        raise GinghamError(f"There is no label {label!r}; there are {', '.join(names[:12])}.")
    chance = probabilities.max(axis=1) if label is None else probabilities[:, names.index(str(label))]
    return Predicted(chance, 1.0 - chance)


def rows_of(sample: Sample, kept: Bools) -> tuple[AnyArray, AnyArray | None, Floats | None]:
    """Some rows of a sample as `fit` takes them: ids, labels, weights."""
    part = sample.take(kept)
    ids = np.empty((part.n_rows, part.n_modes), dtype=object)
    for at, (mode, code) in enumerate(zip(part.modes, part.codes)):
        ids[:, at] = mode.items[code]
    labels = part.labels
    if part.alphabet is not None and part.label_codes is not None:
        labels = part.alphabet.values[part.label_codes]
    return ids, labels, part.weights


def listed(sample: Sample, kept: Bools | None = None) -> Listed:
    """The rows of a sample, or some of them, with their ids as they are."""
    ids, labels, weights = rows_of(sample, np.ones(sample.n_rows, dtype=bool) if kept is None else kept)
    return Listed(list(ids.T), [mode.name for mode in sample.modes], labels, weights)


def renumbered(mode: Mode, own: Mode, labels: Ints) -> Ints:
    """Clusters of the items of a mode from those of some of them; an item that was not seen goes anywhere."""
    found = np.zeros(mode.n_items, dtype=np.int64)
    found[mode.encode(own.items)] = labels
    return found


def predictions_of(model: Any, X: Any, sample: Sample, loss: str = "", **more: Any) -> AnyArray:
    """What a model predicts of rows: numbers; of names their probabilities on the alphabet of a sample, or codes."""
    alphabet = sample.alphabet
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenItemsWarning)
        if alphabet is None or not labels_are_names(sample, loss):
            return np.asarray(model.predict(X, **more))
        if not hasattr(model, "predict_proba"):
            return alphabet.encode(np.asarray(model.predict(X)))
        chances: Floats = np.zeros((len(X), alphabet.size))
        chances[:, alphabet.encode(np.asarray(model.classes_))] = model.predict_proba(X, **more)
        return chances


def refit_on(model: Any, sample: Sample, kept: Bools, **more: Any) -> Refit:
    """An unfitted model, fitted on some rows of a sample: its clusters, and what it predicts of the others."""
    model.fit(*rows_of(sample, kept), **more)
    at = model.posterior_.structure.factors[0]
    sides = dict(zip(at, zip(sample.modes, model._item_modes())))  # a mode that stands twice is one side
    clusters = tuple(renumbered(mode, own, model.posterior_.labels[at]) for at, (mode, own) in sides.items())
    return Refit(clusters, predictions_of(model, rows_of(sample, ~kept)[0], sample), mean_label(sample, kept))


def refit_of(model: GridModel, sample: Sample, kept: Bools) -> Refit:
    """Clusters of a model that was fitted on some of the rows of a sample, and what it predicts of the others."""
    codes = [code[~kept] for code in sample.codes]
    posterior = model.posterior_
    if labels_are_names(sample, posterior.label_cell().name):
        return Refit(posterior.labels, posterior.predict_distribution(codes))
    expected = expected_by(posterior, sample)
    return Refit(posterior.labels, posterior.predict(codes), mean_label(sample, kept) if expected is None else expected)


def mean_label(sample: Sample, kept: Bools | None = None) -> Floats | None:
    """The mean of the numbers of the rows, or of some, for every row; None where labels are no numbers."""
    if sample.labels is None or labels_are_names(sample):
        return None
    rows = slice(None) if kept is None else kept
    weights = None if sample.weights is None else sample.weights[rows]
    return np.full(sample.n_rows, float(np.average(sample.labels[rows], weights=weights)))


def stderr_progress(progress: Progress) -> None:
    """The ``verbose`` callback: one line that is rewritten after every sweep."""
    sys.stderr.write(
        f"\rstart {progress.restart + 1}/{progress.n_restarts}  sweep {progress.iteration + 1}"
        f"  objective {progress.objective.total:.6g}   "
    )
    sys.stderr.flush()


def default_loss(labels: AnyArray, stated: bool = False, bounds: tuple[float, float] | None = None) -> str:
    """The loss where none is named: names have probabilities, a scale has absolute errors, a measurement squares.

    ``stated`` says that the possible labels were listed, ``bounds`` that a range of measurements was.
    """
    if labels.dtype.kind not in "biuf":
        return "log"
    if bounds is not None:
        return "quadratic"
    return "absolute" if stated or len(np.unique(labels)) <= FEW else "quadratic"


def check_within(labels: AnyArray, cell: CellModel, what: str = "The label of row") -> None:
    """Refuse labels outside the bounds that were stated for them."""
    bounds = Bounds.of(cell.bounds, given=True)
    if bounds is not None and cell.alphabet is None:
        bounds.check(labels, what)


def named_auto(setting: object) -> bool:
    """Whether a setting is left to the data; arrays and callables are settings too."""
    return isinstance(setting, str) and setting == "auto"


def finite_labels(labels: AnyArray, largest: float = LARGEST) -> AnyArray:
    """The labels, unless one is NaN, infinite or so large that sums over its powers would be."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        what = "NaN" if np.isnan(labels[row]) else "infinity (inf)"
        raise GinghamError(f"Input y contains {what} in row {row}. Drop missing labels from X and y.")
    need_moderate(labels, "Label", largest)
    return labels


def plain_labels(y: ArrayLike) -> AnyArray:
    """Labels of any kind, shape (N,), names as text; none is NaN or infinite."""
    labels = column_or_1d(y, warn=True)
    return finite_labels(np.array(labels.tolist()) if labels.dtype.kind == "O" else labels)


def class_labels(y: ArrayLike) -> AnyArray:
    """Labels as classes, shape (N,)."""
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "O":
        check_classification_targets(labels)
        labels = np.array(labels.tolist())
    check_classification_targets(few_values(finite_labels(labels), len(labels)))
    return labels


def numeric_labels(y: ArrayLike, model: str, largest: float = LARGEST) -> AnyArray:
    """Labels as finite numbers, shape (N,)."""
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError):
            raise GinghamError(f"Labels must be numbers for {model}; for names use CoClusteringClassifier.") from None
    return finite_labels(labels, largest)


def advise(sample: Sample, counts_are_meant: bool = False) -> None:
    """Warn (`AdviceWarning`) of rows that the model may not be meant for; what is on a GPU is not looked at."""
    if not sample.on_device:
        numbers = None if counts_are_meant or labels_are_names(sample) else sample.labels
        warn_of(advice_on([mode.name for mode in sample.modes], sample.shape, sample.n_rows, numbers))


def warn_of(sentences: Sequence[str]) -> None:
    """Say sentences as `AdviceWarning`."""
    for sentence in sentences:
        warnings.warn(sentence, AdviceWarning, stacklevel=4)
