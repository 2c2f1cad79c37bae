"""What `backend="auto"` expects a fit to cost, against what fits cost on one core and on a GPU.

The GPU's times are those in ``speed_gpu_fit.json``, which ``gpu_fit.py`` writes on a machine that has one. CPU seconds
are those of all threads; the sweep least disturbed by others on the machine counts.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import RESULTS, arguments, write
from gingham.engine.place import Work

FIGURES = {"expected over measured, CPU": "cores/*/ratio", "GPU": "device/*/ratio"}
SIZES = [  # rows, items, clusters
    (100_000, (943, 1_682), 16),
    (1_000_000, (6_040, 3_706), 16),
    (1_000_000, (6_040, 3_706), 64),
    (1_000_000, (100_000, 10_000), 32),
]


def on_cores(n: int, shape: tuple[int, int], m: int, rng: np.random.Generator, n_sweeps: int = 5) -> dict:
    X = np.column_stack([rng.integers(0, items, n) for items in shape])
    table = rng.integers(1, 6, (8, 8))
    y = np.where(rng.random(n) < 0.3, rng.integers(1, 6, n), table[tuple(X.T % 8)])
    marks = [time.process_time()]
    model = gg.CoClusteringRegressor(
        m, alphabet=range(1, 6), max_iter=n_sweeps, solver=gg.fitting.Projection(backend="compiled"), random_state=0
    )
    model.fit(X, y, callback=lambda _: marks.append(time.process_time()))
    sweep = min(np.diff(marks[1:]))
    measured = marks[1] - marks[0] + 49 * sweep  # the first sweep is part of what comes before
    return {"cpu_s": measured, "expected_s": Work(n, shape, (m, m), 5, 50).core_seconds(1)}


def main() -> None:
    args = arguments(__doc__ or "", "speed_place")
    rng = np.random.default_rng(args.seed)
    on_cores(1_000, (30, 20), 3, rng, 2)  # compiled code is loaded
    results: dict = {"cores": [], "device": []}
    for n, shape, m in SIZES[:2] if args.quick else SIZES:
        row = {"tuples": n, "items": shape, "clusters": m, **on_cores(n, shape, m, rng)}
        results["cores"].append({**row, "ratio": row["expected_s"] / row["cpu_s"]})
        print(results["cores"][-1], flush=True)
    there = RESULTS / "speed_gpu_fit.json"
    for row in json.loads(there.read_text())["results"]["fits"] if there.exists() else []:
        shape = (2_400_000, 88_850) if row["tuples"] >= 10**9 else (480_000, 17_770)
        expected = Work(row["tuples"], shape, (64, 64), 5, row["n_iter"]).device_seconds(awake=True)
        results["device"].append({"tuples": row["tuples"], "fit_s": min(row["fit_s"]), "expected_s": expected})
        results["device"][-1]["ratio"] = expected / min(row["fit_s"])
        print(results["device"][-1], flush=True)
    write(args, {"sweeps": 50, "labels": 5}, results)


if __name__ == "__main__":
    main()
