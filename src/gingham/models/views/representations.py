"""Kernels, and what stands for one view while components are sought: its kernel matrix, or features with K = ΦΦᵀ.

All kernels are centred and divided by their mean diagonal, so that one ridge means the same for every view.
Whatever stands for a view, the score of a new object is ``inputs(x) @ weights − offset``: centring out of
sample is the offset, since coefficients found on centred kernels sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels

from gingham.arrays import Floats, Ints
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

    def to_file(self) -> State:
        if not isinstance(self.function, str):
            raise GinghamError(f"The kernel of {self.name} is a function, which a model file cannot hold.")
        return {"function": self.function, "params": dict(self.params), "name": self.name}

    @classmethod
    def from_file(cls, state: State) -> Self:
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

    def gram(self, view: Matrix) -> Floats:
        """The kernel among the training objects, shape (n, n); a precomputed one is checked and copied."""
        if not self.precomputed:
            return self.between(view, view)
        if view.shape[0] != view.shape[1]:
            raise GinghamError(
                f"The precomputed kernel of {self.name} must be square, one row and column per object; "
                f"its shape is {view.shape}."
            )
        values = np.array(view if isinstance(view, np.ndarray) else view.toarray(), dtype=np.float64)
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

    def to_file(self) -> State:
        """The fields, sparse anchors in parts."""
        return {**fields_of(self), "anchors": None if self.anchors is None else to_parts(self.anchors)}

    @classmethod
    def from_file(cls, state: State) -> Self:
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
    """One view's centred, normalised kernel: held exactly, as features, or as products with the view."""

    inputs: ViewInputs
    mean: Floats  # (n_inputs,), over the training objects
    lift: Matrix | None  # (n_inputs, n_coefficients), from coefficients to weights on the inputs; None: the identity
    scale: float  # factor that goes with ``lift``
    rank: int  # at most so many directions have a positive eigenvalue
    gram: Floats | None = None  # (n, n), the kernel itself
    features: Floats | None = None  # Φ, (n, p), when the kernel is held as ΦΦᵀ
    products: LinearView | None = None  # the view, when only products with it are taken

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
        return ScoreFunction(self.inputs, weights, self.mean @ weights)


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
        return Representation(ViewInputs(kernel, view.shape[1]), column_means(view), view.T, scale, rank, gram=gram)
    inputs = ViewInputs(kernel, view.shape[1], None if kernel.precomputed else view)
    return Representation(inputs, mean, None, scale, len(gram) - 1, gram=gram)


def nystroem(view: Matrix, kernel: Kernel, landmarks: Ints) -> Representation:
    """Features Φ = k(X, L) k(L, L)^{−½} from a few landmark objects L; K ≈ ΦΦᵀ."""
    anchors = view[landmarks]
    columns: Matrix | None = None
    inputs, mean = ViewInputs(kernel, view.shape[1]), column_means(view)
    if kernel.precomputed:
        values = kernel.gram(view)[:, landmarks]
        among, columns = values[landmarks], np.eye(view.shape[1])[:, landmarks]
    else:
        values, among = kernel.between(view, anchors), kernel.between(anchors, anchors)
        if kernel.linear:
            columns = anchors.T
        else:
            inputs, mean = ViewInputs(kernel, view.shape[1], anchors), values.mean(axis=0)
    d, u = eigh(among)
    kept = d > max(d[-1], 0.0) * len(d) * np.finfo(float).eps
    root = u[:, kept] / np.sqrt(d[kept])
    features = values @ root
    total = sum_of_squares(features)
    features -= features.mean(axis=0)
    scale = float(np.sqrt(1.0 / _mean_diagonal(sum_of_squares(features), total, len(features), kernel)))
    lift = root if columns is None else np.asarray(columns @ root)
    return Representation(inputs, mean, lift, scale, features.shape[1], features=scale * features)


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
        return Representation(ViewInputs(kernel, view.shape[1]), mean, None, scale, rank, features=features)
    products = LinearView.of(view, mean, scale)
    return Representation(ViewInputs(kernel, view.shape[1]), mean, None, scale, rank, products=products)


def _mean_diagonal(trace: float, total: float, n: int, kernel: Kernel) -> float:
    """tr(K)/n of the centred kernel; refused when nothing of the uncentred ``total`` is left."""
    if not trace > np.finfo(float).eps * n * abs(total):
        raise GinghamError(
            f"All objects look the same in {kernel.name} (its centred kernel is zero): leave the view out."
        )
    return trace / n
