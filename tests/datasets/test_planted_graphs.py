"""Planted graphs have the degrees and blocks that were asked for; the King file loads in both its forms."""

import numpy as np
import pytest

from gingham.datasets import load_king, planted_graph, similarities
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


def test_the_king_matrix_loads(tmp_path):
    square = np.array([[0, 10, 20, -1], [10, 0, 30, 40], [20, 30, 0, 50], [-1, 40, 50, 0]])
    table = tmp_path / "matrix"
    table.write_text("\n".join(" ".join(str(v) for v in row) for row in square))
    found = load_king(table)
    assert np.isnan(found[0, 3])
    assert found[1, 3] == 40
    triples = tmp_path / "triples"
    triples.write_text("".join(f"{i + 1} {j + 1} {square[i, j]}\n" for i in range(4) for j in range(i + 1, 4)))
    np.testing.assert_array_equal(load_king(triples), found)
    topology = tmp_path / "mking-t"
    settings = "topology G2Graph\nfailure_model NullFailureModel\n\n"
    nodes = "".join(f"node {i}\n" for i in range(1, 5))
    pairs = "".join(f"{i + 1},{j + 1} {square[i, j]}\n" for i in range(4) for j in range(i + 1, 4))
    topology.write_text(settings + nodes + pairs)
    np.testing.assert_array_equal(load_king(topology), found)
    weights = similarities(found)
    assert np.isnan(weights[0, 3])
    assert weights[0, 1] == pytest.approx(np.exp(-10 / 30))
    table.write_text("1 2\n3 x\n")
    with pytest.raises(GinghamError, match="not all numbers"):
        load_king(table)
    table.write_text("1 2\n3\n")
    with pytest.raises(GinghamError, match="square table"):
        load_king(table)
    with pytest.raises(GinghamError, match="no file"):
        load_king(tmp_path / "nowhere")
