"""``gingham report``: what goes onto the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gingham.cli.defaults import parse_alphabet
from gingham.cli.fitting import certificates, errors, need_stated_labels, reopen
from gingham.cli.screen import say_note
from gingham.errors import GinghamError
from gingham.report import summarize, write

WORDS = {
    "mae": "mean absolute error of the mean prediction",
    "rmse": "root mean square error of the mean prediction",
    "mae_of_median": "mean absolute error of the median prediction",
    "mae_of_a_constant": "mean absolute error of the best constant",
    "error_rate": "error rate",
    "error_rate_of_commonest_label": "error rate of the commonest label",
}


def make_report(
    model_file: str,
    file: str,
    out: Path,
    title: str | None,
    delta: float,
    alphabet: str | None,
    label: str | None,
    drop: bool,
    kind: str | None,
    path: str | None = None,
) -> dict[str, Any]:
    """Write the page and return the facts to show."""
    model, seen, unseen = reopen(model_file, file, kind, label, drop)
    sample = model.sample(seen.X, seen.y, seen.weight)
    found: dict[str, Any] = {}
    try:
        if alphabet is None:
            need_stated_labels(model)
        options = {"bound": "log-wealth", "delta": delta, "predictor": "gibbs"}
        if alphabet is not None:
            options["alphabet"] = parse_alphabet(alphabet, seen.y.dtype.kind not in "biuf")
        found = certificates(model, seen, unseen, options)
    except GinghamError as error:
        say_note(f"The page has no certificate. {error}")
    missed = errors(model, unseen) if unseen is not None else {}
    summary = summarize(
        model.posterior_,
        sample,
        title=title or f"Co-clustering of {Path(file).name}",
        label=label or model.notes_.get("label", "label"),
        facts={
            "tuples": len(seen),
            "loss": str(model.loss),
            "β": round(float(getattr(model, "beta_", model.beta)), 4),
            "sweeps": model.n_iter_,
        },
        errors={WORDS.get(name, name): value for name, value in missed.items()},
        certificates=found,
        path=None if path is None else read_path(path),
    )
    write(summary, out)
    return {
        "page": str(out),
        "size": f"{out.stat().st_size / 1e6:.1f} MB",
        **{f"held_out_{name}": value for name, value in missed.items()},
        **{f"guarantee from the {name}": certificate.value for name, certificate in found.items()},
    }


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
