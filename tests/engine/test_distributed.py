"""A dask cluster gives the single machine's answer, also when a worker is lost in the middle."""

import contextlib
import os
import signal
from dataclasses import replace

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
from gingham.core.problem import Problem  # noqa: E402
from gingham.data import Alphabet, Mode, Sample  # noqa: E402
from gingham.data.partitioned import joined  # noqa: E402
from gingham.engine import partitions  # noqa: E402
from gingham.fitting.checkpoints import kept_in  # noqa: E402
from gingham.fitting.projection import Projection  # noqa: E402
from gingham.fitting.schedules import Constant, Down  # noqa: E402
from gingham.models.grid import partitions as door  # noqa: E402

MODEL = gg.CoClusteringRegressor(
    n_clusters=3,
    beta=0.3,
    alphabet=range(1, 6),
    max_iter=12,
    solver=Projection(Constant(), tol=1e-9),
    offsets=False,
    random_state=0,
)


def table(d=2, n_rows=1500):
    rng = np.random.default_rng(d)
    ids = rng.integers(0, 40, (n_rows, 3))
    stars = np.array([[1, 5], [5, 1], [3, 4]])[ids[:, 0] % 3, ids[:, 1] % 2]
    stars = np.where(rng.random(n_rows) < 0.2, rng.integers(1, 6, n_rows), stars)
    columns = {"viewer": [f"v{i:02d}" for i in ids[:, 0]], "movie": ids[:, 1], "month": ids[:, 2] % 7}
    return pd.DataFrame(columns)[["viewer", "movie", "month"][:d]].assign(stars=stars)


class Here:
    """A client that computes here what it is asked for, when it is asked for it."""

    class Later:
        def __init__(self, call, arguments):
            self.call, self.arguments, self.values = call, arguments, []

        def result(self):
            if not self.values:
                self.values = [self.call(*(a.result() if isinstance(a, Here.Later) else a for a in self.arguments))]
            return self.values[0]

    def submit(self, call, *arguments, **scheduling):
        return self.Later(call, arguments)

    def gather(self, futures):
        return [future.result() for future in futures]


def by_viewer(frame, n_parts=5):
    part = frame["viewer"].str[1:].astype(int) % n_parts
    return [delayed(frame[part == k]) for k in range(n_parts)]


def single(frame, axes, start):
    model = gg.CoClusteringRegressor(**MODEL.get_params())
    model.fit(frame[axes], frame["stars"])
    sample = model.sample(frame[axes], frame["stars"])
    problem = Problem.grid(sample, start.cells[0], MODEL.beta)
    return replace(MODEL.solver, max_iter=MODEL.max_iter).solve(problem, start)


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as local:
        yield local


@pytest.mark.parametrize("d", [1, 2, 3])
def test_partitions_equal_one_machine(cluster, d):
    frame = table(d)
    axes = list(frame.columns[:-1])
    start = gg.CoClusteringRegressor(**{**MODEL.get_params(), "max_iter": 1, "start": "random"}).fit(
        frame[axes], frame["stars"]
    )
    heard = []
    with Client(cluster):
        model = clone(MODEL).set_params(start=start.posterior_)
        model.fit(by_viewer(frame), "stars", callback=heard.append)
    assert model.engine_ == "dask"
    expected = single(frame, axes, start.posterior_)
    assert model.n_iter_ == len(heard)
    for a, b in zip(model.assign_, expected.posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-8)
    assert model.objective_.total == pytest.approx(expected.objective.total, rel=1e-10)


def test_a_committee_of_grids_is_fitted_by_the_cluster(cluster, tmp_path):
    frame, axes = table(), ["viewer", "movie"]
    committee = gg.Committee(MODEL, n_members=2, random_state=0)
    expected = clone(committee).fit(frame[axes], frame["stars"])
    with Client(cluster):
        found = clone(committee).fit(by_viewer(frame), "stars")
        across = clone(committee).set_params(cross=True).fit(by_viewer(frame), "stars")
    assert found.engine_ == "dask"
    assert across.engine_ == "cores"  # folds are drawn from all rows
    np.testing.assert_allclose(found.predict(frame[axes]), expected.predict(frame[axes]), atol=1e-6)
    found.save(tmp_path / "m.gingham")
    for model in (found, gg.load(tmp_path / "m.gingham")):
        with pytest.raises(gg.RefusedCertificate):  # its own rows
            gg.certify(model, frame[axes], frame["stars"], bound="holdout")


def test_dask_frames_and_parquet_take_their_sizes_from_a_pilot(cluster, tmp_path):
    frame = table()
    many = clone(MODEL).set_params(n_clusters="auto")
    scattered = dd.from_pandas(frame, npartitions=3)
    scattered.to_parquet(tmp_path / "ratings")
    with Client(cluster):
        models = [
            clone(many).fit(scattered[["viewer", "movie"]], scattered["stars"]),
            clone(many).fit(scattered, "stars"),
            clone(many).fit(str(tmp_path / "ratings"), "stars"),
        ]
    for model in models:
        assert np.abs(model.predict(frame[["viewer", "movie"]], rule="median") - frame["stars"]).mean() < 0.5
        assert model.items_[0].tolist() == sorted(set(frame["viewer"]))


@pytest.mark.parametrize("brought_back", [100, 2])
def test_a_worker_killed_in_mid_fit_changes_nothing(cluster, brought_back, monkeypatch):
    monkeypatch.setattr(partitions, "BROUGHT_BACK", brought_back)  # states made again from few sweeps, or from all
    frame = table()
    axes = ["viewer", "movie"]
    start = (
        gg.CoClusteringRegressor(**{**MODEL.get_params(), "max_iter": 1, "start": "random"})
        .fit(frame[axes], frame["stars"])
        .posterior_
    )
    killed = []

    def kill_once(progress):
        if progress.iteration == 2:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        model = clone(MODEL).set_params(start=start).fit(by_viewer(frame), "stars", callback=kill_once)
    assert killed
    for a, b in zip(model.assign_, single(frame, axes, start).posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-8)


class LostError(Exception):
    """The process of the fit ends."""


@pytest.mark.parametrize("after", [1, 3, 12])
def test_a_lost_client_or_cluster_costs_no_sweep(cluster, after, tmp_path):
    frame, kept = table(), tmp_path / "fit.checkpoint"
    start = clone(MODEL).set_params(max_iter=1, start="random").fit(frame[["viewer", "movie"]], frame["stars"])
    model = clone(MODEL).set_params(start=start.posterior_, solver=Projection(Down(3.0, n_steps=4), tol=1e-9))
    sweeps = []

    def fit(resume, lost_after=100):
        def heard(progress):
            sweeps.append(progress.iteration)
            if progress.iteration == lost_after:
                raise LostError

        with kept_in(kept, "fit", resume, every=0.0) as (checkpoint, _):
            return clone(model).fit(by_viewer(frame), "stars", callback=heard, checkpoint=checkpoint)

    with Client(cluster):
        expected = clone(model).fit(by_viewer(frame), "stars")
    own = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False)
    with Client(own), contextlib.suppress(LostError):
        fit(False, after)
    own.close()  # scheduler and workers are gone with all that they held
    n_before = len(sweeps)
    with Client(cluster):
        found = fit(True)
    # A sweep is kept after it was told: the one that was told last is done again.
    assert sweeps[n_before:] == list(range(min(after, expected.n_iter_), expected.n_iter_))
    assert found.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(found.trace_.totals, expected.trace_.totals, rtol=1e-12)
    for a, b in zip(found.assign_, expected.assign_):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_parts_that_share_items_and_missing_columns_get_a_sentence(cluster):
    frame = table()
    scattered = dd.from_pandas(frame)
    with Client(cluster):
        for source, named, words in (
            ([delayed(frame[:700]), delayed(frame[700:])], ["stars"], "share items of the first axis 'viewer'"),
            (scattered, ["rating"], "no column 'rating'"),
            (scattered, ["stars", "n"], "no column 'n'"),
        ):
            with pytest.raises(gg.GinghamError, match=words):
                clone(MODEL).fit(source, *named)
        with pytest.raises(gg.GinghamError, match="partitions are named"):
            clone(MODEL).fit(scattered[["viewer", "movie"]], frame["stars"])
        with pytest.raises(gg.GinghamError, match="give its name as y"):
            clone(MODEL).fit(scattered)


@pytest.mark.parametrize("on_a_cluster", [False, True])
def test_what_no_cluster_fits_is_read_part_by_part(cluster, on_a_cluster):
    frame, axes = table(), ["viewer", "movie"]
    scattered = dd.from_pandas(frame, npartitions=3)
    bayesian = gg.BayesianCoClustering(3, approximation="shared", max_iter=5, random_state=0)
    expected = bayesian.fit(frame[axes], frame["stars"]).posterior_.assign
    models = [bayesian] if on_a_cluster else [bayesian, MODEL]
    with Client(cluster) if on_a_cluster else contextlib.nullcontext():
        for model in models:
            wanted = expected if model is bayesian else clone(model).fit(frame[axes], frame["stars"]).posterior_.assign
            for source in ((scattered, "stars"), (scattered[axes], scattered["stars"]), (by_viewer(frame), "stars")):
                found = clone(model).fit(*source)
                assert found.engine_ == "cores"
                if source[0] is scattered:  # the others have rows in another order
                    for a, b in zip(found.posterior_.assign, wanted):
                        np.testing.assert_array_equal(a, b)


def test_partitions_are_joined_in_their_order():
    others = Mode.of(["x", "y", "z"], "movie")
    alphabet = Alphabet.of([1, 2], given=True)
    parts = [
        Sample.of([viewers, movies], y, w, modes=[Mode.of(viewers, "viewer"), others], alphabet=alphabet)
        for viewers, movies, y, w in (
            ([4, 2, 4], ["x", "y", "z"], [1, 2, 1], [1.0, 2.0, 1.0]),
            ([9, 7], ["z", "z"], [2, 2], [1.0, 3.0]),
        )
    ]
    empty = Sample((Mode("viewer", np.zeros(0)), others), (np.zeros(0, np.int32),) * 2, np.zeros(0), alphabet)
    whole = joined([empty, *parts])
    assert whole.modes[0].items[whole.codes[0]].tolist() == [4, 2, 4, 9, 7]
    assert others.items[whole.codes[1]].tolist() == ["x", "y", "z", "z", "z"]
    assert whole.labels.tolist() == [1, 2, 1, 2, 2]
    assert whole.weights.tolist() == [1, 2, 1, 1, 3]
    assert joined([empty, parts[0]]) is parts[0]


def test_partitions_are_grouped_by_threads_and_by_size():
    def groups(rows, n_groups):
        return [group.tolist() for group in door.groups_of(rows, n_groups)]

    assert groups([5] * 5, 2) == [[0, 1, 2], [3, 4]]
    assert groups([5] * 3, 8) == [[0], [1], [2]]
    assert len(groups([door.GROUP_TUPLES] * 6, 2)) == 6


@pytest.mark.parametrize("brought_back", [3, 100])
@pytest.mark.parametrize(("max_iter", "tol"), [(6, 0.0), (60, 1e-4), (3, 0.0), (1, 0.0)])
def test_sweeps_over_partitions_follow_one_machine(brought_back, max_iter, tol, monkeypatch):
    monkeypatch.setattr(partitions, "BROUGHT_BACK", brought_back)
    frame = table()
    whole = Sample.of([frame["viewer"], frame["movie"]], frame["stars"], alphabet=Alphabet.of(range(1, 6), given=True))
    model = gg.CoClusteringRegressor(**{**MODEL.get_params(), "max_iter": 1, "start": "random"})
    start = model.fit(frame[["viewer", "movie"]], frame["stars"]).posterior_
    schedule = Down(3.0, n_steps=4)  # shares begun ahead of a change of beta are of no use
    chosen = [whole.codes[0] % 3 == k for k in range(3)]
    modes = [Mode("mode0", whole.modes[0].items[k::3]) for k in range(3)]
    parts = [
        Sample((mode, whole.modes[1]), (part.codes[0] // 3, part.codes[1]), None, part.alphabet, part.label_codes)
        for mode, part in zip(modes, map(whole.take, chosen))
    ]
    client = Here()
    data = partitions.Partitions(client, parts, [whole.modes[0].encode(m.items) for m in modes], len(whole.modes))
    settings = {"schedule": schedule, "tol": tol, "max_iter": max_iter}
    problem = door.problem_of(data, whole.modes, start.cells[0], 0.3, whole.alphabet)
    found = door.ScatteredProjection(data, **settings).solve(problem, start)
    expected = Projection(**settings).solve(Problem.grid(whole, start.cells[0], 0.3), start)
    assert found.n_iter == expected.n_iter
    assert found.converged == expected.converged
    np.testing.assert_allclose(found.trace.totals, expected.trace.totals, rtol=1e-10)
    for a, b in zip(found.posterior.assign, expected.posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_numbers_are_kept_where_the_loss_needs_them(cluster):
    frame = table()
    model = gg.CoClusteringRegressor(
        n_clusters=3,
        loss="quadratic",
        beta=0.3,
        alphabet=range(1, 6),
        solver=Projection(Constant(), tol=0.0),
        random_state=0,
    )
    start = model.set_params(max_iter=1, start="random").fit(frame[["viewer", "movie"]], frame["stars"]).posterior_
    model.set_params(max_iter=8)
    with Client(cluster):
        found = clone(model).set_params(start=start).fit(by_viewer(frame), "stars")
    sample = found.sample(frame[["viewer", "movie"]], frame["stars"])
    expected = Projection(Constant(), tol=0.0, max_iter=8).solve(Problem.grid(sample, start.cells[0], 0.3), start)
    assert found.objective_.total == pytest.approx(expected.objective.total, rel=1e-10)


@pytest.mark.parametrize("settings", [{"beta": "auto"}, {}, {"n_clusters": 3}], ids=["auto", "nothing set", "size"])
def test_a_cluster_chooses_beta_as_memory_does(cluster, settings):
    # It used to read "auto" as 1.
    frame = table()
    axes = ["viewer", "movie"]
    unfitted = gg.CoClusteringRegressor(alphabet=range(1, 6), max_iter=20, offsets=False, random_state=0, **settings)
    here = clone(unfitted).fit(frame[axes], frame["stars"])
    restarted = clone(unfitted).set_params(start=here.posterior_)
    with Client(cluster):
        there = clone(unfitted).fit(by_viewer(frame), "stars")
        started = clone(restarted).fit(by_viewer(frame), "stars")
    assert here.beta_ != 1.0
    assert there.beta_ == pytest.approx(here.beta_, rel=1e-12)
    assert started.beta_ == pytest.approx(restarted.fit(frame[axes], frame["stars"]).beta_, rel=1e-12)
    assert there.n_clusters_ == here.n_clusters_


def test_a_cluster_reads_the_loss_off_the_labels(cluster):
    frame = table().assign(stars=np.random.default_rng(0).normal(size=1500))
    with Client(cluster):
        model = gg.CoClusteringRegressor(2, max_iter=3, random_state=0)
        model.fit(by_viewer(frame), "stars")
    assert type(model.posterior_.cells[0]).__name__ == "Quadratic"
