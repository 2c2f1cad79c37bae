"""Latencies between hosts as weights of a graph: the King data set, and PlanetLab's."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


def load_king(path: str | os.PathLike[str]) -> np.ndarray:
    """Latencies between DNS servers, (n, n), NaN where none was measured, from files of p2psim's King data set.

    Either ``matrix`` (1,740 servers, a square table of numbers), or a topology file, ``mking-t`` or ``uking-t``
    (a few lines of settings, ``node 1``, ``node 2``, …, then lines ``1,2 latency``); lines ``i j latency`` serve
    too. Values that are not positive mean that there was no measurement. The files are not shipped; they are at
    https://pdos.csail.mit.edu/archive/p2psim/kingdata/.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(
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
        raise ValueError(f"{str(file)!r} has a line that is not all numbers: {error}.") from None
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
        raise ValueError(
            f"{str(file)!r} has lines of {sorted(widths)[:4]} numbers; expected a square table or triples."
        )
    matrix[~(matrix > 0)] = np.nan
    np.fill_diagonal(matrix, np.nan)
    return matrix


def similarities(latencies: np.ndarray) -> np.ndarray:
    """exp(−latency/median) of each pair of different nodes, NaN where there is none (P1 §6); symmetric by averaging."""
    latencies = np.array(latencies, dtype=np.float64)
    both = np.stack([latencies, latencies.T])
    known = np.isfinite(both)
    mean = np.where(known, both, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean[~known.any(axis=0)] = np.nan
    np.fill_diagonal(mean, np.nan)
    return np.exp(-mean / np.nanmedian(mean[np.triu_indices(len(mean), 1)]))
