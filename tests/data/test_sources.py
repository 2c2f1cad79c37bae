"""One door for rows wherever they are kept: the same fit from memory, files, streams, DuckDB and PostgreSQL."""

import os
import shutil
import subprocess
import tempfile
from operator import attrgetter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.data import databases, sources
from gingham.data.sample import Coded, Sample, marked
from gingham.engine import files

pytestmark = pytest.mark.filterwarnings("ignore")  # advice about small tables


def table(n=3000):
    rng = np.random.default_rng(0)
    viewer, movie = rng.integers(0, 60, n), rng.integers(0, 40, n)
    stars = 1 + (viewer % 3 + movie % 2 + (rng.random(n) < 0.2)) % 5
    columns = {"viewer": [f"v{i:02d}" for i in viewer], "movie": movie, "stars": stars, "n": rng.integers(1, 3, n)}
    return pl.DataFrame(columns).unique(["viewer", "movie"], maintain_order=True)


RATINGS = table()
IDS = ["viewer", "movie"]
MODEL = {"n_clusters": 3, "beta": 0.5, "alphabet": range(1, 6), "offsets": False, "max_iter": 20, "random_state": 0}


def fitted(source, *named):
    return gg.CoClusteringRegressor(**MODEL).fit(source, *(named or ("stars", "n")))


@pytest.fixture(scope="module")
def expected():
    return gg.CoClusteringRegressor(**MODEL).fit(RATINGS[IDS], RATINGS["stars"], RATINGS["n"].to_numpy())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("ratings")
    RATINGS.write_csv(found / "all.csv")
    RATINGS.write_csv(found / "all.tsv", separator="\t")
    RATINGS.write_csv(found / "semicolons.csv", separator=";")
    RATINGS.write_ndjson(found / "all.ndjson")
    RATINGS.write_ipc(found / "all.arrow")
    (found / "parts").mkdir()
    for k in range(3):
        RATINGS[800 * k : 800 * (k + 1)].write_parquet(found / "parts" / f"{k}.parquet")
    return found


@pytest.fixture(params=["memory", "files"])
def place(request, monkeypatch):
    """Where rows go: what memory does not hold is mapped, in blocks that are smaller than the table."""
    if request.param == "files":
        monkeypatch.setattr(sources, "ROW", 2**62)
        monkeypatch.setattr(sources, "AT_ONCE", 0)
        monkeypatch.setattr(sources, "BATCH", 500)
        monkeypatch.setattr(files, "BLOCK", 700)
    return "files" if request.param == "files" else "cores"


def assert_same(found, expected):
    for a, b in zip(found.assign_, expected.assign_):
        np.testing.assert_array_equal(a, b)
    assert found.items_[0].tolist() == expected.items_[0].tolist()
    assert found.feature_names_in_.tolist() == IDS


KINDS = {
    "csv": lambda folder: folder / "all.csv",
    "semicolons": lambda folder: folder / "semicolons.csv",
    "tsv": lambda folder: str(folder / "all.tsv"),
    "ndjson": lambda folder: folder / "all.ndjson",
    "arrow": lambda folder: folder / "all.arrow",
    "paths": lambda folder: sorted((folder / "parts").iterdir()),
    "folder": lambda folder: folder / "parts",
    "pattern": lambda folder: f"{folder}/parts/*.parquet",
    "lazy frame": lambda folder: pl.scan_csv(folder / "all.csv"),
    "stream": lambda folder: RATINGS.to_arrow().to_reader(500),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_fit_in_memory(kind, place, folder, expected):
    found = fitted(KINDS[kind](folder))
    assert_same(found, expected)
    assert found.engine_ == place


def test_columns_of_a_frame_may_be_named(expected):
    assert_same(fitted(RATINGS), expected)


FAMILIES = {
    "quadratic": (gg.CoClusteringRegressor(3, loss="quadratic"), "assign_"),
    "hard moves": (gg.CoClusteringRegressor(3, solver="sweep"), "assign_"),
    "nothing set": (gg.CoClusteringRegressor(), "assign_"),
    "classes": (gg.CoClusteringClassifier(3), "assign_"),
    "committee": (gg.Committee(gg.CoClusteringRegressor(3), 3), "members_"),
    "layers": (gg.LayeredCoClusteringRegressor(effort="fast"), "draws_.cells"),
    "tree": (gg.TreeCoClustering(), "assign_"),
    "bayesian": (gg.BayesianCoClustering(3), "assign_"),
    "bayesian, shared": (gg.BayesianCoClustering(3, approximation="shared", concentration=1.0), "assign_"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_so_does_every_family(family, place, folder):
    model, attribute = FAMILIES[family]
    value = attrgetter(attribute) if family != "committee" else lambda fit: [q for m in fit.members_ for q in m.assign_]
    expected = clone(model).set_params(random_state=0).fit(RATINGS[IDS], RATINGS["stars"].to_numpy())
    found = clone(model).set_params(random_state=0).fit(pl.scan_csv(folder / "all.csv").drop("n"), "stars")
    for a, b in zip(value(found), value(expected)):
        np.testing.assert_array_equal(a, b)
    assert found.engine_ == place


def test_so_do_rankings(place, folder):
    some = pl.col("stars") > 2
    expected = gg.BasketRanker(random_state=0).fit(RATINGS.filter(some)[IDS])
    found = gg.BasketRanker(random_state=0).fit(pl.scan_csv(folder / "all.csv").filter(some).select(IDS))
    np.testing.assert_array_equal(found.item_factors_, expected.item_factors_)


def test_so_do_counts_graphs_and_relations(place, folder):
    rows = pl.scan_csv(folder / "all.csv")
    counts = gg.CoOccurrenceClustering(3, random_state=0).fit(rows.select(*IDS, "n"), weight="n")
    expected = gg.CoOccurrenceClustering(3, random_state=0).fit(RATINGS, axes=IDS, weight="n")
    assert [a.tolist() for a in counts.labels_] == [a.tolist() for a in expected.labels_]
    nodes = [pl.col("viewer"), pl.col("movie").cast(pl.String)]
    graph = gg.GraphClustering(3, random_state=0).fit(rows.select(nodes))
    assert graph.labels_.tolist() == gg.GraphClustering(3, random_state=0).fit(RATINGS.select(nodes)).labels_.tolist()
    relation = ("viewer", "movie")
    joint = gg.JointCoClustering(random_state=0).fit({relation: (rows.select(*IDS, "stars"), "stars")})
    wanted = gg.JointCoClustering(random_state=0).fit({relation: (RATINGS[IDS], RATINGS["stars"].to_numpy())})
    for a, b in zip(joint.posterior_.assign, wanted.posterior_.assign):
        np.testing.assert_array_equal(a, b)
    assert joint.engine_ == place


def test_mapped_columns_vanish_with_the_model(place, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = fitted(folder / "all.csv")
    assert model._data.in_file == (place == "files")
    assert list(tmp_path.iterdir()) == []


def test_what_is_made_of_mapped_columns_is_mapped(monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 700)
    chunks = iter([RATINGS[:1000], RATINGS[1000:]])
    rows = sources.spilled(chunks, "stars", "n")
    sample = Sample.of(rows.X.columns, rows.y, rows.weight, alphabet=gg.data.Alphabet.of(range(1, 6), given=True))
    grouped = sample.rows(1, gg.data.OneHot(5))
    for array in (*sample.codes, sample.labels, sample.label_codes, sample.weights, grouped.others, grouped.labels):
        assert files.in_file(array)
        assert type(array) is np.ndarray
    assert not files.in_file(sample.few(50, np.random.default_rng(0)).codes[0])
    assert np.asarray(rows.X.columns[0]).tolist() == RATINGS["viewer"].to_list()
    assert rows.X.columns[0][np.array([1, 0])].codes.tolist() == sample.codes[0][[1, 0]].tolist()


def test_label_codes_of_groups_follow_from_their_begins():
    begin = np.array([0, 0, 3, 3, 4, 9, 9])
    whole = np.repeat(np.arange(6) % 2, np.diff(begin))
    for start in range(9):
        for stop in range(start, 10):
            assert marked(begin, 2, slice(start, stop)).tolist() == whole[start:stop].tolist()


def test_memory_limits_are_heard(monkeypatch):
    import resource

    free = files.available_memory()
    assert 0 < free < 2**50
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**40 if which == resource.RLIMIT_AS else 2**30, -1))
    assert files.available_memory() < min(free, 2**30)


def wrong_sources(folder):
    lost = folder / "lost.csv"
    RATINGS.with_columns(movie=pl.when(pl.col("movie") > 3).then("movie")).write_ndjson(folder / "nulls.ndjson")
    return (
        (lost, ("stars",), r"There is no file .*lost\.csv"),
        (f"{folder}/*.feather", ("stars",), "names no files"),
        (folder / "all.csv", ("rating",), "There is no column 'rating'; the table has 'viewer', 'movie', 'stars', 'n'"),
        (folder / "all.csv", ("stars", "m"), "There is no column 'm'"),
        (folder / "all.csv", (RATINGS["stars"],), "give the column"),
        (
            [folder / "all.csv", "mysql://host/db?query=select 1"],
            ("stars",),
            "mysql:// is not one of",
        ),
        (folder / "nulls.ndjson", ("stars", "n"), r"'movie' has (a missing id|nothing).* in row"),
    )


@pytest.mark.parametrize("number", range(7))
def test_what_cannot_be_read_gets_a_sentence(number, place, folder):
    source, named, words = wrong_sources(folder)[number]
    with pytest.raises(gg.GinghamError, match=words):
        fitted(source, *named)


def test_a_file_that_changes_while_it_is_read_is_refused(place, folder, tmp_path):
    path = tmp_path / "growing.csv"
    shutil.copy(folder / "all.csv", path)
    chunks = sources.chunks_of(path, {"stars", "n"})
    next(chunks)
    with path.open("a") as file:
        file.write("v99,1,5,1\n")
    with pytest.raises(gg.GinghamError, match="changed while it was read"):
        list(chunks)


# databases


@pytest.fixture(scope="module")
def duckdb_file(folder):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    path = folder / "shop.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", RATINGS.to_arrow())
        connection.execute("create table ratings as select * from frame")
    return path


class PostgreSQL:
    """A server of our own on a socket in a folder, run by somebody who is not root."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.who = {"user": "nobody"} if os.getuid() == 0 else {}
        if self.who:
            shutil.chown(folder, "nobody")
        self.run("initdb", "-D", self.folder / "data", "-U", "gingham", "-A", "trust", "--no-sync")
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-o", f"-k {folder} -c listen_addresses= -F", "start")
        self.address = f"postgresql://gingham@/postgres?host={folder}"

    def run(self, *command):
        subprocess.run(
            command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.who
        )

    def stop(self):
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def postgresql():
    driver = pytest.importorskip(
        "adbc_driver_postgresql.dbapi", reason="the ADBC driver of PostgreSQL is not installed"
    )
    if shutil.which("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        server = PostgreSQL(folder)
        with driver.connect(server.address) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("ratings", RATINGS.to_arrow())
            connection.commit()
        yield server
        server.stop()


def test_duckdb_gives_the_fit_in_memory(duckdb_file, place, folder, expected):
    for address in (
        f"duckdb:///{duckdb_file}?query=select * from ratings",
        f"duckdb:///{duckdb_file}?query=from%20ratings",
        f"duckdb://?query=from '{folder}/parts/*.parquet'",
    ):
        found = fitted(address)
        assert_same(found, expected)
        assert found.engine_ == place
    import duckdb

    with duckdb.connect(str(duckdb_file)) as connection:  # a relation is a stream
        assert_same(fitted(connection.sql("from ratings")), expected)


def test_postgresql_gives_the_fit_in_memory(postgresql, place, expected):
    found = fitted(f"{postgresql.address}&query=select * from ratings")
    assert_same(found, expected)
    assert found.engine_ == place


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("duckdb:///{duckdb}", "names no rows: add a query"),
        ("duckdb:///{duckdb}?query=select * from rating", "failed: Catalog Error: Table with name rating"),
        ("duckdb:///{duckdb}?query=select viewer, film from ratings", r'failed: Binder Error: .*"film" not found'),
        ("duckdb:///{duckdb}?query=select viewer, movie from ratings", "There is no column 'stars'"),
        ("duckdb:///{duckdb}?query=select * from ratings where n > 9", "finds no rows"),
        ("duckdb:///{duckdb}?query=delete from ratings", "failed: .*read-only"),
        ("duckdb:///{duckdb}.gone?query=from ratings", r"There is no database file .*shop\.db\.gone"),
        ("duckdb:///{csv}?query=from ratings", "is not a DuckDB database"),
    ],
)
def test_what_duckdb_refuses_gets_a_sentence(where, words, duckdb_file, folder):
    with pytest.raises(gg.GinghamError, match=words):
        fitted(where.format(duckdb=duckdb_file, csv=folder / "all.csv"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select * from rating", 'failed: .*relation "rating" does not exist'),
        ("select viewer, film from ratings", 'failed: .*column "film" does not exist'),
        ("select viewer, movie, n from ratings", "There is no column 'stars'"),
        ("select * from ratings where n > 9", "finds no rows"),
        ("delete from ratings returning *", "failed: .*read-only transaction"),
    ],
)
def test_what_postgresql_refuses_gets_a_sentence(query, words, postgresql):
    with pytest.raises(gg.GinghamError, match=words):
        fitted(f"{postgresql.address}&query={query}")


def test_a_server_that_is_not_there_gets_a_sentence_without_the_password():
    pytest.importorskip("adbc_driver_postgresql", reason="the ADBC driver of PostgreSQL is not installed")
    with pytest.raises(gg.GinghamError, match=r"postgresql://ann:\*\*\*@localhost:1/db cannot be reached") as refusal:
        fitted("postgresql://ann:secret@localhost:1/db?query=select 1")
    assert "secret" not in str(refusal.value)


def test_rows_are_those_that_stood_when_the_query_began(postgresql, monkeypatch):
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi")
    many = "select viewer, movie, stars, n from ratings, generate_series(1, 200)"
    batches = databases.Query.of(f"{postgresql.address}&query={many}").batches()
    seen = [next(batches)]
    with driver.connect(postgresql.address) as other, other.cursor() as cursor:
        cursor.execute("update ratings set stars = 5")
        other.commit()
        seen += batches
        cursor.execute("drop table ratings")
        cursor.adbc_ingest("ratings", RATINGS.to_arrow())
        other.commit()
    read = pl.concat(seen)
    assert len(read) == 200 * len(RATINGS)
    assert read["stars"].sum() == 200 * RATINGS["stars"].sum()


def test_a_connection_that_breaks_gets_a_sentence(postgresql):
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi")
    many = "select viewer, movie, stars, n from ratings, generate_series(1, 2000)"
    batches = databases.Query.of(f"{postgresql.address}&query={many}").batches()
    next(batches)
    with driver.connect(postgresql.address) as other, other.cursor() as cursor:
        cursor.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where query like 'COPY%' and pid <> pg_backend_pid()"
        )
        cursor.fetchall()
        with pytest.raises(gg.GinghamError, match=r"broke off after [\d,]+ rows: .* run it again"):
            list(batches)


def test_drivers_that_are_missing_are_named(monkeypatch, duckdb_file):
    monkeypatch.setitem(databases.DRIVERS, "duckdb", "a_driver_that_is_missing")
    with pytest.raises(gg.GinghamError, match=r"duckdb:// needs a_driver_that_is_missing: pip install gingham\[sql\]"):
        fitted(f"duckdb:///{duckdb_file}?query=from ratings")


def test_coded_columns_are_ids_to_whoever_asks():
    column = Coded(np.array(["a", "b", "d"], dtype=object), np.array([2, 0, 0], dtype=np.int32))
    mode = gg.data.Mode.of(column, "letter")
    assert mode.items.tolist() == ["a", "d"]
    assert mode.encode(column).tolist() == [1, 0, 0]
    assert gg.data.Mode("letter", np.array(["b", "d"], dtype=object)).encode(column).tolist() == [1, -1, -1]
    assert np.asarray(column).tolist() == ["d", "a", "a"]
