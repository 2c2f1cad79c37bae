"""Run the command line: every expected failure is a sentence and exit code 2."""

from __future__ import annotations

import os
import traceback
from typing import Any

import typer

from gingham.cli import commands_models, commands_results  # noqa: F401 - commands add themselves
from gingham.cli import console as screen
from gingham.cli.application import app
from gingham.cli.joint import joint
from gingham.errors import GinghamError

app.add_typer(joint, name="joint")

# Some versions of typer bring their own click; this is the base of usage errors in all of them.
WrongUsage: Any = typer.BadParameter.__mro__[2]


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        with screen.warnings_as_notes():
            result = app(arguments, standalone_mode=False)
    except GinghamError as error:
        screen.say_error(str(error))
        return 2
    except typer.Exit as stop:
        return int(stop.exit_code)
    except WrongUsage as error:
        error.show()
        return 2
    except (typer.Abort, KeyboardInterrupt):
        screen.say_error("Interrupted.")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has gone; nothing more to write
        return 0
    except MemoryError:
        screen.say_error("There is not enough memory for this. Use fewer clusters or fewer rows.")
        return 2
    except OSError as error:
        name = "" if error.filename is None else f" ({error.filename})"
        screen.say_error(f"{error.strerror or error}{name}.")
        return 2
    except Exception as error:
        screen.say_error(
            f"gingham met a case it does not know: {type(error).__name__}: {error}. "
            "Set GINGHAM_TRACEBACK=1 to see where, and please report it."
        )
        if os.environ.get("GINGHAM_TRACEBACK"):
            screen.side().print(traceback.format_exc(), markup=False)
        return 1
    return result if isinstance(result, int) else 0
