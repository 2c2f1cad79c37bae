"""What people see is what was fitted: frames, explanations and pages show the clusters and errors of the model."""

from __future__ import annotations

import functools
import io
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import (
    adjusted_rand_score,
    log_loss,
    mean_absolute_error,
    root_mean_squared_error,
    zero_one_loss,
)  # fmt: skip

import gingham as gg
from gingham.cli.app import run
from gingham.report.page import predictor
from gingham.report.summary import summarize
from gingham.summary.make_summary import summarize_observed
from gingham.summary.measure import folds_of
from gingham.summary.sizes import own_clusters
from gingham.summary.values import smoothed_lift
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
NOT_MEASURED = NO_PREDICTIONS
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
    for number, (side, labels) in enumerate(zip(summary.sides, model.summary_.labels_at())):
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
        shown = model.summary_.labels_at()[at]
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
        with pytest.raises(gg.GinghamError, match="does not predict"):
            model.explain(row)
        return
    found = model.explain(row)
    assert sum(value for _, value in found.account) == pytest.approx(found.total, abs=1e-9)
    if not isinstance(found.prediction, str):
        assert found.total == found.prediction


MEASURED = {  # by scikit-learn's own functions
    "quadratic": lambda y, said, w: root_mean_squared_error(y, said, sample_weight=w),
    "absolute": lambda y, said, w: mean_absolute_error(y, said, sample_weight=w),
    "zero-one": lambda y, said, w: zero_one_loss(y, said if said.ndim == 1 else said.argmax(axis=1), sample_weight=w),
    "log": lambda y, said, w: log_loss(y, said, sample_weight=w, labels=range(said.shape[1])),
}


def nats_of_counts(observed, clusters, held) -> float:
    """The log loss of held-out counts under blocks and margins of the others; unknown items have no blocks."""
    relation = observed.relations[0]
    seen, asked = relation.take(~held), relation.take(held)
    nats = np.zeros(held.sum())
    for code, side in zip(range(len(relation.sides)), relation.sides):
        mass = np.bincount(seen.codes[code], seen.weight, observed.shape[side])
        nats -= np.log((mass + 1 / len(mass)) / (mass.sum() + 1))[asked.codes[code]]
    labels = own_clusters(observed.with_first(seen), clusters)
    for i, j in relation.pairs():
        (a, b), (rows, columns) = (labels[relation.sides[at]] for at in (i, j)), seen.pair(i, j).codes
        sums = np.zeros((a.max() + 1, b.max() + 1))
        np.add.at(sums, (a[rows], b[columns]), seen.pair(i, j).weight)
        lift = smoothed_lift(sums)
        known = np.isin(asked.codes[i], rows) & np.isin(asked.codes[j], columns)
        nats -= np.where(known, np.log(lift[a[asked.codes[i]], b[asked.codes[j]]]), 0.0)
    return float(np.average(nats, weights=asked.weight))


@pytest.mark.parametrize("kind", KINDS)
def test_the_reported_error_equals_a_direct_computation(fitted, kind) -> None:
    model = fitted[kind]
    errors = model.summary_.errors
    if errors is None or errors.model is None:
        assert kind in NOT_MEASURED
        return
    observed = model._observed()
    relation = observed.relations[0]
    parts = folds_of(relation.n_entries, 0)
    refits = [observed.refit(~held) for held in parts]
    if errors.loss == "mass":
        found = [nats_of_counts(observed, refit.clusters, held) for refit, held in zip(refits, parts)]
        weights = [relation.weight[held].sum() for held in parts]
        assert errors.model == pytest.approx(np.average(found, weights=weights), rel=1e-6)
        return
    y = np.concatenate([np.asarray(relation.values)[held] for held in parts])
    said = np.concatenate([np.asarray(refit.predictions) for refit in refits])
    weights = np.concatenate([relation.weight[held] for held in parts])
    assert errors.model == pytest.approx(MEASURED[errors.loss](y, said, weights), rel=1e-6)
    assert errors.n_held == pytest.approx(weights.sum())


def test_the_model_that_is_measured_is_the_same_model() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 40, 1500), rng.integers(0, 30, 1500)])
    y = np.where((X[:, 0] % 2) == (X[:, 1] % 2), 4.0, 2.0) + rng.normal(size=1500)
    make = functools.partial(gg.CoClusteringRegressor, (2, 2), loss="quadratic", beta=1.0, offsets=False)
    model = make(random_state=0).fit(X, y)
    said = np.empty(1500)
    for held in folds_of(len(y), 0):
        said[held] = make(random_state=0).fit(X[~held], y[~held]).predict(X[held])
    assert model.summary_.errors.model == pytest.approx(root_mean_squared_error(y, said), rel=1e-6)


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
        assert model.summary_.size == tuple(finest)
        for truth, own, shown in zip((rows, columns), model.labels_, model.summary_.labels_at()):
            assert adjusted_rand_score(truth, shown) == adjusted_rand_score(truth, own)


def single(loss: str) -> gg.CoClusteringClassifier:
    return gg.CoClusteringClassifier((2, 2), loss=loss, beta=2.0, random_state=0)


def committee(loss: str) -> gg.Committee:
    return gg.Committee(single(loss), n_members=3, random_state=0)


@pytest.mark.parametrize("make", [single, committee])
@pytest.mark.parametrize("loss", ["log", "zero-one"])
def test_classes_are_summarised_alike_whether_they_are_numbers_or_words(make, loss) -> None:
    rng = np.random.default_rng(0)
    X = np.argwhere(rng.random((50, 40)) < 0.5)
    y = (X.sum(axis=1) % 2) ^ (rng.random(len(X)) < 0.1)
    models = [make(loss).fit(X, labels) for labels in (np.array(["no", "yes"])[y], y)]
    words, numbers = (model.summary_ for model in models)
    assert numbers.tables[0].measure == "labels"
    assert numbers.errors.loss == loss
    assert numbers.errors == words.errors
    assert numbers.errors.model < numbers.errors.scores["label shares" if loss == "log" else "the commonest label"]
    for model in models:
        for row in ((0, 0), (0, 1)):
            found = model.explain(row)
            assert found.prediction == str(model.predict([row])[0])
            assert found.total == pytest.approx(model.predict_proba([row]).max(), abs=1e-9)


@pytest.mark.parametrize("loss", ["absolute", "quadratic"])
def test_a_committee_is_measured_by_the_loss_of_its_members(loss) -> None:
    rng = np.random.default_rng(0)
    X = np.argwhere(rng.random((40, 30)) < 0.5)
    y = 3 + X.sum(axis=1) % 2 + rng.integers(0, 2, len(X))
    member = gg.CoClusteringRegressor((2, 2), loss=loss, beta=2.0, alphabet=(3, 4, 5))
    assert gg.Committee(member, n_members=2, random_state=0).fit(X, y).summary_.errors.loss == loss


SCALE = range(8)


def ratings(n_rows: int = 60, n_columns: int = 40):
    rng = np.random.default_rng(0)
    X = np.argwhere(rng.random((n_rows, n_columns)) < 0.5)
    means = np.array([[5, 2, 3], [1, 4, 3], [3, 2, 5]])
    y = means[X[:, 0] % 3, X[:, 1] % 3] + rng.integers(-1, 2, len(X)) + X[:, 0] % 2
    return X, y


def many_clusterings():
    member = gg.CoClusteringRegressor((3, 3), loss="quadratic", beta=1.0, offsets=False)
    return {
        "layers": gg.LayeredCoClusteringRegressor(n_layers=2, effort="fast", random_state=0),
        "committee": gg.Committee(member, n_members=3, random_state=0),
    }


@pytest.mark.parametrize("name", many_clusterings())
def test_a_distilled_checkerboard_is_a_model_of_the_clusters_that_are_shown(name) -> None:
    X, y = ratings()
    seen = np.random.default_rng(1).random(len(y)) < 0.8
    model = many_clusterings()[name].fit(X[seen], y[seen])
    summary = model.summary_
    assert summary.found
    assert f"reproduces {min(summary.fidelity, 1):.0%} of what the model gains over averages" in str(summary)
    assert summary.distilled in model._card()
    assert summarize(summary, None, predictor(model))["distilled"] == summary.distilled
    board = gg.simplify(model, X[seen], y[seen])
    for own, shown in zip(board.labels_, summary.labels_at()):
        assert (own == shown).all()
    # It is as good as the summary says: this part of what the model gains over the averages.
    averages = gg.CoClusteringRegressor((1, 1), loss="quadratic", offsets=True).fit(X[seen], y[seen])
    squares = [np.mean((one.predict(X[~seen]) - y[~seen]) ** 2) for one in (averages, board, model)]
    assert (squares[0] - squares[1]) / (squares[0] - squares[2]) == pytest.approx(summary.fidelity, abs=0.15)
    assert gg.certify(board, X[~seen], y[~seen], bound="holdout", alphabet=SCALE).value >= squares[1]
    with pytest.raises(gg.GinghamError, match="that the model was fitted on"):
        gg.certify(board, X[seen], y[seen], bound="holdout", alphabet=SCALE)
    assert gg.simplify(model, X[seen], y[seen], max_clusters=(2, 3)).n_clusters_ == (2, 3)
    with pytest.raises(gg.GinghamError, match="max_clusters"):
        gg.simplify(model, X[seen], y[seen], max_loss=1.0)


def test_layers_are_listed_where_one_checkerboard_says_little() -> None:
    X, y = ratings()
    observed = many_clusterings()["layers"].fit(X, y)._observed()
    half = replace(observed, refit=lambda kept: halved(observed.refit(kept)))
    for given, listed in ((observed, 0), (half, 3)):
        summary = summarize_observed(given)
        assert summary.found
        assert (summary.fidelity < 1 / 3) == (listed > 0)
        assert len(summary.layers) == listed
        for layer in summary.layers:
            assert layer.values.shape == (len(layer.rows), len(layer.columns))
            assert all(layer.rows + layer.columns)


def halved(refit):
    """A board whose blocks say little of what they could, beside the same predictions."""
    return refit._replace(blocks=0.1 * refit.blocks)


def page_of(path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.S)
    return json.loads(found.group(1))


def cut_of_page(side: dict, k: int) -> np.ndarray:
    """The group (from 0) of each leaf with k groups, from the merges and the order that a page holds."""
    n = len(side["order"])
    below = {leaf: [leaf] for leaf in range(n)}
    for t, (a, b) in enumerate(side["merges"][: n - k]):
        below[n + t] = below.pop(a) + below.pop(b)
    place = {leaf: at for at, leaf in enumerate(side["order"])}
    groups = np.empty(n, dtype=int)
    for number, leaves in enumerate(sorted(below.values(), key=lambda some: min(place[leaf] for leaf in some))):
        groups[leaves] = number
    return groups


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_line_and_the_page_say_what_the_model_says(fitted, kind, tmp_path, capsys) -> None:
    model, file, html = fitted[kind], tmp_path / "m.gingham", tmp_path / "page.html"
    summary = model.summary_
    model.save(file)
    model.report(html)

    def printed(*arguments: str) -> str:
        capsys.readouterr()
        assert run([arguments[0], str(file), *arguments[1:]]) == 0
        return capsys.readouterr().out

    finest = [min(len(side.fine), side.n_leaves) for side in summary.sides]
    for size, asked in ((summary.size, ()), (finest, ("--size", "all"))):
        frame = pl.read_csv(io.StringIO(printed("describe", "--items", *asked)), infer_schema=False)
        rows = pl.read_csv(io.StringIO(printed("describe", *asked)), infer_schema=False)
        shown = [labels + 1 for labels in model.labels_at(size)]
        assert frame["cluster"].cast(int).to_list() == np.concatenate(shown).tolist()
        assert frame["item"].to_list() == [str(item) for side in summary.sides for item in side.items.tolist()]
        assert rows["items"].cast(int).to_list() == [n for own in shown for n in np.bincount(own)[1:].tolist()]
    for own, labels in zip(LABELS.get(kind, lambda _: ())(model), model.labels_at(finest)):
        assert same_partition(own, labels)
    page = page_of(html)
    assert tuple(page["size"]) == summary.size
    for side, own, labels, k in zip(page["sides"], summary.sides, model.labels_at(), summary.size):
        assert cut_of_page(side, k)[side["items"]["leaf"]].tolist() == labels[own.listed()].tolist()
    if summary.errors is not None:
        assert dict(page["errors"]["scores"]) == pytest.approx(summary.errors.scores, rel=1e-3)
        assert page["errors"]["unit"] == summary.errors.unit
    if kind not in NO_PREDICTIONS:
        row = tuple(summary.sides[at].items.tolist()[0] for at in model._row_sides())
        if kind == "TreeCoClustering":  # its roots are combinations that only the data know
            return
        loaded = gg.load(file).explain(row)
        assert printed("explain", *map(str, row)).split() == str(loaded).split()
        assert dict(loaded.account) == pytest.approx(dict(model.explain(row).account), abs=1e-9)


def test_a_regressor_explains_the_number_that_it_predicts_whatever_its_loss() -> None:
    X, y = ratings()
    for loss in ("log", "zero-one", "absolute"):
        model = gg.CoClusteringRegressor((3, 3), loss=loss, beta=1.0, alphabet=SCALE, random_state=0).fit(X, y)
        told = model.explain((0, 1))
        assert told.prediction == told.total == pytest.approx(model.predict([(0, 1)])[0], abs=1e-9)
        assert sum(value for _, value in told.account) == pytest.approx(told.total, abs=1e-9)
    chance = gg.CoClusteringRegressor((3, 3), loss="log", beta=1.0, alphabet=SCALE, random_state=0).fit(X, y)
    assert chance.explain((0, 1), label="5").total == pytest.approx(chance.predict_distribution([(0, 1)])[0, 5])


def growing(name: str):
    grid = gg.CoClusteringRegressor((3, 3), loss="quadratic", beta=2.0, random_state=0, offsets=name == "offsets")
    if name == "classes":
        return gg.CoClusteringClassifier((3, 3), beta=2.0, random_state=0)
    return {"committee": gg.Committee(grid, n_members=2, random_state=0)}.get(name, grid)


def new_rows(name: str):
    X, y = ratings()
    later = np.array([(100, column) for column in range(12)])
    labels = np.array([5, 2, 3] * 4)
    if name == "classes":
        return X, (y > 3).astype(int), later, (labels > 3).astype(int)
    return X, y, later, labels


def check_shown(model, n_items, own) -> None:
    """What people see has all items of the model, in the clusters of the model."""
    summary, frame = model.summary_, model.to_frame(backend="polars")
    assert tuple(side.n_items for side in summary.sides) == n_items
    assert len(frame) == sum(n_items)
    assert model.describe(backend="polars")["items"].sum() == sum(n_items)
    for mine, labels, side in zip(own, model.labels_at([len(side.fine) for side in summary.sides]), summary.sides):
        assert same_partition(mine, labels)
        assert side.memberships(side.n_leaves).sum(axis=1) == pytest.approx(1.0, abs=1e-3)
    told = model.explain((100, 1))
    assert sum(value for _, value in told.account) == pytest.approx(told.total, abs=1e-9)
    group = frame.filter((pl.col("side") == "row") & (pl.col("item") == "100"))["cluster"].item()
    assert told.places[0].cluster == group


@pytest.mark.parametrize("seen_before", [False, True], ids=["", "summary made before"])
@pytest.mark.parametrize("name", ["plain", "offsets", "classes", "committee"])
def test_items_that_were_folded_in_are_shown_in_the_clusters_of_the_model(name, seen_before) -> None:
    X, y, later, labels = new_rows(name)
    model = growing(name).fit(X, y)
    if seen_before:
        assert model.summary_.sides[0].n_items == 60
    model.fold_in(later, labels)
    own = () if name == "committee" else model.labels_
    check_shown(model, (61, 40), own)
    assert model.summary_.sides[0].mass[60] == 12


@pytest.mark.parametrize("name", ["plain", "offsets", "classes"])
def test_a_growing_table_is_shown_as_it_is(name) -> None:
    X, y, later, labels = new_rows(name)
    model = growing(name)
    model.partial_fit(X, y)
    assert model.summary_.sides[0].n_items == 60
    model.partial_fit(later, labels)
    check_shown(model, (61, 40), model.labels_)
    assert model.summary_.n_observed == len(y) + 12


@pytest.mark.parametrize("name", ["plain", "offsets", "classes"])
def test_a_loaded_model_shows_what_was_folded_in_since(name, tmp_path) -> None:
    X, y, later, labels = new_rows(name)
    model = growing(name).fit(X, y)
    known = model.summary_
    model.save(tmp_path / "m.gingham")
    loaded = gg.load(tmp_path / "m.gingham").fold_in(later, labels)
    check_shown(loaded, (61, 40), loaded.labels_)
    assert loaded.summary_.errors is None  # those were measured of the model before
    assert loaded.recommend(100, n=3, seen=later, backend="polars")["item"].is_in(range(12)).sum() == 0
    assert [side.n_items for side in known.sides] == [60, 40]


def test_a_simplified_model_shows_its_own_clusters() -> None:
    X, y = ratings()
    model = growing("plain").fit(X, y)
    assert model.summary_.sides[0].n_items == 60
    small = gg.simplify(model, X, y, max_clusters=2)
    assert small.labels_at((2, 2))[0].max() == 1
    for own, shown in zip(small.labels_, small.labels_at([len(side.fine) for side in small.summary_.sides])):
        assert same_partition(own, shown)


def test_a_committee_can_be_updated() -> None:
    X, y, later, labels = new_rows("committee")
    model = growing("committee").fit(X, y)
    assert model.update(later, labels).summary_.sides[0].n_items == 61
