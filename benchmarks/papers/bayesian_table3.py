"""P2 Table 3: perplexity of BCC, Bayesian naive Bayes (BNB) and LDA by ten-fold cross validation.

Held-out predictive perplexity exp(−mean ln p(y|x)) with memberships from the training entries only, lower
is better; a discrete model cannot be below 1. Everything that is chosen (α of each mode, the approximation,
BNB's pseudo-counts, the additive model's ridge) is chosen on 5 % of each training part. Columns that end
in ``leaky`` are the paper's protocol, in which inference also reads the test labels.

Fold 0 tries every candidate and also runs the committee, LDA and the paper's own settings; the other folds keep the
approximation and the pseudo-count that fold 0's training part chose, the ridges next to its choice, and choose α anew.
Each (data set, fold) is a piece of its own: finished pieces are kept, so the run can be stopped and resumed.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.decomposition import LatentDirichletAllocation

sys.path.insert(0, str(Path(__file__).parents[1]))

from bayesian_data import N_FOLDS, RIDGES, SETS, Table, additive_log_density, global_log_density, table

from common import arguments, previous, write
from gingham import BayesianCoClustering

LONG = "ten folds of six tables take over a quarter of an hour"
FIGURES = {
    "held-out perplexity (co-clustering)": "*/summary/bcc/mean",
    "(naive Bayes)": "*/summary/bnb/mean",
    "(additive)": "*/summary/additive/mean",
}
PAPER_TEST = {  # as printed: LDA, BNB, BCC on the test set
    "ml_binary": (1557.0, 3.93, 2.86), "ml": (None, 38.24, 1.03), "jester_binary": (98.9, 4.02, 2.55),
    "jester": (None, 39.94, 24.82), "foodmart_binary": (6542.9, 6.48, 2.11), "foodmart": (None, 4.66, 4.60),
}  # fmt: skip
BNB_PSEUDO = (1.0, 5.0, 20.0)
MEMBERS = 5


def perplexity(logs: np.ndarray) -> float:
    return float(np.exp(-logs.mean()))


def validated(models: list[BayesianCoClustering], X, y) -> tuple[BayesianCoClustering, list[BayesianCoClustering]]:
    """All models fitted (same held-out entries for all), and the one with the lowest validation perplexity."""
    fitted = [model.fit(X, y) for model in models]
    return min(fitted, key=lambda m: min(m.validation_.values())), fitted


def piece(t: Table, k: int, seed: int, first: dict | None) -> dict:
    """Every model on one fold; fold 0 has run first and says which few candidates the others need."""
    train, test = t.fold(k)
    X, y, Xt, yt = t.X[train], t.y[train], t.X[test], t.y[test]
    common = {"family": t.family, "alphabet": t.alphabet, "family_params": {"shift": t.shift}, "random_state": seed + k}
    found: dict = {"global": perplexity(global_log_density(t, train, test))}
    seconds: dict = {}

    def clocked(name, call):
        began = time.process_time()
        value = call()
        seconds[name] = round(time.process_time() - began, 2)
        return value

    ridges, pseudos, approximations = RIDGES, BNB_PSEUDO, ("per_entry", "shared")
    if first is not None:
        at = RIDGES.index(first["additive chosen"][0])
        ridges = RIDGES[max(at - 1, 0) : at + 2]
        pseudos, approximations = (first["bnb chosen"][0],), (first["bcc chosen"][0],)

    rng = np.random.default_rng(seed + k)
    logs, chosen = clocked("additive", lambda: additive_log_density(t, train, test, rng, ridges))
    found["additive"], found["additive chosen"] = perplexity(logs), chosen

    candidates = [
        BayesianCoClustering(
            t.n_clusters, approximation=name, start="singular" if name == "per_entry" else "means", **common
        )
        for name in approximations
    ]
    best, fitted = clocked("bcc", lambda: validated(candidates, X, y))
    for name, model in zip(approximations, fitted):
        found[f"bcc {name}"] = model.perplexity(Xt, yt)
    found["bcc"] = best.perplexity(Xt, yt)
    alpha = tuple(float(a[0]) for a in best.beliefs_.alpha)
    found["bcc chosen"] = [best.approximation, *alpha]
    found["bcc leaky"] = best.perplexity(Xt, yt, protocol="paper")

    naive = [
        BayesianCoClustering(
            (t.n_clusters[0], None), max_iter=60, **{**common, "family_params": {"shift": t.shift, "pseudo": pseudo}}
        )
        for pseudo in pseudos
    ]
    plain, _ = clocked("bnb", lambda: validated(naive, X, y))
    found["bnb"], found["bnb leaky"] = plain.perplexity(Xt, yt), plain.perplexity(Xt, yt, protocol="paper")
    found["bnb chosen"] = [plain.family_params["pseudo"], float(plain.beliefs_.alpha[0][0])]
    if first is not None:
        return {**found, "seconds": seconds}

    found["bcc leaky bound"] = best.perplexity(Xt, yt, protocol="paper-bound")
    logs = clocked("committee", lambda: committee(best, alpha, X, y, Xt, yt, 100 * (seed + k)))
    found["bcc committee"] = perplexity(logs)
    as_printed = BayesianCoClustering(
        t.n_clusters, approximation="shared", concentration="learn", start="random", **common
    )
    clocked("paper settings", lambda: as_printed.fit(X, y))
    found["paper settings"] = as_printed.perplexity(Xt, yt)
    found["paper settings leaky"] = as_printed.perplexity(Xt, yt, protocol="paper")
    if t.family == "bernoulli":
        found["lda tokens"] = clocked("lda", lambda: lda(t, train, test, seed))
    return {**found, "seconds": seconds}


def committee(model: BayesianCoClustering, alpha, X, y, Xt, yt, seed: int) -> np.ndarray:
    """Log of the average density of several fits from different starts."""
    members = []
    for i in range(MEMBERS):
        params = {**model.get_params(), "concentration": alpha, "random_state": seed + i, "max_iter": 60}
        if model.approximation == "shared":
            # k-means on one number has few different outcomes, so a shared committee starts in several ways
            params["start"] = ("means", "singular", "spectral", "singular", "spectral")[i]
        members.append(BayesianCoClustering(**params).fit(X, y).log_likelihood(Xt, yt))
    return logsumexp(members, axis=0) - np.log(MEMBERS)


def words_of_lda(t: Table, ones: np.ndarray, seed: int, n_topics: int = 10):
    """The probability of a column as the next word of a row, under LDA on these entries as words."""
    counts = sparse.coo_array((np.ones(len(ones)), tuple(t.X[ones].T)), shape=t.shape).tocsr()
    model = LatentDirichletAllocation(n_components=n_topics, max_iter=10, random_state=seed)
    topics = model.fit_transform(counts)
    words = model.components_ / model.components_.sum(1, keepdims=True)
    return lambda rows, columns: (topics[rows] * words[:, columns].T).sum(1)


def lda(t: Table, train: np.ndarray, test: np.ndarray, seed: int) -> float:
    """LDA on the entries of value 1: perplexity of held-out words."""
    words = words_of_lda(t, train[t.y[train] == 1], seed)
    return float(np.exp(-np.log(words(*t.X[test[t.y[test] == 1]].T)).mean()))


def summary(folds: dict) -> dict:
    """Means, standard errors and paired differences of what was measured so far."""
    rows = list(folds.values())
    out: dict = {"folds": len(rows)}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row[name] for row in rows if name in row]
        if isinstance(values[0], float):
            spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
            out[name] = {"mean": np.mean(values), "standard_error": spread, "folds": len(values)}
    for other in ("additive", "bnb"):
        gap = [row["bcc"] - row[other] for row in rows]
        spread = np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else None
        out[f"bcc minus {other}"] = {
            "mean": np.mean(gap), "standard_error": spread, "folds_won": int(np.sum(np.array(gap) < 0))
        }  # fmt: skip
    return out


def rates(t: Table) -> dict:
    """How much the true rates of rows and of columns differ: spread of their means beyond sampling noise."""
    counts = t.y - t.shift
    out = {"mean": counts.mean(), "variance": counts.var()}
    for axis, name in enumerate(("rows", "columns")):
        n = np.bincount(t.X[:, axis])
        means = np.bincount(t.X[:, axis], counts) / n
        excess = np.average((means - counts.mean()) ** 2, weights=n) - counts.var() * len(n) / len(counts)
        out[f"standard deviation of rates of {name}"] = np.sqrt(max(excess, 0.0))
    return out


def main() -> None:
    def options(parser):
        parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
        parser.add_argument("--folds", nargs="*", type=int, default=range(N_FOLDS))
        parser.add_argument("--budget", type=float, default=np.inf, help="begin no piece after so many seconds")

    args = arguments("P2 Table 3: ten-fold perplexities.", "bayesian_table3", options)
    began = time.perf_counter()
    settings = {
        "members": MEMBERS,
        "bnb_pseudo": BNB_PSEUDO,
        "validation_share": 0.05,
        "paper_test": PAPER_TEST,
    }
    for k in (0,) if args.quick else args.folds:
        for name in ("jester_binary",) if args.quick else args.sets:
            if str(k) in previous(args).get(name, {"folds": {}})["folds"] or time.perf_counter() - began > args.budget:
                continue
            first = previous(args).get(name, {"folds": {}})["folds"].get("0") if k else None
            entries = table(name, args.data)
            found = piece(entries.part(0.2) if args.quick else entries, k, args.seed, first)
            results = previous(args)  # read again: another process may have written its pieces meanwhile
            folds = results.setdefault(name, {"folds": {}})["folds"]
            folds[str(k)] = found
            results[name]["summary"] = summary(folds)
            if name == "foodmart":
                results[name]["rates"] = rates(table(name, args.data))
            write(args, settings, results)
            print(name, k, found, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
