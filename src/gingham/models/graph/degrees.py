"""DegreeModel: what a degree-corrected partition predicts of a pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.data.graphs import PairSample
from gingham.models.graph.adjacency import weighted_pairs
from gingham.models.graph.kernels import block_sums


@dataclass(frozen=True, eq=False)
class DegreeModel:
    """E w_ij = degree_i · degree_j · rate[cluster_i, cluster_j] (Karrer and Newman 2011).

    Attributes
    ----------
    labels : int array of shape (n,)
    degrees : array of shape (n,)
    rates : array of shape (k, k)
        Weight between two clusters over the product of their degree sums.
    """

    labels: Ints
    degrees: Floats
    rates: Floats

    @classmethod
    def of(cls, sample: PairSample, labels: Ints, k: int) -> DegreeModel:
        pairs = weighted_pairs(sample)
        weight = block_sums(pairs.indptr, pairs.others, pairs.values, labels, k)
        shares = weight.sum(axis=1)
        return cls(labels, pairs.strengths, weight / np.maximum(np.outer(shares, shares), 1e-300))

    def predict(self, codes: list[Ints]) -> Floats:
        """Expected weights, shape (P,); an unseen node (−1) has the mean degree and any cluster, by size."""
        k = len(self.rates)
        sizes = np.bincount(self.labels, minlength=k) / len(self.labels)
        membership = np.vstack([np.eye(k)[self.labels], sizes])
        degrees = np.append(self.degrees, self.degrees.mean())
        i, j = codes
        rate = np.einsum("ea,ea->e", membership[i] @ self.rates, membership[j])
        result: Floats = degrees[i] * degrees[j] * rate
        return result
