"""Checkpoints: where a fit stands, handed to whoever keeps it, and taken up again in another process.

Solvers are deterministic, so a run that goes on from what was kept ends where it would have ended. States are
plain values and arrays: they can stand in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

State = dict[str, Any]


class Keeper(Protocol):
    """Remembers the runs of one fit by the order in which they begin."""

    def begin(self) -> str:
        """The name of the run that begins."""

    def recall(self, run: str) -> State | None:
        """What an earlier process kept of a run; ``finished`` says whether it came to its end."""

    def keep(self, run: str, state: Callable[[], State], finished: bool) -> None:
        """Offer where a run stands; the state is asked for only where it is kept."""

    def stop(self, run: str, state: Callable[[], State]) -> None:
        """Ctrl-C: write at once what is known and where this run stands; nothing more is kept or recalled."""

    def within(self, run: str) -> AbstractContextManager[None]:
        """Runs that begin inside belong to this one, and are forgotten when it is finished."""


# Set by who wants checkpoints.
KEEPER: ContextVar[Keeper | None] = ContextVar("KEEPER", default=None)


class Memory(NamedTuple):
    """What a solver remembers from sweep to sweep beside its posterior."""

    get: Callable[[], Any]
    set: Callable[[Any], None]


def of_random(rng: np.random.Generator) -> Memory:
    """Where a generator stands."""

    def restore(state: Any) -> None:
        rng.bit_generator.state = state

    return Memory(lambda: rng.bit_generator.state, restore)


@dataclass(frozen=True)
class Run:
    """One run of a fit, and what is known of it from an earlier process."""

    keeper: Keeper | None
    name: str
    known: State | None

    @property
    def finished(self) -> bool:
        return self.known is not None and bool(self.known["finished"])

    def keep(self, state: Callable[[], State], finished: bool = False) -> None:
        if self.keeper is not None:
            self.keeper.keep(self.name, state, finished)

    def stop(self, state: Callable[[], State]) -> None:
        """The run was interrupted; the state is that of the last whole sweep."""
        if self.keeper is not None:
            self.keeper.stop(self.name, state)


def begin_run() -> Run:
    """The run that begins here; without a keeper nothing is known and nothing is kept."""
    keeper = KEEPER.get()
    if keeper is None:
        return Run(None, "", None)
    name = keeper.begin()
    return Run(keeper, name, keeper.recall(name))


def once(compute: Callable[[], State], rng: np.random.Generator | None = None) -> State:
    """The result of a stage of a fit, recalled where an earlier process has finished it.

    A generator that the stage draws from is left where the stage would have left it.
    """
    run = begin_run()
    if run.known is not None and run.finished:
        if rng is not None:
            rng.bit_generator.state = run.known["random"]
        return dict(run.known["result"])
    if run.keeper is None:
        return compute()
    with run.keeper.within(run.name):
        result = compute()
    run.keep(lambda: {"result": result, "random": None if rng is None else rng.bit_generator.state}, finished=True)
    return result
