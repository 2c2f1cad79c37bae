"""TreeCoClustering: many modes whose clusters merge step by step (P0 §7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.cells import CellModel, make_cell
from gingham.cells.losses import Loss
from gingham.certificates.prices import sequence_price
from gingham.core.problem import Posterior, Problem, Tree
from gingham.core.tree import TreePosterior
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns
from gingham.data.sample import default_names, joined_ids
from gingham.data.sources import opened
from gingham.errors import GinghamError, positive_integer
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, best_of
from gingham.fitting.starts import Sizes, Start, expand_clusters
from gingham.models.base import (
    GridModel,
    GridPredictor,
    Persistent,
    advise,
    check_within,
    default_loss,
    moments_of,
    named_auto,
    observed_of,
    predicted_by,
    predictions_of,
    renumbered,
    rows_of,
)
from gingham.models.questions import Predicted
from gingham.models.tree.density import Stages
from gingham.models.tree.fit import solve_tree
from gingham.models.tree.messages import Messages
from gingham.models.tree.structure import choose_density_merges, choose_tree
from gingham.selection.auto import choose_beta
from gingham.summary.explanation import Explanation
from gingham.summary.values import Observed, Refit

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

TOL = 1e-6  # relative change of the objective at which a fit has converged
DENSITY_BETA = 2.0  # of a density, where none is given


@dataclass(eq=False, repr=False)
class TreeCoClustering(GridPredictor, GridModel, Persistent):
    """Cluster the items of every mode, then the pairs of clusters, and so on; the top cells predict.

    A grid over d modes has Π m_i cells; a tree has only the product of its roots' clusters, so that it
    can be learned and certified where a grid explodes (P0 eqs. 50-51). ``loss="density"`` models the
    observations themselves instead of a label (P0 Fig. 9).

    Parameters
    ----------
    leaves : int or sequence of int
        Clusters of each column of X.
    merges : sequence of (child, …, child, D), "pairs" or "auto"
        Merge i makes node d + i (leaves are nodes 0 to d − 1) with D clusters; D = None keeps every
        combination by itself. Nodes that are merged nowhere are the roots. "pairs" merges neighbours two by two until
        two roots are left. "auto" merges the pair whose combinations answer most alike (of a density, that tells most
        about one another), again and again; the certificate says how often, and pays for the choice.
    n_inner : int, optional
        Clusters of merges that are not given; the largest number of leaf clusters by default.
    tied : "all" or groups of nodes, optional
        Nodes that share one clustering: the positions of a sequence, say. "all" ties all leaves.
    loss : {"auto", "zero-one", "absolute", "quadratic", "log", "pinball", "density"}, table or callable
        "auto" is zero-one loss for names, and for numbers what :class:`CoClusteringRegressor` takes.
    beta : float, optional
        Trade-off per unit of the loss (per nat for the density). By default from the held-out loss of item means;
        2 for the density.
    start : {"spectral", "agreement", "random"}, leaf labels or TreePosterior
        "agreement" finds parities; "spectral" turns to it when it finds nothing.
    alphabet, bounds, n_init, max_iter, random_state
        As in :class:`CoClusteringRegressor`.

    Attributes
    ----------
    posterior_ : TreePosterior
        ``assign_`` and ``labels_`` have the leaves' modes first, then the inner nodes.
    density_ : TreeDensity
        With ``loss="density"``, in place of ``posterior_``.
    merges_ : tuple
        The tree that was used.

    Examples
    --------
    >>> from gingham import TreeCoClustering
    >>> from gingham.datasets import make_tree
    >>> data = make_tree(4000, n_items=20, random_state=1)
    >>> model = TreeCoClustering(leaves=4, merges=((0, 1, 3), (2, 3, 3)), beta=2.0, random_state=0)
    >>> model.fit(data.X, data.y).answers_.shape
    (3, 3)
    """

    leaves: Sizes = 4
    merges: Sequence[Sequence[int | None]] | str = "pairs"
    n_inner: int | None = None
    tied: str | Sequence[Sequence[int]] | None = None
    loss: Loss = "auto"
    beta: float | None = None
    alphabet: Iterable[object] | None = None
    bounds: tuple[float, float] | None = None
    start: Start = "spectral"
    n_init: int = 3
    max_iter: int = 100
    random_state: Seed = None

    @property
    def _saved_attributes(self) -> tuple[str, ...]:  # type: ignore[override]
        own = ("density_",) if self._is_density else GridModel._saved_attributes
        return ("merges_", "beta_", *own)

    # fitting

    @interruptible()
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
        """Cluster the observations: rows of X are ids, y labels (None for the density), sample_weight counts.

        ``item_info`` are tables about the items of modes, for summaries (see :func:`gingham.summarize`). ``callback``
        is called with a ``Progress`` after every sweep; ``checkpoint`` keeps where the fit stands.
        """
        X, y, sample_weight = opened(X, y, sample_weight)
        checkpoint.bound_to(self, X, y, sample_weight)
        positive_integer("n_init", self.n_init)
        rng = self._generator()
        if self._is_density:
            columns = self._columns(X, reset=True)
            sample = Sample.of(columns.columns, None, sample_weight, modes=self._leaf_modes(columns))
            self._fit_density(sample, rng)
            self._remember(sample, sample.n_rows, item_info)
            return self
        columns, labels, sample_weight = self._labelled_rows(X, y, sample_weight)
        alphabet = self._alphabet(labels)
        modes = self._leaf_modes(columns)
        sample = Sample.of(columns.columns, labels, sample_weight, modes=modes, alphabet=alphabet)
        cell = self._cell(alphabet, labels)
        solver = Messages(tol=TOL, max_iter=self.max_iter)
        leaves = expand_clusters(self.leaves, sample.shape, sample.n_observations)
        self.beta_ = choose_beta(self.beta, sample, cell)[0]
        if named_auto(self.merges):
            if cell.n_answers is None:
                raise GinghamError("merges='auto' chooses by certificate: use a loss with finitely many answers.")
            width, tied = self._width(leaves), self._tied(len(leaves))
            choice = choose_tree(sample, cell, self.beta_, leaves, width, tied, solver, rng, checkpoint)
            self.merges_: tuple[tuple[int | None, ...], ...] = choice.merges
            self._set_solution(choice.solution)
        else:
            tree, n_clusters = self._tree(sample, leaves)
            problem = Problem(tree, (sample,), (cell,), (self.beta_,))
            solve = partial(solve_tree, problem, n_clusters, solver, self.start)
            self._set_solution(
                best_of(solve, self.n_init, rng, max_iter=self.max_iter, callback=callback, checkpoint=checkpoint)
            )
        self._remember(replace(sample), sample.n_rows, item_info)
        advise(sample)
        return self

    def _observed(self, *data: Any) -> Observed:
        """What its leaves meet, where they are counted; the combinations at its roots, where they have labels."""
        check_is_fitted(self)
        if self._is_density:
            known = self._sample_of(*data) if data else self._remembered("gg.summarize(model, X)")
            return observed_of(known, self.leaf_labels_, given=True, refit=lambda kept: self._refit(known, kept))
        sample = self.sample(*data) if data else self._remembered("gg.summarize(model, X, y)")
        grid, tops = self._at_root(sample, named=True)
        return observed_of(tops, grid.labels, given=True, refit=lambda kept: self._refit(sample, kept))

    def _at_root(self, sample: Sample, named: bool) -> tuple[Posterior, Sample]:
        return cast(TreePosterior, self.posterior_).at_root(sample, named=named)

    def _grid(self) -> Posterior:
        """The same predictor as a grid over the combinations at its roots."""
        return self._at_root(self._remembered("gg.summarize(model, X, y)"), named=True)[0]

    def _keep_for_questions(self) -> None:
        if self._data is not None and not self._is_density:
            self.cell_moments_ = moments_of(self.posterior_, self._data)

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """Of combinations at the roots; of a density, how often a row is expected among as many as were fitted."""
        if not self._is_density:
            return predicted_by(self._grid(), codes, label, getattr(self, "cell_moments_", None))
        if any((code < 0).any() for code in codes):
            raise GinghamError(
                "A density of more than two columns cannot recommend items: score_samples scores whole rows."
            )
        expected = np.exp(self.density_.log_density(list(codes))) * float(self.summary_.n_observed)
        return Predicted(expected, np.sqrt(expected))

    def explain(self, row: object, *, label: object = None) -> Explanation:
        """Why this prediction, as for every model; ids of the columns are taken together as they are at the roots."""
        if not self._is_density and isinstance(row, (tuple, list)) and len(row) == len(self._item_modes()):
            tree, ids = cast(Tree, self.posterior_.structure), list(row)
            below = {tree.n_leaves + at: nodes for at, nodes in enumerate(tree.children)}

            def joined(node: int) -> str:
                return " · ".join(joined(child) for child in below[node]) if node in below else str(ids[node])

            row = tuple(joined(root) for root in tree.roots) + (("all",) if len(tree.roots) == 1 else ())
        return super().explain(row, label=label)

    def _sample_of(self, X: TableLike, y: None = None, sample_weight: ArrayLike | None = None) -> Sample:
        """Observations without labels in the model's own numbering."""
        return Sample.of(self._columns(X, reset=False).columns, None, sample_weight, modes=self._item_modes())

    def _refit(self, sample: Sample, kept: Bools) -> Refit:
        """The same tree from some of the rows: clusters of its leaves (a density), or of combinations at its roots."""
        model = clone(self).set_params(beta=self.beta_, merges=self.merges_, n_init=1)
        part = rows_of(sample, kept)
        model.fit(*part)
        if self._is_density:
            found = zip(sample.modes, model._item_modes(), model.leaf_labels_)
            return Refit(tuple(renumbered(mode, own, labels) for mode, own, labels in found))
        theirs, _ = model._at_root(model.sample(*part), named=True)
        mine, _ = self._at_root(sample, named=True)
        labels = [
            renumbered(mode, own, at)
            for mode, own, at in zip(mine.structure.modes, theirs.structure.modes, theirs.labels)
        ]
        said = predictions_of(model, rows_of(sample, ~kept)[0], sample)
        return Refit(tuple(labels), said)

    def _fit_density(self, sample: Sample, rng: np.random.Generator) -> Self:
        self.beta_ = DENSITY_BETA if self.beta is None else self.beta
        stages = Stages(self.beta_, self.n_init, self.max_iter)
        leaves = expand_clusters(self.leaves, sample.shape, sample.n_observations)
        if named_auto(self.merges):
            self.merges_ = choose_density_merges(sample, leaves, self._width(leaves), replace(stages, n_init=1), rng)
            price = sequence_price(len(leaves), self.merges_)
            tree, n_clusters = Tree.build(sample.modes, leaves, self.merges_, self._tied(len(leaves)), price)
        else:
            tree, n_clusters = self._tree(sample, leaves)
        self.density_ = stages.solve(tree, n_clusters, sample, rng)
        self.interrupted_ = False  # Ctrl-C ends its kernel with an error
        return self

    def _tree(self, sample: Sample, leaves: Sequence[int]) -> tuple[Tree, tuple[int, ...]]:
        self.merges_ = self._merges(leaves)
        return Tree.build(sample.modes, leaves, self.merges_, self._tied(len(leaves)))

    @property
    def _is_density(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "density"

    def _tied(self, n_leaves: int) -> tuple[tuple[int, ...], ...]:
        if self.tied is None:
            return ()
        if isinstance(self.tied, str):
            if self.tied != "all":
                raise GinghamError(f"tied={self.tied!r} is unknown; give 'all' or groups of nodes.")
            return (tuple(range(n_leaves)),)
        return tuple(tuple(group) for group in self.tied)

    def _leaf_modes(self, columns: Columns) -> list[Mode]:
        """One Mode per column; tied columns number their items together."""
        d = len(columns.columns)
        names = columns.names or default_names(d)
        modes = [Mode.of(column, name) for column, name in zip(columns.columns, names)]
        for group in self._tied(d):
            places = [j for j in group if j < d]
            if places:
                ids = joined_ids([np.asarray(columns.columns[j]) for j in places])
                shared = Mode.of(ids, " ".join(names[j] for j in places))
                for j in places:
                    modes[j] = shared
        return modes

    def _width(self, leaves: Sequence[int]) -> int:
        """Clusters of merges that are not given."""
        return max(leaves) if self.n_inner is None else self.n_inner

    def _merges(self, leaves: Sequence[int]) -> tuple[tuple[int | None, ...], ...]:
        if not isinstance(self.merges, str):
            return tuple(tuple(merge) for merge in self.merges)
        if self.merges != "pairs":
            raise GinghamError(f"merges={self.merges!r} is unknown; give 'pairs', 'auto' or a sequence of merges.")
        width = self._width(leaves)
        top, merges = list(range(len(leaves))), []
        while len(top) > 2:
            pairs = [top[i : i + 2] for i in range(0, len(top), 2)]
            top = []
            for pair in pairs:
                if len(pair) == 1:
                    top += pair
                else:
                    merges.append((*pair, width))
                    top.append(len(leaves) + len(merges) - 1)
        return tuple(merges)

    def _cell(self, alphabet: Alphabet | None, y: AnyArray) -> CellModel:
        auto = named_auto(self.loss)
        loss = default_loss(y, self.alphabet is not None, self.bounds) if auto else self.loss
        cell = make_cell(loss, alphabet, self.bounds)
        check_within(y, cell)
        return cell

    def _alphabet(self, y: AnyArray) -> Alphabet | None:
        if self.alphabet is not None:
            return Alphabet.of(self.alphabet, given=True)
        values = np.unique(y)
        return Alphabet.of(values, given=False) if len(values) <= 1000 else None

    # using

    def _item_modes(self) -> tuple[Mode, ...]:
        tree = self.density_.tree if self._is_density else self.posterior_.structure
        return tree.columns()

    def predict(self, X: TableLike, rule: str | None = None) -> AnyArray:
        """The predicted label of each row.

        ``rule`` is "mean", "median" or "mode"; by default the mean for losses of numbers (absolute,
        quadratic) and the most probable label otherwise.
        """
        codes = self._codes(X)
        cell = self.posterior_.cells[0]
        if rule is None:
            rule = "mean" if cell.ordered else "mode"
        if rule == "mode":
            return self.alphabet_[self.posterior_.predict_distribution(codes).argmax(axis=1)]
        return self.posterior_.predict(codes, rule)

    def score(self, X: TableLike, y: ArrayLike | None = None) -> float:
        """Minus the mean loss of the randomised predictor, or the mean log density: greater is better."""
        if self._is_density:
            return float(self.score_samples(X).mean())
        return -self.posterior_.gibbs_loss(self.sample(X, y))

    @available_if(lambda self: self._is_density)
    def score_samples(self, X: TableLike) -> Floats:
        """ln p of each row under the density tree (``loss="density"``); −∞ for items never seen."""
        check_is_fitted(self, "density_")
        return self.density_.log_density(self._codes(X))

    @property
    def leaf_labels_(self) -> tuple[Ints, ...]:
        """Most probable cluster of each item, from 0, one array per column of X."""
        tree = self.density_.tree if self._is_density else self.posterior_.structure
        labels = self.density_.labels if self._is_density else self.posterior_.labels
        return tuple(labels[mode] for mode in tree.tables[: tree.n_leaves])  # type: ignore[attr-defined]
