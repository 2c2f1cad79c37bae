"""The clusters of any model as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gingham.errors import GinghamError


def clusters_table(model: Any) -> pl.DataFrame:
    """Item, most probable cluster and its share, for every item of every mode."""
    names = model.notes_.get("items") or []
    axes = model.notes_.get("axes") or []
    if hasattr(model, "row_labels_"):  # counts
        sides: list[tuple[Any, Any]] = [
            (model.row_labels_, model.row_memberships_),
            (model.column_labels_, model.column_memberships_),
        ]
        found = []
        for at, (labels, memberships) in enumerate(sides):
            own = names[at] if names else [str(i) for i in range(len(labels))]
            share = np.ones(len(labels)) if memberships is None else np.asarray(memberships.max(axis=1), np.float64)
            found.append(part(axes[at] if axes else ("row", "column")[at], own, labels, share))
        return pl.concat(found)
    if hasattr(model, "layers_"):
        layer = model.layers_[0]
        sized = zip(layer.modes, layer.labels)
        return pl.concat([part(mode.name, mode.items.tolist(), labels, np.ones(len(labels))) for mode, labels in sized])
    if hasattr(model, "members_"):
        raise GinghamError("Every member of a committee has clusters of its own; list those of --model coclustering.")
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        labels = getattr(model, "labels_", None)
        if labels is None or not names:
            raise GinghamError(f"{type(model).__name__} has no clusters of items to list.")
        return part(axes[0], names[0], labels, np.ones(len(labels)))
    return pl.concat(
        [
            part(mode.name, mode.items.tolist(), q.argmax(axis=1), np.asarray(q.max(axis=1), dtype=np.float64))
            for mode, q in zip(posterior.structure.modes, posterior.assign)
        ]
    )


def part(axis: str, items: Any, labels: Any, share: Any) -> pl.DataFrame:
    """The rows of one axis."""
    items = [str(item) for item in items]
    return pl.DataFrame({"axis": [axis] * len(items), "item": items, "cluster": np.asarray(labels), "share": share})
