"""The application: its commands, and running one; every expected failure is a sentence and exit code 2."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

import gingham
from gingham.cli import console
from gingham.cli.certify import certify
from gingham.cli.clusters import clusters
from gingham.cli.datasets import datasets
from gingham.cli.describe import describe
from gingham.cli.explain import explain
from gingham.cli.fit import FitCommand, fit
from gingham.cli.look import look
from gingham.cli.models import models
from gingham.cli.path import path
from gingham.cli.predict import predict
from gingham.cli.recommend import recommend
from gingham.cli.report import report
from gingham.cli.similar import similar
from gingham.cli.simplify import simplify
from gingham.cli.verify import verify
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, need_files

app = typer.Typer(
    name="gingham",
    help="Group both sides of a table at once, predict what is missing, and prove how far to trust it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
EXAMPLES: dict[Callable[..., None], str] = {
    look: "gingham look ratings.csv\n\ngingham look ratings.csv --json",
    models: "gingham models",
    fit: "gingham fit ratings.csv\n\n"
    "gingham fit ratings.csv --axes user,movie --label rating\n\n"
    "gingham fit ratings.csv --axes user,movie --label rating --clusters 13,6 --loss absolute --beta 1 "
    "--alphabet 1..5 --out model.gingham\n\n"
    "gingham fit edges.csv --model graph --axes from,to --clusters 10\n\n"
    "gingham fit ratings.csv --model joint --axes user,movie --label rating -r movie,genre=has:genres.csv\n\n"
    "zcat votes.csv.gz | gingham fit - --axes member,bill --label vote --json",
    path: "gingham path ratings.csv --axes user,movie --label rating --alphabet 1..5\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --betas 2,1,.5 --cv 10 --plot path.png --json",
    predict: "gingham predict model.gingham pairs.csv --out predicted.csv\n\n"
    "gingham predict model.gingham pairs.csv --rule median --proba",
    simplify: "gingham simplify model.gingham ratings.csv --clusters 5,4 --out small.gingham\n\n"
    "gingham simplify model.gingham ratings.csv --max-loss .75",
    clusters: "gingham clusters model.gingham --out clusters.csv",
    describe: "gingham describe model.gingham\n\ngingham describe model.gingham --size 5,4 --items --out items.csv",
    similar: "gingham similar model.gingham Fargo -n 5",
    explain: "gingham explain model.gingham 17 Fargo\n\ngingham explain model.gingham Fargo",
    certify: "gingham certify model.gingham ratings.csv\n\n"
    "gingham certify model.gingham ratings.csv --delta .01 --bound theorem-7 --population 943,1682 --json\n\n"
    "gingham certify --labels users.csv,movies.csv ratings.csv --label rating --alphabet 1..5",
    verify: "gingham verify c.json model.gingham ratings.csv",
    report: "gingham report model.gingham ratings.csv -o report.html\n\n"
    "gingham report model.gingham ratings.csv --alphabet 1..5 --title 'What our viewers like'",
    recommend: "gingham recommend model.gingham --users 17,23 -n 10\n\n"
    "gingham recommend model.gingham --all --out lists.parquet\n\n"
    "gingham recommend model.gingham --basket 'beer,nuts'\n\n"
    "gingham recommend model.gingham --users 17 --items beer --page page.html\n\n"
    "gingham recommend model.gingham Fargo --data ratings.csv",
    datasets: "gingham datasets\n\ngingham datasets movielens-100k --out ratings.csv",
}


def roles_of(command: Callable[..., None]) -> dict[str, Reads | Writes]:
    """The parameters of a command that name files, and what it does with them."""
    hints = get_type_hints(command, include_extras=True)
    marks = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: one for name, found in marks.items() for one in found if isinstance(one, Reads | Writes)}


def with_files_checked(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which begins once all its files may be read and written."""

    @wraps(command)
    def checked(**given: Any) -> None:
        need_files((f"--{name.replace('_', '-')}", given[name], role) for name, role in roles_of(command).items())
        command(**given)

    return checked


for _command, _examples in EXAMPLES.items():
    _kind = FitCommand if _command is fit else None
    app.command(cls=_kind, epilog=f"[bold]Examples[/]\n\n{_examples}")(with_files_checked(_command))

# Some versions of typer bring their own click; this is the base of usage errors in all of them.
WrongUsage: type[typer.BadParameter] = typer.BadParameter.__mro__[2]


def _version(wanted: bool) -> None:
    if wanted:
        console.output().print(f"gingham {gingham.__version__}")
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


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        with console.warnings_as_notes():
            result = app(arguments, standalone_mode=False)
    except GinghamError as error:
        console.say_error(str(error))
        return 2
    except typer.Exit as stop:
        return int(stop.exit_code)
    except WrongUsage as error:
        error.show()
        return 2
    except (typer.Abort, KeyboardInterrupt):
        console.say_error("Interrupted.")
        return 130
    except (BrokenPipeError, SystemExit):  # click leaves by the second for the first
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has gone; nothing more to write
        return 0
    except MemoryError:
        console.say_error("There is not enough memory for this. Use fewer clusters or fewer rows.")
        return 2
    except OSError as error:
        name = "" if error.filename is None else f" ({error.filename})"
        console.say_error(f"{error.strerror or error}{name}.")
        return 2
    except Exception as error:
        console.say_error(
            f"Internal error (please report): {type(error).__name__}: {error}. Set GINGHAM_TRACEBACK=1 to see where."
        )
        if os.environ.get("GINGHAM_TRACEBACK"):
            console.messages().print(traceback.format_exc(), markup=False)
        return 1
    return result if isinstance(result, int) else 0
