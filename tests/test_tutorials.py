"""The code of every tutorial runs: on what libraries ship, or on small planted tables of the same form."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

DOCS = Path(__file__).parent.parent / "docs"
SPEC = importlib.util.spec_from_file_location("tutorials", DOCS / "tutorials.py")
tutorials = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tutorials)
PAGES = sorted(page for page in tutorials.PAGES.glob("*.md") if page.stem != "index")


def planted_ratings():
    """Two kinds of viewers, dramas and action films; the first likes the first, the second the second."""
    rng = np.random.default_rng(0)
    viewer, film = rng.integers(0, 40, 900), rng.integers(0, 66, 900)
    keep = np.unique(np.column_stack([viewer, film]), axis=0)
    viewer, film = rng.permutation(keep).T
    stars = np.clip(np.where(viewer % 2 == film % 2, 4, 2) + rng.integers(-1, 2, len(viewer)), 1, 5)
    pl.DataFrame({"viewer": viewer, "film": film, "stars": stars}).write_csv("ratings.csv")
    films = np.arange(66)
    titles = ["Fargo (1996)", *(f"Film {i} (19{50 + i % 50})" for i in films[1:])]
    genres = ["Drama|Crime" if i % 2 == 0 else "Action" for i in films]
    pl.DataFrame({"film": films, "title": titles, "year": 1950 + films % 50, "genres": genres}).write_csv("films.csv")
    people = np.arange(40)
    pl.DataFrame(
        {
            "viewer": people,
            "age": 20 + people,
            "gender": np.array(["F", "M"])[people % 2],
            "occupation": ["student"] * 40,
        }
    ).write_csv("people.csv")


def planted_documents():
    """Three subjects of twelve words each, and words that all of them use."""
    rng = np.random.default_rng(0)
    words = ["wing", "disease", "library", *(f"word{j}" for j in range(3, 45))]
    subject = np.arange(60) % 3
    rates = np.full((60, 45), 0.05)
    for document in range(60):
        rates[document, subject[document] : 36 : 3] = 1.5
    rates[:, 36:] = 0.5
    rates[5, 1] = 0.0  # the page asks whether "disease" would fit into abstract 5
    sp.save_npz("abstracts.npz", sp.csr_matrix(rng.poisson(rates)))
    Path("words.txt").write_text("\n".join(words), encoding="utf-8")
    names = np.array(["Medline", "CISI", "Cranfield"])[subject]
    Path("collections.txt").write_text("\n".join(names.tolist()), encoding="utf-8")


def planted_survey():
    """Two kinds of people and two kinds of jokes; half of the answers are missing."""
    rng = np.random.default_rng(0)
    person, joke = np.nonzero(rng.random((50, 30)) < 0.5)
    answer = np.where(person % 2 == joke % 2, 4.0, -4.0) + rng.normal(0, 2, len(person))
    frame = {"person": person, "joke": joke + 1, "answer": np.clip(answer, -10, 10).round(2)}
    pl.DataFrame(frame).write_csv("answers.csv")


TABLES = {"ratings": planted_ratings, "documents": planted_documents, "survey": planted_survey}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore")  # planted tables are small: models say so
def test_the_code_of_a_tutorial_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem in TABLES:
        TABLES[page.stem]()
    text = page.read_text(encoding="utf-8")
    drawn = []
    again = tutorials.run(text, lambda number: drawn.append(number))
    # The same blocks show something, and every figure has its place on the page.
    parts = [re.findall(r"(```python|<!-- output -->)", one) for one in (text, again)]
    assert parts[0] == parts[1]
    shown = re.findall(rf"_static/tutorials/{page.stem}-(\d+)\.png", text)
    assert [str(number) for number in drawn] == shown
    plt.close("all")


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
