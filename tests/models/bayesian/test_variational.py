"""Variational EM: the bound never falls, and every update equals brute force on a tiny problem."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp, softmax

from gingham.cells.families import FAMILIES, Gaussian, make_family
from gingham.cells.losses import total_statistics
from gingham.core.problem import Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.errors import GinghamError
from gingham.fitting.schedules import Down
from gingham.fitting.starts import make_start
from gingham.models.bayesian import per_entry_estep as entries
from gingham.models.bayesian.fit import APPROXIMATIONS, Variational, begin


def random_problem(rng, name, shape=(6, 5), n=18, frozen=False, weighted=False, pseudo=1.0):
    """A few random entries; the last row and the last column have none."""
    rows, columns = rng.integers(shape[0] - 1, size=n), rng.integers(shape[1] - 1, size=n)
    draw = {
        "gaussian": lambda: rng.normal(0, 3, n),
        "bernoulli": lambda: rng.integers(2, size=n),
        "poisson": lambda: rng.poisson(3, n).astype(float),
        "categorical": lambda: rng.integers(3, size=n),
    }
    alphabet = Alphabet.of(range(2 if name == "bernoulli" else 3), True) if "ern" in name or "cat" in name else None
    modes = tuple(Mode(f"m{j}", np.arange(size)) for j, size in enumerate(shape))
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else None
    sample = Sample.of([rows, columns], draw[name](), weights, modes=modes, alphabet=alphabet)
    family = make_family(name, alphabet, pseudo)
    family = family.informed(total_statistics(family, sample))
    return Problem(Structure(modes, ((0, 1),), (1,) if frozen else ()), (sample,), (family,), (1.0,))


def start_of(problem, rng, alpha=(0.7, 1.2), n_clusters=(2, 3)):
    free = replace(problem, structure=Structure.grid(problem.structure.modes))
    return begin(problem, make_start("random", free, n_clusters, rng), alpha)


def densities(problem, answers):
    """ln p(y_e|θ_ij), shape (N, m_1, m_2), by the definition of the cost."""
    sample, family = problem.samples[0], problem.cells[0]
    if family.alphabet is not None:
        t, base = np.eye(family.alphabet.size)[sample.label_codes], 0.0
    else:
        t, base = family.features.evaluate(sample.labels), family.log_base(sample.labels)[:, None, None]
    return base - np.einsum("ek,ijk->eij", t, family.coef(answers))


def brute_bound(problem, q, joint):
    """The evidence bound from its definition, with an explicit q(z) per entry, shape (N, m_1, m_2)."""
    sample, family = problem.samples[0], problem.cells[0]
    w = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    total = family.log_prior(q.answers[0])
    total += (w[:, None, None] * joint * (densities(problem, q.answers[0]) - np.log(np.maximum(joint, 1e-300)))).sum()
    for axis, (alpha, gamma) in enumerate(zip(q.alpha, q.gamma)):
        logs = digamma(gamma) - digamma(gamma.sum(1, keepdims=True))
        marginal = joint.sum(2 - axis)
        total += (w[:, None] * marginal * logs[sample.codes[axis]]).sum()
        total += (gammaln(alpha.sum()) - gammaln(alpha).sum()) * len(gamma) + ((alpha - 1) * logs).sum()
        total -= (gammaln(gamma.sum(1)) - gammaln(gamma).sum(1)).sum() + ((gamma - 1) * logs).sum()
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_per_entry_step_is_the_exact_block_update(name, weighted):
    rng = np.random.default_rng(3)
    problem = random_problem(rng, name, weighted=weighted)
    sample, family = problem.samples[0], problem.cells[0]
    start = start_of(problem, rng)
    # Brute force: softmax over all cells of every entry.
    logs = [digamma(g) - digamma(g.sum(1, keepdims=True)) for g in start.gamma]
    energy = logs[0][sample.codes[0]][:, :, None] + logs[1][sample.codes[1]][:, None, :]
    joint = softmax(energy + densities(problem, start.answers[0]), axis=(1, 2))
    w = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    counts = [np.zeros_like(c) for c in start.counts]
    for axis in range(2):
        np.add.at(counts[axis], sample.codes[axis], w[:, None] * joint.sum(2 - axis))
    for backend in ("compiled",):
        solver = Variational(max_iter=1, backend=backend)
        solution = solver.solve(problem, start)
        for got, want in zip(solution.posterior.counts, counts):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
        for got, a, want in zip(solution.posterior.gamma, start.alpha, counts):
            np.testing.assert_allclose(got, a + want, rtol=1e-9)
        assert solution.objective.elbo == pytest.approx(brute_bound(problem, solution.posterior, joint), rel=1e-9)
    # θ is the best for these joint distributions: no nearby θ has a higher bound.
    best = brute_bound(problem, solution.posterior, joint)
    for _ in range(20):
        theta = solution.posterior.answers[0]
        theta = theta * np.exp(0.1 * rng.standard_normal(theta.shape))
        theta = theta / theta.sum(-1, keepdims=True) if name == "categorical" else theta
        theta = np.clip(theta, 0.01, 0.99) if name == "bernoulli" else theta
        if name == "gaussian":
            theta[..., 1] = np.maximum(theta[..., 1], family.min_variance)
        assert brute_bound(problem, replace(solution.posterior, answers=(theta,)), joint) <= best + 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_shared_step_is_coordinate_ascent_on_the_paper_equations(name):
    rng = np.random.default_rng(5)
    problem = random_problem(rng, name, weighted=True)
    sample = problem.samples[0]
    start = start_of(problem, rng)
    w, logs = sample.weights, densities(problem, start.answers[0])
    totals = [sample.counts(axis) for axis in range(2)]
    phi = [c / np.maximum(t, 1e-9)[:, None] for c, t in zip(start.counts, totals)]
    gammas = list(start.gamma)
    for axis in range(2):  # (4) and (6), then (5) and (7), entry by entry
        for _ in range(200):
            for item in range(sample.shape[axis]):
                mine = np.flatnonzero(sample.codes[axis] == item)
                if len(mine) == 0:
                    continue
                other = phi[1 - axis][sample.codes[1 - axis][mine]]
                gain = np.einsum("e,eij,ej->i", w[mine], logs[mine] if axis == 0 else logs[mine].swapaxes(1, 2), other)
                phi[axis][item] = softmax(digamma(gammas[axis][item]) + gain / totals[axis][item])
                gammas[axis][item] = start.alpha[axis] + totals[axis][item] * phi[axis][item]
    joint = phi[0][sample.codes[0]][:, :, None] * phi[1][sample.codes[1]][:, None, :]
    solution = Variational("shared", max_iter=1).solve(problem, start)
    for got, want, t in zip(solution.posterior.counts, phi, totals):
        np.testing.assert_allclose(got[t > 0], (t[:, None] * want)[t > 0], atol=0.02)
    assert solution.objective.elbo == pytest.approx(brute_bound(problem, solution.posterior, joint), rel=1e-3)
    assert solution.objective.elbo == pytest.approx(sum(solution.objective.terms.values()))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_steps_through_torch_are_the_same(approximation, frozen):
    pytest.importorskip("torch")
    problem = random_problem(np.random.default_rng(1), "categorical", frozen=frozen, weighted=True)
    start = start_of(problem, np.random.default_rng(1))
    here, there = (
        Variational(approximation, max_iter=4, backend=b).solve(problem, start) for b in ("compiled", "torch")
    )
    assert there.objective.elbo == pytest.approx(here.objective.elbo, rel=1e-10)
    for a, b in zip(here.posterior.counts, there.posterior.counts):
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_bound_never_falls(approximation):
    """100 random problems each: all families, items without entries, weights, frozen columns, learned α."""
    rng = np.random.default_rng(0)
    for trial in range(100):
        name = list(FAMILIES)[trial % 4]
        problem = random_problem(
            rng, name, n=int(rng.integers(3, 40)), frozen=trial % 5 == 4, weighted=trial % 3 == 0,
            pseudo=float(rng.choice([0.1, 1.0, 5.0])),
        )  # fmt: skip
        alpha = float(rng.choice([0.05, 0.5, 2.0]))
        solver = Variational(approximation, learn_concentration=trial % 2 == 0, max_iter=25, tol=0.0)
        totals = solver.solve(problem, start_of(problem, rng, (alpha, 2 * alpha))).trace.totals
        assert np.diff(totals).max() <= 1e-8 * np.abs(totals).max(), (trial, name)


def test_a_wrong_update_is_caught_by_the_check_of_the_bound(monkeypatch):
    rng = np.random.default_rng(1)
    problem = random_problem(rng, "gaussian", n=40)
    right = Gaussian.answer
    monkeypatch.setattr(Gaussian, "answer", lambda self, s: right(self, s) * rng.uniform(0.8, 1.2))
    totals = Variational(max_iter=25, tol=0.0).solve(problem, start_of(problem, rng)).trace.totals
    assert np.diff(totals).max() > 1e-8 * np.abs(totals).max()


def test_tempering_begins_hot_and_ends_at_the_bound():
    rng = np.random.default_rng(1)
    problem = random_problem(rng, "poisson", n=40)
    for approximation in APPROXIMATIONS:
        solution = Variational(approximation, schedule=Down(3.0, 5), max_iter=30, tol=0.0).solve(
            problem, start_of(problem, rng)
        )
        assert solution.trace.factors[0] == 3.0
        assert np.diff(solution.trace.totals[5:]).max() <= 1e-8 * np.abs(solution.trace.totals).max()


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_frozen_columns_are_singleton_clusters(name, approximation):
    rng = np.random.default_rng(7)
    frozen = random_problem(rng, name, frozen=True)
    q = start_of(frozen, rng)
    # The same with an identity for column memberships that nearly cannot move.
    free = replace(frozen, structure=Structure.grid(frozen.structure.modes))
    firm = begin(free, q, (0.7, 0.01))
    huge = 1e9 * np.eye(5) + 0.01
    firm = replace(firm, gamma=(q.gamma[0], huge), counts=(q.counts[0], firm.counts[1]), answers=q.answers)
    one = Variational(approximation, max_iter=1).solve(frozen, q).posterior
    other = Variational(approximation, max_iter=1).solve(free, firm).posterior
    np.testing.assert_allclose(one.counts[0], other.counts[0], rtol=1e-4, atol=1e-6)


def test_weight_two_is_the_entry_twice():
    rng = np.random.default_rng(2)
    problem = random_problem(rng, "categorical")
    sample = problem.samples[0]
    twice = sample.take(np.concatenate([np.arange(sample.n_rows), [0, 3]]))
    weights = np.ones(sample.n_rows)
    weights[[0, 3]] = 2
    weighted = replace(sample, weights=weights)
    start = start_of(problem, rng)
    for approximation in APPROXIMATIONS:
        found = [
            Variational(approximation, max_iter=5).solve(replace(problem, samples=(s,)), start).posterior
            for s in (twice, weighted)
        ]
        np.testing.assert_allclose(found[0].gamma[0], found[1].gamma[0], rtol=1e-9)


def test_blocks_of_labels_add_up_to_the_whole(monkeypatch):
    rng = np.random.default_rng(4)
    problem = random_problem(rng, "gaussian", n=30)
    start = start_of(problem, rng)
    whole = Variational(max_iter=3).solve(problem, start).posterior
    monkeypatch.setattr(entries, "BLOCK_BYTES", 8 * 6 * 4)  # four labels at a time
    assert len(entries.layout(problem.cells[0], problem.samples[0], 6)) > 3
    parts = Variational(max_iter=3).solve(problem, start).posterior
    np.testing.assert_allclose(parts.gamma[0], whole.gamma[0], rtol=1e-9)


def test_far_labels_do_not_underflow():
    rng = np.random.default_rng(4)
    problem = random_problem(rng, "gaussian", n=30)
    sample = problem.samples[0]
    labels = sample.labels.copy()
    labels[0] = 1e4  # its density underflows in every cell
    far = replace(sample, labels=labels)
    q = Variational(max_iter=3).solve(replace(problem, samples=(far,)), start_of(problem, rng))
    assert np.isfinite(q.objective.total)
    assert q.posterior.counts[0].sum() == pytest.approx(30)


def test_predictive_density_is_the_mixture():
    rng = np.random.default_rng(6)
    problem = random_problem(rng, "poisson")
    q = Variational(max_iter=5).solve(problem, start_of(problem, rng)).posterior
    sample = problem.samples[0]
    parts = entries.layout(problem.cells[0], sample, 6)
    got = entries.log_densities(parts, problem.cells[0], q.answers[0], q.assign, frozen=False)
    mix = np.log(q.assign[0][sample.codes[0]])[:, :, None] + np.log(q.assign[1][sample.codes[1]])[:, None, :]
    np.testing.assert_allclose(got, logsumexp(mix + densities(problem, q.answers[0]), axis=(1, 2)), rtol=1e-9)


def test_refusals():
    rng = np.random.default_rng(0)
    problem = random_problem(rng, "gaussian")
    with pytest.raises(GinghamError, match=r"≥ 0\.01"):
        start_of(problem, rng, alpha=(0.001, 1.0))
    with pytest.raises(GinghamError, match="approximation='both'"):
        Variational("both")
    graph = replace(problem, structure=Structure((problem.structure.modes[0],), ((0, 0, 0),)))
    start = start_of(problem, rng)
    with pytest.raises(GinghamError, match="two modes"):
        Variational().solve(graph, start)
