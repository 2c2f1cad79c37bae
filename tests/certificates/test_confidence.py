"""δ and the number of candidates go through one check at every door, before any work is done."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gingham as gg
from gingham.certificates import Progressive, equation15, papers
from gingham.certificates.bounds import checked_delta
from gingham.certificates.clusters import certify_clusters
from gingham.data.graphs import from_graph

NO_DELTA = [0, 1, 1.5, -0.1, float("nan"), float("inf"), None, "0.05", True]
STARS = range(1, 6)
RNG = np.random.default_rng(0)
X, GRAPH = RNG.integers(0, 6, (120, 2)), np.triu(RNG.integers(0, 2, (8, 8)), 1)
Y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
GRAPH = GRAPH + GRAPH.T


@cache
def grid():
    return gg.CoClusteringRegressor(2, alphabet=STARS, random_state=0, max_iter=5).fit(X, Y)


@cache
def cross():
    return gg.Committee(grid(), n_members=2, cross=True, random_state=0).fit(X, Y)


@cache
def counted():
    return gg.CoOccurrenceClustering((2, 2), random_state=0).fit(1 + GRAPH)


@cache
def joint():
    return gg.JointCoClustering(n_clusters={"a": 2, "b": 2}, alphabet={("a", "b"): STARS}).fit({("a", "b"): (X, Y)})


@cache
def features():
    return gg.InformationClustering(2, random_state=0).fit(RNG.integers(0, 2, (20, 6)))


@cache
def explanatory():
    return gg.ExplanatoryClustering().fit([RNG.random((30, 3)) < 0.5, RNG.random((30, 3)) < 0.5])


HALF = np.array([0.5, 0.5])
DOORS = {
    "certify": lambda d: gg.certify(grid(), X, Y, delta=d),
    "both sides": lambda d: gg.certify(grid(), X, Y, delta=d, lower=True),
    "holdout": lambda d: gg.certify(grid(), X[1:], Y[1:], bound="holdout", delta=d),
    "split": lambda d: gg.certify(grid(), X, Y, bound="split", delta=d),
    "committee": lambda d: gg.certify(cross(), X, Y, delta=d),
    "committee on other rows": lambda d: gg.certify(cross(), X[1:], Y[1:], bound="holdout", predictor="mean", delta=d),
    "folds": lambda d: gg.certify(cross(), y=Y, alphabet=STARS, delta=d, bound="folds"),
    "labels": lambda d: gg.certify([{i: i % 2 for i in range(6)}] * 2, X, Y, alphabet=STARS, delta=d),
    "partition": lambda d: gg.certify(np.arange(8) % 2, GRAPH, alphabet=(0, 1), delta=d),
    "gain": lambda d: gg.certify(grid(), X, Y, delta=d, bound="gain"),
    "density": lambda d: gg.certify(grid(), X, delta=d, population=(20, 20), bound="density"),
    "counts": lambda d: counted().certify(1 + GRAPH, d, GRAPH.shape),
    "predictions": lambda d: gg.certify_predictions(Y, Y, alphabet=STARS, delta=d),
    "betting": lambda d: gg.certify_predictions(Y, Y, alphabet=STARS, delta=d, method="betting"),
    "progressive": lambda d: gg.certify_progressive(grid(), X, Y, delta=d),
    "stream of losses": lambda d: Progressive(nu=2.0, delta=d),
    "ranking": lambda d: gg.certify_ranking({u: [0, 1] for u in range(6)}, np.unique(X, axis=0), at=2, delta=d),
    "joint": lambda d: joint().certify({("a", "b"): (X, Y)}, d),
    "features": lambda d: features().certify(RNG.integers(0, 2, (20, 5)), d),
    "papers of features": lambda d: features().references(d),
    "views": lambda d: explanatory().certify(delta=d),
    "clusters": lambda d: certify_clusters(HALF, HALF, HALF, HALF, HALF, 20, d),
    "path": lambda d: gg.beta_path(grid(), X, Y, [1.0], cv=0, delta=d),
    "appendix B": lambda d: papers.quantised(0.2, 3.0, 4, 50, d),
    "P4": lambda d: papers.p4_theorem1(30, 2, 2, d),
}


def test_there_is_no_other_door():
    """Every public function that takes δ is among them."""
    here = {
        "certify", "certify_predictions", "certify_progressive", "certify_ranking", "beta_path",
    }  # fmt: skip
    found = set()
    for name in gg.__all__:
        value = getattr(gg, name)
        code = getattr(value, "__code__", None) or getattr(getattr(value, "__init__", None), "__code__", None)
        if code is not None and "delta" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            found.add(name)
    results = {"RankingCertificate", "Certificate"}  # what a door returns
    assert found - results <= here


@pytest.mark.parametrize("door", DOORS)
def test_delta_is_checked_at_every_door(door):
    for delta in NO_DELTA:
        if door == "path" and delta == 0 and delta is not False:
            continue  # a path without certificates
        with pytest.raises(gg.GinghamError, match="strictly between 0 and 1"):
            DOORS[door](delta)
    assert DOORS[door](np.float32(0.1)) is not None


@pytest.mark.parametrize("delta", NO_DELTA)
def test_delta_is_a_number_between_0_and_1(delta):
    with pytest.raises(gg.GinghamError, match="strictly between 0 and 1"):
        checked_delta(delta)


def test_of_eq_15():
    graph = gg.GraphClustering(2, loss="quadratic", bounds=(0, 1), random_state=0).fit(GRAPH)
    with pytest.raises(gg.GinghamError, match="strictly between 0 and 1"):
        equation15(graph.posterior_, from_graph(GRAPH), 1.5)


CANDIDATES = {
    "holdout": lambda k: gg.certify(grid(), X[1:], Y[1:], bound="holdout", candidates=k),
    "split": lambda k: gg.certify(grid(), X, Y, bound="split", candidates=k),
    "split prior": lambda k: gg.certify(grid(), X, Y, bound="split", method="prior", candidates=k),
    "predictions": lambda k: gg.certify_predictions(Y, Y, alphabet=STARS, candidates=k),
    "betting": lambda k: gg.certify_predictions(Y, Y, alphabet=STARS, candidates=k, method="betting"),
    "progressive": lambda k: gg.certify_progressive(grid(), X, Y, candidates=k),
    "stream of losses": lambda k: Progressive(nu=2.0, candidates=k),
    "ranking": lambda k: gg.certify_ranking({u: [0, 1] for u in range(6)}, np.unique(X, axis=0), at=2, candidates=k),
}


@pytest.mark.parametrize("door", CANDIDATES)
def test_candidates_are_counted_in_whole_numbers(door):
    for candidates in (0, -1, 1.5, float("nan"), True, None, "2"):
        with pytest.raises(gg.GinghamError, match="candidates"):
            CANDIDATES[door](candidates)
    assert CANDIDATES[door](np.int64(2)) is not None
