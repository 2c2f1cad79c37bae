"""Partitions by columns that are known of the items: whether they predict better than the groups that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import ndtri

from gingham.arrays import Bools, Floats, Ints
from gingham.summary.measure import averages_of, folds_of, mean_and_error
from gingham.summary.values import KnownColumns, Observed, Relation, listed, plural

Partitions = Mapping[str, Ints]  # the group of every item, by the name of the column
LIKELY = 0.00135  # chance of three standard errors, which all candidates share
MATTERS = 0.01  # share of what averages leave over that a partition must explain


def best_known(
    observed: Observed,
    known: Mapping[int, Partitions],
    seed: int,
    gain_found: float,
    error_found: float,
    squares: float | None,
) -> KnownColumns | None:
    """The pair of known columns that predicts best, where it predicts clearly better than what was found.

    Its gain must exceed that of the groups shown by three standard errors, with the price of all candidates, and by an
    amount that matters. The same entries are held out as for the groups. ``squares`` are what the model leaves over
    without its groups, from which ``gain_found`` starts; None where it starts from averages.
    """
    relation = observed.relations[0]
    meetings = [(i, j) for i, j in relation.pairs() if all(known.get(relation.sides[at]) for at in (i, j))]
    tried = [
        (i, j, first, second)
        for i, j in meetings
        for first, second in product(known[relation.sides[i]], known[relation.sides[j]])
    ]
    if not tried:
        return None
    parts = [(_learned(relation, observed.shape, held), held) for held in folds_of(relation.n_entries, seed)]
    weight = np.concatenate([relation.weight[held] for _, held in parts])
    left_over = 1.0
    if relation.measure == "difference":
        rest = np.concatenate([np.asarray(own.residuals)[held] for own, held in parts])
        left_over = float(np.average(rest**2, weights=weight))
        gain_found += 0.0 if squares is None else left_over - squares
    found = []
    for i, j, first, second in tried:
        groups = known[relation.sides[i]][first], known[relation.sides[j]][second]
        gains = np.concatenate([gains_of(own, (i, j), groups, held) for own, held in parts])
        found.append(mean_and_error(gains, weight))
    best = int(np.argmax([mean for mean, _ in found]))
    (gain, error), (i, j, first, second) = found[best], tried[best]
    sure = float(-ndtri(LIKELY / len(tried))) * float(np.hypot(error, error_found))
    least = MATTERS * left_over if relation.measure == "difference" else 0.0
    if gain - gain_found <= max(sure, least):
        return None
    names = [observed.modes[relation.sides[at]].name for at in (i, j)]
    columns = ((names[0], first), (names[1], second))[: 1 if names[0] == names[1] and first == second else 2]
    text = _sentence(columns, relation, gain, gain_found, left_over)
    return KnownColumns(columns, gain, error, gain_found, len(tried), text)


def _learned(relation: Relation, shape: Sequence[int], held: Bools) -> Relation:
    """The entries, numbers beside what averages of those that are not held out expect of them."""
    if relation.measure != "difference":
        return relation
    return replace(relation, expected=averages_of(relation.take(~held), shape).at(relation.codes))


def gains_of(relation: Relation, at: tuple[int, int], groups: tuple[Ints, Ints], held: Bools) -> Floats:
    """What each held-out entry gains by the block of the others that it falls into."""
    shape = (int(groups[0].max()) + 1, int(groups[1].max()) + 1)
    sums = relation.take(~held).pair(*at).sums(*groups, shape)
    coef = relation.rule.coefficients(sums)
    if relation.measure == "labels":
        # Groups of few items differ in their shares by chance, and held-out entries of the same items confirm it: what
        # counts is what a block says beyond its row and its column.
        sides = (relation.rule.coefficients(sums.sum(axis=axis, keepdims=True)) for axis in (0, 1))
        apart = np.add(*sides)
        overall = sums.sum(axis=(0, 1)) / max(float(sums.sum()), 1e-300)
        coef = coef - apart + np.log((overall * np.exp(apart)).sum(axis=-1, keepdims=True))
    asked = relation.take(held)
    codes = (asked.codes[at[0]], asked.codes[at[1]])
    return replace(asked, codes=codes, values=asked.residuals).gains(coef, *groups)


def _sentence(
    columns: Sequence[tuple[str, str]], relation: Relation, gain: float, gain_found: float, left_over: float
) -> str:
    named = listed([f"{plural(side)} by the column {column!r}" for side, column in columns])
    if relation.measure == "difference":
        errors = [float(np.sqrt(max(left_over - own, 0.0))) for own in (gain, gain_found, 0.0)]
        shown = f"a root mean square error of {errors[0]:.4g}"
        against = (f"the groups that were found have {errors[1]:.4g}, averages", f"averages have {errors[2]:.4g}")
        rest = f"{against[0]} {errors[2]:.4g}" if gain_found > 0 else against[1]
    else:
        than = "label shares of each side" if relation.measure == "labels" else "chance"
        shown = f"{gain:.3g} nats less per observation than by {than}"
        rest = f"the groups that were found save {max(gain_found, 0.0):.3g}"
    return f"Grouped by the known columns {named}, held-out observations are predicted with {shown}; {rest}."
