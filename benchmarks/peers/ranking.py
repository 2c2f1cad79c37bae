"""What a user takes next: BasketRanker beside EASE, EDLAE, iALS, RP3beta, item-kNN and popularity, in one run.

A fifth of each user's items is hidden at random; recall and NDCG of the first 20 items not yet taken. Every method
chooses its settings on the same validation part: a fifth of each user's training items, the one that BasketRanker
hides inside its own fit. Each fit runs in a process of its own, for its seconds and memory. `rare` is the share of
hidden items of the rarest quarter (by popularity among hidden items) that are found. Certificates are paired:
1 − NDCG@20 of ours less the peer's, users in random order; below 0 proves ours better at 95 %.

The splits are drawn with seeds that no earlier script and no choice of a default had used when they were named here;
no default was changed after they had been seen. `ahead` compares BasketRanker with the best peer and with the best of
its own members, by the mean over the splits: the mean difference over users, its standard error over the splits (of
three differences) and over users (paired, of each split, averaged and divided by the root of the number of splits).

``--only ml100k`` measures one set and keeps the others; each says the seeds of its splits. Those of sets with the seeds
0 to 2 were looked at while defaults were chosen.
"""

from __future__ import annotations

import csv
import gzip
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from sklearn.utils import check_random_state

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, importable, load, machine, previous, versions, write
from gingham import BasketRanker, certify_ranking
from gingham.engine.threads import one_thread
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.kernels import best

FIGURES = {
    "NDCG@20 (ours)": "*/mean/BasketRanker/ndcg",
    "NDCG@20 (EASE)": "*/mean/EASE/ndcg",
    "NDCG@20 (iALS)": "*/mean/iALS/ndcg",
    "CPU seconds over EASE's": "*/mean/BasketRanker/cpu_over_ease",
}
AT = 20
SETS = ("ml1m", "ml100k", "foodmart", "completejourney", "epub", "anime")
FIRST_SPLIT, SPLITS = 918_273, 3
RIDGES = (20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
NEIGHBOURS = (20, 50, 100, 200)
ALS = [(128, reg, alpha) for reg in (10.0, 30.0, 60.0, 100.0, 200.0, 400.0) for alpha in (3.0, 10.0, 30.0, 60.0)]
WALKS = [(alpha, beta) for alpha in (0.6, 0.8, 1.0) for beta in (0.2, 0.4, 0.6, 0.8)]
DROPOUTS = (0.2, 0.33, 0.5)
LEAST = 5  # users of an item, and items of a user, where a set has many that occur once


def pairs_of(name, folder):
    """(user, item) of one set as codes, each once."""
    if name == "foodmart":
        found = load(folder, "foodmart_sales.npz")
        kept = (found["day"] >= 19980101) & (found["day"] < 19981201)
        columns = [np.unique(found[key][kept], return_inverse=True)[1] for key in ("customer_id", "product_id")]
    elif name in ("completejourney", "epub"):
        file, user, item = {
            "completejourney": ("completejourney_sample.csv.gz", "household_id", "product_id"),
            "epub": ("epub_sessions.csv.gz", "session", "doc"),
        }[name]
        with gzip.open(Path(folder) / file, "rt", encoding="utf-8", newline="") as lines:
            rows = {(row[user], row[item]) for row in csv.DictReader(lines)}
        columns = [np.unique(np.array(column), return_inverse=True)[1] for column in zip(*sorted(rows))]
        for _ in range(10):
            kept = np.logical_and(*(np.bincount(column)[column] >= LEAST for column in columns))
            columns = [np.unique(column[kept], return_inverse=True)[1] for column in columns]
    elif name == "anime":
        found = load(folder, "anime5k.npz")
        columns = [np.unique(found[key], return_inverse=True)[1] for key in ("history_rows", "history_cols")]
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


def edlae(train, part, seed):
    """EASE with dropout (Steck 2020): a ridge of p/(1 − p) times the popularity, and a constant."""

    def scores(taken, dropout, ridge):
        popular = np.asarray(taken.sum(axis=0)).ravel()
        table = ease_table(taken, ridge + dropout / (1 - dropout) * popular)
        return lambda rows: taken[rows] @ table

    tried = {(p, ridge): ndcg(scores(part[0], p, ridge), *part) for p in DROPOUTS for ridge in RIDGES[::2]}
    dropout, ridge = max(tried, key=tried.get)
    return {"dropout": dropout, "ridge": ridge}, lambda: scores(train.taken, dropout, ridge)


def rp3beta(train, part, seed):
    """Random walks of three steps (Paudel and others 2016), chosen over both exponents."""

    def scores(taken, setting):
        alpha, beta = setting
        users, popular = np.maximum(np.diff(taken.indptr), 1), np.maximum(np.asarray(taken.sum(axis=0)).ravel(), 1)
        to_items = sparse.diags_array(users**-alpha) @ taken
        table = (
            sparse.diags_array(popular**-alpha) @ (taken.T @ to_items) @ sparse.diags_array(popular**-beta)
        ).toarray()
        np.fill_diagonal(table, 0)
        return lambda rows: taken[rows] @ table

    tried = {setting: ndcg(scores(part[0], setting), *part) for setting in WALKS}
    setting = max(tried, key=tried.get)
    return dict(zip(("alpha", "beta"), setting)), lambda: scores(train.taken, setting)


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
    "RP3beta": rp3beta,
    "EASE": ease,
    "EDLAE": edlae,
    "iALS": ials,
    "BasketRanker": ours(),
    "boards only": ours(members=("boards",)),
    "item ridge only": ours(members=("items",)),
    "factors only": ours(members=("factors",)),
    "walk only": ours(members=("walk",)),
}


def top_of(model, train):
    """The lists of all users; one without training items (none here) has no list."""
    known = np.full((train.n_users, AT), -1, dtype=np.int64)
    known[model.users_] = model.top(model.users_, AT)
    return known


def warm_up():
    """Compile what a ranking needs."""
    warm = Baskets.of(*np.divmod(np.random.default_rng(0).permutation(60 * 80)[:1500], 80), (60, 80))
    BasketRanker(backend="compiled", random_state=0).fit(pairs(warm)).top([0], 3)


def work(name, train, seed, pipe):
    """One method on one split, in a process of its own. The clock of ours runs over its own choice of settings too."""
    with one_thread():
        method = METHODS[name]
        part = tuple(b.taken for b in validation_part(train, seed))
        found = {}
        if hasattr(method, "ours"):
            warm_up()
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


def fitted(method, baskets, split):
    """One method on what one split leaves to learn from."""
    return in_child(method, baskets.hide(np.random.default_rng(split))[0], split)


def one_split(baskets, split, results, at):
    """The figures of all methods on one split, and the paired certificates."""
    train, hidden = baskets.hide(np.random.default_rng(split))
    popular = train.popularity
    rare = popular <= np.quantile(popular[hidden.taken.indices], 0.25)
    rows, tops = {}, {}
    for name, found in results.items():
        tops[name] = found.pop("top")
        if "one_board" in found:
            tops["one readable board"] = found.pop("one_board")
        rows[name] = found
    own = dict(zip(("recall", "ndcg"), measures(tops["BasketRanker"], hidden.taken, rare)))
    for name, top in tops.items():
        recall, gain, hits = measures(top, hidden.taken, rare)
        rows.setdefault(name, {}).update(recall=float(recall.mean()), ndcg=float(gain.mean()), rare=hits)
        for key, theirs in (("recall", recall), ("ndcg", gain)):
            rows[name][f"{key}_ahead_se"] = float(np.std(own[key] - theirs) / np.sqrt(len(theirs)))
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
        for peer in ("EASE", "EDLAE", "RP3beta", "iALS", "item-kNN", "one readable board"):
            if peer in listed:
                rows["certificates"][f"against {peer}"] = compared(listed["BasketRanker"], listed[peer], away)
        print(at, split, rows["certificates"], flush=True)
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


def ahead(splits):
    """How far BasketRanker is ahead of the best peer and of its best member, by recall and by NDCG."""
    members = [name for name in splits[0] if name.endswith(" only")]
    peers = [name for name in splits[0] if name not in (*members, "BasketRanker", "one readable board", "certificates")]
    found = {}
    for others, names in (("peer", peers), ("member", members)):
        for key in ("recall", "ndcg"):
            best_one = max(names, key=lambda name: np.mean([s[name][key] for s in splits]))
            gains = [s["BasketRanker"][key] - s[best_one][key] for s in splits]
            of_users = [s[best_one][f"{key}_ahead_se"] for s in splits]
            found[f"best {others} by {key}"] = {
                "name": best_one, "ahead": float(np.mean(gains)),
                "se over splits": float(np.std(gains, ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else None,
                "se over users": float(np.mean(of_users) / np.sqrt(len(of_users))),
            }  # fmt: skip
    return found


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default="all")
        parser.add_argument("--jobs", type=int, default=1, help="fits side by side")

    args = arguments(__doc__ or "", "peers_ranking", options)
    methods = [name for name in METHODS if name != "iALS" or importable("ranking", "implicit")]
    results = previous(args)
    names = [name for name in SETS if (args.only == "all" or name in args.only.split(",")) and (
        not args.quick or name == "ml100k")]  # fmt: skip
    sets = {name: pairs_of(name, args.data) for name in names}
    settings = {"ridges": RIDGES, "neighbours": NEIGHBOURS, "als": ALS, "walks": WALKS, "dropouts": DROPOUTS}
    first = FIRST_SPLIT + args.seed
    seeds = range(first, first + (1 if args.quick else SPLITS))
    longest = sorted(methods, key=lambda name: name not in ("iALS", "EDLAE", "EASE", "RP3beta", "BasketRanker"))
    with one_thread():  # compiled here, for all processes that follow
        warm_up()
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("fork")) as pool:
        running = {
            (name, split, method): pool.submit(fitted, method, sets[name], split)
            for method in longest for name in sorted(names, key=lambda name: -sets[name].taken.nnz) for split in seeds
        }  # fmt: skip
        judged = {
            name: [
                pool.submit(one_split, baskets, split, {m: running[name, split, m].result() for m in methods}, name)
                for split in seeds
            ]
            for name, baskets in sets.items()
        }
        for name, baskets in sets.items():
            measured = [one.result() for one in judged[name]]
            results[name] = {
                "users": baskets.n_users, "items": baskets.n_items, "interactions": int(baskets.taken.nnz),
                "seeds": list(seeds), "mean": summary(measured), "ahead": ahead(measured), "splits": measured,
                "measured with": versions(["implicit"]) | machine(),  # other sets may be of another run
            }  # fmt: skip
            write(args, {"at": AT, "hidden": 0.2, "jobs": args.jobs} | settings, results, ["implicit"])


if __name__ == "__main__":
    main()
