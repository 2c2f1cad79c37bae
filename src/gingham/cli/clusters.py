"""``gingham clusters``: the clusters of a model as a table."""

from __future__ import annotations

from gingham.cli.options import Format, ModelFile, OutTable, SpreadsheetSafe, need_files


def clusters(
    model: ModelFile,
    out: OutTable = None,
    format: Format = None,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """List every item with its most probable cluster and its membership in it."""
    need_files(out, [model])
    from gingham.cli.table_files import write_table
    from gingham.models.base import load
    from gingham.models.tables import tables_of

    fitted = load(model)
    write_table(tables_of(fitted).clusters(fitted), out, format, spreadsheet_safe)
