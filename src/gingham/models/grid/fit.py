"""How a grid of co-clusters is fitted: solver, β, starts, sizes; shared by regressor, classifier and trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, Floats
from gingham.cells import CellModel, make_cell
from gingham.certificates.bounds import THEOREMS
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError
from gingham.fitting.certified import Certified
from gingham.fitting.loop import Callback, Solution, best_of
from gingham.fitting.projection import Projection
from gingham.fitting.schedule import Constant, make_schedule
from gingham.fitting.starts import make_start
from gingham.fitting.sweep import Sweep
from gingham.models.base import expand_clusters, stderr_progress
from gingham.models.grid.incremental import GrowingGrid
from gingham.selection.auto import beta_of_item_means, choose_beta, chosen, merge_and_settle

OBJECTIVES = ("tradeoff", "certificate", *THEOREMS)
SOLVERS = ("projection", "sweep")


class Task(NamedTuple):
    """What a fit sets out to do: the problem, the starts (one after the other), and who improves them."""

    problem: Problem
    n_clusters: tuple[int, ...]
    beta: float
    tried: tuple[tuple[float, float], ...]  # other β and their held-out losses
    reason: str  # for β
    soft: Projection
    finder: Projection | Sweep
    starts: Iterator[Posterior]


class GridFit(TransformerMixin, GrowingGrid):
    """Fitting, shared by the regressor and the classifier."""

    one_grid: ClassVar[bool] = True  # whether a `Task` says all of a fit, so that several may be solved side by side
    n_clusters: Any
    loss: Any
    beta: Any
    alphabet: Any
    start: Any
    schedule: Any
    n_init: int
    max_iter: int
    tol: float
    objective: str
    backend: str
    dtype: str | None
    random_state: Any
    verbose: int
    solver: str = "projection"

    def _alphabet(self, y: AnyArray) -> Alphabet | None:
        raise NotImplementedError  # pragma: no cover

    def _cell(self, alphabet: Alphabet | None, y: AnyArray) -> CellModel:
        """The cell model of the loss; the labels say which where none was named."""
        return make_cell(self.loss, alphabet)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback | None = None) -> Self:
        """Co-cluster the observed tuples.

        Parameters
        ----------
        X : array, list or frame of shape (N, d)
            Item ids, one row per observed tuple, one column per mode.
        y : array of shape (N,)
            Labels.
        sample_weight : array of shape (N,), optional
            Counts: weight 2 is the same as the row twice, weight 0 as no row.
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        """
        return self._fit(*self._tuples(X, y, sample_weight), callback)

    def _tuples(self, X: Any, y: Any, sample_weight: Any) -> tuple[Sample, CellModel]:
        """The tuples to learn from, and the cells that predict their labels."""
        columns, labels, sample_weight = self._observed(X, y, sample_weight)
        alphabet = self._alphabet(labels)
        sample = Sample.of(columns.columns, labels, sample_weight, names=columns.names, alphabet=alphabet)
        return sample, self._cell(alphabet, labels)

    def _fit(self, sample: Sample, cell: CellModel, callback: Callback | None) -> Self:
        if callback is None and self.verbose:
            callback = stderr_progress
        task = self._task(sample, cell)
        return self._end(task, best_of(task.finder, task.problem, task.starts, self.n_init, callback), callback)

    def _task(self, sample: Sample, cell: CellModel) -> Task:
        """All that is decided before the first sweep."""
        if self.objective not in OBJECTIVES:
            raise GinghamError(f"objective={self.objective!r} is unknown; choose one of {', '.join(OBJECTIVES)}.")
        if not isinstance(self.n_init, (int, np.integer)) or self.n_init < 1:
            raise GinghamError(f"n_init={self.n_init!r} must be a whole number from 1.")
        if self.solver not in SOLVERS:
            raise GinghamError(f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}.")
        solver = self._projection()
        n_clusters = expand_clusters(self.n_clusters, sample.shape, sample.n_tuples)
        rng = self._generator()
        beta, tried, reason = self._beta(sample, cell, n_clusters, solver, rng)
        problem = Problem.grid(sample, cell, beta)

        def starts() -> Iterator[Posterior]:
            for _ in range(self.n_init):
                yield make_start(self.start, problem, n_clusters, rng)

        finder = solver if self.solver == "projection" else self._moves(int(rng.integers(2**31)))
        return Task(problem, n_clusters, beta, tried, reason, solver, finder, starts())

    def _end(self, task: Task, solution: Solution, callback: Callback | None = None) -> Self:
        """Go on from the best of the starts where the certificate or the sizes ask for it, and keep what was found."""
        by_size = isinstance(self.n_clusters, str)  # "auto"
        if self.objective != "tradeoff" and not solution.interrupted:  # the certificate chooses
            bound = "log-wealth" if self.objective == "certificate" else self.objective
            certified = Certified(replace(task.soft, schedule=Constant()), merge=by_size, bound=bound)
            solution = best_of(certified, task.problem, [solution.posterior], 1, callback)
        elif by_size:
            solution = merge_and_settle(task.problem, solution, task.finder)
        self._set_solution(solution)
        self.beta_ = task.beta
        judge = "the trade-off" if self.objective == "tradeoff" else "the certificate"
        found = solution.posterior.n_clusters
        self.selection_ = chosen(task.beta, task.tried, task.reason, task.n_clusters, found, judge if by_size else None)
        return self

    def _moves(self, seed: int = 0) -> Sweep:
        """Hard moves until nothing moves (at most ``tol`` of the items)."""
        return Sweep(1.0, self.tol, self.max_iter, self.backend, seed)

    def _settling(self, max_iter: int) -> Projection | Sweep:
        return super()._settling(max_iter) if self.solver == "projection" else replace(self._moves(), max_iter=max_iter)

    def _beta(
        self, sample: Sample, cell: CellModel, n_clusters: tuple[int, ...], solver: Projection, rng: np.random.Generator
    ) -> tuple[float, tuple[tuple[float, float], ...], str]:
        """The β to use, those tried, and why."""
        wanted = self.beta
        if wanted is None:
            # A size that was chosen goes with a β compared on held-out tuples; the description length has none.
            code = self.solver == "sweep" and cell.code_length
            if code or not isinstance(self.n_clusters, str):
                beta, why = beta_of_item_means(sample, cell)
                return beta, (), why
            wanted = "auto"
        if not isinstance(wanted, str):
            return wanted, (), f"β = {wanted:.3g}, as given"
        if wanted != "auto":
            raise GinghamError(f"beta={self.beta!r} is unknown; give a number or 'auto'.")
        return choose_beta(sample, cell, n_clusters, self.start, solver, rng)

    def _beta_of(self, sample: Sample, cell: CellModel) -> tuple[float, tuple[tuple[float, float], ...], str]:
        """The β that a fit of this sample would use, those tried, and why."""
        n_clusters = expand_clusters(self.n_clusters, sample.shape, sample.n_tuples)
        return self._beta(sample, cell, n_clusters, self._projection(), self._generator())

    def _projection(self) -> Projection:
        return Projection(make_schedule(self.schedule), self.tol, self.max_iter, self.backend, self.dtype)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def predict_distribution(self, X: Any) -> Floats:
        """Law of the answer when the partition is drawn from Q, shape (N, |Y|), columns as ``alphabet_``."""
        codes = self._codes(X)
        return self.posterior_.predict_distribution(codes)

    def transform(self, X: Any) -> Floats:
        """Memberships of each row's items side by side, shape (N, Σ m_i): features for a next estimator."""
        codes = self._codes(X)
        posterior = self.posterior_
        known = [np.vstack([q, mass]) for q, mass in zip(posterior.assign, posterior.mass)]
        return np.hstack([q[code] for q, code in zip(known, codes)])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns of ``transform``: mode and cluster."""
        check_is_fitted(self)
        modes = zip(self.posterior_.structure.modes, self.n_clusters_)
        return np.array([f"{mode.name}_cluster{c}" for mode, m in modes for c in range(m)], dtype=object)

    @property
    def alphabet_(self) -> AnyArray:
        """The label values, in the order of the columns of ``predict_distribution``."""
        alphabet = getattr(self.posterior_.cells[0], "alphabet", None)
        if alphabet is None:
            raise AttributeError("labels are numbers without an alphabet")
        return alphabet.values
