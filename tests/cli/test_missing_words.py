"""A number column in which a word stands for a missing value is numbers, not names."""

import polars as pl
import pytest

from gingham.data.table_files import numbers_with_missing_words


@pytest.mark.parametrize("word", ["nan", "NaN", "NA", "n/a", "null", " None "])
def test_words_for_missing_numbers(word):
    assert numbers_with_missing_words(pl.Series("r", ["5", word, "1.5"])).to_list() == [5.0, None, 1.5]


@pytest.mark.parametrize("values", [["good", "nan"], ["nan", "na"], ["1", "2"], ["5", "bad", "nan"]])
def test_names_stay_names(values):
    assert numbers_with_missing_words(pl.Series("r", values)).to_list() == values
