"""``gingham joint``: several tables that share modes, one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gingham.cli import screen
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
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path("model.gingham"),
    cold_start: Annotated[bool, typer.Option("--cold-start", help="Place items with few tuples anew.")] = False,
    max_iter: Annotated[int, typer.Option(help="Most sweeps.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Same seed, same result.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Fit all tables together; modes with the same name are clustered once."""
    from gingham.estimators.joint import JointCoClustering

    tables = read_relations(relation)
    model = JointCoClustering(parse_modes(clusters), cold_start=cold_start, max_iter=max_iter, random_state=seed)
    with screen.sweeps("co-clustering", quiet or json) as callback:
        model.fit(tables, callback=callback)
    model.save(out)
    facts = {
        "relations": {", ".join(names): len(data[1]) for names, data in tables.items()},
        "clusters": {name: int(q.shape[1]) for name, q in model.assign_.items()},
        "sweeps": model.n_iter_,
        "converged": model.converged_,
        "file": str(out),
    }
    screen.show(facts, json, "Joint co-clustering")


@joint.command()
def predict(
    model: ModelFile,
    file: Annotated[str, typer.Argument(help="Table with one column per mode of the relation.")],
    axes: Annotated[str, typer.Option(help="The relation: viewer,movie.")],
    rule: Annotated[str, typer.Option(help="mean, median or mode.")] = "mean",
    out: Annotated[str | None, typer.Option("--out", "-o", help="Table to write.")] = None,
) -> None:
    """Predict the labels of one relation; items it has not seen go by their other relations."""
    import polars as pl

    from gingham.cli import tables
    from gingham.estimators.base import load

    fitted, names = load(model), tuple(axes.split(","))
    table = tables.read_table(file)
    tables.need_columns(table, list(names), "--axes")
    predicted = fitted.predict(names, table.select(names), rule)
    tables.write_table(table.with_columns(pl.Series("predicted", predicted)), out)


@joint.command()
def certify(
    model: ModelFile,
    relation: Relations,
    delta: Annotated[float, typer.Option(help="All hold together with probability 1 - delta.")] = 0.05,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Certificates of the given relations, which share delta."""
    from gingham.estimators.base import load

    fitted = load(model)
    found = fitted.certify(read_relations(relation), delta)
    facts = {
        ", ".join(names): {"value": c.value, "empirical": c.empirical, "delta": c.delta} for names, c in found.items()
    }
    screen.show(facts, json, "Certificates")


def read_relations(specs: list[str]) -> dict[tuple[str, ...], Any]:
    """{modes: (X, y)} from AXES=LABEL:FILE specifications."""
    from gingham.cli import tables

    found: dict[tuple[str, ...], Any] = {}
    for spec in specs:
        axes, sign, rest = spec.partition("=")
        label, colon, file = rest.partition(":")
        if not (axes and sign and label and colon and file):
            raise GinghamError(f"--relation {spec!r} must read AXES=LABEL:FILE, viewer,movie=rating:ratings.csv say.")
        names = tuple(name.strip() for name in axes.split(","))
        table = tables.read_table(file)
        tables.need_columns(table, [*names, label], "--relation")
        found[names] = (table.select(names), table[label].to_numpy())
    return found


def parse_modes(listed: str) -> dict[str, int | None]:
    """{mode: clusters} from "movie=20,genre=none"."""
    found: dict[str, int | None] = {}
    for part in listed.split(","):
        name, sign, number = part.partition("=")
        if not sign or not (number == "none" or number.isdigit()):
            raise GinghamError(f"--clusters {listed!r} must read mode=number or mode=none, separated by commas.")
        found[name.strip()] = None if number == "none" else int(number)
    return found
