"""Hard moves and the concave-convex solver: the objective never rises, small optima are reached."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import reference

from ctrl_c import press_ctrl_c
from gingham.cells import Absolute, Logarithmic, Mass, Quadratic
from gingham.core.problem import Posterior, Problem, Structure
from gingham.data import Sample
from gingham.engine import sweep as hard_moves
from gingham.errors import GinghamError
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Solution
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import from_labels
from gingham.fitting.sweep import Sweep
from problems import FIVE, random_sample


def unlabelled(rng: np.random.Generator, d: int, n_rows: int = 40, n_items: int = 6) -> Sample:
    columns = [rng.integers(0, n_items, n_rows) for _ in range(d)]
    return Sample.of(columns, None, rng.integers(1, 5, n_rows).astype(float))


def random_start(problem: Problem, n_clusters: int, rng: np.random.Generator) -> Posterior:
    labels = [rng.integers(0, n_clusters, mode.n_items) for mode in problem.structure.modes]
    return from_labels(problem, labels, [n_clusters] * problem.structure.n_modes)


def never_rises(solution: Solution) -> bool:
    totals = solution.trace.totals
    return bool(np.all(np.diff(totals) <= 1e-8 * np.abs(totals[:-1]) + 1e-8))


def information(table: np.ndarray) -> float:
    """N·I of a table of counts."""
    total = table.sum()
    expected = table.sum(1, keepdims=True) * table.sum(0) / total
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / expected[seen])).sum())


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    "cell", [Mass(), Logarithmic(FIVE, 0.05), Absolute(FIVE), Quadratic(FIVE)], ids=lambda c: type(c).__name__
)
def test_sweeps_never_raise_the_objective(cell: object, d: int) -> None:
    rng = np.random.default_rng(d)
    for trial in range(17):  # 204 problems in all
        sample = unlabelled(rng, d) if isinstance(cell, Mass) else random_sample(rng, d)
        problem = Problem.grid(sample, cell, float(rng.choice([0.1, 0.5, 1.0, 3.0])))
        solution = Sweep(seed=trial, price=float(trial % 2)).solve(problem, random_start(problem, 3, rng))
        assert never_rises(solution)
        assert solution.converged
        assert all(((q == 0) | (q == 1)).all() for q in solution.posterior.assign)
        if trial % 2 and not isinstance(cell, Logarithmic):  # the log loss is smoothed in the posterior
            assert np.isclose(solution.objective.total, problem.objective(solution.posterior).total)


def test_concave_never_raises_the_objective() -> None:
    rng = np.random.default_rng(0)
    for trial in range(200):
        problem = Problem.grid(unlabelled(rng, 2 + trial % 2), Mass(), float(rng.choice([0.1, 0.5, 1.0, 3.0])))
        solution = Projection(Constant(), max_iter=15).solve(problem, random_start(problem, 3, rng))
        assert never_rises(solution)
        assert np.isclose(solution.objective.total, problem.objective(solution.posterior).total)


def test_mass_loss_is_the_negative_information() -> None:
    rng = np.random.default_rng(3)
    sample = unlabelled(rng, 2)
    problem = Problem.grid(sample, Mass(), 1.0)
    posterior = random_start(problem, 3, rng)
    table = posterior.statistics(sample)[..., 0]
    assert np.isclose(posterior.gibbs_loss(sample) * sample.n_observations, -information(table))


@pytest.mark.parametrize(("beta", "price"), [(1.0, 0.0), (2.0, 1.0)])
def test_four_by_four_optimum_is_reached_from_restarts(beta: float, price: float) -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 9, (4, 4)).astype(float)
    rows, columns = np.nonzero(counts)
    sample = Sample.of([rows, columns], None, counts[rows, columns])
    problem = Problem.grid(sample, Mass(), beta)
    best = np.inf
    for r, c in product(product((0, 1), repeat=4), repeat=2):
        table = np.eye(2)[list(r)].T @ counts @ np.eye(2)[list(c)]
        sizes = 0.0
        for labels in (r, c):
            share = np.bincount(labels, minlength=2) / 4
            sizes -= 4 * (share[share > 0] * np.log(share[share > 0])).sum()
        best = min(best, -beta * information(table[np.ix_(table.any(1), table.any(0))]) + price * sizes)
    found = min(
        Sweep(price=price, seed=s).solve(problem, random_start(problem, 2, rng)).objective.total for s in range(20)
    )
    assert np.isclose(found, best)
    soft = min(
        Projection(max_iter=400).solve(problem, random_start(problem, 2, rng)).objective.total for _ in range(40)
    )
    if price:
        assert soft <= best + 1e-6  # hard partitions are among the soft ones


def test_description_length_finds_planted_blocks() -> None:
    rng = np.random.default_rng(0)
    r, c = np.repeat([0, 1, 2], 10), np.repeat([0, 1], 12)
    answers = np.array([[1, 5], [5, 1], [3, 3]])
    rows, columns = np.divmod(rng.permutation(30 * 24)[:500], 24)
    sample = Sample.of([rows, columns], answers[r[rows], c[columns]], alphabet=FIVE)
    problem = Problem.grid(sample, Logarithmic(FIVE, 0.01), 1.0)
    solution = min(
        (Sweep(seed=s).solve(problem, random_start(problem, 3, rng)) for s in range(5)),
        key=lambda s: s.objective.total,
    )
    assert np.isclose(solution.objective.losses[0], 0.0, atol=1e-6)  # H(Y | cells) = 0
    found = solution.posterior.labels
    assert len(set(zip(found[0].tolist(), r.tolist()))) == 3
    assert len(set(zip(found[1].tolist(), c.tolist()))) == 2


def test_frozen_modes_stay() -> None:
    rng = np.random.default_rng(1)
    sample = unlabelled(rng, 2)
    structure = Structure(sample.modes, ((0, 1),), frozen=(1,))
    problem = Problem(structure, (sample,), (Mass(),), (1.0,))
    n = sample.shape[1]
    start = from_labels(problem, [rng.integers(0, 2, sample.shape[0]), np.arange(n)], [2, n])
    solution = Sweep().solve(problem, start)
    assert np.array_equal(solution.posterior.labels[1], np.arange(n))


def test_same_seed_same_result() -> None:
    rng = np.random.default_rng(2)
    problem = Problem.grid(unlabelled(rng, 2), Mass(), 1.0)
    start = random_start(problem, 3, rng)
    first, second = (Sweep(seed=7).solve(problem, start) for _ in range(2))
    assert np.array_equal(first.trace.totals, second.trace.totals)


@pytest.mark.parametrize("cell", [Mass(), Logarithmic(FIVE, 0.05), Absolute(FIVE)], ids=lambda c: type(c).__name__)
def test_items_that_look_together_end_where_no_move_is_left(cell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    sample = unlabelled(rng, 2, 400, 40) if isinstance(cell, Mass) else random_sample(rng, 2)
    problem = Problem.grid(sample, cell, 1.0)
    start = random_start(problem, 3, rng)
    with monkeypatch.context() as patch:
        patch.setattr(hard_moves, "SMALL", 0)
        patch.setattr(hard_moves, "BATCHES", 2)
        together = Sweep(seed=7).solve(problem, start)
        patch.setattr("gingham.fitting.sweep.sweep", reference.sweep)
        plain = Sweep(seed=7).solve(problem, start)
        assert hard_moves.batch_size(np.ones(80, int)) == 40
    assert never_rises(together)
    assert np.allclose(together.trace.totals, plain.trace.totals)
    again = Sweep(seed=8).solve(problem, together.posterior)
    assert again.n_iter == 1
    assert np.array_equal(again.posterior.labels[0], together.posterior.labels[0])


def test_interrupted_sweeps_keep_what_is_done() -> None:
    rng = np.random.default_rng(2)
    problem = Problem.grid(unlabelled(rng, 2), Mass(), 1.0)

    with interruptible():
        solution = Sweep().solve(problem, random_start(problem, 3, rng), report=press_ctrl_c)
    assert solution.interrupted
    assert solution.n_iter == 1


def test_unfit_problems_are_refused() -> None:
    rng = np.random.default_rng(2)
    labelled = Problem.grid(random_sample(rng, 2), Absolute(FIVE), 1.0)
    mode = labelled.samples[0].modes[0]
    graph = Problem(Structure((mode,), ((0, 0),)), labelled.samples, labelled.cells, (1.0,))
    with pytest.raises(GinghamError, match="one relation"):
        Sweep().solve(graph, random_start(labelled, 2, rng))
