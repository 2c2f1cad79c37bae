"""CoClusteringRegressor and CoClusteringClassifier: P0's discriminative co-clustering for scikit-learn users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import Anything, Floats
from gingham.cells import CellModel, Logarithmic, make_cell, needs_alphabet
from gingham.certificates.theorems import THEOREMS
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError
from gingham.estimators.base import expand_clusters, stderr_progress
from gingham.estimators.growing import GrowingGrid
from gingham.posterior import Posterior
from gingham.problem import Problem
from gingham.selection.auto import choose_beta, chosen, merge_and_settle
from gingham.solvers.certified import Certified
from gingham.solvers.loop import Callback, best_of
from gingham.solvers.projection import Projection
from gingham.solvers.schedule import Constant, Down, Schedule
from gingham.solvers.sweep import Sweep
from gingham.starts import make_start

MAX_LABELS = 1000
OBJECTIVES = ("tradeoff", "certificate", *THEOREMS)
SOLVERS = ("projection", "sweep")


class _CoClustering(TransformerMixin, GrowingGrid):
    """Fitting, shared by the regressor and the classifier."""

    n_clusters: Any
    loss: Any
    beta: Any
    alphabet: Any
    start: Any
    schedule: Any
    n_init: int
    max_iter: int
    tol: float
    objective: str
    backend: str
    random_state: Any
    verbose: int
    solver: str = "projection"

    def _alphabet(self, y: Anything) -> Alphabet | None:
        raise NotImplementedError  # pragma: no cover

    def _cell(self, alphabet: Alphabet | None) -> CellModel:
        return make_cell(self.loss, alphabet)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback | None = None) -> Self:
        """Co-cluster the observed tuples.

        Parameters
        ----------
        X : array, list or frame of shape (N, d)
            Item ids, one row per observed tuple, one column per mode.
        y : array of shape (N,)
            Labels.
        sample_weight : array of shape (N,), optional
            Counts: weight 2 is the same as the row twice, weight 0 as no row.
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        """
        columns, labels, sample_weight = self._observed(X, y, sample_weight)
        alphabet = self._alphabet(labels)
        sample = Sample.of(columns.columns, labels, sample_weight, names=columns.names, alphabet=alphabet)
        return self._fit(sample, self._cell(alphabet), callback)

    def _fit(self, sample: Sample, cell: CellModel, callback: Callback | None) -> Self:
        if self.objective not in OBJECTIVES:
            raise GinghamError(f"objective={self.objective!r} is unknown; choose one of {', '.join(OBJECTIVES)}.")
        if not isinstance(self.n_init, (int, np.integer)) or self.n_init < 1:
            raise GinghamError(f"n_init={self.n_init!r} must be a whole number from 1.")
        if self.solver not in SOLVERS:
            raise GinghamError(f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}.")
        solver = Projection(make_schedule(self.schedule), self.tol, self.max_iter, self.backend)
        n_clusters = expand_clusters(self.n_clusters, sample.shape, sample.n_tuples)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        beta, tried, reason = self._beta(sample, cell, n_clusters, solver, rng)
        problem = Problem.grid(sample, cell, beta)
        if callback is None and self.verbose:
            callback = stderr_progress

        def starts() -> Iterator[Posterior]:
            for _ in range(self.n_init):
                yield make_start(self.start, problem, n_clusters, rng)

        finder = solver if self.solver == "projection" else self._moves(int(rng.integers(2**31)))
        solution = best_of(finder, problem, starts(), self.n_init, callback)
        by_size = isinstance(self.n_clusters, str)  # "auto"
        if self.objective != "tradeoff" and not solution.interrupted:  # the certificate chooses
            bound = "log-wealth" if self.objective == "certificate" else self.objective
            certified = Certified(replace(solver, schedule=Constant()), merge=by_size, bound=bound)
            solution = best_of(certified, problem, [solution.posterior], 1, callback)
        elif by_size:
            solution = merge_and_settle(problem, solution, finder)
        self._set_solution(solution)
        self.beta_ = beta
        judge = "the trade-off" if self.objective == "tradeoff" else "the certificate"
        self.selection_ = chosen(
            beta, tried, reason, n_clusters, solution.posterior.n_clusters, judge if by_size else None
        )
        return self

    def _moves(self, seed: int = 0) -> Sweep:
        """Hard moves until nothing moves (at most ``tol`` of the items)."""
        return Sweep(1.0, self.tol, self.max_iter, self.backend, seed)

    def _settling(self, max_iter: int) -> Projection | Sweep:
        return super()._settling(max_iter) if self.solver == "projection" else replace(self._moves(), max_iter=max_iter)

    def _beta(
        self, sample: Sample, cell: CellModel, n_clusters: tuple[int, ...], solver: Projection, rng: np.random.Generator
    ) -> tuple[float, tuple[tuple[float, float], ...], str]:
        """The β to use, those tried, and why."""
        wanted = self.beta
        if wanted is None:  # the description length has no β to choose
            code = self.solver == "sweep" and isinstance(cell, Logarithmic)
            wanted = "auto" if isinstance(self.n_clusters, str) and not code else 1.0
        if not isinstance(wanted, str):
            return wanted, (), f"β = {wanted:.3g}, as given"
        if wanted != "auto":
            raise GinghamError(f"beta={self.beta!r} is unknown; give a number or 'auto'.")
        return choose_beta(sample, cell, n_clusters, self.start, solver, rng)

    def predict_distribution(self, X: Any) -> Floats:
        """Law of the answer when the partition is drawn from Q, shape (N, |Y|), columns as ``alphabet_``."""
        codes = self._codes(X)
        return self.posterior_.predict_distribution(codes)

    def transform(self, X: Any) -> Floats:
        """Memberships of each row's items side by side, shape (N, Σ m_i): features for a next estimator."""
        codes = self._codes(X)
        posterior = self.posterior_
        known = [np.vstack([q, mass]) for q, mass in zip(posterior.assign, posterior.mass)]
        return np.hstack([q[code] for q, code in zip(known, codes)])

    def get_feature_names_out(self, input_features: Any = None) -> Anything:
        """Names of the columns of ``transform``: mode and cluster."""
        check_is_fitted(self)
        modes = zip(self.posterior_.structure.modes, self.n_clusters_)
        return np.array([f"{mode.name}_cluster{c}" for mode, m in modes for c in range(m)], dtype=object)

    @property
    def alphabet_(self) -> Anything:
        """The label values, in the order of the columns of ``predict_distribution``."""
        alphabet = getattr(self.posterior_.cells[0], "alphabet", None)
        if alphabet is None:
            raise AttributeError("labels are numbers without an alphabet")
        return alphabet.values


def make_schedule(schedule: Any) -> Schedule:
    """A schedule by name ("down", "constant") or as it is."""
    if isinstance(schedule, (Constant, Down)):
        return schedule
    if schedule == "down":
        return Down()
    if schedule == "constant":
        return Constant()
    raise GinghamError(f"schedule={schedule!r} is unknown; choose 'down', 'constant', Down(...) or Constant().")


def finite_labels(labels: Anything) -> Anything:
    """The labels, unless one is NaN or infinite."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        what = "NaN" if np.isnan(labels[row]) else "infinity (inf)"
        raise GinghamError(f"Input y contains {what} in row {row}. Missing labels are left out of X and y.")
    return labels


def numeric_labels(y: Any, model: str) -> Anything:
    """Labels as finite numbers, shape (N,)."""
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError):
            raise GinghamError(f"Labels must be numbers for {model}; for names use CoClusteringClassifier.") from None
    return finite_labels(labels)


class CoClusteringRegressor(RegressorMixin, _CoClustering):
    """Co-cluster the items of all modes so that cells of the checkerboard predict numeric labels.

    Minimises ``β N L̂(Q) + Σ_i n_i Ī_i``: the empirical loss of the randomised checkerboard against the
    information that memberships keep about items (P0 §4.1, Algorithm 1).

    Parameters
    ----------
    n_clusters : int, sequence of int or "auto"
        Clusters of each mode; unused ones die out, so too many do little harm. "auto" starts with many and
        merges them while the trade-off falls.
    loss : {"absolute", "quadratic", "zero-one", "log", "pinball"}, table or callable
        A table has a row per true label and a column per answer; a callable takes the alphabet and
        returns a CellModel, e.g. ``functools.partial(Pinball, quantile=0.9)``.
    beta : float or "auto", optional
        Trade-off per unit of the loss as it stands (stars, say); larger fits closer. "auto" holds out a tenth
        of the tuples and takes the smallest of a few values, around the noise they show, that is not clearly
        worse than the best. By default "auto" together with ``n_clusters="auto"``, and 1 where sizes are given.
    alphabet : sequence of numbers, optional
        The possible labels. State them when a certificate is wanted; read off the data otherwise.
    bounds : (float, float), optional
        Smallest and largest possible label, for the quadratic loss on labels without an alphabet.
    start : {"spectral", "means", "random"}, label arrays or Posterior
    schedule : {"down", "constant"} or Schedule
        "down" begins at 5β, so that clusters form before information is priced.
    n_init : int
        Starts; the lowest objective is kept.
    max_iter, tol : int, float
        Stop after so many sweeps, or when the objective changes relatively by less than ``tol``.
    objective : {"tradeoff", "certificate"} or the name of a bound ("kl", "type-kl", "theorem-7", …)
        "certificate" goes on from there and minimises the log-wealth certificate itself; with
        ``n_clusters="auto"`` it also merges clusters and keeps the size with the lowest certificate.
    backend : {"auto", "compiled", "reference", "torch"}
        "auto" compiles for the CPU, and goes to a GPU through torch when there is one and the data is
        large enough to pay; "torch" asks for torch, on a GPU (float32) or without one (float64).
    random_state : int, RandomState or None
    verbose : int
    solver : {"projection", "sweep"}
        Soft memberships (P0 Algorithm 1), or hard clusters by moving one item at a time until nothing moves. With
        ``loss="log"`` and β = 1, its default there, hard moves minimise a description length: ``N H(Y|cell)`` nats
        for the labels and ``Σ_i n_i Ī_i`` for the clusters.

    Attributes
    ----------
    posterior_ : Posterior
    assign_, labels_, items_ : tuples with one array per mode
    answers_ : array of shape (m_1, …, m_d)
    trace_, n_iter_, converged_, objective_ : how the fit went
    beta_ : float
    selection_ : Selection
        What was chosen and why; print it.

    Examples
    --------
    >>> from gingham import CoClusteringRegressor
    >>> X = [("ann", "jaws"), ("ann", "heat"), ("bob", "jaws"), ("bob", "heat"), ("cyd", "jaws")]
    >>> model = CoClusteringRegressor(n_clusters=2, beta=3.0, alphabet=range(1, 6), random_state=0)
    >>> model.fit(X, [5, 5, 1, 1, 5]).predict([("cyd", "heat")], rule="median")
    array([5.])
    """

    def __init__(
        self,
        n_clusters: Any = "auto",
        loss: Any = "absolute",
        beta: Any = None,
        alphabet: Any = None,
        bounds: tuple[float, float] | None = None,
        start: Any = "spectral",
        schedule: Any = "down",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        objective: str = "tradeoff",
        backend: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        solver: str = "projection",
    ) -> None:
        self.n_clusters = n_clusters
        self.loss = loss
        self.beta = beta
        self.alphabet = alphabet
        self.bounds = bounds
        self.start = start
        self.schedule = schedule
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.objective = objective
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose
        self.solver = solver

    def _labels(self, y: Any) -> Anything:
        return numeric_labels(y, type(self).__name__)

    def _alphabet(self, y: Anything) -> Alphabet | None:
        if self.alphabet is not None:
            return Alphabet.of(self.alphabet, given=True)
        values = np.unique(y)
        if not needs_alphabet(self.loss):
            return Alphabet.of(values, given=False) if len(values) <= 64 and self.bounds is None else None
        if len(values) > MAX_LABELS:
            raise GinghamError(
                f"loss={self.loss!r} works on a finite set of labels, and y has {len(values)} different values: "
                "round them to at most 1000 values, or use loss='quadratic'."
            )
        return Alphabet.of(values, given=False)

    def _cell(self, alphabet: Alphabet | None) -> CellModel:
        return make_cell(self.loss, alphabet, self.bounds)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Every distinct number is an item of its own, so feature values carry no distance to learn from.
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: Any, rule: str = "mean") -> Floats:
        """One number per row: the mean of the randomised answer, or its median or mode (labels)."""
        codes = self._codes(X)
        return self.posterior_.predict(codes, rule)


class CoClusteringClassifier(ClassifierMixin, _CoClustering):
    """Co-cluster the items of all modes so that cells of the checkerboard predict classes.

    The same as :class:`CoClusteringRegressor` for labels without an order; see there for parameters.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from gingham import CoClusteringClassifier
    >>> X = [("ann", "jaws"), ("ann", "heat"), ("bob", "jaws"), ("bob", "heat"), ("cyd", "jaws")]
    >>> y = ["like", "like", "hate", "hate", "like"]
    >>> model = CoClusteringClassifier(n_clusters=2, beta=5.0, random_state=0).fit(X, y)
    >>> model.predict([("cyd", "heat")])
    array(['like'], dtype='<U4')
    """

    def __init__(
        self,
        n_clusters: Any = "auto",
        loss: Any = "zero-one",
        beta: Any = None,
        alphabet: Any = None,
        start: Any = "spectral",
        schedule: Any = "down",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        objective: str = "tradeoff",
        backend: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        solver: str = "projection",
    ) -> None:
        self.n_clusters = n_clusters
        self.loss = loss
        self.beta = beta
        self.alphabet = alphabet
        self.start = start
        self.schedule = schedule
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.objective = objective
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose
        self.solver = solver

    @property
    def classes_(self) -> Anything:
        return self.alphabet_

    def _labels(self, y: Any) -> Anything:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(finite_labels(labels))
        if labels.dtype.kind == "O":
            labels = np.array(labels.tolist())
        if not needs_alphabet(self.loss):
            raise GinghamError("loss='quadratic' predicts numbers: use CoClusteringRegressor.")
        return labels

    def _alphabet(self, y: Anything) -> Alphabet:
        stated = getattr(self, "_classes", None) if self.alphabet is None else self.alphabet
        return Alphabet.of(np.unique(y) if stated is None else stated, stated is not None)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, shape (N, n_classes)."""
        return self.predict_distribution(X)

    def predict(self, X: Any) -> Anything:
        """The most probable class of each row."""
        distribution = self.predict_distribution(X)
        return self.classes_[distribution.argmax(axis=1)]
