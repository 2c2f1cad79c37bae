"""P2 Figures 6-10: noise raises perplexity; block parameters; co-embedding and signatures.

Figures 6-8: the share of flipped test labels rises from 0 to 10 % (to 1 %, to .1 %) in nested order, on all ten
folds. Perplexity of training plus noisy test entries, memberships inferred from both as in the paper, beside the
held-out one, and LDA's perplexity of the noisy test entries of value 1, its words. A mean log density rises under
flips for every model that beats a coin: a check, not evidence of quality. Folds are kept: a run can be resumed.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bayesian_data import N_FOLDS, Table, table
from bayesian_table3 import words_of_lda

from common import arguments, previous, write
from gingham import BayesianCoClustering
from gingham.data import Alphabet, Sample
from gingham.models.bayesian.fit import Variational
from gingham.models.bayesian.predictive import infer, log_density

FIGURES = {"rises of held-out perplexity in ten steps": "*/steps of 1 %/test, held out: rises"}
SETS = ("ml_binary", "foodmart_binary", "jester_binary")
CONCENTRATIONS = {  # as validated inside the training part of fold 0
    "ml_binary": (0.5, 0.5), "foodmart_binary": (1.0, 2.0), "jester_binary": (0.5, 2.0)
}  # fmt: skip
STEPS = {"steps of 1 %": 0.01, "steps of 0.1 %": 0.001, "steps of 0.01 %": 0.0001}
CURVES = ("train and test", "test, leaky", "test, held out", "LDA, words held out")


def noise(t: Table, fold: int, seed: int) -> dict:
    """Perplexities of one fold along nested flips of test labels."""
    train, test = t.fold(fold)
    alpha = CONCENTRATIONS[t.name]
    model = BayesianCoClustering(t.n_clusters, t.family, concentration=alpha, alphabet=(0, 1), random_state=seed)
    model.fit(t.X[train], t.y[train])
    words = words_of_lda(t, train[t.y[train] == 1], seed)
    order = np.random.default_rng(seed + fold).permutation(len(test))
    rows = np.concatenate([train, test])
    alphabet = Alphabet.of((0, 1), given=True)
    both = Sample.of(list(t.X[rows].T), t.y[rows], alphabet=alphabet)
    out: dict = {}
    for name, step in STEPS.items():
        out[name] = {key: [] for key in CURVES}
        for k in range(11):
            y = t.y[rows].copy()
            flipped = len(train) + order[: round(k * step * len(test))]
            y[flipped] = 1 - y[flipped]
            noisy = replace(both, label_codes=alphabet.encode(y), labels=y.astype(float))
            logs = log_density(infer(model.beliefs_, noisy, Variational(max_iter=30)).posterior, noisy)
            found = (
                np.exp(-logs.mean()),
                np.exp(-logs[len(train) :].mean()),
                model.perplexity(t.X[test], y[len(train) :]),
                np.exp(-np.log(words(*t.X[test[y[len(train) :] == 1]].T)).mean()),
            )
            for key, value in zip(CURVES, found):
                out[name][key].append(float(value))
    return out


def over_folds(folds: dict) -> dict:
    """The mean curves, how many of their ten steps rise, and in how many folds the last lies above the first."""
    out: dict = {"folds": len(folds)}
    for name, step in STEPS.items():
        found: dict = {"share": [k * step for k in range(11)]}
        for key in CURVES:
            curves = np.array([fold[name][key] for fold in folds.values()])
            found[key] = curves.mean(axis=0).tolist()
            found[f"{key}: rises"] = int((np.diff(curves.mean(axis=0)) > 0).sum())
            found[f"{key}: folds that end higher"] = int((curves[:, -1] > curves[:, 0]).sum())
        out[name] = found
    return out


def draw_noise(results: dict, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(9, 4.6), layout="constrained", sharex="col")
    for (upper, lower), name in zip(axes.T, SETS):
        found = results[name]["steps of 1 %"]
        share = 100 * np.array(found["share"])
        for key in ("train and test", "test, held out"):
            upper.plot(share, found[key], marker="o", ms=3, label=key)
        lower.plot(share, found["LDA, words held out"], marker="o", ms=3, color="C2", label="LDA, words held out")
        upper.set_title(name.replace("_binary", ""), fontsize=10)
        lower.set_xlabel("flipped test entries, %")
    for ax in axes[:, 0]:
        ax.set_ylabel("perplexity")
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=90)


def signatures(model: BayesianCoClustering, t: Table) -> list[np.ndarray]:
    """What the labels of each item add up to in each cluster of the other side, unit length (P2 §5.2.2)."""
    found = []
    for axis in range(2):
        sums = np.zeros((len(model.assign_[axis]), model.assign_[1 - axis].shape[1]))
        at = [mode.encode(t.X[:, j]) for j, mode in enumerate(model.posterior_.structure.modes)]
        np.add.at(sums, at[axis], t.y[:, None] * model.assign_[1 - axis][at[1 - axis]])
        found.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-300))
    return found


def draw_blocks(t: Table, seed: int, folder: Path) -> dict:
    """Figures 9 and 10 on binarised MovieLens."""
    import matplotlib.pyplot as plt

    model = BayesianCoClustering(t.n_clusters, t.family, concentration=(1.0, 0.5), random_state=seed).fit(t.X, t.y)
    theta, mass = model.answers_, model.posterior_.mass
    rows, columns = np.argsort(-theta @ mass[1]), np.argsort(-mass[0] @ theta)
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    shown = ax.imshow(theta[rows][:, columns], cmap="Greys", vmin=0, vmax=1, aspect="auto")
    ax.set_xlabel("movie cluster"), ax.set_ylabel("user cluster")
    ax.set_xticks(range(len(columns)), columns + 1, fontsize=7), ax.set_yticks(range(len(rows)), rows + 1, fontsize=7)
    figure.colorbar(shown, label="P(rating above 3)")
    figure.savefig(folder / "bayesian_blocks.png", dpi=90)

    users, movies = model.embed()
    counts = [np.bincount(t.X[:, axis]) for axis in range(2)]
    signature_users, signature_movies = signatures(model, t)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=(1.6, 1, 1))
    likes = [np.bincount(t.X[:, axis], t.y) / counts[axis] for axis in range(2)]
    axes[0].scatter(*movies.T, c=likes[1], s=3 + counts[1] / 12, cmap="viridis", marker="s", alpha=0.7, lw=0)
    shown = axes[0].scatter(*users.T, c=likes[0], s=6, cmap="viridis", vmin=0, vmax=1, edgecolor="k", lw=0.2)
    axes[0].set_title("users (circles) and movies (squares)", fontsize=10)
    figure.colorbar(shown, ax=axes[0], label="share of ratings above 3")
    for ax, signature, many, name in (
        (axes[1], signature_users, counts[0], "user"),
        (axes[2], signature_movies, counts[1], "movie"),
    ):
        spread = np.argsort(-many)[:200]
        picked = spread[np.argsort(signature[spread] @ np.arange(signature.shape[1]))[[0, 66, 133, 199]]]
        for i, item in enumerate(picked):
            ax.bar(np.arange(signature.shape[1]) + 1, signature[item], bottom=-1.1 * i, color=f"C{i}")
            ax.text(signature.shape[1] + 1, -1.1 * i + 0.2, f"{name} {item}", fontsize=7)
        ax.set_yticks([]), ax.set_title(f"signatures of four {name}s", fontsize=10)
        ax.set_xlabel("movie cluster" if name == "user" else "user cluster")
    figure.savefig(folder / "bayesian_embedding.png", dpi=90)
    return {
        "elbo": model.lower_bound_,
        "smallest_parameter": theta.min(),
        "largest_parameter": theta.max(),
        "multiple correlation of coordinates with liking": {
            "users": multiple_correlation(users, likes[0]),
            "movies": multiple_correlation(movies[counts[1] > 20], likes[1][counts[1] > 20]),
        },
    }


def multiple_correlation(points: np.ndarray, values: np.ndarray) -> float:
    design = np.column_stack([points, np.ones(len(points))])
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.corrcoef(fitted, values)[0, 1])


def main() -> None:
    args = arguments(
        "P2 Figures 6-10.",
        "bayesian_figures",
        lambda parser: parser.add_argument("--only", nargs="*", default=(*SETS, "blocks")),
    )
    results = previous(args)
    for name in ("jester_binary",) if args.quick else args.only:
        if name == "blocks":
            results[name] = draw_blocks(table("ml_binary", args.data), args.seed, args.out.parent)
        else:
            t, folds = table(name, args.data), results.get(name, {}).get("by fold", {})
            for fold in range(1 if args.quick else N_FOLDS):
                if str(fold) not in folds:
                    folds[str(fold)] = noise(t, fold, args.seed)
                    results[name] = {**over_folds(folds), "concentration": CONCENTRATIONS[name], "by fold": folds}
                    write(args, {"folds": N_FOLDS, "steps": STEPS}, results)
                    print(name, fold, flush=True)
    write(args, {"folds": N_FOLDS, "steps": STEPS}, results)
    if all(name in results for name in SETS):
        draw_noise(results, args.out.with_name("bayesian_noise.png"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
