"""The results in README.md, from benchmarks/results/*.json: ``python docs/readme_results.py`` renews them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from measured import ROOT, renewed, results

GROUPS = {
    "u1-u5": "MovieLens-100K, official splits u1–u5",
    "ml1m-90": "MovieLens-1M, a random tenth for testing",
    "ml1m-80": "MovieLens-1M, a random fifth for testing",
    "later": "MovieLens-100K in the order of time: the first 80 % for training, what came later for testing",
    "jester-80": "Jester, 400,000 ratings from −10 to 10, a random fifth for testing",
}


SPLITS = {"u1-u5": r"u\d"}  # how splits of a group are named, where not like it


def table(title: str, rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """Methods from the least error to the largest, then those that did not finish."""
    yield title
    yield ""
    yield "| | RMSE | MAE | MAE of whole labels | CPU s |"
    yield "|---|---|---|---|---|"
    for name, row in sorted(rows.items(), key=lambda pair: pair[1].get("rmse", float("inf"))):
        shown = f"**{name.replace('ours', 'gingham')}**" if name.startswith("ours") else name
        if "rmse" not in row:
            yield f"| {shown} | – | – | – | not finished within {row['not finished within cpu_s']:.0f} |"
            continue
        whole = f"{row['label']:.4f}" if "label" in row else "–"
        yield f"| {shown} | {row['rmse']:.4f} | {row['mae']:.4f} | {whole} | {row['cpu_s']:.0f} |"
    yield ""


def ratings() -> Iterator[str]:
    """Basket layers beside their peers, split by split."""
    found = results("peers_baskets")
    if not found:
        return
    for key, title in GROUPS.items():
        group = found["summary"].get(key)
        if group is None:
            continue
        n = group["splits"]
        seeds = "" if key in ("u1-u5", "later") else f" ({n} seed{'s' if n > 1 else ''})"
        yield from table(f"**{title}**{seeds}", group["means"])
        # What was measured on some of the splits only, beside the others there.
        splits = [name for name in found["by_split"] if re.fullmatch(rf"{SPLITS.get(key, key)}(-\d+)?", name)]
        most = max(splits, key=lambda name: len(found["by_split"][name]))
        if len(found["by_split"][most]) > len(group["means"]):
            yield from table(f"**{title}**: {most} alone", found["by_split"][most])
    yield (
        "gingham is `LayeredCoClusteringRegressor` with nothing set but `side=` (tables of users and movies) and "
        "`time=`. CPU seconds are those of fit and prediction; peers spent more on choosing a rank (in the JSON). "
        "Whole labels: the median of a law where a model has one, learned cut points for all others. Time means "
        "windows of time, the same kind for myFM; at random splits a sitting lies on both sides, which is what they "
        "profit from. On Jester everybody has met the same hundred jokes, so who rated what says little; there gingham "
        'gives each joke a cluster of its own. A split\'s name and "alone" stand where peers were not measured on all.'
    )
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
    baskets = [split for name, split in (results("peers_baskets_certified") or {}).items() if name in found]
    for title, key in (
        ("layers, tested as they learn, with references", "progressive, mean"),
        ("layers, tested as they learn", "progressive without references, mean"),
        ("layers, whole stars, tested as they learn, with references", "progressive by the mean's plan, label"),
        ("layers, whole stars, tested as they learn", "progressive without references, label"),
        ("layers, a fifth of the ratings set aside", "a fifth held out, mean"),
        ("layers, whole stars, a fifth set aside", "a fifth held out, label"),
        ("co-clustering, 13 × 6, tested as it learns", "13 × 6, median"),
    ):
        rows = [split[key] for split in (*baskets, *found.values()) if key in split]
        if rows:
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
    for model in ("BasketRanker", "one readable board", "iALS", "EASE", "item-kNN", "popularity"):
        shown = "one readable board that stands for it" if model == "one readable board" else model
        yield f"| {shown} | {' | '.join(format(found[name]['mean'][model]['ndcg'], '.3f') for name in sets)} |"
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
    lines = [*ratings(), *certified(), *ranking(), *graphs(), *speed()]
    return renewed((ROOT / "README.md").read_text(encoding="utf-8"), "results", "readme_results", lines)


if __name__ == "__main__":
    (ROOT / "README.md").write_text(renew(), encoding="utf-8")
