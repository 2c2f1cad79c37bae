"""The draws of a chain in plain numpy: slow and simple.

`log_joint` is the density that everything is drawn from, given σ²; every draw below is from the exact conditional
distribution under it (the cut points by a Metropolis step). `gingham.models.layers.chain.Chain` does the same, quickly,
and takes the same numbers from the generator in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from scipy.special import gammaln, ndtr, ndtri
from scipy.stats import multivariate_normal, norm, wishart

from gingham.arrays import Floats, Ints
from gingham.models.layers import positions
from gingham.models.layers.problem import BASKET, OFFSET_SWEEPS, ChainState, LayerProblem, inner_cuts

EDGE = 1e-10  # probabilities are kept this far from 0 and 1 before they are turned into latent answers


def normalised(problem: LayerProblem, state: ChainState, t: int) -> Floats:
    """|N(x)|^(−½) Σ_j [d(j) = k], (n_sources, token clusters): a source's basket over clusters of tokens."""
    layer = problem.layers[t]
    basket = problem.baskets[layer.basket]
    contents: Floats = np.zeros((basket.n_sources, layer.n_token_clusters))
    for x in range(basket.n_sources):
        mine = basket.tokens[basket.indptr[x] : basket.indptr[x + 1]]
        for token in mine:
            contents[x, state.tokens[t][token]] += 1.0
        contents[x] /= np.sqrt(max(len(mine), 1))
    return contents


def layer_effect(problem: LayerProblem, state: ChainState, t: int) -> Floats:
    """What layer t adds to every row, (N,)."""
    layer = problem.layers[t]
    pull = normalised(problem, state, t) @ state.cells[t].astype(np.float64)
    return pull[problem.codes[layer.source], state.targets[t][problem.codes[layer.target]]]


def offset_codes(problem: LayerProblem) -> list[Ints]:
    """Which offset of each kind a row has."""
    windows = [np.repeat(np.arange(len(ends) - 1), np.diff(ends)) for ends in problem.window_ends]
    return [*problem.codes, *windows]


def effect(problem: LayerProblem, state: ChainState) -> Floats:
    """f, (N,)."""
    f: Floats = np.full(problem.n_rows, state.mean)
    for b, code in zip(state.offsets, offset_codes(problem)):
        f += b[code]
    for t in range(len(problem.layers)):
        f += layer_effect(problem, state, t)
    return f if state.positions is None else f + positions_effect(problem, state)


def positions_effect(problem: LayerProblem, state: ChainState) -> Floats:
    source, target = problem.position_codes
    return np.sum(state.positions.sources[source].astype(np.float64) * state.positions.targets[target], axis=1)


def weights_of(problem: LayerProblem) -> Floats:
    return np.ones(problem.n_rows) if problem.weights is None else problem.weights


# the density


def log_joint(problem: LayerProblem, state: ChainState) -> float:
    """ln p(z, y, μ, b, v, c, d, G, τ, cuts | σ²), the shares of clusters integrated out; −∞ where y and z disagree."""
    priors, scale = problem.priors, problem.scale
    z, f, w = state.latent.astype(np.float64), effect(problem, state), weights_of(problem)
    total = float(norm.logpdf(z, f, np.sqrt(state.noise / w)).sum())
    if problem.label_values is not None:
        bounds = np.concatenate([[-np.inf], state.cuts, [np.inf]])
        inside = (bounds[problem.label_codes] < z) & (z <= bounds[problem.label_codes + 1])
        if not inside.all() or (np.diff(state.cuts) <= 0).any():
            return -np.inf
    total += float(norm.logpdf(state.mean, problem.center, np.sqrt(priors.mean_variance * scale)))
    if state.positions is not None:
        total += log_positions(problem, state)
    for kind, (b, v) in enumerate(zip(state.offsets, state.offset_variances)):
        if problem.positions is not None and kind == problem.positions.target:
            continue  # drawn with the positions
        total += float(norm.logpdf(b, 0.0, np.sqrt(v)).sum())
        total += scaled_inverse_chi2(v, priors.offset_weight, problem.offset_variance(kind))
    for t, layer in enumerate(problem.layers):
        tau = state.cell_variances[t]
        total += float(norm.logpdf(state.cells[t], 0.0, np.sqrt(tau)).sum())
        total += scaled_inverse_chi2(tau, priors.cell_weight, priors.cell_variance * state.noise)
        for labels, m in ((state.targets[t], layer.n_target_clusters), (state.tokens[t], layer.n_token_clusters)):
            counts = np.bincount(labels, minlength=m)
            total += float(gammaln(counts + 1.0).sum() + gammaln(m) - gammaln(len(labels) + m))
    return total


def log_positions(problem: LayerProblem, state: ChainState) -> float:
    """ln p(b_q, v, c, m, Λ, u, ū, ω², ψ² | σ²), the shares of clusters integrated out."""
    plan, own = problem.positions, state.positions
    k, d = own.means.shape
    counts = np.bincount(own.labels, minlength=k)
    total = float(gammaln(counts + 1.0).sum() + gammaln(k) - gammaln(len(own.labels) + k))
    scatter = np.diag([state.noise, *[1.0] * (d - 1)])
    for mean, precision in zip(own.means, own.precisions):
        total += float(wishart.logpdf(precision, d + positions.FREEDOM, np.linalg.inv(scatter)))
        total += float(multivariate_normal.logpdf(mean, np.zeros(d), np.linalg.inv(precision)))
    for b, v, c in zip(state.offsets[plan.target], own.targets, own.labels):
        point = np.concatenate([[b], v]).astype(np.float64)
        total += float(multivariate_normal.logpdf(point, own.means[c], np.linalg.inv(own.precisions[c])))
    centres = np.repeat(own.centres, plan.n_periods, axis=0)
    total += float(norm.logpdf(own.sources.astype(np.float64), centres, np.sqrt(own.spread)).sum())
    total += float(norm.logpdf(own.centres, 0.0, np.sqrt(own.between)).sum())
    for spread, between in zip(own.spread, own.between):
        total += scaled_inverse_chi2(spread, positions.WEIGHT, positions.SPREAD * state.noise)
        total += scaled_inverse_chi2(between, positions.WEIGHT, positions.BETWEEN * state.noise)
    return total


def scaled_inverse_chi2(v: float, weight: float, scale: float) -> float:
    """Log density of v where weight·scale/v ~ χ²(weight)."""
    half = weight / 2.0
    return float(half * np.log(half * scale) - gammaln(half) - (half + 1.0) * np.log(v) - half * scale / v)


# draws: each is from the conditional distribution under the density above


def log_shares(labels: Ints, m: int, rng: np.random.Generator) -> Floats:
    """ln π of each cluster, π ~ Dirichlet(1 + counts)."""
    drawn = rng.standard_gamma(np.bincount(labels, minlength=m) + 1.0)
    return np.log(drawn / drawn.sum())


def pick(log_weights: Floats, uniform: float) -> int:
    weights = np.exp(log_weights - log_weights.max())
    return int(min(np.searchsorted(np.cumsum(weights), uniform * weights.sum()), len(weights) - 1))


def draw_variance(values: Floats, weight: float, scale: float, rng: np.random.Generator) -> float:
    """v ~ (weight·scale + Σ values²)/χ²(weight + n)."""
    squares = float(np.sum(values.astype(np.float64) ** 2))
    return (weight * scale + squares) / float(rng.chisquare(weight + values.size))


def draw_offsets(problem: LayerProblem, state: ChainState, kind: int, rng: np.random.Generator) -> None:
    """b_x ~ N(Σ w (r + b)/σ²/p, 1/p), p = Σ w/σ² + 1/v; then v."""
    code, old = offset_codes(problem)[kind], state.offsets[kind]
    w, n = weights_of(problem), len(old)
    without = state.latent - effect(problem, state) + old[code]
    precision = np.bincount(code, w, minlength=n) / state.noise + 1.0 / state.offset_variances[kind]
    mean = np.bincount(code, w * without, minlength=n) / state.noise / precision
    normals = rng.standard_normal(n, dtype=np.float32)
    state.offsets[kind] = (mean + normals / np.sqrt(precision)).astype(np.float32)
    state.offset_variances[kind] = draw_variance(
        state.offsets[kind], problem.priors.offset_weight, problem.offset_variance(kind), rng
    )


def draw_mean(problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> None:
    w = weights_of(problem)
    without = state.latent - effect(problem, state) + state.mean
    prior = 1.0 / (problem.priors.mean_variance * problem.scale)
    precision = w.sum() / state.noise + prior
    mean = (w @ without / state.noise + prior * problem.center) / precision
    state.mean = float(mean + rng.standard_normal() / np.sqrt(precision))


def target_scores(problem: LayerProblem, state: ChainState, t: int) -> Floats:
    """ln p(z | c(q) = k, everything else) up to a constant, (targets, clusters); targets are independent."""
    layer = problem.layers[t]
    pull = normalised(problem, state, t) @ state.cells[t].astype(np.float64)
    without = state.latent - effect(problem, state) + layer_effect(problem, state, t)
    scores: Floats = np.zeros((problem.n_items[layer.target], layer.n_target_clusters))
    for e, (x, q) in enumerate(zip(problem.codes[layer.source], problem.codes[layer.target])):
        scores[q] -= 0.5 * weights_of(problem)[e] / state.noise * (without[e] - pull[x]) ** 2
    return scores


def draw_targets(problem: LayerProblem, state: ChainState, t: int, rng: np.random.Generator) -> None:
    share = log_shares(state.targets[t], problem.layers[t].n_target_clusters, rng)
    scores = share + target_scores(problem, state, t)
    uniforms = rng.random(len(scores), dtype=np.float32)
    state.targets[t] = np.array([pick(row, u) for row, u in zip(scores, uniforms)], dtype=np.uint8)


def token_scores(problem: LayerProblem, state: ChainState, t: int, token: int) -> Floats:
    """ln p(z | d(token) = k, everything else) up to a constant, (clusters,)."""
    w, old = weights_of(problem), state.tokens[t][token]
    without = state.latent - effect(problem, state) + layer_effect(problem, state, t)
    scores = np.zeros(problem.layers[t].n_token_clusters)
    for k in range(len(scores)):
        state.tokens[t][token] = k
        scores[k] = -0.5 / state.noise * float(w @ (without - layer_effect(problem, state, t)) ** 2)
    state.tokens[t][token] = old
    return scores


def draw_tokens(problem: LayerProblem, state: ChainState, t: int, rng: np.random.Generator) -> None:
    share = log_shares(state.tokens[t], problem.layers[t].n_token_clusters, rng)
    for token, u in enumerate(rng.random(len(state.tokens[t]), dtype=np.float32)):
        state.tokens[t][token] = pick(share + token_scores(problem, state, t, token), u)


def draw_cells(problem: LayerProblem, state: ChainState, t: int, rng: np.random.Generator) -> None:
    """Column c of G ~ N(A⁻¹h, A⁻¹), A = Σ_e w p pᵀ/σ² + 1/τ, h = Σ_e w r p/σ² over the rows whose target is in c."""
    layer = problem.layers[t]
    w, baskets = weights_of(problem), normalised(problem, state, t)[problem.codes[layer.source]]
    without = state.latent - effect(problem, state) + layer_effect(problem, state, t)
    at = state.targets[t][problem.codes[layer.target]]
    normals = rng.standard_normal((layer.n_target_clusters, layer.n_token_clusters))
    cells = np.empty_like(state.cells[t])
    for c in range(layer.n_target_clusters):
        mine = at == c
        p = baskets[mine]
        precision = p.T @ (w[mine, None] * p) / state.noise + np.eye(layer.n_token_clusters) / state.cell_variances[t]
        lower = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, p.T @ (w[mine] * without[mine]) / state.noise)
        cells[:, c] = mean + np.linalg.solve(lower.T, normals[c])
    state.cells[t] = cells


def draw_layer(problem: LayerProblem, state: ChainState, t: int, rng: np.random.Generator) -> None:
    draw_targets(problem, state, t, rng)
    draw_cells(problem, state, t, rng)
    draw_tokens(problem, state, t, rng)
    draw_cells(problem, state, t, rng)
    priors = problem.priors
    state.cell_variances[t] = draw_variance(state.cells[t], priors.cell_weight, priors.cell_variance * state.noise, rng)


def draw_positions(problem: LayerProblem, state: ChainState, mode: int, rng: np.random.Generator) -> None:
    """Each x ~ N(A⁻¹h, A⁻¹), A = Σ w g gᵀ/σ² + Λ, h = Σ w (r + g·x) g/σ² + Λ·mean, after their prior."""
    plan, points = problem.positions, state.positions
    source, target = problem.position_codes
    if mode == plan.source:
        n = problem.n_items[mode]
        present = np.bincount(source, minlength=n * plan.n_periods).reshape(n, -1) > 0
        prior = points.draw_sources_prior(present, state.noise, state.settled, rng)
        own, code, features = points.sources, source, points.targets[target]
    else:
        prior = points.draw_targets_prior(state.offsets[mode], state.noise, state.settled, rng)
        own, code = np.column_stack([state.offsets[mode], points.targets]), target
        features = np.column_stack([np.ones(problem.n_rows), points.sources[source]])
    w, features, new = weights_of(problem), features.astype(np.float64), np.empty(own.shape)
    without = state.latent - effect(problem, state) + np.sum(features * own[code], axis=1)
    normals = rng.standard_normal(own.shape, dtype=np.float32)
    for x in range(len(own)):
        mine = code == x
        g = features[mine]
        precision = g.T @ (w[mine, None] * g) / state.noise + prior.precisions[prior.labels[x]]
        mean = np.linalg.solve(precision, g.T @ (w[mine] * without[mine]) / state.noise + prior.shift[x])
        new[x] = mean + np.linalg.solve(np.linalg.cholesky(precision).T, normals[x])
    if mode == plan.source:
        points.sources = new.astype(np.float32)
    else:
        state.offsets[mode], points.targets = new[:, 0].astype(np.float32), new[:, 1:].astype(np.float32)


def log_interval(problem: LayerProblem, state: ChainState, f: Floats, cuts: Floats) -> Floats:
    """ln P(y | f, cuts) of every row, z integrated out."""
    bounds = np.concatenate([[-np.inf], cuts, [np.inf]])
    sd, k = np.sqrt(state.noise), problem.label_codes
    return np.log(np.maximum(ndtr((bounds[k + 1] - f) / sd) - ndtr((bounds[k] - f) / sd), 1e-12))


def draw_cuts(problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> Ints:
    """Each inner cut by a Metropolis step with z integrated out, every second one at a time; which were accepted."""
    f, w = effect(problem, state), weights_of(problem)
    accepted = np.zeros(len(state.cuts), dtype=np.int64)
    for parity in (0, 1):
        chosen = inner_cuts(problem)[parity::2]
        moves = rng.standard_normal(len(chosen))
        limits = np.log(rng.random(len(chosen)))
        for at, move, limit in zip(chosen, moves, limits):
            new = state.cuts.copy()
            new[at] += state.steps[at] * move
            if not new[at - 1] < new[at] < new[at + 1]:
                continue
            gain = log_interval(problem, state, f, new) - log_interval(problem, state, f, state.cuts)
            if limit < float(w @ gain):
                state.cuts = new
                accepted[at] += 1
    return accepted


def draw_latent(problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> None:
    """z ~ N(f, σ²) between the cut points of its label.

    A row of weight w stands for w answers, of which the mean is kept: one draw, moved towards the conditional mean by
    √w, has its mean and variance.
    """
    f, sd = effect(problem, state), np.sqrt(state.noise)
    bounds, k = np.concatenate([[-np.inf], state.cuts, [np.inf]]), problem.label_codes
    low, high = (bounds[k] - f) / sd, (bounds[k + 1] - f) / sd
    below, above = ndtr(low), ndtr(high)
    uniforms = rng.random(problem.n_rows, dtype=np.float32).astype(np.float64)
    z = ndtri(np.clip(below + (above - below) * uniforms, EDGE, 1.0 - EDGE))
    if problem.weights is not None:
        middle = (norm.pdf(low) - norm.pdf(high)) / np.maximum(above - below, 1e-12)
        z = middle + (z - middle) / np.sqrt(np.maximum(problem.weights, 1e-12))
    new = (f + sd * z).astype(np.float32)
    state.latent = np.where(weights_of(problem) > 0, new, state.latent)  # a row that does not count keeps what it has


class Ahead:
    """A generator that has drawn what the layers of a mode need except uniforms, all of a kind at once."""

    def __init__(self, problem: LayerProblem, state: ChainState, mine: Sequence[int], rng: np.random.Generator) -> None:
        layers = [problem.layers[t] for t in mine]
        sizes = [(layer.n_target_clusters, layer.n_token_clusters) for layer in layers]
        labels = [(state.targets[t], state.tokens[t]) for t in mine]
        counts = [np.bincount(one, minlength=m) for pair, own in zip(labels, sizes) for one, m in zip(pair, own)]
        self.rng = rng
        self.gammas = iter(rng.standard_gamma(np.concatenate([*counts, []]) + 1.0))
        most = [max(own, default=0) for own in zip(*sizes)] or [0, 0]
        self.normals = iter(rng.standard_normal((2 * len(mine), *most)))
        self.chi2 = iter(rng.chisquare([problem.priors.cell_weight + m * k for m, k in sizes]))

    def standard_gamma(self, shape: Floats) -> Floats:
        return np.array([next(self.gammas) for _ in shape])

    def standard_normal(self, size: tuple[int, int]) -> Floats:
        return np.asarray(next(self.normals)[: size[0], : size[1]])

    def chisquare(self, _: float) -> float:
        return float(next(self.chi2))

    def random(self, n: int, dtype: type[np.float32]) -> Floats:
        return self.rng.random(n, dtype=dtype)


def sweep(problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> None:
    """Cut points and z; then, mode by mode, its offsets and the layers whose targets are its items."""
    if state.draws_latent and problem.label_values is not None:
        draw_cuts(problem, state, rng)
        draw_latent(problem, state, rng)
    for mode in range(problem.n_modes):
        plan = problem.positions
        if plan is None or mode != plan.target or not state.draws_layers:
            draw_offsets(problem, state, mode, rng)
        if mode == 0:
            for window in range(len(problem.windows)):
                draw_offsets(problem, state, problem.n_modes + window, rng)
            draw_mean(problem, state, rng)
        if state.draws_layers:
            layers = [(t, layer) for t, layer in enumerate(problem.layers) if layer.target == mode]
            mine = [t for t, layer in layers if layer.kind != BASKET or state.baskets_enabled]
            ahead = Ahead(problem, state, mine, rng)
            for t in mine:
                draw_layer(problem, state, t, cast(np.random.Generator, ahead))
            if plan is not None and mode in (plan.source, plan.target):
                draw_positions(problem, state, mode, rng)
    state.end_sweep(float(np.mean((state.latent - effect(problem, state)) ** 2)))


# the other direction: parameters from their priors, answers from parameters


def draw_prior(problem: LayerProblem, noise: float, rng: np.random.Generator) -> ChainState:
    """All parameters from their priors; the latent answers and labels follow by `draw_answers`."""
    priors, scale = problem.priors, problem.scale
    variances = [
        priors.offset_weight * problem.offset_variance(kind) / float(rng.chisquare(priors.offset_weight))
        for kind in range(len(problem.n_offsets))
    ]
    taus = [
        priors.cell_weight * priors.cell_variance * noise / float(rng.chisquare(priors.cell_weight))
        for _ in problem.layers
    ]
    label_values = np.zeros(1) if problem.label_values is None else problem.label_values
    cuts = (label_values[1:] + label_values[:-1]) / 2.0
    inner = inner_cuts(problem)
    if len(inner):
        cuts[inner[0] : inner[-1] + 1] = np.sort(rng.uniform(cuts[0], cuts[-1], len(inner)))

    def labels(n: int, m: int) -> Ints:
        return rng.choice(m, size=n, p=rng.dirichlet(np.ones(m))).astype(np.uint8)

    plan, points = problem.positions, None
    offsets = [rng.normal(0, np.sqrt(v), n).astype(np.float32) for n, v in zip(problem.n_offsets, variances)]
    if plan is not None:
        n, d, weight = problem.n_items[plan.source], 1 + plan.rank, positions.WEIGHT
        spread, between = (
            weight * scale * noise / rng.chisquare(weight, plan.rank) for scale in (positions.SPREAD, positions.BETWEEN)
        )
        own = labels(problem.n_items[plan.target], plan.n_clusters).astype(np.int64)
        scatter = np.linalg.inv(np.diag([noise, *[1.0] * plan.rank]))
        precisions = wishart.rvs(d + positions.FREEDOM, scatter, plan.n_clusters, rng).reshape(-1, d, d)
        means = np.array([rng.multivariate_normal(np.zeros(d), np.linalg.inv(one)) for one in precisions])
        found = np.array([rng.multivariate_normal(means[c], np.linalg.inv(precisions[c])) for c in own])
        offsets[plan.target] = found[:, 0].astype(np.float32)
        centres = rng.normal(0, np.sqrt(between), (n, plan.rank))
        sources = rng.normal(np.repeat(centres, plan.n_periods, axis=0), np.sqrt(spread)).astype(np.float32)
        points = positions.Positions(
            sources, centres, spread, between, found[:, 1:].astype(np.float32), own, means, precisions
        )

    return ChainState(
        noise=noise,
        mean=float(rng.normal(problem.center, np.sqrt(priors.mean_variance * scale))),
        offsets=offsets,
        offset_variances=variances,
        targets=[labels(problem.n_items[layer.target], layer.n_target_clusters) for layer in problem.layers],
        tokens=[labels(problem.baskets[layer.basket].n_tokens, layer.n_token_clusters) for layer in problem.layers],
        cells=[
            rng.normal(0, np.sqrt(tau), (layer.n_token_clusters, layer.n_target_clusters)).astype(np.float32)
            for layer, tau in zip(problem.layers, taus)
        ],
        cell_variances=taus,
        cuts=cuts,
        steps=np.full(len(cuts), float(np.sqrt(scale))),
        latent=np.zeros(problem.n_rows, dtype=np.float32),
        n_sweeps=OFFSET_SWEEPS if plan is None else positions.SETTLING,
        baskets_enabled=True,
        positions=points,
    )


def draw_answers(problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> Floats:
    """New labels (N,) given the parameters; z is set to match."""
    z = effect(problem, state) + np.sqrt(state.noise / weights_of(problem)) * rng.standard_normal(problem.n_rows)
    state.latent = z.astype(np.float32)
    if problem.label_values is None:
        return state.latent.astype(np.float64)
    return problem.label_values[np.searchsorted(state.cuts, state.latent)]
