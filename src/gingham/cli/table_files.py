"""Tables out: CSV, TSV, Parquet, NDJSON, gzipped or not, to a file or standard output; a model beside a table."""

from __future__ import annotations

import gzip
import io
import re
import sys
from typing import Any

import polars as pl

from gingham.cli import console
from gingham.cli.tables.adapter import Opened, TableSource, id_columns, opened
from gingham.data.table_files import format_of, read_table, unfolded
from gingham.errors import GinghamError
from gingham.files import atomic
from gingham.models.base import load

FORMULA = r"^[=+\-@\t\r]"  # how a cell begins that a spreadsheet runs


def write_table(table: pl.DataFrame, target: str | None, kind: str | None = None, spreadsheet: bool = False) -> None:
    """Write a table; without a target, or to ``-``, as CSV on standard output, and on a terminal in columns.

    ``spreadsheet`` marks what a spreadsheet would take for a formula as text.
    """
    if spreadsheet:
        table = without_formulas(table)
    stream = io.BytesIO()
    if target is None and kind is None and sys.stdout.isatty():  # somebody reads it: lines that fit, not a file
        console.grid("", table.columns, table.rows())
        return
    if target is None or target == "-":
        _write_out(table, stream, kind or "csv")
        return
    kind = format_of(target, kind)
    if kind == "excel":
        raise GinghamError(
            "gingham reads Excel files but does not write them: give a name that ends with .csv or .parquet."
        )
    _write(table, stream, kind)
    data = stream.getvalue()
    with atomic(target) as file:
        file.write(gzip.compress(data) if target.endswith(".gz") else data)


def _write_out(table: pl.DataFrame, stream: io.BytesIO, kind: str) -> None:
    """A table on standard output; a terminal is not steered by what stands in it."""
    terminal = sys.stdout.isatty()
    if terminal and kind == "parquet":
        raise GinghamError("Parquet cannot be printed to a terminal: name a file with --out, or omit --format.")
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


def open_model(
    model: str,
    file: str,
    format: str | None = None,
    label: str | None = None,
    drop_missing: bool = False,
    axes: tuple[str, ...] | None = None,
) -> Opened:
    """A saved model beside the rows of a table."""
    fitted = load(model)
    table = table_for(fitted, file, format, axes)
    return opened(fitted, TableSource(table, label, drop_missing, axes))


def table_for(fitted: Any, file: str, format: str | None = None, axes: tuple[str, ...] | None = None) -> pl.DataFrame:
    """A table read as that of a model's fit was: ids as it has them, a side that lies in the columns unfolded."""
    ids = id_columns(fitted)
    table = read_table(file, format, (ids and (*ids, *(axes or ()))).__contains__)
    wide = None if fitted._record is None else fitted._record.wide
    if wide is not None and wide.axes[1] not in table.columns:  # the table of the fit as it was
        return unfolded(table, wide.axes, wide.label, wide.columns, wide.zeros, wide.steps)
    return table
