"""BayesianCoClustering: recovers planted blocks, predicts held-out labels, says how sure it is, survives a file."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold, cross_val_score

import gingham as gg

sys.path += [str(Path(__file__).parents[3] / "benchmarks" / folder) for folder in ("papers", ".")]
import verdicts

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
    assert fitted.lower_bound_ == pytest.approx(sum(fitted.objective_.terms.values()))
    assert fitted.score(X[test], y[test]) == pytest.approx(-np.log(fitted.perplexity(X[test], y[test])))


def test_concentration_is_validated_on_held_out_entries_only():
    X, y, _, _ = planted("bernoulli", share=0.3)
    fitted = model("bernoulli", concentration="validate").fit(X, y)
    best = min(fitted.validation_, key=fitted.validation_.get)
    assert tuple(a[0] for a in fitted.beliefs_.alpha) == best
    assert {(0.1, 0.1), (1.0, 1.0)} <= set(fitted.validation_)
    assert all(p >= 1 for p in fitted.validation_.values())


def test_same_seed_same_result_and_more_starts_never_lower_the_bound():
    X, y, _, _ = planted("bernoulli", share=0.3)
    one = model("bernoulli", start="random").fit(X, y)
    again = clone(one).fit(X, y)
    np.testing.assert_array_equal(one.assign_[0], again.assign_[0])
    best = clone(one).set_params(n_init=4).fit(X, y)
    assert best.lower_bound_ >= one.lower_bound_


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
    assert fitted.answers_.shape == (3, 80)
    assert fitted.beliefs_.alpha[1].size == 0
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
    values = fitted.answers_[..., 0]
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


def test_embedding():
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


@pytest.mark.parametrize("n_columns", [4, None])
def test_certificates_apply_to_the_memberships(n_columns):
    X, y, _, _ = planted("bernoulli", shape=(120, 160), share=0.9)
    shared = {"n_clusters": (3, n_columns), "approximation": "shared", "concentration": 0.1, "alphabet": (0, 1)}
    fitted = model("bernoulli", **shared).fit(X, y)
    certificate = gg.certify(fitted, X, y, population={} if n_columns else {"column": 160})
    assert certificate.empirical < certificate.value
    # The certified loss is that of one cluster per item: no better than the mixture over entries.
    assert certificate.empirical > -fitted.score(X, y)
    if n_columns:
        assert certificate.value < np.log(2)
    with pytest.raises(gg.RefusedCertificate, match="inferred from the data"):
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
        ({"concentration": 1e-5}, r"≥ 0\.01"),
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


def karate():
    """A graph of two groups with a few nodes between them, each pair in both orders."""
    rng = np.random.default_rng(1)
    shares = np.concatenate([np.linspace(0, 0.2, 12), np.linspace(0.3, 0.7, 6), np.linspace(0.8, 1, 12)])
    q = np.stack([1 - shares, shares], axis=1)
    chance = q @ np.array([[0.9, 0.05], [0.05, 0.9]]) @ q.T
    edges = np.triu(rng.random(chance.shape) < chance, 1).astype(int)
    pairs = np.argwhere(~np.eye(30, dtype=bool))
    return pairs, (edges + edges.T)[tuple(pairs.T)], shares


def test_one_set_of_items_in_both_columns_is_the_blockmodel_of_airoldi(tmp_path):
    """From the same start, beside variational inference that stores a table for every pair."""
    X, y, shares = karate()
    labels = np.arange(30) // 15
    fitted = model("bernoulli", n_clusters=2, start=(labels,), alphabet=(0, 1)).fit(X, y, same_items=True)
    table = np.full((30, 30), np.nan)
    table[tuple(X.T)] = y
    other = verdicts.blockmodel(table, np.eye(2)[labels], 0.5, 1.0, fitted.n_iter_)
    assert fitted.lower_bound_ - fitted.objective_.terms["prior of parameters"] == pytest.approx(
        other["bound"], rel=1e-10
    )
    np.testing.assert_allclose(fitted.beliefs_.gamma[0], other["gamma"], rtol=1e-8)
    np.testing.assert_allclose(fitted.answers_, other["block"], rtol=1e-8)
    found = model("bernoulli", n_clusters=2, n_init=3).fit(X, y, same_items=True)
    assert len(found.items_) == len(found.assign_) == len(found.labels_) == 1
    assert abs(np.corrcoef(found.assign_[0][:, 0], shares)[0, 1]) > 0.9
    assert [side.name for side in found.summary_.sides] == ["node"]
    assert [len(side) for side in found.embed(n_neighbors=5)] == [30, 30]
    assert 1 < found.perplexity(X, y, protocol="paper") < found.perplexity(X, y) + 0.1
    low, high = found.beliefs_.interval(0, 0.9)
    assert (low <= high).all()
    found.save(tmp_path / "graph.gingham")
    again = gg.load(tmp_path / "graph.gingham")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    with pytest.raises(gg.GinghamError, match="per_entry"):
        model("bernoulli", n_clusters=2, approximation="shared").fit(X, y, same_items=True)
    with pytest.raises(gg.GinghamError, match=r"2 sizes|n_clusters"):
        model("bernoulli").fit(X, y, same_items=True)


def test_tokens_in_one_column_cluster_are_scikit_learns_topics():
    """Given the topics, scikit-learn's variational memberships of documents are ours."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(0.2 * np.ones(15), 3)
    counts = np.array([rng.multinomial(40, share @ topics) for share in rng.dirichlet(0.5 * np.ones(3), 25)])
    documents, words = (np.repeat(side, counts[counts > 0]) for side in np.nonzero(counts))
    tokens = np.column_stack([documents, np.zeros(len(words), int)])
    ours = model("categorical", n_clusters=(3, 1), alphabet=range(15), max_iter=300).fit(tokens, words)
    theirs = LatentDirichletAllocation(3, doc_topic_prior=0.5, max_doc_update_iter=2000, mean_change_tol=1e-9)
    theirs.fit(counts)
    # E ln of a sharp Dirichlet around the topics is their logarithm.
    theirs.components_ = 1e9 * ours.answers_[:, 0]
    theirs.exp_dirichlet_component_ = ours.answers_[:, 0]
    np.testing.assert_allclose(ours.assign_[0], theirs.transform(counts), atol=5e-3)  # ours stop when the bound does
