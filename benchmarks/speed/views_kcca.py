"""Seconds to fit two views with Gaussian kernels: pairwise cluster analysis beside cca-zoo's kernel CCA.

Both in one process, one after the other, with the same kernel and the same ridge in the units of the kernel, three
components, one thread; the correlation of the components on fresh objects says that both found the same. Needs an
environment with cca-zoo. ``--sizes 4000`` adds one size to the file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, importable, previous, write

FIGURES = {
    "times faster than cca-zoo (CPU)": "rows/*/times_faster_cpu",
    "held-out correlation (ours)": "rows/*/gingham_correlation/0",
    "(cca-zoo)": "rows/*/cca_zoo_correlation/0",
}
SHRINKAGE, GAMMA, COMPONENTS, WIDTH = 0.1, 0.05, 3, 20


def options(parser):
    parser.add_argument("--sizes", type=int, nargs="*", default=[500, 1000, 2000, 4000])
    parser.add_argument("--ours", action="store_true", help="leave cca-zoo out (it needs minutes at 4000 objects)")


def sample(n, seed):
    """Two views of 20 numbers, four shared clusters."""
    rng = np.random.default_rng(seed)
    maps = np.random.default_rng(7)
    kind = rng.integers(0, 4, n)
    return [2 * maps.normal(size=(4, WIDTH))[kind] + rng.normal(size=(n, WIDTH)) for _ in range(2)]


def ridge_like(views, shrinkage):
    """The ridge, in units of the mean diagonal, at which both methods weigh K against K² alike."""
    from sklearn.metrics.pairwise import rbf_kernel

    n = len(views[0])
    ridges = []
    for view in views:
        gram = rbf_kernel(view, gamma=GAMMA)
        diagonal = (np.trace(gram) - gram.mean() * n) / n
        ridges.append(shrinkage / (1 - shrinkage) * (n - 1) / diagonal)
    return ridges


def exponent(sizes, seconds):
    """Slope of log seconds against log n."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main():
    args = arguments(__doc__, "speed_views_kcca", options)
    if not args.ours and importable("cca", "cca_zoo"):
        from cca_zoo.nonparametric import KCCA
    else:
        args.ours = True
    rows = previous(args).get("rows", {})
    for n in [200, 500] if args.quick else args.sizes:
        views, fresh = sample(n, args.seed), sample(2000, args.seed + 1)
        ridge = ridge_like(views, SHRINKAGE)
        row = {"ridge": ridge}
        kernel = {"kernel": "rbf", "kernel_params": {"gamma": GAMMA}}
        with clock(row, "gingham_"):
            ours = gg.PairwiseClusterAnalysis(COMPONENTS, ridge=ridge, solver="exact", **kernel).fit(views)
        if n <= 2000:
            with clock(row, "gingham_kcca_"):
                block = gg.KernelCCA(COMPONENTS, ridge=ridge, solver="exact", **kernel).fit(views)
            row["gingham_kcca_correlation"] = block.correlations(fresh)
        row["gingham_correlation"] = ours.correlations(fresh)
        if not args.ours:
            with clock(row, "cca_zoo_"):
                theirs = KCCA(COMPONENTS, kernel="rbf", gamma=GAMMA, shrinkage=SHRINKAGE).fit(views)
            theirs_scores = theirs.transform(fresh)
            row["cca_zoo_correlation"] = [
                float(np.corrcoef(theirs_scores[0][:, c], theirs_scores[1][:, c])[0, 1]) for c in range(COMPONENTS)
            ]
            row["times_faster_wall"] = row["cca_zoo_wall_s"] / row["gingham_wall_s"]
            row["times_faster_cpu"] = row["cca_zoo_cpu_s"] / row["gingham_cpu_s"]
        rows[str(n)] = row
        print(n, {k: np.round(v, 3) for k, v in row.items()})
        sizes = sorted(map(int, rows))
        results = {"rows": {str(s): rows[str(s)] for s in sizes}}
        if len(sizes) > 1:
            results["exponent of CPU seconds"] = {
                who: exponent(timed, [rows[str(s)][f"{who}_cpu_s"] for s in timed])
                for who in ("gingham", "cca_zoo")
                if len(timed := [s for s in sizes if f"{who}_cpu_s" in rows[str(s)]]) > 1
            }
            print(results["exponent of CPU seconds"])
        write(
            args,
            {"gamma": GAMMA, "shrinkage": SHRINKAGE, "components": COMPONENTS, "features": WIDTH},
            results,
            packages=("cca-zoo",),
        )


if __name__ == "__main__":
    main()
