"""Soft tree co-clustering by message passing (P0 §7): every table of the tree in turn, exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax, xlogy

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel
from gingham.core.problem import Objective, Posterior, Problem, check_table, information_terms
from gingham.core.tree import TreeLayout, TreePosterior, ascend, lay_out, merge, need_tree
from gingham.engine.half_step import by_cell, by_cluster
from gingham.engine.project import Rows, project, row_starts
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, fixed_point
from gingham.fitting.projection import damped
from gingham.fitting.schedules import Constant


@dataclass(frozen=True)
class Messages:
    """Block descent on β N L̂ + Σ_tables items·Ī, leaves and inner nodes alike.

    A tree is a grid whose items are the combinations that occur below its roots, so only the roots
    touch the observations; below them, the cost of a combination plays the part of its features, and every
    step is the same projection. Tables that stand at one node are minimised exactly; a table that
    stands at several (sequences) takes a damped step that is kept only when the objective falls.
    So at constant β the objective never rises.
    """

    tol: float = 1e-7
    max_iter: int = 200

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        begun = need_tree(start, "Message passing needs a tree: use the projection solver for a grid.")
        check_table([q.shape[1] for q in begun.factor(0)], problem.cells[0].features.size)
        plan = Plan(problem, begun)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            state = TreeSweep(plan, posterior, factor * problem.betas[0])
            loss = state.descend_all()
            for mode in begun.structure.tied:
                loss = state.damped(mode, loss)
            posterior = replace(posterior, assign=tuple(state.tables), answers=(state.answers,))
            return posterior, Objective((loss,), information_terms(posterior), problem.betas)

        return fixed_point(sweep, start, Constant(), self.tol, self.max_iter, report, checkpoint)


class Plan:
    """What stays the same in all sweeps: the combinations below each node, grouped for the kernels."""

    def __init__(self, problem: Problem, start: TreePosterior) -> None:
        sample = problem.samples[0]
        self.tree = start.structure
        self.cell: CellModel = problem.cells[0]
        self.layout: TreeLayout = lay_out(self.tree, sample.codes)
        _, self.sample = start.at_root(sample)
        self.free = set(range(self.tree.n_modes)) - set(self.tree.frozen) - set(self.tree.tied)
        counts = [sample.shape[leaf] for leaf in range(self.tree.n_leaves)] + [len(b) for b in self.layout.below]
        self.groups = {
            (node, position): grouped(self.layout.below[i], position, counts[child])
            for i, children in enumerate(self.tree.children)
            for node in [self.tree.n_leaves + i]
            for position, child in enumerate(children)
        }


def grouped(below: Ints, position: int, n_items: int) -> tuple[Ints, Rows]:
    """Combinations ordered by the items of one child, with room for their costs as features."""
    code = below[:, position]
    order = np.argsort(code, kind="stable")
    others = np.delete(below, position, axis=1)[order].T
    return order, Rows(row_starts(code, n_items), np.ascontiguousarray(others, dtype=np.int32), None, None, None, 0)


class TreeSweep:
    """The tables and answers of one sweep, and the forward messages that go with them."""

    def __init__(self, plan: Plan, posterior: Posterior, beta: float) -> None:
        self.plan = plan
        self.beta = beta
        self.tables: list[Floats] = list(posterior.assign)
        self.answers = posterior.answers[0]
        self.refresh()

    def refresh(self) -> None:
        """All forward messages from the tables as they stand."""
        tree = self.plan.tree
        at_nodes = [self.tables[mode] for mode in tree.tables]
        d = tree.n_leaves
        self.messages = ascend(tree, self.plan.layout, at_nodes[:d], at_nodes[d:])

    # one sweep

    def descend_all(self) -> float:
        """Every free table below every root once; answers after each root. Returns N L̂."""
        loss = 0.0
        for position, root in enumerate(self.plan.tree.roots):
            part = self.root_part(position)
            self.descend(root, self.root_cost(position, part), self.plan.free)
            loss = self.answer(position, part)
        return loss

    def root_part(self, position: int) -> Floats:
        """A[item of the root, features · clusters of the other roots]: the only pass over the observations."""
        plan = self.plan
        others = [self.messages[root] for j, root in enumerate(plan.tree.roots) if j != position]
        rows = plan.sample.rows(position, plan.cell.features)
        part = project(rows, others)
        return part.reshape(len(part), -1)

    def root_cost(self, position: int, part: Floats) -> Floats:
        """G[item of the root, cluster] = N ∂L̂/∂a, from `root_part`."""
        return part @ by_cluster(self.plan.cell.coef(self.answers), position).T

    def answer(self, position: int, part: Floats) -> float:
        """Best answers of the root cells, and their total loss."""
        roots, cell = self.plan.tree.roots, self.plan.cell
        widths = [self.messages[root].shape[1] for root in roots]
        cells = by_cell(self.messages[roots[position]].T @ part, widths, position)
        self.answers = cell.answer(cells)
        return float(cell.loss(self.answers, cells).sum())

    def descend(self, node: int, cost: Floats, update: set[int], found: dict[int, Floats] | None = None) -> None:
        """Hand the cost G[item, cluster] = N ∂L̂/∂a down a node, minimising the tables in ``update``.

        With ``found``, the costs of all tables are added up there instead (a gradient).
        """
        tree = self.plan.tree
        mode = tree.tables[node]
        if node < tree.n_leaves:
            if mode in update:
                self.tables[mode] = self.messages[node] = self.exact(mode, cost)
            if found is not None:
                found[mode] = found.get(mode, 0.0) + cost
            return
        children = tree.children[node - tree.n_leaves]
        part = self.inner_part(node, 0, cost)
        shape = [self.messages[child].shape[1] for child in children]
        if mode in update or found is not None:
            # G[combination of child clusters, D] = Σ_items Π a G: the cost of the inner table's rows
            inner = by_cell(self.messages[children[0]].T @ part, shape, 0).reshape(-1, cost.shape[1])
            if mode in update:
                self.tables[mode] = self.exact(mode, inner)
            if found is not None:
                found[mode] = found.get(mode, 0.0) + inner
        cube = self.tables[mode].reshape(*shape, -1)
        for position, child in enumerate(children):
            if position > 0:
                part = self.inner_part(node, position, cost)
            self.descend(child, part @ by_cluster(cube, position).T, update, found)
        self.messages[node] = merge(
            [self.messages[child] for child in children],
            self.plan.layout.below[node - tree.n_leaves],
            self.tables[mode],
        )

    def inner_part(self, node: int, position: int, cost: Floats) -> Floats:
        """A[child item, D · other children's clusters] = Σ_{combinations of the item} G[·, D] Π a_others."""
        tree = self.plan.tree
        order, rows = self.plan.groups[node, position]
        rows = rows._replace(features=np.ascontiguousarray(cost[order]), n_features=cost.shape[1])
        children = tree.children[node - tree.n_leaves]
        others = [self.messages[child] for j, child in enumerate(children) if j != position]
        part = project(rows, others)
        return part.reshape(len(part), -1)

    def exact(self, mode: int, cost: Floats) -> Floats:
        """q(c|x) ∝ qbar(c) exp(−β G[x, c]): the minimum over one table."""
        with np.errstate(divide="ignore"):  # a dead cluster stays dead
            log_mass = np.log(self.tables[mode].mean(axis=0))
        return softmax(log_mass - self.beta * cost, axis=1)

    # tables at several nodes

    def damped(self, mode: int, loss: float) -> float:
        """Move a shared table along its gradient step in the log domain, halving it until F falls."""
        found: dict[int, Floats] = {}
        for position, root in enumerate(self.plan.tree.roots):
            self.descend(root, self.root_cost(position, self.root_part(position)), set(), found)
        old, answers = self.tables[mode], self.answers
        before = self.beta * loss + information(old)
        for mixed in damped(old, self.exact(mode, found[mode])):
            self.tables[mode] = mixed
            self.refresh()
            new_loss = self.answer(0, self.root_part(0))
            if self.beta * new_loss + information(self.tables[mode]) <= before:
                return new_loss
        self.tables[mode], self.answers = old, answers
        self.refresh()
        return loss


def information(q: Floats) -> float:
    """n Ī of one table, nats."""
    mass = q.mean(axis=0)
    return float(xlogy(q, q).sum() - len(q) * xlogy(mass, mass).sum())
