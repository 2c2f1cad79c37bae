"""`project` where the gathered assignments do not fit the cache: in tiles, without, and a plain C loop.

50 million tuples, 480,000 × 17,770 items of uneven popularity, five labels; both modes, one thread and two. The C
loop is the one of project.py and runs over the same arrays. Ratios in the JSON: below 1 means faster than C.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from project import build

from common import arguments, best_of, write
from gingham.engine.project import STEP_BYTES, Rows, projector, row_blocks
from gingham.engine.project_compiled import grouping, make_tiles
from gingham.engine.threads import over_blocks

FIGURES = {
    "one thread over C": "cases/*/tiles_over_c",
    "times faster in tiles": "cases/*/gain_of_tiles",
    "with two threads": "cases/*/speedup_of_two_threads",
}
N_LABELS = 5


def tuples(n_observations: int, shape: tuple[int, int], seed: int) -> list[Rows]:
    """The same tuples by each mode; a few items of each have most of them."""
    rng = np.random.default_rng(seed)
    codes = [
        rng.permutation(n).astype(np.int32)[(n * rng.random(n_observations) ** power).astype(np.int32)]
        for n, power in zip(shape, (1.5, 3))
    ]
    label = rng.integers(0, N_LABELS, n_observations).astype(np.int32)
    made = []
    for own, other, n in ((*codes, shape[0]), (*codes[::-1], shape[1])):
        begin, (gathered, marks) = grouping(own, label, n, N_LABELS, [other, label])
        indptr = np.ascontiguousarray(begin[::N_LABELS])
        made.append(Rows(indptr, gathered[None], marks, None, None, N_LABELS, begin))
    return made


def main() -> None:
    args = arguments(__doc__ or "", "speed_tiles")
    n_observations, shape = (1_000_000, (60_000, 4_000)) if args.quick else (50_000_000, (480_000, 17_770))
    rng = np.random.default_rng(args.seed)
    most = min(2, numba.config.NUMBA_NUM_THREADS)
    layouts = tuples(n_observations, shape, args.seed)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for mode, m, dtype in (
            (mode, m, dtype) for mode in (0, 1) for m in (16, 64) for dtype in ("float64", "float32")
        ):
            rows, n_others = layouts[mode], shape[1 - mode]
            q = rng.random((n_others, m)).astype(dtype)
            tiles = make_tiles(rows, n_others, m * q.itemsize)
            if tiles is None:
                continue  # all fits the cache
            loop = getattr(library, dtype)
            loop.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 3
            out = np.zeros((rows.n_items, N_LABELS, m), dtype)
            pointers = [a.ctypes.data for a in (rows.indptr, rows.others, rows.labels, q, out)]

            def in_c(loop=loop, pointers=pointers, rows=rows, m=m):
                loop(*pointers, rows.n_items, N_LABELS, m)

            def ours(tiles, n_threads, rows=rows, q=q, dtype=dtype, m=m):
                numba.set_num_threads(n_threads)
                blocks = row_blocks(rows.n_items, N_LABELS * m, STEP_BYTES) if tiles is None else tiles.blocks
                sums = projector(rows, [q], "compiled", dtype, tiles)
                for _ in over_blocks(lambda block: sums(*block) is None, blocks):
                    pass

            in_c()
            for start, stop in tiles.blocks:
                got = projector(rows, [q], "compiled", dtype, tiles)(start, stop)
                assert np.allclose(got, out[start:stop], rtol=1e-3)
            took = dict.fromkeys(("c", "plain, 1", "tiles, 1", "plain, 2", "tiles, 2"), np.inf)
            for _ in range(2):  # in turn, so that a disturbance hits all alike
                took["c"] = min(took["c"], best_of(in_c, 1))
                for n_threads in sorted({1, most}):
                    for name, chosen in (("plain", None), ("tiles", tiles)):
                        seconds = best_of(lambda c=chosen, n=n_threads: ours(c, n), 1)
                        took[f"{name}, {n_threads}"] = min(took[f"{name}, {n_threads}"], seconds)
            results.append(
                {
                    "items": rows.n_items,
                    "gathered_mib": q.nbytes / 2**20,
                    "clusters": m,
                    "dtype": dtype,
                    "ns_per_tuple": {name: 1e9 * s / n_observations for name, s in took.items() if np.isfinite(s)},
                    "tiles_over_c": took["tiles, 1"] / took["c"],
                    "gain_of_tiles": took["plain, 1"] / took["tiles, 1"],
                    "speedup_of_two_threads": took["tiles, 1"] / took["tiles, 2"] if most == 2 else None,
                    "speedup_of_two_threads_without": took["plain, 1"] / took["plain, 2"] if most == 2 else None,
                }
            )
            print(results[-1], flush=True)
    summary = {
        f"{name}_{which}": float(choose([r[name] for r in results]))
        for name in ("tiles_over_c", "gain_of_tiles", "speedup_of_two_threads", "speedup_of_two_threads_without")
        for which, choose in (("median", np.median), ("worst", max if name == "tiles_over_c" else min))
        if results and results[0][name] is not None
    }
    print(summary)
    settings = {"n_observations": n_observations, "shape": shape, "n_labels": N_LABELS, "c_flags": "-O3 -march=native"}
    write(args, settings, {"summary": summary, "cases": results})


if __name__ == "__main__":
    main()
