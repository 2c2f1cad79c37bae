"""``gingham look``: what a table seems to be, and the command that fits it."""

from __future__ import annotations

from gingham.cli import console, options


def look(file: options.File, format: options.Format = None, json: options.Json = False) -> None:
    """Describe the columns of a table, what is missing, and which model fits it, with the command to run.

    Examples
    --------
    gingham look ratings.csv
    gingham look ratings.csv --json
    """
    from gingham.summary.look import look as look_at

    found = look_at(file, format)
    if json:
        console.print_json(found.to_dict())
        return
    console.paragraphs(str(found))
