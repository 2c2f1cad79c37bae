"""grouping equals the numpy lines in its docstring."""

import numpy as np
import pytest

from gingham.kernels.order import grouping


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 500])
def test_equals_a_stable_sort(n_labels, n):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 7, n).astype(np.int32)
    labels = rng.integers(0, 3, n).astype(np.int32) if n_labels > 1 else np.empty(0, np.int32)
    begin, order = grouping(codes, labels, 9, n_labels)
    keys = codes.astype(np.int64) * n_labels + (labels if n_labels > 1 else 0)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(begin, np.searchsorted(np.sort(keys), np.arange(9 * n_labels + 1)))
