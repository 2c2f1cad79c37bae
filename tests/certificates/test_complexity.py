"""The exact price equals enumeration of every co-clustering; the papers' is hardly ever below it."""

from itertools import permutations, product
from math import comb, factorial, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gingham.cells import Quadratic
from gingham.certificates import prices as cx
from gingham.certificates.divergence import kl_upper, relative_entropy
from gingham.errors import GinghamError


def prior(assignment, m):
    """P(h): number of clusters, then sizes (empty ones allowed), then an arrangement with these sizes."""
    n = len(assignment)
    ways = factorial(n)
    for c in range(m):
        ways //= factorial(assignment.count(c))
    return 1 / (m * (m + 1)) / comb(n + m - 1, m - 1) / ways


def enumerated(q):
    """KL(Q‖P) over all m^n assignments."""
    n, m = q.shape
    total = 0.0
    for assignment in product(range(m), repeat=n):
        p = np.prod([q[x, c] for x, c in enumerate(assignment)])
        if p > 0:
            total += p * log(p / prior(list(assignment), m))
    return total


@pytest.mark.parametrize("n", range(1, 8))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_partition_equals_enumeration(n, m):
    rng = np.random.default_rng(10 * n + m)
    for q in (
        rng.dirichlet(np.ones(m), n),
        rng.dirichlet(np.full(m, 0.2), n),
        np.eye(m)[rng.integers(0, m, n)],
        np.full((n, m), 1 / m),
    ):
        assert sum(cx.partition_exact(q).values()) == pytest.approx(enumerated(q), abs=1e-10)


def test_prior_sums_to_one():
    for n, m in [(3, 2), (4, 3)]:
        total = sum(prior(list(a), m) for a in product(range(m), repeat=n))
        assert total == pytest.approx(1 / (m * (m + 1)))


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 200), st.integers(1, 6), st.floats(0.05, 5.0), st.integers(0, 99))
def test_papers_price_is_above_the_exact_one(n, m, concentration, seed):
    """So eq. (18) holds for soft posteriors too, by a prior that allows empty clusters."""
    q = np.random.default_rng(seed).dirichlet(np.full(m, concentration), n)
    exact = cx.partition_exact(q)
    papers = sum(cx.partition_papers(q).values())
    # With the number of clusters given beforehand for two items or more, with any number for nine or more.
    assert sum(exact.values()) - exact["number of clusters"] <= papers + 1e-9
    if n >= 9:
        assert sum(exact.values()) <= papers + 1e-9
    assert sum(exact.values()) >= -1e-9


def test_nine_items_pay_for_any_number_of_clusters():
    # m ln n ≥ ln m(m + 1) + ln C(n + m − 1, m − 1) for n ≥ 9; the left side grows faster in n and in m.
    for n in range(9, 60):
        for m in range(1, 400):
            assert m * log(n) >= log(m * (m + 1)) + cx.log_binomial(n + m - 1, m - 1) - 1e-9


def test_papers_formula_by_hand():
    q = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    n_information = 4 * (-0.625 * log(0.625) - 0.375 * log(0.375)) - log(2)
    parts = cx.partition_papers(q)
    assert parts["information n·I"] == pytest.approx(n_information)
    assert parts["cluster sizes m·ln n"] == pytest.approx(2 * log(4))
    both = cx.of_posterior({"row": q, "column": q}, np.zeros((2, 2), int), 5, kind="papers")
    assert both.total == pytest.approx(2 * (n_information + 2 * log(4)) + 4 * log(5))


@pytest.mark.parametrize(("cells", "size"), [(1, 3), (3, 2), (4, 3)])
def test_label_priors_sum_to_one(cells, size):
    for price in (cx.labels_by_type, cx.labels_either_way):
        words = product(range(size), repeat=cells)
        total = sum(np.exp(-sum(price(np.array(word), size).values())) for word in words)
        assert total == pytest.approx(1.0)


def test_graph_pays_for_half_the_cells():
    q = np.eye(3)[[0, 0, 1, 2]]
    answers = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    half = cx.Complexity({**cx.of_partitions({"node": q}), **cx.labels_by_type(cx.cells_once(answers), 2)})
    full = cx.of_posterior({"node": q}, answers, 2)
    labels = sum(cx.labels_by_type(np.array([0, 1, 1, 0, 1, 0]), 2).values())
    assert half.total == pytest.approx(sum(cx.partition_exact(q).values()) + labels)
    assert half.total < full.total
    with pytest.raises(GinghamError, match="symmetric"):
        cx.cells_once(np.array([[0, 1], [0, 0]]))


def test_renamings_of_a_hard_clustering_count_distinct_assignments():
    where = [0, 0, 1, 2, 1]  # one cluster of four is empty
    names = {tuple(np.array(p)[where]) for p in permutations(range(4))}
    assert cx.renamings([np.eye(4)[where]]) == pytest.approx(log(len(names)))
    assert cx.renamings([np.full((3, 2), 0.5)]) == 0.0
    late = np.eye(2)[np.arange(1500) % 2]
    late[-1] = 0.5  # one soft item behind many hard ones
    assert cx.renamings([late]) == 0.0


def test_divergence_from_a_given_prior():
    q = np.array([[0.7, 0.3], [1.0, 0.0]])
    assert relative_entropy(q, q) == 0.0
    expected = 0.7 * log(1.4) + 0.3 * log(0.6) + log(2)
    assert relative_entropy(q, np.full((2, 2), 0.5)) == pytest.approx(expected)
    assert relative_entropy(q, np.eye(2)) == float("inf")


def test_terms_are_named_and_unknown_kinds_refused():
    q = np.eye(2)
    price = cx.of_posterior({"viewer": q, "movie": q}, np.eye(2, dtype=int), 2)
    assert "viewer: who belongs where" in price.terms
    with pytest.raises(GinghamError, match="exact or papers"):
        cx.of_posterior({"viewer": q}, np.zeros(2, int), 2, kind="loose")


def test_answers_are_rounded_less_where_much_is_paid_anyway():
    """Nats cost less on top of many others; a grid chosen by the answers' own price alone would be too coarse."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(2_000, 20_000, (12, 12)).astype(float)
    ones = rng.binomial(pairs.astype(int), rng.beta(0.3, 8.0, (12, 12))).astype(float)
    cell, statistics = Quadratic(bounds=(0.0, 1.0)), np.stack([pairs, ones, ones], axis=-1)
    total, others = pairs.sum(), 8_000.0

    def bound(found):
        return kl_upper(
            cell.loss(found.answers, statistics).sum() / total, (others + sum(found.price.values())) / total
        )

    alone = cx.quantise_answers(cell, ones / pairs, statistics, symmetric=False)
    together = cx.quantise_answers(cell, ones / pairs, statistics, symmetric=False, others=others)
    assert together.n_answers > alone.n_answers
    assert bound(together) < bound(alone)
