"""Bars of characteristic words."""

import importlib

import numpy as np
import pytest

import gingham as gg
from gingham import plots


def test_bars_stand_in_order_with_their_names():
    counts = np.kron([[9, 1], [1, 9]], np.ones((4, 3), int))
    model = gg.CoOccurrenceClustering((2, None), random_state=0).fit(counts)
    table = model.characteristic(3, [f"w{j}" for j in range(6)])
    ax = plots.characteristic(table, 1)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(widths)
    assert len(widths) == 3
    shown = {label.get_text() for label in ax.get_yticklabels()}
    assert shown == set(table["column"][table["cluster"] == 1])


def test_a_picture_stays_a_function_when_its_module_is_imported():
    importlib.import_module("gingham.plots.characteristic")
    assert callable(gg.plots.characteristic)
    with pytest.raises(AttributeError):
        gg.plots.no_such_picture  # noqa: B018
