"""What people see is what was fitted: frames, explanations and pages show the clusters and errors of the model."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.report.page import predictor
from gingham.report.summary import summarize
from gingham.summary.make_summary import folds_of
from model_examples import discovered, examples

EXAMPLES = {type(example.model).__name__: example for example in reversed(examples())}
# Models whose public labels are those of the sides that their summary shows, by side.
LABELS = {
    "CoClusteringRegressor": lambda model: model.labels_,
    "CoClusteringClassifier": lambda model: model.labels_,
    "BayesianCoClustering": lambda model: model.labels_,
    "JointCoClustering": lambda model: tuple(model.labels_.values()),
    "GraphClustering": lambda model: (model.labels_,),
    "CoOccurrenceClustering": lambda model: (model.row_labels_, model.column_labels_),
    "InformationClustering": lambda model: (model.labels_,),
}
NOT_SUMMARISED = ("ExplanatoryClustering",)  # it weighs clusterings that others made
NO_PREDICTIONS = ("PairwiseClusterAnalysis", "KernelCCA")  # of pairs of items
KINDS = tuple(sorted(set(discovered()) - set(NOT_SUMMARISED)))


@pytest.fixture(scope="module")
def fitted():
    return {kind: EXAMPLES[kind].fit() for kind in KINDS}


def same_partition(a, b) -> bool:
    return adjusted_rand_score(np.asarray(a), np.asarray(b)) == 1.0


@pytest.mark.parametrize("kind", sorted(LABELS))
def test_the_finest_level_of_a_summary_is_the_partition_of_the_model(fitted, kind) -> None:
    model = fitted[kind]
    for side, own in zip(model.summary_.sides, LABELS[kind](model)):
        assert same_partition(side.labels_at(len(side.fine)), own)
        assert side.n_fine(1).tolist() == [len(np.unique(own))]


@pytest.mark.parametrize("kind", sorted(LABELS))
def test_every_level_merges_clusters_of_the_model_and_splits_none(fitted, kind) -> None:
    model = fitted[kind]
    for at, own in enumerate(LABELS[kind](model)):
        side = model.summary_.sides[at]
        for k in range(1, len(side.fine) + 1):
            labels = side.labels_at(k)
            assert len(np.unique(labels)) == k
            assert all(len(np.unique(labels[own == cluster])) == 1 for cluster in np.unique(own))


@pytest.mark.parametrize("kind", KINDS)
def test_frames_pages_and_levels_agree(fitted, kind) -> None:
    model = fitted[kind]
    summary = model.summary_
    frame, described = model.to_frame(backend="polars"), model.describe(backend="polars")
    page = summarize(summary, None, predictor(model))
    at = 0
    for number, (side, labels) in enumerate(zip(summary.sides, model.labels_at())):
        mine = frame.slice(at, side.n_items)
        at += side.n_items
        assert (mine["cluster"].to_numpy() - 1).tolist() == labels.tolist()
        shown = described.filter(pl.col("side") == side.name)["items"].to_list()
        assert shown[: summary.size[number]] == np.bincount(labels).tolist()
        leaves = np.array(page["sides"][number]["items"]["leaf"])
        assert side.groups(summary.size[number])[leaves].tolist() == labels[side.listed()].tolist()


@pytest.mark.parametrize("kind", ["CoClusteringRegressor", "CoClusteringClassifier"])
def test_memberships_are_sums_of_the_model_s_own(fitted, kind) -> None:
    model = fitted[kind]
    for at, (own, q) in enumerate(zip(model.labels_, model.assign_)):
        shown = model.labels_at()[at]
        found = model.summary_.memberships(at)
        for group in np.unique(shown):
            parts = np.unique(own[shown == group])
            assert found[:, group] == pytest.approx(q[:, parts].sum(axis=1), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_an_explanation_sum_to_the_prediction(fitted, kind) -> None:
    model = fitted[kind]
    sides = [model.summary_.sides[side] for side in model._row_sides()]
    row = tuple(side.items.tolist()[0] for side in sides)
    if kind in NO_PREDICTIONS:
        with pytest.raises(gg.GinghamError, match="predicts nothing"):
            model.explain(row)
        return
    found = model.explain(row)
    assert sum(value for _, value in found.account) == pytest.approx(found.total, abs=1e-9)
    if not isinstance(found.prediction, str):
        assert found.total == found.prediction


def test_the_reported_error_is_that_of_the_same_model_fitted_without_the_rows() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 40, 1500), rng.integers(0, 30, 1500)])
    y = np.where((X[:, 0] % 2) == (X[:, 1] % 2), 4.0, 2.0) + rng.normal(size=1500)
    model = gg.CoClusteringRegressor((2, 2), loss="quadratic", beta=1.0, offsets=False, random_state=0).fit(X, y)
    squares = []
    for held in folds_of(len(y), 0):
        again = gg.CoClusteringRegressor((2, 2), loss="quadratic", beta=1.0, offsets=False, random_state=0)
        squares.append((again.fit(X[~held], y[~held]).predict(X[held]) - y[held]) ** 2)
    assert model.summary_.errors.model == pytest.approx(np.sqrt(np.concatenate(squares).mean()), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_planted_grids_are_shown_as_they_were_found(seed) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 4, 80), rng.integers(0, 4, 60)
    means = rng.permutation(np.repeat([1.0, 2.0, 4.0, 5.0], 4)).reshape(4, 4)
    X = np.argwhere(rng.random((80, 60)) < 0.5)
    y = means[rows[X[:, 0]], columns[X[:, 1]]] + 0.5 * rng.normal(size=len(X))
    for sizes in ((4, 4), "auto"):
        model = gg.CoClusteringRegressor(sizes, loss="quadratic", random_state=0).fit(X, y)
        finest = [len(np.unique(own)) for own in model.labels_]
        for truth, own, shown in zip((rows, columns), model.labels_, model.labels_at(finest)):
            assert adjusted_rand_score(truth, shown) == adjusted_rand_score(truth, own)
        if sizes != "auto":
            assert model.summary_.size == tuple(finest)


@pytest.mark.parametrize("loss", ["log", "zero-one"])
def test_classes_are_summarised_alike_whether_they_are_numbers_or_words(loss) -> None:
    rng = np.random.default_rng(0)
    X = np.argwhere(rng.random((50, 40)) < 0.5)
    y = (X.sum(axis=1) % 2) ^ (rng.random(len(X)) < 0.1)
    words, numbers = (
        gg.CoClusteringClassifier((2, 2), loss=loss, random_state=0).fit(X, labels).summary_
        for labels in (np.array(["no", "yes"])[y], y)
    )
    assert numbers.tables[0].measure == "labels"
    assert numbers.errors.loss == loss
    assert numbers.errors == words.errors
    assert numbers.errors.model < numbers.errors.scores[1].value
