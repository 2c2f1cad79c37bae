"""What every benchmark script shares: the data folder, the clock, the JSON writer.

A script reads::

    args = arguments("What this measures.", name="speed_project")
    ratings = load(args.data, "ml100k.npz")
    results = {...}
    write(args, settings={...}, results=results)

and leaves ``benchmarks/results/speed_project.json`` with the keys versions, seed, machine, settings,
results. Nothing that names a host, a user or a folder is written.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import prepare

RESULTS = Path(__file__).parent / "results"
QUICK = Path(__file__).parent / "quick"
SOURCES = {  # how a file's name begins: where it comes from, what is in it
    "ml100k": (
        "https://grouplens.org/datasets/movielens/100k/",
        "`.npz` with rows, cols, vals, timestamps, shape, genres (movies × 19) and the positions of the official "
        "splits, u1_base_idx, u1_test_idx … u5_test_idx; `_items.csv.gz` (a line a movie, with its year) and "
        "`_users.csv.gz` (age, gender, occupation)",
    ),
    "ml1m": ("https://grouplens.org/datasets/movielens/1m/", "`.npz` with rows, cols, vals, shape"),
    "jester1": ("https://eigentaste.berkeley.edu/dataset/", "`.npz` with rows, cols, vals, shape"),
    "foodmart": (
        "the Foodmart 1998 sample database",
        "`_sales.npz` with customer_id, product_id, units, day (yyyymmdd), a line of sale each",
    ),
    "yeast": (
        "https://thebiogrid.org (release 3.1.77)",
        "`_biogrid.npz` with edges, names, and members and offsets of complexes: mips_members, mips_offsets, sgd_…, "
        "cyc2008_…",
    ),
    "planetlab": (
        "the PlanetLab round-trip times of the NetLatency data set",
        "`490_rtt.npz` with median, milliseconds between 490 hosts",
    ),
    "europarl": (
        "https://www.statmt.org/europarl/",
        "`_speeches_7lang.tsv.gz`, aligned speeches, a column a language (en, es, de, it …)",
    ),
    "bible": (
        "https://github.com/christos-c/bible-corpus",
        "`_verses.tsv.gz`, aligned verses, a column a language (en, es, de, it …)",
    ),
    "docs": (
        "the data folders of the coclust and NMTFcoclust repositories",
        "`_NAME.npz` (documents × words, scipy's format) and `_NAME_labels.npz` with labels; NAME is cstr, classic3, "
        "webace, reuters21578 or 20newsgroups",
    ),
    "graph": (
        "https://snap.stanford.edu/data/",
        "`_NAME.npz` with edges and n; NAME is email_enron, as_caida20071105, ca_astroph_cc1 or ego_facebook",
    ),
}
PEERS = {  # short name: variable that names the Python of its environment, packages there
    "surprise": ("GINGHAM_SURPRISE", "scikit-surprise"),
    "lenskit": ("GINGHAM_LENSKIT", "lenskit, scikit-surprise"),
    "myfm": ("GINGHAM_RATINGS", "myfm, lenskit, scikit-surprise"),
    "sib": ("GINGHAM_SIB", "sib-clustering, and what gingham itself needs"),
    "cca": ("GINGHAM_CCA", "cca-zoo, and what gingham itself needs"),
    "graph": ("GINGHAM_PEERS", "leidenalg, graspologic, scikit-network"),
    "ranking": ("GINGHAM_RANKING", "implicit, and what gingham itself needs"),
    "mutation": ("GINGHAM_MUTATION", "cosmic-ray, and what the tests of gingham need"),
}
CORE = ("gingham", "numpy", "scipy", "scikit-learn", "numba")


def arguments(
    description: str, name: str, options: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.Namespace:
    """Parse the options all scripts have (and more, added by ``options(parser)``).

    ``--data`` (or GINGHAM_DATA) is the data folder, ``--out`` the JSON file, ``--seed`` the seed,
    ``--quick`` asks for a small version that runs in seconds, begins anew and leaves the results alone.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default=os.environ.get("GINGHAM_DATA"), help="data folder (or GINGHAM_DATA)")
    parser.add_argument("--out", type=Path, help=f"JSON file to write (results/{name}.json, or quick/{name}.json)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a small version, for a first look")
    if options is not None:
        options(parser)
    args = parser.parse_args()
    if args.out is None:
        args.out = (QUICK if args.quick else RESULTS) / f"{name}.json"
    if args.quick:
        args.out.unlink(missing_ok=True)
    return args


def peer_option(parser: argparse.ArgumentParser, peer: str, option: str) -> None:
    """An option for the Python of a peer's environment; its variable is the default."""
    variable, packages = PEERS[peer]
    parser.add_argument(
        option, default=os.environ.get(variable), help=f"Python of an environment with {packages} (or {variable})"
    )


def left_out(peer: str) -> None:
    """Say that a peer is not compared with, for want of an environment."""
    variable, packages = PEERS[peer]
    print(f"left out: {packages.split(', and')[0]} ({variable} names no Python)", flush=True)


def importable(peer: str, module: str) -> bool:
    """Whether a peer that is timed in our own process is here; if not, the script starts again in its environment."""
    if importlib.util.find_spec(module) is not None:
        return True
    environment = dict(os.environ)
    python = environment.pop(PEERS[peer][0], None)  # taken away: one try
    if python is None:
        left_out(peer)
        return False
    source = str(Path(__file__).parents[1] / "src")
    environment["PYTHONPATH"] = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.stdout.flush()
    return os.execve(python, [python, *sys.argv], environment)  # never comes back


def data_file(folder: str | os.PathLike[str] | None, file: str) -> Path:
    """The path of a data file, fetched where that is possible; stops the script with a sentence where it is not."""
    home = prepare.data_home(folder)
    path = home / file
    if path.exists():
        return path
    begin, source = next(
        ((b, origin) for b, (origin, _) in SOURCES.items() if file.startswith(b)), ("", "its publisher")
    )
    if begin in prepare.SETS:
        home.mkdir(parents=True, exist_ok=True)
        try:
            prepare.SETS[begin](home)
            return path
        except (OSError, ValueError) as error:  # a GinghamError is a ValueError
            raise SystemExit(f"{file} is missing. {error} Then: python benchmarks/prepare.py {begin}") from None
    raise SystemExit(
        f"{file} is missing. Get it from {source}, store it as benchmarks/README.md says, and name its folder with "
        "--data or GINGHAM_DATA."
    )


def load(folder: str | os.PathLike[str] | None, file: str) -> dict[str, np.ndarray]:
    """All arrays of one .npz file."""
    with np.load(data_file(folder, file), allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


@contextmanager
def clock(into: dict[str, Any], key: str = "") -> Iterator[None]:
    """Add the wall and CPU seconds of a block to ``into[key + "wall_s"]`` and ``into[key + "cpu_s"]``."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        into[key + "wall_s"] = round(time.perf_counter() - wall, 4)
        into[key + "cpu_s"] = round(time.process_time() - cpu, 4)


def peak_memory() -> int:
    """Most bytes that this process has held; its own, where the system says so, and not those it was forked from."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def best_of(call: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest wall time of a call in seconds: the summary least disturbed by others on the machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Installed versions of the core packages and the given ones (``not installed`` where absent)."""
    found = {"python": platform.python_version()}
    for package in (*CORE, *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    if found["gingham"] == "not installed":
        import gingham

        found["gingham"] = gingham.__version__
    return found


def machine() -> dict[str, Any]:
    """How many cores, which processor family: enough to read seconds, nothing that names the host."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.machine(),
        "system": platform.system(),
    }


def write(
    args: argparse.Namespace,
    settings: dict[str, Any],
    results: Any,
    packages: Iterable[str] = (),
) -> Path:
    """Write the JSON file of a run; may be called again as results come in."""
    document = {
        "versions": versions(packages),
        "seed": args.seed,
        "machine": machine(),
        "settings": {"quick": args.quick, **settings},
        "results": results,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed, so that an interrupted run leaves the old file whole.
    partial = args.out.with_suffix(".partial")
    partial.write_text(json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    partial.replace(args.out)
    return args.out


def previous(args: argparse.Namespace) -> dict[str, Any]:
    """The results that an earlier run of the same script left, so that a long run can be done in pieces."""
    if not args.out.exists():
        return {}
    found: dict[str, Any] = json.loads(args.out.read_text())["results"]
    return found


def plain(value: Any) -> Any:
    """The same value made of JSON's own types: arrays as lists, six significant digits, NaN as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
