"""Maps, contingency tables and the information plane draw what they are given."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

import gingham as gg
from gingham.datasets import planted_grid
from gingham.errors import GinghamError
from gingham.plots import coembedding, contingency, information_plane

mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def fits():
    data = planted_grid((40, 30), (2, 3), 2000, seed=0)
    models = {
        beta: gg.CoClusteringRegressor((3, 4), beta=beta, alphabet=range(5), random_state=0).fit(data.X, data.y)
        for beta in (0.1, 1.0, 3.0)
    }
    return models, models[1.0].sample(data.X, data.y)


def test_coembedding_has_both_modes(fits):
    ax = coembedding(fits[0][1.0].posterior_)
    assert [len(c.get_offsets()) for c in ax.collections] == [40, 30]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["row", "column"]
    few = coembedding(fits[0][1.0].posterior_, max_points=5)
    assert [len(c.get_offsets()) for c in few.collections] == [5, 5]


def test_contingency_counts_and_aligns():
    ax = contingency([0, 0, 1, 1, 1], ["b", "b", "a", "a", "b"], names=("ours", "theirs"))
    image = np.asarray(ax.images[0].get_array())
    assert image.tolist() == [[2, 0], [1, 2]]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["b", "a"]
    with pytest.raises(GinghamError, match="one length"):
        contingency([0, 1], [0, 1, 2])


def test_information_plane_goes_down_with_beta(fits):
    models, sample = fits
    ax = information_plane({beta: model.posterior_ for beta, model in models.items()}, sample)
    x, y = ax.lines[0].get_data()
    assert np.all(np.diff(x) >= 0)
    assert y[-1] < y[0]
    assert [t.get_text() for t in ax.texts] == ["0.1", "1", "3"]
    with pytest.raises(GinghamError):
        information_plane([], sample)


def test_path_draws_what_was_measured():
    data = planted_grid((30, 20), (2, 2), 1000, seed=0)
    model = gg.CoClusteringRegressor(2, alphabet=range(5), random_state=0)
    ax = gg.beta_path(model, data.X, data.y, [0.3, 1.0], cv=2).plot()[0]
    names = [line.get_label() for line in ax.lines]
    assert names[0] == "certificate"
    assert "training (Gibbs)" in names
    assert len(ax.lines[0].get_xdata()) == 2
