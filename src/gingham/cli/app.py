"""The application: its commands, and running one; every expected failure is a sentence and exit code 2."""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

import gingham
from gingham.cli import console
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, need_files


def say_plainly(parameters: Iterable[Any]) -> None:
    """Show the value of an option as a word in capitals rather than as a Python type; switches show none."""
    for one in parameters:
        if one.param_type_name == "option":
            kind = one.type_descriptor
            one.metavar = "" if one.is_flag else "NUMBER" if kind.is_ranged or kind.annotation is float else "VALUE"
        else:
            one.display_type = lambda ctx: None


class Command(TyperCommand):
    """Its help says in words what each option takes; that of ``fit`` what each kind of model is for."""

    def get_help(self, ctx: Any) -> str:  # a context of click, or of the one that some versions of typer bring
        say_plainly(self.get_params(ctx))
        for option in self.params:
            if self.name == "fit" and option.name == "model":
                from gingham.cli.tables.kinds import KINDS

                lines = [f"{name}: {kind.about}" for name, kind in KINDS.items()]
                option.help = "\n\n".join(["auto: choose from the data.", *lines])  # type: ignore[attr-defined]
        return super().get_help(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """MODEL [ITEM] rather than {model} [[item]]."""
        return [
            piece.strip("{}").replace("[[", "[").replace("]]", "]").upper()
            for piece in super().collect_usage_pieces(ctx)
        ]


class Group(TyperGroup):
    """The same for the options of gingham itself, and where its documentation is."""

    def get_help(self, ctx: Any) -> str:
        from importlib.metadata import PackageNotFoundError, metadata

        say_plainly(self.get_params(ctx))
        self.epilog = "gingham COMMAND --help explains a command, with examples."
        try:
            links = metadata("gingham").get_all("Project-URL") or []
        except PackageNotFoundError:
            links = []
        for name, _, address in (link.partition(", ") for link in links):
            if name == "Documentation":
                self.epilog += f"\n\nDocumentation: {address}"
        return super().get_help(ctx)


app = typer.Typer(
    name="gingham",
    cls=Group,
    help="Co-clustering with guarantees: group the rows and columns of a table, predict missing entries, bound the "
    "error.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
GROUPS = {  # each command is the function of the module that has its name
    "Explore": "demo look datasets",
    "Fit": "fit simplify update",
    "Understand": "report describe explain similar recommend predict timeline",
    "Trust": "certify compare verify watch audit",
}


def roles_of(command: Callable[..., None]) -> dict[str, Reads | Writes]:
    """The parameters of a command that name files, and what it does with them."""
    hints = get_type_hints(command, include_extras=True)
    marks = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: one for name, found in marks.items() for one in found if isinstance(one, Reads | Writes)}


def need_order(command: str, given: dict[str, Any]) -> None:
    """Refuse a table in the place of a model and the other way round, with the command that was meant."""
    model, file = (given.get(name) for name in ("model", "file"))
    if command == "fit" and is_model(file):
        raise GinghamError(f"{file!r} is a model that gingham fit wrote. Give the table: gingham fit TABLE.")
    if command != "fit" and given.get("labels") is None and is_model(file) and not is_model(model):
        meant = f"gingham {command} {quote(str(file))} {quote(str(model))}"
        raise GinghamError(f"The model comes first and the table second: {meant}")


def is_model(name: str | None) -> bool:
    """Whether a file begins as model files do, which are zip archives; so do some Excel files, by another name."""
    if name is None or not Path(name).is_file() or name.lower().endswith((".xlsx", ".xlsm", ".ods")):
        return False
    with Path(name).open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def with_files_checked(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which begins once all its files may be read and written."""

    @wraps(command)
    def checked(**given: Any) -> None:
        need_order(command.__name__, given)
        need_files((f"--{name.replace('_', '-')}", given[name], role) for name, role in roles_of(command).items())
        command(**given)

    return checked


def command_of(name: str) -> Callable[..., None]:
    """The function behind a command."""
    found: Callable[..., None] = getattr(import_module(f"gingham.cli.{name}"), name)
    return found


def add_command(name: str, group: str) -> None:
    """Add a command with its docstring as help, examples last."""
    command = command_of(name)
    about, _, examples = (inspect.getdoc(command) or "").partition("\n\nExamples\n--------\n")
    shown = "[bold]Examples[/]\n\n" + re.sub(r"\n +", " ", examples).replace("\n", "\n\n")
    app.command(cls=Command, help=about, epilog=shown, rich_help_panel=group)(with_files_checked(command))


for _group, _names in GROUPS.items():
    for _name in _names.split():
        add_command(_name, _group)

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
        typer.Option(help="Python module to import first, for example one that registers a loss."),
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
        if "unexpected extra argument" in str(error):
            console.say_note(
                "Separate values with commas and no spaces (4,5), and put a name that has spaces in quotes."
            )
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
