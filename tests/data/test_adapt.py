"""Formats at the door: arrays, lists, frames, dense and sparse matrices."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from gingham.data.adapt import categorical_entries, from_frame, from_matrix, from_pairs, id_columns
from gingham.data.graphs import from_graph
from gingham.errors import GinghamError

TABLE = {"user": ["u", "v", "u"], "movie": [7, 8, 8], "stars": [5, 1, 3], "n": [1, 2, 1]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames_keep_names_and_column_types(make):
    X, y, w = from_frame(make(TABLE), ["user", "movie"], "stars", "n")
    columns, names = id_columns(X)
    assert names == ["user", "movie"]
    assert columns[0].dtype.kind in "UO"
    assert columns[1].dtype.kind == "i"
    assert y.tolist() == [5, 1, 3]
    assert w.tolist() == [1, 2, 1]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_missing_ids_and_columns_are_named(make):
    with pytest.raises(GinghamError, match=r"'user' has a missing id .* in row 1"):
        id_columns(make({"user": ["u", None], "movie": [1, 2]}))
    with pytest.raises(GinghamError, match="no column 'star'; the table has 'user'"):
        from_frame(make(TABLE), ["user", "movie"], "star")


def test_list_of_mixed_tuples_keeps_each_columns_type():
    columns, _ = id_columns([("u", 7), ("v", 8)])
    assert columns[0].tolist() == ["u", "v"]
    assert columns[1].dtype.kind == "i"


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(3), "Reshape your data"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        ([(1, 2), (3,)], "different lengths"),
        (sparse.eye(3, format="csr"), "from_matrix"),
        (np.zeros((2, 2), complex), "Complex"),
    ],
)
def test_bad_shapes_get_a_sentence(X, words):
    with pytest.raises(GinghamError, match=words):
        id_columns(X)


DENSE = np.array([[1.0, np.nan, 3.0], [np.nan, 0.0, 2.0]])


def test_nan_means_missing_when_said_so():
    X, y = from_matrix(DENSE, missing="nan")
    assert X.tolist() == [[0, 0], [0, 2], [1, 1], [1, 2]]
    assert y.tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_unstored_means_missing_when_said_so(kind):
    stored = sparse.coo_matrix(([1.0, 0.0], ([0, 1], [2, 1])), shape=(2, 3))
    X, y = from_matrix(kind(stored), missing="implicit")
    assert sorted(map(tuple, X.tolist())) == [(0, 2), (1, 1)]
    assert sorted(y.tolist()) == [0.0, 1.0]  # a stored zero is an observed zero
    X, y = from_matrix(kind(stored), missing="none")
    assert len(y) == 6
    assert y.sum() == 1


def test_tensors_and_frames_have_positions_too():
    X, y = from_matrix(np.arange(8.0).reshape(2, 2, 2), missing="none")
    assert X.shape == (8, 3)
    assert y[5] == 5
    assert from_matrix(pd.DataFrame(DENSE), missing="nan").X.shape == (4, 2)


@pytest.mark.parametrize(
    ("matrix", "missing", "words"),
    [
        (DENSE, None, "State what absent entries mean"),
        (DENSE, "zero", "State what absent entries mean"),
        (DENSE, "implicit", "is for sparse"),
        (DENSE, "none", r"Entry \(0, 1\) is nan.*missing='nan'"),
        (np.array([[np.inf]]), "nan", r"Entry \(0, 0\) is inf"),
        (sparse.csr_array(([1.0], ([0], [1])), shape=(2, 2)), "nan", "ambiguous"),
        (np.full((2, 2), np.nan), "nan", "No entry"),
        (np.zeros((0, 3)), "none", "empty"),
    ],
)
def test_ambiguity_is_refused_never_guessed(matrix, missing, words):
    with pytest.raises(GinghamError, match=words):
        from_matrix(matrix, missing=missing)


def test_tables_of_few_numbers_are_read_like_any_other():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 4, (12, 7)).astype(float) * np.arange(1, 8)
    table[rng.random(table.shape) < 0.3] = np.nan
    table[:, 3] = np.nan
    fast = categorical_entries(table)
    slow = categorical_entries(pd.DataFrame(table))  # column by column
    for a, b in zip(fast[:3], slow[:3]):
        assert np.array_equal(a, b)
    assert fast[3:] == slow[3:]


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix, sparse.csr_array])
def test_entries_that_are_listed_twice_add_up(kind):
    rows, columns, values = [0, 0, 1, 1], [1, 1, 0, 1], [1.0, 2.0, 5.0, 0.0]
    if kind is sparse.csr_array:  # as nobody should build it
        matrix = sparse.csr_array((values, columns, [0, 2, 4]), shape=(2, 2))
        matrix.has_canonical_format = False
    else:
        matrix = kind((values, (rows, columns)), shape=(2, 2))
    X, y = from_matrix(matrix, missing="implicit")
    assert X.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert y.tolist() == [3.0, 5.0, 0.0]
    assert matrix.nnz == 4  # what was given stays as it was


def test_entries_of_a_graph_that_are_listed_twice_add_up():
    matrix = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(3, 3))
    assert from_graph(matrix).labels.tolist() == from_graph(matrix.tocsr()).labels.tolist() == [3.0]


def test_masked_entries_are_missing():
    matrix = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    X, y = from_matrix(matrix, missing="nan")
    assert X.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert y.tolist() == [1, 3, 4]
    square = np.ma.array(np.ones((3, 3)), mask=[[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert from_graph(square, pairs="listed").n_rows == 2
    table = np.ma.array([[1, 2, 1], [2, 2, 1]], mask=[[0, 1, 0], [0, 0, 0]])
    rows, columns, *_ = categorical_entries(table)
    assert sorted(zip(rows.tolist(), columns.tolist())) == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_pairs_of_ids_that_cannot_be_sorted():
    matrix, rows, _ = from_pairs([("a", 1), (2, 1), ("a", 1)])
    assert rows.tolist() == ["a", 2]
    assert matrix.toarray().tolist() == [[2.0], [1.0]]
