"""Planted data with known clusters: checkerboards, counts, trees and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints
from gingham.errors import GinghamError


class PlantedGrid(NamedTuple):
    """Observations drawn from a checkerboard."""

    X: Ints  # (N, d)
    y: Ints  # (N,), labels 0, …, n_labels − 1
    labels: tuple[Ints, ...]  # the planted cluster of each item, one per mode
    answers: Ints  # (m_1, …, m_d), the planted label of each cell
    risk: float  # expected zero-one loss of the planted checkerboard on new observations: no predictor does better


class PlantedCounts(NamedTuple):
    """Co-occurrences drawn from a block density."""

    counts: Ints  # (n_1, n_2)
    labels: tuple[Ints, Ints]
    density: Floats  # (n_1, n_2), sums to one
    information: float  # mutual information of the planted clusters, nats: the most that any clustering can keep


def planted_grid(
    n_items: Sequence[int] = (200, 150),
    n_clusters: Sequence[int] = (4, 3),
    n_observations: int = 10_000,
    *,
    n_labels: int = 5,
    noise: float = 0.2,
    seed: int = 0,
) -> PlantedGrid:
    """Observations whose label is that of their cell, but with probability ``noise`` another one, all alike.

    Items are drawn uniformly, clusters of one mode have distinct answers, and the best possible
    zero-one risk is ``noise``.
    """
    if len(n_items) != len(n_clusters) or not n_items:
        raise GinghamError(f"n_items has {len(n_items)} entries and n_clusters {len(n_clusters)}: one each per mode.")
    if any(m < 1 or m > n for n, m in zip(n_items, n_clusters)):
        raise GinghamError(f"n_clusters={tuple(n_clusters)} must lie between 1 and n_items={tuple(n_items)}.")
    _check_noise(noise, n_labels)
    rng = np.random.default_rng(seed)
    labels = tuple(_balanced(n, m, rng) for n, m in zip(n_items, n_clusters))
    answers = _distinct_answers(tuple(n_clusters), n_labels, rng)
    X = np.column_stack([rng.integers(0, n, n_observations) for n in n_items])
    clean = answers[tuple(label[X[:, j]] for j, label in enumerate(labels))]
    return PlantedGrid(X, _with_noise(clean, noise, n_labels, rng), labels, answers, float(noise))


def planted_counts(
    n_items: tuple[int, int] = (120, 90),
    n_clusters: tuple[int, int] = (4, 3),
    n_observations: int = 20_000,
    *,
    contrast: float = 8.0,
    seed: int = 0,
) -> PlantedCounts:
    """A table of counts: cells differ by factors up to ``contrast``, items within a cluster are alike.

    ``contrast`` = 1 makes both sides independent.
    """
    if not contrast >= 1:
        raise GinghamError(f"contrast={contrast} must be at least 1.")
    rng = np.random.default_rng(seed)
    labels = tuple(_balanced(n, m, rng) for n, m in zip(n_items, n_clusters))
    # Of many tables the most informative: a single draw may happen to be nearly independent.
    drawn = np.exp(rng.uniform(0, np.log(contrast), (50, *n_clusters)))
    shares = [np.bincount(label, minlength=m) / len(label) for label, m in zip(labels, n_clusters)]
    drawn *= shares[0][:, None] * shares[1][None, :]
    joint = max(drawn / drawn.sum(axis=(1, 2), keepdims=True), key=_information)
    density = (joint / (np.outer(*(np.bincount(label) for label in labels))))[np.ix_(labels[0], labels[1])]
    counts = rng.multinomial(n_observations, density.ravel() / density.sum()).reshape(n_items)
    return PlantedCounts(counts, (labels[0], labels[1]), density, _information(joint))


def _information(joint: Floats) -> float:
    """Mutual information of a joint distribution, nats."""
    return float((joint * np.log(joint / (joint.sum(1)[:, None] * joint.sum(0)[None, :]))).sum())


def _check_noise(noise: float, n_labels: int) -> None:
    if not 0 <= noise <= (n_labels - 1) / n_labels or n_labels < 2:
        raise GinghamError(f"noise={noise} must be from 0 to (n_labels − 1)/n_labels, with at least two labels.")


def _with_noise(clean: Ints, noise: float, n_labels: int, rng: np.random.Generator) -> Ints:
    """The labels, of which a share is replaced by another one, all others alike."""
    wrong = rng.random(len(clean)) < noise
    return np.where(wrong, (clean + rng.integers(1, n_labels, len(clean))) % n_labels, clean)


def _balanced(n: int, m: int, rng: np.random.Generator) -> Ints:
    return rng.permutation(np.arange(n) % m)


def _distinct_answers(shape: tuple[int, ...], n_labels: int, rng: np.random.Generator) -> Ints:
    """Random answers in which no two clusters of a mode are alike, where that is possible."""
    answers = rng.integers(0, n_labels, shape)
    for _ in range(200):
        if all(
            len(np.unique(np.moveaxis(answers, axis, 0).reshape(m, -1), axis=0)) == m for axis, m in enumerate(shape)
        ):
            break
        answers = rng.integers(0, n_labels, shape)
    return answers


@dataclass(frozen=True, eq=False)
class PlantedTree:
    """Labelled tuples of a planted tree, and the truth."""

    X: Ints  # (N, d)
    y: Ints  # (N,)
    leaves: tuple[Ints, ...]  # true cluster of every item of each leaf
    merges: tuple[Ints, ...]  # true cluster of every combination of child clusters
    answers: Ints  # true label of every root cell
    bayes_error: float  # the least possible zero-one loss


def make_tree(
    n_observations: int,
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
    if kind not in ("random", "latin", "parity"):
        raise GinghamError(f"kind={kind!r} is unknown; choose random, latin or parity.")
    rng = np.random.default_rng(random_state)
    leaves = tuple(_balanced(n_items, n_clusters, rng) for _ in range(4))
    sums = np.add.outer(np.arange(n_clusters), np.arange(n_clusters)) % n_inner
    for _ in range(1000):
        merges = tuple(rng.integers(0, n_inner, (n_clusters, n_clusters)) for _ in range(2))
        answers = rng.integers(0, n_labels, (n_inner, n_inner))
        # Clusters with equal rows cannot be told apart by anybody.
        if all(told_apart(table) for table in (*merges, answers)):
            break
    if kind != "random":
        merges = (sums, sums)
    if kind == "parity":
        answers = np.add.outer(np.arange(n_inner), np.arange(n_inner)) % n_labels
    X = rng.integers(0, n_items, (n_observations, 4))
    at = [leaf[column] for leaf, column in zip(leaves, X.T)]
    y = answers[merges[0][at[0], at[1]], merges[1][at[2], at[3]]]
    y = np.where(rng.random(n_observations) < noise, rng.integers(0, n_labels, n_observations), y)
    return PlantedTree(X, y, leaves, tuple(r.ravel() for r in merges), answers, noise * (1 - 1 / n_labels))


@dataclass(frozen=True, eq=False)
class PlantedSequences:
    """Sequences of four symbols from a planted density tree, and the truth."""

    X: Ints  # (N, 4), symbols (pairs of residues)
    clusters: Ints  # true cluster of every symbol, the same at all positions
    merges: Ints  # true cluster of every pair of clusters, the same on both sides
    log_density: Floats  # (N,), true ln p of every sequence


def make_sequences(
    n_observations: int, n_residues: int = 20, n_clusters: int = 12, n_inner: int = 6, random_state: int = 0
) -> PlantedSequences:
    """Protein-like 8-mers (P0 Fig. 9): four pairs of residues, their clusters C, and clusters D of C's pairs.

    (D1, D2) is drawn from one table, the pairs (C, C') given D, then each symbol given its cluster.
    """
    rng = np.random.default_rng(random_state)
    n_symbols = n_residues**2
    clusters = _balanced(n_symbols, n_clusters, rng)
    weight = rng.gamma(0.7, size=n_symbols)
    symbols = [normalised(np.where(clusters == c, weight, 0.0)) for c in range(n_clusters)]
    merges = _balanced(n_clusters**2, n_inner, rng)
    spread = rng.gamma(0.5, size=(n_inner, n_clusters**2))
    pairs = [normalised(np.where(merges == d, spread[d], 0.0)) for d in range(n_inner)]
    tops = rng.dirichlet(np.full(n_inner**2, 0.3))
    top = draw(rng, tops[None], np.zeros(n_observations, dtype=np.int64))
    density = np.log(tops[top])
    X = np.empty((n_observations, 4), dtype=np.int64)
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


def draw(rng: np.random.Generator, distributions: Sequence[Floats] | AnyArray, given: Ints) -> Ints:
    """One draw from distribution ``given[e]`` for each e."""
    steps = np.cumsum(np.stack(list(distributions)), axis=1)
    u = rng.random(len(given))
    out = np.empty(len(given), dtype=np.int64)
    for k in np.unique(given):
        rows = given == k
        out[rows] = np.minimum(np.searchsorted(steps[k], u[rows], side="right"), steps.shape[1] - 1)
    return out


class PlantedGraph(NamedTuple):
    """An adjacency matrix (n, n), symmetric, 0/1, and the cluster of each node."""

    adjacency: sparse.csr_array
    labels: Ints


def planted_graph(
    n: int = 1000,
    k: int = 5,
    *,
    inside: float = 16.0,
    outside: float = 4.0,
    kind: str = "assortative",
    exponent: float | None = None,
    seed: int = 0,
) -> PlantedGraph:
    """A stochastic block model.

    Parameters
    ----------
    inside, outside : float
        Expected number of edges of a node to its own cluster (to its two neighbouring clusters in a
        ring) and to all others.
    kind : {"assortative", "ring"}
        In a ring, cluster a is joined with clusters a − 1 and a + 1 and hardly with itself.
    exponent : float or None
        Degree correction: node propensities follow a power distribution with this exponent (2.5, say), between
        1 and √n times the least, so that nodes of one cluster have very different degrees.
    """
    if kind not in ("assortative", "ring"):
        raise GinghamError(f"kind={kind!r} is unknown; choose assortative or ring.")
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    joined = inside / (n / k)
    density = np.full((k, k), outside / (n - n / k) if k > 1 else 0.0)
    if kind == "assortative":
        np.fill_diagonal(density, joined)
    else:
        for a in range(k):
            density[a, (a + 1) % k] = density[(a + 1) % k, a] = joined / 2.0
    members = [np.flatnonzero(labels == a) for a in range(k)]
    propensity = None if exponent is None else _power_law(n, exponent, rng)
    ends = []
    for a in range(k):
        for b in range(a, k):
            left, right = members[a], members[b]
            pairs = len(left) * len(right) if a != b else len(left) * (len(left) - 1) // 2
            m = rng.binomial(pairs, min(density[a, b], 1.0)) if pairs else 0
            ends.append(
                np.column_stack([_draw_nodes(left, propensity, m, rng), _draw_nodes(right, propensity, m, rng)])
            )
    edges = np.concatenate(ends)
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return PlantedGraph((upper + upper.T).tocsr(), labels)


def _power_law(n: int, exponent: float, rng: np.random.Generator) -> Floats:
    """Draws from p(t) ∝ t^−exponent on [1, √n]."""
    top = np.sqrt(n) ** (1.0 - exponent)
    return (1.0 - rng.random(n) * (1.0 - top)) ** (1.0 / (1.0 - exponent))


def _draw_nodes(members: Ints, propensity: Floats | None, m: int, rng: np.random.Generator) -> Ints:
    if len(members) == 0:
        return np.zeros(0, dtype=np.int64)
    if propensity is None:
        return members[rng.integers(0, len(members), m)]
    cumulated = np.cumsum(propensity[members])
    return members[np.searchsorted(cumulated, rng.random(m) * cumulated[-1], side="right").clip(max=len(members) - 1)]
