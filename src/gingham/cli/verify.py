"""``gingham verify``: a saved certificate, worked out again from the data by a checker that shares no code with it."""

from __future__ import annotations

from typing import Annotated

import typer

from gingham.files import need_files


def verify(
    certificate: Annotated[
        str, typer.Argument(help="Certificate file, written by certificate.save or gingham certify --save.")
    ],
    model: Annotated[str, typer.Argument(help="Model file, or - for a certificate of finished predictions.")],
    data: Annotated[str, typer.Argument(help="The rows that were certified, a CSV file.")],
) -> None:
    """Recompute a certificate: print "verified" (exit code 0) or what differs (exit code 1)."""
    need_files(models=[] if model == "-" else [model], tables=[certificate, data])
    from gingham import verify as checker

    raise typer.Exit(checker.main(certificate, model, data))
