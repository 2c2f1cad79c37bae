"""``gingham datasets``: which data sets there are, and one of them as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gingham.cli import console
from gingham.cli.options import Json, OutTable, SpreadsheetSafe
from gingham.errors import GinghamError, suggestion
from gingham.files import Reads, Writes, need_files

if TYPE_CHECKING:
    import polars as pl

    from gingham.datasets.public import Loaded

BUNDLED = {
    "films": "made-up ratings of 48 films by 240 viewers",
    "elections": "Republican share of the vote for president, by state and year",
}


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Data set to write. Without a name, all data sets are listed.")
    ] = None,
    out: OutTable = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    json: Json = False,
) -> None:
    """List the data sets, or write one as a table with one row per observation.

    Examples
    --------
    gingham datasets
    gingham datasets films --out ratings.csv
    """
    from gingham.datasets import data_folder, load_elections, load_films, load_movielens
    from gingham.datasets.public import FILES

    sources = {one: data_folder() / file.name for one, file in FILES.items()}
    if name is None:
        rows = [(one, what, True) for one, what in BUNDLED.items()]
        rows += [(one, f"MovieLens, {file.name} is downloaded", sources[one].is_file()) for one, file in FILES.items()]
        if json:
            console.print_json({one: {"what": what, "here": here} for one, what, here in rows})
        else:
            console.grid("Data sets", ("name", "what", "here"), rows)
        return
    known = (*BUNDLED, *FILES)
    if name not in known:
        raise GinghamError(f"There is no data set {name!r}; choose one of {', '.join(known)}.{suggestion(name, known)}")
    from gingham.cli.table_files import write_table

    if name == "films":
        import polars as pl

        write_table(pl.DataFrame(load_films().ratings), out, spreadsheet=spreadsheet_safe)
        return
    if name == "elections":
        write_table(as_table(load_elections(), "share"), out, spreadsheet=spreadsheet_safe)
        return
    read = [str(sources[name])] if sources[name].is_file() else []
    need_files([("name", read, Reads(names=list)), ("--out", out, Writes())])
    data = load_movielens(name.removeprefix("movielens-"))
    write_table(as_table(data, "rating"), out, spreadsheet=spreadsheet_safe)


def as_table(data: Loaded, label: str) -> pl.DataFrame:
    """The observations of a set, names in the place of ids where the publisher gives them."""
    import polars as pl

    columns = {}
    for axis, ids in zip(data.axes, data.X.T):
        names = data.names.get(axis)
        columns[axis] = ids if names is None else [names.get(i, str(i)) for i in ids.tolist()]
    return pl.DataFrame({**columns, label: data.y})
