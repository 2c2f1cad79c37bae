"""The only place that knows formats: tuples, frames, matrices, AnnData become columns of ids and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints, MatrixLike, TableLike
from gingham.data.sample import MOST_WEIGHT, Mode, default_names, need_unmasked
from gingham.errors import GinghamError

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

MISSING = ("implicit", "nan", "none")
WIDE = 2**26  # bytes: texts padded to their longest may take as much before it matters
FRAMES = ("pandas", "polars", "pyarrow")


class Tuples(NamedTuple):
    """Observations: ids (N, d) and labels (N,); unpack as ``X, y``."""

    X: AnyArray
    y: AnyArray


# Names of both sides of a matrix: by the names of the sides, rows first, or as a pair of lists
Names = Mapping[str, Sequence[object] | AnyArray] | Sequence[Sequence[object] | AnyArray | None] | None


class Labelled(NamedTuple):
    """A matrix without its names, the names of its two sides, and those of their items; None where there are none."""

    matrix: Any
    axes: tuple[str, str] | None
    items: tuple[AnyArray | None, AnyArray | None]


class Columns(NamedTuple):
    """d columns of ids, each of length N, and their names."""

    columns: list[Any]  # arrays, or what was numbered while it was read, `Coded`
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


def check_order(names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse columns of ids that have the names of known ones and stand in another order."""
    for name, own in zip(names, known):
        if name != own and name in known:
            raise GinghamError(
                f"Column {name!r} stands where the model has {own!r}: its columns are {', '.join(known)}, in this "
                "order."
            )


def id_columns(X: TableLike) -> Columns:
    """One array of ids per mode, from a frame (its columns), an array or a list of tuples.

    Columns keep their own types: a string column beside an integer column stays a string column.
    """
    if isinstance(X, Columns):
        return X
    if sparse.issparse(X):
        raise GinghamError(
            "Sparse data was passed for X, which lists observations (one row each, one id per mode). "
            "Convert a sparse matrix of labels with gingham.from_matrix(X, missing='implicit')."
        )
    if is_frame(X):
        frame = as_frame(X)
        _check_shape(frame.shape)
        names = [str(name) for name in frame.columns]
        return Columns([_series(frame[:, j], name) for j, name in enumerate(names)], names)
    need_unmasked(X, "X")
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        array = X
    elif hasattr(X, "__array__") and not isinstance(X, np.ndarray):
        array = np.asarray(X)
    else:
        array = _object_array(X)
    if array.ndim != 2:
        raise GinghamError(
            f"Expected 2D array, got {array.ndim}D array instead: X needs one row per observation and one column per "
            "mode. Reshape your data with X.reshape(-1, 1) if there is a single mode."
        )
    if array.dtype.kind == "c":
        raise GinghamError("Complex data not supported: ids are strings or integers.")
    _check_shape(array.shape)
    columns = [typed(array[:, j]) for j in range(array.shape[1])]
    return Columns(columns, default_names(array.shape[1]))


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
        raise GinghamError(
            f"The rows of X have different lengths ({sorted(widths)[:3]}…): every row needs the same number of ids."
        )
    array = np.empty((len(rows), widths.pop()), dtype=object)
    for i, row in enumerate(rows):
        array[i, :] = row
    return array


def typed(column: AnyArray) -> AnyArray:
    """An object column that holds one plain type becomes an array of that type (fast to number)."""
    if column.dtype.kind != "O":
        return column
    kinds = {type(value) for value in column}
    if kinds and all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        numbers = np.array(column.tolist())
        return numbers if numbers.dtype.kind in "iu" else column  # beyond 64 bits: floats, and two ids could be one
    if kinds and kinds <= {str, np.str_}:
        return np.array(column.tolist()) if _fit_one_width(column) else column
    if kinds and kinds <= {float, np.float64}:
        return np.array(column.tolist())
    if any(issubclass(kind, (dict, list, set)) for kind in kinds):
        kind = next(kind for kind in kinds if issubclass(kind, (dict, list, set)))
        # TypeError, as scikit-learn's contracts ask of an argument that cannot be an id at all.
        raise TypeError(f"argument must be a string or a number, not {kind.__name__!r}: ids must be hashable")
    return column


def _fit_one_width(column: AnyArray) -> bool:
    """Whether texts can stand in places of one width: numpy forgets a NUL at the end, and pads all to the longest."""
    lengths = [len(text) for text in column]
    padded = 4 * max(lengths) * len(lengths)
    return (padded < WIDE or padded < 16 * sum(lengths)) and "\0" not in "".join(column)


def column_of(frame: IntoDataFrame, name: str) -> AnyArray:
    """One column of a frame."""
    table = as_frame(frame)
    need_columns(table.columns, [name])
    return _series(table[name], name)


def need_columns(there: Sequence[str], wanted: Iterable[str]) -> None:
    """Refuse names that no column has."""
    for name in wanted:
        if name not in there:
            raise GinghamError(f"There is no column {name!r}; the table has {', '.join(map(repr, there))}.")


def _series(series: nw.Series[Any], name: str) -> AnyArray:
    values = np.empty(len(series), dtype=object)
    if str(series.dtype) in ("String", "Int128", "UInt128"):  # numpy has texts of one width, and at most 64 bits
        values[:] = series.to_list()
    else:
        values = series.to_numpy()
    if values.dtype.kind not in "iub" and series.null_count() > 0:  # with a null, whole numbers become others
        row = int(np.flatnonzero(series.is_null().to_numpy())[0])
        raise GinghamError(
            f"Column {name!r} has a missing id (null or NaN) in row {row}. Drop the row, or fill in the id."
        )
    return typed(values)


def frame_of(columns: Mapping[str, Sequence[object]], backend: str | None = None) -> Any:
    """Columns as a frame of the library asked for, or of the first that is installed."""
    kind = next((name for name in FRAMES if find_spec(name) is not None), None) if backend is None else backend
    if kind is None:
        raise GinghamError(f"A frame needs one of {', '.join(FRAMES)}: install one.")
    if kind not in FRAMES:
        raise GinghamError(f"backend={backend!r} is unknown; choose one of {', '.join(FRAMES)}.")
    import narwhals as nw

    return nw.from_dict(dict(columns), backend=kind).to_native()  # type: ignore[arg-type]


def frame_values(frame: IntoDataFrame) -> dict[str, list[object]]:
    """The columns of a frame as plain values, None where one is missing; dates become seconds."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    found: dict[str, list[object]] = {}
    for name in table.columns:
        series = table[name]
        if series.dtype.is_temporal():
            dated = seconds(series.to_numpy(), str(name))
            found[str(name)] = [None if np.isnan(value) else float(value) for value in dated]
        else:
            missing = series.is_null().to_list()
            values = series.to_list()
            found[str(name)] = [
                None if gone or (isinstance(value, float) and value != value) else value
                for value, gone in zip(values, missing)
            ]
    return found


def without_column(X: TableLike, column: str | int) -> tuple[TableLike, AnyArray | None]:
    """A table without one of its columns (by name in a frame, or by position), and that column; None if absent."""
    if isinstance(X, Columns):
        name = column if isinstance(column, str) else dict(enumerate(X.names)).get(column)
        if name not in X.names:
            return X, None
        kept = [(own, other) for own, other in zip(*X) if other != name]
        return Columns(*map(list, zip(*kept))), np.asarray(X.columns[X.names.index(name)])
    import narwhals as nw

    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        name = column if isinstance(column, str) else dict(enumerate(frame.columns)).get(column)
        if name not in frame.columns:
            return X, None
        return frame.drop(name).to_native(), frame[name].to_numpy()
    array = X if isinstance(X, np.ndarray) else _object_array(X)
    if isinstance(column, str) or array.ndim != 2 or not -array.shape[1] <= column < array.shape[1]:
        return X, None
    return np.delete(array, column, axis=1), array[:, column]


def seconds(times: npt.ArrayLike, name: str = "time") -> Floats:
    """Points in time as float64: numbers as they are, dates in seconds; not a number where one is missing."""
    column = np.asarray(times)
    if column.ndim != 1:
        raise GinghamError(f"{name!r} needs one point in time per row; got an array of shape {column.shape}.")
    if column.dtype.kind == "O" and any(hasattr(value, "year") for value in column):
        column = np.array(
            [np.datetime64("NaT") if value is None else value for value in column], dtype="datetime64[us]"
        )
    if column.dtype.kind == "M":
        found = column.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(column), np.nan, found)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise GinghamError(f"{name!r} holds {column[0]!r}: points in time are numbers or dates.") from None


def from_frame(
    frame: IntoDataFrame, axes: Sequence[str], label: str, weight: str | None = None
) -> tuple[IntoDataFrame, AnyArray, AnyArray | None]:
    """Split a table into ids (a frame of the same kind), labels and weights (None without a column for them).

    Examples
    --------
    >>> import pandas as pd
    >>> import gingham as gg
    >>> frame = pd.DataFrame({"user": ["ann", "bob"], "movie": ["Alien", "Heat"], "stars": [5, 3]})
    >>> X, y, weight = gg.from_frame(frame, ["user", "movie"], "stars")
    >>> list(X.columns), y, weight
    (['user', 'movie'], array([5, 3]), None)
    """
    table = as_frame(frame)
    need_columns(table.columns, [*axes, label, *([weight] if weight else [])])
    labels = _series(table[label], label)
    return table.select(list(axes)).to_native(), labels, None if weight is None else _series(table[weight], weight)


def from_matrix(matrix: MatrixLike, missing: str | None = None, names: Names = None) -> Tuples:
    """The observed entries of a matrix or tensor as rows of ids, and their values.

    Parameters
    ----------
    matrix : ndarray of any dimension, scipy sparse matrix or array, or frame
    missing : {"implicit", "nan", "none"}
        What an absent entry means; there is no default, because a zero in a sparse matrix of ratings
        and a zero in a dense matrix of counts are different things.
        "implicit": entries that a sparse matrix does not store are missing (stored zeros are observed).
        "nan": NaN entries are missing. "none": every entry was observed, zeros too.
    names : mapping from the name of a side to the names of its items, rows first, or a pair of lists, optional
        A frame brings its own: its columns, and its index or, where it holds text, its first column.

    Returns
    -------
    X : int array of shape (N, d), positions; of a matrix with names a table of them, (N, 2): a frame for a frame
    y : array of shape (N,), values

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X, y = gg.from_matrix(np.array([[1.0, np.nan], [3.0, 4.0]]), missing="nan")
    >>> X.tolist(), y.tolist()
    ([[0, 0], [1, 0], [1, 1]], [1.0, 3.0, 4.0])
    """
    if names is not None or is_frame(matrix):
        plain, axes, items = with_names(matrix, names)
        values = as_frame(plain).to_numpy() if is_frame(plain) else plain
        positions, y = from_matrix(values, missing)
        ids = [positions[:, at] if own is None else own[positions[:, at]] for at, own in enumerate(items)]
        return Tuples(_named_rows(ids, axes or default_names(2), matrix), y)
    if missing not in MISSING:
        raise GinghamError(
            "State what absent entries mean: missing='implicit' (not stored = missing, sparse only), "
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
        masked = np.ma.getmaskarray(matrix) if isinstance(matrix, np.ma.MaskedArray) else np.zeros(array.shape, bool)
        if missing == "none" and masked.any():
            place = tuple(np.argwhere(masked)[0].tolist())
            raise GinghamError(f"Entry {place} is masked, that is, missing: use missing='nan'.")
        observed = ~(masked | np.isnan(array)) if missing == "nan" and array.dtype.kind == "f" else ~masked
        positions = np.argwhere(observed)
        values = array[observed]
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        hint = " Use missing='nan' if NaN marks a missing entry." if np.isnan(values[at]) else ""
        raise GinghamError(f"Entry {tuple(int(p) for p in positions[at])} is {values[at]}.{hint}")
    if len(values) == 0:
        raise GinghamError("No entry of the matrix was observed.")
    return Tuples(positions, values)


def _named_rows(ids: Sequence[AnyArray], axes: Sequence[str], like: Any) -> Any:
    """Two columns of ids: a frame of the same library as a frame, an array of objects otherwise."""
    if is_frame(like):
        import narwhals as nw

        columns = {name: column.tolist() for name, column in zip(axes, ids)}
        return nw.from_dict(columns, backend=as_frame(like).implementation).to_native()
    X = np.empty((len(ids[0]), 2), dtype=object)
    X[:, 0], X[:, 1] = ids
    return X


def tuples_of(X: Any, y: Any) -> tuple[Any, Any]:
    """Rows of ids and labels as they are; a wide frame or an AnnData object without labels as its observed entries."""
    if y is not None:
        return X, y
    if all(hasattr(X, name) for name in ("X", "obs_names", "var_names")):
        return from_anndata(X, "implicit" if sparse.issparse(X.X) else "nan")
    if not is_frame(X):
        return X, y
    numbers = as_frame(with_names(X).matrix)
    if numbers.shape[1] and all(kind.is_numeric() for kind in numbers.schema.values()):
        return from_matrix(X, "nan")
    return X, y


def with_names(X: Any, names: Names = None) -> Labelled:
    """A matrix, frame or AnnData object as a plain matrix and the names that it brings, or that are given beside it.

    A frame names its columns; its rows are named by its index (pandas), or by its first column where that holds text.
    """
    if names is not None:
        given = tuple(names.values()) if isinstance(names, Mapping) else tuple(names)
        if len(given) != 2:
            raise GinghamError(f"names= has {len(given)} lists; a matrix has two sides: {{'row': […], 'column': […]}}.")
        axes = tuple(str(name) for name in names) if isinstance(names, Mapping) else None
        own = with_names(X)
        items = tuple(kept if new is None else _ids(list(new)) for new, kept in zip(given, own.items))
        return Labelled(own.matrix, cast("tuple[str, str] | None", axes or own.axes), (items[0], items[1]))
    if all(hasattr(X, name) for name in ("X", "obs_names", "var_names")):
        return Labelled(X.X, ("obs", "var"), (_ids(list(X.obs_names)), _ids(list(X.var_names))))
    if not is_frame(X):
        return Labelled(X, None, (None, None))
    import narwhals as nw

    frame = as_frame(X)
    first = frame[:, 0] if frame.shape[1] else None
    index = nw.maybe_get_index(frame)
    rows, row_name, matrix = None, None, X
    if index is not None and not (index.dtype.kind == "i" and list(index[:3]) == list(range(min(3, len(index))))):
        rows, row_name = _ids(list(index)), index.name
    elif first is not None and frame.shape[1] > 1 and not (first.dtype.is_numeric() or first.dtype == nw.Boolean):
        rows, row_name = _ids(first.to_list()), first.name
        matrix = frame[:, 1:].to_native()
    columns = as_frame(matrix).columns
    column_name = getattr(getattr(X, "columns", None), "name", None)
    axes = (str(row_name or "row"), str(column_name or "column"))
    return Labelled(matrix, axes, (rows, _ids(list(columns))))


def _ids(values: list[Any]) -> AnyArray:
    """An array of ids: of one type where all are alike, of objects otherwise."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return typed(column)


def _sparse_entries(matrix: sparse.sparray, missing: str) -> tuple[Ints, Floats]:
    if missing == "none":
        dense = matrix.toarray()
        return np.argwhere(np.ones(dense.shape, bool)), dense.ravel()
    entries = added_up(matrix)
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


def added_up(matrix: sparse.sparray) -> sparse.coo_array:
    """The entries of a sparse matrix, those that are listed several times added up: that is what it means by them."""
    once = matrix.format == "csr" and matrix.has_canonical_format  # sorted, too: nothing to do, and sorting takes long
    entries = sparse.coo_array(matrix, copy=True)
    if not once:
        entries.sum_duplicates()
    return entries


def count_matrix(X: MatrixLike, model: str, allow_zero: bool = False) -> sparse.csr_array:
    """Counts as a csr_array of float64 without stored zeros; NaN, infinity and negative counts are refused."""
    need_unmasked(X, "X")
    matrix = sparse.csr_array(X, dtype=np.float64)
    matrix.sum_duplicates()

    def place(at: int) -> str:
        row = int(np.searchsorted(matrix.indptr, at, side="right") - 1)
        return f"row {row}, column {int(matrix.indices[at])}"

    check_counts(matrix.data, place, model, allow_zero)
    matrix.eliminate_zeros()
    return matrix


def check_counts(counts: Floats, place: Callable[[int], str], model: str, allow_zero: bool = False) -> None:
    """Refuse counts that are missing, infinite or negative, by their place, and those that add up to too much or 0."""
    wrong = ~np.isfinite(counts) | (counts < 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        if np.isnan(counts[at]):
            raise GinghamError(f"Input X contains NaN ({place(at)}). Counts cannot be missing: drop the entry.")
        if np.isinf(counts[at]):
            raise GinghamError(f"Input X contains infinity (inf) in {place(at)}. Counts are finite.")
        raise GinghamError(
            f"Negative values in data passed to {model}: {counts[at]:g} in {place(at)}. Counts are never negative."
        )
    if counts.size and (counts.max() > MOST_WEIGHT or counts.sum() > MOST_WEIGHT):
        raise GinghamError(
            f"The counts passed to {model} add up to more than 2**53 (the largest is {counts.max():g}), where "
            "integers are no longer exact in double precision. Divide all of them by a number."
        )
    if not counts.any() and not allow_zero:
        raise GinghamError(f"All counts passed to {model} are zero: there is nothing to cluster.")


def from_pairs(X: TableLike, sample_weight: npt.ArrayLike | None = None) -> tuple[sparse.csr_array, AnyArray, AnyArray]:
    """Pairs (N, 2) of ids as a sparse matrix of counts, with the ids of its rows and of its columns.

    Weights add up; a pair that is listed twice counts twice.

    Examples
    --------
    >>> import gingham as gg
    >>> counts, rows, columns = gg.from_pairs([["ann", "tea"], ["bob", "tea"], ["bob", "tea"]])
    >>> counts.toarray(), rows, columns
    (array([[1.],
           [2.]]), array(['ann', 'bob'], dtype='<U3'), array(['tea'], dtype='<U3'))
    """
    columns = id_columns(X)
    if len(columns.columns) != 2:
        raise GinghamError(f"Co-occurrence needs pairs: X has {len(columns.columns)} columns, not 2.")
    modes = [Mode.of(column, name) for column, name in zip(*columns)]
    codes = [mode.encode(column) for mode, column in zip(modes, columns.columns)]
    weights = np.ones(len(codes[0])) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    matrix = sparse.coo_array((weights, tuple(codes)), shape=(modes[0].n_items, modes[1].n_items)).tocsr()
    return matrix, modes[0].items, modes[1].items


def categorical_entries(X: TableLike) -> tuple[Ints, Ints, Ints, tuple[int, int], int]:
    """The observed entries of a table of categories: rows, columns, value codes, shape, most values a column has.

    NaN, None and nulls are missing. Values are numbered column by column.
    """
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(object if X.dtype.kind not in "biuf" else np.float64), np.nan)
    columns = _category_columns(X)
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


def category_names(X: TableLike) -> list[list[str]]:
    """The values of every column in the order of their codes in `categorical_entries`, as text."""
    found = []
    for column in _category_columns(X):
        seen = [v for v in column.tolist() if not (v is None or v != v)]
        texts = sorted({str(v) for v in seen}) if column.dtype.kind == "O" else map(str, np.unique(seen).tolist())
        found.append([text.removesuffix(".0") for text in texts])
    return found


def _category_columns(X: TableLike) -> list[AnyArray]:
    if sparse.issparse(X):
        raise GinghamError("Sparse tables are ambiguous here: mark missing entries as NaN in a dense table or a frame.")
    if is_frame(X):
        frame = as_frame(X)
        _check_shape(frame.shape)
        return [np.asarray(frame[:, j].to_numpy()) for j in range(frame.shape[1])]
    array = np.asarray(X)
    if array.ndim != 2:
        raise GinghamError(
            f"Expected 2D array, got {array.ndim}D array instead: a table has instances and features. "
            "Reshape your data with reshape(1, -1) if it is one instance."
        )
    if array.dtype.kind == "c":
        raise GinghamError("Complex data not supported.")
    _check_shape(array.shape)
    return list(array.T)


def from_anndata(data: Any, missing: str | None = None, layer: str | None = None) -> Tuples:
    """The observed entries of an AnnData object as rows (observation name, variable name), and their values.

    Parameters
    ----------
    data : AnnData
    missing : {"implicit", "nan", "none"}
        What an absent entry means; see :func:`gingham.from_matrix`.
    layer : str, optional
        A layer in the place of ``data.X``.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> import gingham as gg
    >>> cells = SimpleNamespace(X=np.array([[3, 0], [0, 2]]), obs_names=["c1", "c2"], var_names=["geneA", "geneB"])
    >>> X, y = gg.from_anndata(cells, missing="none")  # an AnnData object has these attributes
    >>> X[0].tolist(), y.tolist()
    (['c1', 'geneA'], [3, 0, 0, 2])
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
    model : model of two modes fitted on `from_anndata` observations, or CoOccurrenceClustering fitted on ``data.X``
    data : AnnData
    key : str

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> import gingham as gg
    >>> names = {"obs_names": [f"c{i}" for i in range(40)], "var_names": [f"g{j}" for j in range(30)]}
    >>> tables = {"obs": {}, "var": {}, "obsm": {}, "varm": {}}
    >>> counts = np.random.default_rng(0).poisson(np.kron([[3, 1], [1, 3]], np.ones((20, 15))))
    >>> data = SimpleNamespace(X=counts, shape=counts.shape, **names, **tables)  # in place of an AnnData object
    >>> model = gg.CoOccurrenceClustering(2, 2, random_state=0).fit(counts)
    >>> len(set(gg.to_anndata(model, data).obs["gingham"]))
    2
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
    if hasattr(model, "memberships_"):
        rows, columns = model.memberships_
        if columns is None:
            raise GinghamError("The columns were not clustered: there are no clusters of variables to write.")
        shape = (len(rows), len(columns))
        if shape != tuple(data.shape):
            raise GinghamError(f"The model was fitted on {shape[0]} × {shape[1]} counts; the data is {data.shape}.")
        return [(data.obs_names, rows), (data.var_names, columns)]
    posterior = getattr(model, "posterior_", None)
    if posterior is None or len(posterior.assign) != 2:
        raise GinghamError(f"{type(model).__name__} has no clusters of two modes to write into an AnnData object.")
    return [
        (mode.items, np.asarray(q, dtype=np.float64)) for mode, q in zip(posterior.structure.modes, posterior.assign)
    ]
