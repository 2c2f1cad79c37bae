"""Ctrl-C and SIGTERM, at any moment: a word and an exit code, and no traceback, imports included."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gingham.files import atomic

WORDS = {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Terminated."}
CLEARED = "\r\x1b[K\x1b[?25h"  # the line of a progress bar, and the cursor that it hides
FAILED = 128  # exit codes of programs that a signal ended begin here


class Signals:
    """What a signal does: it ends the process at once, unless a fit is at work that keeps what it has.

    Attributes
    ----------
    caught : int or None
        The signal that interrupted a fit.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self._fit_runs = False

    def install(self) -> None:
        """From now on; a signal that the caller of the process has switched off stays so."""
        for number in WORDS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrived)

    @contextmanager
    def interrupt_fit(self) -> Iterator[None]:
        """The first signal interrupts the fits that run inside, one after another; the second ends the process."""
        from gingham.fitting.interruption import interruptible

        self._fit_runs = True
        try:
            with interruptible():
                yield
        finally:
            self._fit_runs = False

    def exit_code(self, code: int) -> int:
        """The code of an interrupted command, by the signal that interrupted it."""
        return code if self.caught is None or code != FAILED + signal.SIGINT else FAILED + self.caught

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._fit_runs and self.caught is None:
            from gingham.fitting.interruption import interrupt

            self.caught = number
            interrupt()
            return
        atomic.forget_unfinished()
        # Straight to the terminal: streams may be in the middle of something, and modules half imported.
        word = f"{CLEARED if os.isatty(2) else ''}Error: {WORDS[signal.Signals(number)]}\n"
        os.write(2, word.encode())
        os._exit(FAILED + number)


SIGNALS = Signals()
