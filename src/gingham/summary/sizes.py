"""How many clusters to read: what a fit without some of the observations knows of them, at every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.fitting.merging import MergeTree
from gingham.summary.known_columns import gains_of
from gingham.summary.measure import (
    additive_effects,
    averages_of,
    baselines,
    errors_of,
    folds_of,
    how_measured,
    mean_and_error,
    pooled_errors,
)
from gingham.summary.trees import joint_path, rungs, trees_of
from gingham.summary.values import MODEL, BlockTable, Errors, Observed, Refit, Relation

FEWEST_HELD = 20  # entries below which nothing can be held out
FEW, FEW_BLOCKS = 8, 36  # clusters per side, and blocks, of which all are shown: eight communities of a graph have 36
ALL = 0.9  # share of the best size's gain that they must keep
CAP = 12  # clusters a side that people can read
SURE = 3.0  # standard errors by which the best rung must gain
SHARES = (0.5, 0.8, 0.9)
READABLE = {"lift": 0.5, "difference": 0.9, "labels": 0.85}  # share of the best size's gain that is kept
DISTILLED = 0.6  # of a distilled checkerboard: finer ones change with the seed of the model
PART = 0.1  # of the gain of the model that a distilled checkerboard must reproduce
MATTERS = 0.01  # share of the squares beyond the expected numbers that groups must explain
LEAVES = 60  # of a tree: finer clusters are merged before anything is said of them


@dataclass(frozen=True, eq=False)
class Curve:
    """What every rung of a path gains on held-out entries.

    Attributes
    ----------
    sizes : list of sizes, all leaves first
    gains : array (rungs,), per observation
    errors : array (rungs,), their standard errors
    least : float
        The gain from which on it matters.
    sure : float
        Standard errors by which the best rung must gain.
    over_averages : (float, float) or None
        What the best rung gains over averages, and its standard error, where gains are those over one constant.
    """

    sizes: list[tuple[int, ...]]
    gains: Floats
    errors: Floats
    least: float = 0.0
    sure: float = SURE
    over_averages: tuple[float, float] | None = None

    @property
    def best(self) -> int:
        """The rung that gains most, the coarsest of equals."""
        return int(len(self.gains) - 1 - np.argmax(self.gains[::-1]))

    @property
    def found(self) -> bool:
        """Whether the best rung gains more than chance would make it, and enough to matter."""
        gains = [(self.gains[self.best], self.errors[self.best])] + ([self.over_averages] if self.over_averages else [])
        sure = all(gain > max(self.sure * error, self.least) for gain, error in gains)
        return bool(sure and max(self.sizes[self.best]) > 1)

    def at(self, size: Sequence[int]) -> int:
        """The rung of a size; the best one where there is none of it."""
        return self.sizes.index(tuple(size)) if tuple(size) in self.sizes else self.best

    def holds(self, size: tuple[int, ...], share: float) -> bool:
        """Whether this rung (the finest, where there is none of this size) keeps a share of the best gain."""
        at = self.sizes.index(size) if size in self.sizes else 0
        return self.found and bool(self.gains[at] >= share * self.gains[self.best])

    def keeping(self, share: float, cap: int | None = None) -> tuple[int, ...]:
        """The coarsest rung that keeps at least this share of the best gain; one cluster per side without any."""
        if not self.found:
            return tuple(1 for _ in self.sizes[0])
        at = int(np.flatnonzero(self.gains >= share * self.gains[self.best])[-1])
        return tuple(k if cap is None else min(k, cap) for k in self.sizes[at])


def pooled(curves: Sequence[Curve]) -> Curve:
    """One curve from those of several parts, rung by rung from the coarsest on; sizes are the medians."""
    if len(curves) == 1:
        return curves[0]
    length = max(len(curve.sizes) for curve in curves)
    sizes, gains, errors = [], np.zeros(length), np.zeros(length)
    for left in range(length):
        at = [max(len(curve.sizes) - 1 - left, 0) for curve in curves]
        middle = np.median([curve.sizes[i] for curve, i in zip(curves, at)], axis=0)
        sizes.append(tuple(int(k) for k in np.floor(middle + 0.5)))
        gains[left] = np.mean([curve.gains[i] for curve, i in zip(curves, at)])
        errors[left] = np.sqrt(np.sum([curve.errors[i] ** 2 for curve, i in zip(curves, at)])) / len(curves)
    least = float(np.mean([curve.least for curve in curves]))
    over = [curve.over_averages for curve in curves if curve.over_averages is not None]
    mean, error = (float(part) for part in np.mean(over, axis=0)) if over else (0.0, 0.0)
    return Curve(
        sizes[::-1], gains[::-1], errors[::-1], least, curves[0].sure,
        (mean, error / float(np.sqrt(len(over)))) if over else None,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trial:
    """What held-out entries say."""

    curve: Curve
    errors: Errors | None
    model_gain: float | None = None  # of the model over what it expects without clusters, in the unit of the curve
    squares: float | None = None  # that the curve starts from, where they are not those of averages


def own_clusters(observed: Observed, known: Sequence[Ints | None]) -> list[Ints]:
    """The clusters of every side, numbered without gaps; a side without clusters is grouped by its observations."""
    found: list[Ints | None] = [
        None if labels is None else np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in known
    ]
    for side, n in enumerate(observed.shape):
        if found[side] is None and n <= LEAVES:
            found[side] = np.arange(n)
    return [_associated(observed, side, found) if f is None else f for side, f in enumerate(found)]


def _associated(observed: Observed, side: int, clusters: Sequence[Ints | None]) -> Ints:
    """Items of a side without clusters go by the cluster of another side that they are most typical of."""
    for relation, own, other in observed.meetings(side):
        labels = clusters[relation.sides[other]]
        if labels is not None:
            shape = (observed.shape[side], int(labels.max()) + 1)
            sums = relation.pair(own, other).sums(np.arange(shape[0]), labels, shape)
            worth = (relation.rule.coefficients(sums) * sums).sum(axis=-1)
            return np.unique(worth.argmax(axis=1), return_inverse=True)[1].astype(np.int64)
    return np.zeros(observed.shape[side], dtype=np.int64)


def tables_of(observed: Observed, clusters: Sequence[Ints], blocks: Floats | None = None) -> list[BlockTable]:
    """How every two sides of every relation meet, in sums over blocks.

    ``blocks`` are the values of the first table's blocks where a model says them, by its own clusters.
    """
    m = [int(labels.max()) + 1 for labels in clusters]
    found: list[BlockTable] = []
    for relation in observed.relations:
        for i, j in relation.pairs():
            a, b = relation.sides[i], relation.sides[j]
            sums = relation.pair(i, j).sums(clusters[a], clusters[b], (m[a], m[b]))
            if blocks is not None and not found:
                sums[..., 1] = sums[..., 0] * blocks
            found.append(BlockTable((a, b), relation.measure, sums, relation.label, relation.labels))
    return found


def held_out(observed: Observed, seed: int) -> Trial | None:
    """What the same model, fitted without some entries, knows of them at each size; None where that is impossible."""
    relation = observed.relations[0]
    if relation.n_entries < FEWEST_HELD or observed.refit is None:
        return None
    trials = [_held_out(observed, held) for held in folds_of(relation.n_entries, seed)]
    gains = [trial.model_gain for trial in trials]
    weights = [0.0 if trial.errors is None else trial.errors.n_held for trial in trials]
    known = [gain for gain in gains if gain is not None]
    curve = pooled([trial.curve for trial in trials])
    gain = float(np.average(known, weights=weights)) if len(known) == len(gains) else None
    if observed.distilled and gain is not None and gain > curve.least:
        # Groups matter, too, that reproduce a part of what a model gains which matters.
        curve = replace(curve, least=min(curve.least, PART * gain))
    errors = pooled_errors([trial.errors for trial in trials if trial.errors is not None])
    left = [trial.squares for trial in trials if trial.squares is not None]
    return Trial(curve, errors, gain, float(np.mean(left)) if left else None)


def _held_out(observed: Observed, held: Bools) -> Trial:
    """The same for one part of the entries."""
    relation = observed.relations[0]
    refit = observed.refit(~held)  # type: ignore[misc]  # asked for before
    learned = observed.with_first(relation if refit.expected is None else replace(relation, expected=refit.expected))
    clusters = own_clusters(learned.with_first(learned.relations[0].take(~held)), refit.clusters)
    if refit.blocks is None:
        curve = curve_of(learned, clusters, held)
    else:
        curve = distilled_curve(learned, clusters, held, refit.blocks)
    errors = _errors(learned, held, refit, curve)
    numbers, squares, gain = relation.measure == "difference", None, None
    if numbers and refit.blocks is None:
        rest = np.asarray(learned.relations[0].residuals)[held]
        squares = float(np.average(rest**2, weights=relation.weight[held]))
    elif observed.distilled and errors.model is not None:
        simple = list(errors.scores.values())[1:]  # label shares first, averages of both sides last
        gain = simple[-1] ** 2 - errors.model**2 if numbers else simple[0] - errors.model
    return Trial(curve, errors, gain, squares)


def _errors(observed: Observed, held: Bools, refit: Refit, curve: Curve) -> Errors:
    """The model and baselines on the held-out entries."""
    relation = observed.relations[0]
    if relation.measure == "lift":
        nats, weight = 0.0, relation.weight
        for code, side in zip(relation.codes, relation.sides):
            mass = np.bincount(code[~held], weight[~held], observed.shape[side])
            shares = np.log((mass + 1 / len(mass)) / (mass.sum() + 1))
            nats -= float(np.average(shares[code[held]], weights=weight[held]))
        scores = {MODEL: nats - float(curve.gains[0]), "independence": nats}
        return Errors("mass", "nats per count", scores, float(weight[held].sum()), how_measured(1))
    said = None if refit.predictions is None else np.asarray(refit.predictions)
    named = relation.measure == "labels"
    loss = observed.loss or ("log" if named else "quadratic")
    if named and loss == "log" and (said is None or said.ndim == 1):  # a model that names labels and no probabilities
        loss = "zero-one"
    simple = baselines(
        relation,
        [observed.shape[side] for side in relation.sides],
        ~held,
        [observed.modes[side].name for side in relation.sides],
        loss,
    )
    every = simple if said is None else {MODEL: said, **simple}
    return errors_of(np.asarray(relation.values)[held], relation.weight[held], every, loss, how_measured(1))


def _ladder(
    seen: Observed, clusters: Sequence[Ints], blocks: Floats | None = None
) -> tuple[list[BlockTable], list[tuple[int, ...]], list[list[Ints]]]:
    """Tables of the entries that were seen; along their joint path all sizes, and the clusters of all items there."""
    tables = tables_of(seen, clusters, blocks)
    trees = trees_of(tables, seen.n_sides)
    sizes = rungs(trees, joint_path(trees, tables))
    return tables, sizes, [[tree.groups(k) for tree, k in zip(trees, size)] for size in sizes]


def curve_of(observed: Observed, clusters: Sequence[Ints], held: Bools) -> Curve:
    """The held-out gain along the joint path of the trees that the other entries make.

    Entries with an item that the others do not know count as no gain: nothing is said of them.
    """
    first = observed.relations[0]
    known, asked = first.take(~held), first.take(held)
    tables, sizes, cuts = _ladder(observed.with_first(known), clusters)
    tests = [(asked.pair(i, j), known.pair(i, j).codes) for i, j in first.pairs()]
    met = [np.logical_and(*(np.isin(c, k) for c, k in zip(test.codes, codes))) for test, codes in tests]
    weight = np.concatenate([test.weight for test, _ in tests])
    found = []
    for groups in cuts:
        gains = []
        for table, (test, _), inside in zip(tables, tests, met):
            coarse = table.coarser(groups)
            places = [groups[side][clusters[side]] for side in table.sides]
            gains.append(np.where(inside, test.gains(coarse.rule.coefficients(coarse.sums), *places), 0.0))
        found.append(mean_and_error(np.concatenate(gains), weight))
    curve = Curve(sizes, *np.array(found).T)
    if first.measure != "difference":
        return curve
    squares = np.asarray(asked.residuals, dtype=np.float64) ** 2
    curve = replace(curve, least=MATTERS * float(np.average(squares, weights=asked.weight)))
    if np.ptp(0.0 if first.expected is None else first.expected) > 0:
        return curve
    labels = [groups[own] for groups, own in zip(cuts[curve.best], clusters)]
    return replace(curve, over_averages=_over_averages(first, observed.shape, labels, held))


def distilled_curve(observed: Observed, clusters: Sequence[Ints], held: Bools, blocks: Floats) -> Curve:
    """What cuts of a distilled checkerboard gain on held-out entries over averages.

    The additive effects are those of the seen entries given the blocks of each cut; with one block they are averages.
    """
    first = observed.relations[0]
    known, asked = first.take(~held), first.take(held)
    tables, sizes, cuts = _ladder(observed.with_first(known), clusters, blocks)
    y, truth = np.asarray(known.values, dtype=np.float64), np.asarray(asked.values, dtype=np.float64)
    averages = averages_of(known, observed.shape)
    squares = (truth - averages.at(asked.codes)) ** 2
    found = []
    for groups in cuts:
        sums = tables[0].coarser(groups).sums
        means = sums[..., 1] / np.maximum(sums[..., 0], 1e-12)
        block, test = (
            means[tuple(own[labels][code] for own, labels, code in zip(groups, clusters, part.codes))]
            for part in (known, asked)
        )
        effects = additive_effects(known.codes, observed.shape, y - block, known.weights, averages.shrinkage)
        found.append(mean_and_error(squares - (truth - effects.at(asked.codes) - test) ** 2, asked.weight))
    gains, errors = np.array(found).T
    gains[-1] = 0.0  # one block is no group
    return Curve(sizes, gains, errors, MATTERS * float(np.average(squares, weights=asked.weight)), 2.0)


def _over_averages(
    relation: Relation, shape: Sequence[int], labels: Sequence[Ints], held: Bools
) -> tuple[float, float]:
    """What groups gain over averages on held-out numbers, in squares per number, and its standard error.

    Averages alone make groups of high and of low items that predict better than one constant.
    """
    asked = relation.take(held)
    averages = averages_of(relation.take(~held), shape)
    left = (np.asarray(asked.values) - averages.at(asked.codes)) ** 2 - np.asarray(asked.residuals) ** 2
    pairs = [(at, tuple(labels[relation.sides[position]] for position in at)) for at in relation.pairs()]
    gains = np.mean([gains_of(relation, at, (groups[0], groups[1]), held) for at, groups in pairs], axis=0)
    return mean_and_error(gains + left, asked.weight)


def sizes_of(
    observed: Observed, trees: Sequence[MergeTree], tables: Sequence[BlockTable], trial: Trial | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(the size by the rule, the size to read at): sizes that the user gave are shown as they are."""
    leaves = tuple(tree.n_leaves for tree in trees)
    given = observed.given or (False,) * len(leaves)
    if trial is None:
        by_rule = tuple(min(k, CAP) for k in leaves)
    elif not any(given) and not observed.distilled and _few(leaves, tables) and trial.curve.holds(leaves, ALL):
        by_rule = leaves
    else:
        judged = observed.relations[0].sides  # of others, held-out entries say nothing
        wanted = trial.curve.keeping(readable_share(observed), CAP)
        by_rule = tuple(min(k if at in judged else CAP, m) for at, (k, m) in enumerate(zip(wanted, leaves)))
    return by_rule, tuple(m if own else k for own, m, k in zip(given, leaves, by_rule))


def _few(leaves: Sequence[int], tables: Sequence[BlockTable]) -> bool:
    """Whether people can read all clusters of a model, and every block in which they meet."""
    blocks = 0
    for a, b in (table.sides for table in tables):
        blocks += leaves[a] * (leaves[a] + 1) // 2 if a == b else leaves[a] * leaves[b]
    return max(leaves) <= FEW and blocks <= FEW_BLOCKS


def readable_share(observed: Observed) -> float:
    """Share of what the best size knows that the readable size keeps."""
    return DISTILLED if observed.distilled else READABLE[observed.relations[0].measure]
