"""P4, Figure 1: clusters of viewers by observed movies tell as much about movies nobody asked about.

MovieLens 1M, 4000 viewers × 2400 movies, halves A and B; viewers are clustered on the first n movies of A
and the information about B is measured: I_ob falls and I_un rises towards each other as n grows, and I_un
approaches I*_un, the information of clusters fitted on B itself. Shuffled labels show the upward bias.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, load, write
from gingham import InformationClustering

MOVIES = (25, 50, 100, 200, 400, 800, 1200)
CLUSTERS = (2, 3, 4, 6, 8, 10)


def table(data: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    n, d = data["shape"]
    viewers, movies = np.full(n, -1), np.full(d, -1)
    viewers[rng.permutation(n)[:4000]] = np.arange(4000)
    movies[rng.permutation(d)[:2400]] = np.arange(2400)
    kept = (viewers[data["rows"]] >= 0) & (movies[data["cols"]] >= 0)
    ratings = np.full((4000, 2400), np.nan, dtype=np.float32)
    ratings[viewers[data["rows"][kept]], movies[data["cols"][kept]]] = data["vals"][kept]
    return ratings


def main() -> None:
    args = arguments(
        __doc__ or "", "papers_unobserved_features", lambda p: p.add_argument("--splits", type=int, default=10)
    )
    data = load(args.data, "ml1m.npz")
    n_splits = 1 if args.quick else args.splits
    InformationClustering(2, random_state=0).fit(np.array([[0.0, 1], [1, 0]]))  # compile
    runs: dict[tuple[int, int], list[dict[str, float]]] = {}
    for split in range(n_splits):
        ratings = table(data, np.random.default_rng(args.seed + split))
        known, hidden = ratings[:, :1200], ratings[:, 1200:]
        best: dict[int, float] = {}
        for n, k in [(n, k) for k in (2, 6) for n in MOVIES] + [(1200, k) for k in CLUSTERS if k not in (2, 6)]:
            start = time.process_time()
            model = InformationClustering(k, n_init=3, random_state=split).fit(known[:, :n])
            took = time.process_time() - start
            if k not in best:
                best[k] = InformationClustering(k, n_init=3, random_state=split).fit(hidden).observed_information_
            record = {
                "I_ob": model.observed_information_,
                "I_un": model.unobserved_information(hidden),
                "I_un_best": best[k],
                "I_ob_shuffled": model.chance_information_,
                "I_un_shuffled": model.chance_of(hidden),
                "fit_cpu_s": took,
                "certified_I_un": model.certify(hidden).value,
                "lemma1_gap": model.references()["lemma 1"].value,
            }
            runs.setdefault((n, k), []).append(record)
        results = [
            {"movies": n, "clusters": k, "splits": len(r)} | {key: float(np.mean([x[key] for x in r])) for key in r[0]}
            for (n, k), r in sorted(runs.items(), key=lambda item: (item[0][1], item[0][0]))
        ]
        write(args, {"viewers": 4000, "movies": 2400, "starts": 3, "splits": n_splits}, results)
        print(split, results[-1])
    plot(results, args.out.with_suffix(".png"))


def plot(results: list[dict[str, float]], path: Path) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    for ax, k in zip(axes, (2, 6)):
        rows = [r for r in results if r["clusters"] == k]
        movies = [r["movies"] for r in rows]
        for key, name, style in (
            ("I_ob", "observed", "o-"),
            ("I_un", "unobserved", "s-"),
            ("I_un_best", "best possible", "k--"),
        ):
            ax.plot(movies, [1000 * r[key] for r in rows], style, label=name, markersize=4)
        ax.plot(movies, [1000 * r["I_un_shuffled"] for r in rows], ":", color="grey", label="shuffled clusters")
        ax.set(title=f"{k} clusters", xlabel="observed movies", ylabel="information (10⁻³ nats a movie)")
        ax.legend(frameon=False)
    rows = [r for r in results if r["movies"] == 1200]
    for key, name, style in (
        ("I_ob", "observed", "o-"),
        ("I_un", "unobserved", "s-"),
        ("I_un_best", "best possible", "k--"),
    ):
        axes[2].plot([r["clusters"] for r in rows], [1000 * r[key] for r in rows], style, label=name, markersize=4)
    axes[2].set(title="1200 observed movies", xlabel="clusters")
    axes[2].legend(frameon=False)
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
