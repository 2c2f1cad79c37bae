"""Commands that make and use models: fit, path, simplify, predict, clusters."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gingham.cli import console as screen
from gingham.cli.application import app
from gingham.cli.options import (
    Axes,
    Bounds,
    CheckpointEvery,
    Delta,
    DropMissing,
    File,
    Format,
    Ids,
    Json,
    Label,
    Loss,
    ModelFile,
    OutModel,
    OutTable,
    Quiet,
    Resume,
    Seed,
    column_names,
    writable,
)
from gingham.errors import GinghamError


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham fit ratings.csv --axes user,movie --label rating\n\n"
    "gingham fit ratings.csv --axes user,movie --label rating --clusters 13,6 --loss absolute --beta 1 "
    "--alphabet 1..5 --out model.gingham\n\n"
    "gingham fit edges.csv --model graph --axes from,to --clusters 10\n\n"
    "zcat votes.csv.gz | gingham fit - --axes member,bill --label vote --json"
)
def fit(
    file: File,
    axes: Ids,
    label: Label = None,
    model: Annotated[
        str,
        typer.Option(
            help="coclustering, layered, committee, bayesian, tree, graph, cooccurrence, joint, information, pairwise."
        ),
    ] = "coclustering",
    merges: Annotated[
        str | None, typer.Option(help="Of a tree: 0,1,6;2,3,6 merges axes 0 and 1 into 6 clusters…; or auto.")
    ] = None,
    out: OutModel = Path("model.gingham"),
    weight: Annotated[str | None, typer.Option(help="Column with counts.")] = None,
    clusters: Annotated[str | None, typer.Option(help="Clusters per axis: 13,6. Chosen by size if absent.")] = None,
    loss: Loss = None,
    beta: Annotated[
        float | None, typer.Option(help="Trade-off per unit of loss; from held-out rows if absent.")
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5 or a,b,c. Certificates want it stated.")
    ] = None,
    bounds: Bounds = None,
    relation: Annotated[
        list[str] | None, typer.Option("--relation", "-r", help="Of a joint model: a further table, AXES=LABEL:FILE.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="tradeoff (the default), or certificate to minimise the certificate.")
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            help="projection (soft, the default), or sweep: hard moves; with --loss log, a description length."
        ),
    ] = None,
    starts: Annotated[int | None, typer.Option(help="Starts; the best is kept. By kind if absent.", min=1)] = None,
    max_iter: Annotated[int | None, typer.Option(help="Most sweeps of one start. By kind if absent.", min=1)] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share set aside to measure the error, 0 for none; .1 of labelled rows.")
    ] = None,
    seed: Seed = 0,
    resume: Resume = False,
    checkpoint_every: CheckpointEvery = 10.0,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Co-cluster a table of tuples and save the model."""
    from gingham.cli import data, tables
    from gingham.cli import fit as fitting
    from gingham.cli.checkpoint import checkpoint_of
    from gingham.cli.fit_options import Wish, parse_clusters
    from gingham.cli.kinds import OTHERS, check_kind, check_options
    from gingham.cli.label_space import parse_bounds

    writable(out)
    check_kind(model)
    names = column_names(axes, "--axes")
    if relation and model != "joint":
        raise GinghamError("--relation adds a table to a joint model: add --model joint.")
    wish = Wish(
        axes=names,
        label=label,
        model=model,
        merges=merges,
        weight=weight,
        clusters=None if model == "joint" else parse_clusters(clusters, 1 if model == "pairwise" else len(names)),
        loss=loss,
        beta=beta,
        alphabet=alphabet,
        bounds=parse_bounds(bounds),
        objective=objective,
        solver=solver,
        n_init=starts,
        max_iter=max_iter,
        holdout=holdout,
        seed=seed,
        relations=tuple(relation or ()),
        sizes=clusters if model == "joint" else None,
    )
    check_options(wish)
    table = tables.read_table(file, format)
    kept = checkpoint_of(out)
    if resume and not kept.exists():
        screen.say_note("There is no checkpoint; the fit begins at its beginning.")
    keeping = fitting.Keeping(kept, resume, checkpoint_every)
    if model in OTHERS:
        found, notes, facts = fitting.fit_other(table, wish, quiet or json, keeping)
    else:
        if label is None:
            raise GinghamError(f"--model {model} predicts a column of labels: name it with --label.")
        rows = data.rows(table, names, label, weight, drop=drop_missing)
        if model == "joint":
            from gingham.cli.of_relations import fit_joint

            found, notes, facts = fit_joint(rows, wish, quiet or json, keeping)
        else:
            found, notes, facts = fitting.fit(rows, wish, quiet or json, keeping)
    fitting.save(found, out, notes)
    screen.show({**facts, "file": str(out)}, json, f"Co-clustering of {file}")


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --alphabet 1..5\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --betas 2,1,.5 --cv 10 --plot path.png --json"
)
def path(
    file: File,
    axes: Ids,
    label: Label = None,
    model: Annotated[str, typer.Option(help="coclustering, tree, graph or cooccurrence.")] = "coclustering",
    merges: Annotated[str | None, typer.Option(help="Of a tree, as in gingham fit.")] = None,
    weight: Annotated[str | None, typer.Option(help="Of a graph or counts: column with weights.")] = None,
    betas: Annotated[str | None, typer.Option(help="Values to try: 2,1,.5. Twelve around the noise if absent.")] = None,
    clusters: Annotated[
        str | None, typer.Option(help="Clusters per axis: 13,6. By the size of the data if absent.")
    ] = None,
    loss: Loss = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5; certificates want them stated.")
    ] = None,
    cv: Annotated[int, typer.Option(help="Folds; 0 for none.", min=0)] = 5,
    delta: Delta = 0.05,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .png or .pdf.")] = None,
    seed: Seed = 0,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a range of β, each from the one before, with cross-validated loss and certificate."""
    from gingham.cli import data, tables
    from gingham.cli import path as paths
    from gingham.cli.fit_options import Wish, parse_clusters
    from gingham.cli.kinds import check_kind

    check_kind(model)
    paths.check_path(model)
    if plot is not None:
        writable(plot)
    names = column_names(axes, "--axes")
    wish = Wish(
        axes=names, label=label, model=model, merges=merges, weight=weight, loss=loss, alphabet=alphabet, seed=seed,
        clusters=parse_clusters(clusters, len(names)),
    )  # fmt: skip
    wanted = paths.parse_betas(betas)
    table = tables.read_table(file, format)
    if model in paths.ON_TUPLES:
        if label is None:
            raise GinghamError(f"--model {model} predicts a column of labels: name it with --label.")
        rows = data.rows(table, names, label, weight, drop=drop_missing)
        found = paths.path(rows, wish, wanted, cv, delta, jobs, quiet or json)
    else:
        cv = 0
        found = paths.other_path(table, wish, wanted, delta, quiet or json)
    if plot is not None:
        paths.save_plot(found, plot)
    columns = found.table
    certified = all(point.certificate is not None for point in found.points)
    best = {by: found.best(by).beta for by in (["cv", "one-se"] if cv else []) + (["certificate"] if certified else [])}
    if json:
        screen.print_json({"path": columns, "best": best})
        return
    screen.grid(f"Path of β for {file}", list(columns), list(zip(*columns.values())))
    screen.show(best, False, "Best β")


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham predict model.gingham pairs.csv --out predicted.csv\n\n"
    "gingham predict model.gingham pairs.csv --rule median --proba"
)
def predict(
    model: ModelFile,
    file: File,
    out: OutTable = None,
    rule: Annotated[str | None, typer.Option(help="mean, median or mode of the randomised answer.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every label.")] = False,
    axes: Axes = None,
    format: Format = None,
) -> None:
    """Predict the labels of the tuples in a table (weights of pairs, densities, clusters of objects: by kind)."""
    from gingham.cli import tables
    from gingham.cli.session import module_of
    from gingham.models.base import load as load_model

    table = tables.read_table(file, format)
    fitted = load_model(model)
    own = module_of(fitted)
    more = {} if axes is None else {"axes": column_names(axes, "--axes")}
    if more and "axes" not in inspect.signature(own.predict).parameters:
        raise GinghamError("--axes chooses a relation of a joint model; this model has one.")
    predicted = own.predict(fitted, table, rule, proba, **more)
    tables.write_table(predicted, out, format if out in (None, "-") else None)


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham simplify model.gingham ratings.csv --clusters 5,4 --out small.gingham\n\n"
    "gingham simplify model.gingham ratings.csv --max-loss .75"
)
def simplify(
    model: ModelFile,
    file: File,
    out: OutModel = Path("simple.gingham"),
    clusters: Annotated[str | None, typer.Option(help="Most clusters per axis: 5,4.")] = None,
    max_loss: Annotated[float | None, typer.Option(help="Merge as long as the loss stays at or below this.")] = None,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
) -> None:
    """Merge the clusters of a model into fewer ones: to a size, to a loss, or as long as merging pays."""
    from gingham.cli.fit_options import parse_clusters
    from gingham.cli.session import Source, open_model

    writable(out)
    opened = open_model(model, Source(file, format, None, drop_missing))
    n_axes = 2 if hasattr(opened.model, "row_labels_") else len(np.atleast_1d(getattr(opened.model, "n_clusters_", 1)))
    small, facts = opened.simplified(parse_clusters(clusters, n_axes), max_loss)
    small.save(out, opened.notes)
    screen.show({**facts, "file": str(out)}, json, "A simpler checkerboard")


@app.command(epilog="[bold]Examples[/]\n\ngingham clusters model.gingham --out clusters.csv")
def clusters(
    model: ModelFile,
    out: OutTable = None,
    format: Format = None,
) -> None:
    """List every item with its most probable cluster and the share of its membership."""
    from gingham.cli import tables
    from gingham.cli.clusters import clusters_table
    from gingham.models.base import load as load_model

    tables.write_table(clusters_table(load_model(model)), out, format)
