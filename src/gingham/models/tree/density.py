"""Density trees: exchange moves, stage by stage from the leaves to the roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.problem import Tree
from gingham.core.tree import TreeDensity, clusters_of, product_law, smoothed, unique_rows
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.lazy import lazy_module

if TYPE_CHECKING:
    from gingham.models.tree import exchange_kernels
else:
    exchange_kernels = lazy_module("gingham.models.tree.exchange_kernels")

FLOOR = 1e-6  # of the uniform distribution in the distributions of tables: none is zero


@dataclass(frozen=True)
class Stages:
    """Maximise β·N·I − n·H(cluster sizes) of one level after the other.

    A slot is an inner node (or the roots): the table in which its children's clusters meet. A stage
    clusters the children of all slots that share a clustering, by moving one item at a time; the level
    above then sees their clusters as its items. Code length falls by I at every slot, so what a stage
    gains is never lost above.
    """

    beta: float = 1.0
    n_init: int = 3
    max_iter: int = 50

    def solve(self, tree: Tree, n_clusters: Sequence[int], sample: Sample, rng: np.random.Generator) -> TreeDensity:
        if sample.n_rows == 0:
            raise GinghamError("There are no observations.")
        labels: dict[int, Ints] = {mode: np.arange(tree.modes[mode].n_items) for mode in tree.frozen}
        placing = Placing(tree, [int(n_clusters[mode]) for mode in tree.tables], sample, labels)
        slots = [*tree.children, tree.roots]
        done: set[int] = set()
        while len(done) < len(slots):
            stage = placing.next_stage(slots, done)
            placing.cluster([slots[s] for s in stage], self, rng)
            done |= set(stage)
        return estimate(tree, [labels[mode] for mode in range(tree.n_modes)], placing.widths, sample)


@dataclass(frozen=True, eq=False)
class Placing:
    """A density tree that is being clustered."""

    tree: Tree
    widths: Sequence[int]  # clusters of every node
    sample: Sample
    labels: dict[int, Ints]  # by mode: the cluster of every item; filled in stage by stage

    def items(self, node: int) -> Ints:
        """The item of a node in each observation: a leaf's code, or the combination of child clusters."""
        if node < self.tree.n_leaves:
            return self.sample.codes[node].astype(np.int64)
        children = self.tree.children[node - self.tree.n_leaves]
        return np.ravel_multi_index([self.clusters(c) for c in children], [self.widths[c] for c in children])

    def clusters(self, node: int) -> Ints:
        return self.labels[self.tree.tables[node]][self.items(node)]

    def next_stage(self, slots: Sequence[Sequence[int]], done: set[int]) -> list[int]:
        """Slots to cluster now, together: their children's own children are placed, and they share modes."""
        tables, n_leaves = self.tree.tables, self.tree.n_leaves
        ready = []
        for s, slot in enumerate(slots):
            below = [c for child in slot if child >= n_leaves for c in self.tree.children[child - n_leaves]]
            if s not in done and all(tables[c] in self.labels for c in below):
                ready.append(s)
        stage, modes = [ready[0]], {tables[c] for c in slots[ready[0]]}
        for s in ready[1:]:
            if modes & {tables[c] for c in slots[s]}:
                stage.append(s)
                modes |= {tables[c] for c in slots[s]}
        return stage

    def cluster(self, slots: Sequence[Sequence[int]], settings: Stages, rng: np.random.Generator) -> None:
        """Cluster the children of some slots together; fills in ``labels``."""
        tables, widths = self.tree.tables, self.widths
        open_modes = sorted({tables[c] for slot in slots for c in slot} - set(self.labels))
        if not open_modes:
            return
        sizes = [self.tree.modes[mode].n_items for mode in open_modes]
        first = {mode: sum(sizes[:at]) for at, mode in enumerate(open_modes)}
        n_open = sum(sizes)
        closed = sorted({c for slot in slots for c in slot if tables[c] not in first})
        begin = n_open
        fixed = {}
        for child in closed:  # children clustered earlier stand as items that do not move
            fixed[child] = begin
            begin += widths[child]
        options = np.concatenate([np.full(n, min(widths[tables.index(m)], n)) for m, n in zip(open_modes, sizes)])
        options = np.concatenate([options, np.ones(begin - n_open, dtype=np.int64)])
        group = np.repeat(np.arange(len(open_modes) + 1), [*sizes, begin - n_open])
        order_of_slots = max(len(slot) for slot in slots)
        tuples, where, counts = [], [], []
        offsets, strides = [0], np.zeros((len(slots), order_of_slots), dtype=np.int64)
        for s, slot in enumerate(slots):
            columns = [
                first[tables[c]] + self.items(c) if tables[c] in first else fixed[c] + self.clusters(c) for c in slot
            ]
            distinct, inverse = unique_rows(np.stack(columns, axis=1))
            padded = np.full((len(distinct), order_of_slots), -1)
            padded[:, : len(slot)] = distinct
            tuples.append(padded)
            where.append(np.full(len(distinct), s))
            counts.append(np.bincount(inverse, self.sample.weights, minlength=len(distinct)).astype(np.float64))
            shape = [widths[child] for child in slot]
            strides[s, : len(slot)] = [int(np.prod(shape[k + 1 :])) for k in range(len(slot))]
            offsets.append(offsets[-1] + int(np.prod(shape)))
        items, slot_of, weight = np.vstack(tuples), np.concatenate(where), np.concatenate(counts)
        mass = np.zeros(begin)
        for column in items.T:
            seen = column >= 0
            mass += np.bincount(column[seen], weight[seen], minlength=begin)
        order = np.argsort(-mass[:n_open], kind="stable")

        def moved() -> tuple[Ints, float, int]:
            start = np.zeros(begin, dtype=np.int64)
            for child in closed:
                start[fixed[child] : fixed[child] + widths[child]] = np.arange(widths[child])
            for mode, n in zip(open_modes, sizes):
                block = slice(first[mode], first[mode] + n)
                start[block] = frequent_alone(mass[block], int(options[first[mode]]), rng)
            return exchange_kernels.exchange(
                start, options, group, items, slot_of, weight, np.array(offsets), strides,
                1.0 / settings.beta, order, settings.max_iter,
            )  # fmt: skip

        best, _, _ = max((moved() for _ in range(settings.n_init)), key=lambda found: found[1])
        for mode, n in zip(open_modes, sizes):
            self.labels[mode] = best[first[mode] : first[mode] + n]


def frequent_alone(mass: Floats, n_clusters: int, rng: np.random.Generator) -> Ints:
    """The most frequent items one to a cluster, the others anywhere (Brown et al. 1992)."""
    labels = rng.integers(0, n_clusters, len(mass))
    top = np.argsort(-mass, kind="stable")[:n_clusters]
    labels[top] = np.arange(len(top))
    return labels


def estimate(tree: Tree, labels: Sequence[Ints], widths: Sequence[int], sample: Sample) -> TreeDensity:
    """Distributions of all nodes from counts: leaves shrink to their clustering's pool, tables to independence."""
    at, items = clusters_of(tree, labels, sample.codes, widths)
    w = sample.weights
    d = tree.n_leaves
    n_items = [tree.modes[mode].n_items for mode in tree.tables]
    counts = [np.bincount(code, w, minlength=n).astype(np.float64) for code, n in zip(items[:d], n_items)]
    leaves = []
    for j, mode in enumerate(tree.tables[:d]):
        pool = smoothed(np.sum([counts[k] for k in range(d) if tree.tables[k] == mode], axis=0), np.ones(n_items[j]))
        # The pool's items within a cluster, the leaf's own clusters: a place differs first in its clusters.
        cluster = np.bincount(labels[mode], minlength=widths[j]) / n_items[j]
        own = smoothed(np.bincount(labels[mode], counts[j], minlength=widths[j]), cluster)
        in_pool = np.bincount(labels[mode], pool, minlength=widths[j])
        leaves.append(smoothed(counts[j], pool * (own / in_pool.clip(1e-300))[labels[mode]]))

    def distribution(nodes: Sequence[int], cell: Ints) -> Floats:
        """The joint distribution of the clusters of nodes, shrunken to independence and a little to the uniform one."""
        shape = [widths[node] for node in nodes]
        table = np.bincount(cell, w, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
        return smoothed(table, (1.0 - FLOOR) * product_law(table) + FLOOR / table.size)

    inner = tuple(distribution(children, cell).ravel() for children, cell in zip(tree.children, items[d:]))
    at_roots = np.ravel_multi_index([at[root] for root in tree.roots], [widths[root] for root in tree.roots])
    return TreeDensity(tree, tuple(labels), tuple(widths), tuple(leaves), inner, distribution(tree.roots, at_roots))
