"""What every loss must satisfy, checked on random statistics: run it on a loss of your own."""

from __future__ import annotations

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cells.losses import CellModel, cell_from_state, cell_state
from gingham.errors import GinghamError


def check_loss(cell: CellModel, seed: int = 0) -> None:
    """Refuse, with a sentence, a cell model that does not keep the contract of `CellModel`.

    The answer beats alternatives; weight 2 is the observation twice; losses lie within the stated range; empty cells
    answer like all together; a convex loss is convex; and a model file brings the same cell back. The cell must be
    on an alphabet, or have ``bounds``.

    Examples
    --------
    >>> import gingham as gg
    >>> gg.losses.check_loss(gg.losses.Quadratic(bounds=(0, 10)))  # silent: it keeps the contract
    """
    numbers = _labels(cell)
    rng, t = np.random.default_rng(seed), cell.features.of_labels(numbers)
    draws = [rng.integers(0, len(numbers), int(rng.integers(1, 9))) for _ in range(50)]
    statistics = np.array([t[labels].sum(axis=0) for labels in draws])
    answers = cell.answer(statistics)
    best = cell.loss(answers, statistics)
    for others in _alternatives(cell, numbers, rng):
        # One alternative answer for all cells at a time.
        other = cell.loss(np.broadcast_to(others, (len(statistics), *np.shape(others))), statistics)
        _must(bool((best <= other + 1e-9 * (1 + np.abs(other))).all()), cell, f"answer {others!r} beats answer()")
    twice = cell.envelope(2 * statistics)
    _must(np.allclose(twice, 2 * cell.envelope(statistics)), cell, "weight 2 is not the observation counted twice")
    losses = cell.coef(answers) @ t.T
    inside = losses.min() >= cell.low - 1e-9 and losses.max() <= cell.low + cell.range + 1e-9
    _must(bool(inside), cell, f"losses from {losses.min():g} to {losses.max():g} leave low to low + range")
    with_empty = np.concatenate([statistics, np.zeros((1, t.shape[1]))])
    together = cell.answer(statistics.sum(axis=0)[None])
    _must(
        np.allclose(cell.answer(with_empty)[-1], together[0]),
        cell,
        "the answer of an empty cell is not that of all observations",
    )
    need_convex(cell)
    again = cell_from_state(cell_state(cell), cell.alphabet)
    _must(np.array_equal(again.coef(again.answer(statistics)), cell.coef(answers)), cell, "a model file changes it")


def need_convex(cell: CellModel) -> None:
    """Refuse a loss that is said to be convex in a number and is not, at an answer between two others.

    Losses of distributions are told by their chords: halfway between two answers the loss is no larger than its mean.
    """
    if not cell.convex:
        return
    numbers = _labels(cell)
    if cell.table is not None:
        if cell.table.shape[1] != len(numbers) or (cell.alphabet is not None and not cell.alphabet.numeric):
            return
        losses, at = cell.table.T, numbers
    elif cell.answers == "number":
        low, high = (numbers.min(), numbers.max()) if cell.bounds is None else cell.bounds
        at = np.linspace(low, high, 201)
        by_gap = cell.of_gap(numbers - at[:, None])  # (answers, labels)
        losses = cell.coef(at) @ cell.features.of_labels(numbers).T if by_gap is None else by_gap
    elif cell.answers == "distribution":
        free = np.random.default_rng(0).dirichlet(np.full(len(numbers), 0.5), (2, 200))
        one, other = (1 - cell.smoothing) * free + cell.smoothing / len(numbers)
        t = cell.features.of_labels(numbers).T
        ends, middle = (cell.coef(one) + cell.coef(other)) @ t / 2, cell.coef((one + other) / 2) @ t
        _must(bool((middle <= ends + 1e-9 * (1 + np.abs(ends))).all()), cell, "it is not convex in the answer")
        return
    else:
        return
    slopes = np.diff(losses, axis=0) / np.diff(at)[:, None]
    room = 1e-7 * (1.0 + float(np.abs(slopes).max(initial=0.0)))
    _must(bool((np.diff(slopes, axis=0) >= -room).all()), cell, "it is not convex in the answer, though convex says so")


def _labels(cell: CellModel) -> Floats:
    if cell.alphabet is not None:
        return cell.alphabet.numbers
    if cell.bounds is not None:
        return np.linspace(cell.bounds[0], cell.bounds[1], 9)
    raise GinghamError(f"check_loss needs {cell.name!r} on an alphabet, or with bounds=.")


def _alternatives(cell: CellModel, numbers: Floats, rng: np.random.Generator) -> list[AnyArray]:
    """Other answers that a cell could give."""
    if cell.n_answers is not None:
        return list(np.arange(cell.n_answers))
    if cell.answers == "number":
        low, high = (numbers.min(), numbers.max()) if cell.bounds is None else cell.bounds
        return list(np.linspace(low, high, 101))
    if cell.answers == "distribution":
        free = rng.dirichlet(np.ones(len(numbers)), 100)
        return list((1 - cell.smoothing) * free + cell.smoothing / len(numbers))
    return []


def _must(holds: bool, cell: CellModel, otherwise: str) -> None:
    if not holds:
        raise GinghamError(f"{type(cell).__name__} breaks the contract of a loss: {otherwise}.")
