"""Positions: items of two modes as points, whose products are added beside offsets and layers.

    f(e) = … + b_q + u_xp · v_q,   x = source, q = target and p = period of e

Senators have a position per period, roll calls one. That of a target, with its offset, is a normal deviation from the
centre of its cluster, (b_q, v_q) ~ N(m_c, Λ_c⁻¹), and (m_c, Λ_c) is normal-Wishart. That of a source deviates from its
average over time, u_xp ~ N(ū_x, ω²), which has ū_x ~ N(0, ψ²). All draws are from their conditional distributions,
those of positions given the residuals by `gingham.models.layers.kernels.draw_positions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.lazy import lazy_module
from gingham.storage import savable

if TYPE_CHECKING:
    from gingham.models.layers import kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.kernels")

SETTLING = 12  # first sweeps, in which variances and clusters stay as they are
FIRST_SPREAD = 0.01  # ω² in units of the noise while chains settle: sources hardly move
SPREAD, BETWEEN = 0.05, 0.5  # prior scales of ω² and ψ² in units of the noise
WEIGHT, FREEDOM = 1.0, 2.0  # observations that each counts for; degrees of freedom of Λ beyond its dimensions


@savable
@dataclass(frozen=True)
class PositionPlan:
    """Which modes have positions, of how many coordinates."""

    source: int  # mode
    target: int  # mode
    rank: int
    n_clusters: int  # of targets
    edges: tuple[float, ...] = ()  # the times between periods

    @property
    def n_periods(self) -> int:
        return len(self.edges) + 1

    def period(self, times: Floats | None, n: int) -> Ints:
        """The period of each row, (n,); ``n_periods`` stands for an unknown one."""
        if not self.edges:
            return np.zeros(n, dtype=np.uint8)
        if times is None:
            return np.full(n, self.n_periods, dtype=np.uint8)
        return np.where(np.isnan(times), self.n_periods, np.searchsorted(self.edges, times)).astype(np.uint8)

    def size(self, n_items: tuple[int, ...]) -> int:
        """Coordinates of all positions."""
        return self.rank * (n_items[self.source] * self.n_periods + n_items[self.target])


@savable
@dataclass(eq=False)
class Positions:
    """What a chain draws of positions."""

    sources: Floats  # u, (n_sources · periods, rank) float32
    centres: Floats  # ū, (n_sources, rank)
    spread: Floats  # ω², (rank,)
    between: Floats  # ψ², (rank,)
    targets: Floats  # v, (n_targets, rank) float32
    labels: Ints  # c, (n_targets,)
    means: Floats  # m, (clusters, 1 + rank)
    precisions: Floats  # Λ, (clusters, 1 + rank, 1 + rank)

    @classmethod
    def first(cls, plan: PositionPlan, n_items: tuple[int, ...], noise: float, rng: np.random.Generator) -> Positions:
        """Random positions, the same in all periods."""
        n, m, r, k = n_items[plan.source], n_items[plan.target], plan.rank, plan.n_clusters
        own = np.repeat(rng.normal(0.0, np.sqrt(noise), (n, r)), plan.n_periods, axis=0)
        precision = np.diag([1.0 / noise, *[1.0] * r])
        return cls(
            own.astype(np.float32), np.zeros((n, r)), np.full(r, FIRST_SPREAD * noise), np.full(r, noise),
            rng.normal(0.0, 0.3, (m, r)).astype(np.float32), rng.integers(k, size=m), np.zeros((k, 1 + r)),
            np.tile(precision, (k, 1, 1)),
        )  # fmt: skip

    def draw_sources_prior(self, present: Bools, noise: float, settled: bool, rng: np.random.Generator) -> Prior:
        """ω² and ψ² once chains have settled, and ū, from the positions of periods with rows, ``present`` (n, periods).

        ū_x ~ N(Σ u/ω²/p, 1/p), p = n_x/ω² + 1/ψ²; both variances are (weight·scale + Σ of squares)/χ²(weight + n).
        """
        n, r = self.centres.shape
        own, there = self.sources.reshape(n, -1, r).astype(np.float64), present[:, :, None]
        if settled:
            squares = (there * (own - self.centres[:, None]) ** 2).sum((0, 1))
            self.spread = (WEIGHT * SPREAD * noise + squares) / rng.chisquare(WEIGHT + present.sum(), r)
            far = (self.centres**2).sum(0)
            self.between = (WEIGHT * BETWEEN * noise + far) / rng.chisquare(WEIGHT + n, r)
        precision = present.sum(1)[:, None] / self.spread + 1.0 / self.between
        mean = (there * own).sum(1) / self.spread / precision
        self.centres = mean + rng.standard_normal((n, r)) / np.sqrt(precision)
        shift = np.repeat(self.centres / self.spread, present.shape[1], axis=0)
        return Prior(np.diag(1.0 / self.spread)[None], shift, np.zeros(len(shift), dtype=np.int64))

    def draw_targets_prior(self, offsets: Floats, noise: float, settled: bool, rng: np.random.Generator) -> Prior:
        """Clusters of targets, then the mean and precision of each, once chains have settled.

        c_q ∝ π_c |Λ_c|^½ exp(−½ (x − m_c)ᵀ Λ_c (x − m_c)) with x = (b_q, v_q). Of n targets in a cluster with mean x̄
        and scatter S, Λ ~ W(ν + n, S_n⁻¹) and m ~ N(n x̄/(1 + n), Λ⁻¹/(1 + n)), where ν = dimensions + FREEDOM and
        S_n = diag(σ², 1, …) + S + n/(1 + n) x̄ x̄ᵀ.
        """
        if settled:
            points = np.column_stack([offsets, self.targets]).astype(np.float64)
            self._draw_labels(points, rng)
            self._draw_clusters(points, noise, rng)
        shift = np.einsum("kab,kb->ka", self.precisions, self.means)
        return Prior(self.precisions, shift[self.labels], self.labels)

    def _draw_labels(self, points: Floats, rng: np.random.Generator) -> None:
        shares = np.log(rng.dirichlet(np.bincount(self.labels, minlength=len(self.means)) + 1.0))
        lower = np.linalg.cholesky(self.precisions)
        heights = shares + np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        scores = heights + rng.gumbel(size=(len(points), len(heights)))
        kernel.nearness(points, self.means, lower, scores)
        self.labels = np.argmax(scores, axis=1)

    def _draw_clusters(self, points: Floats, noise: float, rng: np.random.Generator) -> None:
        k, d = self.means.shape
        counts = np.bincount(self.labels, minlength=k)
        sums = np.stack([np.bincount(self.labels, column, minlength=k) for column in points.T], axis=1)
        mean = sums / (1.0 + counts)[:, None]
        scatter = np.tile(np.diag([noise, *[1.0] * (d - 1)]), (k, 1, 1))
        for c in range(k):
            own = points[self.labels == c]  # not by BLAS, which would start threads of its own
            scatter[c] += np.einsum("na,nb->ab", own, own) - (1.0 + counts[c]) * np.outer(mean[c], mean[c])
        # Bartlett: Λ = (L⁻ᵀ A)(L⁻ᵀ A)ᵀ with S_n = L Lᵀ; A is lower triangular with χ on its diagonal.
        a = np.tril(rng.standard_normal((k, d, d)), -1)
        freedom = d + FREEDOM + counts[:, None] - np.arange(d)
        a[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(freedom))
        root = np.linalg.solve(np.linalg.cholesky(scatter).transpose(0, 2, 1), a)
        self.precisions = root @ root.transpose(0, 2, 1)
        normals = rng.standard_normal((k, d)) / np.sqrt(1.0 + counts)[:, None]
        self.means = mean + np.linalg.solve(root.transpose(0, 2, 1), normals[:, :, None])[:, :, 0]

    def flat(self) -> Floats:
        """The positions in one row, as draws keep them."""
        return np.concatenate([self.sources.ravel(), self.targets.ravel()])


class Prior(NamedTuple):
    """The normal prior of positions: a precision Λ for each cluster, Λ·mean, and the cluster of each position."""

    precisions: Floats  # (clusters, d, d)
    shift: Floats  # (n, d)
    labels: Ints  # (n,)


class Points(NamedTuple):
    """The positions of one kept draw; the last ones are average, for what is unknown."""

    sources: Floats  # ((n_sources + 1) · (periods + 1), rank)
    targets: Floats  # (n_targets + 1, rank)
    variances: tuple[Floats, Floats]  # of each, (rank,)

    @classmethod
    def of(cls, sources: tuple[Floats, Bools], targets: tuple[Floats, Bools]) -> Points:
        """From positions, (n, periods or 1, rank), and whether the labels of these items are known, (n,)."""
        own, known = sources
        own = np.concatenate([own, own.mean(axis=1, keepdims=True)], axis=1)
        (first, around), (second, about) = _with_average(own, known), _with_average(targets[0][:, 0], targets[1])
        return cls(first.reshape(-1, first.shape[-1]), second, (around[-1], about))


def _with_average(values: Floats, known: Bools) -> tuple[Floats, Floats]:
    """One more row, the average of all that are known, which also stands for the others, and their variance."""
    mine = values if known.all() else values[known]
    mean = mine.mean(axis=0)
    if len(mine) < len(values):
        values = np.where(known.reshape(-1, *[1] * (values.ndim - 1)), values, mean)
    return np.concatenate([values, mean[None]]), mine.var(axis=0)
