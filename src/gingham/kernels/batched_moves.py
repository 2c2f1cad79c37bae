"""Hard moves on all cores: items look at the board together, then those that want to go move one after the other."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gingham.arrays import Ints
from gingham.kernels.sweep import is_restless
from gingham.kernels.threads import in_blocks

LEAST_PART = 2  # two blocks a thread: a group is short, more would cost more than they even out
LOOK_UP = 16  # multiply-adds that take as long as scoring one tuple in one cluster


class Visit(Protocol):
    """Visit items in their order and write the cluster each is to be in; nothing moves where they only look."""

    def __call__(self, items: Ints, only_look: bool, chosen: Ints) -> None: ...


def in_groups(visit: Visit, order: Ints, at_once: int, labels: Ints, effort: Ints) -> Ints:
    """One visit to every item, group by group; returns the clusters, in the order of the visits.

    All of a group look at the board as it is before the group. Those that would move are then visited again, one
    after the other, each with what those before it left. So every move lowers the objective, and the result
    depends on ``at_once`` but not on the number of threads. After a group of which many moved, the next does not
    look together: what it would see is soon out of date, and most of it would be visited twice.

    Parameters
    ----------
    order : (n,) items to visit
    at_once : items of a group; 1 visits one after the other
    labels : cluster of every item, changed by ``visit``
    effort : (n,) tuples times clusters that each visit scores
    """
    chosen = np.empty(len(order), dtype=np.int64)
    if at_once <= 1:
        visit(order, False, chosen)
        return chosen
    ends = np.concatenate([[0], np.cumsum(effort)])
    restless = False
    for begin in range(0, len(order), at_once):
        end = min(begin + at_once, len(order))
        before = labels[order[begin:end]]
        if restless:
            visit(order[begin:end], False, chosen[begin:end])
        else:
            work = int(ends[end] - ends[begin]) * LOOK_UP
            in_blocks(lambda a, b: visit(order[a:b], True, chosen[a:b]), ends, begin, end, work, LEAST_PART)
            going = begin + np.flatnonzero(chosen[begin:end] != before)
            found = np.empty(len(going), dtype=np.int64)
            visit(order[going], False, found)
            chosen[going] = found
        restless = is_restless(before, chosen[begin:end])
    return chosen
