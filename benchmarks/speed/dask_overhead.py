"""`fit` on a local dask cluster of one and two workers, one of them killed in mid-fit, against one process.

The same Parquet files, start and largest number of sweeps for all; a worker has one thread, and is compared with a
single process of as many threads as there are workers. Both have compiled code loaded (a fit of one sweep goes before).
All take turns, and of each the shortest of its runs counts, the one least disturbed by others on the machine. Stages:
what comes before the first sweep (summary, numbering, sorting) and the sweeps.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, previous, write
from gingham.core.problem import Problem
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import make_start

FIGURES = {
    "seconds over one process": "16/*/over_single",
    "largest difference of memberships": "*/*/largest_difference",
}
CLUSTERS = (16,)
CASES = ("workers_1", "workers_2", "worker_killed")
AXES, SWEEPS, PARTS, REPEATS = ["viewer", "movie"], 20, 8, 5
MODEL = {"alphabet": range(1, 6), "beta": 0.1, "solver": Projection(Constant())}


Run = tuple[dict, list[np.ndarray]]  # what was measured, and the memberships found


def planted(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    # As many tuples an item whatever the size: with fewer, the start would not be settled.
    viewer, movie = rng.integers(0, n // 250, n), rng.integers(0, n // 1250, n)
    stars = rng.integers(1, 6, (8, 8))[viewer % 8, movie % 8]
    stars = np.where(rng.random(n) < 0.3, rng.integers(1, 6, n), stars)
    return pd.DataFrame({"viewer": viewer, "movie": movie, "stars": stars})


def fastest(fits: dict[str, Callable[[], Run]], repeats: int) -> dict[str, Run]:
    """The shortest run of each, all in turn."""
    best: dict[str, Run] = {}
    for _ in range(repeats):
        for name, fit in fits.items():
            run = fit()
            print(name, run[0], flush=True)
            best[name] = min(best.get(name, run), run, key=lambda found: found[0]["seconds"])
    return best


def single(paths: list[Path], start, threads: int, sweeps: int) -> Run:
    """One process: read, number, sort, sweep."""
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    began, cpu = time.perf_counter(), time.process_time()
    frame = pd.concat([pd.read_parquet(path) for path in paths])
    columns = [frame[name].to_numpy() for name in AXES]
    whole = gg.data.Sample.of(columns, frame["stars"].to_numpy(), names=AXES, alphabet=start.cells[0].alphabet)
    problem = Problem.grid(whole, start.cells[0], MODEL["beta"])
    for axis in range(2):
        whole.rows(axis, problem.cells[0].features)
    ready = time.perf_counter()
    solver = Projection(Constant(), tol=0.0, max_iter=sweeps)
    solution = solver.solve(problem, make_start(start, problem, start.n_clusters, np.random.default_rng(0)))
    done = time.perf_counter()
    n_sweeps = solution.n_iter
    row = {"seconds": done - began, "before_s": ready - began, "sweep_s": (done - ready) / n_sweeps, "sweeps": n_sweeps}
    row["cpu_s"] = time.process_time() - cpu
    return row, list(solution.posterior.assign)


def distributed(paths: list[Path], start, workers: int, kill: bool, sweeps: int) -> Run:
    """The same on a local cluster; ``kill`` ends one worker process after a third of the sweeps."""
    from dask import delayed
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": None}
    times: list[float] = []
    with LocalCluster(n_workers=workers, **settings) as cluster, Client(cluster) as client:
        parts = [delayed(pd.read_parquet)(path) for path in paths]
        model = gg.CoClusteringRegressor(
            start.n_clusters[0], start=start, max_iter=1, random_state=0,
            **{**MODEL, "solver": Projection(Constant(), tol=0.0)},
        )  # fmt: skip
        model.fit(parts, "stars")

        def progress(_) -> None:
            times.append(time.perf_counter())
            if kill and len(times) == sweeps // 3:
                next(iter(cluster.workers.values())).process.process.kill()

        def cpu_seconds() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        began, cpu = time.perf_counter(), cpu_seconds()
        parts = [delayed(pd.read_parquet)(path) for path in paths]
        model.set_params(max_iter=sweeps).fit(parts, "stars", callback=progress)
        done = time.perf_counter()
        cpu = cpu_seconds() - cpu  # of client, scheduler and workers; a killed worker's are lost
    sweep = float(np.median(np.diff(times)))
    row = {"seconds": done - began, "before_s": times[0] - began - sweep, "sweep_s": sweep, "sweeps": len(times)}
    row |= {} if kill else {"cpu_s": cpu}
    return row, list(model.assign_)


def main() -> None:
    def options(parser):
        parser.add_argument("--tuples", type=float, default=1e7)
        parser.add_argument("--only", nargs="*", choices=CASES, help="the others stay as they are")

    args = arguments(__doc__ or "", "speed_dask", options)
    n = int(2e6 if args.quick else args.tuples)
    results = previous(args) if args.only else {}
    wanted = args.only or (CASES[::2] if args.quick else CASES)
    # A small sample is settled after seven sweeps: where each stops would be a matter of rounding.
    repeats, sweeps = (2, 6) if args.quick else (REPEATS, SWEEPS)
    with tempfile.TemporaryDirectory() as folder:
        frame = planted(n, args.seed)
        few = frame.sample(min(n, 100_000), random_state=args.seed)
        paths = [Path(folder) / f"part{k}.parquet" for k in range(PARTS)]
        for k, path in enumerate(paths):
            frame[frame["viewer"] % PARTS == k].to_parquet(path)
        del frame
        results["tuples"] = n
        for m in CLUSTERS:
            # Settled: from an unstable start, rounding alone would grow.
            pilot = gg.CoClusteringRegressor(m, max_iter=50, random_state=0, **{**MODEL, "beta": 1.0})
            start = pilot.fit(few[AXES], few["stars"]).posterior_
            rows = results.setdefault(str(m), {})
            single(paths, start, 1, 1)
            fits = {f"single_{threads}": partial(single, paths, start, threads, sweeps) for threads in (1, 2)}
            for name in wanted:
                killed = name == "worker_killed"
                fits[name] = partial(distributed, paths, start, 1 if name == "workers_1" else 2, killed, sweeps)
            best = fastest(fits, repeats)
            for name, (row, found) in best.items():
                rows[name] = row
                if name.startswith("single"):
                    continue
                alone, truth = best["single_1" if name == "workers_1" else "single_2"]
                row["over_single"] = row["seconds"] / alone["seconds"]
                if "cpu_s" in row:
                    row["cpu_over_single"] = row["cpu_s"] / alone["cpu_s"]
                row["sweep_over_single"] = row["sweep_s"] / alone["sweep_s"]
                row["largest_difference"] = max(float(np.abs(a - b).max()) for a, b in zip(found, truth))
                print(m, name, row, flush=True)
            settings = {"partitions": PARTS, "sweeps": sweeps, "repeats": repeats, "items": [n // 250, n // 1250]}
            write(args, settings, results, ("dask", "distributed", "pandas"))


if __name__ == "__main__":
    main()
