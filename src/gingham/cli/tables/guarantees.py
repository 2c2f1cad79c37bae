"""What certificates need of tables, how they are kept and shown, and the rows that others check them on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gingham.certificates import Certificate
from gingham.certificates import certify as certify_clusters
from gingham.cli import console
from gingham.cli.table_files import open_model, table_for
from gingham.cli.tables.adapter import Opened
from gingham.cli.tables.arguments import CertificateRequest, parse_alphabet
from gingham.cli.tables.columns import id_column, like_items, need_columns, without_missing
from gingham.cli.tables.labels import Place, rows_of_mix
from gingham.data.table_files import read_table
from gingham.errors import GinghamError
from gingham.models.base import Saved, load
from gingham.models.fit_record import FitRecord
from gingham.summary.measure import in_unit, side_by_side, unit_of


def keep(certificate: Any, path: Path, model: str, predictor_is_kept: bool) -> None:
    """Save a certificate that can be checked; refuse another."""
    if not isinstance(certificate, Certificate):
        raise GinghamError(
            "gingham verify cannot check certificates of this form, so none is saved. --json prints their numbers, and "
            "--progressive makes one that can be checked where a model predicts labels."
        )
    certificate.save(path)
    if isinstance(certificate.model, Saved) and not predictor_is_kept:
        console.say_note(
            f"{path} covers the predictor that the progressive tests made, not {model}. gingham verify needs it: keep "
            "it with --save-predictor predictor.gingham. --no-progressive certifies the model itself."
        )


def keep_predictor(certificate: Any, path: Path, opened: Opened) -> None:
    """Save the predictor that progressive tests certify."""
    certified = getattr(certificate, "model", None)
    if not isinstance(certified, Saved):
        raise GinghamError(
            "--save-predictor saves the predictor of the progressive tests, but no progressive tests were run."
        )
    certified._record = replace(opened.model._record or FitRecord(), measured=None)
    certified.save(path)


def of_mix(certificate: Any, file: str, opened: Opened, format: str | None, strata: str) -> Certificate:
    """The certificate for the mix of strata of a table without labels."""
    found: Certificate = certificate.for_mix(rows_of_mix(opened.model, table_for(opened.model, file, format), strata))
    return found


def show(
    certificates: dict[str, Any], opened: Opened, request: CertificateRequest, stratified: Any, verbose: bool
) -> None:
    """What is guaranteed, beside what was measured and beside one constant; then the strata and the premises."""
    sure = f"{100 * (1 - request.delta):g} %"
    if request.seed is not None:
        console.say_note(
            f"The seed {request.seed} of the order of the tests was chosen by you and not drawn by the fit."
        )
    try:
        constants = opened.without_groups(certificates, request)
    except GinghamError:  # a constant has no certificate then, and the others stand alone
        constants = {}
    losses = {name: one for name, one in certificates.items() if isinstance(one, Certificate)}
    name, one = next(iter(certificates.items()))
    console.paragraphs(in_a_sentence(name, one, constants, sure) if name in losses else one.explain().split("\n")[0])
    for unit, lines in side_by_side(opened.model._errors, losses, constants).items():
        rows = [[line.name, *(shown(v) for v in (line.measured, line.n_rows, line.guaranteed))] for line in lines]
        console.grid(unit, ["", "measured", "on rows", "guaranteed at most"], rows)
    if stratified is not None and stratified.strata is not None:
        table = [
            [part.name, *(in_its_unit(stratified, value) for value in (part.empirical, part.value)),
             shown(part.n_observations)]
            for part in stratified.strata.parts
        ]  # fmt: skip
        heads = ["stratum", "measured", "guaranteed at most", "on rows"]
        console.grid("Strata, which hold simultaneously with the certificates above", heads, table)
    if len(certificates) > 1:
        console.paragraphs(
            f"{len(certificates)} certificates hold simultaneously with confidence {sure}: they share δ."
        )
    if verbose:
        for name, one in certificates.items():
            console.heading(f"From the {name}")
            console.paragraphs(one.explain())
        return
    given = [claim.text for claim in getattr(one, "assumptions", ()) if claim.status == "given"]
    console.paragraphs("\n".join(["It assumes:", *(f"  {text}" for text in given)] if given else []))
    console.paragraphs("--verbose explains every certificate.")


def in_its_unit(certificate: Certificate, value: float | None) -> str:
    """A loss of a certificate in the measure in which it is shown."""
    return shown(None if value is None else in_unit(value, certificate.loss))


def in_a_sentence(name: str, certificate: Certificate, constants: dict[str, float], sure: str) -> str:
    """The guarantee with its unit, beside that of a constant."""
    beside = f"; for one constant it is {in_its_unit(certificate, constants[name])}" if name in constants else ""
    return (
        f"With {sure} confidence the {unit_of(certificate.loss)} on new data from the same source is at most "
        f"{in_its_unit(certificate, certificate.value)} (from the {name}){beside}."
    )


def shown(value: float | None) -> str:
    """A number of a table, or a dash."""
    return "–" if value is None else console.text(value)


def of_labels(
    file: str,
    cluster_files: list[str],
    label: str | None,
    axes: str | None,
    loss: str,
    format: str | None,
    request: CertificateRequest,
) -> Certificate:
    """A certificate for clusters given as files with two columns, item and cluster, one file per axis.

    ``axes`` are the columns of ``file`` with the ids, separated by commas; the first columns by default.
    """
    if label is None or request.alphabet is None:
        raise GinghamError("Name the column of labels (--label) and the possible labels (--alphabet 1..5).")
    table = read_table(file, format, lambda name: name != label)
    columns = axes.split(",") if axes else [c for c in table.columns if c != label][: len(cluster_files)]
    need_columns(table, [*columns, label], "--axes and --label")
    if len(columns) != len(cluster_files):
        shown = f"{len(columns)} axes ({', '.join(columns)})"
        raise GinghamError(f"{len(cluster_files)} files of clusters were given for {shown}.")
    return certify_clusters(
        [_clusters(name) for name in cluster_files],
        table.select(id_column(table[column]).cast(pl.String) for column in columns),
        table[label].to_numpy(),
        loss=loss,
        alphabet=parse_alphabet(request.alphabet, False),
        delta=request.delta,
        bound=request.bound,
        predictor=request.predictor,
        population=request.population,
    )


def _clusters(file: str) -> dict[object, str]:
    """Item → cluster from the first two columns of a table; items are what they are written as."""
    table = read_table(file, is_id=lambda name: True)
    if table.width < 2:
        raise GinghamError(f"{file!r} needs two columns, item and cluster.")
    items, clusters = ([str(value) for value in id_column(column).to_list()] for column in table.get_columns()[:2])
    if len(set(items)) < len(items):
        raise GinghamError(f"{file!r} names an item twice.")
    return dict(zip(items, clusters))


def certified_rows(certificate: str, model: str, data: str, folder: str) -> str:
    """The table as the checker reads it: a row an observation, and those alone that the certificate speaks of.

    A side that lies in the columns is unfolded. Of a table from which ``gingham fit`` set rows aside the others are
    kept, where as many were certified; a certificate of the rows set aside has what was predicted of them, which the
    model file keeps, in the place of their ids. Should these be other rows, the checker says so.
    """
    try:
        fitted = load(model)
        table = certified_table(certificate, model, data)
        if table is None and fitted._record is not None and fitted._record.wide:
            table = table_for(fitted, data)
    except (GinghamError, ValueError, LookupError, TypeError, OSError):
        return data  # the checker says what is wrong
    if table is None:
        return data
    target = Path(folder) / "rows.csv"
    table.write_csv(target)
    return str(target)


def certified_table(certificate: str, model: str, data: str) -> pl.DataFrame | None:
    """The rows of the table that were certified, by their number; None where that does not tell them."""
    document = json.loads(Path(certificate).read_text("utf-8"))
    of_predictions = document["kind"] == "predictions"
    try:
        opened: Any = open_model(model, data)  # of tuples, it has rows, and those that tested it
    except GinghamError:  # a predictor of progressive tests, which is certified on all rows
        return None
    tested: Any = getattr(opened, "tested", None)
    rows: Any = getattr(tested if of_predictions else opened, "rows", None)
    if rows is None or len(rows) != document["data"]["n_rows"]:
        return None
    known: pl.DataFrame = rows.X
    if of_predictions:
        console.say_note(
            f"The predictions are those that {model} keeps of its fit. That they were made without the rows that test "
            "them is taken as it is stated."
        )
        columns = tested.predictions.reshape(len(rows), -1).T
        known = pl.DataFrame({f"prediction{at or ''}": column for at, column in enumerate(columns)})
    columns = [pl.Series(opened.label_name, rows.y)]
    if rows.weight is not None:
        columns.append(pl.Series((opened.model._record and opened.model._record.weight) or "weight", rows.weight))
    return known.with_columns(columns)


def arrived(
    document: dict[str, Any],
    model: Any,
    file: str,
    format: str | None,
    label: str | None,
    prediction: str | None,
    drop_missing: bool,
) -> dict[str, Any]:
    """What a watch is told of a table: rows of ids, labels, predictions and strata; and the rows as texts."""
    data, facts = document["data"], document["facts"]
    told: list[str] = []
    if facts.get("strata") == "column":
        told = [(data["columns"] or ["stratum"])[-1]]
    if model is None:
        if prediction is None or label is None:
            raise GinghamError("Without a model name the columns: --label and --prediction.")
        table: pl.DataFrame = read_table(file, format)
        wanted = [label, prediction, *told]
        need_columns(table, wanted, "--prediction")
        kept = without_missing(table, wanted, drop_missing)
        X: Any = kept.drop(wanted) if kept.width > len(wanted) else kept.select(prediction)
    else:
        table = table_for(model, file, format)
        at = Place.of(model, None, tuple(table.columns))
        label = label or at.label
        if label is None:
            raise GinghamError("The model does not say which column holds the labels; add --label.")
        wanted = [*at.axes, label, *([prediction] if prediction else []), *told]
        need_columns(table, wanted, "--label")
        kept = without_missing(table, [name for name in wanted if name not in told], drop_missing)
        X = like_items(kept, at.axes, at.modes)
    strata = kept[told[0]].cast(pl.String).fill_null("missing").to_numpy() if told else None
    return {
        "X": X,
        "y": kept[label].to_numpy(),
        "predictions": None if prediction is None else kept[prediction].to_numpy(),
        "strata": strata,
        "texts": kept,
    }
