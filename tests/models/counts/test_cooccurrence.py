"""CoOccurrenceClustering: recovery, scikit-learn's contracts, odd input, densities, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.certificates import certify

R, C = np.repeat([0, 1, 2], 20), np.repeat([0, 1, 2, 3], 15)
RATES = np.array([[6, 1, 1, 3], [1, 6, 1, 3], [1, 1, 6, 1]]) / 3


def planted(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).poisson(RATES[R][:, C])


@pytest.mark.parametrize("start", ["merged", "profiles"])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc_matrix"])
def test_planted_blocks_are_found(start: str, kind: str) -> None:
    X = planted()
    given = {"dense": X, "csr": sparse.csr_array(X), "csc_matrix": sparse.csc_matrix(X)}[kind]
    model = gg.CoOccurrenceClustering((3, 4), start=start, random_state=0).fit(given)
    assert adjusted_rand_score(R, model.row_labels_) == 1.0
    assert adjusted_rand_score(C, model.column_labels_) > 0.9
    assert 0 < model.information_kept_ < 1


def test_bicluster_names_agree_with_each_other() -> None:
    X = planted()
    model = gg.CoOccurrenceClustering((3, 4), random_state=0).fit(X)
    assert model.rows_.shape == (12, 60)
    assert model.columns_.shape == (12, 60)
    rows, columns = model.get_indices(5)  # block (1, 1)
    assert np.array_equal(rows, np.flatnonzero(model.row_labels_ == 1))
    assert np.array_equal(columns, np.flatnonzero(model.column_labels_ == 1))
    assert model.get_submatrix(5, X).sum() == model.blocks_[1, 1]
    assert model.get_shape(5) == (len(rows), len(columns))
    assert model.biclusters_[0] is not None


def test_rows_only_keeps_columns_by_themselves() -> None:
    model = gg.CoOccurrenceClustering((3, None), random_state=0).fit(planted())
    assert adjusted_rand_score(R, model.row_labels_) == 1.0
    assert model.blocks_.shape == (3, 60)
    assert np.array_equal(model.column_labels_, np.arange(60))
    with pytest.raises(gg.GinghamError, match="column clusters"):
        model.factors_  # noqa: B018


def test_density_sums_to_one_and_beats_independence() -> None:
    X = planted()
    every = np.argwhere(np.ones(X.shape, bool))
    for options in ({}, {"beta": 0.5}, {"beta": 1.0, "solver": "concave"}):
        model = gg.CoOccurrenceClustering((3, 4), random_state=0, **options).fit(X)
        log_p = model.score_samples(every)
        assert np.isclose(np.exp(log_p).sum(), 1.0)
        fresh = planted(1)
        independent = np.log(np.outer(X.sum(1), X.sum(0)) / X.sum() ** 2)
        assert model.score(fresh) > (fresh * independent).sum() / fresh.sum()
    only_rows = gg.CoOccurrenceClustering((3, None), random_state=0).fit(X)
    assert np.isclose(np.exp(only_rows.score_samples(every)).sum(), 1.0)


def test_factors_multiply_to_the_model() -> None:
    model = gg.CoOccurrenceClustering((3, 4), random_state=0).fit(planted())
    left, middle, right = model.factors_
    product = left @ middle @ right.T
    assert np.isclose(product.sum(), 1.0)
    assert np.allclose(product.sum(axis=1), model._masses[0] / model._masses[0].sum())
    assert np.allclose(left.sum(axis=0), 1.0)


def test_new_rows_are_predicted_and_transformed() -> None:
    model = gg.CoOccurrenceClustering((3, 4), random_state=0).fit(planted())
    fresh = planted(3)
    assert adjusted_rand_score(R, model.predict(fresh)) > 0.95
    assert np.allclose(model.predict_memberships(fresh).sum(axis=1), 1.0)
    assert np.allclose(model.transform(fresh).sum(axis=1), 1.0)
    fresh[0] = 0
    assert model.predict(fresh).shape == (60,)
    with pytest.raises(ValueError, match="features"):
        model.predict(fresh[:, :5])


def test_soft_memberships() -> None:
    model = gg.CoOccurrenceClustering((3, 4), beta=0.2, solver="concave", random_state=0).fit(planted())
    assert np.allclose(model.memberships_[0].sum(axis=1), 1.0)
    assert ((model.memberships_[0] > 0.01) & (model.memberships_[0] < 0.99)).any()
    assert np.all(np.diff(model.trace_.totals[21:]) <= 1e-6)


def test_size_is_chosen_by_held_out_tokens() -> None:
    model = gg.CoOccurrenceClustering(beta=0.5, random_state=0).fit(planted())
    assert model.sizes_tried_[1] == 0.0
    assert 2 <= model.n_clusters_[0] <= 10
    noise = np.random.default_rng(0).poisson(1.0, (40, 40))
    assert gg.CoOccurrenceClustering(beta=0.5, random_state=0).fit(noise).n_clusters_ == (1, 1)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([[1, 2], [-1, 3]], "-1 in row 1, column 0"),
        ([[1, np.nan], [1, 3]], r"NaN \(row 0, column 1\)"),
        ([[1, np.inf], [1, 3]], "infinity"),
        ([[0, 0], [0, 0]], "All counts"),
    ],
)
def test_bad_counts_are_refused_with_their_place(X: list[list[float]], said: str) -> None:
    with pytest.raises(gg.GinghamError, match=said):
        gg.CoOccurrenceClustering(1).fit(np.array(X, float))


@pytest.mark.parametrize(
    "options",
    [
        {"n_clusters": 0},
        {"n_clusters": "many"},
        {"n_clusters": (2, 2, 2)},
        {"solver": "magic"},
        {"beta": -1.0},
        {"weighting": "heavy"},
        {"start": "nowhere"},
        {"start": ([0, 9], [0, 0])},
        {"n_init": 0},
        {"solver": "concave"},
    ],
)
def test_bad_requests_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(gg.GinghamError):
        gg.CoOccurrenceClustering(**{"n_clusters": 2, **options}).fit(planted())


@pytest.mark.parametrize("columns", [2, None])
@pytest.mark.parametrize("solver", ["sweep", "concave"])
def test_empty_rows_and_columns_are_handled(columns: int | None, solver: str) -> None:
    X = planted()
    X[3], X[:, 7] = 0, 0
    beta = np.inf if solver == "sweep" else 1.0
    for matrix in (X, X[:1], X[:, :1], np.array([[4]])):
        model = gg.CoOccurrenceClustering((2, columns), solver=solver, beta=beta, random_state=0).fit(matrix)
        assert model.row_labels_.shape == (len(matrix),)
        assert np.isfinite(model.information_)


def test_weights_are_accepted_and_the_certificate_says_why_not() -> None:
    X = planted() * 0.37
    model = gg.CoOccurrenceClustering((3, 4), random_state=0).fit(X)
    assert adjusted_rand_score(R, model.row_labels_) == 1.0
    with pytest.raises(gg.RefusedCertificate, match="weights, not counts"):
        model.certify(X)
    with pytest.raises(gg.GinghamError, match="integer counts"):
        gg.CoOccurrenceClustering(criterion="certificate").fit(X)
    assert gg.CoOccurrenceClustering(random_state=0).fit(X).n_clusters_[0] >= 3  # entries are held out, not counts


def test_certificate_is_the_repaired_bound() -> None:
    X = planted() * 20
    model = gg.CoOccurrenceClustering((3, 4), beta=0.5, random_state=0).fit(X)
    certificate = model.certify(X, population=X.shape)
    rows, columns = np.nonzero(X)
    pairs = np.column_stack([rows, columns])
    expected = certify(model.posterior_, pairs, sample_weight=X[rows, columns], population=X.shape, bound="density")
    assert np.isclose(certificate.value, expected.value)
    assert certificate.empirical <= certificate.value < np.log(X.size)


def test_same_seed_same_clusters_and_restarts_do_not_hurt() -> None:
    X = planted()
    fits = [gg.CoOccurrenceClustering(3, random_state=4).fit(X) for _ in range(2)]
    assert np.array_equal(fits[0].row_labels_, fits[1].row_labels_)
    random = {"n_clusters": 3, "start": "random", "random_state": 1}
    one = gg.CoOccurrenceClustering(n_init=1, **random).fit(X)
    five = gg.CoOccurrenceClustering(n_init=5, **random).fit(X)
    assert five.trace_.totals[-1] <= one.trace_.totals[-1]


def test_pairs_become_counts() -> None:
    matrix, rows, columns = gg.from_pairs([("a", "x"), ("b", "x"), ("a", "x")], [1.0, 2.0, 3.0])
    assert rows.tolist() == ["a", "b"]
    assert columns.tolist() == ["x"]
    assert matrix.toarray().tolist() == [[4.0], [2.0]]
    with pytest.raises(gg.GinghamError, match="pairs"):
        gg.from_pairs([("a", "b", "c")])


def test_progress_is_reported() -> None:
    seen = []
    gg.CoOccurrenceClustering(3, n_init=2, random_state=0).fit(planted(), callback=seen.append)
    assert {p.restart for p in seen} == {0, 1}
