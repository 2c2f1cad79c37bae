"""Sampled layers and committees batched on one GPU: each step checked against numpy, then timed.

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
from gingham.models.layers import kernels_reference as layers_reference
from gingham.models.layers import kernels_torch as device_layers

FIGURES = {
    "milliseconds a sweep of the chains": "chains/*/sweep_ms",
    "members one by one over batched": "members/*/one_by_one_over_batched",
    "same bits twice": "reproducible",
}
SCALES = {"offset": 0.25, "offset_prior": 0.1, "cell": 0.05, "cell_prior": 4.0}
RATINGS = (480_000, 17_770)


def chains_of(codes, labels, shape, n_layers, m, seeds, device):
    arrays = [c.cpu().numpy() for c in codes]
    y = labels.cpu().numpy().astype(float)
    plan = (arrays, y, None, shape, (m, m), n_layers, 0.8, seeds, SCALES)
    return device_layers.DeviceChains(*plan, device=device)


def check_layers(device: str) -> dict:
    """Histograms, label draws, residual updates and offsets of a layer against the plain reference."""
    shape, m = (400, 150), 8
    codes, labels = planted(shape, 60_000, 5, device)
    saved, accelerated.RUN = accelerated.RUN, 128  # items with several runs
    chains = chains_of(codes, labels, shape, 2, m, [1, 2], device)
    accelerated.RUN = saved
    host = [c.cpu().numpy() for c in codes]
    worst = {}
    generator = np.random.default_rng(int(time.time()))
    for mode in range(2):
        other = chains.labels[1 - mode][0]
        got = device_layers.histograms(chains.layouts[mode], other, chains.residual, None, m)
        order = np.argsort(host[mode], kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(host[mode], minlength=shape[mode]))])
        facing = generator.standard_normal((2, m, m)).astype(np.float32)
        uniforms = generator.random((2, shape[mode]))
        new = device_layers.draw_labels(
            got, torch.as_tensor(facing).to(device), chains.labels[mode][0], 0.8, torch.as_tensor(uniforms).to(device)
        )
        for b in range(2):
            row = np.zeros(sum(shape), dtype=np.uint8)
            first = np.array([0, shape[0]])
            for j in range(2):
                row[first[j] : first[j] + shape[j]] = chains.labels[j][0, b].cpu().numpy()
            members = np.bincount(row[first[mode] : first[mode] + shape[mode]], minlength=m)
            counts, sums = np.empty((m, m)), np.empty((m, m))
            layers_reference.draw_labels(
                indptr, host[1 - mode][order][None], order, first[[1 - mode]], np.array([1]), np.ones(1), True,
                chains.residual[b].cpu().numpy(), facing[b], 1 / 0.8, np.log((members + 1.0) / (shape[mode] + m)),
                np.zeros((0, 0)), uniforms[b], int(first[mode]), row, counts, sums,
            )  # fmt: skip
            table = device_layers.table(new, got, m)[b].cpu().numpy()
            same = row[first[mode] : first[mode] + shape[mode]] == new[b].cpu().numpy()
            worst[f"mode {mode} chain {b} labels that differ"] = int((~same).sum())
            if same.all():
                worst[f"mode {mode} chain {b} statistics"] = float(
                    max(
                        np.abs(table[0] - counts).max() / counts.max(),
                        np.abs(table[1] - sums).max() / np.abs(sums).max(),
                    )
                )
    before = chains.residual.clone()
    cells = torch.randn(2, m, m, device=device)
    device_layers.add_cells(chains.residual, chains.codes, [x[0] for x in chains.labels], cells, 1.0)
    expected = before.cpu().numpy().copy()
    for b in range(2):
        at = [chains.labels[j][0, b].cpu().numpy()[host[j]] for j in range(2)]
        expected[b] += cells[b].cpu().numpy()[at[0], at[1]]
    worst["residuals"] = float(np.abs(expected - chains.residual.cpu().numpy()).max())
    return worst


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
    flat = reference.project(rows, [q]).reshape(shape[0], -1)
    coef, own = np.random.rand(7, flat.shape[1]), np.random.rand(shape[0], 7)
    cost = layout.project_cost(rows, [q], coef, "torch")
    table = layout.project_table(rows, [q], own, "torch")
    return {
        "members against alone": worst,
        "project_cost float64": float(np.abs(cost - flat @ coef.T).max() / np.abs(cost).max()),
        "project_table float64": float(np.abs(table - own.T @ flat).max() / np.abs(table).max()),
    }


def reproducible(device: str) -> bool:
    states = []
    for _ in range(2):
        torch.manual_seed(5)
        codes, labels = planted((5_000, 2_000), 500_000, 5, device)
        chains = chains_of(codes, labels, (5_000, 2_000), 5, 8, [1, 2], device)
        for _ in range(6):
            chains.sweep()
        states.append([x.clone() for x in (*chains.labels, chains.residual, chains.cells)])
    return all(bool(torch.equal(a, b)) for a, b in zip(*states))


def time_chains(shape: tuple[int, int], n: int, n_chains: int, device: str) -> dict:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    codes, labels = planted(shape, n, 5, device)
    began = time.perf_counter()
    chains = chains_of(codes, labels, shape, 10, 8, list(range(n_chains)), device)
    torch.cuda.synchronize()
    ready = time.perf_counter() - began
    for _ in range(4):
        chains.sweep()
    sweep = median_ms(chains.sweep, 10)
    return {
        "shape": shape, "tuples": n, "chains": n_chains, "layers": 10, "clusters": 8, "ready_s": ready,
        "sweep_ms": sweep, "residual_mse": float((chains.residual**2).mean()),
        "memory_gib": torch.cuda.max_memory_allocated() / 2**30,
    }  # fmt: skip


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
    def options(parser):
        parser.add_argument("--profile", action="store_true", help="say where a sweep's time goes")

    args = gpu_arguments(__doc__ or "", "speed_gpu_chains", options)
    seed = args.seed or int(time.time())  # fresh data every run
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda"
    results: dict = {"check": {**check_layers(device), **check_members(device)}, "reproducible": reproducible(device)}
    print(json.dumps(results, indent=1), flush=True)
    results["chains"] = []
    sizes = [((6040, 3706), 1_000_000, 1), ((6040, 3706), 1_000_000, 3), (RATINGS, 10_000_000, 1)]
    sizes += [(RATINGS, 10_000_000, 3), (RATINGS, 100_000_000, 1), (RATINGS, 100_000_000, 3)]
    for size in sizes[:2] if args.quick else sizes:
        results["chains"].append(time_chains(*size, device))
        print(json.dumps(results["chains"][-1]), flush=True)
    results["members"] = []
    small = ((943, 1682), 80_000), ((6040, 3706), 1_000_000)
    sizes = [(*s, 20, 60) for s in small] + [(RATINGS, 10_000_000, 8, 16), (RATINGS, 100_000_000, 8, 16)]
    for size in sizes[:2] if args.quick else sizes:
        results["members"].append(time_members(*size, device))
        print(json.dumps(results["members"][-1]), flush=True)
    if args.profile:
        codes, labels = planted(RATINGS, 10_000_000, 5, device)
        chains = chains_of(codes, labels, RATINGS, 10, 8, [0, 1, 2], device)
        for _ in range(4):
            chains.sweep()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            chains.sweep()
        print(profile.key_averages().table(sort_by="cuda_time_total", row_limit=18, max_name_column_width=60))
    document = {
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seed": seed,
        "machine": {"gpu": torch.cuda.get_device_name()},
        "settings": {"quick": args.quick, "noise": 0.8, "scales": SCALES},
        "results": results,
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
