"""The results in README.md, from benchmarks/results/*.json: ``python docs/readme_results.py`` renews them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: python docs/readme_results.py -->", "<!-- end of results -->"


def results(name: str) -> Any:
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else None


def ratings() -> Iterator[str]:
    found = results("peers_ratings")
    if not found or "summary" not in found:
        return
    means = found["summary"]["means"]
    yield "**MovieLens-100K, mean of the official splits u1–u5** (error in stars; whole stars in the last column)"
    yield ""
    yield "| | RMSE | MAE | MAE of whole stars | CPU s to fit |"
    yield "|---|---|---|---|---|"
    for name, row in sorted(means.items(), key=lambda pair: pair[1]["rmse"]):
        yield f"| {name} | {row['rmse']:.3f} | {row['mae']:.3f} | {row['label']:.3f} | {row['fit_cpu_s']:.1f} |"
    yield ""
    yield (
        "Layers, clusters, weight of genres, noise and cut points of the layered models, and start, size and β of the "
        "committee, are chosen inside each training part (fit times include it). The ranges they are chosen from, the "
        "sizes named in the table, and the numbers of chains, sweeps and members were set beforehand, after trials "
        "that had seen parts of the test sets of u1, u2 and u4. " + apart(found["by_split"])
    )
    yield ""
    yield from larger(found)


def apart(by_split: Any) -> str:
    """Means over the two splits that no trial had seen: nothing set, and the best of the peers in each measure."""
    keys = ("rmse", "mae", "label")
    both = {
        name: [sum(by_split[split][name][key] for split in ("u3", "u5")) / 2 for key in keys]
        for name in set(by_split["u3"]) & set(by_split["u5"])
    }
    ours = next((row for name, row in both.items() if "nothing set" in name), None)
    peers = [row for name, row in both.items() if name.startswith(("LensKit", "Surprise"))]
    if ours is None or not peers:
        return ""
    show = lambda row: ", ".join(f"{value:.3f}" for value in row)  # noqa: E731
    return (
        f"On u3 and u5 alone: {show(ours)} with nothing set, {show(min(r) for r in zip(*peers))} the best of the peers."
    )


def larger(found: Any) -> Iterator[str]:
    """The larger set, with what a fit costs there."""
    rows = found["by_split"].get("ml1m")
    if not rows:
        return
    yield "**MovieLens-1M, one random 80/20 split**"
    yield ""
    yield "| | RMSE | MAE | MAE of whole stars | CPU s to fit |"
    yield "|---|---|---|---|---|"
    for name, row in sorted(rows.items(), key=lambda pair: pair[1]["rmse"]):
        yield f"| {name} | {row['rmse']:.3f} | {row['mae']:.3f} | {row['label']:.3f} | {row['fit_cpu_s']:.0f} |"
    yield ""


def certified() -> Iterator[str]:
    found = {name: split for name, split in (results("progressive_ml100k") or {}).items() if name.startswith("split")}
    if not found:
        return
    yield (
        f"**What is guaranteed, MovieLens-100K, {len(found)} random splits** (mean error in stars; with probability "
        "95 % the expected error on new ratings is at most the certificate)"
    )
    yield ""
    yield "| | certificate | error on test data |"
    yield "|---|---|---|"
    for title, key in (
        ("co-clustering, 13 × 6, tested as it learns", "13 × 6, median"),
        ("layers, tested as they learn", "layers"),
        ("layers, whole stars, tested as they learn", "layers, label"),
    ):
        rows = [split[key] for split in found.values() if key in split]
        yield f"| {title} | {mean(rows, 'certificate'):.3f} | {mean(rows, 'test'):.3f} |"
    for title, key in (
        ("co-clustering, 13 × 6, a fifth of the ratings set aside", "13 × 6, a fifth held out, median, betting"),
        ("co-clustering, 13 × 6, nothing set aside", "13 × 6 in sample, randomised"),
    ):
        rows = [split["others"][key] for split in found.values() if key in split.get("others", {})]
        yield f"| {title} | {mean(rows, 'certificate'):.3f} | {mean(rows, 'test'):.3f} |"
    yield ""


def mean(rows: list[dict[str, float]], key: str) -> float:
    return sum(row[key] for row in rows) / len(rows)


def ranking() -> Iterator[str]:
    found = results("peers_ranking")
    if not found:
        return
    names = {"ml1m": "MovieLens-1M", "ml100k": "MovieLens-100K", "foodmart": "Foodmart purchases"}
    sets = [name for name in names if name in found]
    yield "**What comes next: the 20 best of all items** (NDCG, mean of the splits)"
    yield ""
    yield f"| | {' | '.join(names[name] for name in sets)} |"
    yield "|---" * (len(sets) + 1) + "|"
    for model in ("BasketRanker", "iALS", "EASE", "item-kNN", "popularity"):
        yield f"| {model} | {' | '.join(format(found[name]['mean'][model]['ndcg'], '.3f') for name in sets)} |"
    yield ""


def graphs() -> Iterator[str]:
    found = results("peers_graphs_planted")
    if not found:
        return
    methods = ("gingham, k found", "gingham, k given", "leidenalg", "graspologic")
    yield "**Planted graphs: agreement with the truth** (adjusted Rand index; CPU seconds; medians)"
    yield ""
    yield f"| graph | {' | '.join(methods)} |"
    yield "|---" * (len(methods) + 1) + "|"
    for graph, rows in found.items():
        cells = [f"{rows[m]['ari_median']:.3f}; {rows[m]['cpu_median_s']:.2f} s" for m in methods]
        yield f"| {graph} nodes | {' | '.join(cells)} |"
    yield ""


def speed() -> Iterator[str]:
    kernel, gpu = results("speed_project"), results("speed_gpu_fit")
    if kernel:
        share = kernel["summary"]["one_thread_over_c_median"]
        yield f"**Speed.** The inner loop takes {share:.2f} times as long as a plain C loop over the same arrays."
    sizes = {case["tuples"]: case for case in (gpu or {}).get("fits", [])}
    if sizes:
        told = [
            f"{n / 1e6:,.0f} million ratings in {sorted(case['fit_s'])[len(case['fit_s']) // 2]:.2g} s"
            for n, case in sorted(sizes.items())
        ]
        yield f"On one H200 GPU a whole fit with 64 × 64 clusters, from arrays to model, takes: {', '.join(told)}."
    yield ""


def renew() -> str:
    """README.md with fresh results."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    lines = [*ratings(), *certified(), *ranking(), *graphs(), *speed()]
    return before + BEGIN + "\n\n" + "\n".join(lines).rstrip() + "\n\n" + END + after


if __name__ == "__main__":
    (ROOT / "README.md").write_text(renew(), encoding="utf-8")
