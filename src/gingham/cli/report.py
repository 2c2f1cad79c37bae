"""``gingham report``: one page about a model and its data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Writes

ERRORS = {
    "nats_per_token": "code length per count, nats",
    "nats_per_token_if_independent": "code length if rows and columns were independent",
}


def report(
    model: options.ModelFile,
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write."), Writes()] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    delta: options.Delta = 0.05,
    progressive: options.Progressive = None,
    strata: options.Strata = None,
    alphabet: options.OtherAlphabet = None,
    bounds: options.Bounds = None,
    population: options.Population = None,
    label: options.OtherLabel = None,
    axes: options.Axes = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Write one self-contained page: what was found, how well it predicts, what is guaranteed, what to do next.

    Examples
    --------
    gingham report model.gingham ratings.csv -o report.html
    gingham report model.gingham ratings.csv --alphabet 1..5 --title 'What our viewers like'
    """
    from gingham.certificates import Certificate
    from gingham.cli.table_files import open_model
    from gingham.cli.tables.arguments import CertificateRequest, column_names, parse_bounds, parse_population
    from gingham.models.base import has_summary
    from gingham.report import predictor, summarize, write
    from gingham.summary import summarize_observed
    from gingham.summary.measure import in_unit, unit_of

    relation = None if axes is None else column_names(axes, "--axes")
    items, ends = parse_population(population), parse_bounds(bounds)
    request = CertificateRequest(
        delta, alphabet=alphabet, bounds=ends, progressive=progressive, population=items, strata=strata
    )
    session = open_model(model, file, format, label, drop_missing, relation)
    found, trivial, refusal = {}, {}, ""
    try:
        found = session.certificates(request)
        trivial = session.without_groups(found, request)
    except GinghamError as error:
        refusal = str(error)
        missing = (
            "The page has no comparison with a model without groups." if found else ("The page has no certificate.")
        )
        console.say_note(f"{missing} {refusal}")
    errors, observed = session.errors, session.observed()
    fitted = session.model
    summary = fitted.summary_ if has_summary(fitted) else summarize_observed(observed)
    summary = summarize(
        summary if fitted._errors is None else replace(summary, errors=fitted._errors),
        observed,
        predictor(session),
        title=title or f"What was found in {Path(file).name}",
        label=session.label_name,
        certificates={name: one if isinstance(one, Certificate) else one.to_dict() for name, one in found.items()},
        trivial=trivial,
        refusal=refusal,
        facts=session.facts,
        errors={ERRORS.get(name, name): value for name, value in errors.items()},
        files=(model, file),
    )
    write(summary, out)
    facts = {
        "page": str(out),
        "size": f"{out.stat().st_size / 1e6:.1f} MB",
        **{f"held_out_{name}": value for name, value in errors.items()},
        **({} if fitted._errors is None else {f"measured {fitted._errors.unit}": fitted._errors.model}),
        **{
            f"guaranteed {unit_of(one.loss)} from the {name}": in_unit(float(one.value), one.loss)
            for name, one in found.items()
        },
    }
    console.show(facts, json, "Report")
