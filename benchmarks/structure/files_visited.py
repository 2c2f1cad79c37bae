"""How many functions and files of gingham one call visits, and how deep its calls nest.

Every call is made twice in one process; the second is watched with a profiler, so that imports and compilation are
not counted. A file counts where a function of it is entered. Functions are those with a name: comprehensions, which
Python 3.12 no longer calls, and lambdas are left out. The depth is the largest number of gingham's functions that are
active at once. All is done in seconds, so that ``--quick`` does the same.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, write
from gingham.cli.app import run
from gingham.datasets import planted_counts, planted_graph, planted_grid

SOURCE = Path(gg.__file__).parent
FIGURES = {
    "files of a grid fit": "grid fit/files",
    "graph fit": "graph fit/files",
    "layered fit": "layered fit/files",
    "counts fit": "counts fit/files",
    "gingham fit": "gingham fit/files",
    "gingham report": "gingham report/files",
}


def visited(call: Callable[[], object]) -> dict[str, object]:
    """Files, functions, rooms and depth of the second of two calls, the files in the order of the first visit."""
    call()
    entered: dict[tuple[str, str, int], None] = {}
    known: dict[CodeType, bool] = {}
    deepest = 0

    def named(code: CodeType) -> bool:
        if code not in known:
            known[code] = code.co_filename.startswith(f"{SOURCE}/") and not code.co_name.startswith("<")
        return known[code]

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal deepest
        code = frame.f_code
        if event != "call" or not named(code):
            return
        entered.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno))
        above, depth = frame.f_back, 1
        while above is not None and above is not bottom:
            depth, above = depth + named(above.f_code), above.f_back
        deepest = max(deepest, depth)

    bottom = sys._getframe()
    threading.setprofile(watch)  # starts that run side by side
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    files = list(dict.fromkeys(str(Path(file).relative_to(SOURCE)) for file, _, _ in entered))
    rooms = {str(Path(file).parent) for file in files}
    return {"files": len(files), "functions": len(entered), "rooms": len(rooms), "depth": deepest, "walk": files}


def command(*words: object) -> Callable[[], object]:
    """A command as it is typed, with nothing on the screen."""

    def call() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = run([str(word) for word in words])
        if code:
            raise SystemExit(said.getvalue())

    return call


def calls(folder: Path, seed: int) -> dict[str, Callable[[], object]]:
    """What is watched, by name; the smallest data on which every step of a fit is taken."""
    grid = planted_grid((60, 40), (3, 3), 3000, seed=seed)
    X, y = grid.X, grid.y
    graph = planted_graph(200, 4, inside=15, outside=2, seed=seed).adjacency
    counts = planted_counts(seed=seed).counts
    ratings, model, page = folder / "ratings.csv", folder / "model.gingham", folder / "page.html"
    lines = [f"u{a},m{b},{label}" for (a, b), label in zip(X.tolist(), y.tolist())]
    ratings.write_text("\n".join(["user,movie,rating", *lines]) + "\n")
    quick = ("--effort", "fast")  # fewer sweeps of the same functions, since a watched call is slow
    fitted = gg.CoClusteringRegressor(alphabet=np.unique(y), random_state=seed).fit(X, y)
    return {
        "grid fit": lambda: gg.CoClusteringRegressor(random_state=seed).fit(X, y),
        "graph fit": lambda: gg.GraphClustering(random_state=seed).fit(graph),
        "layered fit": lambda: gg.LayeredCoClusteringRegressor(n_layers=2, n_clusters=3, random_state=seed).fit(X, y),
        "counts fit": lambda: gg.CoOccurrenceClustering(n_clusters=(4, 3), random_state=seed).fit(counts),
        "predict": lambda: fitted.predict(X),
        "certify": lambda: gg.certify(fitted, X, y),
        "gingham fit": command("fit", ratings, "--label", "rating", "--axes", "user,movie", *quick, "--out", model),
        "gingham report": command("report", model, ratings, "--out", page),
    }


def main() -> None:
    args = arguments(__doc__ or "", "structure_files_visited")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'call':16} {'files':>6} {'functions':>10} {'rooms':>6} {'depth':>6}")
        for name, call in calls(Path(folder), args.seed).items():
            results[name] = found = visited(call)
            print(
                f"{name:16} {found['files']:6} {found['functions']:10} {found['rooms']:6} {found['depth']:6}",
                flush=True,
            )
    write(args, settings={}, results=results)


if __name__ == "__main__":
    main()
