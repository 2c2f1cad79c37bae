import numpy as np
import pytest

from gingham import CoClusteringRegressor, GinghamError, RefusedCertificate
from gingham.certificates import certify, certify_stream, held_out_part, whole_population


def planted(size=900, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 20, size), rng.integers(0, 15, size)])
    y = np.where((X[:, 0] < 10) == (X[:, 1] < 5), 3, 1)
    return X, np.where(rng.random(size) < 0.1, 2, y)


def model():
    return CoClusteringRegressor((2, 2), alphabet=(1, 2, 3), start="means", random_state=0)


def test_a_stream_of_certificates():
    X, y = planted()
    stream = certify_stream(model(), X, y, sizes=[100, 300, 900], population=(20, 15))
    assert len(stream) == 3
    assert stream.values[-1] < stream.values[0]
    assert all(c.anytime and c.delta == 0.05 for c in stream)
    assert stream.best.value == stream.values.min()
    assert (stream.empirical <= stream.values).all()
    kept = certify_stream(stream.models[-1].posterior_, X, y)
    assert kept.sizes[-1] == 900
    assert kept.certificates[-1].value <= stream.certificates[-1].value + 1e-9


def test_streams_need_items_fixed_beforehand():
    X, y = planted()
    with pytest.raises(RefusedCertificate, match="population"):
        certify_stream(model(), X, y)
    with pytest.raises(GinghamError, match="increase"):
        certify_stream(model(), X, y, sizes=[10, 5], population=(20, 15))


def test_finite_populations():
    X, y = planted()
    fitted = model().fit(X[:600], y[:600])
    certificate = certify(fitted, X[:600], y[:600])
    everything = whole_population(certificate, 6000)
    assert everything.value == certificate.value
    assert "without replacement" in everything.assumptions[0].text
    rest = held_out_part(certificate, 6000)
    assert rest.value == pytest.approx((6000 * certificate.value - 600 * certificate.empirical) / 5400)
    assert held_out_part(certificate, 700).value > rest.value
    with pytest.raises(GinghamError, match="nothing is held out"):
        held_out_part(certificate, 600)
    with pytest.raises(GinghamError, match="cannot contain"):
        whole_population(certificate, 10)
    with pytest.raises(RefusedCertificate, match="anytime"):
        whole_population(certify(fitted, X[:600], y[:600], anytime=True), 6000)
