"""Do certificates keep their promise? Every bound against the truth, on posteriors that try to break it.

Planted problems whose law is known: for each of 2000 samples an adversary who knows the truth picks a posterior, and a
bound fails when the true loss lies above it, which it may in a share δ of the samples. Adversaries take turns. Bounds
with a mistake in them run along and must be caught. Bounds that exist for one kind of data only run on three problems
of that kind.

    python benchmarks/papers/certificate_coverage.py                       # everything
    python benchmarks/papers/certificate_coverage.py --only in_sample --problem graph
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import coverage_densities as densities
import coverage_doors as doors
import coverage_papers as papers
import coverage_problems as problems
import coverage_streams as streams
import coverage_worlds as worlds

import common

LONG = "thousands of samples of each problem take over a quarter of an hour"
FIGURES = {
    "sound bounds within binomial error, all": "summary/sound bounds/all within binomial error",
    "of cases": "summary/sound bounds/cases",
    "most failures": "summary/sound bounds/most failures/rate",
}


def planted(*names: str) -> dict[str, Any]:
    """Some of the planted problems."""
    every = problems.problems()
    return {name: every[name] for name in names}


def parts() -> dict[str, tuple[Any, Callable[[], dict[str, Any]]]]:
    """Part → (function of a problem, the number of samples and a seed; what makes its problems)."""
    kinds = partial(planted, "d = 1", "d = 2", "graph")
    return {
        "in_sample": (doors.in_sample, kinds),
        "gain": (doors.gain, problems.many_items),
        "holdout": (doors.holdout, kinds),
        "population": (doors.population, kinds),
        "split": (doors.split, partial(planted, "d = 1", "d = 2", "d = 3")),  # grids only
        "numbers": (papers.numbers, lambda: {**kinds(), **papers.graphs()}),
        "trees": (papers.trees, papers.tree_problems),
        "features": (papers.features, papers.feature_laws),
        "clusters": (papers.clusters, papers.cluster_laws),
        "densities": (densities.densities, densities.laws),
        "tree_densities": (densities.tree_densities, densities.trees),
        "listed": (worlds.listed, worlds.worlds),
        "anytime": (streams.stopped, streams.streams),
    }


def worst(results: dict[str, Any]) -> dict[str, Any]:
    """The most failures of any sound bound, what the broken ones reached on each problem, and what was allowed."""
    sound, broken = [], {}
    for part, by_problem in results.items():
        for problem, by_bound in by_problem.items():
            for bound, row in by_bound.items():
                for adversary, entry in row.items():
                    if bound.startswith("broken"):
                        most = broken.setdefault(f"{part}, {problem}", {}).setdefault(bound, {"rate": -1.0})
                        if entry["rate"] > most["rate"]:
                            most.update(adversary=adversary, rate=entry["rate"], caught=caught(entry))
                    elif part != "anytime" or bound == "log-wealth":  # the others are not meant for streams
                        sound.append((entry["rate"], part, problem, bound, adversary, not caught(entry)))
    top = max(sound, default=(0.0, "", "", "", "", True))
    return {
        "sound bounds": {
            "cases": len(sound),
            "all within binomial error": all(case[-1] for case in sound),
            "most failures": dict(zip(("rate", "part", "problem", "bound", "adversary"), top)),
        },
        "broken bounds": broken,
    }


def caught(entry: dict[str, float]) -> bool:
    """Whether a bound failed more often than one that holds does once in a thousand runs."""
    return entry["failures"] > problems.allowed(entry["samples"])


def joined(files: list[Path]) -> dict[str, Any]:
    """Runs with different seeds, or of different parts, as one: failures and samples add up."""
    total: dict[str, Any] = {}
    for file in files:
        for part, by_problem in json.loads(file.read_text())["results"].items():
            for problem, by_bound in by_problem.items() if part != "summary" else ():
                for bound, row in by_bound.items():
                    for adversary, entry in row.items():
                        place = total.setdefault(part, {}).setdefault(problem, {}).setdefault(bound, {})
                        old = place.get(adversary, {"failures": 0, "samples": 0})
                        place[adversary] = problems.summary(
                            old["failures"] + entry["failures"], old["samples"] + entry["samples"]
                        )
    return total


def least(results: dict[str, Any]) -> int:
    """The fewest samples of any bound; parts may have been run with different numbers of them."""
    return int(
        min(
            max(entry["samples"] for entry in row.values())
            for by_problem in results.values()
            for by_bound in by_problem.values()
            for row in by_bound.values()
        )
    )


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=tuple(parts()), nargs="+", default=None, help="these parts; others are kept")
    parser.add_argument("--problem", default=None, help="one problem of the part")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--join", type=Path, nargs="+", help="add up the files of runs with different seeds or parts")


def settings(n_samples: int) -> dict[str, Any]:
    return {
        "delta": problems.DELTA,
        "samples": n_samples,
        "allowed_failures": problems.allowed(n_samples),
        "upper": "99.9 % upper limit of the failure rate (Clopper and Pearson)",
        "split": "split priors exist for grids; the third problem is a grid of three modes",
        "numbers": "quadratic and log loss on grids; the quadratic loss and P1's (15) on three graphs",
        "features": "P4: features drawn at random, all clusterings of seven objects listed",
        "densities": "no labels, each mode once: laws of one, two and three modes",
    }


def main() -> None:
    args = common.arguments(__doc__.splitlines()[0], name="certificate_coverage", options=options)
    if args.join:
        results = joined(args.join)
        common.write(args, settings(least(results)), {**results, "summary": worst(results)})
        return
    n_samples, n_problems = (5, 1) if args.quick else (args.samples, None)
    for part, (function, cases) in parts().items():
        if args.only is not None and part not in args.only:
            continue
        for name, problem in list(cases().items())[:n_problems]:
            if args.problem not in (None, name):
                continue
            found = function(problem, n_samples, args.seed)
            rows = found.rows() if isinstance(found, problems.Tally) else found
            # Read anew each time, so that a long run can be done in pieces.
            results = {key: value for key, value in common.previous(args).items() if key in parts()}
            results.setdefault(part, {})[name] = rows
            common.write(args, settings(least(results)), {**results, "summary": worst(results)})
            print(part, name, "done", flush=True)


if __name__ == "__main__":
    main()
