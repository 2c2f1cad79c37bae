"""How time and memory of a co-clustering fit grow with tuples, items, clusters and modes, with fitted exponents.

Planted ratings are generated in parts; a point is a fixed number of sweeps in a process of its own, so that its peak
memory is its own. The exponent is the slope of log seconds against log size over the points that take long enough
to be read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, write

POINT = """
import json, resource, sys, time
import numpy as np
from gingham.cells import Absolute
from gingham.data import Alphabet, Mode, Sample
from gingham.problem import Problem
from gingham.solvers.projection import Projection
from gingham.solvers.schedule import Constant
from gingham.starts import random
n, shape, m, sweeps = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
codes = [np.empty(n, np.int32) for _ in shape]
labels = np.empty(n, np.int32)
table = rng.integers(0, 5, [8] * len(shape))
for start in range(0, n, 5_000_000):
    part = slice(start, min(n, start + 5_000_000))
    size = part.stop - part.start
    for code, items in zip(codes, shape):
        code[part] = rng.integers(0, items, size, dtype=np.int32)
    planted = table[tuple(code[part] % 8 for code in codes)]
    labels[part] = np.where(rng.random(size) < 0.3, rng.integers(0, 5, size), planted)
alphabet = Alphabet.of(range(5), given=True)
modes = tuple(Mode(f"mode{j}", np.arange(items)) for j, items in enumerate(shape))
sample = Sample(modes, tuple(codes), None, alphabet, labels)
problem = Problem.grid(sample, Absolute(alphabet), 1.0)
start = random(problem, m, rng)
began = time.perf_counter()
for axis in range(len(shape)):
    sample.rows(axis, problem.cells[0].features)
sorting = time.perf_counter() - began
Projection(Constant(), max_iter=1).solve(problem, start)
began = time.perf_counter()
Projection(Constant(), tol=0.0, max_iter=sweeps).solve(problem, start)
seconds = (time.perf_counter() - began) / sweeps
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"sort_s": sorting, "sweep_s": seconds, "fit_s": sorting + 50 * seconds, "peak_gib": peak}))
"""


def point(n: int, shape: list[int], m: list[int], sweeps: int = 3) -> dict:
    argument = json.dumps([n, shape, m, sweeps])
    done = subprocess.run([sys.executable, "-c", POINT, argument], capture_output=True, text=True, check=True)
    result = {"tuples": n, "shape": shape, "clusters": m, **json.loads(done.stdout)}
    print(result, flush=True)
    return result


def predicted(rows: list[dict]) -> list[dict]:
    """Seconds of a fit on more tuples and cores than were measured: the largest point's rate, shared out evenly.

    Sorting and sweeping are linear in tuples and split over partitions; 20 % is added for the tree of sums and the
    messages of a cluster. A prediction, not a measurement.
    """
    largest = rows[-1]
    per_tuple = largest["fit_s"] / largest["tuples"] * 2  # core seconds: the measurement used two cores
    return [
        {"tuples": n, "cores": cores, "predicted_fit_s": 1.2 * per_tuple * n / cores}
        for n in (10**8, 10**9, 10**10)
        for cores in (16, 64, 256)
    ]


def exponent(rows: list[dict], size) -> float:
    rows = [row for row in rows if row["sweep_s"] > 2e-3]
    return float(np.polyfit(np.log([size(r) for r in rows]), np.log([r["fit_s"] for r in rows]), 1)[0])


def main() -> None:
    args = arguments(
        __doc__ or "",
        "speed_growth",
        lambda p: p.add_argument("--largest", type=float, default=1e8, help="tuples of the largest point"),
    )
    largest = 1e6 if args.quick else args.largest
    tuples = [int(n) for n in (1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8) if n <= largest]
    results: dict = {"with_tuples": [point(n, [40_000, 8_000], [16, 16]) for n in tuples]}
    results["exponent_tuples"] = exponent(results["with_tuples"], lambda r: r["tuples"])
    results["predicted"] = predicted(results["with_tuples"])
    write(args, {"sweeps_of_a_fit": 50, "labels": 5}, results)
    sizes = (8, 16, 32) if args.quick else (8, 16, 32, 64, 128)
    results["with_clusters"] = [point(1_000_000, [20_000, 5_000], [k, k]) for k in sizes]
    results["exponent_clusters"] = exponent(results["with_clusters"], lambda r: r["clusters"][0])
    results["with_items"] = [point(1_000_000, [n, n // 4], [16, 16]) for n in (4_000, 16_000, 64_000, 256_000)]
    results["exponent_items"] = exponent(results["with_items"], lambda r: r["shape"][0])
    results["with_modes"] = [point(300_000, [2_000] * d, [4] * d) for d in (1, 2, 3, 4)]
    write(args, {"sweeps_of_a_fit": 50, "labels": 5}, results)


if __name__ == "__main__":
    main()
