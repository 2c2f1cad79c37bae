"""What choosing the ridge costs: one fit with it given, beside one that chooses it, on one thread and on all cores.

Four views of 1,500 objects and 3,000 features. The choice (five ridges, the folds of the default) reuses the kernels of
the fit. And whether it is good: held-out captions (speeches in four languages) and their mates, with the chosen ridge
beside every fixed one, components given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, previous, write
from gingham.models.views.view_validation import RIDGES
from parallel_texts import read_texts, vectorised

FIGURES = {
    "CPU seconds over those of one fit": "*/choice over fit, CPU",
    "wall clock over that of one fit": "*/choice over fit, wall",
    "retrieval: best fixed ridge less the chosen one": "retrieval/best fixed less chosen",
}
TIMED = """
import json, resource, sys, time
import numpy as np
import gingham as gg
n, d = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
hidden = rng.standard_normal((n, 20))
views = [hidden @ rng.standard_normal((20, d)) + 3 * rng.standard_normal((n, d)) for _ in range(4)]
gg.PairwiseClusterAnalysis(20).fit([v[:100, :50] for v in views])
found = {}
for name, ridge in (("fit", 0.1), ("choice", None)):
    rows = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        model = gg.PairwiseClusterAnalysis(20, ridge=ridge, random_state=0).fit(views)
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime
        rows.append((time.perf_counter() - wall, used))
    found[name] = {"wall_s": min(r[0] for r in rows), "cpu_s": min(r[1] for r in rows)}
found["choice over fit, CPU"] = found["choice"]["cpu_s"] / found["fit"]["cpu_s"]
found["choice over fit, wall"] = found["choice"]["wall_s"] / found["fit"]["wall_s"]
found["ridge"] = model.ridge_[0]
print(json.dumps(found))
"""


def timed(threads: int, size: tuple[int, int]) -> dict[str, Any]:
    """The clock of a process of its own with so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    run = [sys.executable, "-c", TIMED, json.dumps(size)]
    return json.loads(subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout)


def retrieval(args: Any) -> dict[str, Any]:
    texts = read_texts(args.data, "europarl_speeches_7lang.tsv.gz", ("en", "es", "de", "it"))
    rows = []
    for split in range(1 if args.quick else 3):
        order = np.random.default_rng([args.seed, split]).permutation(len(texts[0]))
        inside, outside = vectorised(texts, order[:500], order[500 : 1000 if args.quick else 2500], "tf-idf")
        chosen = gg.PairwiseClusterAnalysis(100, random_state=args.seed).fit(inside)
        fixed = {f"{r:g}": gg.PairwiseClusterAnalysis(100, ridge=r).fit(inside).mrr(outside) for r in RIDGES}
        rows.append({"chosen": chosen.mrr(outside), "ridge": chosen.ridge_[0], **fixed})
        print(rows[-1], flush=True)
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {"mean": mean, "best fixed less chosen": max(mean[f"{r:g}"] for r in RIDGES) - mean["chosen"]}


def main() -> None:
    args = arguments(
        __doc__ or "", "speed_ridge_choice", lambda parser: parser.add_argument("--only", choices=("time", "retrieval"))
    )
    size = (400, 600) if args.quick else (1500, 3000)
    cores = os.cpu_count() or 1
    results: dict[str, Any] = previous(args) if args.only else {}
    if args.only != "retrieval":
        results |= {f"{threads} threads": timed(threads, size) for threads in sorted({1, cores})}
        print(results, flush=True)
    if args.only != "time" and args.data is not None:
        results["retrieval"] = retrieval(args)
    write(args, {"objects": size[0], "features": size[1], "views": 4}, results)


if __name__ == "__main__":
    main()
