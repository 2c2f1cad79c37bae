"""Tables in and out: CSV, TSV, Parquet, NDJSON, gzipped or not, from a file or standard input; a model beside one."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from gingham.cli import console, light_imports  # noqa: F401 the second before scikit-learn is imported
from gingham.errors import GinghamError
from gingham.files import atomic, need_table
from gingham.models.base import load
from gingham.models.tables import ModelWithData, TableSource, tables_of, text_as_ids

FORMATS = ("csv", "tsv", "parquet", "ndjson")
FORMULA = r"^[=+\-@\t\r]"  # how a cell begins that a spreadsheet runs
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}


def read_table(source: str, kind: str | None = None, is_id: Callable[[str], bool] = lambda name: False) -> pl.DataFrame:
    """A whole table; ``-`` reads standard input (CSV unless ``kind`` says otherwise).

    ``is_id`` says which columns hold ids: a text file has no types, and their text is kept.
    """
    data = _content(source)
    kind = _kind(source, kind)
    shown = "standard input" if source == "-" else repr(source)
    if not data.strip():
        raise GinghamError(f"{shown} is empty.")
    try:
        if kind == "parquet":
            _try_parquet(data, shown)
            table = pl.read_parquet(io.BytesIO(data))
        elif kind == "ndjson":
            table = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        else:
            table = _read_text(data, "\t" if kind == "tsv" else ",", is_id, shown)
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


def _read_text(data: bytes, separator: str, is_id: Callable[[str], bool], shown: str) -> pl.DataFrame:
    """A CSV or TSV file; the types of columns other than ids are told by all their values."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise GinghamError(f'{shown} is in UTF-16; save it as UTF-8 (as Excel\'s "CSV UTF-8").')
    names = pl.read_csv(io.BytesIO(data), separator=separator, n_rows=0).columns
    ids = {name: pl.String for name in names if is_id(name)}
    table = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema_length=None, schema_overrides=ids)
    return table.with_columns(text_as_ids(table[name]) for name in ids)


def write_table(table: pl.DataFrame, target: str | None, kind: str | None = None, spreadsheet: bool = False) -> None:
    """Write a table; without a target, or to ``-``, as CSV on standard output.

    ``spreadsheet`` marks what a spreadsheet would take for a formula as text.
    """
    if spreadsheet:
        table = without_formulas(table)
    stream = io.BytesIO()
    if target is None or target == "-":
        _write_out(table, stream, kind or "csv")
        return
    _write(table, stream, _kind(target, kind))
    data = stream.getvalue()
    with atomic(target) as file:
        file.write(gzip.compress(data) if target.endswith(".gz") else data)


def _write_out(table: pl.DataFrame, stream: io.BytesIO, kind: str) -> None:
    """A table on standard output; a terminal is not steered by what stands in it."""
    terminal = sys.stdout.isatty()
    if terminal and kind == "parquet":
        raise GinghamError("Parquet is not for a terminal: name a file with --out, or leave --format out.")
    _write(table, stream, kind)
    sys.stdout.flush()
    if terminal:
        sys.stdout.write(console.plainly(stream.getvalue().decode("utf-8")))
    else:
        sys.stdout.buffer.write(stream.getvalue())
    sys.stdout.flush()


def without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text that begins like a formula, names of columns included."""
    texts = [name for name, kind in table.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    text = pl.col(texts).cast(pl.String)
    marked = table.with_columns(pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep())
    return marked.rename({name: f"'{name}" for name in marked.columns if re.match(FORMULA, name)})


def _write(table: pl.DataFrame, stream: io.BytesIO, kind: str) -> None:
    if kind == "parquet":
        table.write_parquet(stream)
    elif kind == "ndjson":
        table.write_ndjson(stream)
    else:
        table.write_csv(stream, separator="\t" if kind == "tsv" else ",")


def _content(source: str) -> bytes:
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


def _kind(name: str, kind: str | None) -> str:
    if kind is not None:
        if kind not in FORMATS:
            raise GinghamError(f"--format {kind!r} is unknown; choose one of {', '.join(FORMATS)}.")
        return kind
    if name == "-":
        return "csv"
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise GinghamError(f"The kind of {name!r} cannot be told from its name; add --format {'|'.join(FORMATS)}.")
    return SUFFIXES[suffix]


def open_model(
    model: str,
    file: str,
    format: str | None = None,
    label: str | None = None,
    drop_missing: bool = False,
    axes: tuple[str, ...] | None = None,
) -> ModelWithData[Any]:
    """A saved model beside the rows of a table."""
    fitted = load(model)
    tables = tables_of(fitted)
    ids = tables.id_names(fitted)
    table = read_table(file, format, (ids and (*ids, *(axes or ()))).__contains__)
    return tables.open(fitted, TableSource(table, label, drop_missing, axes))
