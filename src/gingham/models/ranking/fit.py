"""Fitting a ranking: every setting is chosen once, on items that are hidden from the fit, then all data is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
from scipy import sparse

from gingham.arrays import Floats, Ints
from gingham.engine.threads import one_blas_thread
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.models.ranking import device
from gingham.models.ranking.baskets import Baskets, Taken, membership
from gingham.models.ranking.boards import SCALE, BasketBoard, Equations, features, fit_board
from gingham.models.ranking.clusters import RARE, cluster_items
from gingham.models.ranking.factors import Factors, fit_factors
from gingham.models.ranking.item_ridge import primal
from gingham.models.ranking.kernels import places
from gingham.models.ranking.walk import walk_scores, walks
from gingham.storage import State, savable

P = ParamSpec("P")
T = TypeVar("T")
MEMBERS = ("boards", "items", "factors", "walk")
AT = 20  # the length of a list by which settings are chosen
MOST_ITEMS = 20_000  # up to which a table items × items is kept
MOST_CLUSTERS = 1_000
PROBED_ITEMS = 1_500  # the most popular items: settings found on them are those of all
PROBED_USERS, MOST_PROBED = 2_000, 8_000
ENOUGH_HIDDEN = 20_000  # items: more users are probed where each has few hidden ones, up to MOST_PROBED
LEAST_HIDDEN = 30  # users with a hidden item, below which nothing can be chosen
N_FACTORS, PILOT_FACTORS = 128, 64
SWEEPS, LAST_SWEEPS, PILOT_SWEEPS, FURTHER_SWEEPS = 10, 7, 8, 3
MOVES = (1, 2, 5)  # tenths of weight that move at a time
# Weights are judged on further hidden parts of small tables, by the number of interactions: they need more users than
# there are.
REPEATS = ((100_000, 8), (500_000, 3))
DISLIKES = (0.0, 0.1, 0.2, 0.4, 0.8)  # shares of the pull of refused items that may be subtracted
CLEARLY = 2.0  # standard errors that a change of the weights must gain
ROUNDS = 8  # of the search for the members' weights


class Settings(NamedTuple):
    """All that is chosen on the validation part.

    Attributes
    ----------
    n_clusters : item clusters of a board
    board_penalty : of the boards' ridge
    ridge : strength of the item-to-item ridge
    rho : how strongly its prior draws items of a cluster together
    factor_penalty
    walk : power of the popularity by which the random walk is divided
    weights : of the members boards, items, factors, walk; they sum to 1
    """

    n_clusters: int
    board_penalty: float = 12.0
    ridge: float = 3.0
    rho: float = 0.4
    factor_penalty: float = 60.0
    walk: float = 0.4
    weights: tuple[float, ...] = (0.4, 0.4, 0.2, 0.0)


@dataclass(frozen=True, eq=False)
class Choice:
    """The settings, and what was tried for them: NDCG@20 on hidden items of each value (empty: nothing could be)."""

    settings: Settings
    tried: dict[str, dict[str, float]]
    n_users: int
    pilot: Factors | None = None  # of what was not hidden: where the last fit begins

    def _to_file(self) -> State:
        pilot = {} if self.pilot is None else {"items": self.pilot.items, "penalty": self.pilot.penalty}
        return {"settings": self.settings._asdict(), "tried": self.tried, "n_users": self.n_users} | pilot

    @classmethod
    def _from_file(cls, state: State) -> Choice:
        pilot = Factors(state["items"], state["penalty"]) if "items" in state else None
        settings = {**state["settings"], "weights": tuple(state["settings"]["weights"])}
        return cls(Settings(**settings), state["tried"], state["n_users"], pilot)


@savable
@dataclass(frozen=True, eq=False)
class Ranking:
    """score(u, i) = intercept_i + |N(u)|^SCALE Σ_{j ∈ N(u), j ≠ i} pull[j, i] + weight · factors(u, i).

    ``pull`` (items × items) joins the boards, the item-to-item ridge and the random walk, all linear in the basket;
    where it would be too large, the boards stay as they are (``boards``), and there is neither ridge nor walk.

    Attributes
    ----------
    intercept : float32 (n_items,)
    pull : float32 (n_items, n_items) or None
    boards : the boards that ``pull`` does not hold, their weights already multiplied by the member's
    factors : (weight, Factors) or None
    """

    intercept: Floats
    pull: Floats | None
    boards: tuple[BasketBoard, ...]
    factors: tuple[float, Factors] | None

    def scorer(self, backend: str) -> Callable[[Baskets], Floats]:
        """A function from baskets to scores (n_users, n_items), float32; call it on a block of users at a time."""
        product = None if self.pull is None else device.product_with(self.pull, backend)

        def scores(baskets: Baskets) -> Floats:
            total = self._linear(baskets, product)
            total *= baskets.power(SCALE)[:, None].astype(np.float32)
            total += self.intercept
            if self.factors is not None:
                total += np.float32(self.factors[0]) * self.factors[1].scores(baskets)
            return total

        return scores

    def _linear(self, baskets: Baskets, product: Callable[[sparse.csr_array], Floats] | None) -> Floats:
        """What is linear in the basket: Σ_{j ∈ N(u), j ≠ i} pull[j, i]."""
        if product is not None:
            total = product(baskets.taken)
        else:
            total = np.zeros((baskets.n_users, baskets.n_items), dtype=np.float32)
        users, items = baskets.owners, baskets.taken.indices
        for board in self.boards:
            with one_blas_thread():
                total += (baskets.taken @ membership(board.labels, len(board.weights))).toarray() @ board.weights
            total[users, items] -= board.weights[board.labels[items], items]
        return total

    def shares(self, basket: Ints, targets: Ints) -> Floats:
        """What each item of one basket adds to the score of each target, (items of the basket, targets), float64."""
        m = len(self.intercept)
        if len(basket) == 0:
            return np.zeros((0, len(targets)))
        alone = Baskets.of(np.arange(len(basket)), basket, (len(basket), m))
        if self.pull is not None:
            found = self.pull[np.ix_(basket, targets)].astype(np.float64)
        else:
            found = self._linear(alone, None).astype(np.float64)[:, targets]
        found *= float(len(basket)) ** SCALE
        if self.factors is not None:
            found += self.factors[0] * self.factors[1].shares(basket, targets)
        return found


def default_settings(baskets: Taken) -> Settings:
    """Sizes by the number of interactions; the rest as measured on several tables."""
    frequent = int((baskets.popularity >= RARE).sum())
    return Settings(max(1, min(round(0.8 * sqrt(baskets.n_taken)), frequent // 2, MOST_CLUSTERS)))


def ndcg(scores: Floats, seen: sparse.csr_array, hidden: sparse.csr_array, at: int = AT) -> Floats:
    """NDCG@at of each user: Σ over hidden items in the first ``at`` of 1/log₂(place + 1), over the most it can be."""
    place = places(scores, seen, hidden)
    gains = np.where(place < at, 1.0 / np.log2(place + 2.0), 0.0)
    counts = np.diff(hidden.indptr)
    users = np.repeat(np.arange(len(counts)), counts)
    most = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, at + 2)))])
    result: Floats = np.bincount(users, gains, len(counts)) / np.maximum(most[np.minimum(counts, at)], 1e-9)
    return result


def climb(
    value: Callable[[float], float], start: float, factor: float, most: int = 5
) -> tuple[float, dict[str, float]]:
    """The best of start · factorⁿ, found by walking uphill from the start; and all that was tried."""
    tried = {0: value(start)}  # exponent: worth
    for direction in (1, -1):
        at = 0
        while len(tried) < most:
            at += direction
            tried[at] = value(start * factor**at)
            if tried[at] <= tried[at - direction]:
                break
        if at != direction:  # the first step was uphill: the other side is lower
            break
    best = max(tried, key=tried.__getitem__)
    return start * factor**best, {f"{start * factor**at:.4g}": worth for at, worth in tried.items()}


def once(make: Callable[Concatenate[Probe, P], T]) -> Callable[Concatenate[Probe, P], T]:
    """Remember what a probe has made of the same arguments."""

    def remembered(probe: Probe, /, *arguments: P.args, **named: P.kwargs) -> T:
        key = (make, *arguments, *named.items())
        if key not in probe.made:
            probe.made[key] = make(probe, *arguments, **named)
        return cast("T", probe.made[key])

    return remembered


class Probe:
    """What every member scores for some users on the most popular items, when a part of the baskets is hidden.

    Attributes
    ----------
    kept : what the members are fitted to
    users, probed : users with hidden items, up to ``most``, and the items
    seen, away : csr_array (users, probed), what the members know of these users, and what is hidden of them
    """

    def __init__(
        self, kept: Taken, hidden: Taken, probed: Ints, most: int, rng: np.random.Generator, backend: str
    ) -> None:
        self.kept, self.probed, self.rng, self.backend = kept, probed, rng, backend
        users = np.flatnonzero(hidden.sizes > 0)
        self.users = np.sort(rng.choice(users, min(len(users), most), replace=False))
        self.some, self.small = kept.of_users(self.users), kept.of_items(probed)
        self.seen, self.away = self.small.of_users(self.users).taken, hidden.of_users(self.users).taken
        self.pilots: dict[float, Factors] = {}
        self.made: dict[tuple[object, ...], object] = {}

    def _times(self, table: Floats) -> Floats:
        return device.product_with(table, self.backend)(self.seen)

    @once
    def factors(self, penalty: float) -> Floats:
        """The fit begins at the factors of the nearest penalty."""
        near = min(self.pilots, key=lambda p: abs(np.log(p / penalty)), default=None)
        start, sweeps = (None, PILOT_SWEEPS) if near is None else (self.pilots[near], FURTHER_SWEEPS)
        self.pilots[penalty] = fitted = fit_factors(self.kept, PILOT_FACTORS, penalty, sweeps, self.rng, start)
        with one_blas_thread():
            scores: Floats = fitted.users(self.some) @ fitted.items[self.probed].T
        return scores

    @once
    def equations(self, penalty: float, n_clusters: int, again: int) -> Equations:
        labels = cluster_items(self.pilots[penalty].items, self.kept.popularity, n_clusters, self.rng)
        return Equations.of(self.kept, labels, self.probed)

    @once
    def board(self, penalty: float, n_clusters: int, strength: float, again: int = 0) -> Floats:
        fitted = self.equations(penalty, n_clusters, again).solve(strength)
        rows = features(self.some, fitted.labels, len(fitted.weights))
        with one_blas_thread():
            scores: Floats = rows[:, :-1].toarray() @ fitted.weights + fitted.intercept
        return scores

    @once
    def groups(self, penalty: float, n_clusters: int) -> Ints:
        return cluster_items(self.pilots[penalty].items[self.probed], self.small.popularity, n_clusters, self.rng)

    @once
    def items(self, penalty: float, n_clusters: int, ridge: float, rho: float) -> Floats:
        return self._times(primal(self.small, self.groups(penalty, n_clusters), ridge, rho, self.backend))

    @once
    def paths(self) -> Floats:
        return walks(self.small, self.backend)

    @once
    def walk(self, beta: float) -> Floats:
        return self._times(walk_scores(self.paths(), self.small.popularity, beta))

    def members(self, chosen: Settings, names: tuple[str, ...]) -> dict[str, Floats]:
        """The scores of the members, scaled as they are weighed."""
        scale = (self.some.power(SCALE) / self.kept.power(SCALE).mean())[:, None].astype(np.float32)
        penalty, board = chosen.factor_penalty, (chosen.factor_penalty, chosen.n_clusters, chosen.board_penalty)
        parts = {"factors": self.factors(penalty)}  # the clusters of the others are made of them
        if "boards" in names:
            parts["boards"] = (self.board(*board, 0) + self.board(*board, 1)) / 2
        if "items" in names:
            parts["items"] = self.items(penalty, chosen.n_clusters, chosen.ridge, chosen.rho) * scale
        if "walk" in names:
            parts["walk"] = self.walk(chosen.walk) * scale
        return {name: part for name, part in parts.items() if name in names}


def choose(baskets: Taken, members: tuple[str, ...], rng: np.random.Generator, backend: str) -> Choice:
    """Hide a fifth of each user's items, and keep for each setting the value that ranks them best.

    Everything is measured by NDCG@20 of 2,000 users (up to 8,000 where each has few hidden items) on the 1,500 most
    popular items; penalties one after the other along a geometric grid, the members' weights last: from the best
    single member tenths move to the others while that helps by more than chance does.
    """
    kept, hidden = baskets.hide(rng)
    settings = default_settings(kept)
    probed = np.sort(np.argsort(-kept.popularity, kind="stable")[:PROBED_ITEMS])
    away = hidden.of_items(probed)
    n_users = int((away.sizes > 0).sum())
    if n_users < LEAST_HIDDEN:
        return Choice(_without(default_settings(baskets), members), {}, n_users)
    most = int(np.clip(ENOUGH_HIDDEN * n_users / away.sizes.sum(), PROBED_USERS, MOST_PROBED))
    probe = Probe(kept, away, probed, most, rng, backend)
    tried: dict[str, dict[str, float]] = {}
    if baskets.n_items > MOST_ITEMS:
        members = tuple(name for name in members if name not in ("items", "walk"))

    def each(scores: Floats) -> Floats:
        return ndcg(scores, probe.seen, probe.away)

    def search(name: str, scores: Callable[[float], Floats], factor: float, most: int = 5) -> Settings:
        best, tried[name] = climb(lambda x: float(each(scores(x)).mean()), getattr(settings, name), factor, most)
        return settings._replace(**{name: best})  # type: ignore[arg-type]  # names of numbers

    settings = search("factor_penalty", probe.factors, 1.6)
    penalty, n = settings.factor_penalty, settings.n_clusters
    pilot = probe.pilots[penalty]
    if "boards" in members:
        kinds = (n, n // 2) if n > 16 else (n,)
        sizes = {k: each(probe.board(penalty, k, settings.board_penalty)) for k in kinds}
        n = kinds[-1] if _better(sizes[kinds[-1]], sizes[n]) else n
        tried["n_clusters"] = {str(k): float(value.mean()) for k, value in sizes.items()}
        settings = search("board_penalty", lambda x: probe.board(penalty, n, x), 2.5, 4)._replace(n_clusters=n)
        probe.board(penalty, n, settings.board_penalty, 1)
    if "items" in members:
        settings, rho = search("ridge", lambda x: probe.items(penalty, n, x, 0.0), 2.5), settings.rho
        rhos = {x: float(each(probe.items(penalty, n, settings.ridge, x)).mean()) for x in (0.0, rho)}
        settings = settings._replace(rho=max(rhos, key=rhos.__getitem__))
        tried["rho"] = {str(x): value for x, value in rhos.items()}
    if "walk" in members:
        settings = search("walk", probe.walk, 1.5)
    every, last = [(probe.members(settings, members), probe.seen, probe.away)], probe
    for _ in range(next((repeats for most_taken, repeats in REPEATS if baskets.n_taken <= most_taken), 0)):
        kept, hidden = baskets.hide(rng)
        last = Probe(kept, hidden.of_items(probed), probed, most, rng, backend)
        every.append((last.members(settings, members), last.seen, last.away))
    scores, *known = zip(*every)
    seen, away = (sparse.vstack(parts, format="csr") for parts in known)
    parts = {name: np.concatenate([part[name] for part in scores]) for name in scores[0]}
    weights, tried["weights"] = _weigh(parts, lambda scores: ndcg(scores, seen, away))
    settings = settings._replace(weights=weights)
    # The clusters of the whole table are as many more as its interactions are.
    grown = settings.n_clusters / default_settings(kept).n_clusters * default_settings(baskets).n_clusters
    return Choice(settings._replace(n_clusters=max(1, round(grown))), tried, len(last.users), pilot)


def choose_dislike(
    baskets: Baskets, refused: Baskets, choice: Choice, n_boards: int, rng: np.random.Generator, backend: str
) -> tuple[float, dict[str, dict[str, float]]]:
    """How much of what refused items pull is subtracted: what ranks hidden items best, 0 unless it helps clearly."""
    kept, hidden = baskets.hide(rng)
    users = np.flatnonzero((hidden.sizes > 0) & (refused.sizes > 0))
    if len(users) < LEAST_HIDDEN:
        return 0.0, {}
    users = np.sort(rng.choice(users, min(len(users), PROBED_USERS), replace=False))
    ranking, _, _ = fit_ranking(kept, choice, n_boards, PILOT_FACTORS, rng, backend)
    scorer, mine, others = ranking.scorer(backend), kept.of_users(users), refused.of_users(users)
    scores, pulls = scorer(mine), scorer(others) - ranking.intercept
    seen = sparse.csr_array(mine.taken + others.taken)
    seen.sort_indices()
    found = {share: ndcg(scores - np.float32(share) * pulls, seen, hidden.of_users(users).taken) for share in DISLIKES}
    best = max(found, key=lambda share: float(found[share].mean()))
    tried = {"dislike": {str(share): float(value.mean()) for share, value in found.items()}}
    return (best if _better(found[best], found[0.0]) else 0.0), tried


def _without(settings: Settings, members: tuple[str, ...]) -> Settings:
    """The default weights of the members there are."""
    given = [w if name in members else 0.0 for name, w in zip(MEMBERS, settings.weights)]
    given = given if sum(given) else [float(name in members) for name in MEMBERS]
    return settings._replace(weights=tuple(w / sum(given) for w in given))


def _better(new: Floats, old: Floats, errors: float = 1.0) -> bool:
    """Whether the mean gain over users is above so many standard errors: the best of many is often best by chance."""
    gain = new - old
    return bool(gain.mean() > errors * gain.std() / sqrt(len(gain)))


def _weigh(parts: dict[str, Floats], each: Callable[[Floats], Floats]) -> tuple[tuple[float, ...], dict[str, float]]:
    """Weights in tenths, moved from member to member while that gains two standard errors.

    The search begins at the best single member, or at an even mixture without the walk where that gains as much: so the
    weights are drawn towards the best member, and a mixture that seems better by chance is not taken.
    """
    names = [name for name in MEMBERS if name in parts]
    tried: dict[tuple[int, ...], Floats] = {}
    mixed, weighed = np.empty_like(parts[names[0]]), np.empty_like(parts[names[0]])

    def value(tenths: tuple[int, ...]) -> float:
        if tenths not in tried:
            (first, t), *others = [(parts[name], np.float32(t / 10)) for t, name in zip(tenths, names) if t]
            np.multiply(first, t, out=mixed)
            for part, t in others:
                np.add(mixed, np.multiply(part, t, out=weighed), out=mixed)
            tried[tenths] = each(mixed)
        return float(tried[tenths].mean())

    begin = [tuple(10 * (j == i) for j in range(len(names))) for i in range(len(names))]
    mixable = [name for name in names if name != "walk"]
    even = dict(zip(mixable, {1: (10,), 2: (5, 5), 3: (4, 4, 2)}.get(len(mixable), ())))
    best = max(begin, key=value)
    if even:
        mixture = tuple(even.get(name, 0) for name in names)
        value(mixture)
        best = mixture if _better(tried[mixture], tried[best], CLEARLY) else best
    for _ in range(ROUNDS):
        near = [
            tuple(t - by * (j == a) + by * (j == b) for j, t in enumerate(best))
            for a in range(len(names)) for b in range(len(names)) for by in MOVES if a != b and best[a] >= by
        ]  # fmt: skip
        if not near:
            break
        other = max(near, key=value)
        if not _better(tried[other], tried[best], CLEARLY):
            break
        best = other
    weights = dict(zip(names, best))
    found = tuple(weights.get(name, 0) / 10 for name in MEMBERS)
    return found, {" ".join(map(str, t)): float(found.mean()) for t, found in tried.items()}


def fit_ranking(
    baskets: Taken, choice: Choice, n_boards: int, n_factors: int, rng: np.random.Generator, backend: str,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[Ranking, BasketBoard, Factors]:  # fmt: skip
    """All members on all interactions, the first board for people to read, and the factors that make the clusters."""
    settings = choice.settings
    by_boards, by_items, by_factors, by_walk = settings.weights
    n, m = baskets.n_users, baskets.n_items
    popularity = baskets.popularity
    sweeps = SWEEPS if choice.pilot is None else LAST_SWEEPS
    penalty, width = settings.factor_penalty, min(n_factors, n, m)
    kept = checkpoint.stage("factors").result(
        lambda: {"items": fit_factors(baskets, width, penalty, sweeps, rng, choice.pilot).items}, rng
    )
    factors = Factors(kept["items"], penalty)
    groups = [cluster_items(factors.items, popularity, settings.n_clusters, rng) for _ in range(max(n_boards, 1))]
    pull = np.zeros((m, m), dtype=np.float32) if m <= MOST_ITEMS else None
    if pull is not None and by_items:
        pull += np.float32(by_items / baskets.power(SCALE).mean()) * primal(
            baskets, groups[0], settings.ridge, settings.rho, backend
        )
    if by_walk and pull is not None:
        pull += np.float32(by_walk / baskets.power(SCALE).mean()) * walk_scores(
            walks(baskets, backend), popularity, settings.walk
        )
    intercept = np.zeros(m, dtype=np.float32)
    shown = fit_board(baskets, groups[0], settings.board_penalty)
    alone: list[BasketBoard] = []
    for t, labels in enumerate(groups if by_boards else []):
        board = fit_board(baskets, labels, settings.board_penalty) if t else shown
        share = np.float32(by_boards / n_boards)
        intercept += share * board.intercept
        if pull is None:
            alone.append(replace(board, weights=share * board.weights))
        else:
            scaled = share * board.weights
            for j, c in enumerate(board.labels):
                pull[j] += scaled[c]
    if pull is not None:
        np.fill_diagonal(pull, 0.0)  # an item is no reason for itself
    part = (by_factors, factors) if by_factors else None
    return Ranking(intercept, pull, tuple(alone), part), shown, factors
