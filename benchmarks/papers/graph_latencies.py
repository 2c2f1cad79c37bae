"""P1 §6, latencies: losses and bounds against β and against the number of clusters (Figure 1).

PlanetLab round-trip times of 490 nodes stand in for the King data (1,740 DNS servers); with --king FILE the
King ``matrix`` file is used instead. Weights are exp(−latency/median). First experiment: a fifth of the pairs
to fit, a twentieth to validate (the paper's cross-validation set), the rest to test, five splits, 41 clusters as in
the paper. Second: all pairs, β = 1, 1 to 15 clusters; and the same on the fifths, where there are pairs to test on,
at β = 1 and 8. Everywhere also the 5-fold cross-validated loss of the pairs that were fitted on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from graph_folds import cross_validated
from latencies import load_king, similarities

import common
import gingham as gg
from gingham.certificates import certify, equation15
from gingham.models.graph.fit import graph_problem
from gingham.models.graph.partition import merge_duplicates
from gingham.models.graph.solvers import mean_similarity, similarity

FIGURES = {
    "loss of the mean": "verdict/loss_of_the_mean",
    "best bound (15)": "verdict/best_eq15/value",
    "best log-wealth": "verdict/best_log_wealth/value",
    "cross-validated over test": "verdict/largest_cv_over_test",
}
BOUNDS = (0.0, 1.0)


def weights(args) -> np.ndarray:
    if args.king:
        return similarities(load_king(args.king))
    table = common.load(args.data, "planetlab490_rtt.npz")["median"].astype(float)
    table[~(table > 0)] = np.nan
    return similarities(table)


def fitted(graph, k: int, beta: float, seed: int, start="spectral") -> tuple:
    """The model's posterior with duplicate clusters merged, and the pairs it saw."""
    if start == "sweep":  # hard moves first, on the same pairs
        hard = gg.GraphClustering(k, loss="quadratic", solver="sweep", bounds=BOUNDS, random_state=seed)
        start = hard.fit(graph, pairs="listed").labels_
    model = gg.GraphClustering(
        k, loss="quadratic", beta=beta, solver="nodewise", bounds=BOUNDS, start=start, max_iter=60, random_state=seed
    ).fit(graph, pairs="listed")
    sample = model.sample(graph, pairs="listed")
    problem = graph_problem(sample, model.posterior_.cells[0], beta)
    return model, merge_duplicates(problem, model.posterior_), sample


def held_out(sample, k: int, beta: float, seed: int, start="spectral") -> float:
    """5-fold cross-validated loss at the same β N; the start is found anew in each fold."""
    return cross_validated(sample, lambda train, share: fitted(train, k, beta / share, seed, start)[1], seed=seed)


def measures(posterior, sample) -> dict:
    return {
        "clusters": posterior.n_clusters[0],
        "train": posterior.gibbs_loss(sample),
        "information": posterior.information[0],
        "eq15": equation15(posterior, sample).value,
        "log_wealth": certify(posterior, sample).value,
    }


def only(matrix, pairs) -> np.ndarray:
    """The matrix with all other pairs unobserved."""
    seen = np.full_like(matrix, np.nan)
    i, j = pairs.T
    seen[i, j] = seen[j, i] = matrix[i, j]
    return seen


def parts(matrix, split: int) -> tuple:
    """A fifth of the pairs, a twentieth, and the rest."""
    pairs = np.argwhere(np.triu(np.isfinite(matrix), 1))
    order = np.random.default_rng(split).permutation(len(pairs))
    n_train, n_validation = len(pairs) // 5, len(pairs) // 20
    return tuple(only(matrix, pairs[at]) for at in np.split(order, [n_train, n_train + n_validation]))


def on_split(matrix, split: int, choices, start: str) -> list[dict]:
    """Fit on a fifth with each (number of clusters, β), measure on the rest."""
    train, validation, test = parts(matrix, split)
    rows = []
    for k, beta in choices:
        begin = start if k > 1 else "spectral"
        model, merged, sample = fitted(train, k, beta, split, begin)
        row = {"split": split, "k": k, "beta": beta, **measures(merged, sample)}
        row["eq15_unmerged"] = equation15(model.posterior_, sample).value
        row["cv"] = held_out(sample, k, beta, split, begin)
        row["validation"] = merged.gibbs_loss(model.sample(validation, pairs="listed"))
        row["test"] = merged.gibbs_loss(model.sample(test, pairs="listed"))
        rows.append(row)
        print(row, flush=True)
    return rows


def against_clusters(matrix, sizes) -> list[dict]:
    rows = []
    for k in sizes:
        model, merged, sample = fitted(matrix, k, 1.0, 0)
        row = {"k": k, **measures(merged, sample), "eq15_unmerged": equation15(model.posterior_, sample).value}
        row["cv"] = held_out(sample, k, 1.0, 0)
        rows.append(row)
        print(row, flush=True)
    return rows


def against_iclust(matrix, sizes) -> list[dict]:
    """Iclust (Slonim et al. 2005) and this model with as many clusters: similarity within, loss, certificate."""
    rows = []
    for k in sizes:
        iclust = gg.GraphClustering(k, solver="iclust", loss="quadratic", beta=25.0, bounds=BOUNDS, random_state=0)
        iclust.fit(matrix, pairs="listed")
        _, merged, sample = fitted(matrix, k, 1.0, 0)
        weights, rest = similarity(sample)
        for name, posterior in (("iclust, 1/T = 25", iclust.posterior_), ("trade-off, beta = 1", merged)):
            inside = mean_similarity(posterior.assign[0], weights, rest)
            rows.append({"k": k, "objective": name, "similarity_within": inside, **measures(posterior, sample)})
            print(rows[-1], flush=True)
    return rows


def plot(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = (
        ("test", "test loss", "C0-"),
        ("cv", "cross-validated loss", "C1:"),
        ("eq15", "bound (15)", "C3--"),
        ("log_wealth", "log-wealth", "C2-"),
    )
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), sharey=True)

    def draw(axes, rows, by, shown=curves) -> None:
        at = sorted({row[by] for row in rows})
        for key, name, style in shown:
            axes.plot(at, [np.mean([r[key] for r in rows if r[by] == x]) for x in at], style, label=name)

    mean = np.mean([row["test"] for row in results["beta"] if row["k"] == 1])
    draw(left, [row for row in results["beta"] if row["k"] > 1], "beta")
    left.set(xscale="log", yscale="log", xlabel="β", ylabel="quadratic loss", title="a fifth of the pairs, 41 clusters")
    draw(middle, [row for row in results["sampled"] if row["beta"] == 8.0 or row["k"] == 1], "k")
    middle.set(xlabel="number of clusters", title="a fifth of the pairs, β = 8")
    draw(right, results["clusters"], "k", (("train", "train loss", "C0-"), *curves[1:]))
    right.set(xlabel="number of clusters", title="all pairs, β = 1")
    for axes in (left, middle, right):
        axes.axhline(mean, color="0.6", lw=1, label="loss of the mean")
    handles, names = left.get_legend_handles_labels()
    names[0] = "test loss (train on the right)"
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.legend(handles, names, ncols=5, loc="lower center", fontsize=9)
    figure.savefig(path, dpi=80)


def main() -> None:
    def options(parser):
        parser.add_argument("--king", help="King matrix file")
        parser.add_argument(
            "--only", nargs="*", help="clusters, iclust, beta, sampled (or beta0, sampled1, …: one split)"
        )

    args = common.arguments(__doc__, "graph_latencies", options)
    matrix = weights(args)
    if args.quick:
        matrix = matrix[:150, :150]
    betas = (8.0,) if args.quick else (0.3, 0.6, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    sizes = (1, 4) if args.quick else range(1, 16)
    results: dict = common.previous(args) if args.only else {}
    results["pairs"] = int(np.isfinite(matrix[np.triu_indices(len(matrix), 1)]).sum())
    data = "king" if args.king else "planetlab"
    settings = {"weights": "exp(-latency/median)", "betas": betas, "delta": 0.05, "data": data, "folds": 5}
    splits = range(1 if args.quick else 5)
    wanted = args.only or ["clusters", "iclust", "beta", "sampled"]
    if "clusters" in wanted:
        results["clusters"] = against_clusters(matrix, sizes)
        common.write(args, settings, results)
    if "iclust" in wanted:
        results["iclust"] = against_iclust(matrix, (4,) if args.quick else (4, 7))
    common.write(args, settings, results)
    experiments = {
        "beta": ([(1, 1.0), *((41, beta) for beta in betas)], "sweep"),
        "sampled": ([(1, 1.0), *((k, beta) for k in sizes if k > 1 for beta in (1.0, 8.0))], "spectral"),
    }
    for name, (choices, start) in experiments.items():
        for split in splits:
            if name in wanted or f"{name}{split}" in wanted:
                others = [row for row in results.get(name, []) if row["split"] != split]
                results[name] = others + on_split(matrix, split, choices, start)
                common.write(args, settings, results)
    if not {"clusters", "beta", "sampled"} <= set(results):
        return
    constant, best15 = results["clusters"][0], min(results["clusters"], key=lambda r: r["eq15"])
    best_lw = min(results["clusters"], key=lambda r: r["log_wealth"])
    results["verdict"] = {
        "loss_of_the_mean": constant["train"],
        "best_eq15": {"k": best15["k"], "value": best15["eq15"]},
        "best_log_wealth": {"k": best_lw["k"], "value": best_lw["log_wealth"]},
        "clusters_proven_by_eq15": [r["k"] for r in results["clusters"] if r["eq15"] < constant["train"]],
        "clusters_proven_by_log_wealth": [r["k"] for r in results["clusters"] if r["log_wealth"] < constant["train"]],
    }
    means = {r["split"]: r["test"] for r in results["beta"] if r["k"] == 1}
    for key in ("eq15", "log_wealth"):
        for name, by in (("beta", "beta"), ("sampled", "k")):
            rows = [row for row in results[name] if row["k"] > 1]
            for beta in (None,) if name == "beta" else (1.0, 8.0):
                of = [row for row in rows if beta is None or row["beta"] == beta]
                failed = {row[by] for row in of if row[key] >= means[row["split"]]}
                title = "betas" if name == "beta" else f"clusters_at_beta_{beta:g}_of_a_fifth"
                results["verdict"][f"{title}_proven_by_{key}"] = sorted({row[by] for row in of} - failed)
    results["verdict"]["largest_cv_over_test"] = max(r["cv"] / r["test"] for r in results["beta"])
    results["verdict"]["largest_validation_over_test"] = max(r["validation"] / r["test"] for r in results["beta"])
    common.write(args, settings, results)
    plot(results, args.out.with_suffix(".png"))
    print(results["verdict"])


if __name__ == "__main__":
    main()
