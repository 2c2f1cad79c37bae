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
