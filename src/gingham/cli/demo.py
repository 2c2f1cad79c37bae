"""``gingham demo``: a table, a model and a page in a new folder, with the commands that made them."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from gingham.cli import console
from gingham.cli.fit import fit
from gingham.cli.look import look
from gingham.cli.report import report
from gingham.errors import GinghamError


def demo(folder: Annotated[str, typer.Argument(help="Name of a new folder.")] = "gingham-demo") -> None:
    """Try gingham on a small bundled data set: runs look, fit and report, and shows each command.

    Examples
    --------
    gingham demo
    gingham demo my-demo
    """
    from gingham.cli.table_files import write_table
    from gingham.datasets import load_films

    place = Path(folder)
    if place.exists():
        raise GinghamError(f"{folder!r} exists already. Name a new folder, as in gingham demo my-demo.")
    place.mkdir(parents=True)
    import polars as pl

    names = ("ratings.csv", "films.csv", "model.gingham", "report.html")
    ratings, films, model, page = (str(place / name) for name in names)
    for name, columns in zip((ratings, films), load_films()):
        write_table(pl.DataFrame(columns), name)
    console.paragraphs(f"{folder} contains made-up ratings of 48 films by 240 viewers.")
    announce(f"gingham look {quote(ratings)}")
    look(ratings)
    announce(
        f"gingham fit {quote(ratings)} --alphabet 1..5 --effort fast --info film={quote(films)} --out {quote(model)}"
    )
    fit(ratings, alphabet="1..5", effort="fast", info=[f"film={films}"], out=Path(model))
    announce(f"gingham report {quote(model)} {quote(ratings)} --out {quote(page)}")
    report(model, ratings, Path(page))
    console.paragraphs(f"Open {page} in a browser.")


def announce(command: str) -> None:
    console.heading(command)
