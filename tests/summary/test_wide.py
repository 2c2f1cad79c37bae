"""Tables that bring their names: wide frames, AnnData, matrices with names beside them; cards of certificates."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import gingham as gg

RNG = np.random.default_rng(0)
VALUES = np.where(np.arange(30)[:, None] % 2 == np.arange(20) % 2, 5.0, 1.0)
VALUES[RNG.random(VALUES.shape) < 0.4] = np.nan
FILMS = [f"film {j}" for j in range(20)]
PEOPLE = [f"person {i}" for i in range(30)]
WIDE = {
    "pandas": pd.DataFrame(VALUES, index=pd.Index(PEOPLE, name="person"), columns=pd.Index(FILMS, name="film")),
    "polars": pl.DataFrame({"person": PEOPLE, **dict(zip(FILMS, VALUES.T))}),
}
ANNOTATED = SimpleNamespace(X=VALUES, obs_names=PEOPLE, var_names=FILMS, shape=VALUES.shape, layers={})


@pytest.mark.parametrize("kind", WIDE)
def test_from_matrix_keeps_the_names_of_a_frame(kind):
    X, y = gg.from_matrix(WIDE[kind], missing="nan")
    assert next(iter(X.columns)) == "person"
    assert len(y) == np.isfinite(VALUES).sum()
    first = next(iter(X.itertuples(index=False))) if kind == "pandas" else X.row(0)
    assert VALUES[PEOPLE.index(first[0]), FILMS.index(first[1])] == y[0]


def test_names_beside_a_sparse_matrix():
    names = {"user": ["a", "b"], "item": ["x", "y"]}
    X = gg.from_matrix(sparse.csr_array([[0, 2], [3, 0]]), "implicit", names=names).X
    assert sorted(map(tuple, X.tolist())) == [("a", "y"), ("b", "x")]
    with pytest.raises(gg.GinghamError, match="two sides"):
        gg.from_matrix(np.eye(2), "none", names=[["a", "b"]])


def pairs(model, *rows):
    """Rows as the model was shown them: with the names of their columns, where it knows some."""
    names = getattr(model, "feature_names_in_", None)
    return list(rows) if names is None else pd.DataFrame(list(rows), columns=names)


@pytest.mark.parametrize("wide", [*WIDE.values(), ANNOTATED], ids=[*WIDE, "AnnData"])
def test_fit_takes_a_wide_table(wide):
    model = gg.CoClusteringRegressor(2, loss="quadratic", beta=2.0, random_state=0).fit(wide)
    assert set(model.items_[1].tolist()) == set(FILMS)
    assert model.predict(pairs(model, ("person 0", "film 0"), ("person 0", "film 1"))).round().tolist() == [5.0, 1.0]
    members = gg.Committee(gg.CoClusteringRegressor(2, loss="quadratic", beta=2.0), n_members=2, random_state=0).fit(
        wide
    )
    assert members.predict(pairs(members, ("person 0", "film 0"))).round().tolist() == [5.0]


def test_a_table_of_rows_without_labels_is_still_refused():
    with pytest.raises(gg.GinghamError, match="requires y"):
        gg.CoClusteringRegressor().fit(pl.DataFrame({"user": ["a", "b"], "film": ["x", "y"]}))


def test_counts_take_frames_and_annotated_data():
    counts = RNG.poisson(np.where(np.arange(12)[:, None] % 2 == np.arange(8) % 2, 4.0, 0.3))
    frame = pd.DataFrame(counts, index=[f"d{i}" for i in range(12)], columns=list("abcdefgh"))
    model = gg.CoOccurrenceClustering(2, random_state=0).fit(frame)
    assert model.summary_.sides[1].items.tolist() == list("abcdefgh")
    data = SimpleNamespace(
        X=sparse.csr_array(counts), obs_names=[f"c{i}" for i in range(12)], var_names=list("abcdefgh")
    )
    assert gg.CoOccurrenceClustering(2, random_state=0).fit(data).summary_.sides[0].items[0] == "c0"


def test_a_certificate_is_a_card():
    X, y = gg.from_matrix(WIDE["pandas"], missing="nan")
    model = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=0).fit(X, y)
    certificate = gg.certify(model, X, y)
    card = certificate._repr_html_()
    best = min(np.abs(y - one).mean() for one in range(1, 6))
    assert "Guarantee" in card
    assert "it rests on" in card
    assert f"≤ {certificate.value:.4g}" in card
    assert f">{best:.4g}<" in card.split("one constant on these observations")[1]
    assert "mean absolute loss" in card
