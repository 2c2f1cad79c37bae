"""What a certificate was computed from, and the JSON file in which others can check it.

The file refers to the data by a digest and holds everything else as plain JSON: the statement, the loss and its range,
memberships and answers, predictions, the order of tests. `gingham/verify.py` reads it and shares no code with the rest
of gingham.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import AnyArray, ArrayLike, Floats, TableLike
from gingham.certificates.assumptions import Assumption
from gingham.certificates.bounds import GRID
from gingham.certificates.losses import loss_facts
from gingham.core.problem import Posterior
from gingham.data import Sample
from gingham.data.adapt import id_columns, is_frame
from gingham.data.sample import checked_weights
from gingham.errors import GinghamError
from gingham.files import atomic

FORMAT, VERSION = "gingham-certificate", 2


@dataclass(frozen=True, eq=False)
class Record:
    """What a certificate was computed from.

    Attributes
    ----------
    kind : {"in sample", "holdout", "predictions", "split prior", "density", "progressive"}
    X, y, sample_weight
        The rows as they were given.
    facts : callable () → mapping
        Everything else: plain values, arrays, and mappings of them; put together when a file is written.
    strata : array of shape (N,), optional
        The stratum of each row as it was given; the digest binds it as a last column of ids.
    stratum : str
        The name of that column.
    """

    kind: str
    X: TableLike | Sample
    y: ArrayLike | None
    sample_weight: ArrayLike | None
    facts: Callable[[], Mapping[str, object]]
    strata: AnyArray | None = None
    stratum: str = "stratum"


def write_certificate(
    path: str | os.PathLike[str],
    statement: dict[str, object],
    assumptions: Sequence[Assumption],
    record: Record | None,
) -> None:
    """Write the statement with all that was used; of the assumptions their codes, of which readers make sentences."""
    if record is None:
        raise GinghamError(
            f"A certificate by {statement['bound']!r} does not store its inputs, so that nobody could "
            "check its file. certificate.to_dict() has its numbers."
        )
    document = {
        "format": FORMAT,
        "version": VERSION,
        "kind": record.kind,
        "certificate": {**statement, "assumptions": [codes(one) for one in assumptions]},
        "data": _data(record),
        "facts": _plain(record.facts()),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items()]
    with atomic(path) as stream:
        stream.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())


def codes(assumption: Assumption) -> dict[str, object]:
    """An assumption without its sentence."""
    return {"code": assumption.code, "status": assumption.status, "facts": _plain(assumption.facts)}


def posterior_facts(posterior: Posterior, relation: int = 0) -> dict[str, object]:
    """Memberships, answers and items of the modes that meet in a relation, in its order."""
    modes = posterior.structure.factors[relation]
    return {
        "modes": [posterior.structure.modes[mode].name for mode in modes],
        "items": [[str(item) for item in posterior.structure.modes[mode].items.tolist()] for mode in modes],
        "memberships": [np.asarray(posterior.assign[mode]) for mode in modes],
        "answers": np.asarray(posterior.answers[relation]),
        "frozen": [mode in posterior.structure.frozen for mode in modes],
        "plain grid": type(posterior) is Posterior and len(set(modes)) == len(modes),
    }


def posterior_digest(facts: Mapping[str, object]) -> str:
    """SHA-256 of the facts of a posterior, in memory or from a certificate file."""
    return hashlib.sha256(json.dumps(_plain(facts), sort_keys=True).encode()).hexdigest()


def grid_facts(posterior: Posterior, relation: int = 0, **stated: object) -> dict[str, object]:
    """What a certificate file says of a posterior: loss, memberships and answers, the bets ν, and what is stated."""
    return {
        "loss": loss_facts(posterior.cells[relation]),
        "posterior": posterior_facts(posterior, relation),
        "nu_grid": GRID,
        **stated,
    }


def _data(record: Record) -> dict[str, object]:
    columns, names, labels, weights = _rows(record)
    if record.strata is not None:
        columns, names = [*columns, record.strata], None if names is None else [*names, record.stratum]
    own = [getattr(series, "name", None) for series in (record.y, record.sample_weight) if series is not None]
    whole = [*names, *own] if names and own and all(isinstance(name, str) and name for name in own) else None
    numeric = labels is not None and labels.dtype.kind in "biuf"
    kinds = ["number" if column.dtype.kind == "f" else "text" for column in columns]
    return {
        "n_rows": len(columns[0]),
        "columns": names,
        "names": whole,
        "kinds": kinds,
        "label": None if labels is None else "number" if numeric else "text",
        "weighted": weights is not None,
        "digest": digest(columns, kinds, labels, weights),
    }


def digest(columns: Sequence[AnyArray], kinds: Sequence[str], labels: AnyArray | None, weights: Floats | None) -> str:
    """SHA-256 of all rows in order: ids as text (floats as their shortest text), label, weight."""
    parts = [_texts(column, kind == "number") for column, kind in zip(columns, kinds)]
    if labels is not None:
        parts.append(_texts(labels, labels.dtype.kind in "biuf"))
    if weights is not None:
        parts.append(_texts(weights, True))
    found = hashlib.sha256()
    for row in zip(*parts):
        found.update(("".join(f"{len(text)}:{text}" for text in row) + ";").encode())
    return found.hexdigest()


def _texts(values: AnyArray, number: bool) -> list[str]:
    return [repr(float(v)) for v in values.tolist()] if number else [str(v) for v in values.tolist()]


def _rows(record: Record) -> tuple[list[AnyArray], list[str] | None, AnyArray | None, Floats | None]:
    if isinstance(record.X, Sample):
        sample = record.X
        columns = [mode.items[code] for mode, code in zip(sample.modes, sample.codes)]
        labels = sample.labels if sample.alphabet is None else sample.alphabet.values[sample.label_codes]
        return columns, None, labels, sample.weights
    columns, names = id_columns(record.X)
    given = names if is_frame(record.X) else None
    labels = None if record.y is None else np.asarray(record.y)
    return columns, given, labels, checked_weights(record.sample_weight, len(columns[0]))


def _plain(value: object) -> object:
    """JSON's own types; floats keep every digit."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise GinghamError(f"A value of type {type(value).__name__} cannot stand in a certificate file: {value!r}.")
