"""Planted graphs have the degrees and blocks that were asked for."""

import numpy as np
import pytest

from gingham.datasets import planted_graph
from gingham.errors import GinghamError


@pytest.mark.parametrize("kind", ["assortative", "ring"])
def test_degrees_and_blocks(kind):
    graph = planted_graph(3000, 5, inside=16, outside=4, kind=kind, seed=0)
    adjacency = graph.adjacency
    assert (adjacency != adjacency.T).nnz == 0
    assert adjacency.diagonal().sum() == 0
    assert set(adjacency.data) == {1.0}
    one_hot = np.eye(5)[graph.labels]
    blocks = one_hot.T @ (adjacency @ one_hot) / one_hot.sum(axis=0)[:, None]
    own, next_ = np.diag(blocks).mean(), np.mean([blocks[a, (a + 1) % 5] for a in range(5)])
    if kind == "assortative":
        assert own == pytest.approx(16, rel=0.1)
        assert next_ == pytest.approx(1, rel=0.3)
    else:
        assert own < 1.5
        assert next_ == pytest.approx(8, rel=0.15)


def test_power_law_degrees():
    plain = planted_graph(2000, 4, seed=0).adjacency.sum(axis=1)
    hubs = planted_graph(2000, 4, seed=0, exponent=2.2).adjacency.sum(axis=1)
    assert hubs.max() > 4 * plain.max()
    assert np.median(hubs) < np.median(plain)


def test_a_seed_is_a_graph():
    same = [planted_graph(200, 3, seed=4).adjacency for _ in range(2)]
    assert (same[0] != same[1]).nnz == 0
    with pytest.raises(GinghamError, match="kind='star'"):
        planted_graph(kind="star")
