"""The papers' pages: nothing numbered in a paper is missing, every section has a verdict."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import papers  # noqa: E402

FOLDER = ROOT / "docs" / "papers"
EVERY = papers.items(FOLDER)
# What each paper numbers: statements, figures, tables, algorithms by name, and its last equation.
NUMBERED = {
    "p0": (
        "Theorem 1; Theorem 2; Theorem 3; Lemma 4; Theorem 5; Theorem 6; Theorem 7; Lemma 8; Lemma 9; Theorem 10; "
        "Theorem 11; Theorem 12; Theorem 13; Algorithm 1; Algorithm 2; Figure 1; Figure 2; Figures 3, 4, 5; Figure 6; "
        "Figure 7; Figure 8; Figure 9; Appendix A; Appendix B",
        56,
    ),
    "p1": ("Theorem 1; Theorem 2; Algorithm 1; Figure 1 (a); Figure 1 (b); Figure 2; Figure 3 (a); Figure 3 (b)", 15),
    "p2": (
        "Table 1; Table 2; Table 3; Figure 1; Figure 2; Figure 3; Figures 4 and 5; Figure 6; Figures 7 and 8; "
        "Figure 9; Figure 10",
        12,
    ),
    "p3": (
        "Theorem 1; Proposition 1; Definition 2; Theorem 3; Figure 1; Figure 2; Figure 3; Figure 4; Figure 5; "
        "Figure 6; Table 1; Table 2; Table 3; Table 4",
        44,
    ),
    "p4": (
        "Lemma 1; Lemma 2; Theorem 1; Theorem 2; Definition 1; Definition 2; Algorithm 1; Figure 1; Table 1",
        5,
    ),
}


def equations(titles: list[str]) -> set[int]:
    """The equations that titles name: (7), (14)–(16)."""
    found = set()
    for title in titles:
        for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", title):
            found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("page", papers.PAGES)
def test_every_numbered_item_has_a_section(page):
    titles = [item.title for item in EVERY if item.page == page]
    names, last = NUMBERED[page]
    assert [name for name in names.split("; ") if not any(name in title for title in titles)] == []
    assert set(range(1, last + 1)) - equations(titles) == set()


@pytest.mark.parametrize("page", papers.PAGES)
def test_every_section_begins_with_a_verdict(page):
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    mine = [item for item in EVERY if item.page == page]
    assert len(mine) == len(re.findall("^### ", text, re.MULTILINE))
    assert {item.verdict for item in mine} <= set(papers.VERDICTS)


@pytest.mark.parametrize("page", papers.PAGES)
def test_files_and_pictures_are_there(page):
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tests|benchmarks|models)/[\w/]+\.(?:py|json))`", text):
        assert (ROOT / path).exists() or (ROOT / "src" / "gingham" / path).exists(), path
    for path in re.findall(r"\]\(\.\./\.\./(benchmarks/results/[\w.]+)\)", text):
        assert (ROOT / path).exists(), path
