"""Observations of layers in parts on a dask cluster, each with all rows of some items of the first mode ("users").

Users are parted in the order of their codes, so that rows have the same order, and chains the same random numbers, as
in memory, however the table came.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import clone

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import Columns
from gingham.data.fit_rows import FitRows
from gingham.data.partitioned import MOST_LABELS, Names, PartitionedTable
from gingham.data.sample import distinct, joined_ids
from gingham.engine.actors import start_actors
from gingham.engine.dask_worker import Client, Future, submit
from gingham.errors import GinghamError
from gingham.lazy import lazy_module
from gingham.models.layers.chain import padded
from gingham.models.layers.chain_dask import DaskLayout, PartRows
from gingham.models.layers.design import Design, Effort, make_problem, plan_layers
from gingham.models.layers.problem import BASKET, ITEM, Basket, LayerPlan, LayerProblem, Priors
from gingham.models.layers.side import GivenSide, SideTokens

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

    from gingham.models.layers.estimator import LayeredModel
else:
    nw = lazy_module("narwhals")


class FrameFacts(NamedTuple):
    """What a frame of the table has."""

    names: list[str]
    items: list[AnyArray]  # different ids of each mode
    labels: AnyArray  # different labels, or some of very many
    ends: tuple[float, float]  # the smallest and largest label
    n_rows: int


def _rows_of(frame: IntoDataFrame, names: Names, model: LayeredModel) -> tuple[Columns, AnyArray, Floats | None]:
    X, y, weights = names.read(frame)
    return model._labelled_rows(X, y, weights)


def _facts_of(frame: IntoDataFrame, names: Names, model: LayeredModel) -> FrameFacts | None:
    if not len(nw.from_native(frame, eager_only=True)):
        return None
    columns, labels, _ = _rows_of(frame, names, model)
    items = [Mode.of(column, name).items for column, name in zip(columns.columns, columns.names)]
    ends = float(labels.min()), float(labels.max())
    return FrameFacts(columns.names, items, distinct(labels, names.label)[:MOST_LABELS], ends, len(labels))


def _encoded(
    frame: IntoDataFrame, names: Names, model: LayeredModel, modes: Sequence[Mode], alphabet: Alphabet | None
) -> Sample:
    if not len(nw.from_native(frame, eager_only=True)):
        nothing = np.zeros(0, dtype=np.int32)
        return Sample(tuple(modes), (nothing,) * len(modes), np.zeros(0), alphabet)
    columns, labels, weights = _rows_of(frame, names, model)
    return Sample.of(columns.columns, labels, weights, modes=modes, alphabet=alphabet)


def _counts_of_users(sample: Sample) -> Ints:
    return np.bincount(sample.codes[0], minlength=sample.shape[0])


def _between(sample: Sample, first: int, last: int) -> tuple[tuple[Ints, ...], Floats | None, Floats | None]:
    """The rows of the users first:last."""
    rows = np.flatnonzero((first <= sample.codes[0]) & (sample.codes[0] < last))
    labels, weights = (None if a is None else a[rows] for a in (sample.labels, sample.weights))
    return tuple(code[rows] for code in sample.codes), labels, weights


def _part_of(
    first: int, last: int, modes: Sequence[Mode], *pieces: tuple[tuple[Ints, ...], Floats, Floats | None]
) -> Sample:
    """Pieces of frames as one part, its users numbered from 0, equal rows as one."""
    codes = [np.concatenate(own) for own in zip(*(piece[0] for piece in pieces))]
    weighted = any(piece[2] is not None for piece in pieces)
    weights = [np.ones(len(labels)) if own is None else own for _, labels, own in pieces] if weighted else None
    own = Mode(modes[0].name, modes[0].items[first:last])
    return Sample(
        (own, *modes[1:]),
        (codes[0] - np.int32(first), *codes[1:]),
        np.concatenate([labels for _, labels, _ in pieces]),
        weights=None if weights is None else np.concatenate(weights),
    ).merged()


def _sums_of(sample: Sample) -> tuple[int, float, float, Sequence[Ints]]:
    """Rows, Σ w, Σ w y, and the rows of the items of every mode."""
    labels = np.asarray(sample.labels)
    counts = [np.bincount(code, minlength=n) for code, n in zip(sample.codes, sample.shape)]
    return sample.n_rows, sample.n_observations, float(np.sum(labels * _weights(sample))), counts


def _squares_of(sample: Sample, mean: float) -> float:
    return float(np.sum(_weights(sample) * (np.asarray(sample.labels) - mean) ** 2))


def _weights(sample: Sample) -> Floats:
    return np.ones(sample.n_rows) if sample.weights is None else sample.weights


def _of_items(sample: Sample, mode: int, chosen: Bools) -> tuple[tuple[Ints, ...], Floats | None, Floats | None]:
    some = sample.of_items(mode, chosen)
    return some.codes, some.labels, some.weights


def _pairs_of(sample: Sample, p: int, q: int, first_user: int) -> tuple[Ints, Ints]:
    """The different pairs of items of two modes, in the numbers of all parts."""
    n = max(sample.shape[q], 1)
    keys = np.unique(sample.codes[p].astype(np.int64) * n + sample.codes[q])
    found = [(keys // n).astype(np.int32), (keys % n).astype(np.int32)]
    for at, mode in enumerate((p, q)):
        found[at] += np.int32(first_user if mode == 0 else 0)
    return found[0], found[1]


def _problem_of(
    sample: Sample, label_values: Floats | None, side: Mapping[int, SideTokens], first_user: int, effort: Effort,
    item_clusters: Sequence[int], layers: Sequence[LayerPlan],
) -> LayerProblem:  # fmt: skip
    """The problem of one part, with the side information of its users."""
    own = dict(side)
    if 0 in own:
        at = own[0].items - first_user
        mine = (at >= 0) & (at < sample.shape[0])
        own[0] = own[0]._replace(items=at[mine], tokens=own[0].tokens[mine])
    return make_problem(sample, None, label_values, own, effort, item_clusters, layers)


def _rows_at(problem: LayerProblem, rows: Ints) -> tuple[Sequence[Ints], Floats, Floats | None]:
    some = problem.take(rows)
    return list(some.codes), some.labels, some.weights


@dataclass(frozen=True, eq=False)
class ScatteredRows:
    """The observations of a table in parts."""

    client: Client
    parts: list[Future[Sample]]
    modes: tuple[Mode, ...]
    first_users: Ints  # (parts + 1,)
    first_rows: Ints  # (parts + 1,)
    n_observations: float
    center: float  # mean of the labels
    scale: float  # their variance
    has_rows: tuple[Bools, ...]  # items of each mode
    ends: tuple[float, float]  # the smallest and largest label
    learned: Sequence[Future[FitRows]]  # sketches of the rows

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(mode.n_items for mode in self.modes)

    @property
    def n_modes(self) -> int:
        return len(self.modes)

    @property
    def n_rows(self) -> int:
        return int(self.first_rows[-1])

    def fit_rows(self) -> FitRows:
        """The sketch of all rows."""
        first, *others = self.client.gather(self.learned)
        return first.with_rows(*others)

    def of_items(self, mode: int, chosen: Bools) -> Sample:
        """The observations of some items of a mode, here."""
        firsts = self.first_users.tolist()
        own = [chosen[a:b] if mode == 0 else chosen for a, b in pairwise(firsts)]
        pieces = self.client.gather([submit(self.client, _of_items, p, mode, c) for p, c in zip(self.parts, own)])
        return Sample(self.modes, *_together(pieces, firsts))

    def pairs(self, p: int, q: int) -> tuple[Ints, Ints]:
        """The different pairs of items of two modes."""
        firsts = self.first_users.tolist()
        every = self.client.gather([submit(self.client, _pairs_of, own, p, q, a) for own, a in zip(self.parts, firsts)])
        both = [np.concatenate(own) for own in zip(*every)]
        if 0 not in (p, q):  # several parts may have them
            both = list(np.unique(np.stack(both), axis=1))
        return both[0], both[1]

    def problem(self, label_values: Floats | None, side: Mapping[int, SideTokens], design: Design) -> LayerProblem:
        """The problem of all parts, as `make_problem` makes it of rows in memory; their samples are let go."""
        client, shape = self.client, self.shape
        known: dict[tuple[int, int], tuple[Ints, Ints]] = {}

        def pairs(p: int, q: int) -> tuple[Ints, Ints]:
            first, second = min(p, q), max(p, q)
            if (first, second) not in known:
                known[first, second] = self.pairs(first, second)
            return known[first, second] if p < q else known[first, second][::-1]

        def basket_of(kind: str, source: int, other: int) -> Basket:
            if kind == ITEM:
                return Basket.itself(shape[source])
            if kind == BASKET:
                return Basket.of_pairs(*pairs(source, other), shape[source], shape[other])
            table = side[source]
            return Basket.of_pairs(table.items, table.tokens, shape[source], table.n_tokens)

        effort, item_clusters = design.effort, design.item_clusters
        layers = plan_layers(shape, side, effort, item_clusters, lambda p, q: len(pairs(p, q)[0]))
        baskets = {layer.basket: basket_of(*layer.basket_key) for layer in layers}
        settings = effort, item_clusters, layers
        parts = [
            submit(client, _problem_of, own, label_values, dict(side), first, *settings)
            for own, first in zip(self.parts, self.first_users.tolist())
        ]
        self.parts.clear()
        widths = tuple(padded(layer.n_target_clusters) for layer in layers)
        return ScatteredProblem(
            n_items=shape, codes=np.zeros((len(shape), 0), dtype=np.int32), labels=np.zeros(0), weights=None,
            label_values=label_values, baskets=tuple(baskets[at] for at in range(len(baskets))), layers=layers,
            scale=self.scale, center=self.center, priors=Priors(), rows=self, parts=parts,
            where=DaskLayout(partial(start_actors, client, PartRows, parts), widths, self.first_rows, self.first_users),
        )  # fmt: skip


def _together(
    pieces: Sequence[tuple[Sequence[Ints], Floats | None, Floats | None]], first_users: Sequence[int]
) -> tuple[tuple[Ints, ...], Floats, None, None, Floats | None]:
    """Codes, labels and weights of the rows of several parts, as `Sample` takes them."""
    codes = [np.concatenate(own) for own in zip(*(piece[0] for piece in pieces))]
    sizes = [len(piece[0][0]) for piece in pieces]
    codes[0] = codes[0] + np.repeat(first_users[: len(pieces)], sizes).astype(np.int32)
    labels = np.concatenate([np.asarray(own) for _, own, _ in pieces])
    weights = [np.ones(n) if own is None else own for n, (_, _, own) in zip(sizes, pieces)]
    weighted = any(own is not None for _, _, own in pieces)
    return tuple(codes), labels, None, None, np.concatenate(weights) if weighted else None


@dataclass(frozen=True, eq=False, kw_only=True)
class ScatteredProblem(LayerProblem):
    """A problem whose rows are in parts; what it has of rows itself is empty."""

    rows: ScatteredRows
    parts: Sequence[Future[LayerProblem]]
    where: DaskLayout

    @property
    def layout(self) -> DaskLayout:
        return self.where

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def has_rows(self, mode: int) -> Bools:
        return self.rows.has_rows[mode]

    def take(self, rows: AnyArray) -> LayerProblem:
        cuts = np.searchsorted(rows, self.rows.first_rows)
        own = [rows[a:b] - first for (a, b), first in zip(pairwise(cuts), self.rows.first_rows)]
        client = self.rows.client
        pieces = client.gather([submit(client, _rows_at, part, at) for part, at in zip(self.parts, own)])
        codes, labels, _, _, weights = _together(pieces, self.rows.first_users.tolist())
        return LayerProblem(
            self.n_items, np.stack(codes), labels, weights, self.label_values, self.baskets, self.layers,
            scale=self.scale, center=self.center, priors=self.priors,
        )  # fmt: skip


def read(table: PartitionedTable, model: LayeredModel) -> tuple[ScatteredRows, list[GivenSide], Alphabet | None]:
    """The rows of a table in parts, tables of side information, and the labels that the model makes of the rows'."""
    client, names, reader = table.client, table.names, clone(model).set_params(side=None)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        frames, n_parts = table.frames(shuffled=False)
    facts = [fact for fact in client.gather([submit(client, _facts_of, own, names, reader) for own in frames]) if fact]
    if not facts:
        raise GinghamError("The partitions are empty.")
    columns = [joined_ids([fact.items[at] for fact in facts]) for at in range(len(facts[0].names))]
    modes, tables = model._modes(Columns(columns, facts[0].names))
    alphabet = model._alphabet(np.concatenate([fact.labels for fact in facts]))
    known = client.submit(_same, modes, pure=False)
    coded = [submit(client, _encoded, frame, names, reader, known, alphabet) for frame in frames]
    learned = [submit(client, Sample.fit_rows, own) for own in coded]
    # As many rows in each part, about.
    rows = np.cumsum(reduce(add, client.gather([submit(client, _counts_of_users, own) for own in coded])))
    wanted = rows[-1] * np.arange(1, n_parts) / n_parts
    cuts = np.unique(np.concatenate([[0], np.searchsorted(rows, wanted) + 1, [modes[0].n_items]]))
    first_users = cuts[cuts <= modes[0].n_items]
    parts = []
    for first, last in pairwise(first_users.tolist()):
        pieces = [submit(client, _between, own, first, last) for own in coded]
        parts.append(submit(client, _part_of, first, last, known, *pieces))
    sums = client.gather([submit(client, _sums_of, own) for own in parts])
    total = float(sum(own[1] for own in sums))
    mean = float(sum(own[2] for own in sums)) / total
    variance = float(sum(client.gather([submit(client, _squares_of, own, mean) for own in parts]))) / total
    counts = [np.concatenate([own[3][0] for own in sums])]
    counts += [reduce(add, [own[3][mode] for own in sums]) for mode in range(1, len(modes))]
    found = ScatteredRows(
        client, parts, modes, first_users, np.cumsum([0, *(own[0] for own in sums)]), total, mean,
        variance if variance > 0 else 1.0, tuple(own > 0 for own in counts),
        (min(fact.ends[0] for fact in facts), max(fact.ends[1] for fact in facts)), learned,
    )  # fmt: skip
    return found, tables, alphabet


def _same(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    return modes
