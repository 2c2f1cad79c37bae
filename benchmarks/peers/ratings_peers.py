"""One peer on one split, in the peers' own environment: reads a split, writes predictions and seconds.

    python ratings_peers.py METHOD split.npz out.npz SEED

``split.npz`` has train_users, train_items, train_labels, test_users, test_items. Called by ratings.py.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd


def lenskit_item_knn(train, test, seed):
    from lenskit.batch import predict
    from lenskit.data import from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import predict_pipeline

    data = from_interactions_df(pd.DataFrame({"user_id": train[0], "item_id": train[1], "rating": train[2]}))
    pipeline = predict_pipeline(ItemKNNScorer(k=20, feedback="explicit"))
    start = time.process_time()
    pipeline.train(data)
    fitted = time.process_time()
    frame = pd.DataFrame({"user_id": test[0], "item_id": test[1]})
    # A name that survives the merge with the scores; rows come back grouped by user.
    result = predict(pipeline, frame, n_jobs=1).to_df()
    scores = frame.merge(result[["user_id", "item_id", "score"]], how="left", on=["user_id", "item_id"])["score"]
    done = time.process_time()
    return scores.fillna(float(np.mean(train[2]))).to_numpy(), fitted - start, done - fitted


def surprise(make):
    def run(train, test, seed):
        from surprise import Dataset, Reader

        frame = pd.DataFrame({"u": train[0], "i": train[1], "r": train[2]})
        known = Dataset.load_from_df(frame, Reader(rating_scale=(train[2].min(), train[2].max()))).build_full_trainset()
        model = make(seed)
        start = time.process_time()
        model.fit(known)
        fitted = time.process_time()
        found = [model.predict(u, i).est for u, i in zip(test[0].tolist(), test[1].tolist())]
        return np.array(found), fitted - start, time.process_time() - fitted

    return run


def _surprise(name, **settings):
    def make(seed):
        import surprise as library

        seeded = {} if name in ("KNNBaseline", "BaselineOnly") else {"random_state": seed}
        return getattr(library, name)(verbose=False, **settings, **seeded)

    return surprise(make)


METHODS = {
    "LensKit item-kNN (20 neighbours)": lenskit_item_knn,
    "Surprise SVD (100 factors, 60 epochs, reg .1)": _surprise("SVD", n_factors=100, n_epochs=60, reg_all=0.1),
    "Surprise SVD (defaults)": _surprise("SVD"),
    "Surprise SVD++ (defaults)": _surprise("SVDpp"),
    "Surprise CoClustering 3×3 (defaults)": _surprise("CoClustering"),
    "Surprise CoClustering 13×6": _surprise("CoClustering", n_cltr_u=13, n_cltr_i=6),
    "Surprise item-kNN baseline": _surprise(
        "KNNBaseline", sim_options={"name": "pearson_baseline", "user_based": False}
    ),
}


def main() -> None:
    method, source, target, seed = sys.argv[1:]
    with np.load(source) as split:
        train = tuple(split[k] for k in ("train_users", "train_items", "train_labels"))
        test = tuple(split[k] for k in ("test_users", "test_items"))
    np.random.seed(int(seed))
    predictions, fit_s, predict_s = METHODS[method](train, test, int(seed))
    package = "lenskit" if method.startswith("LensKit") else "scikit-surprise"
    np.savez(target, predictions=predictions, fit_s=fit_s, predict_s=predict_s, version=version(package))


if __name__ == "__main__":
    main()
