"""How often ranking certificates fail in simulated worlds, with rankers as awkward as losses in [0, 1] allow.

A world draws users (or what is hidden of them, or which of a finite population is looked at), and the certificate
fails when its value is below the true mean. *lottery*: misses everything of a few users whom a sample rarely meets;
*coin*: all or nothing; *mixed*: knows half of the people by heart and nothing of the others; *steady*: loses the same
with everybody; *memory*: planted tastes, of which the ranker knows two and lists one of the open items. *equal*: two
rankings that are equally good and as different as can be; a first one that is called better is a failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, write
from gingham import certify_ranking

FIGURES = {"share of worlds in which a certificate fails": "*/*/fails"}
DELTA = 0.05
KINDS = ("lottery", "coin", "mixed", "steady")


def chances(kind, n, rng):
    """The chance of each of n users that a hidden item is missed."""
    if kind == "lottery":
        return np.where(rng.random(n) < 0.03, 1.0, 0.02)
    if kind == "mixed":
        return np.where(rng.random(n) < 0.5, 0.05, 0.95)
    return np.full(n, 0.5 if kind == "coin" else 0.9)


MEANS = {"lottery": 0.03 + 0.97 * 0.02, "coin": 0.5, "mixed": 0.5, "steady": 0.9}


def world(miss, k, rng):
    """Lists and hidden pairs in which user u misses each of k hidden items with chance miss[u]."""
    n = len(miss)
    missed = rng.random((n, k)) < miss[:, None]
    hidden = np.column_stack([np.repeat(np.arange(n), k), np.tile(np.arange(k), n)])
    return {u: [int(i) for i in np.flatnonzero(~missed[u])] for u in range(n)}, hidden, missed.mean(axis=1)


def measure(draw, worlds):
    found = [draw() for _ in range(worlds)]
    values, truths, seen = (np.array(column) for column in zip(*found))
    return {"worlds": worlds, "fails": float((values < truths - 1e-12).mean()), "value": float(values.mean()),
            "truth": float(truths.mean()), "empirical": float(seen.mean())}  # fmt: skip


def draws(kind, n, rng):
    """For each thing that may be random, a function that makes a world: certified value, truth, observed mean."""
    k = 1 if kind == "coin" else 3
    fixed = chances(kind, n, rng)

    def users():
        lists, hidden, _ = world(chances(kind, n, rng), k, rng)
        found = certify_ranking(lists, hidden, at=k, delta=DELTA)
        return found.value, MEANS[kind], found.empirical

    def hiding():
        lists, hidden, _ = world(fixed, k, rng)
        found = certify_ranking(lists, hidden, at=k, delta=DELTA, random="hiding")
        return found.value, fixed.mean(), found.empirical

    def population():
        lists, hidden, missed = world(chances(kind, 2 * n, rng), k, rng)
        drawn = rng.choice(2 * n, n, replace=False)
        found = certify_ranking(lists, hidden[np.isin(hidden[:, 0], drawn)], at=k, delta=DELTA, population=2 * n)
        return found.value, missed.mean(), found.empirical

    return {"users": users, "hiding": hiding, "population": population}


def main() -> None:
    args = arguments(__doc__ or "", "coverage_ranking")
    worlds, n = (200 if args.quick else 2500), 80
    results: dict[str, dict[str, object]] = {"users": {}, "hiding": {}, "population": {}, "against": {}}
    for kind in KINDS:
        for name, draw in draws(kind, n, np.random.default_rng([args.seed, KINDS.index(kind)])).items():
            results[name][kind] = measure(draw, worlds)
            print(name, kind, results[name][kind], flush=True)
    rng = np.random.default_rng([args.seed, 9])
    likes = np.arange(12).reshape(3, 4)

    def memory():
        tastes = rng.integers(0, 3, n)
        seen = np.array([rng.choice(likes[t], 2, replace=False) for t in tastes])
        wanted = [rng.choice(np.setdiff1d(likes[t], s)) for t, s in zip(tastes, seen)]
        lists = {u: [int(np.setdiff1d(likes[t], s)[0])] if t < 2 else [0] for u, (t, s) in enumerate(zip(tastes, seen))}
        found = certify_ranking(lists, np.column_stack([np.arange(n), wanted]), at=1, delta=DELTA)
        return found.value, 2 / 3 * 0.5 + 1 / 3, found.empirical

    def equal():
        (one, hidden, _), (two, _, _) = (world(np.full(n, 0.5), 1, rng) for _ in range(2))
        found = certify_ranking(one, hidden, at=1, delta=DELTA, against=two)
        return found.value, 0.0, found.empirical

    results["users"]["memory"] = measure(memory, worlds)
    results["against"]["equal"] = measure(equal, worlds)
    print(results["users"]["memory"], results["against"]["equal"], flush=True)
    write(args, {"delta": DELTA, "users": n}, results)


if __name__ == "__main__":
    main()
