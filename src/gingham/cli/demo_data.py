"""The digits of the demo as named tuples."""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.datasets import load_digits

from gingham.arrays import AnyArray


def load_images() -> tuple[AnyArray, AnyArray]:
    """1797 digits of 8 × 8 pixels with grey levels 0-16, which scikit-learn ships: (1797, 64), and what they are."""
    bunch = load_digits()
    return bunch.data.astype(np.int64), bunch.target


def tuples(digits: AnyArray, mask: AnyArray, names: list[str]) -> tuple[pl.DataFrame, AnyArray]:
    """(image, pixel) pairs under a mask, by name, and their grey levels."""
    images, pixels = np.nonzero(mask)
    places = np.array([f"row {pixel // 8 + 1}, column {pixel % 8 + 1}" for pixel in range(digits.shape[1])])
    return pl.DataFrame({"image": np.array(names)[images], "pixel": places[pixels]}), digits[mask]
