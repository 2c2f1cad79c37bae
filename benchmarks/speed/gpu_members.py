"""Committees batched on one GPU: each step checked against numpy, then timed.

``benchmarks/speed/gpu_ratio.py`` times the same work on the CPU and prints the ratio.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "engine"))
sys.path.insert(0, str(Path(__file__).parent))
import reference
from gpu_sweep import gpu_arguments, make_grid, median_ms, planted, rows_of, sample_of, start, torch

from gingham.engine import project as layout
from gingham.engine import project_torch as accelerated
from gingham.engine.grid_torch import Members

FIGURES = {
    "members one by one over batched": "members/*/one_by_one_over_batched",
}
RATINGS = (480_000, 17_770)


def make_members(sample, cell, assigns, answers) -> Members:
    """Several co-clusterings of a sample side by side."""
    widths = [int(q.shape[0] * q.shape[2]) for q in assigns]
    layouts = [sample.layout(axis, cell.features, [widths[1 - axis]], torch.float32) for axis in range(2)]
    return Members(layouts, cell.placed(accelerated.to_device), [q.clone() for q in assigns], answers)


def check_members(device: str) -> dict:
    """Members side by side against each alone, and the contracted projections in float64."""
    shape, m = (300, 120), (13, 6)
    codes, labels = planted(shape, 40_000, 5, device)
    starts = [start(shape, m, 5, device) for _ in range(4)]
    cell = starts[0][0]
    assigns = [torch.stack([s[1][j] for s in starts]) for j in range(2)]
    answers = torch.stack([s[2] for s in starts])
    sample = sample_of(codes, labels, shape)
    together = make_members(sample, cell, assigns, answers)
    for _ in range(3):
        found = together.sweep(0.05)
    worst = 0.0
    for b, (_, q, a) in enumerate(starts):
        alone = make_grid(sample, cell, q, a)
        for _ in range(3):
            terms = alone.sweep(0.05)
        worst = max(worst, float(((found[b] - terms).abs() / terms.abs().clamp(min=1)).max()))
    rows = rows_of(codes, labels, shape, False)
    q = assigns[1][0].double().cpu().numpy()
    flat = np.zeros((shape[0], 5, m[1]))
    reference.project(rows, (q,), 0, shape[0], flat)
    flat = flat.reshape(shape[0], -1)
    coef, own = np.random.rand(7, flat.shape[1]), np.random.rand(shape[0], 7)
    cost = layout.project_cost(rows, [q], coef, "torch")
    table = layout.project_table(rows, [q], own, "torch")
    return {
        "members against alone": worst,
        "project_cost float64": float(np.abs(cost - flat @ coef.T).max() / np.abs(cost).max()),
        "project_table float64": float(np.abs(table - own.T @ flat).max() / np.abs(table).max()),
    }


def time_members(shape: tuple[int, int], n: int, n_members: int, m: int, device: str) -> dict:
    torch.cuda.empty_cache()
    codes, labels = planted(shape, n, 5, device)
    cell, assigns, answers = start(shape, (m, m), 5, device)
    sample = sample_of(codes, labels, shape)
    alone = make_grid(sample, cell, assigns, answers)
    for _ in range(3):
        alone.sweep(1.0)
    one = median_ms(partial(alone.sweep, 1.0), 10)
    del alone
    torch.cuda.empty_cache()
    tables = [torch.softmax(6 * torch.rand(n_members, *q.shape, device=device), 2) for q in assigns]
    many = torch.stack([answers] * n_members)
    together = make_members(sample, cell, tables, many)
    for _ in range(3):
        together.sweep(1.0)
    batched = median_ms(partial(together.sweep, 1.0), 10)
    return {
        "shape": shape, "tuples": n, "members": n_members, "clusters": m, "one_sweep_ms": one,
        "all_members_sweep_ms": batched, "one_by_one_over_batched": n_members * one / batched,
    }  # fmt: skip


def main() -> None:
    args = gpu_arguments(__doc__ or "", "speed_gpu_members", lambda parser: None)
    seed = args.seed or int(time.time())  # fresh data every run
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda"
    results: dict = {"check": check_members(device)}
    print(json.dumps(results, indent=1), flush=True)
    results["members"] = []
    small = ((943, 1682), 80_000), ((6040, 3706), 1_000_000)
    sizes = [(*s, 20, 60) for s in small] + [(RATINGS, 10_000_000, 8, 16), (RATINGS, 100_000_000, 8, 16)]
    for size in sizes[:2] if args.quick else sizes:
        results["members"].append(time_members(*size, device))
        print(json.dumps(results["members"][-1]), flush=True)
    document = {
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seed": seed,
        "machine": {"gpu": torch.cuda.get_device_name()},
        "settings": {"quick": args.quick},
        "results": results,
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
