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
    growth = (results("peers_selection") or {}).get("growth")
    if growth:
        ratio = growth["seconds a rating, large over small"]
        yield f"A chain takes {ratio:.2f} times as long a rating on 800,000 ratings as on 80,000."
        yield ""


def certified() -> Iterator[str]:
    found = results("peers_ratings_certificates")
    if not found:
        return
    yield (
        "**Certificates of the layered model on random splits** (δ = .05; mean over the splits, lowest and highest; "
        "a fifth or a tenth set aside: by betting, beside it log-wealth)"
    )
    yield ""
    yield "| set aside | | splits | certified | on test data |"
    yield "|---|---|---|---|---|"
    for key, aside in (("holdout20", "a fifth"), ("holdout10", "a tenth"), ("cross", "a tenth by each member")):
        rows: dict[str, list[dict[str, float]]] = {}
        for split in found.values():
            for name, row in split.get(key, {}).items():
                if isinstance(row, dict):
                    rows.setdefault(name, []).append(row)
        for name, each in rows.items():
            bounds = [row["certificate"] for row in each]
            test = sum(row["test"] for row in each) / len(each)
            span = f"{sum(bounds) / len(each):.3f} ({min(bounds):.3f}–{max(bounds):.3f})"
            yield f"| {aside} | {name} | {len(each)} | {span} | {test:.3f} |"
    yield ""


def graphs() -> Iterator[str]:
    found = results("peers_graphs_planted")
    if not found:
        return
    yield "**Planted graphs** (adjusted Rand index, median; CPU seconds, median)"
    yield ""
    yield "| | graph | agreement | CPU s |"
    yield "|---|---|---|---|"
    for graph, rows in found.items():
        for name, row in rows.items():
            if isinstance(row, dict) and "ari_median" in row:
                yield f"| {name} | {graph} | {row['ari_median']:.3f} | {row['cpu_median_s']:.2f} |"
    yield ""


def speed() -> Iterator[str]:
    kernel, gpu = results("speed_project"), results("speed_gpu")
    if kernel:
        summary = kernel["summary"]
        yield (
            f"**Speed.** The kernel takes {summary['one_thread_over_c_median']:.2f} × the time of a plain C loop over "
            "the same arrays (one thread, median of the cases)."
        )
    largest = [s for s in (gpu or {}).get("sweeps", []) if s.get("tuples", 0) >= 1e8]
    if largest:
        first = largest[0]
        yield (
            f"On one GPU a sweep over {first['tuples'] / 1e6:,.0f} million ratings with "
            f"{'×'.join(map(str, first['clusters']))} clusters takes {first['sweep_ms']:.1f} ms."
        )
    yield ""


def renew() -> str:
    """README.md with fresh results."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    lines = [*ratings(), *certified(), *graphs(), *speed()]
    return before + BEGIN + "\n\n" + "\n".join(lines).rstrip() + "\n\n" + END + after


if __name__ == "__main__":
    (ROOT / "README.md").write_text(renew(), encoding="utf-8")
