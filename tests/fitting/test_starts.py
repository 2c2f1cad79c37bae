"""Starts: the same whatever the number of threads that libraries may use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus
from threadpoolctl import threadpool_info, threadpool_limits

from gingham import CoClusteringRegressor, GraphClustering
from gingham.cells import Absolute
from gingham.core.problem import Problem
from gingham.datasets import planted_graph
from gingham.engine import k_means, project_compiled  # noqa: F401  # compiled code asks numba for its threads
from gingham.engine.threads import thread_limit
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import make_start
from gingham.models.graph import partition
from problems import FIVE, random_sample


@pytest.mark.parametrize("start", ["means", "spectral", "singular", "graph"])
def test_starts_are_made_on_one_library_thread(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that libraries spread over threads depend on how many there are, and so would all that follows."""
    seen: set[int] = set()

    def look() -> None:
        seen.update(int(library["num_threads"]) for library in threadpool_info())

    class Watched(KMeans):
        def fit(self, *args: Any, **options: Any) -> Any:
            look()
            return super().fit(*args, **options)

    def watched(*args: Any, **options: Any) -> Any:
        look()
        return plus_plus(*args, **options)

    thread_limit()  # numba loads a library of its own when it is first asked, and only then
    plus_plus = k_means.plus_plus
    monkeypatch.setattr(k_means, "plus_plus", watched)
    monkeypatch.setattr(partition, "KMeans", Watched)
    with threadpool_limits(2):
        if start == "graph":
            GraphClustering(2, random_state=0).fit(planted_graph(40, 2, seed=0).adjacency)
        else:
            problem = Problem.grid(random_sample(np.random.default_rng(0), 2), Absolute(FIVE), 1.0)
            make_start(start, problem, (2, 2), np.random.default_rng(0))
    assert seen == {1}


def test_means_that_say_nothing_do_not_end_in_one_cluster() -> None:
    """Where all rows and columns have the same mean all cells have one median, and nothing would ever move."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 100, (20_000, 2))
    stars = 1 + (ids[:, 0] + ids[:, 1]) % 5
    stars = np.where(rng.random(len(ids)) < 0.3, rng.integers(1, 6, len(ids)), stars)
    model = CoClusteringRegressor(
        5, beta=0.3, alphabet=range(1, 6), start="means", solver=Projection(Constant()), random_state=0
    )
    one_cluster = 0.3 * np.abs(stars - np.median(stars)).sum()
    assert model.fit(ids, stars).objective_.total < 0.7 * one_cluster


@pytest.mark.parametrize(("n", "dim", "k"), [(5, 1, 2), (200, 4, 7), (3000, 3, 40), (30, 2, 30)])
def test_seeds_equal_those_of_scikit_learn(n: int, dim: int, k: int) -> None:
    rng = np.random.default_rng(n)
    points, weights = rng.normal(size=(n, dim)), rng.integers(0, 5, n) + 0.5
    for seed in range(5):
        own = k_means.plus_plus(points, weights, k, np.random.RandomState(seed))
        theirs, _ = kmeans_plusplus(points, k, sample_weight=weights, random_state=np.random.RandomState(seed))
        np.testing.assert_array_equal(own, theirs)
