"""fit_distributed on a local dask cluster of one and two workers, against the single process, same start and sweeps."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, write
from gingham.problem import Problem
from gingham.solvers.projection import Projection
from gingham.solvers.schedule import Constant


def main() -> None:
    from dask import delayed
    from distributed import Client, LocalCluster

    args = arguments(__doc__ or "", "speed_dask", lambda p: p.add_argument("--tuples", type=float, default=1e7))
    n = int(2e5 if args.quick else args.tuples)
    rng = np.random.default_rng(args.seed)
    viewer, movie = rng.integers(0, 40_000, n), rng.integers(0, 8_000, n)
    stars = rng.integers(1, 6, (8, 8))[viewer % 8, movie % 8]
    stars = np.where(rng.random(n) < 0.3, rng.integers(1, 6, n), stars)
    frame = pd.DataFrame({"viewer": viewer, "movie": movie, "stars": stars})
    axes, model = (
        ["viewer", "movie"],
        gg.CoClusteringRegressor(16, alphabet=range(1, 6), beta=0.1, max_iter=20, tol=0.0, random_state=args.seed),
    )
    few = frame.sample(100_000, random_state=args.seed)
    start = gg.CoClusteringRegressor(16, alphabet=range(1, 6), beta=0.1, start="random", max_iter=1, random_state=0)
    posterior = start.fit(few[axes], few["stars"]).posterior_
    began = time.perf_counter()
    whole = gg.Sample.of([viewer, movie], stars, names=axes, alphabet=posterior.cells[0].alphabet)
    from gingham.starts import from_items

    begin = from_items(posterior, whole.modes)
    solution = Projection(Constant(), tol=0.0, max_iter=20).solve(Problem.grid(whole, posterior.cells[0], 0.1), begin)
    results: dict = {"tuples": n, "sweeps": solution.n_iter, "single_process_s": time.perf_counter() - began}
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for k in range(8):
            paths.append(Path(folder) / f"part{k}.parquet")
            frame[viewer % 8 == k].to_parquet(paths[-1])
        for workers in (1, 2):
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                client.run(lambda: gg.CoClusteringRegressor(2, alphabet=range(1, 6)).fit([[1, 1], [2, 2]], [1, 5]))
                began = time.perf_counter()
                parts = [delayed(pd.read_parquet)(path) for path in paths]
                fitted = gg.fit_distributed(model, parts, axes=axes, label="stars", client=client, start=posterior)
                seconds = time.perf_counter() - began
            gap = max(float(np.abs(a - b).max()) for a, b in zip(fitted.assign_, solution.posterior.assign))
            results[f"workers_{workers}"] = {
                "seconds": seconds,
                "over_single": seconds / results["single_process_s"],
                "largest_difference": gap,
            }
            print(results, flush=True)
    write(args, {"clusters": [16, 16], "partitions": 8}, results, ("dask", "distributed", "pandas"))


if __name__ == "__main__":
    main()
