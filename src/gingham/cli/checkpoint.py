"""Checkpoints of a fit in a file beside the model, for ``gingham fit --resume``."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gingham
from gingham import storage
from gingham.errors import GinghamError
from gingham.fitting.checkpoint import KEEPER

KIND = "Checkpoint"


def checkpoint_of(model: Path) -> Path:
    """The checkpoint file of a model file."""
    return model.with_name(model.name + ".checkpoint")


def identity(fingerprint: str, settings: dict[str, Any]) -> str:
    """Equal for equal data and settings."""
    facts = json.dumps([gingham.__version__, fingerprint, settings], sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


class FileKeeper:
    """Keeps the runs of one fit in a file, written whole or not at all, at most every so many seconds.

    A run is named by its place: "2" is the third of the fit, "2.0" the first within it.
    """

    def __init__(self, path: Path, key: str, every: float) -> None:
        self.path, self.key, self.every = path, key, every
        self.runs: dict[str, dict[str, Any]] = {}
        self.places = [0]  # runs that have begun, at each depth
        self.written = time.monotonic()
        self.pause = every
        self.stopped = False

    def read(self) -> int:
        """Take up the file of an earlier process; returns how many sweeps it knows."""
        kind, state = storage.read(self.path)
        if kind != KIND or state.get("key") != self.key:
            raise GinghamError(
                f"The checkpoint {str(self.path)!r} belongs to other data or other options. "
                "Repeat the options of the interrupted run, or leave --resume out to begin again."
            )
        try:
            self.runs = {str(run): {"finished": bool(kept["finished"]), **kept} for run, kept in state["runs"].items()}
            return sum(len(kept.get("objectives", ())) for kept in self.runs.values())
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GinghamError(f"The checkpoint {str(self.path)!r} is damaged; leave --resume out.") from None

    def begin(self) -> str:
        self.places[-1] += 1
        return ".".join(str(place - 1) for place in self.places)

    def recall(self, run: str) -> dict[str, Any] | None:
        return None if self.stopped else self.runs.get(run)

    def keep(self, run: str, state: Callable[[], dict[str, Any]], finished: bool) -> None:
        if self.stopped:
            return
        due = time.monotonic() - self.written >= self.pause
        if finished or due:
            self.runs[run] = {**state(), "finished": finished}
        if finished:
            self.runs = {name: kept for name, kept in self.runs.items() if not name.startswith(f"{run}.")}
        if due:
            self.write()

    def stop(self, run: str, state: Callable[[], dict[str, Any]]) -> None:
        if not self.stopped:
            self.runs[run] = {**state(), "finished": False}
            self.write()
        # What is done from here on, with what there is, a fit that goes on must not take for its own runs.
        self.stopped = True

    @contextmanager
    def within(self, run: str) -> Iterator[None]:
        self.places.append(0)
        try:
            yield
        finally:
            self.places.pop()

    def write(self) -> None:
        began = time.monotonic()
        storage.write(self.path, KIND, {"key": self.key, "runs": self.runs})
        self.written = time.monotonic()
        if self.every:  # large states are written less often, so that a fit is not slowed by more than a tenth
            self.pause = max(self.every, 10 * (self.written - began))


@contextmanager
def kept_in(path: Path, key: str, resume: bool, every: float) -> Iterator[int | None]:
    """Fits inside go on from the checkpoint (with ``resume``) and keep it up to date.

    Yields the sweeps that are known, None where there is no checkpoint.

    The file goes when the fit has come to its end, and stays when it has not.
    """
    keeper = FileKeeper(path, key, every)
    known = keeper.read() if resume and path.exists() else None
    token = KEEPER.set(keeper)
    try:
        yield known
    except KeyboardInterrupt:
        keeper.write()
        raise
    finally:
        KEEPER.reset(token)


def forget(path: Path) -> None:
    """Remove a checkpoint that is no longer needed."""
    path.unlink(missing_ok=True)
