"""Ctrl-C in a fit: it sets a flag, and the loop reads the flag after every step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Interruption:
    """Of the process, as signals are: all threads of a fit read it."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self.heeded = False  # whether a fit runs that reads the flag


_interruption = _Interruption()


def interrupted() -> bool:
    """Whether the fit was asked to end after its present step."""
    return _interruption.requested.is_set()


def end_if_interrupted() -> None:
    """End a fit between two of its stages, where it has nothing yet that is worth keeping."""
    if interrupted():
        raise KeyboardInterrupt


def interrupt(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """What Ctrl-C does, in the form of a signal handler: the fit that runs ends after its present step.

    The second time, and where no fit runs, it raises KeyboardInterrupt.
    """
    if interrupted() or not _interruption.heeded:
        raise KeyboardInterrupt
    _interruption.requested.set()


@contextmanager
def interruptible() -> Iterator[None]:
    """What runs inside reads the flag; Ctrl-C sets it, and a second one raises KeyboardInterrupt at once.

    Python runs signal handlers in the main thread, so that a fit on another thread changes nothing. A handler that the
    program itself has installed stays; it may call `interrupt`, as the command line's does.
    """
    if threading.current_thread() is not threading.main_thread() or _interruption.heeded:
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    _interruption.heeded = True
    try:
        yield
    finally:
        _interruption.heeded = False
        _interruption.requested.clear()
        if handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, handler)
