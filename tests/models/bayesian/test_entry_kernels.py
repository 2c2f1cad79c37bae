"""The three operations of the per-entry step: what their formulas say, and threads change no bits."""

import numpy as np
import pytest

from gingham.engine import threads
from gingham.models.bayesian.entry_kernels import LabelledItems, contract, expand, inner


def problem(seed=0, n_labels=4, n_items=7, k1=3, k2=5):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(n_labels, size=40))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))]).astype(np.int64)
    pairs = LabelledItems(indptr, rng.integers(n_items, size=40).astype(np.int32))
    return pairs, labels, rng.random((n_labels, k1, k2)), rng.random((n_items, k2)), rng.random((40, k1))


def test_inner_products_of_entries():
    rng = np.random.default_rng(1)
    left, right = rng.random((6, 5)), rng.random((8, 5))
    lc, rc = rng.integers(6, size=30).astype(np.int32), rng.integers(8, size=30).astype(np.int32)
    np.testing.assert_allclose(inner(left, right, lc, rc), np.einsum("ec,ec->e", left[lc], right[rc]), rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 2])
def test_contract_and_expand_are_what_their_formulas_say(seed):
    pairs, labels, tables, factor, sums = problem(seed)
    by_hand = np.array([tables[l] @ factor[i] for l, i in zip(labels, pairs.items)])
    np.testing.assert_allclose(contract(tables, pairs, factor), by_hand)
    back, cells = expand(tables, pairs, factor, sums)
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
