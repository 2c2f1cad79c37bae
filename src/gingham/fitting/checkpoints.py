"""Where a fit stands, kept in a file, so that another process can continue it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from threading import Lock

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from gingham import storage
from gingham.core.problem import Objective, Posterior
from gingham.errors import GinghamError
from gingham.files import CHECKPOINT
from gingham.fitting.interruption import end_if_interrupted
from gingham.storage import State


@dataclass(frozen=True)
class Checkpoint:
    """A named stage of a fit, and what is known of it from an earlier process; by default nothing is kept.

    Solvers are deterministic, so a stage that goes on from what was kept ends where it would have ended. States are
    plain values and arrays: they can stand in a file. Names must not repeat within a stage.
    """

    file: CheckpointFile | None = None
    name: str = ""
    known: State | None = field(default=None, repr=False)

    def bound_to(self, estimator: BaseEstimator, *data: object) -> Checkpoint:
        """The same, for a fit of this estimator to this data: with other data or settings it is refused.

        Settings that are neither numbers nor text, a generator say, cannot be told apart and are passed over.
        """
        if self.file is not None:
            plain = (bool, int, float, str, tuple, type(None))
            settings = {key: value for key, value in estimator.get_params(False).items() if type(value) in plain}
            self.file.bind(self.name, str(joblib.hash((type(estimator).__name__, settings, data))))
        return self

    def stage(self, name: str) -> Checkpoint:
        """A stage within this one; it is forgotten when this one is finished."""
        if self.file is None:
            return self
        path = f"{self.name}/{name}" if self.name else name
        return Checkpoint(self.file, path, self.file.begin(path))

    @property
    def finished(self) -> bool:
        return self.known is not None and bool(self.known["finished"])

    def keep(self, state: Callable[[], State], *, finished: bool = False, now: bool = False) -> None:
        """Offer where the stage stands; with ``now`` it was interrupted, and the state is that of the last sweep."""
        if self.file is not None:
            self.file.keep(self.name, state, finished, now)

    def stop(self) -> None:
        """The fit was interrupted: what is known is written, and nothing more is kept."""
        if self.file is not None:
            self.file.stop()

    def result(self, compute: Callable[[], State], rng: np.random.Generator | None = None) -> State:
        """The result of the stage, recalled where an earlier process has finished it.

        A generator that the stage draws from is left where the stage would have left it. After Ctrl-C no stage begins.
        """
        if self.known is not None and self.finished:
            if rng is not None:
                rng.bit_generator.state = self.known["random"]
            return dict(self.known["result"])
        end_if_interrupted()
        result = compute()
        self.keep(lambda: {"result": result, "random": None if rng is None else rng.bit_generator.state}, finished=True)
        return result


NO_CHECKPOINT = Checkpoint()


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
        if kind != CHECKPOINT or state.get("key") != self.key:
            raise self.of_another_fit()
        try:
            stages = state["stages"].items()
            self.data = {str(stage): str(digest) for stage, digest in state["data"].items()}
            self.stages = {str(name): {"finished": bool(kept["finished"]), **kept} for name, kept in stages}
            return sum(len(kept.get("objectives", ())) for kept in self.stages.values())
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GinghamError(f"The checkpoint {str(self.path)!r} is damaged: omit --resume.") from None

    def of_another_fit(self) -> GinghamError:
        return GinghamError(
            f"The checkpoint {str(self.path)!r} belongs to other data or other options. Repeat the options of the "
            "interrupted fit, or omit --resume to start again."
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
        storage.write(self.path, CHECKPOINT, {"key": self.key, "data": self.data, "stages": self.stages})
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


def posterior_state(posterior: Posterior) -> State:
    """What a run changes of its posterior, whatever its kind: all but structure and cells, to the last bit."""
    changed = [field.name for field in fields(posterior) if field.init and field.name not in ("structure", "cells")]
    return {"values": {name: getattr(posterior, name) for name in changed}, "known": posterior.known_sums}


def posterior_from(start: Posterior, state: State) -> Posterior:
    """The posterior that `posterior_state` described, with the structure and cells of a start."""
    return replace(start, **state["values"]).with_sums(state["known"])


def objective_state(objective: Objective) -> State:
    """The terms of an objective, and which kind it is."""
    values = {field.name: getattr(objective, field.name) for field in fields(objective)}
    return {"kind": type(objective).__name__, "values": values}


def objective_from(state: State) -> Objective:
    every: list[type[Objective]] = [Objective, *Objective.__subclasses__()]
    kinds = {kind.__name__: kind for kind in every}
    return kinds[state["kind"]](**state["values"])
