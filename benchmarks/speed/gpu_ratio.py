"""How many times faster one GPU is than this machine's cores on the same work.

Times sweeps of the compiled backend (all cores) on planted ratings of the sizes in ``speed_gpu.json`` and
``speed_gpu_members.json``, written by ``gpu_sweep.py`` and ``gpu_members.py`` on the machine with the GPU.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import RESULTS, arguments, write
from gingham.cells import Absolute
from gingham.core.problem import Problem
from gingham.data import Alphabet, Mode, Sample
from gingham.engine.threads import one_blas_thread
from gingham.fitting.projection import half_step, tiles_of
from gingham.fitting.starts import random

FIGURES = {"CPU seconds over GPU seconds": "*/cpu_over_gpu"}
ONLY_FULL = "the GPU's times in the results are of ten million tuples"


def planted(shape: tuple[int, int], n: int, rng: np.random.Generator) -> Sample:
    """Ratings 1-5 of a planted 8 × 8 checkerboard, items as popular as in gpu_sweep."""
    weights = [(rng.random(shape[0]) + 0.01) ** -0.6, np.arange(1, shape[1] + 1) ** -0.8]
    codes = [
        np.searchsorted(np.cumsum(w / w.sum()), rng.random(n)).clip(max=len(w) - 1).astype(np.int32) for w in weights
    ]
    parts = [rng.integers(0, 8, size) for size in shape]
    table = 1.2 * rng.standard_normal((8, 8))
    mean = table[tuple(part[code] for part, code in zip(parts, codes))]
    labels = np.clip(np.rint(2 + mean + rng.standard_normal(n)), 0, 4).astype(np.int32)
    alphabet = Alphabet.of([1, 2, 3, 4, 5], given=True)
    modes = tuple(Mode(name, np.arange(size)) for name, size in zip(("user", "item"), shape))
    return Sample(modes, tuple(codes), alphabet.numbers[labels], alphabet, labels)


def best_sweep(sweep, repeats: int) -> float:
    sweep()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        sweep()
        times.append(time.perf_counter() - began)
    return min(times)


def time_grid(sample: Sample, m: int, repeats: int, rng: np.random.Generator) -> float:
    problem = Problem.grid(sample, Absolute(sample.alphabet), 1.0)
    state = [random(problem, (m, m), rng)]

    tiles = [tiles_of(problem, state[0], mode, "float64") for mode in range(2)]  # as the solver does, like the next

    def sweep() -> None:
        for mode in range(2):
            state[0], _ = half_step(problem, state[0], mode, tiles=tiles[mode])

    with one_blas_thread():
        return best_sweep(sweep, repeats)


def main() -> None:
    args = arguments(__doc__ or "", "speed_gpu_ratio")
    rng = np.random.default_rng(args.seed)
    results = []
    found = json.loads((RESULTS / "speed_gpu_members.json").read_text())["results"]
    n = 10_000_000
    sample = planted((480_000, 17_770), n, rng)
    gpu_grids = [row for row in found["members"] if row["tuples"] == n]
    for row in gpu_grids:
        seconds = time_grid(sample, row["clusters"], 3, rng)
        results.append({"work": f"one sweep, {row['clusters']}×{row['clusters']} clusters", "cpu_s": seconds})
        results[-1] |= {"tuples": n, "gpu_s": row["one_sweep_ms"] / 1e3}
        results.append({"work": f"the same for {row['members']} members", "cpu_s": row["members"] * seconds})
        results[-1] |= {"tuples": n, "gpu_s": row["all_members_sweep_ms"] / 1e3}
    for row in results:
        row["cpu_over_gpu"] = row["cpu_s"] / row["gpu_s"]
        print(f"{row['work']}: CPU {row['cpu_s']:.3f} s, GPU {row['gpu_s']:.4f} s, ratio {row['cpu_over_gpu']:.0f}")
    write(args, {"shape": [480_000, 17_770], "tuples": n, "cores": numba.config.NUMBA_NUM_THREADS}, results)


if __name__ == "__main__":
    main()
