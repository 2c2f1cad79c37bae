import numpy as np
import pytest

import gingham as gg
from gingham import plots
from gingham.errors import GinghamError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def fitted():
    import matplotlib as mpl

    mpl.use("Agg")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 12, 400), rng.integers(0, 10, 400)])
    y = np.where((X[:, 0] < 6) == (X[:, 1] < 5), 3, 1)
    return gg.CoClusteringRegressor((2, 2), alphabet=(1, 2, 3), start="means", random_state=0).fit(X, y), X, y


def test_waterfall_climbs_from_the_observed_loss_to_the_guarantee(fitted):
    model, X, y = fitted
    certificate = gg.certify(model, X, y)
    ax = plots.waterfall(certificate)
    bars = ax.patches
    assert len(bars) == len(certificate.terms) + 2
    assert bars[0].get_width() == pytest.approx(certificate.empirical)
    assert bars[-1].get_width() == pytest.approx(certificate.value)
    climbed = sum(bar.get_width() for bar in bars[1:-1])
    assert climbed == pytest.approx(certificate.value - certificate.empirical)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "observed loss"
    assert labels[-1] == "guarantee"


def test_a_certificate_without_terms_is_not_drawn(fitted):
    from dataclasses import replace

    model, X, y = fitted
    with pytest.raises(GinghamError, match="no terms"):
        plots.waterfall(replace(gg.certify(model, X, y), terms={}))
