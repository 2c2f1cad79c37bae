"""certify_progressive for every family and for other libraries: who is tested on what, what is covered, saving."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import gingham as gg
from gingham.certificates.progressive import Plan, choose_nu, combined_losses, draws_in_order, progressive_bound
from gingham.models.layers import Sampler

STARS = range(1, 6)


def planted(n=900, seed=0, noise=0.15):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 14, (n, 2))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    return X, np.where(rng.random(n) < noise, rng.integers(1, 6, n), y)


class Recorder(RegressorMixin, BaseEstimator):
    """Predicts the mean, and remembers what it was shown."""

    log: list = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.seen_ = dict(zip(X[:, 0].tolist(), weights.tolist()))
        self.mean_ = float(np.average(y, weights=weights))
        Recorder.log.append(("fit", self.seen_))
        return self

    def predict(self, X):
        if len(X) > 1:  # single rows are asked about once more, to see that others do not change their answer
            Recorder.log.append(("predict", X[:, 0].tolist()))
        return np.full(len(X), self.mean_)


FAMILIES = {
    "regressor": gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0),
    "regressor, auto": gg.CoClusteringRegressor("auto", beta=1.0, alphabet=STARS, random_state=0),
    "quadratic": gg.CoClusteringRegressor(2, loss="quadratic", bounds=(1, 5), random_state=0),
    "classifier": gg.CoClusteringClassifier(2, alphabet=STARS, random_state=0),
    "log": gg.CoClusteringClassifier(2, loss="log", alphabet=STARS, random_state=0),
    "layered": gg.LayeredCoClusteringRegressor(
        2, 2, alphabet=STARS, sampler=Sampler(n_sweeps=30, n_chains=1), random_state=0
    ),
    "committee": gg.Committee(gg.CoClusteringRegressor(2, alphabet=STARS), n_members=2, random_state=0),
    "tree": gg.TreeCoClustering((2, 2), alphabet=STARS, random_state=0),
    "bayesian": gg.BayesianCoClustering(2, bounds=(1, 5), concentration=0.5, random_state=0),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_certified_saved_and_loaded(name, tmp_path):
    X, y = planted()
    model = FAMILIES[name]
    before = clone(model)
    certificate = gg.certify_progressive(model, X, y, blocks=3, random_state=3)
    assert repr(model) == repr(before)
    assert certificate.empirical < certificate.value < certificate.worst
    assert certificate.n_observations == 270
    predictor = certificate.model
    assert len(predictor.members_) == 3
    assert predictor.shares_.sum() == pytest.approx(1.0)
    predictor.save(tmp_path / "model.gingham")
    again = gg.load(tmp_path / "model.gingham")
    assert (again.predict(X[:40], random_state=1) == predictor.predict(X[:40], random_state=1)).all()
    assert again.shares_.tolist() == predictor.shares_.tolist()
    again.save(tmp_path / "again.gingham")
    assert (tmp_path / "again.gingham").read_bytes() == (tmp_path / "model.gingham").read_bytes()


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (KNeighborsRegressor(3), {"label_bounds": (1, 5)}),
        (DecisionTreeClassifier(random_state=0), {"alphabet": STARS}),
        (LinearRegression(), {"label_bounds": (1, 5), "clip": True, "loss": "quadratic"}),
    ],
)
def test_any_predictor_of_anyone(model, options, tmp_path):
    X, y = planted()
    certificate = gg.certify_progressive(model, X, y, random_state=0, **options)
    assert certificate.value > certificate.empirical
    assert not hasattr(model, "n_features_in_")  # the caller's own is left alone
    with pytest.raises(gg.GinghamError, match="another library's model"):
        certificate.model.save(tmp_path / "model.gingham")


def test_every_draw_is_tested_once_by_a_member_that_has_not_seen_it():
    rng = np.random.default_rng(0)
    X, y = np.column_stack([np.arange(200), np.zeros(200, int)]), rng.integers(1, 6, 200)
    Recorder.log = []
    certificate = gg.certify_progressive(Recorder(), X, y, alphabet=STARS, blocks=4, random_state=1)
    fits = [set(seen) for kind, seen in Recorder.log if kind == "fit"]
    tests = [set(rows) for kind, rows in Recorder.log if kind == "predict"]
    assert [len(seen) for seen in fits] == [112, 140, 155, 170, 185]
    assert [set(one.seen_) for one in (certificate.model.pilot_, *certificate.model.members_)] == fits
    for seen, tested in zip(fits, tests):
        assert not seen & tested
    assert fits[1] == fits[0] | tests[0]  # the first member has learned the whole warm-up
    assert set.union(*tests[1:]) == set(range(200)) - fits[1]
    assert certificate.n_observations == 60


def test_the_value_by_hand_with_a_constant_predictor():
    X, y = planted()
    model = DummyRegressor(strategy="constant", constant=3.0)
    certificate = gg.certify_progressive(model, X, y, label_bounds=(1, 5), random_state=4, delta=0.1)
    order = np.random.default_rng(4).permutation(900)
    warm_up, tested = order[:630], order[630:]
    losses = np.abs(y - 3.0) / 4
    tuning = losses[warm_up[504:]]
    nu = max(tuning.mean() + tuning.std() * np.sqrt(270 / (2 * np.log(10))), 1.001)
    assert certificate.parameters["nu"] == pytest.approx(nu)
    value = nu - np.exp(np.log(nu - losses[tested]).mean() - np.log(10) / 270)
    assert certificate.value == pytest.approx(4 * value)
    assert progressive_bound(float(np.log1p(-losses[tested] / nu).sum()), 270, nu, np.log(10)) == pytest.approx(value)


def test_weights_are_draws():
    X, y = planted(300)
    counts = np.random.default_rng(1).integers(0, 5, 300)
    X[:, 0] = np.arange(300)
    Recorder.log = []
    certificate = gg.certify_progressive(
        Recorder(), X, y, sample_weight=counts, alphabet=STARS, blocks=2, random_state=0
    )
    assert certificate.n_observations == counts.sum() - int(0.7 * counts.sum())
    last = [seen for kind, seen in Recorder.log if kind == "fit"][-1]
    assert any(0 < last[row] < counts[row] for row in last)  # a line is divided
    assert any("w independent draws" in a.text and a.status == "given" for a in certificate.assumptions)
    repeated = np.repeat(np.arange(300), counts)  # written out they look like copies, which are no draws
    with pytest.raises(gg.RefusedCertificate, match="counts as weights"):
        gg.certify_progressive(Recorder(), X[repeated], y[repeated], alphabet=STARS, blocks=2, random_state=0)


def test_models_without_weights_see_repeated_rows():
    X, y = planted(300)
    counts = np.random.default_rng(1).integers(1, 4, 300)
    certificate = gg.certify_progressive(
        KNeighborsRegressor(3), X, y, sample_weight=counts, alphabet=STARS, random_state=0
    )
    assert certificate.n_observations == counts.sum() - int(0.7 * counts.sum())


def test_weights_that_are_no_counts_are_refused():
    X, y = planted(100)
    with pytest.raises(gg.RefusedCertificate, match=r"0\.5 in row 0"):
        gg.certify_progressive(Recorder(), X, y, sample_weight=np.full(100, 0.5), alphabet=STARS)


def test_a_seed_is_drawn_afresh_and_recorded():
    X, y = planted(300)
    first, second = (gg.certify_progressive(Recorder(), X, y, alphabet=STARS) for _ in range(2))
    assert first.parameters["seed"] != second.parameters["seed"]
    again = gg.certify_progressive(Recorder(), X, y, alphabet=STARS, random_state=int(first.parameters["seed"]))
    assert again.value == first.value
    assert any("drawn afresh" in a.text and a.status == "checked" for a in first.assumptions)
    assert any("chosen without looking" in a.text and a.status == "given" for a in again.assumptions)


def test_arrival_keeps_the_order():
    X, y = planted(300)
    Recorder.log = []
    X[:, 0] = np.arange(300)
    certificate = gg.certify_progressive(Recorder(), X, y, alphabet=STARS, order="arrival", blocks=2)
    assert Recorder.log[-1] == ("predict", list(range(255, 300)))
    assert "seed" not in certificate.parameters
    assert any("order in which they arrived" in a.text for a in certificate.assumptions)


def test_losses_that_are_not_convex_cover_a_drawn_member():
    X, y = planted()
    certificate = gg.certify_progressive(gg.CoClusteringClassifier(2, "zero-one", alphabet=STARS, random_state=0), X, y)
    assert certificate.predictor == "member drawn by its share"
    predictor = certificate.model
    predictor.members_ = tuple(_Constant(label) for label in (1, 2, 3, 4, 5, 5))
    predictor.shares_ = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    found = np.bincount(predictor.predict(np.zeros((20_000, 2)), random_state=0), minlength=6) / 20_000
    assert found[1:] == pytest.approx([0.5, 0.1, 0.1, 0.1, 0.2], abs=0.02)


class _Constant:
    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)


def test_convex_losses_cover_the_weighted_mean():
    X, y = planted()
    certificate = gg.certify_progressive(gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0), X, y)
    assert certificate.predictor == "mean of the members"
    predictor = certificate.model
    predictor.members_, predictor.shares_ = (_Constant(1.0), _Constant(5.0)), np.array([0.25, 0.75])
    assert predictor.predict(X[:3]).tolist() == [4.0] * 3
    whole = predictor.predict(np.zeros((20_000, 2)), random_state=0, drawn=True)  # stars stay stars
    assert set(whole) == {1.0, 5.0}
    assert np.mean(whole == 5) == pytest.approx(0.75, abs=0.02)


def test_rules_and_frames():
    X, y = planted()
    frame = pd.DataFrame(X, columns=["user", "film"])
    model = gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0)
    certificate = gg.certify_progressive(model, frame, y, rule="median", random_state=0)
    assert set(np.unique(certificate.model.members_[0].predict(frame, rule="median"))) <= set(STARS)
    assert certificate.value == gg.certify_progressive(model, X, y, rule="median", random_state=0).value


def test_warm_starts_agree_with_fits_anew():
    X, y = planted()
    model = gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0)
    warm = gg.certify_progressive(model, X, y, random_state=0)
    anew = lambda _, X, y, counts: clone(model).fit(X, y)  # noqa: E731
    cold = gg.certify_progressive(model, X, y, random_state=0, fit=anew)
    assert warm.value == pytest.approx(cold.value, abs=0.05)
    assert warm.model.members_[-1].start == "spectral"  # what a file keeps is the caller's own setting


class Grower(RegressorMixin, BaseEstimator):
    """Learns on from what it has, and keeps every draw that it was shown."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y):
        raise AssertionError("it should grow")

    def partial_fit(self, X, y, sample_weight=None):
        times = np.ones(len(y), int) if sample_weight is None else sample_weight
        self.learned_ = [*getattr(self, "learned_", ()), *np.repeat(X[:, 0], times).tolist()]
        return self

    def fold_in(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), 3.0)


def test_models_that_grow_learn_every_draw_once():
    X, y = np.column_stack([np.arange(200), np.zeros(200, int)]), np.arange(200) % 5 + 1
    counts = 1 + (np.arange(200) % 4 == 0)
    for weights in (None, counts):
        found = gg.certify_progressive(
            Grower(), X, y, sample_weight=weights, alphabet=STARS, blocks=4, loss="absolute", random_state=1
        )
        n = 200 if weights is None else 250
        order = draws_in_order(200, weights, "shuffle", 1)
        models = [found.model.pilot_, *found.model.members_]
        plan = Plan.of(n, 0.7, 4)
        for model, start in zip(models, (plan.pilot, *plan.edges)):
            assert sorted(model.learned_) == sorted(order[:start].tolist())
    assert {one.code: one.status for one in found.assumptions}["members fitted outside"] == "given"


def test_models_that_name_no_loss_and_distributions_of_regressors():
    X, y = planted(200)
    model = gg.CoClusteringRegressor(2, random_state=0)
    for labels, loss in (({"bounds": (1, 5)}, "quadratic"), ({"alphabet": STARS}, "absolute")):
        assert gg.certify_progressive(clone(model).set_params(**labels), X, y, blocks=2).loss == loss
    found = gg.certify_progressive(clone(model).set_params(alphabet=STARS), X, y, blocks=2, loss="ranked-probability")
    assert found.empirical < found.worst
    assert not hasattr(found.model.members_[0], "classes_")


def test_members_of_plain_settings_are_fitted_here():
    X, y = planted(200)
    found = gg.certify_progressive(FAMILIES["regressor"], X, y, blocks=2)
    assert {one.code: one.status for one in found.assumptions}["members fitted here"] == "checked"


def test_graphs_through_their_pairs():
    rng = np.random.default_rng(0)
    pairs = np.array([(i, j) for i in range(30) for j in range(i)])
    weight = (rng.random(len(pairs)) < np.where(pairs.sum(axis=1) % 2 == 0, 0.9, 0.1)).astype(float)

    def fit(model, X, y, counts):
        return model.fit(np.column_stack([X, y]), pairs="listed", nodes=np.arange(30))

    model = gg.GraphClustering(2, loss="quadratic", random_state=0)
    certificate = gg.certify_progressive(
        model, pairs, weight, fit=fit, loss="quadratic", label_bounds=(0, 1), random_state=0
    )
    assert certificate.value < 0.25
    with pytest.raises(gg.RefusedCertificate, match="without replacement"):
        gg.certify_progressive(model, pairs, weight, fit=fit, loss="quadratic", label_bounds=(0, 1), references=1)


@pytest.mark.parametrize("delta", [0, 1, 1.5, float("nan")])
def test_delta_is_checked_before_anything_is_fitted(delta):
    Recorder.log = []
    with pytest.raises(gg.GinghamError, match="delta"):
        gg.certify_progressive(Recorder(), *planted(100), alphabet=STARS, delta=delta)
    assert Recorder.log == []


def test_what_is_refused():
    X, y = planted(100)
    with pytest.raises(gg.RefusedCertificate, match="State the possible labels"):
        gg.certify_progressive(DummyRegressor(), X, y)
    with pytest.raises(gg.RefusedCertificate, match="prediction 7"):
        gg.certify_progressive(DummyRegressor(strategy="constant", constant=7.0), X, y, label_bounds=(1, 5))
    with pytest.raises(gg.GinghamError, match="order="):
        gg.certify_progressive(Recorder(), X, y, alphabet=STARS, order="sorted")
    with pytest.raises(gg.GinghamError, match="random_state"):
        gg.certify_progressive(Recorder(), X, y, alphabet=STARS, random_state=np.random.RandomState(0))


def test_clipping_is_part_of_the_predictor():
    X, y = planted(100)
    model = DummyRegressor(strategy="constant", constant=7.0)
    certificate = gg.certify_progressive(model, X, y, label_bounds=(1, 5), clip=True, random_state=0)
    assert certificate.model.predict(X[:2]).tolist() == [5.0, 5.0]


def test_the_file_holds_what_was_used(tmp_path):
    X, y = planted(300)
    certificate = gg.certify_progressive(gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0), X, y)
    certificate.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["certificate"]["value"] == certificate.value
    assert document["facts"]["seed"] == certificate.parameters["seed"]
    assert document["facts"]["edges"][0] == 210
    assert document["data"]["n_rows"] == 300


def test_no_bound_on_a_committee_is_given_for_members_that_are_weighted():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (300, 2))
    y = np.where((X[:, 0] + X[:, 1]) % 2, 5, 1)
    model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=range(1, 6), random_state=0)
    certificate = gg.certify_progressive(model, X, y, random_state=0)
    with pytest.raises(gg.RefusedCertificate, match="weights its members"):
        gg.certify(certificate.model, X, y)


def test_a_model_is_judged_by_its_own_loss():
    """A convex table of the model's own, not the absolute error in its place."""
    X, y = planted()
    stars = np.arange(1, 6)
    squares = np.subtract.outer(stars, stars) ** 2.0
    own = partial(gg.losses.TableLoss, table=squares, convex=True)
    model = gg.CoClusteringRegressor(2, loss=own, alphabet=stars, random_state=0)
    certificate = gg.certify_progressive(model, X, y, blocks=2, random_state=0)
    assert (certificate.loss, certificate.worst) == ("table", 16.0)
    assert certificate.predictor == "mean of the members"
    assert certificate.model.predict(X[:3]).dtype.kind == "f"
    jumpy = gg.CoClusteringRegressor(2, loss=(squares > 0) * 1.0, alphabet=stars, random_state=0)
    with pytest.raises(gg.RefusedCertificate, match="Predict labels"):
        gg.certify_progressive(jumpy, X, y, blocks=2)
    labels = gg.certify_progressive(jumpy, X, y, blocks=2, rule="mode")
    assert labels.predictor == "member drawn by its share"


def test_a_loaded_model_is_not_fitted_without_what_its_file_could_not_hold(tmp_path):
    """Side information is no part of a model file: the members would be another model."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (300, 2))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    side = {0: pd.DataFrame({"id": np.arange(12), "kind": np.where(np.arange(12) % 2, "odd", "even")})}
    short = {"n_layers": 1, "n_clusters": (2, 2), "sampler": Sampler(1, 4, 2), "baskets": 0}
    model = gg.LayeredCoClusteringRegressor(alphabet=range(1, 6), side=side, random_state=0, **short).fit(X, y)
    model.save(tmp_path / "side.gingham")
    loaded = gg.load(tmp_path / "side.gingham")
    loaded.save(tmp_path / "again.gingham")
    for one in (loaded, gg.load(tmp_path / "again.gingham")):
        with pytest.raises(gg.GinghamError, match="could not hold side="):
            gg.certify_progressive(one, X, y, blocks=2, random_state=0)
    certificate = gg.certify_progressive(loaded.set_params(side=side), X, y, blocks=2, random_state=0)
    assert certificate.n_observations == 90


def test_references_are_fitted_before_the_members_and_tested_on_everything_after(tmp_path):
    X, y = planted()
    model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=STARS, random_state=0)
    certificate = gg.certify_progressive(model, X, y, random_state=1, references=3, warm_up=0.8, blocks=2)
    predictor = certificate.model
    assert len(predictor.references_) == 2  # the pilot is the first of the three
    assert len(predictor.members_) == 2
    assert certificate.parameters["references"] == 3
    assert not certificate.anytime
    assert any("independently of each other, each from the population" in a.text for a in certificate.assumptions)
    plan = Plan.of(len(y), 0.8, 2, references=3)
    draws = draws_in_order(len(y), None, "shuffle", 1)
    tests = []
    for fitted, start in zip((predictor.pilot_, *predictor.references_), (plan.counted, *plan.references[1:])):
        tests.append(np.abs(fitted.predict(X[draws[start:]]) - y[draws[start:]]) / 4)
    members = [
        np.abs(member.predict(X[draws[a:b]]) - y[draws[a:b]]) / 4
        for member, a, b in zip(predictor.members_, plan.edges[:-1], plan.edges[1:])
    ]
    combined = combined_losses([*tests, np.concatenate(members)])
    nu, many = certificate.parameters["nu"], len(combined) / plan.n_tested
    value = 4 * many * (nu - np.exp(np.log(nu - combined).mean() - np.log(20) / len(combined)))
    assert certificate.value == pytest.approx(value, rel=1e-9)
    predictor.save(tmp_path / "p.gingham")
    loaded = gg.load(tmp_path / "p.gingham")
    assert len(loaded.references_) == 2
    np.testing.assert_array_equal(loaded.predict(X[:20]), predictor.predict(X[:20]))


class Batch(RegressorMixin, BaseEstimator):
    """Sees in the rows that it is asked about together who is active: alone, nobody is."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.where(np.bincount(X[:, 0])[X[:, 0]] > 1, 5.0, 1.0)


class Drawing(Batch):
    """Draws its answers, which is no look at other rows."""

    def predict(self, X):
        return np.random.default_rng().uniform(1, 5, len(X))


def test_a_predictor_that_looks_at_the_other_rows_is_refused():
    rng = np.random.default_rng(0)
    users = np.where(rng.random(2000) < 0.5, rng.integers(0, 5, 2000), np.arange(5, 2005))
    X, y = np.column_stack([users, np.arange(2000)]), np.where(users < 5, 5, 1)
    for references in (0, 2):
        with pytest.raises(gg.RefusedCertificate, match="Batch gives a row another prediction"):
            gg.certify_progressive(Batch(), X, y, label_bounds=(1, 5), references=references, random_state=0)
    drawn = gg.certify_progressive(Drawing(), X, y, label_bounds=(1, 5), random_state=0)
    assert any("whatever other rows" in a.text for a in drawn.assumptions)
    ours = gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0)
    assert not any("whatever other rows" in a.text for a in gg.certify_progressive(ours, *planted()).assumptions)


def test_references_are_refused_where_draws_are_not_alike():
    X, y = planted()
    model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=STARS, random_state=0)
    with pytest.raises(gg.RefusedCertificate, match="draws that are alike"):
        gg.certify_progressive(model, X, y, references=1, order="arrival")


def test_nu_comes_from_tests_of_the_pilot_that_are_not_counted():
    """With references the pilot is tested on all draws after its own; those that choose ν count for nothing else."""
    X, y = planted()
    model = gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0)
    found = gg.certify_progressive(model, X, y, rule="median", references=2, random_state=4)
    plan = Plan.of(len(y), 0.7, 6, references=2)
    rows = draws_in_order(len(y), None, "shuffle", 4)[plan.pilot : plan.counted]
    losses = np.abs(y[rows] - found.model.pilot_.predict(X[rows], rule="median")) / 4
    assert 0 < losses.mean() < 1
    assert found.parameters["nu"] == pytest.approx(choose_nu(losses, plan.n_tests, 0.05))


def test_a_member_that_writes_into_the_labels_is_judged_by_the_labels_that_came():
    X, y = planted()
    y = y.astype(float)

    class Writes(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            y[:] = 3.0
            return np.full(len(X), 3.0)

    expected = np.abs(y - 3).mean()
    found = gg.certify_progressive(Writes(), X, y, loss="absolute", label_bounds=(1, 5), random_state=0)
    assert (y == 3).all()
    assert found.empirical == pytest.approx(expected, abs=0.2)
