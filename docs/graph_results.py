"""The tables of graphs in results.md, written from the JSON files whenever the documentation is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measured import results, table

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
    rows = []
    for key, name in PLANTED.items():
        if key.startswith("degrees") == degrees:
            methods = [found[key][method] for method in ("gingham, k found", "leidenalg", "graspologic")]
            right = [f"{row['k_right']} of {row['runs']}" for row in methods[:2]] + ["–"]
            cells = (f"{row['ari_min']:.3f}, {k}, {row['cpu_median_s']:.2f}" for row, k in zip(methods, right))
            rows.append([name, *cells])
    yield from table(("graph", "GraphClustering, k found", "Leiden", "graspologic, k given"), rows)


def large(found: dict[str, Any]) -> Iterator[str]:
    """CPU seconds and clusters."""
    methods = ("gingham", "gingham, degrees corrected", "leidenalg", "scikit-network Louvain")
    rows = []
    for key, name in LARGE.items():
        one = found[key]["gingham"]
        cells = (f"{two_digits(row['cpu_s'])}, {row['clusters']}" for row in map(found[key].get, methods))
        rows.append([name, f"{one['nodes']:,}, {one['edges']:,}", *cells])
    head = ("gingham: CPU s, clusters", "degrees corrected", "leidenalg", "scikit-network's Louvain")
    yield from table(("graph", "nodes, edges", *head), rows)


TABLES = {
    "graphs_planted": lambda: planted(results("peers_graphs_planted"), degrees=False),
    "graphs_planted_with_degrees": lambda: planted(results("peers_graphs_planted"), degrees=True),
    "graphs_large": lambda: large(results("speed_graphs_large")),
}
