"""InformationClustering: P4's observed and unobserved information."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, mutual_info_score

import gingham as gg

T = np.repeat([0, 1, 2], 30)


def planted(n_features: int = 40, missing: float = 0.5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    likely = rng.integers(0, 4, (3, n_features))
    noise = rng.integers(0, 4, (90, n_features))
    table = np.where(rng.random((90, n_features)) < 0.6, likely[T], noise).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return table


def test_planted_clusters_are_found_and_generalise() -> None:
    table = planted(80)
    model = gg.InformationClustering(3, random_state=0).fit(table[:, :40])
    assert adjusted_rand_score(T, model.labels_) > 0.9
    unobserved = model.unobserved_information(table[:, 40:])
    assert model.observed_information_ > model.chance_information_
    assert unobserved > 2 * model.chance_of(table[:, 40:])
    assert unobserved < model.observed_information_ + 0.05


def test_information_is_that_of_scikit_learn() -> None:
    table = planted(6)
    model = gg.InformationClustering(3, random_state=0).fit(table)
    expected = []
    for column in table.T:
        seen = ~np.isnan(column)
        expected.append(seen.mean() * mutual_info_score(model.labels_[seen], column[seen]))
    assert np.allclose(model.feature_information_, expected)
    assert np.isclose(model.observed_information_, np.mean(expected))


def test_small_optimum_is_reached_by_enumeration() -> None:
    rng = np.random.default_rng(2)
    table = rng.integers(0, 3, (7, 4))
    model = gg.InformationClustering(2, n_init=20, tol=0.0, random_state=0).fit(table)
    best = max(
        np.mean([mutual_info_score(labels, column) for column in table.T]) for labels in product((0, 1), repeat=7)
    )
    assert np.isclose(model.observed_information_, best)


def test_certificate_holds_and_references_are_vacuous() -> None:
    table = planted(400, missing=0.0)
    model = gg.InformationClustering(3, random_state=0).fit(table[:, :40])
    certificate = model.certify(table[:, 40:])
    assert 0 < certificate.value < certificate.empirical
    assert "confidence 95 %" in certificate.explain()
    assert model.references()["lemma 1"].value > np.log(3)
    assert set(model.references()) == {"lemma 1", "theorem 1", "theorem 2"}


def test_certificate_covers_in_simulation() -> None:
    """Features are drawn from a population with a known mean information."""
    rng = np.random.default_rng(0)
    population = planted(2000, missing=0.0, seed=7)
    model = gg.InformationClustering(3, random_state=0).fit(planted(30, seed=7))
    truth = model.unobserved_information(population)
    failures = 0
    for _ in range(200):
        drawn = population[:, rng.integers(0, 2000, 60)]
        failures += model.certify(drawn, delta=0.1).value > truth
    assert failures <= 0.1 * 200


def test_mixed_tables_and_bad_input() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", None, "y", "y"], "b": [1.0, 2.0, np.nan, 2.0]})
    model = gg.InformationClustering(2, random_state=0).fit(frame)
    assert model.labels_.shape == (4,)
    with pytest.raises(gg.GinghamError, match="missing"):
        gg.InformationClustering(2).fit(np.full((3, 2), np.nan))
    with pytest.raises(gg.GinghamError, match="same ones"):
        model.unobserved_information(np.zeros((3, 2)))
    with pytest.raises(gg.GinghamError, match="n_clusters"):
        gg.InformationClustering(0).fit(np.zeros((3, 2)))


def test_features_that_formed_the_clusters_prove_nothing(tmp_path) -> None:
    """Noise: on the features of the fit the clusters seem to tell much, and a lower bound on that would be false."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (20, 60)).astype(float)
    model = gg.InformationClustering(4, random_state=0).fit(table)
    model.save(tmp_path / "m.gingham")
    loaded = gg.load(tmp_path / "m.gingham")
    new = rng.integers(0, 2, (20, 30)).astype(float)
    for one in (model, loaded):
        for mixed in (table, table[:, ::-1], table[:, 7:9], np.hstack([new, table[:, :1]]), 1.0 + table):
            with pytest.raises(gg.RefusedCertificate, match="were used to form the clusters"):
                one.certify(mixed)
        assert one.certify(new).n_features == 30
    constant = np.hstack([new, np.zeros((20, 1))])
    assert model.certify(constant).n_features == 31  # tells nothing, whether it took part or not


def test_named_features_are_known_by_name() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (6, 20))).add_prefix("f")
    model = gg.InformationClustering(2, random_state=0).fit(table)
    with pytest.raises(gg.RefusedCertificate, match="1 of 2 features"):
        model.certify(table[["f3"]].assign(other=[0, 1, 0, 1, 0, 1]))
    assert model.certify(table.add_prefix("new ")).n_features == 20  # six coins often fall alike
