"""How long every command takes that a new user calls, one after the other, on four tables with nothing set.

Each command is a process; CPU seconds include its children. `certify` is called with the model, the table and, where
labels are ratings, those that are possible.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, load, previous, write

FIGURES = {
    "certify over fit": "*/certify over fit",
    "report over fit": "*/report over fit",
    "CPU seconds of a fit": "*/fit/cpu_s",
}
SETS = {"MovieTweetings": "movietweetings100k", "Anime": "anime5k", "Book-Crossing": "bookcrossing"}
# A guarantee asks for the possible labels.
LABELS = {"MovieTweetings": "0..10", "Anime": "1..10", "Book-Crossing": "1..10", "Senate": "nay,yea"}
COMMANDS = (
    ("look", "table.csv"),
    ("fit", "table.csv", "--out", "m.gingham"),
    ("describe", "m.gingham"),
    ("clusters", "m.gingham", "--out", "clusters.csv"),
    ("predict", "m.gingham", "table.csv", "--out", "predictions.csv"),
    ("certify", "m.gingham", "table.csv", "--save", "certificate.json"),
    ("verify", "certificate.json", "m.gingham", "table.csv"),
    ("report", "m.gingham", "table.csv", "--out", "page.html"),
)


def table_of(folder: str | None, name: str) -> pl.DataFrame:
    """The observations as a new user has them."""
    data = load(folder, f"{SETS.get(name, 'senate105_116')}.npz")
    if name == "Senate":
        votes = np.where(data["vals"] > 0, "yea", "nay")
        return pl.DataFrame({"senator": data["icpsr"][data["rows"]], "rollcall": data["cols"], "vote": votes})
    return pl.DataFrame({"user": data["rows"], "item": data["cols"], "rating": data["vals"].astype(np.int64)})


def timed(command: tuple[str, ...], folder: Path) -> dict[str, object]:
    """What one command takes."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gingham", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row: dict[str, object] = {"cpu_s": round(cpu, 2), "wall_s": round(seconds, 2)}
    if done.returncode:
        row |= {"exit": done.returncode, "said": (done.stderr.strip().splitlines() or [""])[-1]}
    return row


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default=",".join((*SETS, "Senate")))

    args = arguments(__doc__ or "", "speed_commands", options)
    results = previous(args)
    for name in args.only.split(","):
        rows: dict[str, object] = {}
        with tempfile.TemporaryDirectory() as folder:
            table = table_of(args.data, name)
            (table.sample(8000, seed=0) if args.quick else table).write_csv(Path(folder) / "table.csv")
            for command in COMMANDS:
                if command[0] == "certify" and name in LABELS:
                    command = (*command, "--alphabet", LABELS[name])
                rows[command[0]] = timed(command, Path(folder))
                print(name, command[0], rows[command[0]], flush=True)
        for one in ("certify", "report"):
            rows[f"{one} over fit"] = round(rows[one]["cpu_s"] / rows["fit"]["cpu_s"], 3)
        results[name] = rows
        write(args, {"commands": [" ".join(command) for command in COMMANDS]}, results, ("polars",))


if __name__ == "__main__":
    main()
