"""LayeredCoClusteringRegressor: offsets and several small checkerboards that add up, over items and over baskets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Floats, Ints, Seed, TableLike
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns, seconds, without_column
from gingham.data.sample import joined_ids
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.distill import Factors
from gingham.fitting.loop import Callback
from gingham.fitting.starts import Sizes, expand_clusters
from gingham.models.base import (
    TupleModel,
    advise,
    distilled_from,
    distilled_observed,
    distilled_refit,
    learned_from,
    named_auto,
    numeric_labels,
)
from gingham.models.layers.design import (
    CLUSTERS,
    MOST_CLUSTERS,
    Design,
    Effort,
    Sampler,
    designs_for,
    find_effort,
    for_rows,
    make_problem,
    without_baskets,
)
from gingham.models.layers.draws import Intervals, LayerDraws, Predictive, shortest
from gingham.models.layers.factors import InteractionFactors, interaction_factors
from gingham.models.layers.fit import ChainPlan, LayerFit, choose_design, fit_chains, has_gpu
from gingham.models.layers.new_items import draw_new_items, last_states, with_new_items
from gingham.models.layers.side import GivenSide, SideCode, Sides, SideTokens, read_sides
from gingham.models.layers.summary import Layer, Named
from gingham.models.questions import Predicted
from gingham.storage import savable
from gingham.summary.explanation import Explanation
from gingham.summary.values import Observed

if TYPE_CHECKING:
    from gingham.summary.make_summary import ItemInfo

RULES = ("mean", "label")
LIKELIHOODS = ("auto", "ordinal", "gaussian")
MOST_MODES = 4  # up to which there are basket layers by default: they need every ordered pair of modes
CONTINUED_BURN_IN = 10  # sweeps of a partial fit that are not kept
GROWTH = 1.5  # of the rows, from which on a partial fit estimates the noise again, which falls with more data
MAX_LABELS = 20  # distinct labels up to which they are taken for an alphabet
MOST_ORDINAL = 255  # label values of the ordinal likelihood
SINGLE = 1e15  # labels up to which sums of squares fit into single precision


@savable
@dataclass(frozen=True)
class SizeChoice:
    """The size that was chosen, and why."""

    n_layers: int  # between items
    n_clusters: tuple[int, ...]  # one per mode
    reason: str
    own_clusters: bool = False  # whether every item of one mode has a cluster of its own

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False, repr=False)
class LayeredCoClusteringRegressor(RegressorMixin, TupleModel):
    """Numeric labels as offsets and added checkerboards, over users and movies and over their *baskets*.

    ``f = μ + Σ_j b_j(x_j) + Σ_t |N_t(x)|^(−½) Σ_{i ∈ N_t(x)} G_t[d_t(i), c_t(q)]``: a layer goes from the basket of a
    source x to a target q, and its checkerboard says how a token of one cluster shifts the prediction for a target of
    another. The basket is x itself in an item layer, the movies that a user has rated (or the users who rated a movie)
    in a basket layer, and genres or age in a side-information layer. This is the most accurate predictor of ratings in
    the library. Clusters, cells, offsets and the cut points between labels are drawn in turn, and the draws of a few
    chains are averaged. The noise level comes from a tenth of the rows, which is held out at first.

    Every layer is between two modes. Data with three or more columns have layers between every two of them; an effect
    that only a combination of three items has needs a checkerboard of all modes, `CoClusteringRegressor`.

    Parameters
    ----------
    n_layers : int or "auto"
        Item layers. "auto": as many as ``effort`` says, and more where there are no basket layers.
    n_clusters : int, sequence of int or "auto"
        Clusters of each mode in item layers, at most 254. "auto": 4; where one of two modes has few items with many
        rows each, a cluster for each of them and two clusters of the other mode are tried, too, and taken if they
        predict held-out rows better (not with ``effort="fast"``).
    baskets : "auto" or int
        Basket layers in each direction, for every ordered pair of modes of which not nearly all pairs were observed;
        0 for none. "auto": as many as ``effort`` says for two to four modes, fewer below 50,000 rows (two with 1,000),
        and from 300,000 rows on only if they lower the error on held-out rows of a sample.
    alphabet : sequence of numbers, optional
        The possible labels; by default the labels in the data, if there are at most 20.
    side : dict, optional
        Side information, {mode (its position or name): frame} with a column of ids (named like the mode, or the first)
        and any others. Categories, numbers (in ten bins), yes-or-no columns and columns of several values (lists, or
        text with "|" between them) become tokens. Or {mode: (ids, table of zeros and ones)}. Items without ratings are
        predicted from their tokens.
    time : str or int, optional
        The column of X with points in time (numbers or dates); `fit` and `predict` also take them as ``time=``. Items
        of the first mode then have offsets for windows of time, from seconds to months. A prediction without a time
        uses the average over an item's windows.
    likelihood : {"auto", "ordinal", "gaussian"}
        "ordinal": labels are intervals of a latent answer, with the outer cut points fixed and the others drawn;
        "auto" takes it where the alphabet is known.
    effort : {"fast", "default", "best"}
        Numbers of layers, chains and sweeps; fewer chains where there is much data or little (three of 1,000 rows).
    sampler : Sampler, optional
        Numbers of chains and sweeps and the noise, where they are to be set, e.g.
        ``gingham.models.layers.Sampler(n_chains=1, n_sweeps=50)``.
    backend : {"auto", "compiled", "torch"}
        Where chains run. "auto" uses a GPU when torch finds one and the data is large enough. "torch" uses torch in any
        case; without a GPU ``baskets="auto"`` is then 0, because torch draws basket layers slowly on cores.
    n_jobs : int, optional
        Chains side by side, all cores by default; the result does not depend on it.
    random_state : int, RandomState or None

    Attributes
    ----------
    draws_ : LayerDraws
        The kept draws of all chains.
    noise_ : float
        σ², the mean square error of held-out rows; where items have clusters of their own, less the draws' variance.
    cuts_ : ndarray of shape (|Y| − 1,) or None
        The cut points between labels, averaged over the draws; midpoints under the gaussian likelihood.
    selection_ : SizeChoice
        The numbers of layers and clusters that were chosen, and why.

    Examples
    --------
    >>> from gingham import LayeredCoClusteringRegressor
    >>> X = [(u, i) for u in range(12) for i in range(10)]
    >>> y = [5 if (u % 2) == (i % 2) else 1 for u, i in X]
    >>> model = LayeredCoClusteringRegressor(n_layers=2, n_clusters=2, random_state=0).fit(X, y)
    >>> model.predict([(0, 0), (0, 1)], rule="label")
    array([5., 1.])
    """

    _saved_attributes = (
        "draws_", "modes_", "alphabet_", "cuts_", "noise_", "selection_", "_error", "_range", "_side_codes",
        "_intervals",
    )  # fmt: skip
    draws_: LayerDraws = field(init=False)
    modes_: tuple[Mode, ...] = field(init=False)
    alphabet_: Alphabet | None = field(init=False)
    cuts_: Floats | None = field(init=False)
    selection_: SizeChoice = field(init=False)
    noise_: float = field(init=False)
    _error: float = field(init=False)  # mean square error of held-out rows
    _range: tuple[float, float] = field(init=False)  # of predictions
    _side_codes: dict[int, SideCode] = field(init=False)
    _intervals: Intervals = field(init=False)
    _seen = cast("Sequence[tuple[AnyArray, ...]]", ())  # the rows of all calls of partial_fit
    _n_rows_of_noise = 0  # how many of them there were when the noise was estimated

    n_layers: int | str = "auto"
    n_clusters: Sizes = "auto"
    baskets: int | str = "auto"
    alphabet: Iterable[object] | None = None
    side: Sides | None = None
    time: str | int | None = None
    likelihood: str = "auto"
    effort: str = "default"
    sampler: Sampler | None = None
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
        """Fit offsets and layers to observations; rows of X are ids, one per mode, and y has their labels.

        Parameters
        ----------
        item_info : mapping from the name of a mode to a frame, optional
            Facts about its items, for summaries (see :func:`gingham.summarize`); what the model is to learn from is
            its parameter ``side``.
        time : points in time, one per row, optional
            Instead of a column of X that the parameter ``time`` names.
        callback : callable, optional
            Called with a ``Progress`` after every sweep of a chain.
        checkpoint : Checkpoint
            Keeps the state of the fit.
        """
        checkpoint.bound_to(self, X, y, sample_weight, self.side, time)
        columns, labels, weights, times = self._observed_at(X, y, sample_weight, time)
        self._check()
        self._seen, self.interrupted_ = (), False
        alphabet = self._alphabet(labels)
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        modes, tables = self._modes(columns)
        self._side_codes = {table.at: SideCode.of(modes[table.at].name, table.values) for table in tables}
        rows = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=alphabet)
        sample = rows.merged() if times is None else rows  # equal rows may differ in time
        label_values = self._label_values(alphabet)
        design = self._design(sample, label_values, seeds, checkpoint)
        problem = make_problem(
            sample, times, label_values, self._side_tokens(tables, modes), design.effort, design.item_clusters
        )
        plan = self._plan(problem, design.effort, design.own_clusters)
        self._set_draws(fit_chains(problem, plan, seeds, callback, checkpoint), modes, alphabet)
        numbers = labels if alphabet is None else alphabet.numbers
        self._range = (float(numbers.min()), float(numbers.max()))
        why = "; ".join(part for part in (f"effort={self.effort!r}", design.reason) if part)
        reason = f"{problem.described()}, {plan.n_chains} chains of {plan.n_sweeps} sweeps: {why}."
        self.selection_ = SizeChoice(design.effort.item, design.item_clusters, reason, design.own_clusters)
        self._remember(rows, rows.n_rows, item_info)
        self._times = None if self._data is None else times
        advise(rows)
        return self

    def _check(self) -> None:
        if self.likelihood not in LIKELIHOODS:
            raise GinghamError(f"likelihood={self.likelihood!r} is unknown; choose one of {', '.join(LIKELIHOODS)}.")
        for name in ("n_layers", "baskets"):
            value = getattr(self, name)
            if not named_auto(value) and (not isinstance(value, (int, np.integer)) or value < 0):
                raise GinghamError(f"{name}={value!r} must be 'auto' or an integer ≥ 0.")
        if isinstance(self.n_clusters, str) and not named_auto(self.n_clusters):
            raise GinghamError(f"n_clusters={self.n_clusters!r} is unknown; give an int, one int per mode, or 'auto'.")
        (self.sampler or Sampler()).check(find_effort(self.effort))

    def _observed_at(
        self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None, time: ArrayLike | None = None,
        reset: bool = True,
    ) -> tuple[Columns, AnyArray, Floats | None, Floats | None]:  # fmt: skip
        """Columns of ids, labels, weights and points in time of the rows to learn from."""
        X, times = self._dated(X, time)
        columns, labels, weights = self._observed(X, y, sample_weight, reset=reset)
        if times is not None and sample_weight is not None:
            times = times[np.asarray(sample_weight, dtype=np.float64) > 0]
        if times is not None and not np.isfinite(times).all():
            row = int(np.flatnonzero(~np.isfinite(times))[0])
            raise GinghamError(f"time: row {row} has no point in time; drop the row, or fit without time.")
        if times is not None and len(times) != len(labels):
            raise GinghamError(f"time has {len(times)} points for {len(labels)} rows.")
        return columns, labels, weights, times

    def _dated(self, X: TableLike, time: ArrayLike | None) -> tuple[TableLike, Floats | None]:
        """X without its column of points in time, and these, from there or as given; None where there are none."""
        found: AnyArray | None = None
        if self.time is not None:
            X, found = without_column(X, self.time)
        if time is not None:
            found = np.asarray(time)
        return X, None if found is None else seconds(found, "time" if self.time is None else str(self.time))

    def _alphabet(self, labels: AnyArray) -> Alphabet | None:
        if self.alphabet is not None:
            return Alphabet.of(self.alphabet, given=True)
        values = np.unique(labels)
        return Alphabet.of(values, given=False) if len(values) <= MAX_LABELS else None

    def _label_values(self, alphabet: Alphabet | None) -> Floats | None:
        """The label values of the ordinal likelihood, None for the gaussian one."""
        fits = alphabet is not None and 2 <= len(alphabet.numbers) <= MOST_ORDINAL
        if self.likelihood == "ordinal" and not fits:
            raise GinghamError(
                f"likelihood='ordinal' needs a set of two to {MOST_ORDINAL} labels: give alphabet=, or use 'gaussian'."
            )
        return None if alphabet is None or not fits or self.likelihood == "gaussian" else alphabet.numbers

    def _modes(self, columns: Columns) -> tuple[tuple[Mode, ...], list[GivenSide]]:
        """Modes with the items of the data and of the side tables, and these tables."""
        modes = [Mode.of(column, name) for column, name in zip(columns.columns, columns.names)]
        tables = read_sides(columns.names, modes, self.side) if self.side else []
        for table in tables:
            mode = modes[table.at]
            modes[table.at] = Mode.of(joined_ids([mode.items, Mode.of(table.ids, mode.name).items]), mode.name)
        return tuple(modes), tables

    def _side_tokens(self, tables: Sequence[GivenSide], modes: Sequence[Mode]) -> dict[int, SideTokens]:
        """Side tables as tokens of the modes' items."""
        found = {}
        for table in tables:
            rows = self._side_codes[table.at].read(table.values)
            if rows.n_tokens:
                found[table.at] = rows._replace(items=modes[table.at].encode(table.ids)[rows.items])
        return found

    def _effort(self, sample: Sample) -> Effort:
        """The effort for so many rows, with the numbers of layers that were given or make sense."""
        effort = for_rows(find_effort(self.effort), sample.n_rows)
        if not isinstance(self.baskets, str):
            effort = effort._replace(basket=int(self.baskets))
        if not self._has_baskets(sample.n_modes):
            effort = without_baskets(for_rows(find_effort(self.effort), sample.n_rows))
        if not isinstance(self.n_layers, str):
            effort = effort._replace(item=int(self.n_layers))
        return effort

    def _has_baskets(self, n_modes: int) -> bool:
        """Whether there are basket layers: the one place that decides it."""
        if not named_auto(self.baskets):
            return int(self.baskets) > 0 and n_modes > 1
        compiled = self.backend != "torch" and find_spec("numba") is not None
        return 1 < n_modes <= MOST_MODES and (compiled or has_gpu())

    def _design(
        self, sample: Sample, label_values: Floats | None, seeds: np.random.SeedSequence, checkpoint: Checkpoint
    ) -> Design:
        """The layers to fit: as they were given, or with the least error on held-out rows of a sample."""
        open_sizes = named_auto(self.n_clusters) and named_auto(self.n_layers)
        wanted = CLUSTERS if named_auto(self.n_clusters) else self.n_clusters
        usual = Design(self._effort(sample), self._clusters(sample, wanted))
        designs = designs_for(sample, usual, open_sizes) if named_auto(self.baskets) else [usual]
        if len(designs) == 1:
            return usual
        compare = partial(choose_design, sample, label_values, designs, seeds.spawn(1)[0], self.backend)
        which = checkpoint.stage("design").result(lambda: {"which": compare()})["which"]
        chosen = designs[which]
        return chosen._replace(reason=f"{chosen.reason} on a sample of the rows" if chosen.reason else "")

    def _clusters(self, sample: Sample, wanted: Sizes) -> tuple[int, ...]:
        clusters = tuple(expand_clusters(wanted, sample.shape, sample.n_tuples))
        if max(clusters) > MOST_CLUSTERS:
            raise GinghamError(
                f"n_clusters={self.n_clusters!r}: a layer has at most {MOST_CLUSTERS} clusters per mode."
            )
        return clusters

    def _plan(self, problem: Any, effort: Effort, own_clusters: bool) -> ChainPlan:
        return ChainPlan.of(problem, effort, self.sampler or Sampler(), own_clusters, self.n_jobs, self.backend)

    def _set_draws(self, fit: LayerFit, modes: tuple[Mode, ...], alphabet: Alphabet | None) -> None:
        self.draws_, self.modes_, self.alphabet_, self._intervals = fit.draws, modes, alphabet, fit.intervals
        self.noise_, self._error = fit.noise, fit.error
        self.interrupted_ = fit.interrupted
        if fit.draws.label_values is not None:
            self.cuts_ = fit.draws.cuts.mean(axis=0)
        else:
            self.cuts_ = None if alphabet is None else (alphabet.numbers[1:] + alphabet.numbers[:-1]) / 2.0

    # data and summaries

    def observed(self, *data: Any) -> Observed:
        """One checkerboard, distilled from the predictions: the layers have many clusterings, which add up."""
        check_is_fitted(self)
        sample = self.sample(*data) if data else self._remembered("gg.summarize(model, X, y)")
        return distilled_observed(
            sample,
            distilled_from(self.prediction_factors(), sample),
            lambda kept: distilled_refit(
                clone(self).set_params(time=None), sample, kept, None if data else self._times
            ),
            self.selection_.reason,
            "quadratic",
        )

    def prediction_factors(self) -> Factors:
        """The mean latent answer as additive effects and thin factors, for distillation."""
        return Factors(*self.interaction_factors())

    def sample(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Sample:
        """Labelled rows in the model's own numbering."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        return Sample.of(columns.columns, y, sample_weight, modes=self.modes_, alphabet=self.alphabet_)

    # new items and rows

    def fold_in(
        self,
        X: TableLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        side: Sides | None = None,
    ) -> Self:
        """Add items that were not in the training data; everything that was learned stays.

        Rows without labels (``y=None``) say which items the new ones have met, and ``side`` gives their properties:
        enough for a prediction, and labels may follow in a later call. From labelled rows the new items' offsets and
        clusters are drawn in every kept draw. Afterwards new items are predicted like all others.
        """
        check_is_fitted(self)
        if X is None and (side is None or y is not None):
            raise GinghamError(
                "fold_in needs observations (X, and y if their labels are known), side information, or both."
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
            if table.at not in self._side_codes:
                raise GinghamError(
                    f"The model has no side information of {before[table.at].name!r}: fit it with side= first."
                )
        after = self._with_new_items(columns.columns, tables)
        codes = [mode.encode(column) for mode, column in zip(after, columns.columns)]
        draws = with_new_items(self.draws_, before, after, codes, self._side_tokens(tables, after))
        if labels is not None:
            new = [old.encode(mode.items) < 0 for old, mode in zip(before, after)]
            new = [some | draws.items_without_labels(at)[:-1] for at, some in enumerate(new)]
            sample = Sample.of(columns.columns, labels, weights, modes=after, alphabet=self.alphabet_)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
            draws = draw_new_items(draws, new, sample, rng)
            learned_from(self, sample)
        self.draws_, self.modes_ = draws, after
        return self

    def _with_new_items(self, columns: Sequence[AnyArray], tables: Sequence[GivenSide]) -> tuple[Mode, ...]:
        """The modes with new items of columns and of side tables."""
        found = []
        for at, mode in enumerate(self.modes_):
            parts = [*columns[at : at + 1], *(table.ids for table in tables if table.at == at)]
            new = [part[mode.encode(part) < 0] for part in parts if len(part)]
            found.append(Mode.of(joined_ids([mode.items, *new]), mode.name) if new else mode)
        return tuple(found)

    def partial_fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to a growing table: fit in the first call; afterwards the chains continue with all rows.

        New items are folded in, then every chain continues from its last draw, with a short burn-in, and as many draws
        are kept as before. Sizes and labels stay. As soon as there are half as many rows more, the noise is estimated
        again and new chains start. The rows are kept with the model, but not in its file: after ``fit`` or ``load``
        new items are only folded in.
        """
        first = not hasattr(self, "draws_")
        (self.fit if first else self.fold_in)(X, y, sample_weight)
        if not first and not self._seen:
            return self
        columns, labels, weights, times = self._observed_at(X, y, sample_weight, reset=False)
        counts = np.ones(len(labels)) if weights is None else weights
        dated = () if times is None else (times,)
        self._seen = (*self._seen, (*columns.columns, labels, counts, *dated))
        if first:
            self._n_rows_of_noise = len(labels)
            return self
        joined = [np.concatenate(parts) for parts in zip(*self._seen)]
        d = len(columns.columns)
        labels, counts, times = joined[d], joined[d + 1], None if times is None else joined[d + 2]
        weights = None if np.all(counts == 1) else counts
        self._continue(columns._replace(columns=joined[:d]), labels, weights, times)
        return self

    def _continue(self, columns: Columns, labels: AnyArray, weights: Floats | None, times: Floats | None) -> None:
        """Continue every chain from its last draw with the rows of all calls; restart if there are many more."""
        draws, choice, sampler = self.draws_, self.selection_, self.sampler or Sampler()
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        modes, tables = self._modes(columns)
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=self.alphabet_)
        sample = sample.merged() if times is None else sample
        effort, tokens = self._effort(sample), self._side_tokens(tables, modes)
        problem = make_problem(sample, times, draws.label_values, tokens, effort, choice.n_clusters, draws.layers)
        plan = replace(self._plan(problem, effort, choice.own_clusters), n_chains=draws.n_chains)
        if sampler.noise is None and len(labels) >= GROWTH * self._n_rows_of_noise:
            # States know the rows that would be held out, and they may get stuck under less noise.
            self._n_rows_of_noise = len(labels)
            fit = fit_chains(problem, plan, seeds)
        else:
            begin = last_states(draws, problem, np.random.default_rng(seeds.spawn(1)[0]))
            n_sweeps = plan.n_sweeps - plan.burn_in + CONTINUED_BURN_IN
            plan = replace(plan, n_sweeps=n_sweeps, burn_in=CONTINUED_BURN_IN, noise=self.noise_)
            fit = fit_chains(problem, plan, seeds, begin=begin)
            fit = replace(fit, error=self._error, intervals=self._intervals)
        self._set_draws(fit, modes, self.alphabet_)

    # predictions

    def predict(self, X: TableLike, rule: str = "mean", *, time: ArrayLike | None = None) -> Floats:
        """One number per row: the mean of its predictive distribution, or ("label") the median, which is a label."""
        check_is_fitted(self)
        if rule not in RULES:
            raise GinghamError(f"rule={rule!r} is unknown; choose one of {', '.join(RULES)}.")
        if rule == "mean":
            return np.clip(self._predictive(X, time).mean, *self._range)
        if self.alphabet_ is None:
            raise GinghamError("rule='label' needs a finite set of labels: give alphabet= before fitting.")
        return self.alphabet_.numbers[np.sum(self._predictive(X, time).below < 0.5, axis=1)]

    def predict_distribution(self, X: TableLike, *, time: ArrayLike | None = None) -> Floats:
        """The probability of every label, shape (N, |Y|), columns in the order of the alphabet."""
        check_is_fitted(self)
        if self.alphabet_ is None:
            raise GinghamError("A distribution over labels needs a finite set of them: give alphabet= before fitting.")
        return np.diff(self._predictive(X, time).below, axis=1, prepend=0.0, append=1.0)

    def predict_quantiles(self, X: TableLike, levels: ArrayLike, *, time: ArrayLike | None = None) -> Floats:
        """Quantiles of each row's predictive distribution, shape (N, levels); labels where the alphabet is known."""
        check_is_fitted(self)
        wanted = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not ((wanted > 0) & (wanted < 1)).all():
            raise GinghamError(f"levels={levels!r} must lie strictly between 0 and 1.")
        if self.draws_.label_values is None:
            return np.clip(self.draws_.quantiles(*self._rows(X, time), wanted), *self._range)
        below = self._predictive(X, time).below
        return self.draws_.label_values[np.stack([np.sum(below < level, axis=1) for level in wanted], axis=1)]

    def predict_interval(self, X: TableLike, level: float = 0.9, *, time: ArrayLike | None = None) -> Floats:
        """Lower and upper end, (N, 2), between which the label lies with about that probability.

        The shortest run of labels that holds enough of the predictive distribution (its central part where labels are a
        continuum); how much is enough was decided on held-out rows. These have only items with labels: for others,
        unknown or known by a basket or a table alone, the predictive distribution is taken as it is, which is wider.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
        draws, (codes, times) = self.draws_, self._rows(X, time)
        cold = draws.without_labels(codes)
        if draws.label_values is not None:
            shares = np.where(cold, level, self._intervals.share(level))
            return draws.label_values[np.column_stack(shortest(draws.predictive(codes, times).below, shares))]
        found = np.empty((len(cold), 2))
        for rows, share in ((~cold, self._intervals.share(level)), (cold, level)):
            some = [code[rows] for code in codes], None if times is None else times[rows]
            found[rows] = draws.quantiles(*some, np.array([(1.0 - share) / 2.0, (1.0 + share) / 2.0]))
        return np.clip(found, *self._range)

    def _rows(self, X: TableLike, time: ArrayLike | None) -> tuple[list[Ints], Floats | None]:
        """Codes and points in time of the rows to predict."""
        X, times = self._dated(X, time)
        codes = self._codes(X)
        if times is not None and len(times) != len(codes[0]):
            raise GinghamError(f"time has {len(times)} points for {len(codes[0])} rows.")
        return codes, times

    def _predictive(self, X: TableLike, time: ArrayLike | None) -> Predictive:
        return self.draws_.predictive(*self._rows(X, time), self._numbers())

    def _numbers(self) -> Floats | None:
        return None if self.alphabet_ is None else self.alphabet_.numbers

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        mean = np.clip(self.draws_.predictive(codes, None, self._numbers()).mean, *self._range)
        return Predicted(mean, np.full(len(mean), np.sqrt(self._error)))

    # explanations

    def contributions(self, X: TableLike, *, time: ArrayLike | None = None) -> dict[str, Floats]:
        """What each part of the model adds to the latent answer of every row, (N,) each: average, offsets, time, and
        the layers by kind and direction. The parts add up; the variance of each says how much it explains.
        """
        check_is_fitted(self)
        return self._named().parts(*self._rows(X, time))

    def _named(self, items: Sequence[Sequence[str]] = ()) -> Named:
        return Named(self.draws_, self.modes_, self._side_codes, items)

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
        return interaction_factors(self.draws_, rank, joins)

    def explain(self, row: object, *, label: object = None) -> Explanation:
        """Why this prediction, with the tokens of baskets that add most.

        Of a row, all parts, which add up to the prediction: "+0.40 because user 7 met Alien". Of a single item, its
        offset and those tokens of its basket that change predictions most.
        """
        found = super().explain(row, label=label)
        named = self._named([side.names for side in self.summary_.sides])
        listed = row.tolist() if isinstance(row, np.ndarray) else row
        if not isinstance(listed, (tuple, list)):
            return replace(found, account=named.item_account(*self._place(listed, None)))
        account = named.row_account([self._place(one, side)[1] for side, one in enumerate(listed)])
        # The parts are those of the latent answer; where labels are a scale, the mean label differs from it a little.
        scaled = (found.total or 0.0) - sum(value for _, value in account)
        return replace(found, account=(*account, ("the scale of the labels", scaled)))

    @property
    def items_(self) -> tuple[AnyArray, ...]:
        return tuple(mode.items for mode in self.modes_)

    @property
    def offsets_(self) -> tuple[Floats, ...]:
        """b_j of each mode's items, averaged over the draws."""
        return self.draws_.mean_offsets()

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The layers of the last draw, strongest first, clusters in order."""
        return self._named().layers()
