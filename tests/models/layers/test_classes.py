"""LayeredCoClusteringClassifier: two classes, ordered and unordered ones, calibration, new items, files."""

from __future__ import annotations

import copy
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.metrics import log_loss

import gingham as gg
from gingham.data import Sample
from gingham.models.layers import Sampler, design
from gingham.models.layers import fit as fitting
from gingham.models.layers.draws import best_temperature, probabilities_of, sets_of
from gingham.models.layers.factors import mean_factors
from gingham.models.layers.fit import HeldOut, choose_design, held_pairs

SMALL = {"n_layers": 3, "baskets": 0, "sampler": Sampler(2, 40, 15), "random_state": 0}
QUICK = {"n_layers": 1, "baskets": 0, "n_clusters": 2, "sampler": Sampler(1, 8, 4)}
SCALE = ["never", "sometimes", "always"]  # not in alphabetical order


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


def answers(n=3000, seed=0):
    """Rows of ids and a latent answer of two factors with a standard deviation of .5."""
    rng = np.random.default_rng(seed)
    people, questions = rng.integers(60, size=n), rng.integers(20, size=n)
    traits, weights = rng.normal(size=(60, 2)), rng.normal(size=(2, 20))
    f = (traits @ weights)[people, questions]
    return pd.DataFrame({"person": people, "item": questions}), f, f + rng.normal(0, 0.5, n)


TRAIN, TEST = slice(0, 2500), slice(2500, None)
KINDS = {
    "two classes": ({}, lambda z: np.where(z > 0, "yea", "nay")),
    "ordered": ({"ordered": True, "alphabet": SCALE}, lambda z: np.array(SCALE)[np.digitize(z, [-0.7, 0.7])]),
    "unordered": ({}, lambda z: np.array(SCALE)[np.digitize(z, [-0.7, 0.7])]),
}


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    X, _, z = answers()
    settings, labelled = KINDS[request.param]
    y = labelled(z)
    return gg.LayeredCoClusteringClassifier(**SMALL, **settings).fit(X[TRAIN], y[TRAIN]), X, y


def test_probabilities_predict_better_than_shares_of_classes(fitted):
    model, X, y = fitted
    chances = model.predict_proba(X[TEST])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    at = [model.classes_.tolist().index(label) for label in y[TEST]]
    shares = [np.mean(y[TRAIN] == one) for one in model.classes_]
    assert -np.log(chances[np.arange(len(at)), at]).mean() < 0.65 * -np.log(np.array(shares)[at]).mean()
    assert model.score(X[TEST], y[TEST]) > 0.7
    np.testing.assert_array_equal(model.predict(X[TEST]), model.classes_[chances.argmax(axis=1)])
    by_label = dict(zip(model.alphabet_.values, model.predict_distribution(X[TEST]).T))
    lowest = 0.01 / len(model.classes_)  # certificates of the log loss need it
    np.testing.assert_allclose(by_label[model.classes_[1]], chances[:, 1], atol=lowest)
    assert min(column.min() for column in by_label.values()) >= lowest


def test_ordered_classes_have_a_median_and_fewer_wide_errors():
    X, _, z = answers()
    settings, labelled = KINDS["ordered"]
    y, rank = labelled(z), {name: at for at, name in enumerate(SCALE)}
    model = gg.LayeredCoClusteringClassifier(**SMALL, **settings).fit(X[TRAIN], y[TRAIN])
    assert model.classes_.tolist() == SCALE

    def error(rule):
        return np.mean([abs(rank[a] - rank[b]) for a, b in zip(model.predict(X[TEST], rule=rule), y[TEST])])

    assert error("median") <= error("class") + 0.01
    assert (np.diff(model.draws_.cuts.mean(axis=0)) > 0).all()
    with pytest.raises(gg.GinghamError, match="rule"):
        model.predict(X, rule="mean")


def test_probabilities_of_two_classes_are_those_of_the_truth():
    """Of rows with about the same predicted probability that share is in the class; so says the true answer."""
    X, f, z = answers(12_000)
    train, test = slice(0, 9_000), slice(9_000, None)
    model = gg.LayeredCoClusteringClassifier(**{**SMALL, "n_layers": 10}).fit(X[train], z[train] > 0)
    said, truth = model.predict_proba(X[test])[:, 1], ndtr(f[test] / 0.5)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (low <= said) & (said < low + 0.2)
        assert inside.sum() > 50
        assert abs(said[inside].mean() - truth[inside].mean()) < 0.08
    assert log_loss(z[test] > 0, said) < 1.12 * log_loss(z[test] > 0, truth)


def test_all_rows_of_a_pair_are_held_out_together():
    X, _, z = answers(400)
    sample = gg.data.Sample.of([X["person"], X["item"]], (z > 0).astype(float))
    problem = design.make_problem(sample, None, np.array([0.0, 1.0]), {}, design.EFFORTS["fast"], (2, 2))
    held = held_pairs(problem, 0.3, np.random.default_rng(0))
    inside, outside = (set(map(tuple, problem.codes[:, rows].T)) for rows in (held, ~held))
    assert 0.2 < held.mean() < 0.4
    assert not inside & outside


def test_designs_of_classes_are_compared_by_averages_of_chains_on_the_same_rows(monkeypatch):
    """Single chains of the second design are worse, their average is better; statements of a question stay together."""
    X, _, z = answers(2_000)
    sample = Sample.of([X["person"], X["item"]], (z > 0).astype(float))
    usual = design.Design(design.EFFORTS["fast"]._replace(basket=0), (2, 2))
    designs, seen = [usual, usual._replace(positions=True)], []

    def held_out(problem, plan, layout, rng, checkpoint, held):
        found, at = HeldOut.of(problem, np.flatnonzero(held)), len(seen)
        placed = problem.positions is not None
        seen.append((placed, held, problem.codes[1]))
        own = problem.labels[found.rows] == 0
        wrong = (np.arange(len(own)) % 3 == at % 3) if placed else np.zeros(len(own), dtype=bool)
        chance = np.where(wrong, 0.3, 0.9 if placed else 0.65)  # 0.7 on average
        found.below[:, 0], found.n_sweeps = np.where(own, chance, 1 - chance), 1
        return None, found

    monkeypatch.setattr(fitting, "held_out", held_out)
    groups = np.arange(20) // 2
    assert choose_design(sample, np.arange(2.0), designs, np.random.SeedSequence(0), "auto", True, groups) == 1
    assert [own for own, *_ in seen] == [False] * 3 + [True] * 3
    for _, held, _ in seen[1:]:
        np.testing.assert_array_equal(held, seen[0][1])
    pairs = seen[0][2] // 2
    people = np.sort(X["person"].to_numpy(), kind="stable")
    inside, outside = (set(zip(people[rows], pairs[rows])) for rows in (seen[0][1], ~seen[0][1]))
    assert inside
    assert not inside & outside


def test_temperature_is_found_on_rows_that_were_held_out():
    rng = np.random.default_rng(0)
    below = rng.uniform(0.05, 0.95, (20_000, 1))
    sharp = probabilities_of(below, 0.5)
    np.testing.assert_allclose(sharp.sum(axis=1), 1.0)
    codes = (rng.random(20_000) > sharp[:, 0]).astype(int)
    assert best_temperature(below, codes, np.ones(20_000)) == pytest.approx(0.5, abs=0.03)
    assert best_temperature(below[:5], codes[:5], np.ones(5)) == pytest.approx(1.0, abs=0.2)
    np.testing.assert_array_equal(probabilities_of(below), np.column_stack([below, 1 - below]))


def test_a_file_new_people_and_more_rows(fitted, tmp_path):
    model, X, y = fitted
    model.save(tmp_path / "m.gingham")
    back = gg.load(tmp_path / "m.gingham")
    np.testing.assert_array_equal(back.predict_proba(X[TEST]), model.predict_proba(X[TEST]))
    f = pd.Series(answers()[1])
    person = int(f.groupby(X["person"]).mean().abs().idxmax())  # not an average one; a twin answers as this person did
    rows = (X["person"] == person).to_numpy()
    twin = X[rows].assign(person=99)
    at = [back.classes_.tolist().index(label) for label in y[rows]]
    before = log_loss(at, back.predict_proba(twin), labels=range(len(back.classes_)))
    back.fold_in(twin, y[rows])
    assert log_loss(at, back.predict_proba(twin), labels=range(len(back.classes_))) < 0.9 * before
    known = model.predict_proba(X[TEST])
    np.testing.assert_allclose(back.predict_proba(X[TEST]), known, atol=1e-6)
    assert len(back.modes_[0].items) == len(model.modes_[0].items) + 1


def test_a_model_that_grew_has_a_summary_of_all_its_items(fitted):
    model = copy.deepcopy(fitted[0])
    model._data = fitted[0]._observed().relations and fitted[0]._data  # copies do not keep the data
    model.fold_in(pd.DataFrame({"person": 99, "item": range(15)}), np.repeat(model.classes_[:1], 15))
    assert 99 in model.summary_.sides[0].items.tolist()
    assert "probability" in str(model.explain((0, 1)))


def test_chains_go_on_with_more_rows():
    X, _, z = answers(1500)
    y = np.array(SCALE)[np.digitize(z, [-0.7, 0.7])]
    for settings in ({"ordered": True, "alphabet": SCALE}, {"alphabet": SCALE}):
        model = gg.LayeredCoClusteringClassifier(**SMALL, **settings).partial_fit(X[:1000], y[:1000])
        n_draws, noise = model.draws_.n_draws, model.noise_
        model.partial_fit(X[1000:1200], y[1000:1200])
        assert model.noise_ == noise
        assert model.draws_.n_draws == n_draws
        assert model.score(X[1200:], y[1200:]) > 0.6


@pytest.mark.parametrize("settings", [{}, {"ordered": True}])
def test_same_bits_for_any_number_of_threads(settings):
    X, _, z = answers(1200)
    y = np.digitize(z, [-0.7, 0.7])
    small = {**SMALL, "sampler": Sampler(3, 12, 6), **settings}
    one, two = (gg.LayeredCoClusteringClassifier(**small, n_jobs=jobs).fit(X, y) for jobs in (1, 3))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_points_in_time_and_tables_are_used_as_for_numbers():
    X, _, z = answers(1200)
    people = pd.DataFrame({"person": range(60), "kind": [f"k{p % 3}" for p in range(60)]})
    model = gg.LayeredCoClusteringClassifier(**{**SMALL, "sampler": Sampler(1, 12, 6)}, side={"person": people})
    model.fit(X, z > 0, time=np.arange(1200.0))
    assert {"time", "side information, person to item"} <= set(model.contributions(X[:5], time=np.arange(5.0)))
    assert model.predict_proba(X[:5], time=np.arange(5.0)).shape == (5, 2)


@pytest.mark.parametrize(
    ("settings", "labels", "words"),
    [
        ({}, ["a"] * 40, "two classes"),
        ({"ordered": True}, ["a", "b"] * 20, "rising order"),
        ({"alphabet": ["a"]}, ["a", "b"] * 20, "two classes"),
        ({"alphabet": ["a", "c"]}, ["a", "b"] * 20, "not in the alphabet"),
        ({"n_layers": -1}, ["a", "b"] * 20, "n_layers"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(settings, labels, words):
    X = np.column_stack([np.arange(40) % 8, np.arange(40) % 5])
    with pytest.raises(gg.GinghamError, match=words):
        gg.LayeredCoClusteringClassifier(**{**QUICK, **settings}).fit(X, labels)


def test_the_surface_is_small():
    assert len(inspect.signature(gg.LayeredCoClusteringClassifier).parameters) <= 12


def test_sets_hold_the_share_that_is_asked():
    X, _, z = answers(6_000)
    y = np.digitize(z, [-1.5, -0.5, 0.5, 1.5])
    train, test = slice(0, 4_500), slice(4_500, None)
    for settings in ({"ordered": True}, {}):
        model = gg.LayeredCoClusteringClassifier(**SMALL, **settings).fit(X[train], y[train])
        for level in (0.8, 0.9):
            sets = model.predict_set(X[test], level)
            assert sets[np.arange(1_500), y[test]].mean() == pytest.approx(
                level, abs=0.07
            )  # the rows of 90 pairs are held out
            assert 1 <= sets.sum(axis=1).mean() < 4
    chances = np.array([[0.6, 0.3, 0.1], [0.95, 0.03, 0.02]])
    assert sets_of(chances, 0.8, np.zeros(0)).tolist() == [[True, True, False], [True, False, False]]


def test_intervals_of_shares_hold_the_share_that_is_asked():
    """Of sets of rows with new labels, under several truths of groups and offsets; fits leave much open."""
    inside = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        base, cells = rng.normal(0, 0.4, 40)[:, None] + rng.normal(0, 0.4, 30), rng.normal(0, 0.8, (3, 3))
        truth = base + cells[rng.integers(3, size=40)][:, rng.integers(3, size=30)]
        X = np.column_stack([rng.integers(40, size=14_500), rng.integers(30, size=14_500)])
        y = truth[tuple(X.T)] + rng.normal(size=14_500) > 0
        model = gg.LayeredCoClusteringClassifier(**{**SMALL, "n_layers": 2}).fit(X[:2_500], y[:2_500])
        for start in range(2_500, 14_500, 200):
            low, high = model.predict_share_interval(X[start : start + 200])
            inside.append(low <= y[start : start + 200].mean() <= high)
    assert len(inside) == 300
    assert 0.86 <= np.mean(inside) <= 0.94
    few = model.predict_share_interval(X[:20])
    assert np.diff(few) > np.diff(model.predict_share_interval(X[:200]))
    np.testing.assert_array_equal(few, model.predict_share_interval(X[:20]))
    for rows, words in (([(0, 0), (0, 99)], "Row 1 has an item without labels"), (X[:0], "row|sample")):
        with pytest.raises(ValueError, match=words):
            model.predict_share_interval(rows)
    three = gg.LayeredCoClusteringClassifier(**QUICK, random_state=0).fit(X[:300], X[:300, 0] % 3)
    with pytest.raises(gg.GinghamError, match="need two classes, and this model has 3"):
        three.predict_share_interval(X[:20])


@pytest.fixture(scope="module")
def placed():
    """A fit with positions: people move over the years, questions have kinds, and labels come from both."""
    rng = np.random.default_rng(0)
    n, people, questions = 9_000, rng.integers(30, size=9_000), rng.integers(400, size=9_000)
    years = questions / 100.0
    drift = rng.normal(size=(30, 2))[:, None] + 0.8 * rng.normal(size=(30, 4, 2))
    kinds = rng.normal(size=(400, 2)) + 2.0 * rng.integers(-1, 2, (400, 1))
    f = np.sum(drift[people, years.astype(int)] * kinds[questions], axis=1) + kinds[questions, 0]
    X, y = pd.DataFrame({"person": people, "question": questions}), f + rng.normal(0, 0.7, n) > 0
    train = slice(0, 8_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "ENOUGH", 5_000)
        patch.setattr(design, "POSITION_ROWS", 50)
        patch.setattr(
            "gingham.models.layers.estimator.choose_design", lambda sample, values, designs, *_: len(designs) - 1
        )
        model = gg.LayeredCoClusteringClassifier(sampler=Sampler(2, 40, 20), random_state=0)
        model.fit(X[train], y[train], time=years[train])
    return model, X, y, years


def test_positions_predict_what_moves_and_survive_files_and_new_items(placed, tmp_path):
    model, X, y, years = placed
    test = slice(8_000, None)
    assert model.draws_.plan.n_periods == 5
    assert "positions of 8 coordinates" in str(model.selection_)
    said = model.predict_proba(X[test], time=years[test])[:, 1]
    assert log_loss(y[test], said) < 0.55 * log_loss(y[test], np.full(1_000, y.mean()))
    parts = model.contributions(X[test], time=years[test])
    assert np.std(parts["positions, person and question"]) > 0.2
    model.save(tmp_path / "m.gingham")
    back = gg.load(tmp_path / "m.gingham")
    np.testing.assert_array_equal(back.predict_proba(X[test], time=years[test])[:, 1], said)
    rows = (X["person"] == 3).to_numpy()
    at = y[rows]
    twin = X[rows].assign(person=99)
    before = log_loss(at, back.predict_proba(twin))
    assert 0.2 < back.predict_proba(twin)[:, 1].mean() < 0.8  # a stranger is an average person
    back.fold_in(twin, at)
    assert log_loss(at, back.predict_proba(twin)) < 0.8 * before
    np.testing.assert_allclose(back.predict_proba(X[test], time=years[test])[:, 1], said, atol=1e-6)
    pairs = X.drop_duplicates()
    codes = [mode.encode(pairs[mode.name].to_numpy()) for mode in model.modes_]
    latent = sum(model.contributions(pairs).values())
    found = mean_factors(model.draws_, rank=20)
    inner = np.einsum("er,er->e", found.left[codes[0]], found.right[codes[1]])
    off = found.base + found.rows[codes[0]] + found.columns[codes[1]] + inner - latent
    assert np.sqrt(np.mean(off**2)) < 0.05 * latent.std()


def test_positions_on_a_device_predict_the_same(placed, monkeypatch):
    pytest.importorskip("torch")
    model, X, _, years = placed
    asked = pd.concat([X[:50], pd.DataFrame({"person": [999, 1, 999], "question": [3, 999, 999]})])
    when = np.append(years[:50], [0.5, np.nan, 3.0])
    expected = model.predict_proba(asked, time=when)
    monkeypatch.setattr("gingham.models.layers.draws.predicts_on_device", lambda n_lookups: True)
    np.testing.assert_allclose(model.predict_proba(asked, time=when), expected, atol=2e-6)


def test_chains_with_positions_go_on_with_more_rows(placed, monkeypatch):
    _, X, y, years = placed
    monkeypatch.setattr(design, "ENOUGH", 3_000)
    monkeypatch.setattr("gingham.models.layers.estimator.choose_design", lambda _, __, designs, *___: len(designs) - 1)
    dated, test = X.assign(year=years), slice(8_000, None)
    model = gg.LayeredCoClusteringClassifier(time="year", sampler=Sampler(1, 24, 14), random_state=0)
    model.partial_fit(dated[:7_000], y[:7_000], classes=[False, True])
    before, plan = log_loss(y[test], model.predict_proba(dated[test])), model.draws_.plan
    model.partial_fit(dated[7_000:8_000], y[7_000:8_000])
    assert plan is not None
    assert model.draws_.plan == plan
    assert log_loss(y[test], model.predict_proba(dated[test])) < 1.1 * before
