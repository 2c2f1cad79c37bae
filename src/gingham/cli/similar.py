"""``gingham similar``: items that meet the other side alike."""

from __future__ import annotations

from typing import Annotated

import typer

from gingham.cli import options

Item = Annotated[str, typer.Argument(help="Id or title of an item of any axis.")]
Side = Annotated[str | None, typer.Option(help="Axis of the item, if the id occurs on several axes.")]


def similar(
    model: options.ModelFile,
    item: Item,
    side: Side = None,
    n: Annotated[int, typer.Option("-n", help="Length of the list.", min=1)] = 10,
    out: options.OutTable = None,
    format: options.Format = None,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """List the items that are most like a given one.

    Examples
    --------
    gingham similar model.gingham Fargo -n 5
    """
    from gingham.cli.describe import read_model
    from gingham.cli.table_files import write_table
    from gingham.models.questions import Questions

    # A ranking has a likeness of its own, by factors, for several items at once; this is the one all models have.
    found = Questions.similar(read_model(model), item, n, side=side, backend="polars")
    write_table(found, out, format, spreadsheet_safe)
