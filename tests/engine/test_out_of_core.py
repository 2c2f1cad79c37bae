"""Partitions on disk give the fit in memory; nothing is left behind."""

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.core.problem import Problem
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant

MODEL = gg.CoClusteringRegressor(
    n_clusters=3,
    beta=0.3,
    alphabet=range(1, 6),
    schedule="constant",
    max_iter=12,
    tol=1e-9,
    offsets=False,
    random_state=0,
)


@pytest.fixture
def parts(tmp_path):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 40, (1500, 2))
    stars = np.array([[1, 5], [5, 1], [3, 4]])[ids[:, 0] % 3, ids[:, 1] % 2]
    stars = np.where(rng.random(1500) < 0.2, rng.integers(1, 6, 1500), stars)
    frame = pl.DataFrame({"viewer": ids[:, 0], "movie": ids[:, 1], "stars": stars, "n": rng.integers(1, 3, 1500)})
    paths = []
    for k in range(4):
        paths.append(tmp_path / f"part{k}.parquet")
        frame.filter(pl.col("viewer") % 4 == k).write_parquet(paths[-1])
    return frame, paths


@pytest.mark.parametrize("loss", ["absolute", "quadratic"])
def test_the_fit_on_disk_equals_the_fit_in_memory(parts, loss):
    frame, paths = parts
    X, y, w = frame[["viewer", "movie"]], frame["stars"].to_numpy(), frame["n"].to_numpy()
    model = gg.CoClusteringRegressor(**{**MODEL.get_params(), "loss": loss})
    start = gg.CoClusteringRegressor(**{**model.get_params(), "start": "random", "max_iter": 1}).fit(X, y, w)
    with gg.OutOfCore() as disk:
        fitted = gg.fit_distributed(
            model, paths, axes=["viewer", "movie"], label="stars", weight="n", client=disk, start=start.posterior_
        )
        scratch = disk.folder
        assert len(list(scratch.iterdir())) == 4
    assert not scratch.exists()
    problem = Problem.grid(start.sample(X, y, w), start.posterior_.cells[0], MODEL.beta)
    expected = Projection(Constant(), tol=MODEL.tol, max_iter=MODEL.max_iter).solve(problem, start.posterior_)
    for a, b in zip(fitted.assign_, expected.posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_a_pilot_chooses_sizes_and_callables_are_parts_too(parts):
    frame, paths = parts
    model = gg.CoClusteringRegressor(**{**MODEL.get_params(), "n_clusters": "auto"})
    with gg.OutOfCore() as disk:
        model = gg.fit_distributed(
            model,
            [lambda path=path: pl.read_parquet(path) for path in paths],
            axes=["viewer", "movie"],
            label="stars",
            client=disk,
        )
    error = np.abs(model.predict(frame[["viewer", "movie"]], rule="median") - frame["stars"].to_numpy()).mean()
    assert error < 0.6


def test_missing_files_and_folders_get_a_sentence(tmp_path):
    with gg.OutOfCore() as disk:
        with pytest.raises(gg.GinghamError, match="There is no file"):
            gg.fit_distributed(MODEL, [tmp_path / "absent.parquet"], axes=["a", "b"], label="y", client=disk)
        with pytest.raises(gg.GinghamError, match="list of Parquet or CSV paths"):
            gg.fit_distributed(MODEL, "folder", axes=["a", "b"], label="y", client=disk)
    with pytest.raises(gg.GinghamError, match="scratch folder"):
        gg.OutOfCore(tmp_path / "absent")
