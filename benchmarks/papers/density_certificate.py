"""The density certificate of a co-clustering on planted densities: below uniform coding, and how often it fails.

Seldin and Tishby's Theorem 12, eq. (36), stands beside it. The truth is the code length under the planted
density, known exactly.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, write
from gingham import CoOccurrenceClustering


def planted(n, m, rng):
    """A density with m_1 × m_2 blocks and uneven items, (n_1, n_2)."""
    blocks = rng.gamma(0.5, size=m)
    p = blocks[rng.integers(0, m[0], n[0])][:, rng.integers(0, m[1], n[1])]
    p = p * rng.gamma(1.0, size=n[0])[:, None] * rng.gamma(1.0, size=n[1])
    return p / p.sum()


def one(p, n_tuples, m, rng, seed):
    counts = rng.multinomial(n_tuples, p.ravel()).reshape(p.shape).astype(float)
    model = CoOccurrenceClustering(m, beta=0.5, random_state=seed).fit(sparse.csr_array(counts))
    certificate = model.certify(counts)
    every = np.argwhere(np.ones(p.shape, bool))
    truth = float(-(p.ravel() @ model.density_.log_density(every.T)))
    return {
        "certificate": certificate.value,
        "true_code_length": truth,
        "observed": certificate.empirical,
        "uniform": float(np.log(p.size)),
        "theorem_12": model.theorem12(counts).value,
    }


def main() -> None:
    args = arguments(__doc__ or "", "papers_density_certificate")
    rng = np.random.default_rng(args.seed)
    results = {}
    for n, m, n_tuples in (((200, 150), (5, 4), 20_000), ((943, 1682), (13, 6), 80_000)):
        results[f"{n[0]}×{n[1]}, N={n_tuples}"] = one(planted(n, m, rng), n_tuples, m, rng, args.seed)
        print(results)
    repeats = 20 if args.quick else 200
    p = planted((30, 25), (3, 3), rng)
    runs = [one(p, 2000, (3, 3), rng, s) for s in range(repeats)]
    results["coverage, 30×25, N=2000"] = {
        "repeats": repeats,
        "failures": int(sum(r["true_code_length"] > r["certificate"] for r in runs)),
        "delta": 0.05,
        "certificate": float(np.mean([r["certificate"] for r in runs])),
        "true_code_length": float(np.mean([r["true_code_length"] for r in runs])),
        "uniform": float(np.log(p.size)),
    }
    print(results)
    write(args, {"beta": 0.5, "delta": 0.05}, results)


if __name__ == "__main__":
    main()
