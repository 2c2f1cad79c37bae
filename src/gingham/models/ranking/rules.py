"""Lists that obey rules: at most so many items of a brand, at least so many of a kind, only these, none of those.

The list of a user maximises the sum of its scores among all lists that obey every rule. It is not the free list with
items struck out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, TypedDict

import narwhals as nw
import numpy as np
from scipy.optimize import linprog

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Mode
from gingham.engine.threads import in_blocks
from gingham.errors import GinghamError
from gingham.models.ranking.kernels import best, exchanges
from gingham.summary.item_tables import id_column_of, matched

LONG_TAIL = "long_tail"  # the column that every table of items has
PRECISE = 1e-7  # of reduced costs, where scores differ by at most 1
HEAD = 0.8  # of all interactions are those of the most popular items; the other items are the long tail


class RuleArguments(TypedDict, total=False):
    """What `recommend` and its siblings accept as rules.

    Attributes
    ----------
    items : ids
        Only these items may be listed.
    exclude : ids
        These items are not listed.
    at_most : mapping from a column, or a pair (column, value), to a number
        How many items with the same value of the column, or with this value of it, a list may hold. A number
        between 0 and 1 is a share of the list. Items without a value are not limited.
    at_least : mapping from a column of yes and no, or a pair (column, value), to a number
        How many items with a yes, or with this value, a list must hold.
    item_info : frame
        One row per item, its id first (or in a column named like the items); by default the table that the fit was
        given. The column ``long_tail`` always exists: it marks the items outside the most popular ones that
        together have 80 % of all interactions.
    """

    items: Any
    exclude: Any
    at_most: Mapping[Hashable, float]
    at_least: Mapping[Hashable, float]
    item_info: Any


@dataclass(frozen=True, eq=False)
class Limit:
    """One rule with a number: at most, or at least, ``count`` items of each group.

    Attributes
    ----------
    text : how the rule is named in tables and messages
    groups : int (n_items,), the group of each item; −1 where the rule does not concern it
    count : int
    """

    text: str
    groups: Ints
    count: int


@dataclass(frozen=True, eq=False)
class Rules:
    """All rules of a list of n items.

    Attributes
    ----------
    allowed : bool (n_items,)
    limits : at most so many of each group
    needs : at least so many of group 0
    barred : names of the rules behind ``allowed``, with what each of them alone allows
    """

    allowed: Bools
    limits: tuple[Limit, ...] = ()
    needs: tuple[Limit, ...] = ()
    barred: tuple[tuple[str, Bools], ...] = ()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.barred] + [rule.text for rule in (*self.limits, *self.needs)]

    def without(self, name: str) -> Rules:
        """The same rules but one."""
        barred = tuple(pair for pair in self.barred if pair[0] != name)
        allowed = np.ones(len(self.allowed), dtype=bool)
        for _, mask in barred:
            allowed &= mask
        limits, needs = (tuple(r for r in rules if r.text != name) for rules in (self.limits, self.needs))
        return replace(self, allowed=allowed, limits=limits, needs=needs, barred=barred)

    def lists(self, scores: Floats, n: int) -> tuple[Ints, dict[str, Ints]]:
        """The n items of each row of ``scores`` (infinite: out of the question) with the highest sum that obey.

        Returns the columns, best score first, −1 where a list is shorter, and for each rule of "at least" the rows
        in which no list obeys it; such a list has as many of its items as can be. ``scores`` is overwritten.
        """
        scores[:, ~self.allowed] = -np.inf
        short: dict[str, Ints] = {}
        if not self.limits and not self.needs:
            return best(scores, n), short
        found = _several(scores, self, n)
        for rule in self.needs:
            has = ((found >= 0) & (rule.groups[found] == 0)).sum(1)
            rows = np.flatnonzero(has < rule.count)
            if len(rows):
                short[rule.text] = rows
        return found, short


def read_rules(
    modes: Mode, popularity: Floats, n: int, known: Any = None, *, items: Any = None, exclude: Any = None,
    at_most: Mapping[Hashable, float] | None = None, at_least: Mapping[Hashable, float] | None = None,
    item_info: Any = None,
) -> Rules | None:  # fmt: skip
    """Rules as arrays over the items of ``modes``; None where there are none."""
    barred: list[tuple[str, Bools]] = []
    for name, ids, inside in (("items", items, True), ("exclude", exclude, False)):
        if ids is not None:
            listed = np.asarray([ids] if isinstance(ids, (str, bytes)) or np.ndim(ids) == 0 else ids)
            codes = modes.encode(listed) if len(listed) else np.zeros(0, dtype=np.int32)
            if inside and not (codes >= 0).any():
                raise GinghamError("items= contains no item of the training data.")
            mask = np.full(modes.n_items, not inside)
            mask[codes[codes >= 0]] = inside
            barred.append((name, mask))
    table = _Table(modes, popularity, known if item_info is None else item_info)
    limits = [table.limit("at most", key, value, n) for key, value in (at_most or {}).items()]
    needs = [table.limit("at least", key, value, n) for key, value in (at_least or {}).items()]
    for need in needs:
        if need.count > n:
            raise GinghamError(f"{need.text}: a list has {n} items only.")
    if not barred and not limits and not needs:
        return None
    allowed = np.ones(modes.n_items, dtype=bool)
    for _, mask in barred:
        allowed &= mask
    return Rules(allowed, tuple(limits), tuple(needs), tuple(barred))


class _Table:
    """Columns about items, by name, in the order of the model's items."""

    def __init__(self, mode: Mode, popularity: Floats, info: Any) -> None:
        self.popularity = popularity
        self.n_items = mode.n_items
        self.frame = None if info is None else nw.from_native(info, eager_only=True)
        self.row = np.full(mode.n_items, -1, dtype=np.int64)  # of the frame, by item
        self.names: list[str] = []
        if self.frame is not None:
            codes = matched(self.frame, mode)
            self.row[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
            self.names = [
                c for c in self.frame.columns if c != self.frame.columns[id_column_of(self.frame.columns, mode.name)]
            ]

    def column(self, name: object) -> AnyArray:
        """The value of each item, None where there is none."""
        if name == LONG_TAIL and (self.frame is None or name not in self.frame.columns):
            return long_tail(self.popularity).astype(object)
        if self.frame is None or name not in self.frame.columns:
            listed = ", ".join(map(repr, [*self.names, LONG_TAIL]))
            raise GinghamError(
                f"A rule names the column {name!r}, which is in no table of items: "
                + (
                    f"there are {listed}."
                    if self.names
                    else "give a table about items (item_info=, or --info on the command line)."
                )
            )
        listed = self.frame[str(name)].to_list()
        values = np.full(self.n_items, None, dtype=object)
        inside = np.flatnonzero(self.row >= 0)
        values[inside] = [listed[row] for row in self.row[inside]]
        return values

    def limit(self, kind: str, key: Hashable, value: float, n: int) -> Limit:
        name, wanted, one = (*key, True) if isinstance(key, tuple) else (key, None, False)
        count = _count(kind, key, value, n)
        column = self.column(name)
        groups = np.full(len(column), -1, dtype=np.int64)
        there = np.array([v is not None and v == v for v in column], dtype=bool)
        if one:
            groups[there & np.array([v == wanted or str(v) == str(wanted) for v in column])] = 0
            text = f"{kind} {count} with {name} = {wanted}"
            if not (groups == 0).any():
                raise GinghamError(f"No item has {name} = {wanted!r}.")
        elif kind == "at most":
            if there.any():
                listed = [str(v) for v in column[there]]
                groups[there] = np.unique(listed, return_inverse=True)[1].ravel()
            text = f"{kind} {count} per {name}"
        else:
            truths = {True: True, False: False, "yes": True, "no": False}  # 1 and 0 are keys as well
            if any(not isinstance(v, (bool, int, float, str, np.generic)) or v not in truths for v in column[there]):
                raise GinghamError(
                    f"at_least={{{name!r}: …}} needs a column of yes and no; for one value of {name!r}, give the pair "
                    f"({name!r}, value)."
                )
            groups[np.flatnonzero(there)[[truths[v] for v in column[there]]]] = 0
            text = f"{kind} {count} {name}"
        return Limit(text, groups, count)


def _count(kind: str, key: Hashable, value: float, n: int) -> int:
    """A number of items: a share of the list is rounded so that the rule holds as it is written."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)) or not value >= 0:
        raise GinghamError(f"{kind} {value!r} of {key!r}: give a number of items ≥ 0, or a share of the list below 1.")
    if value < 1:
        share = float(value) * n
        return floor(share + 1e-9) if kind == "at most" else ceil(share - 1e-9)
    if value != int(value):
        raise GinghamError(f"{kind} {value!r} of {key!r}: a number ≥ 1 must be an integer.")
    return int(value)


def long_tail(popularity: Floats) -> Bools:
    """The items outside the most popular ones that together have 80 % of all interactions."""
    order = np.argsort(-popularity, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(popularity[order])[:-1]])
    tail = np.zeros(len(popularity), dtype=bool)
    tail[order[before >= HEAD * popularity.sum()]] = True
    return tail


def _one_of_each(scores: Floats, limit: Limit | None, need: Limit | None, n: int) -> Ints:
    """At most one partition with a limit and one need: greedy, then the best single exchanges.

    Lists that obey a limit per group, of a given length, are the bases of a matroid. The greedy list has the highest
    sum of all; the best list with one more of the needed items comes from the best list with fewer by a single
    exchange (Gabow and Tarjan, Efficient algorithms for a family of matroid intersection problems, 1984).
    """
    m = scores.shape[1]
    groups, most = (np.full(m, -1, dtype=np.int64), n) if limit is None else (limit.groups, limit.count)
    needed, least = (np.zeros(m, dtype=bool), 0) if need is None else (need.groups == 0, need.count)
    out = np.full((len(scores), n), -1, dtype=np.int64)
    n_groups = int(groups.max(initial=-1)) + 1

    def run(first: int, last: int) -> None:
        exchanges(scores, groups, n_groups, most, needed, least, first, last, out)

    in_blocks(run, np.arange(len(scores) + 1), 0, len(scores), scores.size * n)
    return out


def _several(scores: Floats, rules: Rules, n: int) -> Ints:
    """Several limits or needs: a list that is best under one of each and obeys the others is best; else a program."""
    out = np.full((len(scores), n), -1, dtype=np.int64)
    left = np.arange(len(scores))
    pairs = [(limit, need) for limit in rules.limits or (None,) for need in rules.needs or (None,)]
    for limit, need in pairs:
        found = _one_of_each(scores[left], limit, need, n)
        obeys = _obeys(rules, found)
        if len(rules.limits) <= 1 and len(rules.needs) <= 1:
            obeys[:] = True  # nothing is left out: what is missing cannot be had
        out[left[obeys]] = found[obeys]
        left = left[~obeys]
        if len(left) == 0:
            break
    for row in left:
        out[row] = _by_programming(scores[row], rules, n)
    return out


def _obeys(rules: Rules, found: Ints) -> Bools:
    """Whether each list keeps all limits and has all that is needed."""
    obeys = np.ones(len(found), dtype=bool)
    for limit in rules.limits:
        groups = np.where(found >= 0, limit.groups[found], -1)
        groups.sort(1)
        if limit.count < found.shape[1]:  # the same group at two places so far apart: too many of it
            first, last = groups[:, : -limit.count or None], groups[:, limit.count :]
            obeys &= ~((first == last) & (first >= 0)).any(1)
    for need in rules.needs:
        obeys &= ((found >= 0) & (need.groups[found] == 0)).sum(1) >= need.count
    return obeys


def _by_programming(row: Floats, rules: Rules, n: int) -> Ints:
    """An integer program over the items that can be part of the best list.

    The linear relaxation is solved by column generation: over few items first, to which those are added whose reduced
    cost says that they could raise the sum. A whole solution is the best list. Otherwise the gap between the
    relaxation and a list over the items so far says which other items the best list can hold at all.
    """
    out = np.full(n, -1, dtype=np.int64)
    there = np.flatnonzero(np.isfinite(row))
    if len(there) == 0:
        return out
    there = there[np.lexsort((there, -row[there]))]
    # One more item is worth more than all scores, and one more needed item more than all items: the list misses as
    # few needed items as possible and is then as long as it can be.
    worth = row[there].astype(np.float64)
    worth = (worth - worth[-1]) / ((worth[0] - worth[-1]) or 1.0) + n + 1.0
    core = np.zeros(len(there), dtype=bool)
    core[: 4 * n] = True
    for rule in rules.needs:
        core[np.flatnonzero(rule.groups[there] == 0)[: 2 * n]] = True
    while True:
        value, taken, cost = _program(there, worth, core, rules, n, whole=False)
        missing = np.flatnonzero(~core & (cost < -PRECISE))
        if len(missing) == 0:
            break
        core[missing[np.argsort(cost[missing], kind="stable")[: 4 * n]]] = True
    if np.any(np.abs(taken - np.round(taken)) > PRECISE):
        over_core, taken, _ = _program(there, worth, core, rules, n, whole=True)
        possible = core | (cost <= over_core - value + PRECISE)
        if possible.sum() > core.sum():
            core = possible
            taken = _program(there, worth, core, rules, n, whole=True)[1]
    chosen = there[core][taken > 0.5]
    out[: len(chosen)] = chosen  # `there` has the best score first
    return out


def _program(
    there: Ints, worth: Floats, core: Bools, rules: Rules, n: int, whole: bool
) -> tuple[float, Floats, Floats]:
    """Least cost over lists of items of the core, which of them are taken, and all items' reduced costs."""
    inside = np.flatnonzero(core)
    slacks = len(rules.needs)
    rows, bounds = [np.concatenate([np.ones(len(inside)), np.zeros(slacks)])], [float(n)]
    priced: list[Bools] = [np.ones(len(there), dtype=bool)]
    for rule in rules.limits:
        groups = rule.groups[there]
        counts = np.bincount(groups[inside][groups[inside] >= 0])
        for group in np.flatnonzero(counts > rule.count):
            priced.append(groups == group)
            rows.append(np.concatenate([priced[-1][inside].astype(float), np.zeros(slacks)]))
            bounds.append(float(rule.count))
    for at, rule in enumerate(rules.needs):
        priced.append(rule.groups[there] == 0)
        rows.append(np.concatenate([-priced[-1][inside].astype(float), -np.eye(slacks)[at]]))
        bounds.append(-float(rule.count))
    solved = linprog(
        np.concatenate([-worth[inside], np.full(slacks, 2.0 * n * (n + 2.0))]),
        A_ub=np.array(rows),
        b_ub=np.array(bounds),
        bounds=np.array([(0.0, 1.0)] * len(inside) + [(0.0, float(rule.count)) for rule in rules.needs]),
        integrality=np.full(len(inside) + slacks, int(whole)),
        options={"mip_rel_gap": 0.0} if whole else None,
    )
    if solved.x is None:
        raise GinghamError(f"The rules could not be solved exactly: {solved.message}")
    cost = -worth
    if not whole:
        signs = np.ones(len(rows))
        signs[len(rows) - slacks :] = -1.0
        for dual, mask, sign in zip(solved.ineqlin.marginals, priced, signs):
            if dual:
                cost = cost - dual * sign * mask
    return float(solved.fun), solved.x[: len(inside)], cost


def moved_by(rules: Rules, scores: Floats, found: Ints, asked: Ints, n: int) -> list[list[str]]:
    """For each asked item of each row, the rules without any one of which it would be listed, or would not be.

    ``found`` are the lists under all rules. An item that only several rules together put on the list, or keep off it,
    gets "several rules together"; one that no rule moves gets "".
    """
    told: list[list[list[str]]] = [[[] for _ in row] for row in asked]
    others = {name: rules.without(name).lists(scores.copy(), n)[0] for name in rules.names}
    for name, other in (others | {"several rules together": best(scores, n)}).items():
        for wanted, mine, theirs, names in zip(asked, found, other, told):
            changed = np.isin(wanted, mine) != np.isin(wanted, theirs)
            for a in np.flatnonzero(changed & (wanted >= 0)):
                if name in others or not names[a]:
                    names[a].append(name)
    return [["; ".join(names) for names in row] for row in told]


def free_places(scores: Floats, found: Ints) -> Ints:
    """The place that each listed item has without rules, from 1; 0 where nothing is listed."""
    places = np.zeros(found.shape, dtype=np.int64)
    for row, mine in enumerate(found):
        there = mine >= 0
        mark = scores[row, mine[there]]
        places[row, there] = 1 + (scores[row][None, :] > mark[:, None]).sum(1)
    return places
