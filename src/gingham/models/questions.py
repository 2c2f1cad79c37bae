"""What a person asks of a fitted model next: who is in which group, what to recommend, what is alike, and why."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor

from gingham.arrays import AnyArray, Floats, Ints, TableLike
from gingham.cards import card, paragraph
from gingham.data.adapt import frame_of
from gingham.errors import GinghamError, GinghamWarning, positive_integer, suggestion
from gingham.summary.card import summary_card
from gingham.summary.explanation import Explanation, Place
from gingham.summary.values import Mark, Observed, Relation, Side, Summary

SHOWN = 3  # comparable rows on each side of an explanation
SMALL = 300_000  # entries up to which a card in a notebook makes the summary that it shows
SOME = 0.1  # membership from which a further cluster is named
DIGITS = 10  # scores that agree so far are tied


class Predicted(NamedTuple):
    """What a model says of some pairs of items, and how unsure it is of each (NaN where it cannot tell)."""

    score: Floats
    uncertainty: Floats


class Questions:
    """Answers of every fitted model; a family says what was observed and, in `_predict_codes`, what it predicts."""

    _summary: Summary | None
    _data: Any

    @property
    def summary_(self) -> Summary:
        raise NotImplementedError  # pragma: no cover

    def _observed(self, *data: Any) -> Observed:
        raise NotImplementedError  # pragma: no cover

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """What is predicted of rows of codes (one array a side of a relation; −1 stands for any item)."""
        raise GinghamError(f"{type(self).__name__} does not predict pairs of items, so it cannot recommend items.")

    # tables

    def describe(self, size: Sequence[int] | int | None = None, backend: str | None = None) -> Any:
        """The clusters as a frame: side, cluster (from 1), name, items, parts, share, distinctive, typical, facts.

        ``parts`` says how many of the model's own clusters, those of ``labels_``, were merged into the group.

        Parameters
        ----------
        size : int or one int a side, optional
            Clusters to describe; the readable number by default (see :func:`gingham.summarize`).
        backend : {"pandas", "polars", "pyarrow"}, optional
            The kind of frame; the first that is installed.
        """
        summary = self.summary_
        rows = list(summary.clusters(size))
        parts = [side.n_fine(k) for side, k in zip(summary.sides, summary.sized(size))]
        return frame_of(
            {
                "side": [side.name for side, _, _ in rows],
                "cluster": [number for _, number, _ in rows],
                "name": [cluster.name for _, _, cluster in rows],
                "items": [cluster.size for _, _, cluster in rows],
                "parts": [int(n) for side in parts for n in side],
                "share": [cluster.mass / max(float(side.mass.sum()), 1e-300) for side, _, cluster in rows],
                "distinctive": [", ".join(map(signed, cluster.distinctive)) for _, _, cluster in rows],
                "typical": [", ".join(mark.item for mark in cluster.typical) for _, _, cluster in rows],
                "facts": ["; ".join(str(fact) for fact in cluster.facts) for _, _, cluster in rows],
            },
            backend,
        )

    def to_frame(self, size: Sequence[int] | int | None = None, backend: str | None = None) -> Any:
        """Every item with its cluster: side, item, title, cluster (from 1), name, membership, strength.

        ``membership`` is the item's share in the cluster, the sum of its memberships in ``assign_`` over the parts of
        the cluster; ``strength`` says how much the item's data speak for it (nats, or squares of numbers). ``size`` and
        ``backend`` as in `describe`.
        """
        summary = self.summary_
        wanted = summary.sized(size)
        columns: dict[str, list[object]] = {
            name: [] for name in ("side", "item", "title", "cluster", "name", "membership", "strength")
        }
        for at, (side, k) in enumerate(zip(summary.sides, wanted)):
            labels = side.labels(k)
            names = [cluster.name for cluster in side.cut(k)]
            belongs = summary.memberships(at, wanted)[np.arange(side.n_items), labels]
            columns["side"] += [side.name] * side.n_items
            columns["item"] += [str(item) for item in side.items.tolist()]
            columns["title"] += side.names
            columns["cluster"] += (labels + 1).tolist()
            columns["name"] += [names[label] for label in labels.tolist()]
            columns["membership"] += belongs.tolist()
            columns["strength"] += side.strength.tolist()
        return frame_of(columns, backend)

    def labels_at(self, size: Sequence[int] | int | None = None) -> tuple[Ints, ...]:
        """The cluster (from 0) of every item of each side, as tables and pages show it, which count from 1.

        ``size`` is the number of clusters of each side, the readable one by default; with as many as the model has, the
        partition is that of ``labels_``, and fewer are merged along the tree of these clusters.
        """
        return self.summary_.labels_at(size)

    # one item

    def _place(self, item: object, side: str | int | None) -> tuple[int, int]:
        """(side, position) of an item; where no side is named, the first that knows it."""
        summary = self.summary_
        chosen = range(len(summary.sides)) if side is None else [summary.sides.index(summary.side(side))]
        for at in chosen:
            found = summary.sides[at].find(item)
            if found is not None:
                return at, found
        known = " or ".join(repr(summary.sides[at].name) for at in chosen)
        example = summary.sides[chosen[0]].items[:1].tolist()[0]  # a plain value: numpy's would be named with its type
        elsewhere = [own.name for own in summary.sides if own.find(item) is not None]
        hint = f" It is one of {elsewhere[0]!r}; a row has its ids in the order " if elsewhere else ""
        hint += f"{', '.join(own.name for own in summary.sides)}." if elsewhere else ""
        names = chain.from_iterable((*summary.sides[at].names, *summary.sides[at].items.tolist()) for at in chosen)
        raise GinghamError(
            f"{item!r} is not among the items of {known}, such as {example!r}.{hint or suggestion(item, names)}"
        )

    def recommend(
        self,
        item: object,
        n: int = 10,
        *,
        side: str | int | None = None,
        label: object = None,
        seen: TableLike | None = None,
        exclude_seen: bool = True,
        backend: str | None = None,
    ) -> Any:
        """The partners with the highest predictions for an item: place, item, title, score, uncertainty, group, tied.

        Items with equal scores share a place, and ``tied`` says how many do, listed or not; among them those with more
        data come first.

        Parameters
        ----------
        item : id of an item of any side
        n : int
        side : str or int, optional
            The item's side, where several know the id; the first that does by default.
        label : optional
            Of labels that are names: the one whose probability is the score.
        seen : rows of ids, optional
            What was observed already and is left out; a model that was just fitted remembers it.
        exclude_seen : bool
            False lists what was observed, too.
        backend : {"pandas", "polars", "pyarrow"}, optional
        """
        positive_integer("n", n)
        at, code = self._place(item, side)
        summary = self.summary_
        relation, own, other = self._partners(at)
        partner = summary.sides[relation[other]]
        every = np.arange(partner.n_items, dtype=np.int32)
        codes = [np.full(partner.n_items, -1, dtype=np.int32) for _ in relation]
        codes[own], codes[other] = np.full(partner.n_items, code, dtype=np.int32), every
        found = self._predict_codes(0, codes, label)
        known = self._known_partners(at, code, own, other, seen) if exclude_seen else np.zeros(0, dtype=np.int64)
        allowed = np.ones(partner.n_items, dtype=bool)
        allowed[known] = False
        if relation[own] == relation[other]:
            allowed[code] = False
        return self._ranked(
            partner, relation[other], found.score, allowed, n, {"uncertainty": found.uncertainty}, backend
        )

    def similar(self, item: object, n: int = 10, *, side: str | int | None = None, backend: str | None = None) -> Any:
        """Items that meet the other side as this one does: place, item, title, similarity, group, tied.

        The similarity is the cosine between how the two differ from all items together, over the clusters of the other
        side; 1 is alike, 0 unrelated. ``n``, ``side`` and ``backend`` as in `recommend`.
        """
        positive_integer("n", n)
        at, code = self._place(item, side)
        own = self.summary_.sides[at]
        allowed = np.arange(own.n_items) != code
        return self._ranked(own, at, self.summary_.likeness(at, code), allowed, n, {}, backend, "similarity")

    def _partners(self, side: int) -> tuple[tuple[int, ...], int, int]:
        """(sides of the rows, position of the side, position of the one to recommend)."""
        relation = self._row_sides()
        if side not in relation:
            raise GinghamError(
                f"{self.summary_.sides[side].name!r} has no predictions, because it is not a side of the first table."
            )
        own = relation.index(side)
        return relation, own, next(p for p in range(len(relation)) if p != own)

    def _row_sides(self) -> tuple[int, ...]:
        """The sides whose ids make a row of the data."""
        first = self.summary_.tables[0]
        return first.sides if len(self.summary_.sides) <= 2 else tuple(range(len(self.summary_.sides)))

    def _known_partners(self, side: int, code: int, own: int, other: int, seen: TableLike | None) -> Ints:
        relation = self._observed_rows(seen)
        if relation is None:
            warnings.warn(
                "Observed pairs may appear in this list, because a model file does not contain the training data. "
                "Pass it as seen=X in Python, or --data TABLE on the command line.",
                GinghamWarning,
                stacklevel=4,
            )
            return np.zeros(0, dtype=np.int64)
        met = relation.codes[other][relation.codes[own] == code]
        if relation.both_ways or (relation.sides[own] == relation.sides[other]):
            met = np.concatenate([met, relation.codes[own][relation.codes[other] == code]])
        return np.unique(met[met >= 0]).astype(np.int64)

    def _observed_rows(self, seen: TableLike | None = None) -> Relation | None:
        """The rows that were observed, in the numbering of the summary; None where they are not at hand."""
        if seen is not None:
            from gingham.data.adapt import id_columns

            columns = id_columns(seen).columns
            sides = self._row_sides()
            if len(columns) < len(sides):
                raise GinghamError(f"seen= needs {len(sides)} columns of ids; it has {len(columns)}.")
            codes = tuple(self.summary_.sides[side].encode(column) for side, column in zip(sides, columns))
            return Relation(sides, codes, "lift")
        return self._observed().relations[0] if self._has_data() else None

    def _has_data(self) -> bool:
        return self._data is not None

    def _ranked(
        self,
        side: Side,
        at: int,
        score: Floats,
        allowed: AnyArray,
        n: int,
        more: dict[str, Floats],
        backend: str | None,
        name: str = "score",
    ) -> Any:
        """The n best of the allowed items; equal scores share a place, those with more data come first."""
        summary = self.summary_
        rounded = np.array([float(f"{value:.{DIGITS}g}") for value in score.tolist()])
        order = np.lexsort((np.arange(len(score)), -side.mass, -rounded))
        order = order[allowed[order]]
        ranked = rounded[order]
        first = np.searchsorted(-ranked, -ranked, side="left")
        last = np.searchsorted(-ranked, -ranked, side="right")
        order, places, tied = order[:n], (first + 1)[:n], (last - first)[:n]
        labels = side.labels(summary.size[at])
        names = [cluster.name for cluster in side.cut(summary.size[at])]
        titles = side.names
        return frame_of(
            {
                "place": places.tolist(),
                "item": side.items[order].tolist(),
                "title": [titles[i] for i in order.tolist()],
                name: score[order].astype(float).tolist(),
                **{column: values[order].astype(float).tolist() for column, values in more.items()},
                "group": [names[labels[i]] for i in order.tolist()],
                "tied": tied.tolist(),
            },
            backend,
        )

    # why

    def explain(self, row: object, *, label: object = None) -> Explanation:
        """Why this prediction: where the items of a row belong, what was observed there, and comparable rows.

        Parameters
        ----------
        row : tuple of ids, one for each side of a row, or the id of one item
        label : optional
            Of labels that are names: the one to explain; the most probable by default.
        """
        summary = self.summary_
        sides = self._row_sides()
        listed = row.tolist() if isinstance(row, np.ndarray) else row
        if not isinstance(listed, (tuple, list)):
            at, code = self._place(listed, None)
            return self._explain_item(at, code)
        ids = list(listed)
        if len(ids) != len(sides):
            names = ", ".join(summary.sides[side].name for side in sides)
            raise GinghamError(f"A row has {len(sides)} ids ({names}); {len(ids)} were given.")
        codes = [self._place(one, side)[1] for one, side in zip(ids, sides)]
        places = tuple(self._standing(side, code) for side, code in zip(sides, codes))
        named = bool(summary.tables[0].labels) and (label is not None or not is_regressor(self))
        explained = self._said(0, codes, label) if named else label
        found = self._predict_codes(0, [np.array([code], dtype=np.int32) for code in codes], explained)
        unsure = float(found.uncertainty[0])
        return Explanation(
            tuple(summary.sides[side].names[code] for side, code in zip(sides, codes)),
            places,
            str(explained) if named else float(found.score[0]),
            unsure if np.isfinite(unsure) else None,
            self._block(sides, codes),
            self._comparable(sides, codes),
            account=self._account(places, codes, float(found.score[0]), explained),
            total=float(found.score[0]),
        )

    def _account(
        self, places: Sequence[Place], codes: Sequence[int], said: float, label: object
    ) -> tuple[tuple[str, float], ...]:
        """Parts that add up to the prediction: that of average items, what each item changes, and what is left."""

        def predicted(known: Sequence[int]) -> float:
            rows = [np.array([code if at in known else -1], dtype=np.int32) for at, code in enumerate(codes)]
            return float(self._predict_codes(0, rows, label).score[0])

        try:
            base = predicted([])
            alone = [predicted([at]) - base for at in range(len(codes))]
        except (GinghamError, IndexError):  # a model that says nothing of average items
            return (("prediction", said),)
        own = [(f"{place.side} {place.item}, of “{place.name}”", value) for place, value in zip(places, alone)]
        rest = said - base - sum(alone)
        return (("average of all", base), *own, ("this pair of items", rest))

    def _said(self, relation: int, codes: Sequence[int], label: object) -> str:
        """The label that is explained, where labels are names."""
        names = self.summary_.tables[relation].labels
        if label is not None:
            return str(label)
        rows = [np.array([code], dtype=np.int32) for code in codes]
        scores = [float(self._predict_codes(relation, rows, name).score[0]) for name in names]
        return names[int(np.argmax(scores))]

    def _standing(self, at: int, code: int) -> Place:
        summary = self.summary_
        side, k = summary.sides[at], summary.size[at]
        shares = summary.memberships(at)[code]
        names = [cluster.name for cluster in side.cut(k)]
        own = int(side.labels(k)[code])
        others = [(c + 1, names[c], float(shares[c])) for c in np.argsort(-shares).tolist() if c != own]
        return Place(
            side.name, side.names[code], own + 1, names[own], float(shares[own]),
            tuple(one for one in others if one[2] >= SOME),
        )  # fmt: skip

    def _block(self, sides: Sequence[int], codes: Sequence[int]) -> str:
        """What was observed where the first two items' clusters meet."""
        summary = self.summary_
        board = summary.board()
        at = [int(summary.sides[side].labels(summary.size[side])[code]) for side, code in zip(sides, codes)]
        text, n = board.text(at[0], at[1]), board.counts[at[0], at[1]]
        said = "as expected" if text == "·" else text
        return f"Where the two groups meet, {n:,.0f} were observed; {MEANS[board.measure]}: {said}."

    def _comparable(
        self, sides: Sequence[int], codes: Sequence[int]
    ) -> tuple[tuple[tuple[str, ...], float | str], ...]:
        """Observed rows with one of the items, the other from the other item's own cluster, those most alike first."""
        relation = self._observed_rows()
        if relation is None or len(sides) != 2:
            return ()
        summary = self.summary_
        found: list[tuple[tuple[str, ...], float | str]] = []
        for fixed, free in ((0, 1), (1, 0)):
            side = summary.sides[sides[free]]
            rows = np.flatnonzero(relation.codes[fixed] == codes[fixed])
            partners = relation.codes[free][rows]
            labels = side.labels(summary.size[sides[free]])
            same = (labels[partners] == labels[codes[free]]) & (partners != codes[free])
            rows, partners = rows[same], partners[same]
            alike = summary.likeness(sides[free], codes[free])[partners]
            for r in rows[np.argsort(-alike, kind="stable")[:SHOWN]].tolist():
                names = tuple(summary.sides[sides[p]].names[int(relation.codes[p][r])] for p in (0, 1))
                found.append((names, _observed_value(relation, r)))
        return tuple(found)

    def _explain_item(self, at: int, code: int) -> Explanation:
        """Where one item belongs, and which of its observations say so most."""
        place = self._standing(at, code)
        telling: tuple[tuple[str, float], ...] = ()
        relation = self._observed_rows()
        summary = self.summary_
        if relation is not None and at in relation.sides:
            own = relation.sides.index(at)
            other = next(p for p in range(len(relation.sides)) if p != own)
            rows = np.flatnonzero(relation.codes[own] == code)
            partner = summary.sides[relation.sides[other]]
            marks = {m.item: m.score for m in summary.sides[at].cut(summary.size[at])[place.cluster - 1].distinctive}
            names = partner.names
            listed = [(names[int(relation.codes[other][r])], r) for r in rows.tolist()]
            ranked = sorted(listed, key=lambda one: -abs(marks.get(one[0], 0.0)))
            values = [(name, _observed_value(relation, r)) for name, r in ranked[: 2 * SHOWN]]
            telling = tuple((name, value) for name, value in values if not isinstance(value, str))
        return Explanation((place.item,), (place,), telling=telling)

    # pictures

    def plot(self, size: Sequence[int] | int | None = None, ax: Any = None) -> Any:
        """The named checkerboard as a picture (matplotlib Axes), at the readable size or another."""
        return import_module("gingham.plots").named_board(self.summary_, size=size, ax=ax)

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write one self-contained page about the model."""
        import_module("gingham.report").write_model(self, path, title=title)

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        """What a notebook shows: a card of a fitted model, with scikit-learn's view of its parameters."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr  # loaded in notebooks only

        return (self._card() or "") + str(estimator_html_repr(self))

    def _card(self) -> str | None:
        """What was fitted, what was found, and the error beside baselines; None of a model that is not fitted."""
        if not hasattr(self, "__sklearn_is_fitted__") and not [v for v in vars(self) if v.endswith("_")]:
            return None
        title = f"{type(self).__name__}, fitted"
        if self._summary is None:
            try:
                if sum(r.n_entries for r in self._observed().relations) > SMALL:
                    return card(
                        title, paragraph("model.summary_ names its clusters; on data of this size that takes a while.")
                    )
                summary = self.summary_
            except GinghamError as refusal:
                return card(title, paragraph(str(refusal), quiet=True))
        else:
            summary = self._summary
        return summary_card(summary, title)


MEANS = {
    "lift": "compared with chance",
    "difference": "compared with the averages",
    "labels": "the commonest label there",
}


def signed(mark: Mark) -> str:
    """An item with its sign where it is rated lower than others do."""
    return f"− {mark.item}" if mark.score < 0 else mark.item


def _observed_value(relation: Relation, row: int) -> float | str:
    if relation.values is None:
        return float(relation.weight[row])
    if relation.labels:
        return relation.labels[int(relation.values[row])]
    return float(relation.values[row])
