"""Items that nobody has taken yet, ranked by tables about items; dislikes; lists that obey rules, and how fast.

*New items*: a fifth of the items is taken out of all baskets; of each user (2,000 at most) recall and NDCG of the first
20 new items. Beside BasketRanker(side=...): the content of the basket (cosine of TF-IDF words, summed over its items),
and popularity, which knows nothing of new items and lists them in any order. *Dislikes*: MovieLens, four stars and more
are taken, two and fewer are not wanted; NDCG@20 of hidden items with and without them. *Rules*: lists of 10,000 users
under three rules.
"""

from __future__ import annotations

import csv
import gzip
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.insert(0, str(Path(__file__).parents[1]))

from ranking import lists, measures, pairs

from common import arguments, load, previous, write
from gingham import BasketRanker
from gingham.data.adapt import frame_of
from gingham.models.ranking.baskets import Baskets

FIGURES = {
    "recall@20 of new items (ours)": "*/ours/recall",
    "recall@20 of new items (content)": "*/content/recall",
    "CPU seconds of 10,000 lists under rules": "rules/cpu_s",
}
SPLITS, NEW, MOST_USERS = 3, 0.2, 2000
TABLES = {
    "anime": ("anime5k_items.csv.gz", "anime_ids", ("name", "genre", "type", "episodes")),
    "movietweetings": ("movietweetings100k_items.csv.gz", "imdb", ("title", "genres")),
}


def pairs_and_table(name, folder):
    """(users, items) as texts, and the rows of the table about items by column."""
    file, key, columns = TABLES[name]
    if name == "anime":
        found = load(folder, "anime5k.npz")
        users, items = found["history_rows"], found["item_ids"][found["history_cols"]]
    else:
        found = load(folder, "movietweetings100k.npz")
        kept = found["vals"] >= 7
        users, items = found["rows"][kept], found["imdb"][found["cols"][kept]]
    with gzip.open(Path(folder) / file, "rt", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    return users.astype(str), items.astype(str), {"item": [row[key] for row in rows]} | {
        column: [row[column] for row in rows] for column in columns
    }  # fmt: skip


def new_items(name, folder, seed):
    """Recall and NDCG of each way to rank new items, on one split."""
    users, items, table = pairs_and_table(name, folder)
    rng = np.random.default_rng(seed)
    ids = np.unique(items)
    new = ids[rng.random(len(ids)) < NEW]
    away = np.isin(items, new)
    began = time.process_time()
    frame = frame_of({"user": users[~away].tolist(), "item": items[~away].tolist()})
    model = BasketRanker(side={"item": frame_of(table)}, backend="compiled", random_state=seed).fit(frame)
    spent = time.process_time() - began
    known = np.isin(users, model.users_) & away
    judged = np.sort(rng.permutation(np.unique(users[known]))[:MOST_USERS])
    there = np.isin(users, judged) & away
    hidden = Baskets.of(
        np.searchsorted(judged, users[there]), np.searchsorted(new, items[there]), (len(judged), len(new))
    ).taken
    top = model.top(judged, 20, items=new.tolist())
    ours = np.searchsorted(new, top.astype(str))
    said = {row[0]: " ".join(row[1:]) for row in zip(*table.values())}
    words = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(
        [said.get(i, "") for i in model.items_.tolist()]
    )
    mine = model.baskets_.of_users(np.searchsorted(model.users_, judged)).taken
    content = sparse.csr_array(mine @ words) @ sparse.csr_array(words[np.searchsorted(model.items_, new)]).T
    nothing = sparse.csr_array((len(judged), len(new)), dtype=np.float32)
    tops = {
        "ours": ours,
        "content": lists(lambda rows: content[rows].toarray(), nothing),
        "popularity": np.argsort(rng.random((len(judged), len(new))), axis=1)[:, :20],
    }
    found = {"new items": len(new), "users": len(judged), "cpu_s": spent}
    for who, lists_of in tops.items():
        recall, gain, _ = measures(lists_of, hidden, np.zeros(len(new), dtype=bool))
        found[who] = {"recall": float(recall.mean()), "ndcg": float(gain.mean())}
    found["tried"] = {key: value for key, value in model.selection_["tried"].items() if key.startswith("new_items")}
    print(name, seed, found, flush=True)
    return found


def dislikes(name, folder, seed):
    """NDCG@20 with dislikes and without them, on one split."""
    found = load(folder, f"{name}.npz")
    users, items, stars = found["rows"], found["cols"], found["vals"]
    liked = stars >= 4
    shape = tuple(int(n) for n in found["shape"])
    train, hidden = Baskets.of(users[liked], items[liked], shape).hide(np.random.default_rng(seed))
    bad = np.column_stack([users[stars <= 2], items[stars <= 2]])
    good = pairs(train)
    labels = np.repeat([1.0, -1.0], [len(good), len(bad)])
    result = {"dislikes": len(bad)}
    for who, (X, y) in {"without": (good, None), "with": (np.concatenate([good, bad]), labels)}.items():
        model = BasketRanker(backend="compiled", random_state=seed).fit(X, y)
        top = np.full((shape[0], 20), -1)
        there = model.users_[np.isin(model.users_, np.unique(good[:, 0]))]
        top[there] = model.top(there, 20)
        recall, gain, _ = measures(top, hidden.taken, np.zeros(shape[1], dtype=bool))
        result[who] = {"recall": float(recall.mean()), "ndcg": float(gain.mean())}
        result["share"] = model.selection_["settings"].get("dislike", 0.0)
    only = np.bincount(bad[:, 0], minlength=shape[0]) > 0
    print(name, seed, result, int(only.sum()), flush=True)
    return result


def rules(name, folder, seed):
    """Seconds of 10,000 lists of 20 under rules, exact, beside free ones."""
    users, items, table = pairs_and_table("anime", folder)
    frame = frame_of({"user": users.tolist(), "item": items.tolist()})
    model = BasketRanker(backend="compiled", random_state=seed).fit(frame)
    wanted = model.users_[np.arange(10_000) % len(model.users_)]
    ruled = {
        "at_most": {"type": 12}, "at_least": {"long_tail": 0.2}, "exclude": model.items_[:50].tolist(),
        "item_info": frame_of({key: table[key] for key in ("item", "type")}),
    }  # fmt: skip
    found = {"users": len(wanted), "items": len(model.items_)}
    model.top(wanted[:10], 20, **ruled)
    for who, arguments_of in {"free": {}, "ruled": ruled}.items():
        began, clock = time.process_time(), time.perf_counter()
        model.top(wanted, 20, **arguments_of)
        found[who] = {"cpu_s": time.process_time() - began, "wall_s": time.perf_counter() - clock}
    found["cpu_s"] = found["ruled"]["cpu_s"]
    print(found, flush=True)
    return found


def means(splits, names):
    """Means over the splits, with the standard deviation of each."""
    return {
        who: {
            key + end: float(f([one[who][key] for one in splits]))
            for key in ("recall", "ndcg") for end, f in (("", np.mean), ("_sd", lambda v: np.std(v, ddof=1)))
        }
        for who in names
    }  # fmt: skip


def main() -> None:
    def options(parser):
        parser.add_argument("--jobs", type=int, default=1, help="splits that are measured side by side")
        parser.add_argument("--only", default="anime,movietweetings,ml100k,ml1m,rules")

    args = arguments(__doc__ or "", "peers_ranking_new_items", options)
    results = previous(args)
    names = ["movietweetings"] if args.quick else args.only.split(",")
    seeds = range(args.seed, args.seed + (2 if args.quick else SPLITS))
    work = {name: new_items if name in TABLES else rules if name == "rules" else dislikes for name in names}
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("fork")) as pool:
        running = {
            name: [pool.submit(of, name, args.data, seed) for seed in (seeds if of is not rules else [args.seed])]
            for name, of in work.items()
        }
        for name, jobs in running.items():
            splits = [job.result() for job in jobs]
            if name == "rules":
                results[name] = splits[0]
            else:
                kinds = ("ours", "content", "popularity") if name in TABLES else ("with", "without")
                results[name] = means(splits, kinds) | {"splits": splits}
            write(args, {"new": NEW, "splits": SPLITS, "jobs": args.jobs}, results)


if __name__ == "__main__":
    main()
