"""Alternating projections over partitions: P0's Algorithm 1 on any dask scheduler.

The tuples are partitioned by the items of the first mode. A partition's share of a sweep is a pure function of its
tuples and of the state before (the other modes' memberships, the answers, the masses); shares are added up as a tree,
and the state after them is a function of the sum. So states and shares stay on the workers, what comes back each
sweep is the objective, and the memberships of the first mode never leave the workers until the end. A lost worker
costs the recomputation of what it held: its tuples, and sweeps since the state was last brought back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Anything, Floats
from gingham.cells import CellModel
from gingham.data import Mode, Sample
from gingham.kernels import project
from gingham.kernels.threads import one_blas_thread, one_thread
from gingham.posterior import Posterior
from gingham.problem import Objective
from gingham.solvers.loop import Report, Solution, fixed_point
from gingham.solvers.projection import coef_by_mode, memberships, settle, to_cells
from gingham.solvers.schedule import Constant, Schedule
from gingham.solvers.workers import submit
from gingham.structure import Structure

MOST_ADDED, TOGETHER = 8, 2**25  # values that one task adds up, and numbers that they may have together
BROUGHT_BACK = 25  # sweeps after which the state comes back: a lost worker costs no more of them than that


class State(NamedTuple):
    """Where the descent stands; all but the memberships of the first mode, which follow from it."""

    others: tuple[Floats, ...]  # memberships of modes 1, 2, …
    answers: Anything
    mass: tuple[Floats, ...]  # of all modes
    information: tuple[float, ...]  # n_i Ī_i
    loss: float  # N·L̂

    def coef(self, cell: CellModel, axis: int) -> Floats:
        return coef_by_mode(self._sketch(cell), 0, axis)

    def moved(self, cell: CellModel, axis: int, statistics: Floats, sums: Floats, entropy: float, n: int) -> State:
        """After a mode's half step: its masses, the answers, and what they make of the objective."""
        cells = to_cells(statistics, self._sketch(cell), 0, axis)
        answers, mass = cell.answer(cells), sums / n
        paid = max(0.0, entropy - n * float(xlogy(mass, mass).sum()))
        return self._replace(
            answers=answers,
            mass=(*self.mass[:axis], mass, *self.mass[axis + 1 :]),
            information=(*self.information[:axis], paid, *self.information[axis + 1 :]),
            loss=float(cell.loss(answers, cells).sum()),
        )

    def _sketch(self, cell: CellModel) -> Posterior:
        """What cells need of a posterior: answers, and tables of one row in place of memberships."""
        structure = Structure.grid([Mode(f"mode{j}", np.zeros(1)) for j in range(len(self.mass))])
        return Posterior(structure, (cell,), tuple(np.ones((1, len(m))) for m in self.mass), (self.answers,))


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


# what is computed where the tuples are


def own_memberships(part: Sample, cell: CellModel, beta: float, state: State) -> tuple[Floats, Floats, float, Floats]:
    """The first mode's memberships of a partition, with their sums; they stay where they are computed."""
    rows, tiles = part.rows(0, cell.features), part.tiles(0, cell.features, _row_bytes(state.others))
    with one_blas_thread():
        q, sums, entropy, (table,) = memberships(
            [rows], [state.others], [state.coef(cell, 0)], [beta], state.mass[0], tiles=tiles
        )
    return q, sums, entropy, table


def share(part: Sample, cell: CellModel, own: tuple[Floats, Floats, float, Floats], state: State) -> Share:
    _q, sums, entropy, table = own
    return Share(sums, entropy, table, onward(part, cell, own, state, 1))


def whole_share(part: Sample, cell: CellModel, beta: float, state: State) -> Share:
    """Memberships and share in one task: what two modes need of a partition in a sweep."""
    return share(part, cell, own_memberships(part, cell, beta, state), state)


def onward(part: Sample, cell: CellModel, own: tuple[Any, ...], state: State, axis: int) -> Floats:
    """A partition's projection onto the items of another mode."""
    if part.n_modes == 1:
        return np.zeros((0, 0))
    assigns = [q for j, q in enumerate((own[0], *state.others)) if j != axis]
    tiles = part.tiles(axis, cell.features, _row_bytes(assigns))
    flat = project(part.rows(axis, cell.features), assigns, tiles=tiles)
    return flat.reshape(len(flat), -1)


def _row_bytes(assigns: Sequence[Floats]) -> int:
    """Of what one tuple gathers."""
    return 8 * prod(q.shape[1] for q in assigns)


# what is computed where the shares were added up


def first_steps(cell: CellModel, beta: float, n_first: int, state: State, total: Share) -> State:
    """The first mode's step, known from all shares, and the second mode's, from their projection onto it."""
    state = state.moved(cell, 0, total.statistics, total.sums, total.entropy, n_first)
    return state if len(state.mass) == 1 else later_step(cell, beta, 1, state, total.onward)


def later_step(cell: CellModel, beta: float, axis: int, state: State, projected: Floats) -> State:
    """The half step of a later mode."""
    q: Floats = np.empty(state.others[axis - 1].shape)
    with np.errstate(divide="ignore"):
        log_mass = np.log(state.mass[axis])
    with one_blas_thread():
        sums, entropy = settle([projected], [state.coef(cell, axis)], [beta], log_mass, q)
        table = q.T @ projected
    state = state._replace(others=(*state.others[: axis - 1], q, *state.others[axis:]))
    return state.moved(cell, axis, table, sums, entropy, len(q))


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

    def each(self, call: Callable[..., Any], *arguments: Any, beside: Sequence[Any] | None = None) -> list[Any]:
        """Futures of ``call(part, cell …)`` for every partition; ``beside`` is one more argument each, the third."""
        futures = []
        for at, part in enumerate(self.parts):
            own = arguments if beside is None else (arguments[0], beside[at], *arguments[1:])
            futures.append(submit(self.client, self.all_threads, call, part, *own))
        return futures

    @property
    def n_first(self) -> int:
        return sum(len(items) for items in self.items)

    def add_up(
        self,
        futures: Sequence[Any],
        add: Callable[[Any, Any], Any],
        size: int,
        then: Callable[[State, Any], State],
        state: Any,
    ) -> Any:
        """A future of ``then(state, sum)``, the sum as a tree on the workers, in an order that is always the same.

        ``size`` is how many numbers a value has: small ones are added many at a time, because a task costs more.
        """
        level, fan_in = list(futures), max(2, min(MOST_ADDED, TOGETHER // max(1, size)))
        while len(level) > fan_in:
            groups = [level[at : at + fan_in] for at in range(0, len(level), fan_in)]
            level = [self.client.submit(_sum, add, *group, pure=False) for group in groups]
        return self.client.submit(_sum_then, then, state, add, *level, pure=False)


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
    size = cell.features.size * start.n_clusters[0]
    first = State(start.assign[1:], start.answers[0], start.mass, (0.0,) * d, 0.0)
    # Submitted as a task and not scattered: it can be made again when a worker is lost.
    now = client.submit(_same, first, pure=False)
    last: tuple[float, Any] | None = None  # the last sweep's β, and the state before it
    ahead: tuple[float, Any, list[Any]] | None = None  # shares of the next sweep, begun before its turn
    n_sweeps = 0

    def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
        nonlocal now, last, ahead, n_sweeps
        step, before, own = beta * factor, now, []
        if d > 2:
            own = data.each(own_memberships, cell, step, before)
            shares = data.each(share, cell, before, beside=own)
        elif ahead is not None and ahead[:2] == (step, before):
            shares = ahead[2]
        else:  # nothing asks for the first mode's memberships again in this sweep
            shares = data.each(whole_share, cell, step, before)
        then: Callable[[State, Any], State] = partial(first_steps, cell, step, data.n_first)
        after = data.add_up(shares, Share.plus, size * (len(first.others[0]) if d > 1 else 1), then, before)
        for axis in range(2, d):
            pieces = data.each(onward, cell, after, axis, beside=own)
            then = partial(later_step, cell, step, axis)
            after = data.add_up(pieces, _plus, size * len(first.others[axis - 1]), then, after)
        facts = client.submit(_facts, after, pure=False, priority=1)  # before the next sweep's shares
        n_sweeps += 1
        comes_back, ahead = n_sweeps % BROUGHT_BACK == 0, None
        if d <= 2 and not comes_back and n_sweeps < max_iter:  # workers go on while the objective travels
            ahead = (step, after, data.each(whole_share, cell, step, after))
        loss, information = facts.result()
        if comes_back:
            after = client.submit(_same, after.result(), pure=False)
        now, last = after, (step, before)
        return posterior, Objective((loss,), information, (beta,))

    solution = fixed_point(sweep, start, schedule or Constant(), tol=tol, max_iter=max_iter, report=report)
    ahead = None
    if last is None:
        return solution
    # The memberships of the first mode are a function of the state before: made again rather than kept or moved.
    own = data.each(own_memberships, cell, *last)
    own = client.gather([client.submit(_first, o, pure=False) for o in own])
    final: State = now.result()
    items, rows = np.concatenate(data.items), np.concatenate(own)
    order = np.argsort(items, kind="stable")
    modes = (Mode(data.name, items[order]), *data.modes)
    posterior = Posterior(Structure.grid(modes), (cell,), (rows[order], *final.others), (final.answers,))
    return replace(solution, posterior=posterior)


def _same(value: Any) -> Any:
    return value


def _first(value: Any) -> Any:
    return value[0]


def _facts(state: State) -> tuple[float, tuple[float, ...]]:
    return state.loss, state.information


def _plus(a: Floats, b: Floats) -> Floats:
    return a + b


def _sum(add: Callable[[Any, Any], Any], *values: Any) -> Any:
    return reduce(add, values)


def _sum_then(then: Callable[[State, Any], State], state: State, add: Callable[[Any, Any], Any], *values: Any) -> State:
    with one_thread():
        return then(state, reduce(add, values))
