"""Checkpoints of a fit in a file: what `gingham.fitting.loop.Checkpoint` hands over is kept here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from gingham import storage
from gingham.errors import GinghamError
from gingham.fitting.loop import Checkpoint
from gingham.storage import State

KIND = "Checkpoint"


class CheckpointFile:
    """Keeps the stages of one fit in a file, written whole or not at all, at most every so many seconds.

    A stage is known by its name, "beta/pilot" or "start 2/partition" say. Several threads may keep theirs at a time.

    Parameters
    ----------
    key : str
        Says which fit it is: the file of another one is refused before the data is looked at. Fits say beside it
        which data and settings they have, so that with the same key other data is refused, too.
    every : float
        Seconds between two writes.
    """

    def __init__(self, path: Path, key: str, every: float) -> None:
        self.path, self.key, self.every = path, key, every
        self.stages: dict[str, State] = {}
        self.data: dict[str, str] = {}  # of each fit, known by its stage: a digest of data and settings
        self.begun: set[str] = set()
        self.written = time.monotonic()
        self.pause = every
        self.stopped = False
        self.lock = Lock()

    def read(self) -> int:
        """Take up the file of an earlier process; returns how many sweeps it knows."""
        kind, state = storage.read(self.path)
        if kind != KIND or state.get("key") != self.key:
            raise self.of_another_fit()
        try:
            stages = state["stages"].items()
            self.data = {str(stage): str(digest) for stage, digest in state["data"].items()}
            self.stages = {str(name): {"finished": bool(kept["finished"]), **kept} for name, kept in stages}
            return sum(len(kept.get("objectives", ())) for kept in self.stages.values())
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GinghamError(f"The checkpoint {str(self.path)!r} is damaged; leave --resume out.") from None

    def of_another_fit(self) -> GinghamError:
        return GinghamError(
            f"The checkpoint {str(self.path)!r} belongs to other data or other options. "
            "Repeat the options of the interrupted run, or leave --resume out to begin again."
        )

    def bind(self, stage: str, data: str) -> None:
        with self.lock:
            if self.data.setdefault(stage, data) != data:
                raise self.of_another_fit()

    def begin(self, stage: str) -> State | None:
        with self.lock:
            if self.stopped:
                return None
            if stage in self.begun:
                raise RuntimeError(f"Two stages of a fit are named {stage!r}: a resumed fit would mix them up.")
            self.begun.add(stage)
            return self.stages.get(stage)

    def keep(self, stage: str, state: Callable[[], State], finished: bool, now: bool) -> None:
        with self.lock:
            # After Ctrl-C only what was at work then is kept: what is done later, with what there is, a fit that goes
            # on must not take for its own stages.
            if self.stopped and not (now and (stage in self.begun or not stage)):
                return
            due = now or time.monotonic() - self.written >= self.pause
            if finished or due:
                self.stages[stage] = {**state(), "finished": finished}
            if finished:
                self.stages = {name: kept for name, kept in self.stages.items() if not name.startswith(f"{stage}/")}
            self.stopped = self.stopped or now
            if due:
                self.write()

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            self.write()

    def write(self) -> None:
        began = time.monotonic()
        storage.write(self.path, KIND, {"key": self.key, "data": self.data, "stages": self.stages})
        self.written = time.monotonic()
        if self.every:  # large states are written less often, so that a fit is not slowed by more than a tenth
            self.pause = max(self.every, 10 * (self.written - began))


@contextmanager
def kept_in(path: Path, key: str, resume: bool, every: float) -> Iterator[tuple[Checkpoint, int | None]]:
    """A checkpoint for a fit, in a file, and the sweeps that are known; None where there is no file to go on from.

    The caller removes the file when the fit has come to its end.
    """
    file = CheckpointFile(path, key, every)
    known = file.read() if resume and path.exists() else None
    try:
        yield Checkpoint(file), known
    except KeyboardInterrupt:
        file.stop()
        raise
