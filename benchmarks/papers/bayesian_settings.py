"""Which start and which approximation predict best, looked up inside the training part of fold 0 only.

Every candidate is judged on 5 % of the training entries (the estimator's own validation, same split for
all candidates); no test entry of any fold is read.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bayesian_data import SETS, table

from common import arguments, previous, write
from gingham import BayesianCoClustering

FIGURES = {"validation perplexity": "*/*/validation_perplexity", "seconds a fit": "*/*/seconds"}
CANDIDATES = (
    ("per_entry", "singular"),
    ("per_entry", "spectral"),
    ("per_entry", "random"),
    ("shared", "means"),
    ("shared", "singular"),
)


def main() -> None:
    args = arguments(
        "Starts and approximations, by validation inside one training part.",
        "bayesian_settings",
        lambda parser: parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS),
    )
    results = previous(args)
    for name in ("jester_binary",) if args.quick else args.sets:
        t = table(name, args.data)
        train, _ = t.fold(0)
        found = results.setdefault(name, {})
        for approximation, start in CANDIDATES[::3] if args.quick else CANDIDATES:
            key = f"{approximation}, {start}"
            if key in found:
                continue
            began = time.perf_counter()
            model = BayesianCoClustering(
                t.n_clusters, t.family, approximation, alphabet=t.alphabet, start=start,
                family_params={"shift": t.shift}, random_state=args.seed,
            ).fit(t.X[train], t.y[train])  # fmt: skip
            best = min(model.validation_, key=model.validation_.get)
            found[key] = {
                "validation_perplexity": model.validation_[best],
                "concentration": best,
                "tried": {str(alpha): value for alpha, value in model.validation_.items()},
                "seconds": time.perf_counter() - began,
            }
            print(name, key, found[key], flush=True)
            write(args, {"fold": 0, "held_out_share": 0.05}, results)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
