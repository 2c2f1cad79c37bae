"""Fits of 50 million synthetic observations from Parquet files under a memory limit, beside 5 million in memory.

    python benchmarks/speed/larger_than_memory.py --only "grid,layers with baskets,ranking" --limit 4
    python benchmarks/speed/larger_than_memory.py --only "layers with baskets" --engines memory,files,dask \\
        --rows 1e7 --limit 1.5 --out benchmarks/results/speed_workers.json

Each fit is a process of its own in a control group (Linux, root) that may take so many GiB, page cache included: one
that takes more is ended by the system. Popularity of users and items falls as a power of the rank, stars come from a
planted checkerboard with noise, and pairs of a ranking are those with four or five stars. The error is measured on
100,000 further observations: root mean square error of stars; of a ranking, the share of held-out pairs that score
above a pair drawn at random with the same user. Peaks are of memory that the process holds for itself (anonymous), and
of the group with the page cache, which the system takes back where it is needed. "dask" is the same fit by two
workers of one thread, each of which may take the limit; its CPU seconds and peaks include the workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, previous, write
from gingham.models.layers import Sampler

FIGURES = {
    "seconds, 50 million under the limit": "*/files/seconds",
    "error, 50 million under the limit": "*/files/error",
    "error, 5 million in memory": "*/memory/error",
    "largest memory of its own, GiB": "*/files/own_gib",
}
PART, HELD = 2**21, 100_000
CLUSTERS, GROUP = 16, Path("/sys/fs/cgroup/memory")
SAMPLER = Sampler(n_chains=1, n_sweeps=12, burn_in=6, noise=0.9)
MODELS = {
    "grid": lambda: gg.CoClusteringRegressor(CLUSTERS, beta=0.3, alphabet=range(1, 6), max_iter=20, random_state=0),
    "layers with baskets": lambda: gg.LayeredCoClusteringRegressor(
        1, 4, baskets=1, alphabet=range(1, 6), sampler=SAMPLER, random_state=0
    ),
    "ranking": lambda: gg.BasketRanker(n_factors=32, random_state=0),
    "Bayesian": lambda: gg.BayesianCoClustering(
        8, approximation="shared", concentration=1.0, max_iter=10, random_state=0
    ),
}


def drawn(n: int, shape: tuple[int, int], rng: np.random.Generator) -> pl.DataFrame:
    """Observations of a planted checkerboard."""
    user, item = (np.minimum((m * rng.random(n) ** 2.0).astype(np.int32), m - 1) for m in shape)
    board = np.random.default_rng(7).normal(3.2, 1.0, (8, 8))
    stars = np.clip(np.rint(board[user % 8, item % 8] + 0.9 * rng.standard_normal(n)), 1, 5).astype(np.int8)
    return pl.DataFrame({"user": user, "item": item, "stars": stars})


def files_of(folder: Path, n: int, shape: tuple[int, int], seed: int) -> None:
    """The observations as Parquet files, and some more to measure errors."""
    for k, start in enumerate(range(0, n, PART)):
        drawn(min(PART, n - start), shape, np.random.default_rng([seed, k])).write_parquet(folder / f"{k:04d}.parquet")
    drawn(HELD, shape, np.random.default_rng([seed, 10**6])).write_parquet(folder / "held.pq")


def fit_on_workers(model, folder: Path, limit_gib: float) -> float:
    """A fit by two workers; returns their CPU seconds."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(memory_limit=f"{limit_gib}GiB", **settings) as cluster, Client(cluster) as client:
        before = sum(client.run(time.process_time).values())
        model.fit(sorted(str(path) for path in folder.glob("*.parquet")), "stars")
        return sum(client.run(time.process_time).values()) - before


def fit(name: str, folder: Path, limit_gib: float, on_dask: bool) -> None:
    """One fit in this process; prints what it took."""
    model, table = MODELS[name](), pl.scan_parquet(folder / "*.parquet")
    held = pl.read_parquet(folder / "held.pq")
    began, cpu, of_workers = time.perf_counter(), time.process_time(), 0.0
    if name == "ranking":
        model.fit(table.filter(pl.col("stars") >= 4).select("user", "item"))
        held = held.filter(pl.col("stars") >= 4)
    elif on_dask:
        of_workers = fit_on_workers(model, folder, limit_gib)
    else:
        model.fit(table, "stars")
    row = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu + of_workers}
    row["engine"] = getattr(model, "engine_", "cores")
    if name == "ranking":
        held = held.filter(pl.col("user").is_in(model.users_), pl.col("item").is_in(model.items_))[:20_000]
        other = np.random.default_rng(1).permutation(held["item"].to_numpy())
        scores = [model.scores(held["user"].to_numpy(), items) for items in (held["item"].to_numpy(), other)]
        row["error"] = float(np.mean(scores[0] <= scores[1]))
    else:
        ids = held[["user", "item"]]
        row["error"] = float(np.sqrt(np.mean((model.predict(ids) - held["stars"].to_numpy()) ** 2)))
    print(json.dumps(row))


def own_bytes(pid: int) -> int:
    """Anonymous memory of a process and of those that it has started."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    children = [child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    mine = sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
    return mine + sum(own_bytes(int(child)) for child in children)


def measured(name: str, folder: Path, limit_gib: float | None, on_dask: bool = False) -> dict:
    """A fit in a process of its own, in a control group of so much memory, with the peaks of what it held."""
    group = GROUP / f"gingham-{uuid.uuid4().hex[:8]}"
    if limit_gib is not None:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(int(limit_gib * 2**30)))
    try:

        def enter() -> None:
            if limit_gib is not None:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        command = [sys.executable, __file__, "--fit", name, "--folder", str(folder)]
        command += ["--on-dask"] if on_dask else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        own = [0]

        def watch() -> None:
            while process.poll() is None:
                with contextlib.suppress(OSError):  # a process has just ended
                    own[0] = max(own[0], own_bytes(process.pid))
                time.sleep(0.05)

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate()
        watcher.join()
        row = json.loads(out) if process.returncode == 0 else {"ended": process.returncode}
        row["own_gib"] = own[0] / 2**30
        if limit_gib is not None:
            row["limit_gib"] = limit_gib
            row["group_gib"] = int((group / "memory.max_usage_in_bytes").read_text()) / 2**30
        return row
    finally:
        if limit_gib is not None:
            group.rmdir()


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default="grid,layers with baskets,ranking,Bayesian")
        parser.add_argument("--limit", type=float, default=4.0, help="GiB")
        parser.add_argument("--rows", type=float, default=5e7)
        parser.add_argument("--engines", default="memory,files")
        parser.add_argument("--on-dask", action="store_true")
        parser.add_argument("--fit")
        parser.add_argument("--folder", type=Path)

    args = arguments(__doc__ or "", "speed_larger_than_memory", options)
    if args.fit:
        fit(args.fit, args.folder, args.limit, args.on_dask)
        return
    n = int(2e6 if args.quick else args.rows)
    results = previous(args)
    with tempfile.TemporaryDirectory() as large, tempfile.TemporaryDirectory() as small:
        shape = (n // 100, max(2_000, n // 5_000))
        files_of(Path(large), n, shape, args.seed)
        files_of(Path(small), n // 10, (n // 1000, shape[1]), args.seed)
        for name in args.only.split(","):
            row = results.setdefault(name, {})
            if "memory" in args.engines:
                row["memory"] = {"rows": n // 10, **measured(name, Path(small), None)}
            if "files" in args.engines:
                row["files"] = {"rows": n, **measured(name, Path(large), args.limit)}
            if "dask" in args.engines:
                row["dask"] = {"rows": n, "worker_gib": args.limit, **measured(name, Path(large), None, True)}
            print(name, row, flush=True)
            write(args, {"rows": n, "limit_gib": args.limit, "items": shape}, results, ("polars",))


if __name__ == "__main__":
    main()
