"""Certificates for rankings: by hand, by brute force, and how often they fail over simulated worlds."""

from itertools import permutations
from math import log

import numpy as np
import pytest

import gingham as gg
from gingham.certificates.holdout import betting
from gingham.certificates.ranking import Hidden, betting_without_replacement
from gingham.data import Mode
from gingham.errors import GinghamError, RefusedCertificate

HIDDEN = np.array([[0, 10], [0, 11], [1, 10], [1, 12], [1, 13], [1, 14], [2, 10]])
LISTS = {0: [10, 5, 11], 1: [1, 12, 2], 2: [3, 4]}


def losses(lists, at=3, measure="miss"):
    users = Mode.of(HIDDEN[:, 0], "user")
    return Hidden(users, users.encode(HIDDEN[:, 0]), HIDDEN[:, 1], at, measure).losses(lists)


# by hand


def test_miss_rates_by_hand():
    assert losses(LISTS).tolist() == [0.0, 0.75, 1.0]
    assert losses(LISTS, at=1).tolist() == [0.5, 1.0, 1.0]


def test_ndcg_by_hand():
    two = 1 + 1 / np.log2(3)
    three = two + 1 / 2
    expected = [1 - 1.5 / two, 1 - (1 / np.log2(3)) / three, 1.0]
    assert losses(LISTS, measure="ndcg") == pytest.approx(expected)


def test_the_value_by_hand_for_one_user():
    """One user who loses 0: the first bet is ν = .5 + .5 √(1/(2 ln 20)), at least 1.001; (ν − 0)/(ν − L) = 20."""
    found = gg.certify_ranking({0: [10, 11]}, HIDDEN[:2])
    assert found.empirical == 0.0
    assert found.value == pytest.approx(1.001 * (1 - 1 / 20))


def test_a_population_that_was_all_looked_at_is_known_exactly():
    found = gg.certify_ranking(LISTS, HIDDEN, at=3, population=3)
    assert found.value == pytest.approx(1.75 / 3)
    assert "all 3 users" in found.covers


def test_the_fixed_bets_by_hand():
    """random="hiding" is the log-wealth bound of the losses with nothing to pay but the grid."""
    from gingham.certificates.bounds import GRID

    x = losses(LISTS)
    value = gg.certify_ranking(LISTS, HIDDEN, at=3, random="hiding").value
    wealth = np.mean([np.prod((nu - x) / (nu - value)) for nu in GRID])
    assert value == 1.0 or wealth == pytest.approx(20.0, rel=1e-6)


# forms of a ranking


def test_all_forms_of_a_ranking_say_the_same():
    scores = np.zeros((3, 20))
    for user, mine in LISTS.items():
        scores[user, mine] = 1 - 0.1 * np.arange(len(mine))
    scores[2, 7] = 0.5
    lists = {**LISTS, 2: [3, 4, 7]}
    values = [
        gg.certify_ranking(form, HIDDEN, at=3, random_state=0).value
        for form in (lists, scores, lambda users, n: [lists[u][:n] for u in users])
    ]
    assert values[0] == values[1] == values[2]


def test_seen_items_of_a_table_of_scores_are_not_listed_again():
    scores = np.array([[0.9, 0.8, 0.1]])
    hidden, seen = [[0, 1]], [[0, 0]]
    assert gg.certify_ranking(scores, hidden, at=1).empirical == 1.0
    assert gg.certify_ranking(scores, hidden, at=1, seen=seen).empirical == 0.0


def test_a_pair_that_is_hidden_twice_counts_once():
    twice = np.vstack([HIDDEN, HIDDEN[:1]])
    assert gg.certify_ranking(LISTS, twice, at=3).empirical == gg.certify_ranking(LISTS, HIDDEN, at=3).empirical


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measure": "recall"}, "measure='recall'"),
        ({"random": "items"}, "random='items'"),
        ({"at": 0}, "at=0"),
        ({"delta": 0}, "delta=0"),
        ({"candidates": 0}, "candidates=0"),
        ({"population": 2}, "population=2 is less than the 3 users"),
    ],
)
def test_bad_requests_get_a_sentence(options, words):
    with pytest.raises(GinghamError, match=words):
        gg.certify_ranking(LISTS, HIDDEN, **options)


def test_bad_rankings_get_a_sentence():
    for ranking, words in (
        ({0: [10], 1: [10]}, "no list for user 2"),
        ({**LISTS, 1: [12, 12]}, "names an item twice"),
        (lambda users, n: [[1]], "returned 1 lists for 3 users"),
        (np.zeros((2, 5)), "row numbers, 0 to 1"),
        (np.full((3, 20), np.nan), "NaN"),
        (np.zeros(3), "two dimensions"),
        (7, "A ranking is a model"),
    ):
        with pytest.raises(GinghamError, match=words):
            gg.certify_ranking(ranking, HIDDEN)
    with pytest.raises(GinghamError, match="pairs"):
        gg.certify_ranking(LISTS, np.zeros((3, 3)))
    with pytest.raises(RefusedCertificate, match="fixed"):
        gg.certify_ranking(LISTS, HIDDEN, random="hiding", population=30)


# words


def test_it_says_in_words_what_is_random_and_what_is_covered():
    drawn = gg.certify_ranking(LISTS, HIDDEN)
    assert "all people from whom these users were drawn" in drawn.explain()
    assert "drawn independently" in drawn.explain()
    hiding = gg.certify_ranking(LISTS, HIDDEN, random="hiding").explain()
    assert "what anybody will want later, are not covered" in hiding
    assert "Which items of a user were hidden was drawn" in hiding
    assert "one of 5 candidates" in gg.certify_ranking(LISTS, HIDDEN, candidates=5).explain()
    facts = drawn.to_dict()
    assert facts["measure"] == "miss"
    assert [a["status"] for a in facts["assumptions"]] == ["given", "given", "checked", "checked"]
    assert f"seed {facts['seed']}, drawn afresh" in drawn.explain()
    assert gg.certify_ranking(LISTS, HIDDEN, random_state=3).seed == 3


def test_two_rankings_are_compared_user_by_user():
    users = np.repeat(np.arange(400), 2)
    hidden = np.column_stack([users, np.tile([0, 1], 400)])
    good = {u: [0, 1] if u % 3 else [5, 6] for u in range(400)}
    poor = {u: [0, 7] if u % 3 else [5, 6] for u in range(400)}
    better = gg.certify_ranking(good, hidden, at=2, against=poor)
    assert better.better
    assert better.value < 0
    assert better.empirical == pytest.approx(-0.5 * np.mean(np.arange(400) % 3 > 0))
    assert "is lower than the second's" in better.explain()
    other = gg.certify_ranking(poor, hidden, at=2, against=good)
    assert not other.better
    assert "no difference is proved" in other.explain()
    assert gg.certify_ranking(good, hidden, at=2, against=good).value >= 0


def test_candidates_cost_their_logarithm():
    one, many = (gg.certify_ranking(LISTS, HIDDEN, at=3, candidates=c).value for c in (1, 100))
    assert one <= many


# brute force


def test_wealth_without_replacement_has_mean_one_over_all_orders():
    """For the true mean L, Π (ν_t − X_t)/(ν_t − m_t(L)) with bets from the past has mean 1, over all 720 orders."""
    population = np.array([0.0, 0.1, 0.5, 0.5, 0.9, 1.0])
    level, total = population.mean(), 0.0
    for order in permutations(population):
        wealth, sum_before = 1.0, 0.0
        for t, x in enumerate(order[:5]):
            nu = 1.2 + sum_before / (t + 1)  # any bet that looks back only
            wealth *= (nu - x) / (nu - (6 * level - sum_before) / (6 - t))
            sum_before += x
        total += wealth / 720
    assert total == pytest.approx(1.0)


def test_without_replacement_closes_as_users_are_used_up():
    population = np.random.default_rng(0).beta(2, 1, 500)
    values = [betting_without_replacement(population[:n], 500, 0.0, 0.05, 0).value - population[:n].mean()
              for n in (50, 250, 450, 500)]  # fmt: skip
    assert values[0] > values[1] > values[2] > values[3] == pytest.approx(0.0, abs=1e-12)
    assert (
        betting_without_replacement(population[:250], 500, 0.0, 0.05, 0).value
        < betting(population[:250], 0.0, 0.05, 0).value
    )


def test_the_bound_without_replacement_by_hand():
    """The wealth Π (ν_t − X_t)/(ν_t − m_t), m_t = (N L − S)/(N − t + 1) the mean of those that are left, meets 1/δ."""
    losses, N, delta, seed = [0.3, 0.1, 0.6, 0.2, 0.4, 0.1] * 5, 60, 0.2, 3
    value = betting_without_replacement(np.array(losses), N, 0.0, delta, seed).value
    x = np.random.default_rng(seed).permutation(losses)
    horizon, total, wealth, most, mean, squares = 30 / (1 - 30 / 61), 0.0, 1.0, 0.0, 0.5, 0.25
    for t in range(1, 31):
        spread = np.sqrt(squares / t)
        nu = max((mean if t > 1 else 0.5) + spread * np.sqrt(horizon / (2 * log(1 / delta))), 1.001)
        left = (N * value - total) / (N - (t - 1))
        wealth *= (nu - x[t - 1]) / (nu - left)
        most, total = max(most, wealth), total + x[t - 1]
        mean = (0.5 + total) / (t + 1)
        squares += (x[t - 1] - mean) ** 2
    assert most == pytest.approx(1 / delta, rel=1e-6)


# coverage: 1600 worlds a case, rankers that are as awkward as the bound allows

WORLDS = 1600
DELTA = 0.1


def often(fails, delta=DELTA):
    """The largest number of failures that chance explains (four standard errors)."""
    return fails <= WORLDS * delta + 4 * np.sqrt(WORLDS * delta * (1 - delta))


def world(rng, kind, n):
    """Miss probabilities of n users under an adversarial ranker: it is right by luck, by halves, or nearly always.

    "lottery" misses everything of a few users whom a sample rarely meets; "coin" hits all or nothing; "mixed" knows
    half of the people by heart and nothing of the others; "steady" loses the same with everybody.
    """
    if kind == "lottery":
        return np.where(rng.random(n) < 0.03, 1.0, 0.02)
    if kind == "coin":
        return np.full(n, 0.5)
    if kind == "mixed":
        return np.where(np.arange(n) % 2 == 0, 0.05, 0.95)
    return np.full(n, 0.9)


def hits(rng, miss, k):
    """Each user has k hidden items; the list holds each with its own chance."""
    return rng.binomial(k, np.broadcast_to(miss, (len(miss),))) / k


@pytest.mark.parametrize("kind", ["lottery", "coin", "mixed", "steady"])
def test_coverage_over_drawn_users(kind):
    rng = np.random.default_rng(1)
    truth = {"lottery": 0.03 + 0.97 * 0.02, "coin": 0.5, "mixed": 0.5, "steady": 0.9}[kind]
    fails = 0
    for _ in range(WORLDS):
        miss = world(rng, kind, 60)
        miss = rng.permutation(miss) if kind != "mixed" else rng.choice([0.05, 0.95], 60)
        fails += betting(hits(rng, miss, 1 if kind == "coin" else 3), 0.0, DELTA, 0).value < truth
    assert often(fails)


@pytest.mark.parametrize("kind", ["lottery", "coin", "mixed", "steady"])
def test_coverage_over_hiding_for_fixed_users(kind):
    """The users stay the same in all worlds, with different chances each; only what is hidden changes."""
    from gingham.certificates.bounds import LossDistribution, log_wealth

    rng = np.random.default_rng(2)
    miss = world(rng, kind, 60)
    fails = sum(
        log_wealth(LossDistribution.of(hits(rng, miss, 3), np.ones(60)), 0.0, 60, DELTA).value < miss.mean()
        for _ in range(WORLDS)
    )
    assert often(fails)


@pytest.mark.parametrize("kind", ["lottery", "coin", "mixed", "steady"])
def test_coverage_without_replacement(kind):
    rng = np.random.default_rng(3)
    fails = 0
    for _ in range(WORLDS):
        population = hits(rng, world(rng, kind, 120), 2)
        sample = rng.choice(population, 60, replace=False)
        fails += betting_without_replacement(sample, 120, 0.0, DELTA, 0).value < population.mean()
    assert often(fails)


def test_coverage_of_comparisons():
    """Two rankings that are equally good on average, and as different as can be: either is called better rarely."""
    rng = np.random.default_rng(4)
    fails = 0
    for _ in range(WORLDS):
        one, two = (rng.random(80) < 0.5).astype(float), (rng.random(80) < 0.5).astype(float)
        fails += betting((one - two + 1) / 2, 0.0, DELTA, 0).value < 0.5
    assert often(fails)


def test_coverage_through_the_whole_door():
    """Planted users, lists made by memorising what was seen, random hiding: certify_ranking itself, 1000 worlds."""
    rng = np.random.default_rng(5)
    n_items, fails, worlds = 12, 0, 1000
    likes = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    for _ in range(worlds):
        users = rng.integers(0, 3, 30)
        seen = np.array([rng.choice(likes[taste], 2, replace=False) for taste in users])
        wanted = np.array([rng.choice(np.setdiff1d(likes[t], s)) for t, s in zip(users, seen)])
        # The ranker knows the taste, lists one of the two open items, and knows nothing of the third taste.
        lists = {u: [int(np.setdiff1d(likes[t], s)[0])] if t < 2 else [0] for u, (t, s) in enumerate(zip(users, seen))}
        hidden = np.column_stack([np.arange(30), wanted])
        fails += gg.certify_ranking(lists, hidden, at=1, delta=DELTA).value < 2 / 3 * 0.5 + 1 / 3
    assert n_items == likes.size
    assert fails <= worlds * DELTA + 4 * np.sqrt(worlds * DELTA * (1 - DELTA))


def test_a_bound_that_is_too_bold_would_be_found():
    """The check above can fail: the mean itself is below the truth in half of the worlds."""
    rng = np.random.default_rng(6)
    assert not often(sum(hits(rng, np.full(60, 0.5), 1).mean() < 0.5 for _ in range(WORLDS)))
    assert log(1 / DELTA) > 0


def test_a_ranking_that_knows_what_was_hidden_rests_on_what_is_given():
    """Everybody owns everything and one item per user is hidden: the least visible items are the hidden ones.

    The ranking has not seen a hidden pair, its certificate is false of a new drawing, and says what it rests on.
    """
    rng = np.random.default_rng(0)
    n_users, n_items = 60, 200
    hidden = np.column_stack([np.arange(n_users), rng.integers(0, n_items, n_users)])
    visible = n_users - np.bincount(hidden[:, 1], minlength=n_items)
    listed = np.argsort(visible, kind="stable")[:60]
    found = gg.certify_ranking(dict.fromkeys(range(n_users), listed.tolist()), hidden, at=60)
    assert found.value < 1 - 60 / n_items  # what any fixed list misses of items hidden anew
    statuses = {assumption.code: assumption.status for assumption in found.assumptions}
    assert statuses["ranking independent of hiding"] == "given"
