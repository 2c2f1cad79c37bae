"""How many clusters a side of a matrix of counts? By held-out code length, or by certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import takewhile

import numpy as np
from scipy import sparse

from gingham.certificates import certify_density
from gingham.errors import GinghamError
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint, completed
from gingham.models.counts.fit import CountBlocks, CountSolver, count_sample, smoothed_lift, thinned
from gingham.models.counts.starts import block_table

SIZES = (2, 5, 10, 20, 40, 80, 120, 160, 240)
CRITERIA = ("held-out", "certificate")


def choose_n_clusters(
    criterion: str,
    counts: sparse.csr_array,
    solver: CountSolver,
    rng: np.random.Generator,
    sizes: Sequence[int] = SIZES,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[int, dict[int, float]]:
    """The number of clusters a side, and what every size that was tried is worth.

    Candidates grow until they have become worse twice. "held-out" values are nats that a held-out tenth of
    the tokens gains over independence (higher is better); "certificate" values are certified code lengths
    (lower is better).
    """
    if criterion not in CRITERIA:
        raise GinghamError(f"criterion={criterion!r} is unknown; choose one of {', '.join(CRITERIA)}.")
    if not (counts.data == np.floor(counts.data)).all():
        raise GinghamError(
            "n_clusters='auto' takes every count for so many independent draws, and these are not whole numbers: "
            "give n_clusters=."
        )
    # Fine partitions need no merging: seeds on profiles are as good and cheaper.
    quick = replace(solver, start="profiles", max_iter=min(solver.max_iter, 8), tol=max(solver.tol, 5e-3))
    if criterion == "certificate":

        def length(blocks: CountBlocks) -> float:
            return certified_length(blocks, counts)

        one = length(completed(quick.fit(counts, (1, 1), rng, checkpoint=checkpoint.stage("size 1"))))
        return _lowest(quick, counts, _candidates(counts, sizes), rng, length, one, checkpoint)
    kept, held_out = thinned(counts, 0.1, rng)
    if not held_out.nnz or not kept.nnz:
        return 1, {1: 0.0}
    quick = replace(quick, solver="sweep")

    def loss(blocks: CountBlocks) -> float:
        return -held_out_gain(blocks, kept, held_out)

    size, losses = _lowest(quick, kept, _candidates(counts, sizes), rng, loss, 0.0, checkpoint)
    return size, {tried: 0.0 - nats for tried, nats in losses.items()}


def _candidates(counts: sparse.csr_array, sizes: Sequence[int]) -> list[int]:
    """The sizes up to half the items of the shorter side."""
    return list(takewhile(lambda size: size <= min(counts.shape) // 2, sizes))


def _lowest(
    solver: CountSolver,
    counts: sparse.csr_array,
    sizes: Sequence[int],
    rng: np.random.Generator,
    cost: Callable[[CountBlocks], float],
    one: float,
    checkpoint: Checkpoint,
) -> tuple[int, dict[int, float]]:
    """The cheapest size, and all costs; a single cluster, which costs ``one``, is among the candidates."""
    costs = {1: one}
    rises = 0
    with closing(solver.fit_sizes(counts, [(size, size) for size in sizes], rng, checkpoint)) as found:
        for size, blocks in zip(sizes, found):
            costs[size] = cost(completed(blocks))
            rises = rises + 1 if costs[size] > min(costs.values()) else 0
            if rises == 2:
                break
    return min(costs, key=lambda size: costs[size]), costs


def held_out_gain(
    blocks: CountBlocks, counts: sparse.csr_array, held_out: sparse.csr_array, smoothing: float = 1.0
) -> float:
    """Nats a held-out token costs less than under independence: mean ln lift of its block."""
    rows, columns = blocks.labels
    table = block_table(counts, rows, columns, blocks.shape)
    entries = held_out.tocoo()
    lift = smoothed_lift(table, smoothing)[rows[entries.coords[0]], columns[entries.coords[1]]]
    return float(entries.data @ np.log(lift) / entries.data.sum())


def certified_length(blocks: CountBlocks, counts: sparse.csr_array, delta: float = 0.05) -> float:
    """The certified code length of new tokens, nats (docs/theory/density).

    It holds for all partitions into any number of clusters at once: the price ln m(m + 1) of each side is
    the union over the sizes, so choosing among them costs nothing more.
    """
    assigns = blocks.assigns
    if assigns is None:
        assigns = (np.eye(blocks.shape[0])[blocks.labels[0]], np.eye(blocks.shape[1])[blocks.labels[1]])
    certificate, _ = certify_density(assigns, count_sample(counts), delta=delta)
    return certificate.value
