"""The members of a ranking against the plain formulas they stand for, on tables small enough to write out."""

import numpy as np
import pytest
from scipy import sparse

from gingham.engine import place
from gingham.errors import GinghamError
from gingham.models.ranking import device, kernels
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.boards import FREE, SCALE, USER_WEIGHT, Board, compressed, features, fit_board, readable
from gingham.models.ranking.clusters import RARE, cluster_items
from gingham.models.ranking.factors import ALPHA, Factors, fit_factors
from gingham.models.ranking.fit import (
    Choice,
    Settings,
    _weigh,
    choose,
    climb,
    default_settings,
    fit_ranking,
    ndcg,
)
from gingham.models.ranking.item_ridge import USER_WEIGHT as USER_WEIGHT_OF_ITEMS
from gingham.models.ranking.item_ridge import primal, ridge_of
from gingham.models.ranking.walk import walk_scores, walks


def drawn(n=40, m=25, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    taken = rng.random((n, m)) < share * rng.random(m) * 2
    taken[0] = False  # somebody without a basket
    users, items = np.nonzero(taken)
    return Baskets.of(users, items, (n, m))


@pytest.fixture
def baskets():
    return drawn()


# baskets


def test_pairs_listed_twice_are_one():
    both = Baskets.of(np.array([1, 1, 0]), np.array([2, 2, 0]), (2, 3))
    assert both.taken.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert both.sizes.tolist() == [1, 1]
    assert both.popularity.tolist() == [1, 0, 1]


def test_hiding_divides_each_basket_and_loses_nothing(baskets):
    kept, hidden = baskets.hide(np.random.default_rng(1))
    assert np.array_equal((kept.taken + hidden.taken).toarray(), baskets.taken.toarray())
    assert np.array_equal(hidden.sizes, np.floor(0.2 * baskets.sizes))
    other = baskets.hide(np.random.default_rng(2))[1]
    assert not np.array_equal(other.taken.toarray(), hidden.taken.toarray())


def test_every_item_of_a_basket_is_hidden_equally_often():
    one = Baskets.of(np.zeros(5, int), np.arange(5), (1, 5))
    rng = np.random.default_rng(0)
    counts = sum(one.hide(rng)[1].taken.toarray()[0] for _ in range(2000))
    assert counts.sum() == 2000
    assert np.abs(counts - 400).max() < 5 * np.sqrt(400)


# kernels, each against the line its docstring states


def test_gram_is_the_product(baskets):
    weights = np.random.default_rng(0).random(baskets.n_users)
    rows = features(baskets, np.arange(baskets.n_items) % 4, 4)
    expected = (baskets.taken.T @ sparse.diags_array(weights) @ rows).toarray()
    assert kernels.grams(baskets.taken, rows, weights)[0] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("width", [1, 511, 512, 1030])
def test_times_is_the_product(baskets, width):
    table = np.random.default_rng(0).standard_normal((baskets.n_items, width)).astype(np.float32)
    assert kernels.times(baskets.taken, table) == pytest.approx(baskets.taken @ table, rel=1e-4, abs=1e-5)


def test_best_is_the_stable_sort():
    scores = np.random.default_rng(0).integers(0, 5, (30, 40)).astype(np.float32)  # many ties
    assert np.array_equal(kernels.best(scores, 7), np.argsort(-scores, axis=1, kind="stable")[:, :7])
    scores[3, 2:] = -np.inf
    assert kernels.best(scores, 4)[3, 2:].tolist() == [-1, -1]


def test_places_are_those_of_the_stable_sort(baskets):
    kept, hidden = baskets.hide(np.random.default_rng(0))
    scores = np.random.default_rng(0).integers(0, 4, (baskets.n_users, baskets.n_items)).astype(np.float32)
    found = iter(kernels.places(scores, kept.taken, hidden.taken))
    for u in range(baskets.n_users):
        mine = kept.taken[[u]].indices
        order = [i for i in np.argsort(-scores[u], kind="stable") if i not in mine]
        for i in hidden.taken[[u]].indices:
            assert next(found) == order.index(i)


def test_ndcg_by_hand():
    # Hidden items at places 1 and 3 of three open ones: (1 + 1/log2(4)) / (1 + 1/log2(3)).
    scores = np.array([[0.9, 0.5, 0.8, 0.7]], dtype=np.float32)
    seen = sparse.csr_array(np.array([[0, 0, 1, 0]], dtype=np.float32))
    hidden = sparse.csr_array(np.array([[1, 1, 0, 0]], dtype=np.float32))
    assert ndcg(scores, seen, hidden)[0] == pytest.approx(1.5 / (1 + 1 / np.log2(3)))
    assert ndcg(scores, seen, hidden, at=1)[0] == pytest.approx(1.0)


def test_threads_change_no_bit():
    import numba

    large = drawn(600, 300, 0.4, 3)
    table = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    start = np.zeros((600, 8), dtype=np.float32)

    def all_of_them():
        yield kernels.grams(large.taken, large.taken, large.power(-0.5))[0]
        yield kernels.times(large.taken, table)
        yield kernels.solve_rows(large.taken, table[:, :8].copy(), 1.0, 10.0, start, 20)
        yield kernels.best(table, 9)

    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = list(all_of_them())
    finally:
        numba.set_num_threads(before)
    assert all(np.array_equal(a, b) for a, b in zip(one, all_of_them()))


# factors


def test_rows_of_factors_solve_their_least_squares(baskets):
    items = np.random.default_rng(0).standard_normal((baskets.n_items, 6)).astype(np.float32)
    found = Factors(items, 3.0).users(baskets)
    y = items.astype(float)
    for u in range(baskets.n_users):
        mine = y[baskets.taken[[u]].indices]
        square = y.T @ y + ALPHA * mine.T @ mine + 3.0 * np.eye(6)
        assert found[u] == pytest.approx(np.linalg.solve(square, (1 + ALPHA) * mine.sum(axis=0)), rel=1e-3, abs=1e-4)


def test_shares_of_factors_add_up(baskets):
    factors = fit_factors(baskets, 5, 2.0, 6, np.random.default_rng(0))
    mine, targets = baskets.taken[[3]].indices, np.arange(baskets.n_items)
    shares = factors.shares(mine, targets)
    assert shares.shape == (len(mine), baskets.n_items)
    assert shares.sum(axis=0) == pytest.approx(factors.scores(baskets)[3], rel=1e-3, abs=1e-4)


def test_sweeps_of_factors_lower_the_objective(baskets):
    def objective(factors):
        x, y = factors.users(baskets).astype(float), factors.items.astype(float)
        taken = baskets.taken.toarray()
        loss = ((1 + ALPHA * taken) * (taken - x @ y.T) ** 2).sum()
        return loss + factors.penalty * ((x**2).sum() + (y**2).sum())

    values = [objective(fit_factors(baskets, 4, 2.0, sweeps, np.random.default_rng(0))) for sweeps in (1, 3, 9)]
    assert values[0] > values[1] >= values[2] - 1e-3


# clusters


def test_rare_items_share_one_cluster():
    popularity = np.array([9, 9, 9, 9, RARE - 1, 0])
    points = np.array([[0, 1], [0, 1.1], [5, 5], [5, 5.1], [0, 1], [0, 0]], dtype=np.float32)
    labels = cluster_items(points, popularity, 2, np.random.default_rng(0))
    assert labels[0] == labels[1] != labels[2] == labels[3]
    assert labels[4] == labels[5] not in (labels[0], labels[2])


@pytest.mark.parametrize("popularity", [[0, 0, 0], [9, 9, 9], [9, 0, 9]])
def test_clusters_are_numbered_without_gaps(popularity):
    labels = cluster_items(np.ones((3, 2), np.float32), np.array(popularity), 5, np.random.default_rng(0))
    assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))


# boards


def board_by_hand(baskets, labels, penalty):
    """Every target by its own ridge, its item really taken out of every basket."""
    taken = baskets.taken.toarray()
    sizes = np.maximum(taken.sum(axis=1), 1)
    weights = sizes**USER_WEIGHT
    weights /= weights.mean()
    k = labels.max() + 1
    found = np.empty((k + 1, baskets.n_items))
    for i in range(baskets.n_items):
        without = taken.copy()
        without[:, i] = 0
        counts = without @ np.eye(k)[labels] * (sizes**SCALE)[:, None]
        rows = np.column_stack([counts, np.ones(len(counts))])
        ridge = np.diag(np.append(np.full(k, penalty), FREE * penalty))
        found[:, i] = np.linalg.solve((rows.T * weights) @ rows + ridge, (rows.T * weights) @ taken[:, i])
    return found


def test_a_board_is_the_leave_one_out_ridge(baskets):
    labels = np.random.default_rng(0).integers(0, 5, baskets.n_items)
    labels[:5] = np.arange(5)
    board = fit_board(baskets, labels, 2.0)
    expected = board_by_hand(baskets, labels, 2.0)
    assert board.weights == pytest.approx(expected[:-1], rel=1e-3, abs=1e-5)
    assert board.intercept == pytest.approx(expected[-1], rel=1e-3, abs=1e-5)
    some = np.array([3, 17])
    assert fit_board(baskets, labels, 2.0, some).weights == pytest.approx(expected[:-1, some], rel=1e-3, abs=1e-5)


def test_without_leaving_the_item_out_the_board_would_differ(baskets):
    """The check above can fail: a plain ridge gives other weights."""
    labels = np.arange(baskets.n_items) % 5
    taken = baskets.taken.toarray()
    rows = features(baskets, labels, 5).toarray()
    weights = baskets.power(USER_WEIGHT) / baskets.power(USER_WEIGHT).mean()
    plain = np.linalg.solve((rows.T * weights) @ rows + 2 * np.eye(6), (rows.T * weights) @ taken)
    assert np.abs(plain[:-1] - board_by_hand(baskets, labels, 2.0)[:-1]).max() > 0.05


def test_a_readable_board_with_a_group_for_every_target_is_the_board(baskets):
    labels = np.arange(baskets.n_items) % 6
    board = fit_board(baskets, labels, 2.0)
    fine = readable(baskets, board, baskets.n_items, np.random.default_rng(0))
    assert fine.table[:, fine.target_group] * fine.size == pytest.approx(board.weights, rel=1e-3, abs=1e-5)
    coarse = readable(baskets, board, 3, np.random.default_rng(0))
    assert coarse.table.shape == (6, 3)


def test_a_compressed_board_with_a_group_for_every_item_does_what_the_table_does(baskets):
    pull = np.random.default_rng(0).normal(size=(baskets.n_items, baskets.n_items)).astype(np.float32)
    np.fill_diagonal(pull, 0.0)
    intercept = np.arange(baskets.n_items, dtype=np.float32)
    board = compressed(baskets, pull, intercept, baskets.n_items, np.random.default_rng(0))
    expected = (baskets.taken @ pull) * baskets.power(SCALE)[:, None] + intercept
    # all but the small ridge of the cells, which shrinks them towards 0
    error = board.scores(baskets) - expected
    assert np.sqrt((error**2).mean()) < 0.1 * (expected - intercept).std()


def test_a_table_made_of_blocks_is_compressed_to_its_blocks():
    rng = np.random.default_rng(1)
    m, k = 60, 4
    users, items = np.nonzero(rng.random((400, m)) < 0.15)
    baskets = Baskets.of(users, items, (400, m))
    rows, columns = rng.permutation(m) % k, rng.permutation(m) % k
    cells = rng.normal(size=(k, k))
    size = np.sqrt(baskets.popularity + 1.0)
    pull = (cells[rows][:, columns] * size).astype(np.float32)
    board = compressed(baskets, pull, np.zeros(m, np.float32), k, np.random.default_rng(0))
    assert len(set(zip(rows.tolist(), board.basket_group.tolist()))) == k  # the same groups, numbered otherwise
    assert len(set(zip(columns.tolist(), board.target_group.tolist()))) == k
    assert board.table[board.basket_group][:, board.target_group] == pytest.approx(cells[rows][:, columns], abs=0.1)


def test_scores_of_a_readable_board_take_an_item_out_of_its_own_basket():
    baskets = Baskets.of(np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 3))
    board = Board(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([[1.0, 2.0], [4.0, 8.0]], np.float32),
                  np.ones(3, np.float32), np.array([0.0, 0.0, 0.5], np.float32))  # fmt: skip
    scale = 2.0**SCALE
    assert board.scores(baskets)[0] == pytest.approx([scale * 1, scale * 2, scale * 4 + 0.5])
    assert board.scores(baskets)[1] == pytest.approx([1, 0, 2.5])


# item-to-item ridge


def ridge_by_hand(baskets, labels, strength, rho):
    """Every column by its own constrained least squares: coefficient of the item itself fixed at 0."""
    taken = baskets.taken.toarray()
    weights, ridge = baskets.power(USER_WEIGHT_OF_ITEMS), ridge_of(baskets, strength)
    members = np.eye(labels.max() + 1)[labels]
    root = np.diag(ridge**-0.5)
    prior = np.linalg.inv(root @ (np.eye(len(ridge)) + rho * members @ members.T) @ root)
    square = (taken.T * weights) @ taken
    found = np.zeros_like(square)
    for i in range(len(ridge)):
        others = np.arange(len(ridge)) != i
        found[others, i] = np.linalg.solve((square + prior)[np.ix_(others, others)], square[others, i])
    return found


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_the_item_ridge_solves_its_problem(baskets, rho):
    labels = np.arange(baskets.n_items) % 4
    expected = ridge_by_hand(baskets, labels, 2.0, rho)
    assert primal(baskets, labels, 2.0, rho, "compiled") == pytest.approx(expected, abs=2e-4)


def test_the_prior_changes_the_answer(baskets):
    labels = np.arange(baskets.n_items) % 4
    assert np.abs(ridge_by_hand(baskets, labels, 2.0, 0.7) - ridge_by_hand(baskets, labels, 2.0, 0.0)).max() > 0.005


def test_torch_makes_the_same_tables(baskets):
    pytest.importorskip("torch")
    labels = np.arange(baskets.n_items) % 4
    here, there = (primal(baskets, labels, 2.0, 0.4, backend) for backend in ("compiled", "torch"))
    assert there == pytest.approx(here, abs=1e-4)
    assert device.product_with(here, "torch")(baskets.taken) == pytest.approx(baskets.taken @ here, abs=1e-4)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_a_table_that_cannot_be_inverted_gets_a_sentence(backend):
    if backend == "torch":
        pytest.importorskip("torch")
    with pytest.raises(GinghamError, match="ridge is too small"):
        device.inverse(np.array([[1.0, 2.0], [2.0, 1.0]], np.float32), backend)


def test_an_unknown_backend_is_refused():
    with pytest.raises(GinghamError, match="backend='gpu' is unknown"):
        place.on_torch("gpu")


# together


def test_scores_are_the_weighted_sum_of_the_members_however_they_are_kept(baskets, monkeypatch):
    """One table items × items, or boards by themselves: the same scores, and shares that add up."""
    from gingham.models.ranking import fit

    choice = Choice(Settings(5, 2.0, 2.0, 0.4, 2.0, weights=(0.8, 0.0, 0.2, 0.0)), {}, 0)
    joined = fit_ranking(baskets, choice, 2, 4, np.random.default_rng(0), "compiled")[0]
    monkeypatch.setattr(fit, "MOST_ITEMS", 10)
    apart = fit_ranking(baskets, choice, 2, 4, np.random.default_rng(0), "compiled")[0]
    assert joined.pull is not None
    assert apart.pull is None
    assert len(apart.boards) == 2
    assert apart.scorer("compiled")(baskets) == pytest.approx(joined.scorer("compiled")(baskets), abs=1e-3)
    for form in (joined, apart):
        mine = baskets.taken[[7]].indices
        whole = form.scorer("compiled")(baskets.of_users(np.array([7])))[0]
        parts = form.shares(mine, np.arange(baskets.n_items))
        assert form.intercept + parts.sum(axis=0) == pytest.approx(whole, abs=1e-4)


def test_an_item_is_no_reason_for_itself(baskets):
    choice = Choice(Settings(5, weights=(0.5, 0.5, 0.0, 0.0)), {}, 0)
    ranking = fit_ranking(baskets, choice, 2, 4, np.random.default_rng(0), "compiled")[0]
    assert not np.diag(ranking.pull).any()


def test_sizes_grow_with_the_root_of_the_interactions():
    baskets = drawn(900, 400, 0.02, 1)
    assert default_settings(baskets).n_clusters == round(0.8 * np.sqrt(baskets.taken.nnz))
    assert default_settings(drawn(5, 3)).n_clusters >= 1


@pytest.mark.parametrize(("top", "found"), [(1.0, 1.0), (8.0, 8.0), (0.5, 0.5), (64.0, 16.0)])
def test_climbing_finds_the_top_near_the_start(top, found):
    best, tried = climb(lambda x: -abs(np.log(x / top)), 1.0, 2.0)
    assert best == found
    assert len(tried) <= 5


# random walks


def test_a_walk_is_three_steps_and_a_discount_for_popularity(baskets):
    x = baskets.taken.toarray().astype(float)
    popular = np.maximum(x.sum(0), 1)
    back, forth = (x / popular).T, x / np.maximum(x.sum(1, keepdims=True), 1)  # item → user → item
    expected = back @ forth / popular**0.7
    np.fill_diagonal(expected, 0)
    found = walk_scores(walks(baskets, "compiled"), baskets.popularity, 0.7)
    np.testing.assert_allclose(found, expected * found.sum() / expected.sum(), rtol=1e-5)
    assert baskets.popularity @ found.sum(1) == pytest.approx(baskets.popularity.sum(), rel=1e-5)


def test_the_walk_takes_part_in_the_pull(baskets):
    settings = Settings(n_clusters=5, walk=0.3, weights=(0.0, 0.0, 0.0, 1.0))
    choice = Choice(settings, {}, 0)
    ranking, _, _ = fit_ranking(baskets, choice, 1, 4, np.random.default_rng(0), "compiled")
    table = walk_scores(walks(baskets, "compiled"), baskets.popularity, 0.3) / baskets.power(SCALE).mean()
    np.testing.assert_allclose(ranking.pull, table, rtol=1e-5)


def test_one_member_that_ranks_clearly_better_is_where_the_search_begins():
    rng = np.random.default_rng(0)
    n, m = 400, 30
    wanted = rng.integers(0, m, n)
    good = rng.normal(size=(n, m))
    good[np.arange(n), wanted] += 3
    bad = 20 * rng.normal(size=(n, m))  # so loud that an even mixture with it is worth little
    hidden = Baskets.of(np.arange(n), wanted, (n, m)).taken
    seen = Baskets.of(np.zeros(0, int), np.zeros(0, int), (n, m)).taken
    weights, tried = _weigh({"boards": bad, "items": bad[::-1], "walk": good}, lambda s: ndcg(s, seen, hidden))
    assert weights[3] >= 0.9
    assert tried["0 0 10"] > tried["5 5 0"]


def test_the_pilot_never_sees_the_items_that_judge_it(monkeypatch):
    """Penalties are compared by lists that follow from what stayed visible; later, other items are hidden."""
    baskets, told, users = drawn(200, 40, 0.5), [], Factors.users
    kept, hidden = baskets.hide(np.random.default_rng(3))
    monkeypatch.setattr(Factors, "users", lambda self, some: told.append(some.taken) or users(self, some))
    choose(baskets, ("factors",), np.random.default_rng(3), "compiled")
    rows = np.flatnonzero(hidden.sizes > 0)  # so few users are all asked
    assert all((one != kept.taken[rows]).nnz == 0 for one in told[:3])
