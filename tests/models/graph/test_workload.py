"""How many edges are enough, Iclust, and duplicates among soft clusters."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.datasets import planted_graph
from gingham.models import workload_path
from gingham.models.graph.fit import graph_problem
from gingham.models.graph.partition import merge_duplicates
from gingham.models.graph.solvers import mean_similarity, similarity


def similar(n=90, seed=0):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 3
    weights = np.where(z[:, None] == z[None, :], 0.8, 0.2) + 0.05 * rng.normal(size=(n, n))
    weights = np.clip(np.triu(weights, 1) + np.triu(weights, 1).T, 0, 1)
    np.fill_diagonal(weights, np.nan)
    return weights, z


def test_more_pairs_buy_more_precision():
    weights, _ = similar(150)
    model = gg.GraphClustering(
        3, loss="quadratic", beta=5.0, solver="nodewise", bounds=(0, 1), random_state=0, max_iter=40
    )
    path = workload_path(model, weights, [0.1, 0.3, 0.6], pairs="listed", random_state=0)
    values = [row.certificate for row in path.rows]
    assert values == sorted(values, reverse=True)
    for row in path.rows:
        assert row.certificate > row.train
        assert row.held_out >= row.certificate
        assert row.held_out > row.rest
    enough = path.suffices(values[1])
    assert enough is not None
    assert enough.fraction == 0.3
    assert "suffice" in path.explain(values[1])
    assert path.suffices(0.0) is None
    assert "No sample" in path.explain(0.0)


@pytest.mark.parametrize("directed", [False, True])
def test_pairs_are_sampled_with_their_labels(directed):
    graph = planted_graph(60, 2, inside=12, outside=2, seed=0).adjacency.toarray() > 0
    if directed:
        graph = np.triu(graph)
    model = gg.GraphClustering(2, loss="quadratic", solver="nodewise", random_state=0, max_iter=20)
    path = workload_path(model, graph, [0.999], random_state=0)
    assert path.n_pairs == (60 * 59 if directed else 60 * 59 / 2)
    fitted = model.fit(graph)
    assert path.rows[0].train == pytest.approx(fitted.posterior_.gibbs_loss(fitted.sample(graph)), rel=0.15)
    with pytest.raises(gg.GinghamError, match="strictly between"):
        workload_path(model, graph, [1.0])
    with pytest.raises(gg.GinghamError, match="draws pairs"):
        workload_path(model, gg.from_graph([(0, 1, 2), (1, 2, 3)], hyperedges=True), [0.5])


def test_iclust_finds_similar_nodes_and_never_falls():
    weights, z = similar()
    model = gg.GraphClustering(3, objective="iclust", loss="quadratic", beta=20.0, random_state=0)
    model.fit(weights, pairs="listed")
    assert adjusted_rand_score(z, model.labels_) == 1
    totals = model.trace_.totals
    assert np.all(np.diff(totals) <= 1e-9 * np.abs(totals[:-1]))
    matrix, rest = similarity(model.sample(weights, pairs="listed"))
    one_hot = np.eye(3)[z]
    by_hand = np.mean([np.nansum(weights[np.ix_(z == c, z == c)]) / (z == c).sum() ** 2 for c in range(3)])
    assert mean_similarity(one_hot, matrix, rest) == pytest.approx(by_hand)
    with pytest.raises(gg.GinghamError, match="objective='beauty'"):
        gg.GraphClustering(objective="beauty").fit(weights, pairs="listed")


def test_iclust_does_not_see_a_ring():
    graph = planted_graph(400, 5, inside=30, outside=2, kind="ring", seed=0)
    blind = gg.GraphClustering(5, objective="iclust", loss="quadratic", start="random", random_state=0)
    seeing = gg.GraphClustering(5, loss="quadratic", random_state=0)
    assert adjusted_rand_score(graph.labels, seeing.fit(graph.adjacency).labels_) > 0.95
    blind.fit(graph.adjacency)
    seen = seeing.posterior_.gibbs_loss(seeing.sample(graph.adjacency))
    assert blind.posterior_.gibbs_loss(blind.sample(graph.adjacency)) > seen


def test_duplicate_clusters_are_merged():
    weights, z = similar()
    model = gg.GraphClustering(3, loss="quadratic", beta=50.0, solver="nodewise", random_state=0)
    model.fit(weights, pairs="listed")
    sample = model.sample(weights, pairs="listed")
    problem = graph_problem(sample, model.posterior_.cells[0], 50.0)
    share = np.random.default_rng(0).random((90, 1))
    q = model.assign_
    split = np.hstack([q[:, :1] * share, q[:, :1] * (1 - share), q[:, 1:], np.zeros((90, 1))])
    twice = type(model.posterior_)(
        model.posterior_.structure, model.posterior_.cells, (split,), (np.zeros((5, 5)),)
    ).refit(sample)
    merged = merge_duplicates(problem, twice)
    assert merged.n_clusters == (3,)
    assert merged.gibbs_loss(sample) == pytest.approx(model.posterior_.gibbs_loss(sample), rel=1e-6)
    assert adjusted_rand_score(z, merged.labels[0]) == 1
