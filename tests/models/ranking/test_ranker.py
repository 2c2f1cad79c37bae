"""BasketRanker at its door: lists, reasons, odd tables, files, scikit-learn's contracts."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

import gingham as gg


def planted(n_users=300, n_items=60, n=5000, seed=0):
    """People of three tastes, each drawn to a third of the items, some of them popular."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, n_users, n)
    liked = rng.random(n) < 0.85
    third = np.where(liked, user % 3, rng.integers(0, 3, n))
    weights = 1 / np.arange(1, n_items // 3 + 1) ** 0.5
    item = 3 * rng.choice(n_items // 3, n, p=weights / weights.sum()) + third
    return np.column_stack([user, item])


@pytest.fixture(scope="module")
def X():
    return planted()


@pytest.fixture(scope="module")
def model(X):
    return gg.BasketRanker(random_state=0).fit(X)


def test_recommendations_follow_the_taste(model):
    users = model.users_
    top = model.top(users, 5)
    assert (top % 3 == users[:, None] % 3).mean() > 0.9


def test_what_was_taken_is_not_recommended_unless_asked_for(model, X):
    taken = set(map(tuple, X))
    frame = model.recommend(model.users_[:20], 60, reasons=False)
    assert not any((u, i) in taken for u, i in zip(frame["user"], frame["item"]))
    assert len(model.recommend(0, 60, exclude_seen=False, reasons=False)) == len(model.items_)


def test_a_frame_has_what_it_says(model):
    frame = model.recommend([3, 1], n=4)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["user", "item", "place", "score", "base", "reasons"]
    assert frame["user"].tolist() == [3] * 4 + [1] * 4
    assert frame["place"].tolist() == [1, 2, 3, 4] * 2
    assert (np.diff(frame["score"][:4]) <= 0).all()
    assert frame["reasons"].str.contains("%").all()
    assert isinstance(model.recommend(3, n=2, backend="polars"), pl.DataFrame)


def test_scores_are_those_of_the_frame(model):
    frame = model.recommend([3, 1], n=4, reasons=False)
    assert model.scores(frame["user"], frame["item"]) == pytest.approx(frame["score"], abs=1e-6)


def test_reasons_add_up_to_the_score(model):
    items = model.items_
    for user in (0, 7, 100):
        scores = model.scores([user] * len(items), items)
        for why, score in zip(model.explain(user, items), scores):
            assert why.base + why.pulls.sum() == pytest.approx(why.score, rel=1e-9)
            assert why.base + why.item_pulls.sum() == pytest.approx(why.score, rel=1e-9)
            assert why.score == pytest.approx(score, abs=1e-4)
            assert np.abs(why.shares).sum() == pytest.approx(1.0)
            assert set(why.groups) <= set(model.group_names_)


def test_a_basket_of_a_known_user_gets_that_users_list(model, X):
    mine = np.unique(X[X[:, 0] == 5, 1])
    known, new = model.recommend(5, 8), model.recommend_for(mine.tolist(), 8)
    assert known["item"].tolist() == new["item"].tolist()
    assert new["score"].to_numpy() == pytest.approx(known["score"].to_numpy())
    assert new["reasons"].tolist() == known["reasons"].tolist()
    assert model.explain_for(mine, known["item"][:1])[0].score == pytest.approx(known["score"][0], abs=1e-4)


def test_an_empty_basket_gets_what_most_people_take(model, X):
    frame = model.recommend_for([], 3)
    items, counts = np.unique(np.unique(X, axis=0)[:, 1], return_counts=True)
    assert frame["item"].tolist() == items[np.argsort(-counts, kind="stable")[:3]].tolist()
    assert frame["reasons"].tolist() == ["popular with all"] * 3


def test_a_user_whose_pairs_were_not_taken_gets_them_too(X):
    rows = np.vstack([X, [[999, 0]]])
    weights = np.append(np.ones(len(X)), 0.4)
    model = gg.BasketRanker(random_state=0).fit(rows, sample_weight=weights)
    assert model.recommend(999, 2)["item"].tolist() == model.recommend_for([], 2)["item"].tolist()


def test_unknown_ids_get_a_sentence(model):
    with pytest.raises(gg.GinghamError, match=r"User 12345 was not in the training data.*recommend_for"):
        model.recommend([1, 12345])
    with pytest.raises(gg.GinghamError, match="Item 777 was not in the training data"):
        model.scores([1], [777])
    with pytest.warns(gg.UnseenItemsWarning, match="ignored in the basket: 777"):
        frame = model.recommend_for([777, 3, 6], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert frame["item"].tolist() == model.recommend_for([3, 6], 3)["item"].tolist()


def test_an_item_seen_once_can_be_asked_for(X):
    model = gg.BasketRanker(random_state=0).fit(np.vstack([X, [[0, 500]]]))
    assert np.isfinite(model.scores([1], [500])).all()
    assert len(model.similar([500], 3)) == 3
    assert 500 not in model.top([1], 5)


def test_repeated_rows_and_weights_are_counts(X):
    once = np.unique(X, axis=0)
    first = gg.BasketRanker(random_state=0).fit(once)
    again = gg.BasketRanker(random_state=0).fit(np.vstack([once, once[::-1]]))
    assert np.array_equal(first.top(first.users_, 9), again.top(first.users_, 9))
    pairs, counts = np.unique(X, axis=0, return_counts=True)
    by_rows = gg.BasketRanker(min_count=2, random_state=0).fit(X)
    by_weight = gg.BasketRanker(min_count=2, random_state=0).fit(pairs, sample_weight=counts)
    assert np.array_equal(by_rows.baskets_.taken.toarray(), by_weight.baskets_.taken.toarray())
    assert by_rows.baskets_.taken.nnz == (counts >= 2).sum()


def test_similar_items_are_of_the_same_taste(model):
    frame = model.similar([0, 1], n=5)
    assert frame["item"].tolist() == [0] * 5 + [1] * 5
    assert (frame["similar"] % 3 == frame["item"] % 3).mean() >= 0.8
    assert not (frame["similar"] == frame["item"]).any()


def test_boards_are_named_and_say_the_taste(model):
    board = model.boards_[0]
    assert board.table.shape == (len(board.basket_groups), len(board.target_groups))
    assert len(board.basket_group) == len(model.items_)
    rows, columns = board.basket_group, board.target_group
    same = np.equal.outer(model.items_ % 3, model.items_ % 3)
    pull = board.table[rows][:, columns]
    assert pull[same].mean() > pull[~same].mean()
    assert board.strongest(2)[0][2] == board.table.max()


def test_names_are_used(X):
    names = {int(i): f"film {i}" for i in range(60)}
    model = gg.BasketRanker(names=names, random_state=0).fit(X)
    assert "film " in model.recommend(1, 1)["reasons"][0]


def test_what_was_tried_is_stated(model):
    settings, tried = model.selection_["settings"], model.selection_["tried"]
    assert set(tried) == {"factor_penalty", "n_clusters", "board_penalty", "ridge", "rho", "walk", "weights"}
    assert sum(settings["weights"]) == pytest.approx(1.0)
    assert f"{settings['ridge']:.4g}" in tried["ridge"]
    assert model.selection_["users"] > 200


@pytest.mark.parametrize("members", [("boards",), ("items",), ("factors",), ("boards", "factors")])
def test_members_can_be_left_out(X, members):
    model = gg.BasketRanker(members=members, random_state=0).fit(X)
    weights = dict(zip(("boards", "items", "factors"), model.selection_["settings"]["weights"]))
    assert all(weights[name] == 0 for name in weights if name not in members)
    assert (model.top(model.users_, 3) % 3 == model.users_[:, None] % 3).mean() > 0.8
    assert len(model.boards_) >= 1


@pytest.mark.parametrize("few", [[("a", "x")], [("a", "x"), ("b", "x")], [("a", "x"), ("a", "y"), ("b", "y")]])
def test_tiny_tables_are_ranked(few):
    model = gg.BasketRanker(random_state=0).fit(few)
    assert model.selection_["tried"] == {}
    frame = model.recommend_for(["x"], 5)
    assert len(frame) == len(model.items_) - 1
    assert np.isfinite(model.scores(["a"], ["x"])).all()


def test_a_user_who_has_everything_gets_an_empty_row(X):
    everything = np.column_stack([np.full(60, 1000), np.arange(60)])
    model = gg.BasketRanker(random_state=0).fit(np.vstack([X, everything]))
    assert model.top([1000], 3).tolist() == [[None] * 3]
    assert len(model.recommend(1000, 3)) == 0


def test_ids_may_be_strings_in_a_frame(X):
    frame = pd.DataFrame({"who": [f"u{u}" for u in X[:, 0]], "what": [f"i{i:02d}" for i in X[:, 1]]})
    model = gg.BasketRanker(random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["who", "what"]
    assert model.recommend("u3", 2)["item"].str.startswith("i").all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"members": ("ease",)}, "choose some of boards, items, factors"),
        ({"n_boards": 0}, "n_boards=0"),
        ({"n_factors": 2.5}, "n_factors=2.5"),
        ({"min_count": 0}, "min_count=0"),
        ({"n_groups": 0}, "n_groups=0"),
        ({"backend": "gpu"}, "backend='gpu' is unknown"),
        ({"min_count": 1000}, "No pair was taken 1000 times"),
    ],
)
def test_bad_settings_get_a_sentence(X, settings, words):
    with pytest.raises(gg.GinghamError, match=words):
        gg.BasketRanker(**settings).fit(X)


def test_bad_tables_get_a_sentence(model):
    with pytest.raises(gg.GinghamError, match="n_features = 3, not 2"):
        gg.BasketRanker().fit(np.zeros((4, 3)))
    with pytest.raises(gg.GinghamError, match="weight"):
        gg.BasketRanker().fit([[1, 2], [1, 3]], sample_weight=[1, np.nan])
    with pytest.raises(gg.GinghamError, match="n=0"):
        model.recommend(1, n=0)
    with pytest.raises(gg.GinghamError, match="users has 2 entries, items 1"):
        model.scores([1, 2], [3])
    with pytest.raises(NotFittedError):
        gg.BasketRanker().recommend(1)


def test_score_is_the_mean_ndcg_of_unseen_pairs(X):
    rng = np.random.default_rng(1)
    pairs = rng.permutation(np.unique(X, axis=0))
    model = gg.BasketRanker(random_state=0).fit(pairs[:-300])
    value = model.score(pairs[-300:])
    certificate = gg.certify_ranking(model, pairs[-300:], measure="ndcg")
    assert value == pytest.approx(1 - certificate.empirical)
    assert value > 0.1
    with pytest.raises(gg.GinghamError, match="No pair has both"):
        model.score([[99999, 99999]])


def test_grid_search_can_choose(X):
    search = GridSearchCV(
        gg.BasketRanker(random_state=0, n_factors=16), {"n_boards": [1, 2]}, cv=KFold(2, shuffle=True, random_state=0)
    ).fit(np.unique(X, axis=0))
    assert search.best_params_["n_boards"] in (1, 2)
    assert search.best_score_ > 0.1
