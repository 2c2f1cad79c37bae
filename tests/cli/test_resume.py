"""Killed at any moment, a fit goes on from its checkpoint and ends where it would have ended."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.cli.app import run
from gingham.files import checkpoint_of
from gingham.fitting.checkpoints import CheckpointFile
from killing import killed, seconds_of
from model_files import contents

KILLS = 3


def arguments(ratings, out, *more):
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "6,5", "--beta", "1", "--starts", "3"]
    return ["fit", str(ratings), *options, "-q", "--checkpoint-every", "0", "--out", str(out), *more]


@pytest.fixture(scope="module")
def expected(ratings, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "m.gingham"
    assert run(arguments(ratings, out)) == 0
    return contents(out)


def test_checkpoint_goes_with_the_end(ratings, expected, tmp_path):
    out = tmp_path / "m.gingham"
    assert run(arguments(ratings, out)) == 0
    assert contents(out) == expected
    assert list(tmp_path.iterdir()) == [out]


def test_interrupted_in_a_sweep_and_resumed(gingham, ratings, expected, tmp_path, monkeypatch):
    from gingham.fitting import projection

    out = tmp_path / "m.gingham"
    calls = []
    step = projection.half_step

    def dies(*args, **more):
        calls.extend([1] * checkpoint_of(out).exists())
        if len(calls) == 7:
            raise MemoryError
        return step(*args, **more)

    monkeypatch.setattr(projection, "half_step", dies)
    assert gingham(*arguments(ratings, out)).code == 2
    assert not out.exists()
    assert checkpoint_of(out).exists()
    monkeypatch.setattr(projection, "half_step", step)
    ran = gingham(*arguments(ratings, out, "--resume"))
    assert "Continuing after" in ran.err
    assert contents(out) == expected
    assert not checkpoint_of(out).exists()


def test_other_options_are_refused(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    CheckpointFile(checkpoint_of(out), "another key", 0).write()
    ran = gingham(*arguments(ratings, out, "--resume"))
    assert ran.code == 2
    assert "belongs to other data" in ran.err


def test_a_checkpoint_is_known_by_data_types_weights_and_options(gingham, planted, tmp_path, monkeypatch):
    """A fit dies; what differs in any way does not go on from where it was."""
    from gingham.fitting import projection

    table = planted(300).with_columns(n=pl.lit(1.0), m=pl.lit(1.0), other=pl.col("rating"))
    path, out = tmp_path / "t.parquet", tmp_path / "m.gingham"
    step, calls = projection.half_step, []

    def dies(*args, **more):
        calls.extend([1] * checkpoint_of(out).exists())
        if len(calls) > 6:
            raise MemoryError
        return step(*args, **more)

    def resumed(table, *more):
        table.write_parquet(path)
        return gingham(*arguments(path, out, "--resume", "--weight", "n", *more))

    with monkeypatch.context() as patch:
        patch.setattr(projection, "half_step", dies)
        assert resumed(table).code == 2
    assert checkpoint_of(out).exists()
    refused = "belongs to other data or other options"
    others = {
        "weights": table.with_columns(n=pl.when(pl.int_range(pl.len()) == 7).then(2.0).otherwise(1.0)),
        "labels": table.with_columns(rating=6 - pl.col("rating")),
        "types of ids": table.with_columns(user=pl.col("user").cast(pl.String)),
        "an id": table.with_columns(user=pl.when(pl.int_range(pl.len()) == 7).then(3).otherwise("user")),
        "separators in ids": table.with_columns(movie=pl.col("movie") + "\x1f"),
    }
    for name, other in others.items():
        assert refused in resumed(other).err, name
    options = (("--weight", "m"), ("--label", "other"), ("--seed", "1"), ("--holdout", ".2"), ("--alphabet", "1..5"))
    for more in options:
        assert refused in resumed(table, *more).err, more
    ran = resumed(table)
    assert ran.code == 0
    assert "Continuing after" in ran.err


def test_a_damaged_checkpoint_is_refused(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    checkpoint_of(out).write_bytes(b"half a file")
    ran = gingham(*arguments(ratings, out, "--resume"))
    assert ran.code == 2
    assert "damaged" in ran.err


def test_kill_nine_at_random_moments(ratings, expected, tmp_path):
    """A few kills here; benchmarks/robustness/kills.py does fifty, for every kind of model."""
    out = tmp_path / "m.gingham"
    seconds_of(arguments(ratings, out))  # the server starts
    whole = seconds_of(arguments(ratings, out))
    assert contents(out) == expected  # the old file, which must stay whole until the new one is
    rng = np.random.default_rng(0)
    kills = 0
    while kills < KILLS:
        kills += killed(arguments(ratings, out, "--resume"), float(rng.uniform(0.4, 1.0)) * whole)
        assert contents(out) == expected
        if checkpoint_of(out).exists():
            gg.storage.read(checkpoint_of(out))  # whole
    assert run(arguments(ratings, out, "--resume")) == 0
    assert contents(out) == expected
