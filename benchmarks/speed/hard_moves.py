"""Hard moves on one thread and on all: seconds of a single sweep, and of whole fits with one start and with several.

On large boards the items of a sweep look together, on all cores, and move in turn; several starts run side by side. The
results of all numbers of threads are compared bit by bit. ``groups`` compares where descents end if items look
together with where they end if every item is visited by itself, from the same starts.

``--only NAME`` takes one data set; what is in the result file of the others is kept.
"""

from __future__ import annotations

import copy
import sys
import time
from pathlib import Path

import numba
import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, load, previous, write
from gingham import CoClusteringClassifier, CoOccurrenceClustering, GraphClustering, InformationClustering
from gingham.data.graphs import from_graph
from gingham.engine import sweep as moves
from gingham.engine.sweep import batch_size, effort_of, make_board, sweep
from gingham.models.counts.starts import start_labels
from gingham.models.graph.fit import graph_problem, search_problem
from gingham.models.graph.partition import PartitionSearch

FIGURES = {
    "times faster on all threads, one sweep": "*/sweeps/*/times_faster",
    "whole fits, one start included": "*/fits/*/times_faster",
    "objective, looking together over one by one": "*/groups/*/ratio",
}
DOCUMENTS = ("webace", "reuters21578", "20newsgroups")
REPEATS, SWEEP_REPEATS = 3, 60


def documents(args, name):
    """Sweeps and fits of a matrix of counts: name, function; the function gives what must not depend on threads."""
    counts = sparse.csr_array(sparse.load_npz(data_file(args.data, f"docs_{name}.npz")).astype(np.float64))
    k = len(np.unique(np.load(data_file(args.data, f"docs_{name}_labels.npz"))["labels"]))

    def one_sweep(columns):
        rng = np.random.default_rng(args.seed)
        labels = start_labels("merged", counts, (k, columns), rng)
        entries, moving = counts.tocoo(), (0,) if columns is None else (0, 1)
        shape = (k, counts.shape[1] if columns is None else k)
        board = make_board("mass", entries.coords, labels, shape, moving, weights=entries.data)
        items = np.arange(counts.shape[0] if columns is None else sum(counts.shape))
        at_once = batch_size(effort_of(board, items))
        for _ in range(2):  # an average sweep, not the first
            sweep(board, rng.permutation(items), 1.0, 0.0, at_once=at_once)
        order = rng.permutation(items)

        def run():
            mine = copy.deepcopy(board)
            began = time.perf_counter()
            sweep(mine, order, 1.0, 0.0, at_once=at_once)
            return time.perf_counter() - began, (mine.labels, mine.fine, mine.coarse)

        return run

    def fit(n_clusters, starts="auto", seed=args.seed, start="merged"):
        def run():
            model = CoOccurrenceClustering(n_clusters, n_init=starts, start=start, random_state=seed).fit(counts)
            return model.row_labels_, model.column_labels_, model.trace_.totals

        return run

    sweeps = {f"{k} × {k} blocks": one_sweep(k), f"{k} row clusters": one_sweep(None)}
    fits = {
        f"{k} × {k} blocks, three starts (default)": fit((k, k)),
        f"{k} × {k} blocks, one start": fit((k, k), 1),
        f"{k} row clusters, four starts": fit((k, None), 4),
        f"{k} row clusters, one start (default)": fit((k, None)),
    }
    ends = {
        f"{k} × {k} blocks": lambda seed: fit((k, k), 1, seed)()[-1][-1],
        f"{k} row clusters, random start": lambda seed: fit((k, None), 1, seed, "random")()[-1][-1],
    }
    return sweeps, fits, ends if name == "webace" else {}


def ratings(args):
    """Fits of MovieLens-100K as a table of categories and as a grid with hard moves."""
    d = load(args.data, "ml100k.npz")
    table = np.full((d["rows"].max() + 1, d["cols"].max() + 1), np.nan)
    table[d["rows"], d["cols"]] = d["vals"]
    X, y = np.column_stack([d["rows"], d["cols"]]), d["vals"].astype(int)

    def information():
        model = InformationClustering(10, n_init=4, random_state=args.seed).fit(table)
        return model.labels_, model.trace_.totals

    def grid(starts=4, seed=args.seed):
        settings = {"loss": "log", "solver": "sweep", "start": "random", "n_init": starts, "random_state": seed}
        model = CoClusteringClassifier((20, 20), **settings).fit(X, y)
        return *model.posterior_.assign, model.trace_.totals

    fits = {"InformationClustering, 10 clusters, four starts": information, "20 × 20 grid, four random starts": grid}
    return {}, fits, {"20 × 20 grid, random start": lambda seed: grid(1, seed)[-1][-1]}


def enron(args):
    """Sweeps and fits of the graph of e-mails: Bernoulli blocks, and with degrees corrected."""
    data = load(args.data, "graph_email_enron.npz")
    edges, n = np.unique(np.sort(data["edges"], axis=1), axis=0), int(data["n"])
    edges = edges[edges[:, 0] != edges[:, 1]]
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    graph = sparse.csr_array(upper + upper.T)
    sample = from_graph(graph)
    problem = search_problem(graph_problem(sample, None, 1.0))

    def one_sweep(k, by_degree):
        hard = PartitionSearch.of(problem, degree_correction=by_degree).moves
        rng = np.random.default_rng(args.seed)
        labels = hard.improve(rng.integers(0, k, n), k, rng, 5)

        def run():
            began = time.perf_counter()
            found = hard.improve(labels, k, np.random.default_rng(args.seed), 1)
            return time.perf_counter() - began, (found,)

        return run

    def fit(**settings):
        def run():
            model = GraphClustering(random_state=args.seed, **settings).fit(graph)
            return model.labels_, model.trace_.totals

        return run

    sweeps = {
        "10 clusters": one_sweep(10, False),
        "80 clusters": one_sweep(80, False),
        "80 clusters, degrees corrected": one_sweep(80, True),
    }
    fits = {
        "10 clusters": fit(n_clusters=10),
        "degrees corrected, number found": fit(n_clusters="auto", degree_correction=True),
    }

    def end(seed):
        hard = PartitionSearch.of(problem).moves
        rng = np.random.default_rng(seed)
        labels = hard.improve(rng.integers(0, 10, n), 10, rng, 30)
        return PartitionSearch.of(problem).blocks(labels, 10).cost(PartitionSearch.of(problem).code)

    return sweeps, fits, {"10 clusters, random start, 30 sweeps, nats": end}


def on_threads(functions, threads, repeats, timed):
    """Shortest seconds of each number of threads, in rounds over all functions, and whether they give the same bits."""
    seconds = {name: {n: [] for n in threads} for name in functions}
    found = {name: {} for name in functions}
    for function in functions.values():
        function()  # compiles, and warms the caches
    for _ in range(repeats):
        for name, function in functions.items():
            for n in threads:
                numba.set_num_threads(n)
                began = time.perf_counter()
                result = function()
                took = time.perf_counter() - began
                took, found[name][n] = result if timed else (took, result)
                seconds[name][n].append(took)
    one, most = threads[0], threads[-1]
    results = {}
    for name in functions:
        shortest = {n: min(seconds[name][n]) for n in threads}
        results[name] = {
            "seconds_one_thread": shortest[one],
            "seconds_all_threads": shortest[most],
            "times_faster": shortest[one] / shortest[most],
            "same_bits": all(np.array_equal(a, b) for n in threads for a, b in zip(found[name][one], found[name][n])),
        }
        print(name, results[name], flush=True)
    return results


def by_groups(ends, n_seeds):
    """Objectives where descents end, with items one by one and in groups, whatever the size of the board."""
    results, small = {}, moves.SMALL
    for name, end in ends.items():
        found = {}
        for title, limit in (("one_by_one", 2**62), ("together", 0)):
            moves.SMALL = limit
            found[title] = np.array([end(seed) for seed in range(n_seeds)])
        moves.SMALL = small
        results[name] = {title: float(totals.mean()) for title, totals in found.items()}
        results[name] |= {
            "ratio": float(found["together"].mean() / found["one_by_one"].mean()),
            "standard_error_of_ratio": float(
                np.std(found["together"] - found["one_by_one"], ddof=1)
                / np.sqrt(n_seeds)
                / abs(found["one_by_one"].mean())
            ),
            "seeds": n_seeds,
        }
        print(name, results[name], flush=True)
    return results


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default="")

    args = arguments(__doc__ or "", "speed_hard_moves", options)
    sets = {name: lambda name=name: documents(args, name) for name in DOCUMENTS}
    sets |= {"ml100k": lambda: ratings(args), "email_enron": lambda: enron(args)}
    wanted = args.only.split(",") if args.only else list(sets)[: 1 if args.quick else None]
    threads = (1, numba.get_num_threads())
    results = previous(args) if args.only else {}
    for name in wanted:
        sweeps, fits, ends = sets[name]()
        results[name] = {
            "sweeps": on_threads(sweeps, threads, SWEEP_REPEATS, timed=True),
            "fits": on_threads(fits, threads, REPEATS, timed=False),
            "groups": by_groups(ends, 2 if args.quick else 20),
        }
        settings = {
            "threads": threads[-1],
            "seconds": f"on the clock, threads in turn, shortest of {SWEEP_REPEATS} sweeps and of {REPEATS} fits",
        }
        write(args, settings, results)


if __name__ == "__main__":
    main()
