"""What people see beside what was fitted: planted checkerboards, votes of the US Senate, graphs with known groups.

Planted: 4 × 4 checkerboards of 80 × 60 items, half of the entries seen, with noise; sizes given and found; the adjusted
Rand index with the truth, of `labels_` and of what is shown. Senate (1997–2021): a random tenth of the votes set aside,
`CoClusteringClassifier` with nothing set; error and log loss, agreement of the groups of members with their party, and
how large the share of yeas is in every block that is shown. Graphs (largest component, undirected): `GraphClustering`
with nothing set, five seeds; the log loss of a random tenth of all pairs that the fit took for absent, and of fits of
all pairs the agreement of the clusters and of the groups shown with the known ones. Planted graphs: those of
`peers/graphs_planted.py`, nothing set, beside what that script measured with the number of clusters found.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score, log_loss

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from graphs_planted import KINDS

import gingham as gg
from common import RESULTS, arguments, data_file, load, previous, write
from gingham.datasets import planted_graph

SEEDS = 20  # of planted checkerboards
GRAPHS = ("email_eu_core", "polblogs")
GRAPH_SEEDS = 5
PLANTED_GRAPHS = 10  # of each kind, two seeds each
PARTIES = {100: "Democrats", 200: "Republicans"}
FIGURES = {
    "planted, ARI of what is shown less that of labels_": "planted/*/largest difference",
    "Senate, error and log loss": "senate/held out/*",
    "graphs, nats per held-out pair": "graphs/*/held-out log loss",
    "planted graphs, least ARI": "planted graphs/*/ari, least",
    "ARI of labels_": "graphs/*/ari of labels_",
    "ARI of what is shown": "graphs/*/ari of what is shown",
}


def planted(n_seeds: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, sizes in (("sizes given", (4, 4)), ("sizes found", "auto")):
        own, shown, said = [], [], []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            truth = rng.integers(0, 4, 80), rng.integers(0, 4, 60)
            means = rng.permutation(np.repeat([1.0, 2.0, 4.0, 5.0], 4)).reshape(4, 4)
            X = np.argwhere(rng.random((80, 60)) < 0.5)
            y = means[truth[0][X[:, 0]], truth[1][X[:, 1]]] + 0.5 * rng.normal(size=len(X))
            model = gg.CoClusteringRegressor(sizes, loss="quadratic", random_state=seed).fit(X, y)
            own += [adjusted_rand_score(a, b) for a, b in zip(truth, model.labels_)]
            shown += [adjusted_rand_score(a, b) for a, b in zip(truth, model.summary_.labels_at())]
            said.append(" × ".join(map(str, model.summary_.size)))
        found[name] = {
            "seeds": n_seeds,
            "ari of labels_, mean": np.mean(own),
            "ari of what is shown, mean": np.mean(shown),
            "sides where both are equal": int(np.isclose(own, shown).sum()),
            "sides": len(own),
            "largest difference": float(np.abs(np.subtract(shown, own)).max()),
            "sizes shown": {size: said.count(size) for size in sorted(set(said))},
        }
    return found


def parties(folder: str | None, members: np.ndarray) -> np.ndarray:
    with gzip.open(data_file(folder, "senate105_116_members.csv.gz")) as stream:
        table = pl.read_csv(stream.read())
    last = dict(zip(table["icpsr"].to_list(), table["party_code"].to_list()))
    return np.array([PARTIES.get(last.get(member), "others") for member in members.tolist()])


def senate(folder: str | None, seed: int) -> dict[str, object]:
    data = load(folder, "senate105_116.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(np.int64)
    aside = np.random.default_rng(seed).random(len(y)) < 0.1
    began = time.process_time()
    model = gg.CoClusteringClassifier(random_state=seed).fit(X[~aside], y[~aside])
    seconds = time.process_time() - began
    chances = model.predict_proba(X[aside])
    party = parties(folder, data["icpsr"])[np.asarray(model.items_[0])]
    summary = model.summary_
    people, votes = model.summary_.labels_at()
    near = [int(model.items_[0][i]) for i in range(len(people))]
    group_of, vote_of = np.zeros(data["shape"][0], int), np.full(data["shape"][1], -1)
    group_of[near], vote_of[np.asarray(model.items_[1])] = people, votes
    blocks = [
        [float(y[(group_of[X[:, 0]] == a) & (vote_of[X[:, 1]] == b)].mean()) for b in range(summary.size[1])]
        for a in range(summary.size[0])
    ]
    return {
        "fine clusters": list(model.n_clusters_),
        "cpu_s": round(seconds, 1),
        "held out": {
            "error": float((model.classes_[chances.argmax(axis=1)] != y[aside]).mean()),
            "log loss": log_loss(y[aside], chances, labels=model.classes_),
        },
        "log loss of the share of yeas": log_loss(y[aside], np.full(aside.sum(), y[~aside].mean())),
        "reported": summary.errors.scores,
        "reported in": summary.errors.unit,
        "size": list(summary.size),
        "why": summary.why,
        "ari of labels_ with party": adjusted_rand_score(party, model.labels_[0]),
        "ari of what is shown with party": adjusted_rand_score(party, people),
        "members of each group": [
            {str(name): int((party[people == a] == name).sum()) for name in np.unique(party)}
            for a in range(summary.size[0])
        ],
        "votes of each group": np.bincount(votes, minlength=summary.size[1]),
        "share of yeas, groups of members × of votes": blocks,
    }


def graph(folder: str | None, name: str, seed: int, n_seeds: int) -> dict[str, object]:
    data = load(folder, f"graph_{name}.npz")
    n, ends = int(data["n"]), data["edges"][data["edges"][:, 0] != data["edges"][:, 1]]
    matrix = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    matrix = sparse.csr_array(((matrix + matrix.T) > 0).astype(float))
    part = connected_components(matrix)[1]
    kept = np.flatnonzero(part == np.bincount(part).argmax())
    matrix, known = matrix[kept][:, kept].toarray(), data["labels"][kept]
    own, shown, sizes, fine, choices, losses = [], [], [], [], [], []
    for number in range(seed, seed + n_seeds):
        pairs = np.argwhere(np.triu(np.random.default_rng(number).random((len(kept), len(kept))) < 0.1, 1))
        seen = matrix.copy()
        seen[pairs[:, 0], pairs[:, 1]] = seen[pairs[:, 1], pairs[:, 0]] = 0.0
        model = gg.GraphClustering(random_state=number).fit(sparse.csr_array(seen))
        # Nine tenths of all pairs had the chance to be joined.
        chance = np.clip(model.predict(pairs) / 0.9, 1e-9, 1 - 1e-9)
        losses.append(-np.where(matrix[pairs[:, 0], pairs[:, 1]] > 0, np.log(chance), np.log1p(-chance)).mean())
        choices.append(str(model.degree_choice_))
        whole = gg.GraphClustering(random_state=number).fit(sparse.csr_array(matrix))
        own.append(adjusted_rand_score(known, whole.labels_))
        shown.append(adjusted_rand_score(known, whole.summary_.labels_at()[0]))
        sizes.append(whole.summary_.size[0])
        fine.append(whole.n_clusters_)
    return {
        "nodes": len(kept),
        "choices": choices,
        "held-out log losses": losses,
        "held-out log loss": np.mean(losses),
        "clusters": fine,
        "ari of labels_": own,
        "groups shown": sizes,
        "ari of what is shown": shown,
    }


def planted_graphs(kind: str, n_graphs: int) -> dict[str, object]:
    settings, ari, right, choices = KINDS[kind], [], 0, []
    for at in range(n_graphs):
        graph = planted_graph(seed=at, **settings)
        for seed in (0, 1):
            model = gg.GraphClustering(random_state=seed).fit(graph.adjacency)
            ari.append(adjusted_rand_score(graph.labels, model.labels_))
            right += model.n_clusters_ == settings["k"]
            choices.append(str(model.degree_choice_).split(":")[0])
    stored = json.loads((RESULTS / "peers_graphs_planted.json").read_text())["results"][kind]["gingham, k found"]
    return {
        "runs": len(ari),
        "ari, least": min(ari),
        "ari, median": np.median(ari),
        "right numbers of clusters": int(right),
        "forms chosen": {form: choices.count(form) for form in sorted(set(choices))},
        "with the form stated": {"ari, least": stored["ari_min"], "ari, median": stored["ari_median"]},
    }


def main() -> None:
    args = arguments(__doc__, "summary_what_is_shown")
    results = {} if args.quick else previous(args)
    n_seeds = 2 if args.quick else SEEDS
    settings = {"seeds of planted checkerboards": n_seeds, "seeds of graphs": GRAPH_SEEDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GinghamWarning)
        for name in GRAPHS:
            if name not in results.setdefault("graphs", {}):
                results["graphs"][name] = graph(args.data, name, args.seed, 1 if args.quick else GRAPH_SEEDS)
                print(name, results["graphs"][name], flush=True)
                write(args, settings=settings, results=results)
        for kind in KINDS:
            if kind not in results.setdefault("planted graphs", {}):
                results["planted graphs"][kind] = planted_graphs(kind, 1 if args.quick else PLANTED_GRAPHS)
                print(kind, results["planted graphs"][kind], flush=True)
                write(args, settings=settings, results=results)
        if "senate" not in results and not args.quick:
            results["senate"] = senate(args.data, args.seed)
            print("senate", results["senate"], flush=True)
            write(args, settings=settings, results=results)
        if "planted" not in results:
            results["planted"] = planted(n_seeds)
            print("planted", results["planted"], flush=True)
            write(args, settings=settings, results=results)


if __name__ == "__main__":
    main()
