"""What a certificate calls checked was checked: each test is an attack that had passed as "checked", or unseen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import gingham as gg
from gingham.cells import Quadratic
from gingham.cells.contract import check_loss
from gingham.data import Moments

STARS = range(1, 6)
GRID = {"n_clusters": (3, 3), "beta": 5.0, "alphabet": STARS, "random_state": 0, "max_iter": 10, "offsets": False}


def noise(n=500, seed=0, n_items=(40, 30)):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, n) for size in n_items]), rng.integers(1, 6, n)


def statuses(certificate):
    return {assumption.code: assumption.status for assumption in certificate.assumptions}


# who fitted the members


class Table(RegressorMixin, BaseEstimator):
    """Looks labels up in a table that was handed to it."""

    def __init__(self, table=None):
        self.table = table

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.array([self.table[tuple(row)] for row in np.asarray(X).tolist()])


def outside(X, y):
    """Models that know the labels of the draws that test them."""
    learned = gg.CoClusteringRegressor(**GRID).fit(X, y)
    known = {tuple(row): label for row, label in zip(X.tolist(), y.tolist())}
    ridge = Ridge().fit(X, y)
    return {
        "a frozen model": (FrozenEstimator(ridge), {}),
        "a frozen model in a pipeline": (make_pipeline(StandardScaler(), FrozenEstimator(ridge)), {}),
        "a table of labels": (Table(known), {}),
        "a function of a pipeline": (make_pipeline(FunctionTransformer(np.abs), Ridge()), {}),
        "a start": (gg.CoClusteringRegressor(**GRID, start=learned.posterior_), {}),
        "fit=": (gg.CoClusteringRegressor(**GRID), {"fit": lambda model, X, y, counts: learned}),
    }


@pytest.mark.parametrize("name", outside(*noise(60)))
def test_members_that_may_know_their_tests_are_given(name):
    X, y = noise()
    model, options = outside(X, y)[name]
    found = gg.certify_progressive(model, X, y, loss="absolute", alphabet=STARS, clip=True, **options)
    assert "members fitted here" not in statuses(found)
    assert statuses(found)["members fitted outside"] == "given"


@pytest.mark.parametrize(
    "model",
    [
        gg.CoClusteringRegressor(**GRID),
        gg.Committee(gg.CoClusteringRegressor(**GRID), n_members=2),
        make_pipeline(StandardScaler(), Ridge()),
    ],
    ids=["grid", "committee", "pipeline"],
)
def test_members_that_begin_anew_are_checked(model):
    X, y = noise()
    found = gg.certify_progressive(model, X, y, loss="absolute", alphabet=STARS, clip=True)
    assert statuses(found)["members fitted here"] == "checked"


# rows of the fit


def test_labels_in_single_precision_are_rows_of_the_fit():
    X, _ = noise(300)
    y = np.random.default_rng(1).random(300) * 4 + 1
    model = gg.CoClusteringRegressor(3, loss="quadratic", bounds=(1, 5), offsets=False, random_state=0).fit(X, y)
    for labels in (y, y.astype(np.float32), y.astype(np.float32).astype(float)):
        for rows in (slice(None), slice(0, 300, 3)):
            with pytest.raises(gg.RefusedCertificate, match="rows that the model was fitted on"):
                gg.certify(model, X[rows], labels[rows], bound="holdout")


# copies


def copied(kind, n=600):
    """A table with copies of some rows, and its weights."""
    X, y = noise(n, n_items=(400, 300))
    rows = np.arange(n)
    times = {
        "overlapping exports": np.append(rows, rows[: n // 2]),
        "single rows in between": np.append(rows, rows[: n - 5]),
        "read three times, with single rows": np.concatenate([rows, rows[10:], rows[10:]]),
        "unit weights": np.append(rows, rows),
    }[kind]
    return X[times], y[times], np.ones(len(times)) if kind == "unit weights" else None


@pytest.mark.parametrize(
    "kind", ["overlapping exports", "single rows in between", "read three times, with single rows", "unit weights"]
)
def test_copies_are_refused_at_every_door(kind):
    X, y, weights = copied(kind)
    fitted = gg.CoClusteringRegressor(**GRID).fit(X, y)
    anew = gg.CoClusteringRegressor(**GRID)
    for attempt in (
        lambda: gg.certify(fitted, X, y, sample_weight=weights),
        lambda: gg.certify(fitted, X, y, sample_weight=weights, bound="gain"),
        lambda: gg.certify(fitted.posterior_, X, y, sample_weight=weights, bound="holdout"),
        lambda: gg.certify(anew, X, y, sample_weight=weights, bound="split"),
        lambda: gg.certify_progressive(anew, X, y, sample_weight=weights),
    ):
        with pytest.raises(gg.RefusedCertificate, match=r"of the rows repeat others exactly|Every row occurs"):
            attempt()


def test_bootstrapped_measurements_are_refused_whatever_their_number():
    """Draws with replacement from a table look like draws; but labels that are any numbers never repeat."""
    rng = np.random.default_rng(0)
    X, _ = noise(300, n_items=(400, 300))
    y, rows = rng.random(300) * 4 + 1, rng.integers(0, 300, 900)
    model = gg.CoClusteringRegressor(2, loss="quadratic", bounds=(1, 5), offsets=False, random_state=0)
    with pytest.raises(gg.RefusedCertificate, match="real-valued labels do not repeat"):
        gg.certify(model.fit(X[rows], y[rows]), X[rows], y[rows])


@pytest.mark.parametrize("rates", ["one rate", "few rows hold most"])
def test_independent_draws_that_repeat_are_not_copies_and_are_named(rates):
    """1,000 tables in benchmarks/robustness; here some, none of which may be refused."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        distribution = np.ones(700) if rates == "one rate" else 1.0 / np.arange(1, 701)
        rows = rng.choice(700, 900, p=distribution / distribution.sum())
        X = np.column_stack([rows % 35, rows // 35])
        y = 1 + (rows * 7919) % 5  # the label is a function of the ids: all that comes again repeats exactly
        found = gg.certify([np.zeros(35), np.zeros(20)], X, y, alphabet=STARS, items=[np.arange(35), np.arange(20)])
        assert statuses(found)["repetitions"] == "given"


def test_what_is_listed_once_with_its_count_was_said_to_be_drawn():
    X, y = noise(400, n_items=(400, 300))
    fitted = gg.CoClusteringRegressor(**GRID).fit(X, y)
    found = gg.certify(fitted, X, y, sample_weight=np.full(400, 3))
    assert statuses(found)["weights"] == "given"
    assert found.n_observations == 1200


# rows of few users


def test_users_who_hold_most_rows_are_named():
    rng = np.random.default_rng(0)
    users = np.where(rng.random(1000) < 0.6, rng.integers(0, 4, 1000), rng.integers(4, 300, 1000))
    X, y = np.column_stack([users, rng.integers(0, 200, 1000)]), rng.integers(1, 6, 1000)
    fitted = gg.CoClusteringRegressor(**GRID).fit(X, y)
    for found in (gg.certify(fitted, X, y), gg.certify_progressive(gg.CoClusteringRegressor(**GRID), X, y)):
        assert statuses(found)["few hold most"] == "given"
        assert "groups=" in found.explain()
    many, labels = noise(1000, n_items=(200, 100))
    assert "few hold most" not in statuses(gg.certify(gg.CoClusteringRegressor(**GRID).fit(many, labels), many, labels))


# convexity


class Dented(Quadratic):
    """min((y − f)², 1): said to be convex, and not."""

    name = "dented"
    features = Moments(2)

    def of_gap(self, gap):
        return np.minimum(gap**2, 1.0)


def test_a_loss_of_numbers_that_is_not_convex_is_found():
    check_loss(Quadratic(bounds=(0, 3)))
    with pytest.raises(gg.GinghamError, match="not convex"):
        check_loss(Dented(bounds=(0, 3)))
    rng = np.random.default_rng(0)
    with pytest.raises(gg.GinghamError, match="not convex"):
        gg.certify_predictions(
            rng.random(100),
            rng.random(100),
            loss=Dented,
            label_bounds=(0, 3),
            folds=rng.integers(0, 3, 100),
            predictor="mean of the three",
        )
    X, _ = noise(200)
    with pytest.raises(gg.GinghamError, match="not convex"):
        gg.certify_progressive(
            gg.CoClusteringRegressor(2, loss="quadratic", bounds=(0, 3)), X, rng.random(200), loss=Dented
        )


@pytest.mark.parametrize("changed", [lambda y: np.round(y, 2), lambda y: y.astype(np.float16).astype(float)])
def test_rows_of_the_fit_with_rounded_labels_are_shown_as_given(changed):
    """No label is equal any more, so that the rows cannot be refused; what has to be believed is said."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 60, 1000), rng.integers(0, 40, 1000)])
    y = rng.normal(size=1000).clip(-4, 4)
    model = gg.CoClusteringRegressor((3, 3), "quadratic", bounds=(-4, 4), offsets=False, random_state=0)
    model.fit(X[:500], y[:500])

    def premises(X, y):
        found = gg.certify(model, X, y, bound="holdout", predictor="mean").assumptions
        return [a.text for a in found if a.status == "given" and "rounded or changed" in a.text]

    assert len(premises(X[:500], changed(y[:500]))) == 1
    assert premises(X[500:], changed(y[500:])) == []
