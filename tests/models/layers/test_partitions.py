"""Layers on a dask cluster: the fit in memory, whatever the parts are and whatever is lost."""

import contextlib
import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

pytest.importorskip("distributed", reason="dask is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own

import dask.dataframe as dd  # noqa: E402
from dask import delayed  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

import gingham as gg  # noqa: E402
from gingham.fitting.checkpoints import kept_in  # noqa: E402
from gingham.models.layers import Sampler, design, fit  # noqa: E402

AXES = ["viewer", "movie"]
SHORT = Sampler(n_chains=2, n_sweeps=8, burn_in=4, noise=0.9)
MODEL = gg.LayeredCoClusteringRegressor(1, 3, baskets=1, alphabet=range(1, 6), sampler=SHORT, random_state=0)


def table(n_rows=1500, axes=AXES):
    rng = np.random.default_rng(1)
    ids = rng.integers(0, (60, 25, 4), (n_rows, 3))
    stars = np.array([[1, 5], [5, 1], [3, 4]])[ids[:, 0] % 3, ids[:, 1] % 2]
    stars = np.where(rng.random(n_rows) < 0.2, rng.integers(1, 6, n_rows), stars)
    columns = {"viewer": [f"v{i:02d}" for i in ids[:, 0]], "movie": ids[:, 1], "month": ids[:, 2]}
    return pd.DataFrame(columns)[axes].assign(stars=stars, n=rng.integers(1, 4, n_rows))


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as local:
        yield local


def scattered(frame, n_parts=3):
    """Rows in any order, so that parts share their viewers."""
    return [delayed(frame[at::n_parts]) for at in range(n_parts)]


def assert_same(found, expected, X):
    assert found.engine_ == "dask"
    assert str(found.selection_) == str(expected.selection_)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-5)
    np.testing.assert_array_equal(found.draws_.labels, expected.draws_.labels)
    for one, two in zip(found.draws_.baskets, expected.draws_.baskets):
        np.testing.assert_array_equal(one.tokens, two.tokens)
    assert found.noise_ == pytest.approx(expected.noise_, rel=1e-6)
    np.testing.assert_allclose(found.predict_interval(X[:50], 0.8), expected.predict_interval(X[:50], 0.8), atol=1e-4)
    assert found._fit_rows[0].equals(expected._fit_rows[0])


@pytest.mark.parametrize(
    ("axes", "options", "weight"),
    [
        (AXES, {"sampler": Sampler(n_chains=1, n_sweeps=5, burn_in=2)}, None),  # the noise from held-out rows
        (AXES, {"likelihood": "gaussian", "alphabet": None}, "n"),
        ([*AXES, "month"], {}, None),
        (AXES, {"side": {"viewer": pd.DataFrame({"viewer": ["v03", "v04", "v99"], "kind": ["a", "a", "b"]})}}, None),
    ],
    ids=["noise", "gaussian", "three modes", "side"],
)
def test_a_cluster_gives_the_fit_in_memory(cluster, axes, options, weight, monkeypatch):
    monkeypatch.setattr(fit, "HELD_OUT_SWEEPS", 6)
    monkeypatch.setattr(fit, "PREDICTED_FROM", 2)
    frame = table(axes=axes)
    model = clone(MODEL).set_params(**options)
    expected = clone(model).fit(frame[axes], frame["stars"], None if weight is None else frame[weight])
    with Client(cluster):
        columns = [*axes, "stars", *([] if weight is None else [weight])]
        found = clone(model).fit(scattered(frame[columns]), "stars", weight)
    assert_same(found, expected, frame[axes])


def test_designs_are_compared_on_the_same_rows(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(design, "MANY", 1000)
    monkeypatch.setattr(fit, "SAMPLED_ROWS", 700)
    frame = table()[[*AXES, "stars"]]
    model = clone(MODEL).set_params(baskets="auto", sampler=Sampler(n_chains=1, n_sweeps=4, burn_in=2, noise=0.9))
    expected = clone(model).fit(frame[AXES], frame["stars"])
    dd.from_pandas(frame, npartitions=2).to_parquet(tmp_path / "ratings")
    with Client(cluster):
        found = clone(model).fit(tmp_path / "ratings", "stars")
    assert_same(found, expected, frame[AXES])


def test_a_worker_killed_in_mid_fit_changes_nothing(cluster):
    frame = table()[[*AXES, "stars"]]
    expected = clone(MODEL).fit(frame[AXES], frame["stars"])
    killed, lock = [], threading.Lock()

    def kill_once(progress):
        with lock:  # chains run side by side
            if progress.iteration == 3 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        found = clone(MODEL).fit(scattered(frame), "stars", callback=kill_once)
        client.wait_for_workers(2, timeout=60)
    assert killed
    assert_same(found, expected, frame[AXES])


class LostError(Exception):
    """The process of the fit ends."""


def test_a_lost_client_and_cluster_cost_no_sweep(cluster, tmp_path):
    frame = table()[[*AXES, "stars"]]
    model = clone(MODEL).set_params(sampler=Sampler(n_chains=2, n_sweeps=5, burn_in=2, noise=0.9), n_jobs=1)
    expected = clone(model).fit(frame[AXES], frame["stars"])
    sweeps = []

    def run(resume, lost_after=None):
        def heard(progress):
            sweeps.append(progress.iteration)
            if len(sweeps) == lost_after:
                raise LostError

        with kept_in(tmp_path / "fit.checkpoint", "fit", resume, every=0.0) as (checkpoint, _):
            return clone(model).fit(scattered(frame), "stars", callback=heard, checkpoint=checkpoint)

    own = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False)
    with Client(own), contextlib.suppress(LostError):
        run(False, 7)  # in the second chain
    own.close()
    with Client(cluster):
        found = run(True)
    assert len(sweeps) == 7 + 4  # the sweep that was told last was not kept
    assert_same(found, expected, frame[AXES])


def test_what_a_cluster_cannot_fit_is_read_part_by_part(cluster):
    frame = table()[[*AXES, "stars"]]
    later = frame.assign(day=np.arange(len(frame)))
    with Client(cluster):
        dated = clone(MODEL).set_params(time="day").fit(scattered(later), "stars")
        votes = gg.LayeredCoClusteringClassifier(1, 2, baskets=0, sampler=SHORT, random_state=0)
        votes.fit(scattered(frame), "stars")
        bad = frame.assign(stars=frame["stars"] + 7.5)
        with pytest.raises(gg.GinghamError, match="not in the alphabet"):
            clone(MODEL).fit(scattered(bad), "stars")
    assert dated.engine_ == votes.engine_ == "cores"
    again = clone(MODEL).fit(frame[AXES], frame["stars"])
    assert again.engine_ == "cores"
