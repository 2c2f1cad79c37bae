"""Alternating projections over partitions: P0's Algorithm 1 on any dask scheduler.

The tuples are partitioned by the items of the first mode. A partition's share of a sweep is a pure function of its
tuples and of a message (the other modes' memberships, the cell coefficients, the first mode's masses): nothing but
the message travels out, and sums travel back as a tree. So a lost worker costs the recomputation of its shares and
nothing else, and the memberships of the first mode never leave the workers until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import Floats
from gingham.cells import CellModel
from gingham.data import Mode, Sample
from gingham.kernels import project
from gingham.kernels.threads import one_blas_thread, one_thread
from gingham.posterior import Posterior
from gingham.problem import Objective
from gingham.solvers.loop import Report, Solution, fixed_point
from gingham.solvers.projection import coef_by_mode, memberships, settle, to_cells
from gingham.solvers.schedule import Constant, Schedule
from gingham.structure import Structure

MOST_ADDED, TOGETHER = 8, 2**25  # values that one task adds up, and numbers that they may have together


class Message(NamedTuple):
    """What every partition needs for one sweep."""

    others: tuple[Floats, ...]  # memberships of modes 1, 2, …
    coef: Floats  # (m_0, K · other cells)
    mass: Floats  # (m_0,)
    beta: float


class Share(NamedTuple):
    """What a partition adds to the sweep; shares add up entry by entry."""

    sums: Floats  # column sums of its memberships
    entropy: float
    statistics: Floats  # (m_0, K · other cells)
    onward: Floats  # its projection onto the items of mode 1, (n_1, K · other cells)

    def plus(self, other: Share) -> Share:
        return Share(
            self.sums + other.sums,
            self.entropy + other.entropy,
            self.statistics + other.statistics,
            self.onward + other.onward,
        )


def own_memberships(part: Sample, cell: CellModel, message: Message) -> tuple[Floats, Floats, float, Floats]:
    """The first mode's memberships of a partition, with their sums; they stay where they are computed."""
    with one_blas_thread():
        q, sums, entropy, (table,) = memberships(
            [part.rows(0, cell.features)], [message.others], [message.coef], [message.beta], message.mass
        )
    return q, sums, entropy, table


def share(part: Sample, cell: CellModel, own: tuple[Floats, Floats, float, Floats], message: Message) -> Share:
    _q, sums, entropy, table = own
    return Share(sums, entropy, table, onward(part, cell, own, message.others, 1))


def whole_share(part: Sample, cell: CellModel, message: Message) -> Share:
    """Memberships and share in one task: what two modes need of a partition in a sweep."""
    return share(part, cell, own_memberships(part, cell, message), message)


def onward(part: Sample, cell: CellModel, own: tuple[Any, ...], others: tuple[Floats, ...], axis: int) -> Floats:
    """A partition's projection onto the items of another mode."""
    if part.n_modes == 1:
        return np.zeros((0, 0))
    assigns = [own[0], *others]
    flat = project(part.rows(axis, cell.features), [q for j, q in enumerate(assigns) if j != axis])
    return flat.reshape(len(flat), -1)


def joined(parts: Sequence[Sample]) -> Sample:
    """Partitions, each with items of its own in the first mode, as one."""
    filled = [part for part in parts if part.n_rows]
    if len(filled) <= 1:
        return (filled or parts)[0]
    first = Mode(filled[0].modes[0].name, np.concatenate([part.modes[0].items for part in filled]))
    begins = np.cumsum([0, *(part.shape[0] for part in filled)])[:-1]
    codes = [np.concatenate([part.codes[0] + begin for part, begin in zip(filled, begins.astype(np.int32))])]
    codes += [np.concatenate([part.codes[j] for part in filled]) for j in range(1, filled[0].n_modes)]

    def column(name: str) -> Any:
        columns = [getattr(part, name) for part in filled]
        return None if columns[0] is None else np.concatenate(columns)

    return Sample(
        (first, *filled[0].modes[1:]), tuple(codes), column("labels"), filled[0].alphabet, column("label_codes"),
        column("weights"),
    )  # fmt: skip


class Partitions:
    """Futures of partitions (Samples) on the workers of a dask client.

    Parameters
    ----------
    client : distributed.Client
    parts : futures of Sample; their first modes are disjoint, their other modes are the same
    items : ids of the first mode in each partition
    modes : the other modes
    n_tuples : float, N
    all_threads : bool
        Whether a task may use all cores; on a cluster it has one of its worker's threads.
    """

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        items: Sequence[Any],
        modes: Sequence[Mode],
        name: str,
        n_tuples: float,
        all_threads: bool = False,
    ) -> None:
        self.client, self.parts, self.items = client, list(parts), list(items)
        self.modes, self.name, self.n_tuples = tuple(modes), name, n_tuples
        self.all_threads = all_threads

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """A future of the call's value."""
        if self.all_threads:
            return self.client.submit(call, *arguments, pure=False)
        return self.client.submit(_alone, call, *arguments, pure=False)

    @property
    def n_first(self) -> int:
        return sum(len(items) for items in self.items)

    def add_up(self, futures: Sequence[Any], add: Callable[[Any, Any], Any], size: int) -> Any:
        """Sum of the futures' values, as a tree on the workers, in an order that does not depend on who is first.

        ``size`` is how many numbers a value has: small ones are added many at a time, because a task costs more.
        """
        level, fan_in = list(futures), max(2, min(MOST_ADDED, TOGETHER // max(1, size)))
        while len(level) > 1:
            groups = [level[at : at + fan_in] for at in range(0, len(level), fan_in)]
            level = [
                self.client.submit(_sum, add, *group, pure=False) if len(group) > 1 else group[0] for group in groups
            ]
        return level[0].result()


def solve(
    data: Partitions,
    cell: CellModel,
    beta: float,
    start: Posterior,
    *,
    schedule: Schedule | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
    report: Report | None = None,
) -> Solution:
    """Descend on F(Q, β) from a start's answers, masses and memberships of the other modes."""
    client, d = data.client, len(data.modes) + 1
    mass = [start.mass[0], *start.mass[1:]]
    others = list(start.assign[1:])
    state: dict[str, Any] = {"answers": start.answers[0], "message": None}
    information = [0.0] * d
    small = replace(start, assign=(np.ones((1, start.n_clusters[0])), *start.assign[1:]))

    def view() -> Posterior:
        return replace(small, assign=(small.assign[0], *others), answers=(state["answers"],))

    def update(axis: int, table: Floats, sums: Floats, entropy: float, n: int) -> float:
        cells = to_cells(table, view(), 0, axis)
        state["answers"] = cell.answer(cells)
        mass[axis] = sums / n
        positive = mass[axis][mass[axis] > 0]
        information[axis] = max(0.0, entropy - n * float((positive * np.log(positive)).sum()))
        return float(cell.loss(state["answers"], cells).sum())

    def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
        step = beta * factor
        message = client.submit(
            _same, Message(tuple(others), coef_by_mode(view(), 0, 0), mass[0], step), pure=False
        )  # a task and not scattered data: it can be made again when a worker is lost
        own: list[Any] = []
        if d <= 2:  # nothing asks for the first mode's memberships again in this sweep
            shares = [data.submit(whole_share, part, cell, message) for part in data.parts]
        else:
            own = [data.submit(own_memberships, part, cell, message) for part in data.parts]
            shares = [data.submit(share, part, cell, o, message) for part, o in zip(data.parts, own)]
        size = start.cells[0].features.size * start.n_clusters[0]
        total = data.add_up(shares, Share.plus, size * (len(others[0]) if others else 1))
        loss = update(0, total.statistics, total.sums, total.entropy, data.n_first)
        state["message"] = message
        for axis in range(1, d):
            projected = total.onward
            if axis > 1:
                now = client.submit(_same, tuple(others), pure=False)
                pieces = [data.submit(onward, p, cell, o, now, axis) for p, o in zip(data.parts, own)]
                projected = data.add_up(pieces, _plus, size * len(others[axis - 1]))
            q = np.empty_like(others[axis - 1])
            with np.errstate(divide="ignore"):
                log_mass = np.log(mass[axis])
            sums, entropy = settle([projected], [coef_by_mode(view(), 0, axis)], [step], log_mass, q)
            others[axis - 1] = q
            loss = update(axis, q.T @ projected, sums, entropy, len(q))
        return posterior, Objective((loss,), tuple(information), (beta,))

    with one_blas_thread():  # its products are small, and threads that wait for each other cost more than they save
        solution = fixed_point(sweep, start, schedule or Constant(), tol=tol, max_iter=max_iter, report=report)
    if state["message"] is None:
        return solution
    # The memberships of the first mode are a function of the last message: made again rather than kept or moved.
    last = [data.submit(own_memberships, part, cell, state["message"]) for part in data.parts]
    own = client.gather([client.submit(_first, o, pure=False) for o in last])
    items, rows = np.concatenate(data.items), np.concatenate(own)
    order = np.argsort(items, kind="stable")
    modes = (Mode(data.name, items[order]), *data.modes)
    posterior = Posterior(Structure.grid(modes), (cell,), (rows[order], *others), (state["answers"],))
    return replace(solution, posterior=posterior)


def _same(value: Any) -> Any:
    return value


def _first(value: Any) -> Any:
    return value[0]


def _plus(a: Floats, b: Floats) -> Floats:
    return a + b


def _alone(call: Callable[..., Any], *arguments: Any) -> Any:
    with one_thread():
        return call(*arguments)


def _sum(add: Callable[[Any, Any], Any], *values: Any) -> Any:
    return reduce(add, values)
