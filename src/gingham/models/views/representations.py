"""What stands for one view while components are sought: its kernel matrix, or features with K = ΦΦᵀ.

All kernels are centred and divided by their mean diagonal, so that one ridge means the same for every view.
Whatever stands for a view, the score of a new object is ``reading(x) @ weights − offset``: centring out of
sample is the offset, since coefficients found on centred kernels sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh

from gingham.arrays import Floats, Ints
from gingham.data.views import Matrix, column_means, densely, from_parts, rows_of, sum_of_squares, to_parts
from gingham.errors import GinghamError
from gingham.models.views.primal import LinearView
from gingham.models.views.view_kernels import Kernel
from gingham.storage import State, fields_of, savable


@savable
@dataclass(frozen=True, eq=False)
class Reading:
    """What is read off an object: itself (linear and precomputed kernels) or its kernel with anchors."""

    kernel: Kernel
    n_columns: int
    anchors: Matrix | None = None

    def __call__(self, view: Matrix) -> Matrix:
        if view.shape[1] != self.n_columns:
            what = "columns, one per training object" if self.kernel.precomputed else "features"
            raise GinghamError(
                f"{self.kernel.name} has {view.shape[1]} columns; it was fitted with {self.n_columns} {what}."
            )
        return view if self.anchors is None else self.kernel.between(view, self.anchors)

    def to_file(self) -> State:
        """The fields, sparse anchors in parts."""
        return {**fields_of(self), "anchors": None if self.anchors is None else to_parts(self.anchors)}

    @classmethod
    def from_file(cls, state: State) -> Self:
        return cls(**{**state, "anchors": None if state["anchors"] is None else from_parts(state["anchors"])})


@savable
@dataclass(frozen=True, eq=False)
class ScoreFunction:
    """F(x) = reading(x)·weights − offset, one column per component."""

    reading: Reading
    weights: Floats
    offset: Floats

    def __call__(self, view: Matrix) -> Floats:
        scores: Floats = np.asarray(self.reading(view) @ self.weights) - self.offset
        return scores


@dataclass(frozen=True, eq=False)
class Representation:
    """One view's centred, normalised kernel.

    Attributes
    ----------
    reading : Reading
    mean : ndarray of shape (n_readings,)
        Mean reading of the training objects.
    lift : matrix of shape (n_readings, n_coefficients) or None
        Turns coefficients into weights on the readings; None for the identity.
    scale : float
        Factor that goes with ``lift``.
    rank : int
        At most so many directions have a positive eigenvalue.
    gram : ndarray of shape (n, n) or None
        The kernel, when it is held exactly.
    features : ndarray of shape (n, p) or None
        Φ, when the kernel is held as ΦΦᵀ.
    products : LinearView or None
        The view itself, when only products with it are taken.
    """

    reading: Reading
    mean: Floats
    lift: Matrix | None
    scale: float
    rank: int
    gram: Floats | None = None
    features: Floats | None = None
    products: LinearView | None = None

    @property
    def n_samples(self) -> int:
        if self.products is not None:
            return self.products.n_samples
        held = self.gram if self.gram is not None else self.features
        return 0 if held is None else len(held)

    def score_function(self, coefficients: Floats) -> ScoreFunction:
        """The function of new objects whose values on the training objects are K·coefficients."""
        weights = coefficients - coefficients.mean(axis=0) if self.gram is not None else coefficients
        if self.lift is not None:
            weights = np.asarray(self.lift @ weights)
        weights = self.scale * weights
        return ScoreFunction(self.reading, weights, self.mean @ weights)


def exact(view: Matrix, kernel: Kernel) -> Representation:
    """The n × n kernel itself."""
    gram = kernel.gram(view)
    total = float(np.trace(gram))
    mean = gram.mean(axis=0)
    gram -= mean
    gram -= mean[:, None] - mean.mean()
    scale = 1.0 / _mean_diagonal(float(np.trace(gram)), total, len(gram), kernel)
    gram *= scale
    if kernel.linear:  # k(x) = X x: the score is linear in x itself and needs no training object
        rank = min(view.shape[1], len(gram) - 1)
        return Representation(_itself(view, kernel), column_means(view), view.T, scale, rank, gram=gram)
    anchors = None if kernel.precomputed else view
    return Representation(Reading(kernel, view.shape[1], anchors), mean, None, scale, len(gram) - 1, gram=gram)


def nystroem(view: Matrix, kernel: Kernel, landmarks: Ints) -> Representation:
    """Features Φ = k(X, L) k(L, L)^{−½} from a few landmark objects L; K ≈ ΦΦᵀ."""
    if kernel.precomputed:
        readings = kernel.gram(view)[:, landmarks]
        among = readings[landmarks]
        reading, mean = _itself(view, kernel), column_means(view)
        columns: Matrix | None = np.eye(view.shape[1])[:, landmarks]
    else:
        anchors = rows_of(view, landmarks)
        readings, among = kernel.between(view, anchors), kernel.between(anchors, anchors)
        if kernel.linear:
            reading, mean, columns = _itself(view, kernel), column_means(view), anchors.T
        else:
            reading, mean, columns = Reading(kernel, view.shape[1], anchors), readings.mean(axis=0), None
    d, u = eigh(among)
    kept = d > max(d[-1], 0.0) * len(d) * np.finfo(float).eps
    root = u[:, kept] / np.sqrt(d[kept])
    features = readings @ root
    total = sum_of_squares(features)
    features -= features.mean(axis=0)
    scale = float(np.sqrt(1.0 / _mean_diagonal(sum_of_squares(features), total, len(features), kernel)))
    lift = root if columns is None else np.asarray(columns @ root)
    return Representation(reading, mean, lift, scale, features.shape[1], features=scale * features)


def primal(view: Matrix, kernel: Kernel, dense: bool) -> Representation:
    """A linear kernel through X itself, as features (``dense``) or by products with X only."""
    n = view.shape[0]
    mean = column_means(view)
    total = sum_of_squares(view)
    trace = total - n * float(mean @ mean)
    scale = float(np.sqrt(1.0 / _mean_diagonal(trace, total, n, kernel)))
    rank = min(view.shape[1], n - 1)
    if dense:
        features = scale * (densely(view) - mean)
        return Representation(_itself(view, kernel), mean, None, scale, rank, features=features)
    return Representation(_itself(view, kernel), mean, None, scale, rank, products=LinearView.of(view, mean, scale))


def _itself(view: Matrix, kernel: Kernel) -> Reading:
    return Reading(kernel, view.shape[1])


def _mean_diagonal(trace: float, total: float, n: int, kernel: Kernel) -> float:
    """tr(K)/n of the centred kernel; refused when nothing of the uncentred ``total`` is left."""
    if not trace > np.finfo(float).eps * n * abs(total):
        raise GinghamError(
            f"All objects look the same in {kernel.name} (its centred kernel is zero): leave the view out."
        )
    return trace / n
