"""Kernels, and what stands for one view while components are sought: its kernel matrix, or features with K = ΦΦᵀ.

All kernels are centred and divided by their mean diagonal, so that one ridge means the same for every view.
Whatever stands for a view, the score of a new object is ``inputs(x) @ weights − offset``: centring out of
sample is the offset, since coefficients found on centred kernels sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels

from gingham.arrays import Bools, Floats, Ints
from gingham.data.views import Matrix, column_means, densely, from_parts, per_view, sum_of_squares, to_parts
from gingham.errors import GinghamError
from gingham.models.views.primal import LinearView
from gingham.storage import State, fields_of, savable

PRECOMPUTED = "precomputed"


@savable
@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel function with its parameters."""

    # A name that ``sklearn.metrics.pairwise_kernels`` knows, "precomputed", or a function of two matrices (m, d) and
    # (n, d) that returns the (m, n) kernel values.
    function: str | Callable[..., Floats]
    params: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of the function, {"gamma": 0.5} say
    name: str = "the view"  # for messages

    def _to_file(self) -> State:
        if not isinstance(self.function, str):
            raise GinghamError(f"The kernel of {self.name} is a function, which a model file cannot hold.")
        return {"function": self.function, "params": dict(self.params), "name": self.name}

    @classmethod
    def _from_file(cls, state: State) -> Self:
        return cls(**state)

    @property
    def linear(self) -> bool:
        return self.function == "linear"

    @property
    def precomputed(self) -> bool:
        return self.function == PRECOMPUTED

    def between(self, left: Matrix, right: Matrix) -> Floats:
        """Kernel values, shape (rows of left, rows of right)."""
        try:
            if callable(self.function):
                values = np.asarray(self.function(left, right, **self.params), dtype=np.float64)
            else:
                values = pairwise_kernels(left, right, metric=self.function, **self.params)
        except (TypeError, ValueError) as error:
            raise GinghamError(f"The kernel {self._label} of {self.name} failed: {error}") from error
        if values.shape != (left.shape[0], right.shape[0]):
            raise GinghamError(
                f"The kernel {self._label} of {self.name} returned shape {values.shape} for {left.shape[0]} "
                f"and {right.shape[0]} objects: it must take two matrices and return one value per pair."
            )
        if not np.isfinite(values).all():
            raise GinghamError(f"The kernel {self._label} of {self.name} returned NaN or infinity.")
        return np.asarray(values, dtype=np.float64)

    def gram(self, view: Matrix, present: Bools) -> Floats:
        """The kernel among the training objects, shape (n, n); a precomputed one is checked and copied.

        What a precomputed kernel says of objects that lack the view is not read.
        """
        if not self.precomputed:
            return self.between(view, view)
        if view.shape[0] != view.shape[1]:
            raise GinghamError(
                f"The precomputed kernel of {self.name} must be square, one row and column per object; "
                f"its shape is {view.shape}."
            )
        values = np.array(densely(view), dtype=np.float64)
        values[:, ~present] = 0.0
        if not np.allclose(values, values.T, rtol=1e-6, atol=1e-8 * max(1.0, float(np.abs(values).max()))):
            raise GinghamError(f"The precomputed kernel of {self.name} is not symmetric.")
        return values

    @property
    def _label(self) -> str:
        return repr(self.function) if isinstance(self.function, str) else getattr(self.function, "__name__", "function")


def as_kernels(kernel: Any, params: Any, n_views: int) -> Sequence[Kernel]:
    """One Kernel per view from the estimator's parameters."""
    functions = per_view(kernel, n_views, "kernel")
    settings = per_view(params, n_views, "kernel_params")
    known = sorted(kernel_metrics())
    kernels = []
    for number, (function, setting) in enumerate(zip(functions, settings)):
        if not callable(function) and function not in (*known, PRECOMPUTED):
            raise GinghamError(
                f"Unknown kernel {function!r} for view {number}: use one of {', '.join(known)}, "
                f"{PRECOMPUTED}, or a function of two matrices."
            )
        if setting is not None and not isinstance(setting, Mapping):
            raise GinghamError(f"kernel_params of view {number} must be a dict such as {{'gamma': 0.5}}.")
        kernels.append(Kernel(function, dict(setting or {}), f"view {number}"))
    return kernels


@savable
@dataclass(frozen=True, eq=False)
class ViewInputs:
    """What the weights of a score meet: the object (linear and precomputed kernels) or its kernel with anchors."""

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

    def _to_file(self) -> State:
        """The fields, sparse anchors in parts."""
        return {**fields_of(self), "anchors": None if self.anchors is None else to_parts(self.anchors)}

    @classmethod
    def _from_file(cls, state: State) -> Self:
        return cls(**{**state, "anchors": None if state["anchors"] is None else from_parts(state["anchors"])})


@savable
@dataclass(frozen=True, eq=False)
class ScoreFunction:
    """F(x) = inputs(x)·weights − offset, one column per component."""

    inputs: ViewInputs
    weights: Floats
    offset: Floats

    def __call__(self, view: Matrix) -> Floats:
        return np.asarray(self.inputs(view) @ self.weights) - self.offset


@dataclass(frozen=True, eq=False)
class Representation:
    """One view's centred, normalised kernel: held exactly, as features, or as products with the view.

    Objects that lack the view have zero rows.
    """

    inputs: ViewInputs
    mean: Floats  # (n_inputs,), over the training objects
    lift: Matrix | None  # (n_inputs, n_coefficients), from coefficients to weights on the inputs; None: the identity
    scale: float  # factor that goes with ``lift``
    rank: int  # at most so many directions have a positive eigenvalue
    present: Bools  # (n,), which objects have the view
    gram: Floats | None = None  # (n, n), the kernel itself
    features: Floats | None = None  # Φ, (n, p), when the kernel is held as ΦΦᵀ
    products: LinearView | None = None  # the view, when only products with it are taken

    def score_function(self, coefficients: Floats) -> ScoreFunction:
        """The function of new objects whose values on the training objects are K·coefficients."""
        weights = self._on_kernel(coefficients)
        if self.lift is not None:
            weights = np.asarray(self.lift @ weights)
        weights = self.scale * weights
        return ScoreFunction(self.inputs, weights, self.mean @ weights)

    def _on_kernel(self, coefficients: Floats) -> Floats:
        """Coefficients that sum to zero on the columns of a kernel: an object's kernel need not be centred then."""
        if self.gram is None:
            return coefficients
        return np.where(self.present[:, None], coefficients - coefficients[self.present].mean(axis=0), 0.0)

    def in_single_precision(self) -> Representation:
        """The same with a kernel matrix of half the size; to factor it costs about a third."""
        return self if self.gram is None else replace(self, gram=self.gram.astype(np.float32))

    @cached_property
    def decomposed(self) -> tuple[Floats, Floats]:
        """Features with K = ΦΦᵀ and the map that turns their weights into coefficients on K's columns.

        Φ = U √d and U/√d, both (n_samples, rank): weights w on Φ are the coefficients (U/√d) w on the columns of K.
        """
        if self.gram is None:
            raise ValueError("A view without a kernel matrix has nothing to decompose.")
        d, u = eigh(self.gram.astype(np.float64, copy=False))
        kept = d > d[-1] * len(d) * np.finfo(float).eps
        root = np.sqrt(d[kept])
        return u[:, kept] * root, u[:, kept] / root

    def part(self, train: Ints, test: Ints) -> tuple[Representation, Callable[[Floats], Floats]]:
        """The view of some objects, centred and normalised anew, and the scores of others from its coefficients."""
        present = self.present[train]
        if self.gram is not None:
            inside, outside = self.gram[np.ix_(train, train)], self.gram[np.ix_(test, train)]
            mean = centre(inside, present)
            scale = float(present.sum() / np.trace(inside))
            inside *= scale
            own = replace(self, present=present, gram=inside)
        elif self.features is not None:
            inside, outside = self.features[train], self.features[test]
            mean = inside[present].mean(axis=0)
            inside = (inside - mean) * present[:, None]
            scale = float(np.sqrt(present.sum() / sum_of_squares(inside)))
            inside *= scale
            own = replace(self, present=present, features=inside)
        else:
            raise ValueError("A view that is given as an operator cannot be subset.")

        def scores(coefficients: Floats) -> Floats:
            weights = own._on_kernel(coefficients)
            return np.asarray(scale * (outside @ weights - mean @ weights), dtype=np.float64)

        return own, scores


def centre(gram: Floats, present: Bools) -> Floats:
    """Centre a kernel matrix in place over the objects that have the view; returns their mean column."""
    absent = np.flatnonzero(~present)
    gram[absent] = gram[:, absent] = 0.0
    mean = gram[present].mean(axis=0) if len(absent) else gram.mean(axis=0)
    gram -= mean
    gram -= mean[:, None] - mean[present].mean()
    gram[absent] = gram[:, absent] = 0.0
    return np.asarray(mean)


def exact(view: Matrix, kernel: Kernel, present: Bools) -> Representation:
    """The n × n kernel itself."""
    gram = kernel.gram(view, present)
    total = float(np.trace(gram))
    mean = centre(gram, present)
    scale = 1.0 / _mean_diagonal(float(np.trace(gram)), total, int(present.sum()), kernel)
    gram *= scale
    rank = int(present.sum()) - 1
    if kernel.linear:  # k(x) = X x: the score is linear in x itself and needs no training object
        inputs, mean = ViewInputs(kernel, view.shape[1]), column_means(view) * (len(present) / present.sum())
        return Representation(inputs, mean, view.T, scale, min(view.shape[1], rank), present, gram=gram)
    inputs = ViewInputs(kernel, view.shape[1], None if kernel.precomputed else view)
    return Representation(inputs, mean, None, scale, rank, present, gram=gram)


def primal(view: Matrix, kernel: Kernel, dense: bool, present: Bools) -> Representation:
    """A linear kernel through X itself, as features (``dense``) or by products with X only."""
    n = int(present.sum())
    mean = column_means(view) * (len(present) / n)
    total = sum_of_squares(view)
    trace = total - n * float(mean @ mean)
    scale = float(np.sqrt(1.0 / _mean_diagonal(trace, total, n, kernel)))
    rank = min(view.shape[1], n - 1)
    inputs = ViewInputs(kernel, view.shape[1])
    if dense:
        features = scale * (densely(view) - mean) * present[:, None]
        return Representation(inputs, mean, None, scale, rank, present, features=features)
    products = LinearView.of(view, mean, scale, present)
    return Representation(inputs, mean, None, scale, rank, present, products=products)


def _mean_diagonal(trace: float, total: float, n: int, kernel: Kernel) -> float:
    """tr(K)/n of the centred kernel; refused when nothing of the uncentred ``total`` is left."""
    if not trace > np.finfo(float).eps * n * abs(total):
        raise GinghamError(f"All objects are identical in {kernel.name} (its centred kernel is zero): remove the view.")
    return trace / n
