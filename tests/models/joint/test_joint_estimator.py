import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import gingham as gg

RATINGS, GENRES = ("viewer", "movie"), ("movie", "genre")


@pytest.fixture(scope="module")
def planted():
    """Viewers and movies of two kinds; a movie's kind also shows in its genres; movies 30 to 39 have no ratings."""
    rng = np.random.default_rng(0)
    viewer, movie = np.arange(30) % 2, np.arange(40) % 2
    X = np.column_stack([rng.integers(0, 30, 1500), rng.integers(0, 30, 1500)])
    y = np.where(viewer[X[:, 0]] == movie[X[:, 1]], 5, 2)
    y = np.where(rng.random(1500) < 0.1, 3, y)
    at = np.indices((40, 6)).reshape(2, -1).T
    has = (rng.random(240) < np.where(movie[at[:, 0]] == at[:, 1] % 2, 0.9, 0.1)).astype(int)
    return {"relations": {RATINGS: (X, y), GENRES: (at, has)}, "viewer": viewer, "movie": movie}


@pytest.fixture(scope="module")
def fitted(planted):
    model = gg.JointCoClustering(
        {"viewer": 2, "movie": 2, "genre": None},
        alphabet={RATINGS: range(1, 6), GENRES: (0, 1)},
        random_state=0,
    )
    return model.fit(planted["relations"])


def test_cold_items_are_predicted_through_their_other_relations(planted, fitted):
    cold = np.array([(v, m) for v in range(30) for m in range(30, 40)])
    truth = np.where(planted["viewer"][cold[:, 0]] == planted["movie"][cold[:, 1]], 5, 2)
    assert np.abs(fitted.predict(RATINGS, cold, rule="median") - truth).mean() < 0.3
    alone = gg.JointCoClustering({"viewer": 2, "movie": 2}, random_state=0)
    alone.fit({RATINGS: planted["relations"][RATINGS]})
    with pytest.warns(gg.UnseenItemsWarning):
        assert np.abs(alone.predict(RATINGS, cold, rule="median") - truth).mean() > 1.0


def test_clusters_are_the_planted_ones(planted, fitted):
    assert adjusted_rand_score(planted["viewer"], fitted.labels_["viewer"]) == 1.0
    assert adjusted_rand_score(planted["movie"], fitted.labels_["movie"]) > 0.8
    np.testing.assert_array_equal(fitted.assign_["genre"], np.eye(6))


def test_factors_reconstruct_the_predictions(fitted):
    q1, f, q2 = fitted.factors_[RATINGS]
    whole = q1 @ f @ q2.T
    chosen = np.array([(3, 7), (12, 39), (29, 0)])
    np.testing.assert_allclose(fitted.predict(RATINGS, chosen), whole[chosen[:, 0], chosen[:, 1]])


def test_tucker_factors_of_three_modes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (200, 3))
    model = gg.CoClusteringRegressor(2, alphabet=(0, 1), beta=3.0, random_state=0).fit(X, X.sum(axis=1) % 2)
    core, sides = model.posterior_.factors()
    whole = np.einsum("abc,xa,yb,zc->xyz", core, *sides)
    np.testing.assert_allclose(model.predict(X[:9]), whole[tuple(X[:9].T)])


def test_certificates_share_delta(planted, fitted):
    relations = {RATINGS: planted["relations"][RATINGS]}
    alone = fitted.certify(relations, delta=0.05)[RATINGS]
    with pytest.raises(gg.RefusedCertificate, match="'genre' is not clustered"):  # an unseen genre has no cells
        fitted.certify(planted["relations"])
    genres = {"genre": 6}
    both = fitted.certify(planted["relations"], delta=0.05, population=genres)
    assert both[RATINGS].delta == 0.025
    assert alone.value < both[RATINGS].value < 3.0
    assert not any("genre" in name for name in both[GENRES].terms)  # singletons were given, not learned
    uneven = fitted.certify(planted["relations"], shares={RATINGS: 0.9, GENRES: 0.1}, population=genres)
    assert uneven[RATINGS].value < both[RATINGS].value
    with pytest.raises(gg.GinghamError, match="shares"):
        fitted.certify(planted["relations"], shares={RATINGS: 0.9, GENRES: 0.2})


def test_cold_start_places_items_by_their_properties(planted):
    model = gg.JointCoClustering({"viewer": 2, "movie": 2, "genre": None}, cold_start=True, random_state=0)
    model.fit(planted["relations"])
    cold = model.labels_["movie"][30:]
    assert adjusted_rand_score(planted["movie"][30:], cold) > 0.6


def test_a_mode_may_stand_twice_in_a_relation():
    rng = np.random.default_rng(1)
    kind = np.arange(20) % 2
    X = rng.integers(0, 20, (800, 2))
    X = X[X[:, 0] != X[:, 1]]
    y = (kind[X[:, 0]] == kind[X[:, 1]]).astype(int)
    ages = np.column_stack([np.arange(20), np.zeros(20, int)])
    model = gg.JointCoClustering(
        {"person": 2, "trait": None}, loss={("person", "person"): "zero-one"}, beta=2.0, random_state=0
    ).fit({("person", "person"): (X, y), ("person", "trait"): (ages, (rng.random(20) < 0.2 + 0.6 * kind).astype(int))})
    assert adjusted_rand_score(kind, model.labels_["person"]) == 1.0


@pytest.mark.parametrize(
    ("n_clusters", "relations", "says"),
    [
        ({"a": 2}, {}, "at least one relation"),
        ({"a": 2}, {("a", "b"): ([(1, 2)], [1])}, "lacks the mode 'b'"),
        ({"a": 2, "b": 2}, {("a", "b"): ([(1, 2, 3)], [1])}, "names 2 modes; X has 3"),
        ({"a": 2, "b": 2}, {"ab": ([(1, 2)], [1])}, "tuple of mode names"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(n_clusters, relations, says):
    with pytest.raises(gg.GinghamError, match=says):
        gg.JointCoClustering(n_clusters).fit(relations)


def test_unknown_relation_is_named(fitted):
    with pytest.raises(gg.GinghamError, match="was not fitted"):
        fitted.predict(("movie", "viewer"), [(0, 0)])
