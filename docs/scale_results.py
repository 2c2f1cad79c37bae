"""The tables of speed in results.md, written from the JSON files whenever the documentation is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measured import results


def duration(seconds: float) -> str:
    """Milliseconds, seconds, minutes or hours, whichever reads best."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def per_tuple(row: dict[str, Any]) -> float:
    return float(row["sweep_cpu_s"] / row["tuples"])


def growth(found: dict[str, Any]) -> Iterator[str]:
    rows = found.get("with_tuples")
    if not rows:
        return
    yield "**Measured** in CPU seconds of all threads: sorting and 50 sweeps, 16 × 16 clusters, five labels."
    yield ""
    yield "| observations | items | sorting | one sweep | the fit | peak memory |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        items = " × ".join(f"{n:,}" for n in row["shape"])
        sort, sweep, fit = (duration(row[key]) for key in ("sort_cpu_s", "sweep_cpu_s", "fit_cpu_s"))
        yield f"| {row['tuples']:,} | {items} | {sort} | {sweep} | {fit} | {row['peak_gib']:.1f} GiB |"
    yield ""
    names = {
        "exponent_with_tuples": "tuples, items in proportion",
        "exponent_fixed_items": "tuples, items fixed at 943 × 1,682",
        "exponent_items": "items",
        "exponent_clusters": "clusters of each mode",
        "exponent_modes": "modes × cells (4 clusters a mode)",
    }
    known = [f"{name} {found[key]:.2f}" for key, name in names.items() if key in found]
    yield "CPU seconds grow with these powers: " + "; ".join(known) + "."
    walls = [f"{name} {found[key + '_wall']:.2f}" for key, name in names.items() if key + "_wall" in found]
    if walls:
        yield f"Seconds on the clock, {rows[-1]['threads']} threads: " + "; ".join(walls) + "."
    first, last = (1e9 * row["sweep_cpu_s"] / row["tuples"] for row in (min(rows, key=per_tuple), rows[-1]))
    yield (
        f"A tuple takes {first:.0f} ns a sweep at least and {last:.0f} ns in the largest sample, whose memberships "
        "outgrow the caches. Powers are below 1 where small samples are mostly work for items or use one core."
    )
    yield ""


def cluster(found: dict[str, Any]) -> Iterator[str]:
    names = {"workers_1": "1 worker", "workers_2": "2 workers", "worker_killed": "2 workers, one killed in mid-fit"}
    sizes = [key for key in found if key.isdigit()]
    if not sizes:
        return
    yield (
        f"**Measured** on a local dask cluster, {found['tuples']:,} tuples in 8 Parquet files, 20 sweeps, workers of "
        "one thread; one process with as many threads reads the same files:"
    )
    yield ""
    yield "| clusters | | the fit | one process | ratio | largest difference of a membership |"
    yield "|---|---|---|---|---|---|"
    for size in sizes:
        for title, row in ((title, found[size][key]) for key, title in names.items() if key in found[size]):
            alone = found[size]["single_1" if title == "1 worker" else "single_2"]["seconds"]
            yield (
                f"| {size} × {size} | {title} | {row['seconds']:.1f} s | {alone:.1f} s | {row['over_single']:.2f} | "
                f"{row['largest_difference']:.0e} |"
            )
    yield ""


def predicted(found: dict[str, Any]) -> Iterator[str]:
    rows = found.get("predicted")
    if not rows:
        return
    yield (
        "**Predicted, not measured**: the rate of the largest fit above, shared out evenly over the cores, with a "
        "fifth added for sums and messages (more where partitions are small, as the table before this one shows)."
    )
    yield ""
    cores = sorted({row["cores"] for row in rows})
    yield "| observations | " + " | ".join(f"{n} cores" for n in cores) + " |"
    yield "|---|" + "---|" * len(cores)
    for tuples in sorted({row["tuples"] for row in rows}):
        times = {row["cores"]: duration(row["predicted_fit_s"]) for row in rows if row["tuples"] == tuples}
        yield f"| {tuples:,} | " + " | ".join(times[n] for n in cores) + " |"
    yield ""


PHASES = ("read", "beta", "sort", "start", "sweep", "predict", "certify")


def phases(found: dict[str, Any]) -> Iterator[str]:
    rows, powers = found.get("phases_16"), found.get("exponents_phases_16")
    if not rows or not powers:
        return
    yield (
        "**Measured**, every phase of a fit by itself, and a prediction and a certificate of all observations: CPU "
        "seconds, 16 × 16 clusters, with the power of the number of observations by which each grows."
    )
    yield ""
    yield "| observations | " + " | ".join(PHASES) + " | peak memory |"
    yield "|---|" + "---|" * (len(PHASES) + 1)
    for row in rows:
        times = " | ".join(duration(row[phase]) for phase in PHASES)
        yield f"| {row['tuples']:,} | {times} | {row['peak_gib']:.1f} GiB |"
    yield "| power | " + " | ".join(f"{powers[phase]:.2f}" for phase in PHASES) + " | |"
    yield ""


def baskets(found: dict[str, Any]) -> Iterator[str]:
    rows = [row for row in found.get("fits", {}).values() if "sweep" in row and "gpu" in row]
    for row in rows:
        sweep, fit = row["sweep"], row["gpu"]
        yield (
            f"**Measured**, basket layers of {row['ratings']:,} planted ratings, three chains side by side, on one "
            f"{found['device']}: a sweep {sweep['gpu']:.1f} s, on 16 cores of the same machine {sweep['cores']:.1f} s; "
            f"the fit {duration(fit['fit_s'])}, with an error (RMSE) of {fit['rmse']:.3f}. A permutation test of "
            f"predictions on GPU and core finds no difference (p = {found['same_law']['p']:.2f})."
        )
        yield ""


def write_speed(folder: Path) -> None:
    """All tables as one file."""
    found = results("speed_growth")
    lines = [*growth(found), *phases(found), *cluster(results("speed_dask")), *predicted(found)]
    lines += baskets(results("speed_gpu_baskets"))
    (folder / "speed.inc").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
