"""`starts` for counts that lie on a GPU: the same seeds, batch steps and merges, from the same random numbers.

A matrix of counts is a sample of two modes, and all products with it are sums over its tuples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import xlogy
from torch import Tensor

from gingham.arrays import Floats, Ints, on_host
from gingham.data.device_sample import DeviceSample
from gingham.data.sample import Moments
from gingham.engine.project_torch import to_device
from gingham.fitting.merging import merge
from gingham.models.counts import starts as host

ON_DEVICE = ("merged", "profiles", "random")  # starts that are made there


def start_labels(
    start: str, counts: DeviceSample, n_clusters: Sequence[int], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Clusters of rows and columns to begin with; see `starts.start_labels`. Both sides are clustered."""
    rows, columns = _start(start, Counts(counts), n_clusters, rng)
    return on_host(rows), on_host(columns)


class Counts:
    """Products with a matrix of counts on the device, or with its transposed; tables have one row an item."""

    def __init__(self, sample: DeviceSample, turned: bool = False) -> None:
        self.sample, self.axis = sample, int(turned)
        self.shape = sample.shape[self.axis], sample.shape[1 - self.axis]
        self.sums = sample.sums(Moments(0))

    @property
    def turned(self) -> Counts:
        return Counts(self.sample, self.axis == 0)

    def times(self, table: Tensor) -> Tensor:
        """The matrix times a table (columns, k)."""
        return self.sums.project(self.axis, [table], np.eye(int(table.shape[1])))

    def masses(self) -> tuple[Tensor, Tensor]:
        """The mass of each row, and the overall profile of the columns."""
        mass, other = (to_device(self.sample.counts(axis)) for axis in (self.axis, 1 - self.axis))
        return mass, other / max(float(mass.sum()), host.TINY)

    def own_scores(self, mass: Tensor, overall: Tensor, smoothing: float) -> Tensor:
        """Nats every row gains when coded by its own smoothed profile, not by the overall one, shape (rows,)."""
        rows, columns = self.sample.codes[self.axis], self.sample.codes[1 - self.axis]
        data = torch.ones_like(rows, dtype=torch.float64) if self.sample.weights is None else self.sample.weights
        gains = data * torch.log((1.0 - smoothing) * data / (mass[rows] * overall[columns]) + smoothing)
        return self.sample.totals(self.axis, [gains])[:, 0]


class DenseCounts:
    """The same for a table that is held whole, one row an item and few columns."""

    def __init__(self, table: Tensor) -> None:
        self.table, self.shape = table, (int(table.shape[0]), int(table.shape[1]))

    @property
    def turned(self) -> DenseCounts:
        return DenseCounts(self.table.T)

    def times(self, table: Tensor) -> Tensor:
        return self.table @ table

    def masses(self) -> tuple[Tensor, Tensor]:
        mass = self.table.sum(1)
        return mass, self.table.sum(0) / max(float(mass.sum()), host.TINY)

    def own_scores(self, mass: Tensor, overall: Tensor, smoothing: float) -> Tensor:
        return (self.table * torch.log(_lift(self.table / mass[:, None], overall, smoothing))).nan_to_num(0.0).sum(1)


Matrix = Counts | DenseCounts


def _lift(profiles: Tensor, overall: Tensor, smoothing: float) -> Tensor:
    """Smoothed profiles as multiples of the overall one, columns last; a column without counts does not matter."""
    return (1.0 - smoothing) * profiles / overall.clip(min=host.TINY) + smoothing


def one_hot(labels: Tensor, k: int) -> Tensor:
    return (labels[:, None] == torch.arange(k, device=labels.device)).double()


def _start(start: str, counts: Counts, shape: Sequence[int], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    k, columns = shape
    if start == "random":
        drawn = [rng.integers(0, m, n) for m, n in zip(shape, counts.shape)]
        return to_device(drawn[0]), to_device(drawn[1])
    if start == "merged":
        fine = (host.finer(k, counts.shape[0]), host.finer(columns, counts.shape[1]))
        if fine == (k, columns):
            return _start("profiles", counts, shape, rng)
        row_labels, column_labels = _profile_start(counts, fine, rng, host.FINE_BLOCK_STEPS)
        met = counts.times(one_hot(column_labels, fine[1]))
        table = on_host(one_hot(row_labels, fine[0]).T @ met).T  # few clusters: they are merged on the host
        row_labels = to_device(_merge_down(table, k))[row_labels]
        table = on_host(one_hot(row_labels, k).T @ met)
        column_labels = to_device(_merge_down(table, columns))[column_labels]
        return block_steps(counts, row_labels, column_labels, shape)
    return _profile_start(counts, shape, rng)


def _merge_down(table: Floats, k: int) -> Ints:
    """`profile_kernels.merge_down` in plain numpy: a machine with a GPU need not have numba."""
    table = np.array(table, dtype=np.float64)

    def spread(sums: Floats) -> Floats:
        """Σ_y φ(n_y) − φ(Σ_y n_y) with φ(x) = x ln x, of each column."""
        mass = sums.sum(axis=0)
        return np.asarray(xlogy(sums, sums).sum(axis=0) - xlogy(mass, mass))

    def losses(a: int, others: Ints) -> Floats:
        return spread(table[:, [a]]) + spread(table[:, others]) - spread(table[:, others] + table[:, [a]])

    def join(a: int, b: int) -> None:
        table[:, a] += table[:, b]

    every = np.arange(table.shape[1])
    pairs = np.abs(np.array([losses(a, every) for a in range(len(every))]))
    np.fill_diagonal(pairs, np.inf)
    return merge(pairs, losses, join, k).groups(k)


def _profile_start(
    counts: Counts, shape: Sequence[int], rng: np.random.Generator, n_steps: int = 30
) -> tuple[Tensor, Tensor]:
    k, columns = shape
    row_labels = profile_steps(counts, profile_seeds(counts, k, rng), k, 5)
    profiles = DenseCounts(counts.turned.times(one_hot(row_labels, k)))
    column_labels = profile_steps(profiles, profile_seeds(profiles, columns, rng), columns, 10, 1e-3)
    return block_steps(counts, row_labels, column_labels, shape, n_steps)


def profile_seeds(counts: Matrix, k: int, rng: np.random.Generator) -> Tensor:
    """`starts.profile_seeds`: k-means++ on row profiles with Kullback-Leibler divergences."""
    smoothing = host.SEED_SMOOTHING
    mass, overall = counts.masses()
    highest = counts.own_scores(mass, overall, smoothing)
    turned = counts.turned

    def scores(rows: Tensor) -> Tensor:
        picked = torch.zeros(len(mass), len(rows), dtype=torch.float64, device=mass.device)
        picked[rows, torch.arange(len(rows), device=rows.device)] = 1.0 / mass[rows].clip(min=host.TINY)
        return counts.times(torch.log(_lift(turned.times(picked).T, overall, smoothing)).T).T

    nearest = scores(drawn(mass, 1, rng))[0]
    labels = torch.zeros(len(mass), dtype=torch.int64, device=mass.device)
    for seed in range(1, k):
        found = scores(drawn((highest - nearest).clip(min=0.0), host.TRIALS, rng))
        best = found[int(torch.maximum(found, nearest).sum(1).argmax())]
        labels[best > nearest] = seed
        nearest = torch.maximum(nearest, best)
    return labels


def drawn(weights: Tensor, size: int, rng: np.random.Generator) -> Tensor:
    """``rng.choice(n, size, p=weights / weights.sum())``, from the same random numbers; evenly where all are zero."""
    total = float(weights.sum())
    if total <= 0:
        return to_device(rng.choice(len(weights), size))
    ends = (weights / total).cumsum(0)
    return torch.searchsorted(ends / ends[-1], to_device(rng.random(size)), right=True).clip(max=len(weights) - 1)


def profile_steps(
    counts: Matrix, labels: Tensor, k: int, n_steps: int, smoothing: float = host.STEP_SMOOTHING
) -> Tensor:
    """`starts.profile_steps`: every row to the cluster whose smoothed profile codes it best."""
    mass, overall = counts.masses()
    turned = counts.turned
    for _ in range(n_steps):
        table = turned.times(one_hot(labels, k))
        sizes = table.sum(0)
        shares = table / torch.where(sizes > 0, sizes, 1.0)
        found = _best(counts.times(torch.log(_lift(shares.T, overall, smoothing)).T), mass, k)
        changed = float((found != labels).double().mean())
        labels = found
        if changed < 1e-3:
            break
    return labels


def block_steps(
    counts: Counts, rows: Tensor, columns: Tensor, shape: Sequence[int], n_steps: int = 30
) -> tuple[Tensor, Tensor]:
    """`starts.block_steps`: batch steps of information-theoretic co-clustering, rows and columns in turn."""
    labels, sides = [rows, columns], (counts, counts.turned)
    masses = [side.masses()[0] for side in sides]
    for _ in range(n_steps):
        changed = 0
        for axis, side in enumerate(sides):
            mine = side.times(one_hot(labels[1 - axis], shape[1 - axis]))
            table = one_hot(labels[axis], shape[axis]).T @ mine
            a, b = table.sum(1, keepdim=True), table.sum(0)
            logs = torch.log(table + 1e-6 * a * b / b.sum() + host.TINY)
            logs = logs - torch.log(a + host.TINY) - torch.log(b + host.TINY)
            new = _best(mine @ logs.T, masses[axis], shape[axis])
            changed += int((new != labels[axis]).sum())
            labels[axis] = new
        if changed <= 1e-4 * sum(map(len, labels)):
            break
    return labels[0], labels[1]


def _best(scores: Tensor, mass: Tensor, k: int) -> Tensor:
    """The best cluster of each row, none left empty."""
    gains, labels = scores.max(1)
    if int(torch.bincount(labels, minlength=k).min()) == 0:
        labels = to_device(host.refilled(on_host(labels), on_host(gains), on_host(mass), k))
    return labels
