"""LayeredCoClusteringRegressor: offsets and several small checkerboards that add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import norm
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Floats, Ints, Seed, TableLike
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns
from gingham.errors import GinghamError
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint
from gingham.models.base import TupleModel, named_auto, numeric_labels, observed_of
from gingham.models.layers.data import LayerData, Sides, side_tables
from gingham.models.layers.fold_in import extended, fold_in
from gingham.models.layers.model import Draws, Layer, Prediction, SoftLayers, readable
from gingham.models.layers.pilot import Pilot, Size, choose_layers, pool_pilots, run_pilot, weighted
from gingham.models.layers.sampled import Chain, Shape, run_chain, run_chains, sample_draws, use_torch
from gingham.models.layers.soft import Soft, solve
from gingham.models.questions import Predicted
from gingham.reading.observed import Observed
from gingham.selection.auto import Sizes, expand_clusters

if TYPE_CHECKING:
    from gingham.reading.make_reading import ItemInfo

SOLVERS = ("sampled", "projection")
RULES = ("mean", "label")
MAX_CELLS = 2**17
SETTLE_SWEEPS = 10  # of a partial fit, not kept
MAX_LABELS = 20  # labels read off the data; more count as a continuum
SINGLE = 1e15  # labels whose squares, added up, are numbers of single precision


@dataclass(eq=False, repr=False)
class LayeredCoClusteringRegressor(RegressorMixin, TupleModel):
    """Numeric labels as ``μ + Σ_j b_j(x_j) + Σ_t F_t[c_1t(x_1), …, c_dt(x_d)]``: offsets and added checkerboards.

    The best predictor of ratings in this library. Every layer has its own clusters of each mode. With
    ``solver="sampled"`` clusters, cells and offsets are drawn in turn, and the draws of a few chains are
    averaged; with ``solver="projection"`` each member is a soft, monotone fit. The noise level (and so
    β = 1/(2σ²)) and the cut points between labels come from pilots that hold out a tenth of the data.

    Parameters
    ----------
    n_layers : int or "auto"
        Checkerboards that are added up. "auto" compares pilots with 6, 10 and 15 layers on the same held-out
        tenth of the data, and more or fewer while the end of the range is best; 10 with less than a thousand
        rows, more than five million, or ``n_pilots=0``.
    n_clusters : int, sequence of int or "auto"
        Clusters of each mode in every layer, at most 254; "auto" goes on to compare 5, 8 and 12 in the same way
        (8 where nothing is compared, and fewer where there are many modes).
    offsets : bool
        Whether items have offsets of their own.
    solver : {"sampled", "projection"}
    n_chains : int, optional
        Chains or soft members that are averaged: 3 chains, or 20 members.
    n_sweeps : int, optional
        Sweeps of a chain (120, of which the first 20 are not kept) or of a soft member (25).
    noise : float, optional
        σ², the square of the error to expect; found by the pilots when it is not given.
    n_pilots : int
    alphabet : sequence of numbers, optional
        The possible labels; read off the data when they are at most 20.
    side : dict, optional
        Yes-or-no properties of items as shared relations: {mode (its position or name): (ids, table)}
        with a row of zeros and ones per id. Items without ratings are placed by their properties.
    side_weight : float or "auto"
        How much the properties count against the labels; "auto" compares .25, .5 and 1.
    backend : {"auto", "compiled", "torch"}
        Where chains are sampled. "auto" takes a GPU when torch finds one, the data is large enough to pay, has
        two modes and no side information; chains then run side by side on it, with random numbers of its own.
    n_jobs : int, optional
        Chains side by side; the result does not depend on it.
    random_state : int, RandomState or None

    Attributes
    ----------
    noise_ : float
        σ², held-out mean square error of the pilots' predictions.
    cuts_ : ndarray of shape (|Y| − 1,) or None
        Where one label gives way to the next in ``predict(rule="label")``.
    scatter_ : float
        σ² without the part that the draws' own variance explains: what the predictive intervals add.
    model_ : Draws, or tuple of SoftLayers
    selection_ : SizeChoice
        The size that was chosen, the sizes that were tried with their held-out errors, and why.
    traces_ : tuple of arrays
        The objective after each sweep of each soft member; empty for sampled chains.

    Examples
    --------
    >>> from gingham import LayeredCoClusteringRegressor
    >>> X = [(u, i) for u in range(12) for i in range(10)]
    >>> y = [5 if (u % 2) == (i % 2) else 1 for u, i in X]
    >>> model = LayeredCoClusteringRegressor(n_layers=2, n_clusters=2, random_state=0).fit(X, y)
    >>> model.predict([(0, 0), (0, 1)], rule="label")
    array([5., 1.])
    """

    saved_attributes = ("model_", "modes_", "alphabet_", "cuts_", "noise_", "scatter_", "range_", "traces_")
    _seen = cast("Sequence[tuple[AnyArray, ...]]", ())  # tuples of partial_fit

    n_layers: int | str = "auto"
    n_clusters: Sizes = "auto"
    offsets: bool = True
    solver: str = "sampled"
    n_chains: int | None = None
    n_sweeps: int | None = None
    burn_in: int = 20
    noise: float | None = None
    n_pilots: int = 2
    alphabet: Iterable[object] | None = None
    side: Sides | None = None
    side_weight: float | str = "auto"
    backend: str = "auto"
    n_jobs: int | None = None
    random_state: Seed = None

    def item_modes(self) -> tuple[Mode, ...]:
        return self.modes_

    def _labels(self, y: ArrayLike) -> AnyArray:
        return numeric_labels(y, type(self).__name__, SINGLE)

    # fitting

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        item_info: ItemInfo | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Fit offsets and layers to observed tuples; rows of X are ids, one per mode, y their labels.

        ``item_info`` are tables about the items of modes, for readings (see :func:`gingham.read`); what the model is to
        learn from is its parameter ``side``.
        """
        columns, labels, weights = self._observed(X, y, sample_weight)
        checkpoint.bound_to(self, X, y, sample_weight, self.side)
        self._check()
        modes, sides = side_tables(columns, self.side or {})
        alphabet = self._alphabet(labels)
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=alphabet).merged()
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        pilot_seeds, chain_seeds = (s.spawn(n) for s, n in zip(seeds.spawn(2), (self.n_pilots, self._n_members)))
        self.selection_, run = choose_layers(
            sample,
            sides,
            Size(self.n_layers, self.n_clusters, self.side_weight),
            partial(self._clusters, sample),
            self.offsets,
            pilot_seeds[0] if pilot_seeds else None,
            lambda calls: self._parallel(delayed(call)() for call in calls),
            self.backend,
            checkpoint,
        )
        shape = Shape(self.selection_.n_layers, self.selection_.n_clusters, self.offsets)
        sides = weighted(sides, self.selection_.side_weight)
        # The winner's pilot, where sizes were compared, is one of the pilots.
        runs = ([] if run is None else [run]) + self._parallel(
            delayed(run_pilot)(sample, sides, shape, seed, self.backend, checkpoint.stage(f"pilot {number + 1}"))
            for number, seed in enumerate(pilot_seeds[run is not None :])
        )
        pilot = pool_pilots(runs, sample, None if alphabet is None else alphabet.numbers)
        if self.noise is not None:
            pilot = Pilot(float(self.noise), float(self.noise), pilot.cuts)
        data = LayerData.of(sample, sides)
        self.modes_, self.alphabet_, self.cuts_ = modes, alphabet, pilot.cuts
        self.noise_, self.scatter_ = pilot.error, pilot.scatter
        values = data.labels if alphabet is None else alphabet.numbers
        self.range_ = (float(values.min()), float(values.max()))
        self.traces_: tuple[Floats, ...] = ()
        self._seen = ()
        if self.solver == "sampled":
            plan = (data, shape, self.noise_)
            if use_torch(self.backend, data, shape):
                chains = run_chains(*plan, chain_seeds, self._n_sweeps, self.burn_in)
            else:
                chains = self._parallel(
                    delayed(run_chain)(
                        *plan, seed, self._n_sweeps, self.burn_in, checkpoint.stage(f"chain {number + 1}")
                    )
                    for number, seed in enumerate(chain_seeds)
                )
            self.model_: Draws | tuple[SoftLayers, ...] = Draws.join(chains)
        else:
            # A committee of a dozen or more does best with members that fit a little too closely.
            beta = (1.15 if self._n_members >= 12 else 1.0) / (2.0 * self.noise_)
            fits = self._parallel(delayed(solve)(data, shape, beta, seed, Soft(self._n_sweeps)) for seed in chain_seeds)
            self.model_, self.traces_ = tuple(m for m, _ in fits), tuple(trace for _, trace in fits)
        self._remember(replace(sample), sample.n_rows, item_info)
        return self

    def observed(self, *data: Any) -> Observed:
        """Its layers have clusters of their own, which add up: the reading finds clusters of what averages leave."""
        check_is_fitted(self)
        sample = self.sample(*data) if data else self._remembered("gg.read(model, X, y)")
        chosen = getattr(self, "selection_", None)
        error = float(np.sqrt(self.noise_)) if self.noise is None and self.n_pilots > 0 else None
        return observed_of(
            sample,
            [None] * len(self.modes_),
            prediction="" if chosen is None else str(chosen),
            error=error,
        )

    def sample(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Sample:
        """Labelled tuples in the model's own numbering."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        return Sample.of(columns.columns, y, sample_weight, modes=self.modes_, alphabet=self.alphabet_)

    @property
    def _n_members(self) -> int:
        return self.n_chains or (3 if self.solver == "sampled" else 20)

    @property
    def _n_sweeps(self) -> int:
        return self.n_sweeps or (120 if self.solver == "sampled" else 25)

    def _check(self) -> None:
        if self.solver not in SOLVERS:
            raise GinghamError(f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}.")
        for name in ("n_layers", "n_pilots", "burn_in"):
            value = getattr(self, name)
            auto = name == "n_layers" and named_auto(value)
            if not auto and (not isinstance(value, (int, np.integer)) or value < 0):
                raise GinghamError(f"{name}={value!r} must be a whole number from 0.")
        if self.solver == "sampled" and self._n_sweeps <= self.burn_in:
            raise GinghamError(
                f"n_sweeps={self._n_sweeps} leaves nothing after burn_in={self.burn_in} sweeps; raise n_sweeps."
            )
        if isinstance(self.n_clusters, str) and self.n_clusters != "auto":
            raise GinghamError(f"n_clusters={self.n_clusters!r} is unknown; give an int, one int per mode, or 'auto'.")
        if self.side_weight != "auto" and (isinstance(self.side_weight, str) or not self.side_weight >= 0):
            raise GinghamError(f"side_weight={self.side_weight!r} must be 'auto' or a number from 0.")
        if self.noise is not None and not self.noise > 0:
            raise GinghamError(f"noise={self.noise!r} must be positive: it is the square of the error to expect.")

    def _parallel(self, tasks: Any) -> list[Any]:
        """The kernels release the interpreter, so threads are enough and nothing is copied."""
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(tasks))

    def _clusters(self, sample: Sample, wanted: Sizes) -> tuple[int, ...]:
        """One number of clusters per mode; too large a layer is refused."""
        clusters = expand_clusters(wanted, sample.shape, sample.n_tuples)
        if max(clusters) > 254 or prod(clusters) > MAX_CELLS:
            raise GinghamError(
                f"n_clusters={self.n_clusters!r}: a layer has at most 254 clusters of a mode and {MAX_CELLS:,} cells."
            )
        return clusters

    def _alphabet(self, labels: AnyArray) -> Alphabet | None:
        if self.alphabet is not None:
            return Alphabet.of(self.alphabet, given=True)
        values = np.unique(labels)
        return Alphabet.of(values, given=False) if len(values) <= MAX_LABELS else None

    # tables that grow

    def fold_in(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
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
    def partial_fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
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
        self._seen = (*self._seen, (*columns.columns, labels, counts))
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
            self._parallel(delayed(sample_draws)(chain, n_kept + SETTLE_SWEEPS, SETTLE_SWEEPS) for chain in chains)
        )

    # using

    def predict(self, X: TableLike, rule: str = "mean") -> Floats:
        """One number per row: the mean prediction, or the label whose cut points enclose it."""
        if rule not in RULES:
            raise GinghamError(f"rule={rule!r} is unknown; choose one of {', '.join(RULES)}.")
        mean = self._predict(X).mean
        if rule == "mean":
            return mean
        if self.alphabet_ is None or self.cuts_ is None:
            raise GinghamError("rule='label' needs a finite set of labels: give alphabet= before fitting.")
        return self.alphabet_.numbers[np.searchsorted(self.cuts_, mean)]

    def predict_interval(self, X: TableLike, level: float = 0.9) -> Floats:
        """Lower and upper end, (N, 2), between which the label lies with about that probability.

        The spread is the variance between draws (or members) and the scatter of held-out labels around them.
        """
        if not 0 < level < 1:
            raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
        mean, variance = self._predict(X)
        half = norm.ppf(0.5 + level / 2) * np.sqrt(variance + self.scatter_)
        return np.clip(np.column_stack([mean - half, mean + half]), *self.range_)

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        mean, variance = self._mean_of_codes(codes)
        return Predicted(mean, np.sqrt(variance + self.scatter_))

    def _predict(self, X: TableLike) -> Prediction:
        return self._mean_of_codes(self._codes(X))

    def _mean_of_codes(self, codes: Sequence[Ints]) -> Prediction:
        if isinstance(self.model_, Draws):
            mean, variance = self.model_.predict(codes)
        else:
            members = np.array([member.predict(codes) for member in self.model_])
            mean, variance = members.mean(axis=0), members.var(axis=0)
        return Prediction(np.clip(mean, *self.range_), variance)

    @property
    def items_(self) -> tuple[AnyArray, ...]:
        return tuple(mode.items for mode in self.modes_)

    @property
    def offsets_(self) -> tuple[Floats, ...]:
        """b_j of each mode's items, averaged over draws or members."""
        if isinstance(self.model_, Draws):
            return self.model_.mean_offsets()
        return tuple(np.mean([m.offsets[j] for m in self.model_], axis=0) for j in range(len(self.modes_)))

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The layers of one draw (the last) or member (the first), strongest first, clusters in order."""
        return readable(self.model_, self.modes_)
