"""LayeredCoClusteringRegressor: offsets and several small checkerboards that add up, over items and over baskets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr, ndtri
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Floats, Ints, Seed, TableLike
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns, seconds, without_column
from gingham.data.sample import joined_ids
from gingham.errors import GinghamError
from gingham.fitting.distill import Factors
from gingham.fitting.loop import NO_CHECKPOINT, Callback, Checkpoint
from gingham.fitting.starts import Sizes, expand_clusters
from gingham.models.base import (
    TupleModel,
    advise,
    distilled_from,
    distilled_observed,
    distilled_refit,
    named_auto,
    numeric_labels,
)
from gingham.models.layers.baskets import BasketDraws, Intervals, Law, as_they_are, shortest
from gingham.models.layers.baskets_fit import (
    CLUSTERS,
    LONGER,
    BasketFit,
    ChainPlan,
    Design,
    Effort,
    Held,
    check_effort,
    choose_design,
    designs_for,
    fit_chains,
    for_rows,
    gpu_is_there,
    make_problem,
    n_chains_for,
)
from gingham.models.layers.baskets_grow import extended_baskets, fold_in_baskets, last_states
from gingham.models.layers.data import LayerData
from gingham.models.layers.factors import InteractionFactors, interaction_factors
from gingham.models.layers.fold_in import extended, fold_in
from gingham.models.layers.model import Draws, Prediction, SoftLayers
from gingham.models.layers.pilot import (
    ALONE,
    Pilot,
    PilotRun,
    Size,
    SizeChoice,
    choose_layers,
    pool_pilots,
    run_pilot,
    weighted,
)
from gingham.models.layers.sampled import Chain, Shape, keep_every, run_chain, run_chains, sample_draws, use_torch
from gingham.models.layers.side import GivenSide, SideCode, Sides, SideTable, read_sides, side_tables
from gingham.models.layers.soft import Soft, solve
from gingham.models.layers.summary import Layer, account_of, parts_of, reach_of, readable, readable_baskets
from gingham.models.questions import Predicted
from gingham.summary.explanation import Explanation
from gingham.summary.values import Observed

if TYPE_CHECKING:
    from gingham.summary.make_summary import ItemInfo

SOLVERS = ("sampled", "projection")
RULES = ("mean", "label")
LIKELIHOODS = ("auto", "ordinal", "gaussian")
MAX_CELLS = 2**17
MOST_MODES = 4  # up to which baskets are looked at by default: there are d (d − 1) pairs of modes
SETTLE_SWEEPS = 10  # of a partial fit, not kept
GROWN = 1.5  # times the tuples there were, from which on a partial fit finds the noise anew: it falls with more
MAX_LABELS = 20  # labels read off the data; more count as a continuum
SINGLE = 1e15  # labels whose squares, added up, are numbers of single precision


@dataclass(eq=False, repr=False)
class LayeredCoClusteringRegressor(RegressorMixin, TupleModel):
    """Numeric labels as offsets and added checkerboards, over users and movies and over their *baskets*.

    ``f = μ + Σ_j b_j(x_j) + Σ_t |N_t(x)|^(−½) Σ_{i ∈ N_t(x)} G_t[d_t(i), c_t(q)]``: a layer looks from the basket of a
    source x (the movies that a user has rated, the users who rated a movie, genres, age, or just x itself) at a target
    q, and its checkerboard says how a token of one cluster pulls at a target of another. The best predictor of ratings
    in this library. Clusters, cells, offsets and the cut points between labels are drawn in turn, and the draws of a
    few chains are averaged. With ``baskets=None`` only the items themselves count,
    ``μ + Σ_j b_j(x_j) + Σ_t F_t[c_1t(x_1), …, c_dt(x_d)]``; then ``solver="projection"`` gives soft, monotone fits.

    The noise level comes from a tenth of the data that is held out at first.

    Parameters
    ----------
    n_layers : int or "auto"
        Checkerboards over the items themselves. "auto": as ``effort`` says; without baskets, pilots with 6, 10 and 15
        layers are compared on the same held-out tenth of the data (of a sample of it, where there is much), and more
        or fewer while the end of the range is best; 10 with less than a thousand rows or ``n_pilots=0``.
    n_clusters : int, sequence of int or "auto"
        Clusters of each mode in these layers, at most 254. "auto": 4, or, where one of two modes has few items that are
        met often, a cluster for each of these and two of the other mode, if that predicts held-out rows better (not
        tried with ``effort="fast"``); without baskets 5, 8 and 12 are compared in the same way as layers (8 where
        nothing is compared, and fewer where there are many modes).
    offsets : bool
        Whether items have offsets of their own.
    solver : {"sampled", "projection"}
    n_chains : int, optional
        Chains that are averaged: as ``effort`` says, fewer where there is much data or little (three of 1,000 rows);
        without baskets 3 chains, or 20 soft members.
    n_sweeps : int, optional
        Sweeps of a chain; as ``effort`` says, 120 without baskets, 25 of a soft member.
    burn_in : int, optional
        The first sweeps, which are not kept: with baskets about a third, as ``effort`` says; 20 without.
    noise : float, optional
        σ², the square of the error to expect; found from held-out tuples when it is not given.
    n_pilots : int
        Without baskets: pilots that hold a tenth of the data out; one is enough from 300,000 rows on.
    alphabet : sequence of numbers, optional
        The possible labels; read off the data when they are at most 20.
    side : dict, optional
        What is known of items: {mode (its position or name): frame} with a column of ids (named like the mode, or the
        first) and any others. Categories, numbers (in ten bins), yes-or-no columns and columns of several values
        (lists, or text with "|" between them) become tokens. Or {mode: (ids, table of zeros and ones)}. Items without
        ratings are predicted by what is known of them.
    side_weight : float or "auto"
        Without baskets: how much the properties count against the labels; "auto" compares .25, .5 and 1.
    baskets : "auto", int or None
        Layers over who met what, for every ordered pair of modes in which not nearly everybody met everything: from
        the movies a user has rated to movies, from the users who rated a movie to users. "auto": as many as ``effort``
        says, where the solver is "sampled" and there are two to four modes; fewer below 50,000 rows (two in each
        direction of 1,000), and from 300,000 rows on only if they lower the error on rows held out of a sample. A
        number: so many in each direction.
    time : str or int, optional
        The column of X with points in time (numbers or dates); `fit` and `predict` also take them as ``time=``. Items
        of the first mode then have offsets for windows of time, from seconds to months. A prediction without a time
        takes the average over an item's windows.
    likelihood : {"auto", "ordinal", "gaussian"}
        "ordinal": labels are intervals of a latent answer, with the outer cut points fixed and the others drawn;
        "auto" takes it where the alphabet is known.
    effort : {"fast", "default", "best"}
        Layers, chains and sweeps with baskets.
    backend : {"auto", "compiled", "torch"}
        Where chains are sampled. "auto" takes a GPU when torch finds one and the data is large enough to pay (without
        baskets it must have two modes and no side information). "torch" takes torch in any case; without a GPU it
        turns ``baskets="auto"`` off, since torch draws baskets slowly on cores.
    n_jobs : int, optional
        Chains side by side; the result does not depend on it. By default all cores with baskets, one without.
    random_state : int, RandomState or None

    Attributes
    ----------
    noise_ : float
        σ², held-out mean square error; where items have clusters of their own, without the draws' variance.
    cuts_ : ndarray of shape (|Y| − 1,) or None
        Where one label gives way to the next: in ``predict(rule="label")``, or (ordinal) the mean of those drawn.
    scatter_ : float
        σ² without the part that the draws' own variance explains; with baskets the held-out mean square error.
    model_ : BasketDraws, Draws, or tuple of SoftLayers
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

    saved_attributes = (
        "model_", "modes_", "alphabet_", "cuts_", "noise_", "scatter_", "range_", "traces_", "sides_", "intervals_",
    )  # fmt: skip
    model_: BasketDraws | Draws | tuple[SoftLayers, ...] = field(init=False)
    modes_: tuple[Mode, ...] = field(init=False)
    alphabet_: Alphabet | None = field(init=False)
    selection_: SizeChoice = field(init=False)
    noise_: float = field(init=False)
    sides_: tuple[tuple[int, SideCode], ...] = field(init=False)  # how side information is read, for baskets
    intervals_: Intervals = field(init=False)
    _seen = cast("Sequence[tuple[AnyArray, ...]]", ())  # tuples of partial_fit
    _rows_heard = 0  # of these, how many there were when the noise was found last

    n_layers: int | str = "auto"
    n_clusters: Sizes = "auto"
    offsets: bool = True
    solver: str = "sampled"
    n_chains: int | None = None
    n_sweeps: int | None = None
    burn_in: int | None = None
    noise: float | None = None
    n_pilots: int = 2
    alphabet: Iterable[object] | None = None
    side: Sides | None = None
    side_weight: float | str = "auto"
    baskets: str | int | None = "auto"
    time: str | int | None = None
    likelihood: str = "auto"
    effort: str = "default"
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
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        item_info: ItemInfo | None = None,
        time: ArrayLike | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Fit offsets and layers to observed tuples; rows of X are ids, one per mode, y their labels.

        Parameters
        ----------
        item_info : mapping from the name of a mode to a frame, optional
            What is known of its items, for summaries (see :func:`gingham.summarize`); what the model is to learn
            from is its parameter ``side``.
        time : points in time, one per row, optional
            Instead of a column of X that the parameter ``time`` names.
        callback : callable, optional
            Called with a ``Progress`` after every sweep of a chain with baskets.
        checkpoint : Checkpoint
            Keeps where the fit stands.
        """
        checkpoint.bound_to(self, X, y, sample_weight, self.side, time)
        X, times = self._dated(X, time)
        columns, labels, weights = self._observed(X, y, sample_weight)
        if times is not None and sample_weight is not None:
            times = times[np.asarray(sample_weight, dtype=np.float64) > 0]
        self._check()
        self._seen, self.interrupted_ = (), False
        alphabet = self._alphabet(labels)
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        if self._uses_baskets(len(columns.columns)):
            self._fit_baskets(columns, labels, weights, times, alphabet, seeds, callback, checkpoint)
        else:
            self._fit_plain(columns, labels, weights, alphabet, seeds, checkpoint)
        sample = Sample.of(columns.columns, labels, weights, modes=self.modes_, alphabet=alphabet)
        self._remember(sample, sample.n_rows, item_info)
        self._times = None if self._data is None else times
        advise(sample)
        return self

    def _uses_baskets(self, n_modes: int) -> bool:
        """Whether layers look at baskets: the one place that decides it."""
        if self.baskets is None:
            return False
        possible = self.solver == "sampled" and n_modes >= 2
        if self.baskets == "auto":
            return possible and self._with_baskets and n_modes <= MOST_MODES
        if not possible:
            raise GinghamError(
                f"baskets={self.baskets!r} needs solver='sampled' and at least two modes; leave it at 'auto' or None."
            )
        return True

    def _dated(self, X: TableLike, time: ArrayLike | None) -> tuple[TableLike, Floats | None]:
        """X without its column of points in time, and these, from there or as given; None where there are none."""
        found: AnyArray | None = None
        if self.time is not None:
            X, found = without_column(X, self.time)
        if time is not None:
            found = np.asarray(time)
        return X, None if found is None else seconds(found, "time" if self.time is None else str(self.time))

    def _fit_baskets(
        self, columns: Columns, labels: AnyArray, weights: Floats | None, times: Floats | None,
        alphabet: Alphabet | None, seeds: np.random.SeedSequence, callback: Callback | None, checkpoint: Checkpoint,
    ) -> Self:  # fmt: skip
        if times is not None and not np.isfinite(times).all():
            row = int(np.flatnonzero(~np.isfinite(times))[0])
            raise GinghamError(f"time: row {row} has no point in time; drop the row, or fit without time.")
        if times is not None and len(times) != len(labels):
            raise GinghamError(f"time has {len(times)} points for {len(labels)} rows.")
        modes, tables = self._modes(columns)
        self.sides_ = tuple((table.at, SideCode.of(modes[table.at].name, table.values)) for table in tables)
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=alphabet)
        sample = sample.merged() if times is None else sample
        effort, letters = self._effort(sample.n_rows), self._letters(alphabet)
        taste = self._clusters(sample, CLUSTERS if named_auto(self.n_clusters) else self.n_clusters)
        held = self._held(tables, modes)
        designs = [Design(effort, taste)]
        if named_auto(self.baskets):
            designs = designs_for(sample, designs[0], named_auto(self.n_clusters) and named_auto(self.n_layers))
        which, why = 0, f"effort={self.effort!r}"
        if len(designs) > 1:
            trial = partial(choose_design, sample, letters, designs, seeds.spawn(1)[0], self.backend)
            which = checkpoint.stage("design").result(lambda: {"which": trial()})["which"]
        effort, taste, own_clusters, reason = designs[which]
        why += f"; {reason} on a sample of the rows" if reason else ""
        problem = make_problem(sample, times, letters, held, effort, taste, self.offsets)
        n_chains = self.n_chains or -(-n_chains_for(problem, effort) // (LONGER if own_clusters else 1))
        n_sweeps, burn_in = self._lengths(own_clusters)
        plan = ChainPlan(n_chains, n_sweeps, burn_in, self.noise, self.n_jobs, own_clusters, self.backend)
        self._set_baskets(fit_chains(problem, plan, seeds, callback, checkpoint), modes, alphabet)
        numbers = labels if alphabet is None else alphabet.numbers
        self.range_ = (float(numbers.min()), float(numbers.max()))
        reason = f"{problem.described()}, {n_chains} chains of {n_sweeps} sweeps: {why}."
        self.selection_ = SizeChoice(effort.taste, tuple(taste), 1.0, (), reason, own_clusters)
        return self

    def _modes(self, columns: Columns) -> tuple[tuple[Mode, ...], list[GivenSide]]:
        """Modes that hold the items of the data and of the side tables, and these tables."""
        modes = [Mode.of(column, name) for column, name in zip(columns.columns, columns.names)]
        tables = read_sides(columns.names, modes, self.side) if self.side else []
        for table in tables:
            mode = modes[table.at]
            modes[table.at] = Mode.of(joined_ids([mode.items, Mode.of(table.ids, mode.name).items]), mode.name)
        return tuple(modes), tables

    def _effort(self, n_rows: int) -> Effort:
        """What ``effort`` says for so many rows, with what was given instead."""
        effort = for_rows(check_effort(self.effort), n_rows)
        if not isinstance(self.n_layers, str):
            effort = effort._replace(taste=int(self.n_layers))
        if not isinstance(self.baskets, str) and self.baskets is not None:
            effort = effort._replace(habit=int(self.baskets))
        return effort

    def _letters(self, alphabet: Alphabet | None) -> Floats | None:
        """The labels of the ordinal likelihood, None for the gaussian one."""
        known = alphabet is not None and len(alphabet.numbers) > 1
        if self.likelihood == "ordinal" and not known:
            raise GinghamError(
                "likelihood='ordinal' needs a finite set of at least two labels: give alphabet=, or take 'gaussian'."
            )
        return None if alphabet is None or not known or self.likelihood == "gaussian" else alphabet.numbers

    def _held(self, tables: Sequence[GivenSide], modes: Sequence[Mode]) -> list[Held]:
        """Side tables as tokens of the modes' items."""
        found = []
        for table in tables:
            code = next(code for at, code in self.sides_ if at == table.at)
            rows = code.read(table.values)
            items = modes[table.at].encode(table.ids)[rows.items]
            found.append(Held(table.at, items, rows.tokens, len(code.tokens)))
        return [table for table in found if table.n_tokens]

    def _set_baskets(self, fit: BasketFit, modes: tuple[Mode, ...], alphabet: Alphabet | None) -> None:
        draws = fit.draws
        self.model_, self.modes_, self.alphabet_, self.intervals_ = draws, modes, alphabet, fit.intervals
        self.noise_, self.scatter_ = fit.noise, fit.error
        self.interrupted_ = fit.interrupted
        self.traces_: tuple[Floats, ...] = ()
        if draws.letters is not None:
            self.cuts_ = draws.cuts.mean(axis=0)
        else:
            self.cuts_ = None if alphabet is None else (alphabet.numbers[1:] + alphabet.numbers[:-1]) / 2.0

    def _fit_plain(
        self, columns: Columns, labels: AnyArray, weights: Floats | None, alphabet: Alphabet | None,
        seeds: np.random.SeedSequence, checkpoint: Checkpoint,
    ) -> Self:  # fmt: skip
        modes, tables = self._modes(columns)
        sides = side_tables(modes, tables)
        self.sides_, self.intervals_ = (), as_they_are()
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=alphabet).merged()
        sizes = (self._pilots_for(sample), self._n_members)
        pilot_seeds, chain_seeds = (s.spawn(n) for s, n in zip(seeds.spawn(2), sizes))
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
        self.modes_, self.alphabet_ = modes, alphabet
        self._hear(sample, sides, shape, pilot_seeds, run, checkpoint)
        data = LayerData.of(sample, sides)
        values = data.labels if alphabet is None else alphabet.numbers
        self.range_ = (float(values.min()), float(values.max()))
        self.traces_ = ()
        if self.solver == "sampled":
            plan = (data, shape, self.noise_)
            every = keep_every(data, shape, self._n_members * (self._n_sweeps - self._burn_in))
            if use_torch(self.backend, data, shape):
                chains = run_chains(*plan, chain_seeds, self._n_sweeps, self._burn_in, every)
            else:
                chains = self._parallel(
                    delayed(run_chain)(
                        *plan, seed, self._n_sweeps, self._burn_in, checkpoint.stage(f"chain {number + 1}"), every
                    )
                    for number, seed in enumerate(chain_seeds)
                )
            self.model_: Draws | tuple[SoftLayers, ...] = Draws.join([draw for chain in chains for draw in chain])
        else:
            # A committee of a dozen or more does best with members that fit a little too closely.
            beta = (1.15 if self._n_members >= 12 else 1.0) / (2.0 * self.noise_)
            fits = self._parallel(delayed(solve)(data, shape, beta, seed, Soft(self._n_sweeps)) for seed in chain_seeds)
            self.model_, self.traces_ = tuple(m for m, _ in fits), tuple(trace for _, trace in fits)
        return self

    def _pilots_for(self, sample: Sample) -> int:
        return min(self.n_pilots, 1) if sample.n_rows > ALONE else self.n_pilots

    def _hear(
        self, sample: Sample, sides: tuple[SideTable | None, ...], shape: Shape,
        seeds: Sequence[np.random.SeedSequence], run: PilotRun | None = None, checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> None:  # fmt: skip
        """Noise, scatter and cut points of plain layers, from pilots; ``run`` is the first, where there is one."""
        # The winner's pilot, where sizes were compared, is one of the pilots.
        runs = ([] if run is None else [run]) + self._parallel(
            delayed(run_pilot)(sample, sides, shape, seed, self.backend, checkpoint.stage(f"pilot {number + 1}"))
            for number, seed in enumerate(seeds[run is not None :])
        )
        pilot = pool_pilots(runs, sample, None if self.alphabet_ is None else self.alphabet_.numbers)
        if self.noise is not None:
            pilot = Pilot(float(self.noise), float(self.noise), pilot.cuts)
        self.noise_, self.scatter_, self.cuts_ = pilot.error, pilot.scatter, pilot.cuts

    def observed(self, *data: Any) -> Observed:
        """One checkerboard, distilled from the predictions: the layers have many clusterings, which add up."""
        check_is_fitted(self)
        sample = self.sample(*data) if data else self._remembered("gg.summarize(model, X, y)")
        chosen = getattr(self, "selection_", None)
        return distilled_observed(
            sample,
            distilled_from(self.prediction_factors(), sample),
            lambda kept: distilled_refit(
                clone(self).set_params(time=None), sample, kept, None if data else self._times
            ),
            "" if chosen is None else chosen.reason,
            "quadratic",
        )

    def prediction_factors(self) -> Factors:
        """The mean latent answer as additive effects and thin factors, for distillation."""
        return Factors(*self.interaction_factors())

    def sample(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Sample:
        """Labelled tuples in the model's own numbering."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        return Sample.of(columns.columns, y, sample_weight, modes=self.modes_, alphabet=self.alphabet_)

    @property
    def _n_members(self) -> int:
        return self.n_chains or (3 if self.solver == "sampled" else 20)

    @property
    def _with_baskets(self) -> bool:
        """Whether baskets are wanted, as far as parameters tell; with a single mode there are none."""
        if self.baskets is None or self.solver != "sampled":
            return False
        if self.backend != "torch" and find_spec("numba") is not None:
            return True
        # Without a GPU torch would take ages: only where baskets are asked for by their number.
        return not named_auto(self.baskets) or gpu_is_there()

    @property
    def _n_sweeps(self) -> int:
        if self._with_baskets:
            return self.n_sweeps or check_effort(self.effort).n_sweeps
        return self.n_sweeps or (120 if self.solver == "sampled" else 25)

    @property
    def _burn_in(self) -> int:
        if self.burn_in is not None:
            return self.burn_in
        effort = check_effort(self.effort)
        # Of shorter chains than an effort's own, the same share.
        return min(effort.burn_in, effort.burn_in * self._n_sweeps // effort.n_sweeps) if self._with_baskets else 20

    def _lengths(self, own_clusters: bool) -> tuple[int, int]:
        """Sweeps and burn-in of chains with baskets; with clusters of their own for items they are longer."""
        longer = LONGER if own_clusters and self.n_sweeps is None else 1
        return longer * self._n_sweeps, self._burn_in * (longer if self.burn_in is None else 1)

    def _check(self) -> None:
        if self.solver not in SOLVERS:
            raise GinghamError(f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}.")
        if self.likelihood not in LIKELIHOODS:
            raise GinghamError(f"likelihood={self.likelihood!r} is unknown; choose one of {', '.join(LIKELIHOODS)}.")
        check_effort(self.effort)
        for name in ("n_layers", "n_pilots", "burn_in", "baskets"):
            value = getattr(self, name)
            left_open = {"n_layers": named_auto(value), "burn_in": value is None}
            left_open["baskets"] = value is None or named_auto(value)
            if not left_open.get(name, False) and (not isinstance(value, (int, np.integer)) or value < 0):
                raise GinghamError(f"{name}={value!r} must be a whole number from 0.")
        if self.solver == "sampled" and self._n_sweeps <= self._burn_in:
            raise GinghamError(
                f"n_sweeps={self._n_sweeps} leaves nothing after burn_in={self._burn_in} sweeps; raise n_sweeps."
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
        # With baskets a layer has the clusters of two modes only.
        n_cells = prod(sorted(clusters)[-2:]) if self._uses_baskets(sample.n_modes) else prod(clusters)
        if max(clusters) > 254 or n_cells > MAX_CELLS:
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

    def fold_in(
        self,
        X: TableLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        side: Sides | None = None,
    ) -> Self:
        """Add items that were not in the training data, from what is known of them; all that was learned stays.

        For every kept draw, the new items' offsets and clusters are drawn given everything else, from labelled tuples
        with them. With baskets, tuples without labels (``y=None``) say whom new items have met, and ``side`` tells
        their properties: enough for a prediction, and labels may follow in a later call. Without baskets labels are
        needed, and draws that suit the new item's tuples better count more for it. Afterwards new items are predicted
        like all others.
        """
        check_is_fitted(self)
        if isinstance(self.model_, BasketDraws):
            return self._fold_in_baskets(self.model_, X, y, sample_weight, side)
        if not isinstance(self.model_, Draws):
            raise GinghamError("fold_in works with solver='sampled'; fit the soft layers again with the new items.")
        if X is None or y is None or side is not None:
            raise GinghamError(
                "Without baskets, fold_in needs labelled tuples (X and y) and takes no side information."
            )
        columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        before, after = self.modes_, self._with_new_items(columns.columns)
        sample = Sample.of(columns.columns, labels, weights, modes=after, alphabet=self.alphabet_).merged()
        self.learned_from(sample)
        new = [old.encode(mode.items) < 0 for old, mode in zip(before, after)]
        self.model_ = fold_in(extended(self.model_, before, after), new, sample, self.noise_, self.offsets, self._rng())
        self.modes_ = after
        return self

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _with_new_items(
        self, columns: Sequence[AnyArray], ids: Sequence[tuple[int, AnyArray]] = ()
    ) -> tuple[Mode, ...]:
        """The modes with what is new in some columns, and among ids of some of the modes."""
        found = []
        for at, mode in enumerate(self.modes_):
            new = [part for part in (*columns[at : at + 1], *(some for j, some in ids if j == at)) if len(part)]
            fresh = [part[mode.encode(part) < 0] for part in new]
            found.append(Mode.of(joined_ids([mode.items, *fresh]), mode.name) if fresh else mode)
        return tuple(found)

    def _fold_in_baskets(
        self, draws: BasketDraws, X: TableLike | None, y: ArrayLike | None, sample_weight: ArrayLike | None,
        side: Sides | None,
    ) -> Self:  # fmt: skip
        if X is None and (side is None or y is not None):
            raise GinghamError(
                "fold_in needs tuples (X, and y where their labels are known), side information, or both."
            )
        labels, weights, columns = None, None, Columns([], [])
        if X is not None:
            X, _ = self._dated(X, None)
            if y is None:
                columns = self._columns(X, reset=False)
            else:
                columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        before = self.modes_
        tables = read_sides([mode.name for mode in before], before, side or {})
        for table in tables:
            if all(at != table.at for at, _ in self.sides_):
                raise GinghamError(
                    f"The model knows no side information of {before[table.at].name!r}: fit it with side= first."
                )
        after = self._with_new_items(columns.columns, [(table.at, table.ids) for table in tables])
        codes = [mode.encode(column) for mode, column in zip(after, columns.columns)]
        draws = extended_baskets(draws, before, after, codes, self._held(tables, after))
        if labels is not None:
            new = [old.encode(mode.items) < 0 for old, mode in zip(before, after)]
            fresh = [some | draws.items_without_labels(at)[:-1] for at, some in enumerate(new)]
            sample = Sample.of(columns.columns, labels, weights, modes=after, alphabet=self.alphabet_)
            draws = fold_in_baskets(draws, fresh, sample, self._rng())
            self.learned_from(sample)
        self.model_, self.modes_ = draws, after
        return self

    @available_if(lambda self: self.solver == "sampled")
    def partial_fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add tuples to a growing table: fit at the first call; afterwards the chains go on with all tuples.

        New items are folded in, then every chain runs on from its last draw, with a short burn-in, and as many
        draws are kept as before. Sizes and labels stay. As soon as there are half as many tuples more, the noise is
        found anew, and chains with baskets begin anew. The tuples are kept with the model, but not in its file:
        after ``fit`` or ``load`` new items are folded in, no more.
        """
        first = not hasattr(self, "model_")
        (self.fit if first else self.fold_in)(X, y, sample_weight)
        if not first and not self._seen:
            return self
        X, times = self._dated(X, None)
        columns, labels, weights = self._observed(X, y, sample_weight, reset=False)
        counts = np.ones(len(labels)) if weights is None else weights
        if times is not None and sample_weight is not None:
            times = times[np.asarray(sample_weight, dtype=np.float64) > 0]
        dated = () if times is None else (times,)
        self._seen = (*self._seen, (*columns.columns, labels, counts, *dated))
        if first:
            self._rows_heard = len(labels)
        else:
            *ids, labels, counts = (
                np.concatenate(parts) for parts in zip(*(seen[: len(columns.columns) + 2] for seen in self._seen))
            )
            all_times = None if times is None else np.concatenate([seen[-1] for seen in self._seen])
            self._go_on(columns._replace(columns=ids), labels, None if np.all(counts == 1) else counts, all_times)
        return self

    def _go_on(self, columns: Columns, labels: AnyArray, weights: Floats | None, times: Floats | None) -> None:
        """Run every chain on from its last draw, with the tuples of all calls; anew where these have grown much."""
        draws, choice = self.model_, self.selection_
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        grown = self.noise is None and len(labels) >= GROWN * self._rows_heard
        if grown:
            self._rows_heard = len(labels)
        modes, tables = self._modes(columns)
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=self.alphabet_)
        if times is None or not isinstance(draws, BasketDraws):  # one point in time may differ from the other
            sample = sample.merged()
        if isinstance(draws, BasketDraws):
            held = self._held(tables, modes)
            problem = make_problem(
                sample,
                times,
                draws.letters,
                held,
                self._effort(sample.n_rows),
                choice.n_clusters,
                self.offsets,
                draws.layers,
            )
            n_chains = int(draws.chains.max()) + 1
            n_sweeps, burn_in = self._lengths(choice.own_clusters)
            plan = ChainPlan(n_chains, n_sweeps, burn_in, self.noise, self.n_jobs, choice.own_clusters, self.backend)
            if grown:  # states know the rows that would be held out, and freeze where they are under less noise
                fit = fit_chains(problem, plan, seeds)
            else:
                begin = last_states(draws, problem, np.random.default_rng(seeds.spawn(1)[0]))
                n_sweeps += SETTLE_SWEEPS - burn_in
                plan = replace(plan, n_sweeps=n_sweeps, burn_in=SETTLE_SWEEPS, noise=self.noise_)
                fit = fit_chains(problem, plan, seeds, begin=begin)
                fit = replace(fit, error=self.scatter_, intervals=self.intervals_)
            self._set_baskets(fit, modes, self.alphabet_)
            return
        if not isinstance(draws, Draws):
            return
        sides = weighted(side_tables(modes, tables), choice.side_weight)
        shape = Shape(choice.n_layers, choice.n_clusters, self.offsets)
        if grown and self.n_pilots:
            self._hear(sample, sides, shape, seeds.spawn(self._pilots_for(sample)))
        data = LayerData.of(sample, sides)
        n_kept = draws.n_draws // self._n_members
        chains = [
            Chain.resume(data, shape, self.noise_, np.random.default_rng(seed), draws, (at + 1) * n_kept - 1)
            for at, seed in enumerate(seeds.spawn(self._n_members))
        ]
        drawn = self._parallel(delayed(sample_draws)(chain, n_kept + SETTLE_SWEEPS, SETTLE_SWEEPS) for chain in chains)
        self.model_ = Draws.join([draw for chain in drawn for draw in chain])

    # using

    def predict(self, X: TableLike, rule: str = "mean", *, time: ArrayLike | None = None) -> Floats:
        """One number per row: the mean of its law, or ("label") the label in the middle of it.

        Without baskets the label is the one whose cut points enclose the mean.
        """
        check_is_fitted(self)
        if rule not in RULES:
            raise GinghamError(f"rule={rule!r} is unknown; choose one of {', '.join(RULES)}.")
        if rule == "label" and (self.alphabet_ is None or self.cuts_ is None):
            raise GinghamError("rule='label' needs a finite set of labels: give alphabet= before fitting.")
        if isinstance(self.model_, BasketDraws):
            law = self._law(X, time)
            if rule == "label" and self.alphabet_ is not None:
                return self.alphabet_.numbers[np.sum(law.below < 0.5, axis=1)]
            return np.clip(law.mean, *self.range_)
        mean = self._predict(X).mean
        if rule == "mean" or self.alphabet_ is None:
            return mean
        return self.alphabet_.numbers[np.searchsorted(self.cuts_, mean)]

    def predict_distribution(self, X: TableLike, *, time: ArrayLike | None = None) -> Floats:
        """The probability of every label, shape (N, |Y|), columns in the order of the alphabet."""
        check_is_fitted(self)
        if self.alphabet_ is None or self.cuts_ is None:
            raise GinghamError("A distribution over labels needs a finite set of them: give alphabet= before fitting.")
        if isinstance(self.model_, BasketDraws):
            below = self._law(X, time).below
        else:
            mean, variance = self._predict(X)
            below = ndtr((self.cuts_ - mean[:, None]) / np.sqrt(variance + self.scatter_)[:, None])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def predict_quantiles(self, X: TableLike, levels: ArrayLike, *, time: ArrayLike | None = None) -> Floats:
        """Where the law of each row's label reaches the levels, shape (N, levels): labels, where these are few."""
        check_is_fitted(self)
        wanted = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not ((wanted > 0) & (wanted < 1)).all():
            raise GinghamError(f"levels={levels!r} must lie strictly between 0 and 1.")
        if isinstance(self.model_, BasketDraws):
            if self.model_.letters is None:
                found = self.model_.quantiles(*self._asked(X, time), wanted)
                return np.clip(found, *self.range_)
            below = self._law(X, time).below
            at = np.stack([np.sum(below < level, axis=1) for level in wanted], axis=1)
            return self.model_.letters[at]
        mean, variance = self._predict(X)
        return np.clip(mean[:, None] + ndtri(wanted) * np.sqrt(variance + self.scatter_)[:, None], *self.range_)

    def predict_interval(self, X: TableLike, level: float = 0.9, *, time: ArrayLike | None = None) -> Floats:
        """Lower and upper end, (N, 2), between which the label lies with about that probability.

        With baskets it is the shortest run of labels that holds enough of the law (the middle of the law where labels
        are not few); how much is enough is decided on rows that were held out. These speak of items with labels: of
        others, unknown or known by a basket or a table alone, the law is believed as it is, which is wider. Without
        baskets the spread is the variance between draws (or members) and the scatter of held-out labels around them.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
        if isinstance(self.model_, BasketDraws):
            codes, times = self._asked(X, time)
            strange = self.model_.without_labels(codes)
            if self.model_.letters is not None:
                shares = np.where(strange, level, self.intervals_.share(level))
                ends = shortest(self.model_.law(codes, times).below, shares)
                return self.model_.letters[np.column_stack(ends)]
            found = np.empty((len(strange), 2))
            for rows, share in ((~strange, self.intervals_.share(level)), (strange, level)):
                asked = [code[rows] for code in codes], None if times is None else times[rows]
                found[rows] = self.model_.quantiles(*asked, np.array([(1.0 - share) / 2.0, (1.0 + share) / 2.0]))
            return np.clip(found, *self.range_)
        mean, variance = self._predict(X)
        half = ndtri(0.5 + level / 2) * np.sqrt(variance + self.scatter_)
        return np.clip(np.column_stack([mean - half, mean + half]), *self.range_)

    def _asked(self, X: TableLike, time: ArrayLike | None) -> tuple[list[Ints], Floats | None]:
        """Codes and points in time of the rows that are asked."""
        X, times = self._dated(X, time)
        codes = self._codes(X)
        if times is not None and len(times) != len(codes[0]):
            raise GinghamError(f"time has {len(times)} points for {len(codes[0])} rows.")
        return codes, times

    def _law(self, X: TableLike, time: ArrayLike | None) -> Law:
        if not isinstance(self.model_, BasketDraws):
            raise TypeError("only draws of basket layers have a law of their own")
        letters = None if self.alphabet_ is None else self.alphabet_.numbers
        return self.model_.law(*self._asked(X, time), letters)

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        mean, variance = self._mean_of_codes(codes)
        return Predicted(mean, np.sqrt(variance + self.scatter_))

    def _predict(self, X: TableLike) -> Prediction:
        X, _ = self._dated(X, None)
        return self._mean_of_codes(self._codes(X))

    def _mean_of_codes(self, codes: Sequence[Ints]) -> Prediction:
        if isinstance(self.model_, Draws):
            mean, variance = self.model_.predict(codes)
        elif isinstance(self.model_, BasketDraws):
            letters = None if self.alphabet_ is None else self.alphabet_.numbers
            mean = self.model_.law(codes, None, letters).mean
            variance = np.zeros(len(mean))  # `scatter_` has all of it
        else:
            members = np.array([member.predict(codes) for member in self.model_])
            mean, variance = members.mean(axis=0), members.var(axis=0)
        return Prediction(np.clip(mean, *self.range_), variance)

    def contributions(self, X: TableLike, *, time: ArrayLike | None = None) -> dict[str, Floats]:
        """What each part of the model adds to the latent answer of every row, (N,) each: average, offsets, time, and
        the layers by kind and direction. The parts add up; the variance of each says how much it explains.
        """
        check_is_fitted(self)
        if not isinstance(self.model_, BasketDraws):
            raise GinghamError("contributions are told of layers with baskets; this model has none.")
        return parts_of(self.model_, self.modes_, *self._asked(X, time))

    def interaction_factors(self, rank: int = 64, *, joins: bool = False) -> InteractionFactors:
        """The mean latent answer over the draws as ``base + users[u] + items[i] + left[u] @ right[i]``.

        Two modes only. As many factors are kept as 99.9 % of the squared interaction needs, at most ``rank``; a
        warning tells when these are too few. No users × items matrix is formed. The latent answer is in the unit of
        the labels; where the likelihood is ordinal, `predict` returns the mean label instead, which the outer labels
        bound.

        Parameters
        ----------
        joins : bool
            In `predict`, an item joins the basket of a user who has not rated it. By default the factors ignore this,
            which is exact for the pairs that were fitted; with ``joins=True`` every item joins, which is exact for
            all other pairs.
        """
        check_is_fitted(self)
        if not isinstance(self.model_, BasketDraws):
            raise GinghamError("interaction_factors are those of layers with baskets; this model has none.")
        return interaction_factors(self.model_, rank, joins)

    def explain(self, row: object, *, label: object = None) -> Explanation:
        """Why this prediction; with baskets, the account names what of them adds how much.

        Of a row, all parts, which add up to the prediction: "+0.40 because user 7 met Alien". Of a single item, its
        offset and those tokens of its basket that move predictions most.
        """
        found = super().explain(row, label=label)
        if not isinstance(self.model_, BasketDraws):
            return found
        titles = [side.names for side in self.summary_.sides]
        told = (self.model_, self.modes_, dict(self.sides_), titles)
        listed = row.tolist() if isinstance(row, np.ndarray) else row
        if not isinstance(listed, (tuple, list)):
            return replace(found, account=reach_of(*told, *self._place(listed, None)))
        codes = [self._place(one, side)[1] for side, one in enumerate(listed)]
        account = account_of(*told, codes)
        total = found.total or 0.0
        # The parts are those of the latent answer; where labels are a scale, the mean label differs from it a little.
        scaled = total - sum(value for _, value in account)
        return replace(found, account=(*account, ("the scale of the labels", scaled)))

    @property
    def items_(self) -> tuple[AnyArray, ...]:
        return tuple(mode.items for mode in self.modes_)

    @property
    def offsets_(self) -> tuple[Floats, ...]:
        """b_j of each mode's items, averaged over draws or members."""
        if isinstance(self.model_, (BasketDraws, Draws)):
            return self.model_.mean_offsets()
        return tuple(np.mean([m.offsets[j] for m in self.model_], axis=0) for j in range(len(self.modes_)))

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The layers of one draw (the last) or member (the first), strongest first, clusters in order."""
        if isinstance(self.model_, BasketDraws):
            return readable_baskets(self.model_, self.modes_, dict(self.sides_))
        return readable(self.model_, self.modes_)
