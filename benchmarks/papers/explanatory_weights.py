"""P3 §2.1 and §3.1: weights over given pairwise clusters, under KL(Q‖P) ≤ ω and with a price on their norm.

Pairwise cluster analysis of 800 speeches in two languages makes clusters (components beyond one standard deviation);
1,500 other speeches weigh them. Measured are the certified risk (log-wealth) on those, and the risk on the speeches
that are left, of the prior, of Gibbs weights at several ω and of the quadratic program at the same KL(Q‖P).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import rel_entr

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, write
from gingham.errors import GinghamError
from parallel_texts import read_texts, vectorised

FIGURES = {"certified risk, prior": "prior/certified", "Gibbs weights": "gibbs/*/certified"}
DIVERGENCES = (0.1, 0.3, 1.0, 2.0)
COMPONENTS, COVERAGE = 30, 0.01


def row(model: Any, held: list[np.ndarray]) -> dict[str, float]:
    found, prior = model.certify(), np.full(model.weights_.size, 1 / model.weights_.size)
    risk = gg.ExplanatoryClustering(divergence=0.0).fit(held).risks_ @ model.weights_
    return {
        "divergence": float(rel_entr(model.weights_, prior).sum()), "risk": model.risk_, "certified": found.value,
        "held out": float(risk), "coverage": model.coverage_,
    }  # fmt: skip


def main() -> None:
    args = arguments(__doc__ or "", "explanatory_weights")
    texts = read_texts(args.data, "europarl_speeches_7lang.tsv.gz", ("en", "es"))
    order = np.random.default_rng(args.seed).permutation(len(texts[0]))
    first, second = (150, 300) if args.quick else (800, 1500)
    train, rest = order[:first], order[first:]
    inside, outside = vectorised(texts, train, rest, "tf-idf", min_df=2)
    views = gg.PairwiseClusterAnalysis(COMPONENTS, ridge=1.0).fit(inside)
    every = views.memberships(outside, threshold=1.0)
    weighing, held = [m[:second] for m in every], [m[second:] for m in every]
    left = np.logical_and(*weighing).mean(axis=0) >= COVERAGE
    weighing, held = [m[:, left] for m in weighing], [m[:, left] for m in held]
    results: dict[str, Any] = {"clusters": int(left.sum()), "gibbs": {}, "quadratic": {}}
    results["prior"] = row(gg.ExplanatoryClustering(divergence=0.0).fit(weighing), held)
    for omega in DIVERGENCES:
        results["gibbs"][f"{omega:g}"] = row(gg.ExplanatoryClustering(divergence=omega).fit(weighing), held)

        def excess(log_penalty: float, omega: float = omega) -> float:
            weights = gg.ExplanatoryClustering(penalty=float(np.exp(log_penalty))).fit(weighing).weights_
            return float(rel_entr(weights, 1 / weights.size).sum()) - omega

        try:
            penalty = float(np.exp(brentq(excess, -12, 8, xtol=1e-4)))
        except (ValueError, GinghamError):  # the cheapest cluster alone is nearer to the prior than that
            continue
        results["quadratic"][f"{omega:g}"] = row(gg.ExplanatoryClustering(penalty=penalty).fit(weighing), held)
    print(results)
    write(args, {"components": COMPONENTS, "coverage": COVERAGE}, results)


if __name__ == "__main__":
    main()
