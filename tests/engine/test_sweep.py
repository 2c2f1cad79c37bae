"""`sweep`: compiled and reference boards move in lockstep, item by item; costs only fall."""

from __future__ import annotations

import copy
from itertools import product as cases

import numpy as np
import pytest
import reference

from gingham.engine.sweep import SMALL, Board, batch_size, board_cost, effort_of, make_board, size_cost, sweep
from gingham.errors import GinghamError

LABELS = 4
ABSOLUTE = np.abs(np.subtract.outer(np.arange(LABELS), np.arange(LABELS))).astype(float)


def random_board(
    kind: str, d: int, moving: tuple[int, ...], whole: bool = True, seed: int = 0, n_rows: int = 60
) -> Board:
    rng = np.random.default_rng(seed)
    n_items = (7, 6, 5, 4)[:d]
    n_clusters = [3 if j in moving else n_items[j] for j in range(d)]
    labels = [rng.integers(0, 3, n) if j in moving else np.arange(n) for j, n in enumerate(n_items)]
    y = rng.integers(0, LABELS, n_rows)
    return make_board(
        kind,
        [rng.integers(0, n, n_rows) for n in n_items],
        labels,
        n_clusters,
        moving,
        weights=rng.integers(0, 4, n_rows).astype(float) if whole else rng.random(n_rows),
        marks=None if kind in ("mass", "moments") else y,
        features=np.vander(y + rng.normal(size=n_rows), 3, increasing=True) if kind == "moments" else None,
        n_features={"mass": 1, "moments": 3}.get(kind, LABELS),
        coef=ABSOLUTE if kind == "table" else None,
    )


def rebuilt_cost(board: Board) -> float:
    """The cost of the labels on a board from the tuples of its first moving mode, counted anew."""
    fresh = copy.deepcopy(board)
    mode = int(board.mode_of[np.flatnonzero(np.diff(board.indptr))[0]])
    fine, coarse = np.zeros_like(fresh.fine, float), np.zeros_like(fresh.coarse, float)
    for x in range(board.first_item[mode], board.first_item[mode + 1]):
        for e in range(board.indptr[x], board.indptr[x + 1]):
            items = [x, *board.others[:, e]]
            at = sum(int(board.labels[i] * board.fine_stride[board.mode_of[i]]) for i in items)
            if board.kind == "moments":
                fine[at : at + 3] += board.weights[e] * board.features[e]
            else:
                fine[at + board.marks[e] * board.mark_stride] += board.weights[e]
            if board.kind == "log":
                coarse[sum(int(board.labels[i] * board.coarse_stride[board.mode_of[i]]) for i in items)] += (
                    board.weights[e]
                )
            if board.kind == "mass":
                for i in items:
                    coarse[board.first_cluster[board.mode_of[i]] + board.labels[i]] += board.weights[e]
    return board_cost(fresh._replace(fine=fine, coarse=coarse))


CASES = [
    (kind, d, moving, whole)
    for kind, (d, moving), whole in cases(
        ("mass", "log", "table", "moments"),
        ((1, (0,)), (2, (0, 1)), (2, (0,)), (2, (1,)), (3, (0, 1, 2)), (3, (0, 2)), (4, (1, 2, 3))),
        (True, False),
    )
]


@pytest.mark.parametrize(("kind", "d", "moving", "whole"), CASES)
def test_compiled_and_reference_move_in_lockstep(kind: str, d: int, moving: tuple[int, ...], whole: bool) -> None:
    for seed in range(2):
        board = random_board(kind, d, moving, whole, seed)
        twin = copy.deepcopy(board)
        items = np.concatenate([np.arange(board.first_item[j], board.first_item[j + 1]) for j in moving])
        rng = np.random.default_rng(seed)
        for beta, price in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.0)):
            order = rng.permutation(items)
            before = beta * board_cost(board) + price * size_cost(board, moving)
            chosen = sweep(board, order, beta, price)
            assert np.array_equal(chosen, reference.sweep(twin, order, beta, price))
            assert np.array_equal(board.labels, twin.labels)
            assert np.array_equal(board.sizes, twin.sizes)
            assert np.allclose(board.fine, twin.fine, atol=1e-9)
            assert np.allclose(board.coarse, twin.coarse, atol=1e-9)
            assert np.isclose(board_cost(board), rebuilt_cost(board))
            assert beta * board_cost(board) + price * size_cost(board, moving) <= before + 1e-8


@pytest.mark.parametrize(("kind", "d", "moving", "whole"), CASES)
def test_batches_that_are_evaluated_together_move_in_lockstep(
    kind: str, d: int, moving: tuple[int, ...], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of threads: the board after every sweep is the same, bit by bit."""
    from gingham.engine import threads

    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    board = random_board(kind, d, moving, whole)
    twin, on_one_thread, on_three = (copy.deepcopy(board) for _ in range(3))
    items = np.concatenate([np.arange(board.first_item[j], board.first_item[j + 1]) for j in moving])
    rng = np.random.default_rng(0)
    for at_once in (2, 5, 100):
        order = rng.permutation(items)
        before = board_cost(board) + size_cost(board, moving)
        chosen = sweep(board, order, at_once=at_once)
        assert np.array_equal(chosen, reference.sweep(twin, order, at_once=at_once))
        assert np.array_equal(board.labels, twin.labels)
        assert np.array_equal(board.labels[order], chosen)
        assert np.isclose(board_cost(board), rebuilt_cost(board))
        assert board_cost(board) + size_cost(board, moving) <= before + 1e-8
        for n_threads, some in ((1, on_one_thread), (3, on_three)):
            with monkeypatch.context() as patch:
                patch.setattr(threads, "available_threads", lambda n=n_threads: n)
                sweep(some, order, at_once=at_once)
            for array, other in zip(board, some):
                assert np.array_equal(array, other)


@pytest.mark.parametrize("kind", ["mass", "log"])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("by_table", [True, False])
def test_one_mode_alone_moves_in_lockstep(
    kind: str, whole: bool, by_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No item has two observations in one cell: the kernel that writes only when an item moves."""
    from gingham.engine import sweep_compiled

    if not by_table:
        monkeypatch.setattr(sweep_compiled, "TABLE", 1)
    for seed, (d, moving) in cases(range(3), ((2, 0), (2, 1), (3, 1))):
        rng = np.random.default_rng(seed)
        n_items = (9, 8, 3)[:d]
        pairs = np.array([p for p in np.ndindex(*n_items) if rng.random() < 0.6]).T
        n_rows = pairs.shape[1]
        board = make_board(
            kind,
            list(pairs),
            [rng.integers(0, 3, n) if j == moving else np.arange(n) for j, n in enumerate(n_items)],
            [4 if j == moving else n for j, n in enumerate(n_items)],
            (moving,),
            weights=rng.integers(0, 4, n_rows).astype(float) if whole else rng.random(n_rows),
            marks=rng.integers(0, LABELS, n_rows) if kind == "log" else None,
            n_features=LABELS if kind == "log" else 1,
        )
        assert len(board.cells) == n_rows
        twin, general = copy.deepcopy(board), copy.deepcopy(board)._replace(cells=np.zeros(0, np.int64))
        items = np.arange(board.first_item[moving], board.first_item[moving + 1])
        for beta, price in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.0)):
            order = rng.permutation(items)
            chosen = sweep(board, order, beta, price)
            assert np.array_equal(chosen, reference.sweep(twin, order, beta, price))
            assert np.array_equal(chosen, sweep(general, order, beta, price))
            chosen = sweep(board, order[::-1], beta, price, at_once=4)
            assert np.array_equal(chosen, reference.sweep(twin, order[::-1], beta, price, at_once=4))
            assert np.array_equal(chosen, sweep(general, order[::-1], beta, price, at_once=4))
            for other in (twin, general):
                assert np.array_equal(board.labels, other.labels)
                assert np.array_equal(board.sizes, other.sizes)
                assert np.allclose(board.fine, other.fine, atol=1e-9)
                assert np.allclose(board.coarse, other.coarse, atol=1e-9)
            assert np.isclose(board_cost(board), rebuilt_cost(board))


def test_tuples_of_one_item_in_one_cell_need_the_general_kernel() -> None:
    labels = [np.array([0, 1]), np.array([0, 1])]
    alone = make_board("mass", [np.array([0, 0, 1]), np.array([0, 1, 1])], labels, (2, 2), (0,))
    twice = make_board("mass", [np.array([0, 0, 1]), np.array([1, 1, 1])], labels, (2, 2), (0,))
    assert len(alone.cells) == 3
    assert len(twice.cells) == 0


def test_mass_cost_is_the_negative_information() -> None:
    board = random_board("mass", 2, (0, 1))
    table = np.zeros((3, 3))
    rows = range(board.first_item[0], board.first_item[1])
    for x in rows:
        for e in range(board.indptr[x], board.indptr[x + 1]):
            table[board.labels[x], board.labels[board.others[0, e]]] += board.weights[e]
    p = table / table.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.nansum(p * np.log(p / p.sum(1, keepdims=True) / p.sum(0)))
    total = table.sum()
    assert np.isclose(board_cost(board), -total * information + total * np.log(total))


def test_counts_beyond_the_table_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    from gingham.engine import sweep_compiled

    monkeypatch.setattr(sweep_compiled, "TABLE", 8)
    board = random_board("mass", 2, (0, 1))
    twin = copy.deepcopy(board)
    order = np.random.default_rng(1).permutation(13)
    assert np.array_equal(sweep(board, order), reference.sweep(twin, order))


def test_last_item_stays_when_emptying_does_not_pay() -> None:
    # Two items with different columns: with free clusters each keeps its own.
    board = make_board("mass", [np.array([0, 1]), np.array([0, 1])], [np.array([0, 1]), np.array([0, 1])], (2, 2), (0,))
    assert sweep(board, np.array([0, 1]), 1.0, 0.0).tolist() == [0, 1]
    # A price on sizes that outweighs their information empties a cluster.
    assert len(set(sweep(board, np.array([0, 1]), 0.1, 1.0).tolist())) == 1


def test_large_boards_are_evaluated_in_batches_whatever_the_machine() -> None:
    board = random_board("mass", 2, (0, 1), n_rows=60)
    effort = effort_of(board, np.array([0, 7]))
    assert effort.tolist() == [3 * (board.indptr[1] - board.indptr[0]), 3 * (board.indptr[8] - board.indptr[7])]
    assert batch_size(effort) == 1
    assert batch_size(np.full(1000, SMALL // 1000 + 1)) == 63  # sixteen batches


def test_unknown_names_are_refused() -> None:
    with pytest.raises(GinghamError, match="'magic'"):
        make_board("magic", [np.array([0])], [np.array([0])], (1,), (0,))


def test_ln_is_exact_to_fourteen_digits() -> None:
    import numba

    from gingham.engine.logarithm import ln

    @numba.njit(error_model="numpy")
    def run(x):  # type: ignore[no-untyped-def]
        out = np.empty(len(x))
        for i in range(len(x)):
            out[i] = ln(x[i])
        return out

    x = np.concatenate([np.geomspace(1e-12, 1e12, 2001), np.linspace(0.5, 2, 501)])
    assert np.allclose(run(x), np.log(x), rtol=1e-13, atol=1e-14)
    assert 0.0 * run(np.zeros(1))[0] == 0.0
