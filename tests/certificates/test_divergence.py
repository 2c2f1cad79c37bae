from decimal import Decimal, localcontext
from itertools import combinations_with_replacement, product
from math import comb, exp, factorial, isclose, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import gammaln

from gingham.certificates import bounds, prices
from gingham.certificates import divergence as dv
from gingham.certificates import poisson_binomial as coins_
from gingham.errors import GinghamError

unit = st.floats(0.0, 1.0)
price = st.one_of(st.just(0.0), st.floats(1e-18, 1e-3), st.floats(1e-3, 60.0), st.just(1e6))


def inverse_in_sixty_digits(p, epsilon):
    """The upper inverse by bisection in decimal arithmetic; the gap q − p and 1 − q are both exact."""
    with localcontext() as context:
        context.prec = 60
        p, epsilon = Decimal(p), Decimal(epsilon)
        low, high = Decimal(0), 1 - p

        def kl(gap):
            head = -p * (1 + gap / p).ln() if p > 0 else Decimal(0)
            rest = (1 - p - gap) / (1 - p)
            return head - (1 - p) * rest.ln() if rest > 0 else Decimal("Infinity")

        if p < 1:
            for _ in range(150):
                middle = (low + high) / 2
                low, high = (middle, high) if kl(middle) <= epsilon else (low, middle)
        return p + high


@pytest.mark.parametrize("p", [0.0, 5e-324, 1e-300, 1e-12, 1e-3, 0.3, 0.5, 0.999, 1 - 1e-12, 1.0])
def test_inverse_is_exact_over_the_whole_range(p):
    for epsilon in [0.0, 1e-30, 1e-18, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e4]:
        true = inverse_in_sixty_digits(p, epsilon)
        assert abs(Decimal(dv.kl_upper(p, epsilon)) - true) <= Decimal("1e-12")
        # kl(p‖q) = kl(1 − p‖1 − q): the lower inverse is the mirror image
        assert abs(Decimal(dv.kl_lower(1 - p, epsilon)) - (1 - true)) <= Decimal("1e-12")


def test_inverse_at_the_ends():
    assert dv.kl_upper(0.0, 0.25) == pytest.approx(1 - exp(-0.25), abs=1e-15)
    assert dv.kl_upper(1.0, 0.3) == 1.0
    assert dv.kl_upper(0.2, float("inf")) == 1.0
    assert dv.kl_lower(0.2, float("inf")) == 0.0
    assert [dv.kl_upper(p, 0.0) for p in (0.0, 0.37, 1.0)] == pytest.approx([0.0, 0.37, 1.0], abs=1e-15)


@settings(max_examples=100, deadline=None)
@given(unit, price)
def test_kl_of_its_inverse_is_epsilon(p, epsilon):
    q = dv.kl_upper(p, epsilon)
    if q < 1 - 1e-6 and epsilon > 1e-8 and p > 1e-8:
        assert isclose(dv.kl(p, q), epsilon, rel_tol=1e-6)
    assert dv.kl_lower(p, epsilon) <= p <= q


@settings(max_examples=60, deadline=None)
@given(unit, unit, price, price)
def test_inverse_is_monotone(p, other, epsilon, more):
    assert dv.kl_upper(min(p, other), epsilon) <= dv.kl_upper(max(p, other), epsilon) + 1e-15
    assert dv.kl_upper(p, min(epsilon, more)) <= dv.kl_upper(p, max(epsilon, more))


def test_inverse_refuses_nonsense():
    with pytest.raises(GinghamError, match="between 0 and 1"):
        dv.kl_upper(1.2, 0.1)
    with pytest.raises(GinghamError, match="ε ≥ 0"):
        dv.kl_lower(0.2, -0.1)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 50, 1000, 20_000])
def test_xi_equals_its_definition(n):
    k = np.arange(n + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        terms = terms + np.where(k > 0, k * np.log(k / n), 0) + np.where(k < n, (n - k) * np.log1p(-k / n), 0)
    assert bounds.ln_xi(n) == pytest.approx(np.log(np.exp(terms).sum()), abs=1e-9)


def test_xi_lies_between_maurers_limits():
    for n in [8, 100, 80_000, 10**9]:
        assert 0.5 * log(n) <= bounds.ln_xi(n) <= 0.5 * log(4 * n)


@pytest.mark.parametrize(("size", "n"), [(1, 5), (2, 7), (3, 6), (4, 5), (5, 4), (6, 3)])
def test_shtarkov_recurrence_equals_brute_force(size, n):
    total = 0.0
    for word in combinations_with_replacement(range(size), n):
        counts = np.bincount(word, minlength=size)
        ways = factorial(n) / np.prod([float(factorial(c)) for c in counts])
        total += ways * np.prod([(c / n) ** c if c else 1.0 for c in counts])
    assert bounds.ln_shtarkov(size, n) == pytest.approx(log(total), abs=1e-12)
    assert total <= comb(n + size - 1, size - 1) + 1e-9  # never above P0's eq. (7)


def test_poisson_binomial_equals_enumeration():
    q = np.random.default_rng(0).random((9, 3))
    distribution = coins_.poisson_binomial(q)
    for c in range(3):
        true = np.zeros(10)
        for flips in product([0, 1], repeat=9):
            true[sum(flips)] += np.prod(np.where(flips, q[:, c], 1 - q[:, c]))
        np.testing.assert_allclose(distribution[c], true, atol=1e-14)


def test_poisson_binomial_of_many_coins():
    q = np.random.default_rng(1).random((1500, 2)) ** 3
    distribution = coins_.poisson_binomial(q)
    k = np.arange(1501)
    np.testing.assert_allclose(distribution @ k, q.sum(0), rtol=1e-10)
    np.testing.assert_allclose(distribution @ k**2 - (distribution @ k) ** 2, (q * (1 - q)).sum(0), rtol=1e-7)
    assert coins_.poisson_binomial(np.full((64, 1), 0.5))[0, 32] == pytest.approx(comb(64, 32) / 2**64)
    assert coins_.poisson_binomial(np.zeros((0, 2))).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("power", [1, 6])
def test_expected_log_factorials_equal_one_coin_at_a_time(power):
    """Cutting off what is out of reach may raise a price, by nothing that could be seen, and never lower it."""
    q = np.random.default_rng(4).random((900, 2)) ** power
    for c, found in enumerate(coins_.expected_log_factorials(q)):
        distribution = np.ones(1)
        for p in q[:, c]:
            distribution = np.convolve(distribution, [1 - p, p])
        exact = distribution @ gammaln(np.arange(901) + 1.0)
        assert exact - 1e-7 <= found <= exact + 1e-9


@pytest.mark.parametrize("softness", [0.02, 0.3, 3.0])
def test_prices_by_moments_and_by_laws_agree_and_are_never_too_low(softness):
    """Large clusters, a small one, one that hardly anybody is in, and items that are sure."""
    rng = np.random.default_rng(7)
    q = rng.dirichlet(softness * np.array([9.0, 6.0, 0.05, 1e-6]), 4000)
    q[:50] = np.eye(4)[rng.integers(0, 4, 50)]
    q[50:] = np.clip(q[50:], 1e-14, 1.0)
    found = coins_.expected_log_factorials(q)
    exact = (coins_.poisson_binomial(q) * gammaln(np.arange(4001) + 1.0)).sum(1)
    assert (exact - 1e-6 <= found).all()
    assert (found <= exact + 1e-8).all()


def test_coins_that_are_rare():
    coins = np.random.default_rng(8).random(3000) * coins_.RARE
    distribution = coins_.rare_distribution([(coins**k).sum() for k in range(1, coins_.RARE_POWERS + 1)])
    expected = coins_.poisson_binomial(coins[:, None])[0]
    np.testing.assert_allclose(distribution, expected[: len(distribution)], atol=1e-13)
    assert expected[len(distribution) :].sum() < 1e-12
    assert coins_.rare_distribution([0.0])[0] == pytest.approx(1.0)
    several = np.array([[(coins[:n] ** k).sum() for n in (0, 20, len(coins))] for k in range(1, 25)])
    for n, together in zip((0, 20, len(coins)), coins_.rare_distribution(several)):
        alone = coins_.poisson_binomial(coins[:n, None])[0]
        np.testing.assert_allclose(together[: len(alone)], alone[: len(together)], atol=1e-12)


def test_expected_log_factorials_with_certain_and_impossible_items():
    rng = np.random.default_rng(2)
    q = rng.dirichlet(np.ones(4), 60)
    q[:20] = np.eye(4)[rng.integers(0, 3, 20)]  # the last cluster has no certain item
    q[20:40, 3] = 0
    q /= q.sum(1, keepdims=True)
    expected = (coins_.poisson_binomial(q) * gammaln(np.arange(61) + 1.0)).sum(1)
    np.testing.assert_allclose(coins_.expected_log_factorials(q), expected, rtol=1e-12)
    hard = np.eye(5)[[0, 0, 0, 1, 2, 2]]
    np.testing.assert_allclose(coins_.expected_log_factorials(hard), np.log([6, 1, 2, 1, 1]), atol=1e-14)


@pytest.mark.parametrize("epsilon", [1e-4, 0.05, 1.0, 8.0])
def test_ball_maximum_equals_a_direct_search(epsilon):
    p_hat, v = np.array([0.6, 0.3, 0.1, 0.0]), np.array([0.0, 0.25, 0.5, 1.0])

    def softmax(z):
        e = np.exp(z - z.max())
        return e / e.sum()

    best = 0.0
    for seed in range(6):
        result = minimize(
            lambda z: -softmax(z) @ v,
            np.log(p_hat + 0.02) + np.random.default_rng(seed).normal(0, 0.3, 4),
            constraints={"type": "ineq", "fun": lambda z: epsilon - dv.relative_entropy(p_hat, softmax(z))},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if dv.relative_entropy(p_hat, softmax(result.x)) <= epsilon + 1e-8:
            best = max(best, -result.fun)
    value = dv.ball_maximum(p_hat, v, epsilon)
    assert value == pytest.approx(best, abs=3e-4)
    assert value >= best - 1e-7


@settings(max_examples=60, deadline=None)
@given(unit, st.floats(1e-6, 20.0))
def test_ball_of_a_coin_is_the_kl_inverse(p, epsilon):
    value = dv.ball_maximum(np.array([1 - p, p]), np.array([0.0, 1.0]), epsilon)
    assert value == pytest.approx(dv.kl_upper(p, epsilon), abs=1e-9)


def test_information_of_one_cluster_and_of_singletons():
    assert prices.partition_information(np.ones((7, 1))) == 0.0
    assert prices.partition_information(np.eye(5)) == pytest.approx(5 * log(5))
    assert dv.relative_entropy([0.5, 0.5], [1.0, 0.0]) == float("inf")
    assert dv.entropy([0.5, 0.5]) == pytest.approx(log(2))


def test_sizes_must_be_whole():
    with pytest.raises(GinghamError, match="integer"):
        bounds.ln_xi(2.5)


def test_ball_maxima_are_ball_maximum_row_by_row():
    rng = np.random.default_rng(0)
    for epsilon in (0.0, 0.01, 0.7, np.inf):
        p_hat = rng.dirichlet([0.3] * 7) * (np.arange(7) != 2)
        p_hat /= p_hat.sum()
        values = rng.normal(size=(6, 7))
        values[3] = 1.0  # nothing to choose
        expected = [dv.ball_maximum(p_hat, row, epsilon) for row in values]
        assert np.allclose(dv.ball_maxima(p_hat, values, epsilon), expected, rtol=1e-10)
    wide = rng.normal(size=(3, 40_000))  # too wide for all rows at once
    p_hat = rng.dirichlet(np.ones(40_000))
    assert np.allclose(dv.ball_maxima(p_hat, wide, 0.1), [dv.ball_maximum(p_hat, row, 0.1) for row in wide])
