"""CellModel and the losses: zero-one, absolute, any table, quadratic, logarithmic, pinball, mass; their names in files.

Features → statistics → answer, coef, envelope; all else about a loss are facts, which solvers may need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from inspect import signature
from operator import mul
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from gingham.arrays import AnyArray, Floats, log, namespace, where
from gingham.data.sample import Alphabet, Bounds, Features, Moments, OneHot, Sample
from gingham.errors import GinghamError


class CellModel(ABC):
    """A cost that is linear in a few statistics of the labels: cost(y; θ) = ⟨coef(θ), t(y)⟩.

    Statistics have the features on the last axis, shape (…, K); the leading axes are cells.
    A new loss or family is one subclass that states the facts below and answers two questions:
    the best answer for given statistics, and the coefficients of an answer. Nobody else asks which class it is.

    Attributes
    ----------
    name : str
        What the loss is called in messages, in ``loss=`` and in model files.
    features : Features
        t(y): one-hot labels or moments.
    range, low : float
        Every loss of one observation lies between ``low`` and ``low + range``, in the loss's own unit; ``range`` is
        ``inf`` when the loss is unbounded.
    convex : bool
        Whether the loss is convex in the (numeric) prediction, so that Jensen's inequality carries a
        Gibbs guarantee over to the mean prediction.
    answers : {"label", "number", "distribution"} or None
        What an answer is, which tells a certificate how to round and price it: one of ``n_answers`` columns of
        ``table``, a number between ``bounds``, or a distribution over the alphabet with every probability at
        least ``smoothing``/|Y|. None where a certificate cannot round it.
    n_answers : int or None
        How many different answers a cell can give; None for a continuum.
    table : ndarray of shape (|Y|, n_answers) or None
        The losses of all answers on all labels, where they are finitely many.
    smoothing : float
        Share of the uniform distribution in every answer that is a distribution.
    alphabet, bounds
        The possible labels, or the smallest and largest, as far as they are known.
    needs_alphabet : bool
        Whether the loss is defined on a finite set of labels only.
    ordered : bool
        Whether labels count as numbers, so that near labels are alike.
    code_length : bool
        Whether the loss is −ln p(y), the length of a code, whose natural β is 1.
    noise_rate : float
        β = noise_rate / (average loss) makes exp(−β·loss) the likelihood of the noise.
    beta_factors : (float, float)
        Smallest and largest share of that β that is worth a try when β is chosen on held-out observations.
    moves : {"mass", "log", "table", "moments"} or None
        How hard moves score a cell; None where they cannot.
    device_arrays : tuple of str or None
        The arrays that `answer` and `coef` need beside their arguments, where both are written for numpy and
        torch alike (see `arrays.namespace`); None where torch does not serve the cell.

    The constructor keeps each of its arguments as an attribute of the same name, as scikit-learn's estimators do:
    they are what a model file keeps of a cell.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> cell = gg.losses.Quadratic(bounds=(0, 10))
    >>> isinstance(cell, gg.losses.CellModel), cell.convex
    (True, True)
    """

    name: str
    features: Features
    range: float
    low: float = 0.0
    convex: bool
    answers: ClassVar[str | None] = None
    n_answers: int | None
    table: Floats | None = None
    alphabet: Alphabet | None = None
    bounds: Bounds | None = None
    smoothing: float = 0.0
    needs_alphabet: ClassVar[bool] = True
    ordered: bool = False
    code_length: ClassVar[bool] = False
    noise_rate: ClassVar[float] = 1.0
    beta_factors: ClassVar[tuple[float, float]] = (0.0, np.inf)
    moves: str | None = None
    device_arrays: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            words = "".join(f"-{c.lower()}" if c.isupper() else c for c in cls.__name__)
            cls.name = words.lstrip("-")

    @abstractmethod
    def answer(self, statistics: Floats, fallback: Floats | None = None) -> AnyArray:
        """θ* = argmin_θ ⟨coef(θ), S⟩ of each cell; empty cells answer as ``fallback`` statistics do.

        Returns shape (…) (a label index or a number) or (…, |Y|) (a distribution).
        """

    @abstractmethod
    def coef(self, answer: AnyArray) -> Floats:
        """Coefficients of given answers, shape (…, K)."""

    @abstractmethod
    def values(self, answer: AnyArray) -> Floats:
        """Numeric predictions of given answers, shape (…)."""

    @abstractmethod
    def distribution(self, answer: AnyArray) -> Floats | None:
        """Predicted label distributions of given answers, (…, |Y|); None without an alphabet."""

    def loss(self, answer: AnyArray, statistics: Floats) -> Floats:
        """Total loss of answers on cells with the given statistics: ⟨coef(θ), S⟩."""
        return np.einsum("...k,...k->...", self.coef(answer), statistics)

    def envelope(self, statistics: Floats) -> Floats:
        """min_θ ⟨coef(θ), S⟩, the least possible loss of each cell."""
        return self.loss(self.answer(statistics), statistics)

    def of_gap(self, gap: Floats) -> Floats | None:
        """The loss as a function of y − prediction, for any numbers; None where it is no such function.

        Where torch serves the cell (see ``device_arrays``) gaps may be tensors.
        """
        return None

    def of_rest(self, values: Floats) -> CellModel | None:
        """The same loss for what effects of items leave over of numbers; None where that has no meaning.

        ``values`` stand for what is left over, for losses that need a finite set.
        """
        return None

    def miss(self, labels: Floats, answers: Floats) -> Floats:
        """A number between 0 and 1 that grows with the loss of answers on numeric labels; see `loss_of_miss`.

        By default the loss itself, scaled: (⟨coef(θ), t(y)⟩ − low)/range. Labels and answers are broadcast. A loss
        that leaves its range is found out by whoever asks.
        """
        labels, answers = np.broadcast_arrays(labels, answers)
        losses = np.einsum("...k,...k->...", self.coef(answers), self.features.evaluate(labels.ravel()).reshape(
            *labels.shape, self.features.size
        ))  # fmt: skip
        return (losses - self.low) / (self.range if self.range > 0 else 1.0)

    def loss_of_miss(self, miss: Floats) -> Floats:
        """The scaled loss, (loss − low)/range, of what `miss` returns."""
        return miss

    def beta_of_noise(self, loss: float) -> float:
        """The β at which exp(−β·loss) is the likelihood of noise with this average loss."""
        if self.code_length:
            return 1.0
        scale = max(loss, 1e-3 * (self.range if np.isfinite(self.range) else loss), 1e-12)
        return self.noise_rate / scale

    def placed(self, put: Callable[[Floats], Any]) -> Self:
        """The same cell with its own arrays where ``put`` brings them, on a GPU say."""
        new = copy(self)
        for name in self.device_arrays or ():
            setattr(new, name, put(getattr(self, name)))
        return new


def filled(statistics: Floats, fallback: Floats | None) -> Floats:
    """Statistics in which empty cells stand for the fallback (all cells together by default)."""
    total = statistics.reshape(-1, statistics.shape[-1]).sum(0) if fallback is None else fallback
    empty = statistics.sum(-1) <= 0
    return where(empty[..., None], total, statistics)


def ratio(values: Floats, by: Floats, otherwise: Floats | float) -> Floats:
    """``values / by``; where ``by`` is not positive, something else."""
    return where(by > 0, values / where(by > 0, by, 1.0), otherwise)


@dataclass(frozen=True)
class Need:
    """A fact that cells must state."""

    attribute: str  # of the cell; it must be there and not be None
    fitting: str  # cells that have it, in words
    values: tuple[Any, ...] = ()  # where given, the attribute must be one of these

    def met(self, cell: CellModel) -> bool:
        value = getattr(cell, self.attribute, None)
        return value in self.values if self.values else value is not None


TABLE = Need("table", "a loss given by a table on an alphabet (absolute, zero-one, pinball, a table of your own)")
HARD_MOVES = Need("moves", "cells that say what they cost at best: mass, log, table or quadratic cells")
FAMILIES = Need("estimate", "cells of an exponential family (families.Family)")
ON_DEVICE = Need("device_arrays", "table, quadratic or log loss or densities: use backend='compiled' for others")


def unmet(needs: Sequence[Need], cells: Iterable[CellModel]) -> tuple[Need, CellModel] | None:
    """The first need that a cell does not meet."""
    return next(((need, cell) for cell in cells for need in needs if not need.met(cell)), None)


def refuse_unmet(
    who: str, needs: Sequence[Need], cells: Iterable[CellModel], error: type[GinghamError] = GinghamError
) -> None:
    """Refuse cells that lack what somebody needs, with what would fit."""
    found = unmet(needs, cells)
    if found is not None:
        need, cell = found
        raise error(
            f"{who} needs {need.fitting}, not {cell.name!r} cells ({type(cell).__name__}.{need.attribute} is "
            f"{getattr(cell, need.attribute, None)!r})."
        )


LEAST = 1e-300  # lift of a cell that no observation reaches: its cost is large and finite


class TableLoss(CellModel):
    """Any loss ℓ(y, y') given as a table, row: true label, column: answer. P0 §3.1.

    The answer is argmin_y' Σ_y h_y ℓ(y, y'), the lowest label when several are best.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> price = np.array([[0.0, 1.0], [5.0, 0.0]])  # missing an ill patient costs five times a false alarm
    >>> cell = gg.losses.TableLoss(gg.data.Alphabet.of(["ill", "well"], given=True), price)
    >>> cell.range
    5.0
    """

    name = "table"
    convex = False
    answers = "label"
    moves = "table"
    device_arrays = ("table",)
    alphabet: Alphabet
    table: Floats

    def __init__(
        self, alphabet: Alphabet, table: Floats, convex: bool | None = None, ordered: bool | None = None
    ) -> None:
        table = np.asarray(table, dtype=np.float64)
        if table.ndim != 2 or table.shape[0] != alphabet.size:
            raise GinghamError(
                f"The loss table has shape {table.shape}; it needs a row for each of the {alphabet.size} labels."
            )
        if not np.isfinite(table).all():
            raise GinghamError("The loss table contains NaN or infinity.")
        self.alphabet = alphabet
        self.table = table
        self.features = OneHot(alphabet.size)
        self.low = min(float(table.min()), 0.0)
        self.range = float(table.max() - min(table.min(), 0.0))
        self.n_answers = table.shape[1]
        self.convex = type(self).convex if convex is None else bool(convex)
        if self.convex and table.shape[1] != alphabet.size:
            raise GinghamError(
                f"The loss table has {table.shape[1]} answers for {alphabet.size} labels: convexity in the answer can "
                "be tested only where every label is an answer. Leave convex out."
            )
        if self.convex and alphabet.numeric and alphabet.size > 2:
            slopes = np.diff(table, axis=1) / np.diff(alphabet.numbers)
            if (np.diff(slopes, axis=1) < -1e-9 * np.abs(slopes).max()).any():
                row = int(np.flatnonzero((np.diff(slopes, axis=1) < -1e-9 * np.abs(slopes).max()).any(axis=1))[0])
                raise GinghamError(
                    f"The loss of label {alphabet.values[row]} is not convex in the answer, though convex says so."
                )
        self.ordered = type(self).ordered if ordered is None else bool(ordered)

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> AnyArray:
        return (filled(statistics, fallback) @ self.table).argmin(axis=-1)

    def coef(self, answer: AnyArray) -> Floats:
        return self.table.T[answer]

    def values(self, answer: AnyArray) -> Floats:
        return self.alphabet.numbers[answer]

    def distribution(self, answer: AnyArray) -> Floats:
        return np.eye(self.alphabet.size)[answer]


class ZeroOne(TableLoss):
    """ℓ(y, y') = [y ≠ y']: the answer is the commonest label.

    Examples
    --------
    >>> import gingham as gg
    >>> gg.losses.ZeroOne(gg.data.Alphabet.of(["no", "yes"], given=True)).range
    1.0
    >>> model = gg.CoClusteringClassifier(2, loss="zero-one", alphabet=["no", "yes"])
    """

    def __init__(self, alphabet: Alphabet) -> None:
        super().__init__(alphabet, 1.0 - np.eye(alphabet.size))

    def beta_of_noise(self, loss: float) -> float:
        """ln of the odds of the right label against one wrong label."""
        wrong = float(np.clip(loss, 0.01, 0.95 * (1 - 1 / self.alphabet.size)))
        return float(np.log((1 - wrong) * (self.alphabet.size - 1) / wrong)) if self.alphabet.size > 1 else 1.0


class Absolute(TableLoss):
    """ℓ(y, y') = |y − y'|: the answer is the median label.

    Examples
    --------
    >>> import gingham as gg
    >>> cell = gg.losses.Absolute(gg.data.Alphabet.of([1, 2, 3], given=True))
    >>> cell.range, cell.convex
    (2.0, True)
    >>> model = gg.CoClusteringRegressor(2, loss="absolute", alphabet=[1, 2, 3])
    """

    convex = True
    ordered = True

    def __init__(self, alphabet: Alphabet) -> None:
        y = alphabet.numbers
        super().__init__(alphabet, np.abs(y[:, None] - y[None, :]))

    def of_gap(self, gap: Floats) -> Floats:
        return abs(gap)

    def of_rest(self, values: Floats) -> Absolute:
        return Absolute(Alphabet.of(values, given=False))


class Pinball(TableLoss):
    """ℓ(y, y') = max(τ(y − y'), (τ − 1)(y − y')): the answer is the τ-quantile label.

    Examples
    --------
    >>> import gingham as gg
    >>> cell = gg.losses.Pinball(gg.data.Alphabet.of([0, 1, 2], given=True), quantile=0.9)
    >>> float(cell.range)
    1.8
    """

    convex = True
    ordered = True

    def __init__(self, alphabet: Alphabet, quantile: float = 0.5) -> None:
        if not 0 < quantile < 1:
            raise GinghamError(f"quantile={quantile} must lie strictly between 0 and 1.")
        gap = alphabet.numbers[:, None] - alphabet.numbers[None, :]
        self.quantile = quantile
        super().__init__(alphabet, self.of_gap(gap))

    def of_gap(self, gap: Floats) -> Floats:
        return namespace(gap).maximum(self.quantile * gap, (self.quantile - 1) * gap)

    def of_rest(self, values: Floats) -> Pinball:
        return Pinball(Alphabet.of(values, given=False), self.quantile)


class Quadratic(CellModel):
    """ℓ(y, f) = (y − f)²: the answer is the mean; labels need no alphabet.

    ``bounds`` are the smallest and largest possible label, when they are known: they make the loss
    bounded, which a certificate needs.

    Examples
    --------
    >>> import gingham as gg
    >>> gg.losses.Quadratic(bounds=(0, 10)).range
    100.0
    """

    features = Moments(2)
    convex = True
    answers = "number"
    needs_alphabet = False
    moves = "moments"
    ordered = True
    n_answers = None
    noise_rate = 0.5  # of Gaussian noise, 1/(2σ²)
    beta_factors = (0.7, np.inf)  # with less, squares merge too much
    device_arrays = ()

    def __init__(self, alphabet: Alphabet | None = None, bounds: Bounds | Sequence[float] | None = None) -> None:
        ends = None if alphabet is None else alphabet.ends
        if bounds is None or (ends is not None and not isinstance(bounds, Bounds) and tuple(bounds) == tuple(ends)):
            self.bounds = ends  # as given as the alphabet
        else:
            self.bounds = Bounds.of(bounds, given=True)
        if (
            self.bounds is not None
            and ends is not None
            and not self.bounds.low <= ends.low <= ends.high <= self.bounds.high
        ):
            raise GinghamError(
                f"bounds=({self.bounds.low:g}, {self.bounds.high:g}) do not contain the alphabet, which goes from "
                f"{ends.low:g} to {ends.high:g}."
            )
        self.alphabet = alphabet
        self.range = np.inf if self.bounds is None else (self.bounds.high - self.bounds.low) ** 2

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> Floats:
        total = statistics.reshape(-1, 3).sum(0) if fallback is None else fallback
        return ratio(statistics[..., 1], statistics[..., 0], ratio(total[1], total[0], 0.0))

    def coef(self, answer: AnyArray) -> Floats:
        xp = namespace(answer)
        return xp.stack([answer**2, -2.0 * answer, xp.ones_like(answer)], axis=-1)

    def of_gap(self, gap: Floats) -> Floats:
        return gap**2

    def of_rest(self, values: Floats) -> Quadratic:
        return Quadratic()

    def miss(self, labels: Floats, answers: Floats) -> Floats:
        """|y − answer| as a share of the range of the labels."""
        low, high = self.bounds if self.bounds is not None else (0.0, np.inf)
        return np.abs(labels - answers) / (high - low if high > low else 1.0)

    def loss_of_miss(self, miss: Floats) -> Floats:
        return miss**2

    def values(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64)

    def distribution(self, answer: AnyArray) -> None:
        return None


class Logarithmic(CellModel):
    """ℓ(y, p) = −ln p(y): the answer is the cell's smoothed label distribution.

    ``smoothing`` mixes that share of the uniform distribution into every answer, which bounds the
    loss by ln(|Y|/smoothing). MDL co-clustering is this loss with β = 1 (P0 prints the wrong sign).

    Examples
    --------
    >>> import gingham as gg
    >>> round(gg.losses.Logarithmic(gg.data.Alphabet.of([0, 1], given=True), smoothing=0.02).range, 3)
    4.605
    """

    name = "log"
    convex = True
    answers = "distribution"
    moves = "log"
    code_length = True
    beta_factors = (0.0, 1.0)  # it is a likelihood already
    device_arrays = ()
    alphabet: Alphabet

    def __init__(self, alphabet: Alphabet, smoothing: float = 0.01) -> None:
        if not 0 < smoothing < 1:
            raise GinghamError(f"smoothing={smoothing} must lie strictly between 0 and 1.")
        self.alphabet = alphabet
        self.smoothing = smoothing
        self.features = OneHot(alphabet.size)
        self.range = float(np.log(alphabet.size / smoothing))
        self.n_answers = None

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> Floats:
        """The best p of the form (1 − ε)·simplex + ε/|Y|: water-filling, exact minimiser of the cost."""
        histogram = filled(statistics, fallback)
        return floored(histogram / histogram.sum(-1, keepdims=True), self.smoothing / self.alphabet.size)

    def coef(self, answer: AnyArray) -> Floats:
        return -log(answer)

    def values(self, answer: AnyArray) -> Floats:
        return answer @ self.alphabet.numbers

    def distribution(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64)


class RankedProbability(CellModel):
    """The ranked probability score of ordered labels: ℓ(y, p) = Σ_k (P_k − 1[y ≤ a_k])²/(K − 1), P_k = p_1 + … + p_k.

    The answer is the label distribution of the cell. A prediction that is certain has the loss |y − ŷ| in steps of the
    scale, over K − 1: probability on a near label costs less than on one far away, unlike under the log loss.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> cell = gg.losses.RankedProbability(gg.data.Alphabet.of([1, 2, 3, 4, 5], given=True))
    >>> cell.coef(np.array([0, 0.5, 0.5, 0, 0])).tolist()  # of the labels 1 to 5
    [0.3125, 0.0625, 0.0625, 0.3125, 0.5625]
    """

    convex = True
    answers = "distribution"
    ordered = True
    n_answers = None
    alphabet: Alphabet

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.features = OneHot(alphabet.size)
        self.range = 1.0

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> Floats:
        histogram = filled(statistics, fallback)
        return histogram / histogram.sum(-1, keepdims=True)

    def coef(self, answer: AnyArray) -> Floats:
        size = self.alphabet.size
        reached = np.triu(np.ones((size, size)))[:, :-1]  # 1[y ≤ a_k], a row for each label
        return np.asarray(((answer.cumsum(-1)[..., None, :-1] - reached) ** 2).sum(-1) / max(size - 1, 1))

    def values(self, answer: AnyArray) -> Floats:
        return answer @ self.alphabet.numbers

    def distribution(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64)


def floored(p: Floats, floor: float) -> Floats:
    """argmin_q −Σ p ln q over distributions q ≥ floor: q = max(p/λ, floor) with λ so that Σ q = 1."""
    xp = namespace(p)
    ordered = xp.sort(p, axis=-1)  # the lowest j labels sit at the floor
    ordered = getattr(ordered, "values", ordered)  # torch returns the order beside the values
    below = xp.cumsum(xp.ones_like(p), axis=-1) - 1.0
    kept = p.sum(-1, keepdims=True) - xp.cumsum(ordered, axis=-1) + ordered  # mass of labels j, j+1, …
    scale = kept / (1.0 - below * floor)  # λ if exactly j labels are floored
    # The right j is the first whose smallest free label stays above the floor.
    first = (1.0 * (ordered >= floor * scale)).argmax(axis=-1)
    take = np.take_along_axis if xp is np else xp.take_along_dim
    return (p / take(scale, first[..., None], -1)).clip(floor)


class Mass(CellModel):
    """ℓ(c) = −ln lift(c), lift(c_1, …, c_d) = p(c_1, …, c_d)/Π_i p(c_i), for tuples without labels.

    The loss of the best answers is −I(C_1; …; C_d), the gain over independence (P0 §3.4): the code length
    of an observation is Σ H(X_i) − I(C_1; …; C_d). It is concave in each mode's memberships, so its tangent lies
    above it, and the projection step on the tangent never raises the objective (the soft algorithm that
    P0 §4.2 calls open).
    """

    features = Moments(0)
    range = np.inf
    convex = False
    n_answers = None
    needs_alphabet = False
    moves = "mass"
    device_arrays = ()

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> AnyArray:
        """Lifts of all cells, shape (m_1, …, m_d); statistics have shape (m_1, …, m_d, 1)."""
        p = statistics[..., 0] / statistics.sum().clip(LEAST)
        margins = []
        for axis in range(p.ndim):
            others = tuple(j for j in range(p.ndim) if j != axis)
            margins.append(p.sum(axis=others, keepdims=True) if others else p)
        return ratio(p, reduce(mul, margins), 0.0).clip(LEAST)

    def coef(self, answer: AnyArray) -> Floats:
        return -log(answer)[..., None]

    def values(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64)

    def distribution(self, answer: AnyArray) -> None:
        return None


Loss = str | Floats | Callable[..., CellModel]
Kind = TypeVar("Kind", bound=type[CellModel])
LOSSES: dict[str, type[CellModel]] = {}  # what loss= and --loss take by name
# what model files know besides: these, and the families
UNNAMED: dict[str, type[CellModel]] = {kind.name: kind for kind in (TableLoss, Mass)}


def register_loss(kind: Kind) -> Kind:
    """Give a loss its ``name``: ``loss=``, ``gingham fit --loss`` and model files know it from then on.

    A class decorator for subclasses of `CellModel`. The name is the class's own in small letters with hyphens
    (``ZeroOne``: "zero-one") unless the class states another. A program that loads a model with this loss imports
    the module that registers it first; the command line does so with ``gingham --plugin MODULE``.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> @gg.losses.register_loss
    ... class Forgiving(gg.losses.TableLoss):
    ...     def __init__(self, alphabet, width=1.0):
    ...         self.width = width
    ...         gap = np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers))
    ...         super().__init__(alphabet, np.maximum(gap - width, 0.0))
    >>> model = gg.CoClusteringRegressor(n_clusters=2, loss="forgiving")
    """
    if not (isinstance(kind, type) and issubclass(kind, CellModel)):
        raise GinghamError(f"register_loss takes a subclass of CellModel, not {kind!r}.")
    known = {**LOSSES, **UNNAMED}.get(kind.name, kind)
    # A module that is run again (in a notebook, say) brings the same class anew.
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise GinghamError(f"There is a loss called {kind.name!r} already; give yours another name.")
    LOSSES[kind.name] = kind
    return kind


for _kind in (Absolute, ZeroOne, Logarithmic, Pinball, Quadratic, RankedProbability):
    register_loss(_kind)


def loss_kind(loss: Any) -> Any:
    """The class behind a loss, whose facts hold for every alphabet; other callables stand for themselves."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise GinghamError(
                f"loss={loss!r} is unknown; choose one of {', '.join(LOSSES)}, give a table, or import the module "
                "that registers it (gingham --plugin MODULE on the command line)."
            )
        return LOSSES[loss]
    return loss.func if isinstance(loss, partial) else loss if callable(loss) else TableLoss


def needs_alphabet(loss: Any) -> bool:
    """Whether the loss is defined on a finite set of labels only."""
    return bool(getattr(loss_kind(loss), "needs_alphabet", True))


def make_cell(loss: Any, alphabet: Alphabet | None, bounds: Bounds | Sequence[float] | None = None) -> CellModel:
    """The cell model of a loss: a name, a table (true label × answer), or a callable that takes the alphabet.

    Losses on numbers take the alphabet, or None, and ``bounds``, the smallest and largest label, or None. Bounds that
    do not say whether they were given are taken as stated.
    """
    bounds = Bounds.of(bounds, given=True)
    kind = loss_kind(loss)
    if needs_alphabet(loss) and alphabet is None:
        raise GinghamError(f"loss={loss!r} needs a finite set of labels: give alphabet=, the possible label values.")
    make = kind if isinstance(loss, str) else loss
    if not callable(make):
        if alphabet is not None and not alphabet.listed_in_order:
            raise GinghamError(
                "alphabet= lists the labels in another order than the rows of a table of losses have: "
                f"{', '.join(map(str, alphabet.values[:8].tolist()))}. List them so, and arrange the table alike."
            )
        return TableLoss(alphabet, np.asarray(loss, dtype=np.float64))  # type: ignore[arg-type]
    cell = make(alphabet) if needs_alphabet(loss) or bounds is None else make(alphabet, bounds=bounds)
    if not isinstance(cell, CellModel):
        raise GinghamError(f"loss={loss!r} must return a CellModel, not {type(cell).__name__}.")
    return cell


def cell_state(cell: CellModel) -> dict[str, Any]:
    """What a model file keeps of a cell model, besides the alphabet: its name and what its constructor takes.

    Refuses cells that would come back as something else.
    """
    kind = type(cell)
    if _known(cell.name) is not kind:
        raise GinghamError(
            f"{kind.__name__} cells cannot be saved in a model file, because their class has no registered name: "
            f"register it (gingham.losses.register_loss({kind.__name__})), then save."
        )
    missing = [key for key in _parameters(kind) if not hasattr(cell, key)]
    if missing:
        raise GinghamError(
            f"{kind.__name__} cells cannot be saved in a model file: their constructor takes {missing[0]!r} and does "
            f"not keep it as self.{missing[0]}."
        )
    state = {"loss": cell.name, **{key: getattr(cell, key) for key in _parameters(kind)}}
    again = vars(cell_from_state(state, cell.alphabet))
    lost = [key for key, value in vars(cell).items() if key not in again or not _same(value, again[key])]
    if lost:
        raise GinghamError(
            f"{kind.__name__} cells cannot be saved in a model file: self.{lost[0]} is not an argument of the "
            "constructor and would be lost. Make it an argument of the constructor."
        )
    return state


def cell_from_state(state: dict[str, Any], alphabet: Alphabet | None) -> CellModel:
    """The cell model that `cell_state` described."""
    loss = loss_from_state(state)
    return loss() if alphabet is None else loss(alphabet)


def loss_from_state(state: dict[str, Any]) -> partial[CellModel]:
    """What makes the described cell of an alphabet."""
    name = state["loss"]
    kind = _known(name)
    if kind is None:
        raise GinghamError(
            f"The model uses the loss {name!r}, which is not registered: import its module first "
            "(gingham --plugin MODULE on the command line)."
        )
    return partial(kind, **{key: state[key] for key in _parameters(kind) if key in state})


def _known(name: str) -> type[CellModel] | None:
    return {**LOSSES, **UNNAMED}.get(name)


def _parameters(kind: type[CellModel]) -> list[str]:
    """What the constructor takes besides the alphabet."""
    return [key for key in signature(kind).parameters if key != "alphabet"]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return one is other or (type(one) is type(other) and bool(one == other))


def total_statistics(cell: CellModel, sample: Sample) -> Floats:
    """Statistics of all tuples of a sample together, shape (K,)."""
    if cell.features.one_hot:
        if sample.label_codes is None:
            raise GinghamError("This cell model needs labels on an alphabet.")
        return np.bincount(sample.label_codes, sample.weights, minlength=cell.features.size).astype(np.float64)
    t = cell.features.evaluate(np.ones(sample.n_rows) if sample.labels is None else sample.labels)
    return t.sum(0) if sample.weights is None else sample.weights @ t
