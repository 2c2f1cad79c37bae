"""What must hold of trees and shared matrices: objectives never rise, singletons are the flat grid, bounds cover.

200 random structures: trees (every third with leaves that share a clustering), and shared matrices (half of
them with a mode that stands twice in a relation, for which the damped rule applies).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "models" / "joint"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "models" / "tree"))

from test_fit import random_problem
from test_messages import random_case

import gingham as gg
from common import arguments, previous, write
from gingham.datasets.planted import make_tree
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.models.tree.messages import Messages

FIGURES = {
    "largest relative rise of an objective": "*/largest_relative_rise",
    "failures of the certificate": "coverage/failures",
    "in samples": "coverage/samples",
    "planted trees found": "choice_of_the_tree/planted_pairs_found",
    "of": "choice_of_the_tree/cases",
}
# structures, singleton cases, samples of the coverage, planted trees
NUMBERS, SMALL = (100, 10, 60, 10), (4, 1, 2, 1)


def rise(problem, start, solver):
    """Largest rise of the objective in a sweep, relative to its first value."""
    for relation, sample in enumerate(problem.samples):
        start = start.refit(sample, relation)
    solution = solver.solve(problem, start)
    totals = np.concatenate([[problem.objective(start).total], solution.trace.totals])
    return float(np.diff(totals).max() / max(1.0, abs(totals[0])))


def singletons(seed):
    """Largest difference of memberships between the flat grid and the tree of singleton merges."""
    data = make_tree(2000, n_items=15, n_clusters=3, n_inner=3, random_state=seed)
    settings = {"loss": "zero-one", "beta": 2.0, "n_init": 1, "max_iter": 15, "random_state": 0}
    start = [np.random.default_rng(seed + j).integers(0, 3, 15) for j in range(4)]
    flat = gg.TreeCoClustering(3, (), start=start, **settings).fit(data.X, data.y)
    chain = gg.TreeCoClustering(3, tuple((j, None) for j in range(4)), start=start, **settings).fit(data.X, data.y)
    return max(float(np.abs(a - b).max()) for a, b in zip(flat.assign_[:4], chain.assign_[:4]))


def coverage(n_samples, seed):
    """Share of samples on which the certificate of a fitted tree, chosen structure included, is below its true loss."""
    failures, gaps = 0, []
    for s in range(n_samples):
        data = make_tree(300 + 20_000, n_items=8, n_clusters=2, n_inner=2, n_labels=2, noise=0.5, random_state=seed + s)
        model = gg.TreeCoClustering(
            2, merges="auto", n_inner=2, beta=3.0, alphabet=(0, 1), n_init=1, max_iter=20, random_state=0
        )
        model.fit(data.X[:300], data.y[:300])
        value = gg.certify(model, data.X[:300], data.y[:300]).value
        true = -model.score(data.X[300:], data.y[300:])
        failures += value < true
        gaps.append(value - true)
    return failures, float(np.mean(gaps)), float(np.min(gaps))


def choice(n_cases):
    """Planted pairs with shuffled columns: how often merges="auto" finds them, and what choosing costs."""
    found, dearer = 0, []
    for seed in range(n_cases):
        data = make_tree(10_000, n_items=30, n_clusters=4, n_inner=3, n_labels=4, random_state=seed)
        order = np.random.default_rng(seed).permutation(4)
        X = data.X[:, order]
        settings = {"leaves": 4, "n_inner": 3, "alphabet": range(4), "n_init": 1, "random_state": 0}
        chosen = gg.TreeCoClustering(merges="auto", **settings).fit(X, data.y)
        truth = {frozenset(int(np.flatnonzero(order == leaf)[0]) for leaf in pair) for pair in ((0, 1), (2, 3))}
        found += {frozenset(merge[:2]) for merge in chosen.merges_} == truth
        given = gg.TreeCoClustering(merges=chosen.merges_, **settings).fit(X, data.y)
        dearer.append(gg.certify(chosen, X, data.y).value - gg.certify(given, X, data.y).value)
    return {"cases": n_cases, "planted_pairs_found": found, "mean_rise_of_certificate": float(np.mean(dearer))}


def main():
    args = arguments(
        __doc__.splitlines()[0],
        "tree_properties",
        lambda p: p.add_argument("--parts", nargs="*", default=["objectives", "coverage", "choice"]),
    )
    results = previous(args)
    n, n_singletons, samples, planted = SMALL if args.quick else NUMBERS
    if "objectives" in args.parts:
        trees = [rise(*random_case(seed), Messages(tol=0.0, max_iter=15)) for seed in range(n)]
        joint = [
            rise(*random_problem(seed, repeats=bool(seed % 2))[:2], Projection(Constant(), tol=0.0, max_iter=15))
            for seed in range(n)
        ]
        results["random_trees"] = {"structures": n, "largest_relative_rise": max(trees)}
        results["random_shared_matrices"] = {"structures": n, "largest_relative_rise": max(joint)}
        differences = [singletons(seed) for seed in range(n_singletons)]
        results["singleton_merges_against_flat_grid"] = {"cases": n_singletons, "largest_difference": max(differences)}
        write(args, {"sweeps": 15}, results)
    if "coverage" in args.parts:
        failures, mean, least = coverage(samples, args.seed)
        results["coverage"] = {
            "samples": samples, "delta": 0.05, "failures": failures, "mean_slack": mean, "least_slack": least,
        }  # fmt: skip
        write(args, {"sweeps": 15}, results)
    if "choice" in args.parts:
        results["choice_of_the_tree"] = choice(planted)
        write(args, {"sweeps": 15}, results)
    print(results)


if __name__ == "__main__":
    main()
