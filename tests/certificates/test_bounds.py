from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gingham.certificates import bounds
from gingham.certificates.bounds import LossDistribution, ln_xi, mixture
from gingham.certificates.divergence import kl_upper
from gingham.errors import GinghamError, RefusedCertificate

STARS = np.arange(5) / 4
UPPER = [
    bounds.classification,
    bounds.theorem7,
    bounds.maurer,
    bounds.log_wealth,
    bounds.type_kl,
    bounds.split_kl,
    bounds.unexpected_bernstein,
]
histogram = st.lists(st.integers(0, 50), min_size=5, max_size=5).filter(lambda h: sum(h) > 0)


def law_of(counts):
    return LossDistribution.of(STARS, counts, STARS)


def test_theorem7_by_hand():
    distribution = law_of([50, 30, 10, 5, 5])
    n, complexity, delta = 1000, 42.0, 0.05
    epsilon = (complexity + 0.5 * log(4 * n) - log(delta)) / n
    assert bounds.theorem7(distribution, complexity, n, delta).value == pytest.approx(
        kl_upper(distribution.mean, epsilon)
    )
    exact = (complexity + ln_xi(n) - log(delta)) / n
    assert bounds.maurer(distribution, complexity, n, delta).value == pytest.approx(kl_upper(distribution.mean, exact))
    assert bounds.theorem7(distribution, complexity, n, delta).price["confidence ln 1/δ"] == pytest.approx(log(20))


def test_log_wealth_by_hand():
    distribution = LossDistribution.of([0.0, 1.0], [3, 1])
    n, complexity, delta = 40, 2.0, 0.1
    epsilon = (complexity + log(60 / delta)) / n
    single = min(nu - exp(0.75 * log(nu) + 0.25 * log(nu - 1) - epsilon) for nu in bounds.GRID)
    result = bounds.log_wealth(distribution, complexity, n, delta)
    assert distribution.mean < result.value < single
    # At the value the gambler's average wealth is exactly e^KL/δ.
    L = result.value
    wealth = np.mean([((nu - 1) ** 10 * nu**30) / (nu - L) ** 40 for nu in bounds.GRID])
    assert wealth == pytest.approx(exp(complexity) / delta, rel=1e-6)
    assert result.parameters["nu"] in bounds.GRID
    assert 0 < result.price["grid of ν"] < log(60)


def test_log_wealth_lower_by_hand():
    distribution = LossDistribution.of([0.0, 1.0], [1, 3])
    L = bounds.log_wealth_lower(distribution, 2.0, 40, 0.1).value
    wealth = np.mean([((nu + 1) ** 30 * nu**10) / (nu + L) ** 40 for nu in bounds.LOWER_GRID])
    assert wealth == pytest.approx(exp(2.0) / 0.1, rel=1e-6)


@pytest.mark.parametrize("bound", UPPER)
@settings(max_examples=30, deadline=None)
@given(
    counts=histogram,
    n=st.integers(8, 10_000),
    complexity=st.floats(0, 500),
    more=st.floats(0, 100),
    delta=st.floats(0.001, 0.5),
    at=st.integers(0, 3),
)
def test_monotone_in_every_term(bound, counts, n, complexity, more, delta, at):
    distribution, tiny = law_of(counts), 1e-9
    value = bound(distribution, complexity, n, delta).value
    assert distribution.mean - tiny <= value <= 1 + tiny
    assert bound(distribution, complexity + more, n, delta).value >= value - tiny
    assert bound(distribution, complexity, n, delta / 2).value >= value - tiny
    assert bound(distribution, complexity, 2 * n, delta).value <= value + tiny
    worse = list(counts)
    worse[at], worse[at + 1] = 0, worse[at] + worse[at + 1]
    if bound is not bounds.unexpected_bernstein:  # its second moment is taken about a shift
        assert bound(law_of(worse), complexity, n, delta).value >= value - tiny


@settings(max_examples=60, deadline=None)
@given(counts=histogram, n=st.integers(8, 10_000), complexity=st.floats(0, 300))
def test_lower_bounds_lie_below_the_empirical_loss(counts, n, complexity):
    distribution = law_of(counts)
    for bound in (bounds.log_wealth_lower, bounds.maurer_lower):
        value = bound(distribution, complexity, n, 0.05).value
        assert -1e-12 <= value <= distribution.mean + 1e-12


def test_bounds_close_on_the_mean_with_much_data():
    distribution = law_of([5, 4, 3, 2, 1])
    for bound in UPPER:
        assert bound(distribution, 3.0, 10**9, 0.05).value == pytest.approx(distribution.mean, abs=6e-3)
    assert bounds.log_wealth_lower(distribution, 3.0, 10**9, 0.05).value == pytest.approx(distribution.mean, abs=2e-3)


def test_log_wealth_uses_the_variance():
    """Same mean loss, less spread: log-wealth sees it, kl does not."""
    spread = LossDistribution.of([0.0, 1.0], [3, 1], STARS)
    narrow = LossDistribution.of([0.25], [1], STARS)
    wide = bounds.log_wealth(spread, 100, 2000, 0.05).value
    assert bounds.log_wealth(narrow, 100, 2000, 0.05).value < wide - 0.05
    assert bounds.maurer(narrow, 100, 2000, 0.05).value == bounds.maurer(spread, 100, 2000, 0.05).value


def test_differences_of_losses():
    distribution = LossDistribution.of([-0.5, 0.0, 0.25], [6, 3, 1])
    assert bounds.log_wealth(distribution, 5.0, 2000, 0.05).value < 0
    assert bounds.log_wealth_lower(distribution, 5.0, 2000, 0.05, floor=-1.0).value < distribution.mean
    with pytest.raises(RefusedCertificate, match="log-wealth"):
        bounds.maurer(distribution, 5.0, 2000, 0.05)
    with pytest.raises(GinghamError, match="below floor"):
        bounds.log_wealth_lower(distribution, 5.0, 2000, 0.05)


def test_effective_loss_is_what_log_wealth_minimises():
    distribution, nu = law_of([9, 5, 3, 2, 1]), 1.7
    mean = float(distribution.weights @ bounds.effective_loss(distribution.values, nu))
    by_effective = nu - nu * exp(-mean - 0.01)
    by_law = nu - (nu - distribution.mean) * exp(
        float(distribution.log_gain(np.array([distribution.mean - nu]))[0]) - 0.01
    )
    assert by_effective == pytest.approx(by_law)


def test_laws_are_checked_and_merged():
    distribution = LossDistribution.of([[0.5, 0.25], [0.25, 0.5]], [[1, 2], [3, 4]])
    np.testing.assert_allclose(distribution.values, [0.25, 0.5])
    np.testing.assert_allclose(distribution.weights, [0.5, 0.5])
    both = mixture([distribution, LossDistribution.of([1.0], [7])])
    np.testing.assert_allclose(both.weights, [0.25, 0.25, 0.5])
    with pytest.raises(GinghamError, match="exceeds 1"):
        LossDistribution.of([4.0], [1])
    with pytest.raises(GinghamError, match="finitely many"):
        bounds.type_kl(distribution, 1.0, 10, 0.05)
    with pytest.raises(GinghamError, match="not among the values"):
        bounds.type_kl(LossDistribution.of([0.3], [1], STARS), 1.0, 10, 0.05)


def test_nonsense_is_refused():
    distribution = law_of([1, 0, 0, 0, 0])
    with pytest.raises(GinghamError, match="delta"):
        bounds.maurer(distribution, 1.0, 10, 0.0)
    with pytest.raises(GinghamError, match="divergence"):
        bounds.maurer(distribution, -1.0, 10, 0.05)
    with pytest.raises(RefusedCertificate, match="N ≥ 8"):
        bounds.theorem7(distribution, 1.0, 7, 0.05)
    with pytest.raises(GinghamError, match="integer"):
        bounds.log_wealth(distribution, 1.0, 10.5, 0.05)


@pytest.mark.parametrize("n", [10**3, 10**6, 10**9, 10**12])
@pytest.mark.parametrize(
    ("values", "weights"),
    [([0, 1], [0.5, 0.5]), ([0, 1], [1 - 1e-9, 1e-9]), ([0, 1], [1e-9, 1]), ([0.3], [1]), ([0.3, 0.3 + 1e-12], [1, 1]),
     ([1], [1]), ([0], [1]), (np.linspace(0, 1, 2000), np.ones(2000))],
)  # fmt: skip
def test_a_bound_is_never_on_the_wrong_side_of_the_observed_loss(values, weights, n):
    """However many observations there are, and however close bound and observed loss then are."""
    distribution = LossDistribution.of(values, weights)
    for complexity in (0.0, 1e4):
        assert bounds.log_wealth(distribution, complexity, n, 0.05).value >= distribution.mean
        assert bounds.log_wealth_lower(distribution, complexity, n, 0.05).value <= distribution.mean


def test_the_grid_reaches_the_best_bet_of_a_billion_tuples():
    """Fair coins: the bound is within a few percent of the best single bet with the price of the grid."""
    distribution = LossDistribution.of([0, 1], [1, 1])
    for n in (10**3, 10**6, 10**9):
        ideal = np.sqrt(0.5 * np.log(len(bounds.GRID) / 0.05) / n)
        assert bounds.log_wealth(distribution, 0.0, n, 0.05).value - 0.5 < ideal
        assert 0.5 - bounds.log_wealth_lower(distribution, 0.0, n, 0.05).value < ideal
