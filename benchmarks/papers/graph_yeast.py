"""P1 §6, yeast protein interactions: losses and bounds against β and against the number of clusters (Figure 3).

Quadratic loss on 0/1 weights. First experiment: 445,125 random pairs to fit, all others to test, 71 clusters as in
the paper. Second: all pairs, 1 to 10 clusters, at the paper's β = 256 and at small β, where the excess loss over the
best constant can be certified. --only beta or --only clusters measures one of them and keeps the other.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
import gingham as gg
from gingham.certificates import certify, certify_gain, equation15
from gingham.solvers.duplicates import without_duplicates
from gingham.solvers.graph_fit import graph_problem
from gingham.solvers.partition import spectral_labels

N_TRAIN = 445_125


def yeast(args) -> sparse.csr_array:
    data = common.load(args.data, "yeast_biogrid.npz")
    edges, n = np.sort(data["edges"], axis=1), len(data["names"])
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return sparse.csr_array(upper + upper.T)


def fitted(graph, k: int, beta: float, start, pairs="all", n_iter: int = 45):
    model = gg.GraphClustering(
        k, loss="quadratic", beta=beta, solver="nodewise", start=start, max_iter=n_iter, tol=1e-6, random_state=0
    ).fit(graph, pairs=pairs)
    sample = model.sample(graph, pairs=pairs)
    problem = graph_problem(sample, model.posterior_.cells[0], beta)
    return model, without_duplicates(problem, model.posterior_), sample


def measures(posterior, sample) -> dict:
    return {
        "clusters": posterior.n_clusters[0],
        "train": posterior.gibbs_loss(sample),
        "information": posterior.information[0],
        "eq15": equation15(posterior, sample).value,
        "log_wealth": certify(posterior, sample).value,
        "gain": certify_gain(posterior, sample).value,
    }


def against_clusters(graph, sizes, betas) -> list[dict]:
    rows = []
    for k in sizes:
        labels = gg.GraphClustering(k, random_state=0).fit(graph).labels_
        for beta in betas if k > 1 else betas[:1]:
            model, merged, sample = fitted(graph, k, beta, labels)
            row = {"k": k, "beta": beta, **measures(merged, sample)}
            row["eq15_unmerged"] = equation15(model.posterior_, sample).value
            rows.append(row)
            print(row, flush=True)
    return rows


def against_beta(graph, betas, n_splits: int, k: int = 71) -> list[dict]:
    n = graph.shape[0]
    first, second = np.triu_indices(n, 1)
    rows = []
    for split in range(n_splits):
        chosen = np.random.default_rng(split).choice(len(first), N_TRAIN, replace=False)
        pairs = np.column_stack([first[chosen], second[chosen]])
        sample = gg.from_graph(graph, pairs=pairs)
        labels = spectral_labels(sample, k, np.random.default_rng(split), dimensions=20)
        for size in (1, k):
            for beta in betas if size > 1 else (1.0,):
                start = labels if size > 1 else np.zeros(n, dtype=int)
                model, merged, sample = fitted(graph, size, beta, start, pairs, n_iter=25)
                everything = model.sample(graph)
                whole = merged.gibbs_loss(everything) * everything.n_tuples
                row = {"split": split, "k": size, "beta": beta, **measures(merged, sample)}
                row["eq15_unmerged"] = equation15(model.posterior_, sample).value
                row["test"] = (whole - row["train"] * N_TRAIN) / (everything.n_tuples - N_TRAIN)
                rows.append(row)
                print(row, flush=True)
    return rows


def plot(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    rows = [row for row in results["beta"] if row["k"] > 1]
    betas = sorted({row["beta"] for row in rows})
    curves = (("test", "test loss", "C0-"), ("eq15", "bound (15)", "C3--"), ("log_wealth", "log-wealth", "C2-"))
    for key, name, style in curves:
        left.plot(betas, [np.mean([r[key] for r in rows if r["beta"] == b]) for b in betas], style, label=name)
    mean = np.mean([r["test"] for r in results["beta"] if r["k"] == 1])
    left.axhline(mean, color="0.6", lw=1, label="test loss of the constant")
    left.set(xscale="log", yscale="log", xlabel="β", ylabel="quadratic loss", title="445,125 pairs, 71 clusters")
    left.legend(fontsize=8)
    constant = results["clusters"][0]
    for beta, style in zip(sorted({r["beta"] for r in results["clusters"]}), ("-", "--", ":")):
        chosen = [constant, *(r for r in results["clusters"] if r["beta"] == beta and r["k"] > 1)]
        sizes = [r["k"] for r in chosen]
        right.plot(sizes, [r["train"] for r in chosen], f"C0{style}", label=f"train, β={beta:g}")
        right.plot(sizes, [r["eq15"] for r in chosen], f"C3{style}", label=f"bound (15), β={beta:g}")
        total = [constant["log_wealth"] + (r["gain"] if r["k"] > 1 else 0.0) for r in chosen]
        right.plot(sizes, total, f"C2{style}", label=f"constant's log-wealth + gain (δ = .1 in all), β={beta:g}")
    right.axhline(constant["train"], color="0.6", lw=1, label="loss of the constant")
    right.set(xlabel="number of clusters", title="all pairs")
    right.set_ylim(top=0.0068)
    right.legend(fontsize=6, loc="upper left")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    def options(parser):
        parser.add_argument("--only", choices=("beta", "clusters"), help="one experiment")
        parser.add_argument("--betas", type=float, nargs="*", default=[1.0, 8.0, 64.0, 256.0], help="of the first one")

    args = common.arguments(__doc__, "graph_yeast", options)
    graph = yeast(args)
    results: dict = {}
    if args.out.exists():
        results = json.loads(args.out.read_text())["results"]
    settings = {"delta": 0.05, "train_pairs": N_TRAIN, "nodes": graph.shape[0], "edges": graph.nnz // 2}
    if args.only != "beta":
        sizes = (1, 4) if args.quick else (1, 2, 3, 4, 6, 8, 10)
        results["clusters"] = against_clusters(graph, sizes, (0.6, 256.0))
        common.write(args, settings, results)
    if args.only != "clusters":
        kept = [row for row in results.get("beta", []) if row["k"] > 1 and row["beta"] not in args.betas]
        results["beta"] = sorted(kept + against_beta(graph, args.betas, 1), key=lambda row: (row["k"], row["beta"]))
        common.write(args, settings, results)
    if "beta" in results and "clusters" in results:
        rows = results["clusters"]
        constant = rows[0]
        results["verdict"] = {
            "loss_of_the_constant": constant["train"],
            "constant_eq15": constant["eq15"],
            "constant_log_wealth": constant["log_wealth"],
            "helps_by_eq15": [(r["k"], r["beta"]) for r in rows if r["k"] > 1 and r["eq15"] < constant["eq15"]],
            "helps_by_log_wealth": [
                (r["k"], r["beta"]) for r in rows if r["k"] > 1 and r["log_wealth"] < constant["log_wealth"]
            ],
            "helps_by_gain": [(r["k"], r["beta"], r["gain"]) for r in rows if r["k"] > 1 and r["gain"] < 0],
        }
        common.write(args, settings, results)
        plot(results, args.out.with_suffix(".png"))
        print(results["verdict"])


if __name__ == "__main__":
    main()
