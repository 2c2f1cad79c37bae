"""myFM on one split, in its own environment: reads a split, writes predictions and CPU seconds.

    python baskets_peers.py METHOD split.npz out.npz SEED [RANK]

Called by baskets.py, which writes the split: ids, labels, times, side tokens, windows of time. The rank is chosen among
8, 12 and 16 on a tenth of the training part, with a third of the samples, unless it is given; then all is fitted.
For cold starts, ``given`` are rows of the split whose pairs are known and whose labels are not.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy import sparse

RANKS = (8, 12, 16)
N_ITER, N_KEPT = 200, 150


def one_hot(codes, n):
    """A row for each code; −1 has none."""
    known = codes >= 0
    rows = np.flatnonzero(known)
    return sparse.csr_matrix((np.ones(len(rows)), (rows, codes[known])), shape=(len(codes), n))


def normalised(pairs, shape):
    """Who met what, each row of length one."""
    matrix = sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=shape)
    matrix.data[:] = 1.0
    size = np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1.0)
    return sparse.diags(size**-0.5) @ matrix


def tokens(split, name, n):
    pairs = split[f"{name}_tokens"]
    if not pairs.size:
        return sparse.csr_matrix((n, 0))
    return sparse.csr_matrix((np.ones(pairs.shape[1]), tuple(pairs)), shape=(n, int(split[f"{name}_n_tokens"])))


def features(split, method, rows):
    """What is known of every user and item, by groups: ids, who met what among the training rows, side information."""
    n_users, n_items = (int(n) for n in split["shape"])
    met = np.concatenate([rows, split["given"]]) if "given" in split else rows
    users, items = split["users"][met], split["items"][met]
    of_user, of_item = [sparse.identity(n_users, format="csr")], [sparse.identity(n_items, format="csr")]
    if "implicit" in method:
        of_user.append(normalised((users, items), (n_users, n_items)))
        of_item.append(normalised((items, users), (n_items, n_users)))
    if "side" in method:
        of_user.append(tokens(split, "user", n_users))
        of_item.append(tokens(split, "item", n_items))
    return of_user, of_item


def windows(split, method, rows, part):
    """Offsets of users in windows of time, one group a width."""
    found = []
    for codes in split["windows"] if "time" in method else ():
        known = np.unique(codes[rows])
        place = np.searchsorted(known, codes[part]).clip(max=len(known) - 1)
        found.append(one_hot(np.where(known[place] == codes[part], place, -1), len(known)))
    return found


def fitted(split, method, rows, asked, rank, n_iter, seed):
    """Mean and, for the ordinal model, P(y ≤ label) of the asked rows."""
    import myfm

    of_user, of_item = features(split, method, rows)
    every = {}
    for name, part in (("train", rows), ("asked", asked)):
        dated = windows(split, method, rows, part)
        own = sparse.hstack(dated, format="csr") if dated else sparse.csr_matrix((len(part), 0))
        relations = [
            myfm.RelationBlock(split["users"][part], sparse.hstack(of_user, format="csr")),
            myfm.RelationBlock(split["items"][part], sparse.hstack(of_item, format="csr")),
        ]
        every[name] = (own, relations)
        shapes = [block.shape[1] for block in (*dated, *of_user, *of_item)]
    labels, letters = split["labels"][rows], np.unique(split["labels"])
    common = {"n_iter": n_iter, "n_kept_samples": n_iter * N_KEPT // N_ITER, "group_shapes": shapes}
    own, relations = every["train"]
    asked_own, asked_relations = every["asked"]
    if "ordinal" in method:
        model = myfm.MyFMOrderedProbit(rank=rank, random_seed=seed)
        model.fit(own, np.searchsorted(letters, labels), X_rel=relations, **common)
        law = model.predict_proba(asked_own, X_rel=asked_relations)
        return law @ letters, np.cumsum(law, axis=1)[:, :-1]
    model = myfm.MyFMRegressor(rank=rank, random_seed=seed)
    model.fit(own, labels, X_rel=relations, **common)
    return np.asarray(model.predict(asked_own, X_rel=asked_relations)), np.zeros((len(asked), 0))


def main() -> None:
    warnings.simplefilter("ignore")
    method, source, target, seed, *given = sys.argv[1:]
    with np.load(source) as archive:
        split = {key: archive[key] for key in archive.files}
    train, test, labels = split["train"], split["test"], split["labels"]
    rng = np.random.default_rng(int(seed))
    held = rng.random(len(train)) < 0.1
    start = time.process_time()
    ranks = [int(rank) for rank in given if rank] or RANKS
    # A model with a law of labels of its own needs no guesses where the rank is known.
    searched = ranks if len(ranks) > 1 or "ordinal" not in method else ()
    guesses = {
        rank: fitted(split, method, train[~held], train[held], rank, N_ITER // 3, int(seed))[0] for rank in searched
    }
    rank = min(ranks, key=lambda rank: np.mean((labels[train[held]] - guesses[rank]) ** 2) if searched else 0)
    chosen = time.process_time()
    mean, below = fitted(split, method, train, test, rank, N_ITER, int(seed))
    done = time.process_time()
    from importlib.metadata import version

    np.savez(
        target,
        mean=mean,
        below=below,
        search_s=chosen - start,
        cpu_s=done - chosen,
        chosen=f"rank {rank}",
        held=train[held],
        held_mean=guesses.get(rank, np.zeros(0)),
        version=version("myfm"),
    )


if __name__ == "__main__":
    main()
