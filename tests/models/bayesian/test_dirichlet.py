"""Dirichlet expectations against scipy and sampling; concentrations climb to the maximum."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln

from gingham.models.bayesian.dirichlet import (
    MIN_CONCENTRATION,
    DirichletPosterior,
    expected_log,
    expected_log_posterior,
    expected_log_prior,
    fit_concentration,
)


def test_terms_of_the_bound_are_expectations_over_the_posterior():
    gamma, alpha = np.array([[2.0, 0.7, 1.3]]), np.array([0.5, 1.5, 1.0])
    draws = stats.dirichlet(gamma[0]).rvs(200_000, random_state=0)
    logs = expected_log(gamma)
    np.testing.assert_allclose(logs[0], np.log(draws).mean(0), atol=0.02)
    np.testing.assert_allclose(
        expected_log_prior(alpha, logs), stats.dirichlet(alpha).logpdf(draws.T).mean(), atol=0.02
    )
    assert expected_log_posterior(gamma, logs) == pytest.approx(-stats.dirichlet(gamma[0]).entropy())


@pytest.mark.parametrize("truth", [(0.3, 0.3, 0.3), (5.0, 1.0, 0.2), (40.0, 60.0, 80.0)])
@pytest.mark.parametrize("begin", [0.05, 1.0, 300.0])
def test_concentration_reaches_the_maximum_from_anywhere(truth, begin):
    logs = np.log(stats.dirichlet(truth).rvs(500, random_state=1))
    found = fit_concentration(np.full(3, begin), logs, max_iter=200, tol=1e-10)

    def loss(log_alpha):
        a = np.exp(log_alpha)
        return -(500 * (gammaln(a.sum()) - gammaln(a).sum()) + (a - 1) @ logs.sum(0)) / 500

    best = minimize(loss, np.zeros(3), tol=1e-10)
    assert loss(np.log(found)) <= best.fun + 1e-6


def test_every_newton_step_climbs_and_stays_within_the_bounds():
    rng = np.random.default_rng(0)
    for _ in range(50):
        gamma = rng.gamma(0.3, size=(20, 4)) * rng.choice([0.1, 10.0, 1e4]) + 0.02
        logs, alpha = expected_log(gamma), rng.gamma(1.0, size=4) + MIN_CONCENTRATION
        before = expected_log_prior(alpha, logs)
        for _ in range(5):
            alpha = fit_concentration(alpha, logs, max_iter=1)
            now = expected_log_prior(alpha, logs)
            assert now >= before - 1e-9 * abs(before)
            assert alpha.min() >= MIN_CONCENTRATION
            before = now


def test_credible_intervals_hold_their_share_of_draws():
    gamma = np.array([[3.0, 1.0, 0.5], [20.0, 5.0, 5.0]])
    q = DirichletPosterior(None, (), (gamma,), (), alpha=(np.ones(3),), gamma=(gamma,), counts=(gamma,))
    low, high = q.interval(0, 0.8)
    for item in range(2):
        draws = stats.dirichlet(gamma[item]).rvs(20_000, random_state=0)
        inside = ((draws >= low[item]) & (draws <= high[item])).mean(0)
        np.testing.assert_allclose(inside, 0.8, atol=0.02)


def test_a_flat_row_gains_at_alpha_one_and_loses_at_a_tenth():
    """The numbers of docs/theory/bayesian.md: ten clusters, a hundred entries, the prior's share of the bound."""

    def share(alpha, phi):
        a, counts = np.full(10, alpha), 100 * phi[None]
        logs = expected_log(a + counts)
        choice = (counts * (logs - np.log(np.maximum(phi, 1e-300)))).sum()
        return expected_log_prior(a, logs) - expected_log_posterior(a + counts, logs) + choice

    firm, flat = np.eye(10)[0], np.full(10, 0.1)
    assert share(1.0, flat) - share(1.0, firm) == pytest.approx(17.6, abs=0.1)
    assert share(0.1, flat) - share(0.1, firm) == pytest.approx(-19.3, abs=0.1)
