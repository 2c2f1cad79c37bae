"""Grouping tuples by item and label in linear time."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, boundscheck=False)
def grouping(codes, labels, n_items, n_labels):
    """Where each group of equal (item, label) begins, and the tuples in the order of the groups.

    Equivalent to ``np.argsort(codes * n_labels + labels, kind="stable")`` with
    ``np.searchsorted(sorted_keys, np.arange(n_items * n_labels + 1))``; an empty ``labels`` stands for zeros.
    """
    plain = len(labels) == 0
    begin = np.zeros(n_items * n_labels + 1, np.int64)
    for e in range(len(codes)):
        key = np.int64(codes[e]) * n_labels + (0 if plain else labels[e])
        begin[key + 1] += 1
    for key in range(n_items * n_labels):
        begin[key + 1] += begin[key]
    place = begin[:-1].copy()
    order = np.empty(len(codes), np.int64)
    for e in range(len(codes)):
        key = np.int64(codes[e]) * n_labels + (0 if plain else labels[e])
        order[place[key]] = e
        place[key] += 1
    return begin, order
