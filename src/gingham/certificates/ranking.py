"""Certificates for rankings: how often does a list of n items miss what the user wanted, and is one list better?

The unit is a *user*: items of one user are not independent of each other, users are. Each user brings one loss
between 0 and 1 (the share of the hidden items that the list misses), and a gambler bets on it, one user after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log, sqrt
from typing import Any, Protocol, TypeGuard

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints, TableLike
from gingham.cards import certificate_card
from gingham.certificates.assumptions import Assumption, checked, drawn_order, given, rests_on
from gingham.certificates.bounds import (
    Bound,
    LossDistribution,
    checked_candidates,
    checked_delta,
    close_in,
    log_inverse,
    log_wealth,
    mean_between,
    whole,
)
from gingham.certificates.holdout import SMALLEST, betting
from gingham.certificates.members import unfitted, who_fitted
from gingham.certificates.progressive import Plan, Progressive, choose_nu
from gingham.data import Mode
from gingham.data.adapt import id_columns
from gingham.data.draws import recorded_seed
from gingham.errors import GinghamError, RefusedCertificate

MEASURES = ("miss", "ndcg")
RANDOM = ("users", "hiding")
FITS = 5  # of a ranker that is fitted here, after the first
BLOCK = 1024  # rows of a table of scores that are sorted at a time


class Ranker(Protocol):
    """Anything that can list the n best items of each user, items already taken left out."""

    def top(self, users: AnyArray, n: int) -> AnyArray: ...


class Learner(Protocol):
    """A ranker that is fitted here: on pairs (user, item), to list items for the basket of anybody else."""

    def fit(self, X: TableLike) -> Learner: ...

    def recommend_for(self, basket: AnyArray, n: int) -> Any: ...


Lists = Ranker | Learner | Callable[[AnyArray, int], AnyArray] | Mapping[object, object] | Floats


@dataclass(frozen=True)
class RuleCost:
    """What one rule of a list adds to the mean loss over users, which lies between ``low`` and ``high``.

    It is compared with the lists that obey all other rules; "all rules" with lists under none.
    """

    rule: str
    observed: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.rule}: {self.observed:.4g} (between {self.low:.4g} and {self.high:.4g})"


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
        Of the order in which bets were made, and of what was hidden here.
    members : tuple of fitted rankers
        Those that were fitted here; covered is one that is drawn among them by its share of the users.
    rule_costs : tuple of RuleCost
        Of lists under rules: what each rule adds to the loss; with the guarantee, all hold together.
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
    members: tuple[object, ...] = field(default=(), repr=False)
    rule_costs: tuple[RuleCost, ...] = ()

    @property
    def better(self) -> bool:
        """Whether the first of two rankings is proved better."""
        return self.paired and self.value < 0

    @property
    def loss(self) -> str:
        """What is bounded."""
        return f"{'miss rate' if self.measure == 'miss' else '1 − NDCG'} at {self.at}"

    def explain(self) -> str:
        """The certificate in plain words."""
        percent, what = f"{100 * (1 - self.delta):g} %", self._unit
        if self.paired and self.better:
            promise = f"the first ranking's {what} is lower than the second's, by {-self.value:.4g} at least on average"
        elif self.paired:
            promise = (
                f"the first ranking's {what} less the second's is at most {self.value:.4g}: no difference is proved"
            )
        else:
            promise = f"the mean {what} is at most {self.value:.4g}"
        lines = [
            f"Guarantee: {promise}, with confidence {percent}.",
            f"On the {self.n_users:,} users looked at it is {self.empirical:.4g}.",
            f"It covers {self.covers}.",
            *(["What each rule adds to it:", *(f"  {cost}" for cost in self.rule_costs)] if self.rule_costs else []),
            "",
            *rests_on(self.assumptions),
        ]
        return "\n".join(lines)

    @property
    def _unit(self) -> str:
        return f"miss rate at {self.at}" if self.measure == "miss" else f"loss 1 − NDCG@{self.at}"

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        beside = {"on the users looked at": self.empirical, "the largest possible loss": 1.0}
        claims = [(a.text, a.status) for a in self.assumptions]
        return certificate_card(self.value, False, self._unit, self.explain(), beside, claims)

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        names = (
            "value",
            "empirical",
            "loss",
            "at",
            "measure",
            "delta",
            "n_users",
            "covers",
            "paired",
            "better",
            "seed",
        )
        assumptions = [assumption.to_dict() for assumption in self.assumptions]
        costs = {"rule_costs": [vars(cost) for cost in self.rule_costs]} if self.rule_costs else {}
        return {**{name: getattr(self, name) for name in names}, **costs, "assumptions": assumptions}


def certify_ranking(
    ranking: Lists,
    pairs: TableLike,
    *,
    at: int = 20,
    against: Lists | None = None,
    measure: str = "miss",
    random: str = "users",
    population: int | None = None,
    seen: TableLike | None = None,
    hide: float = 0.2,
    candidates: int = 1,
    delta: float = 0.05,
    random_state: int | None = None,
    rules: Mapping[str, Any] | None = None,
) -> RankingCertificate:
    """Bound the mean miss rate of a ranking, or prove one ranking better than another, from items hidden from both.

    A list that was fitted on what was left of the same users' items may depend on which items were hidden, and then
    proves nothing. So give a ranker that is not fitted, and all pairs: it is fitted on the first half of the users, in
    a random order, and then on more of them, and lists for users whom it has not seen what follows from a part of their
    items; the rest tests it.

    Parameters
    ----------
    ranking : ranker that is not fitted; or fitted ranker, function, mapping or array
        One with ``fit(pairs)`` and ``recommend_for(basket, n)`` is fitted here, on other users. Lists that were made
        elsewhere come from a model with ``top(users, n)``; a function of users and n that returns lists; a mapping from
        user to a ranked list of items; or a table of scores (users × items), whose ids are its row and column numbers.
    pairs : (N, 2) pairs (user, item)
        All of them for a ranker that is fitted here, and otherwise those that were hidden from the ranking.
    at : how many items a list has
    against : another ranking, fitted here or elsewhere as the first one is
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
    hide : share of the items of each user that are hidden from a ranker that is fitted here, one at least
    candidates : how many rankings were compared on these hidden items before this one was chosen
    delta : float
    random_state : int, optional
        Seed of the order of users and of what is hidden; drawn afresh by default, and recorded in ``seed``.
    rules : mapping, optional
        Rules of the lists of a fitted `BasketRanker`, as its ``top`` takes them: ``{"at_most": {"brand": 3}}``. The
        certificate is that of the lists under all rules, with half of δ; the other half is for ``rule_costs``.

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
        raise GinghamError(f"at={at!r} must be an integer ≥ 1.")
    alone = against is None and population is None and not _is_fitted_here(ranking) and hasattr(ranking, "top")
    if rules and not alone:
        raise RefusedCertificate("rules= is for the lists of one fitted ranker: leave against= and population= out.")
    columns = id_columns(pairs).columns
    if len(columns) != 2:
        raise GinghamError(f"Rankings are certified by pairs (user, item), and these have {len(columns)} columns.")
    if against is not None and _is_fitted_here(ranking) != _is_fitted_here(against):
        raise RefusedCertificate("Of two rankers both are fitted here, on the same users, or neither is.")
    test = _Test(
        int(at), measure, checked_delta(delta), checked_candidates(candidates), recorded_seed(random_state),
        random_state is None, against is not None,
    )  # fmt: skip
    hidden = Hidden.of(columns, test.at, measure, seen)
    if rules:
        return _under_rules(ranking, rules, hidden, test, random)
    if not _is_fitted_here(ranking):
        return _of_lists(ranking, against, hidden, test, random, population)
    if random != "users" or population is not None or seen is not None:
        raise RefusedCertificate(
            "A ranker that is fitted here is tested on users drawn independently: leave random=, population= and "
            "seen= out."
        )
    return _on_other_users([ranking, *([] if against is None else [against])], columns, test, hide)  # type: ignore[list-item]


@dataclass(frozen=True)
class _Test:
    """How a ranking is tested."""

    at: int
    measure: str
    delta: float
    candidates: int
    seed: int
    drawn_here: bool
    paired: bool

    @property
    def low(self) -> float:
        """The smallest loss, or difference of losses; the largest is 1."""
        return -1.0 if self.paired else 0.0

    def certificate(
        self, value: float, losses: Floats, covers: str, assumptions: Sequence[Assumption], order: str | None,
        members: tuple[object, ...] = (),
    ) -> RankingCertificate:  # fmt: skip
        """What is certified of the mean of some losses; ``order`` says what the seed has decided."""
        drawn = () if order is None else (drawn_order(self.seed, self.drawn_here, order),)
        return RankingCertificate(
            value, float(losses.mean()), self.at, self.measure, self.delta, len(losses), covers,
            (*assumptions, *drawn, checked("range", low=self.low, high=1.0)), self.paired,
            None if order is None else self.seed, members,
        )  # fmt: skip


def _of_lists(
    ranking: Lists, against: Lists | None, hidden: Hidden, test: _Test, random: str, population: int | None = None
) -> RankingCertificate:
    """Lists that were made elsewhere, by the items that were hidden from them."""
    users = hidden.users
    if population is not None and random == "hiding":
        raise RefusedCertificate("population= is for users that were drawn; with random='hiding' they are fixed.")
    if population is not None and whole(population) < users.n_items:
        raise GinghamError(f"population={population} is less than the {users.n_items} users in hidden.")
    losses = hidden.losses(ranking)
    if against is not None:
        _need_hidden(against, users.items[hidden.codes], hidden.items)
        losses = losses - hidden.losses(against)
    scaled, union, n = (losses - test.low) / (1.0 - test.low), log(test.candidates), len(losses)
    order: str | None = "order of the bets"
    if population is not None:
        bound = betting_without_replacement(scaled, population, union, test.delta, test.seed)
        covers = f"the mean over all {population:,} users, of whom {n:,} were looked at"
        drawn = given("users without replacement", population=population)
    elif random == "hiding":
        bound, order = log_wealth(LossDistribution.of(scaled, np.ones(n)), union, n, test.delta), None
        covers = (
            f"the mean over these {n:,} users of what they would miss if other items of theirs had been hidden in the "
            "same way: other users, and what anybody will want later, are not covered"
        )
        drawn = given("hiding drawn")
    else:
        bound = betting(scaled, union, test.delta, test.seed)
        covers = "the mean over all people from whom these users were drawn, each with items hidden in the same way"
        drawn = given("users drawn")
    value = test.low + (1.0 - test.low) * bound.value
    fair = given("ranking independent of hiding", candidates=test.candidates)
    return test.certificate(value, losses, covers, (drawn, fair), order)


def _under_rules(
    ranking: Any, rules: Mapping[str, Any], hidden: Hidden, test: _Test, random: str
) -> RankingCertificate:
    """The certificate of lists under rules, and with the other half of δ what each rule adds to the loss."""
    half = replace(test, delta=test.delta / 2)
    found = _of_lists(partial(ranking.top, **rules), None, hidden, half, random)

    def losses(kept: Mapping[str, Any]) -> Floats:
        return hidden.losses(partial(ranking.top, **kept))

    others, ruled, costs = _without_each(rules), losses(rules), list[RuleCost]()
    each, union = half.delta / (2 * len(others)), log(test.candidates)
    for name, kept in others.items():
        gap = ruled - losses(kept)
        costs.append(RuleCost(name, float(gap.mean()), *mean_between(gap, each, -1.0, union)))
    return replace(found, delta=test.delta, rule_costs=tuple(costs))


def _without_each(rules: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rules without each one of them by its name, and "all rules" without any."""
    found: dict[str, dict[str, Any]] = {}
    for kind in ("items", "exclude"):
        if rules.get(kind) is not None:
            found[kind] = {key: value for key, value in rules.items() if key != kind}
    for kind in ("at_most", "at_least"):
        for column, number in dict(rules.get(kind) or {}).items():
            named = " = ".join(map(str, column)) if isinstance(column, tuple) else str(column)
            rest = {key: value for key, value in rules[kind].items() if key != column}
            found[f"{kind.replace('_', ' ')} {number:g} of {named}"] = {**rules, kind: rest}
    return found if len(found) < 2 else {**found, "all rules": {}}


def _is_fitted_here(ranking: object) -> TypeGuard[Learner]:
    """Whether it is a ranker that can be fitted, and is not."""
    if not (hasattr(ranking, "fit") and hasattr(ranking, "recommend_for") and hasattr(ranking, "get_params")):
        return False
    return not any(name.endswith("_") and not name.startswith("_") for name in vars(ranking))


def _on_other_users(
    rankers: Sequence[Learner], columns: Sequence[AnyArray], test: _Test, hide: float
) -> RankingCertificate:
    """Rankers that learn from whole baskets of some users, and list for others: each user after those before.

    What is hidden of a user is drawn here and learned from by nobody who lists for that user, so that no list depends
    on it. The users' losses are progressive tests, with a user as the draw.
    """
    if not 0 < hide < 1:
        raise GinghamError(f"hide={hide!r} must lie strictly between 0 and 1: a share of each user's items.")
    rng = np.random.default_rng(test.seed)
    users, items = Mode.of(columns[0], "user"), Mode.of(columns[1], "item")
    taken = np.unique(users.encode(columns[0]).astype(np.int64) * items.n_items + items.encode(columns[1]))
    rows, places = np.divmod(taken, items.n_items)
    sizes = np.bincount(rows, minlength=users.n_items)
    draws = rng.permutation(np.flatnonzero(sizes >= 2))
    plan = Plan.of(len(draws), 0.5, FITS)
    # The first of each user's items in a random order are hidden, and one stays visible.
    order = np.lexsort((rng.random(len(rows)), rows))
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_hidden = rank < np.clip(np.rint(hide * sizes), 1, np.maximum(sizes - 1, 1))[rows]

    def tested(model: Learner, mine: Ints) -> Floats:
        lists = {}
        for user in mine.tolist():
            own = slice(*np.searchsorted(rows, [user, user + 1]))
            visible = items.items[places[own][~is_hidden[own]]]
            found = model.recommend_for(visible, test.at)
            lists[users.items[user]] = list(found["item"] if hasattr(found, "columns") else found)
        away = is_hidden & np.isin(rows, mine)
        some = Mode("user", users.items[np.sort(mine)])
        codes = np.searchsorted(np.sort(mine), rows[away])
        return Hidden(some, codes, items.items[places[away]], test.at, test.measure, known=items).losses(lists)

    members, tests = list[Learner](), list[Floats]()
    for start, stop in plan.spans:
        known = np.isin(rows, draws[:start])
        learned = [users.items[rows[known]], items.items[places[known]]]
        pairs = np.column_stack([column.astype(object) for column in learned])
        losses = np.zeros(stop - start)
        for one, sign in zip(rankers, (1.0, -1.0)):
            fitted = unfitted(one).fit(pairs)
            losses += sign * tested(fitted, draws[start:stop])
            members += [fitted] if sign > 0 else []
        tests.append(losses)
    span, losses = 1.0 - test.low, np.concatenate(tests[1:])
    nu = choose_nu((tests[0] - test.low) / span, plan.n_tested, test.delta, test.candidates)
    found = Progressive(nu, test.delta, test.low, span, candidates=test.candidates).add(losses)
    doubts = [str(claim.facts["why"]) for claim in map(who_fitted, rankers) if claim.facts]
    fitted_on = given("fitted on other users", why=doubts[0]) if doubts else checked("fitted on other users")
    covers = (
        f"one of {FITS} rankers, fitted on {plan.edges[0]:,} to {plan.edges[-2]:,} users and drawn by its share "
        "of the tests, for people from whom these users were drawn (with two items at least), "
        f"{100 * hide:.3g} % of whose items are hidden at random"
    )
    drawn = "order of the users, and what was hidden of each,"
    assumptions = (given("users drawn"), fitted_on, given("settings"))
    return test.certificate(found.value, losses, covers, assumptions, drawn, tuple(members[1:]))


def _need_hidden(ranking: Lists, users: AnyArray, items: AnyArray) -> None:
    """Refuse a rival that knows the hidden items: what is in somebody's basket is not listed again, and is missed."""
    has_taken = getattr(getattr(ranking, "__self__", ranking), "has_taken", None)  # of a model, or of its method
    taken = None if has_taken is None else has_taken(users, items)
    if taken is not None and taken.any():
        raise RefusedCertificate(
            f"{int(taken.sum()):,} of the {len(taken):,} hidden pairs (row {int(np.flatnonzero(taken)[0])}, for one) "
            "are in the baskets that the ranking given as against= was fitted on: it cannot list them again, so the "
            "comparison proves nothing. Fit it without the hidden pairs."
        )


@dataclass(frozen=True, eq=False)
class Hidden:
    """Items that were hidden from rankings, and what of a list they judge."""

    users: Mode
    codes: Ints  # the user of each hidden item
    items: AnyArray
    at: int
    measure: str
    seen: TableLike | None = None  # pairs that a table of scores must not list again
    known: Mode | None = None  # all items, where there are others than those that are hidden

    @classmethod
    def of(cls, pairs: Sequence[AnyArray], at: int, measure: str, seen: TableLike | None = None) -> Hidden:
        users = Mode.of(pairs[0], "user")
        return cls(users, users.encode(pairs[0]), pairs[1], at, measure, seen)

    def losses(self, ranking: Lists) -> Floats:
        """The loss of each user, in the order of ``users``: miss rate or 1 − NDCG."""
        users, at = self.users, self.at
        different = Mode.of(self.items, "item") if self.known is None else self.known
        pairs = np.unique(self.codes.astype(np.int64) * different.n_items + different.encode(self.items))
        rows, wanted = np.divmod(pairs, different.n_items)
        lists = _lists(ranking, users.items, at, self.seen)
        shown = different.encode(lists.ravel()).reshape(lists.shape)
        if len(users.items) > 1 and (shown < 0).all() and different.n_items > 1:
            raise GinghamError(
                f"None of the listed items ({lists.ravel()[0]}, say) is among the hidden ones "
                f"({different.items[0]}, say): write ids in the same way in both, as numbers or as text."
            )
        hits = shown[rows] == wanted[:, None]
        counts = np.bincount(rows, minlength=users.n_items)
        if self.measure == "miss":
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
            raise GinghamError(f"The list of user {users[row : row + 1].tolist()[0]!r} names an item twice.")
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
