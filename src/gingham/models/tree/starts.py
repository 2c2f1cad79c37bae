"""Where a tree begins: leaves from the spectra of pairs or of agreements, inner tables from the leaves' cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.utils.extmath import randomized_svd

from gingham.arrays import Floats, Ints
from gingham.core.problem import Posterior, Problem, Tree
from gingham.core.tree import TreePosterior, need_tree, tree_of, unique_rows
from gingham.data import Sample
from gingham.engine.k_means import k_means
from gingham.engine.threads import one_library_thread
from gingham.errors import GinghamError, one_of
from gingham.fitting.starts import Start, from_items

TREE_STARTS = ("spectral", "agreement", "random")
FIRMNESS = 0.9  # probability of the k-means cluster
DENSE_ITEMS = 4000  # up to here the items' similarities are held as a full matrix


def tree_start(start: Start, problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> TreePosterior:
    """A tree to begin with: by name, from leaf labels (one array per leaf mode) or from another tree."""
    tree = tree_of(problem)
    if isinstance(start, Posterior):
        return from_tree(problem, start)
    if isinstance(start, str):
        one_of("start", start, TREE_STARTS, ", labels, or a tree")
        if start == "random":
            assign = [near(rng.integers(0, m, mode.n_items), m) for mode, m in zip(tree.modes, n_clusters)]
            assign = [np.eye(q.shape[1]) if mode in tree.frozen else q for mode, q in enumerate(assign)]
            return with_tables(problem, assign)
        with one_library_thread():
            labels = leaf_labels(problem, n_clusters, rng, start)
    else:
        labels = [np.asarray(given, dtype=np.int64) for given in start]
    return from_leaf_labels(problem, n_clusters, labels, rng)


def leaf_modes(tree: Tree) -> list[int]:
    return sorted(set(tree.tables[: tree.n_leaves]))


def with_tables(problem: Problem, assign: Sequence[Floats]) -> TreePosterior:
    """The tree with these tables whose root cells answer best."""
    posterior = TreePosterior(tree_of(problem), problem.cells, tuple(assign), (np.zeros(0),))
    return replace(posterior, answers=posterior.refit(problem.samples[0]).answers)


def from_tree(problem: Problem, posterior: Posterior) -> TreePosterior:
    """Another tree's tables, matched by item id; items it does not know get its masses."""
    tree, other = tree_of(problem), "The starting posterior belongs to another tree."
    old = need_tree(posterior, other).structure
    if (old.tables, old.children) != (tree.tables, tree.children):
        raise GinghamError(other)
    return with_tables(problem, from_items(posterior, tree.modes).assign)


def leaf_labels(problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator, kind: str) -> list[Ints]:
    """Clusters of the items of every leaf mode.

    "spectral" looks at what a leaf says together with each other leaf; "agreement" at observations that agree
    in all other leaves, the only pairs that see a parity (it needs such coincidences to be frequent).
    """
    tree, sample = tree_of(problem), problem.samples[0]
    responses = label_responses(problem)
    labels = []
    for mode in leaf_modes(tree):
        blocks = []
        for position in (j for j in range(tree.n_leaves) if tree.tables[j] == mode):
            others = [j for j in range(tree.n_leaves) if j != position]
            # A single leaf has no other: what its items say alone is all there is.
            partners = [others] if kind == "agreement" or not others else [[j] for j in others]
            blocks += [
                contrasts(
                    sample, sample.codes[position], sample.shape[position], [sample.codes[j] for j in p], responses
                )
                for p in partners
            ]
        points = embed(sparse.hstack(blocks).tocsr(), n_clusters[mode], rng, hollow=True)
        labels.append(k_means(points, np.ones(len(points)), n_clusters[mode], rng, n_init=5))
    return labels


def label_responses(problem: Problem) -> Floats:
    """What is averaged per item, centred, (N, r): the labels, or their one-hot codes when they are names."""
    sample, cell = problem.samples[0], problem.cells[0]
    if sample.labels is None:
        return np.zeros((sample.n_rows, 1))
    if cell.ordered or sample.label_codes is None:
        responses = sample.labels[:, None]
    else:
        responses = np.eye(sample.alphabet.size if sample.alphabet else 1)[sample.label_codes]
    return responses - np.average(responses, axis=0, weights=sample.weights)


def from_leaf_labels(
    problem: Problem, n_clusters: Sequence[int], labels: Sequence[Ints], rng: np.random.Generator
) -> TreePosterior:
    """Given leaf clusters; inner tables by k-means on what each cell says against the leaves elsewhere."""
    tree, sample = tree_of(problem), problem.samples[0]
    modes = leaf_modes(tree)
    if len(labels) != len(modes):
        raise GinghamError(f"{len(labels)} label arrays were given for {len(modes)} leaf modes.")
    assign: list[Floats] = [np.zeros((0, 0))] * tree.n_modes
    for mode, given in zip(modes, labels):
        assign[mode] = near(given, n_clusters[mode])
    d = tree.n_leaves
    at = [assign[tree.tables[j]].argmax(axis=1)[sample.codes[j]] for j in range(d)]  # clusters in each observation
    under = [{j} for j in range(d)]
    for children in tree.children:
        under.append(set().union(*(under[child] for child in children)))
    responses = label_responses(problem)

    def cells(node: int) -> Ints:
        children = tree.children[node - d]
        sizes = [n_clusters[tree.tables[child]] for child in children]
        return np.ravel_multi_index([at[child] for child in children], sizes)

    for node in range(d, len(tree.tables)):
        mode = tree.tables[node]
        if mode in tree.frozen:
            assign[mode] = np.eye(n_clusters[mode])
        elif not assign[mode].size:
            n_cells = tree.modes[mode].n_items
            blocks, weights = [], np.ones(n_cells)
            # Nodes that share the table speak for it together, as far as their children are placed.
            for same in range(node, len(tree.tables)):
                if tree.tables[same] == mode and max(tree.children[same - d]) < len(at):
                    elsewhere = [at[j] for j in range(d) if j not in under[same]]
                    blocks.append(contrasts(sample, cells(same), n_cells, elsewhere, responses))
                    weights += np.bincount(cells(same), sample.weights, minlength=n_cells)
            points = embed(sparse.hstack(blocks).tocsr(), n_clusters[mode] + 1, rng)
            length = np.linalg.norm(points, axis=1, keepdims=True)
            points = np.divide(points, length, out=np.zeros_like(points), where=length > 1e-9)
            assign[mode] = near(k_means(points, weights, n_clusters[mode], rng, n_init=10), n_clusters[mode])
        at.append(assign[mode].argmax(axis=1)[cells(node)])
    return with_tables(problem, assign)


def near(labels: Ints, n_clusters: int) -> Floats:
    """Almost hard memberships: every cluster stays possible."""
    return FIRMNESS * np.eye(n_clusters)[labels] + (1.0 - FIRMNESS) / n_clusters


def contrasts(sample: Sample, items: Ints, n_items: int, partners: Sequence[Ints], responses: Floats) -> Any:
    """Σ response / √(count + 1) of each (item, combination of partners), sparse, one block per response."""
    rest: Ints = np.zeros(sample.n_rows, dtype=np.int32)
    n_rest = 1
    if partners:
        distinct, rest = unique_rows(np.stack(partners, axis=1))
        n_rest = len(distinct)
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    shape = (n_items, n_rest)
    pair, inverse = np.unique(items.astype(np.int64) * n_rest + rest, return_inverse=True)
    scale = np.sqrt(np.bincount(inverse, weights) + 1.0)
    blocks = []
    for response in responses.T:
        sums = np.bincount(inverse, weights * response) / scale
        blocks.append(sparse.csr_array((sums, (pair // n_rest, pair % n_rest)), shape=shape))
    return sparse.hstack(blocks).tocsr()


def embed(matrix: Any, rank: int, rng: np.random.Generator, hollow: bool = False) -> Floats:
    """Leading left singular vectors times singular values, (n, rank).

    ``hollow`` leaves out an item's similarity to itself, which is mostly noise.
    """
    n = matrix.shape[0]
    rank = min(rank, n)
    if n <= DENSE_ITEMS:
        gram = (matrix @ matrix.T).toarray()
        if hollow:
            np.fill_diagonal(gram, 0.0)
        values, vectors = eigh(gram, subset_by_index=(n - rank, n - 1))
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    left, values, _ = randomized_svd(matrix, rank, n_iter=3, random_state=int(rng.integers(2**31 - 1)))
    return np.asarray(left * values)
