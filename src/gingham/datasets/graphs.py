"""Planted graphs with known clusters, and loaders of graph files in their publishers' formats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError

KINDS = ("assortative", "ring")


class PlantedGraph(NamedTuple):
    """An adjacency matrix (n, n), symmetric, 0/1, and the cluster of each node."""

    adjacency: sparse.csr_array
    labels: Ints


def planted_graph(
    n: int = 1000,
    k: int = 5,
    *,
    inside: float = 16.0,
    outside: float = 4.0,
    kind: str = "assortative",
    exponent: float | None = None,
    seed: int = 0,
) -> PlantedGraph:
    """A stochastic block model.

    Parameters
    ----------
    inside, outside : float
        Expected number of edges of a node to its own cluster (to its two neighbouring clusters in a
        ring) and to all others.
    kind : {"assortative", "ring"}
        In a ring, cluster a is joined with clusters a − 1 and a + 1 and hardly with itself.
    exponent : float or None
        Degree correction: node propensities follow a power law with this exponent (2.5, say), between
        1 and √n times the least, so that nodes of one cluster have very different degrees.
    """
    if kind not in KINDS:
        raise GinghamError(f"kind={kind!r} is unknown; choose one of {', '.join(KINDS)}.")
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    joined = inside / (n / k)
    density = np.full((k, k), outside / (n - n / k) if k > 1 else 0.0)
    if kind == "assortative":
        np.fill_diagonal(density, joined)
    else:
        for a in range(k):
            density[a, (a + 1) % k] = density[(a + 1) % k, a] = joined / 2.0
    members = [np.flatnonzero(labels == a) for a in range(k)]
    propensity = None if exponent is None else _power_law(n, exponent, rng)
    ends = []
    for a in range(k):
        for b in range(a, k):
            left, right = members[a], members[b]
            pairs = len(left) * len(right) if a != b else len(left) * (len(left) - 1) // 2
            m = rng.binomial(pairs, min(density[a, b], 1.0)) if pairs else 0
            ends.append(np.column_stack([_draw(left, propensity, m, rng), _draw(right, propensity, m, rng)]))
    edges = np.concatenate(ends)
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return PlantedGraph((upper + upper.T).tocsr(), labels)


def _power_law(n: int, exponent: float, rng: np.random.Generator) -> Floats:
    """Draws from p(t) ∝ t^−exponent on [1, √n]."""
    top = np.sqrt(n) ** (1.0 - exponent)
    return (1.0 - rng.random(n) * (1.0 - top)) ** (1.0 / (1.0 - exponent))


def _draw(members: Ints, propensity: Floats | None, m: int, rng: np.random.Generator) -> Ints:
    if len(members) == 0:
        return np.zeros(0, dtype=np.int64)
    if propensity is None:
        return members[rng.integers(0, len(members), m)]
    cumulated = np.cumsum(propensity[members])
    return members[np.searchsorted(cumulated, rng.random(m) * cumulated[-1], side="right").clip(max=len(members) - 1)]


def load_king(path: str | os.PathLike[str]) -> Floats:
    """Latencies between DNS servers, (n, n), NaN where none was measured, from files of p2psim's King data set.

    Either ``matrix`` (1,740 servers, a square table of numbers), or a topology file, ``mking-t`` or ``uking-t``
    (a few lines of settings, ``node 1``, ``node 2``, …, then lines ``1,2 latency``); lines ``i j latency`` serve
    too. Values that are not positive mean that there was no measurement. The files are not shipped; they are at
    https://pdos.csail.mit.edu/archive/p2psim/kingdata/.
    """
    file = Path(path)
    if not file.is_file():
        raise GinghamError(
            f"There is no file {str(file)!r}; the King data set is at "
            "https://pdos.csail.mit.edu/archive/p2psim/kingdata/ (take matrix, mking-t or uking-t)."
        )
    lines = [line for line in file.read_text().splitlines() if line.strip()]
    nodes = [at for at, line in enumerate(lines) if line.startswith("node ")]
    if nodes:  # a topology: settings and the list of nodes come first
        lines = lines[nodes[-1] + 1 :]
    try:
        rows = [np.array(line.replace(",", " ").split(), dtype=np.float64) for line in lines]
    except ValueError as error:
        raise GinghamError(f"{str(file)!r} has a line that is not all numbers: {error}.") from None
    widths = {len(row) for row in rows}
    if len(rows) > 3 and widths == {3}:
        triples = np.array(rows)
        codes = triples[:, :2].astype(np.int64)
        codes -= codes.min()
        n = int(codes.max()) + 1
        matrix = np.full((n, n), np.nan)
        matrix[codes[:, 0], codes[:, 1]] = triples[:, 2]
        matrix = np.where(np.isnan(matrix), matrix.T, matrix)
    elif widths == {len(rows)}:
        matrix = np.array(rows)
    else:
        raise GinghamError(
            f"{str(file)!r} has lines of {sorted(widths)[:4]} numbers; expected a square table or triples."
        )
    matrix[~(matrix > 0)] = np.nan
    np.fill_diagonal(matrix, np.nan)
    return matrix


def similarities(latencies: Floats) -> Floats:
    """exp(−latency/median) of each pair of different nodes, NaN where there is none (P1 §6); symmetric by averaging."""
    latencies = np.array(latencies, dtype=np.float64)
    both = np.stack([latencies, latencies.T])
    known = np.isfinite(both)
    mean = np.where(known, both, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean[~known.any(axis=0)] = np.nan
    np.fill_diagonal(mean, np.nan)
    return np.exp(-mean / np.nanmedian(mean[np.triu_indices(len(mean), 1)]))
