"""Large graphs: seconds and memory of GraphClustering beside scikit-network's Louvain, in one run.

email_enron (36,692 nodes) and planted graphs up to 1.3 million edges. Memory is the peak of the process above what
it held before the fit, each fit in a process of its own; it should grow with edges + nodes × clusters, never with
nodes². Peers' environment: --peers.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
import gingham as gg
from gingham.datasets import planted_graph

FIGURES = {
    "CPU seconds over Louvain's": "*/*/cpu_ratio_to_louvain",
    "bytes an edge": "*/*/bytes_per_edge",
    "adjusted Rand index (k = 10)": "*/gingham, k = 10/ari",
    "(Louvain)": "*/scikit-network Louvain/ari",
}
PLANTED = {
    "planted 65k edges": {"n": 6_500, "k": 10, "inside": 16, "outside": 4},
    "planted 325k edges": {"n": 32_500, "k": 10, "inside": 16, "outside": 4},
    "planted 1.3M edges": {"n": 130_000, "k": 10, "inside": 16, "outside": 4},
}
CHOICES = {
    "k = 10": {"n_clusters": 10},
    "k found": {"n_clusters": "auto", "max_clusters": 80},
    "degrees corrected": {"n_clusters": "auto", "degree_correction": True, "max_clusters": 80},
}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one(path: str, choice: str) -> dict:
    """Fit in this process: seconds, memory, agreement."""
    with np.load(path) as archive:
        edges, n, labels = archive["edges"], int(archive["n"]), archive["labels"]
    tiny = planted_graph(200, 2, seed=0).adjacency
    gg.GraphClustering(2, degree_correction="degree" in choice, random_state=0).fit(tiny)  # compiles
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    adjacency = sparse.csr_array(upper + upper.T)
    before = peak()
    took: dict = {}
    with common.clock(took):
        model = gg.GraphClustering(random_state=0, **CHOICES[choice]).fit(adjacency)
    result = {**took, "clusters": model.n_clusters_, "peak_bytes": peak() - before, "edges": len(edges), "nodes": n}
    result["bytes_per_edge"] = result["peak_bytes"] / len(edges)
    if labels.any():
        result["ari"] = adjusted_rand_score(labels, model.labels_)
    return result


def main() -> None:
    def options(parser):
        common.peer_option(parser, "graph", "--peers")
        parser.add_argument("--one", nargs=2, metavar=("GRAPH", "CHOICE"), help="one fit, printed as JSON")
        parser.add_argument("--only", nargs="*", help="some graphs; the others stay as they are")
        parser.add_argument("--join", type=Path, help="take the graphs of this file, from a run elsewhere, and stop")
        parser.add_argument(
            "--choices", nargs="*", default=list(CHOICES), help="some fits; the others stay as they are"
        )

    args = common.arguments(__doc__, "speed_graphs_large", options)
    if args.one:
        print(json.dumps(common.plain(one(*args.one))))
        return
    if not args.peers:
        common.left_out("graph")
    results = common.previous(args)
    if args.join:
        results |= json.loads(args.join.read_text())["results"]
        common.write(args, {"planted": PLANTED, "choices": CHOICES}, results)
        return
    everything = ["planted 65k edges"] if args.quick else ["email_enron", *PLANTED]
    for name in args.only or everything:
        if name == "email_enron":
            data = common.load(args.data, "graph_email_enron.npz")
            edges, n = np.unique(np.sort(data["edges"], axis=1), axis=0), int(data["n"])
            edges, labels = edges[edges[:, 0] != edges[:, 1]], np.zeros(n, dtype=int)
        else:
            graph = planted_graph(seed=0, **PLANTED[name])
            upper = graph.adjacency.tocoo()
            keep = upper.row < upper.col
            edges, labels = np.column_stack([upper.row[keep], upper.col[keep]]), graph.labels
            n = len(labels)
        results.setdefault(name, {})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "0.graph.npz"
            np.savez(path, edges=edges.astype(np.int64), n=n, k=10, seed=0, labels=labels)
            for choice in args.choices:
                if choice == "degrees corrected" and name != "email_enron":
                    continue
                command = [sys.executable, __file__, "--one", str(path), choice]
                answer = subprocess.run(command, capture_output=True, text=True, check=True)
                results[name][f"gingham, {choice}"] = json.loads(answer.stdout.strip().splitlines()[-1])
                print(name, choice, results[name][f"gingham, {choice}"], flush=True)
            if args.peers:
                script = Path(__file__).parents[1] / "peers" / "graph_peers.py"
                environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
                method = "scikit-network Louvain"
                answer = subprocess.run(
                    [args.peers, str(script), method, folder],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=environment,
                )
                with np.load(Path(folder) / f"0.{method}.npz") as found:
                    run = {"cpu_s": float(found["cpu_s"]), "wall_s": float(found["wall_s"])}
                    run["clusters"] = len(np.unique(found["labels"]))
                    if labels.any():
                        run["ari"] = adjusted_rand_score(labels, found["labels"])
                run["version"] = json.loads(answer.stdout.strip().splitlines()[-1])["version"]
                results[name][method] = run
                print(name, method, run, flush=True)
                for title, fit in results[name].items():
                    if title.startswith("gingham"):
                        fit["cpu_ratio_to_louvain"] = fit["cpu_s"] / run["cpu_s"]
        common.write(args, {"planted": PLANTED, "choices": CHOICES}, results)


if __name__ == "__main__":
    main()
