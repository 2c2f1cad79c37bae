"""Hard moves on all cores: items are evaluated in batches, then those that want to go move one after the other."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gingham.arrays import Ints
from gingham.kernels.threads import in_blocks

BATCHES, SMALL = 16, 2**22  # batches of a sweep, and effort for which they are not worth it
TOO_MANY = 0.25  # share of a batch; evaluating costs half a visit on two cores, so it pays up to twice this share
LEAST_PART = 2  # two blocks a thread: a batch is short, more would cost more than they even out
LOOK_UP = 16  # multiply-adds that take as long as scoring one tuple in one cluster


class Visit(Protocol):
    """Visit items in their order and write the cluster each is to be in; nothing moves if they are only evaluated."""

    def __call__(self, items: Ints, evaluate_only: bool, chosen: Ints) -> None: ...


def move_in_batches(visit: Visit, order: Ints, at_once: int, labels: Ints, effort: Ints) -> Ints:
    """One visit to every item, batch by batch; returns the clusters, in the order of the visits.

    All of a batch are evaluated on the board as it is before the batch. Those that would move are then visited again,
    one after the other, each with what those before it left. So every move lowers the objective, and the result
    depends on ``at_once`` but not on the number of threads. After a batch of which too many moved, the next is
    visited one by one: what would be evaluated is soon out of date, and most of it would be visited twice.

    Parameters
    ----------
    order : (n,) items to visit
    at_once : items of a batch; 1 visits one after the other
    labels : cluster of every item, changed by ``visit``
    effort : (n,) tuples times clusters that each visit scores
    """
    chosen = np.empty(len(order), dtype=np.int64)
    if at_once <= 1:
        visit(order, False, chosen)
        return chosen
    ends = np.concatenate([[0], np.cumsum(effort)])
    one_by_one = False
    for begin in range(0, len(order), at_once):
        end = min(begin + at_once, len(order))
        before = labels[order[begin:end]]
        if one_by_one:
            visit(order[begin:end], False, chosen[begin:end])
        else:
            work = int(ends[end] - ends[begin]) * LOOK_UP
            in_blocks(lambda a, b: visit(order[a:b], True, chosen[a:b]), ends, begin, end, work, LEAST_PART)
            going = begin + np.flatnonzero(chosen[begin:end] != before)
            found = np.empty(len(going), dtype=np.int64)
            visit(order[going], False, found)
            chosen[going] = found
        one_by_one = too_many_moves(before, chosen[begin:end])
    return chosen


def batch_size(effort: Ints) -> int:
    """How many items of a sweep are evaluated at once: one where all visits together take a few milliseconds.

    A sixteenth of the items keeps cores busy and what they see fresh: where descents end, and after how many
    sweeps, is the same on average. Says nothing of the machine, so that results are the same on all.
    """
    return 1 if int(effort.sum()) < SMALL else -(-len(effort) // BATCHES)


def too_many_moves(before: Ints, after: Ints) -> bool:
    """Whether so many of a batch moved that the next should be visited one by one."""
    return int(np.count_nonzero(before != after)) > TOO_MANY * len(before)
