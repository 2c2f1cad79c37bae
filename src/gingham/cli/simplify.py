"""``gingham simplify``: fewer clusters from a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options


def simplify(
    model: options.ModelFile,
    file: options.File,
    out: options.OutModel = Path("simple.gingham"),
    clusters: Annotated[str | None, typer.Option(help="Maximum number of clusters per axis, as in 5,4.")] = None,
    max_loss: Annotated[
        float | None, typer.Option(help="Merge clusters as long as the loss is at most this value.")
    ] = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Merge the clusters of a model: down to a size, up to a loss, or as long as merging improves the model.

    Examples
    --------
    gingham simplify model.gingham ratings.csv --clusters 5,4 --out small.gingham
    gingham simplify model.gingham ratings.csv --max-loss .75
    """
    from gingham.cli.table_files import open_model

    session = open_model(model, file, format, drop_missing=drop_missing)
    small, facts = session.simplified(clusters, max_loss)
    small.save(out)
    console.show({**facts, "file": str(out)}, json, "A simpler checkerboard")
