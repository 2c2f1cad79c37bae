"""CoOccurrenceClustering: row and column clusters of a matrix of counts, for scikit-learn users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax, xlogy
from sklearn.base import BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import Bools, Floats, Ints
from gingham.cells import Mass
from gingham.certificates import Certificate, certify
from gingham.certificates.observed import Population
from gingham.core.problem import Posterior, Structure, contract
from gingham.data.adapt import Names, count_matrix, frame_of, id_columns, with_names
from gingham.data.advice import advice_on
from gingham.data.sample import Mode, Moments, need_unmasked
from gingham.data.sources import is_stream, opened
from gingham.engine.threads import one_blas_thread
from gingham.errors import GinghamError, RefusedCertificate, one_of, positive_integer
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback
from gingham.models.base import Persistent, stderr_progress, warn_of
from gingham.models.counts.fit import CountBlocks, CountSolver, GridSize, choose_n_clusters, count_sample
from gingham.models.counts.starts import column_table
from gingham.models.counts.tensor import Counts, CountsT, count_tensor, side_names
from gingham.models.listed import Listed
from gingham.models.questions import Predicted
from gingham.storage import State
from gingham.summary.values import Observed, Refit, Relation, smoothed_lift

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

WEIGHTINGS = ("counts", "uniform")
FINEST_READ = 80  # clusters a side that are fitted to choose the size of a summary


@dataclass(eq=False, repr=False)
class CoOccurrenceClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BiclusterMixin, Persistent):
    """Cluster rows and columns of counts so that the blocks keep as much information as possible.

    Maximises ``β N I(C_1; …; C_d) − Σ_i n_i Ī_i`` (P0 §4.2, Algorithm 2). With β = ∞ that is
    information-theoretic co-clustering; with columns left by themselves, the sequential information
    bottleneck. Absent entries are zeros: nothing was counted there.

    Counts may have more than two sides (who bought what, and when): a tensor, or a table with one row per observation.
    Then `labels_`, `memberships_`, `blocks_`, `score_samples` and `certify` have as many; what is said of rows and
    columns alone (`predict`, `transform`, `factors_`) is refused.

    Parameters
    ----------
    n_clusters : int, (int, int, …), (int, None) or "auto"
        Clusters of every side, rows first; None leaves every column of a matrix by itself. "auto" chooses one size for
        all sides by ``criterion``.
    criterion : {"held-out", "certificate"}
        How "auto" chooses: the size that codes a held-out tenth of the entries best, or the one with the lowest
        certified code length. The certificate holds for all sizes at once (it pays ln m(m + 1) per side for that), so
        the one of the chosen size stays valid.
    beta : float
        Trade-off of information kept against cluster sizes; ``np.inf`` (default) leaves sizes free.
    solver : {"sweep", "concave"}
        Hard moves, or soft memberships at a finite beta.
    start : {"merged", "profiles", "random"} or (row labels, column labels)
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
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    labels_ : tuple of arrays of shape (n_i,), clusters of every side from 0 (in tables for people from 1)
    memberships_ : tuple of arrays q(c|x) of shape (n_i, m_i); None for columns that were left by themselves
    row_labels_, column_labels_ : those of the first two sides
    blocks_ : array of shape (m_1, …, m_d), counts
    information_, information_kept_ : I(C_1; …; C_d) in nats, and its share of that of the items
    sizes_tried_ : with n_clusters="auto", what each size is worth: held-out nats gained over independence, or
        the certified code length in nats
    trace_, n_iter_, converged_

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
        "labels_", "memberships_", "blocks_", "_masses", "information_", "information_kept_", "n_iter_", "converged_",
        "_table",
    )  # fmt: skip
    modes_: tuple[Mode, ...] = field(init=False)
    labels_: tuple[Ints, ...] = field(init=False)
    memberships_: tuple[Floats | None, ...] = field(init=False)
    _masses: tuple[Floats, ...] = field(init=False)
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
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    criterion: str = "held-out"

    # the columns of the table that was fitted, and that of its weights
    _table: tuple[list[str], str | None] | None = field(default=None, init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _counts(self, X: Any, reset: bool = False, allow_zero: bool = False) -> sparse.csr_array:
        need_unmasked(X, "X")
        if not reset and len(self.modes_) > 2:
            raise GinghamError("This is for a matrix of counts; the model was fitted to counts of more than two sides.")
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        return count_matrix(X, type(self).__name__, allow_zero)

    def _any_counts(self, X: Any) -> Counts:
        """A matrix, a tensor or a table of observations, as they were fitted."""
        if len(self.modes_) > 2 and (self._table is None or sparse.issparse(X)):
            return count_tensor(X, type(self).__name__)
        if self._table is None:
            return self._counts(X)
        axes, weight = self._table
        ids, weights = _table_columns(X, axes, weight)
        codes = [mode.encode(column) for mode, column in zip(self.modes_, ids)]
        if any((code < 0).any() for code in codes):
            raise GinghamError("Some ids were not in the training table.")
        return _counted(codes, weights, self.modes_, type(self).__name__)

    def _first_counts(self, X: Any, axes: Sequence[str] | None, weight: str | None, names: Names) -> Counts:
        """The counts of a fit; sets the modes."""
        if is_stream(X):
            X, _, weight = opened(X, None, weight)
            axes = id_columns(X).names if axes is None else axes
        self._table = None if axes is None else (list(axes), weight if isinstance(weight, str) else None)
        if axes is not None:
            ids, weights = _table_columns(X, axes, weight)
            self.modes_ = tuple(Mode.of(column, name) for column, name in zip(ids, axes))
            self.n_features_in_ = len(self.modes_)
            codes = [mode.encode(column) for mode, column in zip(self.modes_, ids)]
            return _counted(codes, weights, self.modes_, type(self).__name__)
        if len(getattr(X, "shape", ())) > 2:
            counts = count_tensor(X, type(self).__name__)
            given = dict(zip(side_names(len(counts.shape)), names or [None] * len(counts.shape)))
            items = dict(names) if isinstance(names, Mapping) else given
            self.modes_ = count_modes((list(items), list(items.values())), counts.shape)
            self.n_features_in_ = counts.shape[1]
            return counts
        X, *found = with_names(X, names)
        matrix = self._counts(X, reset=True)
        self.modes_ = count_modes((found[0], found[1]), matrix.shape)
        return matrix

    @interruptible()
    def fit(
        self,
        X: object,
        y: object = None,
        *,
        axes: Sequence[str] | None = None,
        weight: str | None = None,
        names: Names = None,
        item_info: ItemInfo | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Cluster a matrix or a tensor of counts, or a table of observations.

        Parameters
        ----------
        X : dense array, scipy sparse matrix, frame or AnnData; rows × columns
            Or a dense or sparse array of more than two sides; or, with ``axes``, a frame with one row per observation.
        axes : sequence of str, optional
            The columns of the frame that hold ids, two or more.
        weight : str, optional
            Its column that says how often the row was observed; once without it.
        names : mapping from the name of a side to the names of its items, rows first, or a pair of lists, optional
            ``{"document": titles, "word": words}``; a frame and an AnnData object bring their own.
        item_info : mapping from the name of a side to a frame, optional
            Attributes of its items, one row per item; used in summaries only, see :func:`gingham.summarize`.
        callback : callable, optional
            Called with a ``Progress`` after every sweep.
        checkpoint : Checkpoint, optional
            Keeps where the fit stands, see ``gingham.fitting.checkpoints``.
        """
        counts = self._first_counts(X, axes, weight, names)
        checkpoint.bound_to(self, *((counts,) if counts.ndim == 2 else (counts.coords, counts.data)))
        one_of("weighting", self.weighting, WEIGHTINGS)
        for_sizes, for_starts = self._generator().spawn(2)
        solver = CountSolver(self.beta, self.solver, self.start, self.max_iter, self.tol)
        if callback is None and self.verbose:
            callback = stderr_progress
        with one_blas_thread():
            n_clusters = self._sizes(counts, solver, for_sizes, checkpoint.stage("sizes"))
            n_init = self._starts(n_clusters)
            blocks = solver.best(self._weighted(counts), n_clusters, n_init, for_starts, callback, checkpoint)
        self._keep(blocks, counts, n_clusters)
        self._remember(counts, counts.nnz, item_info)
        counted = [int(np.count_nonzero(mass)) for mass in self._masses]  # those with a count
        warn_of(advice_on([mode.name for mode in self.modes_], counted, counts.nnz))
        return self

    def _observed(self, *data: Any) -> Observed:
        check_is_fitted(self)
        if not data:
            counts = self._remembered("gg.summarize(model, X)")
        else:
            counts = self._any_counts(with_names(data[0]).matrix if self._two_sided else data[0])
        sample, sides = count_sample(counts), range(len(self.modes_))
        relation = Relation(tuple(sides), sample.codes, "lift", weights=sample.weights, label="count")
        return Observed(
            self.modes_,
            (relation,),
            tuple(labels if q is not None else None for labels, q in zip(self.labels_, self.memberships_)),
            given=(not isinstance(self.n_clusters, str),) * len(sides),
            refit=lambda kept: self._refit(counts, kept),
            prediction=getattr(self, "_size_reason", ""),
        )

    def _listed_rows(self, data: tuple[Any, ...] | None) -> Listed:
        if data is None:
            modes, counts = self.modes_, self._remembered("model.update(X_new, data=(X,))")
        else:
            read = clone(self)
            axes, weight = self._table or (None, None)
            counts = read._first_counts(data[0], axes, weight, None)
            modes = read.modes_
        sample = count_sample(counts)
        ids = [mode.items[code] for mode, code in zip(modes, sample.codes)]
        return Listed(ids, [mode.name for mode in modes], weights=sample.weights)

    def _arguments_of(self, rows: Listed, like: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A frame, where the model was fitted to one; else an array with the names of its items."""
        shown: Any = self if like is None else like
        weights = np.ones(len(rows.ids[0])) if rows.weights is None else rows.weights
        if shown._table is not None:
            axes, weight = shown._table
            columns = {name: ids.tolist() for name, ids in zip(axes, rows.ids)}
            return (frame_of({**columns, weight or "count": weights.tolist()}),), {
                "axes": axes,
                "weight": weight or "count",
            }
        modes = shown.modes_ if like is None else [Mode.of(ids, name) for ids, name in zip(rows.ids, rows.names)]
        codes = [mode.encode(ids) for mode, ids in zip(modes, rows.ids)]
        return (_counted(codes, weights, modes, type(self).__name__),), {"names": {m.name: m.items for m in modes}}

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """How often a pair is expected among as many counts as were fitted, with the spread of such a count."""
        expected = np.exp(self.score_samples(np.column_stack(list(codes)))) * float(self._masses[0].sum())
        return Predicted(expected, np.sqrt(expected))

    def _refit(self, counts: Counts, kept: Bools) -> Refit:
        """Clusters of the same kind from some of the entries; no more per side than a summary can use."""
        part = counts.copy()
        part.data = np.where(kept, counts.data, 0.0)
        part.eliminate_zeros()
        size = tuple(None if q is None else min(q.shape[1], FINEST_READ) for q in self.memberships_)
        solver = CountSolver(np.inf, "sweep", "profiles", min(self.max_iter, 8), max(self.tol, 5e-3))
        with one_blas_thread():
            found = solver.best(part, size, self._starts(size), np.random.default_rng(0))
        return Refit(tuple(None if m is None else labels for m, labels in zip(size, found.labels)))

    def _sizes(self, counts: Counts, solver: CountSolver, rng: np.random.Generator, checkpoint: Checkpoint) -> GridSize:
        if isinstance(self.n_clusters, str):
            if self.n_clusters != "auto":
                raise GinghamError(f"n_clusters={self.n_clusters!r} is unknown; give numbers or 'auto'.")

            def compare() -> State:
                size, gains = choose_n_clusters(self.criterion, counts, solver, rng, checkpoint=checkpoint)
                return {"size": size, "gains": gains}

            found = checkpoint.result(compare)
            self.sizes_tried_ = found["gains"]
            self._size_reason = why_size(self.criterion, found["size"], found["gains"])
            return (found["size"],) * len(counts.shape)
        self._size_reason = ""
        given: Any = self.n_clusters
        d = len(counts.shape)
        wanted = [given] * d if np.ndim(given) == 0 else list(given)
        if len(wanted) != d or None in (wanted if d > 2 else wanted[:1]):
            sizes = "(rows, columns) or (rows, None)" if d == 2 else f"one for each of the {d} sides"
            raise GinghamError(f"n_clusters={self.n_clusters!r}: give one number, {sizes}.")
        return tuple(
            None if m is None else min(positive_integer("n_clusters", m), n) for m, n in zip(wanted, counts.shape)
        )

    def _starts(self, n_clusters: GridSize) -> int:
        if isinstance(self.n_init, str) and self.n_init == "auto":
            return 1 if None in n_clusters or set(n_clusters) == {1} or not isinstance(self.start, str) else 3
        return positive_integer("n_init", self.n_init, ", or 'auto'")

    def _weighted(self, counts: CountsT) -> CountsT:
        if self.weighting == "counts":
            return counts
        rows = counts.tocoo().coords[0]
        mass = np.maximum(np.bincount(rows, counts.data, counts.shape[0]), 1e-300)
        scaled = counts.copy()
        scaled.data = counts.data * (mass.sum() / counts.shape[0] / mass)[rows]
        return scaled

    def _keep(self, blocks: CountBlocks, counts: Counts, n_clusters: GridSize) -> Self:
        self.labels_ = blocks.labels
        kept = [None if m is None else blocks.memberships(side) for side, m in enumerate(n_clusters)]
        self.memberships_ = tuple(kept)
        if self.memberships_[1] is None:
            self.blocks_ = np.ascontiguousarray(column_table(counts, self.row_labels_, blocks.shape[0]).T)
        elif blocks.table is not None and self.weighting == "counts":
            self.blocks_ = blocks.table
        elif counts.ndim > 2:
            self.blocks_ = count_sample(counts).sums(Moments(0)).table([q for q in kept if q is not None])[..., 0]
        else:
            self.blocks_ = self._row_memberships.T @ (counts @ self.memberships_[1])
        entries = counts.tocoo()
        self._masses = tuple(
            np.bincount(code, entries.data, n).astype(np.float64, copy=False)
            for code, n in zip(entries.coords, counts.shape)
        )
        self.information_ = block_information(self.blocks_)
        total = self._masses[0].sum()
        everything = xlogy(counts.data, counts.data).sum() + (len(self._masses) - 1) * xlogy(total, total)
        everything -= sum(xlogy(mass, mass).sum() for mass in self._masses)
        self.information_kept_ = float(self.information_ * total / everything) if everything > 1e-12 else 1.0
        self._set_run(blocks)
        return self

    @property
    def row_labels_(self) -> Ints:
        return self.labels_[0]

    @property
    def column_labels_(self) -> Ints:
        return self.labels_[1]

    @property
    def _row_memberships(self) -> Floats:
        rows = self.memberships_[0]
        assert rows is not None  # noqa: S101 - columns alone are left by themselves
        return rows

    @property
    def _two_sided(self) -> bool:
        return len(self.modes_) == 2 and self._table is None

    # what scikit-learn's biclustering offers

    @property
    def n_clusters_(self) -> tuple[int, ...]:
        return self.blocks_.shape

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
        return counts if self.memberships_[1] is None else counts @ self.memberships_[1]

    def predict(self, X: object) -> Ints:
        """Row clusters of new rows over the same columns: where their counts cost least."""
        return np.asarray(self.predict_memberships(X).argmax(axis=1))

    def predict_memberships(self, X: object) -> Floats:
        """q(c|x) ∝ qbar(c) exp(Σ_y n(x, y) ln lift(c, y)) of new rows, (n, row clusters)."""
        check_is_fitted(self)
        counts = self._counts(X, allow_zero=True)
        with np.errstate(divide="ignore"):
            prior = np.log(self._row_memberships.mean(axis=0))
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
        """Log density ln p̃ of positions, shape (N, 2) or one column per side: P0 (35), second line, smoothed."""
        check_is_fitted(self)
        codes, n = np.asarray(X), tuple(len(mass) for mass in self._masses)
        if codes.ndim != 2 or codes.shape[1] != len(n) or codes.dtype.kind not in "iu":
            what = "pairs of positions (row, column)" if len(n) == 2 else f"positions of {len(n)} items"
            raise GinghamError(f"score_samples takes {what}, whole numbers of shape (N, {len(n)}).")
        if len(codes) and (codes.min() < 0 or (codes.max(axis=0) >= n).any()):
            raise GinghamError(f"A row lies outside the {' × '.join(map(str, n))} counts that were fitted.")
        items = [np.exp(self._log_item_density(axis)) for axis in range(len(n))]
        clusters = [p if q is None else p @ q for p, q in zip(items, self.memberships_)]
        # p̃(c) with pseudo-counts spread as if the sides were independent; over Π p̃(c_i), so that p̃ sums to one.
        extra = self.smoothing * self.blocks_.size
        expected = reduce(np.multiply.outer, clusters)
        cells = (self.blocks_ + extra * expected) / (self.blocks_.sum() + extra)
        lift = np.divide(cells, expected, out=np.ones(cells.shape), where=expected > 0)
        result: Floats = sum((np.log(p)[code] for p, code in zip(items, codes.T)), np.zeros(len(codes)))
        if self.memberships_[1] is None:
            return result + np.log(lift[self.row_labels_[codes[:, 0]], codes[:, 1]])
        kept = [q for q in self.memberships_ if q is not None]
        return result + np.log(contract(list(codes.T), kept, lift[..., None])[:, 0])

    def _log_item_density(self, axis: int) -> Floats:
        """ln p̃(x) with one pseudo-count an item's share: (count + 1/n)/(N + 1)."""
        mass = self._masses[axis]
        return np.log((mass + 1.0 / len(mass)) / (mass.sum() + 1.0))

    def score(self, X: object, y: object = None) -> float:
        """Mean log density of the tokens of a matrix of the same shape (higher is better)."""
        check_is_fitted(self)
        entries = self._any_counts(X).tocoo()
        return float(entries.data @ self.score_samples(np.column_stack(entries.coords)) / entries.data.sum())

    # facts

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """R_1, G, R_2 with P ≈ R_1 G R_2ᵀ: p(x|c_1), p(c_1, c_2), p(y|c_2) (P0 eq. 49)."""
        check_is_fitted(self)
        if self.memberships_[1] is None or len(self.modes_) > 2:
            raise GinghamError("The tri-factorisation is one of rows and column clusters: n_clusters=(rows, columns).")
        sides = []
        for q, mass in zip(self.memberships_, self._masses):
            assert q is not None  # noqa: S101
            joint = q * mass[:, None]
            sides.append(joint / np.maximum(joint.sum(axis=0), 1e-300))
        return sides[0], self.blocks_ / self.blocks_.sum(), sides[1]

    @property
    def posterior_(self) -> Posterior:
        """The memberships as a Posterior with mass cells."""
        check_is_fitted(self)
        if self.memberships_[1] is None:
            raise GinghamError("A posterior over checkerboards needs column clusters: n_clusters=(rows, columns).")
        assign = tuple(q for q in self.memberships_ if q is not None)
        modes = tuple(Mode(mode.name, np.arange(len(q))) for mode, q in zip(self.modes_, assign))
        cell = Mass()
        return Posterior(Structure.grid(modes), (cell,), assign, (cell.answer(self.blocks_[..., None]),))

    def certify(self, X: object, delta: float = 0.05, population: Population | None = None) -> Certificate:
        """A guarantee on the code length of new co-occurrences; X is the matrix that was fitted.

        Each count must be an independent draw; weights that are not whole numbers are refused. ``population`` says how
        many rows and columns there are in all: X.shape where the matrix has a line for everything that can occur.
        """
        counts = self._any_counts(X)
        if not (counts.data == np.floor(counts.data)).all():
            raise RefusedCertificate(
                "The entries are weights, not counts: a certificate counts independent draws. Fit raw counts."
            )
        certificate = certify(
            self.posterior_, count_sample(counts), bound="density", delta=delta, population=population
        )
        self.density_ = certificate.model
        return certificate

    def _readable_size(self, X: object) -> tuple[int, ...]:
        """The size by the rule of summaries: of the one that was made, or of one that is made of these counts."""
        if self._summary is not None:
            return self._summary.size_by_rule
        from gingham.summary.make_summary import summarize_observed  # loaded when somebody reads

        return summarize_observed(self._observed() if X is None else self._observed(X)).size_by_rule

    def _simplified(
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
        if len(self.modes_) > 2:
            raise GinghamError(
                "Counts of more than two sides cannot be simplified: fit again with smaller n_clusters=."
            )
        if self.memberships_[1] is None:
            raise GinghamError("The columns were not clustered: fit with column clusters, or with fewer row clusters.")
        if max_clusters is None:
            max_clusters = self._readable_size(X)
        new = copy(self)
        table, memberships = self.blocks_, [self._row_memberships, self.memberships_[1]]
        for axis, wanted in enumerate(np.broadcast_to(np.asarray(max_clusters), (2,)).tolist()):
            if wanted < 1:
                raise GinghamError(f"max_clusters={max_clusters!r}: at least one cluster per side is needed.")
            profiles = table.T if axis == 0 else table  # one column a cluster of this side
            size = profiles.shape[1]
            into = np.eye(min(wanted, size))[merge_down(profiles, min(wanted, size))]
            table = into.T @ table if axis == 0 else table @ into
            memberships[axis] = memberships[axis] @ into
        new.blocks_, new.memberships_ = table, tuple(memberships)
        new.labels_ = tuple(q.argmax(axis=1) for q in memberships)
        new.information_ = block_information(table)
        kept = new.information_ / self.information_ if self.information_ > 0 else 1.0
        new.information_kept_ = self.information_kept_ * kept
        return new


def why_size(criterion: str, size: int, values: Mapping[int, float]) -> str:
    """Why "auto" chose a size."""
    tried = ", ".join(str(k) for k in sorted(values))
    if criterion == "certificate":
        return (
            f"{size} clusters per side have the lowest certified code length, {values[size]:.3f} nats, among {tried}."
        )
    if size == 1:
        return f"Of {tried} clusters per side, none predicts held-out entries better than independence."
    return (
        f"{size} clusters per side predict a held-out tenth of the entries best among {tried}: by {values[size]:.3f} "
        "nats per count better than independence."
    )


def count_modes(found: tuple[Any, Any], shape: Sequence[int]) -> tuple[Mode, ...]:
    """The mode of every side from the names of the axes and of their items, each None where it is not known."""
    axes, items = found
    sides = []
    for axis, n in enumerate(shape):
        name = side_names(len(shape))[axis] if axes is None else str(axes[axis])
        known = None if items is None else items[axis]
        ids = np.arange(n) if known is None else np.asarray(known)
        if len(ids) != n:
            what = ("rows", "columns")[axis] if len(shape) == 2 else "items"
            raise GinghamError(f"names= has {len(ids)} names of {name!r} for {n} {what}.")
        sides.append(Mode(name, ids))
    return tuple(sides)


def _table_columns(X: Any, axes: Sequence[str], weight: Any) -> tuple[list[Any], Floats]:
    """The ids of a table of observations, column by column, and how often each row was observed."""
    X, _, counts = opened(X, None, weight)
    columns, names = id_columns(X)
    if set(axes) - set(names) or len(axes) < 2:
        raise GinghamError(f"axes= names two columns or more of the table, which has {', '.join(map(repr, names))}.")
    ids = [columns[names.index(name)] for name in axes]
    return ids, np.ones(len(ids[0])) if counts is None else np.asarray(counts, dtype=np.float64)


def _counted(codes: Sequence[Ints], weights: Floats, modes: Sequence[Mode], model: str) -> Counts:
    shape = tuple(mode.n_items for mode in modes)
    if len(shape) == 2:
        return count_matrix(sparse.coo_array((weights, tuple(codes)), shape=shape), model)
    return count_tensor(sparse.coo_array((weights, tuple(codes)), shape=shape), model)


def block_information(table: Floats) -> float:
    """Mutual information of the axes of a table of counts, in nats."""
    total = table.sum()
    terms = xlogy(table, table).sum() + (table.ndim - 1) * xlogy(total, total)
    for own in range(table.ndim):
        margin = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != own))
        terms -= xlogy(margin, margin).sum()
    return max(0.0, float(terms / total))
