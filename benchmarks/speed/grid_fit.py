"""One co-clustering of 80,000 ratings: against Surprise's CoClustering, from a cold process, and in memory.

Surprise runs in its own environment (``--surprise PYTHON``) on the same split, one after the other, three
times each; the shortest wall time of each counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import gingham as gg
from common import arguments, best_of, left_out, load, peer_option, write

FIGURES = {
    "Surprise's seconds over ours": "surprise_over_gingham",
    "test MAE (ours)": "gingham/test_mae_real",
    "(Surprise)": "surprise/test_mae_real",
    "first import and fit, s": "first_import_and_fit_s",
}
PEER = """
import json, sys, time
import numpy as np, pandas as pd
from surprise import CoClustering, Dataset, Reader
d = np.load(sys.argv[1])
frame = lambda p: pd.DataFrame({"u": d[p + "_u"], "i": d[p + "_i"], "r": d[p + "_r"]})
train = Dataset.load_from_df(frame("train"), Reader(rating_scale=(1, 5))).build_full_trainset()
times = []
for seed in range(3):
    start = time.perf_counter()
    model = CoClustering(n_cltr_u=13, n_cltr_i=6, random_state=seed).fit(train)
    times.append(time.perf_counter() - start)
test = list(zip(d["test_u"], d["test_i"], d["test_r"]))
error = np.mean([abs(p.est - p.r_ui) for p in model.test(test)])
print(json.dumps({"seconds": min(times), "test_mae_real": error}))
"""

FIRST_FIT = """
import time; start = time.perf_counter()
import sys, numpy as np, gingham as gg
d = np.load(sys.argv[1])
X = np.column_stack([d["train_u"], d["train_i"]])
model = gg.CoClusteringRegressor(n_clusters=(13, 6), beta=1.0, alphabet=range(1, 6), start="means", random_state=0)
model.fit(X, d["train_r"])
print(time.perf_counter() - start)
"""

MEMORY = """
import resource, sys, numpy as np, gingham as gg
d = np.load(sys.argv[1])
X = np.column_stack([d["train_u"], d["train_i"]])
model = gg.CoClusteringRegressor(283, alphabet=range(1, 6), start="random", beta=0.7, max_iter=8, random_state=0)
model.fit(X, d["train_r"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    args = arguments(__doc__ or "", "speed_grid_fit", lambda parser: peer_option(parser, "surprise", "--surprise"))
    d = load(args.data, "ml100k.npz")
    base, test = d["u1_base_idx"], d["u1_test_idx"]
    part = lambda index: np.column_stack([d["rows"][index], d["cols"][index]])  # noqa: E731
    X, y = part(base), d["vals"][base]
    model = gg.CoClusteringRegressor(n_clusters=(13, 6), beta=1.0, alphabet=range(1, 6), start="means", random_state=0)
    model.fit(X, y)
    results = {
        "gingham": {
            "seconds": best_of(lambda: model.fit(X, y), 3 if args.quick else 7),
            "sweeps": model.n_iter_,
            "test_mae_real": float(np.abs(model.predict(part(test)) - d["vals"][test]).mean()),
        }
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "split.npz"
        columns = {"u": d["rows"], "i": d["cols"], "r": d["vals"]}
        parts = {"train": base, "test": test}
        np.savez(file, **{f"{p}_{k}": v[i] for p, i in parts.items() for k, v in columns.items()})

        def child(python: str, code: str) -> str:
            environment = {**os.environ}
            if python != sys.executable:  # a peer's environment, not ours
                environment.pop("PYTHONPATH", None)
            command = [python, "-c", code, str(file)]
            return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

        child(sys.executable, FIRST_FIT)  # warms the numba cache
        results["first_import_and_fit_s"] = min(
            float(child(sys.executable, FIRST_FIT)) for _ in range(1 if args.quick else 3)
        )
        results["peak_memory_283x283_mib"] = float(child(sys.executable, MEMORY))
        if args.surprise:
            results["surprise"] = json.loads(child(args.surprise, PEER))
            results["surprise_over_gingham"] = results["surprise"]["seconds"] / results["gingham"]["seconds"]
        else:
            left_out("surprise")
    print(json.dumps(results, indent=1))
    write(args, {"split": "u1", "clusters": [13, 6]}, results)


if __name__ == "__main__":
    main()
