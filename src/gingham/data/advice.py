"""What is said of data from which little can be learned, or for which another model is meant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gingham.arrays import Floats

FEW_ROWS = 20  # below which nothing is said of data
SEVERAL = 1.5  # rows per item, on average, below which nothing can be learned of it


def advice_on(names: Sequence[str], n_items: Sequence[int], n_rows: int, labels: Floats | None = None) -> list[str]:
    """Sentences on sides with about one row per item, and on labels that look like counts."""
    said = []
    if len(names) > 1 and n_rows >= FEW_ROWS:
        said += [says_alone(name, n, n_rows) for name, n in zip(names, n_items) if n_rows < SEVERAL * n]
    if labels is not None and n_rows >= FEW_ROWS and look_like_counts(labels):
        said.append(
            f"The labels look like counts, from {labels.min():,.0f} to {labels.max():,.0f} with half of them at most "
            f"{np.median(labels):,.0f}. A few large values would determine the predictions. CoOccurrenceClustering "
            "(--model cooccurrence, --weight) models counts; or take logarithms."
        )
    return said


def look_like_counts(numbers: Floats) -> bool:
    """Whether numbers are whole, not negative, and most of them far below the largest."""
    if len(numbers) == 0 or numbers.min() < 0 or numbers.max() < 8 or not (numbers == np.floor(numbers)).all():
        return False
    above = numbers[numbers > 0]
    if len(above) == 0:
        return False
    middle = float(np.median(above))
    return float(above.max()) >= max(8.0, 5.0 * middle) and float(above.mean()) > 1.15 * middle


def says_alone(name: str, n_items: int, n_rows: int) -> str:
    """What to say of a side with about one row per item."""
    return (
        f"{name!r} has {n_items:,} ids in {n_rows:,} rows, about one row each. A model cannot learn about an id that "
        "occurs once. Does this column number the rows?"
    )
