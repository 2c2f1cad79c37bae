"""The numbers on the theory pages are those the library computes."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "theory").glob("*.md"))
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def test_pages_have_examples():
    names = {page.stem for page in WITH_EXAMPLES}
    assert names >= {"log_wealth", "kl_bounds", "type_kl", "complexity", "gain", "split", "density", "population"}


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_worked_examples(page):
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0
