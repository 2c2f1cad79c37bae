"""``gingham watch``: whether a certificate's promise holds for rows that arrive with their labels."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, atomic, need_model, need_target

HAS_ENDED = 3  # exit code: neither success nor an error


def watch(
    certificate: Annotated[str, typer.Argument(help="Certificate file of gingham certify --save."), Reads()],
    model: Annotated[
        str,
        typer.Argument(help="File of the predictor that is certified (--save-predictor), or - with --prediction."),
        Reads(need_model, lambda given: [] if given == "-" else [given]),
    ],
    file: options.File,
    state: Annotated[
        Path | None,
        typer.Option(help="File that keeps the state between runs; the first run creates it."),
        Writes(),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Probability of a false alarm, over all times.")] = 0.01,
    prediction: Annotated[
        str | None, typer.Option(help="Column of predictions that were made before the labels were known.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the evidence to write (.png or .pdf)."), Writes()
    ] = None,
    label: options.OtherLabel = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON, for monitors.")] = False,
) -> None:
    """Watch a promise: does the loss on new rows stay below what was certified?

    Rows are evidence in the order in which they stand, each once: with --state a table may grow from run to run, or
    each run may bring its own rows; those that were counted before are passed over or refused. The exit code is 0 while
    the promise holds, and 3 once it has ended, with proof.

    Examples
    --------
    gingham watch c.json predictor.gingham new.csv --state watch.state
    gingham watch c.json predictor.gingham new.csv --state watch.state --json --plot evidence.png
    """
    from gingham.certificates.watch import Watch
    from gingham.cli.tables import guarantees
    from gingham.models.base import load
    from gingham.verify import read_certificate

    try:
        document = read_certificate(certificate)
    except (ValueError, KeyError, TypeError) as error:
        raise GinghamError(f"{certificate!r} is no certificate file: {error}") from None
    fitted = None if model == "-" else load(model)
    found = Watch.of(document["certificate"], document["facts"], fitted, alpha)
    before = state.read_bytes() if state is not None and state.exists() else None
    if before is not None:
        found = Watch.load(str(state), fitted)
        asked = Watch.of(document["certificate"], document["facts"], fitted, alpha)
        if (found.facts, found.alpha) != (asked.facts, asked.alpha):
            raise GinghamError(
                f"{str(state)!r} watches another certificate, or with another alpha ({found.alpha:g}): use a separate "
                "file for this one."
            )
    rows = guarantees.arrived(document, fitted, file, format, label, prediction, drop_missing)
    known = found.skipped([[str(value) for value in row] for row in rows["texts"].rows()])
    if known:
        console.say_note(f"The first {known:,} rows of {file} were counted before.")
    X, y = rows["X"][known:], rows["y"][known:]
    told = {name: None if rows[name] is None else rows[name][known:] for name in ("predictions", "strata")}
    found.update(X, y, **told)
    if state is not None:
        need_target(state)
        if (state.read_bytes() if state.exists() else None) != before:
            raise GinghamError(f"{str(state)!r} was changed by another run in the meantime: run the command again.")
        found.save(state)
    if plot is not None:
        from gingham import plots

        with atomic(plot) as stream:
            plots.evidence(found).figure.savefig(stream, dpi=120, format=plot.suffix.lstrip(".") or "png")
    if json:
        typer.echo(jsons.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    else:
        console.paragraphs(found.explain())
    if found.ended is not None:
        raise typer.Exit(HAS_ENDED)
