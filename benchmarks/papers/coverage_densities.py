"""Densities and the balls behind them: the repaired certificate, density trees, and P0's Theorems 2, 5, 6, 11 and 12.

A density speaks of tuples without labels, so the three problems are laws of one, two and three modes (a graph's
density is refused by the library).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import statements
from coverage_problems import DELTA, Tally

from gingham.certificates import certify, papers
from gingham.certificates.bounds import ln_shtarkov
from gingham.certificates.density import certify_tree_density
from gingham.certificates.divergence import relative_entropy
from gingham.certificates.prices import partition_exact
from gingham.core.problem import Tree
from gingham.core.tree import TreeDensity, clusters_of, multi_information, product_law, smoothed
from gingham.data import Mode, Sample

MANY = 4


@dataclass(frozen=True, eq=False)
class Law:
    """A law of tuples ``p`` (n_1, …, n_d): a planted checkerboard of two clusters a mode, and rough items."""

    name: str
    p: np.ndarray
    n_observations: int

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.multinomial(self.n_observations, self.p.ravel()).reshape(self.p.shape) / self.n_observations

    def cells(self, table: np.ndarray, assigns: list[np.ndarray]) -> np.ndarray:
        """The law of clusters (m_1, …, m_d)."""
        for axis, q in enumerate(assigns):
            table = np.moveaxis(np.tensordot(q, table, axes=(0, axis)), 0, axis)
        return table


def laws() -> dict[str, Law]:
    result = {}
    for name, shape, n_observations, seed in (
        ("density, d = 1", (9,), 60, 0),
        ("density, d = 2", (8, 6), 120, 1),
        ("density, d = 3", (4, 4, 3), 120, 2),
        ("density, d = 2, many items", (30, 24), 120, 6),
        ("density, d = 3, many items", (20, 16, 12), 120, 7),
    ):
        rng = np.random.default_rng(seed)
        p = rng.gamma(1.5, size=shape)
        signs = np.prod(np.meshgrid(*[np.arange(n) % 2 * 2 - 1 for n in shape], indexing="ij"), axis=0)
        p = p * np.where(signs > 0, 1.5, 1.0)
        result[name] = Law(name, p / p.sum(), n_observations)
    return result


def partitions(law: Law, observed: np.ndarray, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    """Hard clusters: the most informative of many (deepest), the most misleading of many; and soft ones.

    The most misleading of all, nearly: items that were drawn too often, and those drawn too seldom.
    """
    many = [[np.eye(2)[rng.integers(0, 2, n)] for n in law.p.shape] for _ in range(MANY)]
    seen, true = ([law.cells(table, q) for q in many] for table in (observed, law.p))
    gap = [relative_entropy(a.ravel(), b.ravel()) for a, b in zip(seen, true)]
    if observed.ndim > 1:
        depth = [multi_information(np.maximum(a, 1e-300)) for a in seen]
    else:
        depth = [-float(a @ np.log(np.maximum(a, 1e-300))) for a in seen]
    deepest = many[int(np.argmax(depth))]
    others = [tuple(j for j in range(observed.ndim) if j != i) for i in range(observed.ndim)]
    return {
        "deepest fit": deepest,
        "deepest fit, soft": [0.8 * q + 0.1 for q in deepest],
        "best of many": many[int(np.argmax(gap))],
        "by their luck": [np.eye(2)[(observed.sum(o) > law.p.sum(o)).astype(int)] for o in others],
    }


def balls(law: Law, observed: np.ndarray, assigns: list[np.ndarray], name: str, tally: Tally) -> None:
    """P0's Theorems 2, 11 and 12 on one choice of clusters."""
    n, d = law.n_observations, observed.ndim
    seen, true = law.cells(observed, assigns), law.cells(law.p, assigns)
    gap = relative_entropy(seen.ravel(), true.ravel())
    price = sum(sum(partition_exact(q).values()) for q in assigns)
    tally.above("theorem-2", name, gap, papers.theorem2(price, seen.size, n, DELTA).value)
    tally.above("type ball, exact constant", name, gap, (price + ln_shtarkov(seen.size, n) - log(DELTA)) / n)
    tally.above("broken: type ball without KL and δ", name, gap, ln_shtarkov(seen.size, n) / n)
    cells, items = statements.theorem11(assigns, n, DELTA)
    margins = [[t.sum(axis=tuple(j for j in range(d) if j != i)) for i in range(d)] for t in (observed, law.p)]
    gaps = [relative_entropy(a, b) for a, b in zip(*margins)]
    # (28) and (29) hold together with probability 1 − δ.
    tally.note("theorem-11", name, gap > cells.value or any(g > b.value for g, b in zip(gaps, items)))
    if all(np.isin(q, (0.0, 1.0)).all() for q in assigns):
        value = statements.theorem12(assigns, seen, margins[0], n, DELTA).value
        tally.above("theorem-12", name, code_length(law, observed, assigns, cells.value, items), value)


def code_length(law: Law, observed: np.ndarray, assigns: list[np.ndarray], radius: float, items: tuple) -> float:
    """−E ln p̃ of P0's (32)-(35) at the smoothing of Theorem 12, for hard clusters."""
    d, seen = observed.ndim, law.cells(observed, assigns)
    smooth = (seen + sqrt(radius / 2) / seen.size) / (1 + sqrt(radius / 2))
    where = [q.argmax(axis=1) for q in assigns]
    logs = np.log(smooth)[np.ix_(*where)]
    for i, (q, ball) in enumerate(zip(assigns, items)):
        margin = observed.sum(axis=tuple(j for j in range(d) if j != i))
        root = sqrt(ball.value / 2)
        p = (margin + root / len(margin)) / (1 + root)
        term = np.log(p) - np.log((p @ q)[where[i]])
        logs = logs + term.reshape([-1 if j == i else 1 for j in range(d)])
    return float(-(law.p * logs).sum())


def densities(law: Law, n_samples: int, seed: int) -> Tally:
    rng = np.random.default_rng(seed)
    tally = Tally()
    everywhere = [c.ravel() for c in np.indices(law.p.shape)]
    for turn in range(n_samples):
        observed = law.draw(rng)
        counts = np.rint(observed * law.n_observations)
        X = np.argwhere(counts > 0)
        weights = counts[counts > 0]
        # The samples take turns, except for the balls: those are cheap.
        for at, (name, assigns) in enumerate(partitions(law, observed, rng).items()):
            balls(law, observed, assigns, name, tally)
            if at == turn % 4:
                certificate = certify(assigns, X, sample_weight=weights, delta=DELTA, bound="density")
                density = certificate.model
                true = float(-(law.p.ravel() @ density.log_density(everywhere)))
                tally.above("density", name, true, certificate.value)
        flat, p = observed.ravel(), law.p.ravel()
        ball = papers.theorem5(len(p), law.n_observations, DELTA).value
        tally.above("theorem-5", "no choice", relative_entropy(flat, p), ball)
        stated = papers.theorem6(flat, ball)
        code = float(-(p @ np.log((flat + stated.gamma) / (1 + stated.gamma * len(p)))))
        tally.note("theorem-6 with theorem-5", "no choice", not stated.lower - 1e-12 <= code <= stated.upper + 1e-12)
    return tally


def trees() -> dict[str, Law]:
    """Laws of three and four modes for density trees."""
    result = {}
    for name, shape, n_observations, seed in (
        ("density tree, 3 leaves", (5, 4, 3), 100, 3),
        ("density tree, 4 leaves", (4, 4, 3, 3), 150, 4),
        ("density tree, 4 leaves, few tuples", (4, 4, 3, 3), 60, 5),
    ):
        p = np.random.default_rng(seed).gamma(0.7, size=shape)
        result[name] = Law(name, p / p.sum(), n_observations)
    return result


def tree_densities(law: Law, n_samples: int, seed: int) -> Tally:
    """Density trees with hard clusters chosen by looking at the sample, smoothed by the evidence."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    d = law.p.ndim
    modes = [Mode(f"leaf {i}", np.arange(n)) for i, n in enumerate(law.p.shape)]
    merges = [(0, 1, 2), (2, 3, 2)] if d == 4 else [(0, 1, 2)]
    tree, _ = Tree.build(modes, (2,) * d, merges)
    widths = (2,) * len(tree.tables)
    everywhere = [c.ravel() for c in np.indices(law.p.shape)]
    for _ in range(n_samples):
        observed = law.draw(rng)
        counts = np.rint(observed * law.n_observations).ravel()
        sample = Sample.of([c[counts > 0] for c in everywhere], None, counts[counts > 0], modes=tree.columns())
        trials = [[rng.integers(0, 2, mode.n_items) for mode in tree.modes] for _ in range(MANY)]
        built = [
            tree_density(tree, labels, widths, observed.ravel() * law.n_observations, everywhere) for labels in trials
        ]
        logs = np.array([density.log_density(everywhere) for density in built])
        for name, at in (
            ("deepest fit", int(np.argmax(logs @ observed.ravel()))),
            ("best of many", int(np.argmax(logs @ (observed.ravel() - law.p.ravel())))),
        ):
            value = certify_tree_density(built[at], sample, DELTA).value
            tally.above("density tree", name, float(-(logs[at] @ law.p.ravel())), value)
    return tally


def tree_density(tree: Tree, labels: list, widths: tuple, counts: np.ndarray, everywhere: list) -> TreeDensity:
    """The smoothed density of given clusters."""
    at, items = clusters_of(tree, labels, everywhere, widths)
    laws_ = [
        smoothed(np.bincount(code, counts, minlength=len(labels[mode])), np.ones(len(labels[mode])))
        for code, mode in zip(items, tree.tables)
    ]
    roots = np.zeros(tuple(widths[r] for r in tree.roots))
    np.add.at(roots, tuple(at[r] for r in tree.roots), counts)
    prior = product_law(roots + 0.5)
    d = tree.n_leaves
    return TreeDensity(tree, tuple(labels), widths, tuple(laws_[:d]), tuple(laws_[d:]), smoothed(roots, prior))
