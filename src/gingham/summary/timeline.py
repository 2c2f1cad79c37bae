"""Groups over time: fits to one period after the other, whose groups keep numbers and names as far as they last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.data.adapt import frame_of
from gingham.errors import GinghamError
from gingham.summary.changes import (
    Change,
    Changes,
    Fit,
    Groups,
    changes_over_time,
    groups_of,
    matched_groups,
    renamed,
    shared_items,
)

COLOURS = ("#3b6fb6", "#c8553d", "#588157", "#8d6a9f", "#d49a3a", "#4a9a9a", "#a0522d", "#777777", "#b5548d", "#7a9a01")
GAP = 0.04  # between two groups of a period, as a share of all items


@dataclass(frozen=True, eq=False)
class Period:
    """One period of a timeline.

    Attributes
    ----------
    name : str
    sides : tuple of Groups
        The groups of every side.
    identity : tuple of int arrays
        Of each group, the number (from 0) by which it is known in all periods.
    changes : Changes or None
        From the period before; None in the first one.
    """

    name: str
    sides: tuple[Groups, ...]
    identity: tuple[Ints, ...]
    changes: Changes | None


@dataclass(frozen=True, eq=False)
class Timeline:
    """Groups over time.

    Attributes
    ----------
    periods : tuple of Period, in the order of time
    """

    periods: tuple[Period, ...]

    @property
    def side_names(self) -> list[str]:
        return [side.mode.name for side in self.periods[0].sides]

    def side(self, name: str | None = None) -> int:
        """The position of a side; by default that whose items stay longest."""
        if name is not None:
            if name not in self.side_names:
                raise GinghamError(f"There is no side {name!r}; there are {', '.join(map(repr, self.side_names))}.")
            return self.side_names.index(name)
        stays = [
            sum(np.isin(a.sides[at].mode.items, b.sides[at].mode.items).sum() for a, b in self._steps())
            / max(sum(a.sides[at].mode.n_items for a in self.periods), 1)
            for at in range(len(self.side_names))
        ]
        return int(np.argmax(stays))

    def _steps(self) -> Iterable[tuple[Period, Period]]:
        return pairwise(self.periods)

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row per item and period: period, side, item, group (its number in all periods), name."""
        rows = [
            (period.name, side.mode.name, str(item), int(same[label]) + 1, side.names[label])
            for period in self.periods
            for side, same in zip(period.sides, period.identity)
            for item, label in zip(side.mode.items.tolist(), side.labels.tolist())
            if label >= 0
        ]
        return frame_of(
            {name: [row[at] for row in rows] for at, name in enumerate(("period", "side", "item", "group", "name"))},
            backend,
        )

    def moved(self, side: str | None = None) -> list[tuple[str, Change]]:
        """Period and change of every item that moved, the proven ones first."""
        name = self.side_names[self.side(side)]
        found = [
            (period.name, one)
            for period in self.periods
            for one in (period.changes.changes if period.changes else ())
            if one.side == name and one.kind == "moved"
        ]
        return sorted(found, key=lambda pair: (pair[1].verdict != "proven", pair[1].p))


def timeline(fits: Mapping[str, Any], alpha: float = 0.05, seed: int = 0) -> Timeline:
    """Put models of the same sides in a row; each takes the numbers and names of the one before where groups last.

    Parameters
    ----------
    fits : mapping from the name of a period, in the order of time, to a fitted model or a `Fit`
    alpha : float
        The chance that any change is called proven though nothing has changed, in all steps together.
    seed : int
        Of the choice of rows that are kept back from the tests.
    """
    if len(fits) < 2:
        raise GinghamError("A timeline needs two periods at least.")
    named: list[Fit] = []
    for one in fits.values():
        fit = one if isinstance(one, Fit) else Fit(one._observed(), one.summary_)
        named.append(Fit(fit.observed, renamed(fit.summary, named[-1].summary)) if named else fit)
    changes = [None, *changes_over_time(named, alpha=alpha, seed=seed)]
    found: list[Period] = []
    last: list[int] = []
    for name, fit, changed in zip(fits, named, changes):
        sides = groups_of(fit.summary)
        identity = []
        for at, side in enumerate(sides):
            if not found:
                last.append(side.n)
                identity.append(np.arange(side.n))
                continue
            same = matched_groups(found[-1].sides[at], side)
            known = np.where(same >= 0, found[-1].identity[at][same], -1)
            known[same < 0] = last[at] + np.arange(int((same < 0).sum()))
            last[at] += int((same < 0).sum())
            identity.append(known)
        found.append(Period(name, tuple(sides), tuple(identity), changed))
    return Timeline(tuple(found))


# the picture


class Box(NamedTuple):
    """A group of one period: column, lower and upper end (shares of the tallest column), identity, size and name."""

    column: int
    low: float
    high: float
    identity: int
    size: int
    name: str


class Flow(NamedTuple):
    """Items that two groups of neighbouring periods share: column of the first, ends there and in the next one.

    ``identity`` is that of the group they come from; ``proven`` names those that are proven to have moved.
    """

    column: int
    left: tuple[float, float]
    right: tuple[float, float]
    identity: int
    size: int
    stays: bool
    proven: tuple[str, ...] = ()

    @property
    def opacity(self) -> float:
        return 0.3 if self.stays else 1.0 if self.proven else 0.55


def alluvial(line: Timeline, side: str | None = None) -> tuple[list[Box], list[Flow]]:
    """Where groups and the items between them stand in an alluvial picture."""
    at = line.side(side)
    columns = [(period.sides[at], period.identity[at]) for period in line.periods]
    tallest = max(int((own.labels >= 0).sum()) for own, _ in columns)
    most = max(own.n for own, _ in columns)
    unit = 1.0 / (tallest * (1.0 + GAP * (most - 1)))
    boxes: list[Box] = []
    ends: list[Floats] = []
    for column, (own, identity) in enumerate(columns):
        sizes = np.bincount(own.labels[own.labels >= 0], minlength=own.n)
        order, low = np.argsort(identity, kind="stable"), 0.0
        lows = np.zeros(own.n)
        for group in order.tolist():
            lows[group] = low
            high = low + unit * int(sizes[group])
            boxes.append(Box(column, low, high, int(identity[group]), int(sizes[group]), own.names[group]))
            low = high + GAP * unit * tallest
        ends.append(lows)
    flows: list[Flow] = []
    moved = [(period, one) for period, one in line.moved(side) if one.verdict == "proven"]
    for column, ((a, known), (b, later)) in enumerate(pairwise(columns)):
        proven = [one for period, one in moved if period == line.periods[column + 1].name]
        old, shared = a.seen_by(b.mode), shared_items(a, b)
        left, right = ends[column].copy(), ends[column + 1].copy()
        for i in np.argsort(known, kind="stable").tolist():
            for j in np.argsort(later, kind="stable").tolist():
                if n := int(shared[i, j]):
                    height = unit * n
                    spans = ((left[i], left[i] + height), (right[j], right[j] + height))
                    names = [
                        one.items[0] for one in proven if (old[one.positions[0]], b.labels[one.positions[0]]) == (i, j)
                    ]
                    stays = bool(known[i] == later[j])
                    flows.append(Flow(column, *spans, int(known[i]), n, stays, () if stays else tuple(names)))
                    left[i] += height
                    right[j] += height
    return boxes, flows
