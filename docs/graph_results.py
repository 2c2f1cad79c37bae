"""The tables of graphs in results.md, written from the JSON files whenever the documentation is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measured import results

PLANTED = {
    "assortative 5000": "5,000 nodes, 10 communities",
    "ring 5000": "5,000 nodes, ring of 10",
    "assortative 1000": "1,000 nodes, 5 communities",
    "degrees 5000": "5,000 nodes, 10 communities",
    "degrees ring 5000": "5,000 nodes, ring of 10",
    "degrees 1000": "1,000 nodes, 5 communities",
}
LARGE = {
    "ego_facebook": "ego-Facebook",
    "as_caida": "as-Caida",
    "ca_astroph": "ca-AstroPh",
    "email_enron": "email-Enron",
    "planted .5M edges": "planted, heavy tails",
    "planted 1.3M edges": "planted, heavy tails",
}


def two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


def planted(found: dict[str, Any], degrees: bool) -> Iterator[str]:
    """Lowest adjusted Rand index, how often the number of clusters was right, median CPU seconds."""
    yield "| graph | GraphClustering, k found | Leiden | graspologic, k given |"
    yield "|---|---|---|---|"
    for key, name in PLANTED.items():
        if key.startswith("degrees") == degrees:
            methods = [found[key][method] for method in ("gingham, k found", "leidenalg", "graspologic")]
            right = [f"{row['k_right']} of {row['runs']}" for row in methods[:2]] + ["–"]
            cells = [f"{row['ari_min']:.3f}, {k}, {row['cpu_median_s']:.2f}" for row, k in zip(methods, right)]
            yield f"| {name} | " + " | ".join(cells) + " |"


def large(found: dict[str, Any]) -> Iterator[str]:
    """CPU seconds and clusters."""
    yield (
        "| graph | nodes, edges | CPU s, clusters | degrees corrected | an earlier version | leidenalg | "
        "scikit-network's Louvain |"
    )
    yield "|---|---|---|---|---|---|---|"
    methods = (
        "gingham", "gingham, degrees corrected", "gingham, before", "leidenalg", "scikit-network Louvain",
    )  # fmt: skip
    for key, name in LARGE.items():
        own = found[key]["gingham"]
        rows = [found[key][method] for method in methods]
        cells = [f"{two_digits(row['cpu_s'])}, {row['clusters']}" for row in rows]
        yield f"| {name} | {own['nodes']:,}, {own['edges']:,} | " + " | ".join(cells) + " |"


def write_graphs(folder: Path) -> None:
    """One file per table."""
    planted_runs, large_runs = results("peers_graphs_planted"), results("speed_graphs_large")
    tables = {
        "planted": planted(planted_runs, degrees=False),
        "planted_with_degrees": planted(planted_runs, degrees=True),
        "large": large(large_runs),
    }
    for name, lines in tables.items():
        (folder / f"graphs_{name}.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")
