"""BasketRanker on 20 million interactions of 140,000 users and 27,000 items: seconds, memory, what it finds.

Planted with heavy tails: 60 tastes, each with items of its own whose popularity falls as 1/rank; a user has three
tastes and a basket of log-normal size, and takes 15 % of it from what everybody takes. A fifth of the items of 2000
users is hidden; NDCG@20 on it beside popularity and beside lists that know the tastes (their most popular items).
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, clock, write
from gingham import BasketRanker
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.fit import ndcg

FIGURES = {
    "CPU seconds of the fit": "fit/cpu_s",
    "peak GB": "peak_gb",
    "NDCG@20": "ndcg/ours",
    "knowing the tastes": "ndcg/tastes",
}
TASTES = 60


def planted(n_users, n_items, n, seed):
    """Pairs (user, item), the taste of each item and the tastes of each user."""
    rng = np.random.default_rng(seed)
    taste = rng.permutation(np.arange(n_items) % TASTES)
    order = np.argsort(taste, kind="stable")
    starts = np.searchsorted(taste[order], np.arange(TASTES + 1))
    mine = rng.integers(0, TASTES, (n_users, 3))
    sizes = rng.lognormal(0.0, 0.9, n_users)
    users = np.repeat(np.arange(n_users), np.maximum(rng.poisson(sizes / sizes.sum() * n * 1.6), 5))
    wanted = mine[users, rng.integers(0, 3, len(users))]
    anybody = rng.random(len(users)) < 0.15
    wanted[anybody] = rng.integers(0, TASTES, anybody.sum())
    width = np.diff(starts)[wanted]
    # 1/rank within the taste, by inversion: rank = width^U − 1.
    rank = np.minimum((width.astype(float) ** rng.random(len(users))).astype(np.int64), width) - 1
    codes = np.unique(users * n_items + order[starts[wanted] + rank])
    codes = np.sort(rng.permutation(codes)[:n])
    return np.column_stack(np.divmod(codes, n_items)), taste, mine


def main() -> None:
    args = arguments(__doc__ or "", "speed_ranking_scale")
    n_users, n_items, n = (5_000, 2_000, 300_000) if args.quick else (140_000, 27_000, 20_000_000)
    X, taste, mine = planted(n_users, n_items, n, args.seed)
    whole = Baskets.of(X[:, 0], X[:, 1], (n_users, n_items))
    hidden = whole.hide(np.random.default_rng(args.seed))[1]
    tested = np.sort(np.random.default_rng(1).choice(np.flatnonzero(hidden.sizes), 2000, replace=False))
    users = np.repeat(np.arange(n_users), np.diff(whole.taken.indptr))
    gone = np.repeat(tested, np.diff(hidden.taken[tested].indptr)), hidden.taken[tested].indices
    lost = np.isin(users * n_items + whole.taken.indices, gone[0] * n_items + gone[1])
    pairs = np.column_stack([users, whole.taken.indices])[~lost]
    del whole
    small = planted(200, 100, 3000, 0)[0]
    BasketRanker(backend="compiled", random_state=0).fit(small).top([0], 3)  # compiled before the clock runs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    results: dict[str, object] = {"interactions": len(pairs), "users": n_users, "items": n_items, "fit": {}, "top": {}}
    with clock(results["fit"]):
        model = BasketRanker(backend="compiled", random_state=args.seed).fit(pairs)
    results["selection"] = model.selection_
    print(results, flush=True)
    start = time.perf_counter()
    model.top(model.users_[np.arange(6000) % len(model.users_)], 20)
    results["top"]["of_6000_users_wall_s"] = time.perf_counter() - start
    results["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    results["before_the_fit_gb"] = before
    results["ndcg"] = {"ours": model.score(np.column_stack(gone))}
    popular = model.baskets_.popularity
    codes = np.searchsorted(model.items_, np.arange(n_items))
    there = np.isin(np.arange(n_items), model.items_)
    away = hidden.taken[tested]
    for name in ("popularity", "tastes"):
        values = []
        for a in range(0, len(tested), 500):
            rows = tested[a : a + 500]
            scores = np.tile(np.where(there, popular[np.minimum(codes, len(popular) - 1)], 0.0), (len(rows), 1))
            if name == "tastes":
                scores = scores * (1 + 20 * sum(taste[None, :] == mine[rows][:, [t]] for t in range(3)))
            seen = Baskets.of(*_pairs_of(pairs, rows), (len(rows), n_items)).taken
            values.append(ndcg(scores, seen, away[a : a + 500]))
        results["ndcg"][name] = float(np.concatenate(values).mean())
    print(results["ndcg"], flush=True)
    write(args, {"tastes": TASTES}, results)


def _pairs_of(pairs, rows):
    low, high = np.searchsorted(pairs[:, 0], rows), np.searchsorted(pairs[:, 0], rows, side="right")
    users = np.repeat(np.arange(len(rows)), high - low)
    return users, np.concatenate([pairs[a:b, 1] for a, b in zip(low, high)])


if __name__ == "__main__":
    main()
