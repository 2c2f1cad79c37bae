"""The same estimator, seed and start give the same fit in memory and on dask, however it is partitioned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.fitting import Constant, Down, Projection
from gingham.fitting.schedules import Schedule

pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own

AXES = ["viewer", "movie", "month"]
N_TUPLES = 4000
STARTS = ("spectral", "means", "random", "singular", "labels", "posterior")


def planted(n_modes: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    ids = np.column_stack([rng.integers(0, n, N_TUPLES) for n in (90, 60, 8)])
    stars = np.array([[1, 5, 2], [5, 1, 3], [3, 4, 5], [2, 2, 4]])[ids[:, 0] % 4, ids[:, 1] % 3]
    stars = np.where(rng.random(N_TUPLES) < 0.25, rng.integers(1, 6, N_TUPLES), stars)
    table = pd.DataFrame(ids, columns=AXES)[AXES[:n_modes]]
    return table.assign(stars=stars, n=rng.integers(1, 4, N_TUPLES))


def start_of(name: str, table: pd.DataFrame, axes: list[str]) -> Any:
    if name == "labels":
        return [np.arange(table[axis].nunique()) % m for axis, m in zip(axes, (3, 2, 2))]
    if name == "posterior":  # of some of the items, and with answers that are not the best ones here
        known = table[table["viewer"] < 70]
        model = gg.CoClusteringRegressor(3, beta=0.5, alphabet=range(1, 6), max_iter=3, offsets=False, random_state=1)
        return model.fit(known[axes], known["stars"]).posterior_
    return name


def estimator(start: Any, **options: Any) -> gg.CoClusteringRegressor:
    how = {
        "beta": 0.4,
        "alphabet": range(1, 6),
        "random_state": 0,
        "max_iter": 60,
        "solver": Projection(tol=1e-8),
        **options,
    }
    return gg.CoClusteringRegressor((4, 3, 2)[: how.pop("n_modes", 2)], start=start, offsets=False, **how)


def parts_of(table: pd.DataFrame, folder: Any, n_parts: int, kind: str = "parquet") -> list[Any]:
    paths = [folder / f"part{k}-of-{n_parts}.{kind}" for k in range(n_parts)]
    for k, path in enumerate(paths):
        part = table[table["viewer"] % n_parts == k].sample(frac=1.0, random_state=k)  # rows in any order
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
    return paths


def assert_same(found: Any, expected: Any) -> None:
    assert found.objective_.total == pytest.approx(expected.objective_.total, rel=1e-9)
    assert found.n_iter_ == expected.n_iter_
    for a, b in zip(found.assign_, expected.assign_):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.fixture(scope="module")
def client() -> Any:
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    settings = {"threads_per_worker": 1, "dashboard_address": None, "processes": False}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:
        yield client


def scattered(table: pd.DataFrame, n_parts: int) -> list[Any]:
    from dask import delayed

    return [delayed(table[table["viewer"] % n_parts == k]) for k in range(n_parts)]


@pytest.mark.parametrize("schedule", [Down(), Constant()])
@pytest.mark.parametrize("name", STARTS)
def test_dask_gives_the_fit_in_memory(name: str, schedule: Schedule, client: Any) -> None:
    table = planted()
    model = estimator(start_of(name, table, AXES[:2]), solver=Projection(schedule, tol=1e-8))
    expected = model.fit(table[AXES[:2]], table["stars"])
    for n_parts in (1, 2, 5):
        assert_same(clone(model).fit(scattered(table[[*AXES[:2], "stars"]], n_parts), "stars"), expected)


@pytest.mark.parametrize("name", ["spectral", "means", "random", "labels"])
@pytest.mark.parametrize(
    ("n_modes", "options"),
    [(1, {}), (3, {}), (2, {"loss": "quadratic", "alphabet": None, "bounds": (1, 5)}), (2, {"loss": "zero-one"})],
)
def test_so_do_other_modes_losses_weights_and_several_starts(
    name: str, n_modes: int, options: dict[str, Any], client: Any
) -> None:
    table, axes = planted(n_modes), AXES[:n_modes]
    model = estimator(start_of(name, table, axes), n_modes=n_modes, n_init=2, **options)
    expected = model.fit(table[axes], table["stars"], table["n"])
    found = clone(model).fit(scattered(table, 3), "stars", "n")
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["spectral", "means"])
@pytest.mark.parametrize("labels", ["same", "no noise", "equal means"])
def test_rounding_decides_nothing_where_labels_say_little(name: str, labels: str, client: Any) -> None:
    table = planted()
    viewer, movie = table["viewer"], table["movie"]
    table["stars"] = {"same": 0 * viewer + 3, "no noise": 1 + viewer % 2, "equal means": 1 + (viewer + movie) % 5}[
        labels
    ]
    model = estimator(name)
    found = clone(model).fit(scattered(table[[*AXES[:2], "stars"]], 5), "stars")
    assert_same(found, model.fit(table[AXES[:2]], table["stars"]))


def test_classes_that_are_names_agree_too(client: Any) -> None:
    table = planted()
    table["stars"] = np.array(list("abcdef"))[table["stars"]]
    model = gg.CoClusteringClassifier((4, 3), beta=1.0, random_state=0, max_iter=40)
    found = clone(model).fit(scattered(table[[*AXES[:2], "stars"]], 4), "stars")
    assert_same(found, model.fit(table[AXES[:2]], table["stars"]))


@pytest.mark.parametrize("start", ["spectral", "means", "random", "singular"])
def test_the_order_of_the_rows_does_not_matter(start: str) -> None:
    table = planted()
    mixed = table.sample(frac=1.0, random_state=5)
    fits = [estimator(start).fit(rows[AXES[:2]], rows["stars"]) for rows in (table, mixed)]
    assert_same(*fits)


def test_dask_takes_paths(client: Any, tmp_path: Any) -> None:
    table = planted().drop(columns="n")
    model = estimator("spectral")
    expected = model.fit(table[AXES[:2]], table["stars"])

    def fit(source: Any) -> Any:
        return clone(model).fit(source, "stars")

    parquet, csv = (parts_of(table, tmp_path, 3, kind) for kind in ("parquet", "csv"))
    halves = [tmp_path / "one.csv", tmp_path / "two.csv"]  # which share their viewers: they are shuffled
    table[:2000].to_csv(halves[0], index=False)
    table[2000:].to_csv(halves[1], index=False)
    for source in (parquet, [str(path) for path in csv], parts_of(table, tmp_path, 1, "csv")[0], halves):
        assert_same(fit(source), expected)
    with pytest.raises(gg.GinghamError, match=r"no file or folder .*absent\.csv"):
        fit([tmp_path / "absent.csv"])
    with pytest.raises(gg.GinghamError, match=r"end in \.csv, \.parquet"):
        fit([parquet[0], csv[0]])
