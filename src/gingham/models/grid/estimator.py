"""CoClusteringRegressor and CoClusteringClassifier: P0's discriminative co-clustering for scikit-learn users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Seed, TableLike, on_host
from gingham.cells import CellModel, make_cell, needs_alphabet
from gingham.cells.losses import Loss, unmet
from gingham.certificates.bounds import THEOREMS
from gingham.core.problem import Posterior, Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns, id_columns
from gingham.data.partitioned import PartitionedTable
from gingham.data.sample import Coded, few_values, joined_ids, sample_kind
from gingham.data.sources import opened
from gingham.engine.place import USUAL_SWEEPS, Work
from gingham.errors import GinghamError, positive_integer
from gingham.fitting.certified import Certified
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, Restart, Solution, best_from, best_of
from gingham.fitting.projection import TORCH_NEEDS, Projection, fits_together, half_step
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import Sizes, Start, expand_clusters, make_start
from gingham.fitting.sweep import Sweep
from gingham.models.base import (
    FEW,
    GridModel,
    GridPredictor,
    Persistent,
    advise,
    check_within,
    class_labels,
    default_loss,
    learned_from,
    named_auto,
    numeric_labels,
    refit_of,
)
from gingham.models.grid.offsets import (
    FIRST_SWEEPS,
    NEXT_SWEEPS,
    ROUNDS,
    Plan,
    averages,
    board_sizes,
    fold_in_effects,
    next_round,
    plan_offsets,
    range_of,
    rest_cell,
    rest_problem,
)
from gingham.models.listed import Listed
from gingham.selection.auto import FACTORS, Beta, Pilot, Selection, choose_beta, explained, merge_and_settle
from gingham.summary.values import Refit

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

OBJECTIVES = ("tradeoff", "certificate", *THEOREMS)
SOLVERS: dict[str, Projection | Sweep] = {"projection": Projection(), "sweep": Sweep(tol=1e-6)}
MAX_LABELS = 1000
PILOT = 200_000  # rows that are drawn from files or partitions to choose sizes and β
FEW_ROWS = 2**16  # that are looked at to guess how many items and labels there are
SETTLE = 20  # sweeps of a partial fit
N_PASSES = (
    2  # of a fold-in over the modes: where both items of an observation are new, the second sees what the first found
)


class Task(NamedTuple):
    """What a fit sets out to do: the problem, its starts, and the solver that improves them."""

    problem: Problem
    n_clusters: tuple[int, ...]
    beta: float
    tried: tuple[tuple[float, float], ...]  # other β and their held-out losses
    reason: str  # for β
    soft: Projection
    finder: Projection | Sweep
    start: Start
    rng: np.random.Generator

    def solve(self, restart: Restart) -> Solution:
        begun = make_start(self.start, self.problem, self.n_clusters, restart.rng)
        return self.finder.solve(self.problem, begun, restart.report, restart.checkpoint)


class GridFit(GridPredictor, GridModel, Persistent):
    """What the regressor and the classifier share: one fit, and tables that grow."""

    _saved_attributes = (*GridModel._saved_attributes, "beta_", "engine_")
    beta_: float
    engine_: str  # where the sums over observations were computed: cores, gpu, files, dask
    selection_: Selection
    n_clusters: Sizes
    loss: Loss
    beta: float | str | None
    alphabet: Iterable[object] | None
    start: Start
    n_init: int
    max_iter: int
    objective: str
    random_state: Seed
    solver: str | Projection | Sweep = "projection"
    offsets: bool | str = False  # only the regressor has the parameter

    def _alphabet(self, y: AnyArray) -> Alphabet | None:
        raise NotImplementedError  # pragma: no cover

    def _cell(self, alphabet: Alphabet | None, y: AnyArray) -> CellModel:
        """The cell model of the loss; the labels say which where none was named."""
        return make_cell(self.loss, alphabet)

    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        item_info: ItemInfo | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Co-cluster the observations.

        Parameters
        ----------
        X : array, list or frame of shape (N, d)
            Item ids, one row per observation, one column per mode. Without y: a wide frame of labels (NaN is
            missing) or an AnnData object, whose names are the ids. Or a table with the labels in it: paths, the
            address of a query, a stream (see :doc:`/guide/scale`); a dask frame is fitted on its cluster, without
            offsets.
        y : array of shape (N,)
            Labels, or the name of their column.
        sample_weight : array of shape (N,), optional
            Counts, or the name of their column: weight 2 is the same as the row twice, weight 0 as no row.
        item_info : mapping from the name of a mode to a frame, optional
            What is known of its items, a row each; for summaries only, see :func:`gingham.summarize`.
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        checkpoint : Checkpoint, optional
            Keeps where the fit stands, see ``gingham.fitting.checkpoints``.
        """
        table = PartitionedTable.of(X, y, sample_weight)
        if table is not None:
            return self._fit_partitions(table, item_info, callback, checkpoint)
        X, y, sample_weight = opened(X, y, sample_weight)
        sample, cell = self._tuples(X, y, sample_weight)
        self._fit(sample, cell, callback, checkpoint.bound_to(self, X, y, sample_weight))
        self._remember(replace(sample), sample.n_rows, item_info)  # without what the fit has made of it
        advise(sample)
        return self

    def _fit_partitions(
        self, table: PartitionedTable, item_info: ItemInfo | None, callback: Callback | None, checkpoint: Checkpoint
    ) -> Self:
        """Fit a table in partitions: the descent of a fit in memory from the same start, where sizes are given.

        Clusters are not merged on partitions: with ``n_clusters="auto"``, sizes, start and β are those of the same
        model fitted here to rows drawn from all partitions; where β alone is left open, such rows choose it.
        """
        solver = self._solver()
        if not isinstance(solver, Projection) or self.objective != "tradeoff":
            raise GinghamError(
                "Partitions are fitted with solver='projection' and objective='tradeoff' only; this model asks for "
                f"solver={self.solver!r} and objective={self.objective!r}."
            )
        if self.offsets is True:
            raise GinghamError("Partitions are fitted without offsets: leave offsets='auto' or set offsets=False.")
        checkpoint = checkpoint.bound_to(self, table.names)
        from gingham.models.grid.partitions import ScatteredProjection, few_rows, problem_of, read, sample_of_few

        with interruptible():
            rows = read(table, self)
            sizes = expand_clusters(self.n_clusters, [mode.n_items for mode in rows.modes], rows.n_observations)
            start, schedule, n_init = self.start, solver.schedule, self.n_init
            tried: tuple[tuple[float, float], ...] = ()
            if isinstance(start, str) and isinstance(self.n_clusters, str):
                own = {} if self.offsets is False else {"offsets": False}
                pilot = clone(self).set_params(**own).fit(*few_rows(rows, table, PILOT, self._seed()))
                if pilot.interrupted_:  # half a pilot must not choose
                    raise KeyboardInterrupt
                start, schedule, n_init = pilot.posterior_, Constant(), 1  # β has come down there already
                beta, tried, reason = pilot.beta_, pilot.selection_.tried, pilot.selection_.reason[:-1]
            elif self.beta is None or isinstance(self.beta, str):
                few = few_rows(rows, table, PILOT, self._seed())
                beta, tried, reason = self._beta_of(sample_of_few(rows, *few), rows.cell)
            else:
                beta, reason = float(self.beta), f"β = {self.beta:.3g}, as given"
            learned = rows.release()
            problem = problem_of(rows.data, rows.modes, rows.cell, beta, rows.alphabet)
            scattered = ScatteredProjection(rows.data, schedule, solver.tol, solver.max_iter)

            def solve(restart: Restart) -> Solution:
                begun = make_start(start, problem, sizes, restart.rng)
                return scattered.solve(problem, begun, restart.report, restart.checkpoint)

            solution = best_of(
                solve, n_init, self._generator(), max_iter=self.max_iter, callback=callback, checkpoint=checkpoint
            )
        self._set_solution(solution)
        self.beta_, self.engine_ = beta, "dask"
        self.selection_ = explained(beta, tried, reason, sizes, solution.posterior.n_clusters, None)
        self._remember(None, 0, item_info)
        self._fit_rows = (learned,)
        self.n_features_in_ = len(rows.modes)
        self.feature_names_in_ = np.array([mode.name for mode in rows.modes], dtype=object)
        return self

    def _refit(self, sample: Sample, kept: Bools) -> Refit:
        own: dict[str, Any] = {"n_clusters": self.n_clusters_, "beta": self.beta_}
        if self.offsets is not False:
            own["offsets"] = self.posterior_.offsets is not None
        start = self.start if isinstance(self.start, str) else "spectral"
        model = clone(self).set_params(**own, start=start)
        return refit_of(model._fit(sample.take(kept), self.posterior_.label_cell(), None), sample, kept)

    def _tuples(self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None) -> tuple[Sample, CellModel]:
        """The observations to learn from, and the cells that predict their labels."""
        columns, labels, sample_weight = self._labelled_rows(X, y, sample_weight)
        kind = self._place_of_tuples(columns, labels)
        labels = kind.column(labels)
        values = few_values(labels, MAX_LABELS)
        alphabet = self._alphabet(values)
        cell = self._cell(alphabet, values)
        if unmet(TORCH_NEEDS, (cell,)) is not None:
            kind, labels = Sample, on_host(labels)
        return kind.of(columns.columns, labels, sample_weight, names=columns.names, alphabet=alphabet), cell

    def _place_of_tuples(self, columns: Columns, labels: AnyArray) -> type[Sample]:
        """Where the observations go: to the device where the whole fit is faster there."""
        solver = self._solver()
        if not isinstance(solver, Projection) or (solver.backend == "auto" and isinstance(columns.columns[0], Coded)):
            return Sample

        def work() -> Work:
            n_rows = len(labels)
            few = slice(None, None, -(-n_rows // FEW_ROWS))
            items = tuple(len(few_values(own[few], n_rows)) if own.dtype.kind != "O" else 1 for own in columns[0])
            sizes = expand_clusters(self.n_clusters, items, n_rows)
            n_labels = len(few_values(labels[few], FEW))
            searched = isinstance(self.n_clusters, str) or isinstance(self.beta, str)
            n_sweeps = (1 + len(FACTORS) * searched) * USUAL_SWEEPS
            return Work(n_rows, items, sizes, n_labels if n_labels <= FEW else 3, n_sweeps)

        return sample_kind(solver.backend, work)

    def _sample_kind(self, columns: Columns) -> type[Sample]:
        sizes, items = self.n_clusters_, tuple(len(q) for q in self.assign_)
        return sample_kind(self._projection().backend, lambda: Work(len(columns.columns[0]), items, sizes, 1, 1))

    @interruptible()
    def _fit(
        self, sample: Sample, cell: CellModel, callback: Callback | None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Self:
        """One descent; with offsets, boards of what they leave over and offsets given the board, in turn."""
        plan, why = self._plan_offsets(sample, cell)
        offsets, left, stage, first = None, sample, checkpoint, self.max_iter
        if plan is not None:
            offsets = averages(sample, cell, plan.shrink, range_of(sample, cell))
            problem, stage = rest_problem(sample, offsets, 1.0), checkpoint.stage("first board")
            left, cell = problem.samples[0], problem.cells[0]
            first = min(self.max_iter, FIRST_SWEEPS + SETTLE)
        task = self._task(left, cell, stage, board=plan)
        begun = task._replace(finder=replace(task.finder, max_iter=first))
        solution = best_of(
            begun.solve, self.n_init, task.rng, max_iter=self.max_iter, callback=callback, checkpoint=stage,
            one_core=task.finder.one_core,
        )  # fmt: skip
        for number in range(0 if plan is None or plan.alone else ROUNDS):
            if offsets is None or solution.interrupted:
                break
            offsets, problem, start = next_round(sample, solution.posterior, offsets, task.beta)
            task = task._replace(problem=problem)
            settling = self._settling(self.max_iter if number == ROUNDS - 1 else NEXT_SWEEPS)
            solution = best_from(settling, problem, start, callback, checkpoint.stage(f"board {number + 2}"))
        self._end(task, solution, callback, checkpoint)
        if offsets is not None:
            self.posterior_ = replace(self.posterior_, offsets=offsets)
        if why:
            self.selection_ = replace(self.selection_, reason=f"{self.selection_.reason[:-1]}; {why}.")
        return self

    def _fit_together(
        self, members: Sequence[Self], X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> bool:
        """Fit co-clusterings that differ from this one in their seed alone on a GPU, with one pass over the rows.

        False, and nothing done, where that does not apply or would not pay. Only sweeps of projections, one start a
        member, are done for all members at once; before and after them each member does what it would have done alone.
        """
        solver = self._solver()
        given = not isinstance(self.n_clusters, str) and not isinstance(self.beta, str)
        if not isinstance(solver, Projection) or solver.backend == "compiled" or not given:
            return False
        if self.objective != "tradeoff" or self.n_init != 1:
            return False
        sample, cell = self._tuples(X, y, sample_weight)
        if self._plan_offsets(sample, cell)[0] is not None:
            return False
        task = self._task(sample, cell)
        if not fits_together(solver.backend, task.problem, task.n_clusters, len(members)):
            return False
        from gingham.fitting.projection_torch import solve_together

        tasks, sample = [], sample.placed()  # starts are made on the device, too
        for member in members:
            member._labelled_rows(
                X, y, sample_weight
            )  # it remembers the columns; the observations are the same for all
            tasks.append(member._task(sample, cell))
        starts = [make_start(own.start, own.problem, own.n_clusters, own.rng.spawn(1)[0]) for own in tasks]
        solutions = solve_together(task.problem, starts, solver.schedule, solver.tol, solver.max_iter, solver.dtype)
        for member, own, solution in zip(members, tasks, solutions):
            member._end(own, solution)
        return True

    def _plan_offsets(self, sample: Sample, cell: CellModel) -> tuple[Plan | None, str]:
        """Whether the fit adds effects of items to its board, and why; nothing is said where nothing was compared."""
        if not (isinstance(self.offsets, bool) or named_auto(self.offsets)):
            raise GinghamError(f"offsets={self.offsets!r} is unknown; choose True, False or 'auto'.")
        wanted = self.offsets is True
        if wanted and self.objective != "tradeoff":
            raise GinghamError(
                f"objective={self.objective!r} minimises a certificate on the rows of the fit, and offsets have none: "
                "use offsets=False, or objective='tradeoff' and a certificate by holdout."
            )
        possible = self.objective == "tradeoff" and cell.of_rest(np.zeros(1)) is not None and sample.n_modes > 1
        if not wanted and (not possible or self.offsets is False):
            return None, ""
        rest_cell(cell, np.zeros(1))  # refuses losses that offsets do not go with
        sizes = expand_clusters(self.n_clusters, sample.shape, sample.n_observations)
        few = sample.few(PILOT, self._generator())
        return plan_offsets(few, cell, sizes, named_auto(self.n_clusters), self._projection(), wanted)

    def _task(
        self, sample: Sample, cell: CellModel, checkpoint: Checkpoint = NO_CHECKPOINT, board: Plan | None = None
    ) -> Task:
        """All that is decided before the first sweep; ``board`` is the plan where the sample is what offsets leave."""
        if self.objective not in OBJECTIVES:
            raise GinghamError(f"objective={self.objective!r} is unknown; choose one of {', '.join(OBJECTIVES)}.")
        positive_integer("n_init", self.n_init)  # before β is chosen, which takes a while
        solver = self._projection()
        n_clusters = expand_clusters(self.n_clusters, sample.shape, sample.n_observations)
        if board is not None and named_auto(self.n_clusters):
            n_clusters = (1,) * len(n_clusters) if board.alone else board_sizes(n_clusters)
        rng = self._generator()
        beta, tried, reason = self._beta(sample, cell, n_clusters, solver, rng, checkpoint)
        problem = Problem.grid(sample, cell, beta)
        finder = self._solver()
        if isinstance(finder, Sweep):
            finder = replace(finder, seed=int(rng.integers(2**31)))
        return Task(problem, n_clusters, beta, tried, reason, solver, finder, self.start, rng)

    def _end(
        self, task: Task, solution: Solution, callback: Callback | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Self:
        """Go on from the best of the starts where the certificate or the sizes ask for it, and keep what was found."""
        by_size = isinstance(self.n_clusters, str)  # "auto"
        if self.objective != "tradeoff" and not solution.interrupted:  # the certificate chooses
            bound = "log-wealth" if self.objective == "certificate" else self.objective
            certified = Certified(replace(task.soft, schedule=Constant()), merge=by_size, bound=bound)
            stage = checkpoint.stage("certificate")
            solution = best_from(certified, task.problem, solution.posterior, callback, stage)
        elif by_size:
            solution = merge_and_settle(task.problem, solution, task.finder, checkpoint)
        self._set_solution(solution)
        self.beta_, self.engine_ = task.beta, task.problem.samples[0].place
        judge = "the trade-off" if self.objective == "tradeoff" else "the certificate"
        found = solution.posterior.n_clusters
        self.selection_ = explained(
            task.beta, task.tried, task.reason, task.n_clusters, found, judge if by_size else None
        )
        return self

    def _solver(self) -> Projection | Sweep:
        """The solver that was named or given, with this estimator's number of sweeps."""
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        if not isinstance(solver, Projection | Sweep):
            raise GinghamError(
                f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}, or give a value of "
                "gingham.fitting: Projection(...) or Sweep(...)."
            )
        return replace(solver, max_iter=self.max_iter)

    def _projection(self) -> Projection:
        """The solver where it is soft; else the one that chooses β and minimises certificates beside it."""
        solver = self._solver()
        return solver if isinstance(solver, Projection) else Projection(max_iter=self.max_iter)

    def _settling(self, max_iter: int) -> Projection | Sweep:
        """The solver that lets old and new items find their places."""
        solver = replace(self._solver(), max_iter=max_iter)
        return replace(solver, schedule=Constant()) if isinstance(solver, Projection) else solver

    def _beta(
        self,
        sample: Sample,
        cell: CellModel,
        n_clusters: tuple[int, ...],
        solver: Projection,
        rng: np.random.Generator,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Beta:
        """The β to use, those tried, and why."""
        wanted, by_size = self.beta, isinstance(self.n_clusters, str)
        # A size that was chosen goes with a β compared on held-out observations; the description length has none.
        moves = isinstance(self._solver(), Sweep)
        if wanted is None and by_size and not (moves and cell.code_length):
            wanted = "auto"
        pilot = Pilot(n_clusters, self.start, solver, rng, checkpoint, by_size)
        return choose_beta(wanted, sample.few(PILOT, rng), cell, pilot)

    def _beta_of(self, sample: Sample, cell: CellModel) -> Beta:
        """The β that a fit of this sample would use, those tried, and why."""
        n_clusters = expand_clusters(self.n_clusters, sample.shape, sample.n_observations)
        return self._beta(sample, cell, n_clusters, self._projection(), self._generator())

    def _seed(self) -> int:
        """Of the rows that are drawn from partitions."""
        return self.random_state if isinstance(self.random_state, int) else 0

    def _goes_to_device(self, X: TableLike, y: ArrayLike) -> bool:
        """Whether a fit of these observations would run on a GPU."""
        columns = id_columns(X)
        return self._place_of_tuples(columns, np.asarray(y)).on_device

    def _fitted_along(self, X: TableLike, y: ArrayLike, betas: Sequence[float]) -> Iterator[tuple[Self, Sample]]:
        """Models fitted at falling β, each started where the last one ended, and the observations, read once."""
        # Along a path certificates are compared, which offsets do not have on the rows of the fit.
        alike = {"offsets": False} if named_auto(self.offsets) else {}
        model = clone(self).set_params(beta=betas[0], **alike)
        sample, cell = model._tuples(X, y, None)
        yield model._fit(sample, cell, None), sample
        for beta in betas[1:]:
            start = model.posterior_
            model = clone(self).set_params(
                beta=beta,
                start=start,
                solver=model._settling(self.max_iter),
                n_init=1,
                n_clusters=start.n_clusters,
                **alike,
            )
            model._columns(X, reset=True)
            yield model._fit(sample, cell, None), sample

    # tables that grow

    def fold_in(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add items that were not in the training data, from some labelled observations with them.

        A half step for the new items only: what was learned before stays as it is. Afterwards they are
        predicted like all others.
        """
        check_is_fitted(self)
        columns, labels, weights = self._labelled_rows(X, y, sample_weight, reset=False)
        before = self.posterior_
        wide = extended(before, columns.columns)
        alphabet = getattr(before.label_cell(), "alphabet", None)
        sample = Sample.of(columns.columns, labels, weights, modes=wide.structure.columns(), alphabet=alphabet)
        wide = fold_in_effects(before, wide, sample)
        folded = fold_in(before, replace(wide, offsets=None), wide.rest(sample), self.beta_, self._projection().backend)
        self.posterior_ = fold_in_effects(before, folded, sample)
        learned_from(self, sample)
        return self

    def partial_fit(
        self,
        X: TableLike,
        y: ArrayLike,
        classes: Iterable[object] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add observations to a growing table: fit at the first call; afterwards start from the present checkerboard.

        New items are folded in, then a few sweeps over all observations seen so far let everything settle. The
        observations are kept with the model, but not in its file. β, the number of clusters and the labels stay. After
        ``fit`` or ``load`` the old observations are not at hand, and new items are folded in, no more.

        Parameters
        ----------
        classes : sequence, optional
            All labels that may come, where ``alphabet`` does not state them; needed at the first call only.
        """
        if not hasattr(self, "posterior_"):
            self._classes = classes
            self.fit(X, y, sample_weight)
            self._seen = self._plain_rows(X, y, sample_weight)
            return self
        self.fold_in(X, y, sample_weight)
        if not hasattr(self, "_seen"):
            return self
        self._seen = self._seen.with_rows(self._plain_rows(X, y, sample_weight))
        posterior, rows = self.posterior_, self._seen
        alphabet = getattr(posterior.label_cell(), "alphabet", None)
        sample = Sample.of(rows.ids, rows.labels, rows.weights, modes=posterior.structure.columns(), alphabet=alphabet)
        board, offsets = replace(posterior, offsets=None), posterior.offsets
        if offsets is not None:
            offsets = next_round(sample, board, offsets, self.beta_)[0]
            sample = offsets.rest(sample, board.cells[0])
        problem = Problem.grid(sample, board.cells[0], self.beta_)
        self._set_solution(best_from(self._settling(min(self.max_iter, SETTLE)), problem, board))
        self.posterior_ = replace(self.posterior_, offsets=offsets)
        self._summary = None  # all items may have moved
        return self

    def _plain_rows(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Listed:
        """Rows that a growing table keeps; those of weight 0 are left out."""
        columns, labels, weights = self._labelled_rows(X, y, sample_weight, reset=False)
        return Listed(columns.columns, columns.names, labels, weights)


@dataclass(eq=False, repr=False)
class CoClusteringRegressor(RegressorMixin, GridFit):
    """Co-cluster the items of all modes so that cells of the checkerboard predict numeric labels.

    Minimises ``β N L̂(Q) + Σ_i n_i Ī_i``: the empirical loss of the randomised checkerboard against the
    information that memberships keep about items (P0 §4.1, Algorithm 1).

    Parameters
    ----------
    n_clusters : int, sequence of int or "auto"
        Clusters of each mode; unused ones become empty, so that too many do little harm. "auto" starts with many and
        merges them while the trade-off falls.
    loss : {"auto", "absolute", "quadratic", "zero-one", "log", "pinball"}, table or callable
        "auto" is the absolute loss for labels on a scale (``alphabet`` given, or at most 64 different values) and
        the quadratic one for measurements (``bounds`` given, or more values).
        A table has a row per true label and a column per answer; a callable takes the alphabet and
        returns a CellModel, e.g. ``functools.partial(Pinball, quantile=0.9)``.
    beta : float or "auto", optional
        Weight of the loss in the trade-off, per unit of the loss (stars, for example); larger values fit more closely.
        "auto" holds out a tenth of the observations and takes the smallest of a few values, around their noise, that
        is not clearly worse than the best. By default "auto" together with ``n_clusters="auto"``, and from the held-out
        loss of item means, which takes one pass over the data, where sizes are given.
    alphabet : sequence of numbers, optional
        The possible labels. State them when a certificate is wanted; read off the data otherwise.
    bounds : (float, float), optional
        Smallest and largest possible label, for the quadratic loss on labels without an alphabet.
    start : {"spectral", "means", "random"}, label arrays or Posterior
    n_init : int
        Number of starts; the one with the lowest objective is kept.
    max_iter : int
        Sweeps after which a start ends at the latest.
    objective : {"tradeoff", "certificate"} or the name of a bound ("kl", "type-kl", "theorem-7", …)
        "certificate" starts from that solution and minimises the log-wealth certificate itself; with
        ``n_clusters="auto"`` it also merges clusters and keeps the size with the lowest certificate.
    random_state : int, RandomState or None
    solver : {"projection", "sweep"}, gingham.fitting.Projection or gingham.fitting.Sweep
        Soft memberships (P0 Algorithm 1), or hard clusters by moving one item at a time until nothing moves. With
        ``loss="log"`` and β = 1, its default there, hard moves minimise a description length: ``N H(Y|cell)`` nats
        for the labels and ``Σ_i n_i Ī_i`` for the clusters. A ``Projection(...)`` states what is rarely changed: how β
        comes down, the tolerance, whether a GPU is used, and the precision.
    offsets : {"auto", True, False}
        Whether effects of single items are added to the board, y ≈ base + Σ_i effect_i[x_i] + block: the board then
        says what the averages of both sides do not. "auto" holds out a tenth of the observations and adds them where
        they predict clearly better; with ``n_clusters="auto"`` the board may fall to one cell. False is P0's model,
        whose rows of the fit can be certified; with offsets, certify by holdout or ``certify_progressive``. Losses
        that are no function of y − prediction (zero-one, log, tables) go without.

    Attributes
    ----------
    posterior_ : Posterior
        ``posterior_.offsets`` has the effects of the items, None without.
    assign_, labels_, items_ : tuples with one array per mode; labels count from 0
    answers_ : array of shape (m_1, …, m_d)
        With offsets, what each cell adds to them.
    trace_, n_iter_, converged_, objective_ : how the fit went
    beta_ : float
    engine_ : {"cores", "gpu", "files", "dask"}
        Where the sums over observations were computed.
    selection_ : Selection
        What was chosen and why; print it.

    Examples
    --------
    >>> from gingham import CoClusteringRegressor
    >>> X = [("ann", "jaws"), ("ann", "heat"), ("bob", "jaws"), ("bob", "heat"), ("cyd", "jaws")]
    >>> model = CoClusteringRegressor(n_clusters=2, beta=3.0, alphabet=range(1, 6), random_state=0)
    >>> model.fit(X, [5, 5, 1, 1, 5]).predict([("cyd", "heat")], rule="median")
    array([5.])
    """

    n_clusters: Sizes = "auto"
    loss: Loss = "auto"
    beta: float | str | None = None
    alphabet: Iterable[object] | None = None
    bounds: tuple[float, float] | None = None
    start: Start = "spectral"
    n_init: int = 1
    max_iter: int = 200
    objective: str = "tradeoff"
    random_state: Seed = None
    solver: str | Projection | Sweep = "projection"
    offsets: bool | str = "auto"

    def _labels(self, y: ArrayLike) -> AnyArray:
        return numeric_labels(y, type(self).__name__)

    def _alphabet(self, y: AnyArray) -> Alphabet | None:
        if self.alphabet is not None:
            return Alphabet.of(self.alphabet, given=True)
        values = np.unique(y)
        if not needs_alphabet(self._loss(y)):
            return Alphabet.of(values, given=False) if len(values) <= FEW and self.bounds is None else None
        if len(values) > MAX_LABELS:
            raise GinghamError(
                f"loss={self.loss!r} works on a finite set of labels, and y has more than {MAX_LABELS} different "
                f"values: round them to at most {MAX_LABELS} values, or use loss='quadratic'."
            )
        return Alphabet.of(values, given=False)

    def _loss(self, y: AnyArray) -> Loss:
        return default_loss(y, self.alphabet is not None, self.bounds) if named_auto(self.loss) else self.loss

    def _cell(self, alphabet: Alphabet | None, y: AnyArray) -> CellModel:
        cell = make_cell(self._loss(y), alphabet, self.bounds)
        check_within(y, cell)
        return cell

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Every distinct number is an item of its own, so feature values carry no distance to learn from.
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: TableLike, rule: str = "mean") -> Floats:
        """One number per row: the mean of the randomised answer, or its median or mode (labels)."""
        codes = self._codes(X)
        return on_host(self.posterior_.predict(codes, rule))


@dataclass(eq=False, repr=False)
class CoClusteringClassifier(ClassifierMixin, GridFit):
    """Co-cluster the items of all modes so that cells of the checkerboard predict classes.

    The same as :class:`CoClusteringRegressor` for labels without an order; see there for parameters. The default loss
    is the logarithmic one, whose cells answer with probabilities; ``loss="zero-one"`` counts errors alone, and its
    probabilities say only how memberships are divided.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from gingham import CoClusteringClassifier
    >>> X = [("ann", "jaws"), ("ann", "heat"), ("bob", "jaws"), ("bob", "heat"), ("cyd", "jaws")]
    >>> y = ["like", "like", "hate", "hate", "like"]
    >>> model = CoClusteringClassifier(n_clusters=2, beta=5.0, random_state=0).fit(X, y)
    >>> model.predict([("cyd", "heat")])
    array(['like'], dtype='<U4')
    """

    n_clusters: Sizes = "auto"
    loss: Loss = "log"
    beta: float | str | None = None
    alphabet: Iterable[object] | None = None
    start: Start = "spectral"
    n_init: int = 1
    max_iter: int = 200
    objective: str = "tradeoff"
    random_state: Seed = None
    solver: str | Projection | Sweep = "projection"

    @property
    def classes_(self) -> AnyArray:
        return self.alphabet_

    def _labels(self, y: ArrayLike) -> AnyArray:
        labels = class_labels(y)
        if not needs_alphabet(self.loss):
            raise GinghamError("loss='quadratic' predicts numbers: use CoClusteringRegressor.")
        return labels

    def _alphabet(self, y: AnyArray) -> Alphabet:
        stated = getattr(self, "_classes", None) if self.alphabet is None else self.alphabet
        return Alphabet.of(np.unique(y) if stated is None else stated, stated is not None)

    def predict_proba(self, X: TableLike) -> Floats:
        """Probability of each class, shape (N, n_classes)."""
        return self.predict_distribution(X)

    def predict(self, X: TableLike) -> AnyArray:
        """The most probable class of each row."""
        codes = self._codes(X)
        return self.classes_[on_host(self.posterior_.predict_distribution(codes).argmax(axis=1))]


def extended(posterior: Posterior, columns: Sequence[AnyArray]) -> Posterior:
    """The posterior with the ids of the columns among its items; new ones have the masses as memberships."""
    structure = posterior.structure
    modes, assign = list(structure.modes), list(posterior.assign)
    for column, at in zip(columns, structure.factors[0]):
        new = modes[at].encode(column) < 0
        if new.any():
            fresh = Mode.of(column[new], modes[at].name).items
            wide = Mode.of(joined_ids([modes[at].items, fresh]), modes[at].name)
            q = np.tile(posterior.mass[at], (wide.n_items, 1)).astype(assign[at].dtype)
            q[wide.encode(modes[at].items)] = assign[at]
            modes[at], assign[at] = wide, q
    return replace(
        posterior, structure=Structure(tuple(modes), structure.factors, structure.frozen), assign=tuple(assign)
    )


def fold_in(before: Posterior, wide: Posterior, sample: Sample, beta: float, backend: str = "auto") -> Posterior:
    """Memberships of the items that ``wide`` has and ``before`` has not, from the tuples of a sample.

    q(c|x) ∝ qbar(c) exp(−β G[x, c]) (P0 eq. 40) with the answers and all other memberships as they are.
    """
    problem = Problem(wide.structure, (sample,), wide.cells, (beta,))
    new = [old.encode(mode.items) < 0 for mode, old in zip(wide.structure.modes, before.structure.modes)]
    for _ in range(N_PASSES):
        for mode, fresh in enumerate(new):
            if fresh.any():
                moved, _ = half_step(problem, wide, mode, 1.0, backend)
                q = np.where(fresh[:, None], moved.assign[mode], wide.assign[mode])
                assign = (*wide.assign[:mode], q, *wide.assign[mode + 1 :])
                wide = replace(wide, assign=assign)
    return wide
