"""Yeast interactions: how many clusters are chosen, and how they agree with known complexes, against Leiden.

Agreement with a set of complexes (MIPS, SGD, CYC2008), for the complexes with at least three proteins in the graph:
``sensitivity`` Σ_complex (largest overlap with one cluster)/Σ_complex size, ``ppv`` Σ_cluster (largest overlap with one
complex)/Σ_cluster (proteins of any complex), their geometric mean ``accuracy`` (Brohée and van Helden 2006), and
``f1`` of pairs of proteins that share a complex, among proteins of complexes. Leiden runs at its default resolution
and, "matched", at the one that gives as many clusters as ours. Peers' environment: --peers.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from graphs_planted import peers

import common
import gingham as gg
from gingham.datasets import PlantedGraph
from gingham.models.graph.partition import MOST_CLUSTERS

FIGURES = {
    "clusters": "*/clusters",
    "agreement with CYC2008 (F1 of pairs)": "gingham, degrees corrected, seed 0/cyc2008/f1",
    "(Leiden)": "leidenalg, seed 0/cyc2008/f1",
    "(Leiden matched)": "leidenalg matched, seed 0/cyc2008/f1",
}
SETS = ("mips", "sgd", "cyc2008")


def complexes(data: dict, name: str) -> list[np.ndarray]:
    keys = {key.lower(): key for key in data}
    members, offsets = data[keys[f"{name}_members"]], data[keys[f"{name}_offsets"]]
    groups = [np.unique(members[a:b]) for a, b in pairwise(offsets)]
    return [group for group in groups if len(group) >= 3]


def agreement(labels: np.ndarray, groups: list[np.ndarray]) -> dict:
    inside = np.zeros(len(labels), dtype=bool)
    for group in groups:
        inside[group] = True
    k = int(labels.max()) + 1
    overlap = np.array([np.bincount(labels[group], minlength=k) for group in groups])
    sensitivity = overlap.max(axis=1).sum() / sum(len(group) for group in groups)
    ppv = overlap.max(axis=0).sum() / max(np.bincount(labels[inside], minlength=k).sum(), 1)
    together = sparse.lil_array((len(labels), len(labels)), dtype=bool)
    for group in groups:
        together[np.ix_(group, group)] = True
    mates = sparse.triu(together.tocsr(), 1).tocoo()
    same = int((labels[mates.row] == labels[mates.col]).sum())
    sizes = np.bincount(labels[inside], minlength=k)
    claimed = int((sizes * (sizes - 1) // 2).sum())
    precision, recall = same / max(claimed, 1), same / max(mates.nnz, 1)
    return {
        "complexes": len(groups),
        "sensitivity": sensitivity,
        "ppv": ppv,
        "accuracy": float(np.sqrt(sensitivity * ppv)),
        "pair_precision": precision,
        "pair_recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-12),
    }


def main() -> None:
    def options(parser):
        common.peer_option(parser, "graph", "--peers")
        parser.add_argument("--only-peers", action="store_true", help="keep our own results as they are")

    args = common.arguments(__doc__, "peers_graphs_yeast", options)
    data = common.load(args.data, "yeast_biogrid.npz")
    edges, n = np.sort(data["edges"], axis=1), len(data["names"])
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    graph = PlantedGraph(sparse.csr_array(upper + upper.T), np.zeros(n, dtype=int))
    partitions, took, results = {}, {}, {}
    if args.only_peers:
        results = json.loads(args.out.read_text())["results"]
    seeds = () if args.only_peers else (0,) if args.quick else (0, 1, 2)
    gg.GraphClustering(degree_correction=True, random_state=0).fit([(0, 1), (1, 2), (2, 3), (3, 4)])  # compiles
    for seed in seeds:
        clock: dict = {}
        with common.clock(clock):
            model = gg.GraphClustering(degree_correction=True, random_state=seed).fit(graph.adjacency)
        partitions[f"gingham, degrees corrected, seed {seed}"] = model.labels_
        took[f"gingham, degrees corrected, seed {seed}"] = clock["cpu_s"]
        print(seed, model.n_clusters_, clock, flush=True)
    cap = MOST_CLUSTERS
    ours = [row["clusters"] for name, row in results.items() if name.startswith("gingham")]
    ours += [len(np.unique(labels)) for labels in partitions.values()]
    versions = {}
    if not args.peers:
        common.left_out("graph")
    else:
        methods = ("leidenalg",) if args.quick else ("leidenalg", "leidenalg matched")
        runs, versions = peers(args.peers, methods, [graph], int(np.median(ours)), keep_labels=True)
        for method in methods:
            for seed, run in enumerate(runs[method]):
                partitions[f"{method}, seed {seed}"] = np.unique(run["labels"], return_inverse=True)[1]
                took[f"{method}, seed {seed}"] = run["cpu_s"]
    for name, labels in partitions.items():
        found, gain = (
            gg.certify(labels, graph.adjacency > 0, bound=bound, delta=0.025) for bound in ("log-wealth", "gain")
        )
        n_clusters = len(set(np.asarray(labels).tolist()))
        results[name] = {
            "clusters": n_clusters,
            "cpu_s": took[name],
            "loss": found.empirical,
            "certificate": found.value,
            "gain": gain.value,
            **{which: agreement(labels, complexes(data, which)) for which in SETS},
        }
        short = {which: round(results[name][which]["f1"], 3) for which in SETS}
        accuracy = {which: round(results[name][which]["accuracy"], 3) for which in SETS}
        print(name, n_clusters, "f1", short, "accuracy", accuracy, found.empirical, found.value, gain.value)
    settings = {"cap": cap, "edges": len(edges), "nodes": n, "peer_versions": versions}
    common.write(args, settings, results)


if __name__ == "__main__":
    main()
