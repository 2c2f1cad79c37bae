"""Several tables that share modes, in one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gingham.arrays import AnyArray, Ints
from gingham.certificates.confidence import checked_delta
from gingham.data import Alphabet, Mode
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.joint import KIND
from gingham.models.questions import Predicted
from gingham.summary.measure import UNITS

if TYPE_CHECKING:
    from gingham.certificates import Certificate
    from gingham.models.joint.estimator import JointCoClustering
    from gingham.summary.values import Observed


class JointTables(common.FamilyTables["JointCoClustering"]):
    kind = KIND
    estimators = ("JointCoClustering",)
    unused = ("objective", "solver", "merges", "bounds")
    needs_label = True
    has_relations = True
    no_path = "Every table of a joint model has its own β; set them in Python (beta={relation: …})."

    def id_columns(self, model: JointCoClustering) -> tuple[str, ...]:
        return tuple(name for relation in model.relations_ for name in relation)

    def check_clusters(self, options: common.FitOptions) -> None:
        given_sizes(options)

    def fit(self, task: common.FitTask) -> common.FittedModel:
        """All tables together; rows of the first may be set aside."""
        options, axes = task.options, task.options.axes
        if axes in task.further:
            raise GinghamError(f"--relation names {','.join(axes)}, which is the table itself.")
        first = task.rows()
        first.folds(options.holdout, 0)  # what is wrong with it shows before the fit
        relations = {axes: first}
        relations.update(
            {names: common.labelled_rows(table, names, label) for names, (label, table) in task.further.items()}
        )
        said = {
            "n_clusters": sizes_of(options, list(relations)),
            "alphabet": None
            if options.alphabet is None
            else {axes: common.parse_alphabet(options.alphabet, first.named)},
            "cold_start": options.cold_start,
            "loss": None if options.loss is None else {axes: options.loss},
            "beta": None if options.beta is None else {axes: options.beta},
        }

        def fitted(rows: common.Rows, arguments: Mapping[str, Any]) -> JointCoClustering:
            model = self.made(options, said)
            tables = {names: data.weighted for names, data in {**relations, axes: rows}.items()}
            return model.fit(tables, **common.accepted(model.fit, arguments))

        model = fitted(first, task.arguments)
        notes = {
            "relations": [
                {"axes": list(axes), "label": options.label, "weight": options.weight},
                *({"axes": list(names), "label": label, "weight": None} for names, (label, _) in task.further.items()),
            ],
            "seed": options.seed,
            "fingerprint": first.fingerprint,
        }
        facts: common.Facts = {
            "model": self.kind,
            "relations": {", ".join(names): len(data) for names, data in relations.items()},
            "clusters": {name: int(q.shape[1]) for name, q in model.assign_.items()},
            "sweeps": model.n_iter_,
            "converged": model.converged_,
        }
        if not model.interrupted_:
            quietly = {name: value for name, value in task.arguments.items() if name != "checkpoint"}
            found = common.measured(
                first, options.holdout, options.seed, lambda rows: fitted(rows, quietly),
                partial(predictions, axes, first.named), judged_by(model, axes),
                letters=np.unique(first.y) if first.named else None,
            )  # fmt: skip
            if found is not None:
                model.errors_, notes["measured"] = found
        return common.FittedModel(model, notes, facts)

    def predict(self, model: JointCoClustering, table: pl.DataFrame, asked: common.PredictOptions) -> pl.DataFrame:
        """The table with predictions of one relation; items without tuples there go by their other relations."""
        relation, note = relation_of(model, table.columns, asked.axes)
        X = common.like_items(table, relation, modes_of(model, relation))
        label = note.get("label") or "label"
        predicted = pl.Series(f"predicted_{label}", model.predict(relation, X, asked.rule or "mean"))
        result = common.with_predictions(table, predicted)
        if not asked.proba:
            return result
        known = common.labels_of_cell(model.posterior_.cells[model.position_of(relation)])
        if not isinstance(known, Alphabet):
            raise GinghamError("This relation predicts numbers, not distributions: leave --proba out.")
        return common.with_probabilities(result, known.values, model.predict_distribution(relation, X))

    def open(self, model: JointCoClustering, source: common.TableSource) -> RelationWithModel:
        relation, note = relation_of(model, source.table.columns, source.axes)
        label = source.label or note.get("label")
        if label is None:
            raise GinghamError("The model does not say which column holds the labels; add --label.")
        modes = modes_of(model, relation)
        data = common.labelled_rows(source.table, relation, label, note.get("weight"), modes, source.drop_missing)
        notes: common.Facts = model.notes_
        first = notes.get("relations", [{}])[0].get("axes") == list(relation)  # whose rows tested the model
        tested = data.tested(model, modes, model.position_of(relation)) if first else None
        return RelationWithModel(model, notes, relation, label, data, tested)


def sizes_of(options: common.FitOptions, relations: Sequence[common.Relation]) -> dict[str, object] | None:
    """Clusters of the modes as named, or by number for the axes of the first table; None where nothing was said."""
    from gingham.models.joint.estimator import default_sizes

    if options.clusters is None:
        return None
    modes, given = default_sizes(relations), given_sizes(options)
    unknown = [name for name in given if name not in modes]
    if unknown:
        raise GinghamError(f"--clusters names the mode {unknown[0]!r}; the tables have {', '.join(modes)}.")
    return {**modes, **given}


def given_sizes(options: common.FitOptions) -> dict[str, object]:
    """{mode: clusters} from "movie=20,genre=none", or from "20,10" for the axes of the first table."""
    listed, axes = options.clusters, options.axes
    if listed is None or ("=" not in listed and ":" not in listed):
        return dict(zip(axes, common.parse_clusters(listed, len(axes)) or ("auto",) * len(axes)))
    found: dict[str, object] = {}
    for part in listed.split(","):
        name, sign, number = part.partition("=")
        if not sign or not (number == "none" or number.isdigit()) or number == "0":
            raise GinghamError(f"--clusters {listed!r} must read mode=number or mode=none, separated by commas.")
        found[name.strip()] = None if number == "none" else int(number)
    return found


def relation_of(
    model: JointCoClustering, columns: Sequence[str], axes: common.Relation | None
) -> tuple[common.Relation, dict[str, str | None]]:
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


def modes_of(model: JointCoClustering, relation: common.Relation) -> list[Mode]:
    return list(model.posterior_.structure.columns(model.position_of(relation)))


def judged_by(model: JointCoClustering, relation: common.Relation) -> str:
    """The loss by which predictions of a relation are measured and certified: its own, where it has a name for them."""
    cell = model.posterior_.cells[model.position_of(relation)]
    known = common.labels_of_cell(cell)
    if isinstance(known, Alphabet) and not known.numeric:
        return "zero-one"
    return str(cell.name) if cell.convex and cell.answers != "distribution" and cell.name in UNITS else "absolute"


def predictions(relation: common.Relation, named: bool, model: JointCoClustering, X: pl.DataFrame) -> AnyArray:
    """What is predicted of rows of a relation: the mean, or the most probable name."""
    known = common.labels_of_cell(model.posterior_.cells[model.position_of(relation)])
    if named and isinstance(known, Alphabet):
        return known.values[model.predict_distribution(relation, X).argmax(axis=1)]
    return np.asarray(model.predict(relation, X))


@dataclass(eq=False)
class RelationWithModel(common.ModelWithData["JointCoClustering"]):
    """One relation of a joint model with its rows."""

    instead = "Its tables share clusters: fit again with fewer --clusters."

    relation: common.Relation
    label: str
    rows: common.Rows
    tested: common.Tested | None

    def facts(self) -> common.Facts:
        shared = "; ".join(" × ".join(relation) for relation in self.model.relations_)
        return {"tuples": len(self.rows), "tables": shared, "sweeps": self.model.n_iter_}

    @property
    def label_name(self) -> str:
        return self.label

    def observed(self) -> Observed:
        return self.model.observed({self.relation: self.rows.weighted})

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        return self.model.predict_codes(self.model.position_of(self.relation), codes, label)

    def without_groups(self, certificates: common.Facts, request: common.CertificateRequest) -> dict[str, float]:
        known = common.labels_of_cell(self.model.posterior_.cells[self.model.position_of(self.relation)])
        space = common.LabelSpace.stated(known, self.rows.y, self.notes, request)
        return common.constant_guarantees(certificates, self.rows, space, judged_by(self.model, self.relation))

    def certificates(self, request: common.CertificateRequest) -> common.Facts:
        request.need_no_tests("One table of a joint model")
        seen, model = self.rows, self.model
        at = model.position_of(self.relation)
        known = common.labels_of_cell(model.posterior_.cells[at])
        space = common.LabelSpace.stated(known, seen.y, self.notes, request)
        makers: dict[str, Callable[[float], Certificate]] = {
            "training rows": lambda share: model.certify(
                {self.relation: seen.weighted}, share, bound=request.bound, predictor=request.predictor,
                alphabet=space.alphabet, population=request.population,
            )[self.relation]
        }  # fmt: skip
        if self.tested is not None:
            makers[self.tested.name] = partial(self.tested.certificate, space, judged_by(model, self.relation))
        share = checked_delta(request.delta) / len(makers)  # they hold together
        return {name: make(share) for name, make in makers.items()}


TABLES = JointTables()
