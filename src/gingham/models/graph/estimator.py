"""GraphClustering: cluster the nodes of a graph so that blocks of clusters predict the weights of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClusterMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, Bools, Floats, Ints, TableLike
from gingham.cells import CellModel, Logarithmic, make_cell, needs_alphabet
from gingham.core.problem import Posterior, Problem
from gingham.data import Alphabet
from gingham.data.adapt import id_columns
from gingham.data.graphs import NODE, PairSample, Weight, from_graph, label_values, with_alphabet
from gingham.errors import GinghamError, positive_integer
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, Restart, completed, ignore_progress
from gingham.models.base import (
    Persistent,
    check_within,
    mean_label,
    moments_of,
    predicted_by,
    stderr_progress,
    warn_of_unseen,
    with_posterior,
)
from gingham.models.graph.degrees import FEWEST_EDGES, DegreeChoice, DegreeModel, choose_degrees
from gingham.models.graph.fit import TINY, GraphFit, default_beta, graph_problem, search_problem
from gingham.models.graph.partition import PartitionSearch
from gingham.models.graph.solvers import GraphSolver, Iclust, codes_edges, hard_posterior, make_solver
from gingham.models.graph.suggest import suggest
from gingham.models.listed import Listed
from gingham.models.questions import Predicted
from gingham.summary.values import Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

MAX_LABELS = 1000
TRIAL_ROUNDS = 3  # of splitting and merging, where a fit only helps to choose a form
ICLUST_BETA = 20.0  # 1/T where none is given


@dataclass(eq=False, repr=False)
class GraphClustering(ClusterMixin, Persistent):
    """Cluster the nodes of a graph so that the two clusters of a pair predict its weight.

    Minimises ``β N L̂(Q) + n Ī``: the loss of predicting pair weights from blocks against the information
    that memberships keep about nodes (P1 eq. 12). Blocks may be dense or sparse, on the diagonal or off it:
    disassortative graphs are clustered as well as assortative ones.

    Parameters
    ----------
    n_clusters : int or "auto"
        "auto" merges clusters while the description length falls.
    loss : {"auto", "quadratic", "log", "absolute", "zero-one"}, table or callable
        "auto" is log loss for a graph without weights and quadratic loss for one with weights.
    beta : float or None
        Trade-off per unit of loss. None: 1 for log loss, 1/(2 variance of the weights) for quadratic loss.
    solver : {"sweep", "nodewise", "damped", "annealed", "parallel", "iclust"} or a solver
        Hard moves; soft memberships one node after another; soft memberships all at once with a damped step. None of
        these ever raises the objective. "annealed" is "nodewise" with β going up and noise, P1's proposal for many soft
        clusters; "parallel" is P1's Algorithm 1 as printed, which may oscillate. "iclust" maximises the mean weight
        within clusters less Ī/β (Slonim et al. 2005) and fits the blocks afterwards. A solver of
        ``gingham.models.graph``, such as ``NodeWise(schedule=Up(), tol=1e-6)`` or ``Damped(backend="torch")``, sets
        everything.
    degree_correction : {"auto"} or bool
        The cluster of a node describes with whom it is connected, its degree how often; for graphs with hubs. Needs
        an undirected graph, ``solver="sweep"`` and weights that are not negative. "auto" holds out a tenth of all
        pairs and takes the form that predicts them better; where only one form makes sense (weights, directed graphs,
        hyperedges, soft clusters, few edges), it is the plain one. ``degree_choice_`` says which, and why.
    alphabet : sequence of numbers, optional
        The possible weights, for losses on a table; read off the graph otherwise. A graph without weights has 0 and 1;
        for a certificate of a matrix of zeros and ones, say alphabet=(0, 1), or give a matrix of booleans.
    bounds : (float, float), optional
        Smallest and largest possible weight, which a certificate of quadratic loss needs.
    start : {"spectral", "random", "mixed", "soft"}, labels or Posterior
        "mixed" alternates spectral and random restarts. These begin with twice as many clusters, which are then merged.
        "soft" is random memberships of every node, for soft solvers with a given number of clusters.
    n_init : int
        Starts; the lowest objective is kept.
    max_iter : int
        Most sweeps of a solver that is named.
    random_state, verbose
        As in CoClusteringRegressor.

    Attributes
    ----------
    labels_ : int array of shape (n,), clusters from 0 (in tables for people they count from 1)
    assign_ : array of shape (n, k)
    answers_ : array of shape (k, k)
        What each block predicts.
    items_ : array of shape (n,)
        Node ids.
    n_clusters_ : int
    degree_choice_ : DegreeChoice
        Whether degrees were corrected for, the losses of both forms per held-out pair, and why in a sentence.
    objective_ : Objective
        Of log loss, ``objective_.total`` is a description length of the graph in nats, of either form: the log loss of
        all pairs under the model's predictions, plus the nats of who belongs to which cluster (n Ī), plus, with degree
        correction, those of the degrees given their sum in each cluster. The k(k + 1)/2 numbers of the block table are
        counted in neither, so that totals of two forms may be compared at like numbers of clusters.
    posterior_, trace_, n_iter_, converged_ : how the fit went

    Examples
    --------
    >>> from gingham import GraphClustering
    >>> edges = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"), ("c", "y")]
    >>> model = GraphClustering(n_clusters=2, random_state=0).fit(edges)
    >>> dict(zip(model.items_.tolist(), (model.labels_ == model.labels_[0]).tolist()))
    {'a': True, 'b': True, 'c': True, 'x': False, 'y': False}
    """

    _saved_attributes = (
        "posterior_", "_degree_model", "beta_", "n_iter_", "converged_", "directed_", "degree_choice_",
    )  # fmt: skip
    n_clusters: int | str = "auto"
    loss: str | Floats | Callable[[Alphabet], CellModel] = "auto"
    beta: float | None = None
    solver: str | GraphSolver = "sweep"
    degree_correction: bool | str = "auto"
    alphabet: Sequence[float] | None = None
    bounds: tuple[float, float] | None = None
    start: str | Ints | Posterior = "spectral"
    n_init: int = 1
    max_iter: int = 200
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @interruptible()
    def fit(
        self,
        X: object,
        y: object = None,
        *,
        pairs: object = "all",
        directed: bool | None = None,
        weight: Weight = "weight",
        nodes: Sequence[object] | AnyArray | None = None,
        hyperedges: bool = False,
        item_info: ItemInfo | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Cluster a graph.

        Parameters
        ----------
        X : scipy sparse matrix or array, square ndarray, networkx graph, edge list, frame or PairSample
        pairs : {"all", "listed"} or mask
            Which pairs were observed; by default all, absent ones with weight 0. See ``from_graph``.
        directed, weight, nodes, hyperedges
            See ``from_graph``.
        item_info : mapping {"node": frame}, optional
            Attributes of the nodes, one row per node; used in summaries only, see :func:`gingham.summarize`.
        """
        sample = from_graph(X, pairs=pairs, directed=directed, weight=weight, nodes=nodes, hyperedges=hyperedges)
        checkpoint.bound_to(
            self, sample.codes, sample.labels, sample.weights, sample.modes, sample.directed, sample.complete
        )
        sample, cell = self._cell(sample)
        self.beta_ = self._beta(sample, cell)
        problem = graph_problem(sample, cell, self.beta_)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.degree_choice_ = self._choice(problem, sample, seed)
        way = self._way(sample, seed, self.degree_choice_.corrected)
        if callback is None and self.verbose:
            callback = stderr_progress
        solution = way.solve(problem, np.random.default_rng(seed), callback, checkpoint)
        self.posterior_ = solution.posterior
        self.objective_ = solution.objective
        self._set_run(solution)
        self.n_features_in_ = sample.n_nodes
        self.directed_ = sample.directed
        self._degree_model: DegreeModel | None = None
        if self.degree_choice_.corrected:
            self._degree_model = DegreeModel.of(sample, self.labels_, self.n_clusters_)
        self._remember(replace(sample), sample.n_rows, item_info)
        return self

    def _observed(self, *data: Any) -> Observed:
        """Edges are counted against chance; weights of listed pairs, and negative ones, are read as numbers."""
        sample = self.sample(*data) if data else self._remembered("gg.summarize(model, graph)")
        counted = sample.complete and (sample.labels is None or bool((sample.labels >= 0).all()))
        relation = Relation(
            (0,) * sample.n_modes,
            sample.codes,
            "lift" if counted else "difference",
            None if counted else sample.labels,
            sample.labels if counted else sample.weights,
            "edge" if counted else "weight",
            both_ways=not sample.directed and sample.n_modes == 2,
            expected=None if counted else mean_label(sample),
        )
        return Observed(
            (self.posterior_.structure.modes[0],),
            (relation,),
            (self.labels_,),
            given=(not isinstance(self.n_clusters, str),),
            refit=lambda kept: self._refit(sample, kept),
            notes=()
            if self.degree_choice_ is None
            else (f"{str(self.degree_choice_)[0].upper()}{str(self.degree_choice_)[1:]}.",),
        )

    def _listed_rows(self, data: tuple[Any, ...] | None) -> Listed:
        if data is None:
            sample = self._remembered("model.update(graph, data=(graph_of_the_fit,))")
        else:
            sample = from_graph(
                data[0], directed=self.directed_, hyperedges=len(self.posterior_.structure.factors[0]) > 2
            )
        ids = [mode.items[code] for mode, code in zip(sample.modes, sample.codes)]
        weights = None if sample.labels is None or not sample.weighted else sample.labels
        return Listed(ids, [NODE] * len(ids), weights=weights)

    def _arguments_of(self, rows: Listed, like: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A graph; an edge that was there and is there again is one, and weights add up."""
        edges, weights = np.column_stack([np.asarray(ids, dtype=object) for ids in rows.ids]), rows.weights
        shown: Any = self if like is None else like
        sample = from_graph(
            edges, directed=shown.directed_, hyperedges=len(rows.ids) > 2,
            weight="weight" if weights is None else weights.tolist(),
        )  # fmt: skip
        return (sample,), {}

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """Expected weights; of edges that are there or not, the spread of a coin with that chance."""
        mean = self._means(codes)
        label_values = getattr(self.posterior_.cells[0], "alphabet", None)
        if label_values is not None and set(label_values.values.tolist()) <= {0, 1}:
            chance = np.clip(mean, 0.0, 1.0)
            return Predicted(mean, np.sqrt(chance * (1 - chance)))
        moments = getattr(self, "cell_moments_", None)
        return Predicted(mean, predicted_by(self.posterior_, codes, None, moments).uncertainty)

    def _keep_for_questions(self) -> None:
        if self._data is not None:
            self.cell_moments_ = moments_of(self.posterior_, self._data)

    def _refit(self, sample: PairSample, kept: Bools) -> Refit:
        """The same graph without some of its edges: where all pairs were observed, their places are empty."""
        part = replace(sample.take(kept), complete=sample.complete)
        start = self.start if isinstance(self.start, str) else "spectral"
        settings = {"n_clusters": max(self.n_clusters_, 1), "degree_correction": self._degree_model is not None}
        model = clone(self).set_params(start=start, n_init=1, verbose=0, **settings).fit(part)
        if sample.complete:
            return Refit((model.labels_,))
        held = [code[~kept] for code in sample.codes]
        return Refit((model.labels_,), model.posterior_.predict(held))

    def _cell(self, sample: PairSample) -> tuple[PairSample, CellModel]:
        values = label_values(sample)
        binary = bool(np.isin(values, (0.0, 1.0)).all())
        loss = ("log" if binary else "quadratic") if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        alphabet = None
        if self.alphabet is not None:
            alphabet = Alphabet.of(self.alphabet, given=True)
        elif binary and (self.bounds is None or not sample.weighted):
            # An edge is there or not: what a graph without weights is. Of weights, others may come.
            alphabet = Alphabet.of(np.array([0.0, 1.0]), given=not sample.weighted)
        elif needs_alphabet(loss):
            if len(values) > MAX_LABELS:
                raise GinghamError(
                    f"The weights take {len(values):,} different values; loss={loss!r} needs a small set of labels. "
                    "Round them, or use loss='quadratic'."
                )
            alphabet = Alphabet.of(values, given=False)
        if alphabet is not None:
            sample = with_alphabet(sample, alphabet)
        if isinstance(loss, str) and loss == "log" and alphabet is not None:
            return sample, Logarithmic(alphabet, TINY)
        cell = make_cell(loss, alphabet, self.bounds)
        check_within(values if sample.labels is None else sample.labels, cell, "The weight of pair")
        return sample, cell

    def _beta(self, sample: PairSample, cell: CellModel) -> float:
        if self.beta is not None:
            return float(self.beta)
        return ICLUST_BETA if self.solver == "iclust" or isinstance(self.solver, Iclust) else default_beta(sample, cell)

    def _k(self, n: int) -> int | None:
        if isinstance(self.n_clusters, str) and self.n_clusters == "auto":
            return None
        return min(positive_integer("n_clusters", self.n_clusters, ", or 'auto'"), n)

    def _way(self, sample: PairSample, seed: int, corrected: bool) -> GraphFit:
        solver = make_solver(self.solver, self.max_iter, seed, sample.n_modes)
        return GraphFit(self._k(sample.n_nodes), solver, self.start, self.n_init, corrected)

    def _choice(self, problem: Problem, sample: PairSample, seed: int) -> DegreeChoice:
        """Whether degrees are corrected for: as asked, or as held-out pairs say."""
        asked = self.degree_correction
        if isinstance(asked, (bool, np.bool_)):
            if asked:
                self._check_degrees(sample)
            return DegreeChoice(bool(asked), f"{'degree-corrected' if asked else 'plain'}, as asked for")
        if asked != "auto":
            raise GinghamError(f"degree_correction={asked!r} must be True, False or 'auto'.")
        why = self._only_plain(problem, sample)
        if why is not None:
            return DegreeChoice(False, f"plain, without degree correction: {why}")

        def partition(part: PairSample, corrected: bool) -> tuple[Ints, int]:
            way, own = replace(self._way(part, seed, corrected), rounds=TRIAL_ROUNDS), replace(problem, samples=(part,))
            search = PartitionSearch.of(search_problem(own), corrected)
            (rng,) = np.random.default_rng(seed).spawn(1)
            found = completed(way.solve_start(own, search, Restart(0, rng, ignore_progress, NO_CHECKPOINT)))
            return found.posterior.labels[0], found.posterior.n_clusters[0]

        return choose_degrees(sample, partition, seed)

    def _only_plain(self, problem: Problem, sample: PairSample) -> str | None:
        """Why there is nothing to choose; None where there is."""
        if sample.n_modes > 2:
            return "degree correction is not available for hyperedges"
        if sample.directed:
            return "degree correction needs an undirected graph (directed=False)"
        if not sample.complete:
            return "only the listed pairs were observed"
        if not self._hard:
            return "degree correction is not available for soft clusters"
        if not codes_edges(problem):
            return "the two models can be compared on unweighted edges only"
        if problem.betas != (1.0,):
            return "beta= was given, which degree correction does not have"
        edges = sample.n_rows if sample.labels is None else int(np.count_nonzero(sample.labels))
        if edges < FEWEST_EDGES:
            return f"{edges} edges are too few for a held-out part"
        return None

    @property
    def _hard(self) -> bool:
        return make_solver(self.solver, self.max_iter, 0, 2).hard

    def _check_degrees(self, sample: PairSample) -> None:
        if not self._hard or sample.directed or sample.n_modes > 2 or not sample.complete:
            raise GinghamError("degree_correction=True is for undirected graphs with pairs='all' and solver='sweep'.")
        if sample.labels is not None and (sample.labels < 0).any():
            raise GinghamError("degree_correction=True needs weights that are not negative.")

    # predictions

    def predict(self, X: TableLike) -> Floats:
        """Expected weight of pairs of node ids, X of shape (P, 2), as the mean over Q; of edges, their chance."""
        return self._means(self._codes(X))

    def _means(self, codes: Sequence[Ints]) -> Floats:
        return (self.posterior_ if self._degree_model is None else self._degree_model).predict(list(codes))

    def predict_distribution(self, X: TableLike) -> Floats:
        """Predictive distribution over the alphabet, averaged over partitions drawn from Q, shape (P, |Y|)."""
        if self._degree_model is None:
            return self.posterior_.predict_distribution(self._codes(X))
        if not self._degree_model.edges:
            raise GinghamError(
                "With degree correction, weights are predicted by their mean alone: use predict, or fit with "
                "degree_correction=False."
            )
        chance = self._degree_model.predict(self._codes(X))
        return np.column_stack([1.0 - chance, chance])

    def suggest_pairs(self, n_pairs: int = 10) -> tuple[AnyArray, Floats]:
        """Which pairs to measure next, of a graph that was fitted with ``pairs="listed"``.

        These are pairs whose weights tell most about the clusters of their nodes, and so about all pairs that are not
        measured. A certificate needs pairs that were drawn at random: keep some for it, and leave out those that were
        suggested.

        Parameters
        ----------
        n_pairs : int

        Returns
        -------
        pairs : array of shape (n_pairs, 2), ids of nodes, the most informative first
        gains : array of shape (n_pairs,)
            How much of the squared error, summed over all pairs that are not measured, each is expected to save.

        Examples
        --------
        >>> from gingham import GraphClustering
        >>> known = [(i, j, float(i % 2 == j % 2)) for i in range(8) for j in range(i) if i + j != 13]
        >>> model = GraphClustering(2, loss="quadratic", random_state=0).fit(known, pairs="listed")
        >>> pairs, gains = model.suggest_pairs(1)
        >>> pairs
        array([[6, 7]])
        """
        check_is_fitted(self)
        sample = self._remembered("fit again, and ask in the same process")
        found, gains = suggest(sample, self.assign_, n_pairs, self._generator())
        return self.items_[found], gains

    def sample(self, X: object, *, pairs: object = "all", weight: Weight = "weight") -> PairSample:
        """Another graph on the same nodes in the model's own numbering, as certificates and tests need it."""
        check_is_fitted(self)
        sets = len(self.posterior_.structure.factors[0]) > 2
        found = from_graph(X, pairs=pairs, directed=self.directed_, weight=weight, nodes=self.items_, hyperedges=sets)
        return self._sample_like(found)

    def _sample_like(self, found: PairSample) -> PairSample:
        """The same pairs with the model's numbering of nodes and labels."""
        mode = self.posterior_.structure.modes[0]
        alphabet = getattr(self.posterior_.cells[0], "alphabet", None)
        at = mode.encode(found.modes[0].items)
        renamed = PairSample(
            (mode,) * found.n_modes, tuple(at[code] for code in found.codes), found.labels,
            directed=found.directed, complete=found.complete, weighted=found.weighted,
        )  # fmt: skip
        return renamed if alphabet is None else with_alphabet(renamed, alphabet)

    def _codes(self, X: TableLike) -> list[Ints]:
        check_is_fitted(self)
        columns = id_columns(X).columns
        d = len(self.posterior_.structure.factors[0])
        if len(columns) != d:
            raise GinghamError(f"X has {len(columns)} columns of node ids; each row needs {d}.")
        mode = self.posterior_.structure.modes[0]
        codes = [mode.encode(column) for column in columns]
        warn_of_unseen([mode] * d, codes)
        return codes

    # facts of the fit

    @property
    def assign_(self) -> Floats:
        """q(c|x), shape (n, k)."""
        return self.posterior_.assign[0]

    @property
    def labels_(self) -> Ints:
        """Most probable cluster of each node, from 0."""
        return self.posterior_.labels[0]

    @property
    def items_(self) -> AnyArray:
        return self.posterior_.structure.modes[0].items

    @property
    def n_clusters_(self) -> int:
        return self.posterior_.n_clusters[0]

    @property
    def answers_(self) -> Floats:
        """The weight that each block predicts, shape (k, k)."""
        return self.posterior_.cells[0].values(self.posterior_.answers[0])

    # coarser

    def _simplified(
        self,
        X: object,
        y: object = None,
        max_clusters: int | Sequence[int] | None = None,
        max_loss: float | None = None,
        sample_weight: object = None,
    ) -> Self:
        """A coarser clustering: clusters merged to a number, or while the description length falls.

        X is the graph with all its pairs, or what `sample` made of it.
        """
        if max_loss is not None:
            raise GinghamError("A graph is simplified to a number of clusters (max_clusters=), not to a loss.")
        limit = None if max_clusters is None else int(np.ravel(max_clusters)[0])
        if limit is not None and limit < 1:
            raise GinghamError(f"max_clusters={max_clusters!r}: at least one cluster is needed.")
        sample = self.sample(X)
        problem = graph_problem(sample, self.posterior_.cells[0], float(self.beta_))
        search = PartitionSearch.of(search_problem(problem), self._degree_model is not None)
        labels, k = search.merge(self.labels_, limit)
        new = with_posterior(self, hard_posterior(problem, labels, k)[0], problem)
        if self._degree_model is not None:
            new._degree_model = DegreeModel.of(sample, labels, k)
        return new
