"""``gingham update``: a model learns from new rows; groups keep their numbers and names, and changes are tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes


def update(
    model: options.ModelFile,
    file: options.File,
    data: Annotated[
        str | None, typer.Option(help="Table of the fit, which a model file does not hold. Rankings do."), Reads()
    ] = None,
    out: options.OutModel = Path("updated.gingham"),
    changes: Annotated[str | None, typer.Option(help="Table of all changes to write."), Writes()] = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Fit a model anew to its rows and new ones: groups keep numbers and names, and every change is tested.

    Examples
    --------
    gingham update model.gingham new.csv --data ratings.csv --out updated.gingham
    gingham update ranking.gingham november.csv --changes changes.csv
    """
    from gingham.cli.table_files import table_for, write_table
    from gingham.models.base import load

    fitted = load(model)
    new = rows_of(fitted, table_for(fitted, file, format), drop_missing)
    if data is None and not hasattr(fitted, "baskets_"):  # rankings hold theirs
        raise GinghamError(f"{model!r} does not hold the rows of its fit: name their table with --data.")
    old = None if data is None else rows_of(fitted, table_for(fitted, data, format), drop_missing)
    record = fitted._record
    fitted.update(*new, data=old)
    fitted._record = record
    fitted.save(out)
    if changes is not None:
        write_table(fitted.changes_.to_frame("polars"), changes)
    if json:
        console.print_json({"file": str(out), "changes": fitted.changes_.to_frame("polars").to_dicts()})
        return
    console.paragraphs(str(fitted.changes_))
    console.say_note(f"The model is {out}.")


def rows_of(model: Any, table: Any, drop_missing: bool) -> tuple[Any, ...]:
    """A table as `fit` of the model takes it."""
    from gingham.cli.tables.adapter import id_columns
    from gingham.cli.tables.columns import need_columns, without_missing
    from gingham.cli.tables.graph import edges
    from gingham.cli.tables.kinds import kind_of

    kind, record, ids = kind_of(model), model._record, list(id_columns(model))
    label, weight = (None, None) if record is None else (record.label, record.weight)
    if kind.data == "graph":
        return (edges(kind, table, ids, weight or label, drop_missing),)
    if kind.data not in ("labels", "ranking"):
        raise GinghamError(f"--model {kind.name} is updated in Python: model.update(X, data=...).")
    wanted = [*ids, *(name for name in (label, weight) if name is not None)]
    need_columns(table, wanted, "The model")
    kept = without_missing(table, wanted, drop_missing)
    values = [None if name is None else kept[name].to_numpy() for name in (label, weight)]
    return kept.select(ids), *values
