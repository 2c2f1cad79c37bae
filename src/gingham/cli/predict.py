"""``gingham predict``: a table with what a model predicts of each row."""

from __future__ import annotations

from typing import Annotated

import typer

from gingham.cli import options
from gingham.errors import GinghamError


def predict(
    model: options.ModelFile,
    file: options.File,
    out: options.OutTable = None,
    rule: Annotated[str | None, typer.Option(help="mean, median or mode of the predicted distribution.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every label.")] = False,
    axes: options.Axes = None,
    format: options.Format = None,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """Predict the label of every row of a table (or, for other kinds of models, weights, densities or clusters)."""
    from gingham.cli.table_files import write_table
    from gingham.data.table_files import read_table
    from gingham.models.base import load
    from gingham.models.tables import PredictOptions, column_names, tables_of

    fitted = load(model)
    tables = tables_of(fitted)
    table = read_table(file, format, tables.id_names(fitted).__contains__)
    relation = None if axes is None else column_names(axes, "--axes")
    if relation is not None and not tables.has_relations:
        raise GinghamError("--axes chooses a relation of a joint model; this model has one.")
    predicted = tables.predict(fitted, table, PredictOptions(rule, proba, relation))
    write_table(predicted, out, format if out in (None, "-") else None, spreadsheet_safe)
