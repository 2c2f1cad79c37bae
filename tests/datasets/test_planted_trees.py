import numpy as np
import pytest

from gingham.datasets.planted import make_sequences, make_tree, told_apart
from gingham.errors import GinghamError


@pytest.mark.parametrize("kind", ["random", "latin", "parity"])
def test_labels_follow_the_planted_tables_except_for_noise(kind):
    data = make_tree(20000, n_items=30, n_clusters=4, n_inner=4, n_labels=4, noise=0.2, kind=kind, random_state=1)
    c = [leaf[column] for leaf, column in zip(data.leaves, data.X.T)]
    d = [table.reshape(4, 4)[c[2 * side], c[2 * side + 1]] for side, table in enumerate(data.merges)]
    wrong = np.mean(data.answers[d[0], d[1]] != data.y)
    assert wrong == pytest.approx(data.bayes_error, abs=0.01)


def test_clusters_of_random_tables_can_be_told_apart():
    data = make_tree(10, n_clusters=4, n_inner=3, random_state=5)
    assert all(told_apart(table.reshape(4, 4)) for table in data.merges)
    assert not told_apart(np.array([[0, 1], [0, 1]]))


def test_parity_says_nothing_in_pairs():
    data = make_tree(60000, n_items=4, n_clusters=4, n_inner=4, n_labels=4, noise=0.0, kind="parity", random_state=0)
    shares = np.zeros((4, 4, 4))
    np.add.at(shares, (data.X[:, 0], data.X[:, 2], data.y), 1.0)
    shares /= shares.sum(axis=2, keepdims=True)
    assert np.abs(shares - 0.25).max() < 0.03


def test_sequences_have_the_stated_density():
    data = make_sequences(4000, n_residues=3, n_clusters=3, n_inner=2, random_state=0)
    keys, at, counts = np.unique(data.X, axis=0, return_index=True, return_counts=True)
    assert np.exp(data.log_density[at]).sum() <= 1 + 1e-9
    often = counts >= 40
    assert often.any()
    np.testing.assert_allclose(counts[often] / 4000, np.exp(data.log_density[at][often]), rtol=0.5)
    assert keys.shape[1] == 4


def test_unknown_kind_is_named():
    with pytest.raises(GinghamError, match="spiral"):
        make_tree(10, kind="spiral")
