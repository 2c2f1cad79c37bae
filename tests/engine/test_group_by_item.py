"""grouping equals the numpy lines in its docstring, in one pass and in two, on any number of threads."""

import numba
import numpy as np
import pytest

from gingham.engine import project_compiled as order
from gingham.engine.project_compiled import grouping


def expected(codes, labels, n_items, n_labels):
    keys = codes.astype(np.int64) * n_labels + (labels if n_labels > 1 else 0)
    return np.searchsorted(np.sort(keys), np.arange(n_items * n_labels + 1)), np.argsort(keys, kind="stable")


def sample(n, n_items, n_labels):
    rng = np.random.default_rng(0)
    codes = (n_items * rng.random(n) ** 3).astype(np.int32)
    return codes, rng.integers(0, n_labels, n).astype(np.int32) if n_labels > 1 else np.empty(0, np.int32)


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 500])
def test_equals_a_stable_sort(n_labels, n):
    codes, labels = sample(n, 7, n_labels)
    begin, (found,) = grouping(codes, labels, 9, n_labels, [np.arange(n)])
    for got, wanted in zip((begin, found), expected(codes, labels, 9, n_labels)):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("n_labels", [1, 5])
@pytest.mark.parametrize("n_items", [1, 5, 8, 9, 1000])
@pytest.mark.parametrize("n", [8, 999, 5000])
def test_two_passes_equal_one(n, n_items, n_labels, monkeypatch):
    for name, value in (("SMALL", 0), ("CHUNK", 64), ("BUCKETS", 8)):
        monkeypatch.setattr(order, name, value)
    codes, labels = sample(n, n_items, n_labels)
    begin, (found,) = grouping(codes, labels, n_items, n_labels, [np.arange(n)])
    for got, wanted in zip((begin, found), expected(codes, labels, n_items, n_labels)):
        np.testing.assert_array_equal(got, wanted)
    columns = [np.random.default_rng(1).integers(0, 99, n).astype(np.int32), np.random.default_rng(2).random(n)]
    before = numba.get_num_threads()
    try:
        for n_threads in {1, before}:
            numba.set_num_threads(n_threads)
            again, arranged = grouping(codes, labels, n_items, n_labels, columns)
            np.testing.assert_array_equal(again, begin)
            for got, column in zip(arranged, columns, strict=True):
                np.testing.assert_array_equal(got, column[found])
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(grouping(codes, labels, n_items, n_labels, [])[0], begin)
