"""What became of groups when new data came: which are the same, born, merged or split, who moved, and is it proven.

Two fits are compared through their summaries, so that one mechanism serves every family of models. Groups are
*matched* by the items that they share. A change is *proven* where rows that no fit has learned from speak for it after
and against it before. For that, some of the rows are kept back from a further fit of each model (`Observed.refit`); the
changes between these fits that also show in the rows they learned from are the candidates. A candidate compares two
groups of every item it concerns, and a row r of such an item gains

    g_r = ⟨coefficients of the new group's block − those of the old group's, statistics of r⟩.

It is proven where the rows that were kept back gain after and lose before, and the difference is too large for chance:

- Of a model that has learned from the rows of both periods, g is one function, so that without a change its values
  before and after come from one distribution (of each item, and of labels in each group of the other side): p is that
  of a permutation test of the sums.
- Of fits to different rows, each period has a g of its own, by what the two groups say of every single item of the
  other side. The hypothesis is that the items are nearer to the same one of two groups throughout: E g ≤ 0 after, or
  E g ≥ 0 in all the periods before, back to where they last stood elsewhere. A gambler against it has a wealth with
  mean 1 at most, W = mean_λ Π_r (1 + λ x_r) with x_r = g_r cut off and scaled to [−1, 1], averaged over the periods
  that the rows before may begin with; the smaller one of the two wealths counts. It is averaged over several choices of
  the rows that are kept back, so that no change is missed because one choice did not suggest it.

The evidence (1/p, or a wealth) is divided by the number of candidates of all steps: the chance that anything is proven
of an unchanged source is at most α.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from scipy.stats import norm

from gingham.arrays import Bools, Floats, Ints
from gingham.data import Mode
from gingham.data.adapt import frame_of
from gingham.errors import GinghamError
from gingham.storage import savable
from gingham.summary.sizes import own_clusters, tables_of
from gingham.summary.trees import trees_of
from gingham.summary.values import Observed, Relation, Summary, counted, listed

ALPHA = 0.05
SPLITS = 5  # of the rows of a timeline into those learned from and those kept back
STAKES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])  # λ, with equal shares
HINT = 1.0  # ln of the wealth from which rows learned from suggest a candidate
TOWARDS_BLOCK = 10.0  # observations of its block towards which what a group says of a single item is drawn
LEARNED = 100.0  # rows of an item that a fit to a part needs; the others test it
CUT = 0.95  # quantile of |g| on the rows learned from, at which g is cut off
MOST_ROWS, MOST_SORTED = 5_000, 20_000_000  # of a permutation test: its rows, and numbers to be sorted
MOST_NAMED = 5  # items that a sentence names


class Fit(NamedTuple):
    """A fit to be compared: what was observed, and its summary."""

    observed: Observed
    summary: Summary


@dataclass(frozen=True, eq=False)
class Groups:
    """The items of a side, the number (from 0) of each one's group, −1 where it is not known, and names of groups."""

    mode: Mode
    labels: Ints
    names: Sequence[str]

    @property
    def n(self) -> int:
        return len(self.names)

    def seen_by(self, mode: Mode) -> Ints:
        """The group of each item of another numbering, −1 where the item is not known."""
        at = self.mode.encode(mode.items)
        return np.where(at >= 0, self.labels[at], -1)


@savable
@dataclass(frozen=True)
class Change:
    """One difference between two fits.

    Attributes
    ----------
    kind : {"moved", "split", "born", "merged", "dissolved"}
    side : str
    items : tuple of str
        Whom it concerns.
    positions : tuple of int
        Their places among the items of the side after.
    before, after : str
        Number (from 1) and name of the group in either fit; empty where there is none.
    p : float
        Adjusted for the number of candidates; 1 where the kept back rows do not show the change.
    verdict : {"proven", "correction", "not proven"}
        A correction is a change that the rows before ask for as well: the first fit was mistaken.
    """

    kind: str
    side: str
    items: tuple[str, ...]
    positions: tuple[int, ...]
    before: str
    after: str
    p: float
    verdict: str

    def __str__(self) -> str:
        who = listed(self.items[:MOST_NAMED])
        who += f" and {len(self.items) - MOST_NAMED:,} more" if len(self.items) > MOST_NAMED else ""
        what = {
            "moved": f"{who} moved from {self.before} to {self.after}",
            "split": f"{self.after} split off {self.before} ({who})",
            "born": f"{self.after} is new ({who})",
            "merged": f"{self.before} merged into {self.after} ({who})",
            "dissolved": f"{self.before} is no group any more ({who})",
        }[self.kind]
        return f"{what}: {self.verdict}" + (f", p = {self.p:.2g}" if self.verdict == "proven" else "")


@savable
@dataclass(frozen=True, eq=False)
class Changes:
    """All differences between two fits.

    Attributes
    ----------
    changes : tuple of Change, the proven ones first
    matched : mapping from the name of a side to an int array
        For each group after, its number (from 0) before; −1 where it has none.
    alpha : float
        The chance that anything is called proven although the rows come from an unchanged source is at most this.
    """

    changes: tuple[Change, ...]
    matched: dict[str, Ints]
    alpha: float = ALPHA

    @property
    def proven(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.verdict == "proven")

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row per change: change, side, items, names, before, after, p, verdict."""
        names = ("change", "side", "items", "names", "before", "after", "p", "verdict")
        rows = [
            (c.kind, c.side, len(c.items), ", ".join(c.items), c.before, c.after, c.p, c.verdict) for c in self.changes
        ]
        return frame_of({name: [row[at] for row in rows] for at, name in enumerate(names)}, backend)

    def __str__(self) -> str:
        kept = sum(int((same >= 0).sum()) for same in self.matched.values())
        lines = [f"{counted(kept, 'group')} kept their identity."]
        lines += [str(change) for change in self.changes if change.verdict != "not proven"]
        left = sum(change.verdict == "not proven" for change in self.changes)
        if left:
            lines.append(f"{counted(left, 'further difference')} may be chance: the kept back rows do not prove them.")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Difference:
    """A change by numbers: positions of items after, the groups before and after (−1: none)."""

    kind: str
    items: Ints
    before: int
    after: int


def groups_of(summary: Summary) -> list[Groups]:
    """The groups of every side as a summary shows them."""
    return [
        Groups(Mode(side.name, side.items), side.labels(k), [cluster.name for cluster in side.cut(k)])
        for side, k in zip(summary.sides, summary.size)
    ]


def shared_items(before: Groups, after: Groups) -> Ints:
    """How many items each group before shares with each group after."""
    old = before.seen_by(after.mode)
    both = (old >= 0) & (after.labels >= 0)
    shared = np.zeros((before.n, after.n), dtype=np.int64)
    np.add.at(shared, (old[both], after.labels[both]), 1)
    return shared


def matched_groups(before: Groups, after: Groups) -> Ints:
    """For each group after, the group before that it continues, −1 for none: the matching that shares most items.

    Two groups are one where they share at least half of the smaller one's items that both fits know.
    """
    shared = shared_items(before, after)
    same = np.full(after.n, -1, dtype=np.int64)
    for a, b in zip(*linear_sum_assignment(-shared)):
        if shared[a, b] > 0 and 2 * shared[a, b] >= min(shared[a].sum(), shared[:, b].sum()):
            same[b] = a
    return same


def differences(before: Groups, after: Groups, same: Ints) -> list[Difference]:
    """What differs between two groupings whose groups are matched: as few statements as say it all."""
    old = before.seen_by(after.mode)
    new = after.labels
    both = (old >= 0) & (new >= 0)
    found, told = [], np.zeros(len(new), dtype=bool)
    for b in np.flatnonzero(same < 0).tolist():
        members, shared = np.flatnonzero(new == b), np.flatnonzero(both & (new == b))
        if len(members) == 0:
            continue
        origin, share = _commonest(old[shared])
        if 2 * len(shared) < len(members):
            found.append(Difference("born", np.setdiff1d(members, shared), -1, b))
        elif share >= 0.5:
            found.append(Difference("split", shared, origin, b))
        else:
            found.append(Difference("born", shared, -1, b))
        told[shared] = True
    for a in np.setdiff1d(np.arange(before.n), same).tolist():
        shared = np.flatnonzero(both & (old == a) & ~told)
        if len(shared) == 0:
            continue
        into, share = _commonest(new[shared])
        found.append(Difference("merged" if share >= 0.5 else "dissolved", shared, a, into if share >= 0.5 else -1))
        told[shared] = True
    moved = both & ~told
    moved[moved] = same[new[moved]] != old[moved]
    found += [Difference("moved", np.array([i]), int(old[i]), int(new[i])) for i in np.flatnonzero(moved)]
    return found


def _commonest(values: Ints) -> tuple[int, float]:
    if len(values) == 0:
        return -1, 0.0
    counts = np.bincount(values)
    return int(counts.argmax()), float(counts.max() / counts.sum())


# evidence


def wealth(x: Floats) -> float:
    """ln of the wealth of betting that numbers in [−1, 1] have a mean above 0; of mean 1 at most where they do not."""
    logs = np.log1p(STAKES[:, None] * x).sum(axis=1)
    return float(logsumexp(logs) - np.log(len(STAKES)))


class Gains(NamedTuple):
    """What a candidate gains on the rows of a period, scaled to [−1, 1].

    Attributes
    ----------
    kept_back : (n,) of the rows that the fits have not learned from
    strata : (n,) which rows of the other period each of them may change places with
    learned : of the rows that were learned from
    """

    kept_back: Floats
    strata: Ints
    learned: Floats


def shuffled(before: Gains, after: Gains, enough: float, rng: np.random.Generator) -> float:
    """P(the rows after gain as much) when rows of a stratum change places; tried where it may be ``enough``."""
    x, n = np.concatenate([before.kept_back, after.kept_back]), len(before.kept_back)
    strata = np.concatenate([before.strata, after.strata])
    if len(x) > MOST_ROWS:
        some = np.sort(rng.choice(len(x), MOST_ROWS, replace=False))
        x, strata, n = x[some], strata[some], int((some < n).sum())
    late = np.arange(len(x)) >= n
    if not late.any() or late.all() or x[late].mean() <= 0 or x[~late].mean() >= 0:
        return 1.0
    order = np.argsort(strata, kind="stable")
    x, late, strata = x[order], late[order], np.unique(strata[order], return_inverse=True)[1]
    size, share = np.bincount(strata), np.bincount(strata, late) / np.bincount(strata)
    mean = np.bincount(strata, x) / size
    spread = np.bincount(strata, (x - mean[strata]) ** 2) * share * (1 - share) * size / np.maximum(size - 1, 1)
    above = float(x[late].sum() - (mean * share * size).sum())
    z = above / np.sqrt(max(float(spread.sum()), 1e-300))
    if norm.sf(z) > 20 * enough:
        return float(norm.sf(z))
    draws = int(np.clip(MOST_SORTED // len(x), 2 / enough, 100 / enough))
    beaten, total = 1, float(x[late].sum()) - 1e-9
    for a in range(0, draws, step := max(MOST_SORTED // (8 * len(x)), 1)):
        keys = strata + rng.random((min(step, draws - a), len(x)))
        beaten += int((x[np.argsort(keys, axis=1)][:, late].sum(axis=1) >= total).sum())
    return beaten / (draws + 1)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one period in which a side meets another, in the numbering of the items after.

    Attributes
    ----------
    relation : pairs of items of the two sides
    held : bool (n_rows,), those that the fits have not learned from
    once : bool (n_rows,), false where a row repeats another one in the other direction
    n_items : int
    columns : Groups of the other side
    finely : bool
        Whether groups are compared by what they say of each single item of the other side, drawn towards what they say
        of its group; else by the groups alone.
    """

    relation: Relation
    held: Bools
    once: Bools
    n_items: int
    columns: Groups
    finely: bool

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """Rows in the order of their items, and where those of each item begin."""
        codes = self.relation.codes[0]
        return np.argsort(codes, kind="stable"), np.searchsorted(np.sort(codes), np.arange(self.n_items + 1))

    def of(self, items: Ints) -> Ints:
        """Places of the rows of some items."""
        order, starts = self._places
        found = np.concatenate([order[starts[i] : starts[i + 1]] for i in items.tolist()])
        return found if len(items) == 1 else found[self.once[found]]

    def sums(self, groups: Ints, n: int, single: bool = False) -> Floats:
        """Of the rows learned from: by groups of items and groups, or single items, of the other side."""
        learned = ~self.held & (groups[self.relation.codes[0]] >= 0)
        other = np.arange(self.columns.mode.n_items) if single else self.columns.labels
        return self.relation.take(learned).sums(groups, other, (n, len(other) if single else self.columns.n))

    def coefficients(self, groups: Ints, n: int) -> Floats:
        """Of the blocks that groups of items make with groups, or single items, of the other side; (n, n_others, K)."""
        rule, blocks = self.relation.rule, self.sums(groups, n)
        if not self.finely:
            return rule.coefficients(blocks)
        average = blocks / np.maximum(rule.observed(blocks), 1e-9)[..., None]
        return rule.coefficients(self.sums(groups, n, single=True) + TOWARDS_BLOCK * average[:, self.columns.labels])

    def gains(self, rows: Ints, coefficients: Floats, old: Ints, new: Ints) -> Floats:
        """What some rows gain if their items are in the group ``new``, not ``old``."""
        part = self.relation.take(rows)
        columns = part.codes[1] if self.finely else self.columns.labels[part.codes[1]]
        return np.asarray(part.worth(coefficients[new, columns] - coefficients[old, columns]) * part.weight)


@dataclass(frozen=True, eq=False)
class Trial:
    """The rows of a side in all periods, and the last two groupings of its items, by fits that have not seen some rows.

    ``lasting`` says whether the groups of the other side are the same in all periods. Then one function of a row is
    compared before and after; else each period has its own, by the same two groups of items.
    """

    before: Groups
    after: Groups
    same: Ints
    rows: tuple[Rows, ...]
    lasting: bool

    @cached_property
    def tables(self) -> tuple[list[Floats], list[Floats]]:
        """Coefficients by the groups before and by those after, each of all periods."""
        by_old, by_new = (
            [period.coefficients(labels, n) for period in self.rows]
            for labels, n in ((self.old, self.before.n), (self.after.labels, self.after.n))
        )
        return by_old, by_new

    @cached_property
    def old(self) -> Ints:
        """The group before of each item after, −1 where there is none."""
        return self.before.seen_by(self.after.mode)

    @cached_property
    def continued(self) -> Ints:
        """The group after that continues each group before, and −1 at the end for an item that had none."""
        found = np.full(self.before.n + 1, -1, dtype=np.int64)
        kept = np.flatnonzero(self.same >= 0)
        found[self.same[kept]] = kept
        return found

    def candidates(self) -> list[Difference]:
        """What differs between the fits; and items that rows of the later period alone would place elsewhere."""
        found = differences(self.before, self.after, self.same)
        told = {int(i) for one in found for i in one.items}
        if self.lasting:
            home = self.continued[self.old]
            profiles = self.rows[-1].sums(np.arange(len(home)), len(home))
            blocks = self.rows[-1].relation.rule.coefficients(self.rows[-1].sums(self.after.labels, self.after.n))
            best = np.einsum("idk,gdk->ig", profiles, blocks).argmax(axis=1)
            for i in np.flatnonzero((home >= 0) & (best != home)).tolist():
                one = Difference("moved", np.array([i]), int(self.old[i]), int(best[i]))
                if i not in told and wealth(self.bets(one)[0][-1].learned) > HINT:
                    found.append(one)
        return [one for one in found if self._promises(one)]

    def _promises(self, one: Difference) -> bool:
        """Whether the rows learned from show the change; others are not tested, and nothing is paid for them."""
        return self._new(one) or any(own[-1].learned.sum() > 0 and own[-2].learned.sum() < 0 for own in self.bets(one))

    def _new(self, one: Difference) -> bool:
        """Whether none of the items has been there before."""
        return bool((self.old[one.items] < 0).all())

    def bets(self, one: Difference) -> list[list[Gains]]:
        """What the rows of each period gain from a candidate; against each rival group, where the items are new."""
        if self._new(one):
            into = np.full(len(one.items), one.after)
            rivals = [np.full(len(one.items), r) for r in range(self.after.n) if r != one.after]
            return [self._bets(one.items, rival, into, False) for rival in rivals]
        ends = one.kind in ("merged", "dissolved")
        if ends:  # by the groups before: that of the item, and the one that took it in
            left, into = self.old[one.items], np.append(self.same, -1)[self.after.labels[one.items]]
        else:
            left, into = self.continued[self.old[one.items]], np.full(len(one.items), one.after)
        known = (left >= 0) & (into >= 0)
        return [self._bets(one.items[known], left[known], into[known], ends)] if known.any() else []

    def _bets(self, items: Ints, left: Ints, into: Ints, ends: bool) -> list[Gains]:
        place = np.full(self.after.mode.n_items, -1, dtype=np.int64)
        place[items] = np.arange(len(items))
        tables, found = self.tables[not ends], []
        if self.lasting:  # those of the period in which the two groups differ
            tables = [tables[0 if ends else -1]] * len(self.rows)
        for period, table in zip(self.rows, tables):
            rows = period.of(items)
            mine = place[period.relation.codes[0][rows]]
            gained, away = period.gains(rows, table, left[mine], into[mine]), period.held[rows]
            columns = 0 if period.relation.measure == "lift" else period.columns.labels[period.relation.codes[1][rows]]
            found.append(Gains(gained[away], (mine * period.columns.n + columns)[away], gained[~away]))
        learned = np.abs(np.concatenate([own.learned for own in found]))
        scale = float(np.quantile(learned, CUT)) if len(learned) else 0.0
        if scale <= 0:
            return [Gains(x[:0], strata[:0], y[:0]) for x, strata, y in found]
        return [Gains(np.clip(x / scale, -1, 1), strata, np.clip(y / scale, -1, 1)) for x, strata, y in found]

    def evidence(self, one: Difference, enough: float, rng: np.random.Generator) -> Evidence:
        """How clearly the rows that were kept back show a change."""
        bets = self.bets(one)
        if self._new(one):
            return Evidence(min((wealth(own[-1].kept_back) for own in bets), default=0.0))
        *past, after = bets[0]
        before = past[::-1]
        if self.lasting:
            shown = -float(np.log(shuffled(before[0], after, enough, rng)))
        else:
            stretch = next((k for k, own in enumerate(before) if own.learned.sum() >= 0), len(before))
            since = [wealth(-np.concatenate([own.kept_back for own in before[: k + 1]])) for k in range(stretch)]
            shown = min(wealth(after.kept_back), float(logsumexp(since)) - float(np.log(stretch)))
        return Evidence(shown, wealth(np.concatenate([before[0].kept_back, after.kept_back])))


class Evidence(NamedTuple):
    """ln of the evidence for a change (1/p, or a wealth), and of that from the rows of both periods for its result."""

    shown: float
    always: float = -np.inf


class Repeat(NamedTuple):
    """The same model fitted to some of the rows, so that the other ones can test its groups.

    Attributes
    ----------
    observed : Observed
    kept : bool (n_rows,), the rows of its first relation that were learned from
    groups : of every side
    """

    observed: Observed
    kept: Bools
    groups: list[Groups]


def changes_after_update(before: Fit, after: Fit, new: Observed, *, alpha: float = ALPHA, seed: int = 0) -> Changes:
    """What became of the groups of a fit when the model also learned from new rows, and which changes are proven.

    Parameters
    ----------
    before, after : Fit
    new : Observed
        The new rows in the numbering of ``after``, which has learned from the rows of ``before`` as well.
    alpha : float
        The chance that anything is called proven although nothing has changed.
    seed : int
        Of the choice of the rows that are kept back.
    """
    trials: dict[int, Trial] = {}
    if before.observed.refit is not None and after.observed.refit is not None:
        # the same items on all sides: the same pair is kept back wherever it occurs
        modes = zip(after.observed.modes, before.observed.modes)
        names = {at: mode.encode(old.items) for at, (mode, old) in enumerate(modes)}
        parts = [_pairs(before.observed, names), _pairs(new), _pairs(after.observed)]
        kept = _drawn(parts, 0.5, np.random.default_rng(seed))
        if not any(part.all() or not part.any() for part in kept):
            old, groups = _refitted(before, kept[0]), _refitted(after, kept[2])
            periods = [Repeat(before.observed, kept[0], groups), Repeat(new, kept[1], groups)]
            trials = _trials(old, groups, periods, lasting=True)
    split = _tested([(before, after, trials)], np.random.default_rng([seed, 1]), alpha)
    return _changes(before, after, split, alpha)


def changes_over_time(fits: Sequence[Fit], *, alpha: float = ALPHA, seed: int = 0) -> list[Changes]:
    """What became of the groups from each fit to the next one; the fits share no rows.

    Parameters
    ----------
    fits : sequence of Fit, in the order of time
    alpha, seed : see `changes_after_update`; alpha is that of all steps together.
    """
    splits = []
    for rng in np.random.default_rng(seed).spawn(SPLITS):
        repeats = [one for one in (_repeated(fit, rng) for fit in fits) if one is not None]
        trials: list[dict[int, Trial]] = [{} for _ in fits[1:]]
        if len(repeats) == len(fits):
            trials = [
                _trials(a.groups, b.groups, repeats[: step + 2], False) for step, (a, b) in enumerate(pairwise(repeats))
            ]
        splits.append(_tested(list(zip(fits, fits[1:], trials)), rng, alpha))
    return [_changes(a, b, tested, alpha) for a, b, *tested in zip(fits, fits[1:], *splits)]


Key: TypeAlias = tuple[int, str, int, int, int]  # what a candidate is known by, see `_key`
Tested: TypeAlias = dict[Key, tuple[Evidence, Difference]]


def _tested(
    steps: Sequence[tuple[Fit, Fit, Mapping[int, Trial]]], rng: np.random.Generator, alpha: float
) -> list[Tested]:
    """The evidence for the candidates of every step, over how many there are in all steps."""
    candidates = []
    for step, (before, after, trials) in enumerate(steps):
        sides = (groups_of(before.summary), groups_of(after.summary))
        for at, trial in trials.items():
            matching = matched_groups(sides[0][at], trial.before), matched_groups(sides[1][at], trial.after)
            candidates += [(step, _key(at, one, *matching), trial, one) for one in trial.candidates()]
    n, found = len(candidates), [Tested() for _ in steps]
    for step, key, trial, one in candidates:
        shown, always = trial.evidence(one, alpha / n, rng)
        paid = Evidence(shown - float(np.log(n)), always - float(np.log(n)))
        found[step][key] = paid, Difference(one.kind, one.items, *key[3:])
    return found


def _changes(before: Fit, after: Fit, splits: Sequence[Tested], alpha: float) -> Changes:
    """All differences between two fits, with the verdicts of the tests.

    The evidence of a split is divided by the number of its candidates and then averaged over the splits: where nothing
    changes, the sum over all candidates has a mean of 1 at most, so 1 over the average is an adjusted p.
    """
    sides = (groups_of(before.summary), groups_of(after.summary))
    if [side.mode.name for side in sides[0]] != [side.mode.name for side in sides[1]]:
        names = ("; ".join(side.mode.name for side in part) for part in sides)
        raise GinghamError(f"The two models have different sides ({' and '.join(names)}), so they cannot be compared.")
    tested = {key: one for split in splits for key, (_, one) in split.items()}

    def p_of(key: Key, which: int) -> float:
        each = [split[key][0][which] for split in splits if key in split]
        return min(1.0, float(np.exp(np.log(len(splits)) - logsumexp(each)))) if each else 1.0

    matching, found = [matched_groups(a, b) for a, b in zip(*sides)], []
    for at, (a, b, same) in enumerate(zip(*sides, matching)):
        titles = after.summary.sides[at].names
        every = {_key(at, one, np.arange(a.n), np.arange(b.n)): one for one in differences(a, b, same)}
        moved = {int(i) for one in every.values() for i in one.items}
        for key, one in tested.items():  # by the new rows alone, an item belongs elsewhere
            told = key[0] != at or one.kind != "moved" or int(one.items[0]) in moved
            if not told and p_of(key, 0) <= alpha and min(one.before, one.after) >= 0:
                every[key] = one
        for key, one in every.items():
            p = p_of(key, 0)
            found.append(
                Change(
                    one.kind, a.mode.name, tuple(titles[i] for i in one.items.tolist()), tuple(one.items.tolist()),
                    "" if one.before < 0 else f"{one.before + 1}: {a.names[one.before]}",
                    "" if one.after < 0 else f"{one.after + 1}: {b.names[one.after]}",
                    p,
                    "proven" if p <= alpha else "correction" if p_of(key, 1) <= alpha else "not proven",
                )
            )  # fmt: skip
    order = {"proven": 0, "correction": 1, "not proven": 2}
    found.sort(key=lambda one: (order[one.verdict], one.kind == "moved", one.p))
    return Changes(tuple(found), {a.mode.name: same for a, same in zip(sides[0], matching)}, alpha)


def _key(at: int, one: Difference, as_before: Ints, as_after: Ints) -> Key:
    """What a change is known by in the full fits: an item with both groups, a group that came, a group that went."""
    a, b = (int(as_before[one.before]) if one.before >= 0 else -1), (int(as_after[one.after]) if one.after >= 0 else -1)
    if one.kind == "moved":
        return at, "moved", int(one.items[0]), a, b
    return (at, "came", -1, -1, b) if one.kind in ("split", "born") else (at, "went", -1, a, -1)


def _trials(before: list[Groups], after: list[Groups], periods: Sequence[Repeat], lasting: bool) -> dict[int, Trial]:
    """For every side with items before and after: its rows in all periods, and its last two groupings."""
    relation, found = periods[-1].observed.relations[0], {}
    for own, at in enumerate(relation.sides):
        same = matched_groups(before[at], after[at])
        if at not in found and (same >= 0).any() and max(before[at].n, after[at].n) > 1:
            other = next(place for place in range(len(relation.sides)) if place != own)
            rows = tuple(_rows(period, after[at].mode, own, other, not lasting) for period in periods)
            found[at] = Trial(before[at], after[at], same, rows, lasting)
    return found


def _rows(period: Repeat, mode: Mode, own: int, other: int, finely: bool) -> Rows:
    """The rows of one period, items in the numbering of ``mode``; without those of items that have no group there."""
    relation = period.observed.relations[0]
    pair = relation.pair(own, other)
    side, met = relation.sides[own], relation.sides[other]
    items = mode.encode(period.observed.modes[side].items)[pair.codes[0]]
    columns = period.groups[met]
    others = columns.mode.encode(period.observed.modes[met].items)[pair.codes[1]]
    times = len(items) // len(period.kept)  # twice, where rows stand for both directions
    held, once = np.tile(~period.kept, times), np.arange(len(items)) < len(period.kept)
    there = (items >= 0) & (others >= 0)
    there[there] = columns.labels[others[there]] >= 0
    part = replace(pair, codes=(items, others)).take(there)
    return Rows(part, held[there], once[there], mode.n_items, columns, finely and pair.measure != "lift")


def _repeated(fit: Fit, rng: np.random.Generator) -> Repeat | None:
    """The same model from some of its rows: half of them, or fewer where items have many."""
    observed = fit.observed
    if observed.refit is None:
        return None
    relation = observed.relations[0]
    most = max(float(np.median(np.bincount(code)[code])) for code in relation.codes)
    (kept,) = _drawn([_pairs(observed)], float(np.clip(LEARNED / most, 0.25, 0.5)), rng)
    return None if kept.all() or not kept.any() else Repeat(observed, kept, _refitted(fit, kept))


def _drawn(parts: Sequence[Ints], share: float, rng: np.random.Generator) -> list[Bools]:
    """Masks of the rows to learn from: every different pair of ids is drawn with this chance, wherever it occurs."""
    where = np.zeros(sum(map(len, parts)), dtype=np.int64)
    for column in np.concatenate(parts).T + 1:
        where = np.unique(where * (column.max(initial=0) + 1) + column, return_inverse=True)[1]
    drawn = (rng.random(where.max(initial=-1) + 1) < share)[where]
    return np.split(drawn, np.cumsum([len(part) for part in parts])[:-1])


def _pairs(observed: Observed, names: Mapping[int, Ints] | None = None) -> Ints:
    """The ids of each row of the first relation as numbers, (n, positions)."""
    relation = observed.relations[0]
    codes = [names[side][code] if names else code for side, code in zip(relation.sides, relation.codes)]
    found = np.column_stack(codes).astype(np.int64)
    return np.sort(found, axis=1) if relation.both_ways else found


def _refitted(fit: Fit, kept: Bools) -> list[Groups]:
    """The groups of the same model from some of the rows, as many as its summary shows; −1 where an item has no row."""
    observed = fit.observed
    refit = observed.refit(kept)  # type: ignore[misc]  # asked for before
    relation = observed.relations[0]
    expected = relation if refit.expected is None else replace(relation, expected=refit.expected)
    part = observed.with_first(expected.take(kept))
    numbers = own_clusters(part, refit.clusters)
    trees = trees_of(tables_of(part, numbers, refit.blocks), part.n_sides)
    found = []
    for at, (mode, labels, tree, k) in enumerate(zip(observed.modes, numbers, trees, fit.summary.size)):
        n = min(k, tree.n_leaves)
        shown = tree.groups(n)[labels]
        seen = np.zeros(mode.n_items, dtype=bool)
        for side, code in zip(part.relations[0].sides, part.relations[0].codes):
            if side == at:
                seen[code] = True
        found.append(Groups(mode, np.where(seen, shown, -1), [""] * n))
    return found


def renamed(summary: Summary, before: Summary) -> Summary:
    """The later summary with the numbers and names of the groups that kept their identity; new groups come last."""
    sides = []
    for side, a, b in zip(summary.sides, groups_of(before), groups_of(summary)):
        same = matched_groups(a, b)
        nodes, below = side.nodes(b.n), side.below
        wanted = sorted(range(b.n), key=lambda group: (same[group] if same[group] >= 0 else a.n, group))
        order = [leaf for group in wanted for leaf in sorted(below[nodes[group]], key=side.place.__getitem__)]
        clusters = list(side.clusters)
        for group, node in enumerate(nodes):
            if same[group] >= 0 and b.n > 1:
                clusters[node] = replace(clusters[node], name=a.names[same[group]])
        sides.append(replace(side, order=np.array(order), clusters=tuple(clusters)))
    return replace(summary, sides=tuple(sides))
