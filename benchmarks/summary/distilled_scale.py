"""One checkerboard distilled from the predictions of a model with 1,000,000 rows and 100,000 columns.

The predictions are additive effects and a product of planted factors, as layers have them: 12 × 12 groups of items with
noise of their own, observed as unevenly as users and films are. No table of rows × columns is made.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, write
from gingham.fitting.distill import Factors, distill

FIGURES = {
    "processor seconds of distilling": "cpu_s",
    "GiB at most": "peak GiB",
    "adjusted Rand index with the planted groups": "ari",
}
RANK, GROUPS, NOISE = 24, 12, 0.5


def planted(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Groups and factors of the items of one side."""
    groups = rng.integers(0, GROUPS, n)
    centres = rng.normal(size=(GROUPS, RANK))
    return groups, centres[groups] + NOISE * rng.normal(size=(n, RANK))


def main() -> None:
    args = arguments(__doc__, name="summary_distilled_scale")
    shape = (20_000, 5_000) if args.quick else (1_000_000, 100_000)
    rng = np.random.default_rng(args.seed)
    (rows, left), (columns, right) = (planted(n, rng) for n in shape)
    factors = Factors(3.0, rng.normal(size=shape[0]), rng.normal(size=shape[1]), left, right)
    weights = rng.pareto(1.5, shape[0]) + 1, rng.pareto(1.2, shape[1]) + 1
    began = time.process_time()
    board = distill(factors, weights, (GROUPS, GROUPS))
    results = {
        "shape": list(shape),
        "cpu_s": round(time.process_time() - began, 1),
        "peak GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "share of the interaction": board.share,
        "ari": [float(adjusted_rand_score(*pair)) for pair in zip((rows, columns), board.labels)],
    }
    print(results)
    write(args, settings={"rank": RANK, "clusters per side": GROUPS}, results=results)


if __name__ == "__main__":
    main()
