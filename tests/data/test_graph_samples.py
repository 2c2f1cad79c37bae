"""Every form of a graph becomes the same pairs; sums over absent pairs equal brute force."""

import warnings
from functools import reduce
from itertools import permutations
from math import factorial

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Moments, OneHot
from gingham.data.graphs import all_pairs, all_pairs_hard, from_graph, label_values, with_alphabet
from gingham.errors import GinghamError, GinghamWarning

EDGES = [(0, 1, 2.0), (0, 2, 0.5), (1, 3, 1.5), (2, 3, 3.0), (3, 4, 1.0)]


def dense(n=5, directed=False):
    matrix = np.zeros((n, n))
    for i, j, w in EDGES:
        matrix[i, j] = w
        if not directed:
            matrix[j, i] = w
    return matrix


def as_set(sample):
    return {(sample.modes[0].items[i], sample.modes[0].items[j], w) for i, j, w in zip(*sample.codes, sample.labels)}


FORMS = {
    "dense": dense(),
    "csr_array": sparse.csr_array(dense()),
    "coo_matrix": sparse.coo_matrix(dense()),
    "networkx": nx.from_numpy_array(dense()),
    "list": EDGES,
    "list, other direction": [(j, i, w) for i, j, w in EDGES],
    "array": np.array(EDGES),
    "pandas": pd.DataFrame(EDGES, columns=["from", "to", "weight"]),
    "polars": pl.DataFrame(EDGES, schema=["from", "to", "weight"], orient="row"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pairs(form):
    sample = from_graph(FORMS[form])
    assert as_set(sample) == set(EDGES)
    assert not sample.directed
    assert sample.n_observations == 10
    assert from_graph(FORMS[form], pairs="listed").n_observations == (10 if form == "dense" else 5)


def test_direction_is_read_off_and_can_be_said():
    assert from_graph(dense(directed=True)).directed
    assert from_graph(sparse.csr_array(dense(directed=True))).directed
    assert from_graph(nx.DiGraph([(0, 1), (1, 2)])).directed
    assert from_graph(EDGES, directed=True).n_observations == 20
    assert len(from_graph([(0, 1), (1, 0)], directed=True).labels) == 2
    assert len(from_graph([(0, 1), (1, 0)]).labels) == 1


def test_strings_hyperedges_and_lonely_nodes():
    sample = from_graph([("b", "a"), ("c", "a")], nodes=["a", "b", "c", "d"])
    assert sample.n_nodes == 4
    assert as_set(sample) == {("a", "b", 1.0), ("a", "c", 1.0)}
    triples = from_graph([("a", "b", "c"), ("c", "b", "d")], hyperedges=True)
    assert triples.n_modes == 3
    assert triples.n_observations == 4  # sets of three among four nodes


WHOLE = [("a", "b", 9), ("b", "c", 2)]
WHOLE_FORMS = {
    "list": WHOLE,
    "list of numpy numbers": [(a, b, np.int64(w)) for a, b, w in WHOLE],
    "array of objects": np.array(WHOLE, dtype=object),
    "pandas": pd.DataFrame(WHOLE, columns=["from", "to", "times"]),
    "polars": pl.DataFrame(WHOLE, schema=["from", "to", "times"], orient="row"),
}


@pytest.mark.parametrize("form", WHOLE_FORMS)
def test_whole_numbers_in_the_third_column_are_weights(form):
    sample = from_graph(WHOLE_FORMS[form])
    assert as_set(sample) == {("a", "b", 9.0), ("b", "c", 2.0)}
    assert sample.weighted
    assert as_set(from_graph(WHOLE_FORMS[form], weight=None)) == {("a", "b", 1.0), ("b", "c", 1.0)}


@pytest.mark.parametrize(
    "triples",
    [
        [("a", "b", "c"), ("c", "b", "d")],
        [("a", "b", 1), ("c", "b", "d")],
        [("a", "b", "c", "d"), ("c", "b", "d", "e")],
        [(0, 1, 2, 3), (1, 2, 3, 4)],
        np.array([[0, 1, 2, 3], [1, 2, 3, 4], [0, 2, 3, 4]]),
        np.array([["a", "b", "c"], ["a", "b", "d"]]),
        pd.DataFrame({"a": ["a", "c"], "b": ["b", "b"], "c": ["c", "d"]}),
        pd.DataFrame({"a": [0, 1], "b": [1, 2], "c": [2, 3], "weight": [1.0, 2.0]}),
    ],
)
def test_hyperedges_must_be_asked_for(triples):
    with pytest.raises(GinghamError, match="say hyperedges=True if each row is a set of nodes"):
        from_graph(triples)
    assert from_graph(triples, hyperedges=True).n_modes > 2


def test_rows_have_the_weights_that_are_given():
    sets, weights = [("a", "b", "c"), ("d", "c", "b"), ("a", "b", "d")], [9.0, 2.0, 0.5]
    for form in (sets, np.array(sets), pd.DataFrame(sets, columns=list("ijk"))):
        sample = from_graph(form, hyperedges=True, weight=weights)
        found = {
            tuple(sample.modes[0].items[list(row)].tolist()): w for row, w in zip(zip(*sample.codes), sample.labels)
        }
        assert found == {tuple(sorted(row)): w for row, w in zip(sets, weights)}
        assert sample.weighted
    pairs = from_graph([("a", "b"), ("b", "c")], weight=[3, 4])
    assert pairs.labels.tolist() == [3.0, 4.0]
    assert not from_graph([("a", "b"), ("b", "c")], weight=[True, True]).weighted
    with pytest.raises(GinghamError, match="a number for each of the 3 rows"):
        from_graph(sets, hyperedges=True, weight=[1.0])
    with pytest.raises(GinghamError, match="already has weights"):
        from_graph(np.eye(3)[[1, 0, 2]], weight=[1.0])


def test_hyperedges_of_numbers():
    triples = [(0, 1, 2), (1, 2, 3), (0, 2, 3)]
    for form in (triples, np.array(triples), np.array(triples, dtype=float), pl.DataFrame(triples, orient="row")):
        sample = from_graph(form, hyperedges=True)
        assert (sample.n_modes, sample.n_nodes, sample.n_rows) == (3, 4, 3)
    for pairs in (sparse.csr_array(dense()), nx.Graph([(0, 1)])):
        with pytest.raises(GinghamError, match="hyperedges=True is for lists and frames"):
            from_graph(pairs, hyperedges=True)


def test_masks_and_missing_entries():
    mask = np.zeros((5, 5), dtype=bool)
    mask[0, 1] = mask[0, 4] = True
    for form in (mask, sparse.csr_array(mask), [(0, 1), (4, 0)]):
        assert as_set(from_graph(dense(), pairs=form)) == {(0, 1, 2.0), (0, 4, 0.0)}
    matrix = dense()
    matrix[0, 4] = matrix[4, 0] = np.nan
    listed = from_graph(matrix, pairs="listed")
    assert listed.n_observations == 9
    assert (0, 3, 0.0) in as_set(listed)


def test_self_loops_are_left_out_with_a_note():
    matrix = dense()
    matrix[2, 2] = 7.0
    with pytest.warns(GinghamWarning, match="1 self loops"):
        sample = from_graph(matrix)
    assert as_set(sample) == set(EDGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_graph(dense())


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        (np.ones((2, 5)), {}, "neither a square"),
        (sparse.csr_array(np.ones((3, 2))), {}, "square"),
        ([(0, 1, 1.0), (1, 0, 2.0)], {}, "listed twice"),
        ([(0, 1, np.nan)], {}, "finite"),
        (np.array([[0, np.nan], [np.nan, 0]]), {}, "pairs='listed'"),
        (EDGES, {"pairs": "some"}, "pairs='some'"),
        (EDGES, {"nodes": [0, 1]}, "nodes="),
        (EDGES, {"pairs": [(0, 99)]}, "row 0"),
        (np.zeros((4, 4)), {}, "0 edges"),
        ([(0, 1), (1, 2, 3)], {}, "same number"),
        (3.0, {}, "Unsupported graph"),
        ([], {}, "empty"),
    ],
)
def test_bad_graphs_are_refused_with_a_sentence(graph, options, words):
    with pytest.raises(GinghamError, match=words):
        from_graph(graph, **options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("features", [Moments(2), OneHot(3)])
def test_statistics_of_all_pairs_equal_brute_force(directed, features):
    rng = np.random.default_rng(0)
    n, k = 9, 3
    matrix = rng.integers(0, 3, (n, n)).astype(float)
    matrix = matrix if directed else np.triu(matrix, 1) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, 0)
    sample = with_alphabet(from_graph(matrix), Alphabet.of([0.0, 1.0, 2.0], given=True))
    assert sample.directed == directed
    q = rng.dirichlet(np.ones(k), n)
    posterior = Posterior(Structure(sample.modes[:1], ((0, 0),)), (), (q,), ())
    table = posterior.statistics(sample, features=features)
    t = np.eye(3)[matrix.astype(int)] if isinstance(features, OneHot) else matrix[..., None] ** np.arange(3)
    t[np.arange(n), np.arange(n)] = 0  # no pair of a node with itself
    brute = np.einsum("ia,ijk,jb->abk", q, t, q) / (1 if directed else 2)
    np.testing.assert_allclose(table, brute)
    assert table.sum(axis=(0, 1))[0] > 0
    listed = posterior.statistics(sample.listed(), features=features)
    t[matrix == 0] = 0
    np.testing.assert_allclose(listed, np.einsum("ia,ijk,jb->abk", q, t, q) / (1 if directed else 2), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_sets_of_different_nodes_equal_brute_force(d):
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(2), 6)
    brute = np.zeros((2,) * d)
    for nodes in permutations(range(6), d):
        brute += reduce(np.multiply.outer, [q[x] for x in nodes])
    np.testing.assert_allclose(all_pairs(q, d, directed=True), brute)
    np.testing.assert_allclose(all_pairs(q, d), brute / factorial(d))


def test_labels_of_absent_pairs_count():
    assert label_values(from_graph(EDGES)).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
    assert 0.0 not in label_values(from_graph(EDGES, pairs="listed"))


@pytest.mark.parametrize("pairs", ["all", "listed"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("d", [2, 3])
def test_statistics_of_labels_are_those_of_their_memberships(d, directed, pairs):
    rng = np.random.default_rng(d)
    tuples = np.unique([rng.choice(9, d, replace=False) for _ in range(25)], axis=0).tolist()
    sample = from_graph(tuples, nodes=range(9), directed=directed, pairs=pairs, hyperedges=True)
    sample = with_alphabet(sample, Alphabet.of([0.0, 1.0], given=True))
    labels = rng.integers(0, 3, 9)
    hard = np.eye(3)[labels]
    np.testing.assert_allclose(
        all_pairs_hard(np.bincount(labels, minlength=3), d, directed), all_pairs(hard, d, directed)
    )
    for features in (Moments(2), OneHot(2)):
        expected = sample.sums(features).table([hard] * d)
        np.testing.assert_allclose(sample.block_statistics(labels, 3, features), expected, atol=1e-8)
