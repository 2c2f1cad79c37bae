"""Two special cases of Bayesian co-clustering beside the programs and models that are made for them.

*Topics*: documents × tokens in one column cluster is latent Dirichlet allocation. Beside it scikit-learn's, at the same
numbers of topics and the same prior of the documents, on abstracts (CSTR): a fifth of the words of each document is
held out, and their perplexity given the other words is measured. *Nodes*: a graph with the same nodes in both columns
is the mixed-membership blockmodel. Beside it `GraphClustering` (each node in one cluster), rows and columns with
memberships of their own, and degrees alone, on the 600 busiest nodes of the e-mails within an institute: log loss and
area under the curve of a tenth of the pairs, held out.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.metrics import log_loss, roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, write

FIGURES = {
    "topics: perplexity": "topics/*/*/perplexity",
    "nodes: log loss": "nodes/*/log loss",
}
PRIOR, TOPICS = 0.1, (5, 10, 20)


def words(folder: Any, quick: bool) -> sparse.csr_array:
    z = load(folder, "docs_cstr.npz")
    counts = sparse.csr_array((z["data"], z["indices"], z["indptr"]), shape=z["shape"])
    return counts[:100] if quick else counts


def topics(counts: sparse.csr_array, seed: int, numbers: tuple[int, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    entries = counts.tocoo()
    documents, tokens = (np.repeat(c, entries.data.astype(int)) for c in entries.coords)
    held = rng.random(len(tokens)) < 0.2
    train = sparse.csr_array((np.ones((~held).sum()), (documents[~held], tokens[~held])), shape=counts.shape)
    alone = np.asarray(train.sum(axis=0)).ravel() + 0.1
    overall = float(np.exp(-np.log(alone / alone.sum())[tokens[held]].mean()))
    result: dict[str, Any] = {"tokens": len(tokens), "one distribution of words": {"all": {"perplexity": overall}}}
    for k in numbers:
        found = {}
        start = time.process_time()
        model = gg.BayesianCoClustering(
            (k, 1), "categorical", concentration=PRIOR, alphabet=range(counts.shape[1]), start="random",
            family_params={"pseudo": 50.0}, random_state=seed,
        )  # fmt: skip
        rows = np.column_stack([documents, np.zeros(len(tokens), int)])
        model.fit(rows[~held], tokens[~held])
        found["gingham"] = {
            "cpu_s": time.process_time() - start,
            "perplexity": model.perplexity(rows[held], tokens[held]),
        }
        start = time.process_time()
        lda = LatentDirichletAllocation(
            k, doc_topic_prior=PRIOR, learning_method="batch", max_iter=100, random_state=seed
        )
        shares = lda.fit(train).transform(train)
        law = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
        chance = np.einsum("ek,ke->e", shares[documents[held]], law[:, tokens[held]])
        found["scikit-learn"] = {
            "cpu_s": time.process_time() - start,
            "perplexity": float(np.exp(-np.log(chance).mean())),
        }
        result[f"{k} topics"] = found
        print(k, found, flush=True)
    return result


def nodes(folder: Any, seed: int, quick: bool) -> dict[str, Any]:
    z = load(folder, "graph_email_eu_core.npz")
    n, edges = int(z["n"]), z["edges"]
    table = np.zeros((n, n), dtype=bool)
    table[edges[:, 0], edges[:, 1]] = table[edges[:, 1], edges[:, 0]] = True
    busy = np.argsort(-table.sum(axis=1), kind="stable")[: 150 if quick else 600]
    table = table[np.ix_(busy, busy)]
    np.fill_diagonal(table, False)
    n = len(table)
    i, j = np.triu_indices(n, 1)
    y = table[i, j].astype(int)
    held = np.random.default_rng(seed).random(len(y)) < 0.1
    train = np.column_stack([i[~held], j[~held]])
    test = np.column_stack([i[held], j[held]])
    k = 10 if quick else 20
    chances, seconds = {}, {}
    start = time.process_time()
    both = np.concatenate([train, train[:, ::-1]])
    model = gg.BayesianCoClustering(k, "bernoulli", concentration=0.1, alphabet=(0, 1), max_iter=60, random_state=seed)
    model.fit(both, np.tile(y[~held], 2), same_items=True)
    chances["mixed memberships"] = model.predict(test)
    seconds["mixed memberships"] = time.process_time() - start
    start = time.process_time()
    two = clone(model).fit(both, np.tile(y[~held], 2))
    chances["rows and columns apart"] = two.predict(test)
    seconds["rows and columns apart"] = time.process_time() - start
    start = time.process_time()
    listed = [(int(a), int(b), float(w)) for (a, b), w in zip(train, y[~held])]
    hard = gg.GraphClustering(k, loss="log", alphabet=(0, 1), random_state=seed).fit(
        listed, pairs="listed", nodes=range(n)
    )
    chances["one cluster per node"] = hard.predict(test)
    seconds["one cluster per node"] = time.process_time() - start
    degree = (np.bincount(train.ravel(), np.repeat(y[~held], 2), n) + 1) / (np.bincount(train.ravel(), minlength=n) + 1)
    chances["degrees alone"] = np.minimum(degree[test[:, 0]] * degree[test[:, 1]] / degree.mean(), 1.0)
    return {
        name: {
            "log loss": float(log_loss(y[held], np.clip(p, 1e-6, 1 - 1e-6))), "AUC": float(roc_auc_score(y[held], p)),
            "cpu_s": seconds.get(name, 0.0),
        }
        for name, p in chances.items()
    }  # fmt: skip


def main() -> None:
    args = arguments(__doc__ or "", "bayesian_special_cases")
    results: dict[str, Any] = {"nodes": nodes(args.data, args.seed, args.quick)}
    print(results["nodes"], flush=True)
    results["topics"] = topics(words(args.data, args.quick), args.seed, TOPICS[:1] if args.quick else TOPICS)
    write(args, {"prior": PRIOR, "topics": TOPICS}, results)


if __name__ == "__main__":
    main()
