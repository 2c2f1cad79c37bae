"""Small labelled observations that the examples of several families share."""

import numpy as np

rng = np.random.default_rng(7)
X = np.column_stack([rng.integers(0, 12, 160), rng.integers(0, 9, 160)])
STARS = np.clip(np.where((X[:, 0] + X[:, 1]) % 2 == 0, 5, 2) + rng.integers(-1, 2, 160), 1, 5)
WORDS = np.where(STARS > 3, "like", "hate")
TINY = {
    "one row": ([("a", "b")], [1]),
    "two equal rows": ([("a", "b"), ("a", "b")], [1, 1]),
    "two rows that disagree": ([("a", "b"), ("a", "b")], [1, 2]),
    "one label": ([("a", "b"), ("c", "d"), ("a", "d")], [3, 3, 3]),
}
