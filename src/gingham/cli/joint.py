"""``gingham joint``: several tables that share modes, one model, every table by the same option."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console as screen
from gingham.cli.options import CheckpointEvery, Json, OutModel, Quiet, Resume, Seed, writable
from gingham.errors import GinghamError

joint = typer.Typer(help="Co-cluster several tables that share modes.", no_args_is_help=True)

Relations = Annotated[
    list[str], typer.Option("--relation", "-r", help="AXES=LABEL:FILE, viewer,movie=rating:ratings.csv; repeat it.")
]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by gingham joint fit.")]


@joint.command(
    epilog="[bold]Example[/]\n\n"
    "gingham joint fit -r viewer,movie=rating:ratings.csv -r movie,genre=has:genres.csv "
    "--clusters viewer=20,movie=20,genre=none"
)
def fit(
    relation: Relations,
    clusters: Annotated[str, typer.Option(help="Clusters per mode; none for properties: movie=20,genre=none.")],
    out: OutModel = Path("model.gingham"),
    alphabet: Annotated[str | None, typer.Option(help="All possible labels of the first table, 1..5.")] = None,
    cold_start: Annotated[bool, typer.Option("--cold-start", help="Place items with few tuples anew.")] = False,
    max_iter: Annotated[int | None, typer.Option(help="Most sweeps.", min=1)] = None,
    holdout: Annotated[float, typer.Option(help="Share of the first table's rows set aside.")] = 0.0,
    seed: Seed = 0,
    resume: Resume = False,
    checkpoint_every: CheckpointEvery = 10.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit all tables together; modes with the same name are clustered once."""
    from gingham.cli.checkpoint import checkpoint_of
    from gingham.cli.fit import Keeping, save
    from gingham.cli.fit_options import Wish
    from gingham.cli.of_relations import fit_joint, parse_modes, read_relations

    writable(out)
    parse_modes(clusters)
    axes, (label, first) = next(iter(read_relations(relation[:1]).items()))
    wish = Wish(
        axes=axes, label=label, model="joint", sizes=clusters, alphabet=alphabet, max_iter=max_iter, holdout=holdout,
        seed=seed, relations=tuple(relation[1:]), cold_start=cold_start,
    )  # fmt: skip
    keeping = Keeping(checkpoint_of(out), resume, checkpoint_every)
    model, notes, facts = fit_joint(first, wish, quiet or json, keeping)
    save(model, out, notes)
    screen.show({**facts, "file": str(out)}, json, "Joint co-clustering")


@joint.command()
def predict(
    model: ModelFile,
    file: Annotated[str, typer.Argument(help="Table with one column per mode of the relation.")],
    axes: Annotated[str | None, typer.Option(help="The relation: viewer,movie; told by the columns.")] = None,
    rule: Annotated[str, typer.Option(help="mean, median or mode.")] = "mean",
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write.")] = None,
) -> None:
    """Predict the labels of one relation; items it has not seen go by their other relations."""
    from gingham.cli import of_relations, tables
    from gingham.models.base import load

    names = None if axes is None else tuple(name.strip() for name in axes.split(","))
    table = tables.read_table(file)
    tables.write_table(of_relations.predict(load(model), table, rule, False, names), out)


@joint.command()
def certify(
    model: ModelFile,
    relation: Relations,
    delta: Annotated[float, typer.Option(help="All hold together with probability 1 - delta.")] = 0.05,
    json: Json = False,
) -> None:
    """Certificates of the given relations, which share delta."""
    from gingham.cli.of_relations import read_relations
    from gingham.models.base import load
    from gingham.models.joint.estimator import JointCoClustering

    fitted = load(model)
    if not isinstance(fitted, JointCoClustering):
        raise GinghamError(f"{str(model)!r} holds a {type(fitted).__name__}: use gingham certify.")
    data = {axes: (rows.X, rows.y) for axes, (_, rows) in read_relations(relation).items()}
    found = fitted.certify(data, delta)
    facts = {
        ", ".join(names): {"value": c.value, "empirical": c.empirical, "delta": c.delta} for names, c in found.items()
    }
    screen.show(facts, json, "Certificates")
