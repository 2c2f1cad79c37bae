"""How alike are two objects of one view? Kernels by name, as a function, or computed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels

from gingham.arrays import Floats
from gingham.data.views import Matrix, per_view
from gingham.errors import GinghamError
from gingham.storage import State, savable

PRECOMPUTED = "precomputed"


@savable
@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel function with its parameters.

    Attributes
    ----------
    function : str or callable
        A name known to ``sklearn.metrics.pairwise_kernels``, "precomputed", or a function of two matrices
        (m, d) and (n, d) that returns the (m, n) kernel values.
    params : mapping
        Keyword arguments of the function, for instance ``{"gamma": 0.5}``.
    name : str
        The view, for messages.
    """

    function: str | Callable[..., Floats]
    params: Mapping[str, Any] = field(default_factory=dict)
    name: str = "the view"

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
