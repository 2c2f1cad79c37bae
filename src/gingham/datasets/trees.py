"""Planted trees: tuples whose labels, or whose own law, come from clusters that merge step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.errors import GinghamError

KINDS = ("random", "latin", "parity")
REDRAWS = 1000  # of random tables whose clusters cannot be told apart


@dataclass(frozen=True, eq=False)
class PlantedTree:
    """Labelled tuples of a planted tree, and the truth.

    Attributes
    ----------
    X : int array of shape (N, d)
    y : int array of shape (N,)
    leaves : tuple of int arrays, true cluster of every item of each leaf
    merges : tuple of int arrays, true cluster of every combination of child clusters
    answers : int array, true label of every root cell
    bayes_error : float, the least possible zero-one loss
    """

    X: Ints
    y: Ints
    leaves: tuple[Ints, ...]
    merges: tuple[Ints, ...]
    answers: Ints
    bayes_error: float


def make_tree(
    n_tuples: int,
    n_items: int = 100,
    n_clusters: int = 4,
    n_inner: int = 3,
    n_labels: int = 4,
    noise: float = 0.2,
    kind: str = "random",
    random_state: int = 0,
) -> PlantedTree:
    """Four leaves, merged in pairs (P0 Fig. 8): y = T[r1(c1, c2), r2(c3, c4)], replaced by a random label at times.

    Parameters
    ----------
    n_items, n_clusters : items and clusters of each leaf
    n_inner : clusters of each of the two merges
    noise : share of labels drawn at random
    kind : {"random", "latin", "parity"}
        "random": random tables. "latin": d = c + c' mod D, so that single items say nothing. "parity": also
        y = d1 + d2 mod |Y|, so that pairs of items say nothing either.
    """
    if kind not in KINDS:
        raise GinghamError(f"kind={kind!r} is unknown; choose one of {', '.join(KINDS)}.")
    rng = np.random.default_rng(random_state)
    leaves = tuple(rng.permutation(np.arange(n_items) % n_clusters) for _ in range(4))
    sums = np.add.outer(np.arange(n_clusters), np.arange(n_clusters)) % n_inner
    for _ in range(REDRAWS):
        merges = tuple(rng.integers(0, n_inner, (n_clusters, n_clusters)) for _ in range(2))
        answers = rng.integers(0, n_labels, (n_inner, n_inner))
        # Clusters with equal rows cannot be told apart by anybody.
        if all(told_apart(table) for table in (*merges, answers)):
            break
    if kind != "random":
        merges = (sums, sums)
    if kind == "parity":
        answers = np.add.outer(np.arange(n_inner), np.arange(n_inner)) % n_labels
    X = rng.integers(0, n_items, (n_tuples, 4))
    at = [leaf[column] for leaf, column in zip(leaves, X.T)]
    y = answers[merges[0][at[0], at[1]], merges[1][at[2], at[3]]]
    y = np.where(rng.random(n_tuples) < noise, rng.integers(0, n_labels, n_tuples), y)
    return PlantedTree(X, y, leaves, tuple(r.ravel() for r in merges), answers, noise * (1 - 1 / n_labels))


@dataclass(frozen=True, eq=False)
class PlantedSequences:
    """Sequences of four symbols from a planted density tree, and the truth.

    Attributes
    ----------
    X : int array of shape (N, 4), symbols (pairs of residues)
    clusters : int array, true cluster of every symbol, the same at all positions
    merges : int array, true cluster of every pair of clusters, the same on both sides
    log_density : array of shape (N,), true ln p of every sequence
    """

    X: Ints
    clusters: Ints
    merges: Ints
    log_density: Floats


def make_sequences(
    n_tuples: int, n_residues: int = 20, n_clusters: int = 12, n_inner: int = 6, random_state: int = 0
) -> PlantedSequences:
    """Protein-like 8-mers (P0 Fig. 9): four pairs of residues, their clusters C, and clusters D of C's pairs.

    (D1, D2) is drawn from one table, the pairs (C, C') given D, then each symbol given its cluster.
    """
    rng = np.random.default_rng(random_state)
    n_symbols = n_residues**2
    clusters = rng.permutation(np.arange(n_symbols) % n_clusters)
    weight = rng.gamma(0.7, size=n_symbols)
    symbols = [normalised(np.where(clusters == c, weight, 0.0)) for c in range(n_clusters)]
    merges = rng.permutation(np.arange(n_clusters**2) % n_inner)
    spread = rng.gamma(0.5, size=(n_inner, n_clusters**2))
    pairs = [normalised(np.where(merges == d, spread[d], 0.0)) for d in range(n_inner)]
    tops = rng.dirichlet(np.full(n_inner**2, 0.3))
    top = draw(rng, tops[None], np.zeros(n_tuples, dtype=np.int64))
    density = np.log(tops[top])
    X = np.empty((n_tuples, 4), dtype=np.int64)
    for side, inner in enumerate((top // n_inner, top % n_inner)):
        pair = draw(rng, pairs, inner)
        density += np.log(np.stack(pairs)[inner, pair])
        for j, cluster in enumerate((pair // n_clusters, pair % n_clusters)):
            symbol = draw(rng, symbols, cluster)
            density += np.log(np.stack(symbols)[cluster, symbol])
            X[:, 2 * side + j] = symbol
    return PlantedSequences(X, clusters, merges, density)


def told_apart(table: Ints) -> bool:
    """Whether all rows, and all columns, are different."""
    return all(len(np.unique(side, axis=0)) == len(side) for side in (table, table.T))


def normalised(weights: Floats) -> Floats:
    return weights / weights.sum()


def draw(rng: np.random.Generator, laws: Sequence[Floats] | AnyArray, given: Ints) -> Ints:
    """One draw from law ``given[e]`` for each e."""
    steps = np.cumsum(np.stack(list(laws)), axis=1)
    u = rng.random(len(given))
    out = np.empty(len(given), dtype=np.int64)
    for k in np.unique(given):
        rows = given == k
        out[rows] = np.minimum(np.searchsorted(steps[k], u[rows], side="right"), steps.shape[1] - 1)
    return out
