"""Several tables that share modes: ``--model joint`` and ``gingham joint``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from gingham.cli import label_space
from gingham.cli.checkpoint import identity
from gingham.cli.console import sweeps
from gingham.cli.data import Rows, parts, rows, split
from gingham.cli.fit import HOLDOUT, Fitted, Keeping
from gingham.cli.fit_options import Wish
from gingham.cli.label_kind import parse_alphabet
from gingham.cli.session import Asked, Drawing, Opened, Source
from gingham.cli.tables import like_items, read_table
from gingham.errors import GinghamError

Relation = tuple[str, ...]


def fit_joint(first: Rows, wish: Wish, quiet: bool, keeping: Keeping, share: float | None = None) -> Fitted:
    """All tables together; rows of the first may be set aside."""
    from gingham.models.joint.estimator import JointCoClustering

    began = time.perf_counter()
    share = (HOLDOUT if wish.holdout is None else wish.holdout) if share is None else share
    others = read_relations(wish.relations)
    if wish.axes in others:
        raise GinghamError(f"--relation names {','.join(wish.axes)}, which is the table itself.")
    learn, held = split(len(first), share, wish.seed)
    training = first.take(learn)
    relations: dict[Relation, Any] = {wish.axes: training, **{axes: data for axes, (_, data) in others.items()}}
    alphabet = None
    if wish.alphabet is not None:
        alphabet = {wish.axes: parse_alphabet(wish.alphabet, first.y.dtype.kind not in "biuf")}
    said: dict[str, Any] = {
        "n_clusters": sizes_of(wish, list(relations)),
        "max_iter": wish.max_iter,
        "n_init": wish.n_init,
    }
    model = JointCoClustering(
        alphabet=alphabet, cold_start=wish.cold_start, random_state=wish.seed,
        loss=None if wish.loss is None else {wish.axes: wish.loss},
        beta=None if wish.beta is None else {wish.axes: wish.beta},
        **{name: value for name, value in said.items() if value is not None},
    )  # fmt: skip
    key = identity(" ".join(data.fingerprint for data in relations.values()), asdict(wish))
    with keeping.of(key) as checkpoint, sweeps("co-clustering", quiet) as callback:
        weighted = {a: (d.X, d.y) if d.weight is None else (d.X, d.y, d.weight) for a, d in relations.items()}
        model.fit(weighted, callback=callback, checkpoint=checkpoint)
    notes = {
        "relations": [
            {"axes": list(wish.axes), "label": wish.label, "weight": wish.weight},
            *({"axes": list(axes), "label": label, "weight": None} for axes, (label, _) in others.items()),
        ],
        "holdout": share,
        "seed": wish.seed,
        "fingerprint": first.fingerprint,
    }
    facts = {
        "model": "joint",
        "relations": {", ".join(names): len(data) for names, data in relations.items()},
        "clusters": {name: int(q.shape[1]) for name, q in model.assign_.items()},
        "sweeps": model.n_iter_,
        "converged": model.converged_,
    }
    if held.any():
        facts["held_out_rows"] = int(held.sum())
        facts.update({f"held_out_{k}": v for k, v in errors(model, wish.axes, first.take(held)).items()})
    facts["seconds"] = round(time.perf_counter() - began, 2)
    return model, notes, facts


def read_relations(specs: Sequence[str]) -> dict[Relation, tuple[str, Rows]]:
    """{modes: (label, rows)} from AXES=LABEL:FILE specifications."""
    found: dict[Relation, tuple[str, Rows]] = {}
    for spec in specs:
        axes, sign, rest = spec.partition("=")
        label, colon, file = rest.partition(":")
        if not (axes and sign and label and colon and file):
            raise GinghamError(f"--relation {spec!r} must read AXES=LABEL:FILE, viewer,movie=rating:ratings.csv say.")
        names = tuple(name.strip() for name in axes.split(","))
        found[names] = (label, rows(read_table(file), names, label))
    return found


def sizes_of(wish: Wish, relations: Sequence[Relation]) -> dict[str, Any] | None:
    """Clusters of the modes as named, or by number for the axes of the first table; None where nothing was said."""
    from gingham.models.joint.estimator import default_sizes

    if wish.sizes is None:
        return None
    modes = default_sizes(relations)
    given = parse_modes(wish.sizes) if "=" in wish.sizes else {}
    if not given:
        from gingham.cli.fit_options import parse_clusters

        given = dict(zip(wish.axes, parse_clusters(wish.sizes, len(wish.axes)) or ("auto",) * len(wish.axes)))
    unknown = [name for name in given if name not in modes]
    if unknown:
        raise GinghamError(f"--clusters names the mode {unknown[0]!r}; the tables have {', '.join(modes)}.")
    return {**modes, **given}


def parse_modes(listed: str) -> dict[str, Any]:
    """{mode: clusters} from "movie=20,genre=none"."""
    found: dict[str, Any] = {}
    for part in listed.split(","):
        name, sign, number = part.partition("=")
        if not sign or not (number == "none" or number.isdigit()) or number == "0":
            raise GinghamError(f"--clusters {listed!r} must read mode=number or mode=none, separated by commas.")
        found[name.strip()] = None if number == "none" else int(number)
    return found


def relation_of(model: Any, columns: Sequence[str], axes: Relation | None) -> tuple[Relation, dict[str, Any]]:
    """The relation a table is about, and what is noted of it: the named one, or the first whose columns it has."""
    noted = {tuple(note["axes"]): note for note in model.notes_.get("relations", [])}
    known = list(model.relations_)
    if axes is not None:
        if axes not in known:
            raise GinghamError(
                f"--axes {','.join(axes)} was not fitted; there are {'; '.join(','.join(r) for r in known)}."
            )
        return axes, noted.get(axes, {})
    for relation in known:
        if set(relation) <= set(columns):
            return relation, noted.get(relation, {})
    raise GinghamError(
        f"The table has the columns of no relation of the model ({'; '.join(','.join(r) for r in known)}). "
        "Rename its columns."
    )


def modes_of(model: Any, relation: Relation) -> list[Any]:
    return list(model.posterior_.structure.columns(model._at(relation)))


def predict(
    model: Any, table: pl.DataFrame, rule: str | None, proba: bool, axes: Relation | None = None
) -> pl.DataFrame:
    """The table with predictions of one relation; items without tuples there go by their other relations."""
    relation, note = relation_of(model, table.columns, axes)
    X = like_items(table, relation, modes_of(model, relation))
    label = note.get("label") or "label"
    result = table.with_columns(pl.Series(f"predicted_{label}", model.predict(relation, X, rule or "mean")))
    if proba:
        letters = getattr(model.posterior_.cells[model._at(relation)], "alphabet", None)
        if letters is None:
            raise GinghamError("This relation predicts numbers, not distributions: leave --proba out.")
        for value, column in zip(letters.values, model.predict_distribution(relation, X).T):
            result = result.with_columns(pl.Series(f"p_{value}", column))
    return result


def reopen(model: Any, source: Source) -> OfRelation:
    relation, note = relation_of(model, source.table.columns, source.axes)
    label = source.label or note.get("label")
    if label is None:
        raise GinghamError("The model does not say which column holds the labels; add --label.")
    data = rows(source.table, relation, label, note.get("weight"), modes_of(model, relation), source.drop)
    return OfRelation(model, relation, label, *parts(data, model.notes_))


class OfRelation(Opened):
    """One relation of a joint model with its rows."""

    instead = "Its tables share clusters: fit again with fewer --clusters."

    def __init__(self, model: Any, relation: Relation, label: str, seen: Rows, unseen: Rows | None) -> None:
        super().__init__(model)
        self.relation, self.label, self.seen, self.unseen = relation, label, seen, unseen

    def facts(self) -> dict[str, Any]:
        shared = "; ".join(" × ".join(relation) for relation in self.model.relations_)
        return {"tuples": len(self.seen), "tables": shared, "sweeps": self.model.n_iter_}

    def errors(self) -> dict[str, float]:
        return {} if self.unseen is None else errors(self.model, self.relation, self.unseen)

    def drawing(self) -> Drawing:
        seen, model = self.seen, self.model
        if len(self.relation) < 2:
            raise GinghamError("A relation of one mode has no checkerboard; name another with --axes.")
        sample = model.sample(self.relation, seen.X, seen.y, seen.weight)
        structure = model.posterior_.structure
        frozen = [structure.modes[at] for at in structure.frozen]
        names = [
            [str(i) for i in mode.items] if mode in frozen else None for mode in modes_of(model, self.relation)[:2]
        ]
        note = "The page shows one of the tables; its clusters were found in all of them together."
        return Drawing(
            model.posterior_, sample, self.label, relation=model._at(self.relation),
            cluster_names=(names[0], names[1]), notes=(note,),
        )  # fmt: skip

    def certificates(self, asked: Asked) -> dict[str, Any]:
        seen, model = self.seen, self.model
        cell = model.posterior_.cells[model._at(self.relation)]
        space = label_space.of_cell(cell, seen.y, self.notes, asked)
        data = (seen.X, seen.y) if seen.weight is None else (seen.X, seen.y, seen.weight)
        found = model.certify(
            {self.relation: data}, asked.delta, bound=asked.bound, predictor=asked.predictor, alphabet=space.alphabet
        )
        result = {"training rows": found[self.relation]}
        if self.unseen is not None and space.values is not None and space.values.dtype.kind in "biuf":
            from gingham.certificates.holdout import certify_predictions

            result["rows set aside"] = certify_predictions(
                model.predict(self.relation, self.unseen.X), self.unseen.y, loss="absolute", alphabet=space.values,
                delta=asked.delta, sample_weight=self.unseen.weight, predictor="mean",
            )  # fmt: skip
        return result


def errors(model: Any, relation: Relation, data: Rows) -> dict[str, float]:
    """What the mean prediction costs on rows, beside the best constant; the error rate where labels are names."""
    if data.y.dtype.kind not in "biuf":
        letters = model.posterior_.cells[model._at(relation)].alphabet.values
        guess = letters[model.predict_distribution(relation, data.X).argmax(axis=1)]
        return {"error_rate": float(np.average(guess != data.y, weights=data.weight))}
    miss = model.predict(relation, data.X) - data.y
    return {
        "mae": float(np.average(np.abs(miss), weights=data.weight)),
        "rmse": float(np.sqrt(np.average(miss**2, weights=data.weight))),
        "mae_of_a_constant": float(np.average(np.abs(np.median(data.y) - data.y), weights=data.weight)),
    }
