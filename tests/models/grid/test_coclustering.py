"""The regressor and the classifier as their users meet them."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import gingham as gg
from ctrl_c import press_ctrl_c
from gingham.errors import InterruptedWarning
from gingham.fitting import Down, Projection


def ratings(seed=0, n_rows=1200, noise=0.15):
    """A planted 3 × 2 checkerboard of viewers and movies with string ids."""
    rng = np.random.default_rng(seed)
    viewer, movie = rng.integers(0, 40, n_rows), rng.integers(0, 30, n_rows)
    y = np.array([[1, 5], [5, 1], [3, 4]])[viewer % 3, movie % 2]
    y = np.where(rng.random(n_rows) < noise, rng.integers(1, 6, n_rows), y)
    X = pd.DataFrame({"viewer": [f"v{i:02d}" for i in viewer], "movie": movie})
    return X, y


X, Y = ratings()
MODEL = gg.CoClusteringRegressor(n_clusters=(3, 2), beta=1.0, alphabet=range(1, 6), random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return clone(MODEL).fit(X, Y)


def test_fit_finds_the_planted_clusters_and_predicts(fitted):
    truth = [[int(v[1:]) % 3 for v in fitted.items_[0]], [m % 2 for m in fitted.items_[1]]]
    for found, planted in zip(fitted.labels_, truth):
        assert adjusted_rand_score(planted, found) == 1.0
    new_X, new_y = ratings(seed=1)
    assert np.abs(fitted.predict(new_X, rule="median") - new_y).mean() < 0.35
    assert fitted.score(new_X, new_y) > 0.5
    assert fitted.answers_.shape == (3, 2)
    assert sorted(fitted.answers_.ravel().tolist()) == [1, 1, 3, 4, 5, 5]
    assert fitted.converged_
    assert fitted.trace_.totals[-1] == pytest.approx(fitted.objective_.total)
    assert fitted.n_iter_ == len(fitted.trace_.totals)


@pytest.mark.parametrize(
    "as_input",
    [
        lambda X: X,
        lambda X: pl.from_pandas(X),
        lambda X: list(X.itertuples(index=False, name=None)),
        lambda X: X.to_numpy(),
    ],
    ids=["pandas", "polars", "tuples", "objects"],
)
def test_every_format_gives_the_same_fit(as_input, fitted):
    again = clone(MODEL).fit(as_input(X), Y)
    np.testing.assert_array_equal(again.predict(as_input(X)), fitted.predict(X))


def test_same_seed_same_result_and_order_of_rows_does_not_matter(fitted):
    again = clone(MODEL).fit(X, Y)
    np.testing.assert_array_equal(again.assign_[0], fitted.assign_[0])
    order = np.random.default_rng(0).permutation(len(Y))
    shuffled = clone(MODEL).fit(X.iloc[order], Y[order])
    np.testing.assert_allclose(shuffled.predict(X), fitted.predict(X), atol=1e-6)


def test_single_precision_gives_the_same_clusters():
    fits = [clone(MODEL).set_params(solver=Projection(dtype=dtype)).fit(X, Y) for dtype in ("float64", "float32")]
    assert fits[1].objective_.total == pytest.approx(fits[0].objective_.total, rel=1e-5)
    for a, b in zip(fits[0].labels_, fits[1].labels_):
        assert (a == b).all()
    assert fits[1].partial_fit(X, Y).posterior_.assign[0].dtype == np.float64


def test_distribution_mean_median_mode_belong_together(fitted):
    distribution = fitted.predict_distribution(X)
    np.testing.assert_allclose(distribution @ fitted.alphabet_, fitted.predict(X))
    assert set(fitted.predict(X, rule="mode")) <= set(range(1, 6))


def test_unseen_ids_are_predicted_like_one_more_item_and_counted(fitted):
    with pytest.warns(gg.UnseenItemsWarning, match=r"1 in 'viewer', of 2 rows"):
        prediction = fitted.predict(pd.DataFrame({"viewer": ["stranger", "v00"], "movie": [0, 0]}))
    everyone = pd.DataFrame({"viewer": fitted.items_[0], "movie": 0})
    clusters = fitted.answers_ @ fitted.assign_[1][0]  # what each cluster of viewers answers to this movie
    both = np.append(fitted.predict(everyone), clusters)
    assert prediction[0] == pytest.approx(both.mean())


def test_weights_are_counts():
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    weighted = clone(MODEL).fit(X, Y, sample_weight=weights)
    repeated = clone(MODEL).fit(X.loc[X.index.repeat(weights)], np.repeat(Y, weights))
    np.testing.assert_allclose(weighted.predict(X[weights > 0]), repeated.predict(X[weights > 0]), atol=1e-6)


def test_pipeline_grid_search_and_cross_validation():
    search = GridSearchCV(clone(MODEL), {"beta": [0.01, 1.0]}, cv=3, scoring="neg_mean_absolute_error").fit(X, Y)
    assert search.best_params_ == {"beta": 1.0}
    pipe = make_pipeline(FunctionTransformer(), clone(MODEL))
    assert cross_val_score(pipe, X, Y, cv=3).min() > 0.4


def test_transform_gives_memberships_as_a_frame_when_asked(fitted):
    features = clone(MODEL).set_output(transform="pandas").fit(X, Y).transform(X[:5])
    assert list(features.columns) == [
        "viewer_cluster0",
        "viewer_cluster1",
        "viewer_cluster2",
        "movie_cluster0",
        "movie_cluster1",
    ]
    np.testing.assert_allclose(features.to_numpy().sum(axis=1), 2.0)
    np.testing.assert_array_equal(features.to_numpy(), fitted.transform(X[:5]))


def test_classifier_with_named_classes():
    names = np.array(["hate", "dislike", "so-so", "like", "love"])
    model = gg.CoClusteringClassifier(n_clusters=(3, 2), beta=3.0, random_state=0).fit(X, names[Y - 1])
    assert model.classes_.tolist() == sorted(set(names))
    assert model.score(X, names[Y - 1]) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize(
    "loss",
    ["quadratic", "log", "zero-one", "pinball", partial(gg.losses.Pinball, quantile=0.9), np.ones((5, 5)) - np.eye(5)],
)
def test_every_loss_fits(loss):
    model = clone(MODEL).set_params(loss=loss, beta=2.0).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    best_single = np.abs(Y - np.median(Y)).mean()
    if isinstance(loss, str) and loss != "pinball":
        assert np.abs(model.predict(X) - Y).mean() < best_single


def test_continuous_labels_need_no_alphabet():
    y = Y + np.random.default_rng(0).normal(0, 0.1, len(Y))
    model = gg.CoClusteringRegressor(n_clusters=(3, 2), loss="quadratic", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5
    with pytest.raises(AttributeError, match="without an alphabet"):
        _ = model.alphabet_


def test_certificate_objective_chooses_the_size():
    model = clone(MODEL).set_params(n_clusters="auto", objective="certificate").fit(*ratings(n_rows=3000))
    assert model.n_clusters_ == (3, 2)


def test_one_mode_three_modes_one_item_one_label():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 6, (80, 3))
    for d in (1, 3):
        model = gg.CoClusteringRegressor(n_clusters=2, random_state=0).fit(ids[:, :d], ids[:, 0] % 2 + 1)
        assert len(model.assign_) == d
    constant = gg.CoClusteringRegressor(random_state=0).fit([["a", "b"]], [3])
    assert constant.predict([["a", "b"]]).tolist() == [3.0]
    assert constant.n_clusters_ == (1, 1)


def test_callables_and_posteriors_do_not_prevent_saving(fitted, tmp_path):
    model = clone(MODEL).set_params(start=fitted.posterior_, loss=partial(gg.losses.Pinball, quantile=0.9)).fit(X, Y)
    model.save(tmp_path / "m.gingham")
    np.testing.assert_array_equal(gg.load(tmp_path / "m.gingham").predict(X), model.predict(X))


def test_callback_hears_of_every_sweep_and_may_interrupt():
    heard = []

    def listen(progress):
        heard.append(progress.iteration)
        if len(heard) == 4:
            press_ctrl_c()

    with pytest.warns(InterruptedWarning, match="after 4 sweeps"):
        model = clone(MODEL).fit(X, Y, callback=listen)
    assert heard == [0, 1, 2, 3]
    assert model.interrupted_
    assert np.isfinite(model.predict(X)).all()


def test_a_file_keeps_the_solver(tmp_path):
    solver = Projection(Down(3.0, 5), tol=1e-4, dtype="float32")
    clone(MODEL).set_params(solver=solver, max_iter=3).fit(X, Y).save(tmp_path / "m.gingham")
    assert gg.load(tmp_path / "m.gingham").solver == solver


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"schedule": "up"}, "schedule='up' is unknown"),
        ({"backend": "gpu9"}, "backend='gpu9' is unknown"),
        ({"dtype": "float16"}, "dtype='float16' is unknown; choose one of float64, float32"),
        ({"tol": -1.0}, "tol=-1.0 must be"),
        ({"max_iter": 0}, "max_iter=0 must be"),
    ],
)
def test_bad_solvers_get_a_sentence(wrong, words):
    with pytest.raises(gg.GinghamError, match=words):
        Projection(**wrong)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_clusters": 0}, "integer ≥ 1"),
        ({"n_clusters": (3, 2, 2)}, "3 entries, but the data has 2 modes"),
        ({"n_clusters": "many"}, "unknown"),
        ({"n_clusters": 2.5}, "integer ≥ 1"),
        ({"beta": -1.0}, "≥ 0"),
        ({"beta": float("nan")}, "finite"),
        ({"loss": "huber"}, "loss='huber' is unknown; choose one of"),
        ({"start": "best"}, "start='best' is unknown"),
        ({"solver": "magic"}, "solver='magic' is unknown"),
        ({"objective": "elbo"}, "objective='elbo' is unknown"),
        ({"n_init": 0}, "n_init=0 must be"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"alphabet": (1, 2)}, "is not in the alphabet"),
        ({"alphabet": ()}, "at least one label"),
        ({"objective": "certificate", "loss": "quadratic"}, "table"),
    ],
)
def test_bad_parameters_get_a_sentence(params, words):
    with pytest.raises(gg.GinghamError, match=words):
        clone(MODEL).set_params(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("X", "y", "weight", "words"),
    [
        ([["a", "b"]], [np.nan], None, "y contains NaN in row 0"),
        ([["a", "b"]], ["good"], None, "Labels must be numbers"),
        ([["a", "b"]], [1, 2], None, "X has 1 rows, y has 2"),
        ([["a", None]], [1], None, "missing id .* in row 0"),
        ([["a", "b"], ["a", "c"]], [1, 2], [0, 0], "weights are zero|non-zero"),
        (np.array([[0.0, np.inf]]), [1], None, "inf"),
    ],
)
def test_bad_data_gets_a_sentence(X, y, weight, words):
    with pytest.raises(gg.GinghamError, match=words):
        gg.CoClusteringRegressor().fit(X, y, sample_weight=weight)


def test_too_many_labels_for_a_label_loss():
    y = np.arange(1500) / 7
    with pytest.raises(gg.GinghamError, match=r"more than 1000 different values.*quadratic"):
        gg.CoClusteringRegressor(loss="absolute").fit(np.zeros((1500, 2), int), y)


def test_a_grid_that_cannot_be_held_is_refused_with_its_size():
    with pytest.raises(gg.GinghamError, match="GiB"):
        gg.CoClusteringRegressor(n_clusters=50).fit(
            np.random.default_rng(0).integers(0, 60, (200, 6)), np.arange(200) % 5
        )
