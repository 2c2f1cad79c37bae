"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.files import Reads, Writes, need_model

File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or NDJSON file (.gz too); - is standard input."), Reads()]
ModelFile = Annotated[str, typer.Argument(help="Model file written by gingham fit."), Reads(need_model)]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, parquet or ndjson; by default from the name of the file.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")]
Seed = Annotated[
    int, typer.Option(help="Seed of random numbers; the same seed gives the same result.", min=0, max=2**32 - 1)
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with a missing value.")]

Ids = Annotated[str, typer.Option("--axes", help="Columns with ids, one per axis: user,movie.")]
Label = Annotated[str | None, typer.Option(help="Column to predict; not needed for a graph or for counts.")]
OtherLabel = Annotated[
    str | None, typer.Option("--label", help="Label column, if it differs from the one that was fitted.")
]
OtherAlphabet = Annotated[
    str | None, typer.Option("--alphabet", help="All possible labels, if they were not given to gingham fit.")
]
Loss = Annotated[
    str | None,
    typer.Option(help="absolute, quadratic, zero-one, log, pinball, …; by default from the labels."),
]
Delta = Annotated[float, typer.Option(help="Certificates hold with probability 1 − delta.")]
Progressive = Annotated[
    bool | None,
    typer.Option(
        "--progressive/--no-progressive",
        help="Fit again, testing on each block of rows before learning from it; by default where possible.",
    ),
]
OutModel = Annotated[Path, typer.Option("--out", "-o", help="Model file to write."), Writes()]
OutTable = Annotated[
    str | None, typer.Option("--out", "-o", help="Table to write; by default standard output."), Writes()
]
SpreadsheetSafe = Annotated[
    bool, typer.Option("--spreadsheet-safe", help="Mark text that begins with = + - @ so that no spreadsheet runs it.")
]
Bounds = Annotated[str | None, typer.Option(help="Smallest and largest possible value of measured labels: 0,1.")]
Population = Annotated[
    str | None,
    typer.Option(help="Number of items in the whole population, per axis: 943,1682 or user=943; some bounds need it."),
]
Axes = Annotated[
    str | None, typer.Option(help="For a joint model: the relation that the table holds; by default from its columns.")
]
