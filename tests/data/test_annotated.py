"""AnnData and biclusters: what other libraries give and take."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import consensus_score

import gingham as gg
from gingham.datasets import planted_grid
from gingham.errors import GinghamError


def annotated(X):
    return SimpleNamespace(X=X, obs_names=["cell a", "cell b"], var_names=["gene 1", "gene 2", "gene 3"], layers={})


def test_names_stand_for_positions():
    X, y = gg.from_anndata(annotated(sparse.csr_array([[1.0, 0, 2], [0, 3, 0]])), missing="implicit")
    assert X.tolist() == [["cell a", "gene 1"], ["cell a", "gene 3"], ["cell b", "gene 2"]]
    assert y.tolist() == [1, 2, 3]


def test_zeros_can_be_observed():
    X, y = gg.from_anndata(annotated(np.array([[1.0, 0, 2], [0, 3, 0]])), missing="none")
    assert len(y) == 6
    assert len(X) == 6


def test_wrong_objects_are_refused():
    with pytest.raises(GinghamError, match="no layer 'raw'"):
        gg.from_anndata(annotated(np.eye(2)), missing="none", layer="raw")
    with pytest.raises(GinghamError, match="has no X"):
        gg.from_anndata([1, 2], missing="none")


def test_biclusters_score_as_scikit_learn_scores_them():
    data = planted_grid((40, 30), (3, 2), 4000, n_labels=4, noise=0.05, seed=1)
    model = gg.CoClusteringClassifier((3, 2), alphabet=range(4), beta=3.0, n_init=3, random_state=0)
    model.fit(data.X, data.y)
    rows, columns = model.biclusters_
    assert rows.shape == (6, 40)
    assert columns.shape == (6, 30)
    assert (rows.sum(0) == 2).all()
    planted = (
        np.array([data.labels[0] == a for a in range(3) for _ in range(2)]),
        np.array([data.labels[1] == b for _ in range(3) for b in range(2)]),
    )
    assert consensus_score((rows, columns), planted) > 0.9


def test_biclusters_need_two_modes():
    data = planted_grid((9, 8, 7), (2, 2, 2), 300)
    model = gg.CoClusteringClassifier(2, alphabet=range(5), max_iter=3, random_state=0).fit(data.X, data.y)
    with pytest.raises(AttributeError, match="two modes"):
        _ = model.biclusters_


def planted(n_obs=24, n_var=18):
    rng = np.random.default_rng(0)
    matrix = np.where(np.arange(n_obs)[:, None] % 2 == np.arange(n_var) % 2, 8, 1) + rng.integers(0, 2, (n_obs, n_var))
    return matrix.astype(float)


def clustered(data):
    """Clusters from observations and from counts, written back in two places."""
    X, y = gg.from_anndata(data, missing="none")
    model = gg.CoClusteringRegressor((2, 2), loss="quadratic", random_state=0).fit(X, y)
    assert gg.to_anndata(model, data) is data
    counts = gg.CoOccurrenceClustering((2, 2), random_state=0).fit(data.X)
    gg.to_anndata(counts, data, key="counts")
    return model


def check_written(data, model):
    for table, matrices, side in (("obs", "obsm", 0), ("var", "varm", 1)):
        for key in ("gingham", "counts"):
            found = np.asarray(getattr(data, table)[key])
            assert len(np.unique(found[::2])) == len(np.unique(found[1::2])) == 1
            assert found[0] != found[1]
            np.testing.assert_allclose(np.asarray(getattr(data, matrices)[key]).sum(axis=1), 1.0)
        names = [str(item) for item in model.items_[side]]
        own = dict(zip(names, model.labels_[side]))
        assert [own[str(n)] for n in getattr(data, f"{table}_names")] == np.asarray(
            getattr(data, table)["gingham"]
        ).tolist()


def test_clusters_go_back(tmp_path):
    data = annotated(planted())
    data.obs_names, data.var_names = [f"cell {i}" for i in range(24)], [f"gene {i}" for i in range(18)]
    data.shape, data.obs, data.var, data.obsm, data.varm = (24, 18), {}, {}, {}, {}
    check_written(data, clustered(data))
    other = annotated(planted(2, 2))
    other.shape, other.obs, other.var, other.obsm, other.varm = (2, 2), {}, {}, {}, {}
    other.obs_names, other.var_names = ["cell 3", "nobody"], ["gene 0", "gene 1"]
    gg.to_anndata(gg.CoClusteringRegressor((2, 2), random_state=0).fit(*gg.from_anndata(data, missing="none")), other)
    assert other.obs["gingham"][1] == -1
    assert np.isnan(other.obsm["gingham"][1]).all()
    with pytest.raises(GinghamError, match="24 × 18 counts"):
        gg.to_anndata(gg.CoOccurrenceClustering((2, 2), random_state=0).fit(data.X), other)
    with pytest.raises(GinghamError, match="two modes"):
        gg.to_anndata(gg.InformationClustering(2, random_state=0).fit(planted()), other)


def test_with_the_package_itself(tmp_path):
    """obs × var in and out through the real AnnData, sparse and dense, and through its own file."""
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    names = {"obs_names": [f"cell {i}" for i in range(24)], "var_names": [f"gene {i}" for i in range(18)]}
    for X in (planted(), sparse.csr_matrix(planted())):
        data = anndata.AnnData(X)
        data.obs_names, data.var_names = names["obs_names"], names["var_names"]
        model = clustered(data) if not sparse.issparse(X) else None
        if model is None:
            tuples = gg.from_anndata(data, missing="implicit")
            assert len(tuples.y) == X.nnz
            model = gg.CoClusteringRegressor((2, 2), loss="quadratic", random_state=0).fit(*tuples)
            gg.to_anndata(model, data)
            gg.to_anndata(gg.CoOccurrenceClustering((2, 2), random_state=0).fit(data.X), data, key="counts")
        check_written(data, model)
        data.write_h5ad(tmp_path / "a.h5ad")
        check_written(anndata.read_h5ad(tmp_path / "a.h5ad"), model)
