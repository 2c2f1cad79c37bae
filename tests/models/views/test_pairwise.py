"""PairwiseClusterAnalysis and KernelCCA: planted clusters, mates, choices, scikit-learn manners, bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.errors import GinghamError
from gingham.models.views import retrieval
from gingham.models.views import view_validation as heldout

MODELS = [gg.PairwiseClusterAnalysis, gg.KernelCCA]


def related(n, seed, shared=3, widths=(8, 6, 7), noise=0.5):
    maps = np.random.default_rng(99)
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, shared))
    return [hidden @ maps.normal(size=(shared, d)) + noise * rng.normal(size=(n, d)) for d in widths]


def planted(n_background, seed, sizes=(20, 20)):
    """Paired Gaussian clusters in a uniform background, as in P3 §5.1."""
    rng = np.random.default_rng(seed)
    centres = [[(-7, 7), (7, 7)], [(7, -7), (-7, 7)]]
    views, labels = [], np.repeat([-1, 0, 1], [n_background, *sizes])
    for view in range(2):
        parts = [rng.uniform(-5, 5, size=(n_background, 2))]
        parts += [rng.normal(centres[view][c], 0.5, size=(size, 2)) for c, size in enumerate(sizes)]
        views.append(np.vstack(parts))
    return views, labels


@pytest.mark.parametrize("model", MODELS)
def test_shared_directions_hold_on_new_objects(model):
    fit = model(n_components=3, ridge=0.1).fit(related(300, 0))
    assert fit.correlations(related(300, 1)).min() > 0.8
    assert fit.correlations_.shape == (3,)
    assert fit.mrr(related(50, 2)) > 0.5
    assert fit.score(related(100, 3)) == pytest.approx(fit.correlations(related(100, 3)).mean())


def test_unrelated_views_do_not_correlate_on_new_objects():
    rng = np.random.default_rng(0)
    fit = gg.PairwiseClusterAnalysis(2, ridge=0.1).fit([rng.normal(size=(200, 20)) for _ in range(2)])
    assert fit.correlations_.max() > 0.4  # what the training part says …
    assert abs(fit.correlations([rng.normal(size=(500, 20)) for _ in range(2)])).max() < 0.2  # … and what is so


def test_planted_clusters_and_background():
    views, truth = planted(120, 0)
    fit = gg.PairwiseClusterAnalysis(2, kernel="rbf", kernel_params={"gamma": 0.125}, ridge=1.0, background=1.5)
    labels = fit.fit_predict(views)
    assert adjusted_rand_score(truth, labels) > 0.9
    fresh, fresh_truth = planted(120, 1)
    assert adjusted_rand_score(fresh_truth, fit.predict(fresh)) > 0.9
    assert adjusted_rand_score(fresh_truth, fit.predict([fresh[0], None])) > 0.6  # from one view alone
    assert (gg.PairwiseClusterAnalysis(2, ridge=1.0).fit(views).labels_ >= 0).all()  # no background unless asked


def test_memberships_mark_the_positive_tail():
    views, truth = planted(120, 0)
    fit = gg.PairwiseClusterAnalysis(2, kernel="rbf", kernel_params={"gamma": 0.125}, ridge=1.0).fit(views)
    first, second = fit.memberships(views, threshold=1.0)
    assert first.dtype == bool
    assert first.shape == (160, 2)
    assert (first == second).mean() > 0.9
    assert first[truth == -1].mean() < 0.1


def test_the_ridge_is_chosen_by_heldout_mates_and_the_components_by_heldout_correlation():
    fit = gg.PairwiseClusterAnalysis().fit(related(200, 0))
    assert fit.n_components_ == 3  # as many as the views share
    assert fit.ridge_[0] in heldout.RIDGES
    assert len(set(fit.ridge_)) == 1
    chosen = fit.choice_.candidates.index(fit.ridge_)
    assert fit.choice_.mates[chosen].max() == np.nanmax(fit.choice_.mates)
    totals = np.cumsum(fit.choice_.correlations[chosen] - 2 / np.sqrt(200))
    assert totals[2] == totals.max()
    assert fit.choice_.counts[:2] == (1, 2)
    kept = gg.PairwiseClusterAnalysis(2).fit(related(200, 0))
    assert kept.n_components_ == 2
    given = gg.PairwiseClusterAnalysis(ridge=0.5).fit(related(200, 0))
    assert given.ridge_ == (0.5, 0.5, 0.5)
    assert gg.PairwiseClusterAnalysis(2, ridge=0.5).fit(related(200, 0)).choice_ is None


def test_choice_with_a_precomputed_kernel_never_sees_the_fold():
    views = related(80, 0)
    named = gg.PairwiseClusterAnalysis(kernel="linear").fit(views)
    given = gg.PairwiseClusterAnalysis(kernel="precomputed").fit([v @ v.T for v in views])
    width = min(named.choice_.correlations.shape[1], given.choice_.correlations.shape[1], 5)
    np.testing.assert_allclose(given.choice_.correlations[:, :width], named.choice_.correlations[:, :width], atol=1e-6)


def test_retrieval_finds_mates_and_orders_documents():
    fit = gg.PairwiseClusterAnalysis(3, ridge=0.1).fit(related(300, 0, noise=0.02))
    test = related(40, 1, noise=0.02)
    indices, cosines = fit.retrieve(0, test[0], 2, test[2], n_documents=5)
    assert indices.shape == cosines.shape == (40, 5)
    assert (np.diff(cosines, axis=1) <= 1e-12).all()
    assert (indices[:, 0] == np.arange(40)).mean() > 0.9
    everything, _ = fit.retrieve(0, test[0], 2, test[2], n_documents=40)
    np.testing.assert_array_equal(everything[:, :5], indices)
    assert sorted(everything[0].tolist()) == list(range(40))


def test_reciprocal_ranks_by_hand(monkeypatch):
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    documents = np.array([[1.0, 0.1], [1.0, 0.0], [1.0, 1.0]])
    for batch in (1024, 2):
        monkeypatch.setattr(retrieval, "BATCH", batch)
        assert retrieval.mate_ranks(queries, documents, (2,))[0].tolist() == [[2, 3, 1], [1, 3, 1]]
        assert retrieval.mate_ranks(queries, documents, (1, 2))[0, 0].tolist() == [3, 3, 3]  # all documents tie
    expected = (1 / 2 + 1 / 3 + 1 + 1 + 1 / 3 + 1) / 6
    assert retrieval.mean_reciprocal_ranks([queries, documents], (2,))[0] == pytest.approx(expected)
    lacking = [np.vstack([queries, [[9.0, 1.0]]]), np.vstack([documents, [[np.nan, np.nan]]])]
    assert retrieval.mean_reciprocal_ranks(lacking, (2,))[0] == pytest.approx(expected)
    assert retrieval.mate_ranks(np.ones((3, 2)), np.ones((3, 2)), (2,))[0, 0].tolist() == [
        3,
        3,
        3,
    ]  # ties count against
    assert retrieval.nearest(queries, documents, 1)[0].ravel().tolist() == [1, 2, 2]


def test_sparse_dense_and_frames_give_the_same_scores():
    rng = np.random.default_rng(0)
    views = [np.maximum(v, 0) for v in related(60, 0)]
    fit = gg.PairwiseClusterAnalysis(2, ridge=0.1)
    expected = fit.fit_transform(views)
    layouts = [sparse.csr_matrix(views[0]), pl.DataFrame(views[1]), pd.DataFrame(views[2], index=rng.permutation(60))]
    for a, b in zip(expected, clone(fit).fit_transform(layouts)):
        np.testing.assert_allclose(a, np.asarray(b), atol=1e-9)


def test_linear_weights_explain_the_scores():
    views = related(60, 0)
    fit = gg.PairwiseClusterAnalysis(2, ridge=0.1).fit(views)
    for coef, view, scores in zip(fit.coef_, views, fit.transform(views)):
        by_hand = (view - view.mean(0)) @ coef
        np.testing.assert_allclose(by_hand, scores, atol=1e-9)
    assert gg.PairwiseClusterAnalysis(2, ridge=1.0, kernel="rbf").fit(views).coef_ == [None] * 3


def test_kernels_parameters_and_ridges_per_view():
    views = related(60, 0)
    fit = gg.PairwiseClusterAnalysis(
        2,
        kernel=["linear", "rbf", "polynomial"],
        kernel_params=[None, {"gamma": 0.1}, {"degree": 2}],
        ridge=[0.1, 0.2, 0.3],
    ).fit(views)
    assert fit.ridge_ == (0.1, 0.2, 0.3)
    assert [c is None for c in fit.coef_] == [False, True, True]


@pytest.mark.parametrize("model", MODELS)
def test_scikit_learn_manners(model):
    fit = model(n_components=2, ridge=0.1, background=1.0)
    copy = clone(fit)
    assert copy.get_params() == fit.get_params()
    assert copy.set_params(ridge=0.2).ridge == 0.2
    assert model.__name__ in repr(fit)
    with pytest.raises(NotFittedError):
        fit.transform(related(10, 0))
    views = related(50, 0)
    assert fit.fit(views) is fit
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.labels_, fit.labels_)
    assert fit.n_features_in_ == [8, 6, 7]
    assert [s is None for s in fit.transform([views[0], None, views[2]])] == [False, True, False]
    frames = fit.set_output(transform="pandas").transform([pd.DataFrame(v, index=range(5, 55)) for v in views])
    assert list(frames[0].columns) == list(fit.get_feature_names_out())
    assert frames[1].index[0] == 5
    assert isinstance(fit.set_output(transform="polars").transform(views)[0], pl.DataFrame)
    assert isinstance(fit.set_output(transform="default").transform(views)[0], np.ndarray)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_saved_models_score_the_same(tmp_path, kernel, layout):
    views = related(40, 0)
    views = [layout(v @ v.T if kernel == "precomputed" else v) for v in views]
    fit = gg.PairwiseClusterAnalysis(2, kernel=kernel, ridge=0.5).fit(views)
    fit.save(tmp_path / "model.gingham")
    again = gg.load(tmp_path / "model.gingham")
    for a, b in zip(fit.transform(views), again.transform(views)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again.labels_, fit.labels_)
    assert again.mrr(views) == fit.mrr(views)
    assert again.ridge_ == fit.ridge_


def test_a_function_cannot_be_saved(tmp_path):
    fit = gg.PairwiseClusterAnalysis(1, kernel=lambda a, b: a @ b.T, ridge=1.0).fit(related(20, 0))
    with pytest.raises(GinghamError, match="function"):
        fit.save(tmp_path / "model.gingham")


def test_large_samples_take_the_right_road(monkeypatch):
    from gingham.models.views import fit as multiview

    monkeypatch.setattr(multiview, "EXACT_UP_TO", 50)
    views = related(200, 0)
    linear = gg.PairwiseClusterAnalysis(3, ridge=0.1).fit(views)
    assert linear._functions[0].inputs.anchors is None
    curved = gg.PairwiseClusterAnalysis(3, ridge=0.1, kernel="rbf").fit(views)
    assert curved._functions[0].inputs.anchors.shape == (200, 8)
    assert linear.correlations(related(200, 1)).min() > 0.8


GOOD = related(30, 0)
REFUSED = [
    ({}, [GOOD[0], GOOD[1][:20]], "same number of rows"),
    ({}, GOOD[0], "one matrix per view"),
    ({}, [GOOD[0]], "2 views or more"),
    ({}, [g[:1] for g in GOOD], "three or more"),
    ({}, [GOOD[0], np.where(GOOD[1] > 0, GOOD[1], np.nan)], "view 1 has NaN"),
    ({"ridge": 0}, GOOD, "must be positive"),
    ({"ridge": -1.0}, GOOD, "must be positive"),
    ({"ridge": [0.1, 0.2]}, GOOD, "ridge has 2 entries for 3 views"),
    ({"kernel": "rbff"}, GOOD, "Unknown kernel 'rbff' for view 0"),
    ({"kernel": ["linear", 3, "linear"]}, GOOD, "Unknown kernel 3 for view 1"),
    ({"kernel": "precomputed"}, GOOD, "view 0 must be square"),
    ({"kernel": "precomputed"}, [np.triu(np.ones((5, 5)))] * 2, "not symmetric"),
    ({"kernel": "chi2"}, GOOD, "kernel 'chi2' of view 0 failed"),
    ({"kernel_params": {"gama": 1}, "kernel": "rbf"}, GOOD, "kernel 'rbf' of view 0 failed"),
    ({"kernel_params": 3}, GOOD, "must be a dict"),
    ({"kernel": lambda a, b: np.ones(3)}, GOOD, "must take two matrices"),
    ({"kernel": lambda a, b: np.full((len(a), len(b)), np.nan)}, GOOD, "NaN or infinity"),
    ({"n_components": 0}, GOOD, "integer"),
    ({"n_components": 1.5}, GOOD, "integer"),
    ({"n_components": 400}, GOOD, "between 1 and 21"),
    ({"solver": "fast"}, GOOD, "solver='fast' is unknown"),
    ({"solver": "primal", "kernel": "rbf"}, GOOD, "needs linear kernels"),
    ({"ridge": None, "cv": 40}, GOOD, "cv=40"),
]


@pytest.mark.parametrize(("params", "views", "sentence"), REFUSED)
def test_bad_input_gets_a_sentence(params, views, sentence):
    settings = {"n_components": 2, "ridge": 0.1, **params}
    with pytest.raises(GinghamError, match=sentence):
        gg.PairwiseClusterAnalysis(**settings).fit(views)


def test_bad_requests_get_a_sentence():
    fit = gg.PairwiseClusterAnalysis(2, ridge=0.1).fit(GOOD)
    with pytest.raises(GinghamError, match="no view 3"):
        fit.scores(3, GOOD[0])
    with pytest.raises(GinghamError, match="view 0 has 6 columns; it was fitted with 8"):
        fit.scores(0, GOOD[1])
    with pytest.raises(GinghamError, match="between 1 and 30"):
        fit.retrieve(0, GOOD[0], 1, GOOD[1], n_documents=31)
    with pytest.raises(GinghamError, match="4 views given, 3 were fitted"):
        fit.predict([*GOOD, GOOD[0]])
    with pytest.raises(GinghamError, match="3 views or more"):
        fit.mrr(GOOD[:2])


@pytest.mark.parametrize("kind", MODELS)
def test_single_precision_chooses_as_double(kind, monkeypatch):
    views = related(450, 3)
    single = kind(2, random_state=0).fit(views)
    monkeypatch.setattr(heldout, "SINGLE_FROM", 451)
    double = kind(2, random_state=0).fit(views)
    assert single.choice_.counts == double.choice_.counts == (2,)
    assert not np.array_equal(single.choice_.correlations, double.choice_.correlations)  # it was in single precision
    np.testing.assert_allclose(single.choice_.correlations, double.choice_.correlations, atol=1e-4)
    np.testing.assert_allclose(single.choice_.mates, double.choice_.mates, atol=1e-3)
    assert single.ridge_ == double.ridge_
    np.testing.assert_allclose(single.transform(views)[0], double.transform(views)[0], rtol=1e-12)
