"""`project` against a plain C loop over the same arrays, one thread and two.

4 million tuples, 40,000 × 8,000 items, five labels; the C loop is compiled here with
``gcc -O3 -march=native``. Both fill an array that is already there. Ratios in the JSON: below 1 means
faster than C.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, best_of, write
from gingham.engine import project_compiled as compiled
from gingham.engine.project import Rows
from gingham.engine.project_compiled import grouping

ROUNDS = 40  # of all cases; the shortest time of each counts
FIGURES = {
    "one thread over C": "cases/*/one_thread_over_c",
    "times faster with two threads": "cases/*/speedup_of_two_threads",
}
C_LOOP = r"""
#include <stdint.h>
#define LOOP(T, NAME) \
void NAME(const int64_t *indptr, const int32_t *other, const int32_t *label, const T *restrict q, \
          T *restrict out, int64_t n, int64_t K, int64_t m) { \
  for (int64_t x = 0; x < n; x++) \
    for (int64_t e = indptr[x]; e < indptr[x + 1]; e++) { \
      T *restrict row = out + (x * K + label[e]) * m; \
      const T *restrict p = q + (int64_t)other[e] * m; \
      for (int64_t c = 0; c < m; c++) row[c] += p[c]; \
    } \
}
LOOP(float, float32)
LOOP(double, float64)
"""


def build(folder: Path) -> ctypes.CDLL:
    source, library = folder / "loop.c", folder / "loop.so"
    source.write_text(C_LOOP)
    subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def tuples(n_observations: int, n_rows: int, n_columns: int, n_labels: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    row, column = rng.integers(0, n_rows, n_observations), rng.integers(0, n_columns, n_observations)
    label = rng.integers(0, n_labels, n_observations)
    row, column, label = (codes.astype(np.int32) for codes in (row, column, label))
    begin, (others, labels) = grouping(row, label, n_rows, n_labels, [column, label])
    return Rows(np.ascontiguousarray(begin[::n_labels]), others[None], labels, None, None, n_labels, begin)


def main() -> None:
    args = arguments(__doc__ or "", "speed_project")
    n_observations, shape, n_labels = 4_000_000, (40_000, 8_000), 5  # with fewer, filling the result would count most
    rows = tuples(n_observations, *shape, n_labels, args.seed)
    rng = np.random.default_rng(args.seed)
    most = min(2, numba.config.NUMBA_NUM_THREADS)
    rounds = 4 if args.quick else ROUNDS
    results, cases = [], []
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for dtype in ("float32", "float64"):
            loop = getattr(library, dtype)
            loop.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 3
            for m in (8, 64) if args.quick else (8, 13, 16, 32, 64, 128):
                q = rng.random((shape[1], m)).astype(dtype)
                out = np.zeros((shape[0], n_labels, m), dtype)
                pointers = [a.ctypes.data for a in (rows.indptr, rows.others, rows.labels, q, out)]
                in_c = partial(loop, *pointers, shape[0], n_labels, m)
                ours = partial(compiled.project, rows, (q,), 0, shape[0], out)
                in_c()
                expected = out.copy()
                ours()
                assert np.allclose(out, expected, rtol=1e-4)
                cases.append((dtype, m, in_c, ours, {"c": np.inf, "one": np.inf, "two": np.inf}))
        for _ in range(rounds):  # all in turn, so that a disturbance hits them alike
            for _, _, in_c, ours, took in cases:
                took["c"] = min(took["c"], best_of(in_c, 2))
                for name, threads in (("one", 1), ("two", most)):
                    numba.set_num_threads(threads)
                    took[name] = min(took[name], best_of(ours, 2))
    for dtype, m, _, _, took in cases:
        results.append(
            {
                "dtype": dtype,
                "clusters": m,
                "c_ms": took["c"] * 1e3,
                "one_thread_ms": took["one"] * 1e3,
                "two_threads_ms": took["two"] * 1e3 if most == 2 else None,
                "one_thread_over_c": took["one"] / took["c"],
                "speedup_of_two_threads": took["one"] / took["two"] if most == 2 else None,
            }
        )
        print(results[-1])
    ratios = [r["one_thread_over_c"] for r in results]
    speedups = [r["speedup_of_two_threads"] for r in results if r["speedup_of_two_threads"]]
    summary = {
        "one_thread_over_c_median": float(np.median(ratios)),
        "one_thread_over_c_worst": max(ratios),
        "speedup_of_two_threads_median": float(np.median(speedups)) if speedups else None,
        "speedup_of_two_threads_worst": min(speedups, default=None),
    }
    print(summary)
    settings = {
        "n_observations": n_observations,
        "shape": shape,
        "n_labels": n_labels,
        "c_flags": "-O3 -march=native",
        "rounds": ROUNDS,
    }
    write(args, settings, {"summary": summary, "cases": results})


if __name__ == "__main__":
    main()
