"""Offsets in the grid: chosen on held-out rows, fitted with the board, kept by everything that uses the model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.datasets import planted_grid
from gingham.errors import GinghamError, RefusedCertificate

STARS = (1, 2, 3, 4, 5)


def rated(
    seed: int = 0, n_rows: int = 6000, board: float = 1.0
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Ratings from effects of both sides and a 2 × 2 board of tastes, rounded to stars."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, 150, n_rows), rng.integers(0, 120, n_rows)], axis=1)
    X = np.unique(X, axis=0)
    users, films = rng.normal(0, 0.6, 150), rng.normal(0, 0.6, 120)
    sides = rng.integers(0, 2, 150), rng.integers(0, 2, 120)
    taste = board * np.where(sides[0][X[:, 0]] == sides[1][X[:, 1]], 0.6, -0.6)
    y = 3 + users[X[:, 0]] + films[X[:, 1]] + taste + rng.normal(0, 0.5, len(X))
    return X, np.clip(np.round(y), 1, 5), sides


def split(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    held = np.random.default_rng(1).random(len(y)) < 0.2
    return X[~held], y[~held], X[held], y[held]


def rmse(model: object, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("loss", ["quadratic", "absolute"])
def test_effects_and_a_board_predict_better_than_either(loss):
    X, y, sides = rated()
    X, y, X_new, y_new = split(X, y)
    model = gg.CoClusteringRegressor(2, loss=loss, random_state=0).fit(X, y)
    assert model.posterior_.offsets is not None, model.selection_
    assert "with offsets" in str(model.selection_)
    assert model.n_clusters_ == (2, 2)
    plain = gg.CoClusteringRegressor(8, loss=loss, offsets=False, random_state=0).fit(X, y)
    alone = gg.CoClusteringRegressor(1, loss=loss, offsets=True, random_state=0).fit(X, y)
    assert rmse(model, X_new, y_new) < 0.98 * min(rmse(plain, X_new, y_new), rmse(alone, X_new, y_new))
    found = [adjusted_rand_score(a, b) for a, b in zip(model.labels_, sides)]
    assert min(found) > 0.7  # of the tastes, which a plain board does not show
    predictions = model.predict(X_new)
    assert predictions.min() >= 1
    assert predictions.max() <= 5


def test_a_board_that_adds_nothing_falls_to_one_cell():
    X, y, _ = rated(board=0.0, n_rows=3000)
    model = gg.CoClusteringRegressor(loss="quadratic", random_state=0).fit(X, y)
    assert model.posterior_.offsets is not None
    assert model.n_clusters_ == (1, 1)
    assert gg.CoClusteringRegressor((3, 2), loss="quadratic", random_state=0).fit(X, y).n_clusters_ == (3, 2)


@pytest.mark.parametrize("seed", [0, 5, 8, 10])
def test_tastes_beside_averages_are_found_among_few_noisy_ratings(seed):
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((150, 120)) < 0.3)
    y = 3 + 0.5 * rng.standard_normal(150)[X[:, 0]] + 0.5 * rng.standard_normal(120)[X[:, 1]]
    y += np.where(X.sum(axis=1) % 2, 0.4, -0.4) + 0.9 * rng.standard_normal(len(X))
    model = gg.CoClusteringRegressor(alphabet=STARS, random_state=0).fit(X, np.clip(np.round(y), 1, 5))
    assert model.n_clusters_ == (2, 2), model.selection_


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_clusters", [(4, 4), "auto"])
def test_planted_boards_stay_plain_and_are_found(seed, n_clusters):
    data = planted_grid((120, 90), (4, 4), 10_000, seed=(0, 1, 4)[seed])
    model = gg.CoClusteringRegressor(n_clusters, random_state=seed).fit(data.X, data.y)
    assert [adjusted_rand_score(a, b) for a, b in zip(model.labels_, data.labels)] == [1.0, 1.0]


def test_a_plain_choice_is_the_plain_model_to_the_last_bit():
    data = planted_grid((120, 90), (4, 3), 6000, seed=1)
    auto = gg.CoClusteringRegressor((4, 3), random_state=0).fit(data.X, data.y)
    plain = gg.CoClusteringRegressor((4, 3), offsets=False, random_state=0).fit(data.X, data.y)
    assert auto.posterior_.offsets is None
    assert "no offsets" in str(auto.selection_)
    for one, other in zip(auto.assign_, plain.assign_):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("loss", ["zero-one", "log"])
def test_losses_on_labels_go_without(loss):
    X, y, _ = rated(n_rows=600)
    assert gg.CoClusteringRegressor(2, loss=loss, random_state=0).fit(X, y).posterior_.offsets is None
    with pytest.raises(GinghamError, match="offsets=True adds effects of items to numbers"):
        gg.CoClusteringRegressor(2, loss=loss, offsets=True).fit(X, y)


def test_bad_settings_get_a_sentence():
    X, y, _ = rated(n_rows=600)
    with pytest.raises(GinghamError, match="offsets='yes' is unknown"):
        gg.CoClusteringRegressor(2, offsets="yes").fit(X, y)
    with pytest.raises(GinghamError, match="minimises a certificate"):
        gg.CoClusteringRegressor(2, offsets=True, objective="certificate").fit(X, y)
    certified = gg.CoClusteringRegressor(2, objective="certificate", alphabet=STARS, random_state=0).fit(X, y)
    assert certified.posterior_.offsets is None


def test_in_sample_certificates_are_refused_and_others_hold():
    X, y, _ = rated()
    X, y, X_new, y_new = split(X, y)
    model = gg.CoClusteringRegressor(2, alphabet=STARS, offsets=True, random_state=0).fit(X, y)
    for bound in ("log-wealth", "gain"):
        with pytest.raises(RefusedCertificate, match="certify_progressive"):
            gg.certify(model, X, y, bound=bound)
    with pytest.raises(RefusedCertificate, match="offsets=False"):
        gg.certify(model, X, y, bound="split", method="prior")
    for predictor in ("gibbs", "mean", "median"):
        certificate = gg.certify(model, X_new, y_new, bound="holdout", predictor=predictor)
        assert certificate.empirical < certificate.value < 1.2
    median = gg.certify(model, X_new, y_new, bound="holdout", predictor="median").empirical
    assert median == pytest.approx(np.mean(np.abs(model.predict(X_new, rule="median") - y_new)))
    gibbs = gg.certify(model, X_new, y_new, bound="holdout").empirical
    posterior = model.posterior_
    codes = [mode.encode(column) for mode, column in zip(model._item_modes(), X_new.T)]
    values = posterior.cells[0].values(posterior.answers[0]).ravel()
    drawn = np.clip(posterior.offsets.at(codes)[:, None] + values, 1, 5)
    expected = (posterior.cell_distributions(codes) * np.abs(drawn - y_new[:, None])).sum(axis=1).mean()
    assert gibbs == pytest.approx(expected)


def test_progressive_tests_cover_models_with_offsets():
    X, y, _ = rated(n_rows=2500)
    model = gg.CoClusteringRegressor(2, loss="quadratic", bounds=(1, 5), offsets=True, random_state=0)
    certificate = gg.certify_progressive(model, X, y, random_state=0)
    assert certificate.empirical < certificate.value < 4


def test_a_file_a_clone_and_a_coarser_model_keep_the_offsets(tmp_path):
    X, y, _ = rated()
    model = gg.CoClusteringRegressor(4, offsets=True, random_state=0).fit(X, y)
    model.save(tmp_path / "m.gingham")
    again = gg.load(tmp_path / "m.gingham")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_distribution(X), model.predict_distribution(X))
    np.testing.assert_array_equal(again.alphabet_, STARS)
    assert clone(model).offsets is True
    small = gg.simplify(model, X, y, max_clusters=2)
    assert small.n_clusters_ == (2, 2)
    assert small.posterior_.offsets is model.posterior_.offsets
    assert np.abs(small.predict(X) - y).mean() < 1.2 * np.abs(model.predict(X) - y).mean()
    np.testing.assert_allclose(model.predict_distribution(X).sum(axis=1), 1.0)
    assert model.transform(X).shape == (len(X), 8)


def test_new_items_have_shrunken_effects_and_a_cluster():
    X, y, _ = rated()
    old = X[:, 0] < 140
    model = gg.CoClusteringRegressor(2, loss="quadratic", offsets=True, random_state=0).fit(X[old], y[old])
    with pytest.warns(gg.UnseenItemsWarning):
        before = model.predict(X[~old])
    known = model.predict(X[old])
    model.fold_in(X[~old], y[~old])
    np.testing.assert_allclose(model.predict(X[old]), known)
    after = model.predict(X[~old])
    assert np.mean((after - y[~old]) ** 2) < 0.8 * np.mean((before - y[~old]) ** 2)
    offsets, codes = model.posterior_.offsets, model.posterior_.structure.modes[0].encode(np.arange(140, 150))
    assert np.abs(offsets.effects[0][codes]).max() > 0.1


def test_a_growing_table_refits_the_offsets():
    X, y, _ = rated()
    model = gg.CoClusteringRegressor(2, loss="quadratic", offsets=True, random_state=0)
    half = len(X) // 2
    model.partial_fit(X[:half], y[:half])
    first = model.posterior_.offsets
    model.partial_fit(X[half:], y[half:])
    whole = gg.CoClusteringRegressor(2, loss="quadratic", offsets=True, random_state=0).fit(X, y)
    assert model.posterior_.offsets is not first
    assert rmse(model, X, y) < 1.05 * rmse(whole, X, y)


def test_committees_of_grids_with_offsets():
    X, y, _ = rated(n_rows=2500)
    member = gg.CoClusteringRegressor(2, alphabet=STARS, offsets=True, random_state=0)
    committee = gg.Committee(member, n_members=3, random_state=0).fit(X, y)
    assert all(one.posterior_.offsets is not None for one in committee.members_)
    np.testing.assert_allclose(committee.predict(X), np.mean([one.predict(X) for one in committee.members_], axis=0))
    np.testing.assert_allclose(committee.predict_distribution(X).sum(axis=1), 1.0)
    with pytest.raises(RefusedCertificate, match="offsets=False"):
        gg.certify(committee, X, y)


def test_weights_are_repetitions():
    X, y, _ = rated(n_rows=1500)
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    model = gg.CoClusteringRegressor(2, loss="quadratic", offsets=True, beta=0.5, random_state=0)
    weighted = clone(model).fit(X, y, weights).posterior_
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).posterior_
    for one, other in zip(weighted.offsets.effects, repeated.offsets.effects):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_three_sides():
    rng = np.random.default_rng(0)
    X = rng.integers(0, (40, 30, 20), (4000, 3))
    effects = [rng.normal(0, 1, n) for n in (40, 30, 20)]
    y = sum(effect[X[:, at]] for at, effect in enumerate(effects)) + rng.normal(0, 0.3, len(X))
    model = gg.CoClusteringRegressor(2, random_state=0).fit(X, y)
    assert model.posterior_.offsets is not None
    assert rmse(model, X, y) < 0.35
