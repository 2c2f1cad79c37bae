"""BasketRanker in memory, from files and on a dask cluster of two workers: the same lists, seconds and memory.

    python benchmarks/speed/ranking_engines.py                                   # all engines, one after the other
    python benchmarks/speed/ranking_engines.py --name large --rows 5e7 --engines files,dask --limit 4

Pairs are planted with heavy tails: 60 tastes, each with items of its own whose popularity falls as 1/rank; a user has
three tastes, and takes 15 % of what he takes from what everybody takes. Every engine reads the same Parquet files, in
a process of its own. NDCG@20 is of 2,000 users, a fifth of whose items is left out of the files; `difference` is the
largest difference of 200,000 scores from those of the first engine, over the largest score. CPU seconds and peaks
include the workers. With ``--limit`` the process of "files" is in a control group (Linux, root) that may take so many
GiB, page cache included: one that takes more is ended by the system; the workers of "dask" have that limit together,
from dask, and it pauses and ends those that take more.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, previous, write
from gingham import BasketRanker

FIGURES = {
    "NDCG@20": "*/*/ndcg",
    "largest difference from the first engine": "*/*/difference",
    "CPU seconds": "*/*/cpu_s",
    "peak GiB": "*/*/peak_gib",
}
TASTES, PART, JUDGED = 60, 2**21, 2000
GROUP = Path("/sys/fs/cgroup/memory")


def drawn(users: np.ndarray, n_items: int, n: int, seed: list[int]) -> np.ndarray:
    """About n different pairs of these users, a row each."""
    rng = np.random.default_rng(seed)
    order = np.argsort(np.random.default_rng(7).permutation(np.arange(n_items) % TASTES), kind="stable")
    starts = np.searchsorted(np.arange(n_items) * TASTES // n_items, np.arange(TASTES + 1))
    sizes = rng.lognormal(0.0, 0.9, len(users))
    who = np.repeat(np.arange(len(users)), np.maximum(rng.poisson(sizes / sizes.sum() * n * 1.3), 5))
    wanted = rng.integers(0, TASTES, (len(users), 3))[who, rng.integers(0, 3, len(who))]
    anybody = rng.random(len(who)) < 0.15
    wanted[anybody] = rng.integers(0, TASTES, anybody.sum())
    width = np.diff(starts)[wanted]
    rank = np.minimum((width.astype(float) ** rng.random(len(who))).astype(np.int64), width) - 1
    codes = np.unique(who * n_items + order[starts[wanted] + rank])
    who, item = np.divmod(np.sort(rng.permutation(codes)[:n]), n_items)
    return np.column_stack([users[who], item])


def files_of(folder: Path, n: int, n_users: int, n_items: int, seed: int) -> int:
    """The pairs as Parquet files of some users each, and what is left out of them; how many there are."""
    parts = max(2, -(-n // PART))
    judged = np.random.default_rng(seed).choice(n_users, JUDGED, replace=False)
    away, written = [], 0
    for k, users in enumerate(np.array_split(np.arange(n_users), parts)):
        pairs = drawn(users, n_items, n // parts, [seed, k])
        out = np.isin(pairs[:, 0], judged) & (np.random.default_rng([seed, k, 1]).random(len(pairs)) < 0.2)
        away.append(pairs[out])
        written += int((~out).sum())
        table = pl.DataFrame({"user": pairs[~out, 0].astype(np.int32), "item": pairs[~out, 1].astype(np.int32)})
        table.write_parquet(folder / f"{k:04d}.parquet")
    np.save(folder / "away.npy", np.concatenate(away))
    return written


def one(engine: str, folder: Path, n_factors: int, limit: float | None) -> None:
    """One fit in this process; prints what it took."""
    from gingham.data import sources

    model, cluster, client = BasketRanker(n_factors=n_factors, backend="compiled", random_state=0), None, None
    warm = BasketRanker(n_factors=4, backend="compiled", random_state=0)
    warm.fit(drawn(np.arange(60), 80, 1500, [0])).top([0], 3)  # compiled before the clock runs
    if engine == "files":
        sources.ROW = 2**62  # no machine has as much memory for a row: everything is mapped
    if engine == "dask":
        from distributed import Client, LocalCluster

        room = {} if limit is None else {"memory_limit": f"{limit / 2}GiB"}
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, **room)
        client = Client(cluster)
    wall, cpu, before = time.perf_counter(), cpu_seconds(client), peak(client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(str(folder) if engine != "dask" else sorted(map(str, folder.glob("*.parquet"))))
    row = {"ran": model.engine_, "wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds(client) - cpu}
    row |= {"peak_gib": sum(peak(client)) / 2**20, "before_the_fit_gib": sum(before) / 2**20}
    row["interactions"] = int(model.baskets_.taken.nnz)
    away = np.load(folder / "away.npy")
    row["ndcg"] = model.score(away)
    popular = model.items_[np.argsort(-model.baskets_.popularity, kind="stable")]
    row["ndcg_of_popularity"] = by_popularity(model, away, popular)
    rng = np.random.default_rng(1)
    users, items = rng.choice(model.users_, 200_000), rng.choice(model.items_, 200_000)
    np.save(folder / f"{engine}.npy", model.scores(users, items))
    row["settings"] = model.selection_["settings"]
    if client is not None and cluster is not None:
        client.close()
        cluster.close()
    print(json.dumps(row))


def by_popularity(model: BasketRanker, away: np.ndarray, popular: np.ndarray) -> float:
    """NDCG@20 of the most popular items that a user has not taken."""
    discount, gains = 1 / np.log2(np.arange(2, 22)), []
    for user in np.unique(away[:, 0]):
        wanted = away[away[:, 0] == user, 1]
        first = popular[: 20 + len(mine := model.basket_of(user))]
        listed = first[~np.isin(first, mine)][:20]
        gains.append(np.isin(listed, wanted) @ discount[: len(listed)] / discount[: min(20, len(wanted))].sum())
    return float(np.mean(gains))


def used() -> tuple[float, int]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def cpu_seconds(client) -> float:
    return used()[0] + sum(cpu for cpu, _ in (client.run(used).values() if client else ()))


def peak(client) -> list[int]:
    return [used()[1], *(most for _, most in (client.run(used).values() if client else ()))]


def measured(engine: str, folder: Path, n_factors: int, limit: float | None) -> dict:
    """A fit in a process of its own, in a control group where it has a limit."""
    command = [sys.executable, __file__, "--one", engine, "--folder", str(folder), "--factors", str(n_factors)]
    group = None
    if limit is not None:
        command += ["--limit", str(limit)]
        if engine == "files":
            group = GROUP / f"gingham-{uuid.uuid4().hex[:8]}"
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(int(limit * 2**30)))

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=enter, check=False)
        row = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"ended": done.returncode}
        if limit is not None:
            row["limit_gib"] = limit
        if group is not None:
            row["group_gib"] = int((group / "memory.max_usage_in_bytes").read_text()) / 2**30
        return row
    finally:
        if group is not None:
            group.rmdir()


def main() -> None:
    def options(parser):
        parser.add_argument("--name", default="small")
        parser.add_argument("--engines", default="memory,files,dask")
        parser.add_argument("--rows", type=float, default=5e5)
        parser.add_argument("--factors", type=int, default=32)
        parser.add_argument("--limit", type=float, help="GiB")
        parser.add_argument("--one")
        parser.add_argument("--folder", type=Path)

    args = arguments(__doc__ or "", "speed_ranking_engines", options)
    if args.one:
        one(args.one, args.folder, args.factors, args.limit)
        return
    n = int(5e4 if args.quick else args.rows)
    results = previous(args)
    with tempfile.TemporaryDirectory() as place:
        folder, shape = Path(place), (max(3000, n // 100), max(1000, min(n // 500, 10_000)))
        rows = {"interactions": files_of(folder, n, *shape, args.seed), "users": shape[0], "items": shape[1]}
        results[args.name] = rows
        first = None
        for engine in args.engines.split(","):
            rows[engine] = row = measured(engine, folder, args.factors, args.limit)
            if "ended" not in row:
                scores = np.load(folder / f"{engine}.npy").astype(np.float64)
                first = scores if first is None else first
                row["difference"] = float(np.abs(scores - first).max() / np.abs(first).max())
            print(engine, row, flush=True)
            write(args, {"factors": args.factors, "tastes": TASTES}, results, ("polars", "dask"))


if __name__ == "__main__":
    main()
