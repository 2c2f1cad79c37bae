"""Every estimator that sweeps says truthfully whether Ctrl-C ended its fit, and keeps what it has."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.errors import InterruptedWarning
from gingham.fitting import loop
from gingham.models import base
from gingham.models.layers import Sampler

RNG = np.random.default_rng(0)
X = RNG.integers(0, 12, (400, 2))
Y = np.where((X[:, 0] < 6) == (X[:, 1] < 6), 5, 1) - (RNG.random(400) < 0.2)
COUNTS = RNG.poisson(np.kron([[6.0, 1.0], [1.0, 6.0]], np.ones((8, 7))))
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
    "counts": (gg.CoOccurrenceClustering((2, 2), n_init=3, random_state=0), (COUNTS,)),
    "soft counts": (gg.CoOccurrenceClustering((2, 2), 1.0, "concave", n_init=3, random_state=0), (COUNTS,)),
}


def press(restart: int):
    """A callback that presses Ctrl-C in the first sweep of a restart."""

    def listen(progress):
        if progress.restart == restart:
            raise KeyboardInterrupt

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
    monkeypatch.setattr(loop, "available_threads", lambda: 1)
    table = (RNG.random((20, 6)) < 0.5).astype(int)
    done = []
    from gingham.models.features import estimator as information

    found = information.iob_max

    def presses(*args, **more):
        done.append(1)
        result = found(*args, **more)
        return result if len(done) != 2 else type(result)(**{**vars(result), "interrupted": True})

    monkeypatch.setattr(information, "iob_max", presses)
    with pytest.warns(InterruptedWarning):
        model.fit(table)
    assert model.interrupted_
    assert len(done) == 2
    assert not model.fit(table).interrupted_


def test_a_committee_ends_with_the_member_that_was_interrupted(monkeypatch):
    inner = gg.CoClusteringRegressor(2, beta=1.0, start="random", verbose=1)
    sweeps = []

    def listen(progress):
        sweeps.append(progress.iteration)
        if sweeps.count(0) == 2:  # in the first sweep of the second member
            raise KeyboardInterrupt

    monkeypatch.setattr("gingham.models.grid.estimator.stderr_progress", listen)
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
    from gingham.fitting import loop, projection
    from gingham.models.bayesian import fit as variational

    def cut(*args, **more):
        return loop.cut_short(loop.fixed_point(*args, **more))

    monkeypatch.setattr(projection, "fixed_point", cut)
    monkeypatch.setattr(variational, "fixed_point", cut)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, Y)
