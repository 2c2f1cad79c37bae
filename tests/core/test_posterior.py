"""Q and what follows from it, checked against sums over every partition."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import reference

from gingham.cells import Absolute, Quadratic
from gingham.core.problem import Problem, check_table
from gingham.errors import GinghamError
from gingham.fitting.starts import from_labels, random
from problems import FIVE, all_cells, random_problem, random_sample

CELLS = all_cells()
each_cell = pytest.mark.parametrize("cell", CELLS, ids=lambda c: type(c).__name__)
each_d = pytest.mark.parametrize("d", [1, 2, 3])


def posterior_of(cell, d, seed=0):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, cell, d)
    return problem, random(problem, [2 + j % 2 for j in range(d)], rng)


def brute_force_losses(posterior, sample, cell):
    """Every observation, every cell: (probability, loss, numeric answer) one at a time."""
    t = cell.features.of_labels(sample.labels) if sample.label_codes is None else None
    t = cell.features.of_labels(FIVE.numbers)[sample.label_codes] if t is None else t
    coef, values = cell.coef(posterior.answers[0]), cell.values(posterior.answers[0])
    for e in range(sample.n_rows):
        for c in product(*(range(m) for m in posterior.n_clusters)):
            p = np.prod([q[sample.codes[j][e], c[j]] for j, q in enumerate(posterior.assign)])
            yield e, p, coef[c] @ t[e], values[c]


@each_cell
@each_d
def test_gibbs_loss_law_and_mean_prediction_equal_brute_force(cell, d):
    problem, posterior = posterior_of(cell, d)
    sample = problem.samples[0]
    expected, prediction = 0.0, np.zeros(sample.n_rows)
    for e, p, loss, value in brute_force_losses(posterior, sample, cell):
        expected += sample.weights[e] * p * loss
        prediction[e] += p * value
    expected /= sample.n_observations
    assert posterior.gibbs_loss(sample) == pytest.approx(expected)
    assert posterior.loss_law(sample).mean == pytest.approx(expected)
    np.testing.assert_allclose(posterior.predict(sample.codes), prediction)


@each_cell
@each_d
def test_two_routes_to_the_statistics(cell, d):
    """Grouped by any mode, the cells see the same."""
    problem, posterior = posterior_of(cell, d)
    sample = problem.samples[0]
    whole = posterior.statistics(sample)
    assert whole.shape == (*posterior.n_clusters, cell.features.size)
    halves = [posterior.statistics(sample.take(np.arange(sample.n_rows) % 2 == k)) for k in (0, 1)]
    np.testing.assert_allclose(whole, halves[0] + halves[1])
    by_item = reference.project(sample.rows(0, cell.features), posterior.assign[1:])
    table = np.tensordot(posterior.assign[0], by_item, (0, 0)).reshape(posterior.n_clusters[0], cell.features.size, -1)
    np.testing.assert_allclose(whole, np.moveaxis(table, 1, 2).reshape(whole.shape))


def test_relabelling_clusters_changes_nothing():
    problem, posterior = posterior_of(Absolute(FIVE), 2)
    sample = problem.samples[0]
    swap = replace(
        posterior, assign=(posterior.assign[0][:, ::-1], posterior.assign[1]), answers=(posterior.answers[0][::-1],)
    )
    assert swap.gibbs_loss(sample) == pytest.approx(posterior.gibbs_loss(sample))
    assert swap.information == pytest.approx(posterior.information)
    np.testing.assert_allclose(swap.predict_distribution(sample.codes), posterior.predict_distribution(sample.codes))
    assert problem.objective(swap).total == pytest.approx(problem.objective(posterior).total)


def test_information_by_hand_and_bounds():
    problem, posterior = posterior_of(Absolute(FIVE), 2)
    q = posterior.assign[0]
    by_hand = np.mean([sum(p * np.log(p / m) for p, m in zip(row, q.mean(0))) for row in q])
    assert posterior.information[0] == pytest.approx(by_hand)
    assert 0 <= by_hand <= np.log(q.shape[1])
    assert posterior.effective_clusters[0] == pytest.approx(np.exp(by_hand))
    one = from_labels(problem, [np.zeros(n, int) for n in problem.samples[0].shape])
    assert one.information == (0.0, 0.0)
    half = from_labels(problem, [np.arange(n) % 2 for n in (len(q), problem.samples[0].shape[1])])
    sizes = np.bincount(np.arange(len(q)) % 2) / len(q)
    assert half.information[0] == pytest.approx(-(sizes * np.log(sizes)).sum())


def test_median_and_mode_by_hand():
    problem, posterior = posterior_of(Absolute(FIVE), 2)
    codes = problem.samples[0].codes
    distribution = posterior.predict_distribution(codes)
    np.testing.assert_allclose(distribution.sum(axis=1), 1)
    medians = [FIVE.numbers[np.flatnonzero(np.cumsum(p) >= 0.5 - 1e-12)[0]] for p in distribution]
    np.testing.assert_array_equal(posterior.predict(codes, "median"), medians)
    np.testing.assert_array_equal(posterior.predict(codes, "mode"), FIVE.numbers[distribution.argmax(1)])


def test_exact_half_goes_to_the_lower_label():
    sample = random_sample(np.random.default_rng(0), 1)
    posterior = from_labels(Problem.grid(sample, Absolute(FIVE), 1.0), [np.arange(sample.shape[0]) % 2])
    posterior = replace(posterior, assign=(np.full_like(posterior.assign[0], 0.5),), answers=(np.array([1, 3]),))
    assert set(posterior.predict(sample.codes, "median")) == {2.0}


def test_the_mass_of_a_cluster_is_its_mean_over_items():
    _problem, posterior = posterior_of(Absolute(FIVE), 1)
    square = replace(posterior, assign=(np.array([[0.9, 0.1], [0.6, 0.4]]),))  # as many items as clusters
    np.testing.assert_allclose(square.mass[0], [0.75, 0.25])
    np.testing.assert_allclose(square.unseen_rows[0], [2.5 / 4, 1.5 / 4])


def test_unseen_items_fall_like_one_more_item_in_every_cluster():
    _problem, posterior = posterior_of(Absolute(FIVE), 2)
    unseen = posterior.predict_distribution([np.array([-1]), np.array([0])])
    pure = replace(
        posterior, assign=(np.vstack([posterior.assign[0], np.eye(posterior.n_clusters[0])]), *posterior.assign[1:])
    )
    seen = pure.predict_distribution([np.arange(len(pure.assign[0])), np.zeros(len(pure.assign[0]), int)])
    np.testing.assert_allclose(unseen[0], seen.mean(axis=0))


def test_large_tables_are_refused_with_their_size():
    with pytest.raises(GinghamError, match=r"1000×1000×1000 grid has 1,000,000,000 cells; .* 37\.3 GiB"):
        check_table((1000, 1000, 1000), 5)


def test_blocks_do_not_change_results(monkeypatch):
    problem, posterior = posterior_of(Absolute(FIVE), 3)
    sample = problem.samples[0]
    whole = posterior.statistics(sample), posterior.predict(sample.codes)
    from gingham.core import problem as module
    from gingham.engine import project as layout

    blocks = module.row_blocks
    for place in (module, layout):
        monkeypatch.setattr(place, "row_blocks", lambda n, width, budget=0: blocks(n, width, budget=100))
    assert len(module.row_blocks(10, 12)) == 10
    np.testing.assert_allclose(posterior.statistics(sample), whole[0])
    np.testing.assert_allclose(posterior.predict(sample.codes), whole[1])


def test_requests_that_make_no_sense():
    problem, posterior = posterior_of(Quadratic(None, (1.0, 5.0)), 2)
    codes = problem.samples[0].codes
    with pytest.raises(GinghamError, match="answer with a number"):
        posterior.predict_distribution(codes)
    with pytest.raises(GinghamError, match="rule='average' is unknown"):
        posterior.predict(codes, "average")
    free = replace(problem.samples[0], alphabet=None)
    with pytest.raises(GinghamError, match="alphabet"):
        posterior.loss_law(free)
