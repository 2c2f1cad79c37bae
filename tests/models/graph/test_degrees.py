"""Degree correction: costs by hand and by brute force, the choice on held-out pairs, and what people are told of it."""

import warnings
from dataclasses import replace
from itertools import combinations
from math import comb, exp, log, log1p

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.data.graphs import from_graph
from gingham.datasets import planted_graph
from gingham.models.graph.degrees import PARTS, DegreeModel, GroupChances, held_out_loss

HUBS = planted_graph(400, 2, inside=20, outside=4, exponent=2.3, seed=1)
EVEN = planted_graph(300, 3, inside=20, outside=3, seed=0)
rng = np.random.default_rng(3)
WEIGHT = rng.pareto(2.5, 60) + 0.3
NOISE = np.triu(rng.random((60, 60)) < np.minimum(np.outer(WEIGHT, WEIGHT) * 0.1, 1.0), 1)
SAMPLE = from_graph((NOISE | NOISE.T).astype(float))
LABELS = np.arange(60) % 3
FORMS = {
    "plain": lambda sample, kept=1.0: GroupChances.of_blocks(sample, LABELS, 3, kept),
    "corrected": lambda sample, kept=1.0: DegreeModel.of(sample, LABELS, 3, kept),
    "degrees alone": GroupChances.of_degrees,
}


def every_pair(n):
    pairs = np.array(list(combinations(range(n), 2)))
    return pairs[:, 0], pairs[:, 1]


def test_chances_and_the_description_length_by_hand():
    """A path a – b – c of two clusters, {a, b} and {c}: degrees 1, 2, 1, each filled up by one edge."""
    sample = from_graph([("a", "b"), ("b", "c")])
    model = DegreeModel.of(sample, np.array([0, 0, 1]), 2)
    assert model.degrees.tolist() == [2.0, 3.0, 2.0]
    # Ends of edges between clusters 0, 0: 2; 0, 1: 1; 1, 1: 0; one is added to each. Degrees sum to 5 and 2.
    rates = np.array([[3 / (25 + 7), 2 / (10 + 7)], [2 / (10 + 7), 1 / (4 + 7)]])
    np.testing.assert_allclose(model.rates, rates)
    means = {("a", "b"): 2 * 3 * rates[0, 0], ("b", "c"): 3 * 2 * rates[0, 1], ("a", "c"): 2 * 2 * rates[0, 1]}
    np.testing.assert_allclose(model.predict([np.array([0, 0]), np.array([1, 2])]), [
        1 - exp(-means["a", "b"]), 1 - exp(-means["a", "c"]),
    ])  # fmt: skip
    objective = model.objective(sample)
    loss = -log(1 - exp(-means["a", "b"])) - log(1 - exp(-means["b", "c"])) + means["a", "c"]
    assert objective.losses == pytest.approx((loss,))
    # Who is where: 3 ln 3 − 2 ln 2. Three ends among two nodes of cluster 0, one end at the node of cluster 1.
    assert objective.information == pytest.approx((3 * log(3) - 2 * log(2), log(comb(4, 3)) + log(1)))
    assert objective.total == pytest.approx(loss + 3 * log(3) - 2 * log(2) + log(4))


def test_chances_of_blocks_by_hand():
    sample = from_graph([("a", "b"), ("b", "c")])
    shares = GroupChances.of_blocks(sample, np.array([0, 0, 1]), 2)
    # Ordered pairs: 2 joined of 2; 1 joined of 2; none of none. One joined and one other are added.
    np.testing.assert_allclose(shares.chances, [[3 / 4, 2 / 4], [2 / 4, 1 / 2]])


@pytest.mark.parametrize("form", FORMS)
def test_what_absent_edges_cost_is_the_sum_over_all_pairs(form):
    chances = FORMS[form](SAMPLE)
    joined, absent = chances.nats(every_pair(60))
    assert chances.absent() == pytest.approx(absent.sum())
    np.testing.assert_allclose(np.exp(-joined) + np.exp(-absent), 1.0)


def test_the_objective_is_the_log_loss_of_all_pairs():
    model = DegreeModel.of(SAMPLE, LABELS, 3)
    pairs = every_pair(60)
    chance, y = model.predict(pairs), (NOISE | NOISE.T)[pairs]
    assert model.objective(SAMPLE).losses[0] == pytest.approx(-np.where(y, np.log(chance), np.log1p(-chance)).sum())


@pytest.mark.parametrize("form", FORMS)
def test_the_held_out_loss_is_that_of_drawn_pairs_on_average(form):
    """Pairs that are not joined are not drawn; drawing them gives the same loss on average."""
    part = np.random.default_rng(0).integers(PARTS, size=SAMPLE.n_rows)
    chances = FORMS[form](replace(SAMPLE.take(part != 0), complete=True), 1 - 1 / PARTS)
    stated = held_out_loss(chances, SAMPLE, part == 0)
    i, j = every_pair(60)
    y = (NOISE | NOISE.T)[i, j]
    _, absent = chances.nats((i, j))
    here = chances.nats(SAMPLE.codes)[0][part == 0].sum()
    drawn = [here + absent[~y & (np.random.default_rng(s).random(len(y)) < 1 / PARTS)].sum() for s in range(400)]
    assert stated * len(y) / PARTS == pytest.approx(np.mean(drawn), rel=0.02)


def test_degrees_alone_expect_the_edges_that_nodes_have():
    chances = GroupChances.of_degrees(SAMPLE)
    expected = np.zeros((60, 60))
    expected[every_pair(60)] = np.exp(-chances.nats(every_pair(60))[0])
    degrees = (NOISE | NOISE.T).sum(axis=1)
    # One edge is added, and as many are expected beside as a node with this θ would have of them.
    assert np.corrcoef((expected + expected.T).sum(axis=1), degrees)[0, 1] > 0.99
    assert expected.sum() == pytest.approx(NOISE.sum(), rel=0.1)


def test_hubs_are_corrected_for_and_even_degrees_are_not():
    hubs = gg.GraphClustering(random_state=0).fit(HUBS.adjacency)
    assert hubs.degree_choice_.corrected
    assert hubs._degree_model is not None
    assert hubs.degree_choice_.corrected_loss < hubs.degree_choice_.plain_loss
    asked = gg.GraphClustering(degree_correction=True, random_state=0).fit(HUBS.adjacency)
    np.testing.assert_array_equal(hubs.labels_, asked.labels_)
    even = gg.GraphClustering(random_state=0).fit(EVEN.adjacency)
    assert not even.degree_choice_.corrected
    assert even._degree_model is None
    assert adjusted_rand_score(EVEN.labels, even.labels_) > 0.95
    assert "nats per held-out pair" in str(even.degree_choice_)
    assert str(even.degree_choice_)[1:] in " ".join(even.summary_.notes)


def test_clusters_that_only_tell_hubs_from_others_are_no_clusters():
    draw = np.random.default_rng([0, 7])
    weight = draw.pareto(2.5, 200) + 0.3
    chance = np.minimum(np.outer(weight, weight) / weight.mean() ** 2 * 0.06, 1.0)
    edges = np.triu(draw.random((200, 200)) < chance, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.AdviceWarning)
        model = gg.GraphClustering(random_state=0).fit((edges | edges.T).astype(float))
        assert model.degree_choice_.corrected
        assert model.degree_choice_.degrees_loss <= model.degree_choice_.plain_loss
        assert not model.summary_.found


def test_totals_of_both_forms_are_nats_of_the_same_graph():
    """Losses are of all pairs under the model's own predictions; what says the clusters and degrees comes on top."""
    for graph, better in ((HUBS, True), (EVEN, False)):
        adjacency, k = graph.adjacency, int(graph.labels.max()) + 1
        pairs = every_pair(len(graph.labels))
        y = np.asarray(adjacency[pairs]).ravel() > 0
        density = y.mean()
        one = -len(y) * (density * log(density) + (1 - density) * log1p(-density))
        found = {}
        for form in (False, True):
            model = gg.GraphClustering(k, degree_correction=form, random_state=0).fit(adjacency)
            chance = model.predict(np.column_stack(pairs))
            assert model.objective_.losses[0] == pytest.approx(-np.where(y, np.log(chance), np.log1p(-chance)).sum())
            assert sum(model.objective_.losses) < model.objective_.total < 1.15 * one
            found[form] = model.objective_
        if better:
            assert found[True].losses[0] < 0.95 * found[False].losses[0]
        else:
            assert found[False].total < found[True].total


@pytest.mark.parametrize(
    ("options", "fit", "words"),
    [
        ({}, {"directed": True}, "needs an undirected graph"),
        ({}, {"pairs": "listed"}, "only the listed pairs"),
        ({"solver": "nodewise"}, {}, "soft clusters"),
        ({"solver": "iclust"}, {}, "soft clusters"),
        ({"beta": 2.0}, {}, "beta="),
        ({"loss": "quadratic"}, {}, None),
        ({"degree_correction": True}, {}, "as asked for"),
        ({"degree_correction": False}, {}, "as asked for"),
    ],
)
def test_why_a_form_was_taken_is_said(options, fit, words):
    matrix = sparse.triu(EVEN.adjacency, 1).tocoo()
    pairs = np.column_stack([matrix.row, matrix.col])
    frame = gg.GraphClustering(3, random_state=0, **options)
    if fit.get("pairs"):
        values = np.random.default_rng(0).integers(0, 2, len(pairs))
        frame.fit([(a, b, int(w)) for (a, b), w in zip(pairs.tolist(), values)], **fit)
    else:
        frame.fit(pairs, **fit)
    if words is not None:
        assert words in str(frame.degree_choice_)


def test_few_edges_and_unknown_words():
    model = gg.GraphClustering(random_state=0).fit([("a", "b"), ("b", "c"), ("c", "d")])
    assert "3 edges are too few" in str(model.degree_choice_)
    with pytest.raises(gg.GinghamError, match="degree_correction='yes' must be"):
        gg.GraphClustering(degree_correction="yes").fit(EVEN.adjacency)


def test_direction_is_not_dropped_silently():
    both = [("a", "b"), ("b", "a"), ("c", "d"), ("a", "c"), ("b", "d")]
    with pytest.warns(gg.GinghamWarning, match="1 pairs are listed in both orders and 3 in one"):
        sample = from_graph(both)
    assert not sample.directed
    for said in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert from_graph(both, directed=said).directed is said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_graph([("a", "b"), ("b", "c")])  # every pair in one order
        from_graph([("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")])  # every pair in both


def test_a_loaded_model_knows_its_form(tmp_path):
    model = gg.GraphClustering(random_state=0).fit(HUBS.adjacency)
    model.save(tmp_path / "graph.gingham")
    again = gg.load(tmp_path / "graph.gingham")
    assert again.degree_choice_ == model.degree_choice_
    np.testing.assert_array_equal(again._degree_model.rates, model._degree_model.rates)
