"""Held-out code length of word–document co-occurrences (classic3), one model and committees.

Two protocols. *tokens*: each token is held out with probability .2; the (document, word) pair of a held-out
token was often seen in training, which rewards memorising. *documents*: a fifth of the documents is held
out; half of their tokens fold the document in, the other half is coded, so memorised pairs are worth
nothing. Gains are nats a token below p(x)p(y). Sizes (and, on new documents, our pseudo-counts) are chosen on
training tokens alone: a tenth of them, or a fifth of the training documents with half of their tokens folded in; for
NMF too. A committee averages the predictions of eight seeds, for both.

``--only "tokens: ours"`` (``tokens: nmf_kl``, ``documents: ours, rows``, …) measures one part and keeps the others.
"""

from __future__ import annotations

import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, data_file, previous, write
from gingham import CoOccurrenceClustering
from gingham.summary.values import smoothed_lift

warnings.simplefilter("ignore", ConvergenceWarning)  # 100 steps are what the published figures used
FIGURES = {
    "gain on tokens (ours)": "tokens/ours/one_model",
    "gain on tokens (NMF)": "tokens/nmf_kl/one_model",
    "on new documents (ours)": "documents/ours, rows/one_model",
    "on new documents (NMF)": "documents/nmf_kl/one_model",
}
SIZES = (20, 40, 80, 120, 160, 240)
NMF_SIZES = (10, 20, 30, 40)
QUICK = {"beta": 0.5, "start": "profiles", "n_init": 1, "max_iter": 8, "tol": 5e-3}
MIX = 0.02  # share of independence in NMF's predictions


def thinned(
    counts: sparse.csr_array, share: float, rng: np.random.Generator
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Split counts token by token: each goes to the second part with probability ``share``."""
    second = counts.copy()
    second.data = rng.binomial(counts.data.astype(np.int64), share).astype(np.float64)
    first = sparse.csr_array(counts - second)
    for part in (first, second):
        part.eliminate_zeros()
    return first, second


def split(counts, share, rng):
    """Training and held-out tokens, without rows and columns that training never saw."""
    train, test = thinned(counts, share, rng)
    rows = np.asarray(train.sum(axis=1)).ravel() > 0
    columns = np.asarray(train.sum(axis=0)).ravel() > 0
    return sparse.csr_array(train[rows][:, columns]), sparse.csr_array(test[rows][:, columns]).tocoo()


def gain(lift, test):
    return float(test.data @ np.log(lift) / test.data.sum())


def our_lift(train, test, size, seed):
    model = CoOccurrenceClustering(
        size, beta=0.5, start="profiles", n_init=1, max_iter=8, tol=5e-3, random_state=seed
    ).fit(train)
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


def without(counts, held, rng):
    """Training documents, and what the held documents show and hide: half of their tokens each."""
    train = counts[~held]
    columns = np.asarray(train.sum(axis=0)).ravel() > 0
    train = sparse.csr_array(train[:, columns])
    seen, rest = thinned(sparse.csr_array(counts[held][:, columns]), 0.5, rng)
    keep = np.asarray(seen.sum(axis=1)).ravel() > 0
    return train, sparse.csr_array(seen[keep]), sparse.csr_array(rest[keep]).tocoo()


def our_topics(columns):
    """Word distributions of row clusters; with column clusters, a word's share within its own."""

    def topics(train, setting, seed):
        size, smoothing = setting
        share = np.asarray(train.sum(axis=0)).ravel() / train.sum()
        model = CoOccurrenceClustering(
            (size, size if columns else None),
            beta=0.5,
            start="profiles",
            n_init=1,
            max_iter=8,
            tol=5e-3,
            random_state=seed,
        ).fit(train)
        return smoothed_lift(model.blocks_, smoothing)[:, model.column_labels_] * share

    return topics


def nmf_topics(train, setting, seed):
    model = NMF(setting[0], solver="mu", beta_loss="kullback-leibler", init="random", max_iter=100, random_state=seed)
    return model.fit(train).components_


FAMILIES = {  # name: (topics of a training part, settings to choose from: size and, for ours, pseudo-counts a cell)
    "ours, rows": (our_topics(False), list(product((40, 80, 120, 160), (0.1, 0.03)))),
    "ours, blocks": (our_topics(True), list(product((20, 40, 80, 160), (1.0, 0.25)))),
    "nmf_kl": (nmf_topics, [(size,) for size in (20, 40, 60, 80)]),
}


def document_lift(topics, train, seen, rest):
    """p(word|document)/p(word) of the hidden tokens: a document is a mixture of topics, folded in by EM."""
    row, column = rest.coords
    share = np.asarray(train.sum(axis=0)).ravel() / train.sum()
    return fold_in(topics, seen, row, column) / share[column] * (1 - MIX) + MIX


def new_documents(name, counts, seed, members, few):
    """Gains on the hidden half of documents never seen in training; the setting is chosen on training documents."""
    rng = np.random.default_rng(seed)
    held = rng.permutation(counts.shape[0]) < counts.shape[0] // 5
    train, seen, rest = without(counts, held, rng)
    inner = rng.permutation(train.shape[0]) < train.shape[0] // 5
    part, part_seen, part_rest = without(train, inner, rng)
    topics, settings = FAMILIES[name]
    settings = settings[:1] if few else settings
    tried = {
        " ".join(f"{x:g}" for x in setting): gain(
            document_lift(topics(part, setting, seed), part, part_seen, part_rest), part_rest
        )
        for setting in settings
    }
    setting = settings[int(np.argmax(list(tried.values())))]
    lifts = [document_lift(topics(train, setting, 100 * seed + m), train, seen, rest) for m in range(members)]
    return {
        "tried_on_training_documents": tried,
        "setting": setting,
        "one_model": float(np.median([gain(lift, rest) for lift in lifts])),
        f"committee_of_{members}": gain(np.mean(lifts, axis=0), rest),
    }


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
    args = arguments(__doc__ or "", "peers_heldout_density", lambda p: p.add_argument("--only", default="all"))
    counts = sparse.csr_array(sparse.load_npz(data_file(args.data, "docs_classic3.npz")).astype(np.float64))
    results = previous(args)
    members, ours, theirs = (1, SIZES[:2], NMF_SIZES[:1]) if args.quick else (8, SIZES, NMF_SIZES)
    settings = {"beta": 0.5, "sizes": ours, "nmf_sizes": theirs, "members": members, "mix": MIX}
    wanted = [name for name in ("ours", "nmf_kl") if f"tokens: {name}" in args.only or args.only == "all"]
    if wanted:
        train, test = split(counts, 0.2, np.random.default_rng(args.seed))
        found = results.get("tokens", {})
        for name, lift, sizes in (("ours", our_lift, ours), ("nmf_kl", nmf_lift, theirs)):
            if name not in wanted:
                continue
            size, tried = choose(lift, train, sizes, args.seed)
            found[name] = {"tried": tried} | committee(lift, train, test, size, members, args.seed)
            results["tokens"] = found
            write(args, settings, results)
            print(name, found[name])
    for name in FAMILIES:
        if f"documents: {name}" in args.only or args.only == "all":
            results.setdefault("documents", {})[name] = new_documents(name, counts, args.seed, members, args.quick)
            print(name, results["documents"][name], flush=True)
            write(args, settings, results)


if __name__ == "__main__":
    main()
