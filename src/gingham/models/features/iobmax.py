"""Greedy IobMax (P4): clusters of instances that tell most about their observed features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint, Report, Trace
from gingham.fitting.sweep import Sweep
from gingham.kernels.sweep import make_board


@dataclass(frozen=True, eq=False)
class Entries:
    """Observed entries of a table of categories."""

    rows: Ints
    columns: Ints
    values: Ints
    shape: tuple[int, int]  # instances, features
    n_values: int  # most values a feature has

    def feature_information(self, labels: Ints, n_clusters: int) -> Floats:
        """P(X_j observed)·I(T; X_j | observed) of each feature, nats, shape (features,).

        Their mean is I_ob of P4 (which forgets the 1/n in the version with missing values).
        """
        n, d = self.shape
        cell = (labels[self.rows] * d + self.columns).astype(np.int64) * self.n_values + self.values
        table = np.bincount(cell, minlength=n_clusters * d * self.n_values).reshape(n_clusters, d, self.n_values)
        by_cluster, by_value = table.sum(axis=2), table.sum(axis=0)
        seen = by_value.sum(axis=1)
        total = xlogy(table, table).sum(axis=(0, 2)) - xlogy(by_cluster, by_cluster).sum(axis=0)
        total += xlogy(seen, seen) - xlogy(by_value, by_value).sum(axis=1)
        return np.maximum(np.asarray(total) / n, 0.0)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of instances, each feature's information about them, and how they were found."""

    labels: Ints
    feature_information: Floats
    trace: Trace
    converged: bool
    interrupted: bool


def iob_max(
    entries: Entries,
    n_clusters: int,
    start: Ints,
    sweep: Sweep,
    report: Report | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Clusters:
    """Move instances one by one while the observed information rises.

    Features stand as singletons, so the cost of the log cells, N·H(X_j | T) summed over features, differs
    from −n·Σ_j P(observed) I(T; X_j) by a constant only.
    """
    d = entries.shape[1]
    board = make_board(
        "log",
        (entries.rows, entries.columns),
        (start, np.arange(d)),
        (n_clusters, d),
        (0,),
        marks=entries.values,
        n_features=entries.n_values,
    )
    course = sweep.descend(board, (0,), 1.0, 0.0, report, checkpoint)
    labels = board.labels_of(0).copy()
    each = entries.feature_information(labels, n_clusters)
    return Clusters(labels, each, course.trace, course.converged, course.interrupted)
