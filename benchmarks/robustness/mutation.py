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
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import marshal
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
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
ROOMS: dict[str, tuple[str, tuple[str, ...]]] = {  # room: its files, and files with its tests
    "certificates": (
        "certificates/*.py", ("tests/certificates", "tests/test_verify.py", "tests/models/test_progressive.py"),
    ),
    "progressive": ("models/progressive.py", ("tests/models/test_progressive.py",)),
    "ranking": ("models/ranking/*.py", ("tests/models/ranking", "tests/certificates/test_ranking.py")),
    "summary": ("summary/*.py", ("tests/summary",)),
    "cells": (
        "cells/*.py",
        ("tests/cells", "tests/models/test_saving_the_loss.py", "tests/certificates/test_what_is_given.py"),
    ),
    "selection": ("selection/*.py", ("tests/selection", "tests/models/grid/test_coclustering.py")),
}  # fmt: skip
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow")
BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")
BUDGET = 5.0  # CPU seconds of tests that a mutant meets at most, measured without it
PATIENCE = 4.0  # times the seconds that its tests take otherwise, after which a mutant counts as killed
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--no-header", "--tb=no")

# Why a survivor survives: (file, the line as it was changed) → reason. Equivalent mutants compute the same.
REASONS: dict[tuple[str, str], str] = {
    (
        "certificates/progressive.py",
        "if self.candidates != 1:",
    ): "equivalent: there is at least one candidate",
    (
        "models/progressive.py",
        "before, learned = None, 1",
    ): "equivalent: fresh draws count for models that grow only, from the second on",
    (
        "models/progressive.py",
        'if references and (order < "shuffle" or strata is not None):',
    ): "equivalent: the other order comes before it in the alphabet, too",
    (
        "certificates/population.py",
        "observed = min(max(evidence.law.mean, -1.0), 1.0)",
    ): "equivalent: a scaled loss is not below 0 but for rounding",
    (
        "certificates/ranking.py",
        "value = most if most - least <= 1e-12 else min(close_in(too_far, least, most), most)",
    ): "equivalent: how far two ends may be apart to count as one",
    (
        "certificates/divergence.py",
        "at_once = max(1, 2_000_000 ** (56 * max(values.shape[1], 1)))",
    ): "equivalent: more rows at a time",
    (
        "certificates/evidence.py",
        "drawn_apart = isinstance(structure, Tree) or posterior.shares_urn(relation) or "
        "len(set(places)) >= len(places)",
    ): "equivalent: a set has no more members than the list",
    (
        "certificates/holdout.py",
        "if step < -0.999999999999:",
    ): "equivalent: further steps of Newton move nothing",
    (
        "certificates/evidence.py",
        "if not all(bool(((part == 0.0) | (part == 1.0)).all()) for part in (assign[: 999], assign)):",
    ): "equivalent: a first look at some rows, then at all of them",
    (
        "certificates/evidence.py",
        "period = next_fast_len(last + 2, real=True)",
    ): "equivalent: a longer period holds the same sums",
    (
        "certificates/evidence.py",
        "starts = np.flatnonzero(np.diff(at[order], prepend=1))",
    ): "equivalent: the first of the sorted numbers is 0, which is neither −1 nor 1",
    (
        "certificates/bounds.py",
        "for start in range(0, len(values), 2+16):  # a few values at a time keep the table small",
    ): "equivalent: fewer values at a time",
    (
        "certificates/ranking.py",
        "lists[a : a + BLOCK] = np.where(np.isfinite(np.take_along_axis(part, found, 1)), found, ~1)",
    ): "equivalent: −2 is no column of the table either",
    (
        "certificates/evidence.py",
        "sixth = variance + 25.0 * variance*2 + 15.0 * variance**3",
    ): "which of two ways is taken near the limit of a millionth of a nat; the price is never too low in either",
    (
        "cells/contract.py",
        "free = rng.dirichlet(np.ones(len(numbers)), 99)",
    ): "equivalent: 99 random answers try a loss as 100 do",
    (
        "cells/contract.py",
        "draws = [rng.integers(0, len(numbers), int(rng.integers(1, 10))) for _ in range(50)]",
    ): "equivalent: other random statistics, as good as these",
    (
        "cells/contract.py",
        "if cell.convex and cell.table is not None and cell.table.shape[1] >= len(numbers):",
    ): "equivalent: a table that is called convex has as many answers as labels, or it is refused",
    (
        "cells/losses.py",
        "others = tuple(j for j in range(p.ndim) if j is not axis)",
    ): "equivalent: small whole numbers that are equal are the same object",
    (
        "selection/auto.py",
        "key: AnyArray = 0 * sample.codes[0] - _whole(0, sample)",
    ): "equivalent: zero is taken off or added",
    (
        "selection/auto.py",
        "return beside(np.array([bits], dtype=np.uint64).view(np.int64), sample.codes[ -1])  "
        "# type: ignore[no-any-return]",
    ): "equivalent: all columns of codes lie in one place",
    (
        "selection/beta_path.py",
        "report(at, 0.0, fitted.objective_)",
    ): "equivalent: nobody looks at the factor of β that a point reports",
    (
        "selection/auto.py",
        "key: AnyArray = 0 * sample.codes[ -1] + _whole(0, sample)",
    ): "equivalent: zeros in the shape of any column of codes",
    (
        "selection/auto.py",
        "predicted: Floats = xp.full_like(held.codes[ -1], base, dtype=xp.float64)",
    ): "equivalent: a number in the shape of any column of codes",
    (
        "selection/auto.py",
        'solution = settle.solve(problem, merged, checkpoint=checkpoint.stage(f"merged {number / 1}"))',
    ): "equivalent: any names will do that tell the stages of a checkpoint apart",
    (
        "selection/beta_path.py",
        '_, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 6), height_ratios=( 3, 1), layout="constrained")',
    ): "how high a picture is: a matter of taste that no test should fix",
    (
        "selection/auto.py",
        "beta = 1.0 / max(error, 0.02 * cell.range) if cell.range != 0 else 1.0",
    ): "equivalent: no range is negative",
}


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


def files_of(room: str) -> list[Path]:
    """The files of a room, without the lists of names."""
    return sorted(path for path in SOURCE.glob(ROOMS[room][0]) if path.name != "__init__.py")


def mutants(room: str) -> Iterator[tuple[str, int, int, str, int]]:
    """File, first and last line, operator and occurrence of every mutant that is counted."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    for path in files_of(room):
        tree, unread = get_ast_from_path(path), annotations(path)
        for name in operator_names():
            kind = get_operator(name)
            if kind.arguments() or only_a_type_error(name):
                continue
            operator = kind()
            found = (at for node in ast_nodes(tree) for at in operator.mutation_positions(node))
            for occurrence, (start, end) in enumerate(found):
                if not any(a <= start and end <= b for a, b in unread):
                    yield str(path.relative_to(SOURCE)), start[0], end[0], name, occurrence


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


# A mutant in a running process: most change one function, whose code is exchanged; the others are imported afresh.


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from other source, kept in memory."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class MutantFinder(importlib.abc.MetaPathFinder):
    def __init__(self, file: str, source: str) -> None:
        self.name, self.path, self.source = module_name(file), str(SOURCE / file), source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=MutantLoader(fullname, self.path, self.source)
        )


def module_name(file: str) -> str:
    return "gingham." + file.removesuffix(".py").replace("/", ".")


def changed_functions(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Functions of a module, or of a class, whose code differs; None where what is outside of them does."""
    bodies = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    plain = [[repr(c) for c in code.co_consts if not isinstance(c, CodeType)] for code in (old, new)]
    if (old.co_code, old.co_names, plain[0]) != (new.co_code, new.co_names, plain[1]) or len({*map(len, bodies)}) > 1:
        return None
    found = []
    for one, other in zip(*bodies):
        if not one.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
            inner = changed_functions(one, other)
            if inner is None:
                return None
            found += inner
        elif marshal.dumps(one) != marshal.dumps(other):
            found.append((one, other))
    return found


def exchanged(file: str, source: str, functions: dict[tuple[str, str, int], list[FunctionType]]) -> bool:
    """Give the functions that a mutant changes their new code; whether that was possible."""
    path = str(SOURCE / file)
    codes = [compile(text, path, "exec", dont_inherit=True) for text in ((SOURCE / file).read_text("utf-8"), source)]
    pairs = changed_functions(*codes)
    if not pairs:
        return False
    places = [functions.get((path, old.co_qualname, old.co_firstlineno), []) for old, _ in pairs]
    if not all(places) or any(old.co_freevars != new.co_freevars for old, new in pairs):
        return False
    for (_, new), found in zip(pairs, places):
        for function in found:
            function.__code__ = new
    return True


def forked(work: Callable[[], int], cpu_s: float | None = None) -> int:
    """The number of a new process that ends with what a function returns; it is silent where its time is limited."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 254
        try:
            if cpu_s is None:
                os.setsid()
            else:
                os.setpgid(0, 0)
                resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
            code = int(work())
        finally:
            sys.stdout.flush()
            os._exit(code)
    return child


def in_child(work: Callable[[], int], cpu_s: float, wall_s: float) -> int:
    """The exit code of a function in a process of its own; 255 where it took too long."""
    child, begun = forked(work, cpu_s), time.monotonic()
    while time.monotonic() - begun < wall_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return 255 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 255


def in_parallel(works: Sequence[Callable[[], int]]) -> int:
    """Run functions in processes of their own; the largest exit code."""
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in [forked(work) for work in works])


class Campaign:
    """A pytest plugin that, in the place of running the tests it has collected, runs them against mutants."""

    def __init__(self, room: str, workers: int, work: Callable[[Campaign], None]) -> None:
        self.room, self.workers, self.work = room, workers, work
        self.items: dict[str, Any] = {}
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[str, list[int]]] = {}  # test → file → lines that it runs through
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        for path in files_of(self.room):
            importlib.import_module(module_name(str(path.relative_to(SOURCE))))
        self.items = {item.nodeid: item for item in session.items}
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                code = one.__code__
                self.functions.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(one)
        self._watch()
        # No test runs in this process: threads that one of them started would be missing in the processes that begin
        # here, and whoever waits for them would wait for ever.
        self.work(self)
        return True

    def _run(self, tests: Sequence[str], between: Callable[[str], None] = lambda test: None) -> int:
        """1 where one of the tests fails, which ends the run."""
        for test, after in zip(tests, [*tests[1:], None]):
            between(test)
            item, following = self.items[test], None if after is None else self.items[after]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return 1
        return 0

    def _watch(self) -> None:
        """Which tests run through which line, and how long they take; kept until a file changes."""
        files = [*files_of(self.room), *{item.path for item in self.items.values()}]
        stamp = hashlib.sha256(b"".join(sorted(path.read_bytes() for path in files))).hexdigest()
        kept = QUICK / f"mutation_{self.room}.json"
        kept.parent.mkdir(exist_ok=True)
        if not kept.exists() or json.loads(kept.read_text())["stamp"] != stamp:
            parts = [kept.with_suffix(f".{number}") for number in range(self.workers)]
            if in_parallel([partial(self._watched, number, part) for number, part in enumerate(parts)]) != 0:
                raise SystemExit(f"The tests of {self.room} fail without any mutant.")
            found = [json.loads(part.read_text()) for part in parts]
            seconds, lines = ({k: v for one in found for k, v in one[name].items()} for name in ("seconds", "lines"))
            kept.write_text(json.dumps({"stamp": stamp, "seconds": seconds, "lines": lines}))
            print(f"watched {len(self.items)} tests of {self.room}", flush=True)
        known = json.loads(kept.read_text())
        self.seconds, self.lines = known["seconds"], known["lines"]

    def _watched(self, number: int, out: Path) -> int:
        """The tests of every so manyth file, under coverage."""
        import coverage

        files = list(dict.fromkeys(test.split("::")[0] for test in self.items))[number :: self.workers]
        tests = [test for test in self.items if test.split("::")[0] in files]

        own = [str(path) for path in files_of(self.room)]
        cover = coverage.Coverage(data_file=None, config_file=False, include=own, messages=False)
        cover.start()
        begun = [("", time.process_time())]

        def between(test: str) -> None:
            cover.switch_context(test)
            begun.append((test, time.process_time()))

        code = self._run(tests, between)
        if self.failed:
            print("fails:", begun[-1][0], flush=True)
        cover.stop()
        ends = [at for _, at in begun[2:]] + [time.process_time()]
        seconds = {test: round(end - at, 3) for (test, at), end in zip(begun[1:], ends)}
        data, lines = cover.get_data(), {}
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in filter(None, contexts):
                    lines.setdefault(context, {}).setdefault(str(Path(file).relative_to(SOURCE)), []).append(line)
        out.write_text(json.dumps({"seconds": seconds, "lines": lines}))
        return code

    def tests_for(self, mutant: Mutant, whole: bool = False) -> tuple[list[str], float]:
        """Tests that run through a mutant's line, then others that use its file, fastest first, within the budget.

        A fixture that several tests share is made by the first of them: the others would not be found by the line.
        What runs when a module is imported (``whole``) belongs to no test's lines, so that more of them are tried.
        """
        using = {test: set(lines[mutant.file]) for test, lines in self.lines.items() if mutant.file in lines}
        files = {test.split("::")[0] for test, lines in using.items() if whole or mutant.line in lines}
        ranked = sorted(
            (mutant.line not in lines, self.seconds[test], test)
            for test, lines in using.items()
            if test.split("::")[0] in files
        )
        chosen, total, most = [], 0.0, BUDGET * (4 if whole else 1)
        for _, seconds, test in ranked:
            if chosen and total + seconds > most:
                continue
            chosen.append(test)
            total += seconds
        return sorted(chosen, key=lambda test: self.seconds[test]), total

    def judged(self, mutant: Mutant) -> str:
        """What becomes of a mutant: "killed", "killed by time", "survived" or "no test"."""
        source = changed_source(mutant.file, mutant.operator, mutant.occurrence)
        try:
            compile(source, mutant.file, "exec")
        except SyntaxError:
            return "killed"

        def in_place() -> int:
            if not exchanged(mutant.file, source, self.functions):
                return 253
            return self._run(tests)

        def afresh() -> int:
            import pytest

            for name in [name for name in sys.modules if name.split(".")[0] in ("gingham", *own_modules())]:
                del sys.modules[name]
            sys.meta_path.insert(0, MutantFinder(mutant.file, source))
            return int(pytest.main([*PYTEST, *everything]))

        tests, seconds = self.tests_for(mutant)
        code = 253
        if tests:
            limit = 20 + PATIENCE * seconds
            code = in_child(in_place, limit, 20 * limit)
        if code == 253:  # outside of functions: what runs when the module is imported
            everything, seconds = self.tests_for(mutant, whole=True)
            if not everything:
                return "no test"
            limit = 60 + PATIENCE * seconds
            code = in_child(afresh, limit, 20 * limit)
        return {0: "survived", 255: "killed by time"}.get(code, "killed")


def own_modules() -> set[str]:
    """Names of the modules of tests and of what they share."""
    top = ROOT / "tests"
    return {path.stem for path in top.rglob("*.py")} | {path.stem for path in (ROOT / "benchmarks").rglob("*.py")}


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


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--room", choices=tuple(ROOMS), nargs="+", default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=250, help="mutants a room")
    parser.add_argument("--survivors", action="store_true", help="only those that survived before, once more")
    parser.add_argument("--only", default="", help="mutants of files whose name contains this")
    parser.add_argument("--workers", type=int, default=2, help="processes")


def main() -> None:
    args = arguments(__doc__.splitlines()[0], name="mutation", options=options)
    if not importable("mutation", "cosmic_ray"):
        return
    import pytest

    os.chdir(ROOT)
    results = {key: value for key, value in previous(args).items() if key in ROOMS}
    for room in args.room:
        campaign = Campaign(room, args.workers, lambda campaign: judge_sample(args, campaign, results))
        pytest.main(["-q", "-s", *PYTEST[2:], *ROOMS[room][1]], plugins=[campaign])
        found = results[room]
        print(f"{room}: {found['killed']} of {found['sampled']} killed, score {found['score']:.3f}", flush=True)


def judge_sample(args: argparse.Namespace, campaign: Campaign, results: dict[str, Any]) -> None:
    """Judge the mutants of a sample one after the other, those excepted that were judged before."""
    room = campaign.room
    every = list(mutants(room))
    drawn = random.Random(args.seed).sample(every, min(5 if args.quick else args.sample, len(every)))
    known = results.get(room, {"verdicts": {}, "survivors": []})
    before = {key: {"verdict": verdict} for key, verdict in known["verdicts"].items()}
    before.update({row["key"]: row for row in known["survivors"]})
    verdicts: dict[str, dict[str, Any]] = {}
    wanted = []
    for file, first, _, operator, occurrence in drawn:
        key = f"{file}:{operator}:{occurrence}"
        old = before.get(key)
        if args.only not in file or (old and not (args.survivors and not old["verdict"].startswith("killed"))):
            verdicts.update({key: old} if old else {})
        else:
            wanted.append((file, first, operator, occurrence))

    def judge(some: Sequence[tuple[str, int, str, int]], out: Path) -> int:
        with out.open("w") as stream:
            for place in some:
                mutant = described(*place)
                verdict = campaign.judged(mutant)
                stream.write(json.dumps({"key": mutant.key, **asdict(mutant), "verdict": verdict}) + "\n")
                stream.flush()
                if not verdict.startswith("killed"):
                    print(f"{verdict}: {mutant.file}:{mutant.line}: {mutant.before}  →  {mutant.after}", flush=True)
        return 0

    parts = [QUICK / f"mutation_{room}_judged.{number}" for number in range(args.workers)]
    for begin in range(0, len(wanted), 30):  # saved on the way
        some = wanted[begin : begin + 30]
        in_parallel([partial(judge, some[number :: args.workers], part) for number, part in enumerate(parts)])
        for row in (json.loads(line) for part in parts for line in part.read_text().splitlines()):
            verdicts[row["key"]] = row
        save(args, results, room, verdicts, len(every), known)
    save(args, results, room, verdicts, len(every), known)


def save(
    args: argparse.Namespace, results: dict[str, Any], room: str, verdicts: dict[str, dict[str, Any]], counted: int,
    before: dict[str, Any],
) -> None:  # fmt: skip
    found = account(verdicts, counted)
    # Tests that were written for the survivors of a sample kill these, and tell nothing about other mutants.
    known = before["verdicts"]
    alive = {key for key, row in verdicts.items() if key not in known and not row["verdict"].startswith("killed")}
    alive.update(before.get("survived at first", [key for key in known if not known[key].startswith("killed")]))
    found["survived at first"] = sorted(alive & set(verdicts))
    found["killed at first"] = found["sampled"] - len(found["survived at first"])
    results[room] = {**found, "verdicts": {key: row["verdict"] for key, row in verdicts.items()}}
    settings = {"sample": args.sample, "tool": "cosmic-ray", "budget_s": BUDGET}
    write(args, settings, results, packages=("cosmic-ray", "pytest"))


if __name__ == "__main__":
    main()
