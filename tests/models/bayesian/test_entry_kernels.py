"""The three operations of the per-entry step: compiled equals reference, and threads change no bits."""

import numpy as np
import pytest

from gingham.errors import GinghamError
from gingham.kernels import threads
from gingham.models.bayesian.entry_kernels import LabelledItems, contract, expand, inner


def problem(seed=0, n_labels=4, n_items=7, k1=3, k2=5):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(n_labels, size=40))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))]).astype(np.int64)
    pairs = LabelledItems(indptr, rng.integers(n_items, size=40).astype(np.int32))
    return pairs, labels, rng.random((n_labels, k1, k2)), rng.random((n_items, k2)), rng.random((40, k1))


def test_compiled_equals_reference():
    pairs, _, tables, factor, sums = problem()
    rng = np.random.default_rng(1)
    left, right = rng.random((6, 5)), rng.random((8, 5))
    lc, rc = rng.integers(6, size=30).astype(np.int32), rng.integers(8, size=30).astype(np.int32)
    np.testing.assert_allclose(inner(left, right, lc, rc), inner(left, right, lc, rc, "reference"), rtol=1e-12)
    np.testing.assert_allclose(
        contract(tables, pairs, factor), contract(tables, pairs, factor, "reference"), rtol=1e-12
    )
    for got, want in zip(expand(tables, pairs, factor, sums), expand(tables, pairs, factor, sums, "reference")):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_reference_is_what_its_formula_says():
    pairs, labels, tables, factor, sums = problem(2)
    by_hand = np.array([tables[l] @ factor[i] for l, i in zip(labels, pairs.items)])
    np.testing.assert_allclose(contract(tables, pairs, factor, "reference"), by_hand)
    back, cells = expand(tables, pairs, factor, sums, "reference")
    np.testing.assert_allclose(back, [s @ tables[l] for l, s in zip(labels, sums)])
    for label in range(4):
        outer = sum(np.outer(sums[p], factor[pairs.items[p]]) for p in np.flatnonzero(labels == label))
        np.testing.assert_allclose(cells[label], tables[label] * outer)


def test_threads_change_no_bits(monkeypatch):
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    pairs, _, tables, factor, sums = problem(3, n_labels=6)
    codes = np.arange(40, dtype=np.int32)
    found = []
    for n in (1, 3):
        monkeypatch.setattr(threads, "available_threads", lambda n=n: n)
        found.append(
            (inner(sums, sums, codes, codes), contract(tables, pairs, factor), *expand(tables, pairs, factor, sums))
        )
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_unknown_backend_is_refused():
    with pytest.raises(GinghamError, match="backend='abacus'"):
        inner(np.ones((1, 1)), np.ones((1, 1)), np.zeros(1, np.int32), np.zeros(1, np.int32), "abacus")
