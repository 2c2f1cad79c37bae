"""``gingham datasets``: which public sets there are, and one of them as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gingham.cli import console
from gingham.cli.options import Json, OutTable, SpreadsheetSafe
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, need_files

if TYPE_CHECKING:
    from gingham.datasets.public import Loaded


def datasets(
    name: Annotated[str | None, typer.Argument(help="Data set to fetch; without a name, all are listed.")] = None,
    out: OutTable = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    json: Json = False,
) -> None:
    """List the public data sets, or fetch one and write it as a table, a row an observation."""
    from gingham.datasets import data_folder
    from gingham.datasets.public import FILES, load_biogrid, load_jester, load_movielens

    if name is None:
        here = {one: all((data_folder() / f.name).is_file() for f in files) for one, files in FILES.items()}
        rows = [(one, ", ".join(f.name for f in files), here[one]) for one, files in FILES.items()]
        if json:
            console.print_json({row[0]: {"files": row[1], "here": row[2]} for row in rows})
        else:
            console.grid("Public data sets", ("name", "files", "here"), rows)
        return
    loaders = {f"movielens-{size}": lambda size=size: load_movielens(size) for size in ("100k", "1m", "10m", "25m")}
    loaders |= {"jester": load_jester, "biogrid-yeast": load_biogrid}
    if name not in loaders:
        raise GinghamError(f"There is no data set {name!r}; choose one of {', '.join(loaders)}.")
    sources = [data_folder() / f.name for f in FILES[name]]
    read = [str(source) for source in sources if source.is_file()]
    need_files([("name", read, Reads(names=list)), ("--out", out, Writes())])
    export(loaders[name](), out, spreadsheet_safe)


def export(data: Loaded, out: str | None, spreadsheet_safe: bool = False) -> None:
    """Write the tuples of a set, names in the place of ids where the publisher gives them."""
    import polars as pl

    from gingham.cli.table_files import write_table

    columns = {}
    for at, axis in enumerate(data.axes):
        title = axis if axis not in columns else f"{axis}_{at + 1}"
        ids = data.X[:, at]
        names = data.names.get(axis)
        columns[title] = ids if names is None else [names.get(i, str(i)) for i in ids.tolist()]
    write_table(pl.DataFrame({**columns, "rating": data.y}), out, spreadsheet=spreadsheet_safe)
