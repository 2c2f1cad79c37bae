"""Commands that say what a model is worth: certify, report; and datasets and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gingham.cli import console as screen
from gingham.cli.application import app
from gingham.cli.options import (
    Axes,
    Bounds,
    Delta,
    DropMissing,
    File,
    Format,
    Json,
    ModelFile,
    OtherAlphabet,
    OtherLabel,
    OutTable,
    Quiet,
    Seed,
    column_names,
    writable,
)
from gingham.errors import GinghamError


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham certify model.gingham ratings.csv\n\n"
    "gingham certify model.gingham ratings.csv --delta .01 --bound theorem-7 --alphabet 1..5 --json\n\n"
    "gingham certify --labels users.csv,movies.csv ratings.csv --label rating --alphabet 1..5"
)
def certify(
    model: Annotated[str, typer.Argument(help="Model file; with --labels the table of tuples itself.")],
    file: Annotated[str | None, typer.Argument(help="Table: CSV, TSV, Parquet, NDJSON; - is standard input.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Clusters from elsewhere: a file (item, cluster) per axis, with commas.")
    ] = None,
    axes: Annotated[
        str | None, typer.Option(help="With --labels: the columns of ids. Of a joint model: the relation.")
    ] = None,
    loss: Annotated[str, typer.Option(help="With --labels: absolute, zero-one, quadratic, log.")] = "absolute",
    delta: Delta = 0.05,
    bound: Annotated[
        str, typer.Option(help="log-wealth, type-kl, kl, split-kl, bernstein, theorem-7 ...")
    ] = "log-wealth",
    predictor: Annotated[str, typer.Option(help="gibbs (randomised) or mean.")] = "gibbs",
    alphabet: OtherAlphabet = None,
    bounds: Bounds = None,
    label: OtherLabel = None,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
) -> None:
    """Guarantee the loss of a model on new data, from the data it was fitted on.

    Rows that the fit set aside are recognised and give a second certificate, of the prediction itself. Views and
    features are certified on objects and features that the fit has not seen.
    """
    from gingham.cli.label_kind import parse_alphabet
    from gingham.cli.label_space import parse_bounds
    from gingham.cli.report import as_json
    from gingham.cli.session import Asked, Source, open_model

    options: dict[str, Any] = {"bound": bound, "delta": delta, "predictor": predictor}
    if labels is not None:
        from gingham.cli.certify_labels import certify_own_labels

        if label is None or alphabet is None:
            raise GinghamError("Say which column holds the labels (--label) and what they can be (--alphabet 1..5).")
        own = certify_own_labels(
            file or model,
            labels,
            label=label,
            axes=axes,
            loss=loss,
            alphabet=parse_alphabet(alphabet, False),
            kind=format,
            **options,
        )
        if json:
            screen.print_json(own.to_dict())
        else:
            screen.console().print(own.explain(), markup=False, soft_wrap=True)
        return
    if file is None:
        raise GinghamError("Name the table after the model, or give clusters from elsewhere with --labels.")
    relation = None if axes is None else column_names(axes, "--axes")
    opened = open_model(model, Source(file, format, label, drop_missing, relation))
    found = opened.certificates(Asked(delta, bound, predictor, alphabet, parse_bounds(bounds)))
    if json:
        screen.print_json({name.replace(" ", "_"): as_json(certificate) for name, certificate in found.items()})
        return
    for name, certificate in found.items():
        screen.heading(f"From the {name}")
        screen.console().print(certificate.explain(), markup=False, soft_wrap=True)


@app.command(
    epilog="[bold]Examples[/]\n\n"
    "gingham report model.gingham ratings.csv -o report.html\n\n"
    "gingham report model.gingham ratings.csv --alphabet 1..5 --title 'What our viewers like'"
)
def report(
    model: ModelFile,
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    path: Annotated[str | None, typer.Option(help="What gingham path --json printed, to show the path of β.")] = None,
    delta: Delta = 0.05,
    alphabet: OtherAlphabet = None,
    bounds: Bounds = None,
    label: OtherLabel = None,
    axes: Axes = None,
    drop_missing: DropMissing = False,
    format: Format = None,
    json: Json = False,
) -> None:
    """Write one self-contained page: checkerboard, clusters, cells, errors, certificates, map, search."""
    from gingham.cli.label_space import parse_bounds
    from gingham.cli.report import make_report
    from gingham.cli.session import Asked, Source

    writable(out)
    relation = None if axes is None else column_names(axes, "--axes")
    source = Source(file, format, label, drop_missing, relation)
    asked = Asked(delta, alphabet=alphabet, bounds=parse_bounds(bounds))
    facts = make_report(model, source, out, title, asked, path)
    screen.show(facts, json, "Report")


@app.command(epilog="[bold]Examples[/]\n\ngingham datasets\n\ngingham datasets movielens-100k --out ratings.csv")
def datasets(
    name: Annotated[str | None, typer.Argument(help="A data set to fetch; all are listed if absent.")] = None,
    out: OutTable = None,
    json: Json = False,
) -> None:
    """List the public data sets, or fetch one and write it as a table of tuples."""
    from gingham.cli.datasets import export, known

    if name is None:
        rows = known()
        if json:
            screen.print_json({row[0]: {"files": row[1], "here": row[2]} for row in rows})
        else:
            screen.grid("Public data sets", ("name", "files", "here"), rows)
        return
    export(name, out)


@app.command(
    epilog="[bold]Examples[/]\n\ngingham demo\n\ngingham demo --out somewhere --seed 3",
)
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")] = Path("demo"),
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hide 60 % of the pixels of 1797 handwritten digits and fill them in, with a certificate."""
    from gingham.cli.demo import run_demo, show_demo

    facts = run_demo(out, seed, quiet or json)
    if json:
        screen.print_json(facts)
    else:
        show_demo(facts)
