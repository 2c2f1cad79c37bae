"""`project`: every backend equals the reference, and the reference equals the numpy line it states."""

from __future__ import annotations

import os
import threading
from importlib.util import find_spec
from itertools import product as cases

import numba
import numpy as np
import pytest
import reference

from gingham.arrays import Floats
from gingham.engine import threads
from gingham.engine.place import BACKENDS
from gingham.engine.project import Rows, project, project_cost, project_table
from gingham.engine.project_compiled import sum_rows
from gingham.errors import GinghamError

N_ITEMS = 23
FAST = [name for name in BACKENDS if name != "auto" and (name != "torch" or find_spec("torch"))]


def problem(
    d: int,
    one_hot: bool,
    weighted: bool,
    dtype: str,
    n_observations: int = 900,
    seed: int = 0,
    widths: tuple[int, ...] = (),
) -> tuple[Rows, list[Floats]]:
    """Random rows with some empty ones (item 0, the last, one within) and one very long."""
    rng = np.random.default_rng(seed)
    shares = rng.random(N_ITEMS)
    shares[[0, 7, -1]], shares[3] = 0, 10
    item = np.sort(rng.choice(N_ITEMS, n_observations, p=shares / shares.sum()))
    labels = rng.integers(0, 3, n_observations).astype(np.int32)
    labels = labels[np.lexsort([labels, item])]
    widths = widths or (5, 3, 2)[: d - 1]
    rows = Rows(
        indptr=np.concatenate([[0], np.cumsum(np.bincount(item, minlength=N_ITEMS))]).astype(np.int64),
        others=rng.integers(0, 11, (d - 1, n_observations)).astype(np.int32),
        labels=labels if one_hot else None,
        features=None if one_hot else np.vander(rng.normal(size=n_observations), 3, increasing=True),
        weights=rng.random(n_observations) * 3 if weighted else None,
        n_features=3,
    )
    return rows, [rng.random((11, m)).astype(dtype) for m in widths]


def numpy_line(rows: Rows, assigns: list[Floats]) -> Floats:
    """The line of `project`'s docstring, in float64."""
    n_observations = int(rows.indptr[-1])
    item = np.repeat(np.arange(rows.n_items), np.diff(rows.indptr))
    w = np.ones(n_observations) if rows.weights is None else rows.weights
    t = np.eye(3)[rows.labels] if rows.features is None else rows.features
    product = np.ones((n_observations, 1))
    for j, q in enumerate(assigns):
        product = np.einsum("ea,eb->eab", product, q[rows.others[j]]).reshape(n_observations, -1)
    out = np.zeros((rows.n_items, 3, product.shape[1]))
    np.add.at(out, item, w[:, None, None] * t[:, :, None] * product[:, None, :])
    return out


def agrees(got: Floats, expected: Floats) -> bool:
    rtol = 1e-5 if got.dtype == np.float32 else 1e-12
    return bool(np.allclose(got, expected, rtol=rtol, atol=rtol * max(1.0, np.abs(expected).max(initial=0))))


ALL = list(cases((1, 2, 3, 4), (True, False), (True, False), ("float64", "float32")))


@pytest.mark.parametrize(("d", "one_hot", "weighted", "dtype"), ALL)
@pytest.mark.parametrize("backend", FAST)
def test_equals_the_numpy_line(d: int, one_hot: bool, weighted: bool, dtype: str, backend: str) -> None:
    rows, assigns = problem(d, one_hot, weighted, dtype)
    got = project(rows, assigns, backend=backend)
    assert got.dtype == (dtype if d > 1 else "float64")
    assert agrees(got, numpy_line(rows, assigns))


@pytest.mark.parametrize(("d", "one_hot", "weighted"), list(cases((1, 2, 3, 4), (True, False), (True, False))))
def test_the_reference_equals_the_numpy_line(d: int, one_hot: bool, weighted: bool) -> None:
    rows, assigns = problem(d, one_hot, weighted, "float64")
    assert agrees(reference.project(rows, assigns), numpy_line(rows, assigns))
    assert np.array_equal(reference.project(rows, assigns, 6, 9), reference.project(rows, assigns)[6:9])


@pytest.mark.parametrize(("d", "one_hot"), list(cases((1, 2, 3), (True, False))))
@pytest.mark.parametrize("backend", FAST)
def test_blocks_of_rows_are_the_rows_of_the_whole(d: int, one_hot: bool, backend: str) -> None:
    rows, assigns = problem(d, one_hot, True, "float64")
    whole = project(rows, assigns, backend=backend)
    for start, stop in ((0, 5), (5, 6), (7, 8), (6, N_ITEMS), (4, 4)):
        assert np.array_equal(project(rows, assigns, start, stop, backend=backend), whole[start:stop])


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_tuples_at_all(d: int, backend: str) -> None:
    rows, assigns = problem(d, True, False, "float64", n_observations=0)
    assert not project(rows, assigns, backend=backend).any()


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 24, 31, 40, 56, 64, 100])
def test_every_width_of_the_vector_tiles(width: int) -> None:
    rows, assigns = problem(2, True, True, "float32", widths=(width,))
    assert agrees(project(rows, assigns, backend="compiled"), numpy_line(rows, assigns))


@pytest.mark.parametrize(("d", "one_hot"), list(cases((2, 3), (True, False))))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_do_not_change_bits(d: int, one_hot: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, assigns = problem(d, one_hot, True, dtype, n_observations=5000)
    alone = project(rows, assigns, backend="compiled")
    calls: list[tuple[int, int]] = []
    original = threads.balanced

    def counted(*args: object) -> object:
        calls.append((1, 1))
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    monkeypatch.setattr(threads, "balanced", counted)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    assert np.array_equal(project(rows, assigns, backend="compiled"), alone)
    assert calls  # the work was indeed divided


def test_labels_need_not_be_sorted() -> None:
    rows, assigns = problem(2, True, True, "float64")
    rng = np.random.default_rng(5)
    rows = rows._replace(labels=rng.permutation(rows.labels))
    assert agrees(project(rows, assigns, backend="compiled"), numpy_line(rows, assigns))


def test_long_float32_sums_stay_exact() -> None:
    n = 200_000
    rows = Rows(np.array([0, n]), np.zeros((1, n), np.int32), np.zeros(n, np.int32), None, None, 1)
    value = np.float32(0.1)
    got = project(rows, [np.full((1, 8), value)], backend="compiled")
    assert np.allclose(got, n * float(value), rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2])
def test_known_runs_change_no_bit(d: int, weighted: bool) -> None:
    rows, assigns = problem(d, True, weighted, "float64")
    key = np.repeat(np.arange(rows.n_items), np.diff(rows.indptr)) * rows.n_features + rows.labels
    runs = np.searchsorted(key, np.arange(rows.n_items * rows.n_features + 1))
    known = project(rows._replace(runs=runs), assigns, 1, 20, backend="compiled")
    assert np.array_equal(known, project(rows, assigns, 1, 20, backend="compiled"))


def test_sum_rows_equals_its_reference() -> None:
    rng = np.random.default_rng(0)
    table, codes = rng.random(5 * 16), rng.integers(0, 5, 40).astype(np.int32)

    @numba.njit
    def run(sums, table, codes, scale):  # type: ignore[no-untyped-def]
        sum_rows(8, sums, 4, table, 8, 16, codes, scale, 3, 33)

    for scale in (None, rng.random(30)):
        got, expected = np.ones(16), np.ones(16)
        run(got, table, codes, scale)
        reference.sum_rows(8, expected, 4, table, 8, 16, codes, scale, 3, 33)
        assert np.allclose(got, expected)
        line = table.reshape(-1, 16)[codes[3:33], 8:16]
        assert np.allclose(got[4:12] - 1, line.sum(0) if scale is None else scale @ line)


def test_unknown_backend_is_named() -> None:
    rows, assigns = problem(2, True, False, "float64")
    with pytest.raises(GinghamError, match="'abacus'"):
        project(rows, assigns, backend="abacus")


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_costs_and_tables_are_products_with_the_projection(backend: str, d: int) -> None:
    rows, assigns = problem(d, True, True, "float64")
    flat = reference.project(rows, assigns).reshape(rows.n_items, -1)
    rng = np.random.default_rng(d)
    coef, own = rng.random((4, flat.shape[1])), rng.random((rows.n_items, 4))
    for _ in range(2):  # the second call finds the observations where the first left them
        np.testing.assert_allclose(project_cost(rows, assigns, coef, backend), flat @ coef.T)
        np.testing.assert_allclose(project_table(rows, assigns, own, backend), own.T @ flat)


def test_what_goes_wrong_on_another_thread_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    rows, _ = problem(2, True, False, "float64")
    begun = threading.Event()

    def run(start: int, stop: int) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(10)  # leave some to the others
        else:
            begun.set()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        threads.in_blocks(run, rows.indptr, 0, N_ITEMS, 2**40)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    rows, assigns = problem(2, True, True, "float64", n_observations=5000)
    expected = project(rows, assigns, backend="compiled")  # the pool is made
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        os._exit(0 if np.array_equal(project(rows, assigns, backend="compiled"), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
