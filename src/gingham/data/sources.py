"""One door for rows, wherever they are kept: in memory, in files, in a database, in an Arrow stream.

What fits into memory becomes a frame. The columns of anything larger are numbered while they are read and written to
unnamed files, and the fit is made of these as it would be made of columns in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from glob import glob
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gingham.arrays import AnyArray
from gingham.data.adapt import Columns, as_frame, column_of, from_frame, is_frame, need_columns
from gingham.data.databases import Query, is_query
from gingham.data.sample import Coded, distinct
from gingham.engine.files import BLOCK, available_memory, mapped
from gingham.errors import GinghamError

if TYPE_CHECKING:
    import polars as pl

ROW = 200  # bytes of memory that a fit takes for each observation, about
FIRST_LINE = 2**20  # bytes within which the first line of a text file ends
AT_ONCE = 2**26  # bytes of a file that is read as a whole, as the command line reads it
BATCH = 2**20  # rows


class Rows(NamedTuple):
    """What a fit is given: ids, labels and weights."""

    X: Any
    y: Any
    weight: Any


def opened(X: Any, y: Any = None, sample_weight: Any = None, whole: bool = False) -> Rows:
    """The rows of paths, a query, a stream or a lazy frame, of which y and sample_weight name columns.

    Of a frame, they may name columns as well. Anything else is as it was given. ``whole`` asks for a frame, however
    large. A dask frame is read partition by partition, each computed on its cluster.
    """
    stream = is_stream(X)
    if not stream and not (is_frame(X) and (isinstance(y, str) or isinstance(sample_weight, str))):
        return Rows(X, y, sample_weight)
    X, y, sample_weight = with_columns(X, label=y, weight=sample_weight)
    if not stream:
        return _split(X, y, sample_weight)
    read, chunks, room = list[Any](), chunks_of(X, {y, sample_weight}), available_memory()
    for chunk in chunks:
        if read and chunk.columns != read[0].columns:
            raise GinghamError(f"Parts of one table have other columns: {read[0].columns} and {chunk.columns}.")
        read.append(chunk)
        if not whole and sum(ROW * len(part) + 2 * part.estimated_size() for part in read) > room:
            return spilled(chain(read, chunks), y, sample_weight)
    import polars as pl

    if not read:
        raise GinghamError("The table has no rows.")
    return _split(pl.concat(read, how="vertical_relaxed"), y, sample_weight)


def _split(frame: Any, label: str | None, weight: str | None) -> Rows:
    axes = [name for name in as_frame(frame).columns if name not in (label, weight)]
    if label is not None:
        return Rows(*from_frame(frame, axes, label, weight))
    return Rows(as_frame(frame).select(axes).to_native(), None, weight and column_of(frame, weight))


def with_columns(table: Any, **columns: Any) -> tuple[Any, ...]:
    """A table with what was given beside it, which a dask frame takes in, and the names of these columns."""
    for name, column in columns.items():
        if hasattr(table, "to_delayed") and hasattr(column, "to_delayed"):
            columns[name] = own = str(column.name or name)
            table = table.assign(**{own: column})
        elif not (column is None or isinstance(column, str)):
            raise GinghamError(f"The {name}s of a table in files, a database or partitions are named: give the column.")
    return (table, *columns.values())


def is_scattered(X: object) -> bool:
    """Whether X is a dask frame or a list of delayed frames."""
    if isinstance(X, list | tuple):
        return bool(X) and all(hasattr(part, "__dask_graph__") for part in X)
    return hasattr(X, "to_delayed")


def is_stream(X: object) -> bool:
    """Whether X is read rather than held: a path or several, the address of a query, a stream, a lazy or dask frame."""
    if isinstance(X, str | PathLike) or is_scattered(X):
        return True
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(part, str | PathLike) for part in X)
    return type(X).__name__ == "LazyFrame" or (hasattr(X, "__arrow_c_stream__") and not is_frame(X))


def chunks_of(source: Any, named: set[str | None]) -> Iterator[pl.DataFrame]:
    """The rows of a source, some at a time; ``named`` are its columns that hold no ids."""
    try:
        import polars as pl
    except ImportError:
        raise GinghamError("Reading tables needs polars: pip install gingham[cli].") from None
    if isinstance(source, str | PathLike):
        source = [source]
    if is_scattered(source):
        for part in source.to_delayed() if hasattr(source, "to_delayed") else source:
            yield pl.from_pandas(part.compute())
    elif isinstance(source, list | tuple):
        for part in source:
            if is_query(part):
                yield from Query.of(part).batches()
            else:
                for path in _files(fspath(part)):
                    yield from _unchanged(path, lambda name: name not in named)
    elif hasattr(source, "collect_batches"):
        yield from source.collect_batches(chunk_size=BATCH)
    else:
        import pyarrow as pa

        yield from map(pl.DataFrame, pa.RecordBatchReader.from_stream(source))


def _files(name: str) -> list[str]:
    """A file, those of a pattern, or the Parquet files of a folder."""
    found = sorted(glob(name)) if any(sign in name for sign in "*?[") and not Path(name).exists() else [name]  # noqa: PTH207
    if Path(name).is_dir():
        found = sorted(map(str, Path(name).glob("**/*.parquet")))
    if not found:
        raise GinghamError(f"{name!r} names no files{': it has no *.parquet' if Path(name).is_dir() else ''}.")
    return found


def _unchanged(path: str, is_id: Callable[[str], bool]) -> Iterator[pl.DataFrame]:
    """The rows of one file, which must stay as it is while it is read."""
    import polars as pl

    from gingham.data.table_files import format_of, read_table, separator_of

    def state() -> tuple[int, int]:
        facts = Path(path).stat()
        return facts.st_size, facts.st_mtime_ns

    if not Path(path).is_file():
        raise GinghamError(f"There is no file {path!r}.")
    before, kind = state(), format_of(path, None)
    if before[0] <= AT_ONCE or kind == "excel" or path.endswith(".gz"):
        yield read_table(path, kind, is_id)
    else:
        try:
            if kind == "parquet":
                frame = pl.scan_parquet(path)
            elif kind == "ndjson":
                frame = pl.scan_ndjson(path)
            elif kind == "arrow":
                frame = pl.scan_ipc(path)
            else:
                with Path(path).open("rb") as file:
                    separator = "\t" if kind == "tsv" else separator_of(file.read(FIRST_LINE))
                names = pl.scan_csv(path, separator=separator).collect_schema().names()
                texts = {name: pl.String for name in names if is_id(name)}
                frame = pl.scan_csv(path, separator=separator, schema_overrides=texts, infer_schema_length=100_000)
            yield from frame.collect_batches(chunk_size=BATCH)
        except pl.exceptions.PolarsError as error:
            raise GinghamError(f"{path!r} cannot be read as {kind}: {str(error).splitlines()[0]}") from None
    if state() != before:
        raise GinghamError(f"{path!r} changed while it was read: wait until it is written, and fit again.")


def spilled(chunks: Iterator[pl.DataFrame], label: str | None, weight: str | None) -> Rows:
    """Numbered columns in files of rows that memory does not hold."""
    import polars as pl

    columns: dict[str, _Column] = {}
    n_rows = 0
    for chunk in chunks:
        need_columns(chunk.columns, [name for name in (label, weight) if name is not None])
        for name in chunk.columns:
            plain = name in (label, weight) and chunk[name].dtype.is_numeric()
            column = columns.setdefault(name, _Column(name, plain))
            column.add(chunk[name].cast(pl.Float64) if plain and name == weight else chunk[name], n_rows)
        n_rows += len(chunk)
    ids = [name for name in columns if name not in (label, weight)]
    X = Columns([columns[name].coded() for name in ids], ids)
    y = None if label is None else columns[label].values()
    return Rows(X, y, None if weight is None else columns[weight].values())


class _Column:
    """A column that goes to a file as it is read: numbers as they are, anything else numbered."""

    def __init__(self, name: str, plain: bool) -> None:
        self.name, self.plain = name, plain
        self.file = tempfile.TemporaryFile(prefix="gingham-")  # noqa: SIM115  # it lives as long as what is made of it
        self.known: dict[object, int] = {}
        self.n_rows = 0
        self.dtype: Any = None

    def add(self, series: pl.Series, before: int) -> None:
        import polars as pl

        if series.null_count():
            row = before + int(np.flatnonzero(series.is_null().to_numpy())[0])
            raise GinghamError(f"Column {self.name!r} has nothing in row {row}. Drop the row, or complete it.")
        self.n_rows += len(series)
        if self.plain:
            values = series.to_numpy()
            self.dtype = values.dtype if self.dtype is None else self.dtype
            values = values.astype(self.dtype, copy=False)
        else:
            self.dtype = series.dtype
            unique = series.unique()
            codes = np.array([self.known.setdefault(value, len(self.known)) for value in unique.to_list()], np.int32)
            values = series.replace_strict(unique, codes, return_dtype=pl.Int32).to_numpy()
        np.ascontiguousarray(values).tofile(self.file)

    def values(self) -> AnyArray:
        """The column as an array."""
        if not self.plain:
            return np.asarray(self.coded())
        self.file.flush()
        return mapped(self.file, self.dtype, self.n_rows)

    def coded(self) -> Coded:
        """The column as numbers of its different values."""
        import polars as pl

        from gingham.data.table_files import text_as_ids

        different = pl.Series(self.name, list(self.known), dtype=self.dtype)
        if self.dtype == pl.String:
            different = text_as_ids(different)
        ids = column_of(different.to_frame(), self.name)
        items = distinct(ids, self.name)
        place = {value: at for at, value in enumerate(items.tolist())}
        rank = np.array([place[value] for value in ids.tolist()], dtype=np.int32)
        self.file.flush()
        codes = mapped(self.file, np.int32, self.n_rows)
        for start in range(0, self.n_rows, BLOCK):
            codes[start : start + BLOCK] = rank[codes[start : start + BLOCK]]
        return Coded(items, codes)
