"""BayesianCoClustering: recovers planted blocks, predicts held-out labels, says how sure it is, survives a file."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold, cross_val_score

import gingham as gg

PARAMETERS = {
    "gaussian": lambda rng: rng.permutation(np.arange(12.0)).reshape(3, 4),
    "bernoulli": lambda rng: rng.permutation(np.linspace(0.03, 0.97, 12)).reshape(3, 4),
    "poisson": lambda rng: rng.permutation(np.arange(1.0, 25.0, 2)).reshape(3, 4),
    "categorical": lambda rng: rng.permutation(np.linspace(0.03, 0.97, 12)).reshape(3, 4),
}


def planted(family, seed=0, shape=(60, 80), share=0.6):
    """Observed entries of a checkerboard with 3 × 4 blocks, and the true clusters."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(np.arange(shape[0]) % 3), rng.permutation(np.arange(shape[1]) % 4)
    theta = PARAMETERS[family](rng)[rows][:, columns]
    draw = {
        "gaussian": lambda: rng.normal(theta, 1.0),
        "bernoulli": lambda: (rng.random(shape) < theta).astype(int),
        "poisson": lambda: rng.poisson(theta) + 1,
        "categorical": lambda: np.where(rng.random(shape) < theta, "yes", "no"),
    }
    labels = draw[family]()
    seen = rng.random(shape) < share
    X = np.argwhere(seen)
    return X, labels[seen], rows, columns


def model(family, **params):
    defaults = {"n_clusters": (3, 4), "family": family, "concentration": 0.5, "random_state": 0, "max_iter": 60}
    shift = {"family_params": {"shift": 1.0}} if family == "poisson" else {}
    return gg.BayesianCoClustering(**{**defaults, **shift, **params})


@pytest.mark.parametrize("approximation", ["per_entry", "shared"])
@pytest.mark.parametrize("family", PARAMETERS)
def test_recovers_planted_blocks_and_predicts(family, approximation):
    X, y, rows, columns = planted(family)
    test = np.arange(len(y)) % 10 == 0
    fitted = model(family, approximation=approximation).fit(X[~test], y[~test])
    assert adjusted_rand_score(rows, fitted.labels_[0]) > 0.95
    # Entries with clusters of their own can blend two alike columns; the shared family keeps them apart.
    assert adjusted_rand_score(columns, fitted.labels_[1]) > (0.9 if approximation == "shared" else 0.75)
    flat = model(family, n_clusters=1).fit(X[~test], y[~test])
    assert fitted.perplexity(X[test], y[test]) < 0.9 * flat.perplexity(X[test], y[test])
    assert fitted.elbo_ == pytest.approx(sum(fitted.elbo_terms_.values()))
    assert fitted.score(X[test], y[test]) == pytest.approx(-np.log(fitted.perplexity(X[test], y[test])))


def test_concentration_is_validated_on_held_out_entries_only():
    X, y, _, _ = planted("bernoulli", share=0.3)
    fitted = model("bernoulli", concentration="validate").fit(X, y)
    best = min(fitted.validation_, key=fitted.validation_.get)
    assert tuple(a[0] for a in fitted.concentration_) == best
    assert {(0.1, 0.1), (1.0, 1.0)} <= set(fitted.validation_)
    assert all(p >= 1 for p in fitted.validation_.values())


def test_same_seed_same_result_and_more_starts_never_lower_the_bound():
    X, y, _, _ = planted("bernoulli", share=0.3)
    one = model("bernoulli", start="random").fit(X, y)
    again = clone(one).fit(X, y)
    np.testing.assert_array_equal(one.assign_[0], again.assign_[0])
    best = clone(one).set_params(n_init=4).fit(X, y)
    assert best.elbo_ >= one.elbo_


def test_five_percent_of_known_clusters_start_the_fit():
    X, y, rows, columns = planted("bernoulli", share=1.0)
    rng = np.random.default_rng(0)
    known = rng.random(len(y)) < 0.05
    clusters = np.where(known[:, None], np.column_stack([rows[X[:, 0]], columns[X[:, 1]]]), -1)
    fitted = model("bernoulli", concentration=1.0).fit(X, y, clusters=clusters)
    assert (fitted.labels_[0] == rows).mean() > 0.95  # the clusters keep the names they were given
    assert (fitted.labels_[1] == columns).mean() > 0.95
    with pytest.raises(gg.GinghamError, match="has only 3"):
        fitted.fit(X, y, clusters=clusters + 5)
    with pytest.raises(gg.GinghamError, match="−1 where unknown"):
        fitted.fit(X, y, clusters=clusters[:5])


@pytest.mark.parametrize("approximation", ["per_entry", "shared"])
def test_frozen_columns_are_bayesian_naive_bayes(approximation):
    X, y, rows, _ = planted("bernoulli", share=0.9)
    fitted = model("bernoulli", n_clusters=(3, None), approximation=approximation).fit(X, y)
    assert fitted.parameters_.shape == (3, 80)
    assert fitted.concentration_[1].size == 0
    assert adjusted_rand_score(rows, fitted.labels_[0]) > 0.95
    assert fitted.perplexity(X, y) < 2.0
    with pytest.warns(gg.UnseenItemsWarning):
        unseen = fitted.predict([(0, 999)])
    # An unseen column is any of the columns.
    every = fitted.predict(np.column_stack([np.zeros(80, int), np.arange(80)]))
    assert unseen[0] == pytest.approx(every.mean())
    with pytest.warns(gg.UnseenItemsWarning):
        assert fitted.perplexity([(0, 999)], [1]) == pytest.approx(1 / unseen[0])


@pytest.mark.parametrize("family", PARAMETERS)
def test_intervals_cover_and_distributions_add_up(family):
    X, y, _, _ = planted(family)
    test = np.arange(len(y)) % 5 == 0
    fitted = model(family).fit(X[~test], y[~test])
    if family == "categorical":
        np.testing.assert_allclose(fitted.predict_distribution(X[test]).sum(1), 1.0)
        assert set(fitted.predict(X[test])) <= {"yes", "no"}
        return
    low, high = fitted.predict_interval(X[test], level=0.8)
    covered = ((y[test] >= low) & (y[test] <= high)).mean()
    assert covered > 0.75
    if family == "gaussian":
        assert covered < 0.86
    labels = {"gaussian": np.linspace(-10, 25, 701), "bernoulli": [0, 1], "poisson": np.arange(1, 80)}[family]
    step = 0.05 if family == "gaussian" else 1.0
    np.testing.assert_allclose((fitted.predict_distribution(X[:20], labels) * step).sum(1), 1.0, atol=1e-3)


def test_standard_deviation_of_the_mean_is_that_of_drawn_memberships():
    X, y, _, _ = planted("gaussian", share=0.1)
    fitted = model("gaussian").fit(X, y)
    q, rng = fitted.beliefs_, np.random.default_rng(0)
    mean, std = fitted.predict(X[:5], return_std=True)
    values = fitted.parameters_[..., 0]
    for e in range(5):
        u, v = (np.searchsorted(items, x) for items, x in zip(fitted.items_, X[e]))
        draws = rng.dirichlet(q.gamma[0][u], 20_000), rng.dirichlet(q.gamma[1][v], 20_000)
        means = np.einsum("si,ij,sj->s", draws[0], values, draws[1])
        assert means.mean() == pytest.approx(mean[e], abs=0.1)
        assert means.std() == pytest.approx(std[e], rel=0.05)


def test_the_paper_protocol_leaks_and_a_held_out_perplexity_does_not():
    X, y, _, _ = planted("bernoulli", share=0.15)
    test = np.arange(len(y)) % 5 == 0
    fitted = model("bernoulli").fit(X[~test], y[~test])
    held, leaky = (fitted.perplexity(X[test], y[test], protocol=p) for p in ("held-out", "paper"))
    assert leaky < held
    assert fitted.perplexity(X[test], y[test], protocol="paper-bound") > 1
    # Flipping the labels of the test entries must move the leaky memberships, not the honest ones.
    before = fitted.assign_[0].copy()
    fitted.perplexity(X[test], 1 - y[test], protocol="paper")
    np.testing.assert_array_equal(before, fitted.assign_[0])
    with pytest.raises(gg.GinghamError, match="protocol='lucky'"):
        fitted.perplexity(X, y, protocol="lucky")


@pytest.mark.parametrize("n_columns", [4, None])
def test_the_paper_protocol_takes_new_items(n_columns):
    X, y, _, _ = planted("poisson", share=0.5)
    test = (X[:, 0] >= 55) | (X[:, 1] == 33)
    fitted = model("poisson", n_clusters=(3, n_columns)).fit(X[~test], y[~test])
    with pytest.warns(gg.UnseenItemsWarning):
        held = fitted.perplexity(X[test], y[test])
    # Five rows that no training entry spoke of are learned from the test entries themselves.
    assert fitted.perplexity(X[test], y[test], protocol="paper") < held


def test_embedding_and_signatures():
    X, y, rows, _ = planted("bernoulli", share=0.9)
    fitted = model("bernoulli").fit(X, y)
    for joint in (True, False):
        first, second = fitted.embed(joint=joint)
        assert first.shape == (60, 2)
        assert second.shape == (80, 2)
        centres = np.array([first[rows == c].mean(0) for c in range(3)])
        own = np.linalg.norm(first - centres[rows], axis=1).mean()
        assert own < 0.5 * np.linalg.norm(centres[:, None] - centres[None], axis=2).sum() / 6
    # In one picture, a row lies nearer to the columns it prefers.
    first, second = fitted.embed()
    far = np.linalg.norm(first[:, None] - second[None], axis=2)
    liked = fitted.predict(np.argwhere(np.ones((60, 80)))).reshape(60, 80)
    assert np.corrcoef(far.ravel(), liked.ravel())[0, 1] < -0.3
    for signature, shape in zip(fitted.signatures(), [(60, 4), (80, 3)]):
        assert signature.shape == shape
        np.testing.assert_allclose(np.linalg.norm(signature, axis=1), 1.0)
    np.testing.assert_allclose(fitted.signatures(X, y)[0], fitted.signatures()[0])


@pytest.mark.parametrize("family", PARAMETERS)
def test_a_model_file_keeps_everything_that_predicts(family, tmp_path):
    X, y, _, _ = planted(family, share=0.2)
    fitted = model(family).fit(X, y)
    fitted.save(tmp_path / "model.gingham")
    again = gg.load(tmp_path / "model.gingham")
    np.testing.assert_array_equal(again.log_likelihood(X, y), fitted.log_likelihood(X, y))
    np.testing.assert_array_equal(again.membership_interval()[0][0], fitted.membership_interval()[0][0])
    assert again.elbo_ == fitted.elbo_
    with pytest.raises(gg.GinghamError, match="no training entries"):
        again.perplexity(X, y, protocol="paper")


@pytest.mark.parametrize("n_columns", [4, None])
def test_certificates_apply_to_the_memberships(n_columns):
    X, y, _, _ = planted("bernoulli", shape=(120, 160), share=0.9)
    shared = {"n_clusters": (3, n_columns), "approximation": "shared", "concentration": 0.1, "alphabet": (0, 1)}
    fitted = model("bernoulli", **shared).fit(X, y)
    certificate = gg.certify(fitted, X, y, population={} if n_columns else {"mode1": 160})
    assert certificate.empirical < certificate.value
    # The certified loss is that of one cluster per item: no better than the mixture over entries.
    assert certificate.empirical > -fitted.score(X, y)
    if n_columns:
        assert certificate.value < np.log(2)
    with pytest.raises(gg.RefusedCertificate, match="read off the data"):
        gg.certify(model("bernoulli").fit(X, y), X, y)


def test_a_certificate_of_numbers_needs_their_bounds():
    X, y, _, _ = planted("gaussian", share=0.9)
    y = np.clip(y, -4, 16)
    with pytest.raises(gg.RefusedCertificate, match="unbounded"):
        gg.certify(model("gaussian").fit(X, y), X, y)
    bounded = model("gaussian", bounds=(-4, 16), approximation="shared", concentration=0.1)
    certificate = gg.certify(bounded.fit(X, y), X, y)
    assert 0.9 < certificate.empirical < certificate.value < 40


def test_it_is_an_ordinary_estimator():
    X, y, _, _ = planted("bernoulli", share=0.3)
    folds = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(model("bernoulli", max_iter=20), X, y, cv=folds)
    assert (scores > np.log(0.4)).all()
    assert (scores < 0).all()


def test_bad_input_gets_a_sentence():
    X, y, _, _ = planted("bernoulli", share=0.1)
    for params, message in [
        ({"concentration": "guess"}, "concentration='guess'"),
        ({"concentration": 1e-5}, r"0\.01 on"),
        ({"family_params": {"offset": 1}}, "has 'offset'"),
        ({"family": "beta"}, "family='beta'"),
        ({"approximation": "exact"}, "approximation='exact'"),
        ({"n_clusters": (2, 2, 2)}, "3 entries"),
    ]:
        with pytest.raises(gg.GinghamError, match=message):
            clone(model("bernoulli")).set_params(**params).fit(X, y)
    with pytest.raises(gg.GinghamError, match="two columns"):
        model("bernoulli").fit(np.column_stack([X, X]), y)
    with pytest.raises(gg.GinghamError, match="NaN in row 3"):
        model("gaussian").fit(X[:5], [1, 2, 3, np.nan, 5])
    with pytest.raises(gg.GinghamError, match="level=2"):
        model("bernoulli").fit(X, y).predict_interval(X, level=2)
    with pytest.raises(gg.GinghamError, match="not in the alphabet"):
        model("bernoulli").fit(X, y).perplexity(X[:1], [7])
