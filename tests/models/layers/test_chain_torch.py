"""Basket layers in torch: predictions beside the compiled ones, whole fits, and where chains run."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import gingham as gg  # noqa: E402
from gingham.data import Sample  # noqa: E402
from gingham.errors import GinghamError  # noqa: E402
from gingham.models.layers import Sampler, chain_torch, design, draws, fit  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    """Operations are tiny here: torch's threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ratings(n=600, users=40, movies=25, seed=0):
    rng = np.random.default_rng(seed)
    pairs = rng.choice(users * movies, n, replace=False)
    user, movie = pairs // movies, pairs % movies
    taste = np.where((user % 2) == (movie % 2), 1.0, -1.0)
    y = np.clip(np.round(3.0 + taste + 0.6 * rng.standard_normal(n)), 1, 5)
    return np.column_stack([user, movie]), y, rng.uniform(0, 1e6, n)


def model(**settings):
    defaults = {"sampler": Sampler(2, 14, 6, noise=0.6), "baskets": 1, "n_layers": 3, "random_state": 0}
    return gg.LayeredCoClusteringRegressor(**{**defaults, **settings})


@pytest.mark.filterwarnings("ignore::gingham.errors.UnseenItemsWarning")
@pytest.mark.parametrize("likelihood", ["ordinal", "gaussian"])
@pytest.mark.parametrize("dated", [True, False])
def test_predictions_equal_the_compiled_ones(likelihood, dated, monkeypatch):
    X, y, times = ratings()
    side = {1: (np.arange(25), np.column_stack([np.arange(25) % 2, np.arange(25) % 3 == 0]))}
    fitted = model(likelihood=likelihood, side=side).fit(X, y, time=times if dated else None)
    fitted.fold_in(np.array([[100, 3], [100, 4]]))  # a user known by a basket alone
    asked = np.array([[0, 1], [3, 3], [999, 2], [5, 999], [999, 999], [100, 7], [100, 3], [7, 3]])
    when = None if not dated else np.array([1e5, np.nan, 2e5, 3e5, np.nan, 4e5, 5e5, 9e9])
    expected = fitted.predict(asked, time=when), fitted.predict_distribution(asked, time=when)
    monkeypatch.setattr(draws, "predicts_on_device", lambda n_lookups: True)
    np.testing.assert_allclose(fitted.predict(asked, time=when), expected[0], atol=2e-6)
    np.testing.assert_allclose(fitted.predict_distribution(asked, time=when), expected[1], atol=2e-6)


def test_a_fit_through_torch_predicts_as_well_and_repeats_itself():
    X, y, times = ratings()
    train, test, longer = slice(0, 500), slice(500, None), Sampler(2, 20, 6, noise=0.6)
    fits = [model(backend="torch", sampler=longer).fit(X[train], y[train], time=times[train]) for _ in range(2)]
    compiled = model(backend="compiled", sampler=longer).fit(X[train], y[train], time=times[train])
    found = [one.predict(X[test], time=times[test]) for one in (*fits, compiled)]
    np.testing.assert_array_equal(found[0], found[1])
    errors = [float(np.sqrt(np.mean((one - y[test]) ** 2))) for one in found]
    assert errors[0] < 0.75 * np.std(y[test])
    assert errors[0] == pytest.approx(errors[2], rel=0.25)
    assert not np.array_equal(found[0], found[2])  # it was another sampler


def test_where_chains_run(monkeypatch):
    X, y, _ = ratings()
    sample = Sample.of([X[:, 0], X[:, 1]], y)
    problem = design.make_problem(sample, None, None, {}, design.EFFORTS["default"], (4, 4))

    def on_device(backend):
        return isinstance(fit.layout_for(problem, backend), chain_torch.DeviceLayout)

    assert on_device("torch")
    assert not on_device("compiled")
    for name in ("may_have_gpu", "has_gpu"):
        monkeypatch.setattr(f"gingham.engine.place.{name}", lambda: True)
    assert not on_device("auto")  # too small to pay
    monkeypatch.setattr(fit, "DEVICE_WORK", 0)
    monkeypatch.setattr(fit, "DEVICE_TOKEN", 0)
    assert on_device("auto")
    with pytest.raises(GinghamError, match="'cores' is unknown"):
        on_device("cores")
    monkeypatch.setattr("gingham.models.layers.estimator.has_gpu", lambda: False)
    assert not model(backend="torch", baskets="auto")._has_baskets(2)  # torch draws baskets slowly on cores
    assert model(backend="torch", baskets=2)._has_baskets(2)
