"""The loss of a single prediction, whoever made it, and the range it was said to have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cells import LOSSES, CellModel, make_cell
from gingham.data import Alphabet, Bounds
from gingham.errors import GinghamError, RefusedCertificate
from gingham.storage import savable

OF_NUMBERS = ("absolute", "quadratic", "pinball")
NAMES = (*OF_NUMBERS, "zero-one", "log")
ROUNDING = 1e-9  # share of the range by which rounding may lead outside
SMOOTHING = 0.01  # share of the uniform distribution that bounds the log loss


@savable
@dataclass(frozen=True, eq=False)
class RowLoss:
    """A bounded loss of one prediction on one label.

    Attributes
    ----------
    name : {"absolute", "quadratic", "pinball", "zero-one", "log", "table"}
    alphabet : Alphabet or None
        The possible labels, as stated.
    bounds : (float, float) or None
        Smallest and largest possible label and prediction, for losses of numbers.
    table : array of shape (|Y|, |Y|) or None
        Row: true label, column: predicted label.
    quantile : float
        Of the pinball loss.
    smoothing : float
        Every predicted probability is at least this divided by |Y|, for the log loss.
    convex_table : bool
        Whether the table is convex in the predicted number, so that predictions may lie between labels.
    """

    name: str
    alphabet: Alphabet | None
    bounds: tuple[float, float] | None
    table: Floats | None = None
    quantile: float = 0.5
    smoothing: float = SMOOTHING
    convex_table: bool = False

    @property
    def low(self) -> float:
        """The smallest possible loss, 0 unless a table has lower ones."""
        return 0.0 if self.table is None else min(float(self.table.min()), 0.0)

    @property
    def range(self) -> float:
        """Largest possible loss less the smallest; 1 where no loss is possible at all."""
        if self.table is not None:
            width = float(self.table.max()) - self.low
        elif self.bounds is not None:
            gap = self.bounds[1] - self.bounds[0]
            width = {"absolute": gap, "quadratic": gap**2, "pinball": gap * max(self.quantile, 1 - self.quantile)}[
                self.name
            ]
        else:
            width = 1.0 if self.name == "zero-one" else float(np.log(self._letters.size / self.smoothing))
        return width if width > 0 else 1.0

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the prediction, so that averaging predictions cannot hurt (Jensen)."""
        return self.name in OF_NUMBERS or self.name == "log" or self.convex_table

    @property
    def statement(self) -> str:
        """What the caller stated about labels."""
        if self.alphabet is not None:
            return stated_labels(self.alphabet)
        low, high = self.bounds or (np.nan, np.nan)
        return f"Labels lie between {low:g} and {high:g}."

    @property
    def _letters(self) -> Alphabet:
        if self.alphabet is None:
            raise RefusedCertificate(f"loss={self.name!r} needs alphabet=, the possible labels.")
        return self.alphabet

    def scaled(self, y: AnyArray, y_pred: AnyArray) -> Floats:
        """(loss − low)/range of each row, between 0 and 1."""
        return (self.losses(y, y_pred) - self.low) / self.range

    def losses(self, y: AnyArray, y_pred: AnyArray) -> Floats:
        """The loss of each row in its own unit; labels and predictions outside what was stated are refused."""
        y, y_pred = np.asarray(y), np.asarray(y_pred)
        if len(y) != len(y_pred):
            raise GinghamError(f"There are {len(y)} labels and {len(y_pred)} predictions.")
        codes = None if self.alphabet is None else self.alphabet.encode(y)
        if self.bounds is not None:
            return self._of_numbers(as_numbers(y, "label"), as_numbers(y_pred, "prediction"))
        if codes is None:
            raise RefusedCertificate(f"loss={self.name!r} needs alphabet=, the possible labels.")
        if self.name == "log":
            return self._of_distributions(codes, y_pred)
        if y_pred.ndim != 1:
            raise GinghamError(f"loss={self.name!r} needs one predicted label a row, not shape {y_pred.shape}.")
        if self.table is not None and self.convex_table:
            guess = as_numbers(y_pred, "prediction")
            self._need_inside(guess, "prediction", *self._ends)
            return between_labels(self.table, self._letters.numbers, codes, guess)
        labels = np.isin(y_pred, self._letters.values)
        if not labels.all():
            row = int(np.flatnonzero(~labels)[0])
            raise RefusedCertificate(
                f"The prediction {y_pred[row]} in row {row} is not in the alphabet, and the {self.name} loss is one of "
                "labels. Predict labels (rule='mode' or 'median'), or state a loss of numbers (loss='absolute')."
            )
        guesses = self._letters.encode(y_pred)
        if self.table is not None:
            return np.asarray(self.table[codes, guesses])
        return (codes != guesses).astype(np.float64)

    @property
    def _ends(self) -> tuple[float, float]:
        """Between which numbers predictions lie."""
        return self.bounds or (float(self._letters.numbers[0]), float(self._letters.numbers[-1]))

    def _need_inside(self, values: Floats, what: str, low: float, high: float) -> None:
        # Averages of numbers inside may lie outside by rounding; the bets stay well above (ν ≥ 1.001).
        room = ROUNDING * (high - low)
        outside = ~((values >= low - room) & (values <= high + room))
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            more = ", or let certify_progressive move predictions inside (clip=True)" * (what == "prediction")
            raise RefusedCertificate(
                f"The {what} {values[row]:.6g} in row {row} lies outside {low:g} to {high:g}, and its loss outside "
                f"the range that was stated. State the true range{more}."
            )

    def _of_numbers(self, y: Floats, y_pred: Floats) -> Floats:
        for what, values in (("label", y), ("prediction", y_pred)):
            self._need_inside(values, what, *self._ends)
        gap = y - y_pred
        if self.name == "absolute":
            return np.abs(gap)
        if self.name == "quadratic":
            return gap**2
        return np.maximum(self.quantile * gap, (self.quantile - 1) * gap)

    def _of_distributions(self, codes: AnyArray, y_pred: AnyArray) -> Floats:
        size = self._letters.size
        floor = self.smoothing / size
        if y_pred.shape != (len(codes), size) or not (y_pred >= floor * (1 - 1e-9)).all():
            raise RefusedCertificate(
                f"The log loss needs predicted distributions of shape ({len(codes)}, {size}) with every probability "
                f"at least {floor:.4g}, or the loss is unbounded. Mix {self.smoothing:g} of the uniform one in."
            )
        check_distributions(y_pred)
        # A probability that is below the floor by rounding only counts as the floor.
        chosen = np.maximum(np.take_along_axis(y_pred, codes[:, None].astype(np.int64), axis=1)[:, 0], floor)
        return np.asarray(-np.log(np.minimum(chosen, 1.0)))

    def inside(self, y_pred: AnyArray) -> AnyArray:
        """Predictions moved into the stated range: another predictor, which is then the one that is tested."""
        numbers = self.bounds is not None or self.convex_table
        return np.clip(as_numbers(y_pred, "prediction"), *self._ends) if numbers else y_pred

    def plain(self) -> dict[str, object]:
        """Everything stated, ready for JSON."""
        return {
            "name": self.name,
            "alphabet": None if self.alphabet is None else self.alphabet.values.tolist(),
            "bounds": None if self.bounds is None else list(self.bounds),
            "table": None if self.table is None else self.table.tolist(),
            "quantile": self.quantile,
            "smoothing": self.smoothing,
            "convex": self.convex,
            "low": self.low,
            "range": self.range,
        }


def check_distributions(y_pred: Floats) -> None:
    """Refuse predicted probabilities that are none: their log loss could be anything."""
    wrong = ~(np.abs(y_pred.sum(axis=1) - 1) <= 1e-6)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise RefusedCertificate(f"The predicted probabilities of row {row} do not add up to one.")


def stated_labels(letters: Alphabet) -> str:
    """What is said of the possible labels; whoever checks a certificate file compares it with those it counts with."""
    return f"Labels are among {', '.join(str(v) for v in letters.values[:8])}{', …' if letters.size > 8 else ''}."


def between_labels(table: Floats, numbers: Floats, codes: AnyArray, guesses: Floats) -> Floats:
    """Losses of predictions between labels, from a table that is convex in the prediction.

    The table says nothing there; a straight line from one label to the next is never less than a convex loss.
    """
    rows = table[codes]
    right = np.clip(np.searchsorted(numbers, guesses), 1, max(len(numbers) - 1, 1))
    right = np.minimum(right, len(numbers) - 1)
    left = np.maximum(right - 1, 0)
    width = np.where(right > left, numbers[right] - numbers[left], 1.0)
    share, every = np.clip((guesses - numbers[left]) / width, 0.0, 1.0), np.arange(len(rows))
    return np.asarray((1 - share) * rows[every, left] + share * rows[every, right])


def row_loss(
    loss: object,
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
    quantile: float = 0.5,
) -> RowLoss:
    """The loss by its name or table, on labels that are stated by ``alphabet`` or, for numbers, ``label_bounds``."""
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    if letters is None and label_bounds is None:
        raise RefusedCertificate(
            "State the possible labels (alphabet=) or the smallest and largest (label_bounds=): no theorem covers an "
            "unbounded loss, and a range read off the data is no range."
        )
    if callable(loss) or (isinstance(loss, str) and loss in LOSSES and loss not in NAMES):
        return _of_cell(make_cell(loss, _needed(letters)), loss)
    if not isinstance(loss, str):
        return RowLoss("table", letters, None, _table(loss, letters))
    if loss not in NAMES:
        raise GinghamError(f"loss={loss!r} is unknown; choose one of {', '.join(LOSSES)}, or give a table.")
    if loss not in OF_NUMBERS:
        if letters is None:
            raise RefusedCertificate(f"loss={loss!r} needs alphabet=, the possible labels.")
        return RowLoss(loss, letters, None)
    if not 0 < quantile < 1:
        raise GinghamError(f"quantile={quantile} must lie strictly between 0 and 1.")
    return RowLoss(loss, letters, _interval(loss, letters, label_bounds), quantile=quantile)


def _interval(loss: str, letters: Alphabet | None, bounds: tuple[float, float] | None) -> tuple[float, float]:
    if letters is not None and not letters.numeric:
        raise RefusedCertificate(f"loss={loss!r} is for numbers; the labels are names. Use loss='zero-one'.")
    ends = None if letters is None else (float(letters.numbers.min()), float(letters.numbers.max()))
    if bounds is None:
        return ends or (0.0, 0.0)
    low, high = Bounds.of(bounds, given=True) or (0.0, 0.0)
    if not low < high:
        raise GinghamError(f"label_bounds={bounds!r} must be two finite numbers, the smaller one first.")
    if ends is not None and not (low <= ends[0] and ends[1] <= high):
        raise GinghamError(f"label_bounds={bounds!r} do not contain the alphabet, {ends[0]:g} to {ends[1]:g}.")
    return low, high


def _needed(letters: Alphabet | None) -> Alphabet:
    if letters is None:
        raise RefusedCertificate("A table of losses needs alphabet=, the possible labels.")
    return letters


def _of_cell(cell: CellModel, loss: object) -> RowLoss:
    """A loss that is known as a cell, by its table and by its own word on convexity."""
    letters = cell.alphabet
    if cell.table is None or letters is None or cell.table.shape != (letters.size, letters.size):
        raise RefusedCertificate(
            f"loss={loss!r}: a single prediction is judged by {', '.join(NAMES)} or a table of all labels; say by "
            "which one (loss=)."
        )
    return RowLoss("table", letters, None, cell.table, convex_table=bool(cell.convex and letters.numeric))


def _table(loss: object, stated: Alphabet | None) -> Floats:
    letters = _needed(stated)
    try:
        table = np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise GinghamError(
            f"loss={loss!r} is neither a name ({', '.join(NAMES)}) nor a table with a row for each true label and a "
            "column for each predicted one."
        ) from None
    if table.shape != (letters.size, letters.size) or not np.isfinite(table).all():
        raise GinghamError(
            f"The table of losses has shape {table.shape}; it needs a finite number for each of the {letters.size} "
            f"true and {letters.size} predicted labels."
        )
    return table


def as_numbers(values: AnyArray, what: str) -> Floats:
    """One finite number a row."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise GinghamError(f"The {what}s are not numbers; for names use loss='zero-one' and alphabet=.") from None
    if numbers.ndim != 1:
        raise GinghamError(f"One {what} a row is needed, not shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise GinghamError(f"The {what} in row {row} is {numbers[row]}.")
    return numbers
