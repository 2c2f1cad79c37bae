"""CoOccurrenceClustering: row and column clusters of a matrix of counts, for scikit-learn users."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax, xlogy
from sklearn.base import BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import Bools, Floats, Ints
from gingham.data.adapt import count_matrix
from gingham.errors import GinghamError
from gingham.fitting.checkpoint import once
from gingham.fitting.loop import Callback, lowest, progress
from gingham.kernels.threads import one_blas_thread
from gingham.models.base import Persistent, stderr_progress
from gingham.models.counts.fit import Blocks, CountSolver, smoothed_lift
from gingham.models.counts.results import CountFacts, information
from gingham.models.counts.size import choose_size
from gingham.models.counts.starts import profile_table

WEIGHTINGS = ("counts", "uniform")


class CoOccurrenceClustering(CountFacts, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BiclusterMixin, Persistent):
    """Cluster rows and columns of counts so that the blocks keep as much information as they can.

    Maximises ``β N I(C_1; C_2) − Σ_i n_i Ī_i`` (P0 §4.2, Algorithm 2). With β = ∞ that is
    information-theoretic co-clustering; with columns left by themselves, the sequential information
    bottleneck. Absent entries are zeros: nothing was counted there.

    Parameters
    ----------
    n_clusters : int, (int, int), (int, None) or "auto"
        Row and column clusters; None leaves every column by itself. "auto" chooses one size for both
        sides by ``criterion``.
    criterion : {"held-out", "certificate"}
        How "auto" chooses: the size that codes a tenth of the tokens best that was set aside, or the one
        with the lowest certified code length. The certificate holds for all sizes at once (it pays
        ln m(m + 1) a side for that), so the one of the chosen size stays valid.
    beta : float
        Trade-off of information kept against cluster sizes; ``np.inf`` (default) leaves sizes free.
    solver : {"sweep", "concave"}
        Hard moves, or soft memberships at a finite beta.
    start : {"merged", "profiles", "spectral", "random"} or (row labels, column labels)
        "merged" begins with about 3k + 4 clusters a side and merges them.
    n_init : int or "auto"
        Starts, side by side on all cores; the lowest objective is kept. "auto" makes three where both sides are
        clustered, whose local optima differ, and one where columns stand by themselves.
    weighting : {"counts", "uniform"}
        "uniform" gives all rows the same weight in the search (not in the facts about the fit).
    smoothing : float
        Pseudo-counts a block in `score_samples`, `density_` and `predict`.
    max_iter, tol : int, float
        Sweeps end when at most this share of the items moves.
    backend : {"auto", "compiled", "reference"}
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    row_labels_, column_labels_ : arrays of shape (n_rows,), (n_columns,)
    row_memberships_, column_memberships_ : q(c|x); columns None: not kept
    blocks_ : array of shape (row clusters, column clusters), counts
    information_, information_kept_ : I(C_1; C_2) in nats, and its share of I(X; Y)
    sizes_tried_ : with n_clusters="auto", what each size is worth: held-out nats gained over independence, or
        the certified code length in nats
    objective_, trace_, n_iter_, converged_

    Examples
    --------
    >>> import numpy as np
    >>> from gingham import CoOccurrenceClustering
    >>> counts = np.kron([[9, 1], [1, 9]], np.ones((3, 4), int))
    >>> model = CoOccurrenceClustering(n_clusters=2, random_state=0).fit(counts)
    >>> len(set(model.row_labels_[:3])), len(set(model.row_labels_))
    (1, 2)
    """

    def __init__(
        self,
        n_clusters: Any = "auto",
        beta: float = np.inf,
        solver: str = "sweep",
        start: Any = "merged",
        n_init: int | str = "auto",
        weighting: str = "counts",
        smoothing: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-3,
        backend: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        criterion: str = "held-out",
    ) -> None:
        self.n_clusters = n_clusters
        self.beta = beta
        self.solver = solver
        self.criterion = criterion
        self.start = start
        self.n_init = n_init
        self.weighting = weighting
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _counts(self, X: Any, reset: bool) -> Any:
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1
        )
        return count_matrix(X, type(self).__name__)

    def fit(self, X: Any, y: Any = None, *, callback: Callback | None = None) -> Self:
        """Cluster a matrix of counts (dense, scipy sparse or frame; rows × columns)."""
        counts = self._counts(X, reset=True)
        if self.weighting not in WEIGHTINGS:
            raise GinghamError(f"weighting={self.weighting!r} is unknown; choose one of {', '.join(WEIGHTINGS)}.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        solver = CountSolver(self.beta, self.solver, self.start, self.max_iter, self.tol, self.backend)
        with one_blas_thread():
            n_clusters = self._sizes(counts, solver, rng)
        n_init = self._starts(n_clusters)
        if callback is None and self.verbose:
            callback = stderr_progress
        tell = progress(callback, n_init, self.max_iter)
        with one_blas_thread():
            found = solver.fits(self._weighted(counts), [n_clusters] * n_init, rng, tell)
            best = lowest(found, lambda blocks: blocks.objective.total, n_init)
        return self._keep(best, counts, singletons=n_clusters[1] is None)

    def _sizes(self, counts: Any, solver: CountSolver, rng: np.random.Generator) -> tuple[int, int | None]:
        if isinstance(self.n_clusters, str):
            if self.n_clusters != "auto":
                raise GinghamError(f"n_clusters={self.n_clusters!r} is unknown; give numbers or 'auto'.")

            def chosen() -> dict[str, Any]:
                size, gains = choose_size(self.criterion, counts, solver, rng)
                return {"size": size, "gains": gains}

            found = once(chosen, rng)
            self.sizes_tried_ = found["gains"]
            return found["size"], found["size"]
        wanted = [self.n_clusters] * 2 if np.ndim(self.n_clusters) == 0 else list(self.n_clusters)
        if len(wanted) != 2 or wanted[0] is None:
            raise GinghamError(f"n_clusters={self.n_clusters!r}: give one number, (rows, columns) or (rows, None).")
        for m in wanted:
            if m is not None and (isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1):
                raise GinghamError(f"n_clusters={self.n_clusters!r}: a number of clusters is a whole number from 1.")
        rows, columns = (None if m is None else min(int(m), n) for m, n in zip(wanted, counts.shape))
        return int(rows or 1), columns

    def _starts(self, n_clusters: tuple[int, int | None]) -> int:
        if isinstance(self.n_init, str) and self.n_init == "auto":
            return 1 if n_clusters[1] is None or n_clusters == (1, 1) or not isinstance(self.start, str) else 3
        if isinstance(self.n_init, (int, np.integer)) and not isinstance(self.n_init, bool) and self.n_init >= 1:
            return int(self.n_init)
        raise GinghamError(f"n_init={self.n_init!r} must be a whole number from 1, or 'auto'.")

    def _weighted(self, counts: Any) -> Any:
        if self.weighting == "counts":
            return counts
        mass = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1e-300)
        scaled = counts.copy()
        scaled.data = counts.data / np.repeat(mass, np.diff(counts.indptr)) * (counts.sum() / counts.shape[0])
        return scaled

    def _keep(self, blocks: Blocks, counts: Any, singletons: bool) -> Self:
        self.row_labels_, self.column_labels_ = blocks.labels
        hard = np.eye(blocks.shape[0])[self.row_labels_] if blocks.assigns is None else blocks.assigns[0]
        self.row_memberships_ = hard
        if singletons:
            self.column_memberships_ = None
            self.blocks_ = profile_table(counts, self.row_labels_, blocks.shape[0])
        else:
            self.column_memberships_ = (
                np.eye(blocks.shape[1])[self.column_labels_] if blocks.assigns is None else blocks.assigns[1]
            )
            self.blocks_ = self.row_memberships_.T @ (counts @ self.column_memberships_)
        self.row_mass_ = np.asarray(counts.sum(axis=1)).ravel()
        self.column_mass_ = np.asarray(counts.sum(axis=0)).ravel()
        self.information_ = information(self.blocks_)
        entries = counts.data
        total = counts.sum()
        everything = entries @ np.log(entries) + xlogy(total, total)  # no stored zeros
        everything -= xlogy(self.row_mass_, self.row_mass_).sum() + xlogy(self.column_mass_, self.column_mass_).sum()
        self.information_kept_ = float(self.information_ * total / everything) if everything > 1e-12 else 1.0
        self.objective_ = blocks.objective
        self._set_course(blocks)
        return self

    # what scikit-learn's biclustering offers

    @property
    def n_clusters_(self) -> tuple[int, int]:
        return self.blocks_.shape[0], self.blocks_.shape[1]

    @property
    def rows_(self) -> Bools:
        """Which rows each block holds, (blocks, n_rows), row cluster by row cluster."""
        check_is_fitted(self)
        r, c = self.n_clusters_
        return np.repeat(np.arange(r)[:, None] == self.row_labels_, c, axis=0)

    @property
    def columns_(self) -> Bools:
        """Which columns each block holds, (blocks, n_columns)."""
        check_is_fitted(self)
        r, c = self.n_clusters_
        return np.tile(np.arange(c)[:, None] == self.column_labels_, (r, 1))

    # predictions

    def _lift(self) -> Floats:
        return smoothed_lift(self.blocks_, self.smoothing)

    def _profiles(self, counts: Any) -> Any:
        """Counts of new rows in each column cluster, (n, column clusters)."""
        return counts if self.column_memberships_ is None else counts @ self.column_memberships_

    def predict(self, X: Any) -> Ints:
        """Row clusters of new rows over the same columns: where their counts cost least."""
        return np.asarray(self.predict_memberships(X).argmax(axis=1))

    def predict_memberships(self, X: Any) -> Floats:
        """q(c|x) ∝ qbar(c) exp(Σ_y n(x, y) ln lift(c, y)) of new rows, (n, row clusters)."""
        check_is_fitted(self)
        counts = self._new_rows(X)
        with np.errstate(divide="ignore"):
            prior = np.log(self.row_memberships_.mean(axis=0))
        scores = np.asarray(self._profiles(counts) @ np.log(self._lift()).T)
        return np.asarray(softmax(scores + prior, axis=1))

    def transform(self, X: Any) -> Floats:
        """Profiles of rows over the column clusters: p(c_2|x), (n, column clusters)."""
        check_is_fitted(self)
        profiles = self._profiles(self._new_rows(X))
        profiles = profiles.toarray() if hasattr(profiles, "toarray") else np.asarray(profiles)
        return profiles / np.maximum(profiles.sum(axis=1, keepdims=True), 1e-300)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_[1]

    def _new_rows(self, X: Any) -> Any:
        """Counts of new rows; rows of zeros are allowed here."""
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        return count_matrix(X, type(self).__name__, allow_zero=True)

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self, name, None) for name in _KEPT}

    def _restore(self, state: dict[str, Any]) -> None:
        for name in _KEPT:
            if state[name] is not None or name == "column_memberships_":
                setattr(self, name, state[name])


_KEPT = (
    "row_labels_", "column_labels_", "row_memberships_", "column_memberships_", "blocks_", "row_mass_", "column_mass_",
    "information_", "information_kept_", "n_iter_", "converged_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
