"""A small planted table and a way to run the command line inside the test process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gingham.cli.app import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def gingham(capsys, monkeypatch):
    """Run ``gingham ARGUMENTS`` and return exit code and both streams."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


def _planted(n_rows: int = 600, seed: int = 0) -> pl.DataFrame:
    """Two clusters of 20 users, two of 15 movies; within blocks ratings differ by noise."""
    rng = np.random.default_rng(seed)
    user, movie = rng.integers(0, 20, n_rows), rng.integers(0, 15, n_rows)
    answer = np.array([[5, 2], [1, 4]])[user % 2, movie % 2]
    rating = np.clip(answer + rng.choice([-1, 0, 0, 0, 1], n_rows), 1, 5)
    return pl.DataFrame({"user": user, "movie": [f"film {m}" for m in movie], "rating": rating})


@pytest.fixture(scope="session")
def planted():
    return _planted


@pytest.fixture(scope="session")
def ratings(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "ratings.csv"
    _planted().write_csv(path)
    return path


@pytest.fixture(scope="session")
def model(ratings) -> Path:
    """A model of the planted ratings."""
    path = ratings.with_name("model.gingham")
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "2,2", "--alphabet", "1..5", "-q"]
    assert run(["fit", str(ratings), *options, "--out", str(path)]) == 0
    return path
