"""The tables of speed in results.md, written from the JSON files whenever the documentation is built."""

from __future__ import annotations

from collections.abc import Iterator
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
        "exponent_with_tuples": "observations, items in proportion",
        "exponent_fixed_items": "observations, items fixed at 943 × 1,682",
        "exponent_items": "items",
        "exponent_clusters": "clusters of each mode",
        "exponent_modes": "modes × cells (4 clusters per mode)",
    }
    known = [f"{name} {found[key]:.2f}" for key, name in names.items() if key in found]
    yield "CPU seconds grow with these powers: " + "; ".join(known) + "."
    walls = [f"{name} {found[key + '_wall']:.2f}" for key, name in names.items() if key + "_wall" in found]
    if walls:
        yield f"Seconds on the clock, {rows[-1]['threads']} threads: " + "; ".join(walls) + "."
    first, last = (1e9 * row["sweep_cpu_s"] / row["tuples"] for row in (min(rows, key=per_tuple), rows[-1]))
    yield (
        f"An observation takes at least {first:.0f} ns per sweep, and {last:.0f} ns in the largest sample, whose "
        "memberships exceed the caches. Powers are below 1 where the work for items dominates, or one core is used."
    )
    yield ""


def cluster(found: dict[str, Any]) -> Iterator[str]:
    names = {
        "workers_1": "1 worker",
        "workers_2": "2 workers",
        "worker_killed": "2 workers, one of them killed during the fit",
    }
    sizes = [key for key in found if key.isdigit()]
    if not sizes:
        return
    yield (
        f"**Measured** on a dask cluster here, {found['tuples']:,} observations in 8 Parquet files, 20 sweeps, workers "
        "of one thread; one process with as many threads reads the same files:"
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
        "**Predicted, not measured**: the rate of the largest fit above, divided by the number of cores, plus "
        "a fifth for sums and messages (more for small partitions, as the previous table shows)."
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


def larger_than_memory(found: dict[str, Any]) -> Iterator[str]:
    rows = {name: row for name, row in found.items() if "seconds" in row.get("files", {})}
    if not rows:
        return
    large, small = (next(iter(rows.values()))[key]["rows"] for key in ("files", "memory"))
    limit = next(iter(rows.values()))["files"]["limit_gib"]
    yield (
        f"**Measured**, fits of {large:,} synthetic observations in a control group of {limit:g} GiB, page cache "
        f"included, beside fits of {small:,} in memory. The error is the root mean square error of held-out stars; of "
        "a ranking, the share of held-out pairs that score no higher than a random pair of the same user."
    )
    yield ""
    yield f"| model | CPU time | own memory | error | CPU time, {small:,} | error, {small:,} |"
    yield "|---|---|---|---|---|---|"
    for name, row in rows.items():
        there, here = row["files"], row["memory"]
        yield (
            f"| {name} | {duration(there['cpu_s'])} | {there['own_gib']:.1f} GiB | {there['error']:.3f} | "
            f"{duration(here['cpu_s'])} | {here['error']:.3f} |"
        )
    yield ""


def on_workers(found: dict[str, Any]) -> Iterator[str]:
    for name, row in found.items():
        if "seconds" not in row.get("dask", {}):
            continue
        there, here = row["dask"], row["files"]
        yield (
            f"**Measured**, {name} of {there['rows']:,} such observations on two dask workers: error "
            f"{there['error']:.3f}, CPU time {duration(there['cpu_s'])}, compilation on the workers included, "
            f"{there['own_gib']:.1f} GiB of all processes. The same fit of one process from files, under "
            f"{here['limit_gib']:g} GiB: {here['error']:.3f}, {duration(here['cpu_s'])}, {here['own_gib']:.1f} GiB."
        )
        yield ""


def engines(found: dict[str, Any]) -> Iterator[str]:
    rows = {name: row for name, row in found.items() if "value" in row.get("memory", {})}
    places = [
        place for place in ("files", "dask", "gpu") if any("value" in row.get(place, {}) for row in rows.values())
    ]
    if not places:
        return
    yield (
        "**Measured**, the same observations at several places: relative difference of the final objective (of the "
        "held-out loss, where a model has no objective) from the fit in memory, CPU time and largest memory of all "
        "processes. Layers on a GPU draw other random numbers."
    )
    yield ""
    yield "| model | memory | " + " | ".join(places) + " |"
    yield "|---|---|" + "---|" * len(places)
    for name, row in rows.items():
        cells = [
            f"{row[place]['difference']:.0e}, {duration(row[place]['cpu_s'])}, {row[place]['peak_mib']:,.0f} MiB"
            + ("" if row[place]["ran"] == place else "; computed in the memory of one process")
            if "value" in row.get(place, {})
            else "–"
            for place in places
        ]
        memory = f"{duration(row['memory']['cpu_s'])}, {row['memory']['peak_mib']:,.0f} MiB"
        yield f"| {name} | {memory} | " + " | ".join(cells) + " |"
    yield ""


def commands(found: dict[str, Any]) -> Iterator[str]:
    if not found:
        return
    names = [name for name in next(iter(found.values())) if "over" not in name]
    yield "**Measured**, the commands of a new user one after the other, CPU time with one thread:"
    yield ""
    yield "| table | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    for table, row in found.items():
        times = [duration(row[name]["cpu_s"]) if "exit" not in row[name] else "refused" for name in names]
        yield f"| {table} | " + " | ".join(times) + " |"
    yield ""


def plan(found: dict[str, Any]) -> Iterator[str]:
    rows = {name: row for name, row in found.items() if "measured_s" in row}
    if not rows:
        return
    yield "**Measured**, and predicted by the cost model of the guide: CPU time of a sweep, 16 × 16 clusters."
    yield ""
    yield "| place | measured | predicted | bytes between processes |"
    yield "|---|---|---|---|"
    for name, row in rows.items():
        sent = f"{row['bytes_per_sweep']:,.0f}"
        yield f"| {name} | {duration(row['measured_s'])} | {duration(row['predicted_s'])} | {sent} |"
    yield ""
    for name, row in found.items():
        if "predicted_sweep_s" in row:
            yield (
                f"**Predicted, not measured**, {name} on {row['machines']} machines of {row['cores']} cores: a sweep "
                f"takes {duration(row['predicted_sweep_s'])}, {row['gib_per_machine']:.1f} GiB of memory "
                f"per machine and {row['gib_of_messages_per_machine']:.1f} GiB of messages per machine."
            )
            yield ""


def every() -> Iterator[str]:
    """All tables, one after the other."""
    found = results("speed_growth")
    yield from (*growth(found), *phases(found), *cluster(results("speed_dask")), *predicted(found))
    yield from baskets(results("speed_gpu_baskets"))
    yield from larger_than_memory(results("speed_larger_than_memory"))
    yield from on_workers(results("speed_workers"))
    yield from (*engines(results("speed_engines")), *plan(results("speed_plan")), *commands(results("speed_commands")))


TABLES = {"speed": every}
