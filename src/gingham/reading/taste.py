"""Ratings: what is left when everybody's and everything's own average is taken out, and clusters of that.

Raw co-clusters of ratings mean "kind raters × good films". What people want to read is taste: who likes what more than
the averages say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.cells import Quadratic
from gingham.core.problem import Problem
from gingham.data import Mode, Sample
from gingham.fitting.starts import make_start
from gingham.fitting.sweep import Sweep
from gingham.reading.observed import Relation

SHRINK = 5.0  # numbers with nothing to say that every average starts from
ROUNDS = 10  # of averages in turn
FINEST = 20  # clusters a side to begin with
ENTRIES_A_BLOCK = 40  # about so many


def averages(relation: Relation, shape: Sequence[int], seen: Bools | None = None, which: Sequence[int] = ()) -> Floats:
    """What the overall mean and the shrunken averages of some positions (all, where none is named) say of every entry.

    Learned from the entries under the mask ``seen``; averages of several positions are fitted together, in turn.
    """
    y, weight = np.asarray(relation.values, dtype=np.float64), relation.weight
    seen = np.ones(len(y), dtype=bool) if seen is None else seen
    positions = list(which) or list(range(len(relation.codes)))
    learn, counts = y[seen], weight[seen]
    base = float(np.average(learn, weights=counts))
    effects = [np.zeros(shape[relation.sides[p]]) for p in positions]
    codes = [relation.codes[p][seen] for p in positions]
    rest = learn - base
    masses = [np.bincount(code, counts, len(effect)) + SHRINK for code, effect in zip(codes, effects)]
    for _ in range(ROUNDS if len(positions) > 1 else 1):
        for effect, code, mass in zip(effects, codes, masses):
            step = np.bincount(code, counts * rest, len(effect)) / mass - effect * (SHRINK / mass)
            effect += step
            rest = rest - step[code]
    said: Floats = np.full(len(y), base)
    for effect, p in zip(effects, positions):
        said += effect[relation.codes[p]]
    return said


def residuals(relation: Relation, shape: Sequence[int], seen: Bools | None = None) -> Relation:
    """The entries with what averages leave over in the place of their numbers."""
    y = np.asarray(relation.values, dtype=np.float64)
    return replace(relation, values=y - averages(relation, shape, seen))


def taste_clusters(relation: Relation, modes: Sequence[Mode], seed: int) -> list[Ints]:
    """Fine clusters of each position by what the averages leave over; hard moves that pay for every cluster.

    Minimises N L̂/(2σ²) + Σ n_i H(cluster sizes), squares against nats, so that items of which little is known go
    where most are.
    """
    places = [modes[side] for side in relation.sides]
    sample = Sample(
        tuple(places), relation.codes, np.asarray(relation.values, dtype=np.float64), weights=relation.weights
    )
    noise = float(np.average(np.asarray(relation.values) ** 2, weights=relation.weight))
    if noise <= 1e-12 * max(1.0, float(np.abs(np.asarray(relation.values)).max(initial=0.0)) ** 2):
        return [np.zeros(mode.n_items, dtype=np.int64) for mode in places]
    d = len(places)
    even = max(2, min(FINEST, round((sample.n_tuples / ENTRIES_A_BLOCK) ** (1 / d))))
    sizes = [min(even, mode.n_items) for mode in places]
    problem = Problem.grid(sample, Quadratic(), 1.0 / (2.0 * noise))
    start = make_start("spectral", problem, sizes, np.random.default_rng(seed))
    found = Sweep(1.0, 1e-3, 30, seed=seed).solve(problem, start).posterior
    return [np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in found.labels]
