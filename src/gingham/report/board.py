"""The checkerboard as two small pictures (as it came, and reordered) with what a pointer over them must know."""

from __future__ import annotations

import base64
import io

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.posterior import Posterior
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.plots.arrange import arrange, picture

MAX_PIXELS = 2000  # pixels a side; more items than that share pixels


def board(
    posterior: Posterior,
    sample: Sample,
    shown: list[Ints],
    positions: tuple[int, int],
    relation: int,
    zeros: bool = False,
    logarithmic: bool = False,
) -> dict[str, object]:
    """Both pictures, the order of items, and the borders of clusters.

    ``zeros``: what is not listed counts as zero. ``logarithmic``: colours follow ln(1 + value), for counts.
    """
    layout = arrange(posterior, positions, relation)
    values = picture(sample, layout.items, positions, MAX_PIXELS, zeros)
    before = picture(sample, None, positions, MAX_PIXELS, zeros)
    if logarithmic:
        values, before = np.log1p(values), np.log1p(before)
    low, high = _range(values, before)
    return {
        "logarithmic": logarithmic,
        "holes": bool(np.isnan(before).any()),
        "rows": values.shape[0],
        "columns": values.shape[1],
        "low": low,
        "high": high,
        "reordered": png(values, low, high),
        "original": png(before, low, high),
        "clusters": [order.tolist() for order in layout.clusters],
        "bounds": [bounds.tolist() for bounds in layout.bounds],
        # for each place in the order: the place of the item in the page's list of items, −1 if it is not there
        "order": [_places(order, chosen, n) for order, chosen, n in zip(layout.items, shown, values.shape)],
        "plain": [_places(np.arange(len(o)), chosen, n) for o, chosen, n in zip(layout.items, shown, values.shape)],
    }


def _places(order: Ints, shown: Ints, n_pixels: int) -> list[int] | None:
    """Places in the list of items; None when several items share a pixel."""
    if len(order) > n_pixels:
        return None
    place = np.full(len(order), -1)
    place[shown] = np.arange(len(shown))
    return [int(p) for p in place[order]]


def _range(*images: Floats) -> tuple[float, float]:
    seen = np.concatenate([image[np.isfinite(image)] for image in images])
    return (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)


def png(values: Floats, low: float, high: float) -> str:
    """A data address of an 8-bit picture: 0 where nothing was observed, 1 to 255 from low to high."""
    try:
        from PIL import Image
    except ImportError:
        raise GinghamError("The report draws with Pillow: install gingham[report].") from None
    scaled = np.zeros(values.shape, dtype=np.uint8)
    seen = np.isfinite(values)
    width = high - low if high > low else 1.0
    scaled[seen] = 1 + np.rint(254 * (values[seen] - low) / width).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(scaled).save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
