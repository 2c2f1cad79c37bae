"""A model file says what the loss is: its class, its parameters, its table and its facts, or refuses in words."""

from __future__ import annotations

from functools import partial

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


@pytest.fixture
def tolerant():
    """A registered table loss with a parameter; the registry is as before afterwards."""

    @gg.losses.register_loss
    class Tolerant(gg.losses.TableLoss):
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
    again = reloaded(fitted(lambda alphabet: gg.losses.TableLoss(alphabet, BENT, convex=True, ordered=True)), tmp_path)
    cell = again.posterior_.cells[0]
    assert again.loss != "absolute"
    assert cell.convex
    assert cell.ordered
    np.testing.assert_array_equal(again.fit(X, Y).posterior_.cells[0].table, BENT)


def test_facts_set_on_one_table_are_kept(tmp_path):
    def make(alphabet):
        cell = gg.losses.TableLoss(alphabet, BENT)
        cell.convex = cell.ordered = True
        return cell

    cell = reloaded(fitted(make), tmp_path).posterior_.cells[0]
    assert (cell.convex, cell.ordered) == (True, True)


def test_a_class_that_nothing_knows_is_refused_before_anything_is_written(tmp_path):
    class Mine(gg.losses.Absolute):
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
    model = gg.JointCoClustering({"a": 2, "b": 2}, loss=partial(gg.losses.Pinball, quantile=0.9), random_state=0)
    again = reloaded(model.fit({("a", "b"): (X, Y)}), tmp_path)
    assert again.posterior_.cells[0].quantile == 0.9
    assert again.loss["a", "b"](FIVE).quantile == 0.9


def test_a_committee_keeps_the_loss_of_its_members(tmp_path, tolerant):
    model = gg.Committee(
        gg.CoClusteringRegressor(2, loss=partial(tolerant, width=2.0), alphabet=range(1, 6)), 2, random_state=0
    )
    again = reloaded(model.fit(X, Y), tmp_path)
    assert all(member.posterior_.cells[0].width == 2.0 for member in again.members_)


def test_a_file_with_a_loss_that_is_not_registered_says_what_to_do():
    with pytest.raises(GinghamError, match="import its module"):
        cell_from_state({"loss": "tolerant", "width": 1.0}, FIVE)
