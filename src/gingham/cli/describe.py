"""``gingham describe``: the groups of a model with their names, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError

if TYPE_CHECKING:
    from gingham.models.base import Persistent

Size = Annotated[
    str | None,
    typer.Option(
        help="Number of groups per side, as in 5,4, or all: the clusters that the model predicts with, where more than "
        "60 merged to 60. By default a readable number."
    ),
]


def describe(
    model: options.ModelFile,
    size: Size = None,
    items: Annotated[
        bool, typer.Option("--items", help="Print one line per item instead of one line per group.")
    ] = False,
    out: options.OutTable = None,
    format: options.Format = None,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """List the groups of a model: names, sizes, distinctive and typical items, facts.

    Examples
    --------
    gingham describe model.gingham
    gingham describe model.gingham --size 5,4 --items --out items.csv
    gingham describe model.gingham --size all --items
    """
    from gingham.cli.table_files import write_table
    from gingham.cli.tables.arguments import parse_numbers

    fitted = read_model(model)
    console.say_note(fitted.summary_.verdict)
    if fitted.summary_.known is not None:
        console.say_note(fitted.summary_.known.text)
    console.say_note(fitted.summary_.why)
    wanted: list[int] | int | None
    if size == "all":
        wanted = [side.n_leaves for side in fitted.summary_.sides]
    else:
        sizes = None if size is None else parse_numbers(size, "--size", "integers, one per side, or all", "5,4")
        wanted = sizes[0] if sizes is not None and len(sizes) == 1 else sizes
    table = fitted.to_frame(wanted, "polars") if items else fitted.describe(wanted, "polars")
    write_table(table, out, format, spreadsheet_safe)


def read_model(name: str) -> Persistent:
    """A model from a file that holds its summary."""
    from gingham.models.base import Persistent, has_summary, load

    fitted: Any = load(name)
    if not isinstance(fitted, Persistent):
        raise GinghamError(f"{name!r} holds a model without groups to describe.")
    if not has_summary(fitted):
        raise GinghamError(
            f"{name!r} has no summary with named groups. gingham fit writes one unless --no-summary is given."
        )
    return fitted
