"""A whole sweep of soft co-clustering on one GPU: checked against the plain reference, then timed.

Fresh planted ratings are drawn on the device; a sweep is both modes with costs,
memberships, answers and objective. Median of repeated sweeps after warm-up, by device events.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

try:
    import torch
    import triton  # noqa: F401
except ImportError:
    raise SystemExit("This benchmark needs torch with triton, and a GPU.") from None

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "engine"))
sys.path.insert(0, str(Path(__file__).parents[1]))
import reference

from common import arguments
from gingham.cells import Absolute, Quadratic
from gingham.data import Alphabet, Mode
from gingham.data.device_sample import DeviceSample
from gingham.engine import project_torch as accelerated
from gingham.engine import triton_kernels as gather
from gingham.engine.grid_torch import Grid
from gingham.engine.project import Rows

FIGURES = {
    "milliseconds a sweep": "sweeps/*/sweep_ms",
    "memory, GiB": "sweeps/*/memory_gib",
    "same bits twice": "reproducible",
}
FULL = ["--billion"]
STARS = Alphabet.of(range(1, 6), given=True)


def gpu_arguments(description: str, name: str, options):
    """The common options; the file goes to the folder $OUT where that is set."""

    def more(parser):
        if "OUT" in os.environ:
            parser.set_defaults(out=Path(os.environ["OUT"]) / f"{name}.json")
        options(parser)

    args = arguments(description, name, more)
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a GPU.")
    return args


def draw(weights: torch.Tensor, n: int) -> torch.Tensor:
    cumulative = (weights / weights.sum()).double().cumsum(0)
    out = torch.empty(n, dtype=torch.int32, device=weights.device)
    for at in range(0, n, 100_000_000):
        size = min(100_000_000, n - at)
        uniform = torch.rand(size, device=weights.device, dtype=torch.double)
        out[at : at + size] = torch.searchsorted(cumulative, uniform).clamp_(max=len(weights) - 1).int()
    return out


def planted(
    shape: tuple[int, ...], n: int, n_labels: int, device: str, seed: int | None = None
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Codes of every mode (power-law popularity) and labels of a planted 8 × 8 (× 8) checkerboard with noise.

    With a seed the items are the same every time, and the seed tells the rows apart.
    """
    if seed is not None:
        torch.manual_seed(0)
    popular = []
    for j, items in enumerate(shape):
        rank = torch.arange(1, items + 1, device=device).float()
        popular.append((torch.rand(items, device=device) + 0.01) ** -0.6 if j == 0 else rank**-0.8)
    parts = [torch.randint(0, 8, (items,), device=device) for items in shape]
    table = torch.randn([8] * len(shape), device=device) * 1.2
    if seed is not None:
        torch.manual_seed(seed + 1)
    codes = [draw(weights, n) for weights in popular]
    labels = torch.empty(n, dtype=torch.int32, device=device)
    for at in range(0, n, 50_000_000):
        s = slice(at, at + 50_000_000)
        mean = table[tuple(part[code[s].long()] for part, code in zip(parts, codes))]
        noisy = (2 + mean + torch.randn(len(mean), device=device)).round()
        labels[s] = noisy.clamp(0, n_labels - 1).int()
    return codes, labels


def sample_of(codes, labels, shape) -> DeviceSample:
    """Tuples that lie on a device already, as a sample."""
    modes = tuple(Mode(f"mode{j}", np.arange(n)) for j, n in enumerate(shape))
    return DeviceSample(modes, tuple(codes), None, STARS, labels)


def make_grid(sample, cell, assigns, answers, dtype=torch.float32) -> Grid:
    """A co-clustering of a sample, sorted for its clusters; cells and start lie where the sample does."""
    layouts = []
    for axis in range(sample.n_modes):
        others = [int(q.shape[1]) for j, q in enumerate(assigns) if j != axis]
        layouts.append(sample.layout(axis, cell.features, others, dtype))
    placed = cell.placed(lambda array: torch.as_tensor(array, device=sample.codes[0].device))
    return Grid(layouts, placed, [q.to(dtype, copy=True) for q in assigns], answers)


def start(shape, m, n_labels, device):
    assigns = [torch.softmax(6 * torch.rand(n, k, device=device), 1) for n, k in zip(shape, m)]
    return Absolute(STARS), assigns, torch.randint(0, n_labels, m, device=device)


def check(device: str) -> dict:
    """Projection and three sweeps against the numpy reference in float64, on fresh random data."""
    worst = {}
    for d, dense in [(2, False), (2, True), (3, False)]:
        shape, m = (300, 120, 40)[:d], (13, 6, 4)[:d]
        codes, labels = planted(shape, 40_000, 5, device)
        cell, assigns, answers = start(shape, m, 5, device)
        if dense:
            cell, answers = Quadratic(STARS), answers.double()
        # many slices and blocks, as in a large problem
        with patch.multiple(accelerated, CACHE_BYTES=2048, BLOCK_BYTES=2**20):
            grid = make_grid(sample_of(codes, labels, shape), cell, assigns, answers)
            here = sample_of([c.cpu() for c in codes], labels.cpu(), shape)
            slow = make_grid(here, cell, [q.cpu() for q in assigns], answers.cpu(), torch.float64)
        key = f"d={d} {'moments' if dense else 'one-hot'}"
        tables = slow.assigns[1:]
        rows = rows_of(codes, labels, shape, dense)
        expected = reference.project(rows, [q.numpy() for q in tables])
        got = np.concatenate(
            [
                accelerated.project_block(grid.layouts[0], b, grid.assigns[1:]).cpu().numpy()
                for b in grid.layouts[0].blocks
            ]
        )
        worst[f"{key} project"] = float(np.linalg.norm(got - expected) / np.linalg.norm(expected))
        for _ in range(3):
            fast, right = grid.sweep(0.05), slow.sweep(0.05)
        worst[f"{key} objective after 3 sweeps"] = float(((fast.cpu() - right).abs() / right.abs().clamp(min=1)).max())
        worst[f"{key} memberships"] = float(
            max((a.cpu().double() - b).abs().max() for a, b in zip(grid.assigns, slow.assigns))
        )
    return worst


def rows_of(codes, labels, shape, dense) -> Rows:
    item = codes[0].cpu().numpy()
    y = labels.cpu().numpy()
    order = np.lexsort([y, item])
    return Rows(
        indptr=np.concatenate([[0], np.cumsum(np.bincount(item, minlength=shape[0]))]).astype(np.int64),
        others=np.array([c.cpu().numpy()[order] for c in codes[1:]], dtype=np.int32),
        labels=None if dense else y[order].astype(np.int32),
        features=np.vander(y[order] + 1.0, 3, increasing=True) if dense else None,
        weights=None,
        n_features=3 if dense else 5,
    )


def median_ms(call, repeats: int) -> float:
    pairs = []
    for _ in range(repeats):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        call()
        b.record()
        pairs.append((a, b))
    torch.cuda.synchronize()
    times = sorted(a.elapsed_time(b) for a, b in pairs)
    return times[len(times) // 2]


def measure(shape, n, m, repeats: int, device: str = "cuda", parts: bool = True) -> dict:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    codes, labels = planted(shape, n, 5, device)
    cell, assigns, answers = start(shape, m, 5, device)
    torch.cuda.synchronize()
    began = time.perf_counter()
    grid = make_grid(sample_of(codes, labels, shape), cell, assigns, answers)
    torch.cuda.synchronize()
    out = {"shape": shape, "tuples": n, "clusters": m, "sort_s": time.perf_counter() - began}
    del codes, labels, assigns
    torch.cuda.empty_cache()
    objectives = [grid.sweep(1.0) for _ in range(4)]
    out["sweep_ms"] = median_ms(lambda: objectives.append(grid.sweep(1.0)), repeats)
    totals = [float(o.sum()) for o in objectives]
    rises = [(b - a) / abs(a) for a, b in itertools.pairwise(totals)]
    out["largest_relative_rise"] = max(rises)
    out["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(100 if n <= 2e8 else 10):
        last = grid.sweep(1.0)
    float(last[0])
    out["sweeps_wall_s"] = [100 if n <= 2e8 else 10, time.perf_counter() - began]
    if parts:
        for axis, name in enumerate(("rows", "columns", "third")[: len(shape)]):
            others = [q for j, q in enumerate(grid.assigns) if j != axis]
            tuples = grid.layouts[axis]
            call = lambda t=tuples, o=others, a=axis: accelerated.project_block(t, t.blocks[0], o, grid.buffers[a])  # noqa: E731
            out[f"project_{name}_ms"] = median_ms(call, 5)
            out[f"project_{name}_runs"] = [
                sum(b.begin.numel() for b in tuples.blocks),
                sum(b.n_partials for b in tuples.blocks),
            ]
    return out


def reproducible(shape, n, m, device="cuda") -> bool:
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        codes, labels = planted(shape, n, 5, device)
        cell, assigns, answers = start(shape, m, 5, device)
        grid = make_grid(sample_of(codes, labels, shape), cell, assigns, answers)
        for _ in range(5):
            grid.sweep(1.0)
        results.append([q.clone() for q in grid.assigns])
    return all(bool(torch.equal(a, b)) for a, b in zip(*results))


def main() -> None:
    def options(parser):
        parser.add_argument("--tune", action="store_true", help="try kernel settings on the 100-million problem")
        parser.add_argument("--billion", action="store_true")

    args = gpu_arguments(__doc__ or "", "speed_gpu", options)
    seed = args.seed or int(time.time())  # fresh data every run
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    results: dict = {"check": check("cuda"), "reproducible": reproducible((50_000, 5_000), 5_000_000, (64, 64))}
    print(json.dumps(results, indent=1), flush=True)
    big = ((480_000, 17_770), 10_000_000 if args.quick else 100_000_000, (64, 64))
    if args.tune:
        for tuples in (8, 16, 32):
            for run in (512, 2048):
                for cache in (16, 24, 40, 400):
                    gather.TUPLES, accelerated.RUN, accelerated.CACHE_BYTES = tuples, run, cache * 2**20
                    r = measure(*big, repeats=10)
                    keys = ("sweep_ms", "project_rows_ms", "project_columns_ms")
                    print(tuples, run, cache, {k: round(r[k], 2) for k in keys}, flush=True)
        return
    results["sweeps"] = []
    results["sweeps"].append(measure(*big, repeats=40))
    results["sweeps"].append(measure(big[0], big[1], (16, 16), repeats=40))
    print(json.dumps(results["sweeps"][-2:], indent=None), flush=True)
    results["sweeps"].append(measure((100_000, 20_000, 500), 20_000_000, (16, 16, 8), repeats=10))
    print(json.dumps(results["sweeps"][-1]), flush=True)
    if args.billion:
        results["sweeps"].append(measure((2_400_000, 88_850), 1_000_000_000, (64, 64), repeats=10))
        print(json.dumps(results["sweeps"][-1]), flush=True)
    document = {
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seed": seed,
        "machine": {"gpu": torch.cuda.get_device_name()},
        "settings": {
            "quick": args.quick,
            "tuples": gather.TUPLES,
            "run": accelerated.RUN,
            "cache_bytes": accelerated.CACHE_BYTES,
        },
        "results": results,
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
