"""What a fitted clustering of a graph says: weights of pairs, clusters of nodes, other graphs on the same nodes."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, Floats, Ints
from gingham.core.posterior import Posterior
from gingham.data.adapt import id_columns
from gingham.data.graphs import PairSample, from_graph, with_alphabet
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.models.graph.degrees import DegreeModel


class GraphFacts:
    """Facts that follow from the posterior, and from the degrees where they were corrected for."""

    posterior_: Posterior
    degree_model_: DegreeModel | None
    directed_: bool

    # predictions

    def predict(self, X: Any) -> Floats:
        """Expected weight of pairs of node ids, X of shape (P, 2), as the mean over Q."""
        codes = self._codes(X)
        if self.degree_model_ is not None:
            return self.degree_model_.predict(codes)
        return self.posterior_.predict(codes)

    def predict_distribution(self, X: Any) -> Floats:
        """Law of the answer over the alphabet when the partition is drawn from Q, shape (P, |Y|)."""
        return self.posterior_.predict_distribution(self._codes(X))

    def sample(self, X: Any, *, pairs: Any = "all", weight: str | None = "weight") -> PairSample:
        """Another graph on the same nodes in the model's own numbering, as certificates and tests need it."""
        check_is_fitted(self)
        return self.sample_like(from_graph(X, pairs=pairs, directed=self.directed_, weight=weight, nodes=self.items_))

    def sample_like(self, found: PairSample) -> PairSample:
        """The same pairs with the model's numbering of nodes and labels."""
        mode = self.posterior_.structure.modes[0]
        alphabet = getattr(self.posterior_.cells[0], "alphabet", None)
        at = mode.encode(found.modes[0].items)
        renamed = PairSample(
            (mode,) * found.n_modes, tuple(at[code] for code in found.codes), found.labels,
            directed=found.directed, complete=found.complete,
        )  # fmt: skip
        return renamed if alphabet is None else with_alphabet(renamed, alphabet)

    def _codes(self, X: Any) -> list[Ints]:
        check_is_fitted(self)
        columns = id_columns(X).columns
        d = len(self.posterior_.structure.factors[0])
        if len(columns) != d:
            raise GinghamError(f"X has {len(columns)} columns of node ids; each row needs {d}.")
        mode = self.posterior_.structure.modes[0]
        codes = [mode.encode(column) for column in columns]
        unseen = sum(int((code < 0).sum()) for code in codes)
        if unseen:
            warnings.warn(
                f"{unseen} node ids were never seen in training: they are predicted with the average memberships.",
                UnseenItemsWarning,
                stacklevel=3,
            )
        return codes

    # facts of the fit

    @property
    def assign_(self) -> Floats:
        """q(c|x), shape (n, k)."""
        return self.posterior_.assign[0]

    @property
    def labels_(self) -> Ints:
        """Most probable cluster of each node."""
        return self.posterior_.labels[0]

    @property
    def items_(self) -> AnyArray:
        return self.posterior_.structure.modes[0].items

    @property
    def n_clusters_(self) -> int:
        return self.posterior_.n_clusters[0]

    @property
    def answers_(self) -> Floats:
        """The weight that each block predicts, shape (k, k)."""
        return self.posterior_.cells[0].values(self.posterior_.answers[0])

    @property
    def information_(self) -> float:
        """Ī, nats."""
        return self.posterior_.information[0]
