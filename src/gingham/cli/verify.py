"""``gingham verify``: a saved certificate, worked out again from the data by a checker that shares no code with it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console
from gingham.files import Reads, need_model

if TYPE_CHECKING:
    import polars as pl


def verify(
    certificate: Annotated[
        str, typer.Argument(help="Certificate file, written by certificate.save or gingham certify --save."), Reads()
    ],
    model: Annotated[
        str,
        typer.Argument(help="Model file, or - for a certificate of finished predictions."),
        Reads(need_model, lambda given: [] if given == "-" else [given]),
    ],
    data: Annotated[str, typer.Argument(help="The rows that were certified, a CSV file."), Reads()],
) -> None:
    """Recompute a certificate: print "verified" (exit code 0) or what differs (exit code 1).

    Examples
    --------
    gingham verify c.json model.gingham ratings.csv
    """
    from gingham import verify as checker

    with TemporaryDirectory() as folder:
        table = data if model == "-" else certified_rows(certificate, model, data, folder)
        raise typer.Exit(checker.main(certificate, model, table))


def certified_rows(certificate: str, model: str, data: str, folder: str) -> str:
    """The table as the checker reads it: a row an observation, and those alone that the certificate speaks of.

    A side that lies in the columns is unfolded. Of a table from which ``gingham fit`` set rows aside the others are
    kept, where as many were certified; a certificate of the rows set aside has what was predicted of them, which the
    model file keeps, in the place of their ids. Should these be other rows, the checker says so.
    """
    from gingham.cli.table_files import table_for
    from gingham.errors import GinghamError
    from gingham.models.base import load

    try:
        fitted = load(model)
        table = certified_table(certificate, model, data)
        if table is None and fitted._record is not None and fitted._record.wide:
            table = table_for(fitted, data)
    except (GinghamError, ValueError, LookupError, TypeError, OSError):
        return data  # the checker says what is wrong
    if table is None:
        return data
    target = Path(folder) / "rows.csv"
    table.write_csv(target)
    return str(target)


def certified_table(certificate: str, model: str, data: str) -> pl.DataFrame | None:
    """The rows of the table that were certified, by their number; None where that does not tell them."""
    import polars as pl

    from gingham.cli.table_files import open_model
    from gingham.errors import GinghamError

    document = json.loads(Path(certificate).read_text("utf-8"))
    of_predictions = document["kind"] == "predictions"
    try:
        opened: Any = open_model(model, data)  # of tuples, it has rows, and those that tested it
    except GinghamError:  # a predictor of progressive tests, which is certified on all rows
        return None
    tested: Any = getattr(opened, "tested", None)
    rows: Any = getattr(tested if of_predictions else opened, "rows", None)
    if rows is None or len(rows) != document["data"]["n_rows"]:
        return None
    known: pl.DataFrame = rows.X
    if of_predictions:
        console.say_note(
            f"The predictions are those that {model} keeps of its fit. That they were made without the rows that test "
            "them is taken as it is stated."
        )
        columns = tested.predictions.reshape(len(rows), -1).T
        known = pl.DataFrame({f"prediction{at or ''}": column for at, column in enumerate(columns)})
    columns = [pl.Series(opened.label_name, rows.y)]
    if rows.weight is not None:
        columns.append(pl.Series((opened.model._record and opened.model._record.weight) or "weight", rows.weight))
    return known.with_columns(columns)
