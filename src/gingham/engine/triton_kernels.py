"""triton kernels of the torch backend: sums of gathered rows, and memberships from costs."""

# mypy: allow-untyped-defs, allow-incomplete-defs
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from gingham.engine.project_torch import Runs

TUPLES = 8  # observations one program loads at a time
ROWS = 32  # items one program of gibbs handles
HOLDERS = 512  # of a token that are summed at a time, at most


@triton.jit
def _gather_one(
    begin,
    end,
    target,
    index,
    scale,
    table,
    out,
    m,
    SCALED: tl.constexpr,
    ACC: tl.constexpr,
    BM: tl.constexpr,
    BK: tl.constexpr,
):
    """Equivalent to ``out[target[t]] = (scale * table[index])[begin[t]:end[t]].sum(0)``."""
    t = tl.program_id(0)
    start, stop = tl.load(begin + t), tl.load(end + t)
    row = tl.load(target + t).to(tl.int64)
    c, k = tl.arange(0, BM), tl.arange(0, BK)
    acc = tl.zeros((BK, BM), ACC)
    for p in range(start, stop, BK):
        ok = (p + k) < stop
        j = tl.load(index + p + k, mask=ok, other=0).to(tl.int64)
        q = tl.load(table + j[:, None] * m + c[None, :], mask=ok[:, None] & (c[None, :] < m), other=0.0).to(ACC)
        if SCALED:
            q *= tl.load(scale + p + k, mask=ok, other=0.0)[:, None]
        acc += q
    tl.store(out + row * m + c, tl.sum(acc, 0), mask=c < m)


@triton.jit
def _gather_two(
    begin, end, target, index1, index2, scale, table1, table2, out, m1, m2,
    SCALED: tl.constexpr, ACC: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr,
):  # fmt: skip
    """Equivalent to ``out[target[t]] = Σ_e scale[e] * outer(table1[index1[e]], table2[index2[e]])``."""
    t = tl.program_id(0)
    start, stop = tl.load(begin + t), tl.load(end + t)
    row = tl.load(target + t).to(tl.int64)
    a, b = tl.arange(0, B1), tl.arange(0, B2)
    acc = tl.zeros((B1, B2), ACC)
    for p in range(start, stop):
        i, j = tl.load(index1 + p).to(tl.int64), tl.load(index2 + p).to(tl.int64)
        q1 = tl.load(table1 + i * m1 + a, mask=a < m1, other=0.0).to(ACC)
        q2 = tl.load(table2 + j * m2 + b, mask=b < m2, other=0.0).to(ACC)
        if SCALED:
            q1 *= tl.load(scale + p)
        acc += q1[:, None] * q2[None, :]
    at = out + row * m1 * m2 + a[:, None] * m2 + b[None, :]
    tl.store(at, acc, mask=(a[:, None] < m1) & (b[None, :] < m2))


@triton.jit
def _fold(fold_row, fold_begin, fold_end, out, n_rows, width, ACC: tl.constexpr, BM: tl.constexpr):
    """Equivalent to ``out[fold_row[t]] = out[n_rows + fold_begin[t]:n_rows + fold_end[t]].sum(0)``."""
    t = tl.program_id(0)
    c = tl.program_id(1) * BM + tl.arange(0, BM)
    row = tl.load(fold_row + t).to(tl.int64)
    acc = tl.zeros((BM,), ACC)
    for p in range(tl.load(fold_begin + t), tl.load(fold_end + t)):
        acc += tl.load(out + (n_rows + p).to(tl.int64) * width + c, mask=c < width, other=0.0)
    tl.store(out + row * width + c, acc, mask=c < width)


@triton.jit
def _gibbs(log_mass, cost, out, sums, entropy, beta, n, m, BR: tl.constexpr, BM: tl.constexpr):
    """Equivalent to ``q = softmax(log_mass − beta * cost, axis=1)`` with its column sums and Σ q ln q per block."""
    pid = tl.program_id(0)
    r = (pid * BR + tl.arange(0, BR)).to(tl.int64)
    c = tl.arange(0, BM)
    inside = (r[:, None] < n) & (c[None, :] < m)
    at = r[:, None] * m + c[None, :]
    logit = tl.load(log_mass + c, mask=c < m, other=-1e30)[None, :] - beta * tl.load(cost + at, mask=inside, other=0.0)
    logit = tl.where(c[None, :] < m, logit, -1e38)
    logit -= tl.max(logit, 1)[:, None]
    e = tl.exp(logit)
    e = tl.where(inside, e, 0.0)
    norm = tl.sum(e, 1)
    norm = tl.where(norm > 0, norm, 1.0)
    q = e / norm[:, None]
    tl.store(out + at, q, mask=inside)
    tl.store(sums + pid.to(tl.int64) * m + c, tl.sum(q, 0), mask=c < m)
    plogp = tl.where(q > 0, q * (logit - tl.log(norm)[:, None]), 0.0)
    tl.store(entropy + pid, tl.sum(tl.sum(plogp, 1), 0))


def run_sums(
    block: Runs, others: Sequence[Tensor], scale: Tensor | None, assigns: Sequence[Tensor], sums: Tensor
) -> None:
    """Sum every run of the block, then fold the partial sums of rows that have several."""
    n_runs = block.begin.numel()
    if n_runs == 0:
        return
    widths = [int(q.shape[1]) for q in assigns]
    width = sums.shape[1]
    dummy = sums if scale is None else scale
    acc = tl.float64 if sums.dtype == torch.float64 else tl.float32
    if len(assigns) == 1:
        _gather_one[(n_runs,)](
            block.begin, block.end, block.target, others[0], dummy, assigns[0], sums, width,
            SCALED=scale is not None, ACC=acc, BM=triton.next_power_of_2(width), BK=TUPLES, num_warps=1,
        )  # fmt: skip
    else:
        _gather_two[(n_runs,)](
            block.begin, block.end, block.target, others[0], others[1], dummy, assigns[0], assigns[1], sums, *widths,
            SCALED=scale is not None, ACC=acc, B1=triton.next_power_of_2(widths[0]),
            B2=triton.next_power_of_2(widths[1]), num_warps=4,
        )  # fmt: skip
    _fold_partials(block, sums, width)


def _fold_partials(block: Runs, sums: Tensor, width: int) -> None:
    """Add up the partial sums of rows that have several, in a fixed order; ``sums`` has rows of ``width`` numbers."""
    if not block.n_partials:
        return
    piece = min(128, triton.next_power_of_2(width))
    _fold[(block.fold_row.numel(), triton.cdiv(width, piece))](
        block.fold_row, block.fold_begin, block.fold_end, sums, block.n_rows, width,
        ACC=tl.float64 if sums.dtype == torch.float64 else tl.float32, BM=piece, num_warps=1,
    )  # fmt: skip


def gibbs_rows(log_mass: Tensor, cost: Tensor, beta: float, out: Tensor) -> tuple[Tensor, Tensor]:
    """New memberships into ``out``; returns their column sums and Σ q ln q, float64."""
    n, m = cost.shape
    n_programs = triton.cdiv(n, ROWS)
    sums = torch.empty(n_programs, m, dtype=torch.float32, device=cost.device)
    entropy = torch.empty(n_programs, dtype=torch.float32, device=cost.device)
    _gibbs[(n_programs,)](
        log_mass, cost, out, sums, entropy, beta, n, m, BR=ROWS, BM=triton.next_power_of_2(m), num_warps=4
    )  # fmt: skip
    return sums.sum(0, dtype=torch.float64), entropy.sum(dtype=torch.float64)


@triton.jit
def _residual_histograms(
    begin, end, target, index, order, labels, residual, weights, out, n_labels, n_observations, width,
    SCALED: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Equivalent to ``out[target[t], b, :, c] = Σ_e (w, w·r_b)[e]·1[labels_b[index[e]] = c]`` over run t of chain b."""
    t, b = tl.program_id(0), tl.program_id(1)
    start, stop = tl.load(begin + t), tl.load(end + t)
    row = tl.load(target + t).to(tl.int64)
    c, k = tl.arange(0, BC), tl.arange(0, BK)
    counts = tl.zeros((BK, BC), tl.float32)
    residuals = tl.zeros((BK, BC), tl.float32)
    mine = labels + b.to(tl.int64) * n_labels
    left = residual + b.to(tl.int64) * n_observations
    for p in range(start, stop, BK):
        ok = (p + k) < stop
        item = tl.load(index + p + k, mask=ok, other=0).to(tl.int64)
        at = tl.load(order + p + k, mask=ok, other=0).to(tl.int64)
        label = tl.load(mine + item, mask=ok, other=255).to(tl.int32)
        r = tl.load(left + at, mask=ok, other=0.0)
        w = tl.where(ok, 1.0, 0.0)
        if SCALED:
            w = tl.load(weights + at, mask=ok, other=0.0)
        here = label[:, None] == c[None, :]
        counts += tl.where(here, w[:, None], 0.0)
        residuals += tl.where(here, (w * r)[:, None], 0.0)
    place = out + (row * tl.num_programs(1) + b) * 2 * width + c
    tl.store(place, tl.sum(counts, 0), mask=c < width)
    tl.store(place + width, tl.sum(residuals, 0), mask=c < width)


def residual_histograms(
    block: Runs,
    index: Tensor,
    order: Tensor,
    labels: Tensor,
    residual: Tensor,
    weights: Tensor | None,
    width: int,
    out: Tensor,
) -> None:
    """Histograms of tuples and of residuals over the other mode's clusters, for every item and chain.

    ``labels`` (B, n_other) uint8, ``residual`` (B, N); ``out`` (rows and partials, B, 2, width) is filled.
    """
    n_runs = block.begin.numel()
    if n_runs == 0:
        return
    n_chains = residual.shape[0]
    _residual_histograms[(n_runs, n_chains)](
        block.begin, block.end, block.target, index, order, labels, residual, residual if weights is None else weights,
        out, labels.shape[1], residual.shape[1], width,
        SCALED=weights is not None, BC=max(2, triton.next_power_of_2(width)), BK=32, num_warps=1,
    )  # fmt: skip
    _fold_partials(block, out, n_chains * 2 * width)


# basket layers


@triton.jit
def _pull_scores(
    begin, end, target, index, order, pull, residual, weights, out, width,
    SCALED: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Equivalent to ``out[target[t]] = Σ_e w·g·(2r − g)`` over run t, with g = pull[index[e]]."""
    t = tl.program_id(0)
    start, stop = tl.load(begin + t), tl.load(end + t)
    row = tl.load(target + t).to(tl.int64)
    c, k = tl.arange(0, BC), tl.arange(0, BK)
    acc = tl.zeros((BK, BC), tl.float32)
    for p in range(start, stop, BK):
        ok = (p + k) < stop
        source = tl.load(index + p + k, mask=ok, other=0).to(tl.int64)
        at = tl.load(order + p + k, mask=ok, other=0).to(tl.int64)
        r = tl.load(residual + at, mask=ok, other=0.0)
        g = tl.load(pull + source[:, None] * width + c[None, :], mask=ok[:, None] & (c[None, :] < width), other=0.0)
        gain = g * (2.0 * r[:, None] - g)
        if SCALED:
            gain *= tl.load(weights + at, mask=ok, other=0.0)[:, None]
        acc += gain
    tl.store(out + row * width + c, tl.sum(acc, 0), mask=c < width)


@triton.jit
def _add_pulls(residual, sources, targets, pull, labels, sign, n_rows, width, BK: tl.constexpr):
    """Equivalent to ``residual += sign * pull[sources, labels[targets]]``."""
    e = tl.program_id(0).to(tl.int64) * BK + tl.arange(0, BK)
    ok = e < n_rows
    source = tl.load(sources + e, mask=ok, other=0).to(tl.int64)
    cluster = tl.load(labels + tl.load(targets + e, mask=ok, other=0), mask=ok, other=0).to(tl.int32)
    change = tl.load(pull + source * width + cluster, mask=ok, other=0.0)
    tl.store(residual + e, tl.load(residual + e, mask=ok, other=0.0) + sign * change, mask=ok)


@triton.jit
def _draw_tokens(
    indptr, holders, total, seen, heard, cells, log_share, half, uniforms, labels, n_tokens, m, width,
    BM: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One program: cluster after cluster, since sources hold several tokens; see `baskets_torch.draw_tokens`.

    What does not change is looked up one token ahead, since a look takes longer than the arithmetic.
    """
    k, c, e = tl.arange(0, BM), tl.arange(0, BC), tl.arange(0, BK)
    inside = (k[:, None] < m) & (c[None, :] < width)
    board = tl.load(cells + k[:, None] * width + c[None, :], mask=inside, other=0.0)
    share = tl.load(log_share + k, mask=k < m, other=-1e30)
    start, stop = tl.load(indptr), tl.load(indptr + 1)
    old, uniform = tl.load(labels).to(tl.int32), tl.load(uniforms)
    a = tl.load(total + c, mask=c < width, other=0.0)
    mine = ((start + e) < stop)[:, None] & (c[None, :] < width)
    at = tl.load(holders + start + e, mask=(start + e) < stop, other=0).to(tl.int64)[:, None] * width + c[None, :]
    weigh = tl.load(seen + at, mask=mine, other=0.0)
    for j in tl.range(0, n_tokens, num_stages=1):
        first = tl.load(heard + at, mask=mine, other=0.0)
        acc = first
        for p in tl.range(start + BK, stop, BK, num_stages=1):
            x = tl.load(holders + p + e, mask=(p + e) < stop, other=0).to(tl.int64)
            more = ((p + e) < stop)[:, None] & (c[None, :] < width)
            acc += tl.load(heard + x[:, None] * width + c[None, :], mask=more, other=0.0)
        ahead = tl.minimum(j + 1, n_tokens - 1)
        next_start, next_stop = tl.load(indptr + ahead), tl.load(indptr + ahead + 1)
        next_old, next_uniform = tl.load(labels + ahead).to(tl.int32), tl.load(uniforms + ahead)
        next_a = tl.load(total + ahead.to(tl.int64) * width + c, mask=c < width, other=0.0)
        next_in = (next_start + e) < next_stop
        next_x = tl.load(holders + next_start + e, mask=next_in, other=0).to(tl.int64)
        next_mine = next_in[:, None] & (c[None, :] < width)
        next_at = next_x[:, None] * width + c[None, :]
        next_weigh = tl.load(seen + next_at, mask=next_mine, other=0.0)
        b = tl.sum(acc, 0)
        step = board - tl.sum(tl.where(k[:, None] == old, board, 0.0), 0)[None, :]
        score = share + half * tl.sum(step * (2.0 * b[None, :] - a[None, :] * step), 1)
        weight = tl.exp(score - tl.max(score, 0))
        below = tl.cumsum(weight, 0)
        left = uniform * tl.sum(weight, 0)
        new = tl.sum(((left > below) & (k < m - 1)).to(tl.int32), 0)
        if new != old:
            change = tl.sum(tl.where(k[:, None] == new, step, 0.0), 0)
            tl.store(heard + at, first - weigh * change[None, :], mask=mine)
            for p in tl.range(start + BK, stop, BK, num_stages=1):
                x = tl.load(holders + p + e, mask=(p + e) < stop, other=0).to(tl.int64)
                more = ((p + e) < stop)[:, None] & (c[None, :] < width)
                place = x[:, None] * width + c[None, :]
                now = tl.load(heard + place, mask=more, other=0.0)
                tl.store(heard + place, now - tl.load(seen + place, mask=more, other=0.0) * change[None, :], mask=more)
            tl.store(labels + j, new.to(tl.uint8))
            tl.debug_barrier()  # the next token looks at what this one has changed
        start, stop, old, uniform, a = next_start, next_stop, next_old, next_uniform, next_a
        mine, at, weigh = next_mine, next_at, next_weigh


def pull_scores(
    block: Runs, index: Tensor, order: Tensor, pull: Tensor, residual: Tensor, weights: Tensor | None, out: Tensor
) -> None:
    """Scores of every target's clusters from what its sources pull; ``out`` (rows and partials, width) is filled."""
    n_runs, width = block.begin.numel(), pull.shape[1]
    if n_runs == 0:
        return
    _pull_scores[(n_runs,)](
        block.begin, block.end, block.target, index, order, pull, residual, residual if weights is None else weights,
        out, width, SCALED=weights is not None, BC=max(2, triton.next_power_of_2(width)), BK=32,
        num_warps=1 if width <= 16 else 4,
    )  # fmt: skip
    _fold_partials(block, out, width)


def add_pulls(residual: Tensor, sources: Tensor, targets: Tensor, pull: Tensor, labels: Tensor, sign: float) -> None:
    """Add (sign 1) or take away (−1) what a layer pulls."""
    size = 1024
    _add_pulls[(triton.cdiv(len(residual), size),)](
        residual, sources, targets, pull.contiguous(), labels, sign, len(residual), pull.shape[1], BK=size, num_warps=4
    )


def draw_tokens(
    indptr: Tensor, holders: Tensor, total: Tensor, seen: Tensor, heard: Tensor, cells: Tensor, log_share: Tensor,
    half: float, uniforms: Tensor, labels: Tensor,
) -> None:  # fmt: skip
    """Clusters of tokens one after the other, into ``labels``; ``heard`` is kept up to date."""
    m, width = cells.shape
    if not len(labels):
        return
    size = min(max(triton.next_power_of_2(-(-len(holders) // len(labels))), 32), HOLDERS)  # as many as usual
    _draw_tokens[(1,)](
        indptr, holders, total, seen, heard, cells.contiguous(), log_share, half, uniforms, labels, len(labels), m,
        width, BM=max(2, triton.next_power_of_2(m)), BC=max(2, triton.next_power_of_2(width)), BK=size,
        num_warps=min(8, size // 8),
    )  # fmt: skip
