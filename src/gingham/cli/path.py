"""``gingham path``: one table over a range of β, cross-validated and certified where the kind allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Writes, atomic


def path(
    file: options.File,
    axes: options.Ids,
    label: options.Label = None,
    model: Annotated[str, typer.Option(help="coclustering, tree, graph or cooccurrence.")] = "coclustering",
    merges: Annotated[str | None, typer.Option(help="For a tree, as in gingham fit.")] = None,
    weight: Annotated[str | None, typer.Option(help="For a graph or counts: column with weights.")] = None,
    betas: Annotated[
        str | None, typer.Option(help="Values to try: 2,1,.5. By default twelve, chosen by the size of the noise.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option(help="Clusters per axis: 13,6. By default from the size of the data.")
    ] = None,
    loss: options.Loss = None,
    alphabet: Annotated[str | None, typer.Option(help="All possible labels, 1..5; certificates need them.")] = None,
    cv: Annotated[int, typer.Option(help="Number of folds for cross-validation; 0 for none.", min=0)] = 5,
    delta: options.Delta = 0.05,
    population: options.Population = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of folds to fit at the same time; by default all cores.", min=1)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .png or .pdf."), Writes()] = None,
    seed: options.Seed = 0,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a range of β, each started from the previous one, with cross-validated loss and certificate."""
    import numpy as np

    from gingham.cli.tables.adapter import FitTask, check
    from gingham.cli.tables.arguments import FitOptions, PathOptions, column_names, parse_population
    from gingham.cli.tables.kinds import kind_named
    from gingham.data.table_files import read_table

    kind = kind_named(model)
    if kind.no_path:
        raise GinghamError(kind.no_path)
    names = column_names(axes, "--axes")
    wanted = FitOptions(
        names, label, model, weight, merges, clusters, loss, alphabet=alphabet, seed=seed, drop_missing=drop_missing
    )
    items = parse_population(population)
    path_options = PathOptions(parse_betas(betas), cv if kind.cross_validates else 0, delta, jobs, items)
    check(kind, wanted)
    task = FitTask(read_table(file, format, names.__contains__), wanted)
    with console.steps("path of β", quiet or json) as step:
        found = kind.tables.path(kind, task, path_options, lambda progress: step(progress.done, progress.total))
    if plot is not None:
        with atomic(plot) as stream:
            found.plot()[0].figure.savefig(stream, dpi=120, format=plot.suffix.lstrip(".") or "png")
    criteria = ["cv", "one-se"] if path_options.cv else []
    if all(point.certificate is not None for point in found.points):
        criteria.append("certificate")
    best, columns = {by: found.best(by).beta for by in criteria}, found.table
    if json:
        console.print_json({"path": columns, "best": best})
        return
    known = {name: column for name, column in columns.items() if np.isfinite(column).any()}
    console.grid(f"Path of β for {file}", list(known), [tuple(map(float, row)) for row in zip(*known.values())])
    console.show(best, False, "Best β")


def parse_betas(listed: str | None) -> list[float] | None:
    """Numbers from "2,1,.5"; None for the default range."""
    if listed is None:
        return None
    try:
        return [float(part) for part in listed.split(",")]
    except ValueError:
        raise GinghamError(f"--betas {listed!r} must be numbers: --betas 2,1,.5,.2.") from None
