"""Summary layers: boards with names, how much each part explains, and the account of a prediction.

All parts of basket layers are means over the draws, so they add up to the mean of the latent answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.data import Mode
from gingham.models.layers.baskets import HABIT, TASTE, BasketDraws, LayerPlan, Question, with_unknown
from gingham.models.layers.model import Draws, SoftLayers
from gingham.models.layers.side import SideCode

SHOWN = 5  # tokens of a basket that an account names

Part = tuple[str, float]  # why, and how much


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
        cells = draws.cells_of(s, t).astype(np.float64)
        board = ((tokens, target), (known[0], known[1]), cells)
        if layer.kind == TASTE and layer.source > layer.target:  # a board of two modes shows the first in its rows
            board = ((target, tokens), (known[1], known[0]), cells.T)
        layers.append(ordered(*board, layer.kind))
    return tuple(sorted(layers, key=lambda layer: -layer.strength))


def part_name(layer: LayerPlan, modes: Sequence[Mode]) -> str:
    """The kind of a layer, with its direction: whose basket pulls at whom."""
    if layer.kind == TASTE:
        return f"{layer.kind}, " + " and ".join(modes[at].name for at in sorted((layer.source, layer.target)))
    return f"{layer.kind}, {modes[layer.source].name} to {modes[layer.target].name}"


def parts_of(
    draws: BasketDraws, modes: Sequence[Mode], codes: Sequence[Ints], times: Floats | None = None
) -> dict[str, Floats]:
    """What each part adds to the latent answer of every row, (N,) each, averaged over the draws; they add up to it."""
    question, n = Question.of(draws, codes), len(codes[0])
    found: dict[str, Floats] = {"average": np.full(n, draws.means.mean())}
    for mode, own, code in zip(modes, draws.mean_offsets(), codes):
        found[f"offset, {mode.name}"] = np.append(own, 0.0)[code]
    if draws.windows is not None:
        counts = np.bincount(draws.chains)
        asked = [draws.windows.ask(chain, codes[0], times)[0] for chain in range(len(counts))]
        found["time"] = np.average(asked, axis=0, weights=counts)
    for t, layer in enumerate(draws.layers):
        total = found.setdefault(part_name(layer, modes), np.zeros(n))
        mine: Floats = np.zeros(n)
        for s in range(draws.n_draws):
            question.add_layer(draws, s, t, mine)
        total += mine / draws.n_draws
    return found


def account_of(
    draws: BasketDraws, modes: Sequence[Mode], sides: Mapping[int, SideCode], names: Sequence[Sequence[str]],
    codes: Sequence[int], times: Floats | None = None,
) -> tuple[Part, ...]:  # fmt: skip
    """What a row's latent answer is made of: parts that add up to it, baskets by their tokens, largest first."""
    asked = [np.array([code]) for code in codes]
    account: list[Part] = []
    for part, value in parts_of(draws, modes, asked, times).items():
        plans = [t for t, layer in enumerate(draws.layers) if part_name(layer, modes) == part]
        layer = draws.layers[plans[0]] if plans else None
        if layer is None or layer.kind == TASTE:
            account.append((part, float(value[0])))
            continue
        x, q = codes[layer.source], codes[layer.target]
        tokens = draws.baskets[layer.basket].of_source(x)
        if layer.joins and len(tokens) and q not in tokens:
            tokens = np.append(tokens, q)
        pulls = _pulls(draws, plans, tokens, np.array([q]))[:, 0]
        order = np.argsort(-np.abs(pulls), kind="stable")
        for at in order[:SHOWN].tolist():
            who = f"{modes[layer.source].name} {names[layer.source][x]}"
            why = f"because {who} met" if layer.kind == HABIT else f"because of {who}:"
            account.append((f"{why} {_token(layer, sides, names, tokens[at])}", float(pulls[at])))
        if len(order) > SHOWN:
            account.append((f"{part}: {len(order) - SHOWN} more", float(pulls[order[SHOWN:]].sum())))
    first, *others = account
    return (first, *sorted(others, key=lambda one: -abs(one[1])))


def reach_of(
    draws: BasketDraws, modes: Sequence[Mode], sides: Mapping[int, SideCode], names: Sequence[Sequence[str]],
    mode: int, code: int,
) -> tuple[Part, ...]:  # fmt: skip
    """The account of one item: its offset, and what of its baskets moves predictions most.

    The number of a token is the root of the mean square, over all targets, of what it adds.
    """
    moved: list[Part] = []
    for part in dict.fromkeys(part_name(layer, modes) for layer in draws.layers):
        plans = [t for t, layer in enumerate(draws.layers) if part_name(layer, modes) == part]
        layer = draws.layers[plans[0]]
        if layer.source != mode or layer.kind == TASTE:
            continue
        tokens = draws.baskets[layer.basket].of_source(code)
        pulls = _pulls(draws, plans, tokens, np.arange(draws.n_items[layer.target]))
        verb = "it met " if layer.kind == HABIT else "of "
        for token, amount in zip(tokens, np.sqrt(np.mean(pulls**2, axis=1)).tolist()):
            moved.append((f"up or down, because {verb}{_token(layer, sides, names, token)}", amount))
    own = (f"offset, {modes[mode].name}", float(draws.mean_offsets()[mode][code]))
    return (own, *sorted(moved, key=lambda one: -one[1])[:SHOWN])


def _token(layer: LayerPlan, sides: Mapping[int, SideCode], names: Sequence[Sequence[str]], token: int) -> str:
    return names[layer.target][token] if layer.kind == HABIT else sides[layer.source].tokens[token]


def _pulls(draws: BasketDraws, plans: Sequence[int], tokens: Ints, targets: Ints) -> Floats:
    """What each token of a basket adds at each target over all these layers, (tokens, targets), averaged over draws."""
    total: Floats = np.zeros((len(tokens), len(targets)))
    for t in plans:
        for s in range(draws.n_draws):
            own = draws.tokens(s, t)
            cells, at = with_unknown(draws.cells_of(s, t), draws.targets(s, t), own)
            total += cells[np.ix_(own[tokens], at[targets])]
    return total / (draws.n_draws * np.sqrt(max(len(tokens), 1)))


@dataclass(frozen=True, eq=False)
class Layer:
    """One checkerboard of the sum."""

    modes: tuple[Mode, ...]
    labels: tuple[Ints, ...]  # the cluster of each item, (n_items,) per mode
    cells: Floats  # (m_1, …, m_d), what the layer adds to the prediction
    strength: float  # root mean square of the cells, each weighted by the items that meet in it
    kind: str = "taste"

    def items(self, mode: int, cluster: int) -> AnyArray:
        """Ids in one cluster."""
        return self.modes[mode].items[self.labels[mode] == cluster]

    def __str__(self) -> str:
        """The checkerboard as text, one line per cluster of the first mode."""
        sizes = [np.bincount(c, minlength=m) for c, m in zip(self.labels, self.cells.shape)]
        lines = [f"layer of strength {self.strength:.3f}: " + " × ".join(mode.name for mode in self.modes)]
        if self.cells.ndim != 2:
            return lines[0]
        lines.append(" " * 14 + " ".join(f"{n:>6d}" for n in sizes[1]) + "   items a column")
        for n, row in zip(sizes[0], self.cells):
            lines.append(f"{n:>6d} items |" + " ".join(f"{value:+6.2f}" for value in row))
        return "\n".join(lines)


def readable(model: Draws | tuple[SoftLayers, ...], modes: Sequence[Mode]) -> tuple[Layer, ...]:
    """The layers of the last draw or the first member, strongest first."""
    if isinstance(model, Draws):
        boards = [model.checkerboard(model.n_draws - 1, t) for t in range(model.labels.shape[1])]
    else:
        boards = [(tuple(q.argmax(axis=1) for q in a), cells) for a, cells in zip(model[0].assign, model[0].cells)]
    layers = [ordered(tuple(modes), labels, cells) for labels, cells in boards]
    return tuple(sorted(layers, key=lambda layer: -layer.strength))


def ordered(modes: tuple[Mode, ...], labels: tuple[Ints, ...], cells: Floats, kind: str = "taste") -> Layer:
    """Each mode's clusters sorted by what they add along the main direction of the checkerboard."""
    shares = [np.bincount(c, minlength=m) / len(c) for c, m in zip(labels, cells.shape)]
    new_labels = []
    for axis, label in enumerate(labels):
        flat = np.moveaxis(cells, axis, 0).reshape(cells.shape[axis], -1)
        main = np.linalg.svd(flat, full_matrices=False)[0][:, 0]
        order = np.argsort(main, kind="stable")
        cells = np.take(cells, order, axis=axis)
        shares[axis] = shares[axis][order]
        new_labels.append(np.argsort(order)[label])
    weights = reduce(np.multiply.outer, shares)
    return Layer(modes, tuple(new_labels), cells, float(np.sqrt(np.sum(weights * cells**2))), kind)
