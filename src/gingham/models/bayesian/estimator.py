"""BayesianCoClustering: mixed memberships with Dirichlet priors, any exponential family (P2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils import check_random_state, column_or_1d

from gingham.arrays import AnyArray
from gingham.cells.families import Family, family_kind, make_family, total_statistics
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.core.structure import Structure
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError
from gingham.fitting.loop import Callback, best_of
from gingham.fitting.schedule import Constant, Down
from gingham.fitting.starts import from_votes, make_start
from gingham.models.base import expand_clusters, posterior_state, stderr_progress
from gingham.models.bayesian import predictive
from gingham.models.bayesian.dirichlet import DirichletPosterior
from gingham.models.bayesian.fit import Bound, Variational, begin
from gingham.models.bayesian.results import MixedMemberships
from gingham.models.bayesian.validation import validate_concentration
from gingham.models.label_checks import FEW, finite_labels, numeric_labels


class BayesianCoClustering(MixedMemberships):
    """Mixed memberships of rows and columns; every pair of clusters has a distribution of its own.

    Row u draws memberships π_u ~ Dirichlet(α_1), column v draws π_v ~ Dirichlet(α_2); an entry draws a
    cluster from each and then its label, x_uv ~ p(x|θ_ij) (P2 §3). Entries that were not observed are
    never touched.

    Parameters
    ----------
    n_clusters : int, (int, int), (int, None) or "auto"
        Clusters of rows and of columns. None for the columns keeps every column apart:
        Bayesian naive Bayes.
    family : {"auto", "gaussian", "bernoulli", "poisson", "categorical"}
        "auto" is Bernoulli for labels 0 and 1, categorical for names and for at most 64 different whole numbers,
        and Gaussian otherwise.
    approximation : {"per_entry", "shared"}
        "per_entry" gives every entry its own distribution over clusters (the tighter bound and better
        predictions); "shared" gives one to all entries of an item (P2's own, several times faster).
    concentration : "validate", float or (float, float)
        α of rows and of columns. "validate" looks it up on 5 % of the entries, which are then put back.
    concentrations : sequence of float
        What "validate" tries, on both modes alike and then on each mode near the best.
    learn_concentration : bool
        Whether α moves with the fit. On sparse data the bound then prefers one flat cluster.
    alphabet : sequence, optional
        The possible labels of the Bernoulli and categorical families; read off the data otherwise.
    pseudo : float
        Typical entries added to every cell (the conjugate prior).
    shift : float
        Smallest possible count of the Poisson family.
    bounds : (float, float), optional
        Smallest and largest possible label of the Gaussian and Poisson families, where a certificate is wanted.
    start : {"singular", "spectral", "means", "random"}, label arrays or Posterior
    n_init : int
        Starts; the highest evidence bound is kept.
    temperature : float
        Where tempering begins (P2 §4.1.1); 1 is none, which is best on all data that was tried.
    max_iter, tol : int, float
        Stop after so many sweeps, or when the bound changes relatively by less than ``tol``.
    backend : {"auto", "compiled", "reference", "torch"}
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    assign_ : tuple of arrays of shape (n_items, n_clusters)
        Posterior mean memberships E π = γ/Σγ.
    concentration_ : tuple of arrays of shape (n_clusters,)
        α of rows and of columns.
    parameters_ : array of shape (n_row_clusters, n_column_clusters, …)
        θ: a probability, a rate, (mean, variance), or a distribution over the labels.
    family_ : str
        The family that was used.
    elbo_ : float
        The evidence bound; ``elbo_terms_`` has its terms by name.
    validation_ : dict
        Held-out perplexity of every pair of concentrations that was tried.
    beliefs_ : DirichletPosterior
        q(π), θ and α.
    posterior_ : Posterior
        The same memberships as a distribution over checkerboards, which ``certify`` takes: every item drawn
        into one cluster, log loss (squared for Gaussian and Poisson labels, which need ``bounds``). Firm
        memberships (``approximation="shared"``, small α) certify best.

    Examples
    --------
    >>> from gingham import BayesianCoClustering
    >>> X = [(user, item) for user in "abcdef" for item in "uvwxyz"]
    >>> y = [int((user in "abc") == (item in "uvw")) for user, item in X]
    >>> model = BayesianCoClustering(n_clusters=2, family="bernoulli", concentration=0.5, random_state=0)
    >>> model.fit(X, y).predict([("a", "v"), ("a", "y")]).round()
    array([1., 0.])
    """

    def __init__(
        self,
        n_clusters: Any = "auto",
        family: str = "auto",
        approximation: str = "per_entry",
        concentration: Any = "validate",
        concentrations: Any = (0.1, 0.5, 1.0, 2.0),
        learn_concentration: bool = False,
        alphabet: Any = None,
        pseudo: float = 1.0,
        shift: float = 0.0,
        bounds: tuple[float, float] | None = None,
        start: Any = "singular",
        n_init: int = 1,
        temperature: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        backend: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.family = family
        self.approximation = approximation
        self.concentration = concentration
        self.concentrations = concentrations
        self.learn_concentration = learn_concentration
        self.alphabet = alphabet
        self.pseudo = pseudo
        self.shift = shift
        self.bounds = bounds
        self.start = start
        self.n_init = n_init
        self.temperature = temperature
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        clusters: Any = None,
        callback: Callback | None = None,
    ) -> Self:
        """Fit to the observed entries.

        Parameters
        ----------
        X : array, list or frame of shape (N, 2)
            Row and column ids, one line per observed entry.
        y : array of shape (N,)
            Labels.
        sample_weight : array of shape (N,), optional
            Counts: weight 2 is the same as the entry twice.
        clusters : int array of shape (N, 2), optional
            Semi-supervised start: the row and column cluster of entries where they are known, −1
            elsewhere. Each known entry votes for its row and its column (P2 §5.1).
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        """
        columns, labels, weights = self._observed(X, y, sample_weight)
        if len(columns.columns) != 2:
            raise GinghamError(
                f"Bayesian co-clustering needs two columns of ids (rows, columns); X has {len(columns.columns)}."
            )
        alphabet = self._alphabet(labels)
        sample = Sample.of(columns.columns, labels, weights, names=columns.names, alphabet=alphabet)
        family = make_family(self._family(labels), alphabet, self.pseudo, self.shift)
        if sample.labels is not None:
            family.check(sample.labels)
        family = family.informed(total_statistics(family, sample))
        if clusters is not None and sample_weight is not None:
            clusters = np.asarray(clusters)[np.asarray(sample_weight) > 0]
        return self._fit(sample, family, clusters, callback)

    def _fit(self, sample: Sample, family: Family, clusters: Any, callback: Callback | None) -> Self:
        frozen = np.ndim(self.n_clusters) == 1 and len(self.n_clusters) == 2 and self.n_clusters[1] is None
        wanted = (self.n_clusters[0], 1) if frozen else self.n_clusters
        n_clusters = expand_clusters(wanted, sample.shape, sample.n_tuples)
        structure = Structure(sample.modes, ((0, 1),), (1,) if frozen else ())
        problem = Problem(structure, (sample,), (family,), (1.0,))
        solver = self._solver()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        if callback is None and self.verbose:
            callback = stderr_progress

        def start_of(at: Problem) -> Posterior:
            # Frozen columns have no memberships to start; `begin` gives them their own cells.
            free = replace(at, structure=Structure.grid(at.structure.modes))
            if clusters is not None and at is problem:
                return from_votes(free, clusters, n_clusters)
            return make_start(self.start, free, n_clusters, rng)

        alpha, self.validation_ = self._concentration(solver, problem, start_of, rng)

        def starts() -> Iterator[Posterior]:
            for _ in range(self.n_init):
                yield begin(problem, start_of(problem), alpha)

        solution = best_of(solver, problem, starts(), self.n_init, callback)
        self._set_solution(solution)
        self._believe(cast(DirichletPosterior, solution.posterior))
        if not frozen:  # one cluster per item is another predictor than mixed ones: it has its own best answers
            self.posterior_ = self.posterior_.refit(sample)
        self.elbo_ = -solution.objective.total
        if isinstance(solution.objective, Bound):
            self.elbo_terms_ = dict(solution.objective.terms)
        self._sample = sample
        return self

    def _believe(self, beliefs: DirichletPosterior) -> None:
        self.beliefs_ = beliefs
        self.family_ = beliefs.cells[0].name
        self.posterior_ = predictive.checkerboard(beliefs, self.bounds)

    def _solver(self) -> Variational:
        if not (np.isfinite(self.temperature) and self.temperature > 0):
            raise GinghamError(f"temperature={self.temperature} must be a finite number above 0; 1 is no tempering.")
        schedule = Constant() if self.temperature == 1 else Down(self.temperature)
        return Variational(
            approximation=self.approximation,
            learn_concentration=self.learn_concentration,
            schedule=schedule,
            tol=self.tol,
            max_iter=self.max_iter,
            backend=self.backend,
        )

    def _concentration(
        self, solver: Variational, problem: Problem, start_of: Any, rng: np.random.Generator
    ) -> tuple[tuple[float, ...], dict[tuple[float, ...], float]]:
        if isinstance(self.concentration, str):
            if self.concentration != "validate":
                raise GinghamError(
                    f"concentration={self.concentration!r} is unknown; give 'validate', a number, or one for each mode."
                )
            found = validate_concentration(solver, problem, start_of, self.concentrations, rng)
            return found.best, found.perplexities
        given = np.broadcast_to(np.asarray(self.concentration, dtype=np.float64), 2)
        return (float(given[0]), float(given[1])), {}

    def _labels(self, y: Any) -> AnyArray:
        if self.family in ("gaussian", "poisson"):
            return numeric_labels(y, type(self).__name__)
        labels = column_or_1d(y, warn=True)
        return finite_labels(np.array(labels.tolist()) if labels.dtype.kind == "O" else labels)

    def _family(self, y: AnyArray) -> str:
        """The family by its name; the labels say which where none was named."""
        if self.family != "auto":
            return self.family
        values = np.unique(y)
        if y.dtype.kind not in "biuf":
            return "categorical"
        if set(values.tolist()) <= {0, 1}:
            return "bernoulli"
        return "categorical" if len(values) <= FEW and np.all(values == np.floor(values)) else "gaussian"

    def _alphabet(self, y: AnyArray) -> Alphabet | None:
        if not family_kind(self._family(y)).needs_alphabet:
            return None
        return Alphabet.of(np.unique(y) if self.alphabet is None else self.alphabet, self.alphabet is not None)

    # model files

    def _state(self) -> dict[str, Any]:
        q = self.beliefs_
        own = {"alpha": list(q.alpha), "gamma": list(q.gamma), "counts": list(q.counts)}
        more = {"elbo_": self.elbo_, "elbo_terms_": self.elbo_terms_, "checkerboard": self.posterior_.answers[0]}
        return {**super()._state(), **posterior_state(q), **own, **more}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        plain = self.posterior_
        own = {name: tuple(state[name]) for name in ("alpha", "gamma", "counts")}
        self._believe(DirichletPosterior(plain.structure, plain.cells, plain.assign, plain.answers, **own))
        self.posterior_ = replace(self.posterior_, answers=(state["checkerboard"],))
        self.elbo_, self.elbo_terms_ = state["elbo_"], state["elbo_terms_"]
