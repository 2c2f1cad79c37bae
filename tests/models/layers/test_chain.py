"""The sampler of basket layers: exact conditionals, Geweke's test, compiled draws in lockstep."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, ndtr, ndtri
from scipy.stats import wishart

from gingham.models.layers import kernels as kernel
from gingham.models.layers import positions
from gingham.models.layers.chain import Chain, Layout
from gingham.models.layers.positions import PositionPlan, Positions
from gingham.models.layers.problem import (
    BASKET,
    ITEM,
    SIDE,
    Basket,
    LayerPlan,
    LayerProblem,
    Priors,
    first_state,
)
from models.layers import reference

LABEL_VALUES = np.array([1.0, 2.0, 3.0, 5.0, 6.0])
PLACED = {"plan": PositionPlan(0, 1, 2, 3, (40.0, 60.0))}


def tiny(
    n=(5, 4), rows=12, ordinal=True, time=True, weights=False, m=(2, 3), modes=2, seed=0, labels=5, plan=None,
):  # fmt: skip
    """A few rows with every kind of layer; priors wide enough for everything to matter."""
    rng = np.random.default_rng(seed)
    pairs = np.sort(rng.choice(n[0] * n[1], rows, replace=False))
    times = rng.uniform(0, 100, rows)
    order = np.lexsort((times, pairs // n[1]))
    u, i, times = (pairs // n[1])[order], (pairs % n[1])[order], times[order]
    genres = Basket.of_pairs(np.array([0, 0, 1, n[1] - 1]), np.array([0, 1, 1, 0]), n[1], 2)
    baskets = (Basket.itself(n[0]), Basket.of_pairs(u, i, *n), Basket.of_pairs(i, u, *n[::-1]), genres)
    layers = (
        LayerPlan(ITEM, 0, 1, 0, m[0], m[1], False),
        LayerPlan(BASKET, 0, 1, 1, m[0], m[1], True),
        LayerPlan(BASKET, 1, 0, 2, m[1], m[0], True),
        LayerPlan(SIDE, 1, 0, 3, 2, 2, False),
    )
    codes = [u, i]
    if modes == 3:
        codes.append(rng.integers(3, size=rows))
        baskets = (*baskets, Basket.of_pairs(codes[2], i, 3, n[1]), Basket.itself(n[1]))
        layers = (*layers, LayerPlan(BASKET, 2, 1, 4, 2, 2, True), LayerPlan(ITEM, 1, 2, 5, 2, 2, False))
    return LayerProblem(
        n_items=n if modes == 2 else (*n, 3),
        codes=np.stack(codes).astype(np.int32),
        labels=rng.choice(LABEL_VALUES[:labels], rows) if ordinal else rng.normal(3, 1, rows),
        weights=rng.integers(1, 4, rows).astype(float) if weights else None,
        label_values=LABEL_VALUES[:labels] if ordinal else None,
        baskets=baskets,
        layers=layers,
        times=times if time else None,
        windows=(10.0, 40.0) if time else (),
        phases=(3.0, 7.0) if time else (),
        scale=1.5,
        center=3.0,
        priors=Priors(0.6, 4.0, 0.5, 0.3, 6.0, 1.0),
        positions=plan,
    )


def drawn_state(problem, seed=1, sweeps=12):
    state = first_state(problem, 0.7, np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    for _ in range(sweeps):
        reference.sweep(problem, state, rng)
    return state


class Fixed:
    """A generator that gives given numbers, so that a draw shows its mean, its spread or its threshold."""

    def __init__(self, normal=0.0, uniform=0.5, chi2=1.0):
        self.normal, self.uniform, self.chi2 = normal, uniform, chi2

    def standard_normal(self, size=None, dtype=None):
        return self.normal if size is None else np.broadcast_to(self.normal, size).astype(float)

    def random(self, size=None, dtype=None):
        return np.full(size, self.uniform)

    def chisquare(self, freedom):
        self.freedom = freedom
        return self.chi2


def test_density_of_labels_is_that_of_shares_integrated_out():
    """Γ(m)/Γ(n + m) Π Γ(n_k + 1) is the mean of Π π_k^{n_k} over uniform shares."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), 200_000)
    for counts in ([2, 1, 0], [0, 0, 3]):
        exact = np.exp(gammaln(np.array(counts) + 1.0).sum() + gammaln(3) - gammaln(sum(counts) + 3))
        assert np.prod(shares**counts, axis=1).mean() == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("ordinal", [True, False])
def test_scores_of_targets_and_tokens_are_differences_of_the_density(ordinal):
    problem = tiny(ordinal=ordinal)
    state = drawn_state(problem)

    def density(labels, at, k):
        """ln p(z | …) alone: the density less what the prior says of the labels."""
        old, labels[at] = labels[at], k
        m = labels.max() + 4
        prior = gammaln(np.bincount(labels, minlength=m) + 1.0).sum()
        found = reference.log_joint(problem, state) - prior
        labels[at] = old
        return found

    for t in range(len(problem.layers)):
        scores = reference.target_scores(problem, state, t)
        for q in range(len(scores)):
            exact = np.array([density(state.targets[t], q, k) for k in range(scores.shape[1])])
            np.testing.assert_allclose(scores[q] - scores[q, 0], exact - exact[0], atol=1e-9)
        for token in range(len(state.tokens[t])):
            scores_of_token = reference.token_scores(problem, state, t, token)
            exact = np.array([density(state.tokens[t], token, k) for k in range(len(scores_of_token))])
            np.testing.assert_allclose(scores_of_token - scores_of_token[0], exact - exact[0], atol=1e-9)


def quadratic(function, at, directions):
    """Slope and negative curvature of a quadratic function along some directions, by differences that are exact."""
    h, centre = 0.25, function(at)
    ends = np.array([[function(at + h * v), function(at - h * v)] for v in directions])
    return (ends[:, 0] - ends[:, 1]) / (2 * h), -(ends.sum(axis=1) - 2 * centre) / h**2


@pytest.mark.parametrize("weights", [False, True])
def test_offsets_mean_and_cells_are_drawn_from_the_density(weights):
    problem = tiny(weights=weights, ordinal=not weights)
    state, rng = drawn_state(problem), np.random.default_rng(0)
    for kind in range(len(state.offsets)):

        def of_offsets(b, kind=kind):
            changed = deepcopy(state)
            changed.offsets[kind] = b
            return reference.log_joint(problem, changed)

        size = len(state.offsets[kind])
        found = []
        for normal in (0.0, 1.0):
            copy = deepcopy(state)
            reference.draw_offsets(problem, copy, kind, Fixed(normal))
            found.append(copy.offsets[kind].astype(float))
        directions = rng.normal(size=(4, size))
        slope, curvature = quadratic(of_offsets, found[0], directions)
        np.testing.assert_allclose(slope, 0.0, atol=1e-3)
        np.testing.assert_allclose(directions**2 @ (found[1] - found[0]) ** -2, curvature, rtol=1e-3)

    def of_mean(mean):
        return reference.log_joint(problem, replace(deepcopy(state), mean=float(mean[0])))

    means = []
    for normal in (0.0, 1.0):
        copy = deepcopy(state)
        reference.draw_mean(problem, copy, Fixed(normal))
        means.append(copy.mean)
    slope, curvature = quadratic(of_mean, np.array(means[:1]), np.eye(1))
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)
    assert curvature[0] == pytest.approx((means[1] - means[0]) ** -2)
    for t, layer in enumerate(problem.layers):
        shape = (layer.n_token_clusters, layer.n_target_clusters)

        def of_cells(cells, t=t, shape=shape):
            changed = deepcopy(state)
            changed.cells[t] = cells.reshape(shape)
            return reference.log_joint(problem, changed)

        def drawn(normal, t=t):
            copy = deepcopy(state)
            reference.draw_cells(problem, copy, t, Fixed(normal))
            return copy.cells[t].astype(float).ravel()

        centre = drawn(0.0)
        directions = rng.normal(size=(4, len(centre)))
        slope, curvature = quadratic(of_cells, centre, directions)
        np.testing.assert_allclose(slope, 0.0, atol=1e-3)
        spread = np.transpose([drawn(unit.reshape(shape[::-1])) - centre for unit in np.eye(len(centre))])
        precision = np.linalg.inv(spread @ spread.T)
        np.testing.assert_allclose(np.einsum("va,ab,vb->v", directions, precision, directions), curvature, rtol=2e-3)


def test_variances_are_drawn_from_the_density():
    """The distribution of a variance is (A/v)·exp-like: its density along v has the shape of the scaled inverse χ²."""
    problem = tiny()
    state = drawn_state(problem)
    generator = Fixed(chi2=1.0)
    grid = np.array([0.2, 0.5, 1.1])
    for draw, variances, at in (
        (lambda s: reference.draw_offsets(problem, s, 1, generator), "offset_variances", 1),
        (lambda s: reference.draw_layer(problem, s, 1, np.random.default_rng(0)), "cell_variances", 1),
    ):
        copy = deepcopy(state)
        draw(copy)
        values = copy.offsets[1] if variances == "offset_variances" else copy.cells[1]
        weight = 6.0 if variances == "offset_variances" else 4.0
        prior = problem.offset_variance(1) if variances == "offset_variances" else 0.6 * state.noise
        top = weight * prior + float(np.sum(values.astype(float) ** 2))
        exact = []
        for v in grid:
            getattr(copy, variances)[at] = v
            exact.append(reference.log_joint(problem, copy))
        expected = [-((weight + values.size) / 2 + 1) * np.log(v) - top / (2 * v) for v in grid]
        np.testing.assert_allclose(np.diff(exact), np.diff(expected), rtol=1e-7)
        assert reference.draw_variance(values, weight, prior, generator) == pytest.approx(top)
        assert generator.freedom == weight + values.size


@pytest.mark.parametrize("uniform", [0.0, 0.3, 1.0])
def test_latent_answers_are_drawn_between_their_cut_points(uniform):
    problem = tiny()
    state = drawn_state(problem)
    f, sd = reference.effect(problem, state), np.sqrt(state.noise)
    reference.draw_latent(problem, state, Fixed(uniform=uniform))
    bounds = np.concatenate([[-np.inf], state.cuts, [np.inf]])
    low, high = (ndtr((bounds[problem.label_codes + i] - f) / sd) for i in (0, 1))
    np.testing.assert_allclose((ndtr((state.latent - f) / sd) - low) / (high - low), uniform, atol=2e-5)


@pytest.mark.parametrize("n_labels", [2, 5])
def test_labels_of_a_whole_layer_have_the_law_that_enumeration_gives(n_labels):
    """All else fixed, draws of targets and tokens visit each labelling as often as the density says."""
    problem = tiny(n=(2, 2), rows=3, time=False, m=(2, 2), labels=n_labels)
    problem = replace(problem, layers=problem.layers[1:2])
    state = drawn_state(problem)
    state.cells[0] = np.array([[0.9, -0.4], [-0.7, 0.5]], dtype=np.float32)
    state.noise = 2.0  # so much that labels change often
    every = list(product(range(2), repeat=4))
    exact = []
    for labels in every:
        copy = deepcopy(state)
        copy.targets[0][:], copy.tokens[0][:] = labels[:2], labels[2:]
        exact.append(reference.log_joint(problem, copy))
    exact = np.exp(np.array(exact) - max(exact))
    exact /= exact.sum()
    rng, n = np.random.default_rng(0), 1500
    counts = np.zeros(len(every))
    for _ in range(n):
        reference.draw_targets(problem, state, 0, rng)
        reference.draw_tokens(problem, state, 0, rng)
        counts[every.index((*state.targets[0].tolist(), *state.tokens[0].tolist()))] += 1
    assert exact.max() > 2 * exact.min()
    np.testing.assert_allclose(counts / n, exact, atol=0.05)


def small(**case):
    """Priors with light tails, so that means over a few thousand draws can be trusted."""
    problem = tiny(**{"n": (4, 3), "rows": 12, "m": (2, 2), **case})
    return replace(problem, priors=Priors(1.5, 12.0, 0.5, 0.3, 12.0, 1.0))


def facts(problem, state):
    """Bounded functions of parameters and answers, whose means are compared."""
    z = state.latent.astype(float)
    same = [np.mean(labels[:, None] == labels) for labels in (*state.targets, *state.tokens)]
    squares = [np.mean(a.astype(float) ** 2) for a in (*state.offsets, *state.cells, z - 3.0)]
    pull = reference.layer_effect(problem, state, 1)
    target = None if problem.positions is None else problem.positions.target
    drawn = [v for kind, v in enumerate(state.offset_variances) if kind != target]
    products = [(z[0] - 3.0) * (z[1] - 3.0), state.offsets[0][0] * (z[0] - 3.0), pull[0] * (z[0] - 3.0)]
    return np.array(
        [
            np.tanh(state.mean - 3.0), np.tanh((state.mean - 3.0) ** 2), np.tanh(z.mean() - 3.0), *state.cuts[1:-1],
            *(state.cuts[1:-1] * state.cuts[2:])[:1], *np.tanh(squares), *np.tanh(products), *same,
            *np.log(drawn), *np.log(state.cell_variances), *facts_of_points(problem, state),
        ]
    )  # fmt: skip


def facts_of_points(problem, state):
    own = state.positions
    if own is None:
        return []
    near, z = reference.positions_effect(problem, state), state.latent.astype(float) - 3.0
    parts = (own.sources, own.centres, own.targets, own.means, state.offsets[problem.positions.target])
    return [
        *np.log(own.spread), *np.log(own.between), *(np.tanh(np.mean(part.astype(float) ** 2)) for part in parts),
        np.mean(own.labels[:, None] == own.labels), *np.linalg.slogdet(own.precisions)[1], np.tanh(near[0] * z[0]),
        np.tanh(own.targets[0] @ own.means[own.labels[0], 1:]), np.tanh(own.sources[0] @ own.centres[0]),
    ]  # fmt: skip


def geweke(n, broken=None, rounds=3, seed=0, **case):
    """|z-scores| of facts after some rounds of sweeps and new answers against the same facts before.

    Parameters from their prior and answers from them have the joint distribution; draws from the right conditionals
    keep it (Geweke 2004). Pairs of independent runs make the errors exact.
    """
    rng = np.random.default_rng(seed)
    change = []
    for _ in range(n):
        problem = small(**case)
        state = reference.draw_prior(problem, 0.3, rng)
        problem = replace(problem, labels=reference.draw_answers(problem, state, rng))
        before = facts(problem, state)
        for _ in range(rounds):
            chain = Chain(problem, state, rng)
            if broken is not None:
                broken(chain)
            chain.sweep()
            state.noise = 0.3
            problem = replace(problem, labels=reference.draw_answers(problem, state, rng))
        change.append(facts(problem, state) - before)
    change = np.array(change)
    return np.abs(change.mean(axis=0) / (change.std(axis=0) / np.sqrt(n)))


def stale(chain):
    """A residual that something was not taken out of."""
    chain.residual += np.float32(0.5)


def moved(chain):
    """Positions that moved without their residuals."""
    chain.state.positions.targets *= np.float32(1.5)


def wide(chain):
    """Cells under another prior than the one they came from."""
    chain.problem = replace(chain.problem, priors=replace(chain.problem.priors, cell_variance=4.5))


def test_joint_law_of_parameters_and_answers():
    assert geweke(600).max() < 4.0
    assert geweke(600, labels=2).max() < 4.0
    assert geweke(300, wide).max() > 5.0


@pytest.mark.parametrize("case", [{"ordinal": False}, {"labels": 2}], ids=str)
def test_joint_law_of_positions_and_answers(case, monkeypatch):
    """With lighter tails of their priors, as in `small`."""
    for name, value in {"WEIGHT": 12.0, "FREEDOM": 12.0, "SPREAD": 0.2}.items():
        monkeypatch.setattr(positions, name, value)
    plan = PositionPlan(0, 1, 2, 2, (50.0,))
    assert geweke(500, plan=plan, **case).max() < 4.0
    assert geweke(200, moved, plan=plan, **case).max() > 5.0


def law_of_points(problem, state, mode):
    """Means of `facts_of_item` under the density: clusters of targets enumerated, two numbers of each item integrated.

    Of a target these are its offset and its coordinate, of a source its average and its coordinate.
    """
    source, clusters = mode == problem.positions.source, state.positions.labels
    labellings = [clusters] if source else [np.array(one) for one in product(range(2), repeat=2)]
    line = np.arange(-4.0, 4.1, 0.5)
    grid, total = np.array(list(product(line, repeat=2))), 0.0
    sums = np.zeros((2, 6))
    for labels in labellings:
        state.positions.labels = labels
        height = reference.log_joint(problem, state)  # items are independent, given their clusters
        every = np.zeros((2, len(grid)))
        for item, at in product(range(2), range(len(grid))):
            copy = deepcopy(state)
            own = copy.positions
            first, second = (own.centres[:, 0], own.sources) if source else (copy.offsets[mode], own.targets)
            first[item], second[item, 0] = grid[at]
            every[item, at] = np.exp(reference.log_joint(problem, copy) - height)
        weight = np.exp(height) * every.sum(axis=1).prod()
        total += weight
        for item in range(2):
            shown = facts_of_item(*grid.T, np.full(len(grid), labels[item]))
            sums[item] += weight * (every[item] / every[item].sum()) @ shown
    state.positions.labels = clusters
    return sums / total


def facts_of_item(a, b, label):
    return np.stack([a, b, a * a, a * b, b * b, label], axis=-1)


def errors_of_points(problem, state, mode, exact, n=3000):
    """|z-scores| of means over many draws of the positions of a mode, all else fixed, by the chain."""
    state = deepcopy(state)
    state.n_sweeps = positions.SETTLING if mode else 0  # the variances of sources stay as they are
    chain, own, found = Chain(problem, state, np.random.default_rng(0)), state.positions, []
    if mode:
        chain._reorder(mode)
    for _ in range(n):
        chain._draw_positions(mode, problem.positions, own)
        pair = (state.offsets[mode], own.targets, own.labels) if mode else (own.centres[:, 0], own.sources, own.labels)
        found.append(facts_of_item(pair[0].astype(float), pair[1][:, 0].astype(float), pair[2]))
    batches = np.array(found).reshape(30, n // 30, 2, 6).mean(axis=1)  # successive draws are dependent
    spread = np.maximum(batches.std(axis=0) / np.sqrt(29), 1e-9)
    return np.abs(batches.mean(axis=0) - exact)[:, : 6 if mode else 5] / spread[:, : 6 if mode else 5]


@pytest.mark.parametrize("mode", [0, 1])
def test_positions_have_the_law_that_enumeration_gives(mode, monkeypatch):
    """Two senators and two roll calls of one coordinate; a prior that is too narrow is noticed."""
    plan = PositionPlan(0, 1, 1, 2)
    problem = replace(tiny(n=(2, 2), rows=4, ordinal=False, time=False, weights=True, plan=plan), layers=())
    state = drawn_state(problem)
    own, state.noise, state.mean = state.positions, 2.0, 3.0
    own.means, own.spread, own.between = np.array([[0.6, -0.7], [-0.4, 0.8]]), np.array([0.6]), np.array([0.9])
    own.precisions = np.array([[[2.0, 0.6], [0.6, 1.5]], [[1.4, -0.4], [-0.4, 2.0]]])
    own.targets, own.sources = np.array([[0.9], [-0.6]], np.float32), np.array([[0.8], [-0.5]], np.float32)
    monkeypatch.setattr(Positions, "_draw_clusters", lambda *_: None)
    exact = law_of_points(problem, state, mode)
    assert errors_of_points(problem, state, mode, exact).max() < 4.5
    name = "draw_targets_prior" if mode else "draw_sources_prior"
    right = getattr(Positions, name)

    def narrow(*given):
        prior = right(*given)
        return prior._replace(precisions=3.0 * prior.precisions, shift=3.0 * prior.shift)

    monkeypatch.setattr(Positions, name, narrow)
    assert errors_of_points(problem, state, mode, exact).max() > 7.0


def test_variances_and_centres_of_positions_have_the_law_that_quadrature_gives():
    """One coordinate: variances on a fine grid, mean and precision of a cluster by weighted draws from their prior."""
    problem = replace(tiny(n=(4, 3), ordinal=False, plan=PositionPlan(0, 1, 1, 2, (50.0,))), layers=())
    state, rng = drawn_state(problem), np.random.default_rng(0)
    present, start, found = np.ones((4, 2), dtype=bool), deepcopy(state.positions), []
    for _ in range(3000):
        own = deepcopy(start)
        own.draw_sources_prior(present, state.noise, True, rng)
        found.append([own.spread[0], own.between[0]])
    logs, grid = np.log(found), np.linspace(-12.0, 12.0, 600)
    for at, name in enumerate(("spread", "between")):
        heights = []
        for log in grid:
            state.positions = replace(start, **{name: np.exp([log])})
            heights.append(reference.log_positions(problem, state) + log)
        weights = np.exp(np.array(heights) - max(heights))
        exact = weights @ grid / weights.sum()
        assert logs[:, at].mean() == pytest.approx(exact, abs=4.0 * logs[:, at].std() / np.sqrt(3000))

    points, own = np.array([[0.4, 1.2], [-0.3, 0.7], [0.9, -0.2]]), deepcopy(start)
    own.labels[:] = 0
    drawn = []
    for _ in range(3000):
        own._draw_clusters(points, 0.7, rng)
        drawn.append([*own.means[0], *own.precisions[0, [0, 0, 1], [0, 1, 1]]])
    n = 40_000
    prior = wishart.rvs(2 + positions.FREEDOM, np.diag([1 / 0.7, 1.0]), n, rng)
    means = np.linalg.solve(np.linalg.cholesky(prior).transpose(0, 2, 1), rng.normal(size=(n, 2, 1)))[:, :, 0]
    away = points - means[:, None]
    log = 1.5 * np.linalg.slogdet(prior)[1] - 0.5 * np.einsum("nia,nab,nib->n", away, prior, away)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    values = np.column_stack([means, prior[:, [0, 0, 1], [0, 1, 1]]])
    exact, drawn = weights @ values, np.array(drawn)
    error = np.sqrt(drawn.var(axis=0) / 3000 + weights**2 @ (values - exact) ** 2)
    assert np.max(np.abs(drawn.mean(axis=0) - exact) / error) < 4.5


def test_a_stale_residual_is_noticed():
    assert geweke(300, stale).max() > 5.0


@pytest.mark.parametrize(
    "case",
    [
        {}, {"ordinal": False}, {"weights": True}, {"m": (5, 6)}, {"modes": 3}, {"time": False, "weights": True},
        {"labels": 2}, PLACED, {"weights": True, "plan": PositionPlan(1, 0, 3, 2)},
    ],
    ids=str,
)  # fmt: skip
def test_compiled_draws_move_in_lockstep_with_the_reference(case, monkeypatch):
    monkeypatch.setattr("gingham.models.layers.problem.SETTLING", 6)
    problem = tiny(**case)
    state = first_state(problem, 0.7, np.random.default_rng(1))
    copy = deepcopy(state)
    generators = np.random.default_rng(2), np.random.default_rng(2)
    chain = Chain(problem, copy, generators[1], Layout.of(problem))
    for _ in range(14):
        reference.sweep(problem, state, generators[0])
        chain.sweep()
        for one, two in zip((*state.targets, *state.tokens), (*copy.targets, *copy.tokens)):
            np.testing.assert_array_equal(one, two)
        assert copy.mean == pytest.approx(state.mean, abs=1e-5)
        for one, two in zip((*state.cells, *state.offsets), (*copy.cells, *copy.offsets)):
            np.testing.assert_allclose(two, one, atol=1e-5)
        same_points(state.positions, copy.positions)
        np.testing.assert_allclose(copy.cuts, state.cuts, atol=1e-6)
        np.testing.assert_allclose(copy.latent, state.latent, atol=1e-5)
        np.testing.assert_allclose(copy.cell_variances, state.cell_variances, rtol=1e-4)
        np.testing.assert_allclose(chain.residual, state.latent - reference.effect(problem, state), atol=1e-5)


def same_points(one, two, atol=2e-5):
    for at in fields(Positions) if one is not None else ():
        np.testing.assert_allclose(getattr(two, at.name), getattr(one, at.name), rtol=1e-3, atol=atol)


DEVICE_CASES = [
    {}, {"ordinal": False, "modes": 3}, {"m": (5, 6), "weights": True}, {"labels": 2}, PLACED,
    {**PLACED, "ordinal": False}, {"labels": 2, "weights": True, "plan": PositionPlan(1, 0, 3, 2)},
]  # fmt: skip


@pytest.mark.parametrize("case", DEVICE_CASES, ids=str)
def test_draws_on_a_device_move_in_lockstep_with_the_reference(case, monkeypatch):
    """torch on whatever device there is, with the host's numbers in place of the device's."""
    torch = pytest.importorskip("torch")
    from gingham.engine.project_torch import to_device
    from gingham.models.layers.chain_torch import DeviceChain, DeviceLayout

    class FromHost(DeviceChain):
        def _uniforms(self, which, n):
            return to_device(self.rng.random(n, dtype=np.float32))

        def _normals(self, n):
            return to_device(self.rng.standard_normal(n, dtype=np.float32))

    monkeypatch.setattr("gingham.engine.project_torch.RUN", 2)  # items with several runs
    monkeypatch.setattr("gingham.models.layers.problem.SETTLING", 4)
    problem = tiny(**case)
    state = first_state(problem, 0.7, np.random.default_rng(1))
    copy = deepcopy(state)
    generators = np.random.default_rng(2), np.random.default_rng(2)
    chain = FromHost(problem, copy, generators[1], DeviceLayout.of(problem))
    held = np.arange(problem.n_rows) % 3 == 0
    for number in range(9):
        if number == 4:  # some rows do not count for a while, as where the noise is found
            counted = np.where(held, 0.0, 1.0 if problem.weights is None else problem.weights)
            chain.leave_out(held)
        if number == 6:
            chain.leave_out(None)
        counts = replace(problem, weights=counted) if 4 <= number < 6 else problem
        reference.sweep(counts, state, generators[0])
        chain.sweep()
        for one, two in zip((*state.targets, *state.tokens), (*copy.targets, *copy.tokens)):
            np.testing.assert_array_equal(one, two)
        assert copy.mean == pytest.approx(state.mean, abs=1e-5)
        for one, two in zip((*state.cells, *state.offsets), (*copy.cells, *copy.offsets)):
            np.testing.assert_allclose(two, one, atol=2e-5)
        same_points(state.positions, copy.positions)
        np.testing.assert_allclose(copy.cuts, state.cuts, atol=1e-6)
        np.testing.assert_allclose(chain.latent.cpu().numpy(), state.latent, atol=2e-5)
        np.testing.assert_allclose(copy.cell_variances, state.cell_variances, rtol=1e-4)
        left = state.latent - reference.effect(problem, state)
        np.testing.assert_allclose(chain.residual.cpu().numpy(), left, atol=2e-5)
        if 4 <= number < 6:
            np.testing.assert_allclose(chain.effects(), (state.latent - left)[held], atol=2e-5)
    assert torch.is_tensor(chain.residual)


@pytest.mark.parametrize("ordinal", [True, False])
def test_a_chain_on_a_device_goes_on_from_a_checkpoint(ordinal):
    pytest.importorskip("torch")
    from gingham.models.layers.chain_torch import DeviceLayout

    problem = tiny(ordinal=ordinal)
    layout = DeviceLayout.of(problem)

    def begun():
        rng = np.random.default_rng(1)
        return layout.begin(problem, first_state(problem, 0.7, rng), rng)

    one, two = begun(), begun()
    for _ in range(5):
        one.sweep()
    kept = one._to_file()
    two.sweep()  # somewhere else
    two.restore(kept)
    for _ in range(4):
        one.sweep()
        two.sweep()
    for a, b in zip((*one.state.cells, *one.state.targets), (*two.state.cells, *two.state.targets)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one._to_file()["residual"], two._to_file()["residual"])


def test_normal_law_of_the_kernels():
    x = np.linspace(-9, 9, 4001)
    found = np.array([kernel.cdf(v, kernel.PHI) for v in x])
    np.testing.assert_allclose(found, ndtr(np.clip(x, -8.4, 8.4)), atol=4e-9)
    p = np.concatenate([np.logspace(-10, -1, 200), np.linspace(0.1, 0.9, 99), 1 - np.logspace(-10, -1, 200)])
    np.testing.assert_allclose([kernel.ppf(v) for v in p], ndtri(p), rtol=2e-9)


@pytest.mark.parametrize("width", [4, 8, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_targets_with_few_rows_and_with_many_are_drawn_alike(width, weighted):
    """More targets than a block holds: most have a row or two or none, others hundreds."""
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.integers(3, size=600), rng.integers(100, 200, size=40), rng.integers(2, size=300)])
    indptr, n = np.concatenate([[0], np.cumsum(counts)]), counts.sum()
    targets, sources = np.repeat(np.arange(940), counts).astype(np.uint32), rng.integers(30, size=n).astype(np.uint32)
    residual = rng.normal(size=n).astype(np.float32)
    weights = rng.integers(4, size=n).astype(np.float32) if weighted else None
    table, shares = (rng.normal(size=size).astype(np.float32) / 3 for size in (30 * 2 * width, width))
    before, old = rng.integers(width, size=(2, 940)).astype(np.uint8)
    uniforms, stats = rng.random(940).astype(np.float32), np.ones(30 * 2 * width, np.float32)
    last, now = table.reshape(30, 2, width).transpose(1, 0, 2)
    expected = residual + now[sources, old[targets]] - last[sources, before[targets]]
    w, g = np.ones(n) if weights is None else weights, now[sources]
    gains = np.stack([np.bincount(targets, gain, 940) for gain in (w[:, None] * g * (2 * expected[:, None] - g)).T], 1)
    mine = np.array([reference.pick(row, u) for row, u in zip(shares + 0.65 * gains, uniforms)])
    labels = old.copy()
    kernel.draw_targets(
        indptr, targets, sources, residual, weights, table, before, labels, width, shares, 1.3,
        uniforms, stats,
    )  # fmt: skip
    np.testing.assert_allclose(residual, expected, atol=1e-5)
    np.testing.assert_array_equal(labels, mine)
    at = sources * 2 * width + mine[targets]
    found = np.bincount(at, w, len(stats)) + np.bincount(at + width, w * expected, len(stats))
    np.testing.assert_allclose(stats, found, atol=1e-3)


def test_gains_of_cuts_are_differences_of_the_likelihood():
    problem = tiny(rows=18)
    state = drawn_state(problem)
    f = reference.effect(problem, state)
    for weights in (None, np.random.default_rng(0).integers(1, 4, 18).astype(np.float32)):
        proposed = state.cuts + np.array([0.0, 0.05, 0.0, 0.0])
        gains = kernel.cut_gains(
            problem.label_codes.astype(np.uint8), state.latent, (state.latent - f).astype(np.float32), weights,
            float(np.sqrt(state.noise)), state.cuts, proposed, kernel.PHI,
        )  # fmt: skip
        change = reference.log_interval(problem, state, f, proposed) - reference.log_interval(
            problem, state, f, state.cuts
        )
        assert gains[1] == pytest.approx(float(np.sum(change if weights is None else weights * change)), abs=1e-5)
        assert gains[[0, 2, 3]] == pytest.approx(0.0)


def test_residuals_do_not_drift():
    """Residuals are carried along in float32 through thousands of changes; from scratch they are the same."""
    rng = np.random.default_rng(0)
    problem = tiny(n=(40, 30), rows=700, seed=3)
    chain = Chain(problem, first_state(problem, 0.7, rng), rng)
    for _ in range(120):
        chain.sweep(adapt=True)
    np.testing.assert_allclose(chain.residual, chain.state.latent - chain.effect(), atol=1e-4)
