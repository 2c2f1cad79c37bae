"""A holdout on rows that the model has learned from is refused: after saving, for a part of them, in every family."""

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import gingham as gg
from gingham import RefusedCertificate, certify
from gingham.certificates.assumptions import given
from gingham.cli.tables.adapter import FitTask, TableSource, opened
from gingham.cli.tables.arguments import CertificateRequest, FitOptions
from gingham.cli.tables.kinds import kind_named
from gingham.data.fit_rows import numbers_of_rows

STARS = range(1, 6)
GRID = {"n_clusters": (3, 3), "beta": 5.0, "alphabet": STARS, "random_state": 0, "max_iter": 10}


def noise(n, seed=0, n_items=(40, 30)):
    """Labels that nobody can predict: what a fit has learned of them is false elsewhere."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, n) for size in n_items]), rng.integers(1, 6, n)


def joint(X, y):
    return gg.JointCoClustering({"a": 3, "b": 3}, alphabet={("a", "b"): STARS}, random_state=0, max_iter=10).fit(
        {("a", "b"): (X, y)}
    )


MODELS = {
    "regressor": lambda X, y: gg.CoClusteringRegressor(**GRID).fit(X, y),
    "classifier": lambda X, y: gg.CoClusteringClassifier(**GRID).fit(X, y),
    "committee": lambda X, y: gg.Committee(gg.CoClusteringRegressor(**GRID), n_members=2, random_state=0).fit(X, y),
    "cross-fitted": lambda X, y: gg.Committee(
        gg.CoClusteringRegressor(**GRID), n_members=4, cross=True, random_state=0
    ).fit(X, y),
    "bayesian": lambda X, y: gg.BayesianCoClustering(
        (3, 3), family="categorical", alphabet=STARS, random_state=0, max_iter=10
    ).fit(X, y),
    "tree": lambda X, y: gg.TreeCoClustering((3, 3), alphabet=STARS, beta=5.0, random_state=0, max_iter=10).fit(X, y),
    "joint": joint,
}


def held_out(model, X, y, **options):
    predictor = "median" if isinstance(model, gg.Committee) else "gibbs"
    if isinstance(model, gg.JointCoClustering):
        return model.certify({("a", "b"): (X, y)}, bound="holdout", predictor=predictor, **options)["a", "b"]
    return certify(model, X, y, bound="holdout", predictor=predictor, **options)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_was_saved_knows_any_part_of_its_rows(kind, tmp_path):
    X, y = noise(500)
    model = MODELS[kind](X, y)
    model.save(tmp_path / "model.gingham")
    new, labels = noise(300, seed=1)
    for known in (model, gg.load(tmp_path / "model.gingham")):
        for rows in (slice(None), slice(0, 500, 5), slice(3, 8)):
            with pytest.raises(RefusedCertificate, match="rows that the model was fitted on"):
                held_out(known, X[rows], y[rows])
        with pytest.raises(RefusedCertificate, match="rows that the model was fitted on"):
            held_out(known, np.vstack([X, new]), np.append(y, labels))
        certificate = held_out(known, new, labels)
        n_same = sum(tuple(row) in set(map(tuple, np.column_stack([X, y]))) for row in np.column_stack([new, labels]))
        assert n_same > 0
        assert certificate.assumptions[-1] == given("equal to rows of the fit", same=n_same)
        assert certificate.assumptions[-1].status == "given"


def test_what_was_compared_is_said(tmp_path):
    X, y = noise(500)
    model = MODELS["regressor"](X, y)
    new, labels = noise(300, seed=2)
    apart = ~np.isin(new @ [1000, 10] + labels, X @ [1000, 10] + y)
    certificate = held_out(model, new[apart], labels[apart])
    assert certificate.assumptions[-1] == gg.certificates.Assumption("no row of the fit", "checked")
    model._fit_rows = tuple(rows.smaller(5) for rows in model._fit_rows)  # as of a million rows
    assert held_out(model, new[apart], labels[apart]).assumptions[-1].facts["compared"] > 0
    few = next(
        row
        for row in np.flatnonzero(apart)
        if not model._fit_rows[0].met(model.sample(new[[row]], labels[[row]])).n_compared
    )
    assert held_out(model, new[[few]], labels[[few]]).assumptions[-1] == given("no row of the fit")
    model._fit_rows = ()  # as in a file of an earlier version
    model.save(tmp_path / "old.gingham")
    assert held_out(gg.load(tmp_path / "old.gingham"), X, y).assumptions[-1].status == "given"


@pytest.mark.parametrize("kind", ["regressor", "committee"])
def test_rows_of_the_fit_are_known_beside_ids_of_another_type(kind):
    """A text among ids that were numbers made other ids of all of them, and the rows of the fit could be held out."""
    X, y = noise(500)
    model = MODELS[kind](X, y).fold_in(np.array([["anna", X[0, 1]], ["anna", X[1, 1]]], dtype=object), y[:2])
    with pytest.raises(RefusedCertificate, match="fitted on"):
        held_out(model, X, y)


def test_rows_that_came_later_and_simplified_models_are_known_too():
    X, y = noise(500)
    more, labels = noise(400, seed=3, n_items=(60, 30))
    grown = MODELS["regressor"](X, y).fold_in(more, labels)
    committee = MODELS["committee"](X, y).fold_in(more, labels)
    board = gg.CoClusteringRegressor(**GRID)
    stream = board.partial_fit(X, y).partial_fit(more, labels)
    simple = gg.simplify(MODELS["regressor"](X, y), X, y, max_clusters=(2, 2))
    for model in (grown, committee, stream):
        for rows in ((X, y), (more, labels)):
            with pytest.raises(RefusedCertificate, match="fitted on"):
                held_out(model, *rows)
    with pytest.raises(RefusedCertificate, match="fitted on"):
        held_out(simple, X[:100], y[:100])
    assert simple._fit_rows[0].equals(MODELS["regressor"](X, y)._fit_rows[0])  # nothing new, and nothing twice
    elsewhere = gg.simplify(MODELS["regressor"](X, y), *noise(400, seed=4), max_clusters=(2, 2))
    for rows in ((X, y), noise(400, seed=4)):
        with pytest.raises(RefusedCertificate, match="fitted on"):
            held_out(elsewhere, rows[0][:200], rows[1][:200])


@pytest.mark.parametrize("kind", ["layered", "committee"])
def test_a_distilled_board_knows_the_rows_of_the_model_and_its_own(kind, tmp_path):
    # Its groups were found on the rows of the model: those are no more new to it than the rows it was distilled on.
    X, y = noise(500)
    others, labels = noise(400, seed=4)
    model = {
        "layered": gg.LayeredCoClusteringRegressor(alphabet=STARS, effort="fast", random_state=0),
        "committee": gg.Committee(gg.CoClusteringRegressor(**GRID, loss="quadratic"), n_members=2, random_state=0),
    }[kind].fit(X, y)
    board = gg.simplify(model, others, labels, max_clusters=(2, 2))
    board.save(tmp_path / "board.gingham")
    for known in (board, gg.load(tmp_path / "board.gingham"), gg.simplify(model, X, y, max_clusters=(2, 2))):
        with pytest.raises(RefusedCertificate, match="fitted on"):
            certify(known, X[:200], y[:200], bound="holdout", predictor="mean", alphabet=STARS)
    with pytest.raises(RefusedCertificate, match="fitted on"):
        certify(board, others[:200], labels[:200], bound="holdout", predictor="mean", alphabet=STARS)
    fresh, fresh_labels = noise(200, seed=9)
    assert certify(board, fresh, fresh_labels, bound="holdout", predictor="mean", alphabet=STARS).value > 0


def test_rows_on_disk_are_known(tmp_path):
    X, y = noise(600)
    paths = []
    for part in range(2):
        rows = np.flatnonzero(X[:, 0] % 2 == part)
        paths.append(str(tmp_path / f"{part}.parquet"))
        frame = {"user": X[rows, 0], "film": [f"f{i}" for i in X[rows, 1]], "stars": y[rows]}
        pl.DataFrame(frame).write_parquet(paths[-1])
    model = gg.CoClusteringRegressor(**GRID).fit(paths, "stars")
    films = np.array([f"f{i}" for i in X[:, 1]], dtype=object)
    with pytest.raises(RefusedCertificate, match="200 of the 200 rows"):
        held_out(model, np.column_stack([X[:200, 0].astype(object), films[:200]]), y[:200])


def test_pairs_of_a_graph_are_known_in_both_directions(tmp_path):
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((30, 30)) < 0.3, 1)
    model = gg.GraphClustering(3, loss="zero-one", alphabet=(0, 1), beta=3.0, random_state=0).fit(edges | edges.T)
    model.save(tmp_path / "graph.gingham")
    pairs = np.array(np.triu_indices(30, 1)).T[rng.permutation(435)[:60]]
    labels = edges[pairs[:, 0], pairs[:, 1]].astype(int)
    for ends in (pairs, pairs[:, ::-1]):
        with pytest.raises(RefusedCertificate, match="60 of the 60 rows"):
            certify(gg.load(tmp_path / "graph.gingham"), ends, labels, bound="holdout", predictor="mode")
    again = np.where(rng.random(60) < 0.2, 1 - labels, labels)  # observed once more
    assert certify(model, pairs, again, bound="holdout", predictor="mode").n_observations == 60


@pytest.mark.parametrize("kind", ["coclustering", "layered"])
def test_rows_set_aside_are_so_no_longer_once_the_model_has_seen_them(kind, tmp_path):
    X, y = noise(400, n_items=(30, 20))
    table = pl.DataFrame({"user": X[:, 0], "film": X[:, 1], "stars": y})
    options = FitOptions(("user", "film"), "stars", model=kind, clusters="2,2", alphabet="1..5", max_iter=None)
    fitted, _ = kind_named(kind).tables.fit(kind_named(kind), FitTask(table, options))
    fitted.save(tmp_path / "model.gingham")
    honest = gg.load(tmp_path / "model.gingham")
    assert len(opened(honest, TableSource(table)).tested.rows) == 400  # each once, in five folds
    learned = gg.load(tmp_path / "model.gingham").fold_in(table[["user", "film"]], table["stars"])
    learned.save(tmp_path / "learned.gingham")
    again = gg.load(tmp_path / "learned.gingham")
    beside = opened(again, TableSource(table))
    assert beside.tested is None
    assert len(beside.rows) == 400


def test_sparse_and_dense_rows_have_the_same_numbers():
    rng = np.random.default_rng(1)
    dense = rng.standard_normal((30, 8)) * (rng.random((30, 8)) < 0.3)
    dense[5] = 0
    whole = numbers_of_rows([dense, dense[:, :3]])
    assert np.array_equal(whole, numbers_of_rows([csr_array(dense), csr_array(dense[:, :3])]))
    assert len(np.unique(whole)) == len(np.unique(dense, axis=0))
    assert not np.isin(numbers_of_rows([dense[:, ::-1], dense[:, :3]]), np.delete(whole, 5)).any()


def test_a_rival_that_knows_the_hidden_items_is_refused():
    """What it has in its baskets it does not list again: any ranking would be proved better."""
    rng = np.random.default_rng(0)
    pairs = np.unique(np.column_stack([rng.integers(0, 60, 900), rng.integers(0, 20, 900)]), axis=0)
    hidden = rng.random(len(pairs)) < 0.2
    honest, rival = (gg.BasketRanker(random_state=0).fit(rows) for rows in (pairs[~hidden], pairs))
    with pytest.raises(RefusedCertificate, match="are in the baskets that the ranking given as against="):
        gg.certify_ranking(honest, pairs[hidden], at=5, against=rival)
    assert not gg.certify_ranking(rival, pairs[hidden], at=5, against=honest).better
    assert rival.has_taken(pairs[hidden][:, 0], pairs[hidden][:, 1]).all()
    assert not honest.has_taken([*pairs[hidden][:, 0], -1], [*pairs[hidden][:, 1], 0]).any()


def test_a_file_that_was_read_twice_is_not_twice_the_draws(tmp_path):
    """Copies would be counted as draws, and lie on both sides of every split."""
    X, y = noise(100)
    twice, labels = np.vstack([X, X]), np.append(y, y)
    model = gg.CoClusteringRegressor(**GRID).fit(X, y)
    cross = gg.Committee(gg.CoClusteringRegressor(**GRID), n_members=2, cross=True, random_state=0).fit(twice, labels)
    frame = pl.DataFrame({"user": twice[:, 0], "film": twice[:, 1], "stars": labels})
    grid = kind_named("coclustering")
    fitted, _ = grid.tables.fit(
        grid, FitTask(frame, FitOptions(("user", "film"), "stars", clusters="2,2", beta=1.0, alphabet="1..5"))
    )
    for attempt in (
        lambda: certify(model, twice, labels),
        lambda: certify(model.posterior_, twice, labels, bound="holdout"),
        lambda: certify(gg.CoClusteringRegressor(**GRID), twice, labels, bound="split"),
        lambda: gg.certify_progressive(gg.CoClusteringRegressor(**GRID), twice, labels),
        lambda: gg.certify(cross, bound="folds"),
        lambda: opened(fitted, TableSource(frame)).certificates(CertificateRequest()),
    ):
        with pytest.raises(RefusedCertificate, match="Every row occurs 2 times"):
            attempt()
    assert certify(model, X, y, sample_weight=np.full(100, 2)).n_observations == 200  # said to be draws
    with pytest.raises(RefusedCertificate, match="repeat others exactly"):
        certify(model, twice[:-1], labels[:-1])  # a single row in between does not hide the others
