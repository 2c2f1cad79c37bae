"""What the papers draw or tell without numbers.

P0's ring of Gaussians (§9), the count of partitions (Figure 2) and the last inequality of Theorem 12's proof in random
cases; P1's advice to anneal β upwards with noise, beside coming down and a constant β (ratings, 13 × 6 clusters).
"""

from __future__ import annotations

import sys
from itertools import product
from math import exp
from pathlib import Path

import numpy as np
from scipy.special import ive, xlogy
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, load, write
from gingham.cells import Absolute
from gingham.certificates.prices import partition_exact
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant, Down, Schedule
from gingham.fitting.starts import random, with_best_answers

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


def theorem12_last_step(cases: int, rng: np.random.Generator) -> dict[str, int]:
    """How often E_Q Σ_c p_h(c) ln p̃_h(c) ≤ Σ_c p_Q(c) ln p̃_Q(c) fails for soft memberships, all partitions counted."""
    n, m, fails = 4, 2, 0
    partitions = np.array(list(product(range(m), repeat=n)))
    for _ in range(cases):
        q, p, smoothed = rng.dirichlet(np.ones(m), n), rng.dirichlet(np.ones(n)), rng.dirichlet(5 * np.ones(n))
        chance = np.prod([q[x, partitions[:, x]] for x in range(n)], axis=0)
        member = np.eye(m)[partitions]  # (partitions, items, clusters)
        mass, code = np.einsum("hxc,x->hc", member, p), np.einsum("hxc,x->hc", member, smoothed)
        left = float(chance @ xlogy(mass, np.where(mass > 0, code, 1.0)).sum(axis=1))
        fails += left > float(np.sum(p @ q * np.log(smoothed @ q))) + 1e-12
    return {"cases": cases, "failures": int(fails)}


def annealed(folder: str | None, seed: int, n_init: int = 5) -> dict[str, float]:
    """F at the end, β = 1, the best of some random starts: up with noise after each doubling, down, and constant."""
    d = load(folder, "ml100k.npz")
    base = d["u1_base_idx"]
    stars = Alphabet.of(range(1, 6), given=True)
    sample = Sample.of([d["rows"][base], d["cols"][base]], d["vals"][base], alphabet=stars)
    problem = Problem.grid(sample, Absolute(stars), 1.0)
    doublings = int(np.ceil(np.log2(len(base))))
    found = {}
    ways: dict[str, Schedule] = {"up, with noise": Constant(), "down": Down(), "constant": Constant()}
    for name, schedule in ways.items():
        totals = []
        for start in range(n_init):
            rng = np.random.default_rng([seed, start])
            posterior = random(problem, (13, 6), rng)
            for step in range(doublings if name == "up, with noise" else 0):  # five sweeps at each β, then noise
                lower = Problem.grid(sample, Absolute(stars), 2.0 ** (step - doublings))
                posterior = Projection(Constant(), tol=0.0, max_iter=5).solve(lower, posterior).posterior
                noisy = (0.99 * q + 0.01 * rng.dirichlet(np.ones(q.shape[1]), len(q)) for q in posterior.assign)
                posterior = with_best_answers(problem, tuple(noisy))
            totals.append(Projection(schedule, tol=1e-7, max_iter=300).solve(problem, posterior).objective.total)
        found[name] = float(min(totals))
    return found


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
    results["theorem 12, last step"] = theorem12_last_step(200, rng)
    results["annealing"] = annealed(args.data, args.seed, 1 if args.quick else 5)
    print(results)
    write(args, {"sigma": SIGMA, "fresh": FRESH}, results)
    plot(rows, args.out.with_suffix(".png"), rng)


if __name__ == "__main__":
    main()
