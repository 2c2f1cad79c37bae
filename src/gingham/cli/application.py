"""The application object to which commands are added."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

import gingham
from gingham.cli import console as screen
from gingham.errors import GinghamError

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
    plugin: Annotated[
        list[str] | None,
        typer.Option(help="Python module to import first, here or installed: one that registers a loss, say."),
    ] = None,
) -> None:
    if plugin and "" not in sys.path:
        sys.path.insert(0, "")  # modules of the folder one stands in, as `python -m` finds them
    for name in plugin or ():
        try:
            import_module(name)
        except ImportError as error:
            raise GinghamError(f"--plugin {name}: {error}. Name a module as in `import {name}`.") from None
