"""A planted checkerboard with names that try to break out of the page."""

from __future__ import annotations

import numpy as np
import pytest

import gingham as gg

NASTY = [
    "<script>document.title='broken'</script>",
    "quotes \" and ' and `, commas, and\nnew\nlines",
    "مرحبا بالعالم",
    "</script><img src=x onerror=document.title='broken'>",
    "-->{{ 7*7 }}${7*7}&amp;\u2028",
]


@pytest.fixture(scope="session")
def fitted():
    """(model, X, y) of 30 × 24 items whose first names are nasty."""
    rng = np.random.default_rng(0)
    names = np.array([*NASTY, *[f"item {k}" for k in range(25)]], dtype=object)
    rows, columns = rng.integers(0, 30, 500), rng.integers(0, 24, 500)
    y = np.array([[5, 2], [1, 4]])[rows % 2, columns % 2]
    X = np.empty((500, 2), dtype=object)
    X[:, 0], X[:, 1] = names[rows], columns.tolist()
    model = gg.CoClusteringRegressor((2, 3), alphabet=range(1, 6), beta=2.0, random_state=0).fit(X, y)
    return model, X, y
