"""What a sweep of a grid costs, as predicted and as measured: in memory, from files, on 1, 2 and 4 local workers.

CPU seconds of a sweep are those of a long fit less those of a short one, over the sweeps between; they include the
client, the scheduler and the workers. The prediction has the rates of `gingham.engine.place` times one factor for this
machine, from the sweep in memory, and the CPU seconds of a task on a cluster, from the run with one worker: those two
rows are fitted, the others are predicted. A sweep is one task for each partition, one that adds up their shares and
makes the next state, and one that tells the objective; from more than eight partitions on, shares are added up as a
tree. Four workers that share two cores cost more than that. The last rows are predictions alone, of the time that
passes: 10¹⁰ observations on 64 machines. ``--predict`` predicts anew from what was measured before.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, previous, write
from gingham.data import sources
from gingham.engine.partitions import MOST_ADDED
from gingham.engine.place import GATHER, MEMBERSHIP, PRODUCT, Work
from gingham.fitting import Down, Projection

FIGURES = {"predicted over measured": "*/predicted over measured"}
SHORT, LONG, CLUSTERS, LABELS = 5, 45, 16, 5
MACHINES, CORES, ROWS = 64, 16, 10**10
SHAPE = (10**8, 10**6)  # users and items of the largest prediction


def one_core(work: Work) -> float:
    """Predicted CPU seconds of a sweep."""
    return GATHER * work.gathered + PRODUCT * work.multiplied + MEMBERSHIP * work.memberships


def messages(work: Work, n_parts: int) -> float:
    """Bytes between workers in a sweep: memberships of the second mode to each part, its projected sums back."""
    return 8.0 * n_parts * work.n_items[1] * (work.n_clusters[1] + work.n_features * work.n_clusters[0])


def tasks(n_parts: int) -> int:
    """Tasks of a sweep on a cluster."""
    added, level = 0, n_parts
    while level > MOST_ADDED:
        level = -(-level // MOST_ADDED)
        added += level
    return n_parts + added + 2


def tasks_in_a_row(n_parts: int) -> int:
    """Those that wait for one another."""
    levels, level = 0, n_parts
    while level > MOST_ADDED:
        level, levels = -(-level // MOST_ADDED), levels + 1
    return 1 + levels + 2


def cpu_seconds(client) -> float:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    return used() + sum(client.run(used).values() if client else ())


def sweep_cost(source, client=None) -> float:
    """Measured CPU seconds of a sweep."""
    taken, done = [], []
    for n_sweeps in (SHORT, SHORT, LONG):  # the first compiles and reads
        model = gg.CoClusteringRegressor(
            CLUSTERS, beta=0.1, alphabet=range(1, LABELS + 1), max_iter=n_sweeps, offsets=False, start="random",
            solver=Projection(Down(1.0, n_steps=LONG), tol=0.0), random_state=0,  # which does not stop earlier
        )  # fmt: skip
        before = cpu_seconds(client)
        model.fit(source, "stars")
        taken.append(cpu_seconds(client) - before)
        done.append(model.n_iter_)
    return (taken[2] - taken[1]) / (done[2] - done[1])


def predict(results: dict[str, dict], work: Work) -> tuple[float, float]:
    """Add predictions to what was measured; returns the factor of the rates here, and the CPU seconds of a task."""
    rate = results["memory"]["measured_s"] / one_core(work)
    task = max(0.0, results["1 workers"]["measured_s"] - rate * one_core(work)) / tasks(1)
    for name, row in results.items():
        n_parts = row["parts"] if "workers" in name else 0
        row["predicted_s"] = rate * one_core(work) + (task * tasks(n_parts) if n_parts else 0.0)
        row["predicted over measured"] = row["predicted_s"] / row["measured_s"]
        row["bytes_per_sweep"] = messages(work, n_parts)
        print(name, row, flush=True)
    for clusters in (16, 64):
        large = Work(ROWS, SHAPE, (clusters, clusters), LABELS, 1)
        results[f"{ROWS:.0e} observations, {clusters} clusters"] = {
            "machines": MACHINES,
            "cores": CORES,
            "predicted_sweep_s": rate * one_core(large) / (MACHINES * CORES) + task * tasks_in_a_row(MACHINES),
            "gib_per_machine": (32.0 * ROWS / MACHINES + 8.0 * SHAPE[1] * clusters * (1 + LABELS)) / 2**30,
            "gib_of_messages_per_machine": messages(large, 1) / 2**30,
        }
    return rate, task


def main() -> None:
    def options(parser):
        parser.add_argument("--rows", type=int, default=10**6)
        parser.add_argument("--predict", action="store_true", help="only predict anew, from what was measured before")

    args = arguments(__doc__ or "", "speed_plan", options)
    n = 200_000 if args.quick else args.rows
    rng = np.random.default_rng(args.seed)
    shape = (n // 250, n // 1250)
    ids = {"user": rng.integers(0, shape[0], n), "item": rng.integers(0, shape[1], n)}
    stars = rng.integers(1, 6, (8, 8))[ids["user"] % 8, ids["item"] % 8]
    table = pl.DataFrame({**ids, "stars": np.where(rng.random(n) < 0.7, rng.integers(1, 6, n), stars)})
    work = Work(n, shape, (CLUSTERS, CLUSTERS), LABELS, 1)
    results = {name: row for name, row in previous(args).items() if "measured_s" in row} if args.predict else {}
    results = results or measured(table)
    rate, task = predict(results, work)
    settings = {
        "rows": n,
        "shape": shape,
        "clusters": CLUSTERS,
        "sweeps": (SHORT, LONG),
        "over_rates_of_place": rate,
        "task_cpu_s": task,
    }
    write(args, settings, results, ("polars", "dask", "distributed"))


def measured(table: pl.DataFrame) -> dict[str, dict[str, object]]:
    """Sweeps of a fit of the table in memory, from files and on local workers."""
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = [f"{folder}/{k}.parquet" for k in range(4)]
        for k, path in enumerate(paths):
            table.filter(pl.col("user") % 4 == k).write_parquet(path)
        results["memory"] = {"parts": 1, "measured_s": sweep_cost(table)}
        usual, sources.ROW = sources.ROW, 2**62
        results["files"] = {"parts": 1, "measured_s": sweep_cost(paths)}
        sources.ROW = usual
        from distributed import Client, LocalCluster

        for workers in (1, 2, 4):
            settings = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            with LocalCluster(**settings) as cluster, Client(cluster) as client:
                results[f"{workers} workers"] = {"parts": workers, "measured_s": sweep_cost(paths, client)}
    return results


if __name__ == "__main__":
    main()
