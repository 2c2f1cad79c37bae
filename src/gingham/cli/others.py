"""Graphs, counts, feature tables and views on the command line, and the clusters of any model as a table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from gingham.arrays import Anything, Floats, Ints
from gingham.cli.fitting import Wish, model_facts
from gingham.cli.kinds import other_model, takes_callback
from gingham.cli.screen import sweeps
from gingham.cli.tables import drop_missing, need_columns
from gingham.data import Mode
from gingham.errors import GinghamError

EXAMPLES = {"graph": "from,to", "cooccurrence": "word,document", "information": "patient,symptom"}


def fit_other(table: pl.DataFrame, wish: Wish, quiet: bool = False) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A fitted model of rows without a label to predict, the notes to store with it, and the facts to show."""
    began = time.perf_counter()
    model = other_model(wish.model, wish.clusters, wish.beta, wish.seed)
    items: list[list[str]] = []
    with sweeps("clustering", quiet) as callback:
        more = {"callback": callback} if takes_callback(model) else {}
        if wish.model == "pairwise":
            model.fit(views(table, wish.axes), **more)
            items = [[str(row) for row in range(table.height)]]
        else:
            kept, weights = two_columns(table, wish)
            if wish.model == "graph":
                frame = kept.select(pl.col(wish.axes[0]).alias("from"), pl.col(wish.axes[1]).alias("to"))
                model.fit(frame if weights is None else frame.with_columns(weight=weights), **more)
            elif wish.model == "cooccurrence":
                modes, codes = numbered(kept, wish.axes)
                counts = np.ones(kept.height) if weights is None else weights
                shape = tuple(mode.n_items for mode in modes)
                model.fit(sparse.coo_array((counts, (codes[0], codes[1])), shape=shape).tocsr(), **more)
                items = [[str(item) for item in mode.items.tolist()] for mode in modes]
            else:
                instances, values = feature_table(kept, wish)
                model.fit(values, **more)
                items = [instances]
    notes = {
        "axes": list(wish.axes), "items": items, "label": None, "weight": wish.weight, "model": wish.model,
        "seed": wish.seed,
    }  # fmt: skip
    facts: dict[str, Any] = {"rows": table.height, **model_facts(model, wish.model)}
    for name in ("observed_information_", "chance_information_", "n_components_"):
        if hasattr(model, name):
            facts[name.strip("_")] = getattr(model, name)
    facts["seconds"] = round(time.perf_counter() - began, 2)
    return model, notes, facts


def two_columns(table: pl.DataFrame, wish: Wish) -> tuple[pl.DataFrame, Floats | None]:
    """Rows with two ids (and a value or weight), checked; weights as numbers where they are wanted."""
    if len(wish.axes) != 2:
        raise GinghamError(f"--model {wish.model} needs two columns of ids, such as --axes {EXAMPLES[wish.model]}.")
    need_columns(table, wish.axes, "--axes")
    weight = wish.weight or wish.label
    if weight is not None:
        need_columns(table, [weight], "--weight")
    kept, dropped = drop_missing(table, [*wish.axes, *([weight] if weight else [])])
    if dropped:
        raise GinghamError(f"{dropped:,} of {table.height:,} rows have a missing value; leave them out first.")
    if weight is None or wish.model == "information":
        return kept, None
    weights = kept[weight].cast(pl.Float64, strict=False).to_numpy()
    if not np.isfinite(weights).all():
        raise GinghamError(f"--weight column {weight!r} must hold finite numbers.")
    if wish.model == "cooccurrence" and (weights < 0).any():
        raise GinghamError(f"--weight column {weight!r} holds negative numbers; counts are not negative.")
    return kept, weights


def numbered(table: pl.DataFrame, names: tuple[str, ...]) -> tuple[list[Mode], list[Ints]]:
    modes = [Mode.of(table[name].to_numpy(), name) for name in names]
    return modes, [mode.encode(table[mode.name].to_numpy()) for mode in modes]


def feature_table(table: pl.DataFrame, wish: Wish) -> tuple[list[str], Anything]:
    """Instances × features with the value column inside; pairs that do not occur are missing."""
    if wish.label is None:
        raise GinghamError("--model information clusters values of features: name their column with --label.")
    modes, codes = numbered(table, wish.axes)
    values = np.full((modes[0].n_items, modes[1].n_items), np.nan)
    values[codes[0], codes[1]] = table[wish.label].cast(pl.String).cast(pl.Categorical).to_physical().to_numpy()
    return [str(item) for item in modes[0].items.tolist()], values


def views(table: pl.DataFrame, axes: tuple[str, ...]) -> list[Floats]:
    """Matrices of numbers from "x1,x2;y1,y2": columns of one view with commas, views with semicolons."""
    groups = [[name.strip() for name in part.split(",") if name.strip()] for part in ",".join(axes).split(";")]
    if len(groups) < 2 or not all(groups):
        raise GinghamError("--model pairwise needs two or more views: --axes 'x1,x2;y1,y2,y3'.")
    for group in groups:
        need_columns(table, group, "--axes")
        for name in group:
            column = table[name]
            if not column.dtype.is_numeric() or column.null_count() or not np.isfinite(column.to_numpy()).all():
                raise GinghamError(f"Column {name!r} of a view must hold finite numbers.")
    return [table.select(group).to_numpy().astype(np.float64) for group in groups]


def clusters_table(model: Any) -> pl.DataFrame:
    """Item, most probable cluster and its share, for every item of every mode."""
    names = model.notes_.get("items") or []
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        labels = getattr(model, "labels_", None)
        if labels is None or not names:
            raise GinghamError(f"{type(model).__name__} has no clusters of items to list.")
        return pl.DataFrame({"axis": model.notes_["axes"][0], "item": names[0], "cluster": labels, "share": 1.0})
    parts = []
    for at, (mode, q) in enumerate(zip(posterior.structure.modes, posterior.assign)):
        parts.append(
            pl.DataFrame(
                {
                    "axis": [model.notes_["axes"][at] if names else mode.name] * mode.n_items,
                    "item": names[at] if names else [str(item) for item in mode.items.tolist()],
                    "cluster": q.argmax(axis=1),
                    "share": np.asarray(q.max(axis=1), dtype=np.float64),
                }
            )
        )
    return pl.concat(parts)
