"""Reading basket layers: boards with names, how much each explains, and the account of a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gingham.data import Mode
from gingham.models.layers.baskets import HABIT, TASTE
from gingham.models.layers.baskets_draws import BasketDraws
from gingham.models.layers.model import Layer, ordered
from gingham.models.layers.side import SideCode


def readable_baskets(
    draws: BasketDraws, modes: Sequence[Mode], codes: Mapping[int, SideCode], draw: int = -1
) -> tuple[Layer, ...]:
    """The layers of one draw as boards, strongest first; rows are clusters of tokens, columns clusters of targets."""
    s = draw % draws.n_draws
    layers = []
    for t, layer in enumerate(draws.layers):
        source, target = modes[layer.source], modes[layer.target]
        if layer.kind == TASTE:
            tokens = source
        elif layer.kind == HABIT:
            tokens = Mode(f"{target.name} met by {source.name}", target.items)
        else:
            tokens = Mode(f"known of {source.name}", np.array(codes[layer.source].tokens))
        labels = (draws.tokens(s, t).astype(np.int64), draws.targets(s, t).astype(np.int64))
        # Items that were added later may have the average of all clusters, and belong to none.
        known = [np.where(own < m, own, 0) for own, m in zip(labels, draws.cells_of(s, t).shape)]
        layers.append(ordered((tokens, target), tuple(known), draws.cells_of(s, t).astype(np.float64), layer.kind))
    return tuple(sorted(layers, key=lambda layer: -layer.strength))
