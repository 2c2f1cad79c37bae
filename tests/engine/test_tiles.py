"""Tiles: the same sums as `project` without them, whatever the sizes of blocks, tiles and segments."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import reference

from gingham.arrays import Floats
from gingham.engine import project_compiled as tiles
from gingham.engine.project import Rows, project, projector
from gingham.engine.project_compiled import grouping

N_ITEMS, N_OTHERS, K = 40, 300, 3


def problem(weighted: bool, dtype: str, width: int, seed: int = 0, n_observations: int = 6000) -> tuple[Rows, Floats]:
    """Random rows: some items have no observations, some few, one very many."""
    rng = np.random.default_rng(seed)
    shares = rng.random(N_ITEMS) ** 3
    shares[[0, 7, -1]], shares[3] = 0, 5
    item = rng.choice(N_ITEMS, n_observations, p=shares / shares.sum()).astype(np.int32)
    label = rng.integers(0, K, n_observations).astype(np.int32)
    other = rng.integers(0, N_OTHERS, n_observations).astype(np.int32)
    begin, (other, label) = grouping(item, label, N_ITEMS, K, [other, label])
    weights = rng.random(n_observations) * 3 if weighted else None
    rows = Rows(np.ascontiguousarray(begin[::K]), other[None], label, None, weights, K, begin)
    return rows, rng.random((N_OTHERS, width)).astype(dtype)


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of a few hundred numbers, so that small problems fall into many blocks and tiles."""
    monkeypatch.setattr(tiles, "TILE_BYTES", 2**11)
    monkeypatch.setattr(tiles, "BLOCK_BYTES", 2**12)


@pytest.mark.parametrize("width", [1, 8, 13, 40])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_sums(width: int, weighted: bool, dtype: str) -> None:
    rows, q = problem(weighted, dtype, width)
    made = tiles.make_tiles(rows, N_OTHERS, max(16, width * q.itemsize))
    assert made is not None
    assert len(made.blocks) > 3
    sums = projector(rows, [q], "compiled", dtype, made)
    got = np.concatenate([sums(start, stop) for start, stop in made.blocks])
    assert got.dtype == dtype
    assert np.array_equal(project(rows, [q], backend="compiled", tiles=made), got)
    expected = reference.project(rows, [q.astype(np.float64)])
    assert np.allclose(got, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_every_tuple_stands_once_in_its_own_slot(seed: int) -> None:
    rows, _ = problem(True, "float64", 8, seed)
    made = tiles.make_tiles(rows, N_OTHERS, 64)
    assert made is not None
    block_of = np.repeat(np.arange(len(made.cuts) - 1), np.diff(made.first))
    slot = np.repeat(made.slots + made.cuts[block_of] * K, np.diff(made.begins))
    key = np.repeat(np.arange(N_ITEMS * K), np.diff(rows.runs))
    listed = np.lexsort([rows.weights, rows.others[0], key])
    found = np.lexsort([made.weights, made.others, slot])
    assert np.array_equal(slot[found], key[listed])
    assert np.array_equal(made.others[found], rows.others[0][listed])
    assert np.array_equal(made.weights[found], rows.weights[listed])


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="numba was told to use one thread")
def test_threads_change_nothing() -> None:
    rows, _ = problem(True, "float64", 8)
    before = numba.get_num_threads()
    made = []
    try:
        for n_threads in (1, 2):
            numba.set_num_threads(n_threads)
            made.append(tiles.make_tiles(rows, N_OTHERS, 64))
    finally:
        numba.set_num_threads(before)
    assert all(np.array_equal(a, b) for a, b in zip(*made, strict=True))


def test_none_where_they_would_not_pay() -> None:
    rows, _ = problem(False, "float64", 8)
    assert tiles.make_tiles(rows, 30, 64) is None  # all fits the cache
    assert tiles.make_tiles(rows._replace(runs=None), N_OTHERS, 64) is None  # labels not sorted
    assert tiles.make_tiles(rows._replace(others=np.vstack([rows.others] * 2)), N_OTHERS, 64) is None  # three modes
    few, _ = problem(False, "float64", 8, n_observations=100)
    assert tiles.make_tiles(few, N_OTHERS, 64) is None
