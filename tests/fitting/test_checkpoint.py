"""A fit that is handed a checkpoint goes on from it, whatever ended it, and ends where it would have ended."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from ctrl_c import press_ctrl_c
from gingham.cells import Absolute
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.engine import threads
from gingham.errors import GinghamError, InterruptedWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint, CheckpointFile
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Restart, best_of
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Down
from gingham.fitting.starts import random
from gingham.fitting.sweep import Sweep
from gingham.models.graph.estimator import GraphClustering
from gingham.models.grid.estimator import CoClusteringRegressor


class Killed(BaseException):
    """Nothing in the library catches it."""


def kill():
    raise Killed


def opened(path, resume=False) -> Checkpoint:
    file = CheckpointFile(path, "this fit", 0.0)
    if resume:
        file.read()
    return Checkpoint(file)


def grid(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (300, 2))
    y = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), (X // 6).sum(axis=1))
    sample = Sample.of(list(X.T), y, alphabet=Alphabet.of([0, 1, 2], True))
    return Problem.grid(sample, Absolute(sample.alphabet), 2.0)


def killer(sweep):
    def report(iteration, factor, objective):
        if iteration == sweep:
            raise Killed

    return report


@pytest.mark.parametrize("sweep", [1, 3, 5])
@pytest.mark.parametrize(
    "solver",
    [
        Projection(Down(5.0, 20), tol=0.0, max_iter=9, backend="compiled"),
        Projection(Down(5.0, 20), tol=0.0, max_iter=9, backend="torch"),
        Projection(Down(5.0, 20), tol=0.0, max_iter=9, backend="torch", dtype="float32"),
        Sweep(tol=-1.0, max_iter=9),
    ],
    ids=["compiled", "torch", "torch in single precision", "hard moves"],
)
def test_a_killed_solver_ends_where_it_would_have_ended(solver, sweep, tmp_path):
    if getattr(solver, "backend", None) == "torch":
        pytest.importorskip("torch")
    problem = grid()
    start = random(problem, [3, 2], np.random.default_rng(1))
    whole = solver.solve(problem, start)
    n = whole.n_iter
    assert n == 9
    with pytest.raises(Killed):
        solver.solve(problem, start, killer(sweep), opened(tmp_path / "kept").stage("sweeps"))
    swept = []
    checkpoint = opened(tmp_path / "kept", resume=True).stage("sweeps")
    resumed = solver.solve(problem, start, lambda *facts: swept.append(facts[0]), checkpoint)
    assert swept == list(range(sweep, n))
    np.testing.assert_array_equal(resumed.trace.totals, whole.trace.totals)
    for a, b in zip(resumed.posterior.assign, whole.posterior.assign):
        np.testing.assert_array_equal(a, b)


def test_a_finished_stage_is_recalled_and_its_generator_left_where_it_was(tmp_path):
    calls = []

    def draw(rng):
        calls.append(1)
        return {"number": float(rng.random())}

    first, second = np.random.default_rng(0), np.random.default_rng(0)
    found = opened(tmp_path / "kept").stage("draw").result(lambda: draw(first), first)
    again = opened(tmp_path / "kept", resume=True).stage("draw").result(lambda: draw(second), second)
    assert again == found
    assert len(calls) == 1
    assert first.random() == second.random()


def test_stages_within_a_finished_one_are_forgotten(tmp_path):
    file = CheckpointFile(tmp_path / "kept", "this fit", 0.0)
    outer = Checkpoint(file).stage("sizes")
    outer.result(lambda: outer.stage("size 2").result(lambda: {"cost": 1.0}))
    assert list(file.stages) == ["sizes"]


def test_a_name_serves_one_stage_only(tmp_path):
    checkpoint = opened(tmp_path / "kept")
    checkpoint.stage("start 1").stage("sweeps")
    checkpoint.stage("start 2").stage("sweeps")
    with pytest.raises(RuntimeError, match="start 1"):
        checkpoint.stage("start 1")


def test_without_a_store_nothing_is_known_and_nothing_kept():
    stage = NO_CHECKPOINT.stage("start 1")
    assert stage.file is None
    assert stage.known is None
    assert not stage.finished
    stage.keep(lambda: pytest.fail("the state was asked for"))


@pytest.mark.parametrize("end", ["killed", "interrupted"])
def test_starts_side_by_side_are_kept_too(end, tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    problem = grid()
    solver = Sweep(tol=-1.0, max_iter=40)
    swept = []

    def fit(checkpoint, end_fit=None):
        def solve(restart: Restart):
            start = random(problem, [3, 2], restart.rng)
            return solver.solve(problem, start, restart.report, restart.checkpoint)

        def watch(progress):
            swept.append(progress.restart)
            if end_fit is not None and progress[:3:2] == (1, 20):
                end_fit()

        rng = np.random.default_rng(0)
        return best_of(solve, 4, rng, max_iter=40, callback=watch, checkpoint=checkpoint, one_core=True)

    whole = fit(NO_CHECKPOINT)
    assert len(swept) == 4 * 40
    if end == "killed":
        with pytest.raises(Killed):
            fit(opened(tmp_path / "kept"), kill)
    else:
        with interruptible(), pytest.warns(InterruptedWarning):
            assert fit(opened(tmp_path / "kept"), press_ctrl_c).interrupted
    swept.clear()
    resumed = fit(opened(tmp_path / "kept", resume=True))
    assert len(swept) <= 4 * 40 - 20  # one start was halfway; how far the others were depends on the threads
    assert resumed.objective.total == whole.objective.total
    for a, b in zip(resumed.posterior.assign, whole.posterior.assign):
        np.testing.assert_array_equal(a, b)


def test_estimators_take_a_checkpoint(tmp_path):
    rng = np.random.default_rng(0)
    edges = np.argwhere(np.triu(rng.random((20, 20)) < 0.3, 1)).tolist()
    whole = GraphClustering(3, n_init=2, random_state=0).fit(edges)

    def stop(progress):
        if progress.restart == 1:
            raise Killed

    with pytest.raises(Killed):
        GraphClustering(3, n_init=2, random_state=0).fit(edges, callback=stop, checkpoint=opened(tmp_path / "kept"))
    model = GraphClustering(3, n_init=2, random_state=0)
    model.fit(edges, checkpoint=opened(tmp_path / "kept", resume=True))
    np.testing.assert_array_equal(model.assign_, whole.assign_)


def test_a_checkpoint_of_other_data_is_refused_though_the_key_is_the_same(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 12, (300, 2)), rng.integers(0, 3, 300).astype(float)
    model = CoClusteringRegressor(n_clusters=2, random_state=0)
    file = CheckpointFile(tmp_path / "c", "this fit", 0.0)
    model.fit(X, y, checkpoint=Checkpoint(file))
    file.write()
    again = clone(model).fit(X, y, checkpoint=opened(tmp_path / "c", resume=True))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    others = [(X[::-1], y, None), (X, 2 - y, None), (X, y, np.full(300, 2.0))]
    for data in others:
        with pytest.raises(GinghamError, match="other data"):
            clone(model).fit(*data, checkpoint=opened(tmp_path / "c", resume=True))
    with pytest.raises(GinghamError, match="other data"):
        clone(model).set_params(beta=3.0).fit(X, y, checkpoint=opened(tmp_path / "c", resume=True))
