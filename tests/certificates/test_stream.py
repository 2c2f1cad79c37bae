from itertools import combinations
from math import comb, exp, log

import numpy as np
import pytest

from gingham import CoClusteringRegressor, GinghamError, RefusedCertificate
from gingham.certificates import certify, certify_predictions, held_out_part, transductive, whole_population
from gingham.certificates.divergence import kl
from gingham.certificates.population import ln_transductive


def planted(size=900, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 20, size), rng.integers(0, 15, size)])
    y = np.where((X[:, 0] < 10) == (X[:, 1] < 5), 3, 1)
    return X, np.where(rng.random(size) < 0.1, 2, y)


def model():
    return CoClusteringRegressor((2, 2), alphabet=(1, 2, 3), start="means", random_state=0)


def along(X, y, sizes, **options):
    """Certificates of models refitted on the first n rows, all valid at once."""
    fitted = [model().fit(X[:n], y[:n]) for n in sizes]
    return [certify(one, X[:n], y[:n], anytime=True, **options) for one, n in zip(fitted, sizes)]


def test_certificates_along_a_stream():
    X, y = planted()
    stream = along(X, y, [100, 300, 900], population=(20, 15))
    assert stream[-1].value < stream[0].value
    assert all(c.anytime and c.delta == 0.05 and c.empirical <= c.value for c in stream)
    assert len(stream[-1].compare()) == 1  # the other bounds hold at one time only
    codes = [a.code for a in stream[-1].assumptions]
    assert "fixed before arrival" in codes
    assert "independent or without replacement" not in codes


def test_a_stream_needs_no_list_of_items():
    X, y = planted()
    stream = along(X, y, [30, 900])
    known = [len(q) for q in stream[0].posterior.assign]
    assert known < [20, 15]  # the first rows do not have them all
    assert any(a.code == "urn" for a in stream[-1].assumptions)


def test_finite_populations():
    X, y = planted()
    fitted = model().fit(X[:600], y[:600])
    certificate = certify(fitted, X[:600], y[:600])
    everything = whole_population(certificate, 6000)
    assert everything.value == certificate.value
    assert "without replacement" in everything.assumptions[0].text
    rest = held_out_part(certificate, 6000)
    assert rest.value == pytest.approx((6000 * certificate.value - 600 * certificate.empirical) / 5400)
    assert held_out_part(certificate, 700).value > rest.value
    assert len(rest.compare()) == 1  # bounds on the population's mean are another matter
    with pytest.raises(GinghamError, match="nothing is held out"):
        held_out_part(certificate, 600)
    with pytest.raises(GinghamError, match="cannot contain"):
        whole_population(certificate, 10)
    for wrong in (6000.5, float("nan"), 0):
        with pytest.raises(GinghamError, match="integer"):
            held_out_part(certificate, wrong)
    with pytest.raises(RefusedCertificate, match="anytime"):
        whole_population(certify(fitted, X[:600], y[:600], anytime=True), 6000)


def test_a_first_part_of_the_population_is_taken_off():
    """The certified tuples of a split were drawn from what the first part left over."""
    X, y = planted()
    certificate = certify(model(), X[:600], y[:600], bound="split", fraction=0.75)
    assert certificate.first_part == 450
    v, e, n = certificate.value, certificate.empirical, 150
    rest = held_out_part(certificate, 1000)
    assert rest.value == pytest.approx((550 * v - n * e) / 400)
    assert rest.value > (1000 * v - n * e) / 850  # as if the first part could have been drawn again
    with pytest.raises(GinghamError, match="made from 450"):
        held_out_part(certificate, 1000, first_part=0)
    with pytest.raises(GinghamError, match="cannot contain"):
        held_out_part(certificate, 599)
    with pytest.raises(RefusedCertificate, match="held_out_part"):
        whole_population(certificate, 1000)
    fitted = model().fit(X[:600], y[:600])
    holdout = certify(fitted, X[600:900], y[600:900], bound="holdout")
    for read in (held_out_part, whole_population):
        with pytest.raises(RefusedCertificate, match="first_part="):
            read(holdout, 6000)
    assert held_out_part(holdout, 6000, first_part=600).value > held_out_part(holdout, 6000, first_part=0).value
    assert whole_population(holdout, 6000, first_part=0).value == holdout.value


@pytest.mark.parametrize(("n", "size"), [(5, 12), (20, 40), (30, 100), (60, 80)])
def test_transductive_constant_is_the_largest_expectation(n, size):
    worst = 0.0
    for marked in range(size + 1):
        expected = 0.0
        for drawn in range(max(0, n - (size - marked)), min(n, marked) + 1):
            p = comb(marked, drawn) * comb(size - marked, n - drawn) / comb(size, n)
            mean, rest = marked / size, (marked - drawn) / (size - n)
            expected += p * exp(n * kl(drawn / n, mean) + (size - n) * kl(rest, mean))
        worst = max(worst, expected)
    assert ln_transductive(n, size) == pytest.approx(log(worst), abs=1e-9)
    if 20 <= n <= size - 20:
        assert log(worst) <= log(3 * log(n)) + 0.5 * log(n * (1 - n / size))


def test_transductive_holds_for_the_deepest_fit():
    rng = np.random.default_rng(0)
    pairs = np.array([(i, j) for i in range(12) for j in range(10)])
    failures = 0
    for _ in range(60):
        labels = rng.integers(0, 2, len(pairs))  # pure noise: every fit is an over-fit
        order = rng.permutation(len(pairs))
        seen, rest = order[:90], order[90:]
        rows = (np.bincount(pairs[seen, 0], labels[seen], 12) / np.bincount(pairs[seen, 0], minlength=12) > 0.5) * 1
        columns = (np.bincount(pairs[seen, 1], labels[seen], 10) / np.bincount(pairs[seen, 1], minlength=10) > 0.5) * 1
        certificate = certify([rows, columns], pairs[seen], labels[seen], loss="zero-one", alphabet=(0, 1))
        value = transductive(certificate, len(pairs)).value
        posterior = certificate.posterior
        answers = posterior.answers[0][rows[pairs[rest, 0]], columns[pairs[rest, 1]]]
        failures += int((answers != labels[rest]).mean() > value)
    assert failures <= 8  # 5 % of 60, and three standard deviations


def test_populations_of_zeros_and_ones_are_the_worst():
    # The expectation behind the transductive bound is convex in the losses: anything between 0 and 1 has a lower one.
    rng = np.random.default_rng(0)
    n, size = 4, 9
    draws = np.array([np.isin(np.arange(size), part) for part in combinations(range(size), n)])
    for _ in range(40):
        losses = rng.beta(0.4, 0.6, size)
        seen = draws @ losses / n
        rest = (losses.sum() - n * seen) / (size - n)
        mean = losses.mean()
        expected = np.exp(n * kl(seen, mean) + (size - n) * kl(rest, mean)).mean()
        assert log(expected) <= ln_transductive(n, size) + 1e-12


def test_transductive_is_for_any_bounded_loss():
    X, y = planted()
    certificate = certify(model().fit(X, y), X, y)  # absolute loss on three labels
    assert certificate.empirical < transductive(certificate, 5000).value < certificate.worst
    binary = certify([np.zeros(20), np.zeros(15)], X, y, loss="zero-one", alphabet=(1, 2, 3))
    assert binary.empirical < transductive(binary, 5000).value < 1
    with pytest.raises(GinghamError, match="nothing is held out"):
        transductive(binary, len(y))
    with pytest.raises(RefusedCertificate, match="20 unobserved"):
        ln_transductive(1995, 2000)
    with pytest.raises(RefusedCertificate, match="all-posteriors"):
        transductive(certify_predictions(y, y, alphabet=(1, 2, 3)), 5000)


def test_betting_is_not_read_without_replacement():
    certificate = certify_predictions(np.repeat([0, 1], 50), np.zeros(100), alphabet=(0, 1), method="betting")
    with pytest.raises(RefusedCertificate, match="independent observations"):
        whole_population(certificate, 1000, first_part=0)
