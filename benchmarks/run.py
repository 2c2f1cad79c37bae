"""Run the benchmarks and renew benchmarks/README.md.

``--quick`` (make bench) runs the small version of every script, under ten minutes on two cores, and ends in one page,
benchmarks/quick/index.html: gingham beside its peers, and the main figures of every script.
``--peers`` (make bench-peers) installs the peers, each group in an environment of its own.
``--full`` (make bench-full) runs the scripts whole and renews benchmarks/results; started again after an
interruption it goes on with the scripts that were not finished.
``--papers`` (make papers) runs the scripts behind the papers' pages whole, those that fit into an hour together, and
says which take longer. ``--table`` only renews the README.

A script whose data, packages or device are not here says so in a sentence and is passed over. What a script says of
itself is read, not imported: ``FIGURES`` (name: path into its results, ``*`` for all keys), ``FULL`` (the options of
each of its full runs, where one run without options is not all), ``ONLY_FULL`` (why it has no small version) and
``LONG`` (why a full run is no part of ``--papers``).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import page
from common import PEERS, SOURCES

HERE = Path(__file__).parent
FOLDERS = ("speed", "papers", "peers", "summary", "robustness", "structure")
QUICK_SECONDS = 180  # a small version needs a fraction of it, kernels still to be compiled included
SKIPPED_KEYS = ("summary", "mean", "means", "table", "predicted", "verdict")  # repeat what stands elsewhere
TIMES = HERE / "times.json"
"""Seconds of whole full runs, kept beside the results."""
ENVIRONMENTS = HERE / "environments"
"""Of the peers, as `install_peers` leaves them."""


@dataclass(frozen=True)
class Script:
    """One benchmark and what it says of itself."""

    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @property
    def title(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def purpose(self) -> str:
        """The first sentence of the docstring."""
        return (ast.get_docstring(self.tree) or "").split("\n\n")[0].replace("\n", " ")

    @cached_property
    def name(self) -> str | None:
        """The JSON file that it writes, as its call of ``arguments`` names it; None if it is run by another script."""
        for call in (node for node in ast.walk(self.tree) if isinstance(node, ast.Call)):
            if str(getattr(call.func, "id", getattr(call.func, "attr", ""))).endswith("arguments"):
                given = [keyword.value for keyword in call.keywords if keyword.arg == "name"] or call.args[1:2]
                if given and isinstance(given[0], ast.Constant):
                    return str(given[0].value)
        return None

    def stated(self, constant: str, otherwise: Any) -> Any:
        """The value of a constant of the module."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == constant:
                return ast.literal_eval(node.value)
        return otherwise

    def figures(self, folder: Path) -> str:
        """The main figures of the result in a folder, ranges where there are several."""
        file = folder / f"{self.name}.json"
        if not file.exists():
            return ""
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
        shown = []
        for name, way in self.stated("FIGURES", {}).items():
            found = [value for value in reached(results, way.split("/")) if value is not None]
            if found:
                shown.append(f"{name} {ranged(found)}")
        return "; ".join(shown)


def scripts(words: list[str] | None = None) -> list[Script]:
    """Every benchmark, speed first, whose path contains one of the words."""
    found = [Script(path) for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))]
    return [s for s in found if s.name and any(word in s.title for word in words or [""])]


def reached(value: Any, way: list[str]) -> Iterator[Any]:
    """All values at the end of a path through nested results."""
    if not way and isinstance(value, list):
        for item in value:
            yield from reached(item, way)
    elif not way:
        yield value
    elif isinstance(value, dict):
        for key in value if way[0] == "*" else [way[0]] if way[0] in value else []:
            yield from reached(value[key], way[1:])
    elif isinstance(value, list):
        numbered = way[0].lstrip("-").isdigit()
        for item in [value[int(way[0])]] if numbered else value if way[0] == "*" else []:
            yield from reached(item, way[1:])


def ranged(values: list[Any]) -> str:
    """One value, or the least and the largest."""
    if all(isinstance(value, bool) for value in values):
        return f"{sum(values)} of {len(values)}"
    ends = (min(values), max(values))
    return " to ".join(dict.fromkeys(f"{end:,}" if isinstance(end, int) else f"{end:.3g}" for end in ends))


def run(script: Script, options: list[str], folder: Path, limit: float | None = None) -> tuple[str, float]:
    """How a script ended, and after how many seconds; its JSON and its log go to the folder."""
    began = time.perf_counter()
    log, written = (folder / f"{script.name}.{kind}" for kind in ("log", "json"))
    command = [sys.executable, str(script.path), *options, "--out", str(written)]
    with log.open("w", encoding="utf-8") as stream:
        # A session of its own, so that a script that is stopped takes its children along.
        started = subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**with_peers(), "PYTHONUNBUFFERED": "1"},
        )
        try:
            started.wait(limit)
        except BaseException as error:  # interrupted by the user too
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return f"STOPPED after {limit:.0f} s", time.perf_counter() - began
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no word"]
    seconds = time.perf_counter() - began
    if started.returncode == 0:
        return "; ".join(["done", *(line for line in lines if line.startswith("left out: "))]), seconds
    if started.returncode != 1 or any(line.startswith("Traceback") for line in lines):
        return f"FAILED: {lines[-1]}", seconds
    return f"{'in part' if written.exists() else 'passed over'}: {lines[-1]}", seconds


def quick(chosen: list[Script]) -> bool:
    """The small versions; whether none was stopped or failed."""
    folder, began, good = HERE / "quick", time.perf_counter(), True
    folder.mkdir(exist_ok=True)
    measured = []
    for script in chosen:
        for old in folder.glob(f"{script.name}.*"):
            old.unlink()
        reason = script.stated("ONLY_FULL", None)
        state, seconds = run(script, ["--quick"], folder, QUICK_SECONDS) if not reason else (f"only full: {reason}", 0)
        good &= not state.startswith(("STOPPED", "FAILED"))
        print(f"{script.title:36} {seconds:6.1f} s  {state}", flush=True)
        measured.append((script.title, script.purpose, state, script.figures(folder)))
    print(f"\n{time.perf_counter() - began:.0f} s in all. Small versions measured (JSON and logs in {folder}):\n")
    for title, _, state, figures in measured:
        print(f"{title:36} {figures or state}")
    print(f"\nThe page: {page.page(folder, measured)}")
    return good


def install_peers() -> bool:
    """An environment for every group of peers that has none; whether all could be installed."""
    good = True
    for peer, (variable, packages) in PEERS.items():
        home = ENVIRONMENTS / peer
        if (home / "ready").exists() or os.environ.get(variable):
            continue
        names, _, gingham = packages.partition(", and what gingham")
        print(f"installing {names}", flush=True)
        venv.create(home, clear=True, with_pip=True)
        command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *names.split(", ")]
        done = subprocess.run([*command, *(["--editable", str(HERE.parent)] if gingham else [])], check=False)
        if done.returncode == 0:
            (home / "ready").touch()
        else:
            print(f"{names}: not installed; {variable} may name the Python of an environment that has them.")
        good &= done.returncode == 0
    return good


def with_peers() -> dict[str, str]:
    """The variables that name the environments of `install_peers`, where nothing else was named."""
    ready = {v: ENVIRONMENTS / peer / "bin" / "python" for peer, (v, _) in PEERS.items()}
    return {v: str(python) for v, python in ready.items() if (python.parents[1] / "ready").exists()} | dict(os.environ)


def full(chosen: list[Script], everything: bool) -> bool:
    """Whole runs, each moved to the results when it is finished; whether none failed."""
    folder = HERE / "full"
    folder.mkdir(exist_ok=True)
    memory = folder / "finished.json"
    finished = read(memory) if everything else []
    if finished:
        print(f"{len(finished)} scripts were finished before; delete {folder} to begin anew.", flush=True)
    good = True
    for script in (s for s in chosen if s.title not in finished):
        mine = folder / str(script.name)
        whole, seconds, state = not mine.exists(), 0.0, "done"
        mine.mkdir(exist_ok=True)
        for options in script.stated("FULL", [""]):
            state, took = run(script, shlex.split(options), mine)
            seconds += took
            print(f"{script.title:36} {seconds:8.0f} s  {options} {state}", flush=True)
            if not state.startswith("done"):
                break
        good &= not state.startswith("FAILED")
        if state.startswith("done"):
            for file in [*mine.glob("*.json"), *mine.glob("*.png")]:
                shutil.move(file, HERE / "results" / file.name)
            finished = [*finished, script.title]
            if everything:
                memory.write_text(json.dumps(finished))
            if whole:  # not the rest of an interrupted run
                cores = len(os.sched_getaffinity(0))
                times = {**read(TIMES), script.title: {"seconds": round(seconds), "cores": cores}}
                TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n")
    if everything and good:
        shutil.rmtree(folder)
    return good


def papers() -> bool:
    """Whole runs of the papers' scripts that fit into an hour together; what takes longer says so."""
    every = scripts(["papers/"])
    for script in every:
        if reason := script.stated("LONG", None):
            print(f"{script.title:36} left out: {reason}", flush=True)
    return full([script for script in every if not script.stated("LONG", None)], everything=False)


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def recorded(value: Any) -> float:
    """Seconds that a result holds of its own parts, each part once: less than the run that wrote it took."""
    if isinstance(value, list):
        return sum(map(recorded, value))
    if not isinstance(value, dict):
        return 0.0
    total = sum(recorded(part) for key, part in value.items() if key not in SKIPPED_KEYS)
    if isinstance(value.get("seconds"), dict):  # of each part by name
        total += sum(value["seconds"].values())
    clocks = [key for key in value if key.endswith(("wall_s", "cpu_s", "seconds")) and "over" not in key]
    stems = {key.replace("wall_s", "").replace("cpu_s", "").replace("cpu_seconds", "seconds") for key in clocks}
    for stem in stems:
        names = (f"{stem}wall_s", stem, f"{stem}cpu_s")
        seconds = next((value[name] for name in names if isinstance(value.get(name), int | float)), 0.0)
        total += seconds * (value["seeds"] if isinstance(value.get("seeds"), int) else 1)
    return total


def duration(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def cost(script: Script) -> str:
    """What a full run takes: measured, or at least what its result has on record."""
    known = read(TIMES).get(script.title)
    if known:
        return duration(known["seconds"])
    seconds = recorded(read(HERE / "results" / f"{script.name}.json").get("results"))
    return f"over {duration(seconds)}" if seconds >= 10 else "–"


def table() -> str:
    """What is measured, by which script, with which result."""
    lines = [
        "# Benchmarks",
        "",
        "`make bench` runs a small version of every script, under ten minutes on two cores (longer the first time,",
        "while kernels are compiled), and ends in one page, `benchmarks/quick/index.html`: gingham beside its peers,",
        "ratios as bars, and the main figures of every script. They are a first look; the figures below come from full",
        "runs. `make bench-peers` installs the peers before (several GB, because LensKit needs PyTorch).",
        "",
        "`make bench-full` renews `results/`. It takes many hours: the column *full run* says what a script takes, or",
        '"over" how much by the seconds that its result has on record. Interrupted and started again, it goes on with',
        "the scripts that were not finished, and many scripts within themselves.",
        "",
        "`python benchmarks/run.py --quick --only graph ratings` (or `--full`) runs the scripts whose path has one of",
        "these words; each script also runs alone (see its `--help`).",
        "",
        "Each script writes JSON with versions, seed, machine, settings and results; ratios are measured in one run.",
        "Peers run in environments of their own, whose Python these variables name; what is not there is left out, and",
        "the script says so.",
        "",
        "| variable | packages in that environment |",
        "|---|---|",
        *(f"| `{variable}` | {packages} |" for variable, packages in PEERS.values()),
        "",
        "Data comes from the folder `--data` or `GINGHAM_DATA`, `benchmarks/data` by default. MovieLens and Jester are",
        "fetched from their publishers when they are needed (or by `python benchmarks/prepare.py ml100k`). Other sets",
        "may not be passed on: get them where they are published and store them in these files; rows, cols and ends of",
        "edges count from 0.",
        "",
        "| files | from | what is in them |",
        "|---|---|---|",
        *(f"| `{start}…` | {origin} | {content} |" for start, (origin, content) in SOURCES.items()),
        "",
        "This page is generated by `python benchmarks/run.py --table`.",
        "",
        "| script | what it measures | main figures | full run | result |",
        "|---|---|---|---|---|",
    ]
    for script in scripts():
        document = read(HERE / "results" / f"{script.name}.json")
        seed = f", seed {document['seed']}" if "seed" in document else ""
        link = f"[{script.name}](results/{script.name}.json){seed}" if document else "–"
        columns = (f"`{script.title}`", script.purpose, script.figures(HERE / "results") or "–", cost(script), link)
        lines.append("| " + " | ".join(column.replace("|", "\\|") for column in columns) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group(required=True)
    for option in ("quick", "full", "papers", "peers", "table"):
        kind.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--only", nargs="*", help="scripts whose path contains one of these words")
    args = parser.parse_args()
    good = True
    try:
        if args.quick:
            good = quick(scripts(args.only))
        if args.papers:
            good = papers()
        if args.peers:
            good = install_peers()
        if args.full:
            good = full(scripts(args.only), everything=not args.only)
    except KeyboardInterrupt:
        raise SystemExit("Interrupted; the same command goes on with --full, and begins anew with --quick.") from None
    if not args.quick:
        (HERE / "README.md").write_text(table(), encoding="utf-8")
    sys.exit(not good)


if __name__ == "__main__":
    main()
