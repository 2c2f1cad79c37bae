"""The command line: ``gingham fit | predict | certify | report``."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from typing import NoReturn

OBJECTS = 500_000  # between two searches for rings of objects: imports make 300,000, and one search takes .07 s


def main() -> None:
    """Run the command line; every expected failure is one sentence and exit code 2."""
    gc.set_threshold(OBJECTS)
    from gingham.cli.signals import SIGNALS

    SIGNALS.install()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        from gingham.cli.app import run
    except ImportError as error:
        sys.stderr.write(f"The command line needs {error.name}: install gingham[cli].\n")
        sys.exit(2)
    leave(SIGNALS.exit_code(run(sys.argv[1:])))


def leave(code: int) -> NoReturn:
    """End the process without taking it apart: the libraries in it need half a second for that, and all is written."""
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
