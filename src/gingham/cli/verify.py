"""``gingham verify``: a saved certificate, worked out again from the data by a checker that shares no code with it."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from gingham.files import Reads, need_model


def verify(
    certificate: Annotated[
        str, typer.Argument(help="Certificate file, written by certificate.save or gingham certify --save."), Reads()
    ],
    model: Annotated[
        str,
        typer.Argument(help="Model file, or - for a certificate of finished predictions."),
        Reads(need_model, lambda given: [] if given == "-" else [given]),
    ],
    data: Annotated[str, typer.Argument(help="The rows that were certified, a CSV file."), Reads()],
) -> None:
    """Recompute a certificate: print "verified" (exit code 0) or what differs (exit code 1).

    Examples
    --------
    gingham verify c.json model.gingham ratings.csv
    """
    from gingham import verify as checker
    from gingham.cli.tables.guarantees import certified_rows

    with TemporaryDirectory() as folder:
        table = data if model == "-" else certified_rows(certificate, model, data, folder)
        raise typer.Exit(checker.main(certificate, model, table))
