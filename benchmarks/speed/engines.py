"""Every family of models where its sums over observations can run: in memory, from files, on a GPU, on a dask cluster.

    python benchmarks/speed/engines.py                       # memory, files and dask
    python benchmarks/speed/engines.py --engines gpu         # on a machine with a GPU: adds a column to the same file

The same planted observations for all. Each fit is a process of its own. "files" maps all columns, as a fit of a table
larger than memory does; on dask, grids, committees, layers and rankings are fitted by two workers, and the other
families read a dask frame partition by partition and run in one process: "ran" says where. The value is the final
objective, or the held-out loss of models without one: that of the fit in memory up to 1e-9, but on a GPU, which sums in
single precision, and for layers, whose draws differ there: these have a mean over five seeds and its standard error.
CPU seconds and peaks include the workers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, previous, write
from gingham.fitting import Projection
from gingham.models.graph.solvers import Damped
from gingham.models.layers import Sampler

FIGURES = {"largest relative difference from memory": "*/*/difference"}
ENGINES = ("memory", "files", "dask", "gpu")
SEEDS, HELD = 5, 20_000
STARS = range(1, 6)
SHORT = Sampler(n_chains=1, n_sweeps=16, burn_in=6, noise=0.9)


def models(backend: str, seed: int) -> dict:
    """Every family; ``backend`` is where its sums run in one process."""
    board = {"beta": 0.3, "alphabet": STARS, "max_iter": 20, "offsets": False, "random_state": seed}
    grid = gg.CoClusteringRegressor(8, solver=Projection(backend=backend), **board)
    where = {"backend": backend, "random_state": seed}
    return {
        "grid": grid,
        "committee": gg.Committee(grid, n_members=3, random_state=seed),
        "joint": gg.JointCoClustering({"user": 8, "item": 8}, beta=0.3, alphabet=STARS, max_iter=20, random_state=seed),
        "counts (soft)": gg.CoOccurrenceClustering((8, 8), beta=4.0, solver="concave", max_iter=20, random_state=seed),
        "counts (hard)": gg.CoOccurrenceClustering((8, 8), n_init=2, random_state=seed),
        "Bayesian": gg.BayesianCoClustering(8, approximation="shared", concentration=1.0, max_iter=20, **where),
        "graph (damped)": gg.GraphClustering(6, solver=Damped(backend=backend), random_state=seed),
        "layers with baskets": gg.LayeredCoClusteringRegressor(1, 4, baskets=1, alphabet=STARS, sampler=SHORT, **where),
        "ranking": gg.BasketRanker(n_factors=16, **where),
    }


def drawn(n: int, seed: int) -> dict[str, np.ndarray]:
    """Observations of a planted checkerboard, each pair once."""
    rng, shape = np.random.default_rng(seed), (max(200, n // 100), max(100, n // 400))
    board = np.random.default_rng(7).normal(3.2, 1.0, (8, 8))
    pair = rng.permutation(rng.choice(shape[0] * shape[1], n, replace=False))
    user, item = np.divmod(pair, shape[1])
    stars = np.clip(np.rint(board[user % 8, item % 8] + 0.9 * rng.standard_normal(n)), 1, 5).astype(int)
    return {"user": user, "item": item, "stars": stars}


def edges(n: int, seed: int) -> dict[str, np.ndarray]:
    """A planted graph of six groups, each pair once."""
    rng, nodes = np.random.default_rng(seed), max(200, n // 50)
    ends = rng.integers(0, nodes, (4 * n, 2))
    ends = ends[(ends[:, 0] < ends[:, 1]) & (rng.random(4 * n) < np.where(ends[:, 0] % 6 == ends[:, 1] % 6, 0.9, 0.1))]
    first, second = np.unique(ends, axis=0).T
    return {"first": first, "second": second}


def source_of(table: dict[str, np.ndarray], engine: str, folder: Path):
    """The table as the engine is given it."""
    if engine == "gpu":
        return np.column_stack(list(table.values()))
    import pandas as pd

    frame = pd.DataFrame(table)
    if engine == "memory":
        return frame
    if engine == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(frame, npartitions=4)
    for k, part in enumerate(np.array_split(np.arange(len(frame)), 4)):
        frame.iloc[part].to_parquet(folder / f"{k}.parquet")
    return str(folder / "*.parquet")


def fitted(name: str, model, engine: str, rows: dict[str, np.ndarray], folder: Path):
    """The model fitted to the rows, wherever they are."""
    plain, X, y = engine == "gpu", source_of(rows, engine, folder), "stars"
    if plain and name != "graph (damped)":
        X, y = X[:, :2], X[:, 2]
    if name == "joint":
        return model.fit({("user", "item"): (X, y)})
    if name.startswith("counts"):
        if plain:
            from scipy import sparse

            return model.fit(sparse.csr_array((y, tuple(X.T))))
        return model.fit(X, axes=["user", "item"], weight="stars")
    if name == "graph (damped)":
        return model.fit(X)
    if name == "ranking":
        return model.fit(X, sample_weight=y)
    return model.fit(X, y)


def value_of(name: str, model, seed: int, n: int) -> float:
    """The objective of a fit; the loss on held-out observations where there is none."""
    if hasattr(model, "objective_"):
        return float(getattr(model.objective_, "total", model.objective_))
    if name.startswith("counts"):
        return float(model.trace_.objectives[-1].total)
    held = drawn(n, 99)
    ids = np.column_stack([held["user"], held["item"]])[:HELD]
    if name == "ranking":
        return float(np.mean(model.scores(ids[:, 0], ids[:, 1])))
    return float(np.sqrt(np.mean((model.predict(ids) - held["stars"][:HELD]) ** 2)))


def one(name: str, engine: str, n: int, seed: int) -> None:
    """One fit in this process; prints what it took."""
    if engine == "files":
        from gingham.data import sources

        sources.ROW = 2**62  # no machine has as much memory for a row: everything is mapped
    few = {"graph (damped)": edges(n, 0), "counts (hard)": drawn(n // 4, 0)}
    rows = few.get(name) or drawn(n, 0)
    model, cluster, client = models("torch" if engine == "gpu" else "compiled", seed)[name], None, None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if engine == "dask":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            client = Client(cluster)
        before = cpu_seconds(client)
        fitted(name, model, engine, rows, Path(folder))
        row = {"value": value_of(name, model, seed, n), "cpu_s": cpu_seconds(client) - before}
        row["peak_mib"] = sum(peaks(client)) / 2**10
        row["ran"] = getattr(model, "engine_", "gpu" if engine == "gpu" else "cores")
        if client is not None and cluster is not None:
            client.close()
            cluster.close()
    print(json.dumps(row))


def used() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def cpu_seconds(client) -> float:
    return used()[0] + sum(cpu for cpu, _ in (client.run(used).values() if client else ()))


def peaks(client) -> list[float]:
    return [used()[1], *(peak for _, peak in (client.run(used).values() if client else ()))]


def main() -> None:
    def options(parser):
        parser.add_argument("--engines", default="memory,files,dask")
        parser.add_argument("--only", default=",".join(models("auto", 0)))
        parser.add_argument("--rows", type=int, default=200_000)
        parser.add_argument("--one", nargs=3, metavar=("FAMILY", "ENGINE", "SEED"))

    args = arguments(__doc__ or "", "speed_engines", options)
    n = 20_000 if args.quick else args.rows
    if args.one:
        family, engine, seed = args.one
        one(family, engine, args.rows, int(seed))
        return
    results = previous(args)
    for name in args.only.split(","):
        rows = results.setdefault(name, {})
        for engine in args.engines.split(","):
            seeds = range(SEEDS) if name == "layers with baskets" else range(1)
            runs = []
            for seed in seeds:
                command = [sys.executable, __file__, "--rows", str(n), "--one", name, engine, str(seed)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                runs.append(
                    json.loads(done.stdout.splitlines()[-1])
                    if done.returncode == 0
                    else {"refused": (done.stderr.strip().splitlines() or ["?"])[-1]}
                )
            rows[engine] = row = dict(runs[0])
            if len(runs) > 1 and all("value" in run for run in runs):
                values = [run["value"] for run in runs]
                row["value"], row["error"] = float(np.mean(values)), float(np.std(values, ddof=1) / SEEDS**0.5)
                row["cpu_s"] = float(np.mean([run["cpu_s"] for run in runs]))
            known = rows.get("memory", {}).get("value")
            if known is not None and "value" in row:
                row["difference"] = abs(row["value"] - known) / abs(known)
            print(name, engine, row, flush=True)
            write(args, {"rows": n, "seeds_of_layers": SEEDS}, results, ("polars", "dask", "torch"))


if __name__ == "__main__":
    main()
