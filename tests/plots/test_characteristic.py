"""Bars of characteristic words."""

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


def test_pictures_are_functions_of_the_package_and_others_are_refused():
    assert dir(plots) == sorted(plots.MODULES)
    assert all(callable(getattr(plots, name)) for name in plots.MODULES)
    with pytest.raises(AttributeError, match="no_such_picture"):
        plots.no_such_picture  # noqa: B018
