"""New attributes of clustered instances: against sums over all prunings by enumeration, new instances, sizes."""

import numpy as np
import pytest
from scipy.special import gammaln

import gingham as gg
from gingham.fitting.merging import MergeTree
from gingham.models.features.attributes import averaged_over_prunings

T = np.repeat([0, 1, 2], 40)


def planted(n_features, seed, strength=0.7):
    rng = np.random.default_rng(seed)
    likely = rng.integers(0, 4, (3, n_features))
    return np.where(rng.random((120, n_features)) < strength, likely[T], rng.integers(0, 4, (120, n_features)))


def prunings(node, children):
    """All ways to prune the tree below a node: (prior probability, nodes that are left)."""
    if node not in children:
        return [(1.0, (node,))]
    a, b = children[node]
    split = [(0.5 * p * q, (*x, *y)) for p, x in prunings(a, children) for q, y in prunings(b, children)]
    return [(0.5, (node,)), *split]


def test_all_prunings_by_enumeration():
    rng = np.random.default_rng(0)
    merges = np.array([[0, 1], [2, 5], [3, 4], [6, 7]])
    children = {5 + t: tuple(pair) for t, pair in enumerate(merges.tolist())}
    below = {leaf: {leaf} for leaf in range(5)}
    for node, (a, b) in children.items():
        below[node] = below[a] | below[b]
    leaves, values = rng.integers(0, 4, 9), rng.permutation(9) % 3  # leaf 4 has none
    prior = (np.bincount(values, minlength=3) + 1 / 3) / 10
    expected, total = np.zeros((5, 3)), 0.0
    for weight, left in prunings(8, children):
        chances = np.zeros((5, 3))
        for node in left:
            counts = np.bincount(values[np.isin(leaves, list(below[node]))], minlength=3)
            weight *= np.exp((gammaln(counts + prior) - gammaln(prior)).sum() - gammaln(counts.sum() + 1))
            chances[list(below[node])] = (counts + prior) / (counts.sum() + 1)
        expected, total = expected + weight * chances, total + weight
    tree = MergeTree(merges, np.arange(4.0), 5)
    np.testing.assert_allclose(averaged_over_prunings(tree, leaves, values, 3), expected / total, atol=1e-12)


def test_a_new_attribute_is_known_from_one_instance_of_each_cluster(tmp_path):
    model = gg.InformationClustering(3, random_state=0).fit(planted(40, 0))
    attribute = np.array(["red", "green", "blue"], dtype=object)[T]
    y = np.full(120, None)
    y[[0, 1, 40, 41, 80, 81]] = attribute[[0, 1, 40, 41, 80, 81]]
    found = model.predict_attribute(y)
    assert (found.values == attribute).mean() > 0.95
    assert found.classes.tolist() == ["blue", "green", "red"]
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    model.save(tmp_path / "m.gingham")
    np.testing.assert_array_equal(gg.load(tmp_path / "m.gingham").predict_attribute(y).values, found.values)
    numbers = np.full(120, np.nan)
    numbers[3] = 7.0
    assert (model.predict_attribute(numbers).values == 7).all()


def test_new_instances_join_the_cluster_that_loses_least():
    table = planted(40, 0)
    learned = np.arange(120) % 4 > 0
    model = gg.InformationClustering(3, random_state=0).fit(table[learned])
    new = table[~learned].astype(float)
    assert (model.predict(table[learned]) == model.labels_).mean() > 0.97
    new[0, 1], new[1, 3] = 99, np.nan  # a value that was not met, and none
    labels = model.predict(new)
    for row, label in zip(new, labels):  # by refitting the sums: H(X | T) of the table with the instance in it

        def cost(c, row=row):
            both, own = np.vstack([table[learned], row]), np.append(model.labels_, c)
            counts = [
                np.bincount(both[own == k, j].astype(int))
                for k in range(3)
                for j in range(40)
                if row[j] == row[j] and row[j] < 4
            ]
            return sum(-np.sum(n[n > 0] * np.log(n[n > 0] / n.sum())) for n in counts)

        assert cost(label) == pytest.approx(min(cost(c) for c in range(3)))
    truth = np.where(T == 1, "one", "other").astype(object)
    y = truth[learned].copy()
    y[::2] = None
    assert (model.predict_attribute(y, new).values == truth[~learned]).mean() > 0.9


def test_the_number_of_clusters_is_that_of_features_set_aside():
    assert gg.InformationClustering("auto", random_state=0).fit(planted(40, 1)).n_clusters_ == 3
    noise = np.random.default_rng(0).integers(0, 3, (120, 20))
    assert gg.InformationClustering("auto", random_state=0).fit(noise).n_clusters_ == 1


def test_the_error_of_new_attributes_is_certified():
    """Attributes are drawn from a population with a known mean error: the bound fails in at most δ of the samples."""
    population = planted(1500, 7, 0.5)
    model = gg.InformationClustering(3, random_state=0).fit(planted(30, 7, 0.5))
    truth = model.certify_new(population, n_labelled=5).empirical
    rng = np.random.default_rng(0)
    found = [model.certify_new(population[:, rng.integers(0, 1500, 40)], 0.1, 5) for _ in range(60)]
    assert np.mean([one.value < truth for one in found]) <= 0.1
    assert found[0].empirical < found[0].value < 1
    assert found[0].empirical < found[0].chance
    assert "predicted wrongly for at most" in found[0].explain()
    assert found[0].to_dict()["at_least"] is False


def test_bad_requests_get_a_sentence():
    table = planted(8, 0)
    model = gg.InformationClustering(2, random_state=0).fit(table)
    with pytest.raises(gg.GinghamError, match="one value per instance"):
        model.predict_attribute([1, 2])
    with pytest.raises(gg.GinghamError, match="no known value"):
        model.predict_attribute(np.full(120, np.nan))
    with pytest.raises(ValueError, match="8 features"):
        model.predict(table[:, :3])
    with pytest.raises(gg.GinghamError, match="n_labelled=0"):
        model.certify_new(planted(8, 1), n_labelled=0)
    with pytest.raises(gg.RefusedCertificate, match="more than 120"):
        model.certify_new(planted(8, 1), n_labelled=120)
    with pytest.raises(gg.RefusedCertificate, match="were used to form"):
        model.certify(table, n_labelled=5)
    with pytest.raises(gg.GinghamError, match="holds out features"):
        gg.InformationClustering("auto").fit(table[:, :1])
