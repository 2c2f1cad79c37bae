"""Tutorials: run the code of each page, and write what it prints and draws into the page; pictures of the guide.

``python docs/tutorials.py`` renews all pages, ``python docs/tutorials.py network guide/graphs`` some of them.
``tests/test_tutorials.py`` runs the code of the tutorials and compares what it shows with the page. Pages of the guide
draw pictures and show no output; ``tests/test_documentation.py`` runs them.

A block works as in a notebook: what it prints is shown, then the value of its last line. Figures that are open at its
end become ``_static/tutorials/PAGE-NUMBER.png`` (``_static/guide`` for the guide); the page says where they stand.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import polars as pl
from PIL import Image

HERE = Path(__file__).parent
PAGES = HERE / "tutorials"
PICTURES = HERE / "_static" / "tutorials"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n<!-- output -->\n.*?<!-- end of output -->\n)?", re.S | re.M)


def run(text: str, picture: Callable[[int], Path | None] = lambda number: None) -> str:
    """The page with new output after every block; figures are saved where ``picture(number)`` says, if anywhere."""
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    numbers = iter(range(1, 100))

    def renewed(block: re.Match[str]) -> str:
        shown = execute(block[1], namespace)
        for figure in map(plt.figure, plt.get_fignums()):
            path = picture(next(numbers))
            if path is not None:
                save(figure, path)
        plt.close("all")
        code = f"```python\n{block[1]}```\n"
        return f"{code}\n<!-- output -->\n{shown}<!-- end of output -->\n" if shown else code

    plt.close("all")
    return BLOCK.sub(renewed, text)


def execute(code: str, namespace: dict[str, Any]) -> str:
    """Run a block; return what it prints and the value of its last line, as Markdown."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "tutorial", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), namespace)
    shown = fenced(printed.getvalue())
    if isinstance(value, pl.DataFrame):
        return shown + markdown(value)
    if value is None or isinstance(value, (plt.Axes, plt.Figure)):
        return shown
    return shown + fenced(f"{value}\n" if not isinstance(value, str) else f"{value!r}\n")


def fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n" if text.strip() else ""


def markdown(frame: pl.DataFrame) -> str:
    """A frame as a Markdown table."""
    lines = [frame.columns, ["---:" if kind.is_numeric() else "---" for kind in frame.dtypes]]
    lines += [[cell(value) for value in row] for row in frame.rows()]
    return "\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return "–" if value is None else str(value).replace("|", "\\|").replace("*", "\\*").replace("\n", " ")


def save(figure: plt.Figure, path: Path) -> None:
    """A small file: a picture of plain areas and letters needs few colours."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=90, facecolor="white")
    Image.open(buffer).convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def renew(name: str) -> None:
    """Run one page in a folder of its own; save its pictures and, of a tutorial, rewrite it with its output."""
    folder, _, stem = name.rpartition("/")
    folder = folder or "tutorials"
    page = HERE / folder / f"{stem}.md"
    pictures = HERE / "_static" / folder
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        text = run(page.read_text(encoding="utf-8"), lambda number: pictures / f"{stem}-{number}.png")
    if folder == "tutorials":
        page.write_text(text, encoding="utf-8")


def write_report(path: Path) -> None:
    """The report page of the ratings of the tutorial, made on the command line; docs/report.md embeds it."""
    from gingham.cli.app import run as command

    data: dict[str, Any] = {"__name__": "tutorial"}
    with (
        tempfile.TemporaryDirectory() as scratch,
        contextlib.chdir(scratch),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        exec(BLOCK.search((PAGES / "ratings.md").read_text(encoding="utf-8"))[1], data)
        data["X"].with_columns(rating=data["y"].astype(int)).write_csv("ratings.csv")
        data["films"].write_csv("films.csv")
        data["viewers"].write_csv("viewers.csv")
        fit = "fit ratings.csv --model coclustering --alphabet 1..5 --info film=films.csv --info viewer=viewers.csv"
        for line in (f"{fit} --quiet", "report model.gingham ratings.csv --out report.html"):
            if command(line.split()) != 0:
                raise RuntimeError(line)
        path.write_bytes(Path("report.html").read_bytes())


def every_page() -> list[str]:
    tutorials = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")
    guide = sorted((HERE / "guide").glob("*.md"))
    return tutorials + [f"guide/{page.stem}" for page in guide if "_static/guide/" in page.read_text(encoding="utf-8")]


if __name__ == "__main__":
    for name in sys.argv[1:] or every_page():
        print(name, flush=True)
        renew(name)
