"""δ, the probability with which a guarantee may fail, and how many candidates share it: one check for every door."""

from __future__ import annotations

from math import log, nan
from numbers import Integral

import numpy as np

from gingham.errors import GinghamError


def checked_delta(delta: object) -> float:
    """δ as a number strictly between 0 and 1."""
    number = float(delta) if isinstance(delta, (float, np.floating)) else nan
    if not 0 < number < 1:
        raise GinghamError(
            f"delta={delta!r} must lie strictly between 0 and 1: it is the probability that the guarantee fails."
        )
    return number


def checked_candidates(candidates: object) -> int:
    """Among how many predictors the same observations decided."""
    if isinstance(candidates, bool) or not isinstance(candidates, Integral) or candidates < 1:
        raise GinghamError(f"candidates={candidates!r} must be an integer ≥ 1.")
    return int(candidates)


def log_inverse(delta: object, candidates: object = 1) -> float:
    """ln(candidates/δ), the price of the confidence."""
    return log(checked_candidates(candidates)) - log(checked_delta(delta))
