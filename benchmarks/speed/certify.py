"""A certificate with all exact terms beside a sweep of the fit it certifies: CPU seconds at one and ten million tuples.

Planted ratings with 250 tuples an item of the first mode and 5,000 of the second, soft clusters as a few sweeps leave
them. ``certify`` takes a sample that is already read and sorted, as a sweep does; ``summary`` is what rows of ids cost
before. β paths: five folds and the whole side by side on all cores, against one after the other.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
import gingham as gg
from gingham.cells import Absolute
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.engine.threads import one_thread
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import make_start

FIGURES = {
    "a certificate over a sweep": "certify/*/certify_over_sweep",
    "CPU seconds a certificate": "certify/*/certify_cpu_s",
    "β path, wall seconds saved by threads": "beta_path/wall_ratio",
}
SIZES = ((100_000, 16), (1_000_000, 16), (1_000_000, 64), (10_000_000, 16), (10_000_000, 64))
LETTERS = Alphabet.of(range(1, 6), given=True)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, max(20, n // of), n, dtype=np.int32) for of in (250, 5_000)])
    planted = rng.integers(1, 6, (8, 8))[X[:, 0] % 8, X[:, 1] % 8]
    return X, np.where(rng.random(n) < 0.3, rng.integers(1, 6, n), planted).astype(np.int8)


def certified(n: int, m: int, seed: int) -> dict:
    X, y = rows(n, seed)
    found: dict = {"tuples": n, "clusters": m}
    with common.clock(found, "summary_"):
        sample = Sample.of(list(X.T), y, alphabet=LETTERS)
    problem, marks = Problem.grid(sample, Absolute(LETTERS), 1.0), []
    solve = Projection(Constant(), tol=0.0, max_iter=6, backend="compiled").solve
    start = make_start("spectral", problem, (m, m), np.random.default_rng(seed))
    solution = solve(problem, start, lambda *_: marks.append(time.process_time()))
    found["sweep_cpu_s"] = float(np.median(np.diff(marks)))
    times = []
    for _ in range(3):
        with common.clock(found, "certify_"):
            certificate = gg.certify(solution.posterior, sample)
        times.append(found["certify_cpu_s"])
    found["certify_cpu_s"] = float(np.median(times))
    with common.clock(found, "all_bounds_"):
        table = certificate.compare(together=False)
    found["certify_over_sweep"] = found["certify_cpu_s"] / found["sweep_cpu_s"]
    return {**found, "n_bounds": len(table), "value": certificate.value}


def paths(n: int, seed: int) -> dict:
    """Wall seconds of a path over four β with five folds, on all cores and on one thread."""
    X, y = rows(n, seed)
    model = gg.CoClusteringRegressor(n_clusters=(8, 8), alphabet=range(1, 6), max_iter=20, random_state=0)
    found: dict = {"tuples": n}
    for title in ("together_", "alone_"):
        with common.clock(found, title):
            if title == "together_":
                first = gg.beta_path(model, X, y, (0.3, 1.0, 3.0, 9.0), cv=5, delta=0.05)
            else:
                with one_thread():
                    again = gg.beta_path(model, X, y, (0.3, 1.0, 3.0, 9.0), cv=5, delta=0.05, n_jobs=1)
    found["same"] = bool(np.allclose(*([p.certificate.value for p in path.points] for path in (first, again))))
    found["wall_ratio"] = found["alone_wall_s"] / found["together_wall_s"]
    return found


def main() -> None:
    args = common.arguments(__doc__, "speed_certify")
    certified(2_000, 4, 0)  # compiled code is loaded
    results: dict = {"certify": []}
    for n, m in SIZES[:1] if args.quick else SIZES:
        results["certify"].append(certified(n, m, args.seed))
        print(results["certify"][-1], flush=True)
        common.write(args, {"bound": "log-wealth, exact complexity"}, results)
    results["beta_path"] = paths(20_000 if args.quick else 200_000, args.seed)
    print(results["beta_path"], flush=True)
    common.write(args, {"bound": "log-wealth, exact complexity"}, results)


if __name__ == "__main__":
    main()
