"""Options and arguments of the commands, each said once; their order in the help is that of the groups."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gingham.errors import GinghamError
from gingham.files import Reads, Writes, need_model


def parse_info(listed: str, option: str = "--info") -> tuple[str, str]:
    """Axis and file from AXIS=FILE."""
    axis, sign, file = listed.partition("=")
    if not (axis.strip() and sign and file.strip()):
        raise GinghamError(f"{option} {listed!r} must have the form AXIS=FILE, for example movie=movies.csv.")
    return axis.strip(), file.strip()


def parse_relation(listed: str) -> tuple[tuple[str, ...], str, str]:
    """Id columns, label column and file from AXES=LABEL:FILE."""
    axes, sign, rest = listed.partition("=")
    label, colon, file = rest.partition(":")
    if not (axes and sign and label and colon and file):
        raise GinghamError(
            f"--relation {listed!r} must have the form AXES=LABEL:FILE, for example viewer,movie=rating:ratings.csv."
        )
    return tuple(name.strip() for name in axes.split(",")), label, file


of_data, of_model, of_output, advanced = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("Data", "Model", "Output", "Advanced")
)

# tables and models
File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NDJSON or Excel file, or - for standard input."), Reads()]
ModelFile = Annotated[str, typer.Argument(help="Model file written by gingham fit."), Reads(need_model)]
Format = Annotated[
    str | None, of_data("--format", help="csv, tsv, parquet, ndjson or excel. By default taken from the file name.")
]
DropMissing = Annotated[bool, of_data("--drop-missing", help="Drop rows with a missing value.")]
MissingLabels = Annotated[
    list[str] | None, of_data(help="Label that stands for a missing one, as in -1; may be repeated. Drops such rows.")
]
Ids = Annotated[
    str | None,
    of_data("--axes", help="Columns of ids, one per axis, as in user,movie. By default chosen from the data."),
]
Label = Annotated[
    str | None,
    of_data(
        help="Column to predict, or log(COLUMN). Not needed for graphs and counts. By default chosen from the data."
    ),
]
OtherLabel = Annotated[
    str | None, of_data("--label", help="Column of labels, if its name differs from that in the fit.")
]
Weight = Annotated[str | None, of_data(help="Column of counts or weights.")]
Wide = Annotated[
    bool, of_data("--wide", help="The table is wide, for example one row per person and one column per question.")
]
Alphabet = Annotated[
    str | None, of_data(help="All possible labels, as in 1..5, 0..5:0.5 or a,b,c. Certificates need it.")
]
OtherAlphabet = Annotated[
    str | None, of_data("--alphabet", help="All possible labels, if they were not stated in gingham fit.")
]
Ordered = Annotated[
    bool, of_data("--ordered", help="Labels are classes in an order, for text that of --alphabet: a little,much.")
]
Bounds = Annotated[str | None, of_data(help="Smallest and largest possible label, as in 0,1.")]
Population = Annotated[
    str | None,
    of_data(help="Number of items in the population per axis, as in 943,1682 or user=943. Some bounds need it."),
]
Axes = Annotated[
    str | None, of_data(help="For a joint model: the relation in the table. By default recognised by its columns.")
]
Relations = Annotated[
    list[str] | None,
    of_data("--relation", "-r", help="For a joint model: another table, AXES=LABEL:FILE."),
    Reads(names=lambda given: [parse_relation(one)[2] for one in given]),
]
Info = Annotated[
    list[str] | None,
    of_data(help="Table of names and facts about the items of an axis, as in movie=movies.csv."),
    Reads(names=lambda given: [parse_info(one)[1] for one in given]),
]

Side = Annotated[
    list[str] | None,
    of_data(
        help="For layered models: table of properties of the items of an axis to predict with, as in user=users.csv."
    ),
    Reads(names=lambda given: [parse_info(one, "--side")[1] for one in given]),
]
Time = Annotated[str | None, of_data(help="For layered models: column of points in time to predict with.")]

# models
Model = Annotated[str, of_model(help="Kind of model.")]
Clusters = Annotated[
    str | None,
    of_model(
        help="Number of clusters per axis, as in 13,6, or movie=20,genre=none for a joint model. By default chosen "
        "from the data."
    ),
]
Loss = Annotated[
    str | None,
    of_model(help="absolute, quadratic, zero-one, log, pinball, … By default chosen by the type of the labels."),
]
Merges = Annotated[
    str | None,
    of_model(help="For a tree: 0,1,6;2,3,6 merges axes 0 and 1 into 6 clusters, and so on. Or auto."),
]
DegreeCorrection = Annotated[
    str | None,
    of_model(help="For a graph: whether each node has its own degree (yes, no, or auto: chosen on held-out pairs)."),
]
Directed = Annotated[
    bool | None,
    of_model("--directed/--undirected", help="For a graph: whether the order of the two nodes of an edge matters."),
]
Seed = Annotated[int, of_model(help="Random seed. The same seed gives the same result.", min=0, max=2**32 - 1)]
Delta = Annotated[float, typer.Option(help="A certificate holds with probability 1 − delta.")]
Progressive = Annotated[
    bool | None,
    typer.Option(
        "--progressive/--no-progressive",
        help="Refit the model on a growing part of the rows and test it on the next rows. Default if the fit held out "
        "no rows. Takes longer than the fit.",
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(
        help="Certify strata of the rows simultaneously: known/new (by whether the items are known), or a column."
    ),
]

# output
OutModel = Annotated[Path, of_output("--out", "-o", help="Model file to write."), Writes()]
OutFit = Annotated[Path, of_output("--out", "-o", help="Model file to write."), Writes(keeps_checkpoint=True)]
OutTable = Annotated[str | None, of_output("--out", "-o", help="Table to write. By default standard output."), Writes()]
SpreadsheetSafe = Annotated[
    bool,
    of_output("--spreadsheet-safe", help="Escape text that begins with = + - @, which spreadsheets would execute."),
]
WithSummary = Annotated[bool, of_output("--summary/--no-summary", help="Store named groups in the model file.")]
Json = Annotated[bool, of_output("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, of_output("--quiet", "-q", help="Show no progress bar.")]

# rarely needed
Holdout = Annotated[
    float | None,
    advanced(
        help="Share of rows to hold out for measuring the error, 0 for none. By default a tenth; up to 20,000 rows, "
        "five-fold cross-fitting. The saved model is fitted on all rows."
    ),
]
Beta = Annotated[
    float | None, advanced(help="Weight of the loss against the complexity. By default chosen on held-out rows.")
]
Objective = Annotated[str | None, advanced(help="tradeoff (default), or certificate: minimise the certificate.")]
Solver = Annotated[
    str | None,
    advanced(
        help="projection (soft clusters, default) or sweep (hard clusters; with --loss log by description length)."
    ),
]
ColdStart = Annotated[
    bool,
    advanced("--cold-start", help="For a joint model: finally reassign items with few rows by their properties."),
]
Effort = Annotated[
    str | None,
    of_model(
        help="For layered models: fast, default or best. By default, a quick fit on more than 20,000 rows decides "
        "between fast and default."
    ),
]
Members = Annotated[int | None, of_model(help="For committees: number of members; 20 by default.", min=1)]
Starts = Annotated[
    int | None,
    advanced(help="Number of random starts; the best is kept. The default depends on the model.", min=1),
]
MaxIter = Annotated[
    int | None, advanced(help="Maximum number of sweeps per start. The default depends on the model.", min=1)
]
Resume = Annotated[bool, advanced("--resume", help="Continue from the checkpoint of an interrupted fit.")]
CheckpointEvery = Annotated[float, advanced(help="Seconds between checkpoints.", min=0)]
