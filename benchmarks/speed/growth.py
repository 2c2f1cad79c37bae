"""How time and memory of a co-clustering fit grow with tuples, items, clusters and modes, with fitted exponents.

Planted ratings are generated in parts; a point is a fixed number of sweeps in a process of its own, so that its peak
memory is its own. A fit is sorting and 50 sweeps (the shortest sweep counts). `fixed_items`: more tuples of the 943 ×
1,682 items of MovieLens-100K; `with_tuples`: items in proportion to the tuples (250 tuples an item of the first mode,
5,000 of the second), so that their memberships outgrow the caches. The exponent is the slope of log CPU seconds
against log size over all points. --only measures some parts and keeps the others.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, previous, write

FIGURES = {
    "exponent of CPU seconds with tuples": "exponent_with_tuples",
    "with items": "exponent_items",
    "with clusters": "exponent_clusters",
    "with cells and modes": "exponent_modes",
    "largest peak, GiB": "with_tuples/-1/peak_gib",
}
PARTS = ("tuples", "fixed", "clusters", "items", "modes", "phases")
SIZES = {
    "tuples": (1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8),
    "clusters": (8, 16, 32, 64, 128),
    "items": (4_000, 16_000, 64_000, 256_000),
    "modes": (1, 2, 3, 4),
}
SMALL = {"tuples": (1e6, 1e7), "clusters": (8, 64), "items": (16_000, 256_000), "modes": (1, 4)}
POINT = """
import json, resource, sys, time
import numpy as np
from gingham.cells import Absolute
from gingham.data import Alphabet, Mode, Sample
from gingham.core.problem import Problem
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import random
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
warm = sample.take(np.arange(100))  # compiled code is loaded before the clock runs
Projection(Constant(), max_iter=1).solve(Problem.grid(warm, problem.cells[0], 1.0), start)
wall, cpu = [time.perf_counter()], [time.process_time()]
for axis in range(len(shape)):
    sample.rows(axis, problem.cells[0].features)
def mark(*_):
    wall.append(time.perf_counter())
    cpu.append(time.process_time())
mark()
Projection(Constant(), tol=0.0, max_iter=sweeps).solve(problem, start, mark)
# The sweep least disturbed by others on the machine; CPU seconds of all threads hardly notice them.
row = {}
for name, times in (("wall", wall), ("cpu", cpu)):
    sort, sweep = times[1] - times[0], min(np.diff(times[1:]))
    row |= {f"sort_{name}_s": sort, f"sweep_{name}_s": sweep, f"fit_{name}_s": sort + 50 * sweep}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
import numba
print(json.dumps({**row, "peak_gib": peak, "threads": numba.get_num_threads()}))
"""


PHASES = """
import json, resource, sys, time
import numpy as np
import gingham as gg
from gingham.data.sample import few_values
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.cells import Absolute
from gingham.fitting.schedules import Constant
from gingham.fitting.projection import Projection
from gingham.fitting.starts import make_start
from gingham.selection.auto import beta_of_item_means
alphabet = Alphabet.of(range(1, 6), given=True)
def phases(n, shape, m):
    rng = np.random.default_rng(0)
    X, y = np.empty((n, 2), np.int32), np.empty(n, np.int8)
    table = rng.integers(1, 6, (8, 8))
    for start in range(0, n, 5_000_000):
        part = slice(start, min(n, start + 5_000_000))
        for j, items in enumerate(shape):
            X[part, j] = rng.integers(0, items, part.stop - part.start, dtype=np.int32)
        planted = table[X[part, 0] % 8, X[part, 1] % 8]
        noisy = rng.random(len(planted)) < 0.3
        y[part] = np.where(noisy, rng.integers(1, 6, len(planted)), planted)
    found, began = {}, time.process_time()
    def mark(name):
        nonlocal began
        found[name] = time.process_time() - began
        began = time.process_time()
    few_values(y, 1000)
    sample = Sample.of(list(X.T), y, alphabet=alphabet)
    mark("read")
    beta = beta_of_item_means(sample, Absolute(alphabet))[0]
    mark("beta")
    problem = Problem.grid(sample, Absolute(alphabet), beta)
    for axis in range(2):
        sample.rows(axis, problem.cells[0].features)
    mark("sort")
    begun = make_start("spectral", problem, m, rng)
    mark("start")
    marks = []
    solve = Projection(Constant(), tol=0.0, max_iter=4, backend="compiled").solve
    solution = solve(problem, begun, lambda *_: marks.append(time.process_time()))
    found["sweep"], began = min(np.diff(marks)), time.process_time()
    solution.posterior.predict(sample.codes)
    mark("predict")
    del sample, problem
    began = time.process_time()
    gg.certify(solution.posterior, X, y)
    mark("certify")
    return found
phases(2_000, (30, 20), (4, 4))  # compiled code is loaded before the clock runs
n, shape, m = json.loads(sys.argv[1])
print(json.dumps({**phases(n, shape, m), "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
"""


def phases(n: int, m: int) -> dict:
    """CPU seconds of every phase of a fit, and of a prediction and a certificate of all its tuples."""
    shape = [max(20, n // 250), max(20, n // 5_000)]
    done = subprocess.run(
        [sys.executable, "-c", PHASES, json.dumps([n, shape, [m, m]])], capture_output=True, text=True, check=True
    )
    result = {"tuples": n, "shape": shape, "clusters": m, **json.loads(done.stdout)}
    result["certify_over_sweep"] = result["certify"] / result["sweep"]
    print(result, flush=True)
    return result


def point(n: int, shape: list[int], m: list[int]) -> dict:
    sweeps = max(5, min(50, 20_000_000 // n))  # few where one takes long
    argument = json.dumps([n, shape, m, sweeps])
    done = subprocess.run([sys.executable, "-c", POINT, argument], capture_output=True, text=True, check=True)
    result = {"tuples": n, "shape": shape, "clusters": m, "sweeps": sweeps, **json.loads(done.stdout)}
    print(result, flush=True)
    return result


def predicted(rows: list[dict]) -> list[dict]:
    """Seconds of a fit on more tuples and cores than were measured: the largest point's rate, shared out evenly.

    Sorting and sweeping are linear in tuples and split over partitions; 20 % is added for the tree of sums and the
    messages of a cluster. A prediction, not a measurement.
    """
    largest = max(rows, key=lambda row: row["tuples"])
    per_tuple = largest["fit_cpu_s"] / largest["tuples"]
    return [
        {"tuples": n, "cores": cores, "predicted_fit_s": 1.2 * per_tuple * n / cores}
        for n in (10**8, 10**9, 10**10)
        for cores in (16, 64, 256)
    ]


def exponent(rows: list[dict], size, clock: str = "cpu") -> float:
    return float(np.polyfit(np.log([size(r) for r in rows]), np.log([r[f"fit_{clock}_s"] for r in rows]), 1)[0])


def plot(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for key, style, name in (
        ("with_tuples", "C0o-", "items in proportion"),
        ("fixed_items", "C1s--", "943 × 1,682 items"),
    ):
        rows = results.get(key, [])
        left.plot([r["tuples"] for r in rows], [r["fit_cpu_s"] for r in rows], style, label=name)
        right.plot([r["tuples"] for r in rows], [r["peak_gib"] for r in rows], style, label=name)
    first = results["with_tuples"][-1]
    line = np.array([results["with_tuples"][0]["tuples"], first["tuples"]], dtype=float)
    left.plot(line, first["fit_cpu_s"] * line / first["tuples"], "0.6", lw=1, label="linear")
    left.set(xscale="log", yscale="log", xlabel="tuples", ylabel="CPU seconds", title="sorting and 50 sweeps, 16 × 16")
    right.axhline(16, color="0.6", lw=1, label="16 GiB")
    right.set(xscale="log", yscale="log", xlabel="tuples", ylabel="GiB", title="peak memory of the process")
    for axes in (left, right):
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    def options(parser):
        parser.add_argument("--largest", type=float, default=1e8, help="tuples of the largest point")
        parser.add_argument("--smallest", type=float, default=1e5, help="smaller points stay as they are")
        parser.add_argument("--join", type=Path, nargs="*", default=[], help="files of parts that were run elsewhere")
        parser.add_argument("--only", nargs="*", choices=PARTS)

    args = arguments(__doc__ or "", "speed_growth", options)
    settings = {"sweeps_of_a_fit": 50, "labels": 5}
    results: dict = previous(args) if args.only else {}
    for path in args.join:
        results |= json.loads(path.read_text())["results"]
    sizes = SMALL if args.quick else SIZES
    tuples = [int(n) for n in sizes["tuples"] if args.smallest <= n <= args.largest]
    by_tuples = lambda r: r["tuples"]  # noqa: E731
    wanted = args.only or [part for part in PARTS if not (args.quick and part == "fixed")]
    for part, key, shape in (
        ("tuples", "with_tuples", lambda n: [max(20, n // 250), max(20, n // 5_000)]),
        ("fixed", "fixed_items", lambda n: [943, 1_682]),
    ):
        if part in wanted:
            for n in tuples:
                kept = [row for row in results.get(key, []) if row["tuples"] != n]
                results[key] = sorted([*kept, point(n, shape(n), [16, 16])], key=by_tuples)
                write(args, settings, results)
    for key in ("with_tuples", "fixed_items"):
        if len(results.get(key, [])) > 1:
            results[f"exponent_{key}"] = exponent(results[key], by_tuples)
            results[f"exponent_{key}_wall"] = exponent(results[key], by_tuples, "wall")
    if results.get("with_tuples"):
        results["predicted"] = predicted(results["with_tuples"])
    if "clusters" in wanted:
        results["with_clusters"] = [point(1_000_000, [20_000, 5_000], [k, k]) for k in sizes["clusters"]]
        results["exponent_clusters"] = exponent(results["with_clusters"], lambda r: r["clusters"][0])
        write(args, settings, results)
    if "items" in wanted:
        results["with_items"] = [point(1_000_000, [n, n // 4], [16, 16]) for n in sizes["items"]]
        results["exponent_items"] = exponent(results["with_items"], lambda r: r["shape"][0])
        write(args, settings, results)
    if "modes" in wanted:
        results["with_modes"] = [point(300_000, [2_000] * d, [4] * d) for d in sizes["modes"]]
        # Each mode more multiplies the cells by four: seconds against cells × modes.
        results["exponent_modes"] = exponent(results["with_modes"], lambda r: len(r["shape"]) * 4 ** len(r["shape"]))
    if "phases" in wanted:
        for m in (16, 64):
            key = f"phases_{m}"
            for n in tuples if m == 16 else [n for n in tuples if n <= 10**7]:
                kept = [row for row in results.get(key, []) if row["tuples"] != n]
                results[key] = sorted([*kept, phases(n, m)], key=by_tuples)
                write(args, settings, results)
            names = ("read", "beta", "sort", "start", "sweep", "predict", "certify")
            sizes_of = np.log([row["tuples"] for row in results[key]])
            results[f"exponents_{key}"] = {
                name: float(np.polyfit(sizes_of, np.log([row[name] for row in results[key]]), 1)[0]) for name in names
            }
            print(results[f"exponents_{key}"], flush=True)
    write(args, settings, results)
    if results.get("with_tuples"):
        plot(results, args.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
