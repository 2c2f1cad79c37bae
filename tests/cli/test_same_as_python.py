"""With nothing set and the same seed, gingham fit and the estimator in Python give the same model."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.cli.app import run
from gingham.cli.tables.kinds import KINDS
from model_kinds import write_tables

AXES = {
    "graph": ["--axes", "from,to"],
    "cooccurrence": ["--axes", "word,document"],
    "ranking": ["--axes", "document,word"],
}
TUPLES = ["--axes", "user,movie", "--label", "rating", "--holdout", "0"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("same"))


def fitted_here(kind, file):
    """The model in Python, nothing set but the seed."""
    table = pl.read_csv(file)
    if kind == "graph":
        return gg.GraphClustering(random_state=0).fit(table)
    if kind == "cooccurrence":
        _, words = np.unique(table["word"], return_inverse=True)
        _, documents = np.unique(table["document"], return_inverse=True)
        counts = np.zeros((words.max() + 1, documents.max() + 1))
        np.add.at(counts, (words, documents), 1)
        return gg.CoOccurrenceClustering(random_state=0).fit(counts)
    if kind == "ranking":
        return gg.BasketRanker(random_state=0).fit(table.select("document", "word"))
    X, y = table.select("user", "movie"), table["rating"].to_numpy()
    if kind == "joint":
        genres = pl.read_csv(file.with_name("genres.csv"))
        tables = {("user", "movie"): (X, y), ("movie", "genre"): (genres.select("movie", "genre"), genres["has"])}
        return gg.JointCoClustering(random_state=0).fit(tables)
    estimator = {
        "coclustering": gg.CoClusteringRegressor,
        "layered": gg.LayeredCoClusteringRegressor,
        "committee": gg.Committee,
        "bayesian": gg.BayesianCoClustering,
        "tree": gg.TreeCoClustering,
    }[kind]
    return estimator(random_state=0).fit(X, y)


def same(a, b):
    """Sizes, β and memberships of two models of one kind."""
    for name in ("beta_", "n_clusters_", "n_components_", "lower_bound_", "noise_", "information_"):
        assert hasattr(a, name) == hasattr(b, name), name
        if hasattr(a, name):
            one, other = getattr(a, name), getattr(b, name)
            assert one == other if isinstance(one, str) else np.asarray(one) == pytest.approx(np.asarray(other)), name
    for name in ("posterior_", "labels_"):
        one, other = vars(a).get(name), vars(b).get(name)
        if name == "posterior_" and one is not None:
            for q, p in zip(one.assign, other.assign, strict=True):
                np.testing.assert_allclose(q, p, atol=1e-12)
            assert type(one.cells[0]) is type(other.cells[0])
            np.testing.assert_allclose(one.answers[0], other.answers[0], atol=1e-12)
        elif one is not None:
            for mine, theirs in zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]:
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "survey"])  # with options of its own
def test_nothing_set(cases, kind, tmp_path):
    case, out = cases[kind], tmp_path / "m.gingham"
    options = [*AXES.get(kind, TUPLES), "--model", kind, "--seed", "0", "-q", "--out", str(out)]
    if kind == "joint":
        options += ["-r", f"movie,genre=has:{case.file.with_name('genres.csv')}"]
    assert run(["fit", str(case.file), *options]) == 0
    there, here = gg.load(out), fitted_here(kind, case.file)
    assert type(there) is type(here)
    if kind == "committee":
        assert len(there.members_) == len(here.members_)
        for a, b in zip(there.members_, here.members_):
            same(a, b)
    elif kind == "layered":
        X = pl.read_csv(case.file).select("user", "movie")
        np.testing.assert_allclose(there.predict(X), here.predict(X))
    elif kind == "ranking":
        assert there.selection_ == here.selection_
        np.testing.assert_array_equal(there.top(here.users_, 5), here.top(here.users_, 5))
    same(there, here)


@pytest.mark.parametrize("given", [["--clusters", "2,2"], ["--beta", "1"], ["--loss", "quadratic"], ["--starts", "2"]])
def test_what_is_said_is_all_that_differs(cases, given, tmp_path):
    case, out = cases["coclustering"], tmp_path / "m.gingham"
    assert run(["fit", str(case.file), *TUPLES, *given, "-q", "--out", str(out)]) == 0
    table = pl.read_csv(case.file)
    settings = {"--clusters": {"n_clusters": (2, 2)}, "--beta": {"beta": 1.0}, "--loss": {"loss": "quadratic"},
                "--starts": {"n_init": 2}}[given[0]]  # fmt: skip
    here = gg.CoClusteringRegressor(**settings, random_state=0).fit(table.select("user", "movie"), table["rating"])
    same(gg.load(out), here)


def test_measured_labels(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"user": rng.integers(20, size=900), "movie": rng.integers(15, size=900)})
    clean = (table["user"] % 2 == table["movie"] % 3).cast(pl.Float64).to_numpy()
    table = table.with_columns(rating=clean / 100 + rng.normal(0, 0.002, 900))
    file, out = tmp_path / "measured.csv", tmp_path / "m.gingham"
    table.write_csv(file)
    table = pl.read_csv(file)
    for more, settings in (([], {}), (["--clusters", "2,3"], {"n_clusters": (2, 3)})):
        assert run(["fit", str(file), *TUPLES, "--model", "coclustering", *more, "-q", "--out", str(out)]) == 0
        here = gg.CoClusteringRegressor(**settings, random_state=0).fit(table.select("user", "movie"), table["rating"])
        same(gg.load(out), here)
        assert type(here.posterior_.cells[0]).__name__ == "Quadratic"
        assert here.posterior_.cells[0].bounds is None, "what was read off the data is not given"
        assert here.score(table.select("user", "movie"), table["rating"]) > 0.5


@pytest.mark.parametrize("option", ["--starts", "--members"])
def test_an_option_that_a_kind_does_not_know_is_refused(gingham, cases, option, tmp_path):
    ran = gingham("fit", cases["layered"].file, *TUPLES, "--model", "layered", option, 3, "-o", tmp_path / "m")
    assert ran.code == 2
    assert f"no use for {option}" in ran.err
