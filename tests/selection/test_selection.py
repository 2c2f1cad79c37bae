"""Choosing β and sizes: merging lowers the objective, planted sizes come back, paths warm-start and are scored."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from math import log, sqrt

import numpy as np
import pytest

import gingham as gg
from gingham.core.problem import Problem
from gingham.datasets import planted_counts, planted_graph
from gingham.fitting.merging import information_rises, ladder, loss_rises, prune
from gingham.selection.auto import clearly_worse
from gingham.selection.beta_path import BetaPath, PathPoint
from gingham.selection.coarser import problem_of


def planted(k=(3, 4), n=(80, 70), n_observations=4000, flip=0.25, seed=0):
    """Labels 1 to 5 from a k1×k2 table of distinct rows and columns, a share of them replaced."""
    rng = np.random.default_rng(seed)
    clusters = [rng.integers(m, size=size) for m, size in zip(k, n)]
    while True:
        table = rng.integers(1, 6, k)
        if len(np.unique(table, axis=0)) == k[0] and len(np.unique(table, axis=1).T) == k[1]:
            break
    X = np.column_stack([rng.integers(size, size=n_observations) for size in n])
    y = table[clusters[0][X[:, 0]], clusters[1][X[:, 1]]]
    return X, np.where(rng.random(n_observations) < flip, rng.integers(1, 6, n_observations), y)


@pytest.fixture(scope="module")
def fitted():
    X, y = planted()
    model = gg.CoClusteringRegressor((6, 6), beta=1.0, alphabet=range(1, 6), random_state=0)
    return model.fit(X, y), X, y


@pytest.mark.parametrize("loss", ["absolute", "quadratic", "log"])
def test_the_cost_of_a_merge_is_the_change_of_the_objective(loss) -> None:
    X, y = planted(n_observations=800)
    model = gg.CoClusteringRegressor((4, 3), loss=loss, beta=0.8, alphabet=range(1, 6), random_state=0, max_iter=5)
    model.fit(X, y)
    problem = problem_of(model, X, y)
    posterior = model.posterior_.refit(problem.samples[0])
    rungs = list(ladder(problem, posterior))
    assert [sum(r.posterior.n_clusters) for r in rungs] == [7, 6, 5, 4, 3, 2]
    for before, after in pairwise(rungs):
        # Every term again from scratch, and no other pair would have been cheaper.
        assert problem.objective(after.posterior).total == pytest.approx(after.objective.total)
        tables = before.posterior.statistics(problem.samples[0])
        price = (before.price - after.price) if before.price else 0.0
        mode, a, b = after.merged
        rise = information_rises(before.posterior.assign[mode]) + 0.8 * loss_rises(
            problem.cells[0], np.moveaxis(tables, mode, 0)
        )
        assert after.total - before.total == pytest.approx(rise[a, b] - price, abs=1e-6)


def test_steps_go_down_to_one_cell_and_never_split(fitted) -> None:
    model, X, y = fitted
    rungs = list(ladder(problem_of(model, X, y), prune(model.posterior_)))
    assert rungs[-1].posterior.n_clusters == (1, 1)
    losses = [rung.loss(len(y)) for rung in rungs]
    assert np.all(np.diff(losses) >= -1e-12)


def test_simplify_finds_the_planted_size_and_goes_on_where_asked(fitted) -> None:
    model, X, y = fitted
    merged = gg.simplify(model, X, y)
    assert merged.n_clusters_ == (3, 4)
    assert model.n_clusters_ == (6, 6)
    coarse = gg.simplify(model, X, y, max_clusters=2)
    assert max(coarse.n_clusters_) == 2
    assert coarse.posterior_.gibbs_loss(coarse.sample(X, y)) > merged.posterior_.gibbs_loss(merged.sample(X, y))
    assert gg.simplify(model, X, y, max_clusters=(1, 2)).n_clusters_ == (1, 2)
    kept = merged.posterior_.gibbs_loss(merged.sample(X, y)) + 1e-6
    assert gg.simplify(model, X, y, max_loss=kept).n_clusters_ == (3, 4)
    with pytest.raises(gg.GinghamError, match="max_loss"):
        gg.simplify(model, X, y, max_clusters=1, max_loss=0.1)
    with pytest.raises(gg.GinghamError, match="max_clusters"):
        gg.simplify(model, X, y, max_clusters=0)
    with pytest.raises(gg.GinghamError, match="fit it first"):
        gg.simplify(gg.CoClusteringRegressor(), X, y)
    # Merging duplicates makes the certificate better: the same loss for fewer nats.
    assert gg.certify(merged, X, y).value < gg.certify(model, X, y).value


def test_prune_drops_empty_clusters_and_keeps_predictions(fitted) -> None:
    _, X, y = fitted
    model = gg.CoClusteringRegressor((12, 12), beta=0.1, alphabet=range(1, 6), random_state=0).fit(X, y)
    sample, pruned = model.sample(X, y), prune(model.posterior_, 1e-3)
    assert sum(pruned.n_clusters) < 24
    np.testing.assert_allclose(pruned.predict(sample.codes), model.posterior_.predict(sample.codes), atol=1e-4)
    for q in pruned.assign:
        np.testing.assert_allclose(q.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("k", "n"), [((2, 2), (60, 60)), ((3, 5), (100, 100)), ((1, 1), (60, 60)), ((5, 2), (120, 60))]
)
def test_with_nothing_set_the_planted_size_is_recovered(k, n) -> None:
    X, y = planted(k, n, n_observations=5000, seed=sum(k))
    model = gg.CoClusteringRegressor(random_state=0).fit(X, y)
    assert all(abs(found - true) <= 1 for found, true in zip(model.n_clusters_, k))
    assert model.selection_.beta == model.beta_
    assert "held-out" in str(model.selection_)
    assert "merged while the trade-off fell" in str(model.selection_)
    assert len(model.selection_.tried) == 6


def test_little_data_and_given_values_are_said(fitted) -> None:
    model, X, y = fitted
    assert "as given" in model.selection_.reason
    small = gg.CoClusteringRegressor(random_state=0).fit(X[:30], y[:30])
    assert "too few" in small.selection_.reason
    certified = gg.CoClusteringRegressor(objective="certificate", alphabet=range(1, 6), random_state=0)
    assert "while the certificate fell" in certified.fit(X[:300], y[:300]).selection_.reason
    with pytest.raises(gg.GinghamError, match="beta"):
        gg.CoClusteringRegressor(beta="best").fit(X, y)


def test_suggested_beta_is_the_likelihood_of_the_noise() -> None:
    label_values = gg.data.Alphabet.of([1, 2, 3, 4, 5], given=True)
    assert gg.losses.Absolute(label_values).beta_of_noise(0.5) == pytest.approx(2.0)
    assert gg.losses.Quadratic(label_values).beta_of_noise(0.5) == pytest.approx(1.0)
    assert gg.losses.ZeroOne(label_values).beta_of_noise(0.2) == pytest.approx(np.log(16))
    assert gg.losses.Logarithmic(label_values).beta_of_noise(3.0) == 1.0


@pytest.fixture(scope="module")
def path():
    X, y = planted(n_observations=2500)
    model = gg.CoClusteringRegressor((5, 5), alphabet=range(1, 6), random_state=0)
    seen = []
    found = gg.beta_path(model, X, y, [0.05, 2.0, 0.5], cv=3, callback=seen.append)
    return found, seen, X, y, model


def test_path_goes_down_and_measures_every_point(path) -> None:
    found, seen, X, y, _ = path
    assert [p.beta for p in found.points] == [2.0, 0.5, 0.05]
    assert [(s.done, s.total) for s in seen] == [(i, 6) for i in range(1, 7)]
    table = found.table
    assert np.all(np.diff(table["information row"]) < 0)  # less β, less information
    assert np.all(table["certificate"] > table["cv_loss"])
    assert table["loss"][0] < table["cv_loss"][0]
    assert found.to_frame().shape == (3, 8)
    assert str(found).count("\n") == 3
    first = found.points[0]
    problem = Problem.grid(gg.CoClusteringRegressor((5, 5), beta=2.0, alphabet=range(1, 6)).fit(X, y).sample(X, y),
                           first.posterior.cells[0], 2.0)  # fmt: skip
    assert first.loss == pytest.approx(first.posterior.gibbs_loss(problem.samples[0]))


def test_best_by_each_criterion(path) -> None:
    found, _, _, _, _ = path
    chosen = found.best("certificate").certificate
    assert chosen.value == min(p.certificate.value for p in found.points)
    assert chosen.chosen_from == len(found.points)
    assert "for all posteriors at once, so the choice is free" in chosen.explain()
    assert found.best("cv").cv_loss == min(p.cv_loss for p in found.points)
    assert found.best("one-se").beta <= found.best("cv").beta
    with pytest.raises(gg.GinghamError, match="best"):
        found.best("luck")


def test_path_without_folds_or_certificates(path) -> None:
    _, _, X, y, model = path
    bare = gg.beta_path(model, X, y, [1.0], cv=0, delta=0)
    assert np.isnan(bare.points[0].cv_loss)
    with pytest.raises(gg.GinghamError, match="cross-validated"):
        bare.best("cv")
    with pytest.raises(gg.GinghamError, match="certificates"):
        bare.best("certificate")
    with pytest.raises(gg.GinghamError, match="cv"):
        gg.beta_path(model, X, y, [1.0], cv=1)


def test_folds_one_after_the_other_give_the_same_path(path) -> None:
    found, _, X, y, model = path
    again = gg.beta_path(model, X, y, [2.0, 0.5, 0.05], cv=3, n_jobs=1)
    for name, column in found.table.items():
        np.testing.assert_array_equal(again.table[name], column)


def test_certificates_of_a_path_name_the_rows_as_they_were_given(path, tmp_path) -> None:
    found, _, X, y, _ = path
    alone = gg.certify(found.points[0].posterior, X, y)
    found.points[0].certificate.save(tmp_path / "path.json")
    alone.save(tmp_path / "alone.json")
    ours, own = (json.loads((tmp_path / name).read_text()) for name in ("path.json", "alone.json"))
    assert ours["data"] == own["data"]
    assert found.points[0].certificate.value == pytest.approx(alone.value, rel=1e-12)


def test_plot_shows_loss_above_information(path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    above, below = path[0].plot()
    assert {t.get_text() for t in above.get_legend().get_texts()} >= {"certificate", "training (Gibbs)"}
    assert below.get_xlabel() == "β"
    plt.close("all")


def test_a_graph_and_counts_are_simplified_in_their_own_way() -> None:
    graph = planted_graph(120, 4, inside=15, outside=2, seed=0)
    model = gg.GraphClustering(4, degree_correction=True, random_state=0).fit(graph.adjacency)
    small = gg.simplify(model, graph.adjacency, max_clusters=2)
    assert (small.n_clusters_, model.n_clusters_) == (2, 4)
    assert small._degree_model.rates.shape == (2, 2)
    with pytest.raises(gg.GinghamError, match="not to a loss"):
        gg.simplify(model, graph.adjacency, max_loss=0.1)
    table = planted_counts(seed=0).counts
    blocks = gg.CoOccurrenceClustering((4, 3), random_state=0).fit(table)
    coarse = gg.simplify(blocks, table, max_clusters=(2, 3))
    assert coarse.n_clusters_ == (2, 3)
    assert blocks.n_clusters_ == (4, 3)
    rows, columns = coarse.memberships_
    np.testing.assert_allclose(coarse.blocks_, rows.T @ table @ columns)
    assert 0 < coarse.information_ < blocks.information_
    assert all(1 <= k <= of for k, of in zip(gg.simplify(blocks, table).n_clusters_, (4, 3)))  # the readable size
    with pytest.raises(gg.GinghamError, match="at least one"):
        gg.simplify(blocks, table, max_clusters=0)


PRICE_OF_A_CELL = {"absolute": log(5), "quadratic": 0.5 * log(800), "log": 4 * 0.5 * log(800)}


@pytest.mark.parametrize("loss", PRICE_OF_A_CELL)
def test_cells_are_paid_for_and_the_cheapest_merge_of_any_mode_is_taken(loss) -> None:
    """ln |Y| for a label, ½ ln N for every free number of an answer; a merge saves the cells of one cluster."""
    X, y = planted(n_observations=800)
    model = gg.CoClusteringRegressor(
        (5, 2), loss=loss, beta=0.8, alphabet=range(1, 6), offsets=False, random_state=0, max_iter=5
    )
    problem = problem_of(model.fit(X, y), X, y)
    rng = np.random.default_rng(0)  # memberships that say next to nothing: the number of cells decides
    vague = tuple(rng.dirichlet(np.full(m, a), len(q)) for m, a, q in zip((6, 2), (30.0, 2000.0), model.assign_))
    rungs = list(ladder(problem, replace(model.posterior_, assign=vague).refit(problem.samples[0])))
    by_price = 0
    for before, after in pairwise(rungs):
        assert before.price == pytest.approx(np.prod(before.posterior.n_clusters) * PRICE_OF_A_CELL[loss])
        tables = before.posterior.statistics(problem.samples[0])
        changes, rises = {}, {}
        for mode, m in enumerate(before.posterior.n_clusters):
            rise = information_rises(before.posterior.assign[mode]) + 0.8 * loss_rises(
                problem.cells[0], np.moveaxis(tables, mode, 0)
            )
            saved = np.prod(before.posterior.n_clusters) / m * PRICE_OF_A_CELL[loss]
            for a, b in combinations(range(m), 2):
                rises[mode, a, b], changes[mode, a, b] = rise[a, b], rise[a, b] - saved
        assert changes[after.merged] == pytest.approx(min(changes.values()), abs=1e-6)
        by_price += rises[after.merged] > min(rises.values()) + 1e-6
    assert by_price  # without the price of cells another pair would have been merged


def points(losses, errors):
    one = gg.CoClusteringRegressor((1, 1), beta=1.0, alphabet=(1, 2), random_state=0).fit([(0, 0), (0, 1)], [1, 2])
    return BetaPath(
        tuple(
            PathPoint(beta, one.posterior_, 0.0, loss, error, np.nan, None)
            for beta, loss, error in zip((8.0, 4.0, 2.0, 1.0, 0.5), losses, errors)
        ),
        ("a", "b"),
    )


def test_one_standard_error_is_that_of_the_best_point() -> None:
    errors = [0.5, 0.1, 0.5, 0.5, 0.5]
    assert points([1.2, 1.0, 1.05, 1.099, 1.101], errors).best("one-se").beta == 1.0
    assert points([1.2, 1.0, 1.101, 1.15, 1.19], errors).best("one-se").beta == 4.0
    assert points([1.2, 1.0, 1.2, 1.1, 1.2], errors).best("one-se").beta == 1.0  # just within
    assert points([1.2, 1.0, 1.05, 1.099, 1.101], errors).best("cv").beta == 4.0


def test_the_error_of_cross_validation_is_the_standard_error_over_folds(monkeypatch) -> None:
    folds = iter([[(1.0, 10.0)], [(2.0, 20.0)], [(5.0, 60.0)]])
    module = sys.modules[PathPoint.__module__]
    monkeypatch.setattr(module, "_fold", lambda *_: next(folds))
    X = [(u, v) for u in range(4) for v in range(2)]
    model = gg.CoClusteringRegressor((2, 2), beta=1.0, alphabet=(1, 2), random_state=0)
    point = gg.beta_path(model, X, [1, 2] * 4, [1.0], cv=3, n_jobs=1).points[0]
    assert point.cv_error == pytest.approx(sqrt((25 + 4 + 49) / 9 / 2 / 3))  # Σ (x − 8/3)²/2, over √3
    assert point.cv_loss == pytest.approx((3 * 1 + 3 * 2 + 2 * 5) / 8)  # folds of 3, 3 and 2 rows
    assert point.cv_prediction == pytest.approx((30 + 60 + 120) / 8)


def test_clearly_is_more_than_one_standard_error() -> None:
    noise = np.tile([1.0, -1.0], 50)  # standard deviation 1, standard error 1/√(Σ weights)
    for count, error in ((1.0, 0.1), (4.0, 0.05)):
        weights = np.full(100, count)
        assert clearly_worse(noise + 1.02 * error, weights)
        assert not clearly_worse(noise + 0.98 * error, weights)
        assert not clearly_worse(noise - 1.5 * error, weights)
    weights = np.where(noise > 0, 3.0, 1.0)  # mean ½, variance ¾, Σ weights 200
    shift = sqrt(0.75 / 200) - 0.5
    assert clearly_worse(noise + shift + 0.001, weights)
    assert not clearly_worse(noise + shift - 0.001, weights)
    assert not clearly_worse(np.array([2.0, 0.0]), np.array([0.5, 0.5]))  # one standard error exactly
