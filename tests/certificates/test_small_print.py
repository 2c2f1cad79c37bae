"""Single numbers, limits and sentences of certificates, each by hand: what a slip of the pen would change."""

from math import ceil, log, sqrt

import numpy as np
import pytest

import gingham as gg
from gingham.cells import Logarithmic, Quadratic, ZeroOne, make_cell
from gingham.certificates import Assumption, Progressive, papers
from gingham.certificates.assumptions import labels_given
from gingham.certificates.certificate import Certificate
from gingham.certificates.evidence import BINS, _bins
from gingham.certificates.holdout import betting
from gingham.certificates.losses import between_labels, stated_loss
from gingham.certificates.poisson_binomial import CLOSE, expected_log_factorials, poisson_binomial
from gingham.certificates.prices import _cut, _on_grid
from gingham.certificates.progressive import Plan
from gingham.certificates.ranking import RankingCertificate, betting_without_replacement, certify_ranking
from gingham.certificates.split import certify_prior, given_parts, random_parts
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.errors import GinghamError

THREE = Alphabet.of((0, 1, 2), given=True)
GIVEN = Assumption("Labels are 0, 1, 2.", "given")


def board(answers, n=12):
    """Two clusters of the items of one mode, and a prior that knows them."""
    modes = (Mode("a", np.arange(n)),)
    assign = (np.eye(2)[np.arange(n) % 2],)
    return Posterior(Structure.grid(modes), (ZeroOne(THREE),), assign, (np.array(answers),))


def sample_of(prior, y, n=600):
    codes = np.arange(n) % 12
    return Sample.of([codes], y(codes), modes=prior.structure.modes, alphabet=THREE)


def test_candidates_of_a_split_prior_are_paid_and_answers_cost_what_they_change():
    prior = board([0, 1])
    as_said = sample_of(prior, lambda code: code % 2)
    one, ten = (certify_prior(prior, as_said, 0.05, GIVEN, candidates=k) for k in (1, 10))
    assert "union over candidates" not in one.terms
    assert ten.terms["union over candidates"] == pytest.approx(log(10))
    assert ten.value > one.value
    assert one.terms["answers kept or changed"] == pytest.approx(2 * log(3 / 2))  # each kept, with probability 2/3
    changed = certify_prior(prior, sample_of(prior, lambda code: 2 - code % 2), 0.05, GIVEN)
    # The first answer becomes 2, the second stays 1: one of two others, with probability 1/3.
    assert changed.posterior.answers[0].tolist() == [2, 1]
    assert changed.terms["answers kept or changed"] == pytest.approx(log(3 / 2) + log(2) + log(3))


@pytest.mark.parametrize(("fraction", "first"), [(0.001, 1), (0.5, 5), (0.999, 9)])
def test_neither_part_of_a_split_is_empty(fraction, first):
    parts = random_parts(10, None, fraction, 0)
    assert [part.n_draws for part in parts] == [first, 10 - first]


def test_two_candidates_of_a_stream_are_paid():
    stream = Progressive(nu=2.0, candidates=2)
    assert stream.add([0.0] * 50).terms == pytest.approx(
        {"confidence ln 1/δ": log(20), "union over candidates": log(2)}
    )


def test_eight_labels_are_listed():
    assert labels_given(Alphabet.of(range(8), given=True)).text == "Labels are among 0, 1, 2, 3, 4, 5, 6, 7."
    assert labels_given(Alphabet.of(range(9), given=True)).text == "Labels are among 0, 1, 2, 3, 4, 5, 6, 7, …."


def test_a_ranking_says_what_it_promises():
    facts = {"at": 20, "measure": "miss", "delta": 0.05, "n_users": 7, "covers": "everybody", "assumptions": ()}
    told = RankingCertificate(-0.125, -0.25, **facts, paired=True).explain()
    assert "the first ranking's miss rate at 20 is lower than the second's, by 0.125 at least on average" in told
    assert "with confidence 95 %" in told
    told = RankingCertificate(0.125, -0.25, **facts, paired=True).explain()
    assert "less the second's is at most 0.125: no difference is proved" in told
    hidden = np.array([(user, 1) for user in range(5)])
    for n in (4, 6):
        with pytest.raises(GinghamError, match=f"returned {n} lists for 5 users"):
            certify_ranking(lambda users, at, n=n: [[1]] * n, hidden)


def test_a_paired_ranking_bets_on_differences_between_minus_one_and_one():
    hidden = np.array([(user, user % 3) for user in range(90)])
    first = {user: [user % 3] if user % 5 else [7] for user in range(90)}
    second = {user: [user % 3] if user % 2 else [7] for user in range(90)}
    found = certify_ranking(first, hidden, at=1, against=second, random_state=4)
    losses = (np.arange(90) % 5 == 0) * 1.0 - (np.arange(90) % 2 == 0)
    assert found.empirical == pytest.approx(losses.mean())
    assert found.value == pytest.approx(2 * betting((losses + 1) / 2, 0.0, 0.05, 4).value - 1)
    alone = certify_ranking(first, hidden, at=1, random_state=4)
    assert alone.value == pytest.approx(betting((np.arange(90) % 5 == 0) * 1.0, 0.0, 0.05, 4).value)


def test_rows_and_draws_that_are_not_there_are_named():
    with pytest.raises(GinghamError, match=r"rows= names row 12; there are rows 0 to 9\.$"):
        given_parts((np.array([0, 1]), np.array([2, 12])), 10, None)
    with pytest.raises(GinghamError, match="leave 3 to begin with and 7 to test in 8 blocks"):
        Plan.of(10, 0.3, 8)


def test_bets_on_a_population_that_is_used_up():
    """ν = mean before + deviation before · √(N (N + 1)/(2 ln 1/δ)) where all N were drawn."""
    losses = np.array([0.0, 1.0, 0.0, 0.0])
    x = np.random.default_rng(3).permutation(losses)
    means = (0.5 + np.cumsum(x)) / np.arange(2, 6)
    variance = (0.25 + np.sum((x[:3] - means[:3]) ** 2)) / 4
    found = betting_without_replacement(losses, 4, 0.0, 0.05, 3)
    assert found.parameters["last bet"] == pytest.approx(means[2] + sqrt(variance * 4 * 5 / (2 * log(20))))
    assert found.value == pytest.approx(0.25)


def test_p4_below_one_by_its_formula():
    n, k = 4 * 10**8, 2
    found = papers.p4_theorem1(n, k, 2, 0.05)

    def log_failure(epsilon):
        return log(8 * log(k)) - n * epsilon**2 / (8 * log(k) ** 2) + ceil(4 * k * 2 / epsilon) * log(k) - log(epsilon)

    assert found.value < 1
    assert log_failure(found.value) <= log(0.05) < log_failure(0.999 * found.value)
    assert papers.p4_theorem2(n, k, 2, 0.05).value == pytest.approx(2 * found.value)


def test_shares_of_the_price_add_up_to_a_hundred():
    certificate = Certificate(
        value=0.5, empirical=0.25, bound="log-wealth", predictor="gibbs", delta=0.05, n_observations=8,
        terms={"clusters": 3.0, "confidence": 1.0}, assumptions=(), worst=1.0, evidence=None,
    )  # fmt: skip
    text = certificate.explain()
    assert "4.0 in all, 0.5 per observation" in text
    assert "75.0 %" in text
    assert "25.0 %" in text


def test_losses_between_labels_lie_on_a_straight_line():
    numbers = np.array([0.0, 1.0, 4.0])
    table = np.subtract.outer(numbers, numbers) ** 2
    found = between_labels(table, numbers, np.array([0, 0, 2]), np.array([0.25, 2.5, 4.0]))
    assert found.tolist() == [0.25, 8.5, 0.0]  # a quarter of the way to 1, half of the way from 1 to 16


def test_who_is_covered_is_said():
    y = np.arange(40) % 3
    X = np.column_stack([np.arange(40) % 8, np.arange(40) % 5])
    model = gg.CoClusteringRegressor(1, beta=1.0, alphabet=range(3), max_iter=2, random_state=0).fit(X, y)
    told = {rule: gg.certify(model, X, 2 - y, bound="holdout", predictor=rule).explain() for rule in ("mean", "gibbs")}
    assert "It covers the mean prediction, exactly as used." in told["mean"]
    assert "exactly as used" not in told["gibbs"].split("It rests on")[0]


@pytest.mark.parametrize("columns", [1, 3])
def test_hidden_pairs_have_two_columns(columns):
    with pytest.raises(GinghamError, match=f"these have {columns} columns"):
        certify_ranking({0: [1]}, np.zeros((3, columns), dtype=int))


@pytest.mark.parametrize("guess", [-0.5, 2.5])
def test_predictions_outside_the_labels_are_refused_by_their_row(guess):
    with pytest.raises(GinghamError, match=r"in row 1 "):
        stated_loss("absolute", (0, 1, 2)).losses(np.array([0.0, 1.0]), np.array([0.0, guess]))


def test_answers_on_a_grid_may_be_outside_by_rounding():
    cell = Quadratic(bounds=(0.0, 1.0))
    found = _on_grid(cell, np.array([[-9e-7, 0.5], [1 + 9e-7, 1.0]]), 10**7 + 1, symmetric=False)
    assert found.answers.min() == 0.0
    assert found.answers.max() == 1.0


def test_distributions_are_cut_after_their_smoothing_is_taken_off():
    """(.7, .2, .1) smoothed by .3 is .1 for each label and .7 times (6/7, 1/7, 0)."""
    cell = Logarithmic(THREE, 0.3)
    assert _cut(np.array([[0.7, 0.2, 0.1]]), cell.smoothing, 7).tolist() == [[6.0, 1.0, 0.0]]


@pytest.mark.parametrize("n", [400, 1500])
def test_expected_log_factorials_are_exact_to_the_stated_error(n):
    """The polynomial is taken only where it is as close to the distribution itself as stated."""
    for p in (0.35, 0.5, 0.8, 0.95):
        coins = np.full(n, p)
        distribution = poisson_binomial(np.column_stack([coins, 1 - coins]))[0]
        exact = float(distribution @ np.cumsum(np.log(np.maximum(np.arange(n + 1), 1))))
        assert expected_log_factorials(np.column_stack([coins, 1 - coins]))[0] == pytest.approx(exact, abs=2 * CLOSE)


def test_misses_are_rounded_up_and_never_down():
    cell = make_cell("quadratic", None, (0.0, 1.0))
    labels, answers = np.random.default_rng(0).random((2, 500))
    steps = _bins(cell, labels, answers) / BINS - cell.miss(labels, answers)
    assert steps.min() > -1e-9
    assert steps.max() < 1.001 / BINS
