"""Coarser checkerboards from one posterior: drop empty clusters, merge those that cost least.

Merging clusters a and b of a mode adds their memberships. The loss rises by what their cells lose by
answering alike; the information falls by what telling a from b had cost; and there are fewer cells to fill:

    Δ = Σ_r β_r [envelope(S_a + S_b) − envelope(S_a) − envelope(S_b)] − n (Ī − Ī') − price of the cells saved
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats
from gingham.cells import CellModel
from gingham.core.problem import Objective, Posterior, Problem, information_terms
from gingham.errors import GinghamError

EMPTY = 1e-9  # expected items below which a cluster counts as empty


@dataclass(frozen=True, eq=False)
class Rung:
    """One checkerboard on the way from fine to coarse."""

    posterior: Posterior
    objective: Objective
    price: float  # nats for the answers of the cells
    merged: tuple[int, int, int] | None = None  # what was merged to get here: mode, cluster, cluster

    @property
    def total(self) -> float:
        """F(Q, β) and the price of the cells: what merging lowers as long as it pays."""
        return self.objective.total + self.price

    def loss(self, n_tuples: float) -> float:
        """L̂ of the first relation."""
        return self.objective.losses[0] / n_tuples


def prune(posterior: Posterior, floor: float = EMPTY) -> Posterior:
    """Without the clusters that hold less than ``floor`` items; what they held goes to the item's others."""
    assign, kept = [], []
    for q, mass in zip(posterior.assign, posterior.mass):
        alive = np.flatnonzero(mass * len(q) > min(floor, float(mass.max()) * len(q) / 2))
        part = q[:, alive]
        totals = part.sum(axis=1, keepdims=True)
        average = mass[alive] / mass[alive].sum()
        assign.append(np.where(totals > 0, part / np.where(totals > 0, totals, 1.0), average))
        kept.append(alive)
    answers = []
    for table, factor in zip(posterior.answers, posterior.structure.factors):
        for position, mode in enumerate(factor):
            table = np.take(table, kept[mode], axis=position)
        answers.append(table)
    return replace(posterior, assign=tuple(assign), answers=tuple(answers))


def ladder(problem: Problem, posterior: Posterior, least: Sequence[int] | None = None) -> Iterator[Rung]:
    """From a posterior down to one cell (or ``least`` clusters a mode), each time by the merge with the least Δ."""
    if problem.structure.repeats:
        raise GinghamError("Merging works where each mode stands at most once in a relation, not on a graph.")
    tables: list[Floats] = [
        posterior.statistics(sample, r).astype(np.float64) for r, sample in enumerate(problem.samples)
    ]
    posterior = replace(posterior, answers=tuple(cell.answer(t) for cell, t in zip(problem.cells, tables)))
    merged = None

    def saved(mode: int) -> float:
        """Nats for the answers in the cells of one cluster."""
        uses = problem.structure.uses(mode)
        return sum(np.moveaxis(tables[r], p, 0)[0, ..., 0].size * _price_of_one(problem, r) for r, p in uses)

    while True:
        losses = tuple(float(c.loss(a, t).sum()) for c, a, t in zip(problem.cells, posterior.answers, tables))
        objective = Objective(losses, information_terms(posterior), problem.betas)
        yield Rung(posterior, objective, cell_price(problem, posterior), merged)
        merged = cheapest(problem, posterior, tables, saved, least)
        if merged is None:
            return
        mode, a, b = merged = (merged[0], min(merged[1:]), max(merged[1:]))
        assign, answers = list(posterior.assign), list(posterior.answers)
        assign[mode] = joined(assign[mode], 1, a, b)
        for relation, position in problem.structure.uses(mode):
            tables[relation] = joined(tables[relation], position, a, b)
            answers[relation] = problem.cells[relation].answer(tables[relation])
        posterior = replace(posterior, assign=tuple(assign), answers=tuple(answers))


def merge_while_it_pays(problem: Problem, posterior: Posterior) -> Posterior:
    """Down the ladder to its lowest total."""
    return min(ladder(problem, posterior), key=lambda rung: rung.total).posterior


def cheapest(
    problem: Problem,
    posterior: Posterior,
    tables: Sequence[Floats],
    saved: Callable[[int], float],
    least: Sequence[int] | None = None,
) -> tuple[int, int, int] | None:
    """The merge (mode, a, b) with the least Δ; None when every mode has its least number of clusters.

    ``saved`` is the price of one cluster of a mode, nats.
    """
    best: tuple[float, int, int, int] | None = None
    for mode, m in enumerate(posterior.n_clusters):
        if m <= (1 if least is None else least[mode]) or mode in problem.structure.frozen:
            continue
        rises = information_rises(posterior.assign[mode].astype(np.float64, copy=False))
        for relation, position in problem.structure.uses(mode):
            table = np.moveaxis(tables[relation], position, 0)
            rises = rises + problem.betas[relation] * loss_rises(problem.cells[relation], table)
        rises = rises - saved(mode)
        np.fill_diagonal(rises, np.inf)
        a, b = (int(i) for i in np.unravel_index(np.argmin(rises), rises.shape))
        found = (float(rises[a, b]), mode, a, b)
        best = found if best is None else min(best, found)
    return None if best is None else best[1:]


def loss_rises(cell: CellModel, statistics: Floats) -> Floats:
    """Σ over cells of envelope(S_a + S_b) − envelope(S_a) − envelope(S_b), for all pairs (m, m)."""
    own = cell.envelope(statistics).reshape(len(statistics), -1).sum(axis=1)
    joint = [cell.envelope(statistics + row).reshape(len(statistics), -1).sum(axis=1) for row in statistics]
    return np.array(joint) - own[:, None] - own[None, :]


def information_rises(q: Floats) -> Floats:
    """Change of nĪ when two clusters are merged, for all pairs (m, m); never positive."""
    n, mass = len(q), q.mean(axis=0)
    rows = []
    own = xlogy(q, q).sum(axis=0) - n * xlogy(mass, mass)
    for c in range(q.shape[1]):
        both, both_mass = q + q[:, [c]], mass + mass[c]
        rows.append(xlogy(both, both).sum(axis=0) - n * xlogy(both_mass, both_mass))
    return np.array(rows) - own[:, None] - own[None, :]


def cell_price(problem: Problem, posterior: Posterior) -> float:
    """Nats for the answers of all cells."""
    total = 0.0
    for relation, factor in enumerate(problem.structure.factors):
        n_cells = int(np.prod([posterior.n_clusters[mode] for mode in factor]))
        total += n_cells * _price_of_one(problem, relation)
    return total


def _price_of_one(problem: Problem, relation: int) -> float:
    """ln |Y| for an answer among |Y| labels; ½ ln N for each free number of a continuous answer."""
    cell = problem.cells[relation]
    if cell.n_answers is not None:
        return float(np.log(cell.n_answers))
    free = max(1, cell.features.size - 1 if not cell.ordered else 1)
    return float(free * 0.5 * np.log(max(problem.samples[relation].n_tuples, 1.0)))


def joined(array: Floats, axis: int, a: int, b: int) -> Floats:
    """Slice b added to slice a and removed."""
    array = np.moveaxis(array, axis, 0).copy()
    array[a] += array[b]
    return np.ascontiguousarray(np.moveaxis(np.delete(array, b, axis=0), 0, axis))
