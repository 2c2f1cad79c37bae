"""A model file says what the loss is: its class, its parameters, its table and its facts, or refuses in words."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gingham as gg
from gingham.cells.losses import LOSSES, cell_from_state
from gingham.data import Alphabet
from gingham.errors import GinghamError

FIVE = Alphabet.of(range(1, 6), given=True)
X = [(i, j) for i in range(6) for j in range(4)]
Y = np.array([1 + (i + j) % 5 for i, j in X])
BENT = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))) ** 1.5

# What files of earlier versions keep of each kind of cell.
OLD = [
    ({"loss": "absolute"}, gg.Absolute(FIVE)),
    ({"loss": "zero-one"}, gg.ZeroOne(FIVE)),
    ({"loss": "pinball", "quantile": 0.8}, gg.Pinball(FIVE, 0.8)),
    ({"loss": "log", "smoothing": 0.05}, gg.Logarithmic(FIVE, 0.05)),
    ({"loss": "quadratic", "bounds": (1.0, 5.0)}, gg.Quadratic(FIVE)),
    ({"loss": "table", "table": BENT}, gg.TableLoss(FIVE, BENT)),
]


@pytest.fixture
def tolerant():
    """A registered table loss with a parameter; the registry is as before afterwards."""

    @gg.register_loss
    class Tolerant(gg.TableLoss):
        convex = True
        ordered = True

        def __init__(self, alphabet, width=1.0):
            self.width = width
            gap = np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers))
            super().__init__(alphabet, np.maximum(gap - width, 0.0))

    yield Tolerant
    del LOSSES["tolerant"]


def fitted(loss, model=gg.CoClusteringRegressor):
    return model(n_clusters=2, loss=loss, alphabet=range(1, 6), random_state=0).fit(X, Y)


def reloaded(model, path):
    model.save(path / "m.gingham")
    return gg.load(path / "m.gingham")


def test_a_registered_loss_comes_back_with_its_class_parameters_and_facts(tmp_path, tolerant):
    for loss in ("tolerant", partial(tolerant, width=2.0)):
        model = fitted(loss)
        again = reloaded(model, tmp_path)
        was, now = model.posterior_.cells[0], again.posterior_.cells[0]
        assert type(now) is tolerant
        assert (now.width, now.convex, now.ordered, now.range) == (was.width, True, True, was.range)
        np.testing.assert_array_equal(now.table, was.table)
        # The setting comes back too, so that fitting again minimises the same loss.
        np.testing.assert_array_equal(again.fit(X, Y).posterior_.cells[0].table, was.table)


def test_a_callable_loss_does_not_come_back_as_absolute(tmp_path):
    again = reloaded(fitted(lambda alphabet: gg.TableLoss(alphabet, BENT, convex=True, ordered=True)), tmp_path)
    cell = again.posterior_.cells[0]
    assert again.loss != "absolute"
    assert cell.convex
    assert cell.ordered
    np.testing.assert_array_equal(again.fit(X, Y).posterior_.cells[0].table, BENT)


def test_facts_set_on_one_table_are_kept(tmp_path):
    def make(alphabet):
        cell = gg.TableLoss(alphabet, BENT)
        cell.convex = cell.ordered = True
        return cell

    cell = reloaded(fitted(make), tmp_path).posterior_.cells[0]
    assert (cell.convex, cell.ordered) == (True, True)


def test_a_class_that_nothing_knows_is_refused_before_anything_is_written(tmp_path):
    class Mine(gg.Absolute):
        name = "mine"

    model = fitted(Mine)
    with pytest.raises(GinghamError, match="register_loss"):
        model.save(tmp_path / "m.gingham")
    assert not list(tmp_path.iterdir())


def test_what_the_constructor_does_not_take_is_not_lost_in_silence(tmp_path):
    model = fitted("absolute")
    model.posterior_.cells[0].table = BENT
    with pytest.raises(GinghamError, match=r"self\.table"):
        model.save(tmp_path / "m.gingham")
    assert not list(tmp_path.iterdir())


def test_losses_of_several_relations_come_back(tmp_path):
    model = gg.JointCoClustering({"a": 2, "b": 2}, loss=partial(gg.Pinball, quantile=0.9), random_state=0)
    again = reloaded(model.fit({("a", "b"): (X, Y)}), tmp_path)
    assert again.posterior_.cells[0].quantile == 0.9
    assert again.loss["a", "b"](FIVE).quantile == 0.9


def test_a_committee_keeps_the_loss_of_its_members(tmp_path, tolerant):
    model = gg.Committee(
        gg.CoClusteringRegressor(2, loss=partial(tolerant, width=2.0), alphabet=range(1, 6)), 2, random_state=0
    )
    again = reloaded(model.fit(X, Y), tmp_path)
    assert all(member.posterior_.cells[0].width == 2.0 for member in again.members_)


@pytest.mark.parametrize(("state", "cell"), OLD, ids=lambda v: v["loss"] if isinstance(v, dict) else "")
def test_cells_of_older_files_load(state, cell):
    again = cell_from_state(state, FIVE)
    assert type(again) is type(cell)
    statistics = np.random.default_rng(0).random((6, cell.features.size)) + 0.1
    np.testing.assert_array_equal(again.coef(again.answer(statistics)), cell.coef(cell.answer(statistics)))
    assert (again.range, again.convex, again.ordered) == (cell.range, cell.convex, cell.ordered)


def test_families_and_densities_of_older_files_load():
    old = {"loss": "family", "pseudo": 2.0, "prior": np.array([1.0, 3.0, 10.0]), "shift": 0.0, "min_variance": 0.5}
    gaussian = cell_from_state({**old, "family": "gaussian"}, None)
    assert (gaussian.name, gaussian.pseudo, gaussian.min_variance) == ("gaussian", 2.0, 0.5)
    np.testing.assert_array_equal(gaussian.prior, old["prior"])
    poisson = cell_from_state({**old, "family": "poisson", "prior": np.array([1.0, 3.0]), "shift": 1.0}, None)
    assert (poisson.shift, poisson.pseudo) == (1.0, 2.0)
    assert cell_from_state({**old, "family": "categorical", "prior": np.ones(5) / 5}, FIVE).alphabet is FIVE
    assert cell_from_state({"loss": "mass"}, None).moves == "mass"


def test_a_file_with_a_loss_that_is_not_registered_says_what_to_do():
    with pytest.raises(GinghamError, match="import the module"):
        cell_from_state({"loss": "tolerant", "width": 1.0}, FIVE)


@pytest.mark.parametrize("name", ["table", "pinball", "poisson"])
def test_a_whole_file_of_an_older_version_loads_and_predicts(name):
    """Written from the tuples above before losses were saved by name; expected.json has its predictions then."""
    folder = Path(__file__).parent / "old_models"
    model = gg.load(folder / f"{name}.gingham")
    expected = json.loads((folder / "expected.json").read_text())[name]
    np.testing.assert_allclose(model.predict(X[:4]), expected, rtol=1e-12)
    cell = (model.beliefs_ if name == "poisson" else model.posterior_).cells[0]
    assert cell.name == name
    assert {"table": cell.range == 8.0, "pinball": getattr(cell, "quantile", 0) == 0.9, "poisson": True}[name]
