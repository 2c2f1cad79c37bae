"""Tables in and out: CSV, TSV, Parquet, NDJSON, gzipped or not, from a file or standard input; a model beside one."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import Any

import polars as pl

from gingham.errors import GinghamError
from gingham.models.base import load
from gingham.models.tables import ModelWithData, TableSource, tables_of
from gingham.files import atomic, need_table

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


def read_table(source: str, kind: str | None = None) -> pl.DataFrame:
    """A whole table; ``-`` reads standard input (CSV unless ``kind`` says otherwise)."""
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
            separator = "\t" if kind == "tsv" else ","
            table = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError, ValueError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise GinghamError(f"{shown} cannot be read as {kind}: {reason}. Is --format right?") from None
    if table.height == 0:
        raise GinghamError(f"{shown} has column names but no rows.")
    return table


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
    return tables.open(fitted, TableSource(read_table(file, format), label, drop_missing, axes))
