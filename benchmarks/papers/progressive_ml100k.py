"""Progressive validation on MovieLens-100K: certificate beside test loss, on splits that nobody had looked at.

Four fifths of the ratings, drawn at random, go through ``certify_progressive``; the last fifth is the test set of
exactly the predictor that is returned (the members' mean). 13 × 6 clusters at β = 1 by their medians and means, as they
stand and with references, whose plan is that of the layers (``peers/baskets_certified.py`` has these). Beside them the
certificate in sample, and a fifth of the same ratings held out, by betting. None of these was chosen by looking at the
splits 101 to 103. Each certificate holds by itself: whoever claims the lowest of them counts them (candidates=).

    python benchmarks/papers/progressive_ml100k.py --data FOLDER
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from gingham import CoClusteringRegressor, GinghamWarning, certify, certify_predictions, certify_progressive

FIGURES = {
    "13 × 6, certificate": "mean/13 × 6, median/certificate",
    "test": "mean/13 × 6, median/test",
    "with references": "mean/13 × 6, median, references/certificate",
    "its test": "mean/13 × 6, median, references/test",
}
SEEDS = (101, 102, 103)
STARS = (1, 2, 3, 4, 5)
DELTA = 0.05
REFERENCES = {"warm_up": 0.85, "blocks": 1, "references": 5}


def grid(**options: object) -> CoClusteringRegressor:
    return CoClusteringRegressor((13, 6), beta=1.0, alphabet=STARS, start="means", random_state=0, **options)


def progressive(
    model: object, rule: str | None, train: tuple, test: tuple, seed: int, **options: float
) -> dict[str, float]:
    """The certificate, and the test loss of the members' mean that it covers."""
    begin = time.perf_counter()
    certificate = certify_progressive(
        model, *train, delta=DELTA, loss="absolute", rule=rule, random_state=seed, **options
    )
    predicted = certificate.model.predict(test[0])
    loss = float(np.abs(predicted - test[1]).mean())
    members = [np.abs(m.predict(test[0], **({} if rule is None else {"rule": rule})) - test[1]).mean()
               for m in certificate.model.members_]  # fmt: skip
    return {
        "certificate": certificate.value,
        "test": loss,
        "above test": certificate.value / loss - 1,
        "drawn member's test": float(certificate.model.shares_ @ members),
        "above drawn member's test": certificate.value / float(certificate.model.shares_ @ members) - 1,
        "observed": certificate.empirical,
        "tested": certificate.n_observations,
        "nu": certificate.parameters["nu"],
        "seconds": time.perf_counter() - begin,
    }


def others(train: tuple, test: tuple, seed: int) -> dict[str, dict[str, float]]:
    """In sample, and a fifth of the ratings held out, for the same grid."""
    whole = grid().fit(*train)
    in_sample = certify(whole, *train, delta=DELTA)
    law = whole.predict_distribution(test[0])
    gibbs = float((law * np.abs(test[1][:, None] - np.array(STARS))).sum(axis=1).mean())
    order = np.random.default_rng(seed).permutation(len(train[1]))
    first, second = order[: 4 * len(order) // 5], order[4 * len(order) // 5 :]
    part = grid().fit(train[0][first], train[1][first])
    held = certify_predictions(
        train[1][second], part.predict(train[0][second], rule="median"), alphabet=STARS, method="betting", delta=DELTA
    )
    tested = float(np.abs(part.predict(test[0], rule="median") - test[1]).mean())
    return {
        "13 × 6 in sample, randomised": {"certificate": in_sample.value, "test": gibbs},
        "13 × 6, a fifth held out, median, betting": {"certificate": held.value, "test": tested},
    }


def main() -> None:
    args = common.arguments("Progressive validation on MovieLens-100K.", "progressive_ml100k")
    data = common.load(args.data, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(int)
    seeds = SEEDS[:1] if args.quick else SEEDS
    results: dict = common.previous(args)
    for seed in seeds:
        done = results.setdefault(f"split {seed}", {})
        order = np.random.default_rng(seed).permutation(len(y))
        if args.quick:
            order = order[:10_000]
        cut = 4 * len(order) // 5
        train, test = (X[order[:cut]], y[order[:cut]]), (X[order[cut:]], y[order[cut:]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GinghamWarning)
            jobs = {
                "13 × 6, median": partial(progressive, grid(), "median", train, test, seed),
                "13 × 6, mean": partial(progressive, grid(), None, train, test, seed),
                "13 × 6, median, references": partial(progressive, grid(), "median", train, test, seed, **REFERENCES),
                "others": partial(others, train, test, seed),
            }
            for name, job in jobs.items():
                if name not in done:
                    done[name] = job()
                    print(seed, name, done[name], flush=True)
                    common.write(args, settings={"seeds": list(seeds), "delta": DELTA}, results=results)
    splits = [results[f"split {seed}"] for seed in seeds]
    results["mean"] = {
        name: {key: float(np.mean([split[name][key] for split in splits])) for key in splits[0][name]}
        for name in ("13 × 6, median", "13 × 6, mean", "13 × 6, median, references")
    }
    common.write(args, settings={"seeds": list(seeds), "delta": DELTA}, results=results)
    for name, row in results["mean"].items():
        print(f"{name:18} certificate {row['certificate']:.4f}  test {row['test']:.4f}  {row['above test']:+.2%}")


if __name__ == "__main__":
    main()
