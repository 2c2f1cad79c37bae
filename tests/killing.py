"""Processes that are killed in the middle of their work.

They come from a server that has imported everything and used nothing: a plain fork would copy the locks of polars'
threads, and a child that uses polars would wait for them for ever instead of doing its work. Linear algebra runs on one
thread for the same reason.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest import mock

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["gingham.cli.app", "gingham.cli.table_files", "gingham.models.joint.estimator"])


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


def begun(arguments: list[str]) -> Any:
    """A process that runs the command; the server that makes it is started by the first one."""
    child = SERVER.Process(target=command, args=(arguments,))
    with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}):
        child.start()
    return child


def seconds_of(arguments: list[str]) -> float:
    """How long the command takes when nobody kills it."""
    began = time.monotonic()
    child = begun(arguments)
    child.join()
    assert child.exitcode == 0, child.exitcode
    return time.monotonic() - began


def killed(arguments: list[str], seconds: float) -> bool:
    """Run the command and kill it after so many seconds; False where it came to its end before."""
    child = begun(arguments)
    child.join(seconds)
    if child.is_alive():
        os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode != 0
