"""Graphs and counts on the command line, and the clusters of any model as a table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl

from gingham.cli.fitting import Wish, model_facts
from gingham.cli.kinds import other_model, takes_callback
from gingham.cli.screen import sweeps
from gingham.cli.tables import drop_missing, need_columns
from gingham.errors import GinghamError


def fit_other(table: pl.DataFrame, wish: Wish, quiet: bool = False) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A graph (two columns of nodes) or counts (two columns of items), with an optional column of weights."""
    began = time.perf_counter()
    if len(wish.axes) != 2:
        example = "from,to" if wish.model == "graph" else "word,document"
        raise GinghamError(f"--model {wish.model} needs two columns of ids, such as --axes {example}.")
    need_columns(table, wish.axes, "--axes")
    weight = wish.weight or wish.label
    if weight is not None:
        need_columns(table, [weight], "--weight")
    kept, dropped = drop_missing(table, [*wish.axes, *([weight] if weight else [])])
    if dropped:
        raise GinghamError(f"{dropped:,} of {table.height:,} rows have a missing value; leave them out first.")
    weights = None if weight is None else kept[weight].cast(pl.Float64, strict=False).to_numpy()
    if weights is not None and not np.isfinite(weights).all():
        raise GinghamError(f"--weight column {weight!r} must hold finite numbers.")
    model = other_model(wish.model, wish.clusters, wish.beta, wish.seed)
    with sweeps("clustering", quiet) as callback:
        more = {"callback": callback} if takes_callback(model) else {}
        if wish.model == "graph":
            frame = kept.select(pl.col(wish.axes[0]).alias("from"), pl.col(wish.axes[1]).alias("to"))
            model.fit(frame if weights is None else frame.with_columns(weight=weights), **more)
        else:
            model.fit(kept.select(wish.axes), sample_weight=weights, **more)
    notes = {"axes": list(wish.axes), "label": None, "weight": weight, "model": wish.model, "seed": wish.seed}
    facts = {"rows": kept.height, **model_facts(model, wish.model), "seconds": round(time.perf_counter() - began, 2)}
    return model, notes, facts


def clusters_table(model: Any) -> pl.DataFrame:
    """Item, most probable cluster and its share, for every item of every mode."""
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        raise GinghamError(f"{type(model).__name__} has no clusters of items to list.")
    parts = [
        pl.DataFrame(
            {
                "axis": [mode.name] * mode.n_items,
                "item": [str(item) for item in mode.items.tolist()],
                "cluster": q.argmax(axis=1),
                "share": q.max(axis=1),
            }
        )
        for mode, q in zip(posterior.structure.modes, posterior.assign)
    ]
    return pl.concat(parts)
