"""Certificates of graphs: (15) by hand, absent pairs counted, coverage, partitions from anywhere on one scale."""

from math import log

import numpy as np
import pytest
from scipy import sparse

import gingham as gg
from gingham.cells import Quadratic
from gingham.certificates import certify, equation15
from gingham.certificates.divergence import kl_upper
from gingham.certificates.labels import posterior_of_labels
from gingham.data import Alphabet
from gingham.data.graphs import from_graph, with_alphabet
from gingham.datasets import planted_graph
from gingham.errors import GinghamError, RefusedCertificate

GRAPH = planted_graph(300, 3, inside=40, outside=6, seed=0)


def test_equation_15_by_hand():
    model = gg.GraphClustering(3, loss="quadratic", solver="nodewise", random_state=0).fit(GRAPH.adjacency)
    sample = model.sample(GRAPH.adjacency)
    n, k, pairs = 300, 3, 300 * 299 / 2
    step = 5 * k * k / pairs
    correction = step + step**2 / 4
    epsilon = (
        n * model.posterior_.information[0] + k * log(n) - k * k * log(step) + 0.5 * log(4 * pairs / 0.05**2)
    ) / pairs
    by_hand = kl_upper(model.posterior_.gibbs_loss(sample) + correction, epsilon) + correction
    assert equation15(model.posterior_, sample).value == pytest.approx(by_hand)
    with pytest.raises(RefusedCertificate, match="quadratic"):
        equation15(gg.GraphClustering(2, random_state=0).fit(GRAPH.adjacency).posterior_, sample)


def test_absent_pairs_count_the_same_listed_or_not():
    dense = GRAPH.adjacency.toarray()
    everywhere = from_graph(dense, pairs="listed")  # all pairs listed, zeros too
    sparse_one = from_graph(GRAPH.adjacency)
    assert everywhere.n_observations == sparse_one.n_observations
    values = []
    for sample in (everywhere, sparse_one):
        for cell, pairs in (
            (Quadratic(bounds=(0.0, 1.0)), sample),
            (Quadratic(Alphabet.of([0.0, 1.0], True)), with_alphabet(sample, Alphabet.of([0.0, 1.0], True))),
        ):
            posterior = posterior_of_labels(GRAPH.labels, pairs, loss=lambda _, cell=cell: cell, alphabet=(0, 1))[0]
            found = certify(posterior, pairs)
            assert found.n_observations == 300 * 299 / 2
            values.append((found.value, found.empirical))
    np.testing.assert_allclose(values, [values[1]] * 4, rtol=2e-3)  # without an alphabet losses are rounded up
    assert values[0] == pytest.approx(values[2], rel=1e-9)


def test_undirected_graphs_pay_for_half_the_cells():
    sample = with_alphabet(from_graph(GRAPH.adjacency), Alphabet.of([0.0, 1.0], given=True))
    posterior = posterior_of_labels(np.arange(300) % 30, sample, alphabet=(0, 1))[0]
    found = certify(posterior, sample, bound="log-wealth")
    with pytest.raises(gg.RefusedCertificate, match="population"):
        certify(posterior, sample, bound="eq-53")
    with pytest.raises(gg.RefusedCertificate, match="population"):  # pairs of unseen nodes have no price there
        certify(posterior, sample, bound="eq-53", population=(301,))
    papers = certify(posterior, sample, bound="eq-53", population=(300,))
    assert found.terms["cell answers"] < 0.6 * papers.terms["cell answers"]
    assert found.value < papers.value


def test_clusters_help_where_there_are_some_and_not_in_noise():
    planted = certify(GRAPH.labels, GRAPH.adjacency, alphabet=(0, 1), bound="gain")
    assert planted.value < 0
    rng = np.random.default_rng(0)
    noise = np.triu(rng.random((300, 300)) < 0.1, 1).astype(float)
    fitted = gg.GraphClustering(6, solver="sweep", random_state=0).fit(sparse.csr_array(noise + noise.T))
    assert certify(fitted.labels_, sparse.csr_array(noise + noise.T) > 0, bound="gain").value > 0


def test_the_certificate_holds_for_sampled_pairs():
    # Fitted and certified on 15 % of the pairs, again and again: the loss on all pairs is below it.
    weights = 0.2 + 0.6 * (GRAPH.labels[:, None] == GRAPH.labels[None, :])[:80, :80]
    rng = np.random.default_rng(0)
    weights = np.clip(weights + 0.15 * rng.normal(size=(80, 80)), 0, 1)
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    failures = 0
    for seed in range(12):
        hidden = np.triu(np.random.default_rng(seed).random((80, 80)) > 0.15, 1)
        seen = weights.copy()
        seen[hidden | hidden.T | np.eye(80, dtype=bool)] = np.nan
        model = gg.GraphClustering(
            4, loss="quadratic", solver="nodewise", bounds=(0, 1), random_state=seed, max_iter=30
        )
        model.fit(seen, pairs="listed")
        found = certify(model, model.sample(seen, pairs="listed"), delta=0.5)
        whole = found.posterior.gibbs_loss(model.sample(np.where(np.eye(80), np.nan, weights), pairs="listed"))
        failures += whole > found.value
    assert failures == 0


def test_partitions_from_anywhere_on_one_scale():
    partitions = {"planted": GRAPH.labels, "one": np.zeros(300, int), "random": np.arange(300) % 3}
    graph, half = GRAPH.adjacency > 0, 0.05 / 2  # a bound holds for all partitions at once; the two kinds share δ
    found = {name: certify(labels, graph, delta=half) for name, labels in partitions.items()}
    gains = {name: certify(labels, graph, delta=half, bound="gain").value for name, labels in partitions.items()}
    assert found["planted"].empirical < found["one"].empirical
    assert gains["planted"] < 0 < gains["random"]
    mapping = {node: int(c) for node, c in enumerate(GRAPH.labels)}
    options = {"alphabet": (0, 1), "delta": 0.05 / 2}  # the other half is for the gain
    same = certify(mapping, GRAPH.adjacency, **options)
    assert same.value == pytest.approx(found["planted"].value)
    turned = certify(GRAPH.labels[::-1], GRAPH.adjacency, items=np.arange(300)[::-1], **options)
    assert turned.value == pytest.approx(same.value)


def test_what_cannot_be_certified_is_refused():
    with pytest.raises(GinghamError, match="has 300 different items but 2 cluster labels"):
        certify([0, 1], GRAPH.adjacency, alphabet=(0, 1))
    with pytest.raises(GinghamError, match="Node 0 has no cluster"):
        certify({1: 0}, GRAPH.adjacency, alphabet=(0, 1))
    with pytest.raises(GinghamError, match="names an item twice"):
        certify(GRAPH.labels, GRAPH.adjacency, alphabet=(0, 1), items=np.zeros(300, int))
    with pytest.raises(RefusedCertificate, match="State the possible weights"):
        certify([0, 1, 1], [(0, 1, 0.3), (1, 2, 0.7)])
    model = gg.GraphClustering(3, loss="quadratic", random_state=0).fit(GRAPH.adjacency)
    assert certify(model, model.sample(GRAPH.adjacency), alphabet=(0, 1), bound="gain").value < 0
