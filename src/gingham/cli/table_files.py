"""Tables in and out: CSV, TSV, Parquet, NDJSON, gzipped or not, from a file or standard input; a model beside one."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from gingham.errors import GinghamError
from gingham.files import atomic, need_table
from gingham.models.base import load
from gingham.models.tables import ModelWithData, TableSource, tables_of, text_as_ids

FORMATS = ("csv", "tsv", "parquet", "ndjson")
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
            table = pl.read_parquet(io.BytesIO(data))
        elif kind == "ndjson":
            table = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        else:
            table = _read_text(data, "\t" if kind == "tsv" else ",", is_id, shown)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise GinghamError(f"{shown} cannot be read as {kind}: {reason}. Is --format right?") from None
    if table.height == 0:
        raise GinghamError(f"{shown} has column names but no rows.")
    return table


def _read_text(data: bytes, separator: str, is_id: Callable[[str], bool], shown: str) -> pl.DataFrame:
    """A CSV or TSV file; the types of columns other than ids are told by all their values."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise GinghamError(f'{shown} is in UTF-16; save it as UTF-8 (as Excel\'s "CSV UTF-8").')
    names = pl.read_csv(io.BytesIO(data), separator=separator, n_rows=0).columns
    ids = {name: pl.String for name in names if is_id(name)}
    table = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema_length=None, schema_overrides=ids)
    return table.with_columns(text_as_ids(table[name]) for name in ids)


def write_table(table: pl.DataFrame, target: str | None, kind: str | None = None) -> None:
    """Write a table; without a target, or to ``-``, as CSV on standard output."""
    if target is None or target == "-":
        stream = io.BytesIO()
        _write(table, stream, kind or "csv")
        sys.stdout.write(stream.getvalue().decode("utf-8"))
        return
    stream = io.BytesIO()
    _write(table, stream, _kind(target, kind))
    data = stream.getvalue()
    with atomic(target) as file:
        file.write(gzip.compress(data) if target.endswith(".gz") else data)


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
