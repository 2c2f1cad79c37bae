"""The application object to which commands are added."""

from __future__ import annotations

from typing import Annotated

import typer

import gingham
from gingham.cli import screen

app = typer.Typer(
    name="gingham",
    help="Co-cluster tables of tuples, predict what is missing, and prove how far to trust it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        screen.console().print(f"gingham {gingham.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    pass
