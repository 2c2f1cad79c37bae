"""Which layers are fitted, how many chains draw them, and for how many sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.data import Mode, Sample
from gingham.engine.files import gathered, room
from gingham.errors import GinghamError
from gingham.models.layers.positions import PositionPlan
from gingham.models.layers.problem import BASKET, ITEM, SIDE, Basket, LayerPlan, LayerProblem
from gingham.models.layers.side import SideTokens
from gingham.storage import savable

CLUSTERS = 4  # of tokens and of targets
MOST_CLUSTERS = 254  # of a mode in a layer: labels are bytes, and one value stands for unknown items
FULL = 0.9  # share of all pairs that were observed above which baskets say nothing
WINDOW_RATIO, MOST_WIDTHS = 8.0, 8  # each width of time windows over the next, and the number of widths


class Effort(NamedTuple):
    """The numbers of layers of each kind, of chains and of sweeps."""

    item: int
    basket: int  # in each direction, with two modes
    side: int  # of each table
    n_chains: int
    n_sweeps: int
    burn_in: int


EFFORTS = {
    "fast": Effort(2, 6, 2, 2, 40, 12),
    "default": Effort(4, 10, 3, 6, 100, 30),
    "best": Effort(4, 12, 4, 12, 120, 30),
}
ALL_BASKETS, ALL_CHAINS = 50_000, 10_000  # rows from which on an effort has all its basket layers and all its chains
FEWEST_BASKETS, FEWEST_CHAINS = 2, 3
# A chain's work is rows × (layers + 10) × sweeps. All chains of the default effort together do at most this much,
# about 160 CPU seconds, because with more data each chain says more.
MOST_WORK = 23_000_000_000


@savable
@dataclass(frozen=True)
class Sampler:
    """How chains are run; what is None is decided by ``effort``.

    Parameters
    ----------
    n_chains : int, optional
        Chains that are averaged.
    n_sweeps : int, optional
        Sweeps of each chain.
    burn_in : int, optional
        The first sweeps, which are not kept; about a third by default.
    noise : float, optional
        σ², the square of the error to expect; estimated from held-out rows by default.
    """

    n_chains: int | None = None
    n_sweeps: int | None = None
    burn_in: int | None = None
    noise: float | None = None

    def lengths(self, effort: Effort, longer: int = 1) -> tuple[int, int]:
        """Sweeps and burn-in; where they were not given, those of an effort times ``longer``."""
        n_sweeps = effort.n_sweeps * longer if self.n_sweeps is None else self.n_sweeps
        if self.burn_in is not None:
            return n_sweeps, self.burn_in
        # Chains that are shorter than those of the effort have the same share of burn-in.
        given = effort.n_sweeps if self.n_sweeps is None else self.n_sweeps
        share = min(effort.burn_in, effort.burn_in * given // effort.n_sweeps)
        return n_sweeps, share * (longer if self.n_sweeps is None else 1)

    def check(self, effort: Effort) -> None:
        """Refuse settings that leave no draws."""
        for name in ("n_chains", "n_sweeps", "burn_in"):
            value = getattr(self, name)
            least = 0 if name == "burn_in" else 1
            if value is not None and (not isinstance(value, (int, np.integer)) or value < least):
                raise GinghamError(f"sampler: {name}={value!r} must be an integer ≥ {least}.")
        n_sweeps, burn_in = self.lengths(effort)
        if n_sweeps <= burn_in:
            raise GinghamError(
                f"sampler: n_sweeps={n_sweeps} leaves no draw after burn_in={burn_in} sweeps; raise n_sweeps."
            )
        if self.noise is not None and not self.noise > 0:
            raise GinghamError(f"sampler: noise={self.noise!r} must be positive: it is the expected squared error.")


def find_effort(effort: str) -> Effort:
    """The effort of a given name."""
    if effort not in EFFORTS:
        raise GinghamError(f"effort={effort!r} is unknown; choose one of {', '.join(EFFORTS)}.")
    return EFFORTS[effort]


def for_rows(effort: Effort, n_rows: int) -> Effort:
    """The effort for few rows: fewer basket layers and fewer chains, in proportion to the root of the rows.

    With 1,000 ratings, two basket layers per direction and three chains predict better than ten and six: baskets say
    little there, and every layer adds noise (benchmarks/speed/small_data.py).
    """

    def part(most: int, fewest: int, enough: int) -> int:
        return min(most, max(fewest, math.ceil(most * math.sqrt(n_rows / enough))))

    return effort._replace(
        basket=part(effort.basket, FEWEST_BASKETS, ALL_BASKETS),
        n_chains=part(effort.n_chains, FEWEST_CHAINS, ALL_CHAINS),
    )


def without_baskets(effort: Effort) -> Effort:
    """Item layers in place of basket layers: as many as there are layers with the same target."""
    return effort._replace(item=effort.item + effort.basket, basket=0)


def n_chains_for(problem: LayerProblem, effort: Effort) -> int:
    """The chains of an effort, fewer where they would take too long."""
    work = problem.n_rows * (len(problem.layers) + 10) * effort.n_sweeps
    most = MOST_WORK * effort.n_chains / EFFORTS["default"].n_chains / work
    return int(np.clip(most, min(FEWEST_CHAINS, effort.n_chains), effort.n_chains))


# designs that are compared

MANY = 300_000  # rows from which on it is tested whether basket layers help
OFTEN, ENOUGH = 200, 10_000  # rows per item, and in all, from which on items may have clusters of their own
LONGER = 2  # chains with such layers settle late: they are so many times longer, and so many times fewer
# Where labels are classes, positions take the place of such layers; chains end in different places, and their average
# is better than each.
COORDINATES, TARGET_CLUSTERS = 8, 12
POSITION_CHAINS, POSITION_SWEEPS, POSITION_BURN_IN = 8, 100, 40
POSITION_ROWS, MOST_PERIODS = 100, 32  # rows of a source in a period, on average


class Observations(Protocol):
    """What is asked of observations before a design is chosen, wherever they lie."""

    @property
    def modes(self) -> Sequence[Mode]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def n_modes(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_observations(self) -> float: ...
    def of_items(self, mode: int, chosen: Bools) -> Sample: ...


class Design(NamedTuple):
    """The layers of a model."""

    effort: Effort
    item_clusters: tuple[int, ...]
    own_clusters: bool = False  # whether every item of one mode has a cluster of its own
    positions: bool = False  # whether items have positions
    reason: str = ""


def designs_for(sample: Observations, usual: Design, sizes_are_open: bool, classes: bool = False) -> list[Design]:
    """The designs that are worth a comparison, the usual one first.

    Basket layers take most of the time and say nothing where pairs were met by chance. This is tested where there are
    many rows: with few rows they cost little, and a sample would tell little.

    Where one mode has few items with many rows each, every item of it may have a cluster of its own, and the items of
    the other mode one of two clusters: such a layer is nearly a factor. There are as many of them as of item and basket
    layers otherwise. They settle late, so they are not tried where a fast fit is wanted. Where labels are classes, the
    items of both modes have positions instead.
    """
    found, effort, few = [usual], usual.effort, min(sample.shape)
    if sample.n_rows >= MANY:
        found.append(usual._replace(effort=effort._replace(basket=0), reason="basket layers did not help"))
    often = sample.n_rows >= max(OFTEN * few, ENOUGH) and (classes or few <= MOST_CLUSTERS)
    fast = effort.n_chains < FEWEST_CHAINS
    if not (sizes_are_open and sample.n_modes == 2 and often and few < max(sample.shape)) or fast:
        return found
    mode = int(np.argmin(sample.shape))
    if classes:
        effort = effort._replace(
            item=0, basket=0, n_chains=POSITION_CHAINS, n_sweeps=POSITION_SWEEPS, burn_in=POSITION_BURN_IN
        )
        return [*found, usual._replace(effort=effort, positions=True, reason="positions of items helped")]
    effort = effort._replace(item=effort.item + 2 * effort.basket, basket=0)
    reason = f"one cluster per item of {sample.modes[mode].name!r} helped"
    return [*found, Design(effort, (few, 2) if mode == 0 else (2, few), True, reason=reason)]


def plan_positions(sample: Sample, times: Floats | None) -> PositionPlan:
    """Positions of the items of two modes: of those with fewer items one per period of time."""
    source = int(np.argmin(sample.shape))
    n = min(MOST_PERIODS, sample.n_rows // (POSITION_ROWS * sample.shape[source]))
    edges = () if times is None else np.unique(np.quantile(times, np.arange(1, n) / n)).tolist()
    return PositionPlan(source, 1 - source, COORDINATES, TARGET_CLUSTERS, tuple(edges))


# the problem of a design


def make_problem(
    sample: Sample,
    times: Floats | None,
    label_values: Floats | None,
    side: Mapping[int, SideTokens],
    effort: Effort,
    item_clusters: Sequence[int],
    layers: Sequence[LayerPlan] | None = None,
    positions: PositionPlan | None = None,
) -> LayerProblem:
    """Rows in the order of the first mode and of time, with the baskets and layers that make sense for them.

    Sources that have a position per period have no offsets of time windows beside them.

    ``side`` has the tokens of modes; ``layers`` are those of an earlier fit that continues with more rows.
    """
    if sample.labels is None:
        raise ValueError("layers need numeric labels")
    keys = [sample.labels, *reversed(sample.codes[1:]), *(() if times is None else (times,)), sample.codes[0]]
    order = np.lexsort(keys)
    codes = room((sample.n_modes, sample.n_rows), np.int32, sample.codes[0])
    for row, code in zip(codes, sample.codes):
        row[:] = gathered(code, order)
    labels, weights = (
        gathered(sample.labels, order),
        None if sample.weights is None else gathered(sample.weights, order),
    )
    dated = None if times is None else times[order]
    del order  # as large as all codes together
    shape = sample.shape

    @cache
    def basket_of(kind: str, source: int, other: int) -> Basket:
        if kind == ITEM:
            return Basket.itself(shape[source])
        if kind == BASKET:
            return Basket.of_pairs(codes[source], codes[other], shape[source], shape[other])
        return Basket.of_pairs(side[source].items, side[source].tokens, shape[source], side[source].n_tokens)

    if layers is None:
        layers = plan_layers(shape, side, effort, item_clusters, lambda p, q: len(basket_of(BASKET, p, q).tokens))
    baskets = {layer.basket: basket_of(*layer.basket_key) for layer in layers}
    widths = () if dated is None or positions is not None else window_widths(codes[0], dated)
    return LayerProblem(
        n_items=shape,
        codes=codes,
        labels=labels,
        weights=weights,
        label_values=label_values,
        baskets=tuple(baskets[at] for at in range(len(baskets))),
        layers=tuple(layers),
        times=dated,
        windows=widths,
        phases=(0.0,) * len(widths),
        origin=0.0 if dated is None else float(dated.min()),
        positions=positions,
    ).with_labels(labels)


def plan_layers(
    n_items: Sequence[int],
    side: Mapping[int, SideTokens],
    effort: Effort,
    item_clusters: Sequence[int],
    n_pairs: Callable[[int, int], int],
) -> tuple[LayerPlan, ...]:
    """Item layers between every two modes, basket layers where they make sense, and side-information layers.

    A basket layer goes from the items that a source was met with to the items of the same mode: from the movies that a
    user has rated to movies, from the users who rated a movie to users. It makes sense where not nearly all pairs were
    observed; ``n_pairs`` counts them. A side-information layer goes from the tokens of an item to every other mode.
    """
    d = len(n_items)
    plans: list[LayerPlan] = []

    def add(times: int, kind: str, source: int, target: int, m_token: int, m_target: int) -> None:
        plans.extend([LayerPlan(kind, source, target, -1, m_token, m_target, kind == BASKET)] * times)

    ordered = [(p, q) for p in range(d) for q in range(d) if p != q]
    for p, q in ordered:
        # Tables have a row per source, so the source is the mode with fewer items (of two alike, the first).
        if (n_items[p], p) < (n_items[q], q):
            add(-(-2 * effort.item // len(ordered)), ITEM, p, q, item_clusters[p], item_clusters[q])
    for p, q in ordered if effort.basket else ():
        if min(n_items[p], n_items[q]) > 1 and n_pairs(p, q) < FULL * n_items[p] * n_items[q]:
            m = min(CLUSTERS, n_items[q])
            add(max(1, -(-2 * effort.basket // len(ordered))), BASKET, p, q, m, m)
    for p, table in side.items():
        for q in (q for q in range(d) if q != p):
            m_token, m_target = min(CLUSTERS, max(table.n_tokens, 1)), min(CLUSTERS, n_items[q])
            add(max(1, -(-effort.side // (d - 1))), SIDE, p, q, m_token, m_target)
    # Grouped by target and source, because rows change their order once per mode. Side information is first: where it
    # and an item's own cluster explain the same, it is the side information that also helps with new items.
    kinds = (SIDE, ITEM, BASKET)
    plans.sort(key=lambda it: (it.target, it.source, kinds.index(it.kind)))
    keys = list(dict.fromkeys(plan.basket_key for plan in plans))
    return tuple(replace(plan, basket=keys.index(plan.basket_key)) for plan in plans)


def window_widths(users: Ints, times: Floats) -> tuple[float, ...]:
    """Widths of time windows: an eighth of the whole time, an eighth of that, and so on.

    The narrowest are as wide as the shortest time between two rows of a user.
    """
    span = float(times.max() - times.min())
    gaps = np.diff(times)[np.diff(users) == 0]
    gaps = gaps[gaps > 0]
    widths: list[float] = []
    while span > 0 and len(gaps) and len(widths) < MOST_WIDTHS:
        span /= WINDOW_RATIO
        if widths and span < float(gaps.min()):
            break
        widths.append(span)
    return tuple(widths[::-1])
