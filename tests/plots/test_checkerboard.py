"""Order and picture of a checkerboard."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

import gingham as gg
from gingham.plots import checkerboard
from gingham.plots.board import arrange, picture

mpl.use("agg")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 30, 600), rng.integers(0, 20, 600)
    y = np.array([[5, 2], [1, 4]])[rows % 2, columns % 2]
    X = np.column_stack([rows, columns])
    model = gg.CoClusteringRegressor(2, alphabet=range(1, 6), beta=2.0, random_state=0).fit(X, y)
    return model, model.sample(X, y)


def test_items_of_a_cluster_stand_together(fitted):
    model, _ = fitted
    layout = arrange(model.posterior_)
    for side in (0, 1):
        labels = model.labels_[side][layout.items[side]]
        assert (np.diff(labels) != 0).sum() == 1
        assert sorted(layout.items[side]) == list(range(len(labels)))
        assert layout.bounds[side][-1] == len(labels)
        assert labels[0] == layout.clusters[side][0]


def test_picture_holds_the_labels(fitted):
    sample = fitted[1]
    image = picture(sample)
    assert image.shape == (30, 20)
    for row, column, label in zip(*sample.codes, sample.labels):
        assert image[row, column] == label
    assert np.isnan(image).sum() == 600 - len({*zip(*[c.tolist() for c in sample.codes])})


def test_picture_aggregates(fitted):
    image = picture(fitted[1], max_pixels=7)
    assert image.shape == (7, 7)
    assert 1 <= np.nanmin(image) <= np.nanmax(image) <= 5


def test_draws_on_given_axes(fitted):
    import matplotlib.pyplot as plt

    model, sample = fitted
    figure, ax = plt.subplots()
    assert checkerboard(model.posterior_, sample, ax=ax) is ax
    assert len(ax.lines) == 2
    assert ax.get_ylabel() == "row"
    plt.close(figure)
