"""Counts of co-occurrences on the command line: tokens in, blocks, the density's guarantee, coarser blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import Mass
from gingham.cli.columns import fingerprint, id_pairs, numbered
from gingham.cli.fit_options import Wish
from gingham.cli.session import Asked, Drawing, Opened, Source
from gingham.cli.tables import need_columns
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Mode, Sample
from gingham.errors import GinghamError
from gingham.models.counts.fit import count_sample, smoothed_lift, thinned
from gingham.report.vocabulary import COUNTS

EXAMPLE = "word,document"


def fit(table: pl.DataFrame, wish: Wish, model: Any, more: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cluster rows and columns; the notes to store and the facts to show."""
    weight = wish.weight or wish.label
    kept, weights = tokens(table, wish.axes, weight)
    modes, codes = numbered(kept, wish.axes)
    counts = matrix(codes, weights, [mode.n_items for mode in modes])
    learned, held = parted(counts, wish.holdout or 0.0, wish.seed)
    model.fit(learned, **more)
    notes = {
        "items": [[str(item) for item in mode.items.tolist()] for mode in modes],
        "weight": weight,
        "holdout": wish.holdout or 0.0,
        "fingerprint": fingerprint(table, [*wish.axes, *([weight] if weight else [])]),
    }
    facts: dict[str, Any] = {
        "counts": float(counts.sum()),
        "clusters": model.n_clusters_,
        "information_kept": model.information_kept_,
    }
    if held is not None:
        facts.update({f"held_out_{name}": value for name, value in code_lengths(model, held).items()})
    return notes, facts


def tokens(table: pl.DataFrame, axes: Sequence[str], weight: str | None) -> tuple[pl.DataFrame, Floats]:
    kept, weights = id_pairs(table, axes, weight, EXAMPLE, "cooccurrence")
    if weights is None:
        return kept, np.ones(kept.height)
    if (weights < 0).any():
        raise GinghamError(f"--weight column {weight!r} holds negative numbers; counts are not negative.")
    return kept, weights


def matrix(codes: Sequence[Ints], weights: Floats, shape: Sequence[int]) -> sparse.csr_array:
    return sparse.coo_array((weights, (codes[0], codes[1])), shape=tuple(shape)).tocsr()


def parted(counts: sparse.csr_array, share: float, seed: int) -> tuple[sparse.csr_array, sparse.csr_array | None]:
    """Counts to learn from and counts set aside, token by token."""
    if not 0 <= share < 1:
        raise GinghamError(f"--holdout {share} must be from 0 to below 1.")
    if not share:
        return counts, None
    if not (counts.data == np.floor(counts.data)).all():
        raise GinghamError("--holdout sets single counts aside, and these are not whole numbers: leave it out.")
    return thinned(counts, share, np.random.default_rng([seed, counts.nnz]))


def code_lengths(model: Any, counts: sparse.csr_array) -> dict[str, float]:
    """Nats a token costs under the model, and under independence of rows and columns."""
    entries = counts.tocoo()
    pairs = np.column_stack(entries.coords)
    total = max(float(entries.data.sum()), 1.0)
    length = -float(entries.data @ model.score_samples(pairs)) / total
    apart = -float(entries.data @ (model._log_items(0)[pairs[:, 0]] + model._log_items(1)[pairs[:, 1]])) / total
    return {"nats_a_token": length, "nats_a_token_if_independent": apart}


def codes_of(model: Any, table: pl.DataFrame, axes: Sequence[str]) -> list[Ints]:
    """Positions of the ids in the model's rows and columns; −1 for those it has never seen."""
    names = model.notes_.get("items")
    shape = (len(model.row_labels_), len(model.column_labels_))
    found: list[Ints] = []
    for axis, name in enumerate(axes):
        known = names[axis] if names else [str(i) for i in range(shape[axis])]
        place = {item: at for at, item in enumerate(known)}
        found.append(np.array([place.get(item, -1) for item in table[name].cast(pl.String).to_list()], dtype=np.int64))
    return found


def predict(model: Any, table: pl.DataFrame, rule: str | None, proba: bool) -> pl.DataFrame:
    """The table with the log density (nats) and the lift of each pair; empty where an id was never counted."""
    if rule is not None or proba:
        raise GinghamError("Counts predict how likely a pair is: leave --rule and --proba out.")
    axes = list(model.notes_.get("axes") or ["row", "column"])
    need_columns(table, axes, "The model")
    rows, columns = codes_of(model, table, axes)
    known = (rows >= 0) & (columns >= 0)
    density = np.full(len(rows), np.nan)
    pairs = np.column_stack([rows[known], columns[known]])
    density[known] = model.score_samples(pairs)
    apart = np.full(len(rows), np.nan)
    apart[known] = model._log_items(0)[pairs[:, 0]] + model._log_items(1)[pairs[:, 1]]
    return table.with_columns(
        pl.Series("log_density", density).fill_nan(None), pl.Series("lift", np.exp(density - apart)).fill_nan(None)
    )


def reopen(model: Any, source: Source) -> OfCounts:
    notes = model.notes_
    axes = list(source.axes or notes.get("axes") or ["row", "column"])
    weight = notes.get("weight") or source.label
    kept, weights = tokens(source.table, axes, weight)
    codes = codes_of(model, kept, axes)
    for name, code in zip(axes, codes):
        if (code < 0).any():
            row = int(np.flatnonzero(code < 0)[0])
            raise GinghamError(f"Column {name!r}, row {row}: this id was not in the table that was fitted.")
    counts = matrix(codes, weights, (len(model.row_labels_), len(model.column_labels_)))
    same = notes.get("fingerprint") == fingerprint(source.table, [*axes, *([weight] if weight else [])])
    learned, held = parted(counts, float(notes.get("holdout", 0.0)) if same else 0.0, int(notes.get("seed", 0)))
    return OfCounts(model, axes, learned, held)


class OfCounts(Opened):
    """A matrix of counts with the names of its rows and columns."""

    def __init__(self, model: Any, axes: list[str], counts: Any, held: Any) -> None:
        super().__init__(model)
        self.axes, self.counts, self.held = axes, counts, held

    def facts(self) -> dict[str, Any]:
        model = self.model
        return {
            "counts": float(self.counts.sum()),
            "information, nats": round(float(model.information_), 4),
            "share kept": f"{100 * model.information_kept_:.1f} %",
            "sweeps": model.n_iter_,
        }

    def errors(self) -> dict[str, float]:
        return {} if self.held is None else code_lengths(self.model, self.held)

    def drawing(self) -> Drawing:
        model = self.model
        names = self.notes.get("items") or [[str(i) for i in range(n)] for n in self.counts.shape]
        modes = tuple(Mode(axis, np.array(items, dtype=object)) for axis, items in zip(self.axes, names))
        columns, note = self._columns()
        assign = (model.row_memberships_, columns)
        blocks = assign[0].T @ (self.counts @ assign[1])
        posterior = Posterior(Structure.grid(modes), (Mass(),), assign, (smoothed_lift(blocks, model.smoothing),))
        plain = count_sample(self.counts)
        sample = Sample(modes, plain.codes, weights=plain.weights)

        def expected(own: Ints, other: Ints) -> Floats:
            pairs = np.column_stack([own, other])
            result: Floats = np.exp(model.score_samples(pairs)) * float(self.counts.sum())
            return result

        return Drawing(posterior, sample, "count", predict=expected, words=COUNTS, zeros=True, notes=note)

    def _columns(self) -> tuple[AnyArray, tuple[str, ...]]:
        """Memberships of the columns; where they were left alone, each stands by the rows it is typical of."""
        model = self.model
        if model.column_memberships_ is not None:
            return model.column_memberships_, ()
        typical = smoothed_lift(model.blocks_, model.smoothing).argmax(axis=0)
        note = f"Every {self.axes[1]} is by itself in this model; here it stands by the cluster it is most typical of."
        return np.eye(len(model.blocks_))[typical], (note,)

    def certificates(self, asked: Asked) -> dict[str, Any]:
        asked.only_own("A density")
        return {"counted pairs": self.model.certify(self.counts, asked.delta)}

    def simplified(self, clusters: tuple[int, ...] | None, max_loss: float | None) -> tuple[Any, dict[str, Any]]:
        from gingham.selection import simplify

        if clusters is None or max_loss is not None:
            raise GinghamError("Counts are simplified to numbers of clusters: give --clusters 5,4, and no --max-loss.")
        small = simplify(self.model, self.counts, max_clusters=clusters)
        return small, {
            "clusters_before": self.model.n_clusters_,
            "clusters": small.n_clusters_,
            "information_before": self.model.information_,
            "information": small.information_,
        }
