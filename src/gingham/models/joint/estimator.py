"""JointCoClustering: several matrices that share their clusterings (P0 eqs. 46-48)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.cells import make_cell, needs_alphabet
from gingham.cells.losses import Loss, cell_state
from gingham.certificates.bounds import checked_delta
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.core.problem import Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import id_columns
from gingham.data.sample import joined_ids, need_unmasked
from gingham.data.sources import opened
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, Restart, Solution, best_of
from gingham.fitting.projection import Projection
from gingham.fitting.starts import Start, expand_clusters, make_start
from gingham.models.base import (
    Persistent,
    default_loss,
    moments_of,
    named_auto,
    observed_of,
    predicted_by,
    renumbered,
    warn_of_unseen,
)
from gingham.models.joint.cold_start import place_cold
from gingham.models.questions import Predicted
from gingham.selection.auto import choose_beta
from gingham.summary.values import Observed, Refit

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

Relation = tuple[str, ...]
PROPERTY_BETA = 0.5  # of relations of properties, where none is given
Value = TypeVar("Value")


def default_sizes(relations: Sequence[Relation]) -> dict[str, int | str | None]:
    """Clusters of every mode where nothing is said: those of the first relation by size, properties stay apart."""
    names = dict.fromkeys(name for relation in relations for name in relation)
    return {name: "auto" if name in relations[0] else None for name in names}


@dataclass(eq=False, repr=False)
class JointCoClustering(Persistent):
    """Co-cluster several matrices at once; a mode that occurs in several of them is clustered once.

    Minimises ``Σ_r β_r N_r L̂_r + Σ_modes n Ī``. Ratings, genres of movies and attributes of viewers, say:
    an item without ratings is placed by its properties.

    Parameters
    ----------
    n_clusters : mapping from mode name to int, "auto" or None, or "auto"
        None: every item is a cluster of its own (properties). "auto" for a mode chooses by the size of the data;
        "auto" for all does so for the modes of the first relation and keeps the items of all others apart.
    loss, beta, alphabet : value, or mapping from relation to value
        Per relation: the loss, its trade-off per unit of loss, and the possible labels. By default relations with a
        mode of singletons (properties) have the log loss and β = 0.5, the others the loss that
        :class:`CoClusteringRegressor` takes (zero-one for names) and β from the held-out loss of item means.
    cold_start : bool
        At the end, place items that have fewer than ten observations outside relations of properties anew: by
        these observations and, the more the fewer they are, by their properties
        (see `gingham.models.joint.cold_start.place_cold`).
    start : {"means", "spectral", "random"} or Posterior
    n_init, max_iter, random_state
        As in :class:`CoClusteringRegressor`.

    Attributes
    ----------
    relations_ : tuple of relations (tuples of mode names), in the order of ``posterior_.cells``
    posterior_ : Posterior
    assign_, labels_, items_ : mappings from mode name to array
    factors_ : mapping from relation to its tri-factorisation

    Examples
    --------
    >>> from gingham import JointCoClustering
    >>> ratings = [("ann", "jaws"), ("bob", "jaws"), ("ann", "heat"), ("bob", "heat"), ("ann", "up"), ("bob", "up")]
    >>> genres = [("jaws", "action"), ("heat", "action"), ("up", "action"), ("cars", "action")]
    >>> model = JointCoClustering({"viewer": 2, "movie": 2, "genre": None}, beta=3.0, random_state=0)
    >>> model = model.fit({
    ...     ("viewer", "movie"): (ratings, [5, 1, 5, 1, 1, 5]),
    ...     ("movie", "genre"): (genres, [1, 1, 0, 0]),
    ... })
    >>> model.predict(("viewer", "movie"), [("ann", "cars")], rule="median")
    array([1.])
    """

    _saved_attributes = ("posterior_", "relations_", "n_iter_", "converged_")

    n_clusters: Mapping[str, int | str | None] | str = "auto"
    loss: Loss | Mapping[Relation, Loss] | None = None
    beta: float | Mapping[Relation, float] | None = None
    alphabet: Iterable[object] | Mapping[Relation, Iterable[object]] | None = None
    cold_start: bool = False
    start: Start = "means"
    n_init: int = 1
    max_iter: int = 200
    random_state: Seed = None

    # fitting

    @interruptible()
    def fit(
        self,
        relations: Mapping[Relation, Any],
        y: None = None,
        *,
        item_info: ItemInfo | None = None,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Co-cluster all relations together.

        Parameters
        ----------
        relations : mapping from a tuple of mode names to (X, y) or (X, y, sample_weight)
            X has one column of ids per mode, in the order of the names; a mode may stand twice.
        item_info : mapping from the name of a mode to a frame, optional
            What is known of its items, a row each; for summaries only, see :func:`gingham.summarize`.
        """
        if isinstance(relations, Mapping):
            relations = {relation: opened(*data) for relation, data in relations.items()}
        problem, n_clusters = self._problem(relations)
        checkpoint.bound_to(self, list(relations.items()))
        rng = self._generator()
        solver = Projection(max_iter=self.max_iter)

        def solve(restart: Restart) -> Solution:
            start = make_start(self.start, problem, n_clusters, restart.rng)
            return solver.solve(problem, start, restart.report, restart.checkpoint)

        solution = best_of(solve, self.n_init, rng, max_iter=self.max_iter, callback=callback, checkpoint=checkpoint)
        self.relations_ = tuple(tuple(str(name) for name in relation) for relation in relations)
        self.posterior_ = place_cold(problem, solution.posterior) if self.cold_start else solution.posterior
        self.objective_ = solution.objective
        self._set_run(solution)
        self._remember(dict(relations), sum(sample.n_rows for sample in problem.samples), item_info, problem.samples)
        return self

    def _observed(self, *data: Any) -> Observed:
        """All relations; the first is read first. Modes of singletons (properties) go by what they are typical of."""
        check_is_fitted(self)
        relations = data[0] if data else self._remembered("gg.summarize(model, relations)")
        structure, labels = self.posterior_.structure, self.posterior_.labels
        parts = {r: observed_of(self.sample(r, *relations[r]), [None] * len(r)) for r in relations}
        found = tuple(
            replace(part.relations[0], sides=structure.factors[self.position_of(r)], label=" × ".join(r))
            for r, part in parts.items()
        )
        own = self.n_clusters if isinstance(self.n_clusters, Mapping) else {}
        clusters = tuple(None if at in structure.frozen else labels[at] for at in range(len(structure.modes)))
        given = tuple(isinstance(own.get(mode.name), int) for mode in structure.modes)
        return Observed(structure.modes, found, clusters, given, lambda kept: self._refit(relations, kept))

    def _row_sides(self) -> tuple[int, ...]:
        return self.posterior_.structure.factors[0]

    def _keep_for_questions(self) -> None:
        if self._data is not None:
            first = next(iter(self._data))
            self.cell_moments_ = moments_of(self.posterior_, self.sample(first, *self._data[first]))

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        return predicted_by(self.posterior_, codes, label, getattr(self, "cell_moments_", None), relation)

    def _refit(self, relations: Mapping[Relation, Any], kept: Bools) -> Refit:
        """The same model from some of the rows of the first relation and all others."""
        first = next(iter(relations))
        rows = [None if part is None else _safe_indexing(part, kept) for part in relations[first]]
        held = _safe_indexing(relations[first][0], ~kept)
        frozen = self.posterior_.structure.frozen
        sizes = {
            mode.name: None if at in frozen else size
            for at, (mode, size) in enumerate(zip(self.posterior_.structure.modes, self.posterior_.n_clusters))
        }
        model = clone(self).set_params(n_clusters=sizes)
        model.fit({**relations, first: tuple(rows)})
        theirs = model.posterior_
        clusters = zip(self.posterior_.structure.modes, theirs.structure.modes, theirs.labels)
        labels = tuple(renumbered(mode, own, mine) for mode, own, mine in clusters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenItemsWarning)
            if self.posterior_.cells[0].ordered:
                return Refit(labels, model.predict(first, held))
            return Refit(labels, model.predict_distribution(first, held))

    def _problem(self, relations: Mapping[Relation, Any]) -> tuple[Problem, tuple[int, ...]]:
        """What is minimised, and the number of clusters of every mode."""
        if not isinstance(relations, Mapping) or not relations:
            raise GinghamError("fit needs a mapping {(mode, …): (X, y)} with at least one relation.")
        columns, names = {}, []
        for relation, data in relations.items():
            if not isinstance(relation, tuple) or not all(isinstance(name, str) for name in relation):
                raise GinghamError(f"Relation {relation!r} must be a tuple of mode names, such as ('viewer', 'movie').")
            columns[relation] = id_columns(data[0]).columns
            if len(columns[relation]) != len(relation):
                raise GinghamError(f"Relation {relation} names {len(relation)} modes; X has {len(columns[relation])}.")
            names += [name for name in dict.fromkeys(relation) if name not in names]
        sizes = default_sizes(list(relations)) if named_auto(self.n_clusters) else self.n_clusters
        if not isinstance(sizes, Mapping):
            raise GinghamError(f"n_clusters={sizes!r} must be 'auto', or a mapping from every mode to its clusters.")
        unknown = [name for name in names if name not in sizes]
        if unknown:
            raise GinghamError(f"n_clusters= lacks the mode {unknown[0]!r}; give a number, or None for singletons.")
        ids: dict[str, list[AnyArray]] = {name: [] for name in names}
        for relation, parts in columns.items():
            for name, part in zip(relation, parts):
                ids[name].append(np.asarray(part))
        modes = {name: Mode.of(joined_ids(parts), name) for name, parts in ids.items()}
        frozen = tuple(at for at, name in enumerate(names) if sizes[name] is None)
        factors = tuple(tuple(names.index(name) for name in relation) for relation in relations)
        samples, cells, betas = [], [], []
        for relation, data in relations.items():
            properties = any(sizes[name] is None for name in relation)
            label_values = self._of(self.alphabet, relation, None)
            need_unmasked(data[1], "y")
            labels = np.asarray(data[1])
            usual = "log" if properties else default_loss(labels, label_values is not None)
            loss = self._of(self.loss, relation, usual)
            alphabet = None
            if label_values is not None or needs_alphabet(loss):
                alphabet = Alphabet.of(
                    np.unique(labels) if label_values is None else label_values, label_values is not None
                )
            weights = data[2] if len(data) > 2 else None
            places = [modes[name] for name in relation]
            samples.append(Sample.of(columns[relation], labels, weights, modes=places, alphabet=alphabet))
            cells.append(make_cell(loss, alphabet))
            beta = self._of(self.beta, relation, None)
            if beta is None:
                beta = PROPERTY_BETA if properties else choose_beta(None, samples[-1], cells[-1])[0]
            betas.append(float(beta))
        structure = Structure(tuple(modes[name] for name in names), factors, frozen)
        n_observations = sum(sample.n_observations for sample in samples)
        n_clusters = []
        for mode in structure.modes:
            size = sizes[mode.name]
            n_clusters.append(
                mode.n_items if size is None else expand_clusters(size, (mode.n_items,), n_observations)[0]
            )
        return Problem(structure, tuple(samples), tuple(cells), tuple(betas)), tuple(n_clusters)

    @staticmethod
    def _of(setting: Any, relation: Relation, default: Any) -> Any:
        """A relation's own setting, from one value for all or a mapping."""
        if isinstance(setting, Mapping):
            return setting.get(relation, default)
        return default if setting is None else setting

    # using

    def position_of(self, relation: Relation) -> int:
        """The position of a relation among ``relations_`` and among the cells and answers of ``posterior_``."""
        check_is_fitted(self)
        if tuple(relation) not in self.relations_:
            known = ", ".join(str(r) for r in self.relations_)
            raise GinghamError(f"Relation {relation!r} was not fitted; there are {known}.")
        return self.relations_.index(tuple(relation))

    def _codes(self, relation: Relation, X: TableLike) -> list[Ints]:
        at = self.position_of(relation)
        columns = id_columns(X).columns
        modes = self.posterior_.structure.columns(at)
        if len(columns) != len(modes):
            raise GinghamError(f"Relation {relation} has {len(modes)} modes; X has {len(columns)} columns.")
        codes = [mode.encode(column) for mode, column in zip(modes, columns)]
        warn_of_unseen(modes, codes)
        return codes

    def sample(self, relation: Relation, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Sample:
        """Labelled tuples of a relation in the model's own numbering, for pictures and certificates."""
        at = self.position_of(relation)
        alphabet = getattr(self.posterior_.cells[at], "alphabet", None)
        modes = self.posterior_.structure.columns(at)
        return Sample.of(id_columns(X).columns, y, sample_weight, modes=modes, alphabet=alphabet)

    def predict(self, relation: Relation, X: TableLike, rule: str = "mean") -> Floats:
        """One number per row of a relation: the mean of the randomised answer, or its median or mode.

        An item that has no observations in this relation is predicted through its other relations.
        """
        return self.posterior_.predict(self._codes(relation, X), rule, self.position_of(relation))

    def predict_distribution(self, relation: Relation, X: TableLike) -> Floats:
        """Distribution of the answer over the relation's labels, shape (N, |Y|)."""
        return self.posterior_.predict_distribution(self._codes(relation, X), self.position_of(relation))

    @property
    def factors_(self) -> dict[Relation, tuple[Floats | tuple[Floats, ...], ...]]:
        """The tri-factorisation A ≈ Q1 F Q2ᵀ of each relation, see :meth:`gingham.core.Posterior.factors`."""
        return {relation: self.posterior_.factors(at) for at, relation in enumerate(self.relations_)}

    def certify(
        self,
        relations: Mapping[Relation, Any],
        delta: float = 0.05,
        shares: Mapping[Relation, float] | None = None,
        **options: Any,
    ) -> dict[Relation, Certificate]:
        """Certificates of all given relations that hold together with probability at least 1 − delta.

        ``shares`` divides delta among them (evenly by default). ``options`` go to :func:`gingham.certify`.
        """
        checked_delta(delta)
        share = dict.fromkeys(relations, 1.0 / len(relations)) if shares is None else dict(shares)
        if set(share) != set(relations) or not min(share.values()) > 0 or not sum(share.values()) <= 1 + 1e-12:
            raise GinghamError("shares= needs a positive share of delta for every relation, at most 1 together.")
        found = {}
        for relation, data in relations.items():
            weights = data[2] if len(data) > 2 else None
            found[relation] = certify(
                self, data[0], data[1], sample_weight=weights, relation=self.position_of(relation),
                delta=delta * share[relation], **options,
            )  # fmt: skip
        return found

    def _by_mode(self, values: Sequence[Value]) -> dict[str, Value]:
        return {mode.name: value for mode, value in zip(self.posterior_.structure.modes, values)}

    @property
    def assign_(self) -> dict[str, Floats]:
        """q(c|x) by mode name."""
        return self._by_mode(self.posterior_.assign)

    @property
    def labels_(self) -> dict[str, Ints]:
        """Most probable cluster of each item, from 0, by mode name."""
        return self._by_mode(self.posterior_.labels)

    @property
    def items_(self) -> dict[str, AnyArray]:
        """Ids by mode name, in the order of the rows of ``assign_``."""
        return self._by_mode([mode.items for mode in self.posterior_.structure.modes])

    def _loss_state(self) -> Any:
        return [cell_state(cell) for cell in self.posterior_.cells]

    def _loss_from_state(self, state: Any) -> Any:
        own = super()._loss_from_state
        return {tuple(relation): own(one) for relation, one in zip(self.relations_, state)}
