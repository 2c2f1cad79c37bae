"""BayesianCoClustering: mixed memberships with Dirichlet priors, any exponential family (P2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from sklearn.base import DensityMixin, clone

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.cells.families import Family, family_kind, make_family
from gingham.cells.losses import total_statistics
from gingham.core.problem import Posterior, Problem, Structure
from gingham.data import Alphabet, Bounds, Mode, Sample
from gingham.data.adapt import Columns
from gingham.data.sample import joined_ids
from gingham.data.sources import opened
from gingham.errors import GinghamError, one_of, strict_share
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, Restart, Solution, best_of
from gingham.fitting.starts import Sizes, Start, expand_clusters, from_votes, make_start
from gingham.models.base import FEW, GridModel, Persistent, advise, numeric_labels, plain_labels, refit_on
from gingham.models.bayesian import coembedding, predictive
from gingham.models.bayesian.dirichlet import DirichletPosterior
from gingham.models.bayesian.fit import Variational, begin
from gingham.models.bayesian.validation import validate_concentration
from gingham.models.questions import Predicted
from gingham.summary.values import Refit

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

PROTOCOLS = ("held-out", "paper", "paper-bound")


@dataclass(eq=False, repr=False)
class BayesianCoClustering(DensityMixin, GridModel, Persistent):
    """Mixed memberships of rows and columns; every pair of clusters has a distribution of its own.

    Row u draws memberships π_u ~ Dirichlet(α_1), column v draws π_v ~ Dirichlet(α_2); an entry draws a cluster from
    each and then its label, x_uv ~ p(x|θ_ij) (P2 §3). Entries that were not observed play no role.

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
    concentration : "validate", "learn", float or (float, float)
        α of rows and of columns. "validate" chooses them on 5 % of the entries, which then take part in the fit.
        "learn" is P2's: α begins at 1 and moves with the fit. On sparse data the bound then prefers one flat cluster.
    alphabet : sequence, optional
        The possible labels of the Bernoulli and categorical families; read off the data otherwise.
    family_params : dict, optional
        ``{"pseudo": 1.0, "shift": 0.0}``: typical entries added to every cell (the conjugate prior), and the smallest
        possible count of the Poisson family.
    bounds : (float, float), optional
        Smallest and largest possible label of the Gaussian and Poisson families, where a certificate is wanted.
    start : {"singular", "spectral", "means", "random"}, label arrays or Posterior
    n_init : int
        Number of starts; the one with the highest evidence bound is kept.
    max_iter : int
        Sweeps at most; a fit ends earlier when the bound changes relatively by less than 1e-5.
    backend : {"auto", "compiled", "torch"}
    random_state : int, RandomState or None

    Attributes
    ----------
    assign_ : tuple of arrays of shape (n_items, n_clusters)
        Posterior mean memberships E π = γ/Σγ.
    answers_ : array of shape (n_row_clusters, n_column_clusters, …)
        θ: a probability, a rate, (mean, variance), or a distribution over the labels.
    lower_bound_ : float
        The evidence bound; ``objective_.terms`` has its terms by name.
    validation_ : dict
        Held-out perplexity of every pair of concentrations that was tried.
    beliefs_ : DirichletPosterior
        q(π) with ``beliefs_.interval(mode, level)``, the credible intervals of its memberships, θ and ``alpha``.
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

    _saved_attributes = (*GridModel._saved_attributes, "beliefs_", "lower_bound_")
    n_clusters: Sizes | Sequence[int | None] = "auto"
    family: str = "auto"
    approximation: str = "per_entry"
    concentration: str | float | Sequence[float] = "validate"
    alphabet: Iterable[object] | None = None
    family_params: Mapping[str, float] | None = None
    bounds: tuple[float, float] | None = None
    start: Start = "singular"
    n_init: int = 1
    max_iter: int = 100
    backend: str = "auto"
    random_state: Seed = None

    @interruptible()
    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        same_items: bool = False,
        clusters: ArrayLike | None = None,
        item_info: ItemInfo | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Fit to the observed entries.

        Parameters
        ----------
        X : array, list or frame of shape (N, 2)
            Row and column ids, one line per observed entry; y are their labels.
        sample_weight : array of shape (N,), optional
            Weight 2 is the same as the entry twice.
        same_items : bool
            Both columns hold the same items, as the nodes of a graph: each has one vector of memberships, whichever
            column it stands in. That is the mixed-membership stochastic blockmodel (Airoldi et al. 2008).
        clusters : int array of shape (N, 2), optional
            Semi-supervised start: the row and column cluster of entries where they are known, −1
            elsewhere. Each known entry votes for its row and its column (P2 §5.1).
        item_info : mapping from the name of a mode to a frame, optional
            What is known of its items, a row each; for summaries only, see :func:`gingham.summarize`.
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        checkpoint : Checkpoint, optional
            Keeps where the fit stands, see ``gingham.fitting.checkpoints``.
        """
        X, y, sample_weight = opened(X, y, sample_weight)
        columns, labels, weights = self._labelled_rows(X, y, sample_weight)
        alphabet = self._alphabet(labels)
        bounds = Bounds.of(self.bounds, given=True)
        if bounds is not None and labels.dtype.kind in "biuf":
            bounds.check(labels, "The label of row")
        nodes = (Mode.of(joined_ids(list(columns.columns)), "node"),) * 2 if same_items else None
        sample = Sample.of(columns.columns, labels, weights, names=columns.names, modes=nodes, alphabet=alphabet)
        family = self._prior(self._family(labels), alphabet)
        if sample.labels is not None:
            family.check(sample.labels)
        family = family.informed(total_statistics(family, sample))
        if clusters is not None and sample_weight is not None:
            clusters = np.asarray(clusters)[np.asarray(sample_weight) > 0]
        checkpoint.bound_to(self, X, y, sample_weight, clusters)
        each = cast(Sequence[int | None], self.n_clusters)
        frozen = np.ndim(cast(ArrayLike, each)) == 1 and len(each) == 2 and each[1] is None
        if nodes is None:
            n_clusters = expand_clusters(
                (each[0], 1) if frozen else self.n_clusters, sample.shape, sample.n_observations
            )
            structure = Structure(sample.modes, ((0, 1),), (1,) if frozen else ())
        else:
            n_clusters = expand_clusters(self.n_clusters, sample.shape[:1], sample.n_observations)
            structure = Structure(nodes[:1], ((0, 0),))
        problem = Problem(structure, (sample,), (family,), (1.0,))
        solver = self._solver()
        rng = self._generator()

        def start_of(at: Problem, rng: np.random.Generator) -> Posterior:
            # Frozen columns have no memberships to start; `begin` gives them their own cells.
            free = replace(at, structure=replace(at.structure, frozen=()))
            if clusters is not None and at is problem:
                return from_votes(free, np.asarray(clusters), n_clusters)
            # Of singular vectors a node would have two, as a row and as a column.
            alike = same_items and isinstance(self.start, str) and self.start == "singular"
            return make_start("spectral" if alike else self.start, free, n_clusters, rng)

        self.validation_: dict[tuple[float, ...], float] = {}  # perplexities of the concentrations that were tried
        if self.concentration == "validate":
            alpha, self.validation_ = validate_concentration(
                solver, problem, lambda at: start_of(at, rng), rng, checkpoint
            )
        elif self.concentration == "learn":
            alpha = (1.0,) * structure.n_modes
        elif isinstance(self.concentration, str):
            raise GinghamError(
                f"concentration={self.concentration!r} is unknown; give 'validate', 'learn', a number, or one for each "
                "mode."
            )
        else:
            alpha = tuple(np.broadcast_to(np.asarray(self.concentration, dtype=np.float64), structure.n_modes).tolist())

        def solve(restart: Restart) -> Solution:
            start = begin(problem, start_of(problem, restart.rng), alpha)
            return solver.solve(problem, start, restart.report, restart.checkpoint)

        solution = best_of(solve, self.n_init, rng, max_iter=self.max_iter, callback=callback, checkpoint=checkpoint)
        self._set_solution(solution)
        self.beliefs_ = cast(DirichletPosterior, solution.posterior)
        self.posterior_ = predictive.checkerboard(self.beliefs_, self.bounds)
        if not frozen:  # one cluster per item is another predictor than mixed ones: it has its own best answers
            self.posterior_ = self.posterior_.refit(sample)
        self.lower_bound_ = -solution.objective.total
        self._remember(replace(sample), sample.n_rows, item_info)
        advise(sample, counts_are_meant=self.beliefs_.cells[0].name == "poisson")
        return self

    @property
    def _measured_in(self) -> str:
        """Numbers are predicted by their mean, whatever their distribution."""
        alphabet = self.beliefs_.cells[0].alphabet
        return "quadratic" if alphabet is None or alphabet.numeric else "log"

    def _refit(self, sample: Sample, kept: Bools) -> Refit:
        alpha = tuple(float(np.mean(a)) for a in self.beliefs_.alpha)
        model = clone(self).set_params(concentration=alpha, n_init=1)
        return refit_on(model, sample, kept, **({"same_items": True} if len(self.items_) == 1 else {}))

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """By mixed memberships, as `predict`; the spread is that of the cells' labels."""
        found = super()._predict_codes(relation, codes, label)
        alphabet = self.beliefs_.cells[0].alphabet
        if alphabet is not None and not alphabet.numeric:
            distribution = self.beliefs_.predict_distribution(codes)
            names = [str(value) for value in alphabet.values.tolist()]
            chance = distribution.max(axis=1) if label is None else distribution[:, names.index(str(label))]
            return Predicted(chance, 1.0 - chance)
        return Predicted(predictive.mean_and_std(self.beliefs_, codes)[0], found.uncertainty)

    def _solver(self) -> Variational:
        learned = isinstance(self.concentration, str) and self.concentration == "learn"
        return Variational(self.approximation, learned, max_iter=self.max_iter, backend=self.backend)

    def _prior(self, name: str, alphabet: Alphabet | None) -> Family:
        """The family with its prior."""
        params = dict(self.family_params or {})
        unknown = sorted(set(params) - {"pseudo", "shift"})
        if unknown:
            raise GinghamError(f"family_params has {unknown[0]!r}; it may have 'pseudo' and 'shift'.")
        return make_family(name, alphabet, float(params.get("pseudo", 1.0)), float(params.get("shift", 0.0)))

    def _columns(self, X: TableLike, reset: bool) -> Columns:
        found = super()._columns(X, reset)
        if len(found.columns) != 2:
            raise GinghamError(
                f"Bayesian co-clustering needs two columns of ids (rows, columns): n_features = {len(found.columns)}. "
                "An entry draws one cluster of its row and one of its column; CoClusteringRegressor takes more columns."
            )
        return found

    def _labels(self, y: ArrayLike) -> AnyArray:
        if self.family in ("gaussian", "poisson"):
            return numeric_labels(y, type(self).__name__)
        return plain_labels(y)

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

    # what was found

    @property
    def answers_(self) -> AnyArray:
        """θ of every pair of clusters."""
        return self.beliefs_.answers[0]

    def embed(self, n_components: int = 2, n_neighbors: int = 15, joint: bool = True) -> tuple[Floats, Floats]:
        """Co-embedding of rows and columns, arrays (n_rows, n_components) and (n_columns, n_components).

        ``joint`` puts both in one picture, in which a row lies in the direction of the columns it prefers;
        otherwise each mode's memberships are embedded on their own, as P2 does.
        """
        return coembedding.co_embedding(self.beliefs_, n_components, n_neighbors, joint)

    # predictions

    def predict(self, X: TableLike, return_std: bool = False) -> AnyArray | tuple[Floats, Floats]:
        """Mean label of each row of X; where labels are names, the most probable one.

        ``return_std`` adds the standard deviation of that mean under the posterior of the memberships.
        """
        codes = self._codes(X)
        alphabet = self.beliefs_.cells[0].alphabet
        if alphabet is not None and not alphabet.numeric:
            return alphabet.values[self.beliefs_.predict_distribution(codes).argmax(axis=1)]
        mean, std = predictive.mean_and_std(self.beliefs_, codes)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: TableLike, level: float = 0.9) -> tuple[Floats, Floats]:
        """Ends of the central interval in which a new label falls with at least this probability."""
        strict_share("level", level)
        return predictive.interval(self.beliefs_, self._codes(X), level)

    def predict_distribution(self, X: TableLike, labels: ArrayLike | None = None) -> Floats:
        """Probability (density) of each of the labels for each row of X, shape (N, n_labels).

        ``labels`` are the alphabet by default; Gaussian and Poisson families need them given.
        """
        codes = self._codes(X)
        if labels is None:
            return self.beliefs_.predict_distribution(codes)
        columns = [self._log_density(codes, np.full(len(codes[0]), label)) for label in np.asarray(labels)]
        return np.exp(np.stack(columns, axis=1))

    def log_likelihood(self, X: TableLike, y: ArrayLike) -> Floats:
        """ln p(y|x) of each entry, with memberships from the training entries only."""
        return self._log_density(self._codes(X), np.asarray(y))

    def _log_density(self, codes: Sequence[Ints], y: AnyArray) -> Floats:
        family = cast(Family, self.beliefs_.cells[0])
        label_codes = None if family.alphabet is None else family.alphabet.encode(y)
        labels = y.astype(np.float64) if family.alphabet is None else family.alphabet.numbers[label_codes]
        family.check(labels)
        sample = Sample(self.beliefs_.structure.modes, tuple(codes), labels, family.alphabet, label_codes)
        return predictive.log_density(self.beliefs_, sample, codes)

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean ln p(y|x)."""
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(self.log_likelihood(X, y), weights=weights))

    def perplexity(self, X: TableLike, y: ArrayLike, protocol: str = "held-out") -> float:
        """exp(−mean ln p(y|x)); 1 is certainty, and no discrete model can be below.

        Parameters
        ----------
        protocol : {"held-out", "paper", "paper-bound"}
            "held-out": memberships from the training entries only: the number to compare.
            "paper": P2 §5.2.1, memberships inferred from training *and* test entries, so the test
            labels leak into them. "paper-bound": exp(−ELBO/N) over training and test entries together.
        """
        one_of("protocol", protocol, PROTOCOLS)
        if protocol == "held-out":
            return float(np.exp(-self.score(X, y)))
        train: Sample = self._remembered("gg.BayesianCoClustering(…).fit(X, y) again")
        columns = self._columns(X, reset=False).columns
        ids = [np.concatenate([mode.decode(c), new]) for mode, c, new in zip(train.modes, train.codes, columns)]
        family = cast(Family, self.beliefs_.cells[0])
        known = train.labels
        if family.alphabet is not None and train.label_codes is not None:
            known = family.alphabet.decode(train.label_codes)
        weights = None if train.weights is None else np.concatenate([train.weights, np.ones(len(columns[0]))])
        both = Sample.of(ids, np.concatenate([known, np.asarray(y)]), weights, alphabet=family.alphabet)
        found = predictive.infer(self.beliefs_, both, self._solver())
        if protocol == "paper-bound":
            return float(np.exp(found.objective.total / both.n_observations))
        test = np.arange(train.n_rows, both.n_rows)
        moved = replace(both.take(test), modes=found.posterior.structure.columns())
        codes = [mode.encode(c[test]) for mode, c in zip(moved.modes, ids)]
        return float(np.exp(-predictive.log_density(found.posterior, moved, codes).mean()))
