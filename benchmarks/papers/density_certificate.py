"""The density certificate of a co-clustering on planted densities: below uniform coding, and how often it fails.

Seldin and Tishby's Theorem 12, eq. (36), stands beside it. The truth is the code length under the planted
density, known exactly. Coverage: 2000 samples from each of four laws; in every sample five posteriors are
certified, and the certificate fails if any of them lies below its truth: fitted clusters of two sizes, soft ones,
and two adversaries who know the truth and cluster items by how far the sample departs from it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

from statements import theorem12

from common import arguments, previous, write
from gingham import CoOccurrenceClustering
from gingham.certificates import certify
from gingham.models.counts.fit import CountSolver, count_sample

FIGURES = {
    "failures": "coverage/*/failures",
    "of samples": "coverage/*/samples",
    "smallest slack": "coverage/*/smallest_slack",
    "below uniform coding": "*/below_uniform_coding",
}


def planted(n, m, rng):
    """A density with m_1 × m_2 blocks and uneven items, (n_1, n_2)."""
    blocks = rng.gamma(0.5, size=m)
    p = blocks[rng.integers(0, m[0], n[0])][:, rng.integers(0, m[1], n[1])]
    p = p * rng.gamma(1.0, size=n[0])[:, None] * rng.gamma(1.0, size=n[1])
    return p / p.sum()


def one(p, n_observations, m, rng, seed):
    counts = rng.multinomial(n_observations, p.ravel()).reshape(p.shape).astype(float)
    model = CoOccurrenceClustering(m, beta=0.5, random_state=seed).fit(sparse.csr_array(counts))
    certificate = model.certify(counts, population=counts.shape)
    items = [counts.sum(1) / n_observations, counts.sum(0) / n_observations]
    every = np.argwhere(np.ones(p.shape, bool))
    truth = float(-(p.ravel() @ model.density_.log_density(every.T)))
    return {
        "certificate": certificate.value,
        "true_code_length": truth,
        "observed": certificate.empirical,
        "uniform": float(np.log(p.size)),
        "theorem_12": theorem12(
            model.posterior_.assign, model.blocks_ / n_observations, items, n_observations, 0.05
        ).value,
    }


LAWS = {  # name: (shape, tokens)
    "planted blocks, 12×10, N=400": ((12, 10), 400),
    "independent and uneven, 15×8, N=300": ((15, 8), 300),
    "a few heavy pairs, 10×10, N=200": ((10, 10), 200),
    "uniform, 8×8, N=1000": ((8, 8), 1000),
}


def law(name, rng):
    n = LAWS[name][0]
    if name.startswith("planted"):
        return planted(n, (3, 3), rng)
    if name.startswith("independent"):
        p = np.outer(1 / np.arange(1, n[0] + 1), 1 / np.arange(1, n[1] + 1) ** 0.5)
    elif name.startswith("a few"):
        p = np.full(n, 1e-3)
        p[np.arange(10), rng.permutation(10)] = 1.0
    else:
        p = np.ones(n)
    return p / p.sum()


def hard(labels, k):
    return np.eye(k)[labels]


def attempts(counts, p, rng):
    """Posteriors that know the sample, or the sample and the truth."""
    for k in (2, 3):
        blocks = CountSolver(beta=0.5, start="random", max_iter=10).fit(sparse.csr_array(counts), (k, k), rng)
        fitted = tuple(hard(labels, k) for labels in blocks.labels)
        yield f"fitted {k}×{k}", fitted
        if k == 2:
            yield "softened 2×2", tuple(0.8 * q + 0.1 for q in fitted)
    # Rows by how far the sample overstates them: what looks structured here will not be there.
    excess = counts / counts.sum() - p
    yield (
        "by the noise",
        (hard((excess.sum(axis=1) > 0).astype(int), 2), hard((excess.sum(axis=0) > 0).astype(int), 2)),
    )
    left, _, right = np.linalg.svd(excess)
    yield "by the noise's own axis", (hard((left[:, 0] > 0).astype(int), 2), hard((right[0] > 0).astype(int), 2))


def coverage(name, repeats, seed, delta):
    rng = np.random.default_rng(seed)
    p = law(name, rng)
    every = np.argwhere(np.ones(p.shape, bool)).T
    failures, least, values, truths = 0, np.inf, [], []
    for _ in range(repeats):
        counts = rng.multinomial(LAWS[name][1], p.ravel()).reshape(p.shape).astype(float)
        sample = count_sample(sparse.csr_array(counts))
        slack = []
        for kind, assigns in attempts(counts, p, rng):
            certificate = certify(assigns, sample, delta=delta, bound="density")
            density = certificate.model
            truth = float(-(p.ravel() @ density.log_density(every)))
            slack.append(certificate.value - truth)
            if kind == "fitted 2×2":
                values.append(certificate.value)
                truths.append(truth)
        failures += min(slack) < -1e-9  # beyond rounding: uniform coding is met exactly
        least = min(least, *slack)
    return {
        "samples": repeats,
        "failures": int(failures),
        "delta": delta,
        "posteriors_a_sample": len(slack),
        "smallest_slack": least,
        "certificate_fitted": float(np.mean(values)),
        "true_code_length_fitted": float(np.mean(truths)),
        "uniform": float(np.log(p.size)),
    }


def main() -> None:
    def options(parser):
        parser.add_argument("--laws", default=";".join(LAWS), help="some of the laws of the coverage simulation")
        parser.add_argument("--skip-examples", action="store_true")

    args = arguments(__doc__ or "", "papers_density_certificate", options)
    results = previous(args)
    settings = {"beta": 0.5, "delta": 0.05}
    if not args.skip_examples:
        rng = np.random.default_rng(args.seed)
        for n, m, n_observations in (((200, 150), (5, 4), 20_000), ((943, 1682), (13, 6), 80_000)):
            found = one(planted(n, m, rng), n_observations, m, rng, args.seed)
            found["below_uniform_coding"] = found["certificate"] < found["uniform"]
            results[f"{n[0]}×{n[1]}, N={n_observations}"] = found
            print(found, flush=True)
            write(args, settings, results)
    for name in (name for name in args.laws.split(";") if name):
        found = coverage(name, 10 if args.quick else 2000, args.seed, 0.05)
        results.setdefault("coverage", {})[name] = found
        print(name, found, flush=True)
        write(args, settings, results)


if __name__ == "__main__":
    main()
