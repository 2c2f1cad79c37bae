"""``gingham audit``: predictions or ranked lists of any models, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes


def audit(
    file: options.File,
    label: Annotated[str | None, typer.Option(help="Column with the labels.")] = None,
    prediction: Annotated[
        list[str] | None,
        typer.Option("--prediction", "-p", help="Column of predictions. Repeat the option to compare several."),
    ] = None,
    lists: Annotated[
        list[str] | None,
        typer.Option(help="Table of ranked lists (user, item; best item first). FILE then holds the held-out pairs."),
        Reads(names=lambda given: given),
    ] = None,
    loss: Annotated[str, typer.Option(help="absolute, quadratic, zero-one, log.")] = "absolute",
    alphabet: options.Alphabet = None,
    bounds: options.Bounds = None,
    strata: Annotated[
        list[str] | None, typer.Option(help="Column of strata: the error is shown for each value.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="Columns of ids, user,item: the error is shown for frequent and rare ids.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of independent groups, such as users, if the rows are not independent.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column of times: tests whether the loss has changed")] = None,
    at: Annotated[int, typer.Option(help="With --lists: number of items of each list that count.", min=1)] = 20,
    delta: options.Delta = 0.05,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Page to write.", show_default=False), Writes()
    ] = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Audit predictions of any program: certified error, which model is better, where, and since when.

    No model is needed, only a table with labels and predictions that were made without them. All that is said holds
    together with confidence 1 − delta.

    Examples
    --------
    gingham audit predictions.csv --label rating --prediction ours --prediction theirs --alphabet 1..5
    gingham audit predictions.csv --label y --prediction p --bounds 0,1 --loss quadratic --groups user --strata age
        --ids user,item --time at -o audit.html
    gingham audit hidden.csv --ids user,item --lists ours.csv --lists theirs.csv --at 20
    """
    from gingham.cli.tables import audits
    from gingham.data.table_files import read_table

    table = read_table(file, format)
    if lists:
        found = audits.of_lists(table, lists, ids, at, delta, format)
    elif label is None or not prediction:
        raise GinghamError("Name the columns: --label and --prediction, or ranked lists with --lists and --ids.")
    else:
        columns = [] if ids is None else [name.strip() for name in ids.split(",")]
        found = audits.of_predictions(
            table, label, prediction, loss, (alphabet, bounds), strata or [], columns, groups, time, delta, drop_missing
        )
    if out is not None:
        from gingham.report import audit as page

        page.write(found, out, title or f"Audit of {Path(file).name}")
        console.say_note(f"The page is {out}.")
    if json:
        console.print_json(found.to_dict())
        return
    audits.show(found)
