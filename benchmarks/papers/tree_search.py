"""P0 §7.2: trees that are found (``merges="auto"``) on planted trees of labels and of densities, columns shuffled.

Beside them the default tree, which pairs neighbours, and for densities independence and the planted tree. Measured are
how many of the planted merges are found, the certificate and the held-out error (labels), and held-out nats per row.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, write

FIGURES = {
    "merges found, eight columns": "labels/8 columns, 60000 rows/merges found",
    "of": "labels/8 columns, 60000 rows/merges planted",
    "density: nats found": "densities/8 columns, 20000 rows/nats/auto",
    "density: nats planted": "densities/8 columns, 20000 rows/nats/planted",
}
INNER, TEST, NOISE = 3, 5000, 0.1
Merge = tuple[int, int, int]


def paired(d: int) -> list[Merge]:
    """Neighbours are merged two by two, down to two roots."""
    merges, top = [], list(range(d))
    while len(top) > 2:
        new = range(d + len(merges), d + len(merges) + len(top) // 2)
        merges += [(a, b, INNER) for a, b in zip(top[::2], top[1::2])]
        top = [*new]
    return merges


def labelled(n: int, d: int, seed: int, items: int = 20, m: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Items in clusters, pairs of clusters in groups by random tables, labels by a table of the two roots."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, items, (n, d))
    at = [rng.permutation(np.arange(items) % m)[column] for column in X.T]
    width = [m] * d

    def table(a: int, b: int) -> np.ndarray:
        """A table in which no two clusters are alike."""
        while True:
            found = rng.permutation(np.arange(width[a] * width[b]) % INNER).reshape(width[a], width[b])
            if len(np.unique(found, axis=0)) == width[a] and len(np.unique(found, axis=1).T) == width[b]:
                return found

    merges = paired(d)
    for a, b, _ in merges:
        at.append(table(a, b)[at[a], at[b]])
        width.append(INNER)
    y = table(len(at) - 2, len(at) - 1)[at[-2], at[-1]]
    return X, np.where(rng.random(n) < NOISE, rng.integers(0, INNER, n), y)


def sequences(n: int, d: int, seed: int, items: int = 12, m: int = 4) -> np.ndarray:
    """The clusters of the roots are drawn together, pairs given the cluster of their parent, items given theirs."""
    rng = np.random.default_rng(seed)
    merges = paired(d)
    drawn = rng.choice(INNER**2, n, p=rng.dirichlet(np.full(INNER**2, 0.2)))
    at = dict(zip((d + len(merges) - 2, d + len(merges) - 1), (drawn // INNER, drawn % INNER)))
    for node, (a, b, _) in reversed(list(enumerate(merges, d))):
        width = m if b < d else INNER
        laws = rng.dirichlet(np.full((m if a < d else INNER) * width, 0.15), INNER)
        pair = np.array([rng.choice(laws.shape[1], n, p=law) for law in laws])[at[node], np.arange(n)]
        at[a], at[b] = pair // width, pair % width
    clusters = [rng.permutation(np.arange(items) % m) for _ in range(d)]
    of = [[np.flatnonzero(each == c) for c in range(m)] for each in clusters]
    return np.stack([np.array(of[j])[at[j], rng.integers(0, items // m, n)] for j in range(d)], axis=1)


def leaves_under(merges: list[Merge], names: list[int]) -> set[frozenset[int]]:
    """The leaves below each merge."""
    below = [frozenset([name]) for name in names]
    for a, b, _ in merges:
        below.append(below[a] | below[b])
    return set(below[len(names) :])


def renamed(merges: list[Merge], order: np.ndarray) -> list[Merge]:
    place = np.argsort(order).tolist()
    return [(*(place[c] if c < len(order) else c for c in merge[:2]), merge[2]) for merge in merges]


def compared(d: int, n: int, density: bool, cases: int, seed: int) -> dict[str, Any]:
    found, seconds, rows = 0, 0.0, []
    truth = paired(d)
    for case in range(cases):
        own = seed + case
        X, y = (sequences(n + TEST, d, own), None) if density else labelled(n + TEST, d, own)
        order = np.random.default_rng(own).permutation(d)
        X = X[:, order]
        X = np.concatenate([X[:n], X[n:][np.all([np.isin(X[n:, j], X[:n, j]) for j in range(d)], axis=0)]])
        more = (
            {"loss": "density", "beta": 1.0} if density else {"loss": "zero-one", "alphabet": range(INNER), "n_init": 1}
        )
        more["random_state"] = own
        train = (X[:n],) if density else (X[:n], y[:n])
        leaves = 4 if density else 3

        def fitted(leaves=leaves, train=train, more=more, **tree: Any) -> gg.TreeCoClustering:
            return gg.TreeCoClustering(leaves, **more, **tree).fit(*train)

        start = time.process_time()
        models = {"auto": fitted(merges="auto")}
        seconds += time.process_time() - start
        models["neighbours"] = fitted()
        found += len(leaves_under(models["auto"].merges_, order.tolist()) & leaves_under(truth, list(range(d))))
        if density:
            models["planted"] = fitted(merges=renamed(truth, order))
            row = {"nats": {name: -model.score(X[n:]) for name, model in models.items()}}
            shares = [(np.bincount(X[:n, j], minlength=12) + 1) / (n + 12) for j in range(d)]
            row["nats"]["independent"] = -float(sum(np.log(p)[X[n:, j]] for j, p in enumerate(shares)).mean())
        else:
            row = {
                "error": {
                    name: float(np.mean(model.predict(X[n:]) != y[n : len(X)])) for name, model in models.items()
                },
                "certificate": {name: gg.certify(model, *train).value for name, model in models.items()},
            }
        rows.append(row)
    means = {key: {name: float(np.mean([r[key][name] for r in rows])) for name in rows[0][key]} for key in rows[0]}
    return {"cases": cases, "merges found": found, "merges planted": cases * (d - 2), "cpu_s": seconds / cases, **means}


def main() -> None:
    args = arguments(__doc__ or "", "tree_search")
    cases = 1 if args.quick else 5
    results: dict[str, Any] = {"labels": {}, "densities": {}}
    for kind, sizes in (("labels", ((4, 10_000), (6, 20_000), (8, 60_000))), ("densities", ((4, 5000), (8, 20_000)))):
        for d, n in sizes[:1] if args.quick else sizes:
            results[kind][f"{d} columns, {n} rows"] = compared(d, n, kind == "densities", cases, args.seed)
            print(kind, d, n, results[kind][f"{d} columns, {n} rows"], flush=True)
    write(args, {"inner": INNER, "noise": NOISE}, results)


if __name__ == "__main__":
    main()
