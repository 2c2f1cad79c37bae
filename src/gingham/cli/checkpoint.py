"""Checkpoints of a fit in a file beside the model, for ``gingham fit --resume``."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gingham
from gingham import storage
from gingham.errors import GinghamError
from gingham.posterior import Posterior
from gingham.problem import Objective
from gingham.solvers.loop import KEEPER, Kept, Solution, Trace

KIND = "Checkpoint"


def checkpoint_of(model: Path) -> Path:
    """The checkpoint file of a model file."""
    return model.with_name(model.name + ".checkpoint")


def identity(fingerprint: str, settings: dict[str, Any]) -> str:
    """Equal for equal data and settings."""
    facts = json.dumps([gingham.__version__, fingerprint, settings], sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


class FileKeeper:
    """Keeps the runs of one fit in a file, written whole or not at all, at most every so many seconds."""

    def __init__(self, path: Path, key: str, every: float) -> None:
        self.path, self.key, self.every = path, key, every
        self.runs: dict[int, dict[str, Any]] = {}
        self.count = 0
        self.written = time.monotonic()

    def read(self) -> int:
        """Take up the file of an earlier process; returns how many sweeps it knows."""
        kind, state = storage.read(self.path)
        if kind != KIND or state.get("key") != self.key:
            raise GinghamError(
                f"The checkpoint {str(self.path)!r} belongs to other data or other options. "
                "Repeat the options of the interrupted run, or leave --resume out to begin again."
            )
        try:
            self.runs = {int(run): kept for run, kept in state["runs"].items()}
            return sum(len(kept["factors"]) for kept in self.runs.values())
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GinghamError(f"The checkpoint {str(self.path)!r} is damaged; leave --resume out.") from None

    def begin(self) -> int:
        self.count += 1
        return self.count - 1

    def recall(self, run: int, start: Posterior) -> Kept | None:
        state = self.runs.get(run)
        if state is None:
            return None
        objectives = tuple(
            Objective(tuple(o["losses"]), tuple(o["information"]), tuple(o["betas"])) for o in state["objectives"]
        )
        posterior = replace(start, assign=tuple(state["assign"]), answers=tuple(state["answers"]))
        trace = Trace(tuple(state["factors"]), objectives)
        return Kept(Solution(posterior, objectives[-1], trace, state["converged"]), state["finished"])

    def keep(self, run: int, kept: Kept) -> None:
        solution = kept.solution
        if type(solution.posterior) is not Posterior:
            return  # other kinds of state begin again; they end at the same place
        self.runs[run] = {
            "assign": list(solution.posterior.assign),
            "answers": list(solution.posterior.answers),
            "factors": list(solution.trace.factors),
            "objectives": [
                {"losses": list(o.losses), "information": list(o.information), "betas": list(o.betas)}
                for o in solution.trace.objectives
            ],
            "converged": solution.converged,
            "finished": kept.finished,
        }
        if time.monotonic() - self.written >= self.every:
            self.write()

    def write(self) -> None:
        storage.write(self.path, KIND, {"key": self.key, "runs": {str(k): v for k, v in self.runs.items()}})
        self.written = time.monotonic()


@contextmanager
def kept_in(path: Path, key: str, resume: bool, every: float) -> Iterator[int]:
    """Fits inside go on from the checkpoint (with ``resume``) and keep it up to date; yields the known sweeps.

    The file goes when the fit has come to its end, and stays when it has not.
    """
    keeper = FileKeeper(path, key, every)
    known = keeper.read() if resume and path.exists() else 0
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
