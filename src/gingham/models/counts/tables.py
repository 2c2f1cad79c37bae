"""Counts of co-occurrences from a table of tokens: blocks, the density's guarantee, coarser blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy import sparse

from gingham import models
from gingham.arrays import Floats, Ints
from gingham.data import Mode
from gingham.errors import GinghamError, RefusedCertificate
from gingham.models import tables as common
from gingham.models.base import Persistent
from gingham.models.counts import KIND
from gingham.selection import BetaPath, PathPoint

if TYPE_CHECKING:
    from gingham.models.counts.estimator import CoOccurrenceClustering
    from gingham.summary.values import Observed


class CountTables(common.FamilyTables["CoOccurrenceClustering"]):
    kind = KIND
    estimators = ("CoOccurrenceClustering",)
    plain_axes = ("row", "column")
    unused = ("loss", "alphabet", "bounds", "objective", "solver", "merges", "cold_start")

    def fit(self, task: common.FitTask) -> common.FittedModel:
        table, options = task.table, task.options
        clusters = common.parse_clusters(options.clusters, len(options.axes))
        model = self.made(options, {"n_clusters": clusters, "beta": options.beta})
        weight = options.weight or options.label
        modes, counts = count_matrix(table, options.axes, weight, options.drop_missing)
        share = options.holdout or 0.0
        learned, held = parted(counts, share, options.seed)
        names = {mode.name: mode.items for mode in modes}
        model.fit(learned, names=names, **common.accepted(model.fit, task.arguments))
        notes = self.notes(
            options,
            items=[[str(item) for item in mode.items.tolist()] for mode in modes],
            weight=weight,
            holdout=share,
            held="entries",
            fingerprint=common.fingerprint(table, [*options.axes, *([weight] if weight else [])]),
        )
        facts = {
            "rows": table.height,
            **self.facts(model),
            "counts": float(counts.sum()),
            "clusters": model.n_clusters_,
            "information_kept": model.information_kept_,
        }
        if held is not None:
            facts.update({f"held_out_{name}": value for name, value in code_lengths(model, held).items()})
        return common.FittedModel(model, notes, facts)

    def predict(self, model: CoOccurrenceClustering, table: pl.DataFrame, asked: common.PredictOptions) -> pl.DataFrame:
        """The table with the log density (nats) and the lift of each pair; empty where an id was never counted."""
        asked.need_defaults("Counts predict how likely a pair is")
        names = self.id_columns(model)
        common.need_columns(table, names, "The model")
        codes = codes_of(model, table, names)
        known = (codes >= 0).all(axis=1)
        density, apart = np.full((2, len(codes)), np.nan)
        density[known] = model.score_samples(codes[known])
        apart[known] = independent(model, codes[known])
        return common.with_predictions(
            table,
            pl.Series("log_density", density).fill_nan(None),
            pl.Series("lift", np.exp(density - apart)).fill_nan(None),
        )

    def open(self, model: CoOccurrenceClustering, source: common.TableSource) -> CountsWithModel:
        notes = model.notes_
        axes = list(source.axes or self.id_columns(model))
        weight = notes.get("weight") or source.label
        kept, weights = tokens(source.table, axes, weight, source.drop_missing)
        codes = codes_of(model, kept, axes)
        for name, code in zip(axes, codes.T):
            if (code < 0).any():
                row = int(np.flatnonzero(code < 0)[0])
                raise GinghamError(f"Column {name!r}, row {row}: this id was not in the table that was fitted.")
        counts = matrix(codes.T, weights, (len(model.row_labels_), len(model.column_labels_)))
        same = notes.get("fingerprint") == common.fingerprint(source.table, [*axes, *([weight] if weight else [])])
        share = float(notes.get("holdout", 0.0)) if same else 0.0
        learned, held = parted(counts, share, int(notes.get("seed", 0)), notes.get("held") == "entries")
        return CountsWithModel(model, notes, axes, learned, held)

    def clusters(self, model: CoOccurrenceClustering) -> pl.DataFrame:
        names, axes = model.notes_.get("items"), self.id_columns(model)
        sides = ((model.row_labels_, model.row_memberships_), (model.column_labels_, model.column_memberships_))
        found = []
        for at, (labels, memberships) in enumerate(sides):
            items = names[at] if names else range(len(labels))
            found.append(
                common.cluster_rows(axes[at], items, labels, None if memberships is None else memberships.max(axis=1))
            )
        return pl.concat(found)

    def path(self, task: common.FitTask, path: common.PathOptions, progress: common.PathCallback) -> BetaPath:
        """Soft memberships from the same hard start; no cross-validation."""
        table, options = task.table, task.options
        _, counts = count_matrix(table, options.axes, options.weight or options.label, options.drop_missing)
        clusters = common.parse_clusters(options.clusters, len(options.axes))
        made = models.CoOccurrenceClustering
        first = made("auto" if clusters is None else clusters, random_state=options.seed).fit(counts)
        labels = (first.row_labels_, first.column_labels_)
        values = common.path_values(path.betas, 1.0)

        def points() -> Iterator[PathPoint]:
            for beta in values:
                model = made(first.n_clusters_, beta, "concave", labels, random_state=options.seed)
                model.fit(counts)
                try:
                    certificate = model.certify(counts, path.delta, path.population)
                except (
                    RefusedCertificate
                ):  # weights that are no counts, or nobody said how many rows and columns there are
                    certificate = None
                yield PathPoint(beta, model.posterior_, -model.information_, np.nan, np.nan, np.nan, certificate)

        return common.path_of(points(), len(values), progress)


def tokens(
    table: pl.DataFrame, axes: Sequence[str], weight: str | None, drop_missing: bool = False
) -> tuple[pl.DataFrame, Floats]:
    """Rows with two ids, and how often each was counted."""
    kept, weights = common.id_pairs(table, axes, weight, "word,document", "cooccurrence", drop_missing=drop_missing)
    if weights is None:
        return kept, np.ones(kept.height)
    if (weights < 0).any():
        raise GinghamError(f"--weight column {weight!r} holds negative numbers; counts are not negative.")
    return kept, weights


def matrix(codes: Sequence[Ints] | Ints, weights: Floats, shape: Sequence[int]) -> sparse.csr_array:
    return sparse.coo_array((weights, (codes[0], codes[1])), shape=tuple(shape)).tocsr()


def count_matrix(
    table: pl.DataFrame, axes: Sequence[str], weight: str | None, drop_missing: bool = False
) -> tuple[list[Mode], sparse.csr_array]:
    """Rows and columns of the table's ids, and how often each pair was counted."""
    kept, weights = tokens(table, axes, weight, drop_missing)
    modes, codes = common.numbered(kept, axes)
    return modes, matrix(codes, weights, [mode.n_items for mode in modes])


def parted(
    counts: sparse.csr_array, share: float, seed: int, entries: bool = True
) -> tuple[sparse.csr_array, sparse.csr_array | None]:
    """Counts to learn from and counts set aside: whole entries, or single counts as files of before have them."""
    from gingham.models.counts.fit import thinned, without_entries

    common.check_holdout(share)
    if not share:
        return counts, None
    return (without_entries if entries else thinned)(counts, share, np.random.default_rng([seed, counts.nnz]))


def independent(model: CoOccurrenceClustering, pairs: Ints) -> Floats:
    """The log density of pairs of positions if rows and columns were independent."""
    return model.log_item_density(0)[pairs[:, 0]] + model.log_item_density(1)[pairs[:, 1]]


def code_lengths(model: CoOccurrenceClustering, counts: sparse.csr_array) -> dict[str, float]:
    """Nats a token costs under the model, and under independence of rows and columns."""
    entries = counts.tocoo()
    pairs = np.column_stack(entries.coords)
    total = max(float(entries.data.sum()), 1.0)
    return {
        "nats_a_token": -float(entries.data @ model.score_samples(pairs)) / total,
        "nats_a_token_if_independent": -float(entries.data @ independent(model, pairs)) / total,
    }


def codes_of(model: CoOccurrenceClustering, table: pl.DataFrame, axes: Sequence[str]) -> Ints:
    """Positions of the ids in the model's rows and columns, (N, 2); −1 for those it has never seen."""
    names = model.notes_.get("items")
    shape = (len(model.row_labels_), len(model.column_labels_))
    known = names or [[str(i) for i in range(n)] for n in shape]
    return np.column_stack([common.places(known[axis], table, name) for axis, name in enumerate(axes)])


@dataclass(eq=False)
class CountsWithModel(common.ModelWithData["CoOccurrenceClustering"]):
    """A matrix of counts with the names of its rows and columns."""

    axes: list[str]
    counts: sparse.csr_array
    held: sparse.csr_array | None

    def facts(self) -> common.Facts:
        model = self.model
        return {
            "counts": float(self.counts.sum()),
            "information, nats": round(float(model.information_), 4),
            "share kept": f"{100 * model.information_kept_:.1f} %",
            "sweeps": model.n_iter_,
        }

    def errors(self) -> dict[str, float]:
        return {} if self.held is None else code_lengths(self.model, self.held)

    @property
    def label_name(self) -> str:
        return str(self.notes.get("weight") or "count")

    def observed(self) -> Observed:
        return self.model.observed(self.counts)

    def without_groups(self, certificates: common.Facts, request: common.CertificateRequest) -> dict[str, float]:
        everything = self.counts if self.held is None else (self.counts + self.held).tocsr()
        one = models.CoOccurrenceClustering((1, 1), random_state=0).fit(everything)
        return {
            name: float(one.certify(everything, found.delta, request.population).value)
            for name, found in certificates.items()
        }

    def certificates(self, request: common.CertificateRequest) -> common.Facts:
        request.need_no_tests("A density")
        request.need_defaults("A density")
        # All counts: those that are left where whole entries were set aside are no sample of the source, and the bound
        # holds for all posteriors at once, whatever they were fitted to.
        everything = self.counts if self.held is None else (self.counts + self.held).tocsr()
        return {"counted pairs": self.model.certify(everything, request.delta, request.population)}

    def simplified(self, clusters: str | None, max_loss: float | None) -> tuple[Persistent, common.Facts]:
        from gingham.selection import simplify

        wanted = common.parse_clusters(clusters, 2)
        if max_loss is not None:
            raise GinghamError("Counts are simplified to numbers of clusters (--clusters 5,4), not to a loss.")
        small = simplify(self.model, self.counts, max_clusters=wanted)
        return small, {
            "clusters_before": self.model.n_clusters_,
            "clusters": small.n_clusters_,
            "information_before": self.model.information_,
            "information": small.information_,
        }


TABLES = CountTables()
