"""Layered solvers: soft blocks never raise the objective, chains find planted layers and repeat under a seed."""

from __future__ import annotations

import numpy as np
import pytest

from gingham.data import Sample
from gingham.fitting.schedules import Constant
from gingham.models.layers import pilot as sizes
from gingham.models.layers.data import LayerData
from gingham.models.layers.model import Draws
from gingham.models.layers.pilot import climb, cut_points, pool_pilots, run_pilot
from gingham.models.layers.sampled import MOST_BYTES, Chain, Shape, keep_every, run_chain, with_average
from gingham.models.layers.side import SideTable
from gingham.models.layers.soft import Soft, objective, solve


def planted(n=(60, 50), noise=0.5, seed=0, weights=False, modes=2):
    """Offsets and two added checkerboards on 40 % of the cells."""
    rng = np.random.default_rng(seed)
    n = n if modes == 2 else (*n[:2], 6)
    grid = np.stack(np.meshgrid(*map(np.arange, n), indexing="ij"), -1).reshape(-1, modes)
    X = grid[rng.random(len(grid)) < (0.4 if modes == 2 else 0.08)]
    y = 3.0 + rng.normal(0, 0.3, n[0])[X[:, 0]] + rng.normal(0, 0.3, n[1])[X[:, 1]]
    for _ in range(2):
        labels = [rng.integers(3, size=size) for size in n[:2]]
        y = y + rng.normal(0, 0.8, (3, 3))[labels[0][X[:, 0]], labels[1][X[:, 1]]]
    y = y + rng.normal(0, noise, len(X))
    return Sample.of(list(X.T), y, rng.integers(1, 4, len(X)) if weights else None)


def some_side(n, weight=0.5):
    rng = np.random.default_rng(1)
    return SideTable((rng.random((n, 4)) < 0.4).astype(float), rng.random(n) < 0.8, weight)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("modes", [2, 3])
@pytest.mark.parametrize("side", [False, True])
def test_soft_objective_never_rises_at_constant_beta(weights, modes, side) -> None:
    sample = planted(weights=weights, modes=modes)
    sides = [some_side(n) if side and j == 1 else None for j, n in enumerate(sample.shape)]
    data = LayerData.of(sample, sides)
    soft = Soft(n_sweeps=12, schedule=Constant())
    model, trace = solve(data, Shape(3, (4,) * modes), 1.0, np.random.SeedSequence(0), soft)
    assert np.all(np.diff(trace) <= 1e-9 * np.abs(trace[1:]))
    assert trace[-1] < trace[0] - 1.0
    assert objective(data, model, 1.0, soft) == pytest.approx(trace[-1])


def test_side_cost_is_least_at_its_own_tables() -> None:
    """The side term of J falls when memberships follow its scores: the property the block step relies on."""
    side = some_side(30)
    q = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    before = side.cost(q) - np.sum(q * 0)
    from scipy.special import softmax, xlogy

    def total(q):
        mass = q.mean(0)
        return side.cost(q) + xlogy(q, q).sum() - len(q) * xlogy(mass, mass).sum()

    new = softmax(np.log(q.mean(0)) + side.scores(q), axis=1)
    assert total(new) < total(q)
    assert np.isfinite(before)


def test_chain_predicts_planted_layers_better_than_offsets() -> None:
    sample = planted()
    test = np.random.default_rng(3).random(sample.n_rows) < 0.2
    train, rest = sample.take(~test), sample.take(test)
    data = LayerData.of(train)
    seed = np.random.SeedSequence(0)
    layered = Draws.join(run_chain(data, Shape(3, (4, 4)), 0.3, seed, 60, 20)).predict(rest.codes)
    offsets = Draws.join(run_chain(data, Shape(0, (4, 4)), 0.3, seed, 60, 20)).predict(rest.codes)
    error = lambda p: np.sqrt(np.mean((p.mean - rest.labels) ** 2))  # noqa: E731
    assert error(layered) < 0.7  # the noise is 0.5
    assert error(offsets) > 1.0
    assert layered.variance.min() > 0


def test_chain_repeats_under_its_seed_and_tracks_its_residuals() -> None:
    data = LayerData.of(planted(weights=True))
    draws = [Draws.join(run_chain(data, Shape(2, (3, 5)), 0.5, np.random.SeedSequence(s), 6, 2)) for s in (7, 7, 8)]
    np.testing.assert_array_equal(draws[0].labels, draws[1].labels)
    np.testing.assert_array_equal(draws[0].cells, draws[1].cells)
    assert not np.array_equal(draws[0].labels, draws[2].labels)
    chain = Chain(data, Shape(2, (3, 5)), 0.5, np.random.default_rng(0))
    for _ in range(8):
        chain.sweep()
    predicted = chain.draw().predict(data.codes).mean
    np.testing.assert_allclose(data.labels - predicted, chain.residual, atol=2e-3)  # offsets are kept in float16


def test_unseen_items_are_the_average_over_clusters() -> None:
    cells = np.arange(6.0).reshape(2, 3)
    table = with_average(cells, [np.array([0.25, 0.75]), np.array([0.5, 0.5, 0.0])])
    assert table.shape == (3, 4)
    np.testing.assert_allclose(table[:2, :3], cells)
    np.testing.assert_allclose(table[2, :3], 0.25 * cells[0] + 0.75 * cells[1])
    np.testing.assert_allclose(table[2, 3], (0.25 * cells[0] + 0.75 * cells[1])[:2].mean())
    data = LayerData.of(planted())
    draws = Draws.join(run_chain(data, Shape(1, (3, 3)), 0.5, np.random.SeedSequence(0), 5, 4))
    labels, cells = draws.checkerboard(0, 0)
    everyone = draws.predict([np.full(50, -1), np.arange(50)]).mean
    inside = draws.means[0] + draws.mean_offsets()[1]
    share = np.bincount(labels[0], minlength=3) / 60
    np.testing.assert_allclose(everyone, inside + (share @ cells)[labels[1]], atol=1e-5)


def test_pilot_finds_the_noise_and_small_data_fall_back() -> None:
    sample = planted(n=(80, 80), noise=0.6)
    run = run_pilot(sample, (None, None), Shape(3, (4, 4)), np.random.SeedSequence(0))
    pilot = pool_pilots([run], sample, None)
    assert 0.36 * 0.8 < pilot.error < 0.36 * 1.9
    assert 0 < pilot.scatter < pilot.error
    tiny = sample.take(np.arange(2))
    assert run_pilot(tiny, (None, None), Shape(1, (2, 2)), np.random.SeedSequence(0)) is None
    assert pool_pilots([None], tiny, np.array([1.0, 2.0])).cuts == pytest.approx([1.5])


def test_cut_points_minimise_absolute_error() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(1, 3, 4000)
    labels = np.where(p + rng.normal(0, 0.3, 4000) < 1.7, 1.0, np.where(p + rng.normal(0, 0.3, 4000) < 2.2, 2.0, 3.0))
    cuts = cut_points(p, labels, np.ones(4000), np.array([1.0, 2.0, 3.0]))
    assert cuts == pytest.approx([1.7, 2.2], abs=0.06)


def test_side_table_places_items_without_labels() -> None:
    """Two groups of columns, told apart by a property; columns without labels follow it."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(30, size=900), rng.integers(20, size=900)
    group = np.arange(30) % 2
    taste = rng.integers(2, size=30)
    y = np.where(taste[rows] == group[columns], 1.0, -1.0) + rng.normal(0, 0.2, 900)
    from gingham.data import Mode

    sample = Sample.of([rows, columns], y, modes=[Mode("r", np.arange(30)), Mode("c", np.arange(30))])
    side = SideTable(np.eye(2)[group], np.ones(30, bool), 2.0)
    data = LayerData.of(sample, [None, side])
    draws = Draws.join(run_chain(data, Shape(1, (2, 2)), 0.1, np.random.SeedSequence(1), 40, 20))
    new = np.repeat(np.arange(20, 30), 30)
    found = draws.predict([np.tile(np.arange(30), 10), new]).mean
    truth = np.where(np.tile(taste, 10) == group[new], 1.0, -1.0)
    assert np.mean(np.sign(found) == truth) > 0.95


def test_climbing_goes_on_while_the_end_is_best_and_asks_once() -> None:
    asked: list[int] = []

    def errors(best):
        def of(which):
            asked.extend(which)
            return [abs(i - best) for i in which]

        return of

    for best in range(7):
        asked.clear()
        assert climb(7, 3, errors(best)) == best
        assert len(asked) == len(set(asked))
        assert {2, 3, 4} <= set(asked)
        assert len(asked) == {0: 5, 1: 5, 2: 4, 3: 3, 4: 4, 5: 5, 6: 5}[best]
    assert climb(1, 0, errors(0)) == 0


@pytest.mark.parametrize("auto", ["n_layers", "n_clusters", "side_weight"])
def test_sizes_are_settled_by_the_least_held_out_error(auto, monkeypatch) -> None:
    """Pilots are replaced by a known error; what is given stays, what is open goes where the error is least."""
    sample = planted(n=(90, 80))
    best = {"n_layers": 2, "n_clusters": 5, "side_weight": 0.25}

    def run(sample, sides, shape, seed, backend="auto", checkpoint=None):
        found = {"n_layers": shape.n_layers, "n_clusters": shape.n_clusters[0], "side_weight": sides[1].weight}
        gap = np.array([abs(np.log(found[name] / best[name])) for name in best])
        return sizes.PilotRun(np.ones(1), 1.0 + np.array([gap.sum()]), np.zeros(1), np.ones(1))

    monkeypatch.setattr(sizes, "run_pilot", run)
    given = sizes.Size(7, 4, 0.7)._replace(**{auto: "auto"})
    choice, run_of_it = sizes.choose_layers(
        sample, (None, some_side(80)), given, lambda m: (m, m), True, np.random.SeedSequence(0),
        lambda calls: [call() for call in calls],
    )  # fmt: skip
    expected = {"n_layers": 7, "n_clusters": 4, "side_weight": 0.7, auto: best[auto]}
    chosen = (choice.n_layers, choice.n_clusters, choice.side_weight)
    assert chosen == (expected["n_layers"], (expected["n_clusters"],) * 2, expected["side_weight"])
    assert (*chosen, run_of_it.error) == min(choice.tried, key=lambda row: row[-1])
    assert "least error" in str(choice)


def test_sizes_of_much_data_are_compared_on_the_tuples_of_some_users(monkeypatch) -> None:
    sample = planted(n=(90, 80))
    seen = []

    def run(sample, *_):
        seen.append(sample)
        return sizes.PilotRun(np.ones(1), np.ones(1), np.zeros(1), np.ones(1))

    monkeypatch.setattr(sizes, "run_pilot", run)
    monkeypatch.setattr(sizes, "ENOUGH", sample.n_rows // 3)
    _, run_of_it = sizes.choose_layers(
        sample, (None, None), sizes.Size("auto", 4, 0.7), lambda m: (m, m), True, np.random.SeedSequence(0),
        lambda calls: [call() for call in calls],
    )  # fmt: skip
    assert run_of_it is None  # the noise must come from all tuples
    assert all(some is seen[0] for some in seen)
    assert 0.2 < seen[0].n_rows / sample.n_rows < 0.5
    whole, kept = (np.bincount(s.codes[0], minlength=90) for s in (sample, seen[0]))
    assert set(np.unique(kept / whole)) == {0.0, 1.0}


def test_with_very_many_items_fewer_draws_are_kept() -> None:
    data, shape = LayerData.of(planted()), Shape(2, (3, 4))
    every, some = (run_chain(data, shape, 0.5, np.random.SeedSequence(0), 12, 3, every=k) for k in (1, 4))
    assert len(every) == 9
    assert len(some) == 3
    for one, two in zip(some, every[::4]):
        np.testing.assert_array_equal(one.labels, two.labels)
    assert keep_every(data, shape, 300) == 1
    wide = Shape(10**4, (3, 4))
    of_draw = sum(n + 1 for n in data.n_items) * 10**4
    assert of_draw * 9000 > MOST_BYTES > of_draw * 9000 / keep_every(data, wide, 9000)
    assert keep_every(data, Shape(10**12, (3, 4)), 9) == 9


def test_a_chain_goes_on_from_a_kept_draw() -> None:
    """Its residual is that of the draw, its variances those of its cells; one with another seed goes elsewhere."""
    data = LayerData.of(planted(weights=True))
    shape = Shape(2, (3, 4))
    draws = Draws.join(run_chain(data, shape, 0.5, np.random.SeedSequence(0), 12, 8))
    chain = Chain.resume(data, shape, 0.5, np.random.default_rng(1), draws, 3)
    last = chain.draw()
    np.testing.assert_array_equal(last.labels[0], draws.labels[3])
    np.testing.assert_allclose(last.predict(data.codes).mean, data.labels - chain.residual, atol=1e-3)
    before = float(np.mean(chain.residual**2))
    for _ in range(5):
        chain.sweep()
    assert np.mean(chain.residual**2) < 1.2 * before  # it stands where it stood, not at a new start
    predicted = chain.draw().predict(data.codes).mean
    np.testing.assert_allclose(data.labels - predicted, chain.residual, atol=2e-3)
