"""Planted block models: GraphClustering with k given and found, Leiden and graspologic, on the same graphs.

Peers run in their own environment: --peers (or GINGHAM_PEERS) names its Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
import gingham as gg
from gingham.datasets import planted_graph

FIGURES = {
    "least adjusted Rand index (k found)": "*/gingham, k found/ari_min",
    "(Leiden)": "*/leidenalg/ari_min",
    "(graspologic)": "*/graspologic/ari_min",
    "CPU seconds (k found)": "*/gingham, k found/cpu_median_s",
    "of Leiden": "*/leidenalg/cpu_median_s",
}
SMALL = ("degrees 1000",)
KINDS = {
    "assortative 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4, "kind": "assortative"},
    "ring 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4, "kind": "ring"},
    "assortative 1000": {"n": 1000, "k": 5, "inside": 12, "outside": 4, "kind": "assortative"},
    "degrees 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4, "kind": "assortative", "exponent": 2.5},
    "degrees ring 5000": {"n": 5000, "k": 10, "inside": 16, "outside": 4, "kind": "ring", "exponent": 2.5},
    "degrees 1000": {"n": 1000, "k": 5, "inside": 16, "outside": 4, "kind": "assortative", "exponent": 2.5},
}
SEEDS = (0, 1)


def peers(python: str, methods, graphs: list, k: int, keep_labels: bool = False) -> tuple[dict, dict]:
    """Each method on each graph and seed: {method: [run, …]}, and the methods' versions."""
    runs: dict[str, list] = {method: [] for method in methods}
    versions = {}
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for at, graph in enumerate(graphs):
            upper = graph.adjacency.tocoo()
            keep = upper.row < upper.col
            edges = np.column_stack([upper.row[keep], upper.col[keep]]).astype(np.int64)
            for seed in SEEDS:
                names.append((f"{at:03d}-{seed}", graph))
                np.savez(Path(folder) / f"{names[-1][0]}.graph.npz", edges=edges, n=len(graph.labels), k=k, seed=seed)
        for method in methods:
            script = str(Path(__file__).with_name("graph_peers.py"))
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            answer = subprocess.run(
                [python, script, method, folder], capture_output=True, text=True, check=True, env=environment
            )
            versions[method] = json.loads(answer.stdout.strip().splitlines()[-1])["version"]
            for name, graph in names:
                with np.load(Path(folder) / f"{name}.{method}.npz") as found:
                    run = {"cpu_s": float(found["cpu_s"]), "labels": found["labels"]}
                runs[method].append(run if keep_labels else scored(run, graph))
    return runs, versions


def measured(graph, k: int, seed: int, **options) -> dict:
    start = time.process_time()
    model = gg.GraphClustering(random_state=seed, **options).fit(graph.adjacency)
    took = time.process_time() - start
    return {"cpu_s": took, "labels": model.labels_, "found": model.n_clusters_}


def summary(runs: list[dict], k: int) -> dict:
    ari = np.array([run["ari"] for run in runs])
    cpu = np.array([run["cpu_s"] for run in runs])
    return {
        "runs": len(runs),
        "ari_min": ari.min(),
        "ari_median": np.median(ari),
        "runs_below_.99": int((ari < 0.99).sum()),
        "k_right": int(sum(run["found"] == k for run in runs)),
        "k_range": [min(run["found"] for run in runs), max(run["found"] for run in runs)],
        "cpu_median_s": np.median(cpu),
        "cpu_max_s": cpu.max(),
    }


def main() -> None:
    def options(parser):
        common.peer_option(parser, "graph", "--peers")
        parser.add_argument("--graphs", type=int, default=10)
        parser.add_argument("--only", nargs="*", choices=KINDS, help="some kinds; the others stay as they are")

    args = common.arguments(__doc__, "peers_graphs_planted", options)
    n_graphs = 1 if args.quick else args.graphs
    if not args.peers:
        common.left_out("graph")
    gg.GraphClustering(random_state=0).fit(planted_graph(200, 2, seed=0).adjacency)  # compiles
    gg.GraphClustering(degree_correction=True, random_state=0).fit(planted_graph(200, 2, seed=0).adjacency)
    results: dict = {}
    peer_versions: dict = {}
    if args.out.exists():  # one kind after another may be measured in parts
        kept = json.loads(args.out.read_text())
        results, peer_versions = kept["results"], kept["settings"]["peer_versions"]
    for name in args.only or (SMALL if args.quick else KINDS):
        settings = KINDS[name]
        k = settings["k"]
        ours = {"gingham, k given": {"n_clusters": k}, "gingham, k found": {"n_clusters": "auto"}}
        graphs = [planted_graph(seed=at, **settings) for at in range(n_graphs)]
        runs: dict[str, list] = {title: [] for title in ours}
        for graph in graphs:
            for seed in SEEDS:
                for title, choice in ours.items():
                    run = measured(graph, k, seed, degree_correction="exponent" in settings, **choice)
                    runs[title].append(scored(run, graph))
        if args.peers:
            others, found = peers(args.peers, ("leidenalg", "graspologic"), graphs, k)
            runs |= others
            peer_versions |= found
        results[name] = {title: {**summary(found, k), "each": found} for title, found in runs.items()}
        for title, found in results[name].items():
            print(name, title, {key: value for key, value in found.items() if key != "each"}, flush=True)
        common.write(
            args, {"kinds": KINDS, "graphs": n_graphs, "seeds": SEEDS, "peer_versions": peer_versions}, results
        )


def scored(run: dict, graph) -> dict:
    labels = run.pop("labels")
    return {**run, "ari": adjusted_rand_score(graph.labels, labels), "found": run.get("found", len(np.unique(labels)))}


if __name__ == "__main__":
    main()
