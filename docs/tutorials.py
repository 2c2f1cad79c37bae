"""Tutorials: run the code of each page, and write what it prints and draws into the page; pictures of the guide.

``python docs/tutorials.py`` renews all pages, ``python docs/tutorials.py network guide/graphs`` some of them. A
tutorial reads its tables from the working folder, as a reader would; those on data that may not be shipped get them
from the folder that ``GINGHAM_DATA`` names (see `TABLES`). ``tests/test_tutorials.py`` runs the same code on small
planted tables. Pages of the guide draw pictures and show no output; ``tests/test_documentation.py`` runs them.

A block works as in a notebook: what it prints is shown, then the value of its last line. Figures that are open at its
end become ``_static/tutorials/PAGE-NUMBER.png`` (``_static/guide`` for the guide); the page says where they stand.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import scipy.sparse as sp
from PIL import Image

HERE = Path(__file__).parent
PAGES = HERE / "tutorials"
PICTURES = HERE / "_static" / "tutorials"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n<!-- output -->\n.*?<!-- end of output -->\n)?", re.S | re.M)
PEOPLE = 1500  # who answered the survey, drawn at random: enough to read, and a fit takes seconds


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


def movielens(data: Path) -> None:
    """MovieLens-100K as three tables: who rated what, the films, the people."""
    ratings = np.load(data / "ml100k.npz")
    films = pl.read_csv(data / "ml100k_items.csv.gz")
    genres = films.columns[4:]
    films = films.with_columns(
        year=pl.col("release_date").str.slice(-4).cast(pl.Int64, strict=False),
        genres=pl.concat_str([pl.when(pl.col(g) == 1).then(pl.lit(f"{g}|")).otherwise(pl.lit("")) for g in genres]),
    )
    people = pl.read_csv(data / "ml100k_users.csv.gz").rename({"row": "viewer"})
    pl.DataFrame({"viewer": ratings["rows"], "film": ratings["cols"], "stars": ratings["vals"]}).write_csv(
        "ratings.csv"
    )
    films.select(pl.col("col").alias("film"), "title", "year", pl.col("genres").str.strip_chars("|")).write_csv(
        "films.csv"
    )
    people.write_csv("people.csv")


def classic3(data: Path) -> None:
    """Abstracts of three collections: counts of words, the words, and which collection each abstract is from."""
    labels = np.load(data / "docs_classic3_labels.npz")
    sp.save_npz("abstracts.npz", sp.load_npz(data / "docs_classic3.npz"))
    Path("words.txt").write_text("\n".join(labels["terms"].tolist()), encoding="utf-8")
    names = np.array(["Medline", "CISI", "Cranfield"])
    Path("collections.txt").write_text("\n".join(names[labels["labels"]].tolist()), encoding="utf-8")


def jester(data: Path) -> None:
    """Answers to Jester's hundred questions, by some of the people."""
    answers = np.load(data / "jester1.npz")
    people = np.random.default_rng(0).permutation(int(answers["shape"][0]))[:PEOPLE]
    kept = np.isin(answers["rows"], people)
    pl.DataFrame(
        {
            "person": answers["rows"][kept],
            "joke": answers["cols"][kept] + 1,
            "answer": answers["vals"][kept].astype(float).round(2),
        }
    ).write_csv("answers.csv")


TABLES = {"ratings": movielens, "documents": classic3, "survey": jester}  # other pages use what libraries ship


def renew(name: str) -> None:
    """Run one page in a folder of its own; save its pictures and, of a tutorial, rewrite it with its output."""
    folder, _, stem = name.rpartition("/")
    folder = folder or "tutorials"
    page = HERE / folder / f"{stem}.md"
    pictures = HERE / "_static" / folder
    pictures.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            if folder == "tutorials" and stem in TABLES:
                TABLES[stem](Path(os.environ["GINGHAM_DATA"]))
            text = run(page.read_text(encoding="utf-8"), lambda number: pictures / f"{stem}-{number}.png")
        finally:
            os.chdir(before)
    if folder == "tutorials":
        page.write_text(text, encoding="utf-8")


def every_page() -> list[str]:
    tutorials = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")
    guide = sorted((HERE / "guide").glob("*.md"))
    return tutorials + [f"guide/{page.stem}" for page in guide if "_static/guide/" in page.read_text(encoding="utf-8")]


if __name__ == "__main__":
    for name in sys.argv[1:] or every_page():
        print(name, flush=True)
        renew(name)
