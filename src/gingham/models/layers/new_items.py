"""New items in a fitted model; everything that was learned stays as it is.

A new user has a basket as soon as the items that it met are known, and tokens as soon as there is side information
about it. Where there are labels, its offset and clusters are drawn in every kept draw; without labels its offset is 0
and it has the average of all clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Mode, Sample
from gingham.models.layers.draws import LayerDraws, PredictionRows, with_unknown
from gingham.models.layers.positions import SETTLING
from gingham.models.layers.problem import BASKET, ITEM, OFFSET_SWEEPS, Basket, ChainState, LayerProblem, first_state
from gingham.models.layers.side import SideTokens

N_SWEEPS = 3  # per draw over the new items' clusters, which start where the previous draw ended


def with_new_items(
    draws: LayerDraws,
    before: Sequence[Mode],
    after: Sequence[Mode],
    codes: Sequence[Ints],
    side: Mapping[int, SideTokens],
) -> LayerDraws:
    """The draws with new items, which have the average of all clusters and no offset.

    ``codes`` are new observations, labelled or not, and ``side`` has new tokens of modes, both in the new numbering.
    """
    place = [mode.encode(old.items) for old, mode in zip(before, after)]
    n_items = tuple(mode.n_items for mode in after)
    is_new = [np.isin(np.arange(n), at, invert=True) for n, at in zip(n_items, place)]
    # Baskets grow as long as no labels of an item were used: people meet items first and rate them later.
    is_open = [new.copy() for new in is_new]
    for mode, at in enumerate(place):
        is_open[mode][at] = draws.items_without_labels(mode)[:-1]
    baskets: dict[int, Basket] = {}
    for layer in draws.layers:
        if layer.basket in baskets:
            continue
        old, p, q = draws.baskets[layer.basket], layer.source, layer.target
        if layer.kind == ITEM:
            baskets[layer.basket] = Basket.itself(n_items[p])
            continue
        sources, tokens = [place[p][old.sources]], [old.tokens]
        if layer.kind == BASKET:
            tokens = [place[q][old.tokens]]
            fresh = is_open[p][codes[p]] if len(codes) else np.zeros(0, dtype=bool)
            if fresh.any():
                sources.append(codes[p][fresh])
                tokens.append(codes[q][fresh])
        else:
            table = side.get(p)
            if table is not None:
                new = is_new[p][table.items]
                sources.append(table.items[new])
                tokens.append(table.tokens[new])
        n_tokens = n_items[q] if layer.kind == BASKET else old.n_tokens
        baskets[layer.basket] = Basket.of_pairs(
            np.concatenate(sources).astype(np.int64), np.concatenate(tokens).astype(np.int64), n_items[p], n_tokens
        )

    def renumbered(values: AnyArray, mode: int, of_new: int) -> AnyArray:
        found = np.full((draws.n_draws, n_items[mode]), of_new, dtype=values.dtype)
        found[:, place[mode]] = values
        return found

    every, labels = slice(None), [draws.labels[:, :0]]
    for t, layer in enumerate(draws.layers):
        labels.append(renumbered(draws.targets(every, t), layer.target, layer.n_target_clusters))
        mine, of_mode = draws.tokens(every, t), {ITEM: layer.source, BASKET: layer.target}.get(layer.kind)
        labels.append(mine if of_mode is None else renumbered(mine, of_mode, layer.n_token_clusters))
    offsets = [renumbered(draws.offsets_of(every, mode), mode, 0) for mode in range(len(n_items))]
    positions = draws.positions[:, :0]
    if draws.plan is not None:
        parts = []
        for mode in (draws.plan.source, draws.plan.target):
            known = draws.positions_of(mode)
            parts.append(np.zeros((len(known), n_items[mode], *known.shape[2:]), dtype=known.dtype))
            parts[-1][:, place[mode]] = known
        positions = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    return replace(
        draws,
        n_items=n_items,
        baskets=tuple(baskets.get(at, basket) for at, basket in enumerate(draws.baskets)),
        labels=np.concatenate(labels, axis=1),
        offsets=np.concatenate(offsets, axis=1),
        positions=positions,
        windows=None if draws.windows is None else replace(draws.windows, users=place[0][draws.windows.users]),
    )


def draw_new_items(draws: LayerDraws, new: Sequence[Bools], sample: Sample, rng: np.random.Generator) -> LayerDraws:
    """Offsets and clusters of the marked items of each mode, from labelled observations in the draws' numbering."""
    draws = replace(draws, labels=draws.labels.copy(), offsets=draws.offsets.copy(), positions=draws.positions.copy())
    for mode, fresh in enumerate(new):
        rows = fresh[sample.codes[mode]]
        if rows.any():
            _fold_mode(draws, mode, fresh, sample.take(rows), rng)
    return draws


def _fold_mode(draws: LayerDraws, mode: int, fresh: Bools, sample: Sample, rng: np.random.Generator) -> None:
    items = np.unique(sample.codes[mode])
    at = np.searchsorted(items, sample.codes[mode])
    n, y = len(items), np.asarray(sample.labels)
    weights: Floats = np.ones(len(y)) if sample.weights is None else sample.weights
    counts = np.bincount(at, weights, minlength=n)
    prepared = PredictionRows.of(draws, sample.codes)
    aims = [t for t, layer in enumerate(draws.layers) if layer.target == mode]
    selves = [t for t, layer in enumerate(draws.layers) if layer.kind == ITEM and layer.source == mode]
    own = [*((t, True) for t in aims), *((t, False) for t in selves)]
    labels = {key: np.zeros(n, dtype=np.int64) for key in own}
    offset = np.zeros(n)
    place: Floats = np.zeros((n, 0 if draws.plan is None else draws.plan.rank))
    has_place = draws.plan is not None and mode in (draws.plan.source, draws.plan.target)
    for s in range(draws.n_draws):
        fixed = np.full(len(y), draws.means[s])
        for j, code in enumerate(sample.codes):
            if j != mode:
                fixed += draws.offsets_of(s, j)[code]
        choices, shares = {}, {}
        for t in range(len(draws.layers)):
            if (t, True) not in labels and (t, False) not in labels:
                prepared.add_layer(draws, s, t, fixed)
        for t, aimed in own:
            choices[t, aimed] = _choices(draws, prepared, s, t, aimed)
            layer = draws.layers[t]
            m = layer.n_target_clusters if aimed else layer.n_token_clusters
            mine = draws.targets(s, t) if aimed else draws.tokens(s, t)
            shares[t, aimed] = np.log((np.bincount(mine, minlength=m)[:m] + 1.0) / (len(mine) + m))
            if s == 0:
                labels[t, aimed] = rng.integers(m, size=n)
        met, prior = _met(draws, prepared, s, mode) if has_place else (np.zeros((len(y), 0)), np.zeros((2, 0)))
        place = place if s else np.tile(prior[0], (n, 1))
        fixed += (met * place[at]).sum(axis=1)
        f = fixed + offset[at] + sum(choices[key][np.arange(len(y)), labels[key][at]] for key in own)
        for _ in range(N_SWEEPS):
            z = y if draws.label_values is None else _latent(draws, s, y, f, rng)
            precision = counts / draws.noise + 1.0 / draws.variances[s, mode]
            mean = np.bincount(at, weights * (z - f + offset[at]), minlength=n) / draws.noise / precision
            drawn = mean + rng.standard_normal(n) / np.sqrt(precision)
            f += (drawn - offset)[at]
            offset = drawn
            if has_place:
                without = z - f + (met * place[at]).sum(axis=1)
                place = _draw_place(at, n, weights / draws.noise, met, without, prior, rng)
                f = z - without + (met * place[at]).sum(axis=1)
            for key in own:
                table = choices[key]
                without = z - f + table[np.arange(len(y)), labels[key][at]]
                scores = np.stack(
                    [np.bincount(at, weights * g * (2.0 * without - g), minlength=n) for g in table.T], axis=1
                )
                scores = shares[key] + 0.5 * scores / draws.noise
                labels[key] = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
                f = z - without + table[np.arange(len(y)), labels[key][at]]
        draws.offsets_of(s, mode)[items] = offset
        for t, aimed in own:
            (draws.targets(s, t) if aimed else draws.tokens(s, t))[items] = labels[t, aimed]
        if has_place:
            draws.positions_of(mode)[s, items] = place[:, None]


def _met(draws: LayerDraws, prepared: PredictionRows, s: int, mode: int) -> tuple[Floats, Floats]:
    """The positions that rows meet on the other side, (N, rank), and the mean and variance of those of a mode."""
    points, plan = draws.points(s), draws.plan
    if points is None or plan is None or prepared.points is None:
        raise ValueError("draws without positions")
    source, target = prepared.points
    if mode == plan.target:
        return points.sources[source], np.stack([points.targets[-1], points.variances[1]])
    return points.targets[target], np.stack([points.sources[-1], points.variances[0]])


def _draw_place(
    at: Ints, n: int, precision: Floats, met: Floats, without: Floats, prior: Floats, rng: np.random.Generator
) -> Floats:
    """Positions of new items, (n, rank), from what rows leave for them, under the normal distribution of the others."""
    mean, variance = prior[0], np.maximum(prior[1], 1e-9)
    gram, right = np.zeros((n, len(mean), len(mean))), np.zeros((n, len(mean)))
    np.add.at(gram, at, precision[:, None, None] * met[:, :, None] * met[:, None, :])
    np.add.at(right, at, (precision * without)[:, None] * met)
    lower = np.linalg.cholesky(gram + np.diag(1.0 / variance))
    z = np.linalg.solve(lower, (right + mean / variance)[:, :, None]) + rng.standard_normal((n, len(mean), 1))
    return np.asarray(np.linalg.solve(lower.transpose(0, 2, 1), z)[:, :, 0])


def _choices(draws: LayerDraws, prepared: PredictionRows, s: int, t: int, aimed: bool) -> Floats:
    """The effect of the layer on each row if the new item were in each cluster, (N, m)."""
    layer, rows = draws.layers[t], prepared.layers[t]
    if not aimed:
        cells, targets = with_unknown(draws.cells_of(s, t), draws.targets(s, t), draws.tokens(s, t))
        return cells[: layer.n_token_clusters, targets[rows.targets]].T.astype(np.float64)
    found = []
    for k in range(layer.n_target_clusters):
        pull = np.zeros(prepared.n_rows)
        prepared.add_layer(draws, s, t, pull, cluster=k)
        found.append(pull)
    return np.stack(found, axis=1)


def _latent(draws: LayerDraws, s: int, y: Floats, f: Floats, rng: np.random.Generator) -> Floats:
    """z between the cut points of the labels."""
    k = np.searchsorted(draws.label_values, y)  # type: ignore[arg-type]
    bounds, sd = np.concatenate([[-np.inf], draws.cuts[s], [np.inf]]), np.sqrt(draws.noise)
    low, high = ndtr((bounds[k] - f) / sd), ndtr((bounds[k + 1] - f) / sd)
    return np.asarray(f + sd * ndtri(np.clip(low + (high - low) * rng.random(len(y)), 1e-10, 1 - 1e-10)))


def last_states(draws: LayerDraws, problem: LayerProblem, rng: np.random.Generator) -> list[ChainState]:
    """For each chain its last draw as a state to continue from, for a problem with the draws' items.

    New items start in random clusters.
    """
    states = []
    for chain in range(draws.n_chains):
        s = int(np.flatnonzero(draws.chains == chain)[-1])
        state = first_state(problem, draws.noise, rng)
        for t, layer in enumerate(draws.layers):
            sizes = layer.n_target_clusters, layer.n_token_clusters
            for new, old, m in zip(
                (state.targets[t], state.tokens[t]), (draws.targets(s, t), draws.tokens(s, t)), sizes
            ):
                new[old < m] = old[old < m]
            state.cells[t] = draws.cells_of(s, t).copy()
            state.cell_variances[t] = max(float(np.mean(state.cells[t] ** 2)), 1e-9)
        d = problem.n_modes
        state.offsets[:d] = [draws.offsets_of(s, mode).copy() for mode in range(d)]
        state.offset_variances[:d] = draws.variances[s].tolist()
        if state.positions is not None and draws.plan is not None:
            own = draws.positions_of(draws.plan.source)[s]
            state.positions.sources, state.positions.centres = own.reshape(-1, own.shape[2]), own.mean(axis=1)
            state.positions.targets = draws.positions_of(draws.plan.target)[s, :, 0].copy()
        settled = OFFSET_SWEEPS if state.positions is None else SETTLING
        state.mean, state.n_sweeps, state.baskets_enabled = float(draws.means[s]), settled, True
        if draws.label_values is not None:
            state.cuts = draws.cuts[s].copy()
        states.append(state)
    return states
