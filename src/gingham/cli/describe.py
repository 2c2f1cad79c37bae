"""``gingham describe``: the groups of a model with their names, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError

if TYPE_CHECKING:
    from gingham.models.base import Persistent

Size = Annotated[str | None, typer.Option(help="Number of groups per side: 5,4; by default the readable number.")]


def describe(
    model: options.ModelFile,
    size: Size = None,
    items: Annotated[bool, typer.Option("--items", help="Print one line per item instead of one per group.")] = False,
    out: options.OutTable = None,
    format: options.Format = None,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """List the groups of a model: names, sizes, distinctive and typical items, facts."""
    from gingham.cli.table_files import write_table

    fitted = read_model(model)
    console.say_note(fitted.summary_.verdict)
    if fitted.summary_.known is not None:
        console.say_note(fitted.summary_.known.text)
    console.say_note(fitted.summary_.why)
    wanted = parse_size(size)
    table = fitted.to_frame(wanted, "polars") if items else fitted.describe(wanted, "polars")
    write_table(table, out, format, spreadsheet_safe)


def read_model(name: str) -> Persistent:
    """A model from a file that holds its summary."""
    from gingham.models.base import Persistent, load

    fitted: Any = load(name)
    if not isinstance(fitted, Persistent):
        raise GinghamError(f"{name!r} holds no model whose groups could be read.")
    if not fitted.has_summary:
        raise GinghamError(
            f"{name!r} holds no summary, the groups and their names: gingham fit makes one, unless told --no-summary."
        )
    return fitted


def parse_size(listed: str | None) -> list[int] | int | None:
    """Groups per side from "5,4" or "5"."""
    if listed is None:
        return None
    try:
        numbers = [int(part) for part in listed.split(",")]
    except ValueError:
        raise GinghamError(f"--size {listed!r} must be integers, one per side: --size 5,4.") from None
    return numbers[0] if len(numbers) == 1 else numbers
