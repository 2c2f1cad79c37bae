"""``gingham report``: what goes onto the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gingham.certificates.certificate import Certificate
from gingham.certificates.clusters import ClusterCertificate
from gingham.cli.console import say_note
from gingham.cli.session import Asked, Opened, Source, open_model
from gingham.errors import GinghamError
from gingham.report import summarize, write

WORDS = {
    "mae": "mean absolute error of the mean prediction",
    "rmse": "root mean square error of the mean prediction",
    "mae_of_median": "mean absolute error of the median prediction",
    "mae_of_a_constant": "mean absolute error of the best constant",
    "error_rate": "error rate",
    "error_rate_of_commonest_label": "error rate of the commonest label",
    "nats_a_token": "code length of a count, nats",
    "nats_a_token_if_independent": "code length if rows and columns were independent",
    "information_on_new_features": "information about features set aside, nats",
    "information_of_shuffled_clusters": "the same for shuffled clusters",
    "correlation_of_views": "correlation of the views on objects set aside",
}


def make_report(
    model_file: str, source: Source, out: Path, title: str | None, asked: Asked, path: str | None = None
) -> dict[str, Any]:
    """Write the page and return the facts to show."""
    opened = open_model(model_file, source)
    found, refusal = guarantees(opened, asked)
    missed = opened.errors()
    drawing = opened.drawing()
    summary = summarize(
        drawing.posterior,
        drawing.sample,
        title=title or f"Co-clustering of {Path(source.file).name}",
        label=drawing.label,
        facts=opened.facts(),
        errors={WORDS.get(name, name): value for name, value in missed.items()},
        certificates={name: on_page(certificate) for name, certificate in found.items()},
        path=None if path is None else read_path(path),
        relation=drawing.relation,
        predict=drawing.predict,
        words=drawing.words,
        cluster_names=drawing.cluster_names,
        zeros=drawing.zeros,
        notes=drawing.notes,
        refusal=refusal,
    )
    write(summary, out)
    return {
        "page": str(out),
        "size": f"{out.stat().st_size / 1e6:.1f} MB",
        **{f"held_out_{name}": value for name, value in missed.items()},
        **{f"guarantee from the {name}": value_of(certificate) for name, certificate in found.items()},
    }


def guarantees(opened: Opened, asked: Asked) -> tuple[dict[str, Any], str]:
    """The certificates of a model, or why there is none."""
    try:
        return opened.certificates(asked), ""
    except GinghamError as error:
        say_note(f"The page has no certificate. {error}")
        return {}, str(error)


def value_of(certificate: Any) -> float:
    return float(certificate.risk.value if isinstance(certificate, ClusterCertificate) else certificate.value)


def on_page(certificate: Any) -> Any:
    """A certificate as the page shows it; guarantees of another kind as plain facts."""
    if isinstance(certificate, Certificate):
        return certificate
    if isinstance(certificate, ClusterCertificate):
        facts = certificate.risk.to_dict()
        return {**facts, "explanation": certificate.explain(), "others": [], "unit": "objects"}
    assumptions = [
        {"text": "The features are independent draws from all that one could ask.", "status": "given"},
        {"text": "None of them was used to form the clusters.", "status": "given"},
    ]  # fmt: skip
    return {
        "value": certificate.value, "empirical": certificate.empirical, "delta": certificate.delta,
        "n_tuples": certificate.n_features, "unit": "features", "at_least": True, "predictor": "clusters",
        "loss": "information about a feature, nats", "bound": "log-wealth", "worst": None, "terms": {}, "others": [],
        "assumptions": assumptions, "explanation": certificate.explain(),
    }  # fmt: skip


def as_json(certificate: Any) -> dict[str, Any]:
    """Plain values of any guarantee."""
    facts = on_page(certificate)
    return dict(facts) if isinstance(facts, Mapping) else dict(facts.to_dict())


SHOWN = {"beta": "β", "loss": "loss", "cv_loss": "loss, cross-validated", "certificate": "certificate"}


def read_path(name: str) -> list[dict[str, float]]:
    """Rows of a path of β from the output of ``gingham path --json``."""
    try:
        table = json.loads(Path(name).read_text(encoding="utf-8"))["path"]
        columns = {shown: table[key] for key, shown in SHOWN.items() if key in table}
        rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    except (OSError, ValueError, KeyError, TypeError):
        raise GinghamError(f"{name!r} is not what gingham path --json prints.") from None
    if not rows or "β" not in columns:
        raise GinghamError(f"{name!r} has no points of a path.")
    return sorted(rows, key=lambda row: row["β"])
