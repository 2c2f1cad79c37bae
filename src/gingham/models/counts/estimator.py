"""CoOccurrenceClustering: row and column clusters of a matrix of counts, for scikit-learn users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax, xlogy
from sklearn.base import BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.cells import Mass
from gingham.certificates import Certificate, certify
from gingham.certificates.observed import Population
from gingham.certificates.papers import Statement, theorem12
from gingham.core.problem import Posterior, Structure
from gingham.data.adapt import Names, count_matrix, with_names
from gingham.data.advice import advice_on
from gingham.data.sample import Mode, need_unmasked
from gingham.engine.threads import one_blas_thread
from gingham.errors import GinghamError, RefusedCertificate
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, completed
from gingham.models.base import Persistent, stderr_progress, warn_of
from gingham.models.counts.fit import CountBlocks, CountSolver, GridSize, choose_n_clusters, count_sample, smoothed_lift
from gingham.models.counts.starts import column_table
from gingham.models.questions import Predicted
from gingham.storage import State
from gingham.summary.values import Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.summary.make_summary import ItemInfo

WEIGHTINGS = ("counts", "uniform")
FINEST_READ = 80  # clusters a side that are fitted to choose the size of a summary


@dataclass(eq=False, repr=False)
class CoOccurrenceClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BiclusterMixin, Persistent):
    """Cluster rows and columns of counts so that the blocks keep as much information as possible.

    Maximises ``β N I(C_1; C_2) − Σ_i n_i Ī_i`` (P0 §4.2, Algorithm 2). With β = ∞ that is
    information-theoretic co-clustering; with columns left by themselves, the sequential information
    bottleneck. Absent entries are zeros: nothing was counted there.

    Parameters
    ----------
    n_clusters : int, (int, int), (int, None) or "auto"
        Row and column clusters; None leaves every column by itself. "auto" chooses one size for both
        sides by ``criterion``.
    criterion : {"held-out", "certificate"}
        How "auto" chooses: the size that codes a held-out tenth of the entries best, or the one with the lowest
        certified code length. The certificate holds for all sizes at once (it pays ln m(m + 1) per side for that), so
        the one of the chosen size stays valid.
    beta : float
        Trade-off of information kept against cluster sizes; ``np.inf`` (default) leaves sizes free.
    solver : {"sweep", "concave"}
        Hard moves, or soft memberships at a finite beta.
    start : {"merged", "profiles", "spectral", "random"} or (row labels, column labels)
        "merged" begins with about 3k + 4 clusters per side and merges them.
    n_init : int or "auto"
        Starts, side by side on all cores; the lowest objective is kept. "auto" makes three where both sides are
        clustered, whose local optima differ, and one where columns are not clustered.
    weighting : {"counts", "uniform"}
        "uniform" gives all rows the same weight in the search (not in the facts about the fit).
    smoothing : float
        Pseudo-counts per block in `score_samples`, `density_` and `predict`.
    max_iter, tol : int, float
        Sweeps end when at most this share of the items moves.
    backend : {"auto", "compiled", "torch"}
        "torch", for soft memberships, makes start and sweeps through torch, on a GPU where there is one; "auto" does
        so where it is faster.
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    row_labels_, column_labels_ : arrays of shape (n_rows,), (n_columns,), clusters from 0 (in tables for people from 1)
    row_memberships_, column_memberships_ : q(c|x); columns None: not kept
    blocks_ : array of shape (row clusters, column clusters), counts
    information_, information_kept_ : I(C_1; C_2) in nats, and its share of I(X; Y)
    size_reason_ : why "auto" chose the size that it chose, in a sentence
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

    _saved_attributes = (
        "row_labels_", "column_labels_", "row_memberships_", "column_memberships_", "blocks_", "row_mass_",
        "column_mass_", "information_", "information_kept_", "n_iter_", "converged_",
    )  # fmt: skip
    modes_: tuple[Mode, Mode] = field(init=False)
    row_labels_: Ints = field(init=False)
    column_labels_: Ints = field(init=False)
    row_memberships_: Floats = field(init=False)
    column_memberships_: Floats | None = field(init=False)
    row_mass_: Floats = field(init=False)
    column_mass_: Floats = field(init=False)
    blocks_: Floats = field(init=False)

    n_clusters: int | Sequence[int | None] | str = "auto"
    beta: float = np.inf
    solver: str = "sweep"
    start: str | Sequence[Ints] = "merged"
    n_init: int | str = "auto"
    weighting: str = "counts"
    smoothing: float = 1.0
    max_iter: int = 100
    tol: float = 1e-3
    backend: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    criterion: str = "held-out"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _counts(self, X: object, reset: bool = False, allow_zero: bool = False) -> sparse.csr_array:
        need_unmasked(X, "X")
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        return count_matrix(X, type(self).__name__, allow_zero)

    @interruptible()
    def fit(
        self,
        X: object,
        y: object = None,
        *,
        names: Names = None,
        item_info: ItemInfo | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Cluster a matrix of counts.

        Parameters
        ----------
        X : dense array, scipy sparse matrix, frame or AnnData; rows × columns
        names : mapping from the name of a side to the names of its items, rows first, or a pair of lists, optional
            ``{"document": titles, "word": words}``; a frame and an AnnData object bring their own.
        item_info : mapping from the name of a side to a frame, optional
            What is known of its items, a row each; for summaries only, see :func:`gingham.summarize`.
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        checkpoint : Checkpoint, optional
            Keeps where the fit stands, see ``gingham.fitting.checkpoints``.
        """
        X, *found = with_names(X, names)
        counts = self._counts(X, reset=True)
        checkpoint.bound_to(self, counts)
        self.modes_ = count_modes((found[0], found[1]), counts.shape)
        if self.weighting not in WEIGHTINGS:
            raise GinghamError(f"weighting={self.weighting!r} is unknown; choose one of {', '.join(WEIGHTINGS)}.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        for_sizes, for_starts = rng.spawn(2)
        solver = CountSolver(self.beta, self.solver, self.start, self.max_iter, self.tol, self.backend)
        if callback is None and self.verbose:
            callback = stderr_progress
        with one_blas_thread():
            n_clusters = self._sizes(counts, solver, for_sizes, checkpoint.stage("sizes"))
            n_init = self._starts(n_clusters)
            blocks = solver.best(self._weighted(counts), n_clusters, n_init, for_starts, callback, checkpoint)
        self._keep(blocks, counts, singletons=n_clusters[1] is None)
        self._remember(counts, counts.nnz, item_info)
        counted = [int(np.count_nonzero(mass)) for mass in (self.row_mass_, self.column_mass_)]  # those with a count
        warn_of(advice_on([mode.name for mode in self._modes()], counted, counts.nnz))
        return self

    def observed(self, *data: Any) -> Observed:
        check_is_fitted(self)
        counts = (
            self._counts(with_names(data[0]).matrix, reset=False)
            if data
            else self._remembered("gg.summarize(model, X)")
        )
        sample = count_sample(counts)
        relation = Relation((0, 1), sample.codes, "lift", weights=sample.weights, label="count")
        columns = None if self.column_memberships_ is None else self.column_labels_
        return Observed(
            self._modes(),
            (relation,),
            (self.row_labels_, columns),
            given=(not isinstance(self.n_clusters, str),) * 2,
            refit=lambda kept: self._refit(counts, kept),
            prediction=getattr(self, "size_reason_", ""),
        )

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """How often a pair is expected among as many counts as were fitted, with the spread of such a count."""
        expected = np.exp(self.score_samples(np.column_stack(list(codes)))) * float(self.row_mass_.sum())
        return Predicted(expected, np.sqrt(expected))

    def _refit(self, counts: sparse.csr_array, kept: Bools) -> Refit:
        """Clusters of the same kind from some of the entries; no more a side than a summary can use."""
        part = counts.copy()
        part.data = np.where(kept, counts.data, 0.0)
        part.eliminate_zeros()
        rows, columns = self.n_clusters_
        size = (min(rows, FINEST_READ), None if self.column_memberships_ is None else min(columns, FINEST_READ))
        solver = CountSolver(np.inf, "sweep", "profiles", min(self.max_iter, 8), max(self.tol, 5e-3), self.backend)
        with one_blas_thread():
            found = completed(solver.fit(part, size, np.random.default_rng(0)))
        return Refit((found.labels[0], None if size[1] is None else found.labels[1]))

    def _modes(self) -> tuple[Mode, Mode]:
        """Both sides with the names of their items, as far as they are known."""
        return self.modes_

    def _sizes(
        self, counts: sparse.csr_array, solver: CountSolver, rng: np.random.Generator, checkpoint: Checkpoint
    ) -> GridSize:
        if isinstance(self.n_clusters, str):
            if self.n_clusters != "auto":
                raise GinghamError(f"n_clusters={self.n_clusters!r} is unknown; give numbers or 'auto'.")

            def compare() -> State:
                size, gains = choose_n_clusters(self.criterion, counts, solver, rng, checkpoint=checkpoint)
                return {"size": size, "gains": gains}

            found = checkpoint.result(compare)
            self.sizes_tried_ = found["gains"]
            self.size_reason_ = why_size(self.criterion, found["size"], found["gains"])
            return found["size"], found["size"]
        self.size_reason_ = ""
        given: Any = self.n_clusters
        wanted = [given] * 2 if np.ndim(given) == 0 else list(given)
        if len(wanted) != 2 or wanted[0] is None:
            raise GinghamError(f"n_clusters={self.n_clusters!r}: give one number, (rows, columns) or (rows, None).")
        for m in wanted:
            if m is not None and (isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1):
                raise GinghamError(f"n_clusters={self.n_clusters!r}: a number of clusters is a whole number from 1.")
        rows, columns = (None if m is None else min(int(m), n) for m, n in zip(wanted, counts.shape))
        return int(rows or 1), columns

    def _starts(self, n_clusters: GridSize) -> int:
        if isinstance(self.n_init, str) and self.n_init == "auto":
            return 1 if n_clusters[1] is None or n_clusters == (1, 1) or not isinstance(self.start, str) else 3
        if isinstance(self.n_init, (int, np.integer)) and not isinstance(self.n_init, bool) and self.n_init >= 1:
            return int(self.n_init)
        raise GinghamError(f"n_init={self.n_init!r} must be a whole number from 1, or 'auto'.")

    def _weighted(self, counts: sparse.csr_array) -> sparse.csr_array:
        if self.weighting == "counts":
            return counts
        mass = np.maximum(counts @ np.ones(counts.shape[1]), 1e-300)
        scaled = counts.copy()
        scaled.data = counts.data * np.repeat(mass.sum() / counts.shape[0] / mass, np.diff(counts.indptr))
        return scaled

    def _keep(self, blocks: CountBlocks, counts: sparse.csr_array, singletons: bool) -> Self:
        self.row_labels_, self.column_labels_ = blocks.labels
        self.row_memberships_ = blocks.memberships(0)
        self.column_memberships_ = None if singletons else blocks.memberships(1)
        if self.column_memberships_ is None:
            self.blocks_ = np.ascontiguousarray(column_table(counts, self.row_labels_, blocks.shape[0]).T)
        else:
            known = blocks.table if self.weighting == "counts" else None
            self.blocks_ = self.row_memberships_.T @ (counts @ self.column_memberships_) if known is None else known
        self.row_mass_ = counts @ np.ones(counts.shape[1])
        self.column_mass_ = np.bincount(counts.indices, counts.data, counts.shape[1]).astype(np.float64, copy=False)
        self.information_ = block_information(self.blocks_)
        total = self.row_mass_.sum()
        everything = sum_of_logs(counts.data) + xlogy(total, total)
        everything -= xlogy(self.row_mass_, self.row_mass_).sum() + xlogy(self.column_mass_, self.column_mass_).sum()
        self.information_kept_ = float(self.information_ * total / everything) if everything > 1e-12 else 1.0
        self.objective_ = blocks.objective
        self._set_run(blocks)
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

    def _profiles(self, counts: sparse.csr_array) -> sparse.csr_array | Floats:
        """Counts of new rows in each column cluster, (n, column clusters)."""
        return counts if self.column_memberships_ is None else counts @ self.column_memberships_

    def predict(self, X: object) -> Ints:
        """Row clusters of new rows over the same columns: where their counts cost least."""
        return np.asarray(self.predict_memberships(X).argmax(axis=1))

    def predict_memberships(self, X: object) -> Floats:
        """q(c|x) ∝ qbar(c) exp(Σ_y n(x, y) ln lift(c, y)) of new rows, (n, row clusters)."""
        check_is_fitted(self)
        counts = self._counts(X, allow_zero=True)
        with np.errstate(divide="ignore"):
            prior = np.log(self.row_memberships_.mean(axis=0))
        scores = np.asarray(self._profiles(counts) @ np.log(smoothed_lift(self.blocks_, self.smoothing)).T)
        return np.asarray(softmax(scores + prior, axis=1))

    def transform(self, X: object) -> Floats:
        """Profiles of rows over the column clusters: p(c_2|x), (n, column clusters)."""
        check_is_fitted(self)
        profiles = self._profiles(self._counts(X, allow_zero=True))
        profiles = profiles.toarray() if hasattr(profiles, "toarray") else np.asarray(profiles)
        return profiles / np.maximum(profiles.sum(axis=1, keepdims=True), 1e-300)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_[1]

    def score_samples(self, X: object) -> Floats:
        """ln p̃(row, column) of pairs of positions (N, 2): the smoothed density, P0 (35), second line."""
        check_is_fitted(self)
        pairs = np.asarray(X)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise GinghamError("score_samples takes pairs of positions (row, column), whole numbers of shape (N, 2).")
        n = (len(self.row_labels_), len(self.column_labels_))
        if len(pairs) and (pairs.min() < 0 or (pairs.max(axis=0) >= n).any()):
            raise GinghamError(f"A pair lies outside the {n[0]} × {n[1]} matrix that was fitted.")
        row, column = pairs.T
        items = [np.exp(self.log_item_density(axis)) for axis in (0, 1)]
        clusters = [p if q is None else p @ q for p, q in zip(items, (self.row_memberships_, self.column_memberships_))]
        # p̃(c) with pseudo-counts spread as if the sides were independent; over Π p̃(c_i), so that p̃ sums to one.
        extra = self.smoothing * self.blocks_.size
        expected = np.outer(clusters[0], clusters[1])
        cells = (self.blocks_ + extra * expected) / (self.blocks_.sum() + extra)
        lift = np.divide(cells, expected, out=np.ones(cells.shape), where=expected > 0)
        result: Floats = np.log(items[0][row]) + np.log(items[1][column])
        if self.column_memberships_ is None:
            return result + np.log(lift[self.row_labels_[row], column])
        left = self.row_memberships_ @ lift
        return result + np.log(np.einsum("ec,ec->e", left[row], self.column_memberships_[column]))

    def log_item_density(self, axis: int) -> Floats:
        """ln p̃(x) with one pseudo-count an item's share: (count + 1/n)/(N + 1)."""
        mass = self.row_mass_ if axis == 0 else self.column_mass_
        return np.log((mass + 1.0 / len(mass)) / (mass.sum() + 1.0))

    def score(self, X: object, y: object = None) -> float:
        """Mean log density of the tokens of a matrix of the same shape (higher is better)."""
        check_is_fitted(self)
        entries = self._counts(X).tocoo()
        return float(entries.data @ self.score_samples(np.column_stack(entries.coords)) / entries.data.sum())

    # facts

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """R_1, G, R_2 with P ≈ R_1 G R_2ᵀ: p(x|c_1), p(c_1, c_2), p(y|c_2) (P0 eq. 49)."""
        check_is_fitted(self)
        if self.column_memberships_ is None:
            raise GinghamError("The tri-factorisation needs column clusters: n_clusters=(rows, columns).")
        sides = []
        for q, mass in ((self.row_memberships_, self.row_mass_), (self.column_memberships_, self.column_mass_)):
            joint = q * mass[:, None]
            sides.append(joint / np.maximum(joint.sum(axis=0), 1e-300))
        return sides[0], self.blocks_ / self.blocks_.sum(), sides[1]

    @property
    def posterior_(self) -> Posterior:
        """The memberships as a Posterior with mass cells."""
        check_is_fitted(self)
        if self.column_memberships_ is None:
            raise GinghamError("A posterior over checkerboards needs column clusters: n_clusters=(rows, columns).")
        assign = (self.row_memberships_, self.column_memberships_)
        modes = tuple(Mode(mode.name, np.arange(len(q))) for mode, q in zip(self._modes(), assign))
        cell = Mass()
        return Posterior(Structure.grid(modes), (cell,), assign, (cell.answer(self.blocks_[..., None]),))

    def certify(self, X: object, delta: float = 0.05, population: Population | None = None) -> Certificate:
        """A guarantee on the code length of new co-occurrences; X is the matrix that was fitted.

        Each count must be an independent draw; weights that are not whole numbers are refused. ``population`` says how
        many rows and columns there are in all: X.shape where the matrix has a line for everything that can occur.
        """
        counts = self._counts(X)
        if not (counts.data == np.floor(counts.data)).all():
            raise RefusedCertificate(
                "The entries are weights, not counts: a certificate counts independent draws. Fit raw counts."
            )
        certificate = certify(
            self.posterior_, count_sample(counts), bound="density", delta=delta, population=population
        )
        self.density_ = certificate.model
        return certificate

    def theorem12(self, X: object, delta: float = 0.05) -> Statement:
        """P0's Theorem 12, eq. (36), as a reference; valid for hard clusters only."""
        counts = self._counts(X)
        total = counts.sum()
        items = (self.row_mass_ / total, self.column_mass_ / total)
        posterior = self.posterior_
        names = posterior.structure.titles((0, 1))
        return theorem12(posterior.assign, self.blocks_ / total, items, int(total), delta, names)

    def characteristic(
        self, n_top: int = 10, names: Sequence[object] | None = None, X: object = None
    ) -> dict[str, AnyArray]:
        """The columns that characterise each row cluster, by their contribution to the information.

        Parameters
        ----------
        n_top : int
        names : sequence, optional
            Names of the columns (words); positions, or the frame's own names, without it.
        X : counts, optional
            Needed with column clusters, to see single columns; blocks are used without it.

        Returns
        -------
        dict of columns, ready for a data frame: cluster (from 0), column, contribution (nats), lift
        """
        check_is_fitted(self)
        if X is not None:
            table = self.row_memberships_.T @ self._counts(X)
        elif self.column_memberships_ is None:
            table = self.blocks_
        else:
            raise GinghamError("With column clusters characteristic() needs the counts: characteristic(X=counts).")
        labels = np.asarray(getattr(self, "feature_names_in_", np.arange(table.shape[1])) if names is None else names)
        p = table / table.sum()
        expected = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
        lift = np.divide(p, expected, out=np.ones(p.shape), where=expected > 0)
        contribution = xlogy(p, lift)
        order = np.argsort(-contribution, axis=1, kind="stable")[:, :n_top]
        cluster = np.repeat(np.arange(len(p)), order.shape[1])
        column = order.ravel()
        return {
            "cluster": cluster,
            "column": labels[column],
            "contribution": contribution[cluster, column],
            "lift": lift[cluster, column],
        }

    def _readable_size(self, X: object) -> tuple[int, ...]:
        """The size by the rule of summaries: of the one that was made, or of one that is made of these counts."""
        if self._summary is not None:
            return self._summary.size_by_rule
        from gingham.summary.make_summary import summarize_observed  # loaded when somebody reads

        return summarize_observed(self.observed() if X is None else self.observed(X)).size_by_rule

    def simplified(
        self,
        X: object = None,
        y: object = None,
        max_clusters: int | Sequence[int] | None = None,
        max_loss: float | None = None,
        sample_weight: object = None,
    ) -> Self:
        """Coarser blocks: row clusters, then column clusters, merged where least information is lost.

        The blocks say all that is needed: X may be left out. Without ``max_clusters`` the readable size is taken, the
        coarsest that keeps half of what the best one knows about held-out entries; for that the counts must be at hand.
        """
        from gingham.models.counts.profile_kernels import merge_down  # compiled loops are loaded where they are needed

        check_is_fitted(self)
        if max_loss is not None:
            raise GinghamError("Counts are simplified to numbers of clusters (max_clusters=(5, 4)), not to a loss.")
        if self.column_memberships_ is None:
            raise GinghamError("Columns were left by themselves: fit with column clusters, or with fewer row clusters.")
        if max_clusters is None:
            max_clusters = self._readable_size(X)
        new = copy(self)
        table, memberships = self.blocks_, [self.row_memberships_, self.column_memberships_]
        for axis, wanted in enumerate(np.broadcast_to(np.asarray(max_clusters), (2,)).tolist()):
            if wanted < 1:
                raise GinghamError(f"max_clusters={max_clusters!r}: at least one cluster a side is needed.")
            profiles = table.T if axis == 0 else table  # one column a cluster of this side
            size = profiles.shape[1]
            into = np.eye(min(wanted, size))[merge_down(profiles, min(wanted, size))]
            table = into.T @ table if axis == 0 else table @ into
            memberships[axis] = memberships[axis] @ into
        new.blocks_, (new.row_memberships_, new.column_memberships_) = table, memberships
        new.row_labels_, new.column_labels_ = (q.argmax(axis=1) for q in memberships)
        new.information_ = block_information(table)
        kept = new.information_ / self.information_ if self.information_ > 0 else 1.0
        new.information_kept_ = self.information_kept_ * kept
        return new


def why_size(criterion: str, size: int, values: Mapping[int, float]) -> str:
    """Why "auto" chose a size."""
    tried = ", ".join(str(k) for k in sorted(values))
    if criterion == "certificate":
        return f"{size} clusters a side have the lowest certified code length, {values[size]:.3f} nats, among {tried}."
    if size == 1:
        return f"Of {tried} clusters a side none predicts entries that were set aside better than independence does."
    return (
        f"{size} clusters a side predict a tenth of the entries, set aside, best among {tried}: by {values[size]:.3f} "
        "nats a count better than independence."
    )


def count_modes(found: tuple[Any, Any], shape: Sequence[int]) -> tuple[Mode, Mode]:
    """Both sides from (names of the axes, names of the items), each None where it is not known."""
    axes, items = found
    sides = []
    for axis, n in enumerate(shape):
        name = ("row", "column")[axis] if axes is None else str(axes[axis])
        known = None if items is None else items[axis]
        ids = np.arange(n) if known is None else np.asarray(known)
        if len(ids) != n:
            raise GinghamError(f"names= has {len(ids)} names of {name!r} for {n} {('rows', 'columns')[axis]}.")
        sides.append(Mode(name, ids))
    return sides[0], sides[1]


SMALL = 2**16  # counts up to this one are sorted by their value: a logarithm takes longer


def sum_of_logs(counts: Floats) -> float:
    """Σ n ln n of positive counts."""
    if counts.max(initial=0.0) < SMALL and bool((counts[:64] == np.floor(counts[:64])).all()):
        whole = counts.astype(np.int64)
        if np.array_equal(whole, counts):
            often = np.bincount(whole)
            return float(often @ xlogy(np.arange(len(often)), np.arange(len(often))))
    return float(counts @ np.log(counts))


def block_information(table: Floats) -> float:
    """I of a table of counts, nats."""
    total = table.sum()
    terms = xlogy(table, table).sum() + xlogy(total, total)
    for axis in (0, 1):
        margin = table.sum(axis=axis)
        terms -= xlogy(margin, margin).sum()
    return max(0.0, float(terms / total))
