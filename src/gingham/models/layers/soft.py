"""Soft layers by block descent: every block is P0's Algorithm 1 with quadratic cells on what the others leave.

    J = β [Σ_e w (y − mean_e)² + Σ_t Σ_e w Var_t(e) + λ Σ_t ‖F_t‖² + ρ Σ_j ‖b_j‖²] + Σ_t Σ_j n_j Ī_tj

is the trade-off of the randomised additive predictor: layers are drawn independently, so the variance of the
other layers does not depend on the block, and each block step minimises J exactly over its block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from scipy.special import softmax, xlogy

from gingham.arrays import Floats
from gingham.engine.project import Rows, project
from gingham.fitting.loop import Down, Schedule
from gingham.models.layers.data import LayerData
from gingham.models.layers.model import SoftLayers, expected
from gingham.models.layers.sampled import Shape

FIRMNESS = 0.9  # probability of the random cluster at the start; softer starts collapse to the offsets


@dataclass(frozen=True)
class Soft:
    """Settings of the soft solver."""

    n_sweeps: int = 25
    shrink: float = 10.0  # λ, tuples by which cells are pulled to 0
    ridge: float = 5.0  # ρ, tuples by which offsets are pulled to 0
    schedule: Schedule = field(default_factory=lambda: Down(5.0, 9))


def solve(
    data: LayerData, shape: Shape, beta: float, seed: np.random.SeedSequence, soft: Soft
) -> tuple[SoftLayers, Floats]:
    """A local minimum of J from a random near-hard start, and J after every sweep."""
    rng = np.random.default_rng(seed)
    model = _start(data, shape, rng, soft)
    # The start's cells are fitted to what the offsets leave; they predict nothing until their first step.
    residual: Floats = data.labels - replace(model, assign=(), cells=()).predict(data.codes)
    predictions: list[Floats] = [np.zeros(data.n_rows) for _ in range(shape.n_layers)]
    trace = []
    for sweep in range(soft.n_sweeps):
        b = beta * soft.schedule.factor(sweep)
        for layer in range(shape.n_layers):
            residual += predictions[layer]
            model = _layer_step(data, model, layer, residual, b, soft)
            predictions[layer] = expected(model.assign[layer], model.cells[layer], data.codes)
            residual -= predictions[layer]
        if shape.offsets:
            model, residual = _offset_step(data, model, residual, soft, 2)
        trace.append(objective(data, model, beta, soft))
    return model, np.array(trace)


def objective(data: LayerData, model: SoftLayers, beta: float, soft: Soft) -> float:
    """J from scratch."""
    weights: Floats = np.ones(data.n_rows) if data.weights is None else data.weights
    loss = float(weights @ (data.labels - model.predict(data.codes)) ** 2)
    loss += soft.ridge * sum(float(b @ b) for b in model.offsets)
    information = 0.0
    for assign, cells in zip(model.assign, model.cells):
        mean = expected(assign, cells, data.codes)
        loss += float(weights @ (expected(assign, cells**2, data.codes) - mean**2))
        loss += soft.shrink * float(np.sum(cells**2))
        for q, side in zip(assign, data.sides):
            mass = q.mean(axis=0)
            information += float(xlogy(q, q).sum() - len(q) * xlogy(mass, mass).sum())
            information += 0.0 if side is None else side.cost(q)
    return beta * loss + information


def _start(data: LayerData, shape: Shape, rng: np.random.Generator, soft: Soft) -> SoftLayers:
    model = SoftLayers(data.mean, tuple(np.zeros(n) for n in data.n_items), (), ())
    residual = data.labels - model.mean
    if shape.offsets:
        model, residual = _offset_step(data, model, residual, soft, 8)
    assign, cells = [], []
    for _ in range(shape.n_layers):
        q = tuple(
            FIRMNESS * np.eye(m)[rng.integers(m, size=n)] + (1.0 - FIRMNESS) / m
            for n, m in zip(data.n_items, shape.n_clusters)
        )
        table = _project(data, q, 0, residual)
        assign.append(q)
        cells.append(_answers(np.tensordot(q[0].T, table, axes=1), soft.shrink).reshape(shape.n_clusters))
    return replace(model, assign=tuple(assign), cells=tuple(cells))


def _layer_step(
    data: LayerData, model: SoftLayers, layer: int, residual: Floats, beta: float, soft: Soft
) -> SoftLayers:
    """Memberships and cells of one layer, mode by mode (P0 eqs. 40-42 with quadratic cells)."""
    assign, cells = list(model.assign[layer]), model.cells[layer]
    for mode in range(data.n_modes):
        table = _project(data, assign, mode, residual)
        facing = np.moveaxis(cells, mode, 0).reshape(cells.shape[mode], -1)
        cost = beta * (table[:, 0] @ (facing**2).T - 2.0 * table[:, 1] @ facing.T)
        side = data.sides[mode]
        if side is not None:
            cost -= side.scores(assign[mode])
        with np.errstate(divide="ignore"):  # a dead cluster has log mass −∞ and stays dead
            log_mass = np.log(assign[mode].mean(axis=0))
        assign[mode] = softmax(log_mass - cost, axis=1)
        found = _answers(np.tensordot(assign[mode].T, table, axes=1), soft.shrink)
        others = [m for j, m in enumerate(cells.shape) if j != mode]
        cells = np.moveaxis(found.reshape(cells.shape[mode], *others), 0, mode)
    return replace(
        model,
        assign=(*model.assign[:layer], tuple(assign), *model.assign[layer + 1 :]),
        cells=(*model.cells[:layer], cells, *model.cells[layer + 1 :]),
    )


def _project(data: LayerData, assign: Sequence[Floats], mode: int, residual: Floats) -> Floats:
    """Σ of w and of w·r over the tuples of each item, by the other modes' clusters: (n, 2, rest)."""
    group = data.groups[mode]
    features = np.column_stack([np.ones(data.n_rows), residual[group.order]])
    weights = None if data.weights is None else data.weights[group.order]
    rows = Rows(group.indptr, group.others, None, features, weights, 2)
    others = [q for j, q in enumerate(assign) if j != mode]
    return project(rows, others).reshape(data.n_items[mode], 2, prod(q.shape[1] for q in others))


def _answers(table: Floats, shrink: float) -> Floats:
    """F = S1/(S0 + λ) from statistics (m, 2, rest)."""
    return table[:, 1] / np.maximum(table[:, 0] + shrink, 1e-300)


def _offset_step(
    data: LayerData, model: SoftLayers, residual: Floats, soft: Soft, rounds: int
) -> tuple[SoftLayers, Floats]:
    """μ and ridge offsets, alternately: each is the exact minimiser given the others."""
    weights: Floats = np.ones(data.n_rows) if data.weights is None else data.weights
    mean, offsets, residual = model.mean, list(model.offsets), residual.copy()
    for _ in range(rounds):
        change = float(np.average(residual, weights=data.weights))
        mean += change
        residual -= change
        for mode in reversed(range(data.n_modes)):
            code, n = data.codes[mode], data.n_items[mode]
            count = np.bincount(code, weights, minlength=n)
            heard = np.bincount(code, weights * residual, minlength=n) + count * offsets[mode]
            new = heard / np.maximum(count + soft.ridge, 1e-300)
            residual -= (new - offsets[mode])[code]
            offsets[mode] = new
    return replace(model, mean=mean, offsets=tuple(offsets)), residual
