"""How many clusters to read: the coarsest cut that keeps half of what held-out entries gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.reading.observed import Observed, Pair
from gingham.reading.trees import Met, joint_path, rungs, summed, trees_of

HELD = 0.1  # share of the entries that are held out
FOLDS = 5  # small data are held out a fifth at a time, all of them once
SMALL = 200_000  # entries
CAP = 12  # clusters a side that people can read
SURE = 3.0  # standard errors by which the best rung must gain
SHARES = (0.5, 0.8, 0.9)
READABLE = {"difference": 0.9}  # share to keep; half by default. Tastes are weak: with half of them nothing is left


@dataclass(frozen=True, eq=False)
class Curve:
    """What every rung of a path gains on held-out entries.

    Attributes
    ----------
    sizes : list of sizes, all leaves first
    gains : array (rungs,), per observation
    errors : array (rungs,), their standard errors
    """

    sizes: list[tuple[int, ...]]
    gains: Floats
    errors: Floats

    @property
    def best(self) -> int:
        """The rung that gains most, the coarsest of equals."""
        return int(len(self.gains) - 1 - np.argmax(self.gains[::-1]))

    @property
    def found(self) -> bool:
        """Whether the best rung gains more than chance would make it."""
        best = self.best
        return bool(self.gains[best] > SURE * self.errors[best] and max(self.sizes[best]) > 1)

    def keeping(self, share: float, cap: int | None = None) -> tuple[int, ...]:
        """The coarsest rung that keeps a share of the best gain; all ones where there is none."""
        if not self.found:
            return tuple(1 for _ in self.sizes[0])
        at = int(np.flatnonzero(self.gains >= share * self.gains[self.best])[-1])
        return tuple(k if cap is None else min(k, cap) for k in self.sizes[at])


def held_parts(n: int, seed: int) -> list[Bools]:
    """Which entries are held out: whole ones, never single counts of one; several parts in turn where data are small.

    Repeats of a word in a document would give the pair away: on independent counts with bursts, thinning tokens
    reports a gain where there is none.
    """
    order = np.random.default_rng([seed, n]).permutation(n)
    parts = np.array_split(order, FOLDS) if n <= SMALL else [order[: round(HELD * n)]]
    found = []
    for part in parts:
        held = np.zeros(n, dtype=bool)
        held[part] = True
        found.append(held)
    return found


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
    return Curve(sizes[::-1], gains[::-1], errors[::-1])


def curve_of(observed: Observed, clusters: Sequence[Ints], held: Bools) -> Curve:
    """The held-out gain along the joint path of the trees that the other entries make."""
    sizes = [int(labels.max()) + 1 for labels in clusters]
    seen, tests = [], []
    for number, relation in enumerate(observed.relations):
        kept = relation if number else relation.take(~held)
        for i, j in relation.pairs():
            a, b = relation.sides[i], relation.sides[j]
            pair = kept.pair(i, j)
            sums = pair.sums(clusters[a], clusters[b], (sizes[a], sizes[b]))
            seen.append(Met((a, b), relation.rule, sums))
            if number == 0:
                tests.append(_Held.of(known_entries(relation.take(held).pair(i, j), pair, observed, (a, b)),
                                      clusters[a], clusters[b], (sizes[a], sizes[b])))  # fmt: skip
    trees = trees_of(seen, observed.n_sides)
    path = joint_path(trees, seen)
    ladder = rungs(trees, path)
    gains, errors = [], []
    for size in ladder:
        groups = [tree.groups(k) for tree, k in zip(trees, size)]
        total, square, weight = 0.0, 0.0, 0.0
        for met, test in zip(seen, tests):
            coarse = summed(met.sums, groups[met.sides[0]], groups[met.sides[1]])
            gain, second, n = test.gain(met, coarse, groups[met.sides[0]], groups[met.sides[1]])
            total, square, weight = total + gain, square + second, weight + n
        mean = total / max(weight, 1e-300)
        gains.append(mean)
        errors.append(float(np.sqrt(max(square - mean * mean * squares_of(tests), 0.0))) / max(weight, 1e-300))
    return Curve(ladder, np.array(gains), np.array(errors))


def known_entries(held: Pair, seen: Pair, observed: Observed, sides: tuple[int, int]) -> Pair:
    """Held-out entries whose row and column both have entries that were seen: of others nothing is known."""
    rows = np.bincount(seen.rows, minlength=observed.shape[sides[0]]) > 0
    columns = np.bincount(seen.columns, minlength=observed.shape[sides[1]]) > 0
    keep = rows[held.rows] & columns[held.columns]
    values = None if held.values is None else held.values[keep]
    return held._replace(rows=held.rows[keep], columns=held.columns[keep], weight=held.weight[keep], values=values)


@dataclass(frozen=True, eq=False)
class _Held:
    """Held-out entries as sums over blocks of leaves, with second moments."""

    sums: Floats  # (m_1, m_2, K)
    seconds: Floats  # (m_1, m_2, K'): Σ w² t², and for numbers Σ w², Σ w² e, Σ w² e²
    weight: float
    squares: float  # Σ w²

    @classmethod
    def of(cls, pair: Pair, rows: Ints, columns: Ints, shape: tuple[int, int]) -> _Held:
        sums = pair.sums(rows, columns, shape)
        seconds = pair.sums(rows, columns, shape, squared=True)
        if pair.measure == "difference":
            squares = pair._replace(values=np.asarray(pair.values) ** 2).sums(rows, columns, shape, squared=True)
            seconds = np.concatenate([seconds, squares[..., 1:]], axis=-1)
        return cls(sums, seconds, float(pair.weight.sum()), float((pair.weight**2).sum()))

    def gain(self, met: Met, coarse: Floats, rows: Ints, columns: Ints) -> tuple[float, float, float]:
        """(Σ gain, Σ gain², Σ weight) over the entries, in blocks of a cut."""
        coef = met.measure.coefficients(coarse)
        sums, seconds = summed(self.sums, rows, columns), summed(self.seconds, rows, columns)
        total = float((coef * sums).sum())
        if seconds.shape[2] == coef.shape[2]:  # one statistic of an entry is not zero
            return total, float((coef * coef * seconds).sum()), self.weight
        # (a + b e)² with a = −mean², b = 2 mean
        a, b = coef[..., 0], coef[..., 1]
        square = a * a * seconds[..., 0] + 2 * a * b * seconds[..., 1] + b * b * seconds[..., 2]
        return total, float(square.sum()), self.weight


def squares_of(tests: Sequence[_Held]) -> float:
    """Σ w² over all held-out entries."""
    return sum(test.squares for test in tests)
