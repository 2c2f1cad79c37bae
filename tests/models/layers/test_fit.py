"""LayeredCoClusteringRegressor: predictions, side information, time, new items, files, interruptions."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gingham as gg
from ctrl_c import press_ctrl_c
from gingham.data import Sample
from gingham.errors import InterruptedWarning
from gingham.models.layers import Sampler, design
from gingham.models.layers.design import window_widths
from gingham.models.layers.draws import LEVELS, Intervals, shortest
from gingham.models.layers.problem import BASKET
from gingham.models.layers.side import SideCode, SideColumn

STARS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
ONE, TWO = Sampler(1, 30, 10), Sampler(2, 30, 10)
SMALL = {"n_layers": 2, "sampler": TWO, "baskets": 2, "random_state": 0}


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


def stars_of(users, films, rng, noise=0.6):
    """Stars of a 3 × 3 taste."""
    table = np.array([[5, 3, 1], [1, 5, 3], [3, 1, 5]])
    return np.clip(np.rint(table[users % 3, films % 3] + rng.normal(0, noise, len(users))), 1, 5)


def ratings(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    users, films = rng.integers(50, size=n), rng.integers(45, size=n)
    return pd.DataFrame({"user": users, "film": films}), stars_of(users, films, rng)


@pytest.fixture(scope="module")
def fitted():
    X, y = ratings()
    return gg.LayeredCoClusteringRegressor(**SMALL).fit(X[:1600], y[:1600]), X[1600:], y[1600:]


def error(model, X, y, **more):
    return float(np.sqrt(np.mean((model.predict(X, **more) - y) ** 2)))


def test_mean_label_quantiles_and_intervals_belong_to_one_distribution(fitted):
    model, X, y = fitted
    probabilities = model.predict_distribution(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert probabilities.min() >= 0
    np.testing.assert_allclose(model.predict(X), probabilities @ STARS, atol=1e-9)
    label = model.predict(X, rule="label")
    np.testing.assert_array_equal(label, STARS[(np.cumsum(probabilities, axis=1) < 0.5).sum(axis=1)])
    low, high = model.predict_interval(X, 0.9).T
    assert 0.85 < np.mean((low <= y) & (y <= high)) < 0.98  # whole stars: six seeds cover .915 to .97
    assert error(model, X, y) < 0.8
    assert np.mean(np.abs(label - y)) < np.mean(np.abs(model.predict(X) - y))


def test_intervals_of_cold_start_users_hold_the_share_that_is_asked(fitted):
    """Rows held out told how much is enough for items with labels, and nothing of others."""
    model, X, _ = fitted
    assert model._fits[0].intervals.share(0.9) < 0.9  # whole stars hold more than is asked
    model = copy.deepcopy(model).fold_in(pd.DataFrame({"user": ["by basket"] * 5, "film": range(5)}))
    people = ["nobody", "by basket", X["user"].iloc[0]]
    asked = pd.DataFrame({"user": [one for one in people for _ in range(40)], "film": np.tile(np.arange(40), 3)})
    probabilities = np.cumsum(np.column_stack([np.zeros(len(asked)), model.predict_distribution(asked)]), axis=1)
    first, last = np.searchsorted(STARS, model.predict_interval(asked, 0.9).T)
    rows = np.arange(len(asked))
    held = probabilities[rows, last + 1] - probabilities[rows, first]
    cold = asked["user"].isin(people[:2]).to_numpy()
    np.testing.assert_array_equal(model.draws_.without_labels(model._codes(asked)), cold)
    assert (held[cold] >= 0.9).all()
    assert (held[~cold] >= model._fits[0].intervals.share(0.9)).all()
    assert (held[~cold] < 0.9).any()


def test_labels_may_follow_a_basket(fitted):
    """Somebody has a basket first and rates later: the ratings were passed over."""
    films = np.arange(30)
    met, liked = pd.DataFrame({"user": 100, "film": films}), np.array([1.0, 5.0, 3.0])[films % 3]
    at_once, later = copy.deepcopy(fitted[0]), copy.deepcopy(fitted[0])
    at_once.fold_in(met, liked)
    later.fold_in(met[:5])
    assert later.draws_.without_labels(later._codes(met)).all()
    later.fold_in(met, liked)
    assert not later.draws_.without_labels(later._codes(met)).any()
    np.testing.assert_array_equal(later.predict(met), at_once.predict(met))
    assert error(later, met, liked) < 0.5


def test_labels_may_follow_a_table():
    X, y = ratings()
    people = pd.DataFrame({"user": [*range(50), 200], "kind": [f"k{user % 3}" for user in [*range(50), 200]]})
    model = gg.LayeredCoClusteringRegressor(**SMALL, side={"user": people}).fit(X, y)
    met = pd.DataFrame({"user": 200, "film": np.arange(30)})
    before = model.predict(met)
    model.fold_in(met, np.full(30, 5.0))
    assert not model.draws_.without_labels(model._codes(met)).any()
    assert model.predict(met).mean() > before.mean() + 0.5
    layer = next(layer for layer in model.draws_.layers if layer.kind == BASKET and layer.source == 0)
    at = int(model.modes_[0].encode([200])[0])
    assert np.diff(model.draws_.baskets[layer.basket].indptr)[at] == 30


def test_items_of_a_table_alone_have_no_offset_and_the_spread_of_all():
    """Nothing is known of a film's offset but what the offsets of all films tell: no draw takes a guess for it."""
    X, y = ratings(600)
    films = pd.DataFrame({"film": [*range(45), 99], "kind": [film % 3 for film in [*range(45), 99]]})
    model = gg.LayeredCoClusteringRegressor(**SMALL, side={"film": films}).fit(X, y)
    draws, at = model.draws_, int(model.modes_[1].encode([99])[0])
    offsets = np.array([draws.offsets_of(s, 1) for s in range(draws.n_draws)])
    assert (offsets[:, at] == 0).all()
    assert (np.delete(offsets, at, axis=1) != 0).all()
    asked = pd.DataFrame({"user": [0, 0], "film": [99, 0]})
    assert draws.without_labels(model._codes(asked)).tolist() == [True, False]
    probabilities = model.predict_distribution(asked)
    spread = probabilities @ STARS**2 - (probabilities @ STARS) ** 2
    assert spread[0] > spread[1]


def test_real_labels_of_cold_start_users_have_uncalibrated_intervals():
    X, y = ratings()
    y = y + np.random.default_rng(1).normal(0, 0.3, len(y))
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "sampler": ONE}).fit(X, y)
    model._fits = (replace(model._fits[0], intervals=Intervals(LEVELS, LEVELS / 2)),)
    asked = pd.DataFrame({"user": [0, -7, 0], "film": [3, 3, -7]})
    got = model.predict_interval(asked, 0.8)
    wide, narrow = (
        model.draws_.quantiles(*model._rows(asked, None), np.array(ends)) for ends in ([0.1, 0.9], [0.3, 0.7])
    )
    np.testing.assert_allclose(got, [narrow[0], *wide[1:]])


def test_real_labels_have_intervals_that_cover():
    X, y = ratings()
    y = y + np.random.default_rng(1).normal(0, 0.3, len(y))
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "sampler": ONE}).fit(X[:1600], y[:1600])
    assert model.alphabet_ is None
    for level in (0.5, 0.9):
        low, high = model.predict_interval(X[1600:], level).T
        assert np.mean((low <= y[1600:]) & (y[1600:] <= high)) == pytest.approx(level, abs=0.12)
    middle = model.draws_.quantiles(*model._rows(X[1600:], None), np.array([0.1, 0.5, 0.9]))
    assert (np.diff(middle, axis=1) > 0).all()
    assert error(model, X[1600:], y[1600:]) < 0.9
    with pytest.raises(gg.GinghamError, match="ordinal"):
        gg.LayeredCoClusteringRegressor(likelihood="ordinal").fit(X, y)
    with pytest.raises(gg.GinghamError, match="alphabet"):
        model.predict_distribution(X)


@pytest.mark.parametrize("label_values", [(0, 1), (1, 2, 4), tuple(range(11))], ids=str)
def test_any_alphabet_outer_cuts_fixed(label_values):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(30, size=900), rng.integers(25, size=900)])
    y = np.array(label_values)[np.clip((X[:, 0] % 2 == X[:, 1] % 2) * (len(label_values) - 1), 0, None)]
    y = np.where(rng.random(900) < 0.3, rng.choice(label_values, 900), y)
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "sampler": ONE, "alphabet": label_values}).fit(X, y)
    assert model.cuts_[0] == pytest.approx((label_values[0] + label_values[1]) / 2)
    assert model.cuts_[-1] == pytest.approx((label_values[-1] + label_values[-2]) / 2)
    assert (np.diff(model.cuts_) > 0).all()
    assert set(model.predict(X, rule="label")) <= set(label_values)
    assert error(model, X, y) < np.std(y)


def test_gaussian_likelihood_of_stars_has_labels_too(fitted):
    _, X, y = fitted
    train, labels = ratings()
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "likelihood": "gaussian"}).fit(train[:1600], labels[:1600])
    assert set(model.predict(X, rule="label")) <= set(STARS)
    assert error(model, X, y) < 0.85


def test_short_chains_keep_the_share_of_draws_that_long_ones_keep():
    X, y = ratings(300)
    model = gg.LayeredCoClusteringRegressor(
        1, 2, baskets=1, sampler=Sampler(n_chains=1, n_sweeps=10), random_state=0
    ).fit(X, y)
    assert model.draws_.n_draws == 7


def test_few_rows_have_few_basket_layers_and_few_chains_by_default():
    X, y = ratings(300)
    short = {"n_layers": 1, "n_clusters": 2, "random_state": 0}
    few = gg.LayeredCoClusteringRegressor(**short, sampler=Sampler(n_sweeps=4)).fit(X, y)
    assert str(few.selection_).startswith("1 item layers, 4 basket layers, 3 chains of 4 sweeps")
    asked = gg.LayeredCoClusteringRegressor(sampler=Sampler(4, 4), **short, baskets=5).fit(X, y)
    assert str(asked.selection_).startswith("1 item layers, 10 basket layers, 4 chains of 4 sweeps")
    many = design.for_rows(design.EFFORTS["default"], 50_000)
    assert many == design.EFFORTS["default"]
    assert design.for_rows(design.EFFORTS["fast"], 10).n_chains == 2


# summary


@pytest.mark.parametrize("told", [True, False])
def test_basket_layers_that_do_not_help_are_left_out_of_large_data(told, monkeypatch):
    """Users who met films of one kind like that kind; or everybody met what chance brought along."""
    monkeypatch.setattr(design, "MANY", 1000)
    monkeypatch.setattr(design, "ALL_BASKETS", 1000)
    rng = np.random.default_rng(2)
    if told:
        users = np.repeat(np.arange(600), 5)
        liked = rng.integers(2, size=600)[users]
        films = 2 * rng.integers(60, size=3000) + np.where(rng.random(3000) < 0.8, liked, 1 - liked)
        stars = np.where(films % 2 != liked, 2, 4) + rng.integers(-1, 2, 3000)
    else:
        users, films = rng.integers(50, size=3000), rng.integers(120, size=3000)
        stars = stars_of(users, films, rng)
    X = pd.DataFrame({"user": users, "film": films})
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "baskets": "auto", "effort": "fast"}).fit(X, stars)
    assert ("basket layers did not help" in str(model.selection_)) is not told
    assert any(layer.kind == BASKET for layer in model.layers_) is told


def test_parts_and_accounts_add_up_to_the_latent_answer():
    X, y = ratings(800)
    films = pd.DataFrame({"film": range(45), "genre": [f"g{k % 3}" for k in range(45)]})
    times = np.random.default_rng(1).uniform(0, 1e6, len(y))
    model = gg.LayeredCoClusteringRegressor(**SMALL, side={"film": films}).fit(X, y, time=times)
    asked = pd.DataFrame({"user": [3, 5, 999], "film": [7, 8, 7]})
    parts = model.contributions(asked, time=[5e5, np.nan, 1.0])
    codes = [mode.encode(asked[mode.name].to_numpy()) for mode in model.modes_]
    effects, _ = model.draws_.effects(codes, np.array([5e5, np.nan, 1.0]))
    np.testing.assert_allclose(sum(parts.values()), effects.mean(axis=0), atol=1e-5)
    assert {"average", "offset, user", "time", "basket, user to film", "side information, film to user"} <= set(parts)
    assert parts["offset, user"][2] == 0.0

    why = model.explain((3, 7))
    *latent, (_, scaled) = why.account
    np.testing.assert_allclose(
        sum(amount for _, amount in latent), sum(p[0] for p in model.contributions(asked).values()), atol=1e-5
    )
    assert sum(amount for _, amount in latent) + scaled == pytest.approx(model.predict(asked[:1])[0])
    assert any("because user 3 met" in reason for reason, _ in why.account)
    assert any(f"film 7: genre: g{7 % 3}" in reason for reason, _ in why.account)
    assert "because user 3 met" in str(why)
    (own, offset), *moved = model.explain(3).account
    assert own == "offset, user"
    assert offset == pytest.approx(parts["offset, user"][0])
    assert all(amount >= 0 and "it met" in reason for reason, amount in moved)


# side information


def test_columns_become_tokens():
    frame = {
        "kind": ["a", "b", "a", None],
        "genres": ["Drama|War", "War", "Drama", "Only here"],
        "grown up": [True, False, None, True],
        "flag": [0, 1, 1, 0],
        "size": [1, 2, 2, 1],
    }
    code = SideCode.of("film", frame)
    assert code.tokens == tuple(
        sorted(["kind: a", "genres: Drama", "genres: War", "grown up", "flag", "size: 1", "size: 2"])
    )  # what only one item has says nothing of others
    held = code.read(frame)
    words = {(int(i), code.tokens[t]) for i, t in zip(held.items, held.tokens)}
    assert (0, "genres: War") in words
    assert (1, "genres: War") in words
    assert (3, "flag") not in words
    numbers = SideColumn.of("age", list(range(100)))
    assert len({word for age in range(100) for word in numbers.words(age)}) == 10
    assert list(numbers.words(-5)) == list(numbers.words(0))
    assert list(numbers.words(None)) == []
    with pytest.raises(gg.GinghamError, match="age"):
        numbers.words("old")


def test_side_information_is_divided_at_commas_and_semicolons():
    listed = ["Drama{0}War", "War", "Drama", "Comedy{0}Drama", "Comedy"]
    for separator in ("|", ", ", ";"):
        values = [text.format(separator) for text in listed]
        column = SideColumn.of("genres", [*values, None])
        assert [column.words(value) for value in values] == [
            [f"genres: {part}" for part in text.format(",").split(",")] for text in listed
        ]
    town = SideColumn.of("town", ["Bonn, DE", "Lyon, FR", "Nice, FR", "Paris, FR"])
    assert list(town.words("Lyon, FR")) == ["town: Lyon, FR"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, dict])
def test_films_known_by_their_genres_alone(kind):
    rng = np.random.default_rng(0)
    users, films = rng.integers(60, size=2500), rng.integers(60, size=2500)
    X, y = pd.DataFrame({"user": users, "film": films}), stars_of(users, films, rng)
    old = films < 50
    genres = {"film": np.arange(60), "genre": [f"g{i % 3}" for i in range(60)], "year": rng.integers(1950, 2000, 60)}
    side = {1: (np.arange(60), np.eye(3)[np.arange(60) % 3])} if kind is dict else {"film": kind(genres)}
    plain = gg.LayeredCoClusteringRegressor(**SMALL).fit(X[old], y[old])
    informed = gg.LayeredCoClusteringRegressor(**SMALL, side=side).fit(X[old], y[old])
    assert error(informed, X[~old], y[~old]) < 0.85 * error(plain, X[~old], y[~old])


def test_side_information_that_cannot_be_read_is_refused():
    X, y = ratings(300)
    for side, words in (
        ({"movie": pd.DataFrame({"film": [1], "a": [1]})}, "the modes are"),
        ({"film": pd.DataFrame({"film": [1, 1], "a": ["x", "y"]})}, "distinct"),
        ({"film": pd.DataFrame({"film": ["x", "y"], "a": ["x", "y"]})}, "another type"),
        ({"film": pd.DataFrame({"film": [1, 2]})}, "column of ids"),
        ({"film": 3}, "data frame"),
    ):
        with pytest.raises(gg.GinghamError, match=words):
            gg.LayeredCoClusteringRegressor(**SMALL, side=side).fit(X, y)


# time


def dated(n=2400, seed=0):
    """Users whose mood changes every hundred seconds."""
    rng = np.random.default_rng(seed)
    users, films, times = rng.integers(8, size=n), rng.integers(40, size=n), rng.uniform(0, 3000, n)
    mood = rng.normal(0, 1.0, (8, 30))
    return pd.DataFrame({"user": users, "film": films, "when": times}), 3 + mood[users, (times // 100).astype(int)] + (
        rng.normal(0, 0.5, n)
    )


def test_windows_of_time_are_learned_and_average_out_without_a_time():
    X, y = dated()
    settings = {**SMALL, "sampler": Sampler(2, 20, 10)}
    model = gg.LayeredCoClusteringRegressor(**settings, time="when").fit(X[:2000], y[:2000])
    without = gg.LayeredCoClusteringRegressor(**settings).fit(X[["user", "film"]][:2000], y[:2000])
    test = X[2000:]
    assert error(model, test, y[2000:]) < 0.8 * error(without, test[["user", "film"]], y[2000:])
    # Without its time a row has the average over its user's windows: as good as a model without time.
    assert error(model, test[["user", "film"]], y[2000:]) < 1.1 * error(without, test[["user", "film"]], y[2000:])
    nothing = test.assign(when=np.nan)
    np.testing.assert_allclose(model.predict(nothing), model.predict(test[["user", "film"]]))
    # As an array, and as dates.
    again = gg.LayeredCoClusteringRegressor(**settings)
    dates = (X["when"].to_numpy() * 1e6).astype("datetime64[us]")
    again.fit(X[["user", "film"]][:2000], y[:2000], time=dates[:2000])
    np.testing.assert_allclose(again.predict(test[["user", "film"]], time=dates[2000:]), model.predict(test), atol=0.05)
    with pytest.raises(gg.GinghamError, match="points for"):
        model.predict(test[["user", "film"]], time=[1.0])
    with pytest.raises(gg.GinghamError, match="no point in time"):
        gg.LayeredCoClusteringRegressor(**settings, time="when").fit(nothing, y[2000:])


def test_widths_go_from_the_whole_time_down_to_single_rows():
    users, times = np.array([0, 0, 0, 1, 1]), np.array([0.0, 1.0, 512.0, 5.0, 9.0])
    np.testing.assert_allclose(window_widths(users, times), [1.0, 8.0, 64.0])
    assert window_widths(users, np.zeros(5)) == ()


def factors(n=16_000, seed=0):
    """Many people answer some of a dozen questions, on a continuum, by three traits."""
    rng = np.random.default_rng(seed)
    people, questions = rng.integers(1500, size=n), rng.integers(12, size=n)
    traits, weights = rng.normal(size=(1500, 3)), rng.normal(size=(12, 3))
    y = np.einsum("nk,nk->n", traits[people], weights[questions]) + rng.normal(0, 1.0, n)
    return pd.DataFrame({"person": people, "query": questions}), y


def test_few_items_that_are_met_often_have_clusters_of_their_own():
    X, y = factors()
    first, rest = slice(0, 12_000), slice(12_000, None)
    model = gg.LayeredCoClusteringRegressor(sampler=Sampler(n_chains=1), random_state=0).fit(X[first], y[first])
    assert "one cluster per item of 'query'" in str(model.selection_)
    assert all(layer.n_token_clusters == 12 and layer.n_target_clusters == 2 for layer in model.draws_.layers)
    # What is not known of a person is no noise: the noise is nearer to the true 1 than the error is.
    assert abs(model.noise_ - 1.0) < 0.5 * abs(model._fits[0].error - 1.0)
    usual = gg.LayeredCoClusteringRegressor(n_clusters=4, sampler=Sampler(n_chains=1), random_state=0).fit(
        X[first], y[first]
    )
    assert error(model, X[rest], y[rest]) < error(usual, X[rest], y[rest])
    low, high = model.predict_interval(X[rest], 0.9).T
    assert 0.87 < np.mean((low <= y[rest]) & (y[rest] <= high)) < 0.93
    # The same where the few items are the first mode.
    turned = design.designs_for(
        Sample.of([X["query"].to_numpy(), X["person"].to_numpy()], y),
        design.Design(design.EFFORTS["default"], (4, 4)),
        sizes_are_open=True,
    )
    assert [design.item_clusters for design in turned] == [(4, 4), (12, 2)]


# new items


def test_new_users_from_ratings_from_a_basket_and_from_what_is_known():
    X, y = ratings()
    people = pd.DataFrame({"user": np.arange(50), "kind": [f"k{u % 3}" for u in range(50)]})
    plain = gg.LayeredCoClusteringRegressor(**SMALL).fit(X, y)
    informed = gg.LayeredCoClusteringRegressor(**SMALL, side={"user": people}).fit(X, y)
    known = plain.predict(X), informed.predict(X)
    films, rng = np.arange(45), np.random.default_rng(5)
    plain.fold_in(pd.DataFrame({"user": 100, "film": films[:30]}), stars_of(np.full(30, 0), films[:30], rng))
    plain.fold_in(pd.DataFrame({"user": 101, "film": films[:30]}))
    informed.fold_in(side={"user": pd.DataFrame({"user": [102], "kind": ["k0"]})})
    truth = np.array([5, 3, 1])[films[30:] % 3]
    for model, user in ((plain, 100), (informed, 102)):
        found = model.predict(pd.DataFrame({"user": user, "film": films[30:]}))
        assert np.corrcoef(found, truth)[0, 1] > 0.8, user
    met = plain.predict(pd.DataFrame({"user": 101, "film": films[30:]}))  # who met what at random says nothing here
    assert np.isfinite(met).all()
    for model, before in zip((plain, informed), known):
        np.testing.assert_allclose(model.predict(X), before, atol=1e-6)  # what was learned stays
    with pytest.raises(gg.GinghamError, match="fit it with side="):
        plain.fold_in(side={"user": people})
    with pytest.raises(gg.GinghamError, match="observations"):
        plain.fold_in()


def test_a_basket_alone_tells_a_new_users_taste():
    """Users meet mostly what they like: what a new one has met says what it will like."""
    rng = np.random.default_rng(0)
    users, films = rng.integers(120, size=12000), rng.integers(60, size=12000)
    met = rng.random(12000) < np.where(users % 2 == films % 2, 0.8, 0.05)
    X = pd.DataFrame({"user": users, "film": films})[met].drop_duplicates()
    y = np.clip(np.rint(np.where(X["user"] % 2 == X["film"] % 2, 4, 2) + rng.normal(0, 0.7, len(X))), 1, 5)
    old = (X["user"] < 100).to_numpy()
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "n_layers": 0, "baskets": 6}).fit(X[old], y[old])
    before = error(model, X[~old], y[~old])
    assert error(model.fold_in(X[~old]), X[~old], y[~old]) < 0.9 * before


def test_unknown_users_have_a_wider_distribution(fitted):
    model, X, _ = fitted
    known = model.predict_distribution(X[:50])
    cold_start = model.predict_distribution(X[:50].assign(user=999))
    entropy = lambda probabilities: -np.sum(probabilities * np.log(probabilities + 1e-12), axis=1).mean()  # noqa: E731
    assert entropy(cold_start) > entropy(known)


def test_a_basket_without_labels_leaves_the_offset_unknown():
    """The offset of such a user is taken for 0, but nobody knows it."""
    X, y = ratings()
    model = gg.LayeredCoClusteringRegressor(**SMALL).fit(X, y)
    films = np.arange(30)
    model.fold_in(pd.DataFrame({"user": 100, "film": films}))
    model.fold_in(
        pd.DataFrame({"user": 101, "film": films}), stars_of(np.zeros(30, dtype=int), films, np.random.default_rng(5))
    )
    codes = [
        mode.encode(ids) for mode, ids in zip(model.modes_, (np.array([0, 100, 101, 999]), np.zeros(4, dtype=int)))
    ]
    known, basket, rated, cold_start = model.draws_.effects(codes)[1].mean(axis=0)
    assert known == rated == 0
    assert basket == cold_start > 0


# files, threads, interruptions


def test_a_file_keeps_every_answer(fitted, tmp_path):
    X, y = dated(800)
    people = pd.DataFrame({"user": np.arange(8), "kind": [f"k{u % 2}" for u in range(8)]})
    model = gg.LayeredCoClusteringRegressor(**SMALL, time="when", side={"user": people}).fit(X, y)
    model.save(tmp_path / "m.gingham")
    back = gg.load(tmp_path / "m.gingham")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_array_equal(back.predict_interval(X), model.predict_interval(X))
    new = {"user": pd.DataFrame({"user": [77], "kind": ["k1"]})}
    asked = pd.DataFrame({"user": [77], "film": [3]})
    np.testing.assert_array_equal(back.fold_in(side=new).predict(asked), model.fold_in(side=new).predict(asked))


def test_ctrl_c_keeps_the_chains_done():
    X, y = ratings(600)
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "sampler": Sampler(3, 30, 10), "n_jobs": 1})
    told = []

    def press(progress):
        told.append((progress.restart, progress.iteration, progress.n_restarts, progress.max_iter))
        if progress.restart == 1 and progress.iteration == 4:
            press_ctrl_c()

    with pytest.warns(InterruptedWarning, match="1 of 3 chains"):
        model.fit(X, y, callback=press)
    assert model.interrupted_
    assert told[0] == (0, 0, 3, 30)
    alone = gg.LayeredCoClusteringRegressor(**{**SMALL, "sampler": ONE}).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))  # the first chain, as it would have been
    assert not model.fit(X, y).interrupted_


def test_three_modes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(30, size=2000), rng.integers(25, size=2000), rng.integers(4, size=2000)])
    y = np.clip(
        np.rint(3 + 1.5 * ((X[:, 0] % 2 == X[:, 1] % 2) - 0.5) + (X[:, 2] % 2) + rng.normal(0, 0.5, 2000)), 1, 5
    )
    model = gg.LayeredCoClusteringRegressor(**{**SMALL, "sampler": ONE}).fit(X[:1600], y[:1600])
    assert error(model, X[1600:], y[1600:]) < 0.75
    pairs = {(layer.source, layer.target) for layer in model.draws_.layers if layer.kind == BASKET}
    assert pairs == {(0, 1), (1, 0)}  # everybody has met every third one: who met it says nothing


# intervals


def test_shortest_runs_of_labels():
    below = np.array([[0.1, 0.2, 0.7, 0.95], [0.5, 0.6, 0.7, 0.8]])
    first, last = shortest(below, 0.7)
    assert (first[0], last[0]) == (2, 3)
    assert (first[1], last[1]) == (0, 2)
    first, last = shortest(below, 0.999)
    assert (last - first == 4).all()
    assert Intervals(np.array([0.5]), np.array([0.7])).share(0.25) == pytest.approx(0.35)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"likelihood": "poisson"}, "likelihood"),
        ({"effort": "huge"}, "effort"),
        ({"baskets": "many"}, "baskets"),
        ({"sampler": Sampler(n_sweeps=5, burn_in=5)}, "burn_in"),
        ({"sampler": Sampler(n_chains=0)}, "n_chains"),
        ({"sampler": Sampler(noise=-1.0)}, "noise"),
        ({"n_layers": -1}, "n_layers"),
        ({"n_layers": "many"}, "n_layers"),
        ({"n_clusters": "many"}, "n_clusters"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(settings, words):
    X, y = ratings(200)
    with pytest.raises(gg.GinghamError, match=words):
        gg.LayeredCoClusteringRegressor(**{**SMALL, **settings}).fit(X, y)
    assert replace(Intervals(np.ones(1), np.ones(1)), shares=np.zeros(1)).share(1.0) == 1.0
