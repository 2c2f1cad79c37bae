"""Which columns merge when nobody says (P0 §7.2): pairs one after the other, by what a pair says or conceals.

Two columns with labels belong together where their combinations of clusters fall into few groups that answer alike,
whatever the other columns say: merging them conceals little. Two columns of a density belong together where their
clusters tell most about one another. Neither needs a grid of all columns, so that there may be any number of these.

The certificates of trees that were chosen pay −ln of the prior of their merges (`prices.sequence_price`), which holds
for all sequences of merges at once, whatever rule has led to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel
from gingham.certificates.bounds import log_wealth
from gingham.certificates.evidence import collect
from gingham.certificates.prices import sequence_price
from gingham.core.problem import Problem, Tree
from gingham.core.tree import TreeDensity
from gingham.data import Alphabet, Mode, Sample
from gingham.fitting.checkpoints import Checkpoint
from gingham.fitting.loop import Restart, Solution, ignore_progress, mark_interrupted
from gingham.fitting.merging import merge_tree
from gingham.models.tree.density import Stages
from gingham.models.tree.fit import solve_tree
from gingham.models.tree.messages import Messages
from gingham.models.tree.starts import leaf_labels

DELTA = 0.05  # of the certificates by which trees are compared
MOST_CELLS = 4096  # of a grid of the nodes that are not merged yet; a larger one is not fitted
ROWS_PER_CELL = 5  # at least, in the tables that say how alike combinations answer
HELD_OUT = 0.2  # of the rows, on which the dependence of two columns is measured

Merges = tuple[tuple[int, int, int], ...]


class ChosenTree(NamedTuple):
    """A tree that was chosen: its merges, its fit and its certificate (scaled to [0, 1])."""

    merges: Merges
    solution: Solution
    certificate: float


def merged_in_turn(
    n_leaves: int, n_inner: int, worth: Callable[[int, int], float], add: Callable[[int, int], None]
) -> Merges:
    """Merge the pair of nodes that is worth most until two nodes are left; ``add`` makes the new node known."""
    top, merges = list(range(n_leaves)), []
    while len(top) > 2:
        a, b = max(combinations(top, 2), key=lambda pair: worth(*pair))
        add(a, b)
        merges.append((a, b, n_inner))
        top = [node for node in top if node not in (a, b)] + [n_leaves + len(merges) - 1]
    return tuple(merges)


def choose_tree(
    sample: Sample,
    cell: CellModel,
    beta: float,
    leaves: Sequence[int],
    n_inner: int,
    tied: Sequence[Sequence[int]],
    solver: Messages,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
) -> ChosenTree:
    """Merge the pairs that conceal least; the certificate says how many of these merges are made."""
    d = len(leaves)

    def fitted(merges: Merges) -> ChosenTree:
        tree, n_clusters = Tree.build(sample.modes, leaves, merges, tied, price=sequence_price(d, merges))
        run = Restart(0, rng, ignore_progress, checkpoint.stage(f"merges {merges}"))
        solution = solve_tree(Problem(tree, (sample,), (cell,), (beta,)), n_clusters, solver, "spectral", run)
        evidence = collect(solution.posterior, sample)
        value = log_wealth(evidence.distribution, evidence.prices["exact"].total, evidence.n_observations, DELTA).value
        return ChosenTree(merges, solution, value)

    best: ChosenTree | None = None
    if prod(leaves) <= MOST_CELLS:
        best = fitted(())
        labels: Sequence[Ints] = best.solution.posterior.labels
    else:
        tree, n_clusters = Tree.build(sample.modes, leaves, (), tied)
        labels = leaf_labels(Problem(tree, (sample,), (cell,), (beta,)), n_clusters, rng, "spectral")
    tables = Tree.build(sample.modes, leaves, (), tied)[0].tables
    at = [labels[mode][code] for mode, code in zip(tables, sample.codes)]
    merges = merges_that_conceal_least(sample, at, leaves, n_inner)
    for n_merges in range(1, len(merges) + 1):
        left = [*leaves, *[n_inner] * n_merges]
        for a, b, _ in merges[:n_merges]:
            left[a] = left[b] = 1
        if prod(left) <= MOST_CELLS or n_merges == len(merges):
            if best is not None and best.solution.interrupted:
                return best
            other = fitted(merges[:n_merges])
            if best is None or other.certificate < best.certificate:
                best = other
            elif other.solution.interrupted:
                return best._replace(solution=mark_interrupted(best.solution))
    return fitted(()) if best is None else best


def merges_that_conceal_least(sample: Sample, at: Sequence[Ints], widths: Sequence[int], n_inner: int) -> Merges:
    """Merges by the clusters of the leaves in every row, ``at``."""
    at, widths = list(at), list(widths)
    top = set(range(len(at)))
    known: dict[tuple[int, int], tuple[float, Ints]] = {}

    def concealed(a: int, b: int) -> tuple[float, Ints]:
        others = [(at[j], widths[j]) for j in sorted(top - {a, b})]
        return concealed_by_groups(sample, at[a] * widths[b] + at[b], widths[a] * widths[b], others, n_inner)

    def worth(a: int, b: int) -> float:
        known[a, b] = concealed(a, b)
        return -known[a, b][0]

    def add(a: int, b: int) -> None:
        at.append(known[a, b][1][at[a] * widths[b] + at[b]])
        widths.append(n_inner)
        top.symmetric_difference_update({a, b, len(at) - 1})

    return merged_in_turn(len(at), n_inner, worth, add)


def concealed_by_groups(
    sample: Sample, cells: Ints, n_cells: int, others: Sequence[tuple[Ints, int]], n_groups: int
) -> tuple[float, Ints]:
    """Nats of the labels that ``n_groups`` groups of cells conceal, beyond chance, and the group of each cell.

    Cells are compared by their labels beside the clusters of all other nodes together; beside those of two others at a
    time, of one, or alone, where the rows are too few.
    """
    alphabet = sample.alphabet or Alphabet.of(np.unique(sample.numbers()), given=False)
    labels = sample.label_codes if sample.label_codes is not None else alphabet.encode(sample.numbers())
    most = sample.n_rows / (ROWS_PER_CELL * n_cells)
    together = [len(others), min(2, len(others)), min(1, len(others)), 0]
    n_beside = next(
        n for n in together if n == 0 or max(prod(w for _, w in s) for s in combinations(others, n)) <= most
    )
    parts = []
    for beside in combinations(others, n_beside):
        cell, width = cells, 1
        for code, w in beside:
            cell, width = cell * w + code, width * w
        sums = np.bincount(cell * alphabet.size + labels, sample.weights, n_cells * width * alphabet.size)
        parts.append(sums.reshape(n_cells, width, alphabet.size))
    table: Floats = np.concatenate(parts, axis=1).astype(np.float64)

    def cost(sums: Floats) -> Floats:
        """Nats that the labels of each row of sums cost."""
        each = sums.sum(axis=-1)
        return np.asarray(xlogy(each, each).sum(axis=1) - xlogy(sums, sums).sum(axis=(1, 2)))

    groups = merge_tree([(cost, table)]).groups(min(n_groups, n_cells))
    joined = np.zeros((int(groups.max()) + 1, *table.shape[1:]))
    np.add.at(joined, groups, table)
    lost = float(cost(joined).sum() - cost(table).sum())

    def free(sums: Floats) -> float:
        """Numbers that the likelihood of a table is fitted by: chance alone loses half a nat for each."""
        return float(np.maximum((sums > 0).sum(axis=2) - 1, 0).sum())

    return (lost - 0.5 * (free(table) - free(joined))) / len(parts), groups


def choose_density_merges(
    sample: Sample, leaves: Sequence[int], n_inner: int, stages: Stages, rng: np.random.Generator
) -> Merges:
    """Merge the pair of nodes whose clusters tell most about one another, on rows that were held out."""
    held = rng.random(sample.n_rows) < HELD_OUT
    nodes = [(code, mode.n_items) for code, mode in zip(sample.codes, sample.modes)]
    widths = list(leaves)
    known: dict[tuple[int, int], float] = {}

    def fitted(a: int, b: int, rows: Ints) -> TreeDensity:
        """The density of two columns alone, from some of the rows."""
        modes = tuple(Mode(f"node {j}", np.arange(nodes[j][1])) for j in (a, b))
        tree, n_clusters = Tree.build(modes, [min(widths[j], nodes[j][1]) for j in (a, b)], ())
        weights = None if sample.weights is None else sample.weights[rows]
        return stages.solve(
            tree, n_clusters, Sample(modes, (nodes[a][0][rows], nodes[b][0][rows]), weights=weights), rng
        )

    def worth(a: int, b: int) -> float:
        if (a, b) not in known:
            density = fitted(a, b, np.flatnonzero(~held))
            codes = [nodes[j][0][held] for j in (a, b)]
            alone = sum(np.log(distribution)[code] for distribution, code in zip(density.leaves, codes))
            weights = None if sample.weights is None else sample.weights[held]
            known[a, b] = float(np.average(density.log_density(codes) - alone, weights=weights)) if held.any() else 0.0
        return known[a, b]

    def add(a: int, b: int) -> None:
        density = fitted(a, b, np.arange(sample.n_rows))
        clusters = [labels[nodes[j][0]] for labels, j in zip(density.labels, (a, b))]
        nodes.append((np.ravel_multi_index(clusters, density.widths[:2]).astype(np.int32), prod(density.widths[:2])))
        widths.append(n_inner)

    return merged_in_turn(len(leaves), n_inner, worth, add)
