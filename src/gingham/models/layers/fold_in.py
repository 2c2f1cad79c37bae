"""New items in a layered model: drawn in every kept draw, and draws that suit them count more; all else stays.

The draws know nothing of the new item's tuples. Those that explain them better become more probable: with Gaussian
draws, S of them, predictions p_s of the item's tuples, their mean p̄ and noise σ², the mean of whatever the draws
say becomes Σ_s (1 + a_s) p_s / S with a_s = (p_s − p̄)ᵀ (C + σ²I)⁻¹ (y − p̄) and C the draws' covariance. That is a
ridge regression of what is left of the labels on the draws' deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.data import Mode, Sample
from gingham.lazy import lazy_module
from gingham.models.layers.data import EMPTY, Grouped, LayerData, first_positions, strides_of
from gingham.models.layers.model import Draws, with_unseen

if TYPE_CHECKING:
    from gingham.models.layers import kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.kernels")

N_SWEEPS = 3  # over the new items' layers, for each draw; it starts where the draw before ended
# Covariances of few draws are noisy, and the tuples have placed the item already: σ² counts 1 + CAUTION/S times.
CAUTION = 300
BLOCK = 2**25  # residuals in memory at a time, of all draws


def extended(draws: Draws, before: Sequence[Mode], after: Sequence[Mode]) -> Draws:
    """The draws with room for new items, which stand in for the average until they are drawn."""
    places = []
    for old, new, start, n in zip(before, after, first_positions(draws.n_items), draws.n_items):
        at = old.encode(new.items)
        places.append(start + np.concatenate([np.where(at < 0, n, at), [n]]))  # a new item begins as the unseen one
    where = np.concatenate(places)
    return replace(
        draws,
        n_items=tuple(m.n_items for m in after),
        offsets=draws.offsets[:, where],
        labels=np.ascontiguousarray(draws.labels[:, :, where]),
        importance=draws.importance[:, where]
        if len(draws.importance)
        else np.zeros((draws.n_draws, len(where)), dtype=np.float32),
    )


def fold_in(
    draws: Draws, new: Sequence[Bools], sample: Sample, noise: float, offsets: bool, rng: np.random.Generator
) -> Draws:
    """Draw what the marked items of each mode need, from the tuples of a sample in the draws' numbering."""
    draws = replace(draws, offsets=draws.offsets.copy(), labels=draws.labels.copy(), importance=draws.importance.copy())
    for mode, fresh in enumerate(new):
        for block in _blocks(fresh, sample.codes[mode], BLOCK // draws.n_draws):
            _fold_items(draws, mode, block, sample, noise, offsets, rng)
    return draws


def _blocks(fresh: Bools, codes: Ints, n_tuples: int) -> Iterator[Bools]:
    """The marked items in parts with about that many tuples each."""
    before = np.cumsum(np.where(fresh, np.bincount(codes, minlength=len(fresh)), 0))
    part = before // max(n_tuples, 1)
    return (fresh & (part == at) for at in np.unique(part[fresh]))


def _fold_items(
    draws: Draws, mode: int, fresh: Bools, sample: Sample, noise: float, offsets: bool, rng: np.random.Generator
) -> None:
    mine = sample.take(fresh[sample.codes[mode]])
    number = np.cumsum(fresh) - 1  # the new items alone, counted from 0
    modes = [Mode(m.name, np.arange(fresh.sum() if j == mode else m.n_items)) for j, m in enumerate(sample.modes)]
    codes = tuple(number[c].astype(np.int32) if j == mode else c for j, c in enumerate(mine.codes))
    data = LayerData.of(replace(mine, modes=tuple(modes), codes=codes))
    first = first_positions(draws.n_items)
    # Positions of the small table's items among all items, one unseen item after each mode.
    where = np.concatenate(
        [
            start + (np.append(np.flatnonzero(fresh), n) if j == mode else np.arange(n + 1))
            for j, (start, n) in enumerate(zip(first, draws.n_items))
        ]
    )
    here, n_new = int(data.first[mode]), int(fresh.sum())
    target = first[mode] + np.flatnonzero(fresh)
    old = first[mode] + np.flatnonzero(~fresh)
    labels: Ints = draws.labels[0][:, target]
    b: Floats = np.zeros(n_new)
    residuals = np.empty((draws.n_draws, data.n_rows), dtype=np.float32)
    for s in range(draws.n_draws):
        labels, b = _fold_draw(draws, s, mode, data, where, here, labels, b, old, noise, offsets, rng, residuals[s])
        draws.labels[s][:, target] = labels
        draws.offsets[s][target] = b.astype(draws.offsets.dtype)
    others = sum(
        draws.importance[:, start + code] for j, (start, code) in enumerate(zip(first, data.codes)) if j != mode
    )
    draws.importance[:, target] = importance_of(residuals, others, data.groups[mode], data.weights, noise)


def _fold_draw(
    draws: Draws, s: int, mode: int, data: LayerData, where: Ints, here: int, begin: Ints, b: Floats, old: Ints,
    noise: float, offsets: bool, rng: np.random.Generator, residual: Floats,
) -> tuple[Ints, Floats]:  # fmt: skip
    """Clusters (T, n_new) and offsets (n_new,) of the new items in one draw; the residuals (N,) are written."""
    sizes = [with_unseen(m) for m in draws.n_clusters]
    strides, m = strides_of(sizes), draws.n_clusters[mode]
    others = [size for j, size in enumerate(sizes) if j != mode]
    group, unit = data.groups[mode], data.weights is None
    weights: Floats = np.ones(1) if data.weights is None else data.weights
    n_new, b = len(b), b.copy()
    labels = np.ascontiguousarray(draws.labels[s][:, where])
    labels[:, here : here + n_new] = begin
    all_offsets = draws.offsets[s][where].astype(np.float64)
    all_offsets[here : here + n_new] = b
    residual[:] = data.labels - draws.means[s]
    for code, start in zip(data.codes, data.first):
        residual -= all_offsets[start + code].astype(np.float32)
    for layer, cells in zip(labels, draws.cells[s]):
        kernel.take_out(data.codes, data.first, layer, strides, cells, residual)
    variance = max(float(np.mean(draws.offsets[s][old].astype(np.float64) ** 2)), 1e-12) if len(old) else noise
    counts, sums = np.empty(prod(sizes)), np.empty(prod(sizes))
    facing_shape = (m, prod(others))
    for _ in range(N_SWEEPS):
        if offsets:
            kernel.draw_offsets(
                data.codes[mode], weights, unit, residual, 1.0 / noise, 1.0 / variance, rng.standard_normal(n_new), b,
            )  # fmt: skip
        for t, cells in enumerate(draws.cells[s]):
            kernel.put_back(data.codes, data.first, labels[t], strides, cells, weights, unit, residual, counts, sums)
            members = np.bincount(draws.labels[s, t, old], minlength=m)[:m]
            facing = np.moveaxis(cells.reshape(sizes), mode, 0)[:m].reshape(facing_shape)
            kernel.draw_labels(
                group.indptr, group.others, group.order, np.delete(data.first, mode), strides_of(others), weights,
                unit, residual, np.ascontiguousarray(facing, dtype=np.float64), 1.0 / noise,
                np.log((members + 1.0) / (members.sum() + m)), EMPTY, rng.random(n_new), here, labels[t],
                np.empty(facing_shape), np.empty(facing_shape),
            )  # fmt: skip
            kernel.take_out(data.codes, data.first, labels[t], strides, cells, residual)
    return labels[:, here : here + n_new], b


def importance_of(
    residuals: Floats, others: Floats | float, group: Grouped, weights: Floats | None, noise: float
) -> Floats:
    """a_s(x), shape (S, n_new), of new items; over the draws they sum to 0.

    Residuals (S, N) are labels less each draw's predictions, ``others`` (S, N) the importance of the tuples' other
    items; the tuples are grouped by the new items.
    """
    from sklearn.linear_model import ridge_regression  # takes a second to import

    n_draws, mean = len(residuals), residuals.mean(axis=0, dtype=np.float64)
    deviations = mean - residuals  # p_s − p̄
    left = mean - np.mean(others * deviations, axis=0)  # y less the prediction so far
    importance = np.zeros((n_draws, len(group.indptr) - 1), dtype=np.float32)
    for x, (start, stop) in enumerate(zip(group.indptr[:-1], group.indptr[1:])):
        if start == stop:
            continue
        mine = group.order[start:stop]
        importance[:, x] = n_draws * ridge_regression(
            deviations[:, mine].T,
            left[mine],
            alpha=noise * (n_draws + CAUTION),
            sample_weight=None if weights is None else weights[mine],
            solver="cholesky",
        )
    return importance
