"""``gingham report``: one page about a model and its data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes

ERRORS = {
    "nats_per_token": "code length per count, nats",
    "nats_per_token_if_independent": "code length if rows and columns were independent",
    "information_on_new_features": "information about features set aside, nats",
    "information_of_shuffled_clusters": "the same for shuffled clusters",
    "correlation_of_views": "correlation of the views on objects set aside",
}


def report(
    model: options.ModelFile,
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write."), Writes()] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    path: Annotated[
        str | None, typer.Option(help="Output of gingham path --json, to show the path of β."), Reads()
    ] = None,
    delta: options.Delta = 0.05,
    progressive: options.Progressive = None,
    alphabet: options.OtherAlphabet = None,
    bounds: options.Bounds = None,
    population: options.Population = None,
    label: options.OtherLabel = None,
    axes: options.Axes = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Write one self-contained page: what was found, how well it predicts, what is guaranteed, what to do next."""
    from gingham.certificates import Certificate
    from gingham.cli.table_files import open_model
    from gingham.cli.tables.arguments import CertificateRequest, column_names, parse_bounds, parse_population
    from gingham.models.base import has_summary
    from gingham.report import predictor, summarize, write
    from gingham.summary import summarize_observed
    from gingham.summary.measure import in_unit

    relation = None if axes is None else column_names(axes, "--axes")
    items, ends = parse_population(population), parse_bounds(bounds)
    request = CertificateRequest(delta, alphabet=alphabet, bounds=ends, progressive=progressive, population=items)
    session = open_model(model, file, format, label, drop_missing, relation)
    found, trivial, refusal = {}, {}, ""
    try:
        found = session.certificates(request)
        trivial = session.without_groups(found, request)
    except GinghamError as error:
        refusal = str(error)
        missing = (
            "The page does not say how much better that is than without groups."
            if found
            else ("The page has no certificate.")
        )
        console.say_note(f"{missing} {refusal}")
    errors, observed = session.errors, session.observed()
    fitted = session.model
    summary = fitted.summary_ if has_summary(fitted) else summarize_observed(observed)
    summary = summarize(
        summary if fitted.errors_ is None else replace(summary, errors=fitted.errors_),
        observed,
        predictor(session),
        title=title or f"What was found in {Path(file).name}",
        label=session.label_name,
        certificates={name: one if isinstance(one, Certificate) else one.to_dict() for name, one in found.items()},
        trivial=trivial,
        refusal=refusal,
        facts=session.facts,
        errors={ERRORS.get(name, name): value for name, value in errors.items()},
        path=None if path is None else read_path(path),
        files=(model, file),
    )
    write(summary, out)
    facts = {
        "page": str(out),
        "size": f"{out.stat().st_size / 1e6:.1f} MB",
        **{f"held_out_{name}": value for name, value in errors.items()},
        **({} if fitted.errors_ is None else {f"measured {fitted.errors_.unit}": fitted.errors_.model}),
        **{
            f"guaranteed {guaranteed(one)} from the {name}": in_unit(float(one.value), str(getattr(one, "loss", "")))
            for name, one in found.items()
        },
    }
    console.show(facts, json, "Report")


def guaranteed(certificate: object) -> str:
    """What a certificate bounds, in words."""
    from gingham.summary.measure import UNITS

    loss = str(getattr(certificate, "loss", "value"))
    return UNITS.get(loss, loss)


SHOWN = {"beta": "β", "loss": "loss", "cv_loss": "loss, cross-validated", "certificate": "certificate"}


def read_path(name: str) -> list[dict[str, float]]:
    """Rows of a path of β from the output of ``gingham path --json``."""
    import json

    try:
        table = json.loads(Path(name).read_text(encoding="utf-8"))["path"]
        columns = {shown: table[key] for key, shown in SHOWN.items() if key in table}
        rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    except (OSError, ValueError, KeyError, TypeError):
        raise GinghamError(f"{name!r} is not what gingham path --json prints.") from None
    if not rows or "β" not in columns:
        raise GinghamError(f"{name!r} has no points of a path.")
    return sorted(rows, key=lambda row: row["β"])
