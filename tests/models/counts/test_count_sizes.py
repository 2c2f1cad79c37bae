"""How many clusters of counts: by held-out code length and by certificate."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import gingham as gg
from gingham.certificates import certify
from gingham.models.counts.fit import CountSolver, certified_length, choose_n_clusters, count_sample
from gingham.summary.values import smoothed_lift


def density(seed: int = 0, shape: tuple[int, int] = (60, 50), k: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    blocks = rng.gamma(0.4, size=(k, k))
    p = blocks[rng.integers(0, k, shape[0])][:, rng.integers(0, k, shape[1])]
    p = p * rng.gamma(5.0, size=shape[0])[:, None] * rng.gamma(5.0, size=shape[1])
    return np.asarray(p / p.sum())


def draw(p: np.ndarray, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).multinomial(n, p.ravel()).reshape(p.shape)


@pytest.mark.parametrize("beta", [np.inf, 0.5])
def test_the_certificate_finds_the_planted_number(beta: float) -> None:
    X = draw(density(), 40_000, 0)
    model = gg.CoOccurrenceClustering(beta=beta, criterion="certificate", random_state=0).fit(X)
    assert model.n_clusters_ == (5, 5)
    tried = model.sizes_tried_
    assert tried[5] == min(tried.values())
    assert tried[5] < tried[1] < log(X.size) + 1e-9  # one cluster codes no worse than the uniform distribution
    assert model.certify(X, population=X.shape).value <= tried[5] + 0.05


def test_few_tokens_certify_a_single_cluster() -> None:
    model = gg.CoOccurrenceClustering(criterion="certificate", random_state=0).fit(draw(density(), 300, 0))
    assert model.n_clusters_ == (1, 1)


def test_the_value_is_the_certificate_with_the_union_over_sizes() -> None:
    """A side with m clusters pays ln m(m + 1): 1/(m(m + 1)) sums to one over all m."""
    X = gg.data.adapt.count_matrix(draw(density(), 5000, 1), "test")
    rng = np.random.default_rng(0)
    for size in (1, 2, 5):
        blocks = CountSolver().fit(X, (size, size), rng)
        hard = [np.eye(size)[labels] for labels in blocks.labels]
        certificate = certify(hard, count_sample(X), bound="density")
        assert certified_length(blocks, X) == pytest.approx(certificate.value)
        for mode in ("row", "column"):
            assert certificate.terms[f"{mode}: number of clusters"] == pytest.approx(log(size * (size + 1)))
    assert sum(1 / (m * (m + 1)) for m in range(1, 10**5)) == pytest.approx(1.0, abs=1e-4)


def test_the_chosen_size_keeps_the_promise() -> None:
    """The adversary takes, of many sizes, the one whose certificate lies lowest; the truth is known."""
    p = density(2, (20, 15), 2)
    failures = 0
    for seed in range(10):
        X = draw(p, 1500, seed)
        counts = gg.data.adapt.count_matrix(X, "test")
        size, lengths = choose_n_clusters("certificate", counts, CountSolver(), np.random.default_rng(seed), (2, 4))
        model = gg.CoOccurrenceClustering(size, random_state=seed).fit(X)
        certificate = model.certify(X, population=X.shape)
        every = np.argwhere(np.ones(p.shape, bool))
        failures += -(p.ravel() @ model.density_.log_density(every.T)) > min(certificate.value, lengths[size])
    assert failures <= 2  # δ = .05: more than 2 of 10 have a probability of .012


def test_unknown_criteria_and_weights_are_refused() -> None:
    X = draw(density(), 500, 0)
    with pytest.raises(gg.GinghamError, match="criterion='fame' is unknown"):
        gg.CoOccurrenceClustering(criterion="fame").fit(X)
    with pytest.raises(gg.GinghamError, match="integer counts"):
        gg.CoOccurrenceClustering(criterion="certificate").fit(X * 0.5)


def test_smoothing_adds_tuples_as_if_the_sides_were_independent() -> None:
    """Half an observation for each of four cells: two in all, spread by the margins (4, 4)/8 and (3, 5)/8."""
    table = np.array([[3.0, 1.0], [0.0, 4.0]])
    expected = np.outer([0.5, 0.5], [3 / 8, 5 / 8])
    by_hand = (table + 2 * expected) / 10 / expected
    found = smoothed_lift(table, 0.5)
    np.testing.assert_allclose(found, by_hand)
    assert found[1, 0] == pytest.approx(0.2)  # nothing was counted there: what smoothing leaves, 2/10
    np.testing.assert_allclose((found * expected).sum(axis=0), [3 / 8, 5 / 8])
    np.testing.assert_allclose((found * expected).sum(axis=1), [0.5, 0.5])
    np.testing.assert_allclose(smoothed_lift(table, 0.0), table / 8 / expected)
    np.testing.assert_allclose(smoothed_lift(np.array([[2.0, 2.0], [0.0, 0.0]]))[1], [1.0, 1.0])  # an empty side
    assert smoothed_lift(table)[1, 0] == pytest.approx(4 / 12)  # one observation a cell where nothing is said
