"""Names for array types, used in every signature."""

from __future__ import annotations

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
