"""Losses: zero-one, absolute, any table, quadratic, logarithmic, pinball."""

from __future__ import annotations

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cells.base import CellModel, filled, namespace
from gingham.data.features import Moments, OneHot
from gingham.data.modes import Alphabet
from gingham.errors import GinghamError


class TableLoss(CellModel):
    """Any loss ℓ(y, y') given as a table, row: true label, column: answer. P0 §3.1.

    The answer is argmin_y' Σ_y h_y ℓ(y, y'), the lowest label when several are best.
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
    """ℓ(y, y') = [y ≠ y']: the answer is the commonest label."""

    def __init__(self, alphabet: Alphabet) -> None:
        super().__init__(alphabet, 1.0 - np.eye(alphabet.size))

    def beta_of_noise(self, loss: float) -> float:
        """ln of the odds of the right label against one wrong label."""
        wrong = float(np.clip(loss, 0.01, 0.95 * (1 - 1 / self.alphabet.size)))
        return float(np.log((1 - wrong) * (self.alphabet.size - 1) / wrong)) if self.alphabet.size > 1 else 1.0


class Absolute(TableLoss):
    """ℓ(y, y') = |y − y'|: the answer is the median label."""

    convex = True
    ordered = True

    def __init__(self, alphabet: Alphabet) -> None:
        y = alphabet.numbers
        super().__init__(alphabet, np.abs(y[:, None] - y[None, :]))

    def of_gap(self, gap: Floats) -> Floats:
        return np.abs(gap)


class Pinball(TableLoss):
    """ℓ(y, y') = max(τ(y − y'), (τ − 1)(y − y')): the answer is the τ-quantile label."""

    convex = True
    ordered = True

    def __init__(self, alphabet: Alphabet, quantile: float = 0.5) -> None:
        if not 0 < quantile < 1:
            raise GinghamError(f"quantile={quantile} must lie strictly between 0 and 1.")
        gap = alphabet.numbers[:, None] - alphabet.numbers[None, :]
        self.quantile = quantile
        super().__init__(alphabet, self.of_gap(gap))

    def of_gap(self, gap: Floats) -> Floats:
        return np.maximum(self.quantile * gap, (self.quantile - 1) * gap)


class Quadratic(CellModel):
    """ℓ(y, f) = (y − f)²: the answer is the mean; labels need no alphabet.

    ``bounds`` are the smallest and largest possible label, when they are known: they make the loss
    bounded, which a certificate needs.
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

    def __init__(self, alphabet: Alphabet | None = None, bounds: tuple[float, float] | None = None) -> None:
        if bounds is None and alphabet is not None:
            bounds = (float(alphabet.numbers.min()), float(alphabet.numbers.max()))
        self.alphabet = alphabet
        self.bounds = bounds
        self.range = np.inf if bounds is None else (bounds[1] - bounds[0]) ** 2

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> Floats:
        xp = namespace(statistics)
        total = statistics.reshape(-1, 3).sum(0) if fallback is None else fallback
        mean = xp.where(total[0] > 0, total[1] / xp.where(total[0] > 0, total[0], 1.0), 0.0)
        count = statistics[..., 0]
        result: Floats = xp.where(count > 0, statistics[..., 1] / xp.where(count > 0, count, 1.0), mean)
        return result

    def coef(self, answer: AnyArray) -> Floats:
        xp = namespace(answer)
        result: Floats = xp.stack([answer**2, -2.0 * answer, xp.ones_like(answer)], axis=-1)
        return result

    def of_gap(self, gap: Floats) -> Floats:
        return gap**2

    def miss(self, labels: Floats, answers: Floats) -> Floats:
        """|y − answer| as a share of the range of the labels."""
        low, high = self.bounds if self.bounds is not None else (0.0, np.inf)
        result: Floats = np.abs(labels - answers) / (high - low if high > low else 1.0)
        return result

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
        result: Floats = -namespace(answer).log(answer)
        return result

    def values(self, answer: AnyArray) -> Floats:
        result: Floats = answer @ self.alphabet.numbers
        return result

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
    result: Floats = xp.clip(p / take(scale, first[..., None], -1), floor, None)
    return result
