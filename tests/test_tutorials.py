"""The code of every tutorial runs as pasted, and shows what the page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
import pytest

DOCS = Path(__file__).parent.parent / "docs"
SPEC = importlib.util.spec_from_file_location("tutorials", DOCS / "tutorials.py")
tutorials = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tutorials)
PAGES = sorted(page for page in tutorials.PAGES.glob("*.md") if page.stem != "index")
NUMBER = re.compile(r"\d[\d,]*\.?\d*")


def same(one: str, other: str) -> None:
    """The words are equal, and the numbers up to the last digits, in which machines may differ."""
    assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
    numbers = ([float(found.replace(",", "")) for found in NUMBER.findall(text)] for text in (one, other))
    assert next(numbers) == pytest.approx(next(numbers), rel=0.01, abs=0.011)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::gingham.errors.UnseenItemsWarning")
def test_a_tutorial_shows_what_its_code_gives(page, tmp_path, monkeypatch):
    """``python docs/tutorials.py`` renews the pages."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    drawn = []
    same(text, tutorials.run(text, lambda number: drawn.append(number)))
    shown = re.findall(rf"_static/tutorials/{page.stem}-(\d+)\.png", text)
    assert [str(number) for number in drawn] == shown
    plt.close("all")


def test_other_numbers_and_other_words_are_noticed():
    same("error 0.123 in 1,200 rows", "error 0.1234 in 1,201 rows")
    for changed in ("error 0.15 in 1,200 rows", "loss 0.123 in 1,200 rows", "error 0.123 in 1,300 rows"):
        with pytest.raises(AssertionError):
            same("error 0.123 in 1,200 rows", changed)


def test_pictures_are_there_small_and_used():
    for page in PAGES:
        for name in re.findall(r"_static/tutorials/([\w-]+\.png)", page.read_text(encoding="utf-8")):
            assert (tutorials.PICTURES / name).stat().st_size < 120_000, name
    used = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [path.name for path in tutorials.PICTURES.glob("*.png") if path.name not in used] == []


def test_output_is_written_once_and_an_error_is_not_hidden():
    page = "Text.\n\n```python\nprint(1 + 1)\n'two'\n```\n\nMore.\n"
    once = tutorials.run(page)
    assert "```text\n2\n```\n```text\n'two'\n```\n" in once
    assert tutorials.run(once) == once
    with pytest.raises(ZeroDivisionError):
        tutorials.run("```python\n1 / 0\n```\n")


def test_a_frame_becomes_a_table():
    table = tutorials.markdown(pl.DataFrame({"name": ["a|b"], "x": [0.12345]}))
    assert table == "\n| name | x |\n| --- | ---: |\n| a\\|b | 0.123 |\n\n"
