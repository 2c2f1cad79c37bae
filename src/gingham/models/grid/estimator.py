"""CoClusteringRegressor and CoClusteringClassifier: P0's discriminative co-clustering for scikit-learn users."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from gingham.arrays import AnyArray, Floats
from gingham.cells import CellModel, make_cell, needs_alphabet
from gingham.data import Alphabet
from gingham.errors import GinghamError
from gingham.models.grid.fit import GridFit
from gingham.models.label_checks import FEW, default_loss, finite_labels, named_auto, numeric_labels

MAX_LABELS = 1000


class CoClusteringRegressor(RegressorMixin, GridFit):
    """Co-cluster the items of all modes so that cells of the checkerboard predict numeric labels.

    Minimises ``β N L̂(Q) + Σ_i n_i Ī_i``: the empirical loss of the randomised checkerboard against the
    information that memberships keep about items (P0 §4.1, Algorithm 1).

    Parameters
    ----------
    n_clusters : int, sequence of int or "auto"
        Clusters of each mode; unused ones die out, so too many do little harm. "auto" starts with many and
        merges them while the trade-off falls.
    loss : {"auto", "absolute", "quadratic", "zero-one", "log", "pinball"}, table or callable
        "auto" is the absolute loss for labels on a scale (``alphabet`` given, or at most 64 different values) and
        the quadratic one for measurements (``bounds`` given, or more values).
        A table has a row per true label and a column per answer; a callable takes the alphabet and
        returns a CellModel, e.g. ``functools.partial(Pinball, quantile=0.9)``.
    beta : float or "auto", optional
        Trade-off per unit of the loss as it stands (stars, say); larger fits closer. "auto" holds out a tenth
        of the tuples and takes the smallest of a few values, around the noise they show, that is not clearly
        worse than the best. By default "auto" together with ``n_clusters="auto"``, and from the held-out loss of item
        means, which takes one pass over the data, where sizes are given.
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
    dtype : {"float64", "float32"}, optional
        Numbers of soft memberships and sums during the fit; float64 by default, float32 on a GPU. float32 needs
        half the memory and, on large data, about half the time; the objective agrees to about 1e-6.

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
        loss: Any = "auto",
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
        dtype: str | None = None,
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
        self.dtype = dtype

    def _labels(self, y: Any) -> AnyArray:
        return numeric_labels(y, type(self).__name__)

    def _alphabet(self, y: AnyArray) -> Alphabet | None:
        if self.alphabet is not None:
            return Alphabet.of(self.alphabet, given=True)
        values = np.unique(y)
        if not needs_alphabet(self._loss(y)):
            return Alphabet.of(values, given=False) if len(values) <= FEW and self.bounds is None else None
        if len(values) > MAX_LABELS:
            raise GinghamError(
                f"loss={self.loss!r} works on a finite set of labels, and y has {len(values)} different values: "
                "round them to at most 1000 values, or use loss='quadratic'."
            )
        return Alphabet.of(values, given=False)

    def _loss(self, y: AnyArray) -> Any:
        return default_loss(y, self.alphabet is not None, self.bounds) if named_auto(self.loss) else self.loss

    def _cell(self, alphabet: Alphabet | None, y: AnyArray) -> CellModel:
        return make_cell(self._loss(y), alphabet, self.bounds)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Every distinct number is an item of its own, so feature values carry no distance to learn from.
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: Any, rule: str = "mean") -> Floats:
        """One number per row: the mean of the randomised answer, or its median or mode (labels)."""
        codes = self._codes(X)
        return self.posterior_.predict(codes, rule)


class CoClusteringClassifier(ClassifierMixin, GridFit):
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
        dtype: str | None = None,
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
        self.dtype = dtype

    @property
    def classes_(self) -> AnyArray:
        return self.alphabet_

    def _labels(self, y: Any) -> AnyArray:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(finite_labels(labels))
        if labels.dtype.kind == "O":
            labels = np.array(labels.tolist())
        if not needs_alphabet(self.loss):
            raise GinghamError("loss='quadratic' predicts numbers: use CoClusteringRegressor.")
        return labels

    def _alphabet(self, y: AnyArray) -> Alphabet:
        stated = getattr(self, "_classes", None) if self.alphabet is None else self.alphabet
        return Alphabet.of(np.unique(y) if stated is None else stated, stated is not None)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, shape (N, n_classes)."""
        return self.predict_distribution(X)

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        distribution = self.predict_distribution(X)
        return self.classes_[distribution.argmax(axis=1)]
