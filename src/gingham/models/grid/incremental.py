"""Tables that grow: new items folded in, new tuples added, without starting again."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gingham.core.problem import Problem
from gingham.data import Sample
from gingham.fitting.loop import best_of
from gingham.fitting.projection import Projection
from gingham.fitting.schedule import Constant
from gingham.fitting.sweep import Sweep
from gingham.models.base import GridModel
from gingham.models.grid.fold_in import extended, fold_in

SETTLE = 20  # sweeps of a partial fit


class GrowingGrid(GridModel):
    """A grid that takes in new items and tuples."""

    beta_: float
    backend: str
    dtype: str | None = None
    tol: float
    max_iter: int

    def fold_in(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add items that were not in the training data, from some labelled tuples with them.

        A half step for the new items only: what was learned before stays as it is. Afterwards they are
        predicted like all others.
        """
        check_is_fitted(self)
        columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        before = self.posterior_
        wide = extended(before, columns.columns)
        alphabet = getattr(before.cells[0], "alphabet", None)
        sample = Sample.of(columns.columns, labels, weights, modes=wide.structure.columns(), alphabet=alphabet)
        self.posterior_ = fold_in(before, wide, sample, self.beta_, self.backend)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add tuples to a growing table: fit at the first call; afterwards start from the present checkerboard.

        New items are folded in, then a few sweeps over all tuples seen so far let everything settle. The
        tuples are kept with the model, but not in its file. β, the number of clusters and the labels stay. After
        ``fit`` or ``load`` the old tuples are not at hand, and new items are folded in, no more.

        Parameters
        ----------
        classes : sequence, optional
            All labels that may come, where ``alphabet`` does not state them; needed at the first call only.
        """
        if not hasattr(self, "posterior_"):
            self._classes = classes
            self.fit(X, y, sample_weight)
            columns, labels, weights = self._observed(X, y, sample_weight)
            self._seen = [(columns.columns, labels, weights)]
            return self
        self.fold_in(X, y, sample_weight)
        if not hasattr(self, "_seen"):
            return self
        columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        self._seen.append((columns.columns, labels, weights))
        posterior = self.posterior_
        counts = [np.ones(len(part[1])) if part[2] is None else part[2] for part in self._seen]
        sample = Sample.of(
            [np.concatenate(parts) for parts in zip(*(part[0] for part in self._seen))],
            np.concatenate([part[1] for part in self._seen]),
            None if all(part[2] is None for part in self._seen) else np.concatenate(counts),
            modes=posterior.structure.columns(),
            alphabet=getattr(posterior.cells[0], "alphabet", None),
        )
        problem = Problem.grid(sample, posterior.cells[0], self.beta_)
        self._set_solution(best_of(self._settling(min(self.max_iter, SETTLE)), problem, [posterior], 1))
        return self

    def _settling(self, max_iter: int) -> Projection | Sweep:
        """The solver that lets old and new items find their places."""
        return Projection(Constant(), self.tol, max_iter, self.backend, self.dtype)
