"""P0 Figures 3-6 from kinds of random start: soft memberships, items thrown into clusters, and what lies between.

P0 says "initialize q randomly" and no more. Memberships that are uniform on the simplex are nearly the same for all
items: many clusters are lost before they form, and what is left overfits later and less. Items that are thrown into
clusters, each into one, keep the clusters apart, and at 50 × 50 the curves have the shape of the paper's; at 283 × 283
they overfit from the start on. There memberships in a few clusters an item (Dirichlet, .05) have that shape. Beside
them the description length of P0 §5 (log loss, β = 1, hard moves, 13×6), and one cluster.

Every fit is one record of the JSON file, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from movielens_grids import PAPER, SIZES, STARS, measure

import gingham as gg
from common import arguments, load, previous, write
from gingham.cells import Absolute
from gingham.core.problem import Posterior, Problem
from gingham.data import Sample
from gingham.fitting.loop import Restart, Solution, best_of
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import random

LONG = "ten starts for each of 300 fits take over an hour"
FIGURES = {
    "best β, items thrown into clusters": "summary/*/hard/best_beta",
    "best β, soft memberships": "summary/*/soft/best_beta",
}
BETAS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0)
N_INIT = {"13x6": 10, "50x50": 10, "283x283": 1}  # the paper has 10 everywhere
FEW = 0.05  # concentration of memberships in a few clusters an item
KINDS = {
    "hard": ("C1s-", "each item thrown into a cluster"),
    "soft": ("C0o--", "memberships uniform on the simplex"),
    "few": ("C2^:", "memberships in a few clusters"),
    "ten": ("C3v:", "the best of ten such starts"),
}
TEN = (0.5, 0.7, 1.0)  # β for which ten starts are tried at 283 × 283
FIRM = 0.999  # of the memberships of an item that was thrown into a cluster; at 1 a cluster could not be left


def start_of(kind: str, problem: Problem, shape: tuple[int, int], rng: np.random.Generator) -> Posterior:
    """Random answers with memberships uniform on the simplex, in a few clusters, or in one that is drawn at random."""
    start = random(problem, shape, rng)
    if kind == "soft":
        return start
    few = kind in ("few", "ten")
    thrown = (
        rng.dirichlet(np.full(m, FEW), len(q)) if few else np.eye(m)[rng.integers(0, m, len(q))]
        for m, q in zip(shape, start.assign)
    )
    return replace(start, assign=tuple(FIRM * q + (1 - FIRM) / q.shape[1] for q in thrown))


def fit(sample: Sample, size: str, kind: str, beta: float, seed: int) -> Solution:
    problem = Problem.grid(sample, Absolute(STARS), beta)
    solver = Projection(Constant(), tol=1e-6, max_iter=150)

    def solve(restart: Restart) -> Solution:
        return solver.solve(problem, start_of(kind, problem, SIZES[size], restart.rng), restart.report)

    rng = np.random.default_rng(seed)
    return best_of(solve, 10 if kind == "ten" else N_INIT[size], rng, max_iter=solver.max_iter, one_core=True)


def description_length(train: tuple, test: tuple, seed: int) -> dict[str, float]:
    """P0's former model: hard clusters of least description length; the median of each cell predicts."""
    model = gg.CoClusteringRegressor(
        SIZES["13x6"], loss="log", alphabet=range(1, 6), beta=1.0, solver="sweep", start="random", n_init=10,
        random_state=seed,
    )  # fmt: skip
    model.fit(*train)
    return {"test_median": float(np.abs(model.predict(test[0], "median") - test[1]).mean())}


def summary(records: list[dict]) -> dict:
    found: dict = {}
    whole = [  # splits of which every β is there, so that all means are over the same ones
        (size, split)
        for size, split in sorted({(r["size"], r["split"]) for r in records})
        if sum((r["size"], r["split"]) == (size, split) and r["start"] in ("soft", "hard") for r in records)
        == 2 * len({r["beta"] for r in records if r["start"] in ("soft", "hard")})
    ]
    records = [r for r in records if (r["size"], r["split"]) in whole]
    for size in SIZES:
        for kind in KINDS:
            rows = [r for r in records if (r["size"], r["start"]) == (size, kind)]
            curve = {}
            for beta in sorted({r["beta"] for r in rows}):
                mine = [r for r in rows if r["beta"] == beta]
                curve[f"{beta:g}"] = {
                    key: np.mean([r[key] for r in mine], axis=0).tolist()
                    for key in ("test_gibbs", "test_median", "train_gibbs", "information", "bound_18")
                } | {"splits": len(mine)}
            if curve:
                best = min(curve, key=lambda beta: curve[beta]["test_gibbs"])
                found.setdefault(size, {})[kind] = {
                    "best_beta": float(best),
                    "test_at_best": curve[best]["test_gibbs"],
                    "test_at_largest": curve[max(curve, key=float)]["test_gibbs"],
                    "information_at_best": curve[best]["information"],
                    "by_beta": curve,
                }
    mdl = [r["test_median"] for r in records if r["start"] == "description length"]
    if mdl:
        found["description length"] = {"test_median": float(np.mean(mdl)), "spread": float(np.ptp(mdl))}
    return found


def plot(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [size for size in SIZES if size in results]
    figure, axes = plt.subplots(2, len(sizes), figsize=(4 * len(sizes), 6), squeeze=False, sharex=True)
    for column, size in enumerate(sizes):
        for kind, (style, name) in KINDS.items():
            curve = results[size].get(kind, {}).get("by_beta", {})
            betas = [float(beta) for beta in curve]
            axes[0, column].plot(betas, [c["test_gibbs"] for c in curve.values()], style, label=name)
            for mode, shade in ((0, 1.0), (1, 0.5)):
                values = [c["information"][mode] for c in curve.values()]
                axes[1, column].plot(
                    betas, values, style, alpha=shade, label=("users, " if mode == 0 else "movies, ") + kind
                )
        axes[0, column].axhline(0.72, color="0.6", lw=1, label="printed: .72")
        axes[0, column].set(
            title=size.replace("x", " × "), xscale="log", ylim=(0.70, 0.83 if size != "283x283" else 1.1)
        )
        axes[1, column].set(xlabel="β", ylim=(0, 4))
    axes[0, 0].set_ylabel("test error, stars")
    axes[1, 0].set_ylabel("information kept, nats")
    axes[0, 0].legend(*axes[0, -1].get_legend_handles_labels(), fontsize=7)
    axes[1, -1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long; run again to go on")
    parser.add_argument("--sizes", default=",".join(SIZES), help="which sizes to run, separated by commas")
    parser.add_argument("--splits", default="1,2,3,4,5", help="which splits to run, separated by commas")


def main() -> None:
    args = arguments(__doc__ or "", "movielens_beta", options)
    d = load(args.data, "ml100k.npz")
    deadline = time.time() + args.seconds
    records = previous(args).get("records", [])
    done = {(r["size"], r["split"], r["start"], r["beta"]) for r in records}
    splits, sizes, betas = [int(k) for k in args.splits.split(",")], args.sizes.split(","), BETAS
    if args.quick:
        splits, sizes, betas, N_INIT["13x6"] = [1], ["13x6"], (0.5, 2.0), 2

    def save() -> None:
        settings = {"betas": betas, "n_init": N_INIT, "firm": FIRM}
        write(args, settings, {"summary": summary(records), "paper": PAPER, "records": records})
        if any(size in summary(records) for size in SIZES):
            plot(summary(records), args.out.with_suffix(".png"))

    for size in sizes:
        for split in splits:
            base, test = d[f"u{split}_base_idx"], d[f"u{split}_test_idx"]
            sample = Sample.of([d["rows"][base], d["cols"][base]], d["vals"][base], alphabet=STARS)
            offered = {"soft": betas, "hard": betas, "few": betas, "ten": TEN}
            kinds = [kind for kind in KINDS if kind in ("soft", "hard") or size == "283x283"]
            tasks = [(kind, beta) for kind in kinds for beta in offered[kind]]
            tasks += [("description length", 1.0)] if size == "13x6" else []
            for kind, beta in tasks:
                if (size, split, kind, beta) in done:
                    continue
                if time.time() > deadline:
                    raise SystemExit(f"Time is up after {len(records)} fits; run again to go on.")
                if kind == "description length":
                    pairs = np.column_stack([d["rows"], d["cols"]])
                    stars = d["vals"].astype(float)
                    found = description_length((pairs[base], stars[base]), (pairs[test], stars[test]), args.seed)
                else:
                    solution = fit(sample, size, kind, beta, args.seed)
                    held = (d["rows"][test], d["cols"][test], d["vals"][test])
                    found = measure(solution.posterior, sample, held)
                records.append({"size": size, "split": split, "start": kind, "beta": beta, **found})
                print(
                    size, f"u{split}", kind, beta, {k: v for k, v in found.items() if k.startswith("test")}, flush=True
                )
                save()
    save()


if __name__ == "__main__":
    main()
