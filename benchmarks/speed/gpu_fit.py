"""From numpy arrays to a fitted model on one GPU: every phase, then predictions and a certificate.

Planted ratings, 480,000 users and 17,770 films with heavy-tailed popularity, 64 × 64 clusters, at most 60 sweeps, β
from the data. Each size is fitted once to compile and load what it needs, then three times; one more fit is taken apart
into phases, with the device brought to rest between them. Small fits are compared with the CPU in double precision.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy import sparse

try:
    import torch
except ImportError:
    raise SystemExit("This benchmark needs torch and a GPU.") from None

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1]))
from gpu_sweep import gpu_arguments, planted

import gingham as gg
from gingham.arrays import on_host
from gingham.certificates import evidence
from gingham.data.device_sample import DeviceSample
from gingham.engine.project_torch import to_device
from gingham.fitting import projection_torch, starts
from gingham.models.grid import estimator

FIGURES = {
    "seconds of a fit": "fits/*/fit_s/*",
    "of predictions": "fits/*/predict_s/*",
    "of a certificate": "fits/*/certify_s/*",
}
FULL = ["--billion"]
SHAPE = (480_000, 17_770)
certify = import_module("gingham.certificates.certify")  # the package names it like its function
PHASES = (  # where a phase is looked up, its name there, what it is called here
    (DeviceSample, "of", "ids numbered"),
    (estimator, "few_values", "labels looked at"),
    (estimator, "choose_beta", "beta"),
    (estimator, "make_start", "start"),
    (starts, "item_embeddings", "start: embeddings"),
    (starts, "k_means", "start: k-means"),
    (starts, "with_best_answers", "start: first answers"),
    (projection_torch, "_on_device", "sorting"),
    (projection_torch, "iterate", "sweeps"),
    (projection_torch, "_posterior", "result"),
    (certify, "sample_of", "certificate: tuples"),
    (certify, "collect", "certificate: evidence"),
    (evidence, "in_full_precision", "certificate: memberships checked"),
    (evidence, "quantised_and_priced", "certificate: price"),
    (evidence, "answer_label_counts", "certificate: statistics"),
)


def rest() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def phases(found: dict[str, float]):
    """Adds up the seconds of every phase; outer phases include inner ones."""

    def timed(call, name):
        def run(*args, **options):
            rest()
            began = time.perf_counter()
            result = call(*args, **options)
            rest()
            found[name] = found.get(name, 0.0) + time.perf_counter() - began
            return result

        return run

    with ExitStack() as stack:
        for place, name, title in PHASES:
            stack.enter_context(patch.object(place, name, timed(getattr(place, name), title)))
        yield


def ratings(shape, n, kind=np.int64, label_kind=np.int64) -> tuple[np.ndarray, np.ndarray]:
    """Ids (N, 2) and labels 1 to 5, made on the device in parts."""
    X, y = np.empty((n, 2), dtype=kind), np.empty(n, dtype=label_kind)
    step = 100_000_000
    for at in range(0, n, step):
        codes, labels = planted(shape, min(step, n - at), 5, "cuda", seed=at)
        X[at : at + step, 0], X[at : at + step, 1] = (code.cpu().numpy() for code in codes)
        y[at : at + step] = labels.cpu().numpy() + 1
    torch.cuda.empty_cache()
    return X, y


def clocked(call) -> tuple[float, object]:
    rest()
    began = time.perf_counter()
    result = call()
    rest()
    return time.perf_counter() - began, result


def measure(X, y, m: int, repeats: int, **settings) -> dict:
    """Seconds of fits, phases, predictions and a certificate."""

    def model(**more):
        options = {"n_clusters": m, "alphabet": range(1, 6), "max_iter": 60, "random_state": 0, **settings, **more}
        return gg.CoClusteringRegressor(offsets=False, **options)

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    first, fitted = clocked(lambda: model().fit(X, y))
    out: dict = {"tuples": len(y), "clusters": m, "first_s": first, "fit_s": [], "predict_s": [], "certify_s": []}
    for _ in range(repeats):
        seconds, fitted = clocked(lambda: model().fit(X, y))
        out["fit_s"].append(seconds)
    out["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
    out |= {"n_iter": fitted.n_iter_, "beta": fitted.beta_, "objective": fitted.objective_.total}
    out["auto_goes_to_device"] = fitted.goes_to_device(X, y)
    found: dict[str, float] = {}
    with phases(found):
        out["phased_s"], _ = clocked(lambda: model().fit(X, y))
        gg.certify(fitted, X, y)
    out["phases"] = found
    if len(y) <= 10_000_000:
        double = model(dtype="float64").fit(X, y).objective_.total
        out["away_from_double"] = abs(double - fitted.objective_.total) / double
    for _ in range(repeats):
        seconds, predictions = clocked(lambda: fitted.predict(X))
        out["predict_s"].append(seconds)
    out["rmse"] = float(np.sqrt(np.mean((predictions[:10_000_000] - y[:10_000_000]) ** 2)))
    for _ in range(repeats):
        seconds, certificate = clocked(lambda: gg.certify(fitted, X, y))
        out["certify_s"].append(seconds)
    out |= {"certificate": certificate.value, "empirical": certificate.empirical}
    out["host_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return out


SMALL = """
import json, sys
import numpy as np
import gingham as gg
d = np.load(sys.argv[1])
found = {}
for m in (8, 16):
    for dtype in json.loads(sys.argv[2]):
        for start in ("spectral", "means"):
            model = gg.CoClusteringRegressor(m, alphabet=range(1, 6), max_iter=60, start=start, offsets=False,
                                             random_state=0, solver=gg.fitting.Projection(backend="torch", dtype=dtype))
            model.fit(d["X"], d["y"])
            c = gg.certify(model, d["X"], d["y"])
            p = model.predict(d["X"][:1000])
            found[f"{m} {start} {dtype}"] = [model.beta_, model.objective_.total, c.value, c.empirical, p.tolist()]
print(json.dumps(found))
"""


def compared(folder: Path) -> dict:
    """Relative differences from the CPU in double precision: β, objective, certificate, empirical loss, predictions."""
    X, y = ratings((20_000, 3_000), 300_000)
    np.savez(folder / "small.npz", X=X, y=y)
    source = str(Path(__file__).parents[2] / "src")
    results = []
    for visible, dtypes in (("", ["float64"]), ("0", ["float64", "float32"])):
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": visible, "PYTHONPATH": source}
        command = [sys.executable, "-c", SMALL, str(folder / "small.npz"), json.dumps(dtypes)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            return {"failed": done.stderr[-3000:]}
        results.append(json.loads(done.stdout))
    cpu, gpu = results
    differences = {}
    for name, values in gpu.items():
        right = cpu[name.replace("float32", "float64")]
        gaps = [abs(a - b) / abs(b) for a, b in zip(values[:4], right[:4])]
        differences[name] = [*gaps, float(np.abs(np.array(values[4]) - np.array(right[4])).max())]
    return differences


def others() -> dict:
    """Seconds of a committee, warm, and of a soft co-clustering of counts."""
    X, y = ratings(SHAPE, 10_000_000)
    member = gg.CoClusteringRegressor(16, alphabet=range(1, 6), max_iter=60, offsets=False)
    seconds = [clocked(lambda: gg.Committee(member, n_members=8, random_state=0).fit(X, y))[0] for _ in range(2)]
    counts = sparse.coo_array((np.ones(len(y)), (X[:, 0], X[:, 1])), shape=SHAPE).tocsr()
    model = gg.CoOccurrenceClustering((32, 32), beta=1.0, solver="concave", n_init=1, random_state=0)
    again = [clocked(lambda: model.fit(counts))[0] for _ in range(2)]
    return {"committee of 8, 16 x 16, s": seconds, "counts 32 x 32, s": again, "kept": model.information_kept_}


def moving() -> dict:
    """GB/s between ordinary host memory and the device."""
    host, found = np.ones(2**28, dtype=np.int64), {}
    there = torch.from_numpy(host).cuda()
    plain = (("plain_there", lambda: torch.from_numpy(host).cuda()), ("plain_back", there.cpu))
    for name, call in (*plain, ("there", lambda: to_device(host)), ("back", lambda: on_host(there))):
        seconds = min(clocked(call)[0] for _ in range(3))
        found[f"{name}_gb_s"] = host.nbytes / seconds / 1e9
    return found


def main() -> None:
    def options(parser):
        parser.add_argument("--billion", action="store_true")
        parser.add_argument("--sizes", type=float, nargs="*", default=[1e6, 1e7, 1e8])

    args = gpu_arguments(__doc__ or "", "speed_gpu_fit", options)
    torch.backends.cuda.matmul.allow_tf32 = False
    results: dict = {"moving": moving(), "compared": compared(args.out.parent), "fits": []}
    print(json.dumps(results, indent=1), flush=True)
    document = {
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seed": 0,
        "machine": {"gpu": torch.cuda.get_device_name(), "cores": os.cpu_count()},
        "settings": {"quick": args.quick, "shape": SHAPE, "sweeps": 60},
        "results": results,
    }
    for n in [1e5] if args.quick else args.sizes:
        X, y = ratings(SHAPE, int(n))
        results["fits"].append(measure(X, y, 64, 3))
        print(json.dumps(results["fits"][-1], indent=1), flush=True)
        args.out.write_text(json.dumps(document, indent=1) + "\n")
        del X, y
    if not args.quick:
        results["others"] = others()
        print(json.dumps(results["others"]), flush=True)
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    if args.billion:
        X, y = ratings((2_400_000, 88_850), 1_000_000_000, np.int32, np.int8)
        results["fits"].append(measure(X, y, 64, 1))
        print(json.dumps(results["fits"][-1], indent=1), flush=True)
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
