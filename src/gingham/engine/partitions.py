"""Alternating projections over partitions: P0's Algorithm 1 on any dask scheduler.

The observations are partitioned by the items of the first mode. A partition's share of a sweep is a pure function of
its observations and of the state before (the other modes' memberships, the answers, the masses); shares are added up
as a tree, and the state after them is a function of the sum. So states and shares stay on the workers, what comes back
each sweep is the objective, and the memberships of the first mode never leave the workers until the end. A lost worker
costs the recomputation of what it held: its observations, and sweeps since the state was last brought back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.engine.dask_worker import Client, Future, Value, submit
from gingham.engine.partition_sums import (
    Cell,
    Own,
    Share,
    State,
    first_steps,
    later_step,
    onward,
    own_memberships,
    share,
    whole_share,
)
from gingham.engine.sums import Features, Grouped, SumsOfRows
from gingham.engine.threads import one_thread

MOST_ADDED, TOGETHER = 8, 2**25  # values that one task adds up, and numbers that they may have together
BROUGHT_BACK = 25  # sweeps after which the state comes back: a lost worker costs no more of them than that

Facts = tuple[float, tuple[float, ...]]  # N·L̂, and n_i Ī_i of each mode
Ends = tuple[list["Future[Own]"], "Future[State]"]  # the first mode's memberships of each partition, and the state


@dataclass(frozen=True, eq=False)
class Partitions:
    """Observations in partitions on the workers of a dask client."""

    client: Client
    parts: Sequence[Future[Grouped]]  # their first modes are disjoint, their other modes are the same
    own: Sequence[Ints]  # codes of the first mode's items of each partition, among those of all
    n_modes: int

    def each(
        self, call: Callable[..., Value], *arguments: object, beside: Sequence[object] | None = None
    ) -> list[Future[Value]]:
        """Futures of ``call(part, cell …)`` for every partition; ``beside`` is one more argument each, the third."""
        own = [arguments] * len(self.parts)
        if beside is not None:
            own = [(arguments[0], more, *arguments[1:]) for more in beside]
        return [submit(self.client, call, part, *given) for part, given in zip(self.parts, own)]

    @property
    def n_first(self) -> int:
        """Items of the first mode."""
        return sum(len(codes) for codes in self.own)

    def memberships(self, ends: Ends) -> tuple[Floats, State]:
        """The first mode's memberships after a descent, in the order of the codes, and the state of all others."""
        parts = self.client.gather([self.client.submit(_first, own, pure=False) for own in ends[0]])
        final = ends[1].result()
        rows: Floats = np.empty((self.n_first, len(final.mass[0])))
        for codes, part in zip(self.own, parts):
            rows[codes] = part
        return rows, final

    def add_up(
        self,
        futures: Sequence[Future[Value]],
        add: Callable[[Value, Value], Value],
        size: int,
        then: Callable[[State, Value], State],
        state: Future[State],
    ) -> Future[State]:
        """A future of ``then(state, sum)``, the sum as a tree on the workers, in an order that is always the same.

        ``size`` is how many numbers a value has: small ones are added many at a time, because a task costs more.
        """
        level, fan_in = list(futures), max(2, min(MOST_ADDED, TOGETHER // max(1, size)))
        while len(level) > fan_in:
            groups = [level[at : at + fan_in] for at in range(0, len(level), fan_in)]
            level = [self.client.submit(_sum, add, *group, pure=False) for group in groups]
        return self.client.submit(_sum_then, then, state, add, *level, pure=False)


@dataclass(frozen=True, eq=False)
class ScatteredSums:
    """Sums over the tuples of all partitions, added in their order: what a start asks of a relation."""

    data: Partitions
    cell: Cell
    numbers: Floats | None

    @property
    def features(self) -> Features:
        return self.cell.features

    def project(self, axis: int, assigns: Sequence[Floats], coef: Floats) -> Floats:
        if axis == 0:
            found: Floats = np.zeros((self.data.n_first, len(coef)))
            for codes, part in zip(
                self.data.own, self._each("project", [() for _ in self.data.own], axis, assigns, coef)
            ):
                found[codes] = part
            return found
        first, *others = assigns
        return reduce(add, self._each("project", [(first[codes],) for codes in self.data.own], axis, others, coef))

    def table(self, assigns: Sequence[Floats], backend: str = "compiled") -> Floats:
        first, *others = assigns
        return reduce(add, self._each("table", [(first[codes],) for codes in self.data.own], others))

    def squares(self) -> float:
        return float(sum(self._each("squares", [() for _ in self.data.own])))

    def drawn(self, items: Ints, places: Floats) -> Floats:
        found: Floats = np.empty((len(items), self.features.size))
        at: Ints = np.empty(self.data.n_first, dtype=np.int64)  # of each item, in its partition
        for codes in self.data.own:
            at[codes] = np.arange(len(codes))
        here = [np.flatnonzero(np.isin(items, codes)) for codes in self.data.own]
        for rows, part in zip(here, self._each("drawn", [(at[items[rows]], places[rows]) for rows in here])):
            found[rows] = part
        return found

    def _each(self, name: str, own: Sequence[tuple[AnyArray, ...]], *arguments: object) -> list[Any]:
        """The sums of that name of every partition; ``own`` are its arguments that belong to the partition."""
        futures = self.data.each(_sums_of_part, self.cell, name, *arguments, beside=own)
        return list(self.data.client.gather(futures))


class Descent:
    """Sweeps over the partitions; shares are added up as a tree, and the state is made where the sum is."""

    def __init__(self, data: Partitions, cell: Cell, first: State, max_iter: int) -> None:
        self.data, self.cell, self.max_iter, self.n_sweeps = data, cell, max_iter, 0
        self.size = cell.features.size * len(first.mass[0])  # numbers that a share has for each item
        self.n_items = [len(q) for q in first.others]
        # Submitted as a task and not scattered: it can be made again when a worker is lost.
        self.now = data.client.submit(_same, first, pure=False)
        self.last: tuple[float, Future[State]] | None = None  # the last sweep's β, and the state before it
        # Shares of the next sweep, begun before its turn, with β and the state that they are made from.
        self.ahead: tuple[float, Future[State], list[Future[Share]]] | None = None

    def sweep(self, step: float) -> Facts:
        data, cell, before = self.data, self.cell, self.now
        own: list[Future[Own]] = []
        d = len(self.n_items) + 1
        if d > 2:
            own = data.each(own_memberships, cell, step, before)
            shares = data.each(share, cell, before, beside=own)
        elif self.ahead is not None and self.ahead[:2] == (step, before):
            shares = self.ahead[2]
        else:  # nothing asks for the first mode's memberships again in this sweep
            shares = data.each(whole_share, cell, step, before)
        size = self.size * (self.n_items[0] if d > 1 else 1)
        now = data.add_up(shares, Share.plus, size, partial(first_steps, cell, step, data.n_first), before)
        for axis in range(2, d):
            pieces = data.each(onward, cell, now, axis, beside=own)
            size = self.size * self.n_items[axis - 1]
            now = data.add_up(pieces, add, size, partial(later_step, cell, step, axis), now)
        facts = data.client.submit(_facts, now, pure=False, priority=1)  # before the next sweep's shares
        self.n_sweeps += 1
        comes_back, self.ahead = self.n_sweeps % BROUGHT_BACK == 0, None
        if d <= 2 and not comes_back and self.n_sweeps < self.max_iter:  # workers go on while the objective travels
            self.ahead = (step, now, data.each(whole_share, cell, step, now))
        found: Facts = facts.result()
        if comes_back:
            now = data.client.submit(_same, now.result(), pure=False)
        self.now, self.last = now, (step, before)
        return found

    def kept(self) -> dict[str, Any]:
        """Where the descent stands, brought here, for a checkpoint: the state, and the last sweep that made it."""
        step, before = (0.0, self.now) if self.last is None else self.last
        states = {"before": before.result()._asdict(), "now": self.now.result()._asdict()}
        return {**states, "step": step, "n_sweeps": self.n_sweeps}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from where another descent stood."""
        before, now = (
            self.data.client.submit(_same, State(*(kept[name][field] for field in State._fields)), pure=False)
            for name in ("before", "now")
        )
        self.last, self.now, self.n_sweeps, self.ahead = (kept["step"], before), now, kept["n_sweeps"], None

    def end(self) -> Ends | None:
        """Futures of the first mode's memberships, and of the state; None where nothing was done."""
        self.ahead = None
        if self.last is None:
            return None
        # A function of the state before: made again rather than kept or moved.
        return self.data.each(own_memberships, self.cell, *self.last), self.now


def _sums_of_part(part: Grouped, cell: Cell, own: tuple[Any, ...], name: str, *arguments: Any) -> Floats | float:
    """One of the sums of a partition; where it takes memberships, those of its own items come first."""
    sums = SumsOfRows(part, cell.features)
    if name == "table":
        return sums.table((*own, *arguments[0]))
    if name == "project":
        axis, assigns, coef = arguments
        return sums.project(axis, (*own, *assigns), coef)
    return sums.squares() if name == "squares" else sums.drawn(*own)


def _same(value: Value) -> Value:
    return value


def _first(own: Own) -> Floats:
    return own[0]


def _facts(state: State) -> Facts:
    return state.loss, state.information


def _sum(add: Callable[[Value, Value], Value], *values: Value) -> Value:
    return reduce(add, values)


def _sum_then(
    then: Callable[[State, Value], State], state: State, add: Callable[[Value, Value], Value], *values: Value
) -> State:
    with one_thread():
        return then(state, reduce(add, values))
