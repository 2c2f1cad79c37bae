"""Density trees (P0 Fig. 9) on planted protein-like 8-mers: held-out nats against flat, pairs and independence.

Four pairs of residues; the pairs share one clustering, the two halves another; all laws are per position.
Every table of every model is smoothed by the same rule (Dirichlet evidence), so nothing is tuned:
independent (symbols), pair table (symbol × symbol), clustered pairs (the tree without its root), flat (all
four clusters in one table, backed off to the clustered pairs), tree.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, write
from gingham.core.tree import smoothed
from gingham.datasets.planted import make_sequences

FIGURES = {
    "held-out nats (tree)": "*/mean_nats/tree",
    "(flat)": "*/mean_nats/flat",
    "(pairs)": "*/mean_nats/pair_table",
}
N_SYMBOLS, TEST = 400, 50_000


def independent(X):
    return [smoothed(np.bincount(X[:, j], minlength=N_SYMBOLS), np.ones(N_SYMBOLS)) for j in range(4)]


def pair_table(X, Z, single):
    total = np.zeros(len(Z))
    for a, b in ((0, 1), (2, 3)):
        counts = np.bincount(X[:, a] * N_SYMBOLS + X[:, b], minlength=N_SYMBOLS**2)
        law = smoothed(counts, np.outer(single[a], single[b]).ravel())
        total += np.log(law[Z[:, a] * N_SYMBOLS + Z[:, b]])
    return total


def held_out(X, Z, seed):
    single = independent(X)
    model = gg.TreeCoClustering(
        12, ((0, 1, 6), (2, 3, 6)), tied=((0, 1, 2, 3), (4, 5)), loss="density", beta=1.0, n_init=3, random_state=seed
    )
    times = {}
    with clock(times, "tree_"):
        model.fit(X)
    tree = model.density_
    log_tree = tree.log_density([model._item_modes()[j].encode(Z[:, j]) for j in range(4)])
    seen = np.isfinite(log_tree)
    # The tree without its root term, and with a full table of the four clusters in its place.
    labels, merged = np.zeros(N_SYMBOLS, int), tree.labels[1]
    labels[tree.tree.modes[0].items] = tree.labels[0]
    cell = (
        [labels[S[:, 0]] * 12 + labels[S[:, 1]] for S in (X, Z)],
        [labels[S[:, 2]] * 12 + labels[S[:, 3]] for S in (X, Z)],
    )
    roots = [tree.roots.sum(axis=1), tree.roots.sum(axis=0)]
    top = [merged[cell[0][1]], merged[cell[1][1]]]
    log_pairs = log_tree - np.log(tree.roots[top[0], top[1]]) + np.log(roots[0][top[0]]) + np.log(roots[1][top[1]])
    counts = np.bincount(cell[0][0] * 144 + cell[1][0], minlength=144**2)
    flat = smoothed(counts, np.outer(tree.inner[0], tree.inner[1]).ravel())
    log_flat = log_pairs + np.log(flat[cell[0][1] * 144 + cell[1][1]]) - np.log(tree.inner[0][cell[0][1]])
    log_flat = log_flat - np.log(tree.inner[1][cell[1][1]])
    models = {
        "independent": sum(np.log(p)[Z[:, j]] for j, p in enumerate(single)),
        "pair_table": pair_table(X, Z, single),
        "clustered_pairs": log_pairs,
        "flat": log_flat,
        "tree": log_tree,
    }
    nats = {name: float(-values[seen].mean()) for name, values in models.items()}
    known = np.bincount(X.ravel(), minlength=N_SYMBOLS) > 0
    return nats, seen, labels, known, times


def main():
    args = arguments(__doc__.splitlines()[0], "density_sequences")
    results = {}
    for n in (5_000,) if args.quick else (2_000, 5_000, 20_000, 100_000):
        runs = []
        for seed in range(args.seed, args.seed + (1 if args.quick else 3)):
            data = make_sequences(n + TEST, random_state=seed)
            X, Z = data.X[:n], data.X[n:]
            nats, seen, labels, known, times = held_out(X, Z, seed)
            nats["truth"] = float(-data.log_density[n:][seen].mean())
            runs.append(
                {
                    "seed": seed,
                    "nats": nats,
                    "clusters_ari": adjusted_rand_score(data.clusters[known], labels[known]),
                    "held_out_with_unseen_symbols": float(1 - seen.mean()),
                    **times,
                }
            )
            print(n, seed, {k: round(v, 3) for k, v in nats.items()}, round(runs[-1]["clusters_ari"], 3), flush=True)
        mean = {key: float(np.mean([run["nats"][key] for run in runs])) for key in runs[0]["nats"]}
        results[str(n)] = {"mean_nats": mean, "runs": runs}
        write(args, {"clusters": 12, "inner": 6, "test_tuples": TEST, "beta": 1.0, "n_init": 3}, results)


if __name__ == "__main__":
    main()
