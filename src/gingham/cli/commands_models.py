"""Commands that make and use models: fit, path, simplify, predict, clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import screen
from gingham.cli.application import app
from gingham.cli.options import DropMissing, File, Format, Json, ModelFile, Quiet, Seed, column_names, writable
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
    axes: Annotated[str, typer.Option(help="Columns with ids, one per axis: user,movie.")],
    label: Annotated[str | None, typer.Option(help="Column to predict; a graph or counts need none.")] = None,
    model: Annotated[
        str,
        typer.Option(
            help="coclustering, layered, committee, bayesian, tree, graph, cooccurrence, information, pairwise."
        ),
    ] = "coclustering",
    merges: Annotated[
        str | None, typer.Option(help="Of a tree: 0,1,6;2,3,6 merges axes 0 and 1 into 6 clusters…; or auto.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path("model.gingham"),
    weight: Annotated[str | None, typer.Option(help="Column with counts.")] = None,
    clusters: Annotated[str | None, typer.Option(help="Clusters per axis: 13,6. Chosen by size if absent.")] = None,
    loss: Annotated[str | None, typer.Option(help="absolute, quadratic, zero-one or log; told by the labels.")] = None,
    beta: Annotated[float | None, typer.Option(help="Trade-off per unit of loss; from a pilot if absent.")] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5 or a,b,c. Certificates want it stated.")
    ] = None,
    objective: Annotated[str, typer.Option(help="tradeoff, or certificate to minimise the certificate.")] = "tradeoff",
    solver: Annotated[
        str, typer.Option(help="projection (soft), or sweep: hard moves; with --loss log, a description length.")
    ] = "projection",
    starts: Annotated[int, typer.Option(help="Starts; the best is kept.", min=1)] = 1,
    max_iter: Annotated[int, typer.Option(help="Most sweeps of one start.", min=1)] = 200,
    holdout: Annotated[float, typer.Option(help="Share of rows set aside to measure the error; 0 for none.")] = 0.1,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of an interrupted run.")] = False,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0)] = 10.0,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Co-cluster a table of tuples and save the model."""
    from gingham.cli import data, fitting, tables
    from gingham.cli.checkpoint import checkpoint_of, forget
    from gingham.cli.kinds import OTHERS, check_kind
    from gingham.cli.others import fit_other

    writable(out)
    check_kind(model)
    names = column_names(axes, "--axes")
    wish = fitting.Wish(
        axes=names,
        label=label,
        model=model,
        merges=merges,
        weight=weight,
        clusters=fitting.parse_clusters(clusters, len(names)),
        loss=loss,
        beta=beta,
        alphabet=alphabet,
        objective=objective,
        solver=solver,
        n_init=starts,
        max_iter=max_iter,
        holdout=holdout,
        seed=seed,
    )
    table = tables.read_table(file, format)
    if model in OTHERS:
        found, notes, facts = fit_other(table, wish, quiet or json)
        found.save(out, notes)
        screen.show({**facts, "file": str(out)}, json, f"Clustering of {file}")
        return
    if label is None:
        raise GinghamError(f"--model {model} predicts a column of labels: name it with --label.")
    rows = data.rows(table, names, label, weight, drop=drop_missing)
    kept = checkpoint_of(out)
    if resume and not kept.exists():
        screen.say_note("There is no checkpoint; the fit begins at its beginning.")
    found, notes, facts = fitting.fit(rows, wish, quiet or json, kept, resume, checkpoint_every)
    found.save(out, notes)
    if getattr(found, "interrupted_", False):
        screen.say_note("The model so far was saved; the same command with --resume goes on.")
    else:
        forget(kept)
    screen.show({**facts, "file": str(out)}, json, f"Co-clustering of {file}")


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --alphabet 1..5\n\n"
    "gingham path ratings.csv --axes user,movie --label rating --betas 2,1,.5 --cv 10 --plot path.png --json"
)
def path(
    file: File,
    axes: Annotated[str, typer.Option(help="Columns with ids, one per axis: user,movie.")],
    label: Annotated[str, typer.Option(help="Column to predict.")],
    betas: Annotated[str | None, typer.Option(help="Values to try: 2,1,.5. Twelve around the noise if absent.")] = None,
    clusters: Annotated[
        str | None, typer.Option(help="Clusters per axis: 13,6. By the size of the data if absent.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="absolute, quadratic, zero-one or log; told by the labels.")] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5; certificates want them stated.")
    ] = None,
    cv: Annotated[int, typer.Option(help="Folds; 0 for none.", min=0)] = 5,
    delta: Annotated[float, typer.Option(help="Certificates hold with probability 1 − delta.")] = 0.05,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .png or .pdf.")] = None,
    seed: Seed = 0,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a range of β, each from the one before, with cross-validated loss and certificate."""
    from gingham.cli import betas as paths
    from gingham.cli import data, fitting, tables

    if plot is not None:
        writable(plot)
    names = column_names(axes, "--axes")
    wish = fitting.Wish(
        axes=names, label=label, clusters=fitting.parse_clusters(clusters, len(names)), loss=loss, alphabet=alphabet,
        seed=seed,
    )  # fmt: skip
    rows = data.rows(tables.read_table(file, format), names, label, None, drop=drop_missing)
    found = paths.path(rows, wish, paths.parse_betas(betas), cv, delta, jobs, quiet or json)
    if plot is not None:
        paths.save_plot(found, plot)
    table = found.table
    best = {by: found.best(by).beta for by in (["cv", "one-se"] if cv else []) + (["certificate"] if alphabet else [])}
    if json:
        screen.print_json({"path": table, "best": best})
        return
    screen.grid(f"Path of β for {file}", list(table), list(zip(*table.values())))
    screen.show(best, False, "Best β")


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham predict model.gingham pairs.csv --out predicted.csv\n\n"
    "gingham predict model.gingham pairs.csv --rule median --proba"
)
def predict(
    model: ModelFile,
    file: File,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write; standard output if absent.")] = None,
    rule: Annotated[str | None, typer.Option(help="mean, median or mode of the randomised answer.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every label.")] = False,
    format: Format = None,
) -> None:
    """Predict the labels of the tuples in a table."""
    from gingham.cli import fitting, tables

    table = tables.read_table(file, format)
    tables.write_table(fitting.predict(model, table, rule, proba), out, format if out in (None, "-") else None)


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham simplify model.gingham ratings.csv --clusters 5,4 --out small.gingham\n\n"
    "gingham simplify model.gingham ratings.csv --max-loss .75"
)
def simplify(
    model: ModelFile,
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path("simple.gingham"),
    clusters: Annotated[str | None, typer.Option(help="Most clusters per axis: 5,4.")] = None,
    max_loss: Annotated[float | None, typer.Option(help="Merge as long as the loss stays at or below this.")] = None,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
) -> None:
    """Merge the clusters of a model into fewer ones: to a size, to a loss, or as long as merging pays."""
    from gingham.cli import fitting
    from gingham.selection import simplify as simpler

    writable(out)
    fitted, seen, unseen = fitting.reopen(model, file, format, None, drop_missing)
    sizes = fitting.parse_clusters(clusters, len(fitted.n_clusters_))
    small = simpler(fitted, seen.X, seen.y, sizes, max_loss, seen.weight)
    small.save(out, fitted.notes_)
    facts = {"clusters_before": fitted.n_clusters_, "clusters": small.n_clusters_}
    for name, one in (("loss_before", fitted), ("loss", small)):
        facts[name] = one.posterior_.gibbs_loss(one.sample(seen.X, seen.y, seen.weight))
    if unseen is not None:
        facts.update({f"held_out_{name}": value for name, value in fitting.errors(small, unseen).items()})
    screen.show({**facts, "file": str(out)}, json, "A simpler checkerboard")


@app.command(epilog="[bold]Examples[/]\n\ngingham clusters model.gingham --out clusters.csv")
def clusters(
    model: ModelFile,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write; standard output if absent.")] = None,
    format: Format = None,
) -> None:
    """List every item with its most probable cluster and the share of its membership."""
    from gingham.cli import tables
    from gingham.cli.others import clusters_table
    from gingham.estimators.base import load as load_model

    tables.write_table(clusters_table(load_model(model)), out, format)
