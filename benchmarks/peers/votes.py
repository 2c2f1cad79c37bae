"""Votes and answers on a scale: layers of classes beside their peers, all in one run.

    python benchmarks/peers/votes.py --data FOLDER --splits senate0,senate1,senate2,time

Splits: senate0, senate1, … (a random tenth of the votes of the US Senate set aside), time (training: the first 80 % of
the roll calls and ten votes on each later one), ml0, … and jester0, … (a random tenth; ratings above the median or not;
of Jester 5,000 people) and stars0, … (whole stars of MovieLens-100K as ordered classes). Results are added to the JSON
file as they come. ``layered``, ``dated`` and ``grid`` have nothing set but ``ordered=True`` for stars; ``dated`` is
told when the roll calls were (their number), and ``periods`` is logistic factors for each eighth of the roll calls by
itself, so that they know this, too. Peers choose rank, penalty
and neighbours on a tenth of the training part and are then fitted to all of it; `search_cpu_s` is for that choice. The
scores of ALS and neighbours become probabilities by a logistic curve that is fitted on the same tenth. Where myFM is
installed (its Gibbs sampler; ordered probit for stars) it is compared, too.

error: share of wrong classes; log_loss in nats; for stars also the absolute error of the median class and the ranked
probability score, divided by the number of classes less one.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, importable, load, previous, write

FIGURES = {"error": "by_split/*/*/error", "log loss": "by_split/*/*/log_loss"}
FULL = ["--splits senate0,senate1,senate2,time", "--splits ml0,jester0,stars0"]
PENALTIES, RANKS, NEIGHBOURS = (0.5, 2.0, 8.0), (2, 4, 8), (5, 15, 50)
SWEEPS = 12


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", default="senate0")
    parser.add_argument("--methods", default=",".join(METHODS))


def split_of(folder: Any, name: str) -> tuple[Any, Any, tuple[int, int]]:
    """(X, y) to learn from and to test, with y = 0, 1, …, and the shape."""
    kind, seed = name.rstrip("0123456789"), int("0" + name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    rng = np.random.default_rng(seed)
    data = load(
        folder, {"ml": "ml100k.npz", "stars": "ml100k.npz", "jester": "jester1.npz"}.get(kind, "senate105_116.npz")
    )
    X, y = np.column_stack([data["rows"], data["cols"]]).astype(np.int64), data["vals"]
    if kind == "jester":
        chosen = np.isin(X[:, 0], rng.choice(data["shape"][0], 5000, replace=False))
        X, y = X[chosen], y[chosen]
        X[:, 0] = np.unique(X[:, 0], return_inverse=True)[1]
    if kind == "time":
        late = X[:, 1] >= 0.8 * data["shape"][1]
        order = rng.permutation(len(y))
        rank = np.empty(len(y), dtype=np.int64)
        by_call = order[np.argsort(X[order, 1], kind="stable")]
        first = np.searchsorted(X[by_call, 1], X[by_call, 1])
        rank[by_call] = np.arange(len(y)) - first
        aside = late & (rank >= 10)
    else:
        aside = rng.random(len(y)) < 0.1
    y = (y > np.median(y[~aside])).astype(np.int64) if kind in ("ml", "jester") else y.astype(np.int64)
    y = y - y.min()
    shape = (int(X[:, 0].max()) + 1, int(X[:, 1].max()) + 1)
    return (X[~aside], y[~aside]), (X[aside], y[aside]), shape


# peers


def logit_averages(train: Any, test: Any, shape: Any, penalty: float = 2.0, sweeps: int = 8) -> Any:
    """Log-odds that add up over both sides, with a Gaussian prior on each effect."""
    return factors(train, test, shape, 0, penalty, True, sweeps)


def factors(train: Any, test: Any, shape: Any, rank: int, penalty: float, logistic: bool, sweeps: int = SWEEPS) -> Any:
    """Scores a_u + b_i + u·v by alternating ridge regressions, on ±1 or by Newton steps of the logistic likelihood."""
    (X, y), rng, sign = train, np.random.default_rng(0), 2.0 * train[1] - 1.0
    sides = [np.column_stack([np.zeros(n), rng.normal(0, 0.3, (n, rank))]) for n in shape]  # bias, then factors
    base = float(np.log(y.mean() / (1 - y.mean()))) if logistic else float(sign.mean())

    def score(rows: Any) -> Any:
        u, v = sides[0][rows[:, 0]], sides[1][rows[:, 1]]
        return base + u[:, 0] + v[:, 0] + np.einsum("ek,ek->e", u[:, 1:], v[:, 1:])

    for _ in range(sweeps):
        for side in (0, 1):
            mine, other = X[:, side], X[:, 1 - side]
            features = np.column_stack([np.ones(shape[1 - side]), sides[1 - side][:, 1:]])
            known = base + sides[1 - side][other, 0]  # what this side cannot change
            if logistic:
                now = score(X)
                p = expit(now)
                weight = np.maximum(p * (1 - p), 1e-3)
                wanted = now + (y - p) / weight - known
            else:
                weight, wanted = np.ones(len(y)), sign - known
            k = rank + 1
            squares = (features[:, :, None] * features[:, None, :]).reshape(-1, k * k)
            place = (mine, other)
            gram = (csr_array((weight, place), shape=(shape[side], shape[1 - side])) @ squares).reshape(-1, k, k)
            right = csr_array((weight * wanted, place), shape=(shape[side], shape[1 - side])) @ features
            sides[side] = np.linalg.solve(gram + penalty * np.eye(k), right[:, :, None])[:, :, 0]
    return score(test)


def neighbours(train: Any, test: Any, shape: Any, k: int, side: int) -> Any:
    """Means over the k items of one side that are most alike and have the other item, weighted by their agreement."""
    X, y = train
    table = np.zeros(shape, dtype=np.float32)
    table[X[:, 0], X[:, 1]] = 2.0 * y - 1.0
    table = table if side == 0 else table.T
    there = (table != 0).astype(np.float32)
    alike = (table @ table.T) / (there @ there.T + 10.0)
    np.fill_diagonal(alike, 0.0)
    alike = np.sign(alike) * alike**2
    mean = table.sum(axis=0) / (there.sum(axis=0) + 2.0)
    found = np.empty(len(test))
    order = np.argsort(test[:, side], kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(test[order, side])) + 1):
        me, at = test[rows[0], side], test[rows, 1 - side]
        weight = np.abs(alike[me])[:, None] * there[:, at]
        if k < len(weight):
            weight[weight < np.partition(weight, len(weight) - k, axis=0)[len(weight) - k]] = 0.0
        top = (weight * np.sign(alike[me])[:, None] * table[:, at]).sum(axis=0)
        found[rows] = (top + 0.02 * mean[at]) / (weight.sum(axis=0) + 0.02)
    return found


def by_period(train: Any, test: Any, shape: Any, rank: int, penalty: float) -> Any:
    """Logistic factors of each eighth of the columns by itself."""
    (X, y), found = train, np.empty(len(test))
    ours, theirs = (rows[:, 1] * PERIODS // shape[1] for rows in (X, test))
    for period in range(PERIODS):
        mine, asked = ours == period, theirs == period
        found[asked] = factors((X[mine], y[mine]), test[asked], shape, rank, penalty, True)
    return found


def logistic_curve(score: Any, y: Any) -> Any:
    """(slope, intercept) of the log-odds on a score."""
    return minimize(lambda w: np.mean(np.logaddexp(0, w[0] * score + w[1]) - y * (w[0] * score + w[1])), [1.0, 0.0]).x


def chosen(train: Any, test: Any, settings: Any, run: Any, curve: bool, timing: dict[str, Any]) -> Any:
    """The probabilities of a peer whose setting has the least log loss on a tenth of the training part."""
    start = time.process_time()
    X, y = train
    aside = np.random.default_rng(1).random(len(y)) < 0.1
    inner, judged = (X[~aside], y[~aside]), []
    for setting in settings:
        score = run(inner, X[aside], *setting)
        a, b = logistic_curve(score, y[aside]) if curve else (1.0, 0.0)
        z = a * score + b
        judged.append((float(np.mean(np.logaddexp(0, z) - y[aside] * z)), setting, a, b))
    _, setting, a, b = min(judged)
    timing["search_cpu_s"] = time.process_time() - start
    timing["chosen"] = list(setting)
    start = time.process_time()
    p = expit(a * run(train, test, *setting) + b)
    timing["cpu_s"] = time.process_time() - start
    return np.column_stack([1 - p, p])


def with_myfm(train: Any, test: Any, shape: Any, n_classes: int, seed: int, timing: dict[str, Any]) -> Any:
    import myfm

    def one_hot(X: Any) -> Any:
        every = np.column_stack([X[:, 0], shape[0] + X[:, 1]])
        return csr_array(
            (np.ones(every.size), every.ravel(), np.arange(0, every.size + 1, 2)), shape=(len(X), sum(shape))
        )

    from scipy.sparse import csr_matrix

    groups = [0] * shape[0] + [1] * shape[1]

    def run(train: Any, test: Any, rank: int, n_iter: int) -> Any:
        kind = myfm.MyFMGibbsClassifier if n_classes == 2 else myfm.MyFMOrderedProbit
        model = kind(rank=rank, random_seed=seed)
        grouped = {"group_shapes": list(shape)} if n_classes == 2 else {"grouping": groups}
        model.fit(csr_matrix(one_hot(train[0])), train[1], n_iter=n_iter, n_kept_samples=n_iter - 20, **grouped)
        p = model.predict_proba(csr_matrix(one_hot(test)))
        return np.column_stack([1 - p, p]) if n_classes == 2 else p

    start = time.process_time()
    X, y = train
    aside = np.random.default_rng(1).random(len(y)) < 0.1
    judged = []
    for rank in (4, 8):
        p = run((X[~aside], y[~aside]), X[aside], rank, 60)
        judged.append((float(-np.mean(np.log(np.maximum(p[np.arange(aside.sum()), y[aside]], 1e-12)))), rank))
    rank = min(judged)[1]
    timing["search_cpu_s"], timing["chosen"] = time.process_time() - start, [rank]
    start = time.process_time()
    found = run(train, test, rank, 100)
    timing["cpu_s"] = time.process_time() - start
    return found


def majority(train: Any, test: Any, shape: Any, n_classes: int) -> Any:
    """Shares of the classes in each column, shrunken to those of all."""
    counts = np.zeros((shape[1], n_classes))
    np.add.at(counts, (train[0][:, 1], train[1]), 1.0)
    share = counts.sum(axis=0) / counts.sum()
    return ((counts + 2.0 * share) / (counts.sum(axis=1, keepdims=True) + 2.0))[test[:, 1]]


def ours(kind: Any, train: Any, test: Any, timing: dict[str, Any], dated: bool = False, **settings: Any) -> Any:
    start = time.process_time()
    when = [{"time": X[:, 1].astype(np.float64)} if dated else {} for X in (train[0], test)]
    model = kind(**settings).fit(*train, **when[0])
    chances = model.predict_proba(test, **when[1])
    timing["cpu_s"] = time.process_time() - start
    if hasattr(model, "selection_"):
        timing["chosen"] = str(model.selection_)
    return chances


METHODS = ("majority", "averages", "als", "logistic", "periods", "knn", "myfm", "grid", "layered", "dated")
TWO_CLASSES, IN_TIME, PERIODS = ("als", "logistic", "averages", "knn"), ("periods", "dated"), 8


def run(method: str, train: Any, test: Any, shape: Any, seed: int, ordered: bool) -> tuple[Any, dict[str, Any]]:
    timing: dict[str, Any] = {}
    n_classes = int(train[1].max()) + 1
    start = time.process_time()
    if method in ("als", "logistic"):
        settings = [(rank, penalty) for rank in RANKS for penalty in PENALTIES]
        logistic = method == "logistic"
        call = lambda inner, X, rank, penalty: factors(inner, X, shape, rank, penalty, logistic)  # noqa: E731
        found = chosen(train, test, settings, call, not logistic, timing)
    elif method == "periods":
        settings = [(rank, penalty) for rank in RANKS for penalty in PENALTIES]
        call = lambda inner, X, rank, penalty: by_period(inner, X, shape, rank, penalty)  # noqa: E731
        found = chosen(train, test, settings, call, False, timing)
    elif method == "averages":
        call = lambda inner, X, penalty: logit_averages(inner, X, shape, penalty)  # noqa: E731
        found = chosen(train, test, [(p,) for p in PENALTIES], call, False, timing)
    elif method == "knn":
        side = int(np.argmin(shape))
        call = lambda inner, X, k: neighbours(inner, X, shape, k, side)  # noqa: E731
        found = chosen(train, test, [(k,) for k in NEIGHBOURS], call, True, timing)
    elif method == "majority":
        found = majority(train, test, shape, n_classes)
        timing["cpu_s"] = time.process_time() - start
    elif method == "myfm":
        found = with_myfm(train, test, shape, n_classes, seed, timing)
    elif method == "grid":
        found = ours(gg.CoClusteringClassifier, train, test, timing, random_state=seed)
    else:
        dated = method == "dated"
        found = ours(gg.LayeredCoClusteringClassifier, train, test, timing, dated, random_state=seed, ordered=ordered)
    return found, timing


def measures(chances: Any, y: Any, ordered: bool) -> dict[str, Any]:
    kept = np.maximum(chances[np.arange(len(y)), y], 1e-12)
    found = {"error": float(np.mean(chances.argmax(axis=1) != y)), "log_loss": float(-np.log(kept).mean())}
    if ordered:
        below = chances.cumsum(axis=1)[:, :-1]
        truth = y[:, None] <= np.arange(chances.shape[1] - 1)
        found["absolute"] = float(np.abs((below < 0.5).sum(axis=1) - y).mean())
        found["rps"] = float(((below - truth) ** 2).mean())
    if chances.shape[1] == 2:  # the share of the class where it was said to be so likely
        at = np.minimum((chances[:, 1] * 10).astype(int), 9)
        found["calibration"] = [
            [float(chances[at == b, 1].mean()), float(y[at == b].mean()), int((at == b).sum())]
            for b in range(10) if (at == b).any()
        ]  # fmt: skip
    return found


def main() -> None:
    args = arguments(__doc__ or "", "peers_votes", options)
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)
    wanted = args.methods.split(",")
    if "myfm" in wanted and not importable("myfm", "myfm"):
        wanted.remove("myfm")
    for split in args.splits.split(","):
        train, test, shape = split_of(args.data, split)
        if args.quick:
            train = tuple(part[::8] for part in train)
        ordered = split.startswith("stars")
        for method in wanted:
            if (ordered and method in TWO_CLASSES) or (method in IN_TIME and not split.startswith(("senate", "time"))):
                continue
            chances, timing = run(method, train, test[0], shape, args.seed, ordered)
            found = {**measures(chances, test[1], ordered), **timing}
            print(
                split,
                method,
                {k: v if isinstance(v, str) else np.round(v, 4) for k, v in found.items() if k != "calibration"},
                flush=True,
            )
            results = previous(args) or {"by_split": {}}  # another part of the run may have written in the meantime
            results["by_split"].setdefault(split, {"rows": len(train[1]), "test": len(test[1])})[method] = found
            write(args, {"loss": "log loss in nats"}, results, ["myfm"])


if __name__ == "__main__":
    main()
