"""Which pairs to measure next: `GraphClustering.suggest_pairs` beside pairs at random, on latencies between 490 hosts.

A fifth of the pairs is set aside for testing. From 2 % of the others at random on, each round measures another 2 % of
them: those that the fitted graph suggests, or a random draw. Measured is the squared error on the test pairs, and how
large a random sample would have to be for the error that suggestions reach (by linear interpolation).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from latencies import similarities

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, write

FIGURES = {
    "test error, suggested": "mean/suggested/-1",
    "at random": "mean/at random/-1",
    "pairs at random for the same error": "random pairs for the same error/3",
}
CLUSTERS, STEP, ROUNDS = 12, 0.02, 6


def latencies(folder: Any) -> np.ndarray:
    table = load(folder, "planetlab490_rtt.npz")["median"].astype(float)
    table[~(table > 0)] = np.nan
    np.fill_diagonal(table, np.nan)
    return similarities(table)


def one_way(weights: np.ndarray, suggested: bool, rounds: int, seed: int) -> tuple[list[float], float]:
    """Test errors after each round, and the CPU seconds of the suggestions."""
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(np.triu(np.isfinite(weights), 1))
    pairs = pairs[rng.permutation(len(pairs))]
    test, pool = pairs[: len(pairs) // 5], pairs[len(pairs) // 5 :]
    free = np.zeros(weights.shape, dtype=bool)
    free[tuple(pool.T)] = True
    step = int(STEP * len(pool))
    known, errors, seconds = pool[:step], [], 0.0
    for number in range(rounds):
        free[tuple(known.T)] = False
        edges = [(int(i), int(j), float(weights[i, j])) for i, j in known]
        model = gg.GraphClustering(CLUSTERS, loss="quadratic", bounds=(0, 1), random_state=seed)
        model.fit(edges, pairs="listed", nodes=range(len(weights)))
        errors.append(float(np.mean((model.predict(test) - weights[tuple(test.T)]) ** 2)))
        if number == rounds - 1:
            break
        if suggested:
            start = time.process_time()
            asked = 2 * step
            while True:  # suggestions among the test pairs are passed over
                found = np.sort(model.suggest_pairs(min(asked, free.sum()))[0], axis=1)
                found = found[free[tuple(found.T)]][:step]
                if len(found) == step:
                    break
                asked *= 2
            seconds += time.process_time() - start
        else:
            left = np.argwhere(free)
            found = left[rng.choice(len(left), step, replace=False)]
        known = np.concatenate([known, found])
    return errors, seconds


def main() -> None:
    args = arguments(__doc__ or "", "graph_suggestions")
    weights = latencies(args.data)
    rounds, splits = (3, 1) if args.quick else (ROUNDS, 3)
    if args.quick:
        weights = weights[:150, :150]
    each: dict[str, list[list[float]]] = {"suggested": [], "at random": []}
    seconds = 0.0
    for split in range(splits):
        for name, errors in each.items():
            found, spent = one_way(weights, name == "suggested", rounds, args.seed + split)
            errors.append(found)
            seconds += spent
            print(split, name, np.round(found, 5), flush=True)
    mean = {name: np.mean(errors, axis=0).tolist() for name, errors in each.items()}
    better = [int(np.sum(np.array(each["suggested"])[:, r] < np.array(each["at random"])[:, r])) for r in range(rounds)]
    shares = STEP * np.arange(1, rounds + 1)
    falling = np.minimum.accumulate(mean["at random"])
    same = [float(np.interp(-error, -falling, shares)) for error in mean["suggested"]]
    results = {
        "shares of the pairs": shares.tolist(), "mean": mean, "splits": splits, "splits won by suggestions": better,
        "random pairs for the same error": same, "cpu_s of the suggestions": seconds / splits,
    }  # fmt: skip
    write(args, {"clusters": CLUSTERS, "step": STEP}, results)


if __name__ == "__main__":
    main()
