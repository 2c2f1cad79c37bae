"""Ctrl-C in the middle of a fit, from whatever thread."""

from __future__ import annotations

import os
import signal
import time

from gingham.fitting.interruption import interrupted


def press_ctrl_c(*_: object) -> None:
    """To be used as a callback: goes on when the main thread has heard of it."""
    os.kill(os.getpid(), signal.SIGINT)
    late = time.monotonic() + 60
    while not interrupted():
        assert time.monotonic() < late, "no handler has heard Ctrl-C"
        time.sleep(0.001)
