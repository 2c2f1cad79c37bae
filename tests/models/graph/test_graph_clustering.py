"""GraphClustering as users meet it: any graph in, clusters and predictions out, saved and loaded."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from ctrl_c import press_ctrl_c
from gingham.datasets import planted_graph
from gingham.errors import InterruptedWarning
from gingham.fitting.checkpoints import kept_in
from gingham.models.graph import Damped, NodeWise
from gingham.models.graph.partition import PartitionSearch

GRAPH = planted_graph(300, 3, inside=20, outside=3, seed=0)


@pytest.mark.parametrize("solver", ["sweep", "nodewise", "damped"])
@pytest.mark.parametrize("loss", ["auto", "quadratic"])
@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_planted_clusters(solver, loss, n_clusters):
    model = gg.GraphClustering(n_clusters, loss=loss, solver=solver, random_state=0).fit(GRAPH.adjacency)
    assert model.n_clusters_ == 3
    assert model.labels_.shape == (300,)
    assert adjusted_rand_score(GRAPH.labels, model.labels_) > 0.95
    np.testing.assert_allclose(model.assign_.sum(axis=1), 1)
    np.testing.assert_allclose(model.answers_, model.answers_.T)
    density = GRAPH.adjacency.sum() / (300 * 299)
    every = model.predict(np.array([(i, j) for i in range(300) for j in range(i)]))
    assert every.mean() == pytest.approx(density, rel=1e-6)  # block means predict the right number of edges


def test_names_of_nodes_and_new_ones():
    graph = nx.Graph([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"), ("c", "y")])
    model = gg.GraphClustering(2, random_state=0).fit(graph)
    assert model.items_.tolist() == ["a", "b", "c", "x", "y"]
    assert model.predict([("a", "y"), ("a", "b")]) == pytest.approx([1, 0], abs=1e-6)
    with pytest.warns(gg.UnseenItemsWarning, match="1 in 'node'"):
        assert 0 < model.predict([("a", "who")])[0] < 1


def test_directed_graphs_have_directed_blocks():
    rng = np.random.default_rng(0)
    z = np.arange(60) % 2
    adjacency = (rng.random((60, 60)) < np.array([[0.1, 0.9], [0.1, 0.1]])[np.ix_(z, z)]).astype(float)
    np.fill_diagonal(adjacency, 0)
    for solver in ("sweep", "nodewise", "damped"):
        model = gg.GraphClustering(2, solver=solver, random_state=0).fit(sparse.csr_array(adjacency))
        assert adjusted_rand_score(z, model.labels_) == 1
        a, b = model.labels_[0], model.labels_[1]
        assert model.answers_[a, b] > 0.8
        assert model.answers_[b, a] < 0.2


def test_weights_on_listed_pairs_only():
    rng = np.random.default_rng(1)
    z = rng.integers(0, 3, 80)
    centre = np.array([[0.8, 0.3, 0.1], [0.3, 0.6, 0.2], [0.1, 0.2, 0.9]])
    weights = centre[np.ix_(z, z)] + 0.05 * rng.normal(size=(80, 80))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    hidden = np.triu(rng.random((80, 80)) < 0.7, 1)
    seen = weights.copy()
    seen[hidden | hidden.T | np.eye(80, dtype=bool)] = np.nan
    for solver in ("sweep", "nodewise", "damped"):
        model = gg.GraphClustering(3, solver=solver, random_state=0).fit(seen, pairs="listed")
        assert adjusted_rand_score(z, model.labels_) > 0.9
        pairs = np.argwhere(hidden)
        error = model.predict(pairs) - weights[hidden]
        assert np.sqrt(np.mean(error**2)) < 0.08
    assert gg.GraphClustering(beta=100.0, random_state=0).fit(seen, pairs="listed").n_clusters_ == 3


def test_hyperedges():
    rng = np.random.default_rng(0)
    z = np.arange(40) % 2
    triples = {tuple(sorted(rng.choice(np.flatnonzero(z == c), 3, replace=False))) for c in (0, 1) for _ in range(150)}
    triples |= {tuple(sorted(rng.choice(40, 3, replace=False))) for _ in range(20)}
    triples = [tuple(int(i) for i in t) for t in sorted(triples)]
    model = gg.GraphClustering(2, random_state=0).fit(triples, hyperedges=True)
    assert adjusted_rand_score(z, model.labels_) == 1
    assert model.answers_.shape == (2, 2, 2)
    same, mixed = model.predict([(0, 2, 4), (0, 1, 2)])
    assert same > 5 * mixed
    totals = model.trace_.totals[np.array(model.trace_.factors) == 1]
    assert np.all(np.diff(totals) <= 1e-8 * totals[0])


def test_absent_sets_of_four_count():
    rng = np.random.default_rng(0)
    z = np.arange(30) % 2
    sets = {tuple(sorted(rng.choice(np.flatnonzero(z == c), 4, replace=False))) for c in (0, 1) for _ in range(150)}
    sets |= {tuple(sorted(rng.choice(30, 4, replace=False))) for _ in range(20)}
    model = gg.GraphClustering(2, random_state=0).fit(sorted(sets), hyperedges=True)
    assert adjusted_rand_score(z, model.labels_) == 1
    same, mixed = model.predict([(0, 2, 4, 6), (0, 1, 2, 3)])
    assert same > 5 * mixed
    totals = model.trace_.totals[np.array(model.trace_.factors) == 1]
    assert np.all(np.diff(totals) <= 1e-8 * totals[0])


def test_labelled_sets_of_four():
    rng = np.random.default_rng(0)
    z = np.arange(24) % 2
    sets = np.unique([np.sort(rng.choice(24, 4, replace=False)) for _ in range(400)], axis=0)
    frame = pd.DataFrame(sets, columns=list("abcd"))
    frame["weight"] = (z[sets].sum(axis=1) % 4 == 0).astype(float)  # all four on one side
    model = gg.GraphClustering(2, loss="quadratic", random_state=0).fit(frame, pairs="listed", hyperedges=True)
    assert adjusted_rand_score(z, model.labels_) == 1
    assert model.sample(frame, pairs="listed").n_modes == 4
    assert model.predict([(0, 2, 4, 6), (0, 1, 2, 3)]) == pytest.approx([1, 0], abs=1e-6)


def test_degree_correction_predicts_with_degrees(tmp_path):
    graph = planted_graph(400, 2, inside=20, outside=2, exponent=2.3, seed=1)
    model = gg.GraphClustering(degree_correction=True, random_state=0).fit(graph.adjacency)
    assert model.n_clusters_ == 2
    degrees = graph.adjacency.sum(axis=1)
    hub, leaf = int(degrees.argmax()), int(degrees.argmin())
    others = [i for i in range(0, 50) if i not in (hub, leaf)]
    assert model.predict([(hub, i) for i in others]).sum() > 10 * model.predict([(leaf, i) for i in others]).sum()
    model.save(tmp_path / "graph.zip")
    again = gg.load(tmp_path / "graph.zip")
    np.testing.assert_allclose(again.predict([(0, 1), (hub, leaf)]), model.predict([(0, 1), (hub, leaf)]))


def test_starts_restarts_and_clone():
    spectral = gg.GraphClustering(3, start="mixed", n_init=3, random_state=0).fit(GRAPH.adjacency)
    assert adjusted_rand_score(GRAPH.labels, spectral.labels_) > 0.95
    given = clone(spectral).set_params(start=GRAPH.labels, n_init=1).fit(GRAPH.adjacency)
    assert adjusted_rand_score(given.labels_, spectral.labels_) > 0.95
    soft = gg.GraphClustering(3, solver="nodewise", start=spectral.posterior_).fit(GRAPH.adjacency)
    assert adjusted_rand_score(soft.labels_, spectral.labels_) > 0.95
    assert (spectral.fit_predict(GRAPH.adjacency) == spectral.labels_).all()


def test_another_graph_in_the_models_numbering():
    model = gg.GraphClustering(3, random_state=0).fit(GRAPH.adjacency)
    sample = model.sample(GRAPH.adjacency)
    assert model.posterior_.gibbs_loss(sample) * sample.n_observations == pytest.approx(model.objective_.losses[0])
    few = model.sample([(5, 9)], pairs="listed")
    assert few.n_observations == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 0}, "integer"),
        ({"n_clusters": "many"}, "integer"),
        ({"solver": "magic"}, "solver='magic'"),
        ({"start": "middle"}, "start='middle'"),
        ({"solver": Damped(backend="quantum")}, "backend='quantum'"),
        ({"loss": "elegance"}, "elegance"),
        ({"degree_correction": True, "solver": "nodewise"}, "degree_correction"),
        ({"degree_correction": True, "start": np.zeros(3, int)}, "must be"),
        ({"beta": -1.0}, "beta"),
        ({"solver": NodeWise(schedule="up")}, "schedule='up'"),
        ({"start": "soft"}, "needs a soft solver"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(options, words):
    with pytest.raises(gg.GinghamError, match=words):
        gg.GraphClustering(**options).fit(GRAPH.adjacency)


def test_bad_pairs_are_refused_with_a_sentence():
    model = gg.GraphClustering(2, random_state=0).fit(GRAPH.adjacency)
    with pytest.raises(gg.GinghamError, match="each row needs 2"):
        model.predict([(0, 1, 2)])
    weights = np.random.default_rng(0).random((60, 60))
    with pytest.raises(gg.GinghamError, match="different values"):
        gg.GraphClustering(2, loss="absolute").fit(np.triu(weights, 1) + np.triu(weights, 1).T)
    with pytest.raises(gg.GinghamError, match="nothing to cluster"):
        gg.GraphClustering(2, loss="quadratic").fit(np.ones((5, 5)) - np.eye(5), pairs=[(0, 1), (2, 3)])


@pytest.mark.parametrize("degree_correction", [False, True])
def test_ctrl_c_in_the_search_keeps_the_best_partition_so_far(degree_correction, monkeypatch):
    step, pressed = PartitionSearch.split_and_merge, []

    def press(*args, **more):
        pressed.append(1)
        press_ctrl_c()
        return step(*args, **more)

    monkeypatch.setattr(PartitionSearch, "split_and_merge", press)
    model = gg.GraphClustering(degree_correction=degree_correction, random_state=0)
    with pytest.warns(InterruptedWarning, match="best solution so far"):
        model.fit(GRAPH.adjacency)
    assert pressed == [1]
    assert model.interrupted_
    assert adjusted_rand_score(GRAPH.labels, model.labels_) > 0.9  # of the merged start
    assert np.isfinite(model.objective_.total)


@pytest.mark.parametrize("pressed_at", [0, 1, 2])
def test_a_search_that_was_interrupted_goes_on_where_it_was(pressed_at, tmp_path, monkeypatch):
    """Checkpoints are written in the search, too, and a resumed fit ends as if nothing had been."""
    step, steps = PartitionSearch.settle, []
    with monkeypatch.context() as patch:
        patch.setattr(PartitionSearch, "settle", lambda *args: steps.append(1) or step(*args))
        whole = gg.GraphClustering(degree_correction=False, random_state=0).fit(GRAPH.adjacency)
    n_steps = len(steps)
    assert n_steps > 2
    steps.clear()

    def counted(search, *args):
        steps.append(1)
        if len(steps) == pressed_at + 1:
            press_ctrl_c()
        return step(search, *args)

    path = tmp_path / "checkpoint"
    with monkeypatch.context() as patch, kept_in(path, "key", False, 0.0) as (checkpoint, _):
        patch.setattr(PartitionSearch, "settle", counted)
        with pytest.warns(InterruptedWarning):
            gg.GraphClustering(degree_correction=False, random_state=0).fit(GRAPH.adjacency, checkpoint=checkpoint)
    assert path.exists()
    steps.clear()
    with monkeypatch.context() as patch:
        patch.setattr(PartitionSearch, "settle", lambda *args: steps.append(1) or step(*args))
        with kept_in(path, "key", True, 0.0) as (checkpoint, _):
            again = gg.GraphClustering(degree_correction=False, random_state=0).fit(
                GRAPH.adjacency, checkpoint=checkpoint
            )
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert len(steps) == n_steps - pressed_at - 1  # what was done before is not done again
    assert again.objective_.total == whole.objective_.total


def test_weighted_hyperedges_predict_their_weights():
    """Triples within a cluster weigh more than others; the answers are the means of the blocks, by hand."""
    rng = np.random.default_rng(0)
    z = np.arange(18) % 2
    sets = np.array([sorted(rng.choice(18, 3, replace=False)) for _ in range(400)])
    sets = np.unique(sets, axis=0)
    inside = (z[sets] == z[sets[:, :1]]).all(axis=1)
    weights = np.where(inside, 5.0, 1.0) + 0.1 * rng.normal(size=len(sets))
    model = gg.GraphClustering(2, loss="quadratic", n_init=3, random_state=0)
    model.fit(sets, pairs="listed", hyperedges=True, weight=weights)
    assert adjusted_rand_score(z, model.labels_) == 1.0
    blocks = model.labels_[sets].sum(axis=1)  # how many of the three nodes are in cluster 1
    for ones in range(4):
        at = (*np.repeat([0, 1], [3 - ones, ones]),)
        assert model.answers_[at] == pytest.approx(weights[blocks == ones].mean(), abs=0.01)
