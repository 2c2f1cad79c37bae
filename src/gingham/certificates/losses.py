"""The loss of single predictions, whoever made them: a cell model's loss on labels that somebody stated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cells import LOSSES, CellModel, TableLoss, make_cell, needs_alphabet
from gingham.cells.contract import need_convex
from gingham.cells.losses import cell_from_state, cell_state, loss_kind
from gingham.certificates.assumptions import Assumption, labels_given
from gingham.data import Alphabet, Bounds
from gingham.errors import GinghamError, RefusedCertificate
from gingham.storage import State, savable

ROUNDING = 1e-9  # of a scaled loss


def loss_scale(cell: CellModel) -> tuple[float, float]:
    """(low, range): every loss lies between low and low + range; a constant loss gets range 1."""
    return cell.low, float(cell.range) if cell.range > 0 else 1.0


def scaled_losses(losses: Floats, cell: CellModel) -> Floats:
    """(loss − low)/range, between 0 and 1; a loss that leaves its range is an error, and never moved into it."""
    low, scale = loss_scale(cell)
    scaled = (np.asarray(losses) - low) / scale
    if scaled.size and not (scaled.min() >= -ROUNDING and scaled.max() <= 1 + ROUNDING):
        worst = scaled.max() if scaled.max() > 1 + ROUNDING else scaled.min()
        raise GinghamError(
            f"A {cell.name} loss of {low + scale * worst:.6g} lies outside the range that it is said to have, {low:g} "
            f"to {low + scale:g}: {type(cell).__name__}.range is wrong, or a label or answer is not among those stated."
        )
    return np.minimum(np.maximum(scaled, 0.0), 1.0)


@savable
@dataclass(frozen=True, eq=False)
class StatedLoss:
    """The loss of one prediction on one label, and the labels that were stated for it.

    Attributes
    ----------
    cell : CellModel
        Whose loss it is. Where labels are any numbers between two ends, it stands on these two.
    alphabet : Alphabet or None
        The possible labels, as stated.
    bounds : Bounds or None
        The smallest and largest label, as stated; predictions lie between them, too.
    """

    cell: CellModel
    alphabet: Alphabet | None
    bounds: Bounds | None = None

    @classmethod
    def of_cell(cls, cell: CellModel) -> StatedLoss:
        """The loss of a model's cells on the labels that they know."""
        return cls(cell, cell.alphabet, None if cell.alphabet is not None else Bounds.of(cell.bounds, given=True))

    @property
    def name(self) -> str:
        return self.cell.name

    @property
    def convex(self) -> bool:
        """Whether averaging predictions cannot hurt (Jensen)."""
        if not (self.cell.convex and (self._between or self.cell.answers == "distribution")):
            return False
        need_convex(self.cell)
        return True

    @property
    def statement(self) -> Assumption:
        """What the caller stated about labels."""
        stated = self.bounds if self.bounds is not None else self.alphabet
        if stated is None:
            raise RefusedCertificate("The loss is unbounded: state the possible labels.")
        return labels_given(stated)

    @property
    def _between(self) -> bool:
        """Whether predictions are numbers that may lie between labels."""
        by_table = self.cell.convex and self.alphabet is not None and self.alphabet.numeric
        return self.bounds is not None or (by_table and self.cell.answers != "distribution")

    @property
    def ends(self) -> tuple[float, float]:
        """Between which numbers predictions lie."""
        if self.bounds is not None:
            return self.bounds.low, self.bounds.high
        numbers = self._letters.numbers
        return float(numbers.min()), float(numbers.max())

    @property
    def _letters(self) -> Alphabet:
        if self.alphabet is None:
            raise RefusedCertificate(f"loss={self.name!r} needs alphabet=, the possible labels.")
        return self.alphabet

    def losses(self, y: AnyArray, y_pred: AnyArray) -> Floats:
        """The loss of each row in its own unit; labels and predictions outside what was stated are refused."""
        y, y_pred = np.asarray(y), np.asarray(y_pred)
        if len(y) != len(y_pred):
            raise GinghamError(f"There are {len(y)} labels and {len(y_pred)} predictions.")
        codes = None if self.alphabet is None else self.alphabet.encode(y)
        if self.cell.answers is None:
            raise RefusedCertificate(f"{type(self.cell).__name__}: the loss of a single prediction is not known.")
        if self.cell.answers == "distribution":
            return self._of_distributions(self._letters.encode(y) if codes is None else codes, y_pred)
        if self._between:
            return self._of_numbers(as_numbers(y, "label"), codes, as_numbers(y_pred, "prediction"))
        if self.cell.table is None or codes is None:
            raise RefusedCertificate(f"loss={self.name!r} needs alphabet=, the possible labels.")
        if y_pred.ndim != 1:
            raise GinghamError(f"loss={self.name!r} needs one predicted label per row, not shape {y_pred.shape}.")
        unknown = ~np.isin(y_pred, self._letters.values)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise RefusedCertificate(
                f"The prediction {y_pred[row]} in row {row} is not in the alphabet, and the {self.name} loss is "
                "defined for labels only. Predict labels (rule='mode' or 'median'), or use a loss for numbers "
                "(loss='absolute')."
            )
        return np.asarray(self.cell.table[codes, self._letters.encode(y_pred)])

    def scaled(self, y: AnyArray, y_pred: AnyArray) -> Floats:
        """(loss − low)/range of each row, between 0 and 1."""
        return scaled_losses(self.losses(y, y_pred), self.cell)

    def of_constant(self, y: AnyArray, weights: Floats | None = None) -> float:
        """The mean loss of the best single answer for all rows: what a predictor has to beat.

        Of numbers these are the mean and the quantiles in steps of .05.
        """
        values, at = np.unique(np.asarray(y), return_inverse=True)
        shares = np.bincount(at, weights) / (len(at) if weights is None else np.sum(weights))
        if self.cell.answers == "distribution":
            letters, floor = self._letters, self.cell.smoothing / self._letters.size
            mixed = floor + (1 - self.cell.smoothing) * np.bincount(letters.encode(values), shares, letters.size)
            return float(shares @ self.losses(values, np.tile(mixed, (len(values), 1))))
        if self._between:
            upto = np.searchsorted(np.cumsum(shares), np.linspace(0.05, 0.95, 19))
            answers = np.append(values[np.minimum(upto, len(values) - 1)], values @ shares)
        else:
            answers = self._letters.values
        return min(float(shares @ self.losses(values, np.full(len(values), one))) for one in answers)

    def _of_numbers(self, y: Floats, codes: AnyArray | None, guesses: Floats) -> Floats:
        low, high = self.ends
        room = ROUNDING * (high - low) / 4  # of a loss, which may be a square
        for what, values in (("label", y), ("prediction", guesses)):
            outside = ~((values >= low - room) & (values <= high + room))
            if outside.any():
                row = int(np.flatnonzero(outside)[0])
                raise RefusedCertificate(
                    f"The {what} {values[row]} in row {row} lies outside {low:g} to {high:g}, where the loss is "
                    "unbounded. Clip predictions to the range of the labels (certify_progressive does with clip=True), "
                    "or state the true range."
                )
        by_gap = self.cell.of_gap(y - guesses)
        if by_gap is not None:
            return by_gap
        if self.cell.answers == "number":
            return np.einsum("ek,ek->e", self.cell.coef(guesses), self.cell.features.evaluate(y))
        if self.cell.table is None or codes is None:  # pragma: no cover - every kind of answer was served
            raise RefusedCertificate(f"{type(self.cell).__name__}: the loss of a single prediction is not known.")
        return between_labels(self.cell.table, self._letters.numbers, codes, guesses)

    def _of_distributions(self, codes: AnyArray, y_pred: AnyArray) -> Floats:
        size = self._letters.size
        floor = self.cell.smoothing / size
        if y_pred.shape != (len(codes), size) or not (y_pred >= floor * (1 - 1e-9)).all():
            low = f", or the loss is unbounded. Mix {self.cell.smoothing:g} of the uniform one in" if floor else ""
            raise RefusedCertificate(
                f"The {self.name} loss needs predicted distributions of shape ({len(codes)}, {size}) with every "
                f"probability at least {floor:.4g}{low}."
            )
        wrong = ~(np.abs(y_pred.sum(axis=1) - 1) <= 1e-6)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise RefusedCertificate(f"The predicted probabilities of row {row} do not sum to one.")
        # A probability that is outside by rounding only counts as the end of the range.
        distribution = np.clip(y_pred, floor, 1.0)
        return np.take_along_axis(self.cell.coef(distribution), codes[:, None].astype(np.int64), axis=1)[:, 0]

    def inside(self, y_pred: AnyArray) -> AnyArray:
        """Clip predictions to the stated range; the certificate then covers the clipped predictor."""
        return np.clip(as_numbers(y_pred, "prediction"), *self.ends) if self._between else y_pred

    def storable(self) -> StatedLoss:
        """The same loss as a model file can hold it: a table where the class is known to nobody else."""
        cell = self.cell
        if cell.table is None or LOSSES.get(cell.name) is type(cell):
            return self
        convex = bool(cell.convex and self._letters.numeric)
        return StatedLoss(TableLoss(self._letters, cell.table, convex=convex), self.alphabet, self.bounds)

    def _to_file(self) -> State:
        return {
            "cell": cell_state(self.cell), "letters": self.cell.alphabet, "alphabet": self.alphabet,
            "bounds": self.bounds,
        }  # fmt: skip

    @classmethod
    def _from_file(cls, state: State) -> StatedLoss:
        return cls(cell_from_state(state["cell"], state["letters"]), state["alphabet"], state["bounds"])

    def facts(self) -> dict[str, object]:
        """Everything stated, ready for JSON."""
        facts = loss_facts(self.cell)
        if self.bounds is None:
            return facts
        return {**facts, "alphabet": None if self.alphabet is None else self.alphabet.values,
                "bounds": list(self.bounds), "table": None}  # fmt: skip


def loss_facts(cell: CellModel) -> dict[str, object]:
    """What the loss of a cell is, and the labels it was stated for."""
    low, width = loss_scale(cell)
    return {
        "name": cell.name,
        "alphabet": None if cell.alphabet is None else cell.alphabet.values,
        "bounds": None if cell.bounds is None else list(cell.bounds),
        "table": cell.table,
        "convex": bool(cell.convex),
        "low": low,
        "range": width,
    }


def stated_loss(
    loss: Any,
    alphabet: Iterable[object] | None = None,
    label_bounds: Sequence[float] | Bounds | None = None,
) -> StatedLoss:
    """The loss by its name, table or class, on labels that are stated by ``alphabet`` or, for numbers, by their ends.

    Labels that are listed and bounds as well: the labels lie within the bounds, and predictions may be anywhere there.
    """
    label_values = None if alphabet is None else Alphabet.of(alphabet, given=True)
    bounds = Bounds.of(label_bounds, given=True)
    if label_values is None and bounds is None:
        raise RefusedCertificate(
            "State the possible labels (alphabet=) or the smallest and largest (label_bounds=): no theorem covers an "
            "unbounded loss, and the observed range does not bound new labels."
        )
    if bounds is not None:
        if label_values is not None and label_values.numeric:
            bounds.check(label_values.numbers, "The alphabet's label")
        # Both ends stand for all numbers between them, where the loss is a function of numbers.
        ends = Alphabet.of(tuple(bounds), given=True) if needs_alphabet(loss) else None
        cell = _made(loss, ends, bounds)
        if cell is not None and (cell.answers == "number" or cell.of_gap(np.zeros(0)) is not None):
            return StatedLoss(cell, label_values, bounds)
        if label_values is None:
            raise RefusedCertificate(
                f"loss={loss!r} needs alphabet=, the possible labels; label_bounds= is for losses of numbers."
            )
    if label_values is not None and not label_values.numeric and isinstance(loss, str) and loss_kind(loss).ordered:
        raise RefusedCertificate(f"loss={loss!r} needs numeric labels, but the labels are names. Use loss='zero-one'.")
    cell = make_cell(loss, label_values)
    if (
        cell.table is not None
        and label_values is not None
        and cell.table.shape != (label_values.size, label_values.size)
    ):
        raise RefusedCertificate(
            f"The table of losses has shape {cell.table.shape}; a single prediction is judged by a table with a row "
            f"for each of the {label_values.size} true labels and a column for each predicted one."
        )
    return StatedLoss(cell, label_values)


def _made(loss: Any, ends: Alphabet | None, bounds: Bounds) -> CellModel | None:
    """The loss on the two ends; None for a table, which has more labels."""
    try:
        return make_cell(loss, ends, bounds)
    except GinghamError:
        if isinstance(loss, str):
            raise
        return None


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


def as_numbers(values: AnyArray, what: str) -> Floats:
    """One finite number per row."""
    try:
        if np.asarray(values).dtype.kind in "cmM":  # numpy would drop the imaginary part, or count nanoseconds
            raise TypeError
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise GinghamError(f"A {what} is no number; for names use loss='zero-one' and alphabet=.") from None
    if numbers.ndim != 1:
        raise GinghamError(f"One {what} per row is needed, not shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise GinghamError(f"The {what} in row {row} is {numbers[row]}.")
    return numbers
