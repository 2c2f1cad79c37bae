"""Which pairs to measure next: gains by simulation, and what may be suggested."""

import numpy as np
import pytest

import gingham as gg
from gingham.data.graphs import from_graph
from gingham.models.graph.suggest import Beliefs, suggest


def measured(n=30, k=3, share=0.15, seed=0):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % k
    centre = rng.random((k, k))
    centre = (centre + centre.T) / 2
    i, j = np.triu_indices(n, 1)
    seen = rng.random(len(i)) < share
    weights = centre[z[i], z[j]] + 0.1 * rng.normal(size=len(i))
    edges = [(int(a), int(b), float(w)) for a, b, w in zip(i[seen], j[seen], weights[seen])]
    return from_graph(edges, pairs="listed", nodes=range(n)), np.eye(k)[z], rng


def test_gains_are_what_the_best_linear_prediction_saves():
    """Draw the cluster of a node and what is measured, and predict what is not measured from it."""
    sample, assign, rng = measured(share=0.05)
    beliefs = Beliefs.of(sample, assign)
    x = int(np.einsum("xaa->x", beliefs.covariance).argmax())
    found = beliefs.gains(np.array([x]))[0]
    # The answers again, from the pairs themselves.
    z, labels = assign.argmax(axis=1), sample.labels
    total, count = np.zeros((3, 3)), np.zeros((3, 3))
    for i, j, w in zip(*sample.codes, labels):
        for a, b in ((z[i], z[j]), (z[j], z[i])):
            total[a, b] += w
            count[a, b] += 1
    g = (total + labels.mean()) / (count + 1)
    c = rng.choice(3, 400_000, p=beliefs.assign[x])
    for a in range(3):
        w = g[c, a] + np.sqrt(beliefs.noise) * rng.normal(size=len(c))
        saved = [beliefs.unmeasured[x, b] * np.cov(g[c, b], w)[0, 1] ** 2 / w.var() for b in range(3)]
        assert found[a] == pytest.approx(sum(saved), rel=0.05)


def test_measuring_leaves_open_what_a_gaussian_does_not_know():
    sample, assign, _ = measured(share=0.05)
    beliefs = Beliefs.of(sample, assign)
    x, y = 4, 7
    before, cluster = beliefs.covariance[x].copy(), int(beliefs.assign[y].argmax())
    beliefs.measure(np.array([x]), np.array([y]))
    joint = np.block([[before, before[:, [cluster]]], [before[[cluster]], before[cluster, cluster] + beliefs.noise]])
    expected = np.linalg.inv(np.linalg.inv(joint + 1e-10 * np.eye(4))[:3, :3])
    np.testing.assert_allclose(beliefs.covariance[x], expected, atol=1e-6)


def test_suggestions_are_new_pairs_of_nodes_of_which_little_is_known():
    sample, assign, rng = measured(n=40, share=0.3)
    poor = sample.take((sample.codes[0] != 0) | (np.arange(sample.n_rows) < 2))  # node 0 keeps two pairs
    pairs, gains = suggest(poor, assign if assign.shape[0] == 40 else None, 60, rng)
    listed = set(zip(*(code.tolist() for code in poor.codes)))
    found = {tuple(sorted(pair)) for pair in pairs.tolist()}
    assert len(found) == len(gains) == 60
    assert not found & listed
    assert all(i != j for i, j in found)
    assert 0 in pairs[0]
    everything = poor.n_nodes * (poor.n_nodes - 1) // 2 - poor.n_rows
    assert len(suggest(poor, assign, everything, rng)[0]) == everything


def test_of_many_nodes_some_are_compared(monkeypatch):
    sample, assign, rng = measured(n=40, share=0.3)
    monkeypatch.setattr("gingham.models.graph.suggest.MOST_NODES", 12)
    pairs, _ = suggest(sample, assign, 20, rng)
    assert len(np.unique(pairs)) <= 12
    assert not {tuple(sorted(p)) for p in pairs.tolist()} & set(zip(*(code.tolist() for code in sample.codes)))


def test_graphs_of_which_all_pairs_were_observed_are_refused():
    sample, _, _ = measured()
    model = gg.GraphClustering(3, loss="quadratic", random_state=0).fit(sample)
    assert model.suggest_pairs(3)[0].shape == (3, 2)
    with pytest.raises(gg.GinghamError, match="between 1 and"):
        model.suggest_pairs(0)
    with pytest.raises(gg.GinghamError, match="pairs='listed'"):
        gg.GraphClustering(2, random_state=0).fit([(0, 1), (1, 2), (2, 3)]).suggest_pairs()
