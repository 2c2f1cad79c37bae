"""What a fitted clustering of counts says: its density, its factors, its certificate, what its clusters are about."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import Mass
from gingham.certificates import Certificate, certify_density
from gingham.certificates.papers import Statement, theorem12
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data.modes import Mode
from gingham.errors import GinghamError, RefusedCertificate
from gingham.models.counts.fit import count_sample


class CountFacts:
    """Facts that follow from memberships, blocks and masses."""

    smoothing: float
    row_labels_: Ints
    column_labels_: Ints
    row_memberships_: Floats
    column_memberships_: Floats | None
    row_mass_: Floats
    column_mass_: Floats
    blocks_: Floats
    density_: Any

    def _counts(self, X: Any, reset: bool) -> Any:
        raise NotImplementedError  # pragma: no cover

    def score_samples(self, X: Any) -> Floats:
        """ln p̃(row, column) of pairs of positions (N, 2): the smoothed density, P0 (35), second line."""
        check_is_fitted(self)
        pairs = np.asarray(X)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise GinghamError("score_samples takes pairs of positions (row, column), whole numbers of shape (N, 2).")
        n = (len(self.row_labels_), len(self.column_labels_))
        if len(pairs) and (pairs.min() < 0 or (pairs.max(axis=0) >= n).any()):
            raise GinghamError(f"A pair lies outside the {n[0]} × {n[1]} matrix that was fitted.")
        row, column = pairs.T
        items = [np.exp(self._log_items(axis)) for axis in (0, 1)]
        clusters = [p if q is None else p @ q for p, q in zip(items, (self.row_memberships_, self.column_memberships_))]
        # p̃(c) with pseudo-counts spread as if the sides were independent; over Π p̃(c_i), so that p̃ sums to one.
        extra = self.smoothing * self.blocks_.size
        expected = np.outer(clusters[0], clusters[1])
        cells = (self.blocks_ + extra * expected) / (self.blocks_.sum() + extra)
        lift = np.divide(cells, expected, out=np.ones(cells.shape), where=expected > 0)
        result: Floats = np.log(items[0][row]) + np.log(items[1][column])
        if self.column_memberships_ is None:
            return result + np.log(lift[self.row_labels_[row], column])
        left = self.row_memberships_ @ lift
        return result + np.log(np.einsum("ec,ec->e", left[row], self.column_memberships_[column]))

    def _log_items(self, axis: int) -> Floats:
        """ln p̃(x) with one pseudo-count an item's share: (count + 1/n)/(N + 1)."""
        mass = self.row_mass_ if axis == 0 else self.column_mass_
        return np.log((mass + 1.0 / len(mass)) / (mass.sum() + 1.0))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the tokens of a matrix of the same shape (higher is better)."""
        check_is_fitted(self)
        entries = self._counts(X, reset=False).tocoo()
        return float(entries.data @ self.score_samples(np.column_stack(entries.coords)) / entries.data.sum())

    # facts

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """R_1, G, R_2 with P ≈ R_1 G R_2ᵀ: p(x|c_1), p(c_1, c_2), p(y|c_2) (P0 eq. 49)."""
        check_is_fitted(self)
        if self.column_memberships_ is None:
            raise GinghamError("The tri-factorisation needs column clusters: n_clusters=(rows, columns).")
        sides = []
        for q, mass in ((self.row_memberships_, self.row_mass_), (self.column_memberships_, self.column_mass_)):
            joint = q * mass[:, None]
            sides.append(joint / np.maximum(joint.sum(axis=0), 1e-300))
        return sides[0], self.blocks_ / self.blocks_.sum(), sides[1]

    @property
    def posterior_(self) -> Posterior:
        """The memberships as a Posterior with mass cells."""
        check_is_fitted(self)
        if self.column_memberships_ is None:
            raise GinghamError("A posterior over checkerboards needs column clusters: n_clusters=(rows, columns).")
        assign = (self.row_memberships_, self.column_memberships_)
        names = getattr(self, "notes_", {}).get("axes") or ("row", "column")  # of the table it was fitted on
        modes = tuple(Mode(str(name), np.arange(len(q))) for name, q in zip(names, assign))
        cell = Mass()
        return Posterior(Structure.grid(modes), (cell,), assign, (cell.answer(self.blocks_[..., None]),))

    def certify(self, X: Any, delta: float = 0.05) -> Certificate:
        """A guarantee on the code length of new co-occurrences; X is the matrix that was fitted.

        Each count must be an independent draw; weights that are not whole numbers are refused.
        """
        counts = self._counts(X, reset=False)
        if not (counts.data == np.floor(counts.data)).all():
            raise RefusedCertificate(
                "The entries are weights, not counts: a certificate counts independent draws. Fit raw counts."
            )
        certificate, self.density_ = certify_density(self.posterior_, count_sample(counts), delta=delta)
        return certificate

    def theorem12(self, X: Any, delta: float = 0.05) -> Statement:
        """P0's Theorem 12, eq. (36), as a reference; valid for hard clusters only."""
        counts = self._counts(X, reset=False)
        total = counts.sum()
        items = (self.row_mass_ / total, self.column_mass_ / total)
        posterior = self.posterior_
        names = posterior.structure.titles((0, 1))
        return theorem12(posterior.assign, self.blocks_ / total, items, int(total), delta, names)

    def characteristic(self, n_top: int = 10, names: Any = None, X: Any = None) -> dict[str, AnyArray]:
        """The columns that characterise each row cluster, by their contribution to the information.

        Parameters
        ----------
        n_top : int
        names : sequence, optional
            Names of the columns (words); positions, or the frame's own names, without it.
        X : counts, optional
            Needed with column clusters, to see single columns; blocks are used without it.

        Returns
        -------
        dict of columns, ready for a data frame: cluster, column, contribution (nats), lift
        """
        check_is_fitted(self)
        if X is not None:
            table = self.row_memberships_.T @ self._counts(X, reset=False)
        elif self.column_memberships_ is None:
            table = self.blocks_
        else:
            raise GinghamError("With column clusters characteristic() needs the counts: characteristic(X=counts).")
        labels = np.asarray(getattr(self, "feature_names_in_", np.arange(table.shape[1])) if names is None else names)
        p = table / table.sum()
        expected = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
        lift = np.divide(p, expected, out=np.ones(p.shape), where=expected > 0)
        contribution = xlogy(p, lift)
        order = np.argsort(-contribution, axis=1, kind="stable")[:, :n_top]
        cluster = np.repeat(np.arange(len(p)), order.shape[1])
        column = order.ravel()
        return {
            "cluster": cluster,
            "column": labels[column],
            "contribution": contribution[cluster, column],
            "lift": lift[cluster, column],
        }


def information(table: Floats) -> float:
    """I of a table of counts, nats."""
    total = table.sum()
    terms = xlogy(table, table).sum() + xlogy(total, total)
    for axis in (0, 1):
        margin = table.sum(axis=axis)
        terms -= xlogy(margin, margin).sum()
    return max(0.0, float(terms / total))
