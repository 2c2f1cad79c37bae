"""A partition's share of a sweep, and the state that all shares lead to: pure functions, run where they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import xlogy

from gingham.arrays import AnyArray, Floats
from gingham.engine.half_step import by_cell, by_cluster, memberships, settle
from gingham.engine.project import project
from gingham.engine.sums import Features, Grouped
from gingham.engine.threads import one_blas_thread


class Cell(Protocol):
    """What a sweep asks of a cell model."""

    @property
    def features(self) -> Features: ...

    def answer(self, statistics: Floats) -> AnyArray: ...

    def coef(self, answer: AnyArray) -> Floats: ...

    def loss(self, answer: AnyArray, statistics: Floats) -> Floats: ...


class State(NamedTuple):
    """Where the descent stands; all but the memberships of the first mode, which follow from it."""

    others: tuple[Floats, ...]  # memberships of modes 1, 2, …
    answers: AnyArray
    mass: tuple[Floats, ...]  # of all modes
    information: tuple[float, ...]  # n_i Ī_i
    loss: float  # N·L̂

    def coef(self, cell: Cell, axis: int) -> Floats:
        return by_cluster(cell.coef(self.answers), axis)

    def moved(self, cell: Cell, axis: int, statistics: Floats, sums: Floats, entropy: float, n: int) -> State:
        """After a mode's half step: its masses, the answers, and what they make of the objective."""
        cells = by_cell(statistics, [len(mass) for mass in self.mass], axis)
        answers, mass = cell.answer(cells), sums / n
        paid = max(0.0, entropy - n * float(xlogy(mass, mass).sum()))
        return self._replace(
            answers=answers,
            mass=(*self.mass[:axis], mass, *self.mass[axis + 1 :]),
            information=(*self.information[:axis], paid, *self.information[axis + 1 :]),
            loss=float(cell.loss(answers, cells).sum()),
        )


Own = tuple[Floats, Floats, float, Floats]  # the first mode's memberships, their sums, Σ q ln q, and statistics


class Share(NamedTuple):
    """What a partition adds to the sweep; shares add up entry by entry."""

    sums: Floats  # column sums of its memberships
    entropy: float
    statistics: Floats  # (m_0, K · other cells)
    onward: Floats  # its projection onto the items of mode 1, (n_1, K · other cells)

    def plus(self, other: Share) -> Share:
        sums, entropy = self.sums + other.sums, self.entropy + other.entropy
        return Share(sums, entropy, self.statistics + other.statistics, self.onward + other.onward)


# what is computed where the observations are


def own_memberships(part: Grouped, cell: Cell, beta: float, state: State) -> Own:
    """The first mode's memberships of a partition, with their sums; they stay where they are computed."""
    rows, tiles = part.rows(0, cell.features), part.tiles(0, cell.features, _row_bytes(state.others))
    with one_blas_thread():
        q, sums, entropy, (table,) = memberships(
            [rows], [state.others], [state.coef(cell, 0)], [beta], state.mass[0], tiles=tiles
        )
    return q, sums, entropy, table


def share(part: Grouped, cell: Cell, own: Own, state: State) -> Share:
    _q, sums, entropy, table = own
    return Share(sums, entropy, table, onward(part, cell, own, state, 1))


def whole_share(part: Grouped, cell: Cell, beta: float, state: State) -> Share:
    """Memberships and share in one task: what two modes need of a partition in a sweep."""
    return share(part, cell, own_memberships(part, cell, beta, state), state)


def onward(part: Grouped, cell: Cell, own: Own, state: State, axis: int) -> Floats:
    """A partition's projection onto the items of another mode."""
    if part.n_modes == 1:
        return np.zeros((0, 0))
    assigns = [q for j, q in enumerate((own[0], *state.others)) if j != axis]
    tiles = part.tiles(axis, cell.features, _row_bytes(assigns))
    flat = project(part.rows(axis, cell.features), assigns, tiles=tiles)
    return flat.reshape(len(flat), -1)


def _row_bytes(assigns: Sequence[Floats]) -> int:
    """Of what one observation gathers."""
    return 8 * prod(q.shape[1] for q in assigns)


# what is computed where the shares were added up


def first_steps(cell: Cell, beta: float, n_first: int, state: State, total: Share) -> State:
    """The first mode's step, known from all shares, and the second mode's, from their projection onto it."""
    state = state.moved(cell, 0, total.statistics, total.sums, total.entropy, n_first)
    return state if len(state.mass) == 1 else later_step(cell, beta, 1, state, total.onward)


def later_step(cell: Cell, beta: float, axis: int, state: State, projected: Floats) -> State:
    """The half step of a later mode."""
    q: Floats = np.empty((len(projected), len(state.mass[axis])))
    with np.errstate(divide="ignore"):
        log_mass = np.log(state.mass[axis])
    with one_blas_thread():
        sums, entropy = settle([projected], [state.coef(cell, axis)], [beta], log_mass, q)
        table = q.T @ projected
    state = state._replace(others=(*state.others[: axis - 1], q, *state.others[axis:]))
    return state.moved(cell, axis, table, sums, entropy, len(q))
