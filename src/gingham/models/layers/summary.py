"""Readable layers: checkerboards with names, how much each part explains, and the parts of one prediction.

All parts are means over the draws, so they add up to the mean of the latent answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.data import Mode
from gingham.models.layers.draws import LayerDraws, PredictionRows, with_unknown
from gingham.models.layers.problem import BASKET, ITEM, LayerPlan
from gingham.models.layers.side import SideCode
from gingham.summary.values import LayerTable

SHOWN = 5  # tokens of a basket that are named
MOST_LAYERS, MOST_CLUSTERS, MOST_ITEMS = 3, 6, 3  # of a table of layers: so many clusters a side, by so many items

Part = tuple[str, float]  # the reason, and the amount


@dataclass(frozen=True, eq=False)
class Layer:
    """One checkerboard of the sum: what tokens (rows) add to targets (columns)."""

    modes: tuple[Mode, Mode]
    labels: tuple[Ints, Ints]  # the cluster of each item, (n_items,) per mode
    cells: Floats  # (m_1, m_2), what the layer adds to the prediction
    strength: float  # root mean square of the cells, weighted by the items of their clusters
    kind: str

    @classmethod
    def of(cls, modes: tuple[Mode, Mode], labels: tuple[Ints, Ints], cells: Floats, kind: str) -> Layer:
        """A layer whose clusters are sorted by what they add along the main direction of the checkerboard."""
        shares = [np.bincount(c, minlength=m) / len(c) for c, m in zip(labels, cells.shape)]
        strength = float(np.sqrt(shares[0] @ cells**2 @ shares[1]))
        left, _, right = np.linalg.svd(cells, full_matrices=False)
        rows, columns = np.argsort(left[:, 0], kind="stable"), np.argsort(right[0], kind="stable")
        numbered = (np.argsort(rows)[labels[0]], np.argsort(columns)[labels[1]])
        return cls(modes, numbered, cells[np.ix_(rows, columns)], strength, kind)

    def items(self, mode: int, cluster: int) -> AnyArray:
        """Ids in one cluster."""
        return self.modes[mode].items[self.labels[mode] == cluster]

    def __str__(self) -> str:
        """The checkerboard as text, one line per cluster of the first mode."""
        sizes = [np.bincount(c, minlength=m) for c, m in zip(self.labels, self.cells.shape)]
        lines = [f"{self.kind} layer of strength {self.strength:.3f}: " + " × ".join(mode.name for mode in self.modes)]
        lines.append(" " * 14 + " ".join(f"{n:>6d}" for n in sizes[1]) + "   items per column")
        for n, row in zip(sizes[0], self.cells):
            lines.append(f"{n:>6d} items |" + " ".join(f"{value:+6.2f}" for value in row))
        return "\n".join(lines)


class Named(NamedTuple):
    """Draws with the names that explanations need."""

    draws: LayerDraws
    modes: Sequence[Mode]
    side_codes: Mapping[int, SideCode]
    items: Sequence[Sequence[str]] = ()  # the items of each mode by name

    def layers(self) -> tuple[Layer, ...]:
        """The layers of the last draw, strongest first; rows are clusters of tokens, columns clusters of targets."""
        draws, s, found = self.draws, self.draws.n_draws - 1, []
        for t, layer in enumerate(draws.layers):
            cells = draws.cells_of(s, t).astype(np.float64)
            labels = [draws.tokens(s, t).astype(np.int64), draws.targets(s, t).astype(np.int64)]
            # Items that were added without labels have the average of all clusters and belong to none.
            first, second = (np.where(own < m, own, 0) for own, m in zip(labels, cells.shape))
            modes = (self._tokens_of(layer), self.modes[layer.target])
            if layer.kind == ITEM and layer.source > layer.target:  # the first mode belongs in the rows
                found.append(Layer.of(modes[::-1], (second, first), cells.T, layer.kind))
            else:
                found.append(Layer.of(modes, (first, second), cells, layer.kind))
        return tuple(sorted(found, key=lambda layer: -layer.strength))

    def tables(self, titles: Mapping[int, AnyArray], counts: Sequence[Floats]) -> tuple[LayerTable, ...]:
        """The strongest layers with their largest clusters by name: the items that were observed most often."""
        found = []
        for layer in self.layers()[:MOST_LAYERS]:
            shown, names = [], []
            for mode, labels, m in zip(layer.modes, layer.labels, layer.cells.shape):
                at = next((at for at, own in enumerate(self.modes) if own.items is mode.items), None)
                texts = mode.items if at is None else titles.get(at, mode.items)
                often: Floats = np.ones(len(mode.items)) if at is None else counts[at]
                mass = np.bincount(labels, often, m)
                kept = np.sort(np.argsort(-mass, kind="stable")[: min(MOST_CLUSTERS, int((mass > 0).sum()))])
                order = np.argsort(-often, kind="stable")
                shown.append(kept)
                names.append(tuple(", ".join(map(str, texts[order[labels[order] == c][:MOST_ITEMS]])) for c in kept))
            title = f"{layer.kind} layer: {layer.modes[0].name} × {layer.modes[1].name}"
            found.append(LayerTable(title, names[0], names[1], layer.cells[np.ix_(*shown)]))
        return tuple(found)

    def _tokens_of(self, layer: LayerPlan) -> Mode:
        source, target = self.modes[layer.source], self.modes[layer.target]
        if layer.kind == ITEM:
            return source
        if layer.kind == BASKET:
            return Mode(f"{target.name} met by {source.name}", target.items)
        return Mode(f"properties of {source.name}", np.array(self.side_codes[layer.source].tokens))

    def part_name(self, layer: LayerPlan) -> str:
        """The kind of a layer, with its direction."""
        if layer.kind == ITEM:
            return f"{layer.kind}, " + " and ".join(self.modes[j].name for j in sorted((layer.source, layer.target)))
        return f"{layer.kind}, {self.modes[layer.source].name} to {self.modes[layer.target].name}"

    def parts(self, codes: Sequence[Ints], times: Floats | None = None) -> dict[str, Floats]:
        """What each part adds to the latent answer of every row, (N,) each, averaged over the draws."""
        draws, n = self.draws, len(codes[0])
        rows = PredictionRows.of(draws, codes, times)
        found: dict[str, Floats] = {"average": np.full(n, draws.means.mean())}
        for mode, own, code in zip(self.modes, draws.mean_offsets(), codes):
            found[f"offset, {mode.name}"] = np.append(own, 0.0)[code]
        if draws.windows is not None:
            found["time"] = draws.mean_window_effects(codes[0], times)
        for t, layer in enumerate(draws.layers):
            total = found.setdefault(self.part_name(layer), np.zeros(n))
            mine: Floats = np.zeros(n)
            for s in range(draws.n_draws):
                rows.add_layer(draws, s, t, mine)
            total += mine / draws.n_draws
        if draws.plan is not None:
            near: Floats = np.zeros(n)
            for s in range(draws.n_draws):
                rows.add_points(draws.points(s), near)
            found[f"positions, {self.modes[0].name} and {self.modes[1].name}"] = near / draws.n_draws
        return found

    def row_account(self, codes: Sequence[int]) -> tuple[Part, ...]:
        """The parts that add up to a row's latent answer, largest first; those of baskets by token."""
        draws, account = self.draws, list[Part]()
        for part, value in self.parts([np.array([code]) for code in codes]).items():
            plans = [t for t, layer in enumerate(draws.layers) if self.part_name(layer) == part]
            layer = draws.layers[plans[0]] if plans else None
            if layer is None or layer.kind == ITEM:
                account.append((part, float(value[0])))
                continue
            x, q = codes[layer.source], codes[layer.target]
            tokens = draws.baskets[layer.basket].of_source(x)
            if layer.joins and len(tokens) and q not in tokens:
                tokens = np.append(tokens, q)
            amounts = self._token_effects(plans, tokens, np.array([q]))[:, 0]
            order = np.argsort(-np.abs(amounts), kind="stable")
            for at in order[:SHOWN].tolist():
                who = f"{self.modes[layer.source].name} {self.items[layer.source][x]}"
                why = f"because {who} met" if layer.kind == BASKET else f"because of {who}:"
                account.append((f"{why} {self._token(layer, tokens[at])}", float(amounts[at])))
            if len(order) > SHOWN:
                account.append((f"{part}: {len(order) - SHOWN} more", float(amounts[order[SHOWN:]].sum())))
        first, *others = account
        return (first, *sorted(others, key=lambda one: -abs(one[1])))

    def item_account(self, mode: int, code: int) -> tuple[Part, ...]:
        """The offset of one item, and the tokens of its baskets that change predictions most.

        The amount of a token is the root mean square, over all targets, of what it adds.
        """
        draws, moved = self.draws, list[Part]()
        for part in dict.fromkeys(self.part_name(layer) for layer in draws.layers):
            plans = [t for t, layer in enumerate(draws.layers) if self.part_name(layer) == part]
            layer = draws.layers[plans[0]]
            if layer.source != mode or layer.kind == ITEM:
                continue
            tokens = draws.baskets[layer.basket].of_source(code)
            effects = self._token_effects(plans, tokens, np.arange(draws.n_items[layer.target]))
            verb = "it met " if layer.kind == BASKET else "of "
            for token, amount in zip(tokens, np.sqrt(np.mean(effects**2, axis=1)).tolist()):
                moved.append((f"up or down, because {verb}{self._token(layer, token)}", amount))
        own = (f"offset, {self.modes[mode].name}", float(draws.mean_offsets()[mode][code]))
        return (own, *sorted(moved, key=lambda one: -one[1])[:SHOWN])

    def _token(self, layer: LayerPlan, token: int) -> str:
        if layer.kind == BASKET:
            return self.items[layer.target][token]
        return self.side_codes[layer.source].tokens[token]

    def _token_effects(self, plans: Sequence[int], tokens: Ints, targets: Ints) -> Floats:
        """What each token of a basket adds to each target over all these layers, (tokens, targets)."""
        draws, total = self.draws, np.zeros((len(tokens), len(targets)))
        for t in plans:
            for s in range(draws.n_draws):
                own = draws.tokens(s, t)
                cells, at = with_unknown(draws.cells_of(s, t), draws.targets(s, t), own)
                total += cells[np.ix_(own[tokens], at[targets])]
        return np.asarray(total / (draws.n_draws * np.sqrt(max(len(tokens), 1))))
