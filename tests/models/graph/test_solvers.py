"""Graph solvers: monotone, at fixed points of the self-consistent equations, and on known answers."""

from dataclasses import replace
from itertools import combinations, product

import graph_reference
import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.cells import Absolute, Logarithmic, Quadratic
from gingham.certificates import certify
from gingham.core.problem import Problem
from gingham.data import Alphabet
from gingham.data.graphs import from_graph, with_alphabet
from gingham.datasets import planted_graph
from gingham.engine import sweep as hard_moves
from gingham.engine import threads
from gingham.errors import GinghamError
from gingham.fitting.schedules import Constant, Up
from gingham.fitting.starts import from_labels, random, with_best_answers
from gingham.models.graph import solvers
from gingham.models.graph.fit import GraphFit, graph_problem, search_problem
from gingham.models.graph.partition import (
    BlockSums,
    Certified,
    DegreeCorrected,
    ExactBernoulli,
    PartitionSearch,
    TradeOff,
    compact,
    merge_path,
)
from gingham.models.graph.solvers import Damped, NodeSweep, NodeWise, gradient, hard_posterior


def weighted(n=30, directed=False, seed=0, levels=(0.0, 0.5, 1.0)):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 3
    centre = np.array([[0.9, 0.2, 0.5], [0.2, 0.6, 0.1], [0.5, 0.1, 0.4]])
    if directed:
        centre = np.array([[0.9, 0.2, 0.5], [0.7, 0.6, 0.1], [0.1, 0.3, 0.4]])
    noisy = centre[np.ix_(z, z)] + 0.2 * rng.normal(size=(n, n))
    matrix = np.asarray(levels)[np.abs(noisy[..., None] - np.asarray(levels)).argmin(-1)]
    matrix = matrix if directed else np.triu(matrix, 1) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, 0)
    return matrix, z


def problem(loss, directed=False, listed=False, beta=2.0, n=30):
    matrix, _ = weighted(n, directed)
    if listed:
        rng = np.random.default_rng(3)
        hidden = rng.random(matrix.shape) < 0.3
        matrix = matrix.copy()
        matrix[hidden | (hidden.T & (not directed))] = np.nan
    sample = from_graph(matrix, pairs="listed" if listed else "all", directed=directed)
    alphabet = Alphabet.of([0.0, 0.5, 1.0], given=True)
    sample = with_alphabet(sample, alphabet)
    cell = {"quadratic": Quadratic(alphabet), "absolute": Absolute(alphabet), "log": Logarithmic(alphabet)}[loss]
    return graph_problem(sample, cell, beta)


CASES = list(product(["quadratic", "absolute", "log"], [False, True], [False, True]))


@pytest.mark.parametrize(("loss", "directed", "listed"), CASES)
@pytest.mark.parametrize("solver", [NodeWise, Damped, NodeSweep])
def test_the_objective_never_rises(solver, loss, directed, listed):
    task = problem(loss, directed, listed)
    start = random(task, [4], np.random.default_rng(1))
    options = {} if solver is NodeSweep else {"schedule": Constant()}
    solution = solver(max_iter=25, **options).solve(task, start)
    totals = solution.trace.totals
    assert np.all(np.diff(totals) <= 1e-8 * np.abs(totals[:-1]))
    assert solution.objective.total == pytest.approx(task.objective(solution.posterior).total)
    assert totals[-1] < task.objective(start).total


@pytest.mark.parametrize(("loss", "directed", "listed"), CASES)
def test_the_gradient_is_the_derivative_of_the_loss(loss, directed, listed):
    task = problem(loss, directed, listed, n=12)
    posterior = random(task, [3], np.random.default_rng(2))
    sample = task.samples[0]
    if not directed:  # answers of an undirected graph are symmetric
        posterior = posterior.refit(sample)
    found = gradient(posterior, sample)
    step = 1e-6
    for x, c in [(0, 0), (3, 2), (11, 1)]:
        moved = []
        for sign in (1, -1):
            assign = posterior.assign[0].copy()
            assign[x, c] += sign * step
            changed = type(posterior)(posterior.structure, posterior.cells, (assign,), posterior.answers)
            moved.append(changed.gibbs_loss(sample) * sample.n_observations)
        assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(found[x, c], rel=1e-5)


@pytest.mark.parametrize("solver", [NodeWise, Damped])
def test_fixed_points_satisfy_the_self_consistent_equations(solver):
    task = problem("quadratic", beta=1.5)
    _, z = weighted()
    start = from_labels(task, [z], firmness=0.8)
    posterior = solver(schedule=Constant(), tol=1e-14, max_iter=2000).solve(task, start).posterior
    expected = softmax(np.log(posterior.mass[0]) - 1.5 * gradient(posterior, task.samples[0]), axis=1)
    np.testing.assert_allclose(posterior.assign[0], expected, atol=1e-4)


def test_the_two_soft_solvers_meet():
    task = problem("log", beta=1.0)
    start = from_labels(task, [weighted()[1]], firmness=0.8)
    first = NodeWise(schedule=Constant(), tol=1e-12, max_iter=500).solve(task, start)
    second = Damped(schedule=Constant(), tol=1e-12, max_iter=500).solve(task, start)
    assert first.objective.total == pytest.approx(second.objective.total, rel=1e-6)


@pytest.mark.parametrize("loss", ["quadratic", "log"])
def test_damped_steps_through_torch_are_the_same(loss):
    pytest.importorskip("torch")
    task = problem(loss)
    start = from_labels(task, [weighted()[1]], firmness=0.8)
    here, there = (Damped(max_iter=4, backend=b).solve(task, start) for b in ("compiled", "torch"))
    assert there.n_iter == here.n_iter
    np.testing.assert_allclose(there.posterior.assign[0], here.posterior.assign[0], atol=1e-6)


def test_the_reference_moves_in_lockstep(monkeypatch):
    task = problem("quadratic")
    start = random(task, [3], np.random.default_rng(1))
    for solver in (NodeWise, NodeSweep):
        fast = solver(max_iter=4, seed=3).solve(task, start)
        with monkeypatch.context() as plain:
            plain.setattr(solvers, "kernels", graph_reference)
            slow = solver(max_iter=4, seed=3).solve(task, start)
        np.testing.assert_allclose(fast.trace.totals, slow.trace.totals, rtol=1e-9)


@pytest.fixture
def look_together(monkeypatch):
    """Call with a number of threads: from then on a quarter of the nodes look at once, on that many."""

    def together(n_threads):
        monkeypatch.setattr(hard_moves, "SMALL", 0)
        monkeypatch.setattr(hard_moves, "BATCHES", 4)
        monkeypatch.setattr(threads, "SERIAL_WORK", 0)
        monkeypatch.setattr(threads, "available_threads", lambda: n_threads)

    return together


@pytest.mark.parametrize(("loss", "directed", "listed"), CASES)
def test_nodes_that_look_together_descend_whatever_the_threads(loss, directed, listed, look_together, monkeypatch):
    task = problem(loss, directed, listed)
    start = from_labels(task, [np.random.default_rng(1).integers(0, 4, 30)], [4])
    results = []
    for n_threads in (1, 3):
        look_together(n_threads)
        results.append(NodeSweep(seed=3).solve(task, start))
        totals = results[-1].trace.totals
        assert np.all(np.diff(totals) <= 1e-8 * np.abs(totals[:-1]))
    assert np.array_equal(results[0].trace.totals, results[1].trace.totals)
    assert np.array_equal(results[0].posterior.labels[0], results[1].posterior.labels[0])
    monkeypatch.setattr(solvers, "kernels", graph_reference)
    plain = NodeSweep(seed=3).solve(task, start)
    np.testing.assert_allclose(plain.trace.totals, results[0].trace.totals, rtol=1e-9)
    assert results[0].converged
    assert hard_moves.batch_size(np.ones(30, int)) == 8


def test_degree_corrected_nodes_look_together_whatever_the_threads(look_together):
    graph = planted_graph(300, 4, inside=12, outside=4, seed=0)
    task = graph_problem(from_graph(graph.adjacency), Quadratic(), 1.0)
    hard = PartitionSearch.of(task, degree_correction=True).moves
    start = np.random.default_rng(0).integers(0, 4, 300)
    found = []
    for n_threads in (1, 3):
        look_together(n_threads)
        found.append(hard.improve(start, 4, np.random.default_rng(5), 50))
    assert np.array_equal(*found)
    assert np.array_equal(hard.improve(found[0], 4, np.random.default_rng(6), 1), found[0])  # no move is left
    assert adjusted_rand_score(graph.labels, found[0]) > 0.5


def test_the_parallel_update_of_the_paper_swaps_for_ever_where_nodewise_descends():
    # Twenty pairs with weight 1 (like with like); in four of them the two nodes start in different clusters.
    ends = np.arange(40).reshape(20, 2)
    unlike = np.column_stack([np.arange(0, 16, 2), np.arange(24, 40, 2)])
    edges = [(i, j, 1.0) for i, j in ends.tolist()] + [(i, j, 0.0) for i, j in unlike.tolist()]
    z = np.repeat([0, 1], 20)
    z[[17, 19, 21, 23]] = 1 - z[[17, 19, 21, 23]]
    task = graph_problem(from_graph(edges, pairs="listed"), Quadratic(), 8.0)
    start = from_labels(task, [z], firmness=0.98)
    literal = Damped(schedule=Constant(), safeguard=False, tol=-1.0)
    here, next_, after = (replace(literal, max_iter=t).solve(task, start).posterior.labels[0] for t in (20, 21, 22))
    assert (here != next_).any()
    assert (here == after).all()
    lower = NodeWise(schedule=Constant()).solve(task, start).objective.total
    assert lower < replace(literal, max_iter=20).solve(task, start).objective.total - 5.0


def algorithm_1(weights, q, beta):
    """One iteration of P1's Algorithm 1 on a dense graph, as printed, with the answers of (12)."""
    seen = 1.0 - np.eye(len(q))
    g = (q.T @ weights @ q) / (q.T @ seen @ q)
    cost = (seen @ q) @ (g * g).T - 2.0 * (weights @ q) @ g.T
    return softmax(np.log(q.mean(axis=0)) - beta * cost, axis=1)


def test_the_parallel_solver_is_algorithm_1_as_printed():
    matrix, _ = weighted(30, seed=3)
    start = gg.GraphClustering(3, loss="quadratic", solver="parallel", start="soft", max_iter=1, random_state=4)
    q = start.fit(matrix).assign_
    later = gg.GraphClustering(3, loss="quadratic", beta=start.beta_, solver="parallel", max_iter=3)
    later.set_params(start=start.posterior_).fit(matrix)
    for _ in range(3):
        q = algorithm_1(matrix, q, start.beta_)
    np.testing.assert_allclose(later.assign_, q, atol=1e-9)
    assert later.n_iter_ == 3


def test_annealing_upwards_adds_noise_when_beta_rises():
    matrix, _ = weighted(30, seed=3)
    task = graph_problem(from_graph(matrix), Quadratic(), 3.0)
    start = with_best_answers(task, [np.full((30, 3), 1 / 3)])
    spread = {}
    for n_sweeps, noise in product((2, 3), (0.0, 0.1)):
        solver = Damped(schedule=Up(start=0.5, hold=2, noise=noise), safeguard=False, max_iter=n_sweeps, tol=-1.0)
        spread[n_sweeps, noise] = np.ptp(solver.solve(task, start).posterior.assign[0], axis=0).max()
    assert max(spread[2, 0.0], spread[2, 0.1], spread[3, 0.0]) < 1e-9 < 1e-3 < spread[3, 0.1]


def test_hard_moves_find_the_best_of_all_partitions():
    matrix, _ = weighted(7)
    sample = from_graph(matrix)
    task = graph_problem(sample, Quadratic(), 4.0)
    every = [task.objective(from_labels(task, [np.array((0, *z))], [3])).total for z in product(range(3), repeat=6)]
    rng = np.random.default_rng(0)
    found = min(
        NodeSweep(seed=s).solve(task, from_labels(task, [rng.integers(0, 3, 7)], [3])).objective.total
        for s in range(20)
    )
    assert found == pytest.approx(min(every))


@pytest.mark.parametrize("directed", [False, True])
def test_merging_changes_the_cost_by_what_was_announced(directed):
    rng = np.random.default_rng(0)
    matrix, _ = weighted(20, directed, levels=(0.0, 1.0))
    sample = with_alphabet(from_graph(matrix, directed=directed), Alphabet.of([0.0, 1.0], given=True))
    labels = rng.integers(0, 4, 20)
    cell = Logarithmic(sample.alphabet)
    double = 1 if directed else 2
    blocks = BlockSums(
        double * sample.block_statistics(labels, 4, cell.features),
        np.bincount(labels, minlength=4).astype(float),
        rng.random(4),
        directed,
    )
    for code in (ExactBernoulli(), TradeOff(cell, 1.3)):
        change = blocks.gains(code)
        fewer = code.count(20, 3) - code.count(20, 4)
        for i, j in [(0, 1), (1, 3), (0, 3)]:
            joined = np.where(labels == j, i, labels)
            merged = blocks.merged(np.unique(np.where(np.arange(4) == j, i, np.arange(4)), return_inverse=True)[1])
            assert merged.cost(code) - blocks.cost(code) == pytest.approx(change[i, j] + fewer)
            assert merged.sizes.sum() == len(joined)
        assert np.isinf(change[2, 1])
    assert len(np.unique(merge_path(blocks, ExactBernoulli(), target=2)[-1])) == 2


@pytest.mark.parametrize("degrees", [False, True])
def test_compiled_changes_of_merging_are_the_plain_ones(degrees):
    graph = planted_graph(200, 6, inside=10, outside=5, seed=2)
    sample = with_alphabet(from_graph(graph.adjacency), Alphabet.of([0.0, 1.0], given=True))
    task = graph_problem(sample, Logarithmic(sample.alphabet), 1.0)
    search = PartitionSearch.of(task, degree_correction=degrees)
    labels = np.random.default_rng(0).integers(0, 60, 200)  # so many that only like clusters are tried
    labels, k = compact(labels)
    blocks = search.blocks(labels, k)
    first, second = np.nonzero(np.triu(blocks.near(), 1))
    assert len(first) < k * (k - 1) / 2
    compiled, plain = (of(first, second, search.code) for of in (blocks._changes_counted, blocks._changes))
    np.testing.assert_allclose(compiled, plain, atol=1e-5)
    assert np.ptp(plain) > 1.0


def nearly_alike(contrast: float, n: int = 1000) -> tuple[PartitionSearch, np.ndarray]:
    """A 0/1 graph of three clusters, the last two of which differ in one density alone, and its partition."""
    rng, z = np.random.default_rng(0), np.repeat([0, 1, 2], [n // 2, n // 4, n // 4])
    density = np.array([[0.2, 0.05, 0.05], [0.05, 0.1 * contrast, 0.1], [0.05, 0.1, 0.1]])
    upper = np.triu(rng.random((n, n)) < density[np.ix_(z, z)], 1)
    sample = from_graph((upper | upper.T).astype(float))
    return PartitionSearch.of(search_problem(graph_problem(sample, Quadratic(), 1.0))), z


def certified(search: PartitionSearch, labels: np.ndarray) -> Certified:
    blocks = search.blocks(*compact(labels))
    return Certified(blocks.table[..., -1], blocks.sizes)


def test_what_a_certificate_is_said_to_be_worth_is_near_the_truth():
    search, z = nearly_alike(1.6)
    squared = graph_problem(search.sample, Quadratic(bounds=(0.0, 1.0)), 1.0)
    for labels in (z, np.minimum(z, 1), np.arange(len(z)) % 5):
        truth = certify(hard_posterior(squared, *compact(labels))[0], search.sample).value
        assert certified(search, labels).value == pytest.approx(truth, rel=0.1)


def test_savings_of_merging_are_what_a_recount_says():
    search, z = nearly_alike(1.6)
    fine = 4 * z + np.arange(len(z)) % 4
    before, (first, second) = certified(search, fine), np.triu_indices(12, 1)
    recounted = [
        1.0 - certified(search, np.where(fine == j, i, fine)).value / before.value for i, j in zip(first, second)
    ]
    assert np.abs(before.savings(first, second) - recounted).max() < 0.05 * np.ptp(recounted)


def test_clusters_are_merged_at_the_end_where_a_certificate_gains_much_more_than_the_description_loses():
    search, z = nearly_alike(1.6)
    three, two = search.partition(z), search.partition(np.minimum(z, 1))
    added = two.cost - three.cost
    assert 0 < added < 1e-3 * three.cost
    rng = np.random.default_rng(0)
    merged = search.coarsen(three, rng, room=1.1 * added)
    assert merged.n_clusters == 2
    assert merged.cost <= three.cost + 1.1 * added
    for room in (0.0, 0.9 * added):
        assert search.coarsen(three, rng, room) is three
    apart = nearly_alike(3.0)[0]  # here the two differ much: they are not merged, however much room there is
    assert apart.coarsen(apart.partition(z), rng, room=1e6).n_clusters == 3


def test_blocks_of_a_whole_graph_are_summed_by_its_edges():
    search = nearly_alike(1.6, 100)[0]
    labels = np.random.default_rng(0).integers(0, 7, 100)
    plain = 2.0 * search.sample.block_statistics(labels, 7, Logarithmic(search.sample.alphabet).features)
    np.testing.assert_allclose(search.statistics(labels, 7), plain, atol=1e-9)


def test_the_search_ends_with_moves_by_the_code_itself(monkeypatch):
    graph = planted_graph(400, 8, inside=12, outside=5, exponent=2.5, seed=1)
    task = search_problem(graph_problem(from_graph(graph.adjacency), Quadratic(), 1.0))
    found = PartitionSearch.of(task).find(None, np.random.default_rng(0))
    monkeypatch.setattr(PartitionSearch, "polish", lambda self, found, rng: found)
    assert found.cost < PartitionSearch.of(task).find(None, np.random.default_rng(0)).cost - 0.1


def test_exact_code_lengths_by_hand():
    table = np.array([[[6.0, 2.0], [3.0, 1.0]], [[3.0, 1.0], [4.0, 2.0]]])  # within blocks each pair twice
    blocks = BlockSums(table, np.array([3.0, 3.0]), np.zeros(2))
    # C(4, 1)·5 within, C(4, 1)·5 between, C(3, 1)·4 within; 6!/(3! 3!) partitions; C(7, 1) sizes
    by_hand = np.log(20) + np.log(20) + np.log(12) + np.log(20) + np.log(7)
    assert blocks.cost(ExactBernoulli()) == pytest.approx(by_hand)
    edges = BlockSums(np.array([[[2.0], [1.0]], [[1.0], [4.0]]]), np.array([3.0, 3.0]), np.array([3.0, 5.0]))
    # ln 3! 5! − ln 1! − ln (2·1!) − ln (4·2!) with e_rr!! of e = 2, 4; counts C(3 + 4 − 1, 4)
    by_hand = np.log(6 * 120) - np.log(2) - np.log(8) + np.log(20) + np.log(7) + np.log(15)
    assert edges.cost(DegreeCorrected(4.0)) == pytest.approx(by_hand)


def search(task: Problem, k, seed=0, **options):
    return GraphFit(k, NodeSweep(), **options).solve(task, np.random.default_rng(seed)).posterior


@pytest.mark.parametrize("kind", ["assortative", "ring"])
@pytest.mark.parametrize("k", [5, None])
def test_planted_clusters_are_found(kind, k):
    graph = planted_graph(600, 5, inside=30, outside=3, kind=kind, seed=1)
    sample = with_alphabet(from_graph(graph.adjacency), Alphabet.of([0.0, 1.0], given=True))
    task = graph_problem(sample, Logarithmic(sample.alphabet, 1e-9), 1.0)
    found = search(task, k)
    assert found.n_clusters == (5,)
    assert adjusted_rand_score(graph.labels, found.labels[0]) > 0.97


def test_degree_correction_finds_clusters_and_not_degrees():
    graph = planted_graph(500, 3, inside=20, outside=2, exponent=2.2, seed=0)
    sample = with_alphabet(from_graph(graph.adjacency), Alphabet.of([0.0, 1.0], given=True))
    task = graph_problem(sample, Logarithmic(sample.alphabet, 1e-9), 1.0)
    corrected = search(task, None, degree_correction=True)
    assert corrected.n_clusters == (3,)
    assert adjusted_rand_score(graph.labels, corrected.labels[0]) > 0.9
    assert search(task, None).n_clusters[0] > 3  # without it, hubs get clusters of their own


def test_more_clusters_are_tried_where_the_first_number_was_not_enough():
    graph = planted_graph(900, 15, inside=30, outside=2, seed=0)
    sample = with_alphabet(from_graph(graph.adjacency), Alphabet.of([0.0, 1.0], given=True))
    task = graph_problem(sample, Logarithmic(sample.alphabet, 1e-9), 1.0)
    assert search(task, None).n_clusters == (15,)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("d", [3, 4])
def test_the_gradient_of_hyperedges_counts_absent_sets(d, directed):
    rng = np.random.default_rng(d)
    sets = np.array(list(combinations(range(6), d)))
    sample = from_graph(sets[:5].tolist(), nodes=range(6), directed=directed, hyperedges=True)
    task = graph_problem(sample, Quadratic(), 1.0)
    posterior = random(task, [2], rng).refit(sample)
    found, step = gradient(posterior, sample), 1e-6
    for x, c in ((0, 0), (2, 1), (5, 0)):
        losses = []
        for sign in (1, -1):
            assign = posterior.assign[0].copy()
            assign[x, c] += sign * step
            moved = replace(posterior, assign=(assign,))
            cell = moved.cells[0]
            losses.append(float(cell.loss(moved.answers[0], moved.statistics(sample)).sum()))
        assert found[x, c] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5)


def test_other_structures_are_refused():
    task = problem("quadratic")
    with pytest.raises(GinghamError, match="unknown; choose"):
        search(task, 2, start="elsewhere")
    triples = from_graph([(0, 1, 2), (1, 2, 3)], hyperedges=True)
    three = graph_problem(triples, Quadratic(), 1.0)
    with pytest.raises(GinghamError, match="damped"):
        NodeWise().solve(three, random(three, [2], np.random.default_rng(0)))
    assert PartitionSearch.of(task).sample is task.samples[0]
