"""The only place that knows formats: tuples, frames, matrices, AnnData become columns of ids and labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints, MatrixLike, TableLike
from gingham.errors import GinghamError

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

MISSING = ("implicit", "nan", "none")


class Tuples(NamedTuple):
    """Observed tuples: ids (N, d) and labels (N,); unpack as ``X, y``."""

    X: AnyArray
    y: AnyArray


class Columns(NamedTuple):
    """d columns of ids, each of length N, and their names."""

    columns: list[AnyArray]
    names: list[str]


def is_frame(X: object) -> TypeGuard[IntoDataFrame]:
    """Whether X is a pandas, polars or pyarrow table (anything narwhals knows)."""
    if isinstance(X, (np.ndarray, list, tuple)) or not hasattr(X, "columns"):
        return False  # narwhals need not be there for these
    import narwhals as nw

    return isinstance(nw.from_native(X, pass_through=True, eager_only=True), nw.DataFrame)


def as_frame(X: IntoDataFrame) -> nw.DataFrame[Any]:
    """A table of any library, to be read in one way."""
    import narwhals as nw

    return nw.from_native(X, eager_only=True)


def id_columns(X: TableLike) -> Columns:
    """One array of ids per mode, from a frame (its columns), an array or a list of tuples.

    Columns keep their own types: a string column beside an integer column stays a string column.
    """
    if sparse.issparse(X):
        raise GinghamError(
            "Sparse data was passed for X, which lists observed tuples (one row each, one id per mode). "
            "Turn a sparse matrix of labels into tuples with gingham.from_matrix(X, missing='implicit')."
        )
    if is_frame(X):
        frame = as_frame(X)
        _check_shape(frame.shape)
        names = [str(name) for name in frame.columns]
        return Columns([_series(frame[:, j], name) for j, name in enumerate(names)], names)
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        array = X
    elif hasattr(X, "__array__") and not isinstance(X, np.ndarray):
        array = np.asarray(X)
    else:
        array = _object_array(X)
    if array.ndim != 2:
        raise GinghamError(
            f"Expected 2D array, got {array.ndim}D array instead: X needs one row per observed tuple and one column "
            "per mode. Reshape your data with X.reshape(-1, 1) if there is a single mode."
        )
    if array.dtype.kind == "c":
        raise GinghamError("Complex data not supported: ids are names or whole numbers.")
    _check_shape(array.shape)
    columns = [_typed(array[:, j]) for j in range(array.shape[1])]
    return Columns(columns, [f"mode{j}" for j in range(array.shape[1])])


def _check_shape(shape: tuple[int, ...]) -> None:
    if shape[0] == 0:
        raise GinghamError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise GinghamError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _object_array(X: TableLike) -> AnyArray:
    if isinstance(X, np.ndarray):
        return X
    rows = list(cast("Iterable[Sequence[object]]", X))
    if not rows or not isinstance(rows[0], (list, tuple, np.ndarray)):
        return np.asarray(rows)
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise GinghamError(f"The rows of X have different lengths ({sorted(widths)[:3]}…): every tuple needs d ids.")
    array = np.empty((len(rows), widths.pop()), dtype=object)
    for i, row in enumerate(rows):
        array[i, :] = row
    return array


def _typed(column: AnyArray) -> AnyArray:
    """An object column that holds one plain type becomes an array of that type (fast to number)."""
    if column.dtype.kind != "O":
        return column
    kinds = {type(value) for value in column}
    if kinds and (kinds <= {int, np.int64, np.int32} or kinds <= {str, np.str_} or kinds <= {float, np.float64}):
        return np.array(column.tolist())
    if any(issubclass(kind, (dict, list, set)) for kind in kinds):
        kind = next(kind for kind in kinds if issubclass(kind, (dict, list, set)))
        # TypeError, as scikit-learn's contracts ask of an argument that cannot be an id at all.
        raise TypeError(f"argument must be a string or a number, not {kind.__name__!r}: ids must be hashable")
    return column


def _series(series: nw.Series[Any], name: str) -> AnyArray:
    values = series.to_numpy()
    if values.dtype.kind not in "iub" and series.null_count() > 0:  # with a null, whole numbers become others
        row = int(np.flatnonzero(series.is_null().to_numpy())[0])
        raise GinghamError(
            f"Column {name!r} has a missing id (null or NaN) in row {row}. Drop the row or name the item."
        )
    return _typed(values)


def from_frame(
    frame: IntoDataFrame, axes: Sequence[str], label: str, weight: str | None = None
) -> tuple[IntoDataFrame, AnyArray, AnyArray | None]:
    """Split a table into ids (a frame of the same kind), labels and weights (None without a column for them)."""
    table = as_frame(frame)
    wanted = [*axes, label, *([weight] if weight else [])]
    for name in wanted:
        if name not in table.columns:
            raise GinghamError(f"There is no column {name!r}; the table has {', '.join(map(repr, table.columns))}.")
    labels = _series(table[label], label)
    return table.select(list(axes)).to_native(), labels, None if weight is None else _series(table[weight], weight)


def from_matrix(matrix: MatrixLike, missing: str | None = None) -> Tuples:
    """The observed entries of a matrix or tensor as tuples of positions and their values.

    Parameters
    ----------
    matrix : ndarray of any dimension, scipy sparse matrix or array, or frame
    missing : {"implicit", "nan", "none"}
        What an absent entry means; there is no default, because a zero in a sparse matrix of ratings
        and a zero in a dense matrix of counts are different things.
        "implicit": entries that a sparse matrix does not store are missing (stored zeros are observed).
        "nan": NaN entries are missing. "none": every entry was observed, zeros too.

    Returns
    -------
    X : int array of shape (N, d), positions; y : array of shape (N,), values
    """
    if missing not in MISSING:
        raise GinghamError(
            "Say what absent entries mean: missing='implicit' (not stored = missing, sparse only), "
            "missing='nan' (NaN = missing) or missing='none' (all were observed, zeros included)."
        )
    if sparse.issparse(matrix):
        positions, values = _sparse_entries(matrix, missing)
    else:
        if missing == "implicit":
            raise GinghamError(
                "missing='implicit' is for sparse matrices; in a dense one mark missing entries as NaN (missing='nan')."
            )
        array = as_frame(matrix).to_numpy() if is_frame(matrix) else np.asarray(matrix)
        if array.ndim == 0 or array.size == 0:
            raise GinghamError("The matrix is empty.")
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
        observed = ~np.isnan(array) if missing == "nan" and array.dtype.kind == "f" else np.ones(array.shape, bool)
        positions = np.argwhere(observed)
        values = array[observed]
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        hint = " Use missing='nan' if NaN marks a missing entry." if np.isnan(values[at]) else ""
        raise GinghamError(f"Entry {tuple(int(p) for p in positions[at])} is {values[at]}.{hint}")
    if len(values) == 0:
        raise GinghamError("No entry of the matrix was observed.")
    return Tuples(positions, values)


def _sparse_entries(matrix: sparse.sparray, missing: str) -> tuple[Ints, Floats]:
    if missing == "none":
        dense = matrix.toarray()
        return np.argwhere(np.ones(dense.shape, bool)), dense.ravel()
    entries = matrix.tocoo()
    positions = np.column_stack([entries.row, entries.col]).astype(np.int64)
    values = entries.data
    if missing == "nan" and values.dtype.kind == "f":
        kept = ~np.isnan(values)
        if (kept.sum() + (~kept).sum()) < np.prod(matrix.shape):
            raise GinghamError(
                "missing='nan' on a sparse matrix is ambiguous: entries that are not stored are neither NaN nor "
                "values. Use missing='implicit' if they are missing, or a dense matrix if they are zeros."
            )
        positions, values = positions[kept], values[kept]
    return positions, values


def count_matrix(X: MatrixLike, model: str, allow_zero: bool = False) -> sparse.csr_array:
    """Counts as a csr_array of float64 without stored zeros; NaN, infinity and negative counts are refused."""
    matrix = sparse.csr_array(X, dtype=np.float64)
    matrix.sum_duplicates()
    wrong = ~np.isfinite(matrix.data) | (matrix.data < 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        row = int(np.searchsorted(matrix.indptr, at, side="right") - 1)
        value = matrix.data[at]
        place = f"row {row}, column {int(matrix.indices[at])}"
        if np.isnan(value):
            raise GinghamError(f"Input X contains NaN ({place}). A count that was not taken cannot be coded: drop it.")
        if np.isinf(value):
            raise GinghamError(f"Input X contains infinity (inf) in {place}. Counts are finite.")
        raise GinghamError(
            f"Negative values in data passed to {model}: {value:g} in {place}. Counts are never negative."
        )
    matrix.eliminate_zeros()
    if matrix.nnz == 0 and not allow_zero:
        raise GinghamError(f"All counts passed to {model} are zero: there is nothing to cluster.")
    return matrix


def from_tuples(
    X: TableLike, sample_weight: npt.ArrayLike | None = None
) -> tuple[sparse.csr_array, AnyArray, AnyArray]:
    """Pairs (N, 2) of ids as a sparse matrix of counts, with the ids of its rows and of its columns.

    Weights add up; a pair that is listed twice counts twice.
    """
    columns = id_columns(X)
    if len(columns.columns) != 2:
        raise GinghamError(f"Co-occurrence needs pairs: X has {len(columns.columns)} columns, not 2.")
    ids, codes = zip(*(np.unique(column, return_inverse=True) for column in columns.columns))
    weights = np.ones(len(codes[0])) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    shape = (len(ids[0]), len(ids[1]))
    matrix = sparse.coo_array((weights, (codes[0].ravel(), codes[1].ravel())), shape=shape).tocsr()
    return matrix, ids[0], ids[1]


def categorical_entries(X: TableLike) -> tuple[Ints, Ints, Ints, tuple[int, int], int]:
    """The observed entries of a table of categories: rows, columns, value codes, shape, most values a column has.

    NaN, None and nulls are missing. Values are numbered column by column.
    """
    columns = _category_columns(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        known = _few_numbers(X.T)
        if known is not None:
            return known
    rows, at, codes, most = [], [], [], 1
    for j, column in enumerate(columns):
        seen = np.flatnonzero(
            [not (v is None or v != v) for v in column] if column.dtype.kind == "O" else column == column
        )
        values, coded = np.unique(
            column[seen].astype(str) if column.dtype.kind == "O" else column[seen], return_inverse=True
        )
        rows.append(seen)
        at.append(np.full(len(seen), j))
        codes.append(coded.ravel())
        most = max(most, len(values))
    if not sum(map(len, rows)):
        raise GinghamError("Every entry of the table is missing.")
    return (
        np.concatenate(rows).astype(np.int32),
        np.concatenate(at).astype(np.int32),
        np.concatenate(codes).astype(np.int32),
        (len(columns[0]), len(columns)),
        most,
    )


def _few_numbers(columns: AnyArray) -> tuple[Ints, Ints, Ints, tuple[int, int], int] | None:
    """The same for a table of numbers (features, instances) with few different ones, all columns at once."""
    at, rows = np.nonzero(columns == columns)
    values, coded = np.unique(columns[at, rows], return_inverse=True)
    if not 0 < len(values) <= 64:
        return None
    present = np.zeros((len(columns), len(values)), dtype=bool)
    present[at, coded] = True
    codes = (present.cumsum(axis=1) - 1)[at, coded]
    shape = (columns.shape[1], len(columns))
    return rows.astype(np.int32), at.astype(np.int32), codes.astype(np.int32), shape, int(present.sum(axis=1).max())


def _category_columns(X: TableLike) -> list[AnyArray]:
    if sparse.issparse(X):
        raise GinghamError("Sparse tables are ambiguous here: mark missing entries as NaN in a dense table or a frame.")
    if is_frame(X):
        frame = as_frame(X)
        _check_shape(frame.shape)
        return [np.asarray(frame[:, j].to_numpy()) for j in range(frame.shape[1])]
    array = np.asarray(X)
    if array.ndim != 2:
        raise GinghamError(f"Expected 2D array, got {array.ndim}D array instead: a table has instances and features.")
    if array.dtype.kind == "c":
        raise GinghamError("Complex data not supported.")
    _check_shape(array.shape)
    return list(array.T)


def from_anndata(data: Any, missing: str | None = None, layer: str | None = None) -> Tuples:
    """Observed entries of an AnnData object as tuples (observation name, variable name) and values.

    Parameters
    ----------
    data : AnnData
    missing : {"implicit", "nan", "none"}
        What an absent entry means; see :func:`gingham.from_matrix`.
    layer : str, optional
        A layer in the place of ``data.X``.
    """
    for name in ("X", "obs_names", "var_names"):
        if not hasattr(data, name):
            raise GinghamError(f"{type(data).__name__} has no {name}; an AnnData object is needed.")
    if layer is not None and layer not in data.layers:
        raise GinghamError(f"There is no layer {layer!r}; there are {', '.join(map(repr, data.layers)) or 'none'}.")
    positions, values = from_matrix(data.X if layer is None else data.layers[layer], missing)
    X = np.empty(positions.shape, dtype=object)
    X[:, 0] = np.asarray(data.obs_names, dtype=object)[positions[:, 0]]
    X[:, 1] = np.asarray(data.var_names, dtype=object)[positions[:, 1]]
    return Tuples(X, values)


def to_anndata(model: Any, data: Any, key: str = "gingham") -> Any:
    """Write the clusters of a fitted model into an AnnData object, beside what it holds; returns the object.

    ``obs[key]`` and ``var[key]`` get the most probable clusters (−1 for names the model has never seen),
    ``obsm[key]`` and ``varm[key]`` the memberships (rows of NaN for those).

    Parameters
    ----------
    model : model of two modes fitted on `from_anndata` tuples, or CoOccurrenceClustering fitted on ``data.X``
    data : AnnData
    key : str
    """
    for name in ("obs_names", "var_names"):
        if not hasattr(data, name):
            raise GinghamError(f"{type(data).__name__} has no {name}; an AnnData object is needed.")
    sides = (("obs", "obsm", data.obs_names), ("var", "varm", data.var_names))
    for (table, matrices, names), (items, memberships) in zip(sides, _sides(model, data)):
        place = {str(item): at for at, item in enumerate(items)}
        at = np.array([place.get(str(name), -1) for name in names], dtype=np.int64)
        found = np.full((len(at), memberships.shape[1]), np.nan)
        found[at >= 0] = memberships[at[at >= 0]]
        clusters = np.full(len(at), -1, dtype=np.int64)
        clusters[at >= 0] = memberships.argmax(axis=1)[at[at >= 0]]
        getattr(data, table)[key] = clusters
        getattr(data, matrices)[key] = found
    return data


def _sides(model: Any, data: Any) -> list[tuple[Any, Any]]:
    """(items, memberships) of both modes."""
    if hasattr(model, "row_memberships_"):
        columns = model.column_memberships_
        if columns is None:
            raise GinghamError("Columns were left by themselves: there are no clusters of variables to write.")
        shape = (len(model.row_memberships_), len(columns))
        if shape != tuple(data.shape):
            raise GinghamError(f"The model was fitted on {shape[0]} × {shape[1]} counts; the data is {data.shape}.")
        return [(data.obs_names, model.row_memberships_), (data.var_names, columns)]
    posterior = getattr(model, "posterior_", None)
    if posterior is None or len(posterior.assign) != 2:
        raise GinghamError(f"{type(model).__name__} has no clusters of two modes to write into an AnnData object.")
    return [
        (mode.items, np.asarray(q, dtype=np.float64)) for mode, q in zip(posterior.structure.modes, posterior.assign)
    ]
