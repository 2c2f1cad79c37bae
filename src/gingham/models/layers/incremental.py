"""Layers that grow: new items folded in, chains that go on when tuples are added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from joblib import delayed
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, Floats
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns
from gingham.errors import GinghamError
from gingham.models.base import TupleModel
from gingham.models.layers import Chain, Draws, LayerData, Shape, SoftLayers
from gingham.models.layers.fold_in import extended, fold_in
from gingham.models.layers.model_size import Choice, weighted
from gingham.models.layers.sampled import keep
from gingham.models.layers.side_tables import side_tables

SETTLE_SWEEPS = 10  # of a partial fit, not kept


class GrowingLayers(TupleModel):
    """Sampled layers that take in new items and tuples."""

    model_: Draws | tuple[SoftLayers, ...]
    modes_: tuple[Mode, ...]
    alphabet_: Alphabet | None
    selection_: Choice
    noise_: float
    offsets: bool
    side: dict[Any, Any] | None
    random_state: Any
    fit: Callable[..., Self]
    _seen: list[tuple[Any, ...]]  # tuples of partial_fit
    _parallel: Callable[[Any], list[Any]]
    n_chains: int | None
    solver: str

    @property
    def _n_members(self) -> int:
        return self.n_chains or (3 if self.solver == "sampled" else 20)

    def fold_in(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add items that were not in the training data, from some labelled tuples with them.

        For every kept draw, the new items' offsets and clusters are drawn given all that was learned, which
        stays as it is. Draws that suit the new item's tuples better count more for it. Afterwards new items are
        predicted like all others.
        """
        check_is_fitted(self)
        if not isinstance(self.model_, Draws):
            raise GinghamError("fold_in works with solver='sampled'; fit the soft layers again with the new items.")
        columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        before = self.modes_
        after = tuple(
            Mode.of(np.concatenate([mode.items, column[mode.encode(column) < 0]]), mode.name)
            for mode, column in zip(before, columns.columns)
        )
        sample = Sample.of(columns.columns, labels, weights, modes=after, alphabet=self.alphabet_).merged()
        new = [old.encode(mode.items) < 0 for old, mode in zip(before, after)]
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        self.model_ = fold_in(extended(self.model_, before, after), new, sample, self.noise_, self.offsets, rng)
        self.modes_ = after
        return self

    @available_if(lambda self: self.solver == "sampled")
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add tuples to a growing table: fit at the first call; afterwards the chains go on with all tuples.

        New items are folded in, then every chain runs on from its last draw, with a short burn-in, and as many
        draws are kept as before. Sizes, noise, cut points and labels stay. The tuples are kept with the model,
        but not in its file: after ``fit`` or ``load`` new items are folded in, no more.
        """
        first = not hasattr(self, "model_")
        (self.fit if first else self.fold_in)(X, y, sample_weight)
        if not first and not self._seen:
            return self
        columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        counts = np.ones(len(labels)) if weights is None else weights
        self._seen = [*self._seen, (*columns.columns, labels, counts)]
        if not first:
            *ids, labels, counts = (np.concatenate(parts) for parts in zip(*self._seen))
            self._go_on(columns._replace(columns=ids), labels, None if np.all(counts == 1) else counts)
        return self

    def _go_on(self, columns: Columns, labels: AnyArray, weights: Floats | None) -> None:
        """Run every chain on from its last draw, with the tuples of all calls."""
        draws, choice = self.model_, self.selection_
        if not isinstance(draws, Draws):
            return
        modes, sides = side_tables(columns, self.side or {})
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=self.alphabet_).merged()
        data = LayerData.of(sample, weighted(sides, choice.side_weight))
        shape = Shape(choice.n_layers, choice.n_clusters, self.offsets)
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31 - 1)).spawn(self._n_members)
        n_kept = draws.n_draws // self._n_members
        chains = [
            Chain.resume(data, shape, self.noise_, np.random.default_rng(seed), draws, (at + 1) * n_kept - 1)
            for at, seed in enumerate(seeds)
        ]
        self.model_ = Draws.join(
            self._parallel(delayed(keep)(chain, n_kept + SETTLE_SWEEPS, SETTLE_SWEEPS) for chain in chains)
        )
