"""Every estimator that sweeps says truthfully whether Ctrl-C ended its fit, and keeps what it has."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

import gingham as gg
from ctrl_c import press_ctrl_c
from gingham.engine import threads
from gingham.errors import InterruptedWarning
from gingham.fitting import loop
from gingham.fitting.interruption import interrupt, interrupted
from gingham.fitting.projection import Projection
from gingham.models import base
from gingham.models.layers import Sampler

RNG = np.random.default_rng(0)
X = RNG.integers(0, 12, (400, 2))
Y = np.where((X[:, 0] < 6) == (X[:, 1] < 6), 5, 1) - (RNG.random(400) < 0.2)
COUNTS = np.random.default_rng(1).poisson(0.5, (80, 70))  # nothing to find: sweeps go on
EDGES = [(i, j) for i in range(30) for j in range(i) if RNG.random() < (0.7 if i % 2 == j % 2 else 0.2)]
RELATIONS = {("user", "movie"): (X, Y), ("movie", "genre"): ([(m, m % 2) for m in range(12)], [1, 0] * 6)}
GRID = {"random_state": 0, "start": "random", "n_init": 3}
CASES = {
    "regressor": (gg.CoClusteringRegressor(3, beta=1.0, **GRID), (X, Y)),
    "hard moves": (gg.CoClusteringRegressor(3, beta=1.0, solver="sweep", **GRID), (X, Y)),
    "classifier": (gg.CoClusteringClassifier(3, beta=1.0, **GRID), (X, Y)),
    "tree": (gg.TreeCoClustering(2, **GRID), (X, Y)),
    "bayesian": (gg.BayesianCoClustering(2, concentration=0.5, **GRID), (X, Y)),
    "graph": (gg.GraphClustering(3, **GRID), (EDGES,)),
    "soft graph": (gg.GraphClustering(3, solver="nodewise", **GRID), (EDGES,)),
    "joint": (gg.JointCoClustering({"user": 2, "movie": 2, "genre": None}, **GRID), (RELATIONS,)),
    "counts": (gg.CoOccurrenceClustering((8, 8), n_init=3, start="random", tol=0.0, random_state=0), (COUNTS,)),
    "soft counts": (gg.CoOccurrenceClustering((2, 2), 1.0, "concave", n_init=3, random_state=0), (COUNTS,)),
}


def press(restart: int):
    """A callback that presses Ctrl-C in the first sweep of a restart."""

    def listen(progress):
        if progress.restart == restart:
            press_ctrl_c()

    return listen


@pytest.mark.parametrize("restart", [0, 1, 2])
@pytest.mark.parametrize("case", CASES)
def test_interrupted_in_any_restart(case, restart, tmp_path):
    model, data = clone(CASES[case][0]), CASES[case][1]
    with pytest.warns(InterruptedWarning, match="best solution so far"):
        model.fit(*data, callback=press(restart))
    assert model.interrupted_  # also where the best is of an earlier restart, which came to its end
    model.save(tmp_path / "m.gingham")
    assert gg.load(tmp_path / "m.gingham").interrupted_
    model.fit(*data)
    assert not model.interrupted_
    model.save(tmp_path / "m.gingham")
    assert not gg.load(tmp_path / "m.gingham").interrupted_


def test_features(monkeypatch):
    model = gg.InformationClustering(2, n_init=3, random_state=0)
    monkeypatch.setattr(threads, "available_threads", lambda: 1)
    table = (RNG.random((20, 6)) < 0.5).astype(int)
    done = []
    from gingham.models.features import estimator as information

    found = information.iob_max

    def presses(*args, **more):
        done.append(1)
        if len(done) == 2:
            press_ctrl_c()
        return found(*args, **more)

    monkeypatch.setattr(information, "iob_max", presses)
    with pytest.warns(InterruptedWarning):
        model.fit(table)
    assert model.interrupted_
    assert len(done) == 2
    assert not model.fit(table).interrupted_


def test_a_committee_ends_with_the_member_that_was_interrupted(monkeypatch):
    inner = gg.CoClusteringRegressor(2, beta=1.0, start="random", offsets=False)
    sweeps, solve = [], Projection.solve

    def listen(iteration, factor, objective):
        sweeps.append(iteration)
        if sweeps.count(0) == 2:  # in the first sweep of the second member
            press_ctrl_c()

    monkeypatch.setattr(
        Projection, "solve", lambda self, problem, start, report, *more: solve(self, problem, start, listen, *more)
    )
    with pytest.warns(InterruptedWarning):
        model = gg.Committee(inner, n_members=4, random_state=0).fit(X, Y)
    assert model.interrupted_
    assert [member.interrupted_ for member in model.members_] == [False, True]
    assert np.isfinite(model.predict(X)).all()
    sweeps.clear()
    with pytest.warns(InterruptedWarning), pytest.raises(KeyboardInterrupt):
        gg.Committee(inner, n_members=4, cross=True, random_state=0).fit(X, Y)


def test_what_is_not_interrupted_says_so():
    assert base.Persistent.interrupted_ is False
    layered = gg.LayeredCoClusteringRegressor(1, 2, sampler=Sampler(n_sweeps=4, burn_in=1), random_state=0).fit(X, Y)
    assert not layered.interrupted_
    views = [RNG.random((30, 3)), RNG.random((30, 3))]
    assert not gg.PairwiseClusterAnalysis(1, ridge=0.1).fit(views).interrupted_


@pytest.mark.parametrize(
    "model",
    [
        gg.CoClusteringRegressor("auto", beta="auto", random_state=0),
        gg.BayesianCoClustering(2, random_state=0),
    ],
)
def test_ctrl_c_before_anything_is_decided_ends_the_fit(model, monkeypatch):
    """A pilot that is cut short would decide wrongly, and whoever presses Ctrl-C does not want the fit to go on."""
    settled = loop.settled

    def press(objectives, *args, **more):
        if len(objectives) == 1:
            press_ctrl_c()
        return settled(objectives, *args, **more)

    monkeypatch.setattr(loop, "settled", press)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, Y)
    assert not interrupted()


def test_the_second_ctrl_c_ends_a_fit_at_once():
    sweeps = []

    def press_twice(progress):
        sweeps.append(progress)
        press_ctrl_c()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        clone(CASES["regressor"][0]).fit(X, Y, callback=press_twice)
    assert len(sweeps) == 1
    assert not interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_stays():
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number) or interrupt())
    try:
        with pytest.warns(InterruptedWarning):
            model = clone(CASES["regressor"][0]).fit(X, Y, callback=press_ctrl_c)
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert model.interrupted_


def test_ctrl_c_where_no_fit_runs_is_pythons_own():
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_fit_on_another_thread_leaves_signals_alone():
    handlers = []

    def fit():
        clone(CASES["regressor"][0]).fit(
            X, Y, callback=lambda progress: handlers.append(signal.getsignal(signal.SIGINT))
        )

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert set(handlers) == {signal.default_int_handler}
