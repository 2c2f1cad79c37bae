"""The papers' pages: nothing numbered in a paper is missing, every section has a verdict."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import gingham.models
from gingham.models.bayesian.fit import Variational

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


TEXTS = {page: (FOLDER / f"{page}.md").read_text(encoding="utf-8") for page in papers.PAGES}
POINTER = re.compile(r"(?<![`}])`([^`\n]+)`(?!`)")  # not a citation
ROOMS = ("gingham", "gingham.models", "gingham.certificates", "gingham.core.problem", "gingham.models.views.retrieval")
SOURCES = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src" / "gingham").rglob("*.py"))
TAKERS = [getattr(gingham, name) for name in gingham.__all__ if name in gingham.models.MODULES or name == "certify"]
TAKERS += [getattr(kind, "fit", kind) for kind in TAKERS]
TAKERS += [Variational, gingham.BayesianCoClustering.embed]
OPTIONS = {name for taker in TAKERS for name in inspect.signature(taker).parameters}


def found(path: str) -> bool:
    """Whether a dotted name is something of gingham: a module, or what a module or a class has."""
    parts = path.removeprefix("gg.").removeprefix("gingham.").split(".")
    for room in ROOMS:
        at = importlib.import_module(room)
        for part in parts:
            if inspect.isclass(at) and not hasattr(at, part):
                fitted = rf"^\s*[\w, ]*\b{part}\b"  # an attribute that the docstring lists
                return part in inspect.signature(at).parameters or bool(re.search(fitted, at.__doc__ or "", re.M))
            if inspect.ismodule(at) and not hasattr(at, part):
                with contextlib.suppress(ImportError):
                    importlib.import_module(f"{at.__name__}.{part}")
            at = getattr(at, part, None)
        if at is not None:
            return True
    return False


@pytest.mark.parametrize("page", papers.PAGES)
def test_every_pointer_leads_somewhere(page):
    """Classes, functions, options and files that a page names."""
    lost = []
    for pointer in sorted(set(POINTER.findall(re.sub(r"```.*?```", "", TEXTS[page], flags=re.DOTALL)))):
        option, _, value = pointer.partition("=")
        if "/" in pointer:
            there = (ROOT / pointer).exists() or (ROOT / "src" / "gingham" / pointer).exists()
        elif "=" in pointer:
            there = option in OPTIONS and (not value.startswith('"') or value in SOURCES)
        else:
            there = found(pointer)
        lost += [] if there else [pointer]
    assert lost == []


def test_the_papers_own_bounds_are_in_the_package():
    named = ("theorem2", "theorem5", "theorem6", "renyi", "lemma1", "p4_theorem1", "p4_theorem2", "quantised")
    pages = "".join(TEXTS.values())
    assert [name for name in named if f"`certificates.papers.{name}`" not in pages] == []
    assert "`gingham.certificates.equation15`" in pages


def test_a_pointer_that_leads_nowhere_is_noticed():
    assert found("CoClusteringRegressor.predict")
    assert not found("CoClusteringRegressor.predicted")
    assert not found("certificates.papers.theorem99")
    assert "concentrations" not in OPTIONS


@pytest.mark.parametrize("page", papers.PAGES)
def test_the_lines_that_run_a_paper_run(page, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", TEXTS[page], re.DOTALL)
    exec(compile(block, page, "exec"), {})
    assert capsys.readouterr().out


def without_their_error(text: str) -> list[str]:
    """Sections that call something repaired and name no error."""
    sections = re.split(r"^(?=##)", text, flags=re.MULTILINE)
    repaired = [section for section in sections if "\n\n**Repaired.**" in section]
    return [section.splitlines()[0] for section in repaired if not re.search(r"[Tt]he error|[Tt]wo errors", section)]


@pytest.mark.parametrize("page", papers.PAGES)
def test_what_was_repaired_names_the_error(page):
    assert without_their_error(TEXTS[page]) == []


def test_a_repair_without_an_error_is_noticed():
    section = "### {}\n\n**Repaired.** {}\n\n"
    text = section.format("One", "It needs more.") + section.format("Two", "The error is a sign.")
    assert without_their_error(text) == ["### One"]


def test_changed_verdicts_are_marked():
    assert set(papers.EARLIER) <= {(item.page, item.title) for item in EVERY}
    assert set(papers.EARLIER.values()) <= {*papers.VERDICTS, ""}
    table = papers.table_of_verdicts(EVERY)
    assert table.count("**changed**") == len(papers.EARLIER)
    assert "Theorem 7, (18): the bound for co-clustering | reproduced | **changed**: was repaired |" in table


def test_the_points_that_readers_should_know_lead_to_sections():
    table = (FOLDER / "index.md").read_text(encoding="utf-8").split("## All verdicts")[0]
    links = re.findall(r"\[([^]]+)\]\((p\d)\.md\)", table.split("## Where to be careful")[1])
    titles = {page: " ".join(item.title for item in EVERY if item.page == page) for page in papers.PAGES}
    assert len(links) > 20
    assert [link for link in links if link[0] != "the page" and link[0] not in titles[link[1]]] == []
