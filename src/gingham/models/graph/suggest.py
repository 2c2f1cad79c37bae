"""Which pairs to measure next: those whose weights tell most about the weights that are not measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from gingham.arrays import Floats, Ints
from gingham.data.graphs import PairSample
from gingham.errors import GinghamError
from gingham.models.graph.solvers import weighted_pairs

MOST_NODES = 2000  # that are compared with one another; of more, those whose clusters are least certain and some others
LEAST_SHARE = 1e-3  # of the variance of the weights: noise within a block is at least that


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What measured pairs say of the cluster of each node, and what that leaves open about the pairs not measured.

    The weight of a pair is the mean of its block plus noise. The weights that a node would have with the members of
    each cluster, ``g[c]`` where c is its own cluster, are uncertain as far as c is: ``covariance`` is that of ``g[c]``
    under q(c|x). Measuring one of them lowers the squared error of all others, predicted linearly in the weight, by

        Σ_b n_b Cov(g_b, g_a)² / (Var(g_a) + noise)

    with n_b pairs not measured; a is the partner's cluster.
    """

    assign: Floats  # (n, k), q(c|x)
    covariance: Floats  # (n, k, k)
    unmeasured: Floats  # (n, k): pairs of a node with members of each cluster that were not measured
    noise: float

    @classmethod
    def of(cls, sample: PairSample, assign: Floats) -> Beliefs:
        """From the measured pairs and the clusters of a model."""
        pairs = weighted_pairs(sample)
        weights, met = pairs.matrix(), pairs._replace(values=np.ones_like(pairs.values)).matrix()
        count, total = assign.T @ (met @ assign), assign.T @ (weights @ assign)
        mean, variance = float(pairs.values.mean()), float(pairs.values.var())
        g = (total + mean) / (count + 1.0)  # a block is like all pairs until it has some
        squares = float((pairs.values**2).sum())
        residual = squares - 2.0 * float((g * total).sum()) + float((g**2 * count).sum())
        noise = max(residual / len(pairs.values), LEAST_SHARE * variance, 1e-12)
        partners = met @ assign  # (n, k)
        cost = partners @ (g**2).T - 2.0 * (weights @ assign) @ g.T
        with np.errstate(divide="ignore"):
            q = softmax(np.log(assign.mean(axis=0)) - cost / (2.0 * noise), axis=1)
        centred = g[None] - (q @ g)[:, None, :]
        covariance = np.einsum("xc,xca,xcb->xab", q, centred, centred, optimize=True)
        return cls(q, covariance, np.maximum(q.sum(axis=0) - q - partners, 0.0), noise)

    def gains(self, nodes: Ints) -> Floats:
        """Squared error, summed over pairs, that a pair with a member of each cluster saves, (len(nodes), k)."""
        covariance = self.covariance[nodes]
        told = np.einsum("xb,xba->xa", self.unmeasured[nodes], covariance**2)
        return told / (np.einsum("xaa->xa", covariance) + self.noise)

    def measure(self, nodes: Ints, partners: Ints) -> None:
        """What is left open once the pairs are measured, whatever their weights; each node at most once."""
        cluster = self.assign[partners].argmax(axis=1)
        of = self.covariance[nodes]
        column = of[np.arange(len(nodes)), :, cluster]
        own = column[np.arange(len(nodes)), cluster] + self.noise
        self.covariance[nodes] = of - column[:, :, None] * column[:, None, :] / own[:, None, None]
        self.unmeasured[nodes, cluster] = np.maximum(self.unmeasured[nodes, cluster] - 1.0, 0.0)


def suggest(sample: PairSample, assign: Floats, n_pairs: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Pairs that have not been measured, the most informative first, (n_pairs, 2), and the squared error each saves.

    In each round every node is in one pair at most; then what they leave open is computed anew. That does not depend on
    the weights that will be measured. Of very large graphs there may be fewer pairs.
    """
    if sample.complete or sample.directed or sample.n_modes > 2:
        raise GinghamError(
            "suggest_pairs needs an undirected graph of which only some pairs were measured: fit with pairs='listed'."
        )
    n = sample.n_nodes
    free = n * (n - 1) // 2 - sample.n_rows
    if not 0 < n_pairs <= free:
        raise GinghamError(f"n_pairs={n_pairs!r}: between 1 and {free:,} pairs can be suggested.")
    beliefs = Beliefs.of(sample, np.asarray(assign, dtype=np.float64))
    nodes = np.arange(n)
    if n > MOST_NODES:
        open_ = np.einsum("xb,xbb->x", beliefs.unmeasured, beliefs.covariance)
        first = np.argsort(-open_, kind="stable")[: MOST_NODES // 2]
        others = rng.permutation(np.setdiff1d(nodes, first))[: MOST_NODES - len(first)]
        nodes = np.concatenate([first, others])
    place = np.full(n, -1)
    place[nodes] = np.arange(len(nodes))
    taken = np.tri(len(nodes), dtype=bool)  # each pair once, none with itself
    low, high = np.sort(place[np.stack(sample.codes)], axis=0)
    inside = low >= 0
    taken[low[inside], high[inside]] = True
    found: list[tuple[int, int]] = []
    worth: list[float] = []
    while len(found) < n_pairs and not taken.all():
        gains, q = beliefs.gains(nodes), beliefs.assign[nodes]
        score = gains @ q.T
        score += score.T
        score[taken] = -np.inf
        busy = np.zeros(len(nodes), dtype=bool)
        chosen: list[tuple[int, int]] = []
        # The best partners of each node are enough for a round.
        best = np.argsort(-score, axis=None, kind="stable")[: 20 * len(nodes)]
        for i, j in zip(*np.unravel_index(best, score.shape)):
            if len(found) + len(chosen) == n_pairs or not np.isfinite(score[i, j]):
                break
            if not (busy[i] or busy[j]):
                busy[i] = busy[j] = taken[i, j] = True
                chosen.append((i, j))
                worth.append(float(score[i, j]))
        ends = nodes[np.array(chosen)]
        beliefs.measure(ends.ravel(), ends[:, ::-1].ravel())
        found += [(int(i), int(j)) for i, j in ends]
    return np.array(found, dtype=np.int64), np.array(worth)
