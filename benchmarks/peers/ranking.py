"""What a user takes next: BasketRanker beside EASE, iALS, item-kNN, popularity and co-occurrence, in one run.

A fifth of each user's items is hidden at random; recall and NDCG of the first 20 items not yet taken. Every method
chooses its settings on the same validation part: a fifth of each user's training items, the one that BasketRanker
hides inside its own fit. Each fit runs in a process of its own, for its seconds and memory. `rare` is the share of
hidden items of the rarest quarter (by popularity among hidden items) that are found. Certificates are paired:
1 − NDCG@20 of ours less the peer's, users in random order; below 0 proves ours better at 95 %.

``--only ml100k`` measures one set and keeps the others; ``--board`` measures the readable board alone again.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from sklearn.utils import check_random_state

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, importable, load, previous, write
from gingham import BasketRanker, CoOccurrenceClustering, certify_ranking
from gingham.engine.threads import one_thread
from gingham.models.counts.fit import smoothed_lift
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.kernels import best

FIGURES = {
    "NDCG@20 (ours)": "*/mean/BasketRanker/ndcg",
    "NDCG@20 (EASE)": "*/mean/EASE/ndcg",
    "NDCG@20 (iALS)": "*/mean/iALS/ndcg",
    "CPU seconds over EASE's": "*/mean/BasketRanker/cpu_over_ease",
}
AT = 20
SETS = {"ml1m": 3, "ml100k": 5, "foodmart": 3}
RIDGES = (20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
NEIGHBOURS = (20, 50, 100, 200)
ALS = [(128, reg, alpha) for reg in (10.0, 30.0, 60.0, 100.0, 200.0, 400.0) for alpha in (3.0, 10.0, 30.0, 60.0)]
SIZES = (40, 80, 120)


def pairs_of(name, folder):
    """(user, item) of one set as codes, each once."""
    if name == "foodmart":
        found = load(folder, "foodmart_sales.npz")
        kept = (found["day"] >= 19980101) & (found["day"] < 19981201)
        columns = [np.unique(found[key][kept], return_inverse=True)[1] for key in ("customer_id", "product_id")]
    else:
        found = load(folder, f"{name}.npz")
        kept = found["vals"] >= 4
        columns = [np.unique(found[key][kept], return_inverse=True)[1] for key in ("rows", "cols")]
    users, items = columns
    return Baskets.of(users, items, (int(users.max()) + 1, int(items.max()) + 1))


def pairs(baskets):
    return np.column_stack(
        [np.repeat(np.arange(baskets.n_users), np.diff(baskets.taken.indptr)), baskets.taken.indices]
    )


def validation_part(train, seed):
    """The part that BasketRanker(random_state=seed) hides inside its fit."""
    first = np.random.SeedSequence(int(check_random_state(seed).randint(2**31 - 1))).spawn(3)[0]
    return train.hide(np.random.default_rng(first))


def lists(scores, taken):
    """The first items of each user, from a function of a range of users that returns their scores."""
    found = []
    for a in range(0, taken.shape[0], 1000):
        rows = slice(a, min(a + 1000, taken.shape[0]))
        table = np.array(scores(rows), dtype=np.float32)
        mine = taken[rows]
        table[np.repeat(np.arange(table.shape[0]), np.diff(mine.indptr)), mine.indices] = -np.inf
        found.append(best(table, AT))
    return np.concatenate(found)


def measures(top, hidden, rare):
    """Recall, NDCG of each user with hidden items, and hits and number of rare hidden items."""
    users = np.flatnonzero(np.diff(hidden.indptr))
    discount = 1 / np.log2(np.arange(2, AT + 2))
    most = np.cumsum(discount)
    wanted = np.zeros(hidden.shape[1], dtype=bool)
    recall, gain, found, there = [], [], 0, 0
    for u in users:
        mine = hidden.indices[hidden.indptr[u] : hidden.indptr[u + 1]]
        wanted[mine] = True
        hit = wanted[top[u]] & (top[u] >= 0)
        recall.append(hit.sum() / len(mine))
        gain.append(hit @ discount / most[min(len(mine), AT) - 1])
        found += int((hit & rare[top[u]]).sum())
        there += int(rare[mine].sum())
        wanted[mine] = False
    return np.array(recall), np.array(gain), found / max(there, 1)


def ndcg(scores, kept, hidden):
    return float(measures(lists(scores, kept), hidden, np.zeros(hidden.shape[1], dtype=bool))[1].mean())


def popularity(train, part, seed):
    counts = np.asarray(train.taken.sum(axis=0)).ravel()
    return {}, lambda: lambda rows: np.tile(counts, (rows.stop - rows.start, 1))


def ease_table(taken, ridge):
    system = (taken.T @ taken).toarray()
    at = np.diag_indices(len(system))
    system[at] += ridge
    lower, _ = lapack.spotrf(system.T, lower=1, overwrite_a=1)
    inverse, _ = lapack.spotri(lower, lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    table = -inverse / np.diag(inverse)
    table[at] = 0
    return table


def ease(train, part, seed):
    def scores(taken, ridge):
        table = ease_table(taken, ridge)
        return lambda rows: taken[rows] @ table

    tried = {ridge: ndcg(scores(part[0], ridge), *part) for ridge in RIDGES}
    ridge = max(tried, key=tried.get)
    return {"ridge": ridge}, lambda: scores(train.taken, ridge)


def item_knn(train, part, seed):
    def similar(taken, k):
        square = (taken.T @ taken).toarray()
        length = np.sqrt(np.maximum(np.diag(square), 1))
        square /= length[:, None] * length
        np.fill_diagonal(square, 0)
        if k < len(square):
            least = np.partition(square, -k, axis=0)[-k]
            square[square < least] = 0
        return lambda rows: taken[rows] @ square

    tried = {k: ndcg(similar(part[0], k), *part) for k in NEIGHBOURS}
    k = max(tried, key=tried.get)
    return {"neighbours": k}, lambda: similar(train.taken, k)


def ials(train, part, seed):
    from implicit.als import AlternatingLeastSquares

    def scores(taken, setting):
        factors, reg, alpha = setting
        model = AlternatingLeastSquares(factors=factors, regularization=reg, alpha=alpha, iterations=15, num_threads=1,
                                        random_state=seed, use_gpu=False)  # fmt: skip
        model.fit(sparse.csr_matrix(taken), show_progress=False)
        users, items = np.asarray(model.user_factors), np.asarray(model.item_factors)
        return lambda rows: users[rows] @ items.T

    tried = {setting: ndcg(scores(part[0], setting), *part) for setting in ALS}
    best_one = max(tried, key=tried.get)
    for factors in (64, 256):
        setting = (factors, *best_one[1:])
        tried[setting] = ndcg(scores(part[0], setting), *part)
    setting = max(tried, key=tried.get)
    chosen = dict(zip(("factors", "regularization", "alpha"), setting))
    return chosen, lambda: scores(train.taken, setting)


def cooccurrence(train, part, seed):
    def scores(taken, size, members):
        share = np.asarray(taken.sum(axis=0)).ravel() / taken.sum()
        # Items and users that the part never saw have no cluster; they keep the score 0.
        rows_kept, kept = np.flatnonzero(np.diff(taken.indptr)), np.flatnonzero(share)
        dense = np.zeros(taken.shape, dtype=np.float32)
        for member in range(members):
            model = CoOccurrenceClustering(size, beta=0.5, start="profiles", n_init=1, max_iter=8, tol=5e-3,
                                           random_state=100 * seed + member).fit(taken[rows_kept][:, kept])  # fmt: skip
            lift = smoothed_lift(model.blocks_).astype(np.float32)
            dense[np.ix_(rows_kept, kept)] += lift[model.row_labels_][:, model.column_labels_]
        dense *= share
        return lambda rows: dense[rows]

    tried = {size: ndcg(scores(part[0], size, 1), *part) for size in SIZES}
    size = max(tried, key=tried.get)
    return {"size": size, "members": 8}, lambda: scores(train.taken, size, 8)


def ours(**settings):
    def run(train, part, seed):
        def fit():
            model = BasketRanker(backend="compiled", random_state=seed, **settings).fit(pairs(train))
            run.model = model
            return model

        return {}, fit

    run.ours = True
    return run


METHODS = {
    "popularity": popularity,
    "item-kNN": item_knn,
    "co-occurrence": cooccurrence,
    "EASE": ease,
    "iALS": ials,
    "BasketRanker": ours(),
    "boards only": ours(members=("boards",)),
    "item ridge only": ours(members=("items",)),
    "factors only": ours(members=("factors",)),
}


def top_of(model, train):
    """The lists of all users; one without training items (none here) has no list."""
    known = np.full((train.n_users, AT), -1, dtype=np.int64)
    known[model.users_] = model.top(model.users_, AT)
    return known


def work(name, train, seed, pipe):
    """One method on one split, in a process of its own. The clock of ours runs over its own choice of settings too."""
    with one_thread():
        method = METHODS[name]
        warm = Baskets.of(*np.divmod(np.random.default_rng(0).permutation(60 * 80)[:1500], 80), (60, 80))
        part = tuple(b.taken for b in validation_part(train, seed))
        found = {}
        if hasattr(method, "ours"):
            BasketRanker(backend="compiled", random_state=0).fit(pairs(warm)).top([0], 3)
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cpu = time.process_time()
        chosen, last = method(train, part, seed)
        found["choosing_cpu_s"] = time.process_time() - cpu
        cpu = time.process_time()
        result = last()
        found["cpu_s"] = time.process_time() - cpu
        if hasattr(method, "ours"):
            chosen = result.selection_["settings"]
            users = result.users_[np.arange(6000) % len(result.users_)]
            times = []
            for _ in range(3):
                start, cpu = time.perf_counter(), time.process_time()
                result.top(users, AT)
                times.append((time.perf_counter() - start, time.process_time() - cpu))
            found["top_of_6000_wall_s"], found["top_of_6000_cpu_s"] = (min(t) for t in zip(*times))
            if name == "BasketRanker":
                where = np.zeros((train.n_users, train.n_items), dtype=np.float32)
                where[np.ix_(result.users_, result.items_)] = result.board_scores(result.users_)
                found["one_board"] = lists(lambda rows: where[rows], train.taken)
            result = top_of(result, train)
        else:
            result = lists(result, train.taken)
        found |= {"chosen": chosen, "top": result}
        found["peak_gb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1e6
        pipe.send(found)


def in_child(name, train, seed):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(name, train, seed, there))
    child.start()
    there.close()
    try:
        found = here.recv()
    except EOFError:
        raise SystemExit(f"{name} failed.") from None
    child.join()
    return found


def one_split(baskets, split, methods, at):
    train, hidden = baskets.hide(np.random.default_rng(split))
    popular = train.popularity
    rare = popular <= np.quantile(popular[hidden.taken.indices], 0.25)
    rows, tops = {}, {}
    for name in methods:
        found = in_child(name, train, split)
        tops[name] = found.pop("top")
        if "one_board" in found:
            tops["one readable board"] = found.pop("one_board")
        rows[name] = found
    for name, top in tops.items():
        recall, gain, hits = measures(top, hidden.taken, rare)
        rows.setdefault(name, {}).update(recall=float(recall.mean()), ndcg=float(gain.mean()), rare=hits)
        print(
            at,
            split,
            name,
            {k: v for k, v in rows[name].items() if k != "chosen"},
            rows[name].get("chosen"),
            flush=True,
        )
    away = pairs(hidden)
    listed = {name: dict(enumerate(top.tolist())) for name, top in tops.items()}
    if "BasketRanker" in listed:
        miss = certify_ranking(listed["BasketRanker"], away, at=AT)
        rows["certificates"] = {"miss rate": {"value": miss.value, "empirical": miss.empirical}}
        for peer in ("EASE", "iALS", "item-kNN", "one readable board"):
            if peer in listed:
                rows["certificates"][f"against {peer}"] = compared(listed["BasketRanker"], listed[peer], away)
        print(at, split, rows["certificates"], flush=True)
    return rows


def board_anew(baskets, split, rows):
    """The same rows with the readable board measured again: it is made from the fit, so nothing else changes."""
    train, hidden = baskets.hide(np.random.default_rng(split))
    popular = train.popularity
    rare = popular <= np.quantile(popular[hidden.taken.indices], 0.25)
    found = in_child("BasketRanker", train, split)
    recall, gain, hits = measures(found["top"], hidden.taken, rare)
    if not np.isclose(gain.mean(), rows["BasketRanker"]["ndcg"], rtol=1e-5):  # results are kept with six digits
        raise SystemExit(f"Split {split}: the ranking itself has changed; measure all methods again.")
    recall, gain, hits = measures(found["one_board"], hidden.taken, rare)
    rows["one readable board"] = {"recall": float(recall.mean()), "ndcg": float(gain.mean()), "rare": hits}
    listed = [dict(enumerate(found[name].tolist())) for name in ("top", "one_board")]
    rows["certificates"]["against one readable board"] = compared(*listed, pairs(hidden))
    print(split, rows["one readable board"], flush=True)
    return rows


def compared(ours, theirs, away):
    """Both paired certificates of NDCG."""
    one, two = (certify_ranking(a, away, at=AT, against=b, measure="ndcg") for a, b in ((ours, theirs), (theirs, ours)))
    return {
        "ours less theirs at most": one.value, "theirs less ours at most": two.value,
        "empirical": one.empirical, "ours proved better": one.better, "theirs proved better": two.better,
    }  # fmt: skip


def summary(splits):
    """Means over the splits, with the standard deviation of NDCG and recall."""
    result = {}
    for name in splits[0]:
        if name == "certificates":
            continue
        keys = [k for k, v in splits[0][name].items() if isinstance(v, float)]
        result[name] = {k: float(np.mean([s[name][k] for s in splits])) for k in keys}
        for k in ("ndcg", "recall"):
            result[name][f"{k}_sd"] = float(np.std([s[name][k] for s in splits], ddof=1)) if len(splits) > 1 else 0.0
    if "EASE" in result and "BasketRanker" in result:
        result["BasketRanker"]["cpu_over_ease"] = result["BasketRanker"]["cpu_s"] / result["EASE"]["cpu_s"]
        board = result.get("one readable board")
        if board:
            board["ndcg_over_ease"] = board["ndcg"] / result["EASE"]["ndcg"]
    return result


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default="all")
        parser.add_argument("--board", action="store_true", help="measure the readable board again, nothing else")

    args = arguments(__doc__ or "", "peers_ranking", options)
    methods = [name for name in METHODS if name != "iALS" or importable("ranking", "implicit")]
    results = previous(args)
    for name, n_splits in SETS.items():
        if args.only not in ("all", name) or (args.quick and name != "ml100k"):
            continue
        baskets = pairs_of(name, args.data)
        known = results.get(name, {}).get("splits", [])
        splits = [
            board_anew(baskets, split, known[split - args.seed])
            if args.board
            else one_split(baskets, split, methods, name)
            for split in range(args.seed, args.seed + (1 if args.quick else n_splits))
        ]
        results[name] = {
            "users": baskets.n_users, "items": baskets.n_items, "interactions": int(baskets.taken.nnz),
            "mean": summary(splits), "splits": splits,
        }  # fmt: skip
        write(args, {"at": AT, "hidden": 0.2, "ridges": RIDGES, "neighbours": NEIGHBOURS, "als": ALS, "sizes": SIZES},
              results, ["implicit"])  # fmt: skip


if __name__ == "__main__":
    main()
