"""Every peer beside gingham in one run: quality, CPU seconds and their ratio, in one table.

Ratings against Surprise's CoClustering, documents against sib and scikit-learn's SpectralCoclustering, views against
cca-zoo's kernel CCA, graphs against Leiden, graspologic and scikit-network. Each peer runs in an environment of its
own, whose Python an option names; a peer without one is left out. One thread each. CPU seconds are of one fit with
compiled code loaded; medians over splits and seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

import graphs_planted
import views_kcca

import gingham as gg
from common import arguments, data_file, left_out, load, peer_option, plain, previous, write
from gingham.datasets import planted_counts, planted_graph

FIGURES = {
    "peer's CPU seconds over ours (ratings)": "ratings/*/times_faster",
    "(documents)": "documents/*/times_faster",
    "(views)": "views/*/times_faster",
    "(graphs)": "graphs/*/times_faster",
}
HERE = Path(__file__).parent


def child(python: str, script: str, *arguments: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([python, str(HERE / script), *arguments], check=True, env=environment, capture_output=True)


def timed(model, *data) -> tuple:
    began = time.process_time()
    fitted = model.fit(*data)
    return fitted, time.process_time() - began


def row(task: str, data: str, peer: str, version: str, measure: str, ours: list, theirs: list) -> dict:
    """One line of the table from (quality, CPU seconds) of each run."""
    (quality, cpu), (peer_quality, peer_cpu) = np.median(ours, axis=0), np.median(theirs, axis=0)
    line = {"task": task, "data": data, "peer": peer, "version": version, "measure": measure}
    line |= {"gingham": quality, "peer_quality": peer_quality, "quality_ratio": quality / peer_quality}
    line |= {"gingham_cpu_s": cpu, "peer_cpu_s": peer_cpu, "times_faster": peer_cpu / cpu, "runs": len(ours)}
    print(plain(line), flush=True)
    return line


def ratings(args, folder: Path) -> list[dict]:
    if not args.surprise:
        return []
    data = load(args.data, "ml100k.npz")
    model = gg.CoClusteringRegressor((13, 6), beta=1.0, alphabet=range(1, 6), random_state=args.seed)
    peers = ("Surprise CoClustering 13×6", "Surprise CoClustering 3×3 (defaults)")
    ours = []
    theirs: dict = {name: [] for name in peers}
    for split in ("u1",) if args.quick else ("u1", "u2", "u3", "u4", "u5"):
        train, test = data[f"{split}_base_idx"], data[f"{split}_test_idx"]
        ids = np.column_stack([data["rows"], data["cols"]])
        y = data["vals"].astype(float)
        if not ours:
            model.fit(ids[train[:2000]], y[train[:2000]])  # loads compiled code
        fitted, cpu = timed(model, ids[train], y[train])
        ours.append((np.abs(np.clip(fitted.predict(ids[test]), 1, 5) - y[test]).mean(), cpu))
        parts = {"train": train, "test": test}
        columns = {"users": data["rows"], "items": data["cols"], "labels": data["vals"]}
        given = {f"{part}_{key}": value[at] for part, at in parts.items() for key, value in columns.items()}
        np.savez(folder / "split.npz", **given)
        for name in peers:
            child(args.surprise, "ratings_peers.py", name, str(folder / "split.npz"), str(folder / "out.npz"), "0")
            with np.load(folder / "out.npz") as found:
                error = np.abs(np.clip(found["predictions"], 1, 5) - y[test]).mean()
                theirs[name].append((error, float(found["fit_s"])))
                version = str(found["version"])
    title = "ratings, 13 × 6 clusters"
    return [row(title, "MovieLens-100K", peer, version, "MAE", ours, theirs[peer]) for peer in peers]


def documents(args, folder: Path) -> list[dict]:
    warm = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (60, 50)).astype(float))
    for columns in (2, None):
        for matrix in (warm, warm * 0.7):
            gg.CoOccurrenceClustering((2, columns), random_state=0).fit(matrix)
    lines = []
    for name in ("cstr",) if args.quick else ("cstr", "webace", "classic3"):
        name, table, truth = collection(args, name)
        k = len(np.unique(truth))
        given = {"values": table.data, "indices": table.indices, "indptr": table.indptr, "shape": table.shape, "k": k}
        for peer, python, columns in (("sib", args.sib, None), ("spectral", sys.executable, k)):
            if not python:
                continue
            ours, theirs, kept, peer_kept = [], [], [], []
            for seed in range(1 if args.quick else 5):
                model = gg.CoOccurrenceClustering((k, columns), random_state=seed)
                fitted, cpu = timed(model, table)
                ours.append((normalized_mutual_info_score(truth, fitted.row_labels_), cpu))
                np.savez(folder / "counts.npz", seed=seed, **given)
                child(python, "peer_fit.py", peer, str(folder / "counts.npz"), str(folder / "out.npz"))
                with np.load(folder / "out.npz") as found:
                    peer_cpu, version = float(found["cpu_s"]), str(found["version"])
                    theirs.append((normalized_mutual_info_score(truth, found["rows"]), peer_cpu))
                    if columns:
                        kept.append((information_kept(table, fitted.row_labels_, fitted.column_labels_), cpu))
                        peer_kept.append((information_kept(table, found["rows"], found["columns"]), peer_cpu))
            title = "sib" if peer == "sib" else "SpectralCoclustering"
            task = "rows of a table" if peer == "sib" else "blocks of a table"
            lines.append(row(task, name, title, version, "NMI of rows", ours, theirs))
            if columns:
                lines.append(row(task, name, title, version, "I(R;C)/I(X;Y)", kept, peer_kept))
    return lines


def collection(args, name: str) -> tuple:
    """Documents × words with the true collections; a small version without data draws some of its own."""
    try:
        table = sparse.csr_matrix(sparse.load_npz(data_file(args.data, f"docs_{name}.npz")).astype(np.float64))
        return name, table, np.load(data_file(args.data, f"docs_{name}_labels.npz"))["labels"]
    except SystemExit:
        if not args.quick:
            raise
    drawn = planted_counts((500, 1000), (4, 8), 60000, seed=args.seed)
    return "planted", sparse.csr_matrix(drawn.counts.astype(np.float64)), drawn.labels[0]


def information_kept(table, rows, columns) -> float:
    """I(R;C)/I(X;Y) of blocks."""

    def information(matrix) -> float:
        entries = sparse.coo_array(matrix)
        p = entries.data / entries.data.sum()
        first, second = (np.bincount(at, p, minlength=n) for at, n in zip(entries.coords, entries.shape))
        keep = p > 0
        ratio = p / (first[entries.coords[0]] * second[entries.coords[1]])
        return float((p[keep] * np.log(ratio[keep])).sum())

    one, two = (
        sparse.csr_array(np.eye(labels.max() + 1)[labels]) for labels in (np.asarray(rows), np.asarray(columns))
    )
    return information(one.T @ sparse.csr_array(table) @ two) / information(table)


def views(args, folder: Path) -> list[dict]:
    if not args.cca:
        return []
    lines = []
    settings = {"gamma": views_kcca.GAMMA, "shrinkage": views_kcca.SHRINKAGE, "k": views_kcca.COMPONENTS}
    kernel = {"kernel": "rbf", "kernel_params": {"gamma": views_kcca.GAMMA}}
    for n in (200,) if args.quick else (500, 1000):  # views_kcca.py goes to 4000
        known, fresh = views_kcca.sample(n, args.seed), views_kcca.sample(2000, args.seed + 1)
        ridge = views_kcca.ridge_like(known, views_kcca.SHRINKAGE)
        model = gg.PairwiseClusterAnalysis(views_kcca.COMPONENTS, ridge=ridge, solver="exact", **kernel)
        fitted, cpu = timed(model, known)
        np.savez(folder / "views.npz", view0=known[0], view1=known[1], fresh0=fresh[0], fresh1=fresh[1], **settings)
        child(args.cca, "peer_fit.py", "kcca", str(folder / "views.npz"), str(folder / "out.npz"))
        with np.load(folder / "out.npz") as found:
            theirs, version = (float(np.mean(found["correlations"])), float(found["cpu_s"])), str(found["version"])
        ours = (float(np.mean(fitted.correlations(fresh))), cpu)
        lines.append(row("views", f"{n} objects", "cca-zoo KCCA", version, "correlation", [ours], [theirs]))
    return lines


def graphs(args, folder: Path) -> list[dict]:
    if not args.graph:
        return []
    gg.GraphClustering(random_state=0).fit(planted_graph(200, 2, seed=0).adjacency)
    methods = ("leidenalg", "graspologic", "scikit-network Louvain")
    lines = []
    kinds = ("assortative 1000",) if args.quick else ("assortative 5000", "ring 5000", "assortative 1000")
    for name in kinds:
        settings = graphs_planted.KINDS[name]
        drawn = [planted_graph(seed=at, **settings) for at in range(1 if args.quick else 3)]
        ours = []
        for graph in drawn:
            for seed in graphs_planted.SEEDS:
                run = graphs_planted.measured(graph, settings["k"], seed, n_clusters="auto")
                ours.append(graphs_planted.scored(run, graph))
        others, versions = graphs_planted.peers(args.graph, methods, drawn, settings["k"])
        pairs = lambda runs: [(run["ari"], run["cpu_s"]) for run in runs]  # noqa: E731
        lines += [
            row("graph, number of clusters found", name, method, versions[method], "ARI", pairs(ours), pairs(found))
            for method, found in others.items()
        ]
    return lines


NAMED = ("surprise", "sib", "cca", "graph")
PARTS = {"ratings": ratings, "documents": documents, "views": views, "graphs": graphs}


def main() -> None:
    def options(parser):
        for peer in NAMED:
            peer_option(parser, peer, f"--{peer}")
        parser.add_argument("--only", nargs="*", choices=PARTS, help="some parts; the others stay as they are")

    args = arguments(__doc__ or "", "peers_all", options)
    for peer in (name for name in NAMED if not getattr(args, name)):
        left_out(peer)
    results = previous(args) if args.only else {}
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)  # movies of the test part alone
    with tempfile.TemporaryDirectory() as folder:
        for part in args.only or PARTS:
            try:
                results[part] = PARTS[part](args, Path(folder))
            except SystemExit as missing:  # data
                print(f"left out: {missing}", flush=True)
            write(args, {"threads": os.environ.get("OMP_NUM_THREADS", "all")}, results)


if __name__ == "__main__":
    main()
