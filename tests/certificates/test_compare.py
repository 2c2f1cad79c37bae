"""Comparisons of two models, and what rules of lists cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gingham as gg
from gingham.certificates import audit, audit_rankings


def labels_and_guesses(n, seed):
    """Two predictors: the first is better for even groups, the second for odd ones, by as much."""
    rng = np.random.default_rng(seed)
    y, group = rng.integers(1, 6, n), rng.integers(0, 2, n)
    good, poor = y.astype(float), np.full(n, 3.0)
    return y, group, {"a": np.where(group == 0, good, poor), "b": np.where(group == 1, good, poor)}


def test_who_wins_for_whom_is_proved_where_it_is_so():
    y, group, guesses = labels_and_guesses(2000, 0)
    found = audit(y, guesses, by={"group": group.astype(str)}, alphabet=range(1, 6))
    assert found.winner is None
    assert {one.part: one.better for one in found.parts["group"]} == {"0": "a", "1": "b"}
    assert "a is better" in found.explain()
    assert found.to_dict()["parts"]["group"][0]["better"] == "a"


def test_equal_predictors_are_rarely_called_different():
    """At most δ of samples in which the two are equally good in the mean prove anything."""
    false = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.integers(1, 6, 300)
        noise = rng.permuted(np.tile([-1.0, 1.0], (300, 1)), axis=1)
        guesses = {"a": y + noise[:, 0] * rng.random(300), "b": y + noise[:, 1] * rng.random(300)}
        found = audit(y, guesses, by={"part": rng.integers(0, 3, 300).astype(str)}, label_bounds=(0, 6), delta=0.2)
        parts = [one.better for one in found.parts["part"]]
        false += found.winner is not None or any(parts)
    assert false <= 12 + 3 * np.sqrt(60 * 0.2 * 0.8)


def test_rankings_are_compared_by_user_and_by_part():
    hidden = np.array([(user, user % 2) for user in range(300)])
    good = {user: [user % 2, 2] for user in range(300)}
    poor = {user: [0, 2] for user in range(300)}
    by = {"users": {user: ("even", "odd")[user % 2] for user in range(300)}}
    found = audit_rankings(hidden, {"good": good, "poor": poor}, by=by, at=2)
    assert found.winner == "good"
    verdicts = {one.part: (one.n, one.better) for one in found.parts["users"]}
    assert verdicts == {"even": (150, None), "odd": (150, "good")}


def test_other_than_two_models_and_parts_of_another_length_are_refused():
    y, _, guesses = labels_and_guesses(50, 0)
    with pytest.raises(gg.GinghamError, match="the part of each row"):
        audit(y, guesses, by={"group": ["a", "b"]}, alphabet=range(1, 6))
    with pytest.raises(gg.GinghamError, match="compares two models"):
        audit([1, 2], {"a": [1, 2]}, alphabet=[1, 2], by={"part": [0, 1]})


@pytest.fixture(scope="module")
def ranker_and_hidden():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 300, 6000)
    item = 2 * rng.integers(0, 15, 6000) + np.where(rng.random(6000) < 0.9, user % 2, rng.integers(0, 2, 6000))
    pairs = rng.permutation(np.unique(np.column_stack([user, item]), axis=0))
    cut = len(pairs) * 4 // 5
    return gg.BasketRanker(random_state=0).fit(pairs[:cut]), pairs[cut:]


def test_the_cost_of_each_rule_is_the_loss_it_adds(ranker_and_hidden):
    model, hidden = ranker_and_hidden
    info = pd.DataFrame({"item": np.arange(30), "kind": np.arange(30) % 2})
    rules = {"at_most": {"kind": 3}, "exclude": [0, 1, 2, 3], "item_info": info}
    found = gg.certify_ranking(model, hidden, at=6, rules=rules, random_state=0)
    free, both = gg.certify_ranking(model, hidden, at=6, random_state=0), found.empirical
    costs = {one.rule: one for one in found.rule_costs}
    assert set(costs) == {"exclude", "at most 3 of kind", "all rules"}
    assert costs["all rules"].observed == pytest.approx(both - free.empirical)
    assert all(one.low <= one.observed <= one.high for one in found.rule_costs)
    assert costs["at most 3 of kind"].low > 0  # everybody wants one kind
    assert found.delta == 0.05
    assert "What each rule adds" in found.explain()
    other = gg.certify_ranking(model, hidden, at=6, rules={"exclude": [0, 1, 2, 3]}, random_state=0)
    assert costs["at most 3 of kind"].observed == pytest.approx(both - other.empirical)


def test_rules_are_for_one_fitted_ranker(ranker_and_hidden):
    _, hidden = ranker_and_hidden
    with pytest.raises(gg.RefusedCertificate, match="one fitted ranker"):
        gg.certify_ranking(gg.BasketRanker(), hidden, rules={"exclude": [1]})
