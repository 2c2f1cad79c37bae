"""Every public name has a page, every example in a docstring and in the guides runs."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shlex
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import gingham
from gingham.cli.app import run

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "results_tables" not in p.parts)
MODULES = sorted(m.name for m in pkgutil.walk_packages(gingham.__path__, "gingham.") if not m.name.endswith("__main__"))


def generator(name):
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api_groups = generator("api_groups")
PUBLIC = api_groups.names()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_is_and_shows_it(name):
    text = inspect.getdoc(api_groups.value(name)) or ""
    assert text.strip()
    assert ">>> " in text, f"gingham.{name} has no example"


def test_every_public_name_is_reached_from_the_reference():
    assert sorted(name for name in PUBLIC if "." not in name) == sorted(gingham.__all__)  # each in one group
    assert set(PUBLIC) >= {f"losses.{name}" for name in gingham.losses.__all__}
    assert "for name in names()" in (DOCS / "conf.py").read_text(encoding="utf-8")
    assert "generated/groups.inc" in (DOCS / "api" / "index.md").read_text(encoding="utf-8")


def test_every_page_is_in_the_contents_of_one_section():
    """The header has five entries, and the sidebar of each shows the pages below it."""
    above: dict[Path, list[Path]] = {}
    for page in PAGES:
        for listed in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M):
            for entry in re.findall(r"^(?!:)(?:.*<)?([\w./]+?)>?$", listed, re.M):
                above.setdefault((page.parent / f"{entry}.md").resolve(), []).append(page)
    front = DOCS / "index.md"
    assert sum(parents == [front] for parents in above.values()) == 5
    for page in PAGES:
        if page != front:
            assert len(above.get(page.resolve(), [])) == 1, f"{page.name} is listed in {above.get(page.resolve())}"


def test_every_guide_page_has_a_picture():
    for page in sorted((DOCS / "guide").glob("*.md")):
        assert page.stem == "index" or "![" in page.read_text(encoding="utf-8"), f"{page.name} has no picture"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} needs {error.name}")
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def blocks(page: Path) -> list[str]:
    # Blocks with prompts are worked examples; tests/certificates/test_theory_pages.py runs them.
    return re.findall(r"^```python\n(?!>>> )(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)


def outputs(page: Path) -> list[str]:
    """What a page shows below each of its blocks; nothing below most."""
    pattern = r"^```python\n(?!>>> ).*?^```$(?:\n\n```text\n(.*?)^```$)?"
    return re.findall(pattern, page.read_text(encoding="utf-8"), re.S | re.M)


# Pages of the other two folders: tests/test_extend_pages.py, tests/test_tutorials.py.
GUIDES = [p for p in PAGES if blocks(p) and p.parent.name not in ("extend", "tutorials")]


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: str(p.relative_to(DOCS)))
def test_examples_in_guides(page, capsys):
    """The blocks of a page run one after the other, in one namespace."""
    namespace: dict[str, object] = {"__name__": "guide"}
    figures = 0
    plt.close("all")
    for block, shown in zip(blocks(page), outputs(page)):
        capsys.readouterr()
        if ">>>" in block:
            example = doctest.DocTestParser().get_doctest(block, namespace, page.name, str(page), 0)
            namespace.update(example.globs)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            assert runner.run(example, clear_globs=False).failed == 0
            namespace.update(example.globs)
        else:
            exec(compile(block, str(page), "exec"), namespace)
        if shown:
            assert capsys.readouterr().out == shown
        figures += len(plt.get_fignums())
        plt.close("all")
    if page.parent.name == "guide":  # every figure that the code draws is shown, see docs/tutorials.py
        shown = re.findall(rf"_static/guide/{page.stem}-(\d+)\.png", page.read_text(encoding="utf-8"))
        assert shown == [str(number + 1) for number in range(figures)]


def test_a_broken_example_would_be_found(tmp_path):
    page = tmp_path / "broken.md"
    page.write_text("```python\nraise KeyError\n```\n")
    with pytest.raises(KeyError):
        exec(blocks(page)[0])


def test_every_example_of_the_gallery_has_a_picture_of_its_own():
    pattern = re.search(r'"filename_pattern": r"(.*?)"', (DOCS / "conf.py").read_text(encoding="utf-8"))[1]
    for example in sorted((DOCS.parent / "examples").glob("*.py")):
        text = example.read_text(encoding="utf-8")
        drawn = re.search(r"plt\.subplots|waterfall\(", text) if re.search(pattern, example.name) else None
        assert drawn or "sphinx_gallery_thumbnail_path" in text, f"{example.name} would get an empty thumbnail"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([\w./-]+\.(?:md|png))\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_code_that_pages_include_is_there():
    found = 0
    for page in PAGES:
        included = r"\{literalinclude\} (\S+)\n:pyobject: (\w+)"
        for target, name in re.findall(included, page.read_text(encoding="utf-8")):
            source = (page.parent / target).read_text(encoding="utf-8")
            assert re.search(rf"^(?:def|class) {name}\b", source, re.M), f"{page.name} includes {name} of {target}"
            found += 1
    assert found


def script(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)  # where its imports lie
    return generator(name)


def test_figures_in_the_text_of_pages_come_from_files(monkeypatch):
    """``python docs/measured.py`` renews them."""
    module = script("measured", monkeypatch)
    names = {page.relative_to(DOCS).as_posix() for page in module.FIGURES}
    assert {"guide/summaries.md", "papers/p0.md"} <= names
    for page in module.FIGURES:
        text = page.read_text(encoding="utf-8")
        assert text.count("data-from=") == len(module.FIGURE.findall(text)), page
        assert module.with_figures(text) == text, page
    stale = '<span data-from="pairwise_synthetic:paper/KPCA/0:.2f">.17</span> nats'
    assert module.with_figures(stale) == stale.replace(".17", ".91")


def test_no_page_shows_a_placeholder():
    for page in PAGES:
        assert "{{" not in page.read_text(encoding="utf-8"), page


README = DOCS.parent / "README.md"


def test_the_script_of_the_readme_prints_what_the_readme_shows(tmp_path, monkeypatch, capsys):
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    script, output = re.search(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", text, re.S | re.M).groups()
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    exec(compile(script, "README.md", "exec"), namespace)
    assert capsys.readouterr().out == output
    assert "<html" in (tmp_path / "digits.html").read_text(encoding="utf-8")
    trivial = np.abs(namespace["images"][namespace["hidden"]] - np.median(namespace["y"])).mean()
    assert f"a mean error of {trivial:.2f} grey levels" in text


@pytest.mark.parametrize("page", [README, DOCS / "quickstart.md"], ids=["README", "quick start"])
def test_the_commands_of_the_first_pages_run(page, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    user, movie = rng.integers(0, 20, 600), rng.integers(0, 15, 600)
    stars = np.clip(np.where(user % 2 == movie % 2, 4, 2) + rng.integers(-1, 2, 600), 1, 5)
    table = np.column_stack([user, movie, stars])
    np.savetxt(tmp_path / "ratings.csv", table, "%d", ",", header="user,movie,stars", comments="")
    monkeypatch.chdir(tmp_path)
    commands = re.search(r"^```bash\n(gingham .*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)[1]
    for command in commands.splitlines():
        assert run(shlex.split(command, comments=True)[1:]) == 0, command
    assert (tmp_path / "report.html").exists()


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([\w./-]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target


def test_results_in_the_readme_come_from_files(monkeypatch):
    module = script("claims", monkeypatch)
    assert module.renew() == README.read_text(encoding="utf-8")
    assert module.line("RMSE ↓", 0.9, 0.8, "myFM", ".1f") == "| RMSE ↓ | 0.9 | **0.8** (myFM) |"
    assert "| RMSE | MAE |" in "\n".join(module.ratings())


def test_the_tables_of_pages_come_from_files(tmp_path, monkeypatch):
    script("measured", monkeypatch).write_page_tables(tmp_path)
    pages = "".join(
        (DOCS / f"{name}.md").read_text(encoding="utf-8")
        for name in ("results", "validation", "guide/unobserved_features")
    )
    for written in tmp_path.iterdir():
        assert f"results_tables/{written.name}" in pages
        assert written.read_text(encoding="utf-8").strip()


def test_rows_of_tables(monkeypatch):
    layers, graphs, speed = (script(f"{name}_results", monkeypatch) for name in ("layer", "graph", "scale"))
    assert (layers.short(0.86242), layers.short(1.0148, 3)) == (".8624", "1.015")
    assert (graphs.two_digits(138.2), graphs.two_digits(0.0363)) == ("140", "0.036")
    rows = [{"tuples": 10**9, "cores": 16, "predicted_fit_s": 7200.0}]
    assert "| 1,000,000,000 | 2.0 h |" in list(speed.predicted({"predicted": rows}))
    validation = script("validation", monkeypatch)
    assert validation.line("rows", "true", {"rate": 0.012}, {"rate": 0.5}) == "| rows | true | 1.2 % | 50.0 % |"
    every = [row for _, row in validation.results("certificate_coverage")["summary"]["broken bounds"].items()]
    quoted = "\n".join(validation.broken())
    assert all(bound.removeprefix("broken: ") in quoted for bounds in every for bound in bounds)
    comparisons = script("comparisons", monkeypatch)
    assert list(comparisons.table(("a", "b"), [(1, None)])) == ["| a | b |", "|---|---|", "| 1 | – |"]
