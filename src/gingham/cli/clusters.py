"""``gingham clusters``: the clusters of a model as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gingham.cli.options import Format, ModelFile, OutTable, SpreadsheetSafe

if TYPE_CHECKING:
    import polars as pl

    from gingham.models.base import Persistent


def clusters(
    model: ModelFile,
    own: Annotated[
        bool, typer.Option("--own", help="The finer clusters that the model predicts with, which have no names.")
    ] = False,
    out: OutTable = None,
    format: Format = None,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """List every item with its cluster: number and name as on the page, and the share of its membership.

    Numbers begin at 1. Without a summary in the file, and with --own, they are those of the model's own clusters, which
    arrays in Python count from 0.
    """
    from gingham.cli.table_files import write_table
    from gingham.cli.tables.adapter import clusters_of
    from gingham.models.base import has_summary, load

    fitted = load(model)
    if not own and has_summary(fitted):
        write_table(readable_clusters(fitted), out, format, spreadsheet_safe)
        return
    write_table(clusters_of(fitted), out, format, spreadsheet_safe)


def readable_clusters(model: Persistent) -> pl.DataFrame:
    """Item, cluster, its name and the membership, for every item of every side."""
    import polars as pl

    items: pl.DataFrame = model.to_frame(backend="polars")
    return items.select(pl.col("side").alias("axis"), "item", "cluster", "name", pl.col("membership").alias("share"))
