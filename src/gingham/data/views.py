"""Several descriptions of the same objects: one matrix per view, one row per object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, MatrixLike
from gingham.data.fit_rows import numbers_of_rows
from gingham.data.sample import Mode, Sample, need_unmasked
from gingham.errors import GinghamError
from gingham.lazy import lazy_module

if TYPE_CHECKING:
    import narwhals as nw
else:
    nw = lazy_module("narwhals")

Matrix: TypeAlias = Floats | sparse.csr_array
"""A dense float64 array or a scipy CSR array of float64, shape (n_objects, n_features)."""
Parameter = TypeVar("Parameter")


def as_views(
    views: Sequence[MatrixLike | None], at_least: int = 1, missing: bool = False, present: Bools | None = None
) -> list[Any]:
    """The views as float matrices with one number of rows, or a sentence about what is wrong.

    Row r of every view describes object r. At least so many are needed; with ``missing`` one may be None, a view that
    was not observed. ``present`` (n_objects, n_views) says which objects have which view: the rows of others are zero.
    """
    if not isinstance(views, (list, tuple)):
        raise GinghamError(f"Views come as a list, one matrix per view: [X1, X2]. A {type(views).__name__} was given.")
    if len(views) < at_least:
        raise GinghamError(f"{at_least} views or more are needed, {len(views)} given.")
    matrices = [
        None if missing and view is None
        else as_view(view, f"view {number}", None if present is None else ~present[:, number])
        for number, view in enumerate(views)
    ]  # fmt: skip
    rows = {number: m.shape[0] for number, m in enumerate(matrices) if m is not None}
    if not rows:
        raise GinghamError("Every view is None: at least one view must be observed.")
    if len(set(rows.values())) > 1:
        counts = ", ".join(f"view {number} has {count}" for number, count in rows.items())
        raise GinghamError(f"All views need the same number of rows, one per object, in the same order: {counts}.")
    return matrices


def objects_of(matrices: Sequence[Any]) -> Sample:
    """The objects of some views as tuples that only say which object it is: equal in all views, equal objects."""
    numbers = numbers_of_rows(matrices)
    return Sample((Mode("object", numbers),), (np.arange(len(numbers), dtype=np.int32),))


def which_views(present: ArrayLike | None, n_views: int) -> Bools | None:
    """Which objects have which view, as a Boolean matrix; None where all have all."""
    if present is None:
        return None
    table = np.asarray(present)
    if table.dtype != bool or table.ndim != 2 or table.shape[1] != n_views:
        raise GinghamError(
            f"present must be a Boolean matrix, one row per object and one column for each of {n_views} views; "
            f"shape {table.shape} of {table.dtype} was given."
        )
    if not table.any(axis=1).all():
        raise GinghamError(f"Object {int(np.argmin(table.any(axis=1)))} has no view: leave it out.")
    few = np.flatnonzero(table.sum(axis=0) < 3)
    if len(few):
        raise GinghamError(f"View {few[0]} describes fewer than three objects: leave it out.")
    return table


def as_view(values: MatrixLike, name: str, absent: Bools | None = None) -> Matrix:
    """One view as a float64 matrix; strings, NaN and wrong shapes are refused with their place."""
    if sparse.issparse(values):
        return _as_sparse(values, name, absent)
    need_unmasked(values, name)
    if isinstance(values, np.ndarray):
        return _as_dense(values, name, absent)
    frame = nw.from_native(values, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise GinghamError(f"{name} is a lazy frame: collect() it first.")
    if isinstance(frame, nw.DataFrame):
        for column, dtype in frame.schema.items():
            if not (dtype.is_numeric() or dtype == nw.Boolean):
                raise GinghamError(
                    f"Column {column!r} of {name} holds {dtype}, not numbers. "
                    "Encode it (one-hot, TfidfVectorizer, …) or leave it out."
                )
        values = frame.to_numpy()
    return _as_dense(cast("npt.ArrayLike", values), name, absent)


def feature_names(values: object) -> AnyArray | None:
    """Column names of a frame, None for anything without names."""
    if isinstance(values, np.ndarray) or sparse.issparse(values):
        return None
    frame = nw.from_native(values, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return np.asarray([str(column) for column in frame.columns], dtype=object)
    return None


def densely(view: Matrix) -> Floats:
    """The view as a dense array."""
    return view if isinstance(view, np.ndarray) else np.asarray(view.toarray())


def column_means(view: Matrix) -> Floats:
    """Mean of every feature, shape (n_features,)."""
    return np.asarray(view.mean(axis=0), dtype=np.float64).ravel()


def sum_of_squares(view: Matrix) -> float:
    """Σ x²: the trace of the linear kernel."""
    entries = view if isinstance(view, np.ndarray) else view.data
    return float(np.vdot(entries, entries))


def column_squares(view: Matrix) -> Floats:
    """Σ x² of every feature, shape (n_features,)."""
    squares = view * view if isinstance(view, np.ndarray) else view.multiply(view)
    return np.asarray(squares.sum(axis=0), dtype=np.float64).ravel()


def to_parts(view: Matrix) -> dict[str, object]:
    """The view as plain arrays, for a model file."""
    if isinstance(view, np.ndarray):
        return {"dense": view}
    return {"data": view.data, "indices": view.indices, "indptr": view.indptr, "shape": list(view.shape)}


def from_parts(parts: dict[str, Any]) -> Matrix:
    """What :func:`to_parts` took apart."""
    if "dense" in parts:
        return parts["dense"]
    return sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))


def per_view(value: Parameter | Sequence[Parameter], n_views: int, name: str) -> Sequence[Parameter]:
    """A parameter given once for all views, or as a list with one entry per view."""
    if not isinstance(value, (list, tuple)):
        return [cast("Parameter", value)] * n_views
    if len(value) != n_views:
        raise GinghamError(f"{name} has {len(value)} entries for {n_views} views: give one value, or one per view.")
    return value


def _as_sparse(values: sparse.sparray, name: str, absent: Bools | None) -> Matrix:
    if values.ndim != 2:
        raise GinghamError(f"{name} has {values.ndim} dimension(s); a view is a matrix, one row per object.")
    if values.dtype.kind not in "biuf":
        raise GinghamError(f"{name} is a sparse matrix of {values.dtype}; only real numbers are supported.")
    matrix = sparse.csr_array(values, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if absent is not None:
        matrix.data[np.repeat(_of_length(absent, matrix, name), np.diff(matrix.indptr))] = 0.0
    if not np.isfinite(matrix.data).all():
        entry = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise GinghamError(f"{name} has NaN or infinity in row {row}. Fill it in, or drop the object.")
    return _not_empty(matrix, name)


def _as_dense(values: npt.ArrayLike, name: str, absent: Bools | None) -> Floats:
    try:
        matrix = np.asarray(values)
        if matrix.dtype.kind == "c":
            raise GinghamError(f"{name} has complex numbers; only real numbers are supported.")
        matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, GinghamError):
            raise
        raise GinghamError(
            f"{name} is not a matrix of numbers ({error}). Convert text to numbers first, for example with "
            "scikit-learn's TfidfVectorizer."
        ) from None
    if matrix.ndim != 2:
        hint = " Use reshape(-1, 1) if each object has one number." if matrix.ndim == 1 else ""
        raise GinghamError(f"{name} has {matrix.ndim} dimension(s); a view is a matrix, one row per object.{hint}")
    if absent is not None:
        matrix[_of_length(absent, matrix, name)] = 0.0
    if not np.isfinite(matrix).all():
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(matrix)))
        what = "NaN" if np.isnan(matrix[row, column]) else "infinity"
        raise GinghamError(
            f"{name} has {what} in row {row}, column {column}. Fill it in, drop the object, or state with present= "
            "which objects have the view."
        )
    return _not_empty(matrix, name)


def _of_length(absent: Bools, matrix: Matrix, name: str) -> Bools:
    if len(absent) != matrix.shape[0]:
        raise GinghamError(f"present has {len(absent)} rows; {name} has {matrix.shape[0]}.")
    return absent


def _not_empty(matrix: Matrix, name: str) -> Matrix:
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise GinghamError(f"{name} is empty: shape {matrix.shape}.")
    return matrix
