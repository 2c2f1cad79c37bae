"""Seconds per fit of Bayesian co-clustering on MovieLens-100K, 10 × 20 clusters, after compilation."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, best_of, load, write
from gingham import BayesianCoClustering

FIGURES = {"seconds a fit": "*/seconds", "sweeps": "*/sweeps"}
FITS = {
    "shared, binarised": ("bernoulli", "shared", "means", 0.1),
    "per entry, binarised": ("bernoulli", "per_entry", "singular", 0.5),
    "shared, 1-5": ("categorical", "shared", "means", 0.1),
    "per entry, 1-5": ("categorical", "per_entry", "singular", 0.5),
    "per entry, Gaussian": ("gaussian", "per_entry", "singular", 0.5),
}


def main() -> None:
    args = arguments("Seconds per fit of Bayesian co-clustering.", "speed_bayesian")
    d = load(args.data, "ml100k.npz")
    X, y = np.column_stack([d["rows"], d["cols"]]), d["vals"].astype(int)
    results = {}
    for name, (family, approximation, start, alpha) in FITS.items():
        labels = (y > 3).astype(int) if family == "bernoulli" else y
        model = BayesianCoClustering((10, 20), family, approximation, alpha, start=start, random_state=args.seed)
        model.fit(X[:2000], labels[:2000])  # compiles
        cpu: list[float] = []

        def fit(m=model, z=labels, cpu=cpu) -> None:
            began = time.process_time()
            m.fit(X, z)
            cpu.append(time.process_time() - began)

        seconds = best_of(fit, 1 if args.quick else 3)
        results[name] = {
            "seconds": seconds,
            "cpu_seconds": min(cpu),
            "sweeps": model.n_iter_,
            "converged": model.converged_,
        }
        print(name, results[name], flush=True)
        write(args, {"threads": numba.get_num_threads(), "entries": len(y), "tol": 1e-5, "max_iter": 100}, results)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
