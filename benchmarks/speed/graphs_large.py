"""Large graphs, the number of clusters found: CPU seconds, memory and quality beside Leiden and Louvain, in one run.

Four graphs of the Stanford collection and planted ones of 80,000 nodes with heavy-tailed degrees. Every fit has a
process of its own, and its memory is the peak of that process above what it held before the fit. All partitions,
those of peers too, are weighed alike: by the description length of the plain and of the degree-corrected block model
(nats), and by the certificate of the squared error with which blocks predict pairs. --before names the sources of an
earlier version of gingham, which is then measured beside this one, each fit for --limit CPU seconds at most; --peers
the Python of the peers' environment.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

import common

FIGURES = {
    "CPU seconds over leidenalg's": "*/gingham/cpu_over_leidenalg",
    "degrees corrected": "*/gingham, degrees corrected/cpu_over_leidenalg",
    "bytes an edge": "*/gingham/bytes_per_edge",
    "description length over Leiden's": "*/gingham/plain_over_leidenalg",
    "degrees corrected, over Leiden's": "*/gingham, degrees corrected/corrected_over_leidenalg",
}
REAL = {
    "email_enron": "graph_email_enron.npz",
    "as_caida": "graph_as_caida20071105.npz",
    "ca_astroph": "graph_ca_astroph_cc1.npz",
    "ego_facebook": "graph_ego_facebook.npz",
}
PLANTED = {
    "planted .5M edges": {"n": 80_000, "k": 50, "inside": 10.5, "outside": 2.6, "exponent": 2.5},
    "planted 1.3M edges": {"n": 80_000, "k": 50, "inside": 29.0, "outside": 7.2, "exponent": 2.5},
}
OURS = {"gingham": {}, "gingham, degrees corrected": {"degree_correction": True}}
MOST = 500  # clusters of a partition that is certified: more cells cost more than they can gain, and gigabytes
PEERS = ("leidenalg", "graspologic Leiden", "scikit-network Louvain")


def adjacency_of(path: Path) -> sparse.csr_array:
    with np.load(path) as archive:
        edges, n = archive["edges"], int(archive["n"])
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return sparse.csr_array(upper + upper.T)


def fit(path: Path, method: str, labels_to: Path) -> dict:
    """Fit in this process."""
    import gingham as gg
    from gingham.datasets import planted_graph

    tiny = planted_graph(300, 2, seed=0).adjacency
    gg.GraphClustering(random_state=0, **OURS[method]).fit(tiny)  # compiled code is loaded
    adjacency = adjacency_of(path)
    before = common.peak_memory()
    took: dict = {}
    with common.clock(took):
        model = gg.GraphClustering(random_state=0, **OURS[method]).fit(adjacency)
    np.savez(labels_to, labels=model.labels_)
    return {**took, "peak_bytes": common.peak_memory() - before}


def weigh(path: Path, labels_from: Path) -> dict:
    """What a partition is worth, whoever found it."""
    from gingham.cells import Quadratic, make_cell
    from gingham.certificates import certify
    from gingham.data.graphs import from_graph
    from gingham.models.graph.fit import graph_problem, search_problem
    from gingham.models.graph.partition import PartitionSearch, compact
    from gingham.models.graph.solvers import hard_posterior

    with np.load(labels_from) as found:
        labels, k = compact(found["labels"])
    sample = from_graph(adjacency_of(path).astype(bool))
    problem = search_problem(graph_problem(sample, Quadratic(), 1.0))
    squared = graph_problem(problem.samples[0], make_cell("quadratic", None, (0.0, 1.0)), 1.0)
    lengths = [PartitionSearch.of(problem, degree_correction=c).partition(labels).cost for c in (False, True)]
    found = {"clusters": k, "plain": lengths[0], "corrected": lengths[1]}
    if k <= MOST:
        found["certificate"] = certify(hard_posterior(squared, labels, k)[0], squared.samples[0]).value
    return found


def child(*arguments: str, source: str | None = None, python: str = sys.executable, limit: int | None = None) -> dict:
    """What a process of its own prints; where it needs more than ``limit`` CPU seconds, how long it had."""

    def stop_in_time():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if python == sys.executable:
        environment["PYTHONPATH"] = source or os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=False, env=environment, preexec_fn=stop_in_time
    )
    if limit is not None and done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"stopped_after_cpu_s": limit}
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def edges_of(args, name: str) -> tuple[np.ndarray, int, np.ndarray | None]:
    if name in REAL:
        data = common.load(args.data, REAL[name])
        edges = np.unique(np.sort(data["edges"], axis=1), axis=0)
        return edges[edges[:, 0] != edges[:, 1]], int(data["n"]), None
    from gingham.datasets import planted_graph

    graph = planted_graph(seed=args.seed, **PLANTED[name])
    upper = graph.adjacency.tocoo()
    keep = upper.row < upper.col
    return np.column_stack([upper.row[keep], upper.col[keep]]), len(graph.labels), graph.labels


def main() -> None:
    def options(parser):
        common.peer_option(parser, "graph", "--peers")
        parser.add_argument("--before", help="sources (src) of an earlier version of gingham")
        parser.add_argument("--limit", type=int, help="CPU seconds after which a fit of the earlier version is stopped")
        parser.add_argument("--only", nargs="*", help="some graphs; the others stay as they are")
        parser.add_argument("--join", type=Path, help="a file of results whose earlier version is taken over, and stop")
        parser.add_argument("--fit", nargs=3, metavar=("GRAPH", "METHOD", "LABELS"), help="one fit, printed as JSON")
        parser.add_argument("--weigh", nargs=2, metavar=("GRAPH", "LABELS"), help="one partition weighed")

    args = common.arguments(__doc__, "speed_graphs_large", options)
    if args.fit or args.weigh:
        path, *rest = args.fit or args.weigh
        found = fit(Path(path), rest[0], Path(rest[1])) if args.fit else weigh(Path(path), Path(rest[0]))
        print(json.dumps(common.plain(found)))
        return
    if not args.peers:
        common.left_out("graph")
    results = common.previous(args) if args.only or args.join else {}
    if args.join:
        for name, found in json.loads(args.join.read_text())["results"].items():
            results[name] |= {title: run for title, run in found.items() if title.endswith(", before")}
        common.write(args, {"planted": PLANTED, "choices": OURS}, results)
        return
    settings = {"planted": PLANTED, "choices": OURS}
    peers_script = str(Path(__file__).parents[1] / "peers" / "graph_peers.py")
    for name in args.only or (["ego_facebook"] if args.quick else [*REAL, *PLANTED]):
        edges, n, truth = edges_of(args, name)
        found: dict = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "0.graph.npz"
            np.savez(path, edges=edges.astype(np.int64), n=n, k=0, seed=args.seed)
            runs = [(method, None) for method in OURS]
            if args.before:
                runs += [(method, args.before) for method in OURS]
            for method, source in runs:
                title = f"{method}{', before' if source else ''}"
                labels = Path(folder) / f"0.{title}.npz"
                limit = args.limit if source else None
                found[title] = child(__file__, "--fit", str(path), method, str(labels), source=source, limit=limit)
            for method in PEERS if args.peers else ():
                found[method] = child(peers_script, method, folder, python=args.peers)
            if truth is not None:
                np.savez(Path(folder) / "0.planted.npz", labels=truth)
                found["planted"] = {}
            for title, run in found.items():
                if "stopped_after_cpu_s" in run:
                    continue
                run |= child(__file__, "--weigh", str(path), str(Path(folder) / f"0.{title}.npz"))
                run |= {"edges": len(edges), "nodes": n}
                if "peak_bytes" in run:
                    run["bytes_per_edge"] = run["peak_bytes"] / len(edges)
            for title, run in found.items():
                if "leidenalg" in found and "cpu_s" in run:
                    run["cpu_over_leidenalg"] = run["cpu_s"] / found["leidenalg"]["cpu_s"]
                    for code in ("plain", "corrected"):
                        run[f"{code}_over_leidenalg"] = run[code] / found["leidenalg"][code]
                print(name, title, run, flush=True)
        results[name] = found
        common.write(args, settings, results)


if __name__ == "__main__":
    main()
