"""ExplanatoryClustering: the quadratic programs by another solver, P3's figure 2, certificates that hold."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import rel_entr
from scipy.stats import entropy
from sklearn.base import clone

import gingham as gg
from gingham.errors import GinghamError
from gingham.models.views.explanatory import contradiction, coverage, gibbs_weights, simplex_weights


@pytest.mark.parametrize("penalty", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("uniform", [True, False])
def test_weights_solve_the_quadratic_program(penalty, uniform):
    rng = np.random.default_rng(3)
    costs, prior = rng.random(6), np.full(6, 1 / 6) if uniform else rng.dirichlet(np.ones(6))
    weights = simplex_weights(costs, prior, penalty)

    def objective(s):
        return penalty * np.sum(s**2 / (6 * prior)) + s @ costs

    other = minimize(
        objective,
        np.full(6, 1 / 6),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert weights.sum() == pytest.approx(1)
    assert objective(weights) <= objective(other.x) + 1e-9
    np.testing.assert_allclose(weights, other.x, atol=1e-4)


@pytest.mark.parametrize("divergence", [0.0, 0.05, 0.5, 50.0])
@pytest.mark.parametrize("uniform", [True, False])
def test_gibbs_weights_solve_the_problem_of_the_paper(divergence, uniform):
    """P3 (9)-(10) with its constraint, by another solver; an excluded cluster has no weight."""
    rng = np.random.default_rng(5)
    costs, prior = rng.random(6), np.full(6, 1 / 6) if uniform else rng.dirichlet(np.ones(6))
    weights = gibbs_weights(costs, prior, divergence)
    assert weights.sum() == pytest.approx(1)
    assert rel_entr(weights, prior).sum() <= divergence + 1e-9
    other = minimize(
        lambda s: s @ costs,
        prior,
        bounds=[(1e-12, 1)] * 6,
        constraints=[
            {"type": "eq", "fun": lambda s: s.sum() - 1},
            {"type": "ineq", "fun": lambda s: divergence - rel_entr(s, prior).sum()},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert weights @ costs <= other.fun + 1e-6
    assert weights @ costs == pytest.approx(other.fun, abs=1e-3)
    some = gibbs_weights(np.where(np.arange(6) < 2, np.inf, costs), prior, divergence)
    assert some[:2].sum() == 0
    assert some.sum() == pytest.approx(1)


def test_the_estimator_obeys_the_constraint():
    rng = np.random.default_rng(0)
    left = rng.random((200, 8)) < 0.4
    views = [left, left ^ (rng.random(left.shape) < np.linspace(0.01, 0.4, 8))]
    prior = gg.ExplanatoryClustering(divergence=0).fit(views)
    np.testing.assert_allclose(prior.weights_, 1 / 8)
    some, best = (gg.ExplanatoryClustering(divergence=omega).fit(views) for omega in (0.5, 10.0))
    assert np.log(8) - entropy(some.weights_) == pytest.approx(0.5, abs=1e-6)
    assert prior.risk_ > some.risk_ > best.risk_ == best.risks_.min()
    assert some.certify().value < prior.certify().value
    with pytest.raises(GinghamError, match="divergence"):
        gg.ExplanatoryClustering(divergence=-1).fit(views)


def test_risk_and_coverage_by_hand():
    f = np.array([[1, 1], [1, 0], [0, 0], [0, 0]], dtype=bool)
    g = np.array([[1, 0], [0, 0], [0, 0], [0, 1]], dtype=bool)
    np.testing.assert_allclose(contradiction([f, g], False), [1 / 4, 2 / 4])
    np.testing.assert_allclose(coverage([f, g], False), [1 / 4, 0])
    np.testing.assert_allclose(contradiction([f, g], True), [1 / 4, 3 / 4, 0, 2 / 4])
    np.testing.assert_allclose(coverage([f, g], True), [1 / 4, 0, 1 / 4, 0])
    np.testing.assert_allclose(contradiction([f, g, f], False), [1 / 4, 2 / 4])
    np.testing.assert_allclose(contradiction([f], False), [2 / 4, 3 / 4])


def bins(values, n=5):
    return np.eye(n, dtype=bool)[np.minimum((values * n).astype(int), n - 1)]


def test_the_papers_figure_two():
    """Five intervals a side, 25 pairwise clusters; the data lie on the diagonal squares."""
    rng = np.random.default_rng(0)
    x = rng.random(300)
    y = (np.floor(x * 5) + rng.random(300)) / 5
    memberships = [bins(x), bins(y)]
    fit = gg.ExplanatoryClustering(pairs="all", realizable=True, min_coverage=0.05).fit(memberships)
    np.testing.assert_allclose(fit.weights_, np.eye(5) / 5)
    assert fit.risk_ == 0
    assert fit.coverage_ == pytest.approx(0.2)
    assert np.flatnonzero(fit.weights_).tolist() == [0, 6, 12, 18, 24]
    np.testing.assert_allclose(fit.explanatory_power(memberships), 0.2)
    np.testing.assert_array_equal(fit.predict_memberships(0, bins(x), 1), bins(y))
    np.testing.assert_array_equal(fit.predict_memberships(1, bins(y), 0), bins(x))
    soft = gg.ExplanatoryClustering(penalty=0.02, pairs="all", min_coverage=0.05).fit(memberships)
    np.testing.assert_allclose(soft.weights_, fit.weights_, atol=1e-9)


def test_explanatory_power_of_one_view():
    inside = np.zeros((100, 3), dtype=bool)
    inside[:70, 0], inside[70:90, 1], inside[90:, 2] = True, True, True
    fit = gg.ExplanatoryClustering(penalty=1.0).fit(inside)
    # argmin ‖s‖² − s·p is the projection of p/2 on the simplex
    np.testing.assert_allclose(fit.weights_, np.array([0.35, 0.1, 0.05]) + 0.5 / 3, atol=1e-12)
    assert fit.coverage_ == pytest.approx(fit.weights_ @ [0.7, 0.2, 0.1])
    assert gg.ExplanatoryClustering(penalty=0.1).fit(inside).weights_[0] == 1.0


@pytest.mark.parametrize("bound", ["log-wealth", "theorem-1"])
def test_the_certificate_holds_for_adversarial_weights(bound):
    """Pure noise, weights on what looks best: the true risk ½ must be below the bound in all but δ of samples."""
    rng = np.random.default_rng(0)
    failures, risks = 0, []
    for _ in range(300):
        f, g = rng.random((2, 60, 20)) < 0.5
        fit = gg.ExplanatoryClustering(penalty=0.01).fit([f, g])
        certificate = fit.certify(delta=0.3, bound=bound)
        failures += certificate.risk.value < 0.5 or not certificate.coverage_lower <= 0.25 <= certificate.coverage_upper
        risks.append(fit.risk_)
    assert np.mean(risks) < 0.45  # the choice is optimistic …
    assert failures <= 0.3 * 300  # … and the certificate pays for it


def test_certificate_reports_coverage_beside_the_risk():
    always = [np.ones((200, 1), dtype=bool)] * 2
    certificate = gg.ExplanatoryClustering().fit(always).certify()
    assert certificate.risk.value < 0.1
    assert certificate.chance == 0  # a constant cluster cannot be contradicted: nothing was learned
    assert certificate.coverage_lower > 0.9
    assert "explains between" in certificate.explain()
    never = gg.ExplanatoryClustering().fit([np.zeros((200, 1), dtype=bool)] * 2).certify()
    assert never.risk.empirical == 0
    assert never.coverage_upper < 0.1


def test_theorem_one_by_hand():
    """kl(R_n‖R) ≤ [KL + ln(3/δ) + ln 2√n]/n with R_n = 0 inverts to 1 − e^{−ε}."""
    same = np.eye(4, dtype=bool)[np.arange(100) % 4]
    fit = gg.ExplanatoryClustering(realizable=True).fit([same, same])
    certificate = fit.certify(delta=0.05, bound="theorem-1")
    epsilon = (0.0 + np.log(3 / 0.05) + np.log(2 * np.sqrt(100))) / 100
    assert certificate.risk.value == pytest.approx(1 - np.exp(-epsilon))


def test_certificate_on_fresh_objects_from_pairwise_clusters():
    rng = np.random.default_rng(1)

    def sample(n):
        kind = rng.integers(0, 3, size=n)
        return [np.eye(3)[kind] @ m + 0.3 * rng.normal(size=(n, 4)) for m in (A, B)]

    A, B = rng.normal(size=(2, 3, 4)) * 2
    analysis = gg.PairwiseClusterAnalysis(2, ridge=0.1).fit(sample(200))
    fresh = analysis.memberships(sample(400), threshold=0.5)
    certificate = gg.ExplanatoryClustering(penalty=0.1, min_coverage=0.05).fit(fresh).certify()
    assert certificate.risk.value < 0.15 < certificate.chance
    assert certificate.coverage_lower > 0.1


def test_scikit_learn_manners():
    fit = gg.ExplanatoryClustering(penalty=0.3, pairs="all")
    assert clone(fit).get_params() == fit.get_params()
    with pytest.raises(GinghamError, match="two views"):
        fit.fit(np.eye(3))


ONE = np.eye(4, dtype=bool)
REFUSED = [
    ({"penalty": 0}, [ONE, ONE], "penalty=0"),
    ({"pairs": "some"}, [ONE, ONE], "pairs='some'"),
    ({}, [ONE, ONE[:, :3]], "as many columns"),
    ({}, [ONE, ONE[:3]], "same number of rows"),
    ({}, [ONE, 2 * np.eye(4)], "view 1 must be 0 or 1"),
    ({}, [np.ones(4)], "must be a matrix"),
    ({}, [], "No memberships"),
    ({"prior": [0.5, 0.5]}, [ONE, ONE], "4 positive numbers"),
    ({"min_coverage": 0.9}, [ONE, ONE], "No cluster is left"),
    ({"realizable": True}, [ONE, ~ONE], "No cluster is left"),
]


@pytest.mark.parametrize(("params", "memberships", "sentence"), REFUSED)
def test_bad_input_gets_a_sentence(params, memberships, sentence):
    with pytest.raises(GinghamError, match=sentence):
        gg.ExplanatoryClustering(**params).fit(memberships)


def test_bad_requests_get_a_sentence():
    fit = gg.ExplanatoryClustering().fit([ONE, ONE])
    with pytest.raises(GinghamError, match="Unknown bound"):
        fit.certify(bound="wishful")
    with pytest.raises(GinghamError, match="delta=0"):
        fit.certify(delta=0)
    with pytest.raises(GinghamError, match="clusters per view"):
        fit.explanatory_power([ONE[:, :2], ONE[:, :2]])
    with pytest.raises(GinghamError, match="no view 2"):
        fit.predict_memberships(0, ONE, 2)
    with pytest.raises(GinghamError, match="fitted with 4 clusters"):
        fit.predict_memberships(0, ONE[:, :2], 1)
