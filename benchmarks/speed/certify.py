"""Seconds of a certificate with all exact terms: one million tuples, 200 × 200 soft clusters."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from gingham.cells import Absolute
from gingham.certificates import certify
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Alphabet, Mode, Sample

FIGURES = {"seconds a certificate": "*/certify_wall_s", "seconds of all bounds": "*/all_bounds_wall_s"}


def problem(n: int, shape: tuple[int, int], m: int, seed: int) -> tuple[Posterior, Sample]:
    rng = np.random.default_rng(seed)
    letters = Alphabet.of((1, 2, 3, 4, 5), given=True)
    modes = [Mode(name, np.arange(size)) for name, size in zip(("user", "movie"), shape)]
    codes = [rng.integers(0, size, n) for size in shape]
    sample = Sample.of(codes, rng.integers(1, 6, n), modes=modes, alphabet=letters)
    # Soft in the way fits are: a main cluster, a few others, tails.
    assign = tuple(rng.dirichlet(np.full(m, 0.05), size) for size in shape)
    cell = Absolute(letters)
    return Posterior(Structure.grid(modes), (cell,), assign, (rng.integers(0, 5, (m, m)),)), sample


def main() -> None:
    args = common.arguments(__doc__, name="speed_certify")
    sizes = [(100_000, (943, 1682), 20)] if args.quick else [(100_000, (943, 1682), 20), (1_000_000, (6040, 3706), 200)]
    certify(*problem(1000, (30, 20), 3, 0))  # compile
    results = []
    for n, shape, m in sizes:
        posterior, sample = problem(n, shape, m, args.seed)
        timing: dict[str, float] = {}
        with common.clock(timing, "certify_"):
            certificate = certify(posterior, sample)
        with common.clock(timing, "all_bounds_"):
            table = certificate.compare(together=False)
        results.append({"n_tuples": n, "items": shape, "clusters": (m, m), "n_bounds": len(table), **timing})
        print(results[-1], flush=True)
        common.write(args, {"bound": "log-wealth, exact complexity"}, results)


if __name__ == "__main__":
    main()
