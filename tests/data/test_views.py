"""Views: every kind of matrix in, one layout out, and a sentence for what cannot be used."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from gingham.data.views import (
    as_view,
    as_views,
    column_means,
    column_squares,
    feature_names,
    from_parts,
    per_view,
    sum_of_squares,
    to_parts,
)
from gingham.errors import GinghamError

TABLE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
LAYOUTS = {
    "array": TABLE,
    "list": TABLE.tolist(),
    "float32": TABLE.astype(np.float32),
    "integers": TABLE.astype(int),
    "csr_matrix": sparse.csr_matrix(TABLE),
    "csr_array": sparse.csr_array(TABLE),
    "csc_array": sparse.csc_array(TABLE),
    "coo_matrix": sparse.coo_matrix(TABLE),
    "pandas": pd.DataFrame(TABLE, columns=list("abc")),
    "polars": pl.DataFrame(TABLE, schema=list("abc")),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_the_same_matrix(layout):
    view = as_view(LAYOUTS[layout], "view 0")
    dense = view if isinstance(view, np.ndarray) else view.toarray()
    assert dense.dtype == np.float64
    np.testing.assert_array_equal(dense, TABLE)
    np.testing.assert_allclose(column_means(view), TABLE.mean(0))
    np.testing.assert_allclose(column_squares(view), (TABLE**2).sum(0))
    assert sum_of_squares(view) == pytest.approx((TABLE**2).sum())
    back = from_parts(to_parts(view))
    np.testing.assert_array_equal(back if isinstance(back, np.ndarray) else back.toarray(), TABLE)


def test_frames_keep_their_column_names():
    assert feature_names(LAYOUTS["pandas"]).tolist() == ["a", "b", "c"]
    assert feature_names(LAYOUTS["polars"]).tolist() == ["a", "b", "c"]
    assert feature_names(TABLE) is None


holes = TABLE.copy()
holes[1, 2] = np.nan
endless = TABLE.copy()
endless[0, 1] = np.inf
REFUSED = [
    (TABLE, "one matrix per view"),
    ([TABLE], "2 views or more"),
    ([TABLE, TABLE[:1]], r"view 0 has 2, view 1 has 1"),
    ([TABLE, holes], "view 1 has NaN in row 1, column 2"),
    ([endless, TABLE], "view 0 has infinity in row 0, column 1"),
    ([sparse.csr_array(holes), TABLE], "view 0 has NaN or infinity in row 1"),
    ([TABLE, TABLE[0]], "reshape"),
    ([TABLE, TABLE[None]], "3 dimension"),
    ([TABLE, TABLE + 1j], "complex"),
    ([TABLE, [["a", "b"], ["c", "d"]]], "TfidfVectorizer"),
    ([TABLE, ["some text", "more text"]], "TfidfVectorizer"),
    ([TABLE, np.empty((2, 0))], "empty"),
    ([TABLE, pd.DataFrame({"x": [1, 2], "city": ["Oslo", "Rome"]})], "'city' of view 1"),
    ([TABLE, pl.DataFrame({"x": [1, None]})], "view 1 has NaN in row 1"),
    ([TABLE, pl.DataFrame({"x": [1, 2]}).lazy()], "collect"),
    ([TABLE, None], "view 1"),
]


@pytest.mark.parametrize(("views", "sentence"), REFUSED)
def test_bad_views_are_refused_with_a_sentence(views, sentence):
    with pytest.raises(GinghamError, match=sentence):
        as_views(views, at_least=2)


def test_a_view_may_be_missing_where_that_is_allowed():
    assert as_views([None, TABLE], missing=True)[0] is None
    with pytest.raises(GinghamError, match="Every view is None"):
        as_views([None, None], missing=True)


def test_one_value_or_one_per_view():
    assert list(per_view(0.1, 3, "ridge")) == [0.1] * 3
    assert list(per_view([1, 2], 2, "ridge")) == [1, 2]
    with pytest.raises(GinghamError, match="ridge has 3 entries for 2 views"):
        per_view([1, 2, 3], 2, "ridge")
