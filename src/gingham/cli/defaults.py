"""What to do when only the file and its columns are given: kind of labels, loss, and β from a held-out pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import Anything, Floats, Ints
from gingham.cells import LOSSES, loss_kind, needs_alphabet
from gingham.data import Mode
from gingham.errors import GinghamError

FEW = 64  # so many different numbers are taken for a scale (stars, grey levels), more for a measurement
SHRINK = 5.0
PILOT_SHARE = 0.1


@dataclass(frozen=True)
class Choice:
    """How labels are read, what a mistake costs, and at which trade-off."""

    classify: bool
    loss: str
    beta: float
    alphabet: Anything | None
    bounds: tuple[float, float] | None


def choose(
    columns: Sequence[Anything],
    labels: Anything,
    loss: str | None,
    beta: float | None,
    alphabet: str | None,
    rng: np.random.Generator,
    bounds: tuple[float, float] | None = None,
) -> Choice:
    """Fill in what the caller left open; ``bounds`` are the smallest and largest possible label, where stated."""
    if loss is not None and loss not in LOSSES:
        raise GinghamError(
            f"--loss {loss!r} is unknown; choose one of {', '.join(LOSSES)}, or name the module that registers it: "
            f"gingham --plugin MODULE fit …"
        )
    names = labels.dtype.kind not in "biuf"
    given = None if alphabet is None else parse_alphabet(alphabet, names)
    n_values = len(np.unique(labels.astype(str) if names else labels))
    if names and loss is not None and loss_kind(loss).ordered:
        raise GinghamError(f"--loss {loss} needs numeric labels, and the label column holds text. Use zero-one or log.")
    if names and n_values > 1000:
        raise GinghamError(f"The label column holds {n_values} different texts; a class label has at most 1000.")
    if bounds is not None:
        if names or given is not None or (loss is not None and needs_alphabet(loss)):
            raise GinghamError("--bounds states the range of numbers under quadratic loss; others have --alphabet.")
        if labels.min() < bounds[0] or labels.max() > bounds[1]:
            raise GinghamError(
                f"--bounds {bounds[0]:g},{bounds[1]:g}: the labels go from {labels.min():g} to {labels.max():g}."
            )
        loss = "quadratic" if loss is None else loss
    if loss is None:
        loss = "zero-one" if names else "absolute" if n_values <= FEW or given is not None else "quadratic"
    if bounds is None and not needs_alphabet(loss) and given is None and n_values > FEW:
        bounds = (float(labels.min()), float(labels.max()))
    if beta is None:
        beta = pilot_beta(columns, labels, loss, rng)
    return Choice(names or not loss_kind(loss).ordered, loss, beta, given, bounds)


def parse_alphabet(listed: str, names: bool) -> Anything:
    """Label values from "1,2,3" or, for whole numbers, "1..5"."""
    if ".." in listed and not names:
        low, _, high = listed.partition("..")
        try:
            values = np.arange(int(low), int(high) + 1)
        except ValueError:
            raise GinghamError(f"--alphabet {listed!r}: a range is two whole numbers, such as 1..5.") from None
        if not 1 <= len(values) <= 100_000:
            raise GinghamError(f"--alphabet {listed!r} has {len(values)} values.")
        return values
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if not parts:
        raise GinghamError("--alphabet is empty; list the possible labels, such as 1,2,3,4,5 or 1..5.")
    if names:
        return np.array(parts)
    try:
        numbers = np.array([float(part) for part in parts])
    except ValueError:
        raise GinghamError(f"--alphabet {listed!r} must list numbers, because the label column is numeric.") from None
    return numbers.astype(np.int64) if np.all(numbers == np.floor(numbers)) else numbers


def pilot_beta(columns: Sequence[Anything], labels: Anything, loss: str, rng: np.random.Generator) -> float:
    """β from the error of item means on a tenth of the rows that the means have not seen.

    Under a Laplace or Gaussian noise of that size these are the natural exchange rates between loss and
    information: 1/scale, lowered a little because a checkerboard does better than means, and 1/(2 σ²).
    """
    kind = loss_kind(loss)
    if kind.code_length:
        return 1.0
    codes = [Mode.of(column, str(j)).encode(column) for j, column in enumerate(columns)]
    held = rng.random(len(labels)) < PILOT_SHARE
    if held.all() or not held.any():
        held = np.arange(len(labels)) % 2 == 0
    if not kind.ordered:
        _, label_codes = np.unique(
            labels.astype(str) if labels.dtype.kind not in "biuf" else labels, return_inverse=True
        )
        scores = [
            _additive(codes, (label_codes == k).astype(float), held) for k in range(min(label_codes.max() + 1, 64))
        ]
        error = float(np.mean(np.argmax(scores, axis=0) != label_codes[held]))
        return 1.0 / max(error, 0.02)
    residual = labels[held].astype(float) - _additive(codes, labels.astype(float), held)
    if not kind.needs_alphabet:
        scale = float(np.mean(residual**2))
        return 0.5 / scale if scale > 0 else 1.0
    scale = float(np.abs(residual).mean())
    return 0.7 / scale if scale > 0 else 1.0


def _additive(codes: Sequence[Ints], y: Floats, held: Anything) -> Floats:
    """Global mean plus shrunken item means, learnt on the other rows, for the held rows."""
    base = float(y[~held].mean())
    rest = y[~held] - base
    predicted = np.full(int(held.sum()), base)
    for code in codes:
        n = int(code.max()) + 1
        sums = np.bincount(code[~held], rest, minlength=n)
        means = sums / (np.bincount(code[~held], minlength=n) + SHRINK)
        rest = rest - means[code[~held]]
        predicted += means[code[held]]
    return predicted
