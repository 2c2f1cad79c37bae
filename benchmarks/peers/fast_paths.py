"""Time to reach a peer's quality, where the peer is fast: sib, SpectralCoclustering, and graspologic with k given.

The quality of a peer is its median over five seeds, and so are its CPU seconds. Ours fit with one start; where the
median falls short of the peer's, with two, then four: the CPU seconds are those of the first that reaches it. Quality
is NMI with the known classes for row clusters, the information that blocks keep for SpectralCoclustering, and the
adjusted Rand index for graphs. graspologic runs in the environment of --peers; sib where GINGHAM_SIB names one.
"""

# ruff: noqa: E402
from __future__ import annotations

import os
import sys
import time
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # one thread for all, peers too: CPU seconds are compared
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import numpy as np
from scipy import sparse
from sklearn.cluster import SpectralCoclustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from graphs_planted import peers as graph_peers

import common
import gingham as gg
from gingham.datasets import planted_graph
from gingham.kernels.threads import one_thread

FIGURES = {
    "CPU seconds to the peer's quality over the peer's": "*/cpu_ratio",
    "quality less the peer's": "*/quality_difference",
}
SEEDS = range(5)
GRAPHS = {
    "assortative 1000": {"n": 1000, "k": 5, "inside": 12, "outside": 4},
    "assortative 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4},
    "ring 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4, "kind": "ring"},
}


def timed(fit, quality) -> dict:
    runs = []
    for seed in SEEDS:
        start = time.process_time()
        found = fit(seed)
        runs.append((time.process_time() - start, quality(found)))
    cpu, worth = np.median(runs, axis=0)
    return {"cpu_s": cpu, "quality": worth}


def reached(fit, quality, peer: dict) -> dict:
    """Ours with as many starts as the peer's quality takes, beside the peer."""
    for starts in (1, 2, 4):
        mine = {"starts": starts, **timed(lambda seed, n=starts: fit(seed, n), quality)}
        if mine["quality"] >= peer["quality"] - 1e-6:
            break
    return {
        "ours": mine,
        "peer": peer,
        "cpu_ratio": mine["cpu_s"] / peer["cpu_s"],
        "quality_difference": mine["quality"] - peer["quality"],
    }


def information(counts, rows, columns, k: int) -> float:
    """I(R; C)/I(X; Y)."""
    joint = counts / counts.sum()
    row, column = np.asarray(joint.sum(axis=1)).ravel(), np.asarray(joint.sum(axis=0)).ravel()
    entries = joint.tocoo()
    whole = (entries.data * np.log(entries.data / (row[entries.row] * column[entries.col]))).sum()
    block = np.zeros((k, k))
    np.add.at(block, (rows[entries.row], columns[entries.col]), entries.data)
    outer = np.outer(block.sum(axis=1), block.sum(axis=0))
    seen = block > 0
    return float((block[seen] * np.log(block[seen] / outer[seen])).sum() / whole)


def documents(args, name: str) -> tuple[sparse.csr_array, np.ndarray]:
    counts = sparse.csr_array(sparse.load_npz(common.data_file(args.data, f"docs_{name}.npz"))).astype(float)
    truth = common.load(args.data, f"docs_{name}_labels.npz")["labels"]
    return counts, truth


def main() -> None:
    args = common.arguments(__doc__, "peers_fast_paths", lambda parser: common.peer_option(parser, "graph", "--peers"))
    with_sib = common.importable("sib", "sib")
    results: dict = {}
    with one_thread():
        for name in ("cstr",) if args.quick else ("cstr", "classic3"):
            counts, truth = documents(args, name)
            k = len(np.unique(truth))

            def blocks(seed, starts, counts=counts, k=k):
                return gg.CoOccurrenceClustering((k, k), n_init=starts, random_state=seed).fit(counts)

            def rows(seed, starts, counts=counts, k=k):
                return gg.CoOccurrenceClustering((k, None), n_init=starts, weighting="uniform", random_state=seed).fit(
                    counts
                )

            def spectral(seed, counts=counts, k=k):
                return SpectralCoclustering(k, random_state=seed).fit(sparse.csr_matrix(counts))

            def kept(model, counts=counts, k=k):
                return information(counts, model.row_labels_, model.column_labels_, k)

            def agreement(model, truth=truth):
                labels = model.labels_ if hasattr(model, "labels_") else model.row_labels_
                return normalized_mutual_info_score(truth, labels)

            blocks(0, 1)
            rows(0, 1)  # compiled code is loaded
            results[f"SpectralCoclustering, {name}"] = reached(blocks, kept, timed(spectral, kept))
            if with_sib:
                from sib import SIB

                def sib(seed, counts=counts, k=k):
                    return SIB(n_clusters=k, n_init=1, n_jobs=1, random_state=seed).fit(sparse.csr_matrix(counts))

                results[f"sib, {name}"] = reached(rows, agreement, timed(sib, agreement))
        for name, settings in GRAPHS.items() if args.peers else ():
            graph = planted_graph(seed=0, **settings)
            k = settings["k"]

            def ours(seed, starts, graph=graph, k=k):
                return gg.GraphClustering(k, n_init=starts, random_state=seed).fit(graph.adjacency)

            def recovered(model, graph=graph):
                return adjusted_rand_score(graph.labels, model.labels_)

            ours(0, 1)
            runs = graph_peers(args.peers, ("graspologic",), [graph], k)[0]["graspologic"]
            peer = {"cpu_s": np.median([r["cpu_s"] for r in runs]), "quality": np.median([r["ari"] for r in runs])}
            results[f"graspologic, {name}"] = reached(ours, recovered, peer)
    for title, found in results.items():
        print(title, common.plain(found), flush=True)
    common.write(args, {"graphs": GRAPHS, "seeds": len(SEEDS)}, results)


if __name__ == "__main__":
    main()
