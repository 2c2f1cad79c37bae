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
    """Predict the label of every row of a table (or, for other kinds of models, weights, densities or clusters).

    Examples
    --------
    gingham predict model.gingham pairs.csv --out predicted.csv
    gingham predict model.gingham pairs.csv --rule median --proba
    """
    from gingham.cli.table_files import write_table
    from gingham.cli.tables.adapter import id_columns, predicted
    from gingham.cli.tables.arguments import PredictOptions, column_names
    from gingham.cli.tables.kinds import kind_of
    from gingham.data.table_files import read_table
    from gingham.models.base import load

    fitted = load(model)
    table = read_table(file, format, id_columns(fitted).__contains__)
    relation = None if axes is None else column_names(axes, "--axes")
    if relation is not None and not kind_of(fitted).has_relations:
        raise GinghamError("--axes chooses a relation of a joint model; this model has one.")
    write_table(
        predicted(fitted, table, PredictOptions(rule, proba, relation)),
        out,
        format if out in (None, "-") else None,
        spreadsheet_safe,
    )
