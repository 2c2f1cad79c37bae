"""What the papers draw or tell without numbers: P0's ring of Gaussians (§9) and the count of partitions (Figure 2)."""

from __future__ import annotations

import sys
from math import exp
from pathlib import Path

import numpy as np
from scipy.special import ive
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, write
from gingham.certificates.evidence import partition_exact

FIGURES = {"agreement of two mixtures": "ring/largest/agreement", "nats held out": "ring/largest/held out"}
SIGMA = 0.1
SIZES = {200: 4, 1_000: 8, 5_000: 16, 20_000: 24}  # sample: components of the mixture
FRESH = 20_000


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    """Points around centres that are uniform on the unit circle."""
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, SIGMA, (n, 2))


def truth(points: np.ndarray) -> float:
    """−E ln p of the ring itself: p(x) = exp(−(r − 1)²/2σ²)/(2πσ²) · e^{−r/σ²} I₀(r/σ²)."""
    r = np.linalg.norm(points, axis=1)
    density = np.exp(-((r - 1) ** 2) / (2 * SIGMA**2)) / (2 * np.pi * SIGMA**2) * ive(0, r / SIGMA**2)
    return float(-np.log(density).mean())


def measured(n: int, k: int, repeats: int, rng: np.random.Generator) -> dict[str, float]:
    """Two mixtures of two samples: what a fresh point costs, and how far their clusters of fresh points agree."""
    costs, agreements, exact = [], [], []
    for _ in range(repeats):
        fresh = ring(FRESH, rng)
        pair = [GaussianMixture(k, random_state=int(rng.integers(2**31))).fit(ring(n, rng)) for _ in range(2)]
        costs += [-float(one.score(fresh)) for one in pair]
        agreements.append(adjusted_rand_score(*(one.predict(fresh) for one in pair)))
        exact.append(truth(fresh))
    return {
        "sample": n,
        "components": k,
        "held out": float(np.mean(costs)),
        "truth": float(np.mean(exact)),
        "agreement": float(np.mean(agreements)),
    }


def partitions() -> dict[str, float]:
    """Figure 2: four items in two clusters; how many partitions the exact prior counts of each kind."""
    sizes = {"1 : 3": [0, 1, 1, 1], "2 : 2": [0, 0, 1, 1]}
    return {name: exp(partition_exact(np.eye(2)[labels])["who belongs where"]) for name, labels in sizes.items()}


def plot(rows: list[dict[str, float]], path: Path, rng: np.random.Generator) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    points = ring(2_000, rng)
    clusters = GaussianMixture(16, random_state=0).fit_predict(points)
    left.scatter(*points.T, c=clusters, s=3, cmap="tab20")
    left.set(title="a mixture of 16 Gaussians on the ring", aspect="equal", xticks=[], yticks=[])
    names = [f"{row['sample']:,}\n{row['components']} components" for row in rows]
    right.plot(
        names, [row["held out"] - row["truth"] for row in rows], "C0o-", label="nats a fresh point above the truth"
    )
    right.plot(names, [row["agreement"] for row in rows], "C1s-", label="agreement of two samples' clusters (ARI)")
    right.set(xlabel="points of the sample", ylim=(0, 1))
    right.legend(fontsize=8)
    figure.savefig(path, dpi=80)


def main() -> None:
    args = arguments(__doc__ or "", "paper_illustrations")
    rng = np.random.default_rng(args.seed)
    sizes = dict(list(SIZES.items())[:2]) if args.quick else SIZES
    rows = [measured(n, k, 2 if args.quick else 5, rng) for n, k in sizes.items()]
    results = {"ring": {"rows": rows, "largest": rows[-1]}, "figure 2": partitions()}
    print(results)
    write(args, {"sigma": SIGMA, "fresh": FRESH}, results)
    plot(rows, args.out.with_suffix(".png"), rng)


if __name__ == "__main__":
    main()
