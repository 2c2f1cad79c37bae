"""Hard moves on one thread and on all: seconds on the clock of fits with several starts, which run side by side.

One start is there for comparison: its moves go one after the other, so only what precedes them uses a second core. The
results of all numbers of threads are compared bit by bit.

``--only NAME`` takes one data set; what is in the result file of the others is kept.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numba
import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, load, previous, write
from gingham import CoClusteringClassifier, CoOccurrenceClustering, InformationClustering

FIGURES = {"times faster on all threads, one start included": "*/*/times_faster"}
DOCUMENTS = ("classic3", "reuters21578", "20newsgroups")
REPEATS = 3


def documents(args, name):
    """Fits of a matrix of counts: name, function; the function gives what must not depend on threads."""
    counts = sparse.csr_matrix(sparse.load_npz(data_file(args.data, f"docs_{name}.npz")).astype(np.float64))
    k = len(np.unique(np.load(data_file(args.data, f"docs_{name}_labels.npz"))["labels"]))

    def fit(n_clusters, starts="auto"):
        def run():
            model = CoOccurrenceClustering(n_clusters, n_init=starts, random_state=args.seed).fit(counts)
            return model.row_labels_, model.column_labels_, model.trace_.totals

        return run

    fits = {
        f"{k} × {k} blocks, three starts (default)": fit((k, k)),
        f"{k} row clusters, four starts": fit((k, None), 4),
        f"{k} row clusters, one start (default)": fit((k, None)),
    }
    if name == "classic3" and not args.quick:
        fits["blocks of a size to be found (default), three starts"] = fit("auto")
    return fits


def ratings(args):
    """Fits of MovieLens-100K as a table of categories and as a grid with hard moves."""
    d = load(args.data, "ml100k.npz")
    table = np.full((d["rows"].max() + 1, d["cols"].max() + 1), np.nan)
    table[d["rows"], d["cols"]] = d["vals"]
    X, y = np.column_stack([d["rows"], d["cols"]]), d["vals"].astype(int)

    def information():
        model = InformationClustering(10, n_init=4, random_state=args.seed).fit(table)
        return model.labels_, model.trace_.totals

    def grid():
        settings = {"loss": "log", "solver": "sweep", "start": "random", "n_init": 4, "random_state": args.seed}
        model = CoClusteringClassifier((20, 20), **settings).fit(X, y)
        return *model.posterior_.assign, model.trace_.totals

    return {"InformationClustering, 10 clusters, four starts": information, "20 × 20 grid, four random starts": grid}


def measure(fits, threads):
    """Shortest seconds of each number of threads, in turn, and whether they give the same bits."""
    results = {}
    for name, fit in fits.items():
        seconds = {n: [] for n in threads}
        fit()  # compiles, and warms the caches
        found = {}
        for _ in range(REPEATS):
            for n in threads:
                numba.set_num_threads(n)
                began = time.perf_counter()
                found[n] = fit()
                seconds[n].append(time.perf_counter() - began)
        one, most = threads[0], threads[-1]
        results[name] = {
            "seconds_one_thread": min(seconds[one]),
            "seconds_all_threads": min(seconds[most]),
            "times_faster": min(seconds[one]) / min(seconds[most]),
            "same_bits": all(np.array_equal(a, b) for n in threads for a, b in zip(found[one], found[n])),
        }
        print(name, results[name], flush=True)
    return results


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default="")

    args = arguments(__doc__ or "", "speed_hard_starts", options)
    sets = {name: lambda name=name: documents(args, name) for name in DOCUMENTS} | {"ml100k": lambda: ratings(args)}
    wanted = args.only.split(",") if args.only else list(sets)[: 1 if args.quick else None]
    threads = (1, numba.get_num_threads())
    results = previous(args) if args.only else {}
    for name in wanted:
        results[name] = measure(sets[name](), threads)
        settings = {
            "threads": threads[-1],
            "seconds": f"wall time of a whole fit, shortest of {REPEATS}, one and all threads in turn",
        }
        write(args, settings, results)


if __name__ == "__main__":
    main()
