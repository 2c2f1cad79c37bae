"""What `gingham fit ratings.csv` should fit with nothing set: candidates beside averages, within training data.

Ratings of u1's training part (MovieLens-100K) and of Jester; a tenth of them, drawn at random, is set aside to judge.
Candidates: one checkerboard (P0's model, `--model coclustering`), the same of what the averages of both sides leave
over, and layers of checkerboards with offsets (`--model layered`), fast and by default.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, previous, write
from gingham.summary.make_summary import averages
from gingham.summary.values import Relation

FIGURES = {"root mean square error, by data and candidate": "*/*/rmse"}


def cpu() -> float:
    """CPU seconds of this process and of those it has waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def sets(folder: str | None, quick: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    data = load(folder, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(np.float64)
    base = data["u1_base_idx"][:: 10 if quick else 1]
    found = {"movielens-100k, u1": (X[base], y[base])}
    if not quick:
        jester = load(folder, "jester1.npz")
        people = jester["rows"] < 1500
        found["jester, 1,500 people"] = (
            np.column_stack([jester["rows"], jester["cols"]])[people], jester["vals"][people].astype(np.float64),
        )  # fmt: skip
    return found


def both_averages(X: np.ndarray, y: np.ndarray, seen: np.ndarray) -> np.ndarray:
    relation = Relation((0, 1), (X[:, 0], X[:, 1]), "difference", y)
    return averages(relation, tuple(X.max(axis=0) + 1), seen)


def candidates(X: np.ndarray, y: np.ndarray, seen: np.ndarray, seed: int) -> dict[str, Callable[[], np.ndarray]]:
    def predicted(model: object, labels: np.ndarray) -> np.ndarray:
        return model.fit(X[seen], labels[seen]).predict(X[~seen])

    def beyond() -> np.ndarray:
        said = both_averages(X, y, seen)
        return said[~seen] + predicted(gg.CoClusteringRegressor(random_state=seed), y - said)

    layered = gg.LayeredCoClusteringRegressor
    return {
        "one constant": lambda: np.full((~seen).sum(), y[seen].mean()),
        "averages of both sides": lambda: both_averages(X, y, seen)[~seen],
        "one checkerboard": lambda: predicted(gg.CoClusteringRegressor(random_state=seed), y),
        "averages, then one checkerboard": beyond,
        "layers, fast": lambda: predicted(layered(effort="fast", random_state=seed), y),
        "layers": lambda: predicted(layered(random_state=seed), y),
    }


def main() -> None:
    args = arguments(__doc__, name="default_rating_model")
    results = {} if args.quick else previous(args)
    for name, (X, y) in sets(args.data, args.quick).items():
        seen = np.random.default_rng(args.seed).random(len(y)) >= 0.1
        found = results.setdefault(name, {})
        for candidate, predict in candidates(X, y, seen, args.seed).items():
            if candidate in found:
                continue
            began = cpu()
            miss = predict() - y[~seen]
            found[candidate] = {"rmse": round(float(np.sqrt(np.mean(miss**2))), 4), "cpu_s": round(cpu() - began, 1)}
            print(name, candidate, found[candidate], flush=True)
            write(args, settings={"set aside": 0.1}, results=results)


if __name__ == "__main__":
    main()
