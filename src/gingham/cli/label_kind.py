"""What was said about the labels, read and checked; what was not said is left to the estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gingham.arrays import AnyArray
from gingham.cells import LOSSES, loss_kind, needs_alphabet
from gingham.errors import GinghamError


@dataclass(frozen=True)
class Choice:
    """Whether labels are classes, and what was said of them; None where nothing was."""

    classify: bool
    loss: str | None
    alphabet: AnyArray | None
    bounds: tuple[float, float] | None


def choose(
    labels: AnyArray, loss: str | None, alphabet: str | None, bounds: tuple[float, float] | None = None
) -> Choice:
    """What was said, checked against the labels; ``bounds`` are the smallest and largest possible label."""
    if loss is not None and loss not in LOSSES:
        raise GinghamError(
            f"--loss {loss!r} is unknown; choose one of {', '.join(LOSSES)}, or name the module that registers it: "
            f"gingham --plugin MODULE fit …"
        )
    names = labels.dtype.kind not in "biuf"
    given = None if alphabet is None else parse_alphabet(alphabet, names)
    if names and loss is not None and loss_kind(loss).ordered:
        raise GinghamError(f"--loss {loss} needs numeric labels, and the label column holds text. Use zero-one or log.")
    if names and (n_values := len(np.unique(labels.astype(str)))) > 1000:
        raise GinghamError(f"The label column holds {n_values} different texts; a class label has at most 1000.")
    if bounds is not None:
        if names or given is not None or (loss is not None and needs_alphabet(loss)):
            raise GinghamError("--bounds states the range of numbers under quadratic loss; others have --alphabet.")
        if labels.min() < bounds[0] or labels.max() > bounds[1]:
            raise GinghamError(
                f"--bounds {bounds[0]:g},{bounds[1]:g}: the labels go from {labels.min():g} to {labels.max():g}."
            )
    return Choice(names or (loss is not None and not loss_kind(loss).ordered), loss, given, bounds)


def parse_alphabet(listed: str, names: bool) -> AnyArray:
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
