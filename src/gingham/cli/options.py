"""Options and arguments that several commands share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gingham.errors import GinghamError
from gingham.files import need_model, need_table, need_target

File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or NDJSON file (.gz too); - is standard input.")]
ModelFile = Annotated[str, typer.Argument(help="Model file written by gingham fit.")]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, parquet or ndjson; by default from the name of the file.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")]
Seed = Annotated[
    int, typer.Option(help="Seed of random numbers; the same seed gives the same result.", min=0, max=2**32 - 1)
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with a missing value.")]

Resume = Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint of an interrupted run.")]
CheckpointEvery = Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0)]
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
OutModel = Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")]
OutTable = Annotated[str | None, typer.Option("--out", "-o", help="Table to write; by default standard output.")]
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


def column_names(listed: str, option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not names:
        raise GinghamError(f"{option} is empty; give column names, such as {option} user,movie.")
    return names


def need_files(out: str | Path | None = None, models: Sequence[str] = (), tables: Sequence[str] = ()) -> None:
    """Refuse what cannot be read or written: at once, before anything heavy is imported or computed."""
    for name in models:
        need_model(name)
    for name in tables:
        need_table(name)
    if out is not None and out != "-":
        need_target(out, *models, *tables)


def parse_bounds(listed: str | None) -> tuple[float, float] | None:
    """Two numbers from "0,1"."""
    if listed is None:
        return None
    try:
        low, high = (float(part) for part in listed.split(","))
    except ValueError:
        raise GinghamError(
            f"--bounds {listed!r} must be two numbers, the smallest and largest: --bounds 0,1."
        ) from None
    if not -math.inf < low < high < math.inf:
        raise GinghamError(f"--bounds {listed!r}: the smallest must be below the largest, and both finite.")
    return low, high


def parse_population(listed: str | None) -> tuple[int, ...] | dict[str, int] | None:
    """Numbers of items from "943,1682", or by name from "user=943,movie=1682"."""
    if listed is None:
        return None
    parts = [part.rpartition("=") for part in listed.split(",")]
    try:
        numbers = [int(number) for _, _, number in parts]
    except ValueError:
        numbers = []
    names = [name.strip() for name, _, _ in parts if name]
    if not numbers or len(names) not in (0, len(numbers)):
        raise GinghamError(f"--population {listed!r} must be whole numbers, one per axis: 943,1682 or user=943.")
    return dict(zip(names, numbers)) if names else tuple(numbers)
