"""Counts of more than two sides (P0 §7.2): who bought what, and when, in one table of three sides.

Grocery baskets of households: household × category of the product × hour of the day. A fifth of the baskets is held
out; measured are nats per held-out line, for three sides clustered together (a number of clusters per side that is
found, and given numbers), for the table of the first two sides clustered with the hour by itself, and for independent
sides.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, data_file, write

FIGURES = {
    "nats per line, three sides": "nats/three sides",
    "two sides and the hour": "nats/two sides, the third alone",
    "independent": "nats/independent",
}
SIZES = (5, 30, 4)


def lines(folder: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Numbers of household, category and hour of each line, and its basket."""
    with gzip.open(data_file(folder, "completejourney_products.csv.gz"), "rt", encoding="utf-8", newline="") as stream:
        category = {row["product_id"]: row["product_category"] for row in csv.DictReader(stream)}
    rows = []
    with gzip.open(data_file(folder, "completejourney_sample.csv.gz"), "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if category.get(row["product_id"]):
                hour = row["transaction_timestamp"][11:13]
                rows.append((row["household_id"], category[row["product_id"]], hour, row["basket_id"]))
    columns = [np.unique(column, return_inverse=True)[1] for column in zip(*rows)]
    return columns[:3], columns[3]


def tensor(columns: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    cells = np.bincount(np.ravel_multi_index(columns, shape), minlength=int(np.prod(shape)))
    return cells.reshape(shape).astype(float)


def main() -> None:
    args = arguments(__doc__ or "", "count_tensors")
    columns, basket = lines(args.data)
    if args.quick:
        columns, basket = [c[:8000] for c in columns], basket[:8000]
    held = np.random.default_rng(args.seed).random(basket.max() + 1)[basket] < 0.2
    shape = tuple(int(c.max()) + 1 for c in columns)
    train, test = [c[~held] for c in columns], np.column_stack([c[held] for c in columns])
    counts = tensor(train, shape)
    results: dict[str, Any] = {"lines": len(held), "shape": shape, "nats": {}, "cpu_s": {}, "clusters": {}}

    def measured(name: str, model: Any, X: np.ndarray, beside: np.ndarray | float = 0.0) -> None:
        start = time.process_time()
        model.fit(X)
        results["cpu_s"][name] = time.process_time() - start
        results["clusters"][name] = model.n_clusters_
        scores = model.score_samples(test[:, : X.ndim])
        results["nats"][name] = float(-(scores + beside).mean())
        print(name, model.n_clusters_, results["nats"][name], flush=True)

    measured("three sides", gg.CoOccurrenceClustering(SIZES, random_state=args.seed), counts)
    measured("three sides, found", gg.CoOccurrenceClustering("auto", random_state=args.seed), counts)
    hours = counts.sum(axis=(0, 1))
    alone = np.log((hours + 1 / len(hours)) / (hours.sum() + 1))[test[:, 2]]
    two = counts.sum(axis=2)
    measured("two sides, the third alone", gg.CoOccurrenceClustering(SIZES[:2], random_state=args.seed), two, alone)
    measured("independent", gg.CoOccurrenceClustering(1, random_state=args.seed), counts)
    write(args, {"clusters": SIZES}, results)


if __name__ == "__main__":
    main()
