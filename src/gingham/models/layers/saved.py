"""Layered models as plain values and arrays, for model files."""

from __future__ import annotations

from typing import Any

from gingham.errors import GinghamError
from gingham.models.layers.model import NO_TILTS, Draws, SoftLayers


def model_state(model: Draws | tuple[SoftLayers, ...]) -> dict[str, Any]:
    if isinstance(model, Draws):
        return {
            "n_items": list(model.n_items),
            "n_clusters": list(model.n_clusters),
            "means": model.means,
            "offsets": model.offsets,
            # Successive draws agree for most items: stored as changes, the file shrinks by half.
            "labels": _changes(model.labels),
            "cells": model.cells,
            **({"tilts": model.tilts} if len(model.tilts) else {}),
        }
    return {
        "members": [
            {
                "mean": member.mean,
                "offsets": list(member.offsets),
                "assign": [list(layer) for layer in member.assign],
                "cells": list(member.cells),
            }
            for member in model
        ]
    }


def model_from_state(state: dict[str, Any]) -> Draws | tuple[SoftLayers, ...]:
    if "members" in state:
        return tuple(
            SoftLayers(m["mean"], tuple(m["offsets"]), tuple(tuple(layer) for layer in m["assign"]), tuple(m["cells"]))
            for m in state["members"]
        )
    labels = _sums(state["labels"])
    n_items, n_clusters = tuple(state["n_items"]), tuple(state["n_clusters"])
    if labels.ndim != 3 or labels.shape[2] != sum(n + 1 for n in n_items):
        raise GinghamError(f"The model file is damaged: its layers have labels of shape {labels.shape}.")
    tilts = state.get("tilts", NO_TILTS)
    for name, array in (("offsets", state["offsets"]), ("tilts", tilts)):
        if array.size and array.shape != (len(labels), labels.shape[2]):
            raise GinghamError(f"The model file is damaged: its layers have {name} of shape {array.shape}.")
    return Draws(n_items, n_clusters, state["means"], state["offsets"], labels, state["cells"], tilts)


def _changes(labels: Any) -> Any:
    """Differences between successive draws, modulo 256."""
    changes = labels.copy()
    changes[1:] -= labels[:-1]
    return changes


def _sums(changes: Any) -> Any:
    return changes.cumsum(axis=0, dtype=changes.dtype)
