"""Words and documents: information kept by k × k blocks, and row clusters against sib (sIB in C++).

Every figure is a median over seeds. Labels are used for NMI and ARI only. CPU seconds are of one default
call each, measured in turn in one process. coclust's CoclustInfo no longer installs; its figures (ten
starts) are those of its last working release on the same files.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, write
from gingham import CoOccurrenceClustering

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


def sib(k, seed, uniform=True):
    from sib import SIB

    def fit(counts):
        model = SIB(n_clusters=k, random_state=seed, n_init=1, uniform_prior=uniform).fit(counts)
        return model.labels_, {}

    return fit


def main() -> None:
    args = arguments(__doc__ or "", "peers_cooccurrence", lambda p: p.add_argument("--only", default=",".join(SETS)))
    results = json.loads(args.out.read_text())["results"] if args.out.exists() else {}
    warm = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (60, 50)).astype(float))
    for columns in (2, None):  # compile before the clock runs
        for matrix in (warm, warm * 0.7):
            CoOccurrenceClustering((2, columns), random_state=0).fit(matrix)
    try:
        import sib as _  # noqa: F401

        with_sib = True
    except ImportError:
        with_sib = False
    for name in args.only.split(","):
        counts = sparse.csr_matrix(sparse.load_npz(data_file(args.data, f"docs_{name}.npz")).astype(np.float64))
        truth = np.load(data_file(args.data, f"docs_{name}_labels.npz"))["labels"]
        k = len(np.unique(truth))
        large = counts.nnz > 500_000 or k > 40
        seeds = range(args.seed, args.seed + (2 if args.quick else 5))
        extra = seeds[:2] if large else seeds
        peer, peer_cpu, target = SETS[name]
        found = results.setdefault(name, {"clusters": k})
        variants = {
            "blocks": (lambda s, k=k: ours(k, k, s), seeds),
            "rows, ours": (lambda s, k=k: ours(k, None, s), seeds),
            "rows, sib": (lambda s, k=k: sib(k, s), seeds),
            "rows, sib on counts": (lambda s, k=k: sib(k, s, False), extra),
            "rows, ours uniform": (lambda s, k=k: ours(k, None, s, weighting="uniform"), extra),
            "rows, ours random start": (lambda s, k=k: ours(k, None, s, start="random"), extra),
            "rows, ours uniform random start": (
                lambda s, k=k: ours(k, None, s, start="random", weighting="uniform"),
                extra,
            ),
        }
        for variant, (make, wanted) in variants.items():
            if variant in found or ("sib" in variant and not with_sib):
                continue
            found[variant] = medians([measure(make(s), counts, truth) for s in wanted])
            if variant == "blocks":
                found[variant] |= {
                    "target": target,
                    "coclustinfo_ten_starts": peer,
                    "coclustinfo_cpu_s": peer_cpu,
                }
            if variant == "rows, sib":
                mine = found["rows, ours"]
                found["ours against sib"] = {
                    "cpu_ratio": mine["cpu_s"] / found[variant]["cpu_s"],
                    "nmi_difference": mine["nmi"] - found[variant]["nmi"],
                    "ari_difference": mine["ari"] - found[variant]["ari"],
                }
            print(name, variant, found[variant], flush=True)
            write(args, {"seeds": 5, "tol": 1e-3, "start": "merged"}, results, ["sib-clustering"])


if __name__ == "__main__":
    main()
