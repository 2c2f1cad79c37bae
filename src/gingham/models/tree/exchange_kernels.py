"""Exchange moves on co-occurrence tables: one item at a time goes where the tables' information is highest."""

from __future__ import annotations

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.engine.project import row_starts


def exchange(
    labels: Ints, n_clusters: Ints, groups: Ints, items: Ints, slots: Ints, weights: Floats, offsets: Ints,
    strides: Ints, size_weight: float, order: Ints, max_sweeps: int,
) -> tuple[Ints, float, int]:  # fmt: skip
    """Raise Σ_slots N·I(slot) − size_weight·Σ_groups n·H(cluster sizes) by moving one item at a time.

    I(slot) = Σ_c T ln T − Σ_k Σ_c M_k ln M_k up to constants, with T the slot's table of clusters and
    M_k its margins. Items of several slots, and an item at several places of one observation, are moved
    everywhere at once.

    Parameters
    ----------
    labels : (n,) cluster of every item; not changed
    n_clusters : (n,) clusters open to every item; 1 for an item that stays where it is
    groups : (n,) which clustering an item belongs to
    items : (P, K) items of every observation, −1 beyond the order of its slot
    slots, weights : (P,) table and count of every observation
    offsets : (S + 1,) where each slot's table begins in the flat array of all cells
    strides : (S, K) step in that array per cluster of each place
    order : items in the order in which they are visited

    Returns
    -------
    new labels, the objective (up to a constant of the data), sweeps done
    """
    n, places = len(labels), items.shape[1]
    found, n_clusters, groups, items, slots, offsets, strides, order = (
        array.astype(np.int64) for array in (labels, n_clusters, groups, items, slots, offsets, strides, order)
    )
    there = items >= 0
    placed = np.where(there, found[items], 0)
    table = np.bincount(offsets[slots] + (strides[slots] * placed).sum(axis=1), weights, minlength=offsets[-1])
    widest = int(max(n_clusters.max(initial=1), found.max(initial=0) + 1))
    margins = np.zeros((len(offsets) - 1, places, widest))
    np.add.at(margins, (slots[:, None], np.arange(places), placed), weights[:, None] * there)
    sizes = np.zeros((groups.max(initial=0) + 1, widest))
    np.add.at(sizes, (groups, found), 1.0)
    row, place = np.nonzero(there)
    pairs = np.unique(items[row, place] * len(items) + row)  # an observation once for each of its items
    owner, entry = pairs // max(len(items), 1), pairs % max(len(items), 1)
    objective, sweeps = _exchange(
        found, n_clusters, groups, items, slots, weights, offsets, strides, row_starts(owner, n), entry, size_weight,
        order, max_sweeps, table, margins, sizes,
    )  # fmt: skip
    return found, float(objective), int(sweeps)


@njit(cache=True)
def _xlogx(v):  # type: ignore[no-untyped-def]
    return v * np.log(v) if v > 0.0 else 0.0


@njit(cache=True)
def _exchange(  # type: ignore[no-untyped-def]
    labels, n_clusters, groups, items, slots, weights, offsets, strides, indptr, entries, size_weight, order,
    max_sweeps, table, margins, sizes,
):  # fmt: skip
    n_slots, places = margins.shape[:2]
    # What one item touches: cells with the item's own cluster set to 0, their step per cluster, their weight.
    most = np.diff(indptr).max() if len(labels) else 0
    where = np.empty(most, np.int64)
    step = np.empty(most, np.int64)
    amount = np.empty(most)
    own = np.zeros((n_slots, places))
    merged = np.full((places, len(table)), -1)
    sweeps = 0
    for _ in range(max_sweeps):
        moved = 0
        for a in order:
            if n_clusters[a] < 2:
                continue
            used = 0
            own[:] = 0.0
            for e in range(indptr[a], indptr[a + 1]):
                t = entries[e]
                base, stride, times, place = offsets[slots[t]], 0, 0, 0
                for k in range(places):
                    if items[t, k] == a:
                        stride += strides[slots[t], k]
                        own[slots[t], k] += weights[t]
                        times += 1
                        place = k
                    elif items[t, k] >= 0:
                        base += strides[slots[t], k] * labels[items[t, k]]
                if times == 1 and merged[place, base] >= 0:  # same cell as an earlier observation
                    amount[merged[place, base]] += weights[t]
                    continue
                if times == 1:
                    merged[place, base] = used
                where[used], step[used], amount[used] = base, stride, weights[t]
                used += 1
            for k in range(places):
                for u in range(used):
                    merged[k, where[u]] = -1
            c0, group = labels[a], groups[a]
            for u in range(used):
                table[where[u] + c0 * step[u]] -= amount[u]
            margins[:, :, c0] -= own
            sizes[group, c0] -= 1.0
            best, chosen = -np.inf, c0
            for i in range(n_clusters[a]):
                c = (c0 + i) % n_clusters[a]  # ties stay
                gain = size_weight * (_xlogx(sizes[group, c] + 1.0) - _xlogx(sizes[group, c]))
                for u in range(used):
                    cell = where[u] + c * step[u]
                    gain += _xlogx(table[cell] + amount[u]) - _xlogx(table[cell])
                    table[cell] += amount[u]
                for u in range(used):
                    table[where[u] + c * step[u]] -= amount[u]
                for s in range(n_slots):
                    for k in range(places):
                        if own[s, k] > 0.0:
                            gain -= _xlogx(margins[s, k, c] + own[s, k]) - _xlogx(margins[s, k, c])
                if gain > best + 1e-9:
                    best, chosen = gain, c
            labels[a] = chosen
            for u in range(used):
                table[where[u] + chosen * step[u]] += amount[u]
            margins[:, :, chosen] += own
            sizes[group, chosen] += 1.0
            moved += chosen != c0
        sweeps += 1
        if moved == 0:
            break
    objective = 0.0
    for count in table:
        objective += _xlogx(count)
    for count in margins.flat:
        objective -= _xlogx(count)
    for count in sizes.flat:
        objective += size_weight * _xlogx(count)
    return objective, sweeps
