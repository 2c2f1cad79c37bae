"""gibbs_rows equals the numpy line in its docstring; blocks and threads do not change bits."""

import numba
import numpy as np
import pytest
from scipy.special import softmax, xlogy

from gingham.engine.project_compiled import gibbs_rows
from gingham.engine.threads import one_blas_thread, over_blocks


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_equals_softmax_with_sums_and_entropy(scale):
    rng = np.random.default_rng(0)
    cost = rng.random((7, 4)) * scale
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.array([0.5, 0.0, 0.3, 0.2]))  # a dead cluster
    out, sums = np.empty((7, 4)), np.ones(4)
    total = gibbs_rows(log_mass, cost.copy(), out, sums)
    expected = softmax(log_mass - cost, axis=1)
    np.testing.assert_allclose(out, expected, atol=1e-15)
    np.testing.assert_allclose(sums, 1 + expected.sum(axis=0))
    assert total == pytest.approx(xlogy(expected, expected).sum())


def test_blocks_come_in_order_on_any_number_of_threads():
    blocks = list(range(20))
    before = numba.get_num_threads()
    try:
        for n in {1, before}:
            numba.set_num_threads(n)
            assert list(over_blocks(lambda b: b * b, blocks)) == [b * b for b in blocks]
    finally:
        numba.set_num_threads(before)


def test_one_blas_thread_is_undone():
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    with one_blas_thread():
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} <= {1}
    assert [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"] == before
