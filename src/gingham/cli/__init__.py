"""The command line: ``gingham fit | predict | certify | report``."""

from __future__ import annotations

import gc
import sys

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
    code = run(sys.argv[1:])
    gc.freeze()  # the end of the process would search all objects for rings, for most of a second
    sys.exit(SIGNALS.exit_code(code))
