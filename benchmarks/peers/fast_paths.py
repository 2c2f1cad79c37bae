"""Time to reach a peer's quality, where the peer is fast: sib, SpectralCoclustering, and graspologic with k given.

The quality of a peer is its median over five seeds, and so are its CPU seconds, of each seed the least of fifteen
fits where both run in this process: they take milliseconds, which others on the machine disturb. Graphs are five
planted ones of a kind, for which single nodes of one graph would decide, fitted once each. Ours fit with one start,
of counts the plain one first (start="profiles"); where the median falls short of the peer's, with two, then four: the
CPU seconds are those of the first that reaches it. Quality is NMI with the known classes for row clusters, the
information that blocks keep for SpectralCoclustering, and the adjusted Rand index for graphs. graspologic runs in the
environment of --peers; sib where GINGHAM_SIB names one.
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
from gingham.engine.threads import one_thread

FIGURES = {
    "CPU seconds to the peer's quality over the peer's": "*/cpu_ratio",
    "quality less the peer's": "*/quality_difference",
}
SEEDS, N_GRAPHS, REPEATS = range(5), 5, 15
GRAPHS = {
    "assortative 1000": {"n": 1000, "k": 5, "inside": 12, "outside": 4},
    "assortative 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4},
    "ring 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4, "kind": "ring"},
}


def timed(fit, quality, seeds=SEEDS, repeats: int = REPEATS) -> dict:
    runs = []
    for seed in seeds:
        spent = []
        for _ in range(repeats):
            start = time.process_time()
            found = fit(seed)
            spent.append(time.process_time() - start)
        runs.append((min(spent), quality(found, seed)))
    cpu, worth = np.median(runs, axis=0)
    return {"cpu_s": cpu, "quality": worth}


PLAIN = ({"start": "profiles", "n_init": 1}, {"n_init": 1}, {"n_init": 2}, {"n_init": 4})
STARTS = ({"n_init": 1}, {"n_init": 2}, {"n_init": 4})


def reached(fit, quality, peer: dict, settings=STARTS, seeds=SEEDS, repeats: int = REPEATS) -> dict:
    """Ours with the first of some settings that reaches the peer's quality, beside the peer."""
    for own in settings:
        mine = {**own, **timed(lambda seed, own=own: fit(seed, **own), quality, seeds, repeats)}
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

            def blocks(seed, counts=counts, k=k, **own):
                return gg.CoOccurrenceClustering((k, k), random_state=seed, **own).fit(counts)

            def rows(seed, counts=counts, k=k, **own):
                model = gg.CoOccurrenceClustering((k, None), weighting="uniform", random_state=seed, **own)
                return model.fit(counts)

            def spectral(seed, counts=counts, k=k):
                return SpectralCoclustering(k, random_state=seed).fit(sparse.csr_matrix(counts))

            def kept(model, seed, counts=counts, k=k):
                return information(counts, model.row_labels_, model.column_labels_, k)

            def agreement(model, seed, truth=truth):
                labels = model.labels_ if hasattr(model, "labels_") else model.row_labels_
                return normalized_mutual_info_score(truth, labels)

            for own in PLAIN:  # compiled code is loaded
                blocks(0, **own)
                rows(0, **own)
            results[f"SpectralCoclustering, {name}"] = reached(blocks, kept, timed(spectral, kept), PLAIN)
            if with_sib:
                from sib import SIB

                def sib(seed, counts=counts, k=k):
                    return SIB(n_clusters=k, n_init=1, n_jobs=1, random_state=seed).fit(sparse.csr_matrix(counts))

                results[f"sib, {name}"] = reached(rows, agreement, timed(sib, agreement), PLAIN)
        for name, settings in GRAPHS.items() if args.peers else ():
            graphs = [planted_graph(seed=at, **settings) for at in range(N_GRAPHS)]
            k = settings["k"]

            def ours(run, graphs=graphs, k=k, **own):
                at, seed = run
                return gg.GraphClustering(k, random_state=seed, **own).fit(graphs[at].adjacency)

            def recovered(model, run, graphs=graphs):
                return adjusted_rand_score(graphs[run[0]].labels, model.labels_)

            ours((0, 0))
            runs = graph_peers(args.peers, ("graspologic",), graphs, k)[0]["graspologic"]
            peer = {"cpu_s": np.median([r["cpu_s"] for r in runs]), "quality": np.median([r["ari"] for r in runs])}
            every = [(at, seed) for at in range(N_GRAPHS) for seed in SEEDS]
            results[f"graspologic, {name}"] = reached(ours, recovered, peer, seeds=every, repeats=1)
    for title, found in results.items():
        print(title, common.plain(found), flush=True)
    common.write(args, {"graphs": GRAPHS, "seeds": len(SEEDS), "graphs of a kind": N_GRAPHS}, results)


if __name__ == "__main__":
    main()
