"""Certificates for rankings: how often does a list of n items miss what the user wanted, and is one list better?

The unit is a *user*: items of one user are not independent of each other, users are. Each user brings one loss
between 0 and 1 (the share of the hidden items that the list misses), and a gambler bets on it, one user after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Protocol

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints, TableLike
from gingham.cards import certificate_card
from gingham.certificates.assumptions import Assumption, checked, drawn_order, given
from gingham.certificates.bounds import Bound, GibbsLaw, close_in, log_wealth, whole
from gingham.certificates.confidence import checked_candidates, checked_delta, log_inverse
from gingham.certificates.holdout import SMALLEST, betting
from gingham.data import Mode
from gingham.data.adapt import id_columns
from gingham.data.sample import recorded_seed
from gingham.errors import GinghamError, RefusedCertificate

MEASURES = ("miss", "ndcg")
RANDOM = ("users", "hiding")
BLOCK = 1024  # rows of a table of scores that are sorted at a time


class Ranker(Protocol):
    """Anything that can list the n best items of each user, items already taken left out."""

    def top(self, users: AnyArray, n: int) -> AnyArray: ...


Lists = Ranker | Callable[[AnyArray, int], AnyArray] | Mapping[object, object] | Floats


@dataclass(frozen=True)
class RankingCertificate:
    """With probability at least 1 − delta the mean loss over users is at most ``value``.

    The loss of a user is the miss rate (share of the hidden items that are not in the list) or 1 − NDCG; with
    ``paired`` it is the difference of the losses of two rankings, and a ``value`` below 0 proves the first better.

    Attributes
    ----------
    value, empirical : float
        The guarantee, and the mean over the users looked at.
    at : int, the length of the lists
    measure : {"miss", "ndcg"}
    delta : float
    n_users : int
    covers : str
        In words, whose mean is bounded.
    assumptions : tuple of Assumption
    paired : bool
    seed : int or None
        Of the order in which bets were made, where the bound is one of bets.
    """

    value: float
    empirical: float
    at: int
    measure: str
    delta: float
    n_users: int
    covers: str
    assumptions: tuple[Assumption, ...]
    paired: bool = False
    seed: int | None = None

    @property
    def better(self) -> bool:
        """Whether the first of two rankings is proved better."""
        return self.paired and self.value < 0

    def explain(self) -> str:
        """The certificate in plain words."""
        percent = f"{100 * (1 - self.delta):g} %"
        what = f"miss rate at {self.at}" if self.measure == "miss" else f"loss 1 − NDCG@{self.at}"
        if self.paired and self.better:
            promise = f"the first ranking's {what} is lower than the second's, by {-self.value:.4g} at least on average"
        elif self.paired:
            promise = f"the first ranking's {what} less the second's is at most {self.value:.4g}: nothing is proved"
        else:
            promise = f"the mean {what} is at most {self.value:.4g}"
        lines = [
            f"Guarantee: {promise}, with confidence {percent}.",
            f"On the {self.n_users:,} users looked at it is {self.empirical:.4g}.",
            f"It covers {self.covers}.",
            "",
            "It rests on:",
            *(f"  [{assumption.status}] {assumption.text}" for assumption in self.assumptions),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        return certificate_card(self.value, False, self.explain(), [(a.text, a.status) for a in self.assumptions])

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        names = ("value", "empirical", "at", "measure", "delta", "n_users", "covers", "paired", "better", "seed")
        assumptions = [assumption.to_dict() for assumption in self.assumptions]
        return {**{name: getattr(self, name) for name in names}, "assumptions": assumptions}


def certify_ranking(
    ranking: Lists,
    hidden: TableLike,
    *,
    at: int = 20,
    against: Lists | None = None,
    measure: str = "miss",
    random: str = "users",
    population: int | None = None,
    seen: TableLike | None = None,
    candidates: int = 1,
    delta: float = 0.05,
    random_state: int | None = None,
) -> RankingCertificate:
    """Bound the mean miss rate of a ranking, or prove one ranking better than another, from items hidden from both.

    Parameters
    ----------
    ranking : fitted ranker, function, mapping or array
        A model with ``top(users, n)``; a function of users and n that returns lists; a mapping from user to a ranked
        list of items; or a table of scores (users × items), whose ids are its row and column numbers.
    hidden : (N, 2) pairs (user, item) that the ranking has not seen
    at : how many items a list has
    against : another ranking, in any of these forms
        The certificate then bounds the mean of the first ranking's loss less the second's, user by user.
    measure : {"miss", "ndcg"}
        1 − recall (the share of a user's hidden items that the list misses), or 1 − NDCG.
    random : {"users", "hiding"}
        What was drawn at random, so what is covered. "users": the users, independently of each other, from the
        people the ranking is for; covered is the mean over all such people. "hiding": the users are whoever they
        are, but which of their items are hidden was drawn, for each user independently; covered is the mean over
        these users of what another drawing would give. Neither covers what people will want next year.
    population : int, the number of users there are
        Where the users in ``hidden`` were drawn without replacement from so many: covered is the mean over all of
        them, and the bound closes as they are used up.
    seen : (N, 2) pairs that a table of scores must not list again
    candidates : how many rankings were compared on these hidden items before this one was chosen
    delta : float
    random_state : int, optional
        Seed of the order in which bets are made on users; drawn afresh by default, and recorded in ``seed``.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> hidden = np.array([(user, user % 2) for user in range(200)])  # kept back from the ranking
    >>> ranking = {user: [0, 2, 4] if user % 2 == 0 else [1, 3, 5] for user in range(200)}
    >>> certificate = gg.certify_ranking(ranking, hidden, at=3)
    >>> certificate.empirical, certificate.value < 0.1
    (0.0, True)
    """
    if measure not in MEASURES:
        raise GinghamError(f"measure={measure!r} is unknown; choose one of {', '.join(MEASURES)}.")
    if random not in RANDOM:
        raise GinghamError(f"random={random!r} is unknown; choose one of {', '.join(RANDOM)}.")
    if isinstance(at, bool) or not isinstance(at, (int, np.integer)) or at < 1:
        raise GinghamError(f"at={at!r} must be a whole number from 1.")
    checked_delta(delta)
    union = log(checked_candidates(candidates))
    columns = id_columns(hidden).columns
    if len(columns) != 2:
        raise GinghamError(f"hidden needs pairs (user, item): it has {len(columns)} columns.")
    users = Mode.of(columns[0], "user")
    codes = users.encode(columns[0])
    if population is not None and random == "hiding":
        raise RefusedCertificate("population= speaks of users that were drawn; with random='hiding' they are fixed.")
    if population is not None and whole(population) < users.n_items:
        raise GinghamError(f"population={population} is less than the {users.n_items} users in hidden.")
    losses = ranking_losses(ranking, users, codes, columns[1], int(at), measure, seen)
    if against is not None:
        _need_hidden(against, *columns)
        losses = losses - ranking_losses(against, users, codes, columns[1], int(at), measure, seen)
    low, span = (-1.0, 2.0) if against is not None else (0.0, 1.0)
    scaled = (losses - low) / span
    seed = recorded_seed(random_state)
    drawn: tuple[Assumption, ...] = (drawn_order(seed, random_state is None, "order of the bets"),)
    if population is not None:
        bound = betting_without_replacement(scaled, population, union, delta, seed)
    elif random == "hiding":
        bound, drawn = log_wealth(GibbsLaw.of(scaled, np.ones(len(scaled))), union, len(scaled), delta), ()
    else:
        bound = betting(scaled, union, delta, seed)
    return RankingCertificate(
        value=low + span * bound.value,
        empirical=float(losses.mean()),
        at=int(at),
        measure=measure,
        delta=delta,
        n_users=len(losses),
        covers=_covers(random, population, len(losses)),
        assumptions=(*_assumptions(random, population, candidates), *drawn),
        paired=against is not None,
        seed=seed if drawn else None,
    )


def _need_hidden(ranking: Lists, users: AnyArray, items: AnyArray) -> None:
    """Refuse a rival that knows the hidden items: what is in somebody's basket is not listed again, and is missed."""
    has_taken = getattr(ranking, "has_taken", None)
    taken = None if has_taken is None else has_taken(users, items)
    if taken is not None and taken.any():
        raise RefusedCertificate(
            f"{int(taken.sum()):,} of the {len(taken):,} hidden pairs (row {int(np.flatnonzero(taken)[0])}, for one) "
            "are in the baskets that the ranking given as against= was fitted on: it does not list them again, so that "
            "to be better than it proves nothing. Fit it without the hidden pairs."
        )


def ranking_losses(
    ranking: Lists, users: Mode, codes: Ints, items: AnyArray, at: int, measure: str, seen: TableLike | None = None
) -> Floats:
    """The loss of each user, in the order of ``users``: miss rate or 1 − NDCG of the hidden (codes, items)."""
    different = Mode.of(items, "item")
    pairs = np.unique(codes.astype(np.int64) * different.n_items + different.encode(items))
    rows, wanted = np.divmod(pairs, different.n_items)
    lists = _lists(ranking, users.items, at, seen)
    shown = different.encode(lists.ravel()).reshape(lists.shape)
    if len(users.items) > 1 and (shown < 0).all() and different.n_items > 1:
        raise GinghamError(
            f"None of the listed items ({lists.ravel()[0]}, say) is among the hidden ones ({different.items[0]}, say): "
            "write ids alike in both, as numbers or as text."
        )
    hits = shown[rows] == wanted[:, None]
    counts = np.bincount(rows, minlength=users.n_items)
    if measure == "miss":
        missed: Floats = 1.0 - np.bincount(rows, hits.any(axis=1), users.n_items) / counts
        return missed
    gains = 1.0 / np.log2(np.arange(2, at + 2))
    most = np.concatenate([[0.0], np.cumsum(gains)])[np.minimum(counts, at)]
    lost: Floats = 1.0 - np.bincount(rows, hits @ gains[: hits.shape[1]], users.n_items) / most
    return np.maximum(lost, 0.0)  # the best list loses nothing, but for rounding


def _lists(ranking: Lists, users: AnyArray, at: int, seen: TableLike | None) -> AnyArray:
    """The list of each user, shape (users, at at most); a short one is filled up with None."""
    if isinstance(ranking, np.ndarray):
        return _from_scores(ranking, users, at, seen)
    if isinstance(ranking, Mapping):
        absent = [user for user in users.tolist() if user not in ranking]
        if absent:
            raise GinghamError(f"The ranking has no list for user {absent[0]!r}, who is in hidden.")
        given: list[object] = [ranking[user] for user in users.tolist()]
    elif hasattr(ranking, "top"):
        given = list(ranking.top(users, at))
    elif callable(ranking):
        given = list(ranking(users, at))
    else:
        raise GinghamError("A ranking is a model with top(users, n), a function, a mapping or a table of scores.")
    if len(given) != len(users):
        raise GinghamError(f"The ranking returned {len(given)} lists for {len(users)} users.")
    lists = np.full((len(given), at), None, dtype=object)
    for row, one in enumerate(given):
        mine = list(one)[:at]  # type: ignore[call-overload]
        if len(set(mine) - {None}) < sum(item is not None for item in mine):
            raise GinghamError(f"The list of user {users[row]!r} names an item twice.")
        lists[row, : len(mine)] = mine
    absent_items = lists == None  # noqa: E711 - elementwise
    if absent_items.any():
        # A place that holds nothing hits nothing; as_column refuses None, so it gets an id that no item has.
        lists[absent_items] = _Nothing()
    return lists


class _Nothing:
    """An id that equals no item's."""


def _from_scores(scores: Floats, users: AnyArray, at: int, seen: TableLike | None) -> AnyArray:
    if scores.ndim != 2:
        raise GinghamError(f"A table of scores has two dimensions (users × items), not {scores.ndim}.")
    if users.dtype.kind not in "iu" or users.min() < 0 or users.max() >= len(scores):
        raise GinghamError(f"With a table of scores, users are its row numbers, 0 to {len(scores) - 1}.")
    taken = [np.zeros(0, dtype=np.int64)] * 2 if seen is None else id_columns(seen).columns
    order = np.argsort(taken[0], kind="stable")
    taken = [column[order] for column in taken]
    lists = np.empty((len(users), min(at, scores.shape[1])), dtype=np.int64)
    for a in range(0, len(users), BLOCK):
        mine = users[a : a + BLOCK]
        part = np.array(scores[mine], dtype=np.float64)
        begin, end = np.searchsorted(taken[0], mine, "left"), np.searchsorted(taken[0], mine, "right")
        for row, (b, e) in enumerate(zip(begin, end)):
            part[row, taken[1][b:e]] = -np.inf
        if np.isnan(part).any():
            raise GinghamError("The table of scores has NaN: a list cannot be made of it.")
        found = np.argsort(-part, axis=1, kind="stable")[:, : lists.shape[1]]
        lists[a : a + BLOCK] = np.where(np.isfinite(np.take_along_axis(part, found, 1)), found, -1)
    return lists


def betting_without_replacement(losses: Floats, population: int, union: float, delta: float, seed: int) -> Bound:
    """The largest mean L of a population of N losses, of which n were drawn without replacement, that stays believable.

    After t − 1 draws with sum S the next has mean m_t(L) = (N L − S)/(N − t + 1), so
    Π_t (ν_t − X_t)/(ν_t − m_t(L)) is a wealth with mean 1 for the true L; it grows with L, and by Ville it stays below
    1/δ at all t with probability 1 − δ. An L at which some m_t lies above 1 is impossible. With n = N it is exact.
    """
    n, paid = len(losses), union + log_inverse(delta)
    x: Floats = np.random.default_rng(seed).permutation(losses)
    seen = np.arange(1, n + 1)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    left = population - seen + 1.0
    means = (0.5 + np.cumsum(x)) / (seen + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (seen + 1)
    spread = np.sqrt(np.concatenate([[0.25], variances[:-1]]))
    # What is still to be drawn is worth betting on less and less: the share that is left scales the variance.
    horizon = n / max(1.0 - n / (population + 1.0), 1.0 / (population + 1.0))
    nu = np.maximum(np.concatenate([[0.5], means[:-1]]) + spread * sqrt(horizon / (2.0 * paid)), 1.0 + SMALLEST)
    gained = np.log(nu - x)
    least = float(x.sum()) / population  # all others lose nothing
    most = (float(x.sum()) + population - n) / population  # all others lose 1

    def too_far(levels: Floats) -> AnyArray:
        expected = (population * levels - before) / left
        wealth = np.cumsum(gained - np.log(np.maximum(nu - expected, 1e-300)), axis=-1)
        return (wealth.max(axis=-1) > paid) | (expected > 1.0 + 1e-9).any(axis=-1)

    value = most if most - least < 1e-12 else min(close_in(too_far, least, most), most)
    return Bound(value, {"confidence ln 1/δ": log_inverse(delta)}, {"last bet": float(nu[-1])})


def _covers(random: str, population: int | None, n: int) -> str:
    if population is not None:
        return f"the mean over all {population:,} users, of whom {n:,} were looked at"
    if random == "hiding":
        return (
            f"the mean over these {n:,} users of what they would miss if other items of theirs had been hidden in the "
            "same way: other users, and what anybody will want later, are not covered"
        )
    return "the mean over all people from whom these users were drawn, each with items hidden in the same way"


def _assumptions(random: str, population: int | None, candidates: int) -> tuple[Assumption, ...]:
    if population is not None:
        drawn = given("users without replacement", population=population)
    else:
        drawn = given("hiding drawn" if random == "hiding" else "users drawn")
    return (drawn, given("ranking independent of hiding", candidates=candidates), checked("range", low=0.0, high=1.0))
