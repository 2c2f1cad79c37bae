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
from gingham.fitting.starts import from_labels, make_start
from gingham.fitting.sweep import Sweep
from gingham.reading.observed import Relation

SHRINK = 5.0  # numbers with nothing to say that every average starts from
ROUNDS = 10  # of averages in turn
FEWEST, FINEST = 3, 20  # clusters a side to begin with
SMALLEST = 0.02  # of the numbers and of the items that a cluster must hold
ENTRIES_A_BLOCK = 2500  # about so many: tastes are weak, and a start with many clusters finds noise
FINER_BLOCK = 500  # where such blocks tell nothing: the strokes of digits are smaller than a quarter of the pixels
PRICE = 0.5  # of the sizes of clusters, in nats a nat: at 1 all but a few groups vanish, at 0 odd items make groups


def averages(relation: Relation, shape: Sequence[int], seen: Bools | None = None, which: Sequence[int] = ()) -> Floats:
    """What the overall mean and the shrunken averages of some positions (all, where none is named) say of every entry.

    Learned from the entries under the mask ``seen``; averages of several positions are fitted together, in turn.
    """
    if relation.both_ways:  # a node has one average, whichever end it stands at
        twice = replace(
            relation,
            codes=tuple(np.concatenate([code, other]) for code, other in zip(relation.codes, relation.codes[::-1])),
            values=np.concatenate([np.asarray(relation.values)] * 2),
            weights=None if relation.weights is None else np.concatenate([relation.weights] * 2),
            both_ways=False,
        )
        said = averages(twice, shape, None if seen is None else np.concatenate([seen, seen]), which)
        return said[: relation.n_entries]
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
    said = np.full(len(y), base)
    for effect, p in zip(effects, positions):
        said += effect[relation.codes[p]]
    return said


def residuals(relation: Relation, shape: Sequence[int], seen: Bools | None = None) -> Relation:
    """The entries with what averages leave over in the place of their numbers; numbers are left where they are not."""
    if relation.measure != "difference" or relation.centred:
        return relation
    y = np.asarray(relation.values, dtype=np.float64)
    return replace(relation, values=y - averages(relation, shape, seen))


def taste_clusters(relation: Relation, modes: Sequence[Mode], seed: int, finer: bool = False) -> list[Ints]:
    """Fine clusters of each position by what the averages leave over; hard moves that pay for every cluster.

    Minimises N L̂/(2σ²) + ½ Σ n_i H(cluster sizes), squares against nats, so that items of which little is known go
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
    even = max(FEWEST, min(FINEST, round((sample.n_tuples / (FINER_BLOCK if finer else ENTRIES_A_BLOCK)) ** (1 / d))))
    sizes = [min(even, mode.n_items) for mode in places]
    problem = Problem.grid(sample, Quadratic(), 1.0 / (2.0 * noise))
    posterior = make_start("spectral", problem, sizes, np.random.default_rng(seed))
    moves = Sweep(PRICE, 1e-3, 30, seed=seed)
    labels = list(moves.solve(problem, posterior).posterior.labels)
    while True:
        # A handful of odd people is no group: their items find places in the groups that are left.
        fewer = [_without_small(own, sample.counts(at)) for at, own in enumerate(labels)]
        if all(int(own.max()) == int(new.max()) for own, new in zip(labels, fewer)):
            return fewer
        posterior = from_labels(problem, fewer, [int(own.max()) + 1 for own in fewer])
        labels = list(moves.solve(problem, posterior).posterior.labels)


def _without_small(labels: Ints, mass: Floats) -> Ints:
    """The clusters with enough of the data and of the items, numbered anew; items of others go to the largest one."""
    share = np.bincount(labels, mass) / max(float(mass.sum()), 1e-300)
    items = np.bincount(labels) / len(labels)
    large = (share >= SMALLEST) & (items >= SMALLEST)
    large[share.argmax()] = True
    number = np.cumsum(large) - 1
    return np.where(large[labels], number[labels], number[share.argmax()]).astype(np.int64)
