"""P2 Figures 4-5 and the training columns of Table 3: perplexity against the number of row clusters.

Binarised Jester (Figure 4) and MovieLens (Figure 5), 5 to 25 row clusters, as many column clusters as in the paper:
co-clustering (BCC), naive Bayes (BNB) and, on binary data, LDA over words. Memberships come from the training entries
only. Ten row clusters are measured on all ten folds, with the paper's paired t-test; other sizes on three. α and
pseudo-counts are those that Table 3's fold 0 chose inside its training part. Folds are kept: a run can be resumed.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from bayesian_data import N_FOLDS, Table, table
from bayesian_table3 import words_of_lda

from common import arguments, previous, write
from gingham import BayesianCoClustering

FIGURES = {"test perplexity, 10 row clusters": "*/10/bcc/test", "(naive Bayes)": "*/10/bnb/test"}
SETS = ("jester_binary", "ml", "ml_binary", "foodmart_binary")
SIZES, FEW_FOLDS = (5, 10, 15, 20, 25), 3
WHOLE = ("jester_binary", "ml")  # drawn in Figures 4 and 5; the others for Table 3 only


def one_fold(t: Table, n_rows: int, fold: int, chosen: dict, seed: int) -> dict:
    """Perplexity of the training and of the test entries of one fold under each model."""
    train, test = t.fold(fold)
    X, y, Xt, yt = t.X[train], t.y[train], t.X[test], t.y[test]
    common = {"family": t.family, "alphabet": t.alphabet, "random_state": seed + fold}
    shift = {"shift": t.shift}
    approximation, *alpha = chosen["bcc chosen"]
    pseudo, alone = chosen["bnb chosen"]
    start = "singular" if approximation == "per_entry" else "means"
    models = {
        "bcc": BayesianCoClustering(
            (n_rows, t.n_clusters[1]),
            approximation=approximation,
            start=start,
            concentration=tuple(alpha),
            family_params=shift,
            **common,
        ),
        "bnb": BayesianCoClustering(
            (n_rows, None),
            concentration=(alone, None),
            family_params={**shift, "pseudo": pseudo},
            max_iter=60,
            **common,
        ),
    }
    found = {}
    for name, model in models.items():
        model.fit(X, y)
        found[name] = {"train": model.perplexity(X, y), "test": model.perplexity(Xt, yt)}
    if t.family == "bernoulli" and (fold < FEW_FOLDS or n_rows == 10):
        words = words_of_lda(t, train[y == 1], seed, n_rows)
        found["lda"] = {
            part: float(np.exp(-np.log(words(*t.X[at[t.y[at] == 1]].T)).mean()))
            for part, at in (("train", train), ("test", test))
        }
    return found


def summary(folds: dict) -> dict:
    rows = list(folds.values())
    out: dict = {"folds": len(rows)}
    for name in rows[0]:
        of = [row[name] for row in rows if name in row]
        out[name] = {part: float(np.mean([row[part] for row in of])) for part in ("train", "test")}
        if name != "bcc" and len(of) > 2:
            ours = [row["bcc"]["test"] for row in rows if name in row]
            out[name]["paired t-test, p"] = float(stats.ttest_rel(ours, [row["test"] for row in of]).pvalue)
            out[name]["folds won by co-clustering"] = int(np.sum(np.array(ours) < [row["test"] for row in of]))
    return out


def draw(results: dict, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    both = ("bcc", "bnb")
    for ax, name, models in zip(axes, ("jester_binary", "jester_binary", "ml"), (both, ("lda",), both)):
        for model, colour in zip(models, ("C0", "C1") if len(models) > 1 else ("C2",)):
            for part, style in (("train", ":"), ("test", "-")):
                values = [results[name][str(k)][model][part] for k in SIZES]
                ax.plot(SIZES, values, style, color=colour, marker="o", ms=3, label=f"{model.upper()}, {part}")
        ax.set(xlabel="row clusters", title={"ml": "MovieLens"}.get(name, "Jester, binary"))
        ax.legend(fontsize=8)
    axes[0].set_ylabel("perplexity")
    figure.savefig(path, dpi=80)


def main() -> None:
    args = arguments(__doc__ or "", "bayesian_sizes")
    chosen = json.loads((Path(__file__).parents[1] / "results" / "bayesian_table3.json").read_text(encoding="utf-8"))
    results = previous(args)
    for name in SETS[:1] if args.quick else SETS:
        t = table(name, args.data)
        for size in (10,) if args.quick or name not in WHOLE else SIZES:
            cell = results.setdefault(name, {}).setdefault(str(size), {})
            folds = cell.setdefault("by fold", {})
            for fold in range(1 if args.quick else N_FOLDS if size == 10 else FEW_FOLDS):
                if str(fold) not in folds:
                    folds[str(fold)] = one_fold(t, size, fold, chosen["results"][name]["folds"]["0"], args.seed)
                    cell.update(summary(folds))
                    write(args, {"sizes": SIZES, "folds": N_FOLDS, "folds of other sizes": FEW_FOLDS}, results)
                    print(name, size, fold, folds[str(fold)], flush=True)
    if all(str(size) in results.get(name, {}) for name in WHOLE for size in SIZES):
        draw(results, args.out.with_suffix(".png"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
