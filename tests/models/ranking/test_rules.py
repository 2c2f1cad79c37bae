"""Lists that obey rules: the best of all lists that do, by brute force, and what people are told about them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import gingham as gg
from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.models.ranking.rules import Limit, Rules, free_places, long_tail, moved_by, read_rules
from models.ranking.test_ranker import planted


def best_by_hand(row, rules, n):
    """Of all lists: fewest missing needed items, then longest, then highest sum. Only sums can be compared."""
    there = [i for i in range(len(row)) if np.isfinite(row[i]) and rules.allowed[i]]
    longest, best = (np.inf, 0), -np.inf
    for size in range(min(n, len(there)), -1, -1):
        for some in combinations(there, size):
            chosen = np.array(some, dtype=int)
            counts = [np.bincount(rule.groups[chosen][rule.groups[chosen] >= 0]) for rule in rules.limits]
            if any(c.max(initial=0) > rule.count for c, rule in zip(counts, rules.limits)):
                continue
            missing = sum(max(0, rule.count - int((rule.groups[chosen] == 0).sum())) for rule in rules.needs)
            key, total = (missing, -size), float(row[chosen].sum())
            if key < longest or (key == longest and total > best):
                longest, best = key, total
    return longest, best


def measured(row, found, rules):
    chosen = found[found >= 0]
    missing = sum(max(0, rule.count - int((rule.groups[chosen] == 0).sum())) for rule in rules.needs)
    return (missing, -len(chosen)), float(row[chosen].sum())


@pytest.mark.parametrize(("n_limits", "n_needs"), [(0, 1), (1, 0), (1, 1), (2, 0), (0, 2), (2, 2), (1, 2)])
def test_the_best_list_of_all_that_obey(n_limits, n_needs):
    rng = np.random.default_rng(10 * n_limits + n_needs)
    for _ in range(40):
        m, n = int(rng.integers(4, 10)), int(rng.integers(1, 5))
        row = rng.normal(size=m)
        row[rng.random(m) < 0.15] = -np.inf
        limits = tuple(Limit(f"l{i}", rng.integers(-1, 3, m), int(rng.integers(0, 3))) for i in range(n_limits))
        needs = tuple(Limit(f"n{i}", rng.integers(0, 2, m) - 1, int(rng.integers(0, n + 1))) for i in range(n_needs))
        rules = Rules(rng.random(m) < 0.9, limits, needs)
        found, short = rules.lists(row[None].copy(), n)
        wanted, total = best_by_hand(row, rules, n)
        got, sum_found = measured(row, found[0], rules)
        assert got == wanted
        assert sum_found == pytest.approx(total, abs=1e-9)
        assert bool(short) == (wanted[0] > 0)
        there = found[0][found[0] >= 0]
        assert (np.diff(row[there]) <= 0).all()
        assert len(set(there)) == len(there)


def test_one_of_each_and_the_program_agree():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(30, 80))
    limit = Limit("per brand", rng.integers(-1, 9, 80), 2)
    need = Limit("tail", np.where(rng.random(80) < 0.3, 0, -1), 4)
    idle = Limit("idle", np.full(80, -1), 1)  # a second limit that concerns nothing leads to the program
    quick, _ = Rules(np.ones(80, bool), (limit,), (need,)).lists(scores.copy(), 10)
    slow, _ = Rules(np.ones(80, bool), (limit, idle), (need,)).lists(scores.copy(), 10)
    np.testing.assert_array_equal(quick, slow)


def test_what_moved_an_item_is_the_rule_without_which_it_would_not_be_there():
    scores = np.array([[9.0, 8.0, 7.0, 1.0, 0.5]])
    brand = Limit("at most 1 per brand", np.array([0, 0, 1, 2, -1]), 1)
    tail = Limit("at least 1 tail", np.array([-1, -1, -1, -1, 0]), 1)
    rules = Rules(np.ones(5, bool), (brand,), (tail,))
    found, _ = rules.lists(scores.copy(), 3)
    assert found.tolist() == [[0, 2, 4]]
    assert moved_by(rules, scores, found, found, 3) == [["", "at most 1 per brand", "at least 1 tail"]]
    assert free_places(scores, found).tolist() == [[1, 3, 5]]
    found, _ = Rules(np.ones(5, bool), (brand,)).lists(scores.copy(), 3)
    assert moved_by(Rules(np.ones(5, bool), (brand,)), scores, found, found, 3) == [["", "", "at most 1 per brand"]]


def test_rules_are_read_from_a_table_of_items():
    items = Mode("item", np.array(["a", "b", "c", "d"]))
    info = pd.DataFrame(
        {"item": ["d", "c", "b", "a"], "brand": ["x", None, "y", "y"], "new": [True, False, True, False]}
    )
    popularity = np.array([80.0, 10.0, 5.0, 5.0])
    rules = read_rules(items, popularity, 10, info, at_most={"brand": 3, ("brand", "y"): 0.15},
                       at_least={"new": 0.15, "long_tail": 1}, exclude=["c", "zz"])  # fmt: skip
    assert rules.allowed.tolist() == [True, True, False, True]
    per_brand, of_y = rules.limits
    assert per_brand.count == 3
    assert per_brand.groups.tolist() == [1, 1, -1, 0]
    assert of_y.count == 1
    assert of_y.groups.tolist() == [0, 0, -1, -1]
    new, tail = rules.needs
    assert new.count == 2
    assert new.groups.tolist() == [-1, 0, -1, 0]
    assert tail.groups.tolist() == [-1, 0, 0, 0]
    assert rules.names == ["exclude", "at most 3 per brand", "at most 1 with brand = y", "at least 2 new",
                           "at least 1 long_tail"]  # fmt: skip
    assert long_tail(popularity).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"at_most": {"colour": 3}}, "is in no table of items: there are 'brand', 'long_tail'"),
        ({"at_most": {"brand": -1}}, "≥ 0"),
        ({"at_most": {"brand": 2.5}}, "must be an integer"),
        ({"at_least": {"brand": 2}}, "needs a column of yes and no"),
        ({"at_least": {("brand", "q"): 2}}, "No item has brand = 'q'"),
        ({"at_least": {"long_tail": 11}}, "has 10 items only"),
        ({"items": ["q"]}, "contains no item"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named(arguments, told):
    info = pd.DataFrame({"item": ["a", "b"], "brand": ["x", "y"]})
    with pytest.raises(GinghamError, match=told):
        read_rules(Mode("item", np.array(["a", "b"])), np.array([3.0, 1.0]), 10, info, **arguments)


@pytest.fixture(scope="module")
def model():
    return gg.BasketRanker(random_state=0).fit(planted())


def test_recommendations_obey_and_say_what_moved(model):
    info = pd.DataFrame({"item": model.items_, "brand": model.items_ % 2, "new": model.items_ >= 50})
    asked = {"at_most": {"brand": 3}, "at_least": {"new": 0.3}, "exclude": [0, 3], "item_info": info}
    users = model.users_[:40]
    frame = model.recommend(users, 6, reasons=False, **asked)
    for user, part in frame.groupby("user"):
        assert part["item"].mod(2).value_counts().max() <= 3
        assert (part["item"] >= 50).sum() >= 2
        assert not set(part["item"]) & {0, 3}
        assert part["score"].is_monotonic_decreasing
        assert model.top([user], 6, **asked)[0].tolist() == part["item"].tolist()
        moved = part[part["free_place"] > 6]
        assert moved["rule"].str.len().gt(0).all()
    row = frame[frame["rule"].str.contains("at least 2 new")].iloc[0]
    why = model.explain(row["user"], [row["item"], 0], 6, asked)
    assert "at least 2 new" in why[0].rule
    assert str(why[0]).endswith(why[0].rule)
    assert why[0].rule.startswith("listed because of")
    assert why[0].base + why[0].pulls.sum() == pytest.approx(row["score"], abs=1e-5)
    assert model.explain(row["user"], [row["item"]])[0].rule == ""
    new = model.recommend_for([1, 4], 6, reasons=False, **asked)
    assert (new["item"] >= 50).sum() >= 2


def test_rules_that_bind_nothing_change_nothing(model):
    free = model.top(model.users_, 5)
    np.testing.assert_array_equal(free, model.top(model.users_, 5, at_least={"long_tail": 0}, items=model.items_))


def test_a_need_that_cannot_be_met_is_said(model):
    info = pd.DataFrame({"item": model.items_, "new": model.items_ == 59})
    with pytest.warns(UserWarning, match=r"No list obeys the rule 'at least 2 new' for 2 of 2 users"):
        lists = model.top([0, 1], 4, exclude_seen=False, at_least={"new": 2}, item_info=info)
    assert (lists == 59).sum(1).tolist() == [1, 1]
