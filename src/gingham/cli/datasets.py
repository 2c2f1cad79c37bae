"""``gingham datasets``: which public sets there are, and one of them as a table."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from gingham.cli.tables import write_table
from gingham.datasets import data_folder
from gingham.datasets.public import FILES, Loaded, load_biogrid, load_jester, load_movielens
from gingham.errors import GinghamError

LOADERS: dict[str, Callable[[], Loaded]] = {
    "movielens-100k": lambda: load_movielens("100k"),
    "movielens-1m": lambda: load_movielens("1m"),
    "movielens-10m": lambda: load_movielens("10m"),
    "movielens-25m": lambda: load_movielens("25m"),
    "jester": load_jester,
    "biogrid-yeast": load_biogrid,
}


def known() -> list[tuple[str, str, bool]]:
    """Name, files, and whether all of them are in the data folder."""
    folder = data_folder()
    return [
        (name, ", ".join(f.name for f in files), all((folder / f.name).is_file() for f in files))
        for name, files in FILES.items()
    ]


def export(name: str, out: str | None) -> None:
    """Fetch a set and write its tuples, names in the place of ids where the publisher gives them."""
    if name not in LOADERS:
        raise GinghamError(f"There is no data set {name!r}; choose one of {', '.join(LOADERS)}.")
    data = LOADERS[name]()
    columns = {}
    for at, axis in enumerate(data.axes):
        title = axis if axis not in columns else f"{axis}_{at + 1}"
        ids = data.X[:, at]
        names = data.names.get(axis)
        columns[title] = ids if names is None else [names.get(i, str(i)) for i in ids.tolist()]
    write_table(pl.DataFrame({**columns, "rating": data.y}), out)
