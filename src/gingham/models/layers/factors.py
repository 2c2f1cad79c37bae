"""The mean latent answer of two-mode draws as an additive part and a product of two thin matrices.

A layer of a draw is B · onehot(d) · G · onehot(c)ᵀ: baskets, clusters of tokens, cells, clusters of targets. The sum of
these products over all draws and layers is never formed. It is only multiplied with thin blocks, a few draws at a time,
so memory grows with (users + items) · rank, and a truncated singular value decomposition follows by subspace iteration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, sparse

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError
from gingham.fitting.distill import Factors
from gingham.models.layers.draws import LayerDraws, with_unknown

SHARE = 0.999  # of the squared interaction that the factors must keep
SPARE, ROUNDS, PROBES = 10, 3, 16  # columns beyond the rank, subspace iterations, columns that measure the rest
ONE_HOT_ENTRIES = 2**22  # of one-hot matrices at a time


def mean_factors(draws: LayerDraws, rank: int = 64) -> Factors:
    """The mean latent answer over two-mode draws; as many factors as nearly all of the interaction needs, or ``rank``.

    That an item joins the basket of a user who has not met it is left out, so that this is exact for pairs of the fit.
    """
    if len(draws.n_items) != 2:
        raise GinghamError(
            f"Layers of {len(draws.n_items)} modes have no summary: one checkerboard has two sides. Use predict."
        )
    n, m = draws.n_items
    pulls = Pulls(draws)
    by_user, by_item = (pulls.times(np.full((k, 1), 1.0 / k), mode)[:, 0] for k, mode in ((m, 0), (n, 1)))
    grand = float(by_user.mean())

    def interaction(block: Floats, rows: int) -> Floats:
        """The pulls without their main effects, times a block; rows are users (0) or items (1)."""
        mine, others = (by_user, by_item - grand) if rows == 0 else (by_item, by_user - grand)
        return pulls.times(block, rows) - np.outer(mine, block.sum(axis=0)) - others @ block

    users, items = draws.mean_offsets()
    users = users + by_user - grand + draws.mean_window_effects(np.arange(n))
    return Factors(
        float(draws.means.mean()) + grand, users, items + by_item - grand, *_truncated(interaction, (n, m), rank)
    )


class Pulls:
    """What all layers add to each user and item, averaged over the draws, as something to multiply with."""

    def __init__(self, draws: LayerDraws) -> None:
        self.draws = draws
        keys = [(layer.source, layer.basket) for layer in draws.layers]
        self.groups = [
            (source, _scaled_basket(draws, basket), [t for t, key in enumerate(keys) if key == (source, basket)])
            for source, basket in dict.fromkeys(keys)
        ]  # layers that look from the same baskets

    def times(self, block: Floats, rows: int) -> Floats:
        """The product with a block, (n, q); rows are users (0) or items (1)."""
        total = np.zeros((self.draws.n_items[rows], block.shape[1]))
        for source, basket, plans in self.groups:
            if source == rows:
                total += basket @ _tokens_by_targets(self.draws, plans, block, False)
            else:
                total += _tokens_by_targets(self.draws, plans, basket.T @ block, True)
        plan = self.draws.plan
        if plan is not None:
            mine, others = (plan.source, plan.target) if rows == plan.source else (plan.target, plan.source)
            for s in range(self.draws.n_draws):
                own, other = (self.draws.average_positions(mode, s) for mode in (mine, others))
                total += own @ (other.T @ block) / self.draws.n_draws
        return total


def _scaled_basket(draws: LayerDraws, basket: int) -> sparse.csr_array:
    """|N(x)|^(−½) where source x holds a token, (n_sources, n_tokens)."""
    held = draws.baskets[basket]
    values = np.repeat(held.scale, np.diff(held.indptr)).astype(np.float64)
    return sparse.csr_array((values, held.tokens, held.indptr), shape=(held.n_sources, held.n_tokens))


def _tokens_by_targets(draws: LayerDraws, plans: list[int], block: Floats, back: bool) -> Floats:
    """Σ onehot(d) G onehot(c)ᵀ block over draws and layers, divided by the draws; ``back`` multiplies the transpose."""
    layer = draws.layers[plans[0]]
    sizes = (draws.baskets[layer.basket].n_tokens, draws.n_items[layer.target])
    total = np.zeros((sizes[1 if back else 0], block.shape[1]))
    every = [(s, t) for s in range(draws.n_draws) for t in plans]
    step = max(1, ONE_HOT_ENTRIES // max(*sizes, 1))
    for start in range(0, len(every), step):
        some = every[start : start + step]
        tables = [with_unknown(draws.cells_of(s, t), draws.targets(s, t), draws.tokens(s, t))[0] for s, t in some]
        tokens = _one_hot([draws.tokens(s, t) for s, t in some], [len(g) for g in tables])
        targets = _one_hot([draws.targets(s, t) for s, t in some], [g.shape[1] for g in tables])
        cells = sparse.block_diag(tables, format="csr")
        total += targets @ (cells.T @ (tokens.T @ block)) if back else tokens @ (cells @ (targets.T @ block))
    return total / draws.n_draws


def _one_hot(labels: list[Ints], sizes: list[int]) -> sparse.csr_array:
    """Several clusterings of the same items side by side, (n_items, Σ sizes)."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.stack([own + start for own, start in zip(labels, starts)], axis=1)
    n, k = columns.shape
    ends = np.arange(0, n * k + 1, k)
    return sparse.csr_array((np.ones(n * k), columns.ravel(), ends), shape=(n, int(starts[-1])))


def _truncated(multiply: Callable[[Floats, int], Floats], shape: tuple[int, ...], rank: int) -> tuple[Floats, Floats]:
    """The fewest factors, at most ``rank``, that keep the share of the squares.

    The squares that the subspace misses are estimated from fresh random columns, E‖(M − QQᵀM)ω‖² = ‖M − QQᵀM‖².
    """
    n, m = shape
    rng = np.random.default_rng(0)
    width = min(rank + SPARE, n, m)
    base = linalg.qr(multiply(rng.standard_normal((m, width)), 0), mode="economic")[0]
    for _ in range(ROUNDS):
        base = linalg.qr(multiply(base, 1), mode="economic")[0]
        base = linalg.qr(multiply(base, 0), mode="economic")[0]
    across = multiply(base, 1)  # M ≈ base acrossᵀ
    right, values, turn = linalg.svd(across, full_matrices=False)
    probes = rng.standard_normal((m, PROBES))
    missed = float(np.square(multiply(probes, 0) - base @ (across.T @ probes)).sum()) / PROBES
    squares = values**2
    total = float(squares.sum()) + missed
    if total == 0:
        return np.zeros((n, 0)), np.zeros((m, 0))
    kept = np.cumsum(squares) / total
    r = min(int(np.searchsorted(kept, SHARE)) + 1, rank, len(values))
    root = np.sqrt(values[:r])
    return (base @ turn[:r].T) * root, right[:, :r] * root
