"""What became of groups when new data came: which are the same, born, merged or split, who moved, and is it proven.

Two fits are compared through their summaries, so that one mechanism serves every family of models. Groups are *matched*
by the items that they share. A change is *proven* where rows that neither fit has learned from speak for it after and
against it before. For that, half of the rows is kept back from a further fit of each model (`Observed.refit`); the
changes between these two fits are the candidates. A candidate compares two groups of every item it concerns, and a row
r of such an item gains

    g_r = ⟨coefficients of the new group's block − those of the old group's, statistics of r⟩.

It is proven where the kept back rows gain after and lose before, and the difference is too large for chance:

- Of a model that has learned from the rows of both periods, g is one function, so that without a change its values
  before and after come from one distribution (of each item, and of labels in each group of the other side): p is that
  of a permutation test of the sums.
- Of fits to different rows, each period has blocks of its own. If the items are nearer to the same one of two groups in
  both periods, E g ≤ 0 after or E g ≥ 0 before. A gambler against it has a wealth with mean 1 at most,
  W = mean_λ Π_r (1 + λ x_r) with x_r = g_r cut off and scaled to [−1, 1], and p is the larger 1/W of the two.

p is multiplied by the number of candidates: the chance that anything is proven of an unchanged source is at most α.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

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
STAKES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])  # λ, with equal shares
HINT = 1.0  # ln of the wealth from which rows learned from suggest a candidate
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
    n_candidates : int
        Changes that were tested, by which p is multiplied.
    alpha : float
        The chance that anything is called proven although the rows come from an unchanged source is at most this.
    """

    changes: tuple[Change, ...]
    matched: dict[str, Ints]
    n_candidates: int
    alpha: float = ALPHA

    @property
    def proven(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.verdict == "proven")

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row per change: change, side, items, names, before, after, p, verdict."""
        return frame_of(
            {
                "change": [c.kind for c in self.changes],
                "side": [c.side for c in self.changes],
                "items": [len(c.items) for c in self.changes],
                "names": [", ".join(c.items) for c in self.changes],
                "before": [c.before for c in self.changes],
                "after": [c.after for c in self.changes],
                "p": [c.p for c in self.changes],
                "verdict": [c.verdict for c in self.changes],
            },
            backend,
        )

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


def matched_groups(before: Groups, after: Groups) -> Ints:
    """For each group after, the group before that it continues, −1 for none: the matching that shares most items.

    Two groups are one where they share at least half of the smaller one's items that both fits know.
    """
    old = before.seen_by(after.mode)
    both = (old >= 0) & (after.labels >= 0)
    shared = np.zeros((before.n, after.n), dtype=np.int64)
    np.add.at(shared, (old[both], after.labels[both]), 1)
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


class Bets(NamedTuple):
    """What a candidate gains on rows, scaled to [−1, 1].

    Attributes
    ----------
    before, after : of the rows that were kept back
    strata : for each of these rows, those before first: which others it may change places with
    learned : of the rows after that were learned from
    """

    before: Floats
    after: Floats
    strata: Ints
    learned: Floats

    def shuffled(self, enough: float, rng: np.random.Generator) -> float:
        """P(the rows after gain as much) when rows of a stratum change places; tried where it may be ``enough``."""
        x, n = np.concatenate([self.before, self.after]), len(self.before)
        if len(x) > MOST_ROWS:
            some = np.sort(rng.choice(len(x), MOST_ROWS, replace=False))
            x, strata, n = x[some], self.strata[some], int((some < n).sum())
        else:
            strata = self.strata
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


NOTHING = Bets(*(np.zeros(0),) * 2, np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one period in which a side meets another, in the numbering of the items after.

    Attributes
    ----------
    relation : pairs of (item of the side, group of the other)
    held : bool (n_rows,), those that the fits have not learned from
    once : bool (n_rows,), false where a row repeats another one in the other direction
    n_columns : int
    """

    relation: Relation
    held: Bools
    once: Bools
    n_items: int
    n_columns: int

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

    def coefficients(self, groups: Ints, n: int) -> Floats:
        """Of the blocks that groups of items make, from the rows learned from; (n, n_columns, K)."""
        learned = ~self.held & (groups[self.relation.codes[0]] >= 0)
        sums = self.relation.take(learned).sums(groups, np.arange(self.n_columns), (n, self.n_columns))
        return self.relation.rule.coefficients(sums)

    def gains(self, rows: Ints, coefficients: Floats, old: Ints, new: Ints) -> Floats:
        """g of some rows whose items are in the group ``old`` or ``new``."""
        part = self.relation.take(rows)
        columns = part.codes[1]
        return np.asarray(part.worth(coefficients[new, columns] - coefficients[old, columns]) * part.weight)


@dataclass(frozen=True, eq=False)
class Trial:
    """Both periods of a side, the groups of the fits that have not learned from the held rows, and their matching.

    ``lasting`` says whether the groups of the other side are the same in both periods. Then one function of a row is
    compared before and after; else each period has its own, by the same two groups of items.
    """

    before: Groups
    after: Groups
    same: Ints
    rows: tuple[Rows, Rows]
    lasting: bool

    @cached_property
    def tables(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Coefficients by the groups before and by those after, each of both periods."""
        groups = ((self.old, self.before.n), (self.after.labels, self.after.n))
        found = [tuple(period.coefficients(*own) for period in self.rows) for own in groups]
        return found[0], found[1]  # type: ignore[return-value]

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
        if not self.lasting:
            return found
        told = {int(i) for one in found for i in one.items}
        period, home = self.rows[1], self.continued[self.old]
        learned = period.relation.take(~period.held)
        shape = (period.n_items, period.n_columns)
        profiles = learned.sums(np.arange(shape[0]), np.arange(shape[1]), shape)
        gains = np.einsum("idk,gdk->ig", profiles, self.tables[1][1])
        best = gains.argmax(axis=1)
        for i in np.flatnonzero((home >= 0) & (best != home)).tolist():
            one = Difference("moved", np.array([i]), int(self.old[i]), int(best[i]))
            if i not in told and wealth(self.bets(one)[0].learned) > HINT:
                found.append(one)
        return found

    def bets(self, one: Difference) -> list[Bets]:
        """What the rows gain from a candidate; against each rival group, where the items are new."""
        ends = one.kind in ("merged", "dissolved")
        if ends:  # by the groups before: that of the item, and the one that took it in
            left, into = self.old[one.items], np.append(self.same, -1)[self.after.labels[one.items]]
        else:
            left, into = self.continued[self.old[one.items]], np.full(len(one.items), one.after)
        if (self.old[one.items] < 0).all():
            rivals = [np.full(len(one.items), r) for r in range(self.after.n) if r != one.after]
            return [self._bets(one.items, rival, into, False) for rival in rivals]
        known = (left >= 0) & (into >= 0)
        return [self._bets(one.items[known], left[known], into[known], ends) if known.any() else NOTHING]

    def _bets(self, items: Ints, left: Ints, into: Ints, ends: bool) -> Bets:
        place = np.full(self.after.mode.n_items, -1, dtype=np.int64)
        place[items] = np.arange(len(items))
        # The period in which the two groups differ; where periods share no columns, each has blocks of its own.
        chosen = ((0, 0) if ends else (1, 1)) if self.lasting else (0, 1)
        held, learned, strata = [], [], []
        for at, period in enumerate(self.rows):
            rows = period.of(items)
            mine = place[period.relation.codes[0][rows]]
            g = period.gains(rows, self.tables[not ends][chosen[at]], left[mine], into[mine])
            away = period.held[rows]
            held.append(g[away])
            learned.append(g[~away])
            columns = 0 if period.relation.measure == "lift" else period.relation.codes[1][rows][away]
            strata.append(mine[away] * period.n_columns + columns)
        scale = float(np.quantile(np.abs(np.concatenate(learned)), CUT)) if sum(map(len, learned)) else 0.0
        if scale <= 0:
            return NOTHING
        x = [np.clip(g / scale, -1.0, 1.0) for g in (*held, learned[1])]
        return Bets(x[0], x[1], np.concatenate(strata), x[2])

    def judged(self, one: Difference, n_tested: int, alpha: float, rng: np.random.Generator) -> Judged:
        """p, adjusted for the number of candidates, and whether the rows of both periods ask for the change."""
        bets, enough = self.bets(one), alpha / n_tested
        if len(bets) != 1 or (self.old[one.items] < 0).all():
            p = max((np.exp(-wealth(own.after)) for own in bets), default=1.0)
            return Judged(min(1.0, n_tested * float(p)), False)
        (own,) = bets
        if self.lasting:
            p = own.shuffled(enough, rng)
        else:
            p = float(np.exp(-min(wealth(own.after), wealth(-own.before))))
        always = np.exp(-wealth(np.concatenate([own.before, own.after]))) <= enough
        return Judged(min(1.0, n_tested * p), bool(always))


class Judged(NamedTuple):
    """p of a candidate, and whether the rows of both periods ask for the change."""

    p: float = 1.0
    always: bool = False


def changes_between(
    before: Fit, after: Fit, new: Observed | None = None, *, alpha: float = ALPHA, seed: int = 0
) -> Changes:
    """What became of the groups of one fit in another, and which changes are proven.

    Parameters
    ----------
    before, after : Fit
    new : Observed, optional
        The new rows in the numbering of ``after``, where that fit has learned from the rows of ``before`` as well; by
        default its rows are all new.
    alpha : float
        The chance that anything is called proven although nothing has changed.
    seed : int
        Of the choice of the rows that are kept back.
    """
    sides = (groups_of(before.summary), groups_of(after.summary))
    if [side.mode.name for side in sides[0]] != [side.mode.name for side in sides[1]]:
        names = ("; ".join(side.mode.name for side in part) for part in sides)
        raise GinghamError(f"The two models have different sides ({' and '.join(names)}): they cannot be compared.")
    matching = [matched_groups(a, b) for a, b in zip(*sides)]
    found: list[Change] = []
    candidates = []
    for at, trial in _trials(before, after, new, seed).items():
        as_before, as_after = matched_groups(sides[0][at], trial.before), matched_groups(sides[1][at], trial.after)
        candidates += [(_key(at, one, as_before, as_after), trial, one) for one in trial.candidates()]
    n, rng, tested = len(candidates), np.random.default_rng([seed, 1]), {}
    for key, trial, one in candidates:
        tested[key] = trial.judged(one, n, alpha, rng), Difference(one.kind, one.items, *key[3:])
    for at, (a, b, same) in enumerate(zip(*sides, matching)):
        titles = after.summary.sides[at].names
        every = {_key(at, one, np.arange(a.n), np.arange(b.n)): one for one in differences(a, b, same)}
        moved = {int(i) for one in every.values() for i in one.items}
        for key, (judged, one) in tested.items():  # by the new rows alone, an item belongs elsewhere
            told = key[0] != at or one.kind != "moved" or int(one.items[0]) in moved
            if not told and judged.p <= alpha and min(one.before, one.after) >= 0:
                every[key] = one
        for key, one in every.items():
            judged, _ = tested.get(key, (Judged(), one))
            found.append(
                Change(
                    one.kind, a.mode.name, tuple(titles[i] for i in one.items.tolist()), tuple(one.items.tolist()),
                    "" if one.before < 0 else f"{one.before + 1}: {a.names[one.before]}",
                    "" if one.after < 0 else f"{one.after + 1}: {b.names[one.after]}",
                    judged.p,
                    "proven" if judged.p <= alpha else "correction" if judged.always else "not proven",
                )
            )  # fmt: skip
    order = {"proven": 0, "correction": 1, "not proven": 2}
    found.sort(key=lambda one: (order[one.verdict], one.kind == "moved", one.p))
    return Changes(tuple(found), {a.mode.name: same for a, same in zip(sides[0], matching)}, n, alpha)


def _key(at: int, one: Difference, as_before: Ints, as_after: Ints) -> tuple[int, str, int, int, int]:
    """What a change is known by in the full fits: an item with both groups, a group that came, a group that went."""
    a, b = (int(as_before[one.before]) if one.before >= 0 else -1), (int(as_after[one.after]) if one.after >= 0 else -1)
    if one.kind == "moved":
        return at, "moved", int(one.items[0]), a, b
    return (at, "came", -1, -1, b) if one.kind in ("split", "born") else (at, "went", -1, a, -1)


def _trials(before: Fit, after: Fit, new: Observed | None, seed: int) -> dict[int, Trial]:
    """For every side with items in both periods: its rows, and the groups of fits to half of them."""
    if before.observed.refit is None or after.observed.refit is None:
        return {}
    later = after.observed if new is None else new
    names = {}
    if new is not None:  # the same items on all sides: the same pair is kept back wherever it occurs
        names = {
            at: mode.encode(old.items)
            for at, (mode, old) in enumerate(zip(after.observed.modes, before.observed.modes))
        }
    rng = np.random.default_rng(seed)
    first, second = _pairs(before.observed, names), _pairs(later, {})
    if new is None:
        (kept,), (kept_later,) = _halves([first], rng), _halves([second], rng)
        kept_fitted = kept_later
    else:
        kept, kept_later, kept_fitted = _halves([first, second, _pairs(after.observed, {})], rng)
    if any(part.all() or not part.any() for part in (kept, kept_later, kept_fitted)):
        return {}
    groups = (_refitted(before, kept), _refitted(after, kept_fitted))
    relation, found = after.observed.relations[0], {}
    for own, at in enumerate(relation.sides):
        same = matched_groups(groups[0][at], groups[1][at])
        if at in found or (same < 0).all() or max(groups[0][at].n, groups[1][at].n) < 2:
            continue
        other = next(place for place in range(len(relation.sides)) if place != own)
        columns = [part[relation.sides[other]] for part in groups]
        mode = after.observed.modes[at]
        rows = (
            _rows(before.observed, mode, columns[new is not None], kept, own, other),
            _rows(later, mode, columns[1], kept_later, own, other),
        )
        found[at] = Trial(groups[0][at], groups[1][at], same, rows, new is not None)
    return found


def _halves(parts: Sequence[Ints], rng: np.random.Generator) -> list[Bools]:
    """Masks of the rows to learn from: every different pair of ids is drawn with chance 1/2, wherever it occurs."""
    different, where = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
    drawn = (rng.random(len(different)) < 0.5)[where.ravel()]
    return np.split(drawn, np.cumsum([len(part) for part in parts])[:-1])


def _pairs(observed: Observed, names: Mapping[int, Ints]) -> Ints:
    """The ids of each row of the first relation as numbers, (n, positions)."""
    relation = observed.relations[0]
    codes = [names[side][code] if names else code for side, code in zip(relation.sides, relation.codes)]
    found = np.column_stack(codes).astype(np.int64)
    return np.sort(found, axis=1) if relation.both_ways else found


def _rows(observed: Observed, mode: Mode, columns: Groups, kept: Bools, own: int, other: int) -> Rows:
    """The rows of one period, items in the numbering of ``mode`` and the other side in groups."""
    relation = observed.relations[0]
    pair = relation.pair(own, other)
    side, met = relation.sides[own], relation.sides[other]
    items = mode.encode(observed.modes[side].items)[pair.codes[0]]
    into = columns.seen_by(observed.modes[met])[pair.codes[1]]
    times = len(items) // len(kept)  # twice, where rows stand for both directions
    held, once = np.tile(~kept, times), np.arange(len(items)) < len(kept)
    there = (items >= 0) & (into >= 0)
    part = replace(pair, codes=(items, into)).take(there)
    return Rows(part, held[there], once[there], mode.n_items, columns.n)


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
