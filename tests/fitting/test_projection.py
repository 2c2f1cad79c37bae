"""Alternating projections: monotone, self-consistent, no start ends below the global minimum for d = 1."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.special import softmax

from ctrl_c import press_ctrl_c
from gingham.cells import Absolute, ZeroOne
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError, InterruptedWarning
from gingham.fitting.certified import Certified, certificate, facts, local_table, merge_cheapest, prune
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import best_of
from gingham.fitting.projection import Projection, half_step
from gingham.fitting.schedules import Constant, Down
from gingham.fitting.starts import from_labels, make_start, random
from problems import FIVE, all_cells, random_problem, random_sample

CELLS = all_cells()
STEADY = Projection(Constant(), tol=1e-12, max_iter=300)


def best_of_starts(problem, starts, callback=None):
    def solve(restart):
        return STEADY.solve(problem, starts[restart.number], restart.report)

    rng = np.random.default_rng(0)
    return best_of(solve, len(starts), rng, max_iter=STEADY.max_iter, callback=callback)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS, ids=lambda c: type(c).__name__)
def test_objective_never_rises(cell, d):
    """10 random problems for each of 7 cell models and 3 dimensions: 210 in all, each half step."""
    for seed in range(10):
        rng = np.random.default_rng([seed, d])
        problem = random_problem(rng, cell, d, weighted=bool(seed % 2))
        posterior = random(problem, [3, 2, 2][:d], rng)
        before = problem.objective(posterior).total
        for _ in range(8):
            for mode in range(d):
                posterior, losses = half_step(problem, posterior, mode)
                now = problem.objective(posterior)
                assert now.total <= before + 1e-9 * abs(before)
                assert losses[0] == pytest.approx(now.losses[0])  # two routes to one number
                before = now.total


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: type(c).__name__)
def test_fixed_points_satisfy_the_self_consistent_equations(cell):
    rng = np.random.default_rng(5)
    problem = Problem.grid(random_sample(rng, 2, n_rows=60), cell, 0.7)
    solution = STEADY.solve(problem, random(problem, [3, 2], rng))
    posterior = solution.posterior
    (sample,), coef = problem.samples, cell.coef(posterior.answers[0])
    t = np.array([cell.features.evaluate(sample.labels)]) if not hasattr(cell.features, "size") else None
    assert t is None
    dense = np.eye(5)[sample.label_codes] if cell.features.size == 5 else np.vander(sample.labels, 3, increasing=True)
    cost = np.einsum("e,ek,eb,abk->ea", sample.weights, dense, posterior.assign[1][sample.codes[1]], coef)
    gradient = np.zeros_like(posterior.assign[0])
    np.add.at(gradient, sample.codes[0], cost)
    with np.errstate(divide="ignore"):
        expected = softmax(np.log(posterior.mass[0]) - 0.7 * gradient, axis=1)
    np.testing.assert_allclose(posterior.assign[0], expected, atol=1e-4)


def least_of_one_mode(problem, m):
    """d = 1: the least objective of all hard answers with the exact memberships for each, enumerated."""
    (sample,), table = problem.samples, problem.cells[0].table
    histogram = np.zeros((sample.shape[0], len(table)))
    np.add.at(histogram, (sample.codes[0], sample.label_codes), 1.0)
    lowest = np.inf
    for answers in combinations_with_replacement(range(len(table)), m):
        cost = problem.betas[0] * histogram @ table[:, list(answers)]
        mass = np.full(m, 1.0 / m)
        for _ in range(1500):  # Blahut-Arimoto: convex in (q, qbar) for fixed answers
            mass = np.maximum(softmax(np.log(mass) - cost, axis=1).mean(axis=0), 1e-300)
        lowest = min(lowest, -np.log((mass * np.exp(-cost)).sum(axis=1)).sum())
    return lowest


def test_one_mode_is_not_always_at_the_global_minimum():
    """P0 says that a single mode reaches it from any start: none ends below, some end above."""
    alphabet = Alphabet.of([0, 1, 2], True)
    above = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sample = Sample.of([rng.integers(0, 4, 25)], rng.integers(0, 3, 25), alphabet=alphabet)
        problem = Problem.grid(sample, ZeroOne(alphabet), 1.2)
        least = least_of_one_mode(problem, 2)
        ends = np.array(
            [
                Projection(tol=1e-9, max_iter=500)
                .solve(problem, random(problem, [2], np.random.default_rng(s)))
                .objective.total
                for s in range(8)
            ]
        )
        assert ends.min() >= least * (1 - 1e-5)
        above += int((ends > least * 1.01).sum())
    assert above


def test_four_by_four_optimum_by_enumeration():
    """β → ∞: the hard optimum over all 2-partitions of a 4 × 4 matrix is found from restarts."""
    rng = np.random.default_rng(3)
    alphabet = Alphabet.of([0, 1], True)
    matrix = rng.integers(0, 2, (4, 4))
    positions = np.argwhere(np.ones((4, 4)))
    sample = Sample.of(list(positions.T), matrix.ravel(), alphabet=alphabet)
    problem = Problem.grid(sample, ZeroOne(alphabet), 50.0)
    best = min(
        problem.objective(from_labels(problem, [np.array(rows), np.array(columns)], [2, 2])).losses[0]
        for rows in product(range(2), repeat=4)
        for columns in product(range(2), repeat=4)
    )
    starts = [random(problem, [2, 2], np.random.default_rng(s)) for s in range(40)]
    assert best_of_starts(problem, starts).objective.losses[0] == pytest.approx(best, abs=1e-6)


def planted(rng, n=(40, 30), m=(3, 2), n_rows=1500, noise=0.1):
    rows, columns = np.arange(n[0]) % m[0], np.arange(n[1]) % m[1]
    answers = np.array([[1, 5], [5, 1], [3, 3]])[: m[0]]  # rows 0 and 1 have the same mean
    X = np.column_stack([rng.integers(0, n[0], n_rows), rng.integers(0, n[1], n_rows)])
    y = answers[rows[X[:, 0]], columns[X[:, 1]]]
    y = np.where(rng.random(n_rows) < noise, rng.integers(1, 6, n_rows), y)
    return X, y, rows, columns


@pytest.mark.parametrize("schedule", [Constant(), Down()])
def test_planted_checkerboard_is_recovered(schedule):
    from sklearn.metrics import adjusted_rand_score

    X, y, rows, columns = planted(np.random.default_rng(0))
    problem = Problem.grid(Sample.of(list(X.T), y, alphabet=FIVE), Absolute(FIVE), 1.0)
    start = make_start("spectral", problem, (3, 2), np.random.default_rng(0))
    labels = Projection(schedule).solve(problem, start).posterior.labels
    assert adjusted_rand_score(rows, labels[0]) == 1.0
    assert adjusted_rand_score(columns, labels[1]) == 1.0


@pytest.mark.parametrize("name", ["spectral", "means", "random"])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("cell", [CELLS[0], CELLS[1], CELLS[-1]], ids=lambda c: type(c).__name__)
def test_every_start_is_a_posterior(name, d, cell):
    rng = np.random.default_rng(1)
    problem = random_problem(rng, cell, d)
    m = [3, 2, 4][:d]
    start = make_start(name, problem, m, rng)
    assert start.n_clusters == tuple(m)
    for q in start.assign:
        np.testing.assert_allclose(q.sum(axis=1), 1)
        assert (q > 0).all()
    again = make_start(name, problem, m, np.random.default_rng(7))
    twice = make_start(name, problem, m, np.random.default_rng(7))
    for a, b in zip(again.assign, twice.assign):
        np.testing.assert_array_equal(a, b)


def test_any_posterior_can_start_a_fit_on_other_items():
    rng = np.random.default_rng(2)
    old = Sample.of([["a", "b", "c"], [1, 2, 1]], [1, 5, 3], alphabet=FIVE)
    new = Sample.of([["b", "z", "a"], [2, 2, 1]], [1, 5, 3], alphabet=FIVE)
    first = random(Problem.grid(old, Absolute(FIVE), 1.0), [2, 2], rng)
    start = make_start(first, Problem.grid(new, Absolute(FIVE), 1.0), [2, 2], rng)
    np.testing.assert_allclose(start.assign[0][1], first.assign[0][1])  # "b"
    np.testing.assert_allclose(start.assign[0][2], first.mass[0])  # "z" is new


@pytest.mark.parametrize(
    ("start", "words"),
    [("median", "unknown"), ([[0, 1]], "1 label arrays .* 2 modes"), ([[0.5] * 5, [0] * 5], "must be 5 integers")],
)
def test_bad_starts_get_a_sentence(start, words):
    problem = random_problem(np.random.default_rng(0), Absolute(FIVE), 2)
    problem = replace(problem, samples=problem.samples)
    with pytest.raises(GinghamError, match=words):
        make_start(start, problem, [2, 2], np.random.default_rng(0))


def test_interruption_returns_the_best_so_far_with_a_warning():
    problem = random_problem(np.random.default_rng(0), Absolute(FIVE), 2)
    starts = [random(problem, [2, 2], np.random.default_rng(s)) for s in range(3)]
    seen = []

    def impatient(progress):
        seen.append(progress)
        if progress.restart == 1 and progress.iteration == 2:
            press_ctrl_c()

    with interruptible(), pytest.warns(InterruptedWarning, match="restart 2 of 3 after 3 sweeps"):
        solution = best_of_starts(problem, starts, impatient)
    first = STEADY.solve(problem, starts[0])
    assert solution.objective.total <= first.objective.total
    assert max(p.restart for p in seen) == 1


def test_schedule_comes_down_and_trace_remembers():
    problem = random_problem(np.random.default_rng(0), Absolute(FIVE), 2)
    solution = Projection(Down(5.0, 4), tol=1e-9).solve(problem, random(problem, [2, 2], np.random.default_rng(0)))
    assert solution.trace.factors[0] == 5.0
    assert solution.trace.factors[4:] == (1.0,) * (solution.n_iter - 4)
    assert (np.diff(solution.trace.totals[4:]) <= 1e-9).all()
    assert solution.objective.total == pytest.approx(problem.objective(solution.posterior).total)


def test_certificate_descends_and_prefers_the_right_size():
    X, y, *_ = planted(np.random.default_rng(0), n_rows=3000)
    cell = Absolute(FIVE)
    sample = Sample.of(list(X.T), y, alphabet=FIVE)
    problem = Problem.grid(sample, cell, 1.0)
    start = Projection(Down()).solve(problem, make_start("spectral", problem, (6, 5), np.random.default_rng(0)))
    plain = certificate(start.posterior, sample, cell)
    lower = certificate(Certified().solve(problem, start.posterior).posterior, sample, cell)
    merged = Certified(merge=True).solve(problem, start.posterior).posterior
    assert certificate(merged, sample, cell) <= lower <= plain
    assert merged.n_clusters == (3, 2)


@pytest.mark.parametrize("bound", ["log-wealth", "type-kl", "kl", "split-kl", "bernstein", "theorem-7", "theorem-1"])
def test_every_bound_can_be_descended_on(bound):
    X, y, *_ = planted(np.random.default_rng(0), n_rows=3000)
    cell = Absolute(FIVE)
    sample = Sample.of(list(X.T), y, alphabet=FIVE)
    problem = Problem.grid(sample, cell, 1.0)
    start = (
        Projection(Down()).solve(problem, make_start("spectral", problem, (6, 5), np.random.default_rng(0))).posterior
    )
    lower = Certified(bound=bound).solve(problem, start).posterior
    merged = Certified(bound=bound, merge=True).solve(problem, start).posterior
    values = [certificate(p, sample, cell, bound) for p in (start, lower, merged)]
    assert values[1] <= values[0] + 1e-9
    assert values[2] < values[0]
    assert values[2] <= values[1] + 1e-9


def test_the_table_of_a_bound_is_its_derivative():
    """Moving a little mass along the table changes the bound as the table says."""
    X, y, *_ = planted(np.random.default_rng(0))
    cell, sample = Absolute(FIVE), Sample.of(list(X.T), y, alphabet=FIVE)
    posterior = random(Problem.grid(sample, cell, 1.0), [3, 2], np.random.default_rng(0))
    exact = local_table(posterior, sample, cell, "log-wealth")
    from gingham.certificates.bounds import find

    distribution, price, n = facts(posterior, sample, cell, "exact")
    kl = local_table(posterior, sample, cell, "kl")
    assert kl[0, 4] > kl[0, 1] > kl[0, 0] == 0  # the kl bound sees the mean only: its table is linear in the loss
    np.testing.assert_allclose(kl / kl[0, 4], cell.table / 4, atol=1e-3)
    assert (np.diff(exact[0]) > 0).all()
    assert find("kl").function(distribution, price, n, 0.05).value > distribution.mean


def test_pruning_changes_nothing_and_merging_is_a_union():
    problem = random_problem(np.random.default_rng(0), Absolute(FIVE), 2)
    labels = [np.array([0, 2, 2, 0, 2]), np.array([0, 1, 0, 1, 3])]
    posterior = from_labels(problem, labels)
    pruned = prune(posterior)
    assert pruned.n_clusters == (2, 3)
    assert pruned.gibbs_loss(problem.samples[0]) == pytest.approx(posterior.gibbs_loss(problem.samples[0]))
    union = merge_cheapest(problem, pruned)
    assert sum(union.n_clusters) == sum(pruned.n_clusters) - 1
    for fine, coarse in zip(pruned.labels, union.labels):
        assert len(set(zip(fine.tolist(), coarse.tolist()))) == len(set(fine.tolist()))  # each goes to one
    np.testing.assert_allclose(union.answers[0], union.refit(problem.samples[0]).answers[0])
    with pytest.raises(GinghamError, match="needs a loss given by a table"):
        Certified().solve(replace(problem, cells=(CELLS[-1],)), posterior)


def test_threads_and_blocks_do_not_change_a_bit(monkeypatch):
    import numba

    X, y, *_ = planted(np.random.default_rng(0))
    problem = Problem.grid(Sample.of(list(X.T), y, alphabet=FIVE), Absolute(FIVE), 1.0)
    start = make_start("spectral", problem, (4, 3), np.random.default_rng(0))
    monkeypatch.setattr("gingham.engine.half_step.STEP_BYTES", 1000)  # many small blocks
    before = numba.get_num_threads()
    results = []
    try:
        for n in sorted({1, before}):
            numba.set_num_threads(n)
            results.append(Projection(max_iter=10).solve(problem, start).posterior.assign)
    finally:
        numba.set_num_threads(before)
    for assign in results[1:]:
        for a, b in zip(assign, results[0]):
            np.testing.assert_array_equal(a, b)
    monkeypatch.undo()
    whole = Projection(max_iter=10).solve(problem, start).posterior.assign
    np.testing.assert_allclose(whole[0], results[0][0], atol=1e-9)


def test_tiles_change_nothing_but_the_order_of_sums(monkeypatch):
    from gingham.engine import project_compiled as tiles

    X, y, *_ = planted(np.random.default_rng(0))
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    problem = Problem.grid(Sample.of(list(X.T), y, weights, alphabet=FIVE), Absolute(FIVE), 1.0)
    start = make_start("spectral", problem, (4, 3), np.random.default_rng(0))
    plain = Projection(max_iter=10).solve(problem, start)
    made, make_tiles = [], tiles.make_tiles

    def seen(*args):
        made.append(make_tiles(*args))
        return made[-1]

    monkeypatch.setattr(tiles, "LEAST_RUN", 1)
    monkeypatch.setattr(tiles, "TILE_BYTES", 128)
    monkeypatch.setattr(tiles, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(tiles, "make_tiles", seen)
    problem.samples[0]._layouts.clear()
    tiled = Projection(max_iter=10).solve(problem, start)
    assert len(made) == 2
    assert all(found is not None and len(found.blocks) > 2 for found in made)
    assert tiled.objective.total == pytest.approx(plain.objective.total, rel=1e-12)
    for a, b in zip(tiled.posterior.assign, plain.posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS, ids=lambda c: type(c).__name__)
def test_single_precision_is_right_to_rounding(cell, d):
    rng = np.random.default_rng(d)
    problem = random_problem(rng, cell, d, weighted=True)
    start = random(problem, [3, 2, 2][:d], rng)
    double = Projection(Constant(), tol=0.0, max_iter=4).solve(problem, start)
    single = Projection(Constant(), tol=0.0, max_iter=4, dtype="float32").solve(problem, start)
    assert single.objective.total == pytest.approx(double.objective.total, rel=1e-5)
    for a, b in zip(single.posterior.assign, double.posterior.assign):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(a, b, atol=1e-3)
