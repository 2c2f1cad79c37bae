"""Ctrl-C and SIGTERM, at any moment: a word and an exit code, and no traceback, imports included."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gingham.files import atomic

WORDS = {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Terminated."}
CLEARED = "\r\x1b[K\x1b[?25h"  # the line of a progress bar, and the cursor that it hides
FAILED = 128  # exit codes of programs that a signal ended begin here


class Signals:
    """What a signal does: it ends the process at once, unless something is at work that keeps what it has.

    Attributes
    ----------
    caught : int or None
        The signal that work was told of.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self._told = False  # whether work is told, by KeyboardInterrupt

    def install(self) -> None:
        """From now on; a signal that the caller of the process has switched off stays so."""
        for number in WORDS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrived)
        sys.unraisablehook = self._lost

    @contextmanager
    def told(self) -> Iterator[None]:
        """What runs inside gets the first signal as KeyboardInterrupt; the second one ends the process."""
        self._told = True
        try:
            yield
        finally:
            self._told = False

    def exit_code(self, code: int) -> int:
        """The code of an interrupted command, by the signal that interrupted it."""
        return code if self.caught is None or code != FAILED + signal.SIGINT else FAILED + self.caught

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._told and self.caught is None:
            self.caught = number
            raise KeyboardInterrupt
        atomic.forget_unfinished()
        # Straight to the terminal: streams may be in the middle of something, and modules half imported.
        word = f"{CLEARED if os.isatty(2) else ''}Error: {WORDS[signal.Signals(number)]}\n"
        os.write(2, word.encode())
        os._exit(FAILED + number)

    def _lost(self, unraisable: object) -> None:
        """An exception where none can be raised, in a callback of compiled code say: a signal is sent again."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):  # type: ignore[attr-defined]
            sys.__unraisablehook__(unraisable)  # type: ignore[arg-type]
            return
        from threading import Timer, main_thread

        number, self.caught = self.caught or signal.SIGINT, None
        Timer(0.05, signal.pthread_kill, [main_thread().ident, number]).start()


SIGNALS = Signals()
