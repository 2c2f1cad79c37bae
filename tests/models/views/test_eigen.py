"""The parallel sum: its own equation, its other routes, and the problem it must not be."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from gingham.errors import GinghamError, GinghamWarning
from gingham.models.views import eigen, primal
from gingham.models.views import fit as multiview
from gingham.models.views.fit import represent, solve
from gingham.models.views.representations import as_kernels


def related_views(n=120, widths=(6, 9, 7), shared=3, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, shared))
    return [hidden @ rng.normal(size=(shared, d)) + 0.7 * rng.normal(size=(n, d)) + 2.0 for d in widths]


def fitted(views, solver, kernel="linear", params=None, ridge=0.1, k=4, method=multiview.pairwise):
    representations = represent(views, as_kernels(kernel, params, len(views)), solver)
    found = solve(representations, [ridge] * len(views), k, 0, method)
    functions = [r.score_function(own) for r, own in zip(representations, found.coefficients)]
    return representations, SimpleNamespace(strengths=found.strengths, consensus=found.consensus, functions=functions)


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_components_solve_the_papers_conditions(n_views, kernel):
    """(K_i + τ I) α_i = γ c and c = Σ α_i, up to the scale of the coefficients."""
    ridge = 0.3
    representations, _ = fitted(related_views()[:n_views], "exact", kernel, ridge=ridge)
    grams = [r.gram for r in representations]
    found = eigen.parallel_sum(grams, [ridge] * n_views, 4, [np.ones(len(grams[0]), dtype=bool)] * n_views)
    alphas = [a * found.strengths for a in found.coefficients]  # γ R_i c
    for gram, alpha in zip(grams, alphas):
        left = (gram + ridge * np.eye(len(gram))) @ alpha
        np.testing.assert_allclose(left, found.consensus * found.strengths, atol=1e-9)
    np.testing.assert_allclose(sum(alphas), found.consensus, atol=1e-9)
    np.testing.assert_allclose(found.consensus.T @ found.consensus, np.eye(4), atol=1e-9)
    assert (np.diff(found.strengths) <= 0).all()


def test_it_is_max_var_kernel_cca():
    """1/γ = (s − μ)/τ with μ the eigenvalues of Σ K_i (K_i + τI)⁻¹."""
    ridge = 0.2
    representations, _ = fitted(related_views(), "exact", ridge=ridge)
    smoothers = sum(r.gram @ np.linalg.inv(r.gram + ridge * np.eye(len(r.gram))) for r in representations)
    mu = np.sort(eigh((smoothers + smoothers.T) / 2, eigvals_only=True))[::-1][:4]
    found = eigen.parallel_sum([r.gram for r in representations], [ridge] * 3, 4, [r.present for r in representations])
    np.testing.assert_allclose(1.0 / found.strengths, (3 - mu) / ridge, rtol=1e-8)


def test_the_printed_regularisation_finds_no_consensus():
    """P3's (35) with τ on the right-hand side: its leading solutions have α ≈ −β, c ≈ 0. Not what is solved here."""
    representations, _ = fitted(related_views()[:2], "exact")
    a, b = (r.gram for r in representations)
    n, tau = len(a), 0.01
    left = np.block([[a, np.zeros((n, n))], [np.zeros((n, n)), b]])
    right = np.block([[(1 + tau) * np.eye(n), np.eye(n)], [np.eye(n), (1 + tau) * np.eye(n)]])
    _, vectors = eigh(left, right, subset_by_index=[2 * n - 1, 2 * n - 1])
    alpha, beta = vectors[:n, 0], vectors[n:, 0]
    assert np.linalg.norm(alpha + beta) < 0.2 * np.linalg.norm(alpha - beta)


@pytest.mark.parametrize("method", [multiview.pairwise, multiview.correlated])
def test_both_solvers_find_the_same_scores(method):
    views = related_views()
    _, exact = fitted(views, "exact", method=method)
    _, other = fitted(views, "primal", method=method)
    np.testing.assert_allclose(other.strengths, exact.strengths, rtol=1e-6)
    for f, g, view in zip(exact.functions, other.functions, views):
        np.testing.assert_allclose(g(view), f(view), atol=1e-6)


def test_precomputed_and_callable_kernels_agree_with_the_named_one():
    views, new = related_views(60), related_views(10, seed=0)
    kernels = as_kernels("rbf", {"gamma": 0.05}, 3)
    _, named = fitted(views, "exact", "rbf", {"gamma": 0.05})
    _, called = fitted(views, "exact", lambda x, y: kernels[0].between(x, y))
    _, given = fitted([k.between(v, v) for k, v in zip(kernels, views)], "exact", "precomputed")
    for f, g, h, kernel, view, fresh in zip(named.functions, called.functions, given.functions, kernels, views, new):
        np.testing.assert_allclose(g(fresh), f(fresh), atol=1e-8)
        np.testing.assert_allclose(h(kernel.between(fresh, view)), f(fresh), atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scores_of_new_objects_are_centred_kernel_ridge_regressions(kernel):
    """F(x) = k̃(x)ᵀ (K̃ + τI)⁻¹ c with k̃ centred as KernelCenterer does it."""
    from sklearn.preprocessing import KernelCenterer

    views, new = related_views(50), related_views(8, seed=3)
    representations, shared = fitted(views, "exact", kernel, ridge=0.4)
    for kernel_, function, view, fresh, r in zip(
        as_kernels(kernel, None, 3), shared.functions, views, new, representations
    ):
        centerer = KernelCenterer().fit(kernel_.between(view, view))
        gram = centerer.transform(kernel_.between(view, view))
        scale = len(gram) / np.trace(gram)
        np.testing.assert_allclose(r.gram, scale * gram, atol=1e-9)
        cross = scale * centerer.transform(kernel_.between(fresh, view))
        by_hand = cross @ np.linalg.solve(scale * gram + 0.4 * np.eye(50), shared.consensus)
        np.testing.assert_allclose(function(fresh), by_hand, atol=1e-8)


def test_shifting_and_scaling_a_view_changes_nothing():
    views = related_views()
    _, before = fitted(views, "exact")
    moved = [3.0 * views[0] + 100.0, *views[1:]]
    _, after = fitted(moved, "exact")
    np.testing.assert_allclose(after.strengths, before.strengths, rtol=1e-8)
    np.testing.assert_allclose(after.functions[0](moved[0]), before.functions[0](views[0]), atol=1e-7)


def test_wide_sparse_views_by_products_only(monkeypatch):
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(300, 4))
    views = [
        sparse.csr_array((rng.random((300, d)) < 0.05) * np.exp(hidden @ rng.normal(size=(4, d)))) for d in (1200, 900)
    ]
    monkeypatch.setattr(multiview, "NARROW", 100)
    _, exact = fitted(views, "exact", ridge=1.0, k=5)
    representations, other = fitted(views, "primal", ridge=1.0, k=5)
    assert all(r.products is not None and r.gram is None and r.features is None for r in representations)
    np.testing.assert_allclose(other.strengths, exact.strengths, rtol=0.01)
    for f, g, view in zip(exact.functions, other.functions, views):
        np.testing.assert_allclose(g(view)[:, 0], f(view)[:, 0], atol=0.05)
    with pytest.raises(GinghamError, match="needs narrow views"):
        fitted(views, "primal", method=multiview.correlated)


def test_ridge_regression_by_conjugate_gradients(monkeypatch):
    rng = np.random.default_rng(2)
    x, targets = rng.normal(size=(60, 20)), rng.normal(size=(60, 3))
    view = primal.LinearView.of(x, x.mean(0), 1.0, np.ones(60, dtype=bool))
    centred = x - x.mean(0)
    exact = np.linalg.solve(centred.T @ centred + 0.5 * np.eye(20), centred.T @ targets)
    np.testing.assert_allclose(view.ridge_regression(targets, 0.5, 1e-5), exact, atol=1e-4)
    monkeypatch.setattr(primal, "MAX_STEPS", 1)
    with pytest.warns(GinghamWarning, match="larger ridge"):
        view.ridge_regression(targets, 0.5, 1e-5)


@pytest.mark.parametrize("largest", [True, False])
def test_lanczos_and_dense_find_the_same_pairs(largest):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(450, 450))
    a = a + a.T
    values, vectors = eigen.extreme_eigenpairs(a, 5, largest)
    expected = np.sort(eigh(a, eigvals_only=True))
    np.testing.assert_allclose(values, expected[::-1][:5] if largest else expected[:5], rtol=1e-8)
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-6)


def test_no_convergence_falls_back_to_the_dense_solver(monkeypatch):
    def stuck(*_, **__):
        raise eigen.ArpackError(-1)

    monkeypatch.setattr(eigen, "eigsh", stuck)
    a = np.diag(np.arange(500.0))
    np.testing.assert_allclose(eigen.extreme_eigenpairs(a, 2, True)[0], [499, 498])


def test_two_view_kernel_cca_has_pairs_of_opposite_eigenvalues():
    """Two views: the leading eigenvalue is the largest regularised correlation, found by an SVD of its own."""
    ridge = 0.1
    representations, shared = fitted(related_views()[:2], "exact", method=multiview.correlated, ridge=ridge)
    roots = []
    for r in representations:
        d, u = eigh(r.gram)
        d = np.maximum(d, 0)
        roots.append(u * np.sqrt(d / (d + ridge)) @ u.T)
    singular = np.linalg.svd(roots[0] @ roots[1], compute_uv=False)
    np.testing.assert_allclose(shared.strengths, singular[:4], rtol=1e-6)


def test_correlations_are_those_of_numpy():
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(40, 2)) for _ in range(3)]
    table = multiview.pair_correlations(scores)
    for c in range(2):
        np.testing.assert_allclose(table[c], np.corrcoef([s[:, c] for s in scores]))
    expected = [np.corrcoef([s[:, c] for s in scores])[np.triu_indices(3, 1)].mean() for c in range(2)]
    np.testing.assert_allclose(multiview.mean_correlations(scores), expected)


def test_indefinite_kernels_are_refused():
    flipped = -np.eye(20) + np.diag([40.0] + [0.0] * 19)
    with pytest.raises(GinghamError, match="positive definite"):
        fitted([flipped, flipped], "exact", "precomputed", ridge=1e-3)


def test_a_constant_view_is_refused():
    views = related_views()
    for solver in ("exact", "primal"):
        with pytest.raises(GinghamError, match="identical in view 1"):
            fitted([views[0], np.ones((120, 3))], solver)
