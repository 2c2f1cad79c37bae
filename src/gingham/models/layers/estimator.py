"""Offsets and several small checkerboards that add up, over items and over baskets: for numbers and for classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.random import SeedSequence
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.cells.losses import floored
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns, seconds, without_column
from gingham.data.advice import advice_on
from gingham.data.partitioned import PartitionedTable
from gingham.data.sample import joined_ids
from gingham.data.sources import opened
from gingham.engine.place import has_gpu
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.distill import Factors
from gingham.fitting.loop import Callback
from gingham.fitting.starts import Sizes, expand_clusters
from gingham.models.base import (
    Persistent,
    TupleModel,
    advise,
    class_labels,
    learned_from,
    named_auto,
    numeric_labels,
    predicted_class,
    warn_of,
)
from gingham.models.distilled import distilled_from, distilled_model, distilled_observed, distilled_refit
from gingham.models.layers.design import (
    CLUSTERS,
    LONGER,
    MOST_CLUSTERS,
    Design,
    Effort,
    Observations,
    Sampler,
    designs_for,
    find_effort,
    for_rows,
    make_problem,
    n_chains_for,
    plan_positions,
    without_baskets,
)
from gingham.models.layers.draws import (
    LayerDraws,
    Predictive,
    least_probabilities,
    probabilities_of,
    sets_of,
    shortest,
    simulated_shares,
)
from gingham.models.layers.factors import mean_factors
from gingham.models.layers.fit import (
    CONTINUED_BURN_IN,
    ChainPlan,
    LayerFit,
    choose_design,
    fit_chains,
    noise_of,
)
from gingham.models.layers.new_items import draw_new_items, last_states, with_new_items
from gingham.models.layers.problem import LayerProblem
from gingham.models.layers.side import GivenSide, SideCode, Sides, SideTokens, read_sides
from gingham.models.layers.summary import Layer, Named
from gingham.models.questions import Predicted
from gingham.storage import savable
from gingham.summary.explanation import Explanation
from gingham.summary.values import Observed

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

RULES = ("mean", "label")
LIKELIHOODS = ("auto", "ordinal", "gaussian")
MOST_MODES = 4  # up to which there are basket layers by default: they need every ordered pair of modes
GROWTH = 1.5  # of the rows, from which on a partial fit estimates the noise again, which falls with more data
MAX_LABELS = 20  # distinct labels up to which they are taken for an alphabet
MOST_ORDINAL = 255  # label values of the ordinal likelihood
SMOOTHING = 0.01  # no probability of K classes lies below .01/K, as of checkerboards: the log loss is bounded then
SIMULATED = 1_000  # sets of labels from which the interval of a share is read off
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


class Read(NamedTuple):
    """The observations of a fit, wherever they are."""

    observations: Observations  # with the labels for which designs are compared
    modes: tuple[Mode, ...]
    tables: list[GivenSide]
    ends: tuple[float, float]  # the smallest and largest label, where there is no alphabet
    problem: Callable[[Floats | None, Mapping[int, SideTokens], Design], LayerProblem]
    remember: Callable[[ItemInfo | None], None]
    checkpoint: Checkpoint


@dataclass(eq=False, repr=False)
class LayeredModel(TupleModel, Persistent):
    """What both estimators share: layers are drawn for one latent answer, or for one of each unordered class."""

    _saved_attributes: ClassVar[tuple[str, ...]] = (
        "_fits",
        "modes_",
        "alphabet_",
        "selection_",
        "_side_codes",
        "_shown",
        "_range",
    )
    modes_: tuple[Mode, ...] = field(init=False)
    alphabet_: Alphabet | None = field(init=False)
    selection_: SizeChoice = field(init=False)
    _fits: tuple[LayerFit, ...] = field(init=False)  # of each latent answer
    _shown: int = field(init=False)  # the latent answer that layers, offsets and parts are shown of
    _range: tuple[float, float] = field(init=False)  # of predictions
    _side_codes: dict[int, SideCode] = field(init=False)
    _classes: ClassVar[bool] = False
    _parted: ClassVar[bool] = False  # whether a cluster can fit it
    engine_: str = field(init=False)  # where chains ran: cores, files, dask
    _together = cast("Ints | None", None)  # see `ChainPlan`
    _seen = cast("Sequence[tuple[AnyArray, ...]]", ())  # the rows of all calls of partial_fit
    _n_rows_of_noise = 0  # how many of them there were when the noise was estimated

    n_layers: int | str = "auto"
    n_clusters: Sizes = "auto"
    baskets: int | str = "auto"
    alphabet: Iterable[object] | None = None
    side: Sides | None = None
    time: str | int | None = None
    effort: str = "default"
    sampler: Sampler | None = None
    backend: str = "auto"
    n_jobs: int | None = None
    random_state: Seed = None

    def _item_modes(self) -> tuple[Mode, ...]:
        return self.modes_

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
        self._check()
        self._seen, self.interrupted_ = (), False
        table = PartitionedTable.of(X, y, sample_weight) if self._can_be_parted(time) else None
        if table is None:
            X, y, sample_weight = opened(X, y, sample_weight)
            read = self._read(
                X, y, sample_weight, time, checkpoint.bound_to(self, X, y, sample_weight, self.side, time)
            )
        else:
            read = self._read_parts(table, checkpoint.bound_to(self, table.names, self.side))
        seeds = SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        modes, alphabet = read.modes, self.alphabet_
        self._side_codes = {side.at: SideCode.of(modes[side.at].name, side.values) for side in read.tables}
        label_values = self._label_values(alphabet)
        design = self._design(read.observations, label_values, seeds, read.checkpoint)
        problem = read.problem(label_values, self._side_tokens(read.tables, modes), design)
        plan = self._plan(problem, design.effort, design.own_clusters)
        problems = self._problems(problem)
        stages = [read.checkpoint, *(read.checkpoint.stage(f"class {at + 1}") for at in range(1, len(problems)))]
        # The same rows are held out for every latent answer, so that what is said of them can be combined.
        every = [SeedSequence(seeds.entropy, n_children_spawned=seeds.n_children_spawned) for _ in problems]
        fits = [fit_chains(one, plan, own, callback, at) for one, own, at in zip(problems, every, stages)]
        self._judge(problem, fits)
        self._fits = tuple(replace(fit, held=None) for fit in fits)
        numbers = np.asarray(read.ends) if alphabet is None else alphabet.numbers
        self._range = (float(numbers.min()), float(numbers.max()))
        self.modes_ = modes
        self.interrupted_ = any(fit.interrupted for fit in self._fits)
        why = "; ".join(part for part in (f"effort={self.effort!r}", design.reason) if part)
        reason = f"{problem.described()}, {plan.n_chains} chains of {plan.n_sweeps} sweeps: {why}."
        self.selection_ = SizeChoice(design.effort.item, design.item_clusters, reason, design.own_clusters)
        read.remember(item_info)
        return self

    def _read(
        self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None, time: ArrayLike | None,
        checkpoint: Checkpoint,
    ) -> Read:  # fmt: skip
        """Observations in memory, or in mapped files."""
        columns, labels, weights, times = self._observed_at(X, y, sample_weight, time)
        self.alphabet_ = alphabet = self._alphabet(labels)
        modes, tables = self._modes(columns)
        rows = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=alphabet)
        sample = self._coded(rows.merged() if times is None else rows)  # equal rows may differ in time
        targets = self._targets(np.asarray(sample.labels))
        self._shown = int(np.argmax([own.sum() for own in targets]))

        def problem(label_values: Floats | None, side: Mapping[int, SideTokens], design: Design) -> LayerProblem:
            positions = plan_positions(sample, times) if design.positions else None
            sizes = design.effort, design.item_clusters
            return make_problem(sample, times, label_values, side, *sizes, positions=positions)

        def remember(item_info: ItemInfo | None) -> None:
            self.engine_ = "files"  # or wherever the rows are
            self._remember(rows, rows.n_rows, item_info)
            self._times = None if self._data is None else times
            advise(rows)

        shown, numbers = replace(sample, labels=targets[self._shown]), labels if alphabet is None else np.zeros(1)
        return Read(shown, modes, tables, (numbers.min(), numbers.max()), problem, remember, checkpoint)

    def _read_parts(self, table: PartitionedTable, checkpoint: Checkpoint) -> Read:
        """Observations in parts on a cluster."""
        from gingham.models.layers.partitions import read

        rows, tables, self.alphabet_ = read(table, self)
        self._shown, names = 0, [mode.name for mode in rows.modes]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)

        def remember(item_info: ItemInfo | None) -> None:
            self.engine_ = "dask"
            self._remember(None, 0, item_info)
            self._fit_rows, self._times = (rows.fit_rows(),), None
            warn_of(advice_on(names, rows.shape, rows.n_rows))

        return Read(rows, rows.modes, tables, rows.ends, rows.problem, remember, checkpoint)

    def _can_be_parted(self, time: ArrayLike | None) -> bool:
        """Whether a cluster can fit the model; where it cannot, it reads the table."""
        return self._parted and self.time is None and time is None and self.backend != "torch"

    def _check(self) -> None:
        for name in ("n_layers", "baskets"):
            value = getattr(self, name)
            if not named_auto(value) and (not isinstance(value, (int, np.integer)) or value < 0):
                raise GinghamError(f"{name}={value!r} must be 'auto' or an integer ≥ 0.")
        if isinstance(self.n_clusters, str) and not named_auto(self.n_clusters):
            raise GinghamError(f"n_clusters={self.n_clusters!r} is unknown; give an int, one int per mode, or 'auto'.")
        (self.sampler or Sampler()).check(find_effort(self.effort))

    def _alphabet(self, labels: AnyArray) -> Alphabet | None:
        raise NotImplementedError  # pragma: no cover

    def _label_values(self, alphabet: Alphabet | None) -> Floats | None:
        """The label values of the ordinal likelihood, None for the gaussian one."""
        raise NotImplementedError  # pragma: no cover

    def _coded(self, sample: Sample) -> Sample:
        """The rows with numbers as labels, as chains take them."""
        return sample

    def _targets(self, labels: Floats) -> list[Floats]:
        """The labels of each latent answer."""
        return [labels]

    def _judge(self, problem: LayerProblem, fits: Sequence[LayerFit]) -> None:
        """Learn from what the fits say of held-out rows, beside what each has learned itself."""

    def _problems(self, problem: LayerProblem) -> list[LayerProblem]:
        """The problem of each latent answer."""
        targets = self._targets(problem.labels)
        return [problem] if len(targets) == 1 else [problem.with_labels(labels) for labels in targets]

    def _plan(self, problem: LayerProblem, effort: Effort, own_clusters: bool) -> ChainPlan:
        """What an effort means for a problem, with the settings that were given."""
        sampler, classes = self.sampler or Sampler(), self._classes
        longer = LONGER if own_clusters else 1
        n_chains = sampler.n_chains or -(-n_chains_for(problem, effort) // longer)
        n_sweeps, burn_in = sampler.lengths(effort, longer)
        noise = sampler.noise or noise_of(self._problems(problem)[0], classes)
        return ChainPlan(
            n_chains, n_sweeps, burn_in, noise, own_clusters, classes, self._together, self.n_jobs, self.backend
        )

    def _observed_at(
        self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None, time: ArrayLike | None = None,
        reset: bool = True,
    ) -> tuple[Columns, AnyArray, Floats | None, Floats | None]:  # fmt: skip
        """Columns of ids, labels, weights and points in time of the rows to learn from."""
        X, times = self._dated(X, time)
        columns, labels, weights = self._labelled_rows(X, y, sample_weight, reset=reset)
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

    def _effort(self, sample: Observations) -> Effort:
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
        return 1 < n_modes <= MOST_MODES and (self.backend != "torch" or has_gpu())

    def _design(
        self, sample: Observations, label_values: Floats | None, seeds: SeedSequence, checkpoint: Checkpoint
    ) -> Design:
        """The layers to fit: as they were given, or with the least error on held-out rows of a sample."""
        open_sizes = named_auto(self.n_clusters) and named_auto(self.n_layers)
        wanted = CLUSTERS if named_auto(self.n_clusters) else self.n_clusters
        usual = Design(self._effort(sample), self._clusters(sample, wanted))
        designs = designs_for(sample, usual, open_sizes, self._classes) if named_auto(self.baskets) else [usual]
        if len(designs) == 1:
            return usual
        seed, backend = seeds.spawn(1)[0], self.backend
        compare = partial(choose_design, sample, label_values, designs, seed, backend, self._classes, self._together)
        which = checkpoint.stage("design").result(lambda: {"which": compare()})["which"]
        chosen = designs[which]
        return chosen._replace(reason=f"{chosen.reason} on a sample of the rows" if chosen.reason else "")

    def _clusters(self, sample: Observations, wanted: Sizes) -> tuple[int, ...]:
        clusters = tuple(expand_clusters(wanted, sample.shape, sample.n_observations))
        if max(clusters) > MOST_CLUSTERS:
            raise GinghamError(
                f"n_clusters={self.n_clusters!r}: a layer has at most {MOST_CLUSTERS} clusters per mode."
            )
        return clusters

    # data and summaries

    def _observed(self, *data: Any) -> Observed:
        """One checkerboard, distilled from the predictions: the layers have many clusterings, which add up."""
        check_is_fitted(self)
        loss = "log" if self._classes else "quadratic"
        sample = self.sample(*data) if data else self._remembered("gg.summarize(model, X, y)")
        codes = (own.encode(old.items)[code] for own, old, code in zip(self.modes_, sample.modes, sample.codes))
        sample = replace(sample, modes=self.modes_, codes=tuple(codes))  # items may have been folded in since the fit
        return distilled_observed(
            sample,
            distilled_from(self._prediction_factors(), sample, loss),
            lambda kept: distilled_refit(
                clone(self).set_params(time=None), sample, kept, loss, None if data else self._times
            ),
            self.selection_.reason,
            loss,
            lambda titles: self._named().tables(titles, [sample.counts(at) for at in range(sample.n_modes)]),
        )

    def _simplified(
        self,
        X: TableLike,
        y: ArrayLike,
        max_clusters: int | Sequence[int] | None = None,
        max_loss: float | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        sample = self.sample(X, y, sample_weight)
        return distilled_model(self, lambda: self._observed(X, y, sample_weight), sample, max_clusters, max_loss)

    def _prediction_factors(self) -> Factors:
        return mean_factors(self.draws_)

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
                columns, labels, weights = self._labelled_rows(X, y, sample_weight, reset=False)
        before = self.modes_
        tables = read_sides([mode.name for mode in before], before, side or {})
        for table in tables:
            if table.at not in self._side_codes:
                raise GinghamError(
                    f"The model has no side information of {before[table.at].name!r}: fit it with side= first."
                )
        after = self._with_new_items(columns.columns, tables)
        codes = [mode.encode(column) for mode, column in zip(after, columns.columns)]
        tokens = self._side_tokens(tables, after)
        every = [with_new_items(fit.draws, before, after, codes, tokens) for fit in self._fits]
        if labels is not None:
            new = [old.encode(mode.items) < 0 for old, mode in zip(before, after)]
            new = [some | every[0].items_without_labels(at)[:-1] for at, some in enumerate(new)]
            sample = Sample.of(columns.columns, labels, weights, modes=after, alphabet=self.alphabet_)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
            coded = self._coded(sample)
            targets = self._targets(np.asarray(coded.labels))
            every = [draw_new_items(draws, new, replace(coded, labels=own), rng) for draws, own in zip(every, targets)]
            learned_from(self, sample)
        self._fits = tuple(replace(fit, draws=draws) for fit, draws in zip(self._fits, every))
        self.modes_ = after
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
        first = not hasattr(self, "_fits")
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
        seeds = SeedSequence(check_random_state(self.random_state).randint(2**31 - 1))
        modes, tables = self._modes(columns)
        sample = Sample.of(columns.columns, labels, weights, modes=modes, alphabet=self.alphabet_)
        sample = self._coded(sample.merged() if times is None else sample)
        effort, tokens = self._effort(sample), self._side_tokens(tables, modes)
        problem = make_problem(
            sample, times, draws.label_values, tokens, effort, choice.n_clusters, draws.layers, draws.plan
        )  # fmt: skip
        plan = replace(self._plan(problem, effort, choice.own_clusters), n_chains=draws.n_chains)
        anew = sampler.noise is None and len(labels) >= GROWTH * self._n_rows_of_noise
        if anew:  # states know the rows that would be held out, and they may get stuck under less noise
            self._n_rows_of_noise = len(labels)
        else:
            n_sweeps = plan.n_sweeps - plan.burn_in + CONTINUED_BURN_IN
            plan = replace(plan, n_sweeps=n_sweeps, burn_in=CONTINUED_BURN_IN)
        rng, fits = np.random.default_rng(seeds.spawn(1)[0]) if not anew else None, []
        for before, one in zip(self._fits, self._problems(problem)):
            if rng is None:
                fits.append(replace(fit_chains(one, plan, seeds), held=None))
                continue
            begin = last_states(before.draws, one, rng)
            fit = fit_chains(one, replace(plan, noise=before.noise), seeds, begin=begin)
            fits.append(replace(fit, error=before.error, intervals=before.intervals, temperature=before.temperature))
        self._fits, self.modes_ = tuple(fits), modes
        self.interrupted_ = any(fit.interrupted for fit in fits)

    # predictions

    def _rows(self, X: TableLike, time: ArrayLike | None) -> tuple[list[Ints], Floats | None]:
        """Codes and points in time of the rows to predict."""
        X, times = self._dated(X, time)
        codes = self._codes(X)
        if times is not None and len(times) != len(codes[0]):
            raise GinghamError(f"time has {len(times)} points for {len(codes[0])} rows.")
        return codes, times

    def _values(self) -> Floats | None:
        """Label values under the gaussian likelihood, where only their midpoints count."""
        return None if self.alphabet_ is None else self.alphabet_.numbers

    # explanations

    def contributions(self, X: TableLike, *, time: ArrayLike | None = None) -> dict[str, Floats]:
        """What each part of the model adds to the latent answer of every row, (N,) each: average, offsets, time, and
        the layers by kind and direction. The parts add up; the variance of each says how much it explains.
        """
        check_is_fitted(self)
        return self._named().parts(*self._rows(X, time))

    def _named(self, items: Sequence[Sequence[str]] = ()) -> Named:
        return Named(self.draws_, self.modes_, self._side_codes, items)

    @property
    def items_(self) -> tuple[AnyArray, ...]:
        return tuple(mode.items for mode in self.modes_)

    @property
    def draws_(self) -> LayerDraws:
        """The kept draws of all chains; of several unordered classes those for the most common one."""
        return self._fits[self._shown].draws

    @property
    def noise_(self) -> float:
        """σ², the mean square error of held-out rows; where items have clusters of their own, less the draws' variance.

        Of two classes it is the unit of the latent answer.
        """
        return self._fits[self._shown].noise

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The layers of the last draw, strongest first, clusters in order."""
        return self._named().layers()


@dataclass(eq=False, repr=False)
class LayeredCoClusteringRegressor(RegressorMixin, LayeredModel):
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
        text with "|", ";" or "," between them) become tokens. Or {mode: (ids, table of zeros and ones)}. Items
        without ratings are predicted from their tokens.
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

    _parted: ClassVar[bool] = True
    likelihood: str = "auto"

    def _labels(self, y: ArrayLike) -> AnyArray:
        return numeric_labels(y, type(self).__name__, SINGLE)

    def _check(self) -> None:
        if self.likelihood not in LIKELIHOODS:
            raise GinghamError(f"likelihood={self.likelihood!r} is unknown; choose one of {', '.join(LIKELIHOODS)}.")
        super()._check()

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

    @property
    def cuts_(self) -> Floats | None:
        """The cut points between labels, averaged over the draws; midpoints under the gaussian likelihood."""
        if self.draws_.label_values is not None:
            return self.draws_.cuts.mean(axis=0)
        values = self._values()
        return None if values is None else (values[1:] + values[:-1]) / 2.0

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
            shares = np.where(cold, level, self._fits[0].intervals.share(level))
            return draws.label_values[np.column_stack(shortest(draws.predictive(codes, times).below, shares))]
        found = np.empty((len(cold), 2))
        for rows, share in ((~cold, self._fits[0].intervals.share(level)), (cold, level)):
            some = [code[rows] for code in codes], None if times is None else times[rows]
            found[rows] = draws.quantiles(*some, np.array([(1.0 - share) / 2.0, (1.0 + share) / 2.0]))
        return np.clip(found, *self._range)

    def _predictive(self, X: TableLike, time: ArrayLike | None) -> Predictive:
        return self.draws_.predictive(*self._rows(X, time), self._values())

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        mean = np.clip(self.draws_.predictive(codes, None, self._values()).mean, *self._range)
        return Predicted(mean, np.full(len(mean), np.sqrt(self._fits[0].error)))

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


@dataclass(eq=False, repr=False)
class LayeredCoClusteringClassifier(ClassifierMixin, LayeredModel):
    """Classes as offsets and added checkerboards: votes, answers on a scale, diagnoses.

    The layers of :class:`LayeredCoClusteringRegressor` add up to a latent answer z ~ N(f, σ²). Of two classes the
    second one is observed where z lies above a cut point (a probit model). Ordered classes are intervals of z between
    cut points that are drawn. Of three or more unordered classes each has a latent answer of its own, against all
    others; their probabilities are scaled to sum to one.

    Every chain leaves out the same tenth of the rows, or 10,000 rows where that is less. Their log loss under the
    average of all chains decides the temperature of the probabilities. Below 100,000 rows the chains then go on with
    all rows.

    Parameters
    ----------
    n_layers, n_clusters, baskets, side, time, effort, sampler, backend, n_jobs, random_state
        See :class:`LayeredCoClusteringRegressor`. With ``n_clusters="auto"``, where one of two modes has few items with
        many rows each (senators, questions), positions of the items of both modes are tried instead of layers: each
        item is a point, one per period of ``time`` for the mode with fewer items, and products of points are added.
    alphabet : sequence, optional
        All classes, of ordered ones in rising order; by default those of the labels.
    ordered : bool
        Whether classes are ordered. Labels that are text then need ``alphabet``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Of ordered classes in rising order.
    draws_ : LayerDraws
        The kept draws of all chains; of several unordered classes those for the most common one.
    selection_ : SizeChoice
        The numbers of layers and clusters that were chosen, and why.

    Examples
    --------
    >>> from gingham import LayeredCoClusteringClassifier
    >>> X = [(u, i) for u in range(12) for i in range(10)]
    >>> y = ["yea" if (u % 2) == (i % 2) else "nay" for u, i in X]
    >>> model = LayeredCoClusteringClassifier(n_layers=2, n_clusters=2, random_state=0).fit(X, y)
    >>> model.predict([(0, 0), (0, 1)])
    array(['yea', 'nay'], dtype='<U3')
    """

    _saved_attributes: ClassVar[tuple[str, ...]] = (*LayeredModel._saved_attributes, "_least")
    _least: Floats = field(init=False)  # the least probability in sets of classes, for each of LEVELS
    # of held-out rows: codes, what is said of them, labels; not kept in files
    _held = cast("tuple[Ints, Floats, Floats] | None", None)
    _classes = True
    _stated = cast("list[object] | None", None)  # classes that the first call of partial_fit named
    ordered: bool = False

    @property
    def classes_(self) -> AnyArray:
        if self.alphabet_ is None:
            raise AttributeError("a model that was not fitted has no classes")
        return self.alphabet_.values[np.argsort(self._ranks)]

    @property
    def _ranks(self) -> Ints:
        """The place of each value of the alphabet among the classes."""
        n = 0 if self.alphabet_ is None else self.alphabet_.size
        given = np.arange(n) if self.alphabet is None or not self.ordered else np.asarray(list(self.alphabet))
        return np.argsort(given, kind="stable")

    def _labels(self, y: ArrayLike) -> AnyArray:
        return class_labels(y)

    def partial_fit(  # type: ignore[override]  # as in scikit-learn's classifiers
        self,
        X: TableLike,
        y: ArrayLike,
        classes: Iterable[object] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to a growing table, as :meth:`LayeredCoClusteringRegressor.partial_fit` does.

        ``classes`` are all labels that may come, where ``alphabet`` does not state them; the first call needs them.
        """
        self._stated = self._stated if classes is None else list(classes)
        return super().partial_fit(X, y, sample_weight)

    def _alphabet(self, labels: AnyArray) -> Alphabet:
        stated = self._stated if self.alphabet is None else self.alphabet
        alphabet = Alphabet.of(np.unique(labels) if stated is None else stated, stated is not None)
        if alphabet.size < 2:
            raise GinghamError("A classifier needs at least two classes; all labels are of one class.")
        if alphabet.size > MOST_ORDINAL:
            raise GinghamError(f"{alphabet.size} classes are too many: layers take at most {MOST_ORDINAL}.")
        if self.ordered and self.alphabet is None and not alphabet.numeric:
            raise GinghamError("ordered=True with labels that are text needs alphabet=, the classes in rising order.")
        return alphabet

    def _label_values(self, alphabet: Alphabet | None) -> Floats | None:
        n = 0 if alphabet is None else alphabet.size
        return np.arange(n if self.ordered else 2, dtype=np.float64)

    def _coded(self, sample: Sample) -> Sample:
        return replace(sample, labels=self._ranks[sample.label_codes].astype(np.float64))

    def _targets(self, labels: Floats) -> list[Floats]:
        n = 0 if self.alphabet_ is None else self.alphabet_.size
        return [labels] if self.ordered or n == 2 else [(labels == k).astype(np.float64) for k in range(n)]

    def _judge(self, problem: LayerProblem, fits: Sequence[LayerFit]) -> None:
        self._least, self._held = np.zeros(0), None
        found = [(fit.held, fit.temperature) for fit in fits if fit.held is not None]
        if len(found) == len(fits):
            rows = problem.take(found[0][0].rows)
            chances = self._combined([held.probabilities(by) for held, by in found])
            self._held = rows.codes, chances, rows.labels
            said = chances[np.arange(rows.n_rows), rows.labels.astype(np.int64)]
            self._least = least_probabilities(said, rows.counts)

    # predictions

    def predict_proba(self, X: TableLike, *, time: ArrayLike | None = None) -> Floats:
        """Probability of each class, shape (N, n_classes), columns as ``classes_``."""
        check_is_fitted(self)
        return self._probabilities(*self._rows(X, time))

    def predict(self, X: TableLike, rule: str = "class", *, time: ArrayLike | None = None) -> AnyArray:
        """The most probable class of each row, or ("median") the median class, whose absolute error is smallest."""
        if rule not in ("class", "median"):
            raise GinghamError(f"rule={rule!r} is unknown; choose one of class, median.")
        if rule == "median" and not self.ordered:
            raise GinghamError("rule='median' needs ordered classes: ordered=True.")
        chances = self.predict_proba(X, time=time)
        at = chances.argmax(axis=1) if rule == "class" else np.sum(chances.cumsum(axis=1)[:, :-1] < 0.5, axis=1)
        return self.classes_[at]

    def predict_distribution(self, X: TableLike, *, time: ArrayLike | None = None) -> Floats:
        """The probability of every label, (N, |Y|), columns in the order of ``alphabet_``; at least .01/|Y| each.

        That is what certificates of the log loss need.
        """
        chances = self.predict_proba(X, time=time)[:, self._ranks]
        return floored(chances, SMOOTHING / chances.shape[1])

    def predict_set(self, X: TableLike, level: float = 0.9, *, time: ArrayLike | None = None) -> Bools:
        """Which classes may be the row's, shape (N, n_classes): a set that holds it with about that probability.

        Classes are in the set if their probability reaches a bound that so large a share of held-out rows' classes
        reached; the most probable class always is. Where too few rows were held out, a set holds the most probable
        classes until they have that probability together.
        """
        if not 0 < level < 1:
            raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
        return sets_of(self.predict_proba(X, time=time), level, self._least)

    def predict_share_interval(self, X: TableLike, level: float = 0.9, *, time: ArrayLike | None = None) -> Floats:
        """Lower and upper end of the share of the second class, ``classes_[1]``, among these rows, (2,).

        The share among new labels, one per row, lies between them with about that probability. Labels are simulated
        under every kept draw, so that the interval covers both the noise of the labels and the uncertainty of the fit;
        the temperature that calibrates the average probability is applied to the odds of each draw. There must be two
        classes, because simulated intervals of three were too narrow. All items must have labels in the fit.

        Examples
        --------
        >>> from gingham import LayeredCoClusteringClassifier
        >>> X = [(u, i) for u in range(12) for i in range(10)]
        >>> y = ["yea" if (u % 2) == (i % 2) else "nay" for u, i in X]
        >>> model = LayeredCoClusteringClassifier(n_layers=2, n_clusters=2, random_state=0).fit(X, y)
        >>> low, high = model.predict_share_interval([(0, i) for i in range(10)])
        >>> bool(low <= 0.5 <= high)
        True
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
        if len(self.classes_) != 2:
            raise GinghamError(
                f"Intervals of shares need two classes, and this model has {len(self.classes_)}: fit one to whether a "
                "label is the class of interest."
            )
        codes, times = self._rows(X, time)
        if not len(codes[0]):
            raise GinghamError("A share needs at least one row.")
        unknown = self.draws_.without_labels(codes)
        if unknown.any():
            raise GinghamError(
                f"Row {int(unknown.argmax())} has an item without labels in the fit, so that the interval of a share "
                "would be too narrow; leave out such rows, or add labels of the item by fold_in."
            )
        draws, temperature = self.draws_, self._fits[0].temperature
        average = draws.predictive(codes, times).below
        moved = probabilities_of(average, temperature) / np.maximum(probabilities_of(average), 1e-12)
        rng = np.random.default_rng(0)  # the same rows have the same interval
        n, shares = -(-SIMULATED // draws.n_draws), []
        for below in draws.below_by_draw(codes, times, rng):
            chances = np.maximum(moved * probabilities_of(below), 1e-12)
            shares.append(simulated_shares(chances[:, 1] / chances.sum(axis=1), n, rng))
        return np.quantile(np.concatenate(shares), [(1.0 - level) / 2.0, (1.0 + level) / 2.0], method="inverted_cdf")

    def _probabilities(self, codes: Sequence[Ints], times: Floats | None = None) -> Floats:
        return self._combined(
            [probabilities_of(fit.draws.predictive(codes, times).below, fit.temperature) for fit in self._fits]
        )

    @staticmethod
    def _combined(every: Sequence[Floats]) -> Floats:
        """Probabilities of the classes from those of each latent answer."""
        found = every[0] if len(every) == 1 else np.stack([one[:, 1] for one in every], axis=1)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        return predicted_class(self._probabilities(codes), self.classes_, label)
