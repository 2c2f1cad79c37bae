"""Names for array types, used in every signature, and what lets one formula serve numpy and torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

ArrayLike = npt.ArrayLike  # numbers or names: arrays, series, lists
Seed = int | np.random.RandomState | None  # what scikit-learn calls random_state


class Frame(Protocol):
    """A data frame of any library, with named columns."""

    @property
    def columns(self) -> object: ...

    def __len__(self) -> int: ...


TableLike: TypeAlias = ArrayLike | Sequence[Sequence[object]] | Frame
"""Rows of a table: an array, a list of tuples, or a pandas, polars or pyarrow frame."""
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix | Frame
"""One number a row and column: an array, a scipy sparse matrix or a frame."""


def namespace(array: Any) -> Any:
    """numpy or torch, whichever the array belongs to; torch understands numpy's ``axis`` and ``keepdims``."""
    return sys.modules["torch"] if type(array).__module__ == "torch" else np


def beside(values: Any, array: Any) -> Any:
    """Values of any kind as an array of the kind of another, in the same place and of their own type."""
    xp = namespace(array)
    return np.asarray(values) if xp is np else xp.as_tensor(values, device=array.device)


def on_host(array: Any) -> AnyArray:
    """A numpy array of what may be a tensor."""
    return np.asarray(array) if namespace(array) is np else array.cpu().numpy()
