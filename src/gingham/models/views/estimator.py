"""Pairwise cluster analysis (P3) and kernel CCA: several views of the same objects in; scores, clusters, mates out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Tags, TransformerTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.data import Mode
from gingham.data.views import (
    Matrix,
    as_view,
    as_views,
    densely,
    feature_names,
    objects_of,
    per_view,
    which_views,
)
from gingham.errors import GinghamError, positive_integer
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.models.base import Persistent
from gingham.models.views import fit as multiview
from gingham.models.views import view_validation as heldout
from gingham.models.views.representations import as_kernels
from gingham.models.views.retrieval import component_weights, mean_reciprocal_ranks, nearest
from gingham.summary.values import Observed, Relation

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

MOST_FEATURES = 600  # of all views together that a summary speaks of
CHOOSING = 2000  # objects that choose ridge and components where only products with the views are taken


@dataclass(eq=False, repr=False)
class ViewsModel(Persistent):
    """Everything but the eigenproblem, which a subclass names in ``_method``."""

    _saved_attributes = (
        "_functions", "n_components_", "ridge_", "strengths_", "consensus_", "correlations_", "spread_",
        "labels_",
    )  # fmt: skip
    choice_ = cast("heldout.RidgeChoice | None", None)
    _method: ClassVar[multiview.Method]

    n_components: int | None = None
    _: KW_ONLY
    kernel: Any = "linear"
    ridge: Any = None
    kernel_params: Any = None
    solver: str = "auto"
    weighting: float = 0.5
    background: float = 0.0
    cv: int = 3
    random_state: Seed = 0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        tags.input_tags.two_d_array = False  # a list of them, one per view
        return tags

    def fit(
        self,
        views: Sequence[TableLike | None],
        y: object = None,
        *,
        present: ArrayLike | None = None,
        names: Sequence[object] | None = None,
        item_info: ItemInfo | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Find the components that the views share.

        Parameters
        ----------
        views : list of array-like, scipy sparse matrix or data frame, each of shape (n_samples, n_features_i)
            Row r of every view describes object r. With ``kernel="precomputed"``, (n_samples, n_samples).
        y : ignored
        present : Boolean array of shape (n_samples, n_views), optional
            Which objects have which view, where some lack some; their rows in a view they lack are not read. Every
            object needs one view, and what it lacks, ``transform`` and ``retrieve`` still say of it from the others.
        names : sequence of n_samples names of the objects, optional
        item_info : mapping {"object": frame}, optional
            What is known of the objects, a row each; for summaries only, see :func:`gingham.summarize`.
        checkpoint : Checkpoint, optional
            Keeps which folds are done, see ``gingham.fitting.checkpoints``.
        """
        has = which_views(present, len(views))
        matrices = as_views(views, at_least=2, present=has)
        checkpoint.bound_to(self, list(views), present)
        if matrices[0].shape[0] < 3:
            raise GinghamError(f"{matrices[0].shape[0]} object(s) cannot be correlated: three or more are needed.")
        kernels = as_kernels(self.kernel, self.kernel_params, len(matrices))
        ridges = self._ridges(len(matrices))
        if self.n_components is not None:
            positive_integer("n_components", self.n_components, ", or None to choose it")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        having = None if has is None else list(has.T)
        representations = multiview.represent(matrices, kernels, self.solver, having)
        self.choice_ = None
        n_components, self.ridge_ = self.n_components, ridges[0]
        if len(ridges) > 1 or n_components is None:
            tried = representations
            if representations[0].products is not None:  # too wide and too many: some objects choose
                some = np.sort(np.random.default_rng(seed).permutation(matrices[0].shape[0])[:CHOOSING])
                parts = [matrix[some] for matrix in matrices]
                having = None if having is None else [each[some] for each in having]
                tried = multiview.represent(parts, kernels, "exact", having)
            self.choice_ = heldout.choose(
                tried, ridges, n_components, seed, type(self)._method, self.cv, self.weighting, checkpoint
            )
            self.ridge_, n_components = self.choice_.ridges, self.choice_.n_components
        found = multiview.solve(representations, self.ridge_, n_components, seed, type(self)._method)
        self.n_components_ = n_components
        self.strengths_, self.consensus_ = found.strengths, found.consensus
        self._functions = tuple(r.score_function(own) for r, own in zip(representations, found.coefficients))
        self.n_features_in_ = [int(matrix.shape[1]) for matrix in matrices]
        self.feature_names_in_ = [feature_names(view) for view in views]
        scores = self._scores_where(matrices, has)
        self.correlations_ = multiview.mean_correlations(scores)
        self.spread_ = np.nanmean(scores, axis=0).std(axis=0)
        self.labels_ = self._labels(np.nanmean(scores, axis=0))
        size = sum(matrix.shape[0] * matrix.shape[1] for matrix in matrices)
        self._remember((matrices, names, has), size, item_info, (objects_of(matrices),))
        return self

    def _scores_where(self, matrices: Sequence[Matrix], has: Bools | None) -> list[Floats]:
        """Scores of every view, NaN for objects that lack it."""
        every = [score(matrix) for score, matrix in zip(self._functions, matrices)]
        return every if has is None else [np.where(own[:, None], each, np.nan) for each, own in zip(every, has.T)]

    def _observed(self, *data: Any) -> Observed:
        """Objects by their clusters × features by the component they go with, in standard deviations."""
        check_is_fitted(self)
        matrices, names, has = (
            (as_views(data[0], at_least=2), None, None) if data else self._remembered("gg.summarize(model, views)")
        )
        if any(function.inputs.kernel.function == "precomputed" for function in self._functions):
            raise GinghamError("Precomputed kernels have no features to show.")
        n, d = matrices[0].shape[0], len(self._functions)
        mean = np.nanmean(self._scores_where(matrices, has), axis=0)
        parts, titles = [], []
        for number, matrix in enumerate(matrices):
            known = self.feature_names_in_[number] if hasattr(self, "feature_names_in_") else None
            own = [f"{number + 1}.{j}" for j in range(matrix.shape[1])] if known is None else [str(k) for k in known]
            dense = densely(matrix[:, : MOST_FEATURES // d])
            there = np.ones(n, dtype=bool) if has is None else has[:, number]
            spread = np.maximum(dense[there].std(axis=0), 1e-12)
            parts.append((dense - dense[there].mean(axis=0)) / spread * there[:, None])
            titles += own[: dense.shape[1]]
        values = np.hstack(parts)
        spread = np.where(mean.std(axis=0) > 0, mean.std(axis=0), 1.0)
        goes_with = np.abs(values.T @ (mean / spread)).argmax(axis=1)
        rows, columns = np.indices(values.shape, dtype=np.int32).reshape(2, -1)
        relation = Relation((0, 1), (rows, columns), "difference", values.ravel(), label="value")
        objects = Mode("object", np.arange(n) if names is None else np.asarray(names))
        modes = (objects, Mode("feature", np.array(titles)))
        return Observed(modes, (relation,), (self._labels(mean) + 1, goes_with), given=(True, True))

    def transform(self, views: Sequence[TableLike | None]) -> list[Any]:
        """Scores of every view, a list of arrays (or frames, see ``set_output``) of shape (n, n_components_).

        A view that was not observed is given, and comes back, as None.
        """
        return [None if scores is None else self._framed(scores, view) for scores, view in self._scored(views)]

    def fit_transform(self, views: Sequence[TableLike | None], y: object = None) -> list[Any]:
        """Fit, then the scores of every view."""
        return self.fit(views).transform(views)

    def scores(self, view: int, X: TableLike) -> Floats:
        """F_view(x) of objects seen in one view only, shape (n, n_components_)."""
        check_is_fitted(self)
        if not 0 <= view < len(self._functions):
            raise GinghamError(f"There is no view {view}: views are numbered 0 to {len(self._functions) - 1}.")
        return self._functions[int(view)](as_view(X, f"view {view}"))

    def predict(self, views: Sequence[TableLike | None]) -> Ints:
        """Cluster of new objects from the views that were observed (None for the others), −1 for background."""
        observed = [scores for scores, _ in self._scored(views) if scores is not None]
        return self._labels(np.mean(observed, axis=0))

    def fit_predict(self, views: Sequence[TableLike | None], y: object = None) -> Ints:
        """Fit and return ``labels_``."""
        return self.fit(views).labels_

    def memberships(self, views: Sequence[TableLike | None], threshold: float = 1.0) -> list[Bools]:
        """Indicators f_c(x) = [F_c(x) ≥ threshold standard deviations], one (n, n_components_) array per view.

        The pairwise clusters h = (f, g) of P3 §3.1, ready for :class:`ExplanatoryClustering`.
        """
        return [scores >= threshold * self.spread_ for scores, _ in self._scored(views, missing=False)]

    def correlations(self, views: Sequence[TableLike | None]) -> Floats:
        """ρ of every component, averaged over pairs of views, on any objects, shape (n_components_,)."""
        return multiview.mean_correlations([scores for scores, _ in self._scored(views, missing=False)])

    def retrieve(
        self, query_view: int, queries: TableLike, document_view: int, documents: TableLike, n_documents: int = 1
    ) -> tuple[Ints, Floats]:
        """The documents most like each query, which may be of another view.

        Returns rows of ``documents``, best first, and the cosines of their score vectors with the query's, components
        weighted by strength^weighting; both of shape (n_queries, n_documents).
        """
        asked, offered = self._embedded(query_view, queries), self._embedded(document_view, documents)
        if not 1 <= n_documents <= len(offered):
            raise GinghamError(f"n_documents={n_documents} must lie between 1 and {len(offered)}, the documents given.")
        return nearest(asked, offered, n_documents)

    def mrr(self, views: Sequence[TableLike | None]) -> float:
        """Mean reciprocal rank of the mate among all rows, averaged over ordered pairs of views: P3 (41)."""
        check_is_fitted(self)
        matrices = as_views(views, at_least=len(self._functions))
        embedded = [self._embedded(number, matrix) for number, matrix in enumerate(matrices)]
        return float(mean_reciprocal_ranks(embedded, (self.n_components_,))[0])

    def score(self, views: Sequence[TableLike | None], y: object = None) -> float:
        """Mean correlation of the components on the given objects: what cross-validation maximises."""
        return float(np.mean(self.correlations(views)))

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the score columns."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{c}" for c in range(self.n_components_)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose "default", "pandas" or "polars" for what ``transform`` returns per view."""
        if transform is not None:
            self._output = transform
        return self

    @property
    def coef_(self) -> list[Floats | None]:
        """Weights of the features, shape (n_features_i, n_components_), for linear kernels; None for others."""
        check_is_fitted(self)
        return [f.weights if f.inputs.kernel.linear else None for f in self._functions]

    def _ridges(self, n_views: int) -> list[tuple[float, ...]]:
        """Candidate ridges, each one number per view."""
        if self.ridge is None:
            return [(ridge,) * n_views for ridge in heldout.RIDGES]
        given = tuple(float(ridge) for ridge in per_view(self.ridge, n_views, "ridge"))
        if not all(ridge > 0 and np.isfinite(ridge) for ridge in given):
            raise GinghamError(f"ridge={self.ridge} must be positive: without it any two views correlate perfectly.")
        return [given]

    def _scored(self, views: Sequence[TableLike | None], missing: bool = True) -> list[tuple[Any, Any]]:
        """(scores, view as given) of every view."""
        check_is_fitted(self)
        matrices = as_views(views, at_least=len(self._functions), missing=missing)
        if len(matrices) != len(self._functions):
            raise GinghamError(f"{len(matrices)} views given, {len(self._functions)} were fitted.")
        return [
            (None if matrix is None else function(matrix), view)
            for function, matrix, view in zip(self._functions, matrices, views)
        ]

    def _embedded(self, view: int, X: TableLike) -> Floats:
        """Scores with the components weighted for retrieval: (γ_c/γ_0)^weighting."""
        scores = self.scores(view, X)
        return np.asarray(scores * component_weights(self.strengths_, self.weighting))

    def _labels(self, scores: Floats) -> Ints:
        """argmax_c |F_c| in standard deviations of the training scores; −1 where none reaches ``background``."""
        strength = np.abs(scores) / np.where(self.spread_ > 0, self.spread_, 1.0)
        labels = np.argmax(strength, axis=1)
        return np.where(strength.max(axis=1) >= self.background, labels, -1)

    def _framed(self, scores: Floats, view: Any) -> Any:
        names = self.get_feature_names_out()
        framer = FunctionTransformer(feature_names_out=lambda _, __: names)
        if hasattr(self, "_output"):
            framer.set_output(transform=self._output)
        framed = framer.fit_transform(scores)
        if hasattr(framed, "index") and hasattr(view, "index") and not callable(view.index):
            framed.index = view.index
        return framed


class PairwiseClusterAnalysis(ViewsModel):
    r"""What do several views of the same objects say in common? P3, for any number of views.

    Solves the parallel sum :math:`(\sum_i (K_i + \tau_i I)^{-1})\, c = c/\gamma` for centred kernels of mean
    diagonal one: a single eigenproblem of the size of the sample whatever the number of views. The score of an
    object in view i, :math:`F_i(x) = k_i(x)^\top (K_i + \tau_i I)^{-1} c`, is the ridge regression of the
    consensus c on that view.

    Parameters
    ----------
    n_components : int, optional
        Components; chosen by held-out correlation when None.
    kernel : str, callable or list of them, default "linear"
        A name of ``sklearn.metrics.pairwise_kernels``, a function of two matrices, or "precomputed"; one for all
        views or one per view.
    ridge : float or list of float, optional
        τ in units of the kernel's mean diagonal; when None, the one by which held-out objects find their mates best.
        Clusters against a background need 1 or more.
    kernel_params : dict or list of dict, optional
        Parameters of the kernels, for instance ``{"gamma": 0.1}``.
    solver : {"auto", "exact", "primal"}
        "exact" holds the n × n kernels, "primal" (linear kernels) only products with the views. "auto": primal for
        linear kernels of more than 4000 objects. Of more objects with other kernels, give features that stand for the
        kernel (``sklearn.kernel_approximation.Nystroem``) as views with a linear kernel.
    weighting : float
        Retrieval weights component c by (γ_c/γ_0)^weighting.
    background : float
        Objects whose strongest component stays below so many standard deviations get the label −1.
    cv : int
        Folds when ridge or n_components is chosen.
    random_state : int, RandomState or None
        Folds, the first Krylov block.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Strongest component of each object, from 0; −1 for background (0 in tables for people, which count from 1).
    correlations_ : ndarray of shape (n_components_,)
        ρ on the training objects, averaged over pairs of views (P3's (39), corrected). They are optimistic: use
        ``correlations(held_out_views)``.
    strengths_ : ndarray of shape (n_components_,)
        γ, decreasing.
    consensus_ : ndarray of shape (n_samples, n_components_)
        c, mean square one.
    coef_ : list of ndarray
        Feature weights, for linear kernels.
    ridge_, n_components_ : the values in use.
    choice_ : RidgeChoice or None
        Held-out ranks of the mates and correlations behind the choice of ridge and n_components.

    Notes
    -----
    With one ridge for all views this is regularised MAX-VAR kernel CCA: 1/γ = (s − μ)/τ with μ the eigenvalues of
    Σ K_i(K_i + τI)⁻¹ over s views. Expect the retrieval of multi-view kernel CCA, at a fraction of its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham import PairwiseClusterAnalysis
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(200, 2))
    >>> views = [hidden @ rng.normal(size=(2, 5)) + rng.normal(size=(200, 5)) for _ in range(3)]
    >>> model = PairwiseClusterAnalysis(n_components=2, ridge=0.1).fit(views)
    >>> model.transform(views)[0].shape
    (200, 2)
    """

    _method: ClassVar[multiview.Method] = staticmethod(multiview.pairwise)


class KernelCCA(ViewsModel):
    r"""Multi-view kernel CCA with a ridge, the comparison for :class:`PairwiseClusterAnalysis`.

    Maximises :math:`\sum_{i \ne j} \mathrm{cov}(F_i, F_j)` under
    :math:`\sum_i \alpha_i^\top (K_i^2 + \tau_i K_i) \alpha_i = 1`: an eigenproblem of the size of all views
    together. Parameters and attributes are those of :class:`PairwiseClusterAnalysis`; ``strengths_`` are the
    eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(60, 1))
    >>> views = [shared + 0.1 * rng.normal(size=(60, 3)) for _ in range(2)]
    >>> model = gg.KernelCCA(1, ridge=0.1).fit(views)
    >>> [view.shape for view in model.transform(views)]
    [(60, 1), (60, 1)]
    """

    _method: ClassVar[multiview.Method] = staticmethod(multiview.correlated)
