"""Would the tests notice a mistake? Mutants of the certificates, the cells and the selection, and how many are killed.

cosmic-ray changes one operator, number, comparison, loop or decorator at a time; a mutant is killed when a test fails.
Only mutants that could matter are counted: none in annotations, which nothing evaluates, and no shifts or bit masks in
the place of arithmetic, which end in a TypeError wherever floats are and would make the score look better. Of the rest
a sample is drawn with a seed. Each mutant meets the tests of its room that run through the changed line, fastest
first, in a process of its own; nothing on disk is changed. What survives is listed with the reason, where there is one.

    python benchmarks/robustness/mutation.py                                  # a sample of each room
    python benchmarks/robustness/mutation.py --room cells --sample 100        # one room
    python benchmarks/robustness/mutation.py --survivors                      # those that survived, once more

It needs an environment with cosmic-ray and what the tests of gingham need.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import QUICK, arguments, importable, previous, write

FIGURES = {
    "certificates": "certificates/score",
    "cells": "cells/score",
    "selection": "selection/score",
}
LONG = "hundreds of mutants, each with its own run of tests, take most of an hour"
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gingham"
ROOMS: dict[str, tuple[str, ...]] = {  # room: files with its tests
    "certificates": ("tests/certificates", "tests/test_verify.py", "tests/models/test_progressive.py"),
    "cells": ("tests/cells", "tests/models/test_saving_the_loss.py", "tests/certificates/test_what_is_given.py"),
    "selection": ("tests/selection", "tests/models/grid/test_coclustering.py"),
}
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow")
BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")
BUDGET = 15.0  # CPU seconds of tests that a mutant meets at most, measured without it
PATIENCE = 4.0  # times the seconds that its tests take otherwise, after which a mutant counts as killed
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--no-header", "--tb=no")

# Why a survivor survives: (file, the line as it was changed) → reason. Equivalent mutants compute the same.
REASONS: dict[tuple[str, str], str] = {}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: where, by which operator, and the line before and after."""

    file: str  # within src/gingham
    line: int
    operator: str
    occurrence: int
    before: str
    after: str

    @property
    def key(self) -> str:
        return f"{self.file}:{self.operator}:{self.occurrence}"


def mutants(room: str) -> Iterator[tuple[str, int, int, str, int]]:
    """File, first and last line, operator and occurrence of every mutant that is counted."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    for path in sorted((SOURCE / room).glob("*.py")):
        if path.name == "__init__.py":
            continue
        tree, unread = get_ast_from_path(path), annotations(path)
        for name in operator_names():
            kind = get_operator(name)
            if kind.arguments() or only_a_type_error(name):
                continue
            operator = kind()
            found = (at for node in ast_nodes(tree) for at in operator.mutation_positions(node))
            for occurrence, (start, end) in enumerate(found):
                if not any(a <= start and end <= b for a, b in unread):
                    yield f"{room}/{path.name}", start[0], end[0], name, occurrence


def only_a_type_error(operator: str) -> bool:
    """Whether an operator puts shifts and masks in the place of arithmetic."""
    words = operator.split("_")
    return len(words) == 3 and words[1] in ARITHMETIC and words[2] in BITS


def annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations stand: with the future import they are never evaluated."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
    return [
        ((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0))
        for one in found
        if one is not None
    ]


def changed_source(file: str, operator: str, occurrence: int) -> str:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = (SOURCE / file).read_text(encoding="utf-8")
    return str(mutate_code(code, get_operator(operator)(), occurrence))


def described(file: str, line: int, operator: str, occurrence: int) -> Mutant:
    """A mutant with its line before and after."""
    old = (SOURCE / file).read_text(encoding="utf-8").splitlines()
    new = changed_source(file, operator, occurrence).splitlines()
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), line - 1)
    after = new[at].strip() if at < len(new) else ""
    return Mutant(file, at + 1, operator, occurrence, old[at].strip(), "" if len(new) < len(old) else after)


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from other source, kept in memory."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class MutantFinder(importlib.abc.MetaPathFinder):
    def __init__(self, file: str, source: str) -> None:
        self.name = "gingham." + file.removesuffix(".py").replace("/", ".")
        self.path, self.source = str(SOURCE / file), source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=MutantLoader(fullname, self.path, self.source)
        )


def in_child(work: Any, cpu_s: float, wall_s: float) -> int:
    """The exit code of a function in a forked process; 255 where it took too long."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 254
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            code = int(work())
        finally:
            os._exit(code)
    begun = time.monotonic()
    while time.monotonic() - begun < wall_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return 255 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 255


# which tests run through which line


class Watch:
    """A pytest plugin: the seconds of each test, and the lines of the rooms that it runs through."""

    def __init__(self, coverage: Any) -> None:
        self.coverage, self.seconds, self.begun = coverage, {}, 0.0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.begun = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] = round(time.process_time() - self.begun, 3)
        self.coverage.switch_context("")


def watched(test_file: str, out: Path) -> int:
    """Run the tests of one file under coverage and write what they ran through."""
    import coverage
    import pytest

    cover = coverage.Coverage(
        data_file=None, config_file=False, source=[str(SOURCE / room) for room in ROOMS], messages=False
    )
    cover.start()
    watch = Watch(cover)
    code = int(pytest.main([*PYTEST[1:], test_file], plugins=[watch]))
    cover.stop()
    data, lines = cover.get_data(), {}
    for file in data.measured_files():
        name = str(Path(file).relative_to(SOURCE))
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                lines.setdefault(context, {}).setdefault(name, []).append(line)
    own = sorted(name for name in sys.modules if name.split(".")[0] not in ("gingham", "__main__", "cosmic_ray"))
    out.write_text(json.dumps({"code": code, "seconds": watch.seconds, "lines": lines, "modules": own}))
    return code


def coverage_map(rooms: Sequence[str]) -> dict[str, Any]:
    """Test file → seconds and lines of its tests; files that were not changed since are not run again."""
    keep = QUICK / "mutation"
    keep.mkdir(parents=True, exist_ok=True)
    found = {}
    for room in rooms:
        for place in ROOMS[room]:
            top = ROOT / place
            for path in sorted(top.glob("test_*.py")) if top.is_dir() else [top]:
                name = str(path.relative_to(ROOT))
                out = keep / (name.replace("/", ".") + ".json")
                if not out.exists() or out.stat().st_mtime < path.stat().st_mtime:
                    code = in_child(lambda name=name, out=out: watched(name, out), 600, 1800)
                    if code not in (0, 5):
                        raise SystemExit(f"{name} fails without any mutant (exit code {code}).")
                    print(f"watched {name}", flush=True)
                found[name] = json.loads(out.read_text())
    return found


def tests_for(mutant: Mutant, covered: dict[str, Any], room: str) -> tuple[list[str], float]:
    """The tests that run through a mutant's line, then others of the same files, fastest first, within the budget."""
    allowed = tuple(ROOMS[room])
    through, others = [], []
    for test_file, facts in covered.items():
        if not test_file.startswith(allowed):
            continue
        by_test = {test: mutant.line in lines.get(mutant.file, ()) for test, lines in facts["lines"].items() if test}
        at_import = mutant.line in facts["lines"].get("", {}).get(mutant.file, ())
        if any(by_test.values()) or at_import:
            for test, seconds in facts["seconds"].items():
                uses = bool(facts["lines"].get(test, {}).get(mutant.file))
                (through if by_test.get(test) else others if uses else []).append((seconds, test))
    chosen, total = [], 0.0
    for seconds, test in [*sorted(through), *sorted(others)]:
        if chosen and total + seconds > BUDGET:
            break
        chosen.append(test)
        total += seconds
    return chosen, total


def judged(mutant: Mutant, covered: dict[str, Any], room: str) -> str:
    """ "killed", "killed by time", "survived" or "no test" """
    tests, seconds = tests_for(mutant, covered, room)
    if not tests:
        return "no test"
    source = changed_source(mutant.file, mutant.operator, mutant.occurrence)

    def work() -> int:
        import pytest

        sys.meta_path.insert(0, MutantFinder(mutant.file, source))
        return int(pytest.main([*PYTEST, *tests]))

    limit = 20 + PATIENCE * seconds
    code = in_child(work, limit, 10 * limit)
    return {0: "survived", 255: "killed by time"}.get(code, "killed")


def interval(killed: int, n: int) -> list[float]:
    """95 % confidence interval of a share (Clopper and Pearson)."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, killed, n - killed + 1)) if killed else 0.0
    return [low, float(beta.ppf(0.975, killed + 1, n - killed)) if killed < n else 1.0]


def account(verdicts: dict[str, dict[str, Any]], counted: int) -> dict[str, Any]:
    """The score of a room from the verdicts on its sample."""
    rows = list(verdicts.values())
    alive = [row for row in rows if not row["verdict"].startswith("killed")]
    for row in alive:
        row["reason"] = REASONS.get((row["file"], row["after"]), "")
    same = sum(row["reason"].startswith("equivalent") for row in alive)
    killed, n = len(rows) - len(alive), len(rows) - same
    return {
        "mutants": counted,
        "sampled": len(rows),
        "killed": killed,
        "of these by time": sum(row["verdict"] == "killed by time" for row in rows),
        "equivalent": same,
        "score": killed / max(n, 1),
        "interval": interval(killed, n) if n else [0.0, 1.0],
        "score with equivalent mutants": killed / max(len(rows), 1),
        "survivors": alive,
    }


def warm(covered: dict[str, Any]) -> None:
    """Import what tests import, gingham and the tests excepted: children then begin with it."""
    for name in sorted({name for facts in covered.values() for name in facts["modules"]}):
        top = name.split(".")[0]
        if top.startswith("test") or importlib.util.find_spec(top) is None or "gingham" in name:
            continue
        try:
            importlib.import_module(name)
        except Exception:  # a module that cannot be imported by itself is left to the tests
            continue


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--room", choices=tuple(ROOMS), nargs="+", default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=250, help="mutants a room")
    parser.add_argument("--survivors", action="store_true", help="only those that survived before, once more")
    parser.add_argument("--only", default="", help="mutants of files whose name contains this")


def main() -> None:
    args = arguments(__doc__.splitlines()[0], name="mutation", options=options)
    if not importable("mutation", "cosmic_ray"):
        return
    os.chdir(ROOT)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    n_sample = 5 if args.quick else args.sample
    before = previous(args)
    covered = coverage_map(args.room)
    warm(covered)
    results = {key: value for key, value in before.items() if key in ROOMS}
    for room in args.room:
        every = list(mutants(room))
        drawn = random.Random(args.seed).sample(every, min(n_sample, len(every)))
        known = before.get(room, {"verdicts": {}, "survivors": []})
        verdicts = {key: {"verdict": verdict} for key, verdict in known["verdicts"].items()}
        verdicts.update({row["key"]: row for row in known["survivors"]})
        for number, (file, first, _, operator, occurrence) in enumerate(drawn):
            key = f"{file}:{operator}:{occurrence}"
            old = verdicts.get(key)
            if args.only not in file or (old and not (args.survivors and old["verdict"] in ("survived", "no test"))):
                continue
            mutant = described(file, first, operator, occurrence)
            verdict = judged(mutant, covered, room)
            verdicts[key] = {"key": key, **asdict(mutant), "verdict": verdict}
            if not verdict.startswith("killed"):
                print(f"{verdict}: {file}:{mutant.line}: {mutant.before}  →  {mutant.after}", flush=True)
            if number % 10 == 9:
                save(args, results, room, verdicts, len(every))
        save(args, results, room, verdicts, len(every))
        found = results[room]
        print(f"{room}: {found['killed']} of {found['sampled']} killed, score {found['score']:.3f}", flush=True)


def save(
    args: argparse.Namespace, results: dict[str, Any], room: str, verdicts: dict[str, dict[str, Any]], counted: int
) -> None:
    results[room] = {**account(verdicts, counted), "verdicts": {key: row["verdict"] for key, row in verdicts.items()}}
    settings = {"sample": args.sample, "tool": "cosmic-ray", "budget_s": BUDGET}
    write(args, settings, results, packages=("cosmic-ray", "pytest"))


if __name__ == "__main__":
    main()
