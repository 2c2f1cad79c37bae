from itertools import product

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.certificates.prices import sequence_price
from gingham.data import Alphabet, Sample
from gingham.datasets.planted import make_sequences, make_tree
from gingham.models.tree.structure import concealed_by_groups

MERGES = ((0, 1, 3), (2, 3, 3))


@pytest.fixture(scope="module")
def planted():
    return make_tree(6000, n_items=30, n_clusters=4, n_inner=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(planted):
    model = gg.TreeCoClustering(4, MERGES, loss="zero-one", alphabet=range(4), random_state=0)
    return model.fit(planted.X[:5000], planted.y[:5000])


def test_planted_leaves_are_found_and_labels_predicted(planted, fitted):
    for truth, found in zip(planted.leaves, fitted.leaf_labels_):
        assert adjusted_rand_score(truth, found) > 0.95
    X, y = planted.X[5000:], planted.y[5000:]
    assert np.mean(fitted.predict(X) != y) < planted.bayes_error + 0.03
    assert fitted.score(X, y) > -0.2
    assert fitted.predict_distribution(X).sum(axis=1) == pytest.approx(1.0)


def test_certificate_covers_and_beats_the_papers_bound(planted, fitted):
    X, y = planted.X[:5000], planted.y[:5000]
    value = gg.certify(fitted, X, y).value
    assert -fitted.score(planted.X[5000:], planted.y[5000:]) < value < 1.0
    known = [mode.n_items for mode in fitted.posterior_.structure.columns()]
    assert value < gg.certify(fitted, X, y, bound="theorem-7", population=known).value


@pytest.mark.parametrize("start", ["spectral", "agreement", "random"])
def test_a_single_column_is_clustered_by_its_labels(start):
    X = np.repeat(np.arange(6), 20)[:, None]
    model = gg.TreeCoClustering(2, start=start, random_state=0).fit(X, X[:, 0] % 2)
    assert adjusted_rand_score(np.arange(6) % 2, model.leaf_labels_[0]) == 1.0


def test_only_a_density_scores_samples(fitted):
    assert hasattr(gg.TreeCoClustering(loss="density"), "score_samples")
    assert not hasattr(fitted, "score_samples")


def test_parities_are_found_through_agreements():
    data = make_tree(12000, n_items=24, n_clusters=2, n_inner=2, n_labels=2, noise=0.2, kind="parity", random_state=2)
    model = gg.TreeCoClustering(2, ((0, 1, 2), (2, 3, 2)), random_state=0).fit(data.X[:10000], data.y[:10000])
    assert -model.score(data.X[10000:], data.y[10000:]) < data.bayes_error + 0.03


def test_the_tree_is_chosen_by_certificate_and_paid_for():
    data = make_tree(8000, n_items=20, n_clusters=4, n_inner=3, n_labels=3, random_state=5)
    X = data.X[:, [0, 2, 1, 3]]  # true pairs are now (0, 2) and (1, 3)
    model = gg.TreeCoClustering(4, merges="auto", n_inner=3, alphabet=range(3), random_state=0).fit(X, data.y)
    assert {tuple(sorted(merge[:2])) for merge in model.merges_} == {(0, 2), (1, 3)}
    assert model.posterior_.structure.price > 0
    given = gg.TreeCoClustering(4, model.merges_, alphabet=range(3), random_state=0).fit(X, data.y)
    assert gg.certify(given, X, data.y).value < gg.certify(model, X, data.y).value


def halves(columns, answer):
    """Eight columns of six items in two clusters, merged in pairs and again in pairs, in shuffled order."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 6, (12_000, 8))
    at = [column % 2 for column in X.T]
    pairs = [at[j] & at[j + 1] if j % 4 else at[j] | at[j + 1] for j in range(0, 8, 2)]
    order = np.array([0, 4, 2, 6, 1, 5, 3, 7])
    return X[:, order], answer(pairs[0] ^ pairs[1], pairs[2] ^ pairs[3], rng), order


@pytest.mark.parametrize("most_cells", [4096, 64])  # a grid of the leaves is fitted first, or it is not
def test_more_columns_than_a_grid_could_take_are_paired_by_what_they_conceal(most_cells, monkeypatch):
    monkeypatch.setattr("gingham.models.tree.structure.MOST_CELLS", most_cells)
    X, y, order = halves(8, lambda a, b, rng: np.where(rng.random(len(a)) < 0.05, 1 - (a & b), a & b))
    model = gg.TreeCoClustering(2, merges="auto", n_inner=2, loss="zero-one", alphabet=(0, 1), random_state=0)
    found = {frozenset(order[list(merge[:2])].tolist()) for merge in model.fit(X, y).merges_ if max(merge[:2]) < 8}
    assert len(found) >= 3
    assert found <= {frozenset((j, j + 1)) for j in range(0, 8, 2)}
    assert model.posterior_.structure.price == pytest.approx(sequence_price(8, model.merges_))
    assert np.mean(model.predict(X) != y) < 0.1


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_what_groups_conceal_by_brute_force(n_groups):
    """What a grouping conceals is a conditional mutual information; the greedy groups find the planted ones."""
    rng = np.random.default_rng(0)
    cells, other = rng.integers(0, 6, (2, 4000)) % [[6], [2]]
    y = np.where(rng.random(4000) < 0.2, rng.integers(0, 3, 4000), (cells % 3 + other) % 3)
    sample = Sample.of([cells, other], y, alphabet=Alphabet.of(range(3), given=True))
    lost, groups = concealed_by_groups(sample, cells, 6, [(other, 2)], n_groups)

    def nats(at):
        table = np.bincount((at * 2 + other) * 3 + y, minlength=36).reshape(-1, 3).astype(float)
        free = np.maximum((table > 0).sum(axis=1) - 1, 0).sum()
        return xlogy(table.sum(1), table.sum(1)).sum() - xlogy(table, table).sum() + free / 2

    assert lost == pytest.approx(nats(groups[cells]) - nats(cells))
    best = min(nats(np.array(at)[cells]) for at in product(range(n_groups), repeat=6) if len(set(at)) == n_groups)
    assert nats(groups[cells]) == pytest.approx(best)
    if n_groups == 3:
        np.testing.assert_array_equal(groups, np.arange(6) % 3)


def test_the_tree_of_a_density_is_found_and_paid_for():
    rng = np.random.default_rng(0)
    root = rng.integers(0, 2, 4000)
    sides = np.stack([np.where(rng.random(4000) < 0.1, 1 - root, root) for _ in range(4)])
    at = np.stack([np.where(rng.random(4000) < 0.05, 1 - side, side) for side in sides for _ in range(2)])
    X = (2 * rng.integers(0, 3, at.shape) + at).T[:, [0, 4, 2, 6, 1, 5, 3, 7]]
    settings = {"leaves": 2, "n_inner": 2, "loss": "density", "beta": 1.0, "random_state": 0}
    chosen = gg.TreeCoClustering(merges="auto", **settings).fit(X[:3000])
    pairs = {frozenset(merge[:2]) for merge in chosen.merges_ if max(merge[:2]) < 8}
    assert pairs == {frozenset((j, j + 4)) for j in range(4)}
    given = gg.TreeCoClustering(merges=chosen.merges_, **settings).fit(X[:3000])
    neighbours = gg.TreeCoClustering(**settings).fit(X[:3000])
    assert chosen.score(X[3000:]) == pytest.approx(given.score(X[3000:]), abs=0.02)
    assert chosen.score(X[3000:]) > neighbours.score(X[3000:]) + 0.1
    values = [gg.certify(m, X[:3000], bound="density", population=(6,) * 8).value for m in (chosen, given)]
    assert values[0] > values[1]


def test_density_sums_to_one_and_finds_shared_clusters(tmp_path):
    data = make_sequences(4000, n_residues=4, n_clusters=3, n_inner=2, random_state=0)
    model = gg.TreeCoClustering(
        3, ((0, 1, 2), (2, 3, 2)), tied=((0, 1, 2, 3), (4, 5)), loss="density", n_init=3, random_state=0
    ).fit(data.X[:3000])
    everything = np.array(list(product(range(16), repeat=4)))
    assert np.exp(model.score_samples(everything)).sum() == pytest.approx(1.0)
    held_out = model.score(data.X[3000:])
    assert held_out <= data.log_density[3000:].mean() + 0.05
    counts = [np.bincount(data.X[:3000, j], minlength=16) + 1.0 for j in range(4)]
    independent = sum(np.log(c / c.sum())[data.X[3000:, j]] for j, c in enumerate(counts)).mean()
    assert held_out > independent + 0.2
    model.save(tmp_path / "density")
    np.testing.assert_array_equal(gg.load(tmp_path / "density").score_samples(data.X), model.score_samples(data.X))


def test_tied_leaves_number_their_items_together():
    rng = np.random.default_rng(0)
    label_values = np.array(list("abcdefgh"))
    half = np.arange(8) % 2
    codes = rng.integers(0, 8, (1500, 2))
    y = half[codes[:, 0]] ^ half[codes[:, 1]]
    model = gg.TreeCoClustering(2, (), tied="all", beta=3.0, start="spectral", random_state=0).fit(
        label_values[codes], y
    )
    assert len(model.assign_) == 1
    assert -model.score(label_values[codes], y) < 0.05
    with pytest.warns(gg.UnseenItemsWarning):
        model.predict([("a", "z")])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"merges": "spiral"}, "spiral"),
        ({"merges": "auto", "loss": "quadratic"}, "finitely many"),
        ({"tied": "some"}, "tied"),
        ({"start": "magic"}, "start"),
        ({"merges": ((0, 9, 2),)}, "names node 9"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(planted, settings, says):
    with pytest.raises(gg.GinghamError, match=says):
        gg.TreeCoClustering(2, **settings).fit(planted.X[:200], planted.y[:200])


def test_default_tree_pairs_neighbours_down_to_two_roots():
    X = np.random.default_rng(0).integers(0, 3, (60, 7))
    model = gg.TreeCoClustering(2, max_iter=3, random_state=0).fit(X, X[:, 0] % 2)
    assert model.answers_.ndim == 2
    assert sorted(child for merge in model.merges_ for child in merge[:-1]) == list(range(10))


def test_given_bounds_reach_the_cells():
    X = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
    y = [float(a % 2 + b % 2) for a, b, c in X]
    model = gg.TreeCoClustering(2, loss="quadratic", bounds=(-1.0, 6.0), n_init=1, max_iter=3, random_state=0)
    assert model.fit(X, y).posterior_.cells[0].bounds == gg.data.Bounds(-1.0, 6.0, given=True)
