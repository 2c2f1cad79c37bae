"""Tables about items and people, and what was seen but not wanted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import gingham as gg
from gingham.models.ranking.kernels import solve_rows

N_USERS, N_ITEMS, KINDS = 120, 60, 3


@pytest.fixture(scope="module")
def pairs():
    """User u likes items of kind u % 3, mostly."""
    rng = np.random.default_rng(0)
    user = rng.integers(0, N_USERS, 2400)
    kind = np.where(rng.random(2400) < 0.85, user % KINDS, rng.integers(0, KINDS, 2400))
    return pd.DataFrame({"user": user, "item": KINDS * rng.integers(0, N_ITEMS // KINDS, 2400) + kind})


@pytest.fixture(scope="module")
def side():
    items, users = np.arange(N_ITEMS + 12), np.arange(N_USERS + 6)
    return {
        "item": pd.DataFrame({"item": items, "words": [f"of kind{i % KINDS}" for i in items], "price": items * 1.5}),
        "user": pd.DataFrame({"user": users, "town": [f"town{u % KINDS}" for u in users]}),
    }


@pytest.fixture(scope="module")
def model(pairs, side):
    return gg.BasketRanker(side=side, random_state=0).fit(pairs)


def test_new_items_are_ranked_by_what_resembles_them(model):
    new = np.arange(N_ITEMS, N_ITEMS + 12)
    users = np.arange(30)
    lists = model.top(users, 4, items=new)
    assert (lists % KINDS == users[:, None] % KINDS).mean() > 0.9


def test_people_without_a_basket_get_what_people_like_them_take(model):
    users = np.arange(N_USERS, N_USERS + 6)
    assert (model.top(users, 5) % KINDS == users[:, None] % KINDS).mean() > 0.9


def test_reasons_of_new_items_add_up(model):
    items = [0, 1, N_ITEMS, N_ITEMS + 1, N_ITEMS + 2]
    for user in (0, N_USERS + 1):
        reasons = model.explain(user, items)
        scores = model.scores([user] * len(items), items)
        assert np.allclose([why.base + why.pulls.sum() for why in reasons], scores, atol=1e-5)


def test_tables_change_nothing_of_items_that_were_taken(pairs, model):
    """But for the order of the ids, a ranking of known items is the same with tables and without."""
    plain = gg.BasketRanker(random_state=0).fit(pairs)
    assert model._ranking.intercept[:N_ITEMS] == pytest.approx(plain._ranking.intercept, rel=1e-3, abs=1e-5)


def test_a_saved_model_ranks_new_items_the_same(pairs, model, tmp_path):
    model.save(tmp_path / "m.gingham")
    again = gg.load(tmp_path / "m.gingham")
    assert np.array_equal(again.top(model.users_, 5), model.top(model.users_, 5))
    with pytest.raises(gg.GinghamError, match="side="):
        again.update(pairs.head(2))


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"shop": pd.DataFrame({"item": [1], "x": ["a"]})}, "'user', 'item'"),
        ({"item": [[1, 2]]}, "data frame"),
        ({"item": pd.DataFrame({"item": [1, 2]})}, "at least one other column"),
        ({"item": pd.DataFrame({"item": [1, 1], "x": ["a", "b"]})}, "one row per id"),
        ({"item": pd.DataFrame({"item": ["1", "2"], "x": ["a", "b"]})}, "another type"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(pairs, tables, told):
    with pytest.raises(gg.GinghamError, match=told):
        gg.BasketRanker(side=tables).fit(pairs)


# what was seen but not wanted


@pytest.fixture(scope="module")
def refusing(pairs):
    """Users refuse some items of the next kind."""
    rng = np.random.default_rng(1)
    user = rng.integers(0, N_USERS, 500)
    bad = pd.DataFrame({"user": user, "item": KINDS * rng.integers(0, N_ITEMS // KINDS, 500) + (user + 1) % KINDS})
    rows, labels = pd.concat([pairs, bad]), np.repeat([1.0, -3.0], [len(pairs), len(bad)])
    return rows, labels, gg.BasketRanker(random_state=0).fit(rows, labels)


def test_refused_items_are_not_listed(refusing):
    rows, labels, model = refusing
    sums = rows.assign(weight=labels).groupby(["user", "item"])["weight"].sum()
    lists = dict(zip(model.users_.tolist(), model.top(model.users_, 15).tolist()))
    assert not any(item in lists[user] for (user, item), total in sums.items() if total < 0)


def test_negative_weights_are_negative_labels(refusing):
    rows, labels, model = refusing
    again = gg.BasketRanker(random_state=0).fit(rows, sample_weight=labels)
    assert np.array_equal(again.top(model.users_, 5), model.top(model.users_, 5))


def test_what_refused_items_pull_is_subtracted(refusing):
    """score = score without dislikes − share · (score of the refused items as a basket − intercept)."""
    model = refusing[2]
    user = int(model.users_[np.argmax(model._refused.sizes)])
    items = model.items_[:20]
    share, model._dislike = model._dislike, 0.0
    before = model.scores([user] * 20, items)
    model._dislike = 0.4
    after, reasons = model.scores([user] * 20, items), model.explain(user, items)
    model._dislike = share
    others = model._refused.of_users(model._user_codes([user]))
    pulls = model._ranking.scorer("auto")(others)[0] - model._ranking.intercept
    assert after == pytest.approx(before - 0.4 * pulls[:20], abs=1e-5)
    assert [why.score for why in reasons] == pytest.approx(after.tolist(), abs=1e-5)
    told = model.recommend_for([0, 3], 5, disliked=[6])
    assert 6 not in told["item"].tolist()


def test_dislikes_survive_an_update(refusing):
    rows, labels, _ = refusing
    model = gg.BasketRanker(n_boards=1, random_state=0).fit(rows, labels)
    before = model._refused.taken.nnz
    model.update(rows.head(40), np.ones(40))
    assert 0 < model._refused.taken.nnz <= before


def test_labels_without_a_negative_one_say_nothing(pairs):
    plain, labelled = (gg.BasketRanker(random_state=0).fit(pairs, y) for y in (None, np.arange(len(pairs))))
    assert np.array_equal(plain.top(plain.users_, 5), labelled.top(plain.users_, 5))


def test_factors_that_vanish_stay_finite():
    taken = sparse.csr_array(np.ones((3, 2), dtype=np.float32))
    tiny = np.full((2, 4), 1e-30, dtype=np.float32)
    found = solve_rows(taken, tiny, 1.0, 10.0, np.zeros((3, 4), dtype=np.float32), 3)
    assert np.isfinite(found).all()
