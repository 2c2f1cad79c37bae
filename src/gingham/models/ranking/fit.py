"""Fitting a ranking: every setting is chosen once, on items that are hidden from the fit, then all data is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gingham.arrays import Floats, Ints
from gingham.engine.threads import one_blas_thread
from gingham.models.ranking import device
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.boards import SCALE, BasketBoard, Equations, features, fit_board
from gingham.models.ranking.clusters import RARE, cluster_items
from gingham.models.ranking.factors import Factors, fit_factors
from gingham.models.ranking.item_ridge import primal
from gingham.models.ranking.kernels import places
from gingham.models.ranking.walk import walk_scores, walks
from gingham.storage import savable

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
FEW_TAKEN, REPEATS = 500_000, 3  # interactions up to which weights are judged on further hidden parts
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
        users = np.repeat(np.arange(baskets.n_users), np.diff(baskets.taken.indptr))
        items = baskets.taken.indices
        for board in self.boards:
            members = sparse.csr_array(
                (np.ones(len(board.labels), np.float32), board.labels, np.arange(len(board.labels) + 1)),
                shape=(len(board.labels), len(board.weights)),
            )
            with one_blas_thread():
                total += (baskets.taken @ members).toarray() @ board.weights
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


def default_settings(baskets: Baskets) -> Settings:
    """Sizes by the number of interactions; the rest as measured on several tables."""
    frequent = int((baskets.popularity >= RARE).sum())
    return Settings(max(1, min(round(0.8 * sqrt(baskets.taken.nnz)), frequent // 2, MOST_CLUSTERS)))


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


def choose(baskets: Baskets, members: tuple[str, ...], rng: np.random.Generator, backend: str) -> Choice:
    """Hide a fifth of each user's items, and keep for each setting the value that ranks them best.

    Everything is measured by NDCG@20 of 2,000 users (up to 8,000 where each has few hidden items) on the 1,500 most
    popular items; penalties one after the other along a geometric grid, the members' weights last: from the best
    single member tenths move to the others while that helps by more than chance does.
    """
    kept, hidden = baskets.hide(rng)
    settings = default_settings(kept)
    probed = np.sort(np.argsort(-kept.popularity, kind="stable")[:PROBED_ITEMS])
    away = hidden.of_items(probed)
    users = np.flatnonzero(away.sizes > 0)
    if len(users) < LEAST_HIDDEN:
        return Choice(_without(default_settings(baskets), members), {}, len(users))
    wanted = int(np.clip(ENOUGH_HIDDEN * len(users) / away.sizes.sum(), PROBED_USERS, MOST_PROBED))
    users = np.sort(rng.choice(users, min(len(users), wanted), replace=False))
    small = kept.of_items(probed)
    seen, away = small.of_users(users).taken, away.of_users(users).taken
    some = kept.of_users(users)
    tried: dict[str, dict[str, float]] = {}

    def each(scores: Floats) -> Floats:
        return ndcg(scores, seen, away)

    def worth(scores: Floats) -> float:
        return float(each(scores).mean())

    parts: dict[str, Floats] = {}
    found: dict[float, tuple[Factors, Floats]] = {}

    def factored(penalty: float) -> float:
        near = min(found, key=lambda p: abs(np.log(p / penalty)), default=None)
        start = None if near is None else found[near][0]
        fitted = fit_factors(
            kept, PILOT_FACTORS, penalty, PILOT_SWEEPS if start is None else FURTHER_SWEEPS, rng, start
        )
        with one_blas_thread():
            found[penalty] = fitted, fitted.users(some) @ fitted.items[probed].T
        return worth(found[penalty][1])

    penalty, tried["factor_penalty"] = climb(factored, settings.factor_penalty, 1.6)
    settings = settings._replace(factor_penalty=penalty)
    factors, parts["factors"] = found[penalty]
    popularity = kept.popularity
    equations: dict[tuple[int, int], Equations] = {}

    def board(n_clusters: int, strength: float, again: int = 0) -> Floats:
        if (n_clusters, again) not in equations:
            labels = cluster_items(factors.items, popularity, n_clusters, rng)
            equations[n_clusters, again] = Equations.of(kept, labels, probed)
        fitted = equations[n_clusters, again].solve(strength)
        rows = features(some, fitted.labels, len(fitted.weights))
        with one_blas_thread():
            scores: Floats = rows[:, :-1].toarray() @ fitted.weights + fitted.intercept
        return scores

    if "boards" in members:
        kinds = {settings.n_clusters: board(settings.n_clusters, settings.board_penalty)}
        if settings.n_clusters > 16:
            kinds[settings.n_clusters // 2] = board(settings.n_clusters // 2, settings.board_penalty)
        sizes = {k: each(scores) for k, scores in kinds.items()}
        for k, found_there in sizes.items():
            if _better(found_there, sizes[settings.n_clusters]):
                settings = settings._replace(n_clusters=k)
        tried["n_clusters"] = {str(k): float(value.mean()) for k, value in sizes.items()}
        boards = {settings.board_penalty: kinds[settings.n_clusters]}

        def boarded(strength: float) -> float:
            if strength not in boards:
                boards[strength] = board(settings.n_clusters, strength)
            return worth(boards[strength])

        strength, tried["board_penalty"] = climb(boarded, settings.board_penalty, 2.5, 4)
        settings = settings._replace(board_penalty=strength)
        parts["boards"] = (boards[strength] + board(settings.n_clusters, strength, 1)) / 2
    scale = (some.power(SCALE) / kept.power(SCALE).mean())[:, None].astype(np.float32)
    if "items" in members and baskets.n_items <= MOST_ITEMS:
        groups = cluster_items(factors.items[probed], popularity[probed], settings.n_clusters, rng)
        tables: dict[tuple[float, float], Floats] = {}

        def ridged(strength: float, rho: float = 0.0) -> float:
            tables[strength, rho] = device.product_with(primal(small, groups, strength, rho, backend), backend)(seen)
            return worth(tables[strength, rho])

        strength, tried["ridge"] = climb(ridged, settings.ridge, 2.5)
        rhos = {0.0: tried["ridge"][f"{strength:.4g}"], settings.rho: ridged(strength, settings.rho)}
        settings = settings._replace(ridge=strength, rho=max(rhos, key=rhos.__getitem__))
        tried["rho"] = {str(rho): value for rho, value in rhos.items()}
        parts["items"] = tables[strength, settings.rho] * scale
    if "walk" in members and baskets.n_items <= MOST_ITEMS:
        paths, walked_to = walks(small, backend), {}

        def walking(beta: float) -> float:
            table = walk_scores(paths, small.popularity, beta)
            walked_to[beta] = device.product_with(table, backend)(seen)
            return worth(walked_to[beta])

        beta, tried["walk"] = climb(walking, settings.walk, 1.5)
        settings = settings._replace(walk=beta)
        parts["walk"] = walked_to[beta] * scale
    if "factors" not in members:
        del parts["factors"]
    for _ in range(REPEATS if baskets.taken.nnz <= FEW_TAKEN else 0):  # weights need more users than there are
        kept, hidden = baskets.hide(rng)
        hidden = hidden.of_items(probed)
        users = np.flatnonzero(hidden.sizes > 0)
        users = np.sort(rng.choice(users, min(len(users), wanted), replace=False))
        more = _members(kept, users, probed, settings, tuple(parts), rng, backend)
        parts = {name: np.concatenate([part, more[name]]) for name, part in parts.items()}
        seen = sparse.vstack([seen, kept.of_users(users).of_items(probed).taken], format="csr")
        away = sparse.vstack([away, hidden.of_users(users).taken], format="csr")
    weights, tried["weights"] = _weigh(parts, each)
    settings = settings._replace(weights=weights)
    # The clusters of the whole table are as many more as its interactions are.
    grown = settings.n_clusters / default_settings(kept).n_clusters * default_settings(baskets).n_clusters
    return Choice(settings._replace(n_clusters=max(1, round(grown))), tried, len(users), factors)


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


def _members(
    kept: Baskets, users: Ints, probed: Ints, settings: Settings, names: tuple[str, ...], rng: np.random.Generator,
    backend: str,
) -> dict[str, Floats]:  # fmt: skip
    """What each member scores for some users on the probed items, all settings but the weights chosen."""
    factors = fit_factors(kept, PILOT_FACTORS, settings.factor_penalty, PILOT_SWEEPS, rng)
    some, small = kept.of_users(users), kept.of_items(probed)
    found: dict[str, Floats] = {}
    seen = small.of_users(users).taken
    scale = (some.power(SCALE) / kept.power(SCALE).mean())[:, None].astype(np.float32)
    with one_blas_thread():
        if "factors" in names:
            found["factors"] = factors.users(some) @ factors.items[probed].T
        if "boards" in names:
            found["boards"] = np.zeros((len(users), len(probed)), dtype=np.float32)
            for _ in range(2):
                labels = cluster_items(factors.items, kept.popularity, settings.n_clusters, rng)
                board = fit_board(kept, labels, settings.board_penalty, probed)
                rows = features(some, labels, len(board.weights))[:, :-1].toarray()
                found["boards"] += (rows @ board.weights + board.intercept) / 2
    if "items" in names:
        groups = cluster_items(factors.items[probed], small.popularity, settings.n_clusters, rng)
        table = primal(small, groups, settings.ridge, settings.rho, backend)
        found["items"] = device.product_with(table, backend)(seen) * scale
    if "walk" in names:
        table = walk_scores(walks(small, backend), small.popularity, settings.walk)
        found["walk"] = device.product_with(table, backend)(seen) * scale
    return found


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
    baskets: Baskets, choice: Choice, n_boards: int, n_factors: int, rng: np.random.Generator, backend: str
) -> tuple[Ranking, BasketBoard, Factors]:
    """All members on all interactions, the first board for people to read, and the factors that make the clusters."""
    settings = choice.settings
    by_boards, by_items, by_factors, by_walk = settings.weights
    n, m = baskets.n_users, baskets.n_items
    popularity = baskets.popularity
    sweeps = SWEEPS if choice.pilot is None else LAST_SWEEPS
    factors = fit_factors(baskets, min(n_factors, n, m), settings.factor_penalty, sweeps, rng, choice.pilot)
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
    kept: list[BasketBoard] = []
    for t, labels in enumerate(groups if by_boards else []):
        board = fit_board(baskets, labels, settings.board_penalty) if t else shown
        share = np.float32(by_boards / n_boards)
        intercept += share * board.intercept
        if pull is None:
            kept.append(replace(board, weights=share * board.weights))
        else:
            scaled = share * board.weights
            for j, c in enumerate(board.labels):
                pull[j] += scaled[c]
    if pull is not None:
        np.fill_diagonal(pull, 0.0)  # an item is no reason for itself
    part = (by_factors, factors) if by_factors else None
    return Ranking(intercept, pull, tuple(kept), part), shown, factors
