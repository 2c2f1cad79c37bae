"""Counts through torch: the same starts and the same model as the compiled ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch", reason="torch is not installed")

from gingham import CoOccurrenceClustering  # noqa: E402
from gingham.models.counts import starts, starts_torch  # noqa: E402
from gingham.models.counts.fit import count_sample  # noqa: E402
from gingham.models.counts.profile_kernels import merge_down  # noqa: E402


def counts(seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, size=(5, 4)) + 0.02
    return sparse.csr_array(rng.poisson(2.0 * np.kron(rates, np.ones((12, 10)))).astype(float))


@pytest.mark.parametrize("start", starts_torch.ON_DEVICE)
@pytest.mark.parametrize("shape", [(3, 4), (6, 5), (1, 2)])
def test_starts_are_the_same(start: str, shape: tuple[int, int]) -> None:
    matrix = counts()
    expected = starts.start_labels(start, matrix, shape, np.random.default_rng(1))
    found = starts_torch.start_labels(start, count_sample(matrix).placed(), shape, np.random.default_rng(1))
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("start", ["merged", "spectral"])
def test_the_same_soft_clusters(start: str) -> None:
    matrix = counts(3)
    compiled, device = (
        CoOccurrenceClustering((5, 4), beta=1.0, solver="concave", start=start, backend=name, random_state=0).fit(
            matrix
        )
        for name in ("compiled", "torch")
    )
    assert device.objective_.total == pytest.approx(compiled.objective_.total, rel=1e-7)
    np.testing.assert_allclose(device.row_memberships_, compiled.row_memberships_, atol=1e-6)
    np.testing.assert_allclose(device.blocks_, compiled.blocks_, atol=1e-5)


def test_clusters_of_a_start_are_merged_as_on_the_cores():
    rng = np.random.default_rng(0)
    for _ in range(5):
        table = rng.poisson(rng.gamma(0.5, 3.0, (30, 1)) * rng.gamma(0.5, 3.0, (30, 20))).astype(float)
        np.testing.assert_array_equal(starts_torch._merge_down(table, 5), merge_down(table, 5))
