"""Degree correction: expected weights given the clusters and degrees of two nodes, their description length in nats,
and the choice between the plain and the corrected form by held-out pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

import numpy as np
from scipy.special import gammaln, xlogy

from gingham.arrays import Bools, Floats, Ints
from gingham.core.problem import Objective
from gingham.data.graphs import PairSample, label_values
from gingham.models.graph.kernels import block_sums
from gingham.models.graph.solvers import cluster_sizes, weighted_pairs
from gingham.storage import savable

PARTS = 10  # of all pairs; one of them is held out at a time
ENOUGH = 1000  # edges that are held out in all, where the graph has so many; more parts are held out for that
FEWEST_EDGES = 50  # below which held-out edges say nothing
SURE = 1e-9  # distance of a chance from 1, so that no held-out pair costs infinitely much
LIKELIHOOD_STEPS = 40  # towards the degrees that make the edges likeliest


class EdgeChances(Protocol):
    """Chances that two nodes are joined."""

    def nats(self, codes: Sequence[Ints]) -> tuple[Floats, Floats]:
        """What pairs cost if they are joined, and if they are not, each of shape (P,)."""

    def absent(self) -> float:
        """What all pairs of the graph would cost together if none were joined."""


@dataclass(frozen=True, eq=False)
class GroupChances:
    """Chances of an edge that depend on the groups of its two nodes alone."""

    groups: Ints  # (n,)
    chances: Floats  # (k, k)

    @classmethod
    def of_blocks(cls, sample: PairSample, labels: Ints, k: int, kept: float = 1.0) -> GroupChances:
        """Clusters: the share of joined pairs in each block, with one joined pair and one other added.

        ``kept``: the share of all pairs that the sample was drawn from; the others had no chance to be joined.
        """
        edges = block_sums(*weighted_pairs(sample), labels, k)
        shares = (edges + 1.0) / (_pairs(labels, k) + 2.0) / kept
        return cls(labels, np.minimum(shares, 1.0 - SURE))

    @classmethod
    def of_degrees(cls, sample: PairSample, kept: float = 1.0) -> GroupChances:
        """What degrees say without clusters: i and j are joined with the chance 1 − exp(−θ_i θ_j).

        θ makes the edges likeliest, so that a hub that is joined to almost every node stays so. Every node starts from
        one edge of a node with the mean θ. Nodes with equal degrees have the same θ, so that degrees are the groups.
        """
        degrees, numbers = np.unique(
            np.bincount(np.concatenate(sample.codes), minlength=sample.n_nodes), return_inverse=True
        )
        sizes = cluster_sizes(numbers, len(degrees))
        theta = (degrees + 1.0) / np.sqrt(sizes @ (degrees + 1.0))
        for _ in range(LIKELIHOOD_STEPS):
            chances = -np.expm1(-np.outer(theta, theta))
            expected = chances @ sizes - np.diag(chances)
            theta *= np.sqrt((degrees + 1.0) / (expected + theta / np.average(theta, weights=sizes)))
        return cls(numbers, np.minimum(-np.expm1(-np.outer(theta, theta)) / kept, 1.0 - SURE))

    def nats(self, codes: Sequence[Ints]) -> tuple[Floats, Floats]:
        chance = self.chances[self.groups[codes[0]], self.groups[codes[1]]]
        return -np.log(chance), -np.log1p(-chance)

    def absent(self) -> float:
        return float(-(np.log1p(-self.chances) * _pairs(self.groups, len(self.chances))).sum() / 2.0)


def _pairs(labels: Ints, k: int) -> Floats:
    """Ordered pairs of different nodes in each block, shape (k, k)."""
    sizes = cluster_sizes(labels, k)
    return np.outer(sizes, sizes) - np.diag(sizes)


@savable
@dataclass(frozen=True, eq=False)
class DegreeModel:
    """Poisson weights with mean μ_ij = degree_i · degree_j · rate[cluster_i, cluster_j] (Karrer and Newman 2011).

    Of a graph without weights a pair is joined where that number is not 0, with the chance 1 − exp(−μ_ij).
    Degrees and rates are shrunken by one edge: a node without edges, and a block without any, may yet have one.
    """

    labels: Ints  # (n,)
    degrees: Floats  # (n,)
    rates: Floats  # (k, k)
    edges: bool = False  # whether pairs are joined or not, and have no weights

    @classmethod
    def of(cls, sample: PairSample, labels: Ints, k: int, kept: float = 1.0) -> DegreeModel:
        """``kept``: the share of all pairs that the sample was drawn from; the others had no chance to be joined."""
        pairs = weighted_pairs(sample)
        one = float(pairs.values.mean())  # an edge, in the unit of the weights
        weight = block_sums(*pairs, labels, k)
        degrees = pairs.strengths + one
        shares = cluster_sizes(labels, k, degrees)
        rates = (weight + one) / (np.outer(shares, shares) + one * shares.sum()) / kept
        return cls(labels, degrees, rates, bool(np.isin(label_values(sample), (0.0, 1.0)).all()))

    def means(self, codes: Sequence[Ints]) -> Floats:
        """μ of pairs, shape (P,); an unseen node (−1) has the mean degree and any cluster, by size."""
        k = len(self.rates)
        sizes = np.bincount(self.labels, minlength=k) / len(self.labels)
        membership = np.vstack([np.eye(k)[self.labels], sizes])
        degrees = np.append(self.degrees, self.degrees.mean())
        i, j = codes
        rate = np.einsum("ea,ea->e", membership[i] @ self.rates, membership[j])
        return degrees[i] * degrees[j] * rate

    def predict(self, codes: Sequence[Ints]) -> Floats:
        """Expected weights, or chances of an edge, shape (P,)."""
        means = self.means(codes)
        return -np.expm1(-means) if self.edges else means

    def nats(self, codes: Sequence[Ints]) -> tuple[Floats, Floats]:
        means = self.means(codes)
        return -np.log(-np.expm1(-means)), means

    def absent(self) -> float:
        """Σ μ_ij over all pairs, by blocks: −ln(1 − p) is linear in the product of the degrees."""
        k = len(self.rates)
        sums = cluster_sizes(self.labels, k, self.degrees)
        products = np.outer(sums, sums) - np.diag(cluster_sizes(self.labels, k, self.degrees**2))
        return float((self.rates * products).sum() / 2.0)

    def objective(self, sample: PairSample) -> Objective:
        """The description length of the graph by its pairs, its clusters and its degrees, in nats.

        ln C(n_r + e_r − 1, e_r) of each cluster says which of the degrees with the sum e_r its n_r nodes have.
        """
        listed = np.ones(sample.n_rows) if sample.labels is None else sample.labels
        if self.edges:
            joined, absent = self.nats(sample.codes)
            loss = self.absent() + float((joined - absent)[listed == 1].sum())
        else:
            loss = self.absent() + float((gammaln(listed + 1.0) - xlogy(listed, self.means(sample.codes))).sum())
        sizes = cluster_sizes(self.labels, len(self.rates))
        ends = cluster_sizes(self.labels, len(self.rates), weighted_pairs(sample).strengths)
        n = float(len(self.labels))
        information = max(0.0, float(xlogy(n, n) - xlogy(sizes, sizes).sum()))
        degrees = float((gammaln(sizes + ends) - gammaln(ends + 1.0) - gammaln(sizes)).sum())
        return Objective((loss,), (information, degrees), (1.0,))


@savable
@dataclass(frozen=True)
class DegreeChoice:
    """Which form a graph was fitted with, and why.

    Attributes
    ----------
    corrected : bool
    why : str
        In a sentence.
    plain_loss, corrected_loss : float or None
        Log loss of the two forms in nats per held-out pair; None where nothing was held out.
    degrees_loss : float or None
        The same of the degrees of the nodes alone, without clusters.
    n_held : int
        Held-out edges.
    """

    corrected: bool
    why: str
    plain_loss: float | None = None
    corrected_loss: float | None = None
    degrees_loss: float | None = None
    n_held: int = 0

    def __str__(self) -> str:
        return self.why


def choose_degrees(
    sample: PairSample, partition: Callable[[PairSample, bool], tuple[Ints, int]], seed: int
) -> DegreeChoice:
    """The form that predicts held-out pairs of a 0/1 graph better.

    A random tenth of all pairs is held out, and both forms are fitted to a graph in which these pairs are not joined;
    ``partition`` finds the clusters (of this graph, with degrees or without). A small graph has several tenths held
    out in turn, until there are ENOUGH edges among them.

    Plain blocks of a graph with hubs may do well only because they tell hubs from other nodes. So where degrees alone
    predict as well as they do, degrees are corrected for: clusters then say what degrees do not.

    Of the pairs that are not joined nothing needs to be drawn: held out or not, a fit sees them alike. So a tenth of
    what all of them cost stands for those held out, which takes a sum over blocks and no n² numbers.
    """
    if sample.labels is not None:
        sample = replace(sample.take(sample.labels != 0), complete=True)
    part = np.random.default_rng([seed, PARTS]).integers(PARTS, size=sample.n_rows)
    n_parts = min(PARTS, ceil(ENOUGH * PARTS / sample.n_rows))
    kept = 1.0 - 1.0 / PARTS
    losses = np.zeros(3)
    for number in range(n_parts):
        held = part == number
        rest = replace(sample.take(~held), complete=True)
        forms: list[EdgeChances] = [
            GroupChances.of_blocks(rest, *partition(rest, False), kept),
            DegreeModel.of(rest, *partition(rest, True), kept),
            GroupChances.of_degrees(rest, kept),
        ]
        losses += [held_out_loss(form, sample, held) for form in forms]
    plain, corrected, alone = (losses / n_parts).tolist()
    unit = "nats per held-out pair"
    if corrected < plain:
        why = f"degree-corrected: {corrected:.4f} against {plain:.4f} {unit} (plain)"
    elif alone <= plain:
        why = f"degree-corrected: degrees alone have {alone:.4f} {unit}, and plain blocks no less ({plain:.4f})"
    else:
        why = f"plain: {plain:.4f} against {corrected:.4f} {unit} (degree-corrected)"
    return DegreeChoice(min(corrected, alone) <= plain, why, plain, corrected, alone, int((part < n_parts).sum()))


def held_out_loss(chances: EdgeChances, sample: PairSample, held: Bools) -> float:
    """Log loss per pair of a random tenth of all pairs, of which the ``held`` of the listed ones are joined."""
    joined, absent = chances.nats(sample.codes)
    others = chances.absent() - float(absent.sum())  # of all pairs that are not joined
    return (float(joined[held].sum()) + others / PARTS) / (sample.n_observations / PARTS)
