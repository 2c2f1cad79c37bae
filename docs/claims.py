"""The results that README.md and results.md show, from benchmarks/results/*.json.

``python docs/claims.py`` renews the table in README.md. The tables and the plots of results.md are written whenever the
documentation is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
from measured import ROOT, renewed, results, table

GROUPS = {
    "u1-u5": "MovieLens-100K, official splits u1–u5",
    "ml1m-90": "MovieLens-1M, a random tenth for testing",
    "ml1m-80": "MovieLens-1M, a random fifth for testing",
    "later": "MovieLens-100K in the order of time: the first 80 % for training, what came later for testing",
    "jester-80": "Jester, 400,000 ratings from −10 to 10, a random fifth for testing",
}


SPLITS = {"u1-u5": r"u\d"}  # how splits of a group are named, where not like it


def of_methods(title: str, rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """Methods from the least error to the largest, then those that did not finish."""
    yield title
    yield ""
    yield "| | RMSE | MAE | MAE of whole stars | CPU s |"
    yield "|---|---|---|---|---|"
    for name, row in sorted(rows.items(), key=lambda pair: pair[1].get("rmse", float("inf"))):
        shown = f"**{re.sub('^ours', 'gingham', name)}**" if name.startswith("ours") else name
        if "rmse" not in row:
            yield f"| {shown} | – | – | – | not finished within {row['not finished within cpu_s']:.0f} |"
            continue
        whole = f"{row['label']:.4f}" if "label" in row else "–"
        yield f"| {shown} | {row['rmse']:.4f} | {row['mae']:.4f} | {whole} | {row['cpu_s']:.0f} |"
    yield ""


def ratings() -> Iterator[str]:
    """Basket layers beside their peers, split by split."""
    found = results("peers_baskets")
    for key, title in GROUPS.items():
        group = found["summary"].get(key)
        if group is None:
            continue
        n = group["splits"]
        seeds = "" if key in ("u1-u5", "later") else f" ({n} seed{'s' if n > 1 else ''})"
        yield from of_methods(f"**{title}**{seeds}", group["means"])
        # What was measured on some of the splits only, beside the others there.
        splits = [name for name in found["by_split"] if re.fullmatch(rf"{SPLITS.get(key, key)}(-\d+)?", name)]
        most = max(splits, key=lambda name: len(found["by_split"][name]))
        if len(found["by_split"][most]) > len(group["means"]):
            yield from of_methods(f"**{title}**: {most} alone", found["by_split"][most])
    yield ""


def certified() -> Iterator[str]:
    found = {name: split for name, split in results("progressive_ml100k").items() if name.startswith("split")}
    baskets = [split for name, split in results("peers_baskets_certified").items() if name in found]
    shown = []
    for title, key in (
        ("layers, progressive validation with references", "progressive, mean"),
        ("layers, progressive validation", "progressive without references, mean"),
        ("layers, whole stars, progressive validation with references", "progressive by the mean's plan, label"),
        ("layers, whole stars, progressive validation", "progressive without references, label"),
        ("layers, a fifth held out", "a fifth held out, mean"),
        ("layers, whole stars, a fifth held out", "a fifth held out, label"),
        ("co-clustering, 13 × 6, progressive validation", "13 × 6, median"),
    ):
        rows = [split[key] for split in (*baskets, *found.values()) if key in split]
        if rows:
            shown.append([title, mean(rows, "certificate"), mean(rows, "test")])
    for title, key in (
        ("co-clustering, 13 × 6, a fifth held out", "13 × 6, a fifth held out, median, betting"),
        ("co-clustering, 13 × 6, nothing held out", "13 × 6 in sample, randomised"),
    ):
        rows = [split["others"][key] for split in found.values() if key in split.get("others", {})]
        shown.append([title, mean(rows, "certificate"), mean(rows, "test")])
    yield from table(("", "certificate", "error on test data"), shown)
    yield ""


def mean(rows: list[dict[str, float]], key: str) -> str:
    return f"{sum(row[key] for row in rows) / len(rows):.3f}"


def ranking() -> Iterator[str]:
    found = results("peers_ranking")
    names = {
        "ml1m": "MovieLens-1M", "ml100k": "MovieLens-100K", "anime": "Anime", "foodmart": "Foodmart",
        "completejourney": "Complete Journey", "epub": "Epub sessions",
    }  # fmt: skip
    models = ("BasketRanker", "one readable board", "EDLAE", "EASE", "iALS", "RP3beta", "item-kNN", "popularity")
    means = {name: found[name]["mean"] for name in names}
    rows = [[model, *(f"{means[name][model]['ndcg']:.4f}" for name in names)] for model in models]
    for model, shown in (("BasketRanker", "BasketRanker, CPU s"), ("EASE", "EASE with known settings, CPU s")):
        rows.append([shown, *(f"{means[name][model]['cpu_s']:.1f}" for name in names)])
    yield from table(("", *names.values()), rows)
    yield ""


def new_items() -> Iterator[str]:
    found = results("peers_ranking_new_items")
    names = {"anime": "Anime", "movietweetings": "MovieTweetings"}
    ways = {
        "ours": "`BasketRanker(side=…)`", "content": "words of the basket",
        "popularity": "popularity, which knows nothing of them",
    }  # fmt: skip
    rows = ([shown, *(f"{found[name][who]['recall']:.3f}" for name in names)] for who, shown in ways.items())
    yield from table(("", *names.values()), rows)
    yield ""


def graphs() -> Iterator[str]:
    methods = ("gingham, k found", "gingham, k given", "leidenalg", "graspologic")
    yield from table(
        ("graph", *methods),
        (
            [f"{graph} nodes", *(f"{rows[m]['ari_median']:.3f}; {rows[m]['cpu_median_s']:.2f} s" for m in methods)]
            for graph, rows in results("peers_graphs_planted").items()
        ),
    )
    yield ""


def speed() -> Iterator[str]:
    kernel, gpu = results("speed_project"), results("speed_gpu_fit")
    share = kernel["summary"]["one_thread_over_c_median"]
    yield f"The inner loop takes {share:.2f} times as long as a plain C loop over the same arrays."
    sizes = {case["tuples"]: case for case in gpu["fits"]}
    times = [
        f"{n / 1e6:,.0f} million ratings in {sorted(case['fit_s'])[len(case['fit_s']) // 2]:.2g} s"
        for n, case in sorted(sizes.items())
    ]
    yield f"On one H200 GPU a whole fit with 64 × 64 clusters, from arrays to model, takes: {', '.join(times)}."
    yield ""


TABLES = {
    "claim_ratings": ratings,
    "claim_certified": certified,
    "claim_ranking": ranking,
    "claim_new_items": new_items,
    "claim_graphs": graphs,
    "claim_speed": speed,
}
PEERS = ("myFM ordinal, ids + implicit + side + time", "myFM ordinal, ids + implicit + side", "myFM ids")


def overview() -> Iterator[str]:
    """The table of README.md: one line per claim, and one that another library wins."""
    means = {key: group["means"] for key, group in results("peers_baskets")["summary"].items()}
    lists, planted = results("peers_ranking")["ml1m"]["mean"], results("peers_graphs_planted")
    yield "| data and measure | gingham | best other library |"
    yield "|---|---|---|"
    for title, split, ours, peer, measure, form in (
        ("MovieLens-100K, splits u1 to u5: RMSE ↓", "u1-u5", "ours + side + time", PEERS[0], "rmse", ".3f"),
        ("MovieLens-1M, a tenth held out: RMSE ↓", "ml1m-90", "ours + side", PEERS[1], "rmse", ".3f"),
        ("Jester, jokes rated from −10 to 10: MAE ↓", "jester-80", "ours", PEERS[2], "mae", ".4f"),
    ):
        yield line(title, means[split][ours][measure], means[split][peer][measure], "myFM", form)
    for title, rows, measure, ours, peer, shown in (
        ("MovieLens-1M, the 20 best items: NDCG ↑", lists, "ndcg", "BasketRanker", "iALS", "iALS"),
        (
            "planted ring graph, 5,000 nodes: adjusted Rand index ↑",
            planted["ring 5000"],
            "ari_median",
            "gingham, k found",
            "graspologic",
            "graspologic",
        ),
        (
            "planted groups, 1,000 nodes: adjusted Rand index ↑",
            planted["assortative 1000"],
            "ari_median",
            "gingham, k found",
            "leidenalg",
            "leidenalg",
        ),
    ):
        yield line(title, rows[ours][measure], rows[peer][measure], shown, ".3f", least=False)


def line(title: str, ours: float, other: float, peer: str, form: str, *, least: bool = True) -> str:
    """One claim, with the better figure in bold."""
    shown = [format(ours, form), format(other, form)]
    best = (ours > other) if least else (ours < other)
    shown[best] = f"**{shown[best]}**"
    return f"| {title} | {shown[0]} | {shown[1]} ({peer}) |"


def draw_claims(folder: Path) -> None:
    """The plots that results.md shows."""
    means = results("peers_baskets")["summary"]["u1-u5"]["means"]
    errors = {name: row["rmse"] for name, row in means.items()}
    points(folder / "claim_ratings.svg", errors, "RMSE in stars", least=True)
    lists = results("peers_ranking")["ml1m"]["mean"]
    names = ("popularity", "item-kNN", "EASE", "iALS", "BasketRanker")
    points(folder / "claim_ranking.svg", {name: lists[name]["ndcg"] for name in names}, "NDCG of the 20 best items")
    ring = results("peers_graphs_planted")["degrees ring 5000"]
    found = {name: ring[name]["ari_median"] for name in ("graspologic", "leidenalg", "gingham, k found")}
    points(folder / "claim_graphs.svg", found, "adjusted Rand index")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in list(certified())[2:] if row]
    intervals(folder / "claim_certified.svg", {name: (float(test), float(value)) for name, value, test in rows})


OURS, OTHER = "#a33224", "#9aa5b1"


def points(path: Path, values: dict[str, float], label: str, *, least: bool = False) -> None:
    """One point per method, the best at the top; gingham's own in colour."""
    names = sorted(values, key=values.__getitem__, reverse=least)
    figure, ax = plt.subplots(figsize=(8, 0.6 + 0.3 * len(names)), layout="constrained")
    for place, name in enumerate(names):
        own = name.startswith(("ours", "gingham", "CoClustering", "Basket"))
        ax.plot(values[name], place, "o", color=OURS if own else OTHER, markersize=9)
        ax.annotate(f"{values[name]:.3f}", (values[name], place), (8, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(names)), [re.sub("^ours", "gingham", name) for name in names])
    ax.set(xlabel=f"{label} ({'lower' if least else 'higher'} is better)")
    ax.margins(x=0.12)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.grid(axis="y", color="#e4e7eb")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def intervals(path: Path, values: dict[str, tuple[float, float]]) -> None:
    """From the error on test data to the certificate."""
    figure, ax = plt.subplots(figsize=(8, 0.6 + 0.32 * len(values)), layout="constrained")
    names = list(values)[::-1]
    for place, name in enumerate(names):
        ax.plot(values[name], [place, place], color=OTHER, linewidth=2)
    ax.plot([values[name][0] for name in names], range(len(names)), "o", color=OTHER, label="error on test data")
    ax.plot([values[name][1] for name in names], range(len(names)), "o", color=OURS, label="certificate")
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("mean absolute error in stars")
    ax.legend()
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, facecolor="white")
    plt.close(figure)


def renew() -> str:
    """README.md with a fresh table."""
    return renewed((ROOT / "README.md").read_text(encoding="utf-8"), "results", "claims", overview())


if __name__ == "__main__":
    (ROOT / "README.md").write_text(renew(), encoding="utf-8")
