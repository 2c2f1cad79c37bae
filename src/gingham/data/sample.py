"""Sample: N weighted, labelled tuples of item codes, the one layout below the door, and the sums asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, Ints, beside, namespace
from gingham.data.fit_rows import FitRows
from gingham.data.modes import MOST_WEIGHT, Alphabet, Features, Mode, need_moderate, need_unmasked
from gingham.errors import GinghamError
from gingham.kernels.place import Work, goes_to_device
from gingham.kernels.project import Rows, project_cost, project_table

if TYPE_CHECKING:
    from gingham.data.device_sample import DeviceSample
    from gingham.kernels.project_compiled import Tiles


@dataclass(frozen=True, eq=False)
class Sample:
    """Observed tuples (x_1, …, x_d, y) with weights.

    A mode that is met twice (a graph) stands at both positions as the same Mode object.

    Attributes
    ----------
    modes : tuple of Mode, one per position
    codes : tuple of int32 arrays of shape (n_rows,), one per position
        −1 is an item that the mode does not have; only a posterior can tell where it belongs.
    labels : float64 array of shape (n_rows,) or None
        Numeric labels (positions in the alphabet where labels are names).
    alphabet : Alphabet or None
    label_codes : int32 array of shape (n_rows,) or None
    weights : float64 array of shape (n_rows,) or None
        Counts; None means one each.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> sample = model.sample(X, y)
    >>> len(sample.modes), sample.codes[0].shape
    (2, (600,))
    """

    on_device: ClassVar[bool] = False  # whether the columns are tensors on a GPU, see `DeviceSample`

    modes: tuple[Mode, ...]
    codes: tuple[Ints, ...]
    labels: Floats | None = None
    alphabet: Alphabet | None = None
    label_codes: Ints | None = None
    weights: Floats | None = None
    # What has been made of the tuples. Not an argument: `replace` begins with none, for other tuples have other ones.
    _layouts: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        columns: Sequence[npt.ArrayLike],
        y: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        modes: Sequence[Mode] | None = None,
        alphabet: Alphabet | None = None,
        numbers: bool = True,
        unseen: bool = False,
    ) -> Sample:
        """Number the items of each column (or use given modes) and check labels and weights.

        ``numbers`` says whether labels of an alphabet are kept as numbers beside their codes, ``unseen`` whether
        items that given modes do not have are kept as −1 or refused.
        """
        columns = cls.brought(columns)
        if modes is None:
            names = names or [f"mode{j}" for j in range(len(columns))]
            modes, codes = zip(*(cls.numbered(column, name) for column, name in zip(columns, names)))
        else:
            codes = tuple(cls.encoded(mode, column) for mode, column in zip(modes, columns))
            for mode, code in zip(modes, codes):
                if len(code) and code.min() < 0 and not unseen:
                    row = int(namespace(code).argmax(1 * (code < 0)))
                    raise GinghamError(
                        f"Column {mode.name!r}, row {row}: this id was not among the items of the mode. "
                        "Only ids seen in training can be used here."
                    )
        n_rows = len(codes[0])
        labels = label_codes = None
        if y is not None:
            need_unmasked(y, "y")
            y = cls.column(y)
            if len(y) != n_rows:
                raise GinghamError(f"X has {n_rows} rows but y has {len(y)}.")
            if alphabet is not None:
                label_codes = cls.column(alphabet.encode(y))
                labels = alphabet.numbers[label_codes] if numbers and not cls.on_device else None
            else:
                try:
                    labels = y.double() if cls.on_device else y.astype(np.float64)  # type: ignore[attr-defined]
                except (TypeError, ValueError) as error:
                    raise GinghamError(f"This loss needs labels that are numbers: {error}.") from None
                need_moderate(labels, "Label")
        given = checked_weights(weights, n_rows)
        return cls(
            modes=tuple(modes),
            codes=tuple(codes),
            labels=labels,
            alphabet=alphabet,
            label_codes=label_codes,
            weights=None if given is None else cls.column(given),
        )

    def placed(self) -> DeviceSample:
        """The same tuples on the device, copied once and kept."""
        from gingham.data.device_sample import DeviceSample

        if ("device",) not in self._layouts:
            self._layouts["device",] = DeviceSample.copied(self)
        return self._layouts["device",]

    # how columns come to where the sample lies

    @staticmethod
    def brought(columns: Sequence[npt.ArrayLike]) -> Sequence[Any]:
        """Columns of ids where they are numbered."""
        return columns

    @staticmethod
    def numbered(column: npt.ArrayLike, name: str) -> tuple[Mode, AnyArray]:
        """A mode of the ids of a column, and their codes."""
        mode = Mode.of(column, name)
        return mode, mode.encode(column)

    @staticmethod
    def encoded(mode: Mode, column: npt.ArrayLike) -> AnyArray:
        """Codes of ids, −1 for those that the mode does not know."""
        return mode.encode(column)

    @staticmethod
    def column(values: npt.ArrayLike) -> AnyArray:
        """Labels, their codes or weights."""
        return np.asarray(values)

    @property
    def n_modes(self) -> int:
        return len(self.modes)

    @property
    def n_rows(self) -> int:
        """Stored tuples; duplicates and weights not merged."""
        return len(self.codes[0])

    @property
    def n_tuples(self) -> float:
        """N: the total weight, in which a tuple of weight 2 counts twice."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(mode.n_items for mode in self.modes)

    @property
    def has_unseen(self) -> bool:
        """Whether some tuple has an item that its mode does not have (code −1)."""
        if ("unseen",) not in self._layouts:
            self._layouts["unseen",] = any(bool(len(code)) and bool(code.min() < 0) for code in self.codes)
        return bool(self._layouts["unseen",])

    def with_others(self) -> Sample:
        """The same tuples with one more item at the end of each mode, which stands for all that it does not have."""
        wide = {id(mode): Mode(mode.name, np.arange(mode.n_items + 1)) for mode in self.modes}
        codes = tuple(np.where(code < 0, n, code).astype(np.int32) for code, n in zip(self.codes, self.shape))
        return replace(self, modes=tuple(wide[id(mode)] for mode in self.modes), codes=codes)

    @property
    def has_counts(self) -> bool:
        """Whether all weights are whole numbers, so that a tuple of weight w stands for w draws."""
        return self.weights is None or bool(np.all(self.weights == np.floor(self.weights)))

    def __sizeof__(self) -> int:
        """Bytes of its columns and of what is made of them: schedulers ask before they move it."""
        columns = (*self.codes, self.labels, self.label_codes, self.weights)
        sorted_rows = self.n_modes * self.n_rows * (4 * self.n_modes + (0 if self.weights is None else 8))
        return sorted_rows + sum(column.nbytes for column in columns if column is not None)

    def take(self, rows: AnyArray) -> Sample:
        """The sub-sample of the given rows (indices or mask); modes and alphabet stay."""
        pick = lambda a: None if a is None else a[rows]  # noqa: E731
        return Sample(
            modes=self.modes,
            codes=tuple(code[rows] for code in self.codes),
            labels=pick(self.labels),
            alphabet=self.alphabet,
            label_codes=pick(self.label_codes),
            weights=pick(self.weights),
        )

    def merged(self) -> Sample:
        """Equal tuples (label included) as one with their weights added, in a fixed order.

        What is drawn from it then depends neither on the order of the rows nor on how repetitions are
        written, and a tuple that is held out has no twin among the others.
        """
        columns = (*self.codes, *(() if self.labels is None else (self.labels,)))
        order = self._sorted()
        changes = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
        starts = np.flatnonzero(np.concatenate([[True], changes]))
        weights: Floats = np.ones(self.n_rows) if self.weights is None else self.weights
        totals = np.add.reduceat(weights[order], starts)
        return replace(self.take(order[starts]), weights=None if (totals == 1).all() else totals)

    def _sorted(self) -> Ints:
        """``np.lexsort`` by codes, then labels: one sort by a joint code where it fits, labels only among equals."""
        if prod(self.shape) > 2**62 or any(int(code.min(initial=0)) < 0 for code in self.codes):
            return np.lexsort((*(() if self.labels is None else (self.labels,)), *self.codes[::-1]))
        joint = np.ravel_multi_index(tuple(code.astype(np.int64) for code in self.codes), self.shape)
        order = np.argsort(joint, kind="stable")
        if self.labels is not None:
            equal = np.diff(joint[order]) == 0
            among = np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
            rows = order[among]
            order[among] = rows[np.lexsort((self.labels[rows], joint[rows]))]
        return order

    def fit_rows(self) -> FitRows:
        """A sketch of these tuples, by which a model that has learned from them knows them again."""
        return FitRows.of(self)

    def counts(self, axis: int) -> Floats:
        """Total weight of each item of one position, shape (n_items,)."""
        return np.bincount(self.codes[axis], self.weights, minlength=self.shape[axis]).astype(np.float64)

    def totals(self, axis: int, values: Sequence[Floats]) -> Floats:
        """Sums of some columns over the tuples of each item of one position, shape (n_items, len(values))."""
        n = self.shape[axis]
        return np.stack([np.bincount(self.codes[axis], column, minlength=n) for column in values], axis=1)

    @property
    def label_index(self) -> Ints:
        """Codes of the labels in a type that may stand as an index."""
        if self.label_codes is None:
            raise GinghamError("This needs labels on an alphabet.")
        return self.label_codes

    def numbers(self) -> Floats:
        """Labels as numbers, shape (n_rows,), also where only their codes are kept."""
        if self.labels is None and self.alphabet is not None:
            return beside(self.alphabet.numbers, self.label_index)[self.label_index]
        return self.labels  # type: ignore[return-value]

    def features_of(self, features: Features) -> Floats:
        """t(y) of every tuple, shape (n_rows, K); tuples without labels count as ones."""
        labels = self.numbers()
        ones = namespace(self.codes[0]).ones_like(self.codes[0])
        return features.evaluate(ones if labels is None else labels, self.label_index if features.one_hot else None)

    def sums(self, features: Features) -> Sums:
        """The sums over its tuples that starts, answers and certificates ask for."""
        return SumsOfSample(self, features, None if self.alphabet is None else self.alphabet.numbers)

    def completed(self, table: Floats, assigns: Sequence[Floats], features: Features) -> Floats:
        """Cell statistics of all observed tuples from those of the listed ones (here the same)."""
        return table

    def statistics(self, assigns: Sequence[Floats], features: Features, backend: str = "compiled") -> Floats:
        """Σ_e w_e t(y_e) Π_j assigns_j[x_j, c_j] over all observed tuples, shape (m_1, …, m_d, K)."""
        return SumsOfSample(self, features).table(assigns, backend)

    def rows(self, axis: int, features: Features) -> Rows:
        """The tuples grouped by the items of one position, in the kernels' layout (kept once made)."""
        key = (axis, features)
        if key not in self._layouts:
            self._layouts[key] = self._group(axis, features)
        return self._layouts[key]

    def tiles(self, axis: int, features: Features, row_bytes: int) -> Tiles | None:
        """The same rows in tiles, where the other mode's assignments (``row_bytes`` an item) outgrow the cache.

        Made once and kept, for one width at a time; None where they would not pay.
        """
        if self.n_modes != 2:
            return None
        from gingham.kernels.project_compiled import make_tiles  # compiled code is loaded where it is used

        key = ("tiles", axis, features)
        if self._layouts.get(key, (None, None))[0] != row_bytes:
            self._layouts[key] = (row_bytes, make_tiles(self.rows(axis, features), self.shape[1 - axis], row_bytes))
        return self._layouts[key][1]

    def _group(self, axis: int, features: Features) -> Rows:
        from gingham.kernels.group_by_item import grouping  # compiled code is loaded where it is used

        if self.has_unseen:
            raise GinghamError(
                "Some tuples have items that were not in the training data: they cannot be learned from."
            )
        codes = self.codes[axis]
        n_items = self.shape[axis]
        label_codes = None
        if features.one_hot:
            if self.label_codes is None:
                raise GinghamError("This cell model needs labels on an alphabet.")
            label_codes = self.label_codes
        # Sorted by label within an item, a row's sums stay in registers.
        per_item = 1 if label_codes is None else features.size
        within = np.empty(0, np.int32) if label_codes is None else label_codes
        columns: list[AnyArray] = [self.codes[j] for j in range(self.n_modes) if j != axis]
        if not features.one_hot:
            columns.append(np.ones(self.n_rows) if self.labels is None else self.labels)
        if self.weights is not None:
            columns.append(self.weights)
        begin, found = grouping(codes, within, n_items, per_item, columns)
        weights = None if self.weights is None else found.pop()
        dense = None if features.one_hot else np.ascontiguousarray(features.evaluate(found.pop()))
        others = found[0] if len(found) == 1 else np.array(found, dtype=np.int32)
        marks = None
        if label_codes is not None:
            marks = np.repeat(np.tile(np.arange(per_item, dtype=np.int32), n_items), np.diff(begin))
        return Rows(
            indptr=np.ascontiguousarray(begin[::per_item]),
            others=others.reshape(self.n_modes - 1, self.n_rows),
            labels=marks,
            features=dense,
            weights=weights,
            n_features=features.size,
            runs=None if label_codes is None else begin,
        )


def sample_kind(backend: str, work: Work) -> type[Sample]:
    """Where tuples go: `DeviceSample` where torch was asked for or a GPU is faster, `Sample` otherwise."""
    if not goes_to_device(backend, work):
        return Sample
    from gingham.data.device_sample import DeviceSample

    return DeviceSample


def checked_labels(y: npt.ArrayLike, what: str = "y") -> AnyArray:
    """One label a row; nothing of it may be masked."""
    need_unmasked(y, what)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise GinghamError(f"{what} has shape {labels.shape}; it needs one label per row, (N,): use {what}.ravel().")
    return labels


def checked_weights(weights: npt.ArrayLike | None, n_rows: int) -> Floats | None:
    if weights is None:
        return None
    need_unmasked(weights, "sample_weight")
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise GinghamError(f"sample_weight has shape {weights.shape}; it needs one number per row, ({n_rows},).")
    if not np.isfinite(weights).all() or (weights < 0).any():
        row = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise GinghamError(
            f"sample_weight is {weights[row]} in row {row}: weights are counts, finite and not negative."
        )
    if weights.max(initial=0.0) > MOST_WEIGHT or weights.sum() > MOST_WEIGHT:
        raise GinghamError(
            f"sample_weight adds up to more than 2**53 (the largest is {weights.max():g}), where counts cannot be told "
            "apart any more. Divide all weights by a number."
        )
    if weights.sum() <= 0:
        raise GinghamError("All weights are zero: there is nothing to learn from.")
    return weights


def tuples(
    columns: Sequence[npt.ArrayLike], y: npt.ArrayLike, weights: npt.ArrayLike | None = None, **how: Any
) -> Sample:
    """Rows as tuples for themselves, whatever a model makes of their labels; ``how`` is for `Sample.of`."""
    labels = np.asarray(y).ravel()
    letters = None if labels.dtype.kind in "biuf" else Alphabet.of(np.unique(labels), given=False)
    return Sample.of(columns, labels, weights, alphabet=letters, **how)


class Sums(Protocol):
    """Sums over the tuples of a relation, wherever the tuples are; t(y) are the features of its cells."""

    @property
    def features(self) -> Features: ...

    @property
    def numbers(self) -> Floats | None:
        """Label values where labels are on an alphabet."""

    def project(self, axis: int, assigns: Sequence[Floats], coef: Floats) -> Floats:
        """Σ_{tuples e of item x} w_e Σ_kr coef[i, k·r] t_k(y_e) Π_j assigns_j[x_j, r_j], shape (n_items, len(coef)).

        ``assigns`` are those of the other positions; coef has shape (outputs, K · Π m_j).
        """

    def table(self, assigns: Sequence[Floats], backend: str = "compiled") -> Floats:
        """Σ_e w_e t(y_e) Π_j assigns_j[x_j, c_j], shape (m_1, …, m_d, K); tuples on a device are summed there."""

    def squares(self) -> float:
        """Σ_e w_e y_e² where labels are numbers without an alphabet."""

    def drawn(self, items: Ints, places: Floats) -> Floats:
        """t(y), shape (n, K), of one tuple of each of the items of position 0.

        An item's tuples lie in the order of their labels, each as wide as its weight; the tuple at ``places``.
        """


@dataclass(frozen=True, eq=False)
class SumsOfSample:
    """The sums of one sample, or of one partition of it (anything that has ``rows``)."""

    sample: Any
    features: Features
    numbers: Floats | None = None

    def project(self, axis: int, assigns: Sequence[Floats], coef: Floats) -> Floats:
        return project_cost(self.sample.rows(axis, self.features), assigns, coef, "compiled")

    def table(self, assigns: Sequence[Floats], backend: str = "compiled") -> Floats:
        first, *others = assigns
        flat = project_table(self.sample.rows(0, self.features), others, first, backend)
        table = flat.reshape(first.shape[1], self.features.size, *(q.shape[1] for q in others))
        return self.sample.completed(np.moveaxis(table, 1, -1), tuple(assigns), self.features)

    def squares(self) -> float:
        rows = self.sample.rows(0, self.features)
        if self.features.one_hot or self.features.size < 2:
            return 0.0
        squares = rows.features[:, 1] ** 2
        return float(squares.sum() if rows.weights is None else squares @ rows.weights)

    def drawn(self, items: Ints, places: Floats) -> Floats:
        rows = self.sample.rows(0, self.features)
        found, one_hot = np.empty((len(items), self.features.size)), np.eye(self.features.size)
        for at, (item, place) in enumerate(zip(items, places)):
            own = slice(rows.indptr[item], rows.indptr[item + 1])
            weights = np.ones(own.stop - own.start) if rows.weights is None else rows.weights[own]
            if rows.labels is not None:  # sorted within an item
                found[at] = one_hot[rows.labels[own][_reached(weights, place)]]
                continue
            features = rows.features[own]
            order = np.argsort(features[:, min(1, self.features.size - 1)], kind="stable")
            found[at] = features[order[_reached(weights[order], place)]]
        return found


def _reached(weights: Floats, place: float) -> int:
    """Which of some neighbouring stretches of these widths a place lies in."""
    return min(int(np.searchsorted(np.cumsum(weights), place, side="right")), len(weights) - 1)
