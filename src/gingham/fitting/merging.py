"""Merging clusters greedily: two at a time, those that lose least.

Clusters are rows of sums, and a merge adds two rows. What it loses is a function of these sums:

    loss(a, b) = cost(S_a + S_b) − cost(S_a) − cost(S_b)

`merge_tree` merges the clusters of one mode and keeps the tree of all merges: summaries and counts are made coarser
with it. `ladder` merges those of all modes of a checkerboard at once. There the loss rises by what cells lose by
answering alike; the information falls by what telling a from b had cost; and there are fewer cells to fill:

    Δ = Σ_r β_r [envelope(S_a + S_b) − envelope(S_a) − envelope(S_b)] − n (Ī − Ī') − price of the cells saved

After a merge in one mode all losses of the other modes are new, so that they are counted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel
from gingham.core.problem import Objective, Posterior, Problem, information_terms
from gingham.errors import GinghamError

EMPTY = 1e-9  # expected items below which a cluster counts as empty


Cost = Callable[[Floats], Floats]  # of sums (k, …), one row per cluster: what each cluster costs, (k,)


@dataclass(frozen=True, eq=False)
class MergeTree:
    """Merges of m leaves, cheapest first. Node m + t is what merge t makes, as in scipy's linkage.

    Attributes
    ----------
    merges : int array of shape (t, 2)
    losses : array of shape (t,)
        What each merge loses, never falling.
    n_leaves : int
        m; all leaves are one cluster in the end where t = m − 1.
    """

    merges: Ints
    losses: Floats
    n_leaves: int

    def groups(self, k: int) -> Ints:
        """The cluster (0 … k − 1, by their first leaf) of each leaf once k clusters are left."""
        return cut(self.merges, self.n_leaves, k)

    def top(self, k: int) -> MergeTree:
        """The merges of the last k clusters, with the clusters of `groups` (k) as leaves."""
        done = self.n_leaves - k
        if done <= 0:
            return self
        groups = self.groups(k)
        first = list(range(self.n_leaves))  # one leaf below every node
        for a, _ in self.merges.tolist():
            first.append(first[a])
        number = {node: int(groups[first[node]]) for node in nodes_left(self.merges, self.n_leaves, k)}
        number |= {self.n_leaves + t: k + t - done for t in range(done, len(self.merges))}
        merges = [sorted((number[a], number[b])) for a, b in self.merges[done:].tolist()]
        return MergeTree(np.array(merges, dtype=np.int64).reshape(-1, 2), self.losses[done:], k)


def nodes_left(merges: Ints, n_leaves: int, k: int) -> list[int]:
    """The nodes of a tree once k clusters are left."""
    held = set(merges[: n_leaves - k].ravel().tolist())
    return [node for node in range(2 * n_leaves - k) if node not in held]


def leaves_below(merges: Ints, n_leaves: int) -> list[list[int]]:
    """The leaves below each node of a tree (itself, where it is one)."""
    below = [[leaf] for leaf in range(n_leaves)]
    for a, b in merges.tolist():
        below.append(below[a] + below[b])
    return below


def cut(merges: Ints, n_leaves: int, k: int) -> Ints:
    """The cluster (0 … k − 1, by their first leaf) of each leaf of a tree once k clusters are left."""
    into = np.arange(n_leaves)
    for t, (a, b) in enumerate(merges[: n_leaves - k].tolist()):
        into[(into == a) | (into == b)] = n_leaves + t
    _, first, inverse = np.unique(into, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.int64)


def merge_tree(parts: Sequence[tuple[Cost, Floats]]) -> MergeTree:
    """Merge the rows of some tables (m, …) down to one; what a cluster costs is the sum over the tables.

    The columns stay as they are, so that a merge never makes a later one cheaper than itself.
    """
    tables = [(cost, np.array(sums, dtype=np.float64)) for cost, sums in parts]
    own = sum(cost(sums) for cost, sums in tables) + np.zeros(len(tables[0][1]))

    def losses(a: int, others: Ints) -> Floats:
        joint = sum((cost(sums[others] + sums[a]) for cost, sums in tables), np.zeros(len(others)))
        return np.maximum(joint - (own[a] + own[others]), 0.0)

    def join(a: int, b: int) -> None:
        for _, sums in tables:
            sums[a] += sums[b]
        own[a] = sum(float(cost(sums[[a]])[0]) for cost, sums in tables)

    m = len(own)
    pairs = np.full((m, m), np.inf)
    for a in range(m - 1):
        pairs[a, a + 1 :] = losses(a, np.arange(a + 1, m))
    return merge(np.minimum(pairs, pairs.T), losses, join)


def merge(
    pairs: Floats, losses: Callable[[int, Ints], Floats], join: Callable[[int, int], None], least: int = 1
) -> MergeTree:
    """Merge m clusters down to ``least``, each time the two that lose least; the first of equals.

    Parameters
    ----------
    pairs : array of shape (m, m)
        What merging two clusters loses, +inf on the diagonal. It is overwritten: one row and column per merge.
    losses : callable
        (a, others) → what merging cluster a with each of the others loses.
    join : callable
        (a, b): the sums of b are added to those of a, and b is not asked for again.
    """
    m = len(pairs)
    node, alive = np.arange(m), np.ones(m, dtype=bool)
    merges, heights, highest = np.zeros((m - least, 2), dtype=np.int64), np.zeros(m - least), 0.0
    for t in range(m - least):
        a, b = sorted(int(i) for i in np.unravel_index(np.argmin(pairs), pairs.shape))
        highest = max(highest, float(pairs[a, b]))  # rounding must not make a tree cross itself
        merges[t], heights[t] = sorted((node[a], node[b])), highest
        join(a, b)
        node[a], alive[b] = m + t, False
        pairs[b] = pairs[:, b] = np.inf
        others = np.flatnonzero(alive & (np.arange(m) != a))
        pairs[a, others] = pairs[others, a] = losses(a, others)
    return MergeTree(merges, heights, m)


def losses_of_pairs(cost: Cost, sums: Floats) -> Floats:
    """What merging two clusters loses, for all pairs (m, m)."""
    own = cost(sums)
    return np.array([cost(sums + row) for row in sums]) - own[:, None] - own[None, :]


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

    def loss(self, n_observations: float) -> float:
        """L̂ of the first relation."""
        return self.objective.losses[0] / n_observations


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


def ladder(
    problem: Problem,
    posterior: Posterior,
    least: Sequence[int] | None = None,
    saved: Callable[[int], float] | None = None,
) -> Iterator[Rung]:
    """From a posterior down to one cell (or ``least`` clusters per mode), each time by the merge with the least Δ.

    ``saved`` is the price of one cluster of a mode, nats; by default that of the answers in its cells.
    """
    if problem.structure.repeats:
        raise GinghamError("Merging needs relations in which each mode occurs at most once; a graph is not supported.")
    tables: list[Floats] = [
        posterior.statistics(sample, r).astype(np.float64) for r, sample in enumerate(problem.samples)
    ]
    posterior = replace(posterior, answers=tuple(cell.answer(t) for cell, t in zip(problem.cells, tables)))
    prices, merged = [price_of_answer(problem, r) for r in range(len(tables))], None

    def price_of_answers(mode: int) -> float:
        """Of the cells of one cluster."""
        return sum(prices[r] * (tables[r][..., 0].size // tables[r].shape[p]) for r, p in problem.structure.uses(mode))

    while True:
        losses = tuple(float(c.loss(a, t).sum()) for c, a, t in zip(problem.cells, posterior.answers, tables))
        objective = Objective(losses, information_terms(posterior), problem.betas)
        yield Rung(posterior, objective, sum(p * table[..., 0].size for p, table in zip(prices, tables)), merged)
        merged = cheapest(problem, posterior, tables, saved or price_of_answers, least)
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
    return losses_of_pairs(lambda sums: cell.envelope(sums).reshape(len(sums), -1).sum(axis=1), statistics)


def information_rises(q: Floats) -> Floats:
    """Change of nĪ when two clusters are merged, for all pairs (m, m); never positive."""
    n = len(q)

    def information(sums: Floats) -> Floats:
        mass = sums.mean(axis=1)
        return np.asarray(xlogy(sums, sums).sum(axis=1) - n * xlogy(mass, mass))

    return losses_of_pairs(information, q.T)


def price_of_answer(problem: Problem, relation: int) -> float:
    """Nats for the answer of one cell: ln |Y| of an answer among |Y| labels, ½ ln N for each free number of others."""
    cell = problem.cells[relation]
    if cell.n_answers is not None:
        return float(np.log(cell.n_answers))
    free = max(1, cell.features.size - 1 if not cell.ordered else 1)
    return float(free * 0.5 * np.log(max(problem.samples[relation].n_observations, 1.0)))


def joined(array: Floats, axis: int, a: int, b: int) -> Floats:
    """Slice b added to slice a and removed."""
    array = np.moveaxis(array, axis, 0).copy()
    array[a] += array[b]
    return np.ascontiguousarray(np.moveaxis(np.delete(array, b, axis=0), 0, axis))
