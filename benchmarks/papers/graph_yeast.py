"""P1 §6, yeast protein interactions: losses and bounds against β and against the number of clusters (Figure 3).

Quadratic loss on 0/1 weights. First experiment: 445,125 random pairs to fit, all others to test, five splits, 71
clusters as in the paper. Second: all pairs, 1 to 10 clusters, at the paper's β = 256 and at small β, where the excess
loss over the best constant can be certified. Both with the cross-validated loss of the pairs that were fitted on (five
folds; three of all pairs). --only names one part (beta0 … beta4: a split; folds0 … folds2: a fold of the second
experiment); the others stay as they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

from graph_folds import cross_validated, folds

import common
import gingham as gg
from gingham.certificates import certify, equation15
from gingham.models.graph import NodeWise
from gingham.models.graph.fit import graph_problem
from gingham.models.graph.partition import merge_duplicates, spectral_partition
from gingham.models.graph.solvers import weighted_pairs

LONG = "13 million pairs for each β take over an hour"
FIGURES = {
    "loss of the constant": "clusters/0/train",
    "certificate of it": "clusters/0/log_wealth",
    "certified excess over it": "clusters/*/gain",
    "certificates": "clusters/*/log_wealth",
}
N_TRAIN = 445_125
SIZES, BETAS = (1, 2, 3, 4, 6, 8, 10), (0.6, 256.0)  # of the second experiment
SMALL_SIZES, SMALL_NODES = (1, 4), 1500
N_FOLDS = 3  # of all pairs


def yeast(args) -> sparse.csr_array:
    data = common.load(args.data, "yeast_biogrid.npz")
    edges, n = np.sort(data["edges"], axis=1), len(data["names"])
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    upper = sparse.coo_array((np.ones(len(edges), dtype=bool), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return sparse.csr_array(upper + upper.T)


def fitted(graph, k: int, beta: float, start, pairs="all", n_iter: int = 45):
    model = gg.GraphClustering(
        k, loss="quadratic", beta=beta, solver=NodeWise(tol=1e-6, max_iter=n_iter), start=start, random_state=0
    ).fit(graph, pairs=pairs)
    sample = model.sample(graph, pairs=pairs)
    problem = graph_problem(sample, model.posterior_.cells[0], beta)
    return model, merge_duplicates(problem, model.posterior_), sample


def fitted_on(sample, k: int, beta: float, seed: int):
    """The first experiment's fit: 71 clusters from the spectrum of the sampled pairs."""
    start = (
        spectral_partition(sample, weighted_pairs(sample), k, np.random.default_rng(seed), dimensions=20)
        if k > 1
        else constant(sample)
    )
    return fitted(sample, k, beta, start, n_iter=25)


def constant(sample) -> np.ndarray:
    return np.zeros(sample.n_nodes, dtype=int)


def measures(posterior, sample) -> dict:
    return {
        "clusters": posterior.n_clusters[0],
        "train": posterior.gibbs_loss(sample),
        "information": posterior.information[0],
        "eq15": equation15(posterior, sample).value,
        "log_wealth": certify(posterior, sample).value,
        "gain": certify(posterior, sample, bound="gain").value,
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


def fold_losses(graph, fold: int, n_folds: int, sizes, betas) -> list[dict]:
    """Loss of one fold of all pairs under fits on the others, the start included."""
    n = graph.shape[0]
    first, second = np.triu_indices(n, 1)
    everything = gg.from_graph(graph, pairs=np.column_stack([first, second]))
    del first, second
    train, held_out = list(folds(everything, n_folds))[fold]
    rows = []
    for k in sizes:
        labels = gg.GraphClustering(k, random_state=0).fit(train).labels_ if k > 1 else constant(train)
        for beta in betas if k > 1 else betas[:1]:
            share = train.n_observations / everything.n_observations
            _, merged, _ = fitted(train, k, beta / share, labels)  # β N as for all pairs
            rows.append({"fold": fold, "k": k, "beta": beta, "pairs": held_out.n_observations})
            rows[-1] |= {"clusters": merged.n_clusters[0], "loss": merged.gibbs_loss(held_out)}
            print(rows[-1], flush=True)
    return rows


def against_beta(graph, betas, split: int, k: int = 71) -> list[dict]:
    n = graph.shape[0]
    first, second = np.triu_indices(n, 1)
    rows = []
    chosen = np.random.default_rng(split).choice(len(first), N_TRAIN, replace=False)
    sampled = gg.from_graph(graph, pairs=np.column_stack([first[chosen], second[chosen]]))
    for size, beta in ((1, 1.0), *((k, beta) for beta in betas)):
        model, merged, sample = fitted_on(sampled, size, beta, split)
        everything = model.sample(graph)
        whole = merged.gibbs_loss(everything) * everything.n_observations
        row = {"split": split, "k": size, "beta": beta, **measures(merged, sample)}
        row["eq15_unmerged"] = equation15(model.posterior_, sample).value

        def refit(train, share, size=size, beta=beta):
            return fitted_on(train, size, beta / share, split)[1]

        row["cv"] = cross_validated(sampled, refit)
        row["test"] = (whole - row["train"] * N_TRAIN) / (everything.n_observations - N_TRAIN)
        rows.append(row)
        print(row, flush=True)
    return rows


def cross_validated_rows(found: list[dict]) -> list[dict]:
    """Mean over the folds, for each number of clusters and β that all folds have."""
    rows = []
    for k, beta in sorted({(row["k"], row["beta"]) for row in found}):
        each = [row for row in found if (row["k"], row["beta"]) == (k, beta)]
        total = sum(row["pairs"] for row in each)
        rows.append({"k": k, "beta": beta, "folds": len(each)})
        rows[-1]["cv"] = sum(row["loss"] * row["pairs"] for row in each) / total
    return rows


def plot(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    rows = [row for row in results["beta"] if row["k"] > 1]
    betas = sorted({row["beta"] for row in rows})
    curves = (
        ("test", "test loss", "C0-"),
        ("cv", "cross-validated loss", "C1:"),
        ("eq15", "bound (15)", "C3--"),
        ("log_wealth", "log-wealth", "C2-"),
    )
    for key, name, style in curves:
        left.plot(betas, [np.mean([r[key] for r in rows if r["beta"] == b]) for b in betas], style, label=name)
    mean = np.mean([r["test"] for r in results["beta"] if r["k"] == 1])
    left.axhline(mean, color="0.6", lw=1, label="test loss of the constant")
    left.set(xscale="log", yscale="log", xlabel="β", ylabel="quadratic loss", title="445,125 pairs, 71 clusters")
    left.legend(fontsize=8)
    one = results["clusters"][0]
    for beta, style in zip(sorted({r["beta"] for r in results["clusters"]}), ("-", "--", ":")):
        chosen = [one, *(r for r in results["clusters"] if r["beta"] == beta and r["k"] > 1)]
        sizes = [r["k"] for r in chosen]
        right.plot(sizes, [r["train"] for r in chosen], f"C0{style}", label=f"train, β={beta:g}")
        folds_of = [r for r in results["cross_validated"] if r["beta"] == beta or r["k"] == 1]
        right.plot([r["k"] for r in folds_of], [r["cv"] for r in folds_of], f"C1{style}", label=f"CV, β={beta:g}")
        right.plot(sizes, [r["eq15"] for r in chosen], f"C3{style}", label=f"bound (15), β={beta:g}")
        right.plot(sizes, [r["log_wealth"] for r in chosen], f"C4{style}", label=f"log-wealth, β={beta:g}")
        total = [one["log_wealth"] + (r["gain"] if r["k"] > 1 else 0.0) for r in chosen]
        right.plot(sizes, total, f"C2{style}", label=f"constant's log-wealth + gain, β={beta:g}")
    right.axhline(one["train"], color="0.6", lw=1, label="loss of the constant")
    right.set(xlabel="number of clusters", title="all pairs")
    right.set_ylim(top=0.0075)
    right.legend(fontsize=6, loc="upper left", ncols=2)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    def options(parser):
        parser.add_argument("--only", nargs="*", help="clusters, folds0 …, beta0 …")
        parser.add_argument("--splits", type=int, default=5, help="of the first experiment")
        parser.add_argument("--join", type=Path, nargs="*", default=[], help="files of parts that were run elsewhere")
        parser.add_argument("--sizes", type=int, nargs="*", help="some numbers of clusters of a fold")

    args = common.arguments(__doc__, "graph_yeast", options)
    graph = yeast(args)
    results: dict = common.previous(args) if args.only or args.join else {}
    for path in args.join:
        other = json.loads(path.read_text())["results"]
        for key in ("beta", "folds"):
            have = results.setdefault(key, [])
            have += [row for row in other.get(key, []) if row not in have]
    if args.quick:  # the nodes with most edges
        kept = np.sort(np.argsort(-graph.sum(axis=0), kind="stable")[:SMALL_NODES])
        graph = sparse.csr_array(graph[kept][:, kept])
    betas = (1.0, 2.0, 8.0, 64.0, 256.0)
    # A split or a fold takes minutes.
    sizes, splits, n_folds = (SMALL_SIZES, 0, 0) if args.quick else (SIZES, args.splits, N_FOLDS)
    settings = {"delta": 0.05, "train_pairs": N_TRAIN, "nodes": graph.shape[0], "edges": graph.nnz // 2}
    settings |= {"betas": betas, "folds_of_sampled_pairs": 5, "folds_of_all_pairs": n_folds}
    parts = ["clusters", *(f"beta{split}" for split in range(splits)), *(f"folds{fold}" for fold in range(n_folds))]
    for part in args.only or ([] if args.join else parts):
        number = int(part[-1]) if part[-1].isdigit() else 0
        if part == "clusters":
            results["clusters"] = against_clusters(graph, sizes, BETAS)
        elif part.startswith("beta"):
            kept = [row for row in results.get("beta", []) if row["split"] != number]
            results["beta"] = kept + against_beta(graph, betas, number)
        elif part.startswith("folds"):
            chosen = args.sizes or sizes
            kept = [row for row in results.get("folds", []) if row["fold"] != number or row["k"] not in chosen]
            results["folds"] = kept + fold_losses(graph, number, n_folds, chosen, BETAS)
        common.write(args, settings, results)
    results["beta"] = sorted(results.get("beta", []), key=lambda row: (row["split"], row["k"], row["beta"]))
    results["cross_validated"] = cross_validated_rows(results.get("folds", []))
    if results["beta"] and results["cross_validated"] and "clusters" in results:
        rows, one = [r for r in results["clusters"] if r["k"] > 1], results["clusters"][0]
        fitted_rows = [row for row in results["beta"] if row["k"] > 1]
        by_beta = {
            f"{beta:g}": {
                key: np.mean([row[key] for row in fitted_rows if row["beta"] == beta])
                for key in ("train", "cv", "test", "eq15", "log_wealth", "gain")
            }
            for beta in sorted({row["beta"] for row in fitted_rows})
        }
        results["verdict"] = {
            "loss_of_the_constant": one["train"],
            "constant_eq15": one["eq15"],
            "constant_log_wealth": one["log_wealth"],
            "helps_by_eq15": [(r["k"], r["beta"]) for r in rows if r["eq15"] < one["eq15"]],
            "helps_by_log_wealth": [(r["k"], r["beta"]) for r in rows if r["log_wealth"] < one["log_wealth"]],
            "helps_by_gain": [(r["k"], r["beta"], r["gain"]) for r in rows if r["gain"] < 0],
            "splits": len({row["split"] for row in results["beta"]}),
            "test_of_the_constant": np.mean([row["test"] for row in results["beta"] if row["k"] == 1]),
            "mean_over_splits_by_beta": by_beta,
        }
        common.write(args, settings, results)
        plot(results, args.out.with_suffix(".png"))
        print(results["verdict"])


if __name__ == "__main__":
    main()
