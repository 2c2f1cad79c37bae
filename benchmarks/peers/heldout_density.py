"""Held-out code length of word–document co-occurrences (classic3), one model and committees.

Two protocols. *tokens*: each token is held out with probability .2; the (document, word) pair of a held-out
token was often seen in training, which rewards memorising. *documents*: a fifth of the documents is held
out; half of their tokens fold the document in, the other half is coded, so memorised pairs are worth
nothing. Gains are nats a token below p(x)p(y). Sizes are chosen on training tokens alone, for NMF too.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, write
from gingham import CoOccurrenceClustering
from gingham.solvers.counts import smoothed_lift, thinned

warnings.simplefilter("ignore", ConvergenceWarning)  # 100 steps are what the published figures used
SIZES = (20, 40, 80, 120, 160, 240)
NMF_SIZES = (20, 30)
MIX = 0.02  # share of independence in NMF's predictions


def split(counts, share, rng):
    """Training and held-out tokens, without rows and columns that training never saw."""
    train, test = thinned(counts, share, rng)
    rows = np.asarray(train.sum(axis=1)).ravel() > 0
    columns = np.asarray(train.sum(axis=0)).ravel() > 0
    return sparse.csr_array(train[rows][:, columns]), sparse.csr_array(test[rows][:, columns]).tocoo()


def gain(lift, test):
    return float(test.data @ np.log(lift) / test.data.sum())


def our_lift(train, test, size, seed):
    model = CoOccurrenceClustering(size, beta=0.5, start="profiles", max_iter=8, tol=5e-3, random_state=seed).fit(train)
    row, column = test.coords
    return smoothed_lift(model.blocks_)[model.row_labels_[row], model.column_labels_[column]]


def nmf_lift(train, test, size, seed):
    model = NMF(size, solver="mu", beta_loss="kullback-leibler", init="random", max_iter=100, random_state=seed)
    left = model.fit_transform(train)
    row, column = test.coords
    share = np.asarray(train.sum(axis=0)).ravel() / train.sum()
    mass = np.maximum(left @ model.components_.sum(axis=1), 1e-300)
    p = np.einsum("er,er->e", left[row], model.components_.T[column]) / mass[row] / share[column]
    return (1 - MIX) * p + MIX


def choose(lift, train, sizes, seed):
    kept, held = split(train, 0.1, np.random.default_rng(seed + 100))
    gains = {size: gain(lift(kept, held, size, seed), held) for size in sizes}
    return max(gains, key=gains.get), gains


def committee(lift, train, test, size, n_members, seed):
    total, single, took = 0.0, [], []
    for member in range(n_members):
        start = time.process_time()
        one = lift(train, test, size, seed * 100 + member)
        took.append(time.process_time() - start)
        single.append(gain(one, test))
        total = total + one
    return {
        "size": size,
        "one_model": float(np.median(single)),
        f"committee_of_{n_members}": gain(total / n_members, test),
        "cpu_s_a_member": float(np.mean(took)),
    }


def new_documents(counts, seed, sizes, nmf_sizes):
    """Gains on the second half of the tokens of documents never seen in training."""
    rng = np.random.default_rng(seed)
    held = rng.permutation(counts.shape[0]) < counts.shape[0] // 5
    train = counts[~held]
    columns = np.asarray(train.sum(axis=0)).ravel() > 0
    train = sparse.csr_array(train[:, columns])
    seen, rest = thinned(sparse.csr_array(counts[held][:, columns]), 0.5, rng)
    keep = np.asarray(seen.sum(axis=1)).ravel() > 0
    seen, rest = sparse.csr_array(seen[keep]), sparse.csr_array(rest[keep]).tocoo()
    row, column = rest.coords
    share = np.asarray(train.sum(axis=0)).ravel() / train.sum()
    results = {"independent": 0.0, "ours": {}, "nmf_kl": {}}
    for size in sizes:
        for name, columns in (("ours", size), ("ours, columns by themselves", None)):
            model = CoOccurrenceClustering(
                (size, columns), beta=0.5, start="profiles", max_iter=8, tol=5e-3, random_state=seed
            ).fit(train)
            # A quarter of a pseudo-count a cell where every word is a column: most cells are empty there.
            lift = smoothed_lift(model.blocks_, 1.0 if columns else 0.25)
            # The document's own mixture of row clusters, by a few steps of expectation-maximisation.
            p = fold_in(lift[:, model.column_labels_] * share, seen, row, column) / share[column]
            results.setdefault(name, {})[size] = gain(p * (1 - MIX) + MIX, rest)
    for size in nmf_sizes:
        model = NMF(size, solver="mu", beta_loss="kullback-leibler", init="random", max_iter=100, random_state=seed)
        model.fit(train)
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        results["nmf_kl"][size] = gain(fold_in(topics, seen, row, column) / share[column] * (1 - MIX) + MIX, rest)
    return results


def fold_in(topics, seen, row, column, steps=30):
    """p(column|document) of documents as mixtures of given word distributions (rows of topics)."""
    topics = topics / topics.sum(axis=1, keepdims=True)
    weights = np.full((seen.shape[0], len(topics)), 1 / len(topics))
    entries = seen.tocoo()
    r, c = entries.coords
    starts = sparse.csr_array((np.ones(len(r)), (r, np.arange(len(r)))), shape=(seen.shape[0], len(r)))
    for _ in range(steps):
        joint = weights[r] * topics[:, c].T
        joint *= (entries.data / np.maximum(joint.sum(axis=1), 1e-300))[:, None]
        weights = starts @ joint
        weights = (weights + 0.05) / (weights + 0.05).sum(axis=1, keepdims=True)
    return np.einsum("er,er->e", weights[row], topics[:, column].T)


def main() -> None:
    args = arguments(
        __doc__ or "", "peers_heldout_density", lambda p: p.add_argument("--only", default="ours,nmf_kl,documents")
    )
    counts = sparse.csr_array(sparse.load_npz(data_file(args.data, "docs_classic3.npz")).astype(np.float64))
    results = json.loads(args.out.read_text())["results"] if args.out.exists() else {}
    members = 2 if args.quick else 8
    settings = {"beta": 0.5, "sizes": SIZES, "nmf_sizes": NMF_SIZES, "members": members, "nmf_mix": MIX}
    if "ours" in args.only or "nmf_kl" in args.only:
        train, test = split(counts, 0.2, np.random.default_rng(args.seed))
        found = results.get("tokens", {})
        for name, lift, sizes in (("ours", our_lift, SIZES), ("nmf_kl", nmf_lift, NMF_SIZES)):
            if name not in args.only:
                continue
            size, tried = choose(lift, train, sizes, args.seed)
            found[name] = {"tried": tried} | committee(lift, train, test, size, members, args.seed)
            results["tokens"] = found
            write(args, settings, results)
            print(name, found[name])
    if "documents" in args.only:
        results["documents"] = new_documents(counts, args.seed, (20, 40, 80), (10, 20, 30))
        print(results["documents"])
        write(args, settings, results)


if __name__ == "__main__":
    main()
