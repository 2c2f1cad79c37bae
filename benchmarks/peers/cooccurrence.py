"""Words and documents: information kept by k × k blocks, and row clusters against sib (sIB in C++).

Every figure is a median over seeds. Labels are used for NMI and ARI only. CPU seconds are process times of one
fit on one thread, ours and sib's in turn in one process, after a warm-up that compiles our kernels (sib's C++ is
compiled at installation). sib runs with one start, which is what our one default fit is compared with, and with
its own default of ten. coclust's CoclustInfo no longer installs; its figures (ten starts) are those of its last
working release on the same files.

``--only NAME`` takes one data set, ``--variants a;b`` some of the variants; what is in the result file is kept
unless ``--renew`` asks for it again.
``--ari N`` asks what lies behind the adjusted Rand index: N seeds of each variant, with the information they keep.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numba
import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, importable, previous, write
from gingham import CoOccurrenceClustering

FIGURES = {
    "information kept by blocks": "*/blocks/information_kept",
    "CPU seconds over sib's": "*/ours against sib/cpu_ratio",
    "NMI less sib's": "*/ours against sib/nmi_difference",
}
FULL = ["", "--only webace --ari 20"]
SETS = {  # name: (information of CoclustInfo with ten starts, its CPU seconds, target)
    "cstr": (0.1677, 0.58, 0.171),
    "classic3": (0.0947, 1.9, 0.0947),
    "webace": (0.2698, 2.3, 0.274),
    "reuters21578": (None, None, 0.242),
    "20newsgroups": (0.1275, 28.0, 0.134),
}


def measure(fit, counts, truth):
    start = time.process_time()
    labels, facts = fit(counts)
    took = time.process_time() - start
    return {
        "nmi": normalized_mutual_info_score(truth, labels),
        "ari": adjusted_rand_score(truth, labels),
        "cpu_s": took,
        **facts,
    }


def medians(runs):
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]} | {"seeds": len(runs)}


def ours(k, columns, seed, **options):
    def fit(counts):
        model = CoOccurrenceClustering((k, columns), random_state=seed, **options).fit(counts)
        return model.row_labels_, {"information_kept": model.information_kept_}

    return fit


def sib(k, seed, uniform=True, starts=1):
    from sib import SIB

    def fit(counts):
        options = {"n_init": starts, "n_jobs": 1, "uniform_prior": uniform}
        return SIB(n_clusters=k, random_state=seed, **options).fit(counts).labels_, {}

    return fit


def variants(k):
    """Name: (how a seed's fit is made, whether it is run for every seed of a large set)."""
    return {
        "blocks": (lambda s: ours(k, k, s), True),
        "rows, ours": (lambda s: ours(k, None, s), True),
        "rows, sib": (lambda s: sib(k, s), True),
        "rows, sib on counts": (lambda s: sib(k, s, uniform=False), True),
        "rows, ours uniform": (lambda s: ours(k, None, s, weighting="uniform"), True),
        "rows, ours random start": (lambda s: ours(k, None, s, start="random"), True),
        "rows, ours uniform random start": (lambda s: ours(k, None, s, start="random", weighting="uniform"), True),
        "rows, sib with ten starts": (lambda s: sib(k, s, starts=10), False),
    }


def against(found, peer):
    mine, theirs = found["rows, ours"], found[peer]
    return {
        "cpu_ratio": mine["cpu_s"] / theirs["cpu_s"],
        "nmi_difference": mine["nmi"] - theirs["nmi"],
        "ari_difference": mine["ari"] - theirs["ari"],
    }


def row_information(counts, labels, k, uniform):
    """I(cluster; column) in nats, rows weighted by their counts or all alike."""
    if uniform:
        mass = np.asarray(counts.sum(axis=1)).ravel()
        counts = sparse.diags_array(1.0 / np.maximum(mass, 1e-300)) @ counts
    rows = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(k, len(labels)))
    p = np.asarray((rows @ counts).toarray())
    p /= p.sum()
    expected = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    return float((p[p > 0] * np.log(p[p > 0] / expected[p > 0])).sum())


def behind_the_index(counts, truth, k, names, seeds):
    """ARI over many seeds: median, range, and how it goes with the information kept."""
    results = {}
    for name in names:
        make = variants(k)[name][0]
        runs = []
        for seed in seeds:
            labels, _ = make(seed)(counts)
            runs.append(
                (
                    adjusted_rand_score(truth, labels),
                    normalized_mutual_info_score(truth, labels),
                    row_information(counts, labels, k, False),
                    row_information(counts, labels, k, True),
                )
            )
        ari, nmi, by_counts, by_rows = np.array(runs).T
        results[name] = {
            "seeds": len(runs),
            "ari_median": np.median(ari),
            "ari_least": ari.min(),
            "ari_most": ari.max(),
            "nmi_median": np.median(nmi),
            "information_rows_by_counts": np.median(by_counts),
            "information_rows_alike": np.median(by_rows),
            "correlation_of_ari_with_information_rows_alike": np.corrcoef(ari, by_rows)[0, 1],
        }
        print(name, results[name], flush=True)
    return results


def keep(args, name, found):
    """Add what was found on one data set to the result file as it is now: parts may run side by side."""
    results = previous(args)
    known = results.setdefault(name, {})
    for key, value in found.items():
        known[key] = known.get(key, {}) | value if "more seeds" in key else value
    settings = {
        "tol": 1e-3,
        "start": "merged",
        "starts": "3 for blocks, 1 for rows",
        "cpu": "process time, one thread; kernels compiled and cached before the clock starts; ours and sib in turn",
    }
    write(args, settings, results, ["sib-clustering"])


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default=",".join(SETS))
        parser.add_argument("--variants", default="")
        parser.add_argument("--ari", type=int, default=0)
        parser.add_argument("--renew", action="store_true", help="measure again what the result file has")

    args = arguments(__doc__ or "", "peers_cooccurrence", options)
    with_sib = importable("sib", "sib")
    numba.set_num_threads(1)
    results = previous(args)
    warm = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (60, 50)).astype(float))
    for columns in (2, None):  # compile before the clock runs
        for matrix in (warm, warm * 0.7):
            CoOccurrenceClustering((2, columns), random_state=0).fit(matrix)
    for name in ("cstr",) if args.quick else args.only.split(","):
        counts = sparse.csr_matrix(sparse.load_npz(data_file(args.data, f"docs_{name}.npz")).astype(np.float64))
        truth = np.load(data_file(args.data, f"docs_{name}_labels.npz"))["labels"]
        k = len(np.unique(truth))
        large = counts.nnz > 300_000
        seeds = range(args.seed, args.seed + (2 if args.quick else 5))
        peer, peer_cpu, target = SETS[name]
        found = results.setdefault(name, {"clusters": k})
        offered = variants(k)
        wanted = [v for v in args.variants.split(";") if v] or list(offered)
        if args.ari:
            names = [v for v in wanted if v.startswith("rows") and (with_sib or "sib" not in v)]
            more = behind_the_index(counts, truth, k, names, range(args.seed, args.seed + args.ari))
            keep(args, name, {"adjusted rand index over more seeds": more})
            continue
        todo = [v for v in wanted if (args.renew or v not in found) and (with_sib or "sib" not in v)]
        runs = {v: [] for v in todo}
        for i, seed in enumerate(seeds):  # seed by seed, so that ours and sib are timed side by side
            for v in todo:
                make, every = offered[v]
                if i == 0 or every or not large:
                    runs[v].append(measure(make(seed), counts, truth))
        found |= {v: medians(runs[v]) for v in todo}
        if "blocks" in todo:
            found["blocks"] |= {"target": target, "coclustinfo_ten_starts": peer, "coclustinfo_cpu_s": peer_cpu}
        for v, key in (
            ("rows, sib", "ours against sib"),
            ("rows, sib with ten starts", "ours against sib with ten starts"),
        ):
            if "rows, ours" in found and v in found:
                found[key] = against(found, v)
        print(name, json.dumps({v: found[v] for v in found if v in todo or "against" in v}, indent=1), flush=True)
        keep(args, name, found)


if __name__ == "__main__":
    main()
