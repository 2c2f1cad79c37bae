"""``gingham certify``: what is guaranteed of a model, or of clusters that another program found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError

if TYPE_CHECKING:
    from gingham.certificates import Certificate
    from gingham.models.tables import CertificateRequest


def certify(
    model: Annotated[str, typer.Argument(help="Model file; with --labels the table of tuples itself.")],
    file: Annotated[str | None, typer.Argument(help="Table: CSV, TSV, Parquet, NDJSON; - is standard input.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Clusters from elsewhere: a file (item, cluster) per axis, with commas.")
    ] = None,
    axes: Annotated[
        str | None, typer.Option(help="With --labels: the columns of ids. Of a joint model: the relation.")
    ] = None,
    loss: Annotated[str, typer.Option(help="With --labels: absolute, zero-one, quadratic, log.")] = "absolute",
    delta: options.Delta = 0.05,
    bound: Annotated[
        str, typer.Option(help="log-wealth, type-kl, kl, split-kl, bernstein, theorem-7 ...")
    ] = "log-wealth",
    predictor: Annotated[str, typer.Option(help="gibbs (randomised) or mean.")] = "gibbs",
    alphabet: options.OtherAlphabet = None,
    bounds: options.Bounds = None,
    progressive: options.Progressive = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the order of progressive tests; drawn afresh if absent.", min=0)
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Certificate file to write, of the first certificate, for gingham verify.")
    ] = None,
    save_predictor: Annotated[
        Path | None, typer.Option(help="Model file to write: the predictor that the progressive tests certify.")
    ] = None,
    label: options.OtherLabel = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Guarantee the loss of a model on new data, from the data it was fitted on.

    First by progressive tests: the model is fitted anew on a growing part of the rows and tested on those that come
    next, which certifies the predictor made of these fits (--save-predictor keeps it). Then the model itself: on its
    training rows, and on rows that the fit set aside, which are recognised. All certificates that are shown hold
    together. Views and features are certified on objects and features that the fit has not seen.
    """
    from gingham.certificates import Certificate
    from gingham.cli.table_files import open_model
    from gingham.models.base import Saved
    from gingham.models.tables import CertificateRequest

    for path in (save, save_predictor):
        if path is not None:
            options.writable(path)
    request = CertificateRequest(delta, bound, predictor, alphabet, options.parse_bounds(bounds), progressive, seed)
    if labels is not None:
        if progressive or save or save_predictor:
            raise GinghamError("Clusters from elsewhere are not fitted anew: leave --progressive and --save out.")
        found = certificate_of_labels(file or model, labels.split(","), label, axes, loss, format, request)
        if json:
            console.print_json(found.to_dict())
        else:
            console.output().print(found.explain(), markup=False, soft_wrap=True)
        return
    if file is None:
        raise GinghamError("Name the table after the model, or give clusters from elsewhere with --labels.")
    relation = None if axes is None else options.column_names(axes, "--axes")
    opened = open_model(model, file, format, label, drop_missing, relation)
    certificates = opened.certificates(request)
    first = next(iter(certificates.values()))
    if save is not None:
        if not isinstance(first, Certificate):
            raise GinghamError("This certificate has a form of its own, which gingham verify does not read: --json.")
        first.save(save)
    if save_predictor is not None:
        certified = getattr(first, "model", None)
        if not isinstance(certified, Saved):
            raise GinghamError("--save-predictor keeps what progressive tests certify, and there are none.")
        certified.save(save_predictor, opened.notes)
    if json:
        console.print_json({name.replace(" ", "_"): one.to_dict() for name, one in certificates.items()})
        return
    if len(certificates) > 1:
        together = f"{len(certificates)} certificates, which hold together with confidence {100 * (1 - delta):g} %: "
        console.output().print(together + "each has its share of δ.", markup=False, soft_wrap=True)
    for name, one in certificates.items():
        console.heading(f"From the {name}")
        console.output().print(one.explain(), markup=False, soft_wrap=True)


def certificate_of_labels(
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
    from gingham.certificates import certify_labels
    from gingham.cli.table_files import read_table
    from gingham.models.tables import parse_alphabet

    if label is None or request.alphabet is None:
        raise GinghamError("Say which column holds the labels (--label) and what they can be (--alphabet 1..5).")
    names = [name for name in cluster_files if name]
    table = read_table(file, format)
    columns = axes.split(",") if axes else [c for c in table.columns if c != label][: len(names)]
    for column in (*columns, label):
        if column not in table.columns:
            raise GinghamError(f"{file!r} has no column {column!r}; it has {', '.join(table.columns)}.")
    if len(columns) != len(names):
        raise GinghamError(f"{len(names)} files of clusters were given for {len(columns)} axes ({', '.join(columns)}).")
    return certify_labels(
        [_clusters(name, table[column].dtype.is_numeric()) for name, column in zip(names, columns)],
        table.select(columns),
        table[label].to_numpy(),
        loss=loss,
        alphabet=parse_alphabet(request.alphabet, False),
        delta=request.delta,
        bound=request.bound,
        predictor=request.predictor,
    )


def _clusters(file: str, numeric: bool) -> dict[object, str]:
    """Item → cluster from the first two columns of a table; items get the type of the ids."""
    from gingham.cli.table_files import read_table

    table = read_table(file)
    if table.width < 2:
        raise GinghamError(f"{file!r} needs two columns, item and cluster.")
    items, clusters = table.columns[:2]
    if numeric and not table[items].dtype.is_numeric():
        raise GinghamError(f"The items in {file!r} are names, but the ids in the data are numbers.")
    keys = table[items].to_list() if numeric else [str(item) for item in table[items].to_list()]
    if len(set(keys)) < len(keys):
        raise GinghamError(f"{file!r} names an item twice.")
    return dict(zip(keys, (str(cluster) for cluster in table[clusters].to_list())))
