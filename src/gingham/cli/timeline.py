"""``gingham timeline``: groups over time, from one model per period or from a table with a column of times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes

if TYPE_CHECKING:
    from gingham.summary.changes import Fit

EVERY = {"year": "1y", "quarter": "1q", "month": "1mo", "week": "1w", "day": "1d"}
MOST_PERIODS, FEWEST_ROWS = 60, 20


def timeline(
    files: Annotated[
        list[str],
        typer.Argument(help="Models of one period each, in order of time; or one table."),
        Reads(names=lambda given: given),
    ],
    time: Annotated[str | None, typer.Option(help="Of a table: column of dates, or of numbers of periods.")] = None,
    every: Annotated[str | None, typer.Option(help="year, quarter, month, week or day, for dates.")] = None,
    axes: Annotated[str | None, typer.Option(help="Columns of ids, as in senator,bill.")] = None,
    label: options.Label = None,
    model: Annotated[str, typer.Option(help="Kind of model, as for gingham fit.")] = "coclustering",
    weight: options.Weight = None,
    clusters: options.Clusters = None,
    loss: options.Loss = None,
    alphabet: options.Alphabet = None,
    side: Annotated[str | None, typer.Option(help="Column of ids to show. By default the one whose ids stay.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write."), Writes()] = Path("timeline.html"),
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Groups over time",
    members: Annotated[str | None, typer.Option(help="Table of all groups of all periods to write."), Writes()] = None,
    seed: options.Seed = 0,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Follow groups over time: which last, which are new, and who moved, with a test of every change.

    Examples
    --------
    gingham timeline votes.csv --axes senator,bill --label vote --time date --every year
    gingham timeline 2019.gingham 2020.gingham 2021.gingham
    """
    from gingham.cli.app import is_model
    from gingham.cli.table_files import write_table
    from gingham.cli.tables.arguments import FitOptions, column_names
    from gingham.report import timeline as page
    from gingham.summary.timeline import timeline as made

    if all(is_model(name) for name in files):
        fits = fits_of_models(files)
    elif len(files) > 1:
        raise GinghamError("Give models alone, or one table with --time.")
    else:
        if time is None or axes is None:
            raise GinghamError("A table needs --time COLUMN and --axes, as in --axes senator,bill --time date.")
        wanted = FitOptions(
            column_names(axes, "--axes"), label, model, weight, None, clusters, loss, alphabet=alphabet, seed=seed,
            drop_missing=drop_missing,
        )  # fmt: skip
        fits = fits_of_table(files[0], time, every, wanted, format)
    line = made(fits, seed=seed)
    page.write(line, out, side, title)
    if members is not None:
        write_table(line.to_frame("polars"), members)
    moved = [(period, one) for period, one in line.moved(side) if one.verdict == "proven"]
    facts: dict[str, object] = {
        "periods": [period.name for period in line.periods],
        "groups": [period.sides[line.side(side)].n for period in line.periods],
        "moved, proven": [f"{period}: {one}" for period, one in moved],
        "file": str(out),
    }
    console.show(facts, json, "Groups over time")


def fits_of_models(files: list[str]) -> dict[str, Fit]:
    """Saved models; without their rows changes are shown and not tested."""
    from gingham.models.base import has_summary, load
    from gingham.summary.changes import Fit
    from gingham.summary.values import Observed

    found = {}
    for name in files:
        fitted = load(name)
        if hasattr(fitted, "baskets_"):  # a ranking holds its rows
            found[Path(name).stem] = Fit(fitted._observed(), fitted.summary_)
        elif has_summary(fitted):
            found[Path(name).stem] = Fit(Observed((), (), ()), fitted.summary_)
        else:
            raise GinghamError(f"{name!r} holds no summary of its groups: fit it with gingham fit.")
    if len(found) < len(files):
        raise GinghamError("Two of the models have the same name: their names are those of the periods.")
    return found


def fits_of_table(file: str, time: str, every: str | None, wanted: Any, format: str | None) -> dict[str, Fit]:
    """A model per period, each fitted to the rows of that period alone."""
    from gingham.cli.tables.adapter import FitTask, check
    from gingham.cli.tables.columns import need_columns, with_ids
    from gingham.cli.tables.kinds import kind_named
    from gingham.data.table_files import read_table
    from gingham.summary.changes import Fit

    kind = kind_named(wanted.model)
    check(kind, wanted)
    table = read_table(file, format, wanted.axes.__contains__)
    need_columns(table, [time], "--time")
    periods = table.with_columns(period_of(table[time], every).alias("gingham period")).sort(
        "gingham period", maintain_order=True
    )
    found = {}
    parts = periods.drop_nulls("gingham period").partition_by("gingham period", maintain_order=True)
    if len(parts) > MOST_PERIODS:
        raise GinghamError(
            f"--time {time} makes {len(parts):,} periods, more than {MOST_PERIODS}: use a longer --every."
        )
    for part in parts:
        name = str(part["gingham period"][0])
        if part.height < FEWEST_ROWS:
            raise GinghamError(f"The period {name} has {part.height} rows: use a longer --every.")
        rows = with_ids(part.drop("gingham period", *([time] if time not in wanted.axes else [])), list(wanted.axes))
        fitted, _ = kind.tables.fit(kind, FitTask(rows, wanted))
        found[name] = Fit(fitted._observed(), fitted.summary_)
    return found


def period_of(column: Any, every: str | None) -> Any:
    """The name of the period of each row; names sort as the periods do."""
    import polars as pl

    if every is not None and every not in EVERY:
        raise GinghamError(f"--every {every!r} is unknown; choose one of {', '.join(EVERY)}.")
    if column.dtype == pl.String:
        dates = column.str.to_datetime(strict=False)
        dates = dates if dates.null_count() < len(dates) else column.str.to_date(strict=False)
        column = dates if dates.null_count() < len(dates) else column
    if not column.dtype.is_temporal():
        if every is not None:
            raise GinghamError(f"--every {every} needs dates in the column {column.name!r}.")
        return column
    starts = column.dt.truncate(EVERY[every or "year"])
    return starts.dt.strftime({"1y": "%Y", "1q": "%Y-%m", "1mo": "%Y-%m"}.get(EVERY[every or "year"], "%Y-%m-%d"))
