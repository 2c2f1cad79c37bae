"""FitRows: a small sketch of the rows that a model has learned from, so that it knows them when it meets them again.

A certificate of rows that the fit has not seen is false on rows that it has seen. The data themselves are not kept in
a model file, but 64 bits of each row are, of at most 2¹⁶ rows: 48 of its ids and 16 of its label, as the user wrote
them. Of larger data the rows with the smallest numbers are kept (a bottom-k sketch), which are a random part of them,
and the same part of any other table is compared with it.

Rows that are drawn independently may be equal by chance. How often that happens is seen in the fit itself: the share
of its draws that occur in it a second time estimates the chance that a new draw is one of its rows (Good and Turing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, on_host
from gingham.errors import RefusedCertificate
from gingham.storage import savable

if TYPE_CHECKING:
    from gingham.data.sample import Sample

MOST = 2**16  # different rows that are kept
SOME = 2**14  # rows are enough to see how many are copies
BLOCK = 2**15  # rows that are looked at together: they stay in the cache
LABEL = np.uint64(16)  # bits of a label; the others are of the ids
WHOLE = 2**48  # so many different numbers ids can have
SURE = 1e-3  # so rarely a limit is passed by chance
FEWEST = 20  # so many different rows do not all occur an even number of times by chance
MANY_REPEATS = 0.05  # a smaller share of repeated rows is said to have been drawn anew, and is not looked into
CONTRADICTED = 0.01  # this share of other labels for known ids shows that rows were observed anew


@savable
@dataclass(frozen=True, eq=False)
class FitRows:
    """What is kept of the rows of a fit.

    Attributes
    ----------
    keys : uint64 array, sorted
        The different rows: 48 bits of the ids, then 16 of the label.
    counts : int array or None
        Draws of each; None means one each.
    limit : int
        Rows whose ids have a number below it are kept, all others are not; 2⁴⁸ where all are.
    n_draws : float
        Of the whole fit.
    symmetric : bool
        Whether (a, b) and (b, a) are the same row (undirected graphs).
    complete : bool
        Whether all rows of known items were observed, and those that are not listed have label 0.
    """

    keys: AnyArray
    counts: Ints | None
    limit: int
    n_draws: float
    symmetric: bool = False
    complete: bool = False

    @classmethod
    def of(cls, sample: Sample, symmetric: bool = False, complete: bool = False, most: int = MOST) -> FitRows:
        """The rows of a sample; those with an item that its mode does not have are left out."""
        limit = min(WHOLE, WHOLE * 11 * most // max(10 * sample.n_rows, 1))
        while True:
            rows, ids = _rows_below(sample, symmetric, limit)
            keys, draws = _counted((ids << LABEL) | _labels(sample, rows), _draws(sample, rows))
            if len(keys) >= most or limit == WHOLE:
                return cls._kept(keys, draws, limit, sample.n_observations, symmetric, complete, most)
            limit = min(WHOLE, 4 * limit, limit * 11 * most // max(10 * len(keys), 1))  # rows repeat: more of them fit

    @classmethod
    def _kept(
        cls, keys: AnyArray, draws: Ints, limit: int, n: float, symmetric: bool, complete: bool, most: int = MOST
    ) -> FitRows:
        if len(keys) > most:  # up to where all rows with the same ids fit
            limit = int(keys[most] >> LABEL)
            kept = keys >> LABEL < np.uint64(limit)
            keys, draws = keys[kept], draws[kept]
        return cls(keys, None if (draws == 1).all() else draws, limit, float(n), symmetric, complete)

    def smaller(self, most: int) -> FitRows:
        """A sketch of the same rows that keeps fewer of them."""
        return self._kept(self.keys, self.draws, self.limit, self.n_draws, self.symmetric, self.complete, most)

    def with_rows(self, *others: FitRows) -> FitRows:
        """The rows of this fit and of others together: partitions of one table, or rows that came later."""
        parts = (self, *others)
        limit = min(part.limit for part in parts)
        keys = np.concatenate([part.keys for part in parts])
        draws = np.concatenate([part.draws for part in parts])
        kept = keys >> LABEL < np.uint64(limit)
        n = sum(part.n_draws for part in parts)
        return self._kept(*_counted(keys[kept], draws[kept]), limit, n, self.symmetric, self.complete)

    def equals(self, other: FitRows) -> bool:
        """Whether the rows are the same, each as often, as far as sketches tell."""
        return self.n_draws == other.n_draws and all(
            np.array_equal(mine, its) for mine, its in ((self.keys, other.keys), (self.draws, other.draws))
        )

    @property
    def draws(self) -> Ints:
        """Draws of each row, shape (len(keys),)."""
        return np.ones(len(self.keys), dtype=np.int64) if self.counts is None else self.counts

    @property
    def repeats(self) -> float:
        """The largest chance, but for one case in a thousand, that a new draw is a row of the fit by repetition."""
        from scipy.special import betaincinv  # a fit that only keeps its rows does not need it

        draws = self.draws
        total = self.n_draws * self.limit / WHOLE if self.complete else float(draws.sum())
        again = float(draws[draws > 1].sum())
        # Draws that repeat each other come in pairs at least, so that half as many speak for themselves.
        return float(betaincinv(again / 2 + 1, max((total - again) / 2, 0.5), 1 - SURE))

    def met(self, sample: Sample) -> Met:
        """How many rows of a sample are rows of the fit."""
        rows, ids = _rows_below(sample, self.symmetric, self.limit)
        labels, draws = _labels(sample, rows), _draws(sample, rows)
        keys = (ids << LABEL) | labels
        same, known = np.isin(keys, self.keys), np.isin(ids, self.keys >> LABEL)
        if self.complete:  # what is not listed was seen with label 0
            same |= ~known & (labels == _number_labels(np.zeros(1))[0])
            known[:] = True
        strangers = np.any([on_host(code) < 0 for code in sample.codes], axis=0)
        n_strange = float(_draws(sample, np.flatnonzero(strangers)).sum()) * self.limit / WHOLE
        own = FitRows(*_counted(keys, draws), self.limit, sample.n_observations)
        return Met(
            n_compared=int(draws.sum()) + round(n_strange),
            n_same=int(draws[same].sum()),
            n_other=int(draws[known & ~same].sum()),
            rows=rows[same],
            everything=self.limit == WHOLE,
            whole_fit=self.equals(own),
            repeats=self.repeats,
            contradicted=max(CONTRADICTED, self._contradicted() / 2),
        )

    def _contradicted(self) -> float:
        """The share of other labels among draws whose ids occur again, as far as the fit shows it."""
        ids, at = np.unique(self.keys >> LABEL, return_inverse=True)
        of_ids = np.bincount(at.ravel(), self.draws, minlength=len(ids))[at.ravel()]
        among = of_ids > 1
        others = (of_ids - self.draws)[among] / np.maximum(of_ids[among] - 1, 1)
        return float(np.average(others, weights=self.draws[among])) if among.any() else 0.0


def repeated_share(sample: Sample) -> float:
    """The share of the rows that repeat others exactly; refuses a table of copies.

    Rows are counted as they are listed, whatever their weights: whoever knows that equal rows were drawn one by one
    says so by listing each once, with its count as weight.
    """
    if sample.pairs_once or sample.n_rows < 2 * FEWEST:
        return 0.0
    rows, ids = _rows_below(sample, False, min(WHOLE, WHOLE * SOME // sample.n_rows))
    labels = _labels(sample, rows)
    keys, times = _counted((ids << LABEL) | labels, np.ones(len(rows), dtype=np.int64))
    numbers = None if sample.alphabet is not None else sample.numbers()
    continuous = 2 * len(np.unique(labels)) > len(keys) and numbers is not None and bool((numbers % 1 != 0).any())
    return share_of_copies(times, continuous)


def share_of_copies(times: Ints, continuous: bool = False) -> float:
    """The share of rows that repeat others, where the different rows occur so many ``times``; refuses copies.

    If draws are independent, a row that is drawn at the rate λ occurs k times with probability λ^k e^−λ/k!, so that
    k! n_k is log-convex in k whatever the rates are (Cauchy and Schwarz): n_{2k−1} ≥ k!² n_k²/((2k − 1)! n_1) for the
    numbers n_k of rows that occur k times. A file that was read k times, exports that overlap, and copies with
    single rows in between all break this. ``continuous`` labels do not repeat at all.
    """
    if len(times) < FEWEST:
        return 0.0
    together, share = int(np.gcd.reduce(times)), 1.0 - len(times) / float(times.sum())
    if together > 1:
        raise RefusedCertificate(
            f"Every row occurs {together} times, or a multiple of it, as if the file had been read "
            f"{together} times, and copies are not further draws. {DRAWN_ONE_BY_ONE}"
        )
    if share >= MANY_REPEATS and (continuous or _too_regular(times)):
        raise RefusedCertificate(
            f"{100 * share:.3g} % of the rows repeat others exactly, more often than independent draws would: "
            f"{'real-valued labels do not repeat' if continuous else 'most of them occur equally often'}. "
            f"Overlapping exports look like this, and copies are not further draws. {DRAWN_ONE_BY_ONE}"
        )
    return share


DRAWN_ONE_BY_ONE = (
    "Drop the copies; if all rows were drawn one by one, list the distinct rows with their counts as weights."
)


def _too_regular(times: Ints) -> bool:
    """Whether rows occur k times, and seldom 2k − 1 times, as those of independent draws hardly ever do."""
    from scipy.special import gammaln, pdtr

    number = np.bincount(np.minimum(times, 2**10), minlength=2**11 + 1)
    once, k = number[1], np.flatnonzero(number[2 : 2**10]) + 2
    # ln of what is expected of n_{2k−1} at least, less three standard deviations of n_k and n_1.
    least = 2 * gammaln(k + 1) - gammaln(2 * k) + 2 * np.log(number[k]) - np.log(once + 1.0)
    least -= 3.0 * np.sqrt(4.0 / number[k] + 1.0 / (once + 1.0))
    return bool((pdtr(number[2 * k - 1], np.exp(np.minimum(least, 30.0))) < SURE).any())


class Met(NamedTuple):
    """What became of the comparison of rows with those of a fit."""

    n_compared: int  # draws; of very large data a random part of them
    n_same: int  # draws that are rows of the fit, ids and label
    n_other: int  # draws with ids of the fit and another label
    rows: Ints  # the rows that are among those of the fit
    everything: bool  # whether all rows were compared
    whole_fit: bool  # whether they are the rows of the fit, each as often
    repeats: float  # the largest chance that a new draw is a row of the fit
    contradicted: float  # the share of other labels from which on rows were observed anew

    @property
    def seen(self) -> bool:
        """Whether these are rows of the fit, and more than its repetitions explain.

        Ids that come with another label than in the fit were observed once more; then the others may have been.
        """
        if self.whole_fit:
            return True
        observed_anew = self.n_other > 0 and self.n_other >= self.contradicted * (self.n_other + self.n_same)
        if self.n_same == 0 or observed_anew:
            return False
        from scipy.special import betainc

        # The chance of so many equal rows or more among as many draws: the upper tail of a binomial distribution.
        return float(betainc(self.n_same, self.n_compared - self.n_same + 1, self.repeats)) < SURE


def _counted(keys: AnyArray, draws: Ints) -> tuple[AnyArray, Ints]:
    """The different keys, sorted, and the draws of each."""
    order = np.argsort(keys)
    keys, draws = keys[order], draws[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else order
    return keys[starts], np.add.reduceat(draws, starts) if len(keys) else draws


def _rows_below(sample: Sample, symmetric: bool, limit: int) -> tuple[Ints, AnyArray]:
    """The rows whose ids have a number below the limit, and these numbers."""
    # A different table at each position, or (a, b) would be (b, a).
    tables = [
        _mixed(_mixed(_hashed(mode.items)) + np.uint64(0 if symmetric else at)) for at, mode in enumerate(sample.modes)
    ]
    found, numbers = [], []
    for start in range(0, sample.n_rows, BLOCK):
        codes = [on_host(code[start : start + BLOCK]) for code in sample.codes]
        total = tables[0][codes[0]]
        for table, code in zip(tables[1:], codes[1:]):
            total += table[code]
        ids = total >> LABEL
        kept: Bools = ids < np.uint64(limit)
        for code in codes:
            kept &= code >= 0
        if sample.weights is not None:
            kept &= on_host(sample.weights[start : start + BLOCK]) > 0
        at = np.flatnonzero(kept)
        found.append(at + start)
        numbers.append(ids[at])
    if not found:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return np.concatenate(found), np.concatenate(numbers)


def _labels(sample: Sample, rows: Ints) -> AnyArray:
    """16 bits of the label of each row."""
    label_values = sample.alphabet
    if label_values is not None and sample.label_codes is not None:
        table = (
            _number_labels(label_values.numbers)
            if label_values.numeric
            else _mixed(_hashed(label_values.values)) >> np.uint64(48)
        )
        return table[on_host(sample.label_codes[rows])]
    numbers = sample.numbers()
    return np.zeros(len(rows), np.uint64) if numbers is None else _number_labels(on_host(numbers[rows]))


def _number_labels(labels: Floats) -> AnyArray:
    """16 bits of labels that are numbers; −0 is 0."""
    return _mixed(_rounded(labels).view(np.uint64)) >> np.uint64(48)


def _rounded(numbers: ArrayLike) -> Floats:
    """Numbers as float32 holds them, so that a table that was stored so is the same table; −0 is 0."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers).astype(np.float32).astype(np.float64) + 0.0


def _draws(sample: Sample, rows: Ints) -> Ints:
    """Draws that rows stand for; a weight that is no count stands for one."""
    if sample.weights is None or not sample.has_counts:
        return np.ones(len(rows), dtype=np.int64)
    return on_host(sample.weights[rows]).astype(np.int64)


def _hashed(values: AnyArray) -> AnyArray:
    """64 bits of each value: equal for equal numbers of any type, and for equal texts of any width."""
    if values.dtype.kind == "O":
        return _hashed_objects(values.tolist())
    if values.dtype.kind in "mM":
        values = values.astype(f"{values.dtype.kind}8[us]").view(np.int64)  # whatever unit they are counted in
    if values.dtype.kind == "S":
        values = np.char.decode(values, "latin-1")
    if values.dtype.kind == "V":
        values = values.astype(str)
    if values.dtype.kind == "f":
        numbers = values.astype(np.float64) + 0.0
        whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**62)
        as_whole = np.where(whole, numbers, 0.0).astype(np.int64).view(np.uint64)
        return np.where(whole, as_whole, _mixed(_rounded(numbers).view(np.uint64)))
    if values.dtype.kind != "U":
        return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    label_values = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), values.itemsize // 4)
    total = np.zeros(len(values), dtype=np.uint64)
    for at, factor in enumerate(_mixed(np.arange(1, label_values.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)):
        total += label_values[:, at] * factor  # nothing is added where a text has ended
    return total


def _hashed_objects(values: Sequence[object]) -> AnyArray:
    """64 bits of each value, whatever stands beside it: ids that come later may be of another type."""
    if {type(value) for value in values} <= {str}:
        return _hashed(np.array(values, dtype=str))
    groups: dict[str, list[int]] = {"int64": [], "uint64": [], "float64": [], "str": []}
    for at, value in enumerate(values):
        if isinstance(value, (int, np.integer, np.bool_)) and -(2**63) <= value < 2**64:
            groups["int64" if value < 2**63 else "uint64"].append(at)
        else:
            groups["float64" if isinstance(value, (float, np.floating)) else "str"].append(at)
    found = np.empty(len(values), dtype=np.uint64)
    for kind, places in groups.items():
        own = [values[at] for at in places]
        if kind == "str":
            own = [_text(value) for value in own]
        if own:
            found[places] = _hashed(np.array(own, dtype=kind))
    return found


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    # Whole numbers are here that have more than 64 bits.
    return str(value) if isinstance(value, (str, int)) else f"{type(value).__name__} {value!r}"


def numbers_of_rows(matrices: Sequence[Any]) -> AnyArray:
    """64 bits of each row of some matrices side by side, dense or sparse, shape (n_rows,); zeros count for nothing."""
    total = np.zeros(matrices[0].shape[0], dtype=np.uint64)
    for number, matrix in enumerate(matrices):
        factors = _mixed(np.arange(matrix.shape[1], dtype=np.uint64) + (np.uint64(number) << LABEL * np.uint64(2)))
        entries, places = matrix, slice(None)
        if hasattr(matrix, "indptr"):
            entries, places = matrix.data, matrix.indices
        bits = _mixed(_rounded(entries).view(np.uint64)) * (factors | np.uint64(1))[places]
        bits[entries == 0] = 0
        if hasattr(matrix, "indptr"):
            ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
            total += ends[matrix.indptr[1:]] - ends[matrix.indptr[:-1]]
        else:
            total += bits.sum(axis=1, dtype=np.uint64)
    return total


def _mixed(values: AnyArray) -> AnyArray:
    """A permutation of 64-bit numbers in which every bit depends on every other (splitmix64)."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
