"""Thirty thousand bible verses in four languages: seconds, memory and mean reciprocal rank of the primal solver.

Ridge is chosen on a part of the training verses (held-out correlation on 2000 of them), then all but 2000 verses
are fitted and the mates of these are sought among them. ``--step all`` times a fit of every verse.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, previous, write
from parallel_texts import read_texts, vectorised

LANGUAGES = ("en", "es", "de", "it")
HELD = 2000
RIDGES = (0.3, 1.0, 3.0, 10.0)
FIGURES = {"mean reciprocal rank": "*/mrr", "CPU seconds of the fit": "*/fit_cpu_s", "peak GB": "*/peak_GB"}
FULL = ["--components 100"]
WORDS = {"sublinear_tf": True, "min_df": 2}


def options(parser):
    parser.add_argument("--step", choices=("ridge", "test", "all"), default="test")
    parser.add_argument("--components", type=int, default=300)


def main():
    args = arguments(__doc__, "speed_bible_primal", options)
    texts = read_texts(args.data, "bible_verses.tsv.gz", LANGUAGES)
    order = np.random.default_rng(args.seed).permutation(len(texts[0]))
    results = previous(args)
    if args.step == "ridge":
        # Chosen with 50 components on some of the training verses.
        part = order[HELD : HELD + (3000 if args.quick else 6000)]
        inside, outside = vectorised(texts, part[HELD:], part[:HELD], "tf-idf", **WORDS)
        tried = {}
        for ridge in RIDGES:
            model = gg.PairwiseClusterAnalysis(50, ridge=ridge, solver="primal").fit(inside)
            tried[str(ridge)] = {"correlation": float(model.correlations(outside).sum()), "mrr": model.mrr(outside)}
            print(ridge, tried[str(ridge)])
        best = max(tried, key=lambda ridge: tried[ridge]["correlation"])
        results["ridge"] = {"tried": tried, "chosen": float(best), "verses": len(part) - HELD}
    else:
        ridge = results.get("ridge", {}).get("chosen", 1.0)
        train = order if args.step == "all" else order[HELD:]
        if args.quick:
            train, args.components = train[:3000], 50
        inside, outside = vectorised(texts, train, order[:HELD], "tf-idf", **WORDS)
        row = {
            "verses": len(train),
            "words": [view.shape[1] for view in inside],
            "nonzeros": [int(view.nnz) for view in inside],
            "ridge": ridge,
            "n_components": args.components,
        }
        with clock(row, "fit_"):
            model = gg.PairwiseClusterAnalysis(args.components, ridge=ridge, solver="primal").fit(inside)
        row["peak_GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        if args.step == "test":
            row["mrr"] = model.mrr(outside)
            row["mrr flat weights"] = model.set_params(weighting=0.0).mrr(outside)
            row["held-out correlation"] = model.correlations(outside)[[0, 9, args.components - 1]]
        results[f"{args.step}, {args.components} components"] = row
        print({k: np.round(v, 4) for k, v in row.items()})
    write(args, {"languages": LANGUAGES, "held out": HELD, "vectoriser": WORDS}, results)


if __name__ == "__main__":
    main()
