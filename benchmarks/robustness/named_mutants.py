"""Ten mistakes that make a guarantee or an error false without any crash: does a test notice each of them?

Each is one change of a line; the tests named beside it run on a copy of the source with that change.

    python benchmarks/robustness/named_mutants.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import arguments, previous, write

ONLY_FULL = "each mistake needs a copy of the source and its tests"
FIGURES = {"mistakes": "summary/mutants", "noticed by a test": "summary/killed"}
PYTEST = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "-rf")
ROOT = Path(__file__).parents[2]
MUTANTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "growing models see their own test block": (
        "models/progressive.py", "before = runner.fitted(draws[:start], before, draws[learned:start])",
        "before = runner.fitted(draws[:stop], before, draws[learned:stop])", ("tests/models/test_progressive.py",),
    ),
    "ranking is off by one without replacement": (
        "certificates/ranking.py", "left = population - seen + 1.0", "left = np.maximum(population - seen, 1.0)",
        ("tests/certificates/test_ranking.py", "-k", "replacement or population"),
    ),
    "a lower bound has the whole δ": (
        "certificates/certify.py", "_lower(theorem, evidence, delta / 2)", "_lower(theorem, evidence, delta)",
        ("tests/certificates/test_certify.py", "-k", "sided"),
    ),
    "ν comes from all tests of the pilot": (
        "models/progressive.py", "(self.losses[0][:n_tuned] - low)", "(self.losses[0] - low)",
        ("tests/models/test_progressive.py", "tests/certificates/test_progressive.py"),
    ),
    "renamings are deducted after 1,000 hard items": (
        "certificates/prices.py", "for part in (assign[:1000], assign)", "for part in (assign[:1000],)",
        ("tests/certificates/test_complexity.py",),
    ),
    "losses are rounded to the nearest step": (
        "certificates/evidence.py", "np.ceil(np.minimum(", "np.rint(np.minimum(",
        ("tests/certificates/test_certify.py", "tests/certificates/test_small_print.py", "tests/test_verify.py"),
    ),
    "a union of sketches keeps the larger limit": (
        "data/fit_rows.py", "limit = min(part.limit for part in parts)", "limit = max(part.limit for part in parts)",
        ("tests/data/test_fit_rows.py",),
    ),
    "averages see the entries that are held out": (
        "summary/measure.py", "train = rows.plain().take(seen)", "train = rows.plain()",
        ("tests/summary/test_measure.py",),
    ),
    "fine clusters see the entries that are held out": (
        "summary/sizes.py", "own_clusters(learned.with_first(learned.relations[0].take(~held)), refit.clusters)",
        "own_clusters(learned, refit.clusters)", ("tests/summary/test_summarize.py",),
    ),
    "a ranker's pilot has the hidden items": (
        "models/ranking/fit.py", "some = kept.of_users(users)", "some = baskets.of_users(users)",
        ("tests/models/ranking/test_members.py", "tests/models/ranking/test_ranker.py"),
    ),
}  # fmt: skip


def killed(file: str, before: str, after: str, tests: tuple[str, ...]) -> dict[str, Any]:
    """Whether the tests fail on a copy of the source with the change."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        path = Path(folder) / "src" / "gingham" / file
        text = path.read_text("utf-8")
        if text.count(before) != 1:
            raise SystemExit(f"{file}: {before!r} stands there {text.count(before)} times.")
        path.write_text(text.replace(before, after), "utf-8")
        ran = tested(f"{folder}/src", tests)
    by = [line.split(" ")[1] for line in ran.stdout.splitlines() if line.startswith("FAILED")][:1]
    if by and tested(str(ROOT / "src"), tuple(by)).returncode:
        raise SystemExit(f"{by[0]} fails without any mistake.")
    return {"killed": ran.returncode == 1, "by": by, "file": file, "change": after}


def tested(source: str, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Tests that run on some source, up to the first that fails."""
    command = [sys.executable, "-m", "pytest", *PYTEST, *tests]
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def main() -> None:
    args = arguments(__doc__ or "", "named_mutants")
    results = previous(args)
    for name, mutant in MUTANTS.items():
        if results.get(name, {}).get("killed"):
            continue
        results[name] = killed(*mutant)
        print(name, results[name], flush=True)
    found = [results[name]["killed"] for name in MUTANTS]
    results["summary"] = {"mutants": len(found), "killed": sum(found)}
    write(args, settings={}, results=results)


if __name__ == "__main__":
    main()
