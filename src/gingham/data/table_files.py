"""Tables from files: CSV, TSV, Parquet, NDJSON, Excel, gzipped or not, or from standard input."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from gingham.arrays import nearest
from gingham.data import databases
from gingham.data.answers import NO_ANSWER, answers_of
from gingham.errors import GinghamError
from gingham.files import need_table

FORMATS = ("csv", "tsv", "parquet", "arrow", "ndjson", "excel")
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
} | dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "excel")
SEPARATORS = ",;\t|"  # of the columns of a CSV file: the one that its first line has most of
MISSING = (*NO_ANSWER, "none")  # words that stand for a missing number, in any case


def read_table(
    source: str,
    kind: str | None = None,
    is_id: Callable[[str], bool] = lambda name: False,
    data: bytes | None = None,
) -> pl.DataFrame:
    """A whole table; ``-`` reads standard input (CSV unless ``kind`` says otherwise).

    ``is_id`` says which columns hold ids: a text file has no types, and their text is kept. ``data`` are the bytes of
    the source where they are at hand, from `content_of`: standard input can be read but once.
    """
    data = content_of(source) if data is None else data
    kind = format_of(source, kind)
    shown = "standard input" if source == "-" else databases.printable(source)
    if not data.strip():
        raise GinghamError(f"{shown} is empty.")
    try:
        if kind == "parquet":
            _try_parquet(data, shown)
            table = pl.read_parquet(io.BytesIO(data))
        elif kind == "arrow":
            table = pl.read_ipc(io.BytesIO(data))
        elif kind == "ndjson":
            table = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        elif kind == "excel":
            table = pl.read_excel(io.BytesIO(data), engine="calamine", raise_if_empty=False)
        else:
            table = _read_text(data, "\t" if kind == "tsv" else None, is_id, shown)
    except ModuleNotFoundError:
        raise GinghamError(f"{shown} is an Excel file: install gingham[excel] to read it, or save it as CSV.") from None
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise _unreadable(shown, kind, str(error)) from None
    except BaseException as error:  # a panic inside polars is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise _unreadable(shown, kind, str(error)) from None
    if table.height == 0:
        raise GinghamError(f"{shown} has column names but no rows.")
    return table


def _unreadable(shown: str, kind: str, reason: str) -> GinghamError:
    if "utf-8" in reason:
        return GinghamError(f'{shown} is not encoded in UTF-8; save it as UTF-8 (as Excel\'s "CSV UTF-8").')
    first = (reason.strip().splitlines() or ["it is damaged"])[0].rstrip(".")
    return GinghamError(f"{shown} cannot be read as {kind}: {first}. Is --format right?")


TRY_PARQUET = """
import sys, polars
try:
    polars.read_parquet(sys.stdin.buffer.read())
except Exception as error:
    sys.stdout.write(str(error))
    sys.exit(3)
"""


def _try_parquet(data: bytes, shown: str) -> None:
    """Read a Parquet file in another process first.

    A damaged one can ask for more memory than any machine has, and then polars ends the whole process, without a word
    that Python could catch.
    """
    if not sys.executable:
        return
    tried = subprocess.run([sys.executable, "-c", TRY_PARQUET], input=data, capture_output=True, check=False)
    if tried.returncode:
        raise _unreadable(shown, "parquet", tried.stdout.decode("utf-8", "replace") if tried.returncode == 3 else "")


def _read_text(data: bytes, separator: str | None, is_id: Callable[[str], bool], shown: str) -> pl.DataFrame:
    """A CSV or TSV file; the types of columns other than ids follow from all their values."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise GinghamError(f'{shown} is in UTF-16; save it as UTF-8 (as Excel\'s "CSV UTF-8").')
    if b"\0" in data[:4096]:  # ids of a text may hold one, too
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            raise _unreadable(shown, "csv", "it holds binary data") from None
    data.lstrip().partition(b"\n")[0].decode("utf-8")  # polars would take names of columns in another encoding
    separator = separator or separator_of(data)
    names = pl.read_csv(io.BytesIO(data), separator=separator, n_rows=0).columns
    ids = {name: pl.String for name in names if is_id(name)}
    table = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema_length=None, schema_overrides=ids)
    table = table.with_columns(text_as_ids(table[name]) for name in ids)
    if separator == ",":  # "1,234" may then be a thousand, in quotes
        return table
    return table.with_columns(_decimals(table[name]) for name in names if name not in ids)


def separator_of(data: bytes) -> str:
    """What stands between the columns of a CSV file; its first line says it."""
    first = re.sub(rb'"[^"]*"', b"", data.lstrip().partition(b"\n")[0]).decode("utf-8", "replace")
    return max(SEPARATORS, key=first.count)


def _decimals(column: pl.Series) -> pl.Series:
    """Numbers that are written with a comma for the point, as numbers."""
    if column.dtype != pl.String or not column.str.contains(r"^\s*-?\d+,\d+\s*$").any():
        return column
    point = column.str.replace(",", ".", literal=True)
    numbers = numbers_with_missing_words(point).cast(pl.Float64, strict=False)
    marked = column.str.strip_chars().str.to_lowercase().is_in(MISSING).sum()
    return numbers if numbers.null_count() == column.null_count() + marked else column


def text_as_ids(column: pl.Series) -> pl.Series:
    """Ids of a text file: 017, 17 and 17.0 are three of them, and stay so.

    A column becomes whole numbers only where every text in it is the one way to write its number. Among numbers,
    words like "nan" stand for a missing id.
    """
    marked = column.str.strip_chars().str.to_lowercase().is_in(MISSING)
    if marked.any():
        rest = column.filter(~marked)
        if len(rest) and rest.cast(pl.Float64, strict=False).null_count() == rest.null_count():
            column = pl.select(pl.when(~marked).then(column)).to_series().alias(column.name)
    numbers = column.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).eq_missing(column).all() else column


def unfolded(
    table: pl.DataFrame, axes: tuple[str, str], label: str, columns: Sequence[str], zeros: bool = True,
    steps: Mapping[str, Sequence[float]] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """A table with one side in its columns as rows of two ids and a label, row by row; empty cells are left out.

    Parameters
    ----------
    axes : (str, str)
        The column with the names of the rows (their numbers, from 1, where there is none), and what to call the side
        that lies in the columns.
    label : str
        What to call what stands in the cells.
    columns : sequence of str
        The columns of that side.
    zeros : bool
        Whether a zero was observed; where it only says that nothing was counted, it is left out.
    steps : dict, optional
        Where the columns are questions: the cells are answers as text then, and the numbers of a column that is named
        here are moved to the nearest of its steps.
    """
    rows, side = axes
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise GinghamError(f"The wide table has no column {missing[0]!r}, which the model needs.")
    if len({rows, side, label}) < 3:
        raise GinghamError(f"The sides and the label of a wide table need three names: {rows}, {side}, {label}.")
    if rows not in table.columns:
        table = table.with_row_index(rows, offset=1)
    table = table.with_columns(numbers_with_missing_words(table[name]) for name in columns)
    if steps is not None:
        table = table.with_columns(_answers(table[name], steps.get(name)) for name in columns)
    number = "\0row"  # a name that no column of a text file has
    kept = table.select(pl.int_range(pl.len()).alias(number), rows, *columns)
    long = kept.unpivot(columns, index=[number, rows], variable_name=side, value_name=label)
    long = long.drop_nulls([rows, label])
    if long[label].dtype.is_float():
        long = long.filter(pl.col(label).is_not_nan())
    if not zeros:
        long = long.filter(pl.col(label) != 0)
    if long.height == 0:
        raise GinghamError("Every cell of the wide table is empty.")
    place = pl.col(side).replace_strict(columns, range(len(columns)), return_dtype=pl.Int64)
    return long.sort(number, place).drop(number)


def _answers(column: pl.Series, steps: Sequence[float] | None) -> pl.Series:
    """A column as answers; those that are none are missing."""
    answers = answers_of(column.to_list())
    there = ~np.isin(np.char.lower(answers), NO_ANSWER)
    if steps is not None:
        every = np.asarray(steps, dtype=np.float64)
        answers = answers.astype(object)
        answers[there] = answers_of(every[nearest(answers[there].astype(np.float64), every)].tolist())
    return pl.Series(
        column.name,
        [answer if known else None for answer, known in zip(answers.tolist(), there.tolist())],
        dtype=pl.String,
    )


def numbers_with_missing_words(column: pl.Series) -> pl.Series:
    """Numbers among which words like "nan" stand for missing values, which are read as text, as numbers again."""
    if column.dtype != pl.String:
        return column
    marked = column.str.strip_chars().str.to_lowercase().is_in(MISSING)
    numbers = pl.select(pl.when(~marked).then(column)).to_series().cast(pl.Float64, strict=False)
    plain = bool(marked.any()) and numbers.null_count() == int(marked.sum()) + column.null_count() < len(column)
    return numbers.alias(column.name) if plain else column


def content_of(source: str) -> bytes:
    """The bytes of a file or of standard input, unpacked; of a query, its rows as an Arrow file."""
    if databases.is_query(source):
        stream = io.BytesIO()
        pl.concat(databases.Query.of(source).batches()).write_ipc(stream)
        return stream.getvalue()
    if source == "-":
        data = sys.stdin.buffer.read()
    else:
        need_table(source)
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise GinghamError(f"{source!r} cannot be read: {error.strerror}.") from None
    if data[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise GinghamError(f"{source!r} is a damaged gzip file (truncated?).") from None
    return data


def format_of(name: str, kind: str | None) -> str:
    """The format that was named, or that the name of the file tells."""
    if kind is not None:
        if kind not in FORMATS:
            raise GinghamError(f"--format {kind!r} is unknown; choose one of {', '.join(FORMATS)}.")
        return kind
    if name == "-":
        return "csv"
    if databases.is_query(name):
        return "arrow"
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise GinghamError(
            f"The format of {name!r} cannot be inferred from its name: add --format {'|'.join(FORMATS)}."
        )
    return SUFFIXES[suffix]
