"""Processes that are killed in the middle of their work.

They come from a server that has imported everything and used nothing: a plain fork would copy the locks of polars'
threads, and a child that uses polars would wait for them for ever instead of doing its work.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["gingham.cli.app", "gingham.cli.fitting", "gingham.cli.of_relations"])


def command(arguments: list[str]) -> None:
    """One gingham command, without its output; the exit code is the command's."""
    from gingham.cli.app import run

    with (
        Path(os.devnull).open("w") as silence,
        contextlib.redirect_stdout(silence),
        contextlib.redirect_stderr(silence),
    ):
        code = run(arguments)
    os._exit(code)


def seconds_of(arguments: list[str]) -> float:
    """How long the command takes when nobody kills it."""
    began = time.monotonic()
    child = SERVER.Process(target=command, args=(arguments,))
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode
    return time.monotonic() - began


def killed(arguments: list[str], seconds: float) -> bool:
    """Run the command and kill it after so many seconds; False where it came to its end before."""
    child = SERVER.Process(target=command, args=(arguments,))
    child.start()
    child.join(seconds)
    if child.is_alive():
        os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode != 0
