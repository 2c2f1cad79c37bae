"""Hard co-clusterings of labelled observations, ``solver="sweep"``: description length and other losses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.metrics import adjusted_rand_score

import gingham as gg

LETTERS = np.array(list("abcd"))
R, C = np.repeat(np.arange(4), 20), np.repeat(np.arange(3), 25)


def planted(seed: int = 0, n_rows: int = 2500) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from a distribution per cell of a 4 × 3 checkerboard."""
    rng = np.random.default_rng(seed)
    distributions = rng.dirichlet([0.3] * 4, size=(4, 3))
    pairs = np.stack(np.divmod(rng.permutation(80 * 75)[:n_rows], 75), axis=1)
    cumulated = distributions[R[pairs[:, 0]], C[pairs[:, 1]]].cumsum(axis=1)
    return pairs, LETTERS[(rng.random((n_rows, 1)) > cumulated[:, :3]).sum(axis=1)]


def entropy_of_labels(cells: np.ndarray, y: np.ndarray) -> float:
    """N·H(Y|cell) from scratch."""
    _, at = np.unique(cells, axis=0, return_inverse=True)
    table = np.zeros((at.max() + 1, 4))
    np.add.at(table, (at.ravel(), np.searchsorted(LETTERS, y)), 1.0)
    total = table.sum(axis=1)
    return float(xlogy(total, total).sum() - xlogy(table, table).sum())


def size_entropy(labels: np.ndarray) -> float:
    """n·H(cluster sizes)."""
    sizes = np.bincount(labels)
    return float(xlogy(len(labels), len(labels)) - xlogy(sizes, sizes).sum())


@pytest.mark.parametrize("n_clusters", [(4, 3), "auto"])
def test_planted_cells_are_found_and_the_length_is_what_it_says(n_clusters: object) -> None:
    X, y = planted()
    model = gg.CoClusteringClassifier(n_clusters, loss="log", solver="sweep", n_init=3, random_state=0).fit(X, y)
    assert model.beta_ == 1.0
    assert all(((q == 0) | (q == 1)).all() for q in model.posterior_.assign)
    assert model.n_clusters_ == (4, 3)
    for found, truth, items in zip(model.labels_, (R, C), model.items_):
        assert adjusted_rand_score(truth[items], found) == 1.0
    cells = np.stack([q[np.searchsorted(items, x)] for q, items, x in zip(model.labels_, model.items_, X.T)], axis=1)
    length = entropy_of_labels(cells, y) + sum(map(size_entropy, model.labels_))
    assert model.objective_.total == pytest.approx(length)
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert model.score(*planted(0)) > 0.5


def test_the_length_never_rises() -> None:
    rng = np.random.default_rng(1)
    for trial in range(20):
        X = rng.integers(0, 12, (150, 1 + trial % 3))
        y = LETTERS[rng.integers(0, 4, 150)]
        model = gg.CoClusteringClassifier(
            3, loss="log", solver="sweep", start="random", alphabet=LETTERS, random_state=trial
        ).fit(X, y)
        totals = model.trace_.totals
        assert np.all(np.diff(totals) <= 1e-8 * np.abs(totals[:-1]))
        assert model.converged_


def test_four_by_four_optimum_is_reached_from_restarts() -> None:
    rng = np.random.default_rng(3)
    X = np.array(list(np.ndindex(4, 4)))
    y = LETTERS[rng.integers(0, 3, 16)]
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)  # labels worth the price of clusters
    best = np.inf
    for r, c in product(product((0, 1), repeat=4), repeat=2):
        rows, columns = np.array(r), np.array(c)
        cells = np.stack([rows[X[:, 0]], columns[X[:, 1]]], axis=1)
        best = min(best, entropy_of_labels(cells, y) + size_entropy(rows) + size_entropy(columns))
    model = gg.CoClusteringClassifier(
        2, loss="log", solver="sweep", start="random", n_init=30, alphabet=LETTERS, random_state=0
    ).fit(X, y)
    assert model.objective_.total == pytest.approx(best)


def test_other_losses_partial_fit_and_refusals() -> None:
    rng = np.random.default_rng(0)
    viewer, movie = rng.integers(0, 40, 1200), rng.integers(0, 30, 1200)
    y = np.array([[1, 5], [5, 1], [3, 4]])[viewer % 3, movie % 2]
    X = np.stack([viewer, movie], axis=1)
    for loss, beta in (("absolute", 2.0), ("quadratic", 1.0)):
        model = gg.CoClusteringRegressor((3, 2), loss, beta=beta, solver="sweep", n_init=3, random_state=0).fit(X, y)
        assert adjusted_rand_score(model.items_[0] % 3, model.labels_[0]) == 1.0
        assert np.abs(model.predict(X, rule="median" if loss == "absolute" else "mean") - y).mean() < 1e-6
    half = gg.CoClusteringClassifier((3, 2), "log", solver="sweep", alphabet=range(1, 6), random_state=0)
    half.partial_fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
    assert all(((q == 0) | (q == 1)).all() for q in half.posterior_.assign)
    certificate = gg.certify(half, X, y)
    assert certificate.value >= certificate.empirical
    with pytest.raises(gg.GinghamError, match="solver='magic' is unknown"):
        gg.CoClusteringClassifier(2, solver="magic").fit(X, y)
