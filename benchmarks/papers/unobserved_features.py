"""P4, Figure 1: clusters of viewers by observed movies tell as much about movies nobody asked about.

MovieLens 1M, 4000 viewers × 2400 movies, halves A and B; viewers are clustered on the first n movies of A
and the information about B is measured: I_ob falls and I_un rises towards each other as n grows, and I_un
approaches I*_un, the information of clusters fitted on B itself. Shuffled labels show the upward bias.

``--splits a:b`` measures some of the ten random splits and keeps the others of the result file. A run that begins
with split 0 also times the fit of 1200 movies and 6 clusters alone, with one, three (the default) and ten starts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

import itertools

from common import arguments, load, previous, write
from gingham import InformationClustering

FIGURES = {
    "as in Figure 1": "shape of figure 1/*",
    "CPU seconds of a fit": "fit of 1200 movies and 6 clusters/cpu_s_1_starts",
}
MOVIES = (25, 50, 100, 200, 400, 800, 1200)
CLUSTERS = (2, 3, 4, 6, 8, 10)
STARTS = 10  # as printed
FEW_MOVIES, FEW_CLUSTERS = (25, 200, 1200), (2, 6)


def table(data: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    n, d = data["shape"]
    viewers, movies = np.full(n, -1), np.full(d, -1)
    viewers[rng.permutation(n)[:4000]] = np.arange(4000)
    movies[rng.permutation(d)[:2400]] = np.arange(2400)
    kept = (viewers[data["rows"]] >= 0) & (movies[data["cols"]] >= 0)
    ratings = np.full((4000, 2400), np.nan, dtype=np.float32)
    ratings[viewers[data["rows"][kept]], movies[data["cols"][kept]]] = data["vals"][kept]
    return ratings


def one_split(
    data: dict[str, np.ndarray],
    split: int,
    seed: int,
    movies: tuple[int, ...],
    sizes: tuple[int, ...],
) -> list[dict[str, float]]:
    ratings = table(data, np.random.default_rng(seed + split))
    # Named, because two movies may have the same few ratings: by values alone one would be taken for the other.
    known, hidden = (
        pl.DataFrame(ratings[:, at : at + 1200], schema=[f"movie {at + j}" for j in range(1200)]) for at in (0, 1200)
    )
    best: dict[int, float] = {}
    records = []
    for n, k in [(n, k) for k in (2, 6) for n in movies] + [(1200, k) for k in sizes if k not in (2, 6)]:
        start = time.process_time()
        model = InformationClustering(k, n_init=STARTS, random_state=split).fit(known[:, :n])
        took = time.process_time() - start
        if k not in best:
            best[k] = InformationClustering(k, n_init=STARTS, random_state=split).fit(hidden).observed_information_
        records.append(
            {
                "movies": n,
                "clusters": k,
                "I_ob": model.observed_information_,
                "I_un": model.unobserved_information(hidden),
                "I_un_best": best[k],
                "I_ob_shuffled": model.chance_information_,
                "I_un_shuffled": model.chance_of(hidden),
                "fit_cpu_s": took,
                "certified_I_un": model.certify(hidden).value,
                "lemma1_gap": model.references()["lemma 1"].value,
            }
        )
    return records


def means(splits: dict[str, list[dict[str, float]]]) -> list[dict[str, float]]:
    """Each (movies, clusters) averaged over the splits."""
    return [
        {key: float(np.mean([record[key] for record in same])) for key in same[0]}
        | {"movies": same[0]["movies"], "clusters": same[0]["clusters"], "splits": len(same)}
        for same in sorted(zip(*splits.values()), key=lambda same: (same[0]["clusters"], same[0]["movies"]))
    ]


def shape(figure: list[dict[str, float]]) -> dict[str, bool]:
    """What Figure 1 (a)-(c) shows, asked of the means."""
    found = {}
    for k in (2, 6):
        curve = [r for r in figure if r["clusters"] == k]
        gaps = [r["I_ob"] - r["I_un"] for r in curve]
        found[f"{k} clusters: I_ob falls"] = all(a["I_ob"] > b["I_ob"] for a, b in itertools.pairwise(curve))
        found[f"{k} clusters: I_un rises"] = all(a["I_un"] < b["I_un"] for a, b in itertools.pairwise(curve))
        found[f"{k} clusters: they approach each other"] = all(a > b for a, b in itertools.pairwise(gaps))
    wide = [r for r in figure if r["movies"] == 1200]
    for key in ("I_ob", "I_un", "I_un_best"):
        found[f"1200 movies: {key} rises with the clusters"] = all(a[key] < b[key] for a, b in itertools.pairwise(wide))
    return found


def alone(data: dict[str, np.ndarray], seed: int, repeats: int = 5) -> dict[str, float]:
    """CPU seconds of the fit of 1200 movies and 6 clusters, medians over seeds; kernels compiled before."""
    known = table(data, np.random.default_rng(seed))[:, :1200]
    InformationClustering(6, n_init=1, random_state=0).fit(known)
    found: dict[str, float] = {"ratings": int(np.isfinite(known).sum()), "repeats": repeats}
    for starts in (1, 3, STARTS):
        times = []
        for repeat in range(repeats):
            start = time.process_time()
            InformationClustering(6, n_init=starts, random_state=repeat).fit(known)
            times.append(time.process_time() - start)
        found[f"cpu_s_{starts}_starts"] = float(np.median(times))
        found[f"cpu_s_{starts}_starts_slowest"] = float(np.max(times))
    return found


def main() -> None:
    args = arguments(__doc__ or "", "papers_unobserved_features", lambda p: p.add_argument("--splits", default="0:10"))
    data = load(args.data, "ml1m.npz")
    first, _, last = args.splits.partition(":")
    results = previous(args)
    results = results if isinstance(results, dict) else {}
    splits = results.get("splits", {})
    movies, sizes = (FEW_MOVIES, FEW_CLUSTERS) if args.quick else (MOVIES, CLUSTERS)
    if int(first) == 0:
        results["fit of 1200 movies and 6 clusters"] = alone(data, args.seed, 1 if args.quick else 5)
        print(results["fit of 1200 movies and 6 clusters"], flush=True)
    for split in range(int(first), 1 if args.quick else int(last)):
        splits[str(split)] = one_split(data, split, args.seed, movies, sizes)
        results["means"] = means(splits)
        results["shape of figure 1"] = shape(results["means"])
        results["splits"] = splits
        write(args, {"viewers": 4000, "movies": 2400, "starts": STARTS, "splits": len(splits)}, results)
        print(split, results["means"][-1], flush=True)
    plot(results["means"], args.out.with_suffix(".png"))


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
