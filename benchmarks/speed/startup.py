"""What commands cost before they do anything: CPU seconds of help, of wrong file names and of a fit of 1,000 rows.

Caches are warm: modules are compiled once before the clock runs, as `pip install` compiles them, and kernels, too.
The 1,000 rows are drawn, a clear pattern of few items, and once more ratings as people give them: hundreds of
people and movies with a rating or two each, of MovieLens 100k where its data is there, drawn otherwise.

And when a fit first says what it is doing, on a terminal: seconds, and CPU seconds, from the call until each phase's
name is shown.
"""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, load, write

FIGURES = {
    "help, CPU s": "gingham --help/least",
    "wrong name, CPU s": "gingham fit, no such table/least",
    "fit of 1,000 rows, CPU s": "gingham fit, 1,000 rows/least",
    "of 1,000 sparse ratings": "gingham fit, 1,000 sparse ratings/least",
    "the phase is shown after, s": "phases shown/summary/wall_s",
}
FIT = ["fit", "ratings.csv", "--axes", "user,movie", "--label", "rating"]
FIT_SPARSE = ["fit", "sparse.csv", "--out", "sparse.gingham"]
COMMANDS = {
    "python alone": None,
    "gingham --help": ["--help"],
    "gingham fit --help": ["fit", "--help"],
    "gingham fit, no such table": ["fit", "absent.csv", "--axes", "user,movie", "--label", "rating"],
    "gingham predict, no such model": ["predict", "absent.gingham", "ratings.csv"],
    "gingham fit, 1,000 rows": FIT,
    "gingham fit, 1,000 sparse ratings": FIT_SPARSE,
    "gingham predict, 1,000 rows": ["predict", "model.gingham", "ratings.csv", "--out", "predicted.csv"],
}


def sparse_ratings(data: str | None, rng: np.random.Generator, n: int = 1000) -> tuple[pl.DataFrame, str]:
    """Ratings of people and movies that have one or two each, and where they come from."""
    if data:
        known = load(data, "ml100k.npz")
        rows = rng.choice(len(known["vals"]), n, replace=False)
        user, movie, rating = (known[name][rows] for name in ("rows", "cols", "vals"))
        return pl.DataFrame({"user": user, "movie": movie, "rating": rating}), "MovieLens 100k"
    user, movie = (rng.choice(m, n, p=(w := 1.0 / (np.arange(m) + m / 10)) / w.sum()) for m in (943, 1682))
    tastes = rng.normal(0, 0.5, (2, 2))[user % 2, movie % 2] + rng.normal(0, 0.4, 943)[user]
    rating = np.clip(np.round(3.5 + tastes + rng.normal(0, 0.4, 1682)[movie] + rng.normal(0, 0.9, n)), 1, 5)
    return pl.DataFrame({"user": user, "movie": movie, "rating": rating}), "drawn"


def compiled(folder: Path) -> dict[str, str]:
    """The environment, with modules compiled once and for all into a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def cpu_seconds(command: list[str], folder: Path) -> float:
    """User and system time of a process and of its children."""
    before = os.times()
    subprocess.run(command, cwd=folder, capture_output=True, check=False, env=compiled(folder))
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def phases_shown(command: list[str], folder: Path) -> dict[str, dict[str, float]]:
    """When each phase of a fit is first named on a terminal."""
    terminal, end = pty.openpty()
    began, shown, text = time.perf_counter(), {}, ""
    with subprocess.Popen(command, cwd=folder, stdout=end, stderr=end, env=compiled(folder)) as process:
        os.close(end)
        while True:
            try:
                read = os.read(terminal, 4096)
            except OSError:  # the other end was closed
                break
            if not read:
                break
            text += read.decode(errors="replace")
            for phase in ("summary", "starting", "sweeping", "saving"):
                if phase in text and phase not in shown:
                    spent = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
                    cpu = sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")
                    shown[phase] = {"wall_s": round(time.perf_counter() - began, 3), "cpu_s": cpu}
    os.close(terminal)
    return shown


def more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=7, help="of each command")


def main() -> None:
    args = arguments(__doc__.split("\n")[0], "speed_startup", more)
    runs = 1 if args.quick else args.runs
    rng = np.random.default_rng(args.seed)
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        user, movie = rng.integers(0, 80, 1000), rng.integers(0, 60, 1000)
        rating = np.array([[5, 2], [1, 4]])[user % 2, movie % 2]
        pl.DataFrame({"user": user, "movie": movie, "rating": rating}).write_csv(folder / "ratings.csv")
        sparse, source = sparse_ratings(args.data, rng)
        sparse.write_csv(folder / "sparse.csv")
        for words in (FIT, FIT_SPARSE):  # fills the caches
            fit = [sys.executable, "-m", "gingham", *words]
            subprocess.run(fit, cwd=folder, check=True, capture_output=True, env=compiled(folder))
        for title, words in COMMANDS.items():
            command = [sys.executable, "-c", "pass"] if words is None else [sys.executable, "-m", "gingham", *words]
            spent = sorted(cpu_seconds(command, folder) for _ in range(runs))
            results[title] = {"least": round(spent[0], 3), "median": round(spent[len(spent) // 2], 3)}
            print(f"{title}: {results[title]}", flush=True)
        results["phases shown"] = phases_shown([sys.executable, "-m", "gingham", *FIT], folder)
        print(f"phases shown: {results['phases shown']}", flush=True)
    write(args, settings={"runs": runs, "unit": "CPU seconds", "sparse ratings": source}, results=results)


if __name__ == "__main__":
    main()
