"""Surveys: every question has answers of its own, on a scale or not, and layers predict them together.

An answer is taken apart into statements that are true or false. A scale of K answers has K − 1 of them ("age > 30"), a
question with K names has K ("colour = red"), and one with two answers has one. Layers of two classes are fitted to
people and statements, so that an answer to one question tells about all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike, nearest
from gingham.cells.losses import floored
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import as_frame, frame_of
from gingham.data.answers import NO_ANSWER, STEPS, answers_of, as_numbers, in_order, steps_of
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Callback
from gingham.models.base import Persistent, TupleModel
from gingham.models.layers.design import Sampler
from gingham.models.layers.draws import least_probabilities, sets_of
from gingham.models.layers.estimator import SMOOTHING, LayeredCoClusteringClassifier, SizeChoice
from gingham.models.layers.side import Sides
from gingham.models.questions import Predicted
from gingham.storage import savable
from gingham.summary.values import Observed

ENOUGH = 100  # held-out answers from which on questions of so many answers have a bound of sets of their own


@savable
@dataclass(frozen=True, eq=False)
class AnswerScales:
    """The answers to every question, and the statements that they are taken apart into.

    Attributes
    ----------
    names : (Q,) str
    answers : (Q, K) codes of the alphabet, in order; −1 beyond the answers of a question
    sizes : (Q,) how many answers a question has
    ordered : (Q,) whether they are a scale
    measured : (Q,) whether they are numbers that stand for the numbers near them
    """

    names: AnyArray
    answers: Ints
    sizes: Ints
    ordered: Bools
    measured: Bools

    @property
    def n_statements(self) -> Ints:
        """Of each question."""
        return self.sizes - self.ordered

    @property
    def first(self) -> Ints:
        """The first statement of each question, and their number, (Q + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_statements)]).astype(np.int64)

    def statements(self, label_values: AnyArray) -> AnyArray:
        """All statements as text; of a scale of two, that it is the second."""
        found = []
        for name, codes, size, ordered in zip(self.names, self.answers, self.sizes, self.ordered):
            answers = label_values[codes[:size]]
            if ordered and size > 2:
                found += [f"{name} > {answer}" for answer in answers[:-1]]
            else:
                found += [f"{name} = {answer}" for answer in answers[int(ordered) :]]
        return np.array(found, dtype=object)

    def apart(self, questions: Ints) -> Statements:
        """The statements that rows of questions are taken apart into."""
        counts = self.n_statements[questions]
        rows = np.repeat(np.arange(len(questions)), counts)
        steps = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Statements(rows, self.first[questions[rows]] + steps, steps)

    def together(self, questions: Ints, rows: Ints, steps: Ints, true: Floats) -> Floats:
        """Probabilities of the answers of rows of questions, (N, K), from those of their statements."""
        n, k = len(questions), self.answers.shape[1]
        said: Floats = np.zeros((n, k))
        said[rows, steps] = true
        # P(y > a_k) falls along a scale; the others are shares of what is said of all names.
        above = np.column_stack([np.ones(n), np.minimum.accumulate(said, axis=1)])
        scale = -np.diff(above, axis=1)
        named = said / np.maximum(said.sum(axis=1, keepdims=True), 1e-300)
        sizes = self.sizes[questions]
        found = np.where(self.ordered[questions][:, None], scale, named)
        for size in np.unique(sizes):
            if size > 1:
                at = sizes == size
                found[at, :size] = floored(found[at, :size], SMOOTHING / size)
        return np.where(np.arange(k) < sizes[:, None], found, 0.0)


class Statements(NamedTuple):
    """What rows of questions are taken apart into; one entry per statement."""

    rows: Ints
    statements: Ints
    steps: Ints  # the number of the statement within its question


@dataclass(eq=False, repr=False)
class SurveyCoClustering(ClassifierMixin, TupleModel, Persistent):  # type: ignore[misc]
    """Answers to questions of different kinds, predicted together by layers of people and of answers.

    Each question has a scale of its own: two answers, a few names, steps of a scale, or measurements. An answer is
    taken apart into statements that are true or false ("colour = red", "age > 30"), to which
    :class:`LayeredCoClusteringClassifier` is fitted. A tenth of the answers, or 10,000 where that is less, calibrates
    the probabilities and the sets of answers.

    Parameters
    ----------
    n_layers, n_clusters, baskets, side, effort, sampler, n_jobs, random_state
        See :class:`LayeredCoClusteringRegressor`; ``side`` is about the people.
    scales : mapping from a question to its answers in rising order, optional
        For scales that are text. Answers that are numbers, or words of a common scale ("agree", "often"), are in
        order without being named.
    missing : sequence of str
        Answers that are none, in any case: "prefer not to say" and the like.

    Attributes
    ----------
    model_ : LayeredCoClusteringClassifier
        Of people and statements.
    questions_ : AnswerScales
        The answers of every question.
    classes_ : array
        All answers to all questions, as text.

    Examples
    --------
    >>> import polars as pl
    >>> from gingham.models import SurveyCoClustering
    >>> kind = [k % 2 for k in range(24)]
    >>> answers = pl.DataFrame({
    ...     "person": [f"p{k}" for k in range(24)], "diet": [["meat", "plants"][k] for k in kind],
    ...     "bike": [["no", "yes"][k] for k in kind], "days": [[2, 5][k] for k in kind],
    ... })
    >>> model = SurveyCoClustering(n_layers=2, n_clusters=2, random_state=0).fit(answers)
    >>> holes = answers[:2].with_columns(bike=pl.lit(None, dtype=pl.String))
    >>> model.impute(holes)["bike"].to_list()
    ['no', 'yes']
    """

    _saved_attributes: ClassVar[tuple[str, ...]] = ("model_", "questions_", "modes_", "alphabet_", "_least", "_own")
    model_: LayeredCoClusteringClassifier = field(init=False)
    questions_: AnswerScales = field(init=False)
    modes_: tuple[Mode, ...] = field(init=False)
    alphabet_: Alphabet = field(init=False)
    _least: Floats = field(init=False)  # (levels,), see `least_probabilities`; of all questions
    _own: Floats = field(init=False)  # (Q, levels), of each

    n_layers: int | str = "auto"
    n_clusters: Any = "auto"
    baskets: int | str = "auto"
    scales: Mapping[Any, Sequence[object]] | None = None
    missing: Sequence[str] = NO_ANSWER
    side: Sides | None = None
    effort: str = "default"
    sampler: Sampler | None = None
    n_jobs: int | None = None
    random_state: Seed = None

    def _item_modes(self) -> tuple[Mode, ...]:
        return self.modes_

    @property
    def classes_(self) -> AnyArray:
        return self.alphabet_.values

    @property
    def selection_(self) -> SizeChoice:
        """The numbers of layers and clusters that were chosen, and why."""
        return self.model_.selection_

    def _labels(self, y: ArrayLike) -> AnyArray:
        return answers_of(column_or_1d(np.asarray(y, dtype=object), warn=True).tolist())

    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Fit to rows (person, question) and their answers y, or to a wide frame, one row per person.

        The first column of a wide frame names the people; each other one is a question.
        """
        if y is None:
            X, y = self._unfolded(X)
        (people, asked), names, labels, weights = self._answered(X, y, sample_weight)
        self.modes_ = tuple(Mode.of(column, name) for column, name in zip((people, asked), names))
        labels = self._read(self.modes_[1].encode(asked), labels)
        sample = Sample.of([people, asked], labels, weights, modes=self.modes_, alphabet=self.alphabet_)
        rows, true, weight = self._as_statements(sample)
        if not len(true):
            raise GinghamError("Every question has one answer only: nothing differs between people.")
        self.model_ = LayeredCoClusteringClassifier(
            self.n_layers, self.n_clusters, self.baskets, None, self.side, None, self.effort, self.sampler,
            "auto", self.n_jobs, self.random_state,
        )  # fmt: skip
        place = self._statement_mode.encode(self._statements)
        groups = np.empty(len(place), dtype=np.int64)
        groups[place] = np.repeat(np.arange(len(self.questions_.sizes)), self.questions_.n_statements)
        self.model_._together = groups
        self.model_.fit(rows, true, weight, callback=callback, checkpoint=checkpoint)
        self._bound_sets(place)
        self.interrupted_ = self.model_.interrupted_
        self._remember(sample, 0)
        return self

    def _answered(
        self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None, reset: bool = True
    ) -> tuple[list[AnyArray], list[str], AnyArray, Floats | None]:
        """People and questions, the names of these columns, answers and weights, without missing answers."""
        columns, labels, weights = self._labelled_rows(X, y, sample_weight, reset=reset)
        if len(columns.columns) != 2:
            raise GinghamError("A survey has two columns of ids, people and questions, and the answers.")
        missing = {word.casefold() for word in self.missing}
        kept = np.array([answer.casefold() not in missing for answer in labels.tolist()], dtype=bool)
        if not kept.any():
            raise GinghamError("Every answer is missing.")
        ids = [column[kept] for column in columns.columns]
        return ids, list(columns.names), labels[kept], None if weights is None else weights[kept]

    def _unfolded(self, frame: TableLike) -> tuple[Any, AnyArray]:
        """Rows (person, question) and answers of a wide frame."""
        try:
            wide = as_frame(frame)  # type: ignore[arg-type]
        except (GinghamError, TypeError, AttributeError):
            raise GinghamError("fit takes rows (person, question) with answers y, or a wide frame.") from None
        if wide.shape[1] < 2:
            raise GinghamError("A wide frame names the people in its first column; each other one is a question.")
        person, *questions = wide.columns
        people = wide[person].to_list()
        rows = {person: people * len(questions), "question": np.repeat(questions, len(people)).tolist()}
        answers = [answer for name in questions for answer in wide[name].to_list()]
        return frame_of(rows), answers_of(answers)

    def _read(self, at: Ints, labels: AnyArray) -> AnyArray:
        """Find the answers of every question; returns the labels with measurements moved to the nearest step."""
        names = self.modes_[1].items
        given = {str(name): answers_of(answers) for name, answers in (self.scales or {}).items()}
        unknown = [name for name in given if name not in {str(one) for one in names.tolist()}]
        if unknown:
            raise GinghamError(f"scales= names the question {unknown[0]!r}, which the data do not have.")
        labels, found, ordered, measured = labels.astype(object), list[AnyArray](), list[bool](), list[bool]()
        for q, name in enumerate(names.tolist()):
            mine = at == q
            values, scale = np.unique(labels[mine]), given.get(str(name))
            numbers = as_numbers(values)
            if scale is not None and len(outside := np.setdiff1d(values, scale)):
                raise GinghamError(f"The answer {outside[0]!r} to {name!r} is not on the scale that was stated.")
            measured.append(scale is None and numbers is not None and len(numbers) > STEPS)
            if measured[-1]:
                every = labels[mine].astype(np.float64)
                steps = steps_of(every)
                scale = answers_of(steps.tolist())
                labels[mine] = scale[nearest(every, steps)]
            scale = in_order(values) if scale is None else scale
            ordered.append(scale is not None or len(values) == 2)
            found.append(values if scale is None else scale)
        self.alphabet_ = Alphabet.of(np.unique(np.concatenate(found)), given=False)
        sizes = np.array([len(values) for values in found])
        answers = np.full((len(found), int(sizes.max())), -1, dtype=np.int64)
        for q, values in enumerate(found):
            answers[q, : len(values)] = self.alphabet_.encode(values)
        self.questions_ = AnswerScales(names, answers, sizes, np.array(ordered) | (sizes == 1), np.array(measured))
        return labels.astype(str)

    def _as_statements(self, sample: Sample) -> tuple[TableLike, AnyArray, Floats | None]:
        """Rows of people and statements, whether these are true ("yes", "no"), and weights."""
        people, at = sample.codes
        same = self.questions_.answers[at] == np.asarray(sample.label_codes)[:, None]
        codes = np.where(same.any(axis=1), same.argmax(axis=1), -1)  # among those of the question
        apart = self.questions_.apart(at)
        ordered, code = self.questions_.ordered[at][apart.rows], codes[apart.rows]
        true = np.where(ordered, code > apart.steps, code == apart.steps)
        rows = self._rows_of(self.modes_[0].items[people], apart)
        return rows, np.where(true, "yes", "no"), None if sample.weights is None else sample.weights[apart.rows]

    @property
    def _statements(self) -> AnyArray:
        return self.questions_.statements(self.alphabet_.values)

    @property
    def _statement_mode(self) -> Mode:
        return Mode.of(self._statements, "answer")

    def _rows_of(self, people: AnyArray, apart: Statements) -> TableLike:
        """Rows of people and statements, as the model of them takes them."""
        ids = people[apart.rows].tolist(), self._statements[apart.statements].tolist()
        return frame_of(dict(zip((self.modes_[0].name, "answer"), ids)))

    def _bound_sets(self, place: Ints) -> None:
        """The bounds of sets of answers, from the answers that were held out."""
        held, self.model_._held = self.model_._held, None
        n = len(self.questions_.sizes)
        self._least, self._own = np.zeros(0), np.zeros((n, 0))
        if held is None:
            return
        (people, items), chances, true = held
        statement = np.argsort(place)[items]
        question = np.repeat(np.arange(n), self.questions_.n_statements)[statement]
        steps = statement - self.questions_.first[question]
        keys, rows = np.unique(people.astype(np.int64) * n + question, return_inverse=True)
        asked = keys % n
        distribution = self.questions_.together(asked, rows, steps, chances[:, 1])
        reached = np.zeros(distribution.shape)
        reached[rows, steps] = true
        answer = np.where(self.questions_.ordered[asked], reached.sum(axis=1), reached.argmax(axis=1)).astype(np.int64)
        said = distribution[np.arange(len(distribution)), answer]
        self._least = least_probabilities(said, np.ones(len(said)))
        _, kind = np.unique([self.questions_.sizes, self.questions_.ordered], axis=1, return_inverse=True)
        mine = [said[kind[asked] == one] for one in range(kind.max() + 1)]
        bounds = [self._least if len(one) < ENOUGH else least_probabilities(one, np.ones(len(one))) for one in mine]
        self._own = np.array(bounds)[kind]

    # predictions

    def _laws(self, X: TableLike) -> tuple[Ints, Floats]:
        """The question of each row, and the probabilities of its answers, (N, K)."""
        check_is_fitted(self)
        people, asked = self._columns(X, reset=False).columns
        at = self.modes_[1].encode(asked)
        if (at < 0).any():
            raise GinghamError(f"The question {str(asked[np.argmin(at)])!r} was not in the data of the fit.")
        apart = self.questions_.apart(at)
        true: Floats = np.zeros(len(apart.rows))
        if len(true):
            true = self.model_.predict_proba(self._rows_of(people, apart))[:, 1]
        return at, self.questions_.together(at, apart.rows, apart.steps, true)

    def predict_proba(self, X: TableLike) -> Floats:
        """Probability of every answer, (N, n_answers), columns as ``classes_``; 0 for those of other questions."""
        at, distribution = self._laws(X)
        found: Floats = np.zeros((len(at), self.alphabet_.size + 1))
        np.put_along_axis(found, self.questions_.answers[at], distribution, axis=1)  # −1 is the last column
        return found[:, :-1]

    def predict_distribution(self, X: TableLike) -> Floats:
        """The same, but at least .01/n_answers each, which certificates of the log loss need."""
        return floored(self.predict_proba(X), SMOOTHING / self.alphabet_.size)

    def predict(self, X: TableLike) -> AnyArray:
        """The most probable answer to the question of each row, as text."""
        at, distribution = self._laws(X)
        return self.classes_[self.questions_.answers[at, distribution.argmax(axis=1)]]

    def predict_set(self, X: TableLike, level: float = 0.9) -> Bools:
        """Which answers may be the row's, shape (N, n_answers): a set that holds it with about that probability.

        See :meth:`LayeredCoClusteringClassifier.predict_set`. The bound is one for all questions with as many answers,
        where a hundred of theirs were held out.
        """
        if not 0 < level < 1:
            raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
        at, distribution = self._laws(X)
        inside = np.zeros(distribution.shape, dtype=bool)
        for q in np.unique(at):
            inside[at == q] = sets_of(distribution[at == q], level, self._own[q])
        found: Bools = np.zeros((len(at), self.alphabet_.size + 1), dtype=bool)
        np.put_along_axis(found, self.questions_.answers[at], inside & (distribution > 0), axis=1)
        return found[:, :-1]

    def impute(self, frame: Any) -> Any:
        """A wide frame with its empty cells filled: the likeliest name, the median of a scale, the mean measurement.

        Answers that count as missing are filled, too. Other cells stay as they are.
        """
        wide = as_frame(frame)
        person, *questions = wide.columns
        missing = {word.casefold() for word in self.missing}
        columns: dict[str, list[Any]] = {person: wide[person].to_list()}
        for name in questions:
            column = wide[name].to_list()
            texts = answers_of(column).tolist()
            holes = [at for at, text in enumerate(texts) if text.casefold() in missing]
            if holes:
                people = [columns[person][at] for at in holes]
                ids = {self.modes_[0].name: people, self.modes_[1].name: [name] * len(holes)}
                (q, *_), distribution = self._laws(frame_of(ids))
                values = self.classes_[self.questions_.answers[q, : self.questions_.sizes[q]]]
                distribution = distribution[:, : len(values)]
                if self.questions_.measured[q]:
                    column = [None if text.casefold() in missing else float(text) for text in texts]
                    found = (distribution @ values.astype(np.float64)).tolist()
                else:
                    median = np.sum(distribution.cumsum(axis=1)[:, :-1] < 0.5, axis=1)
                    places = median if self.questions_.ordered[q] else distribution.argmax(axis=1)
                    known = dict(zip(texts, column))  # in the type of the column
                    found = [known.get(value, value) for value in values[places].tolist()]
                for hole, value in zip(holes, found):
                    column[hole] = value
            columns[name] = column
        import narwhals as nw

        return nw.from_dict(columns, backend=wide.implementation).to_native()

    # summaries, of people and statements

    def _observed(self, *data: Any) -> Observed:
        if not data:
            return self.model_._observed()
        X, y, weights = (*data, None)[:3]
        ids, _, labels, weights = self._answered(X, y, weights, reset=False)
        at, labels = self.modes_[1].encode(ids[1]), labels.astype(object)
        for q in np.flatnonzero(self.questions_.measured):
            steps = self.classes_[self.questions_.answers[q, : self.questions_.sizes[q]]]
            labels[at == q] = steps[nearest(labels[at == q].astype(np.float64), steps.astype(np.float64))]
        sample = Sample.of(ids, labels.astype(str), weights, modes=self.modes_, alphabet=self.alphabet_)
        return self.model_._observed(*self._as_statements(sample))

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        return self.model_._predict_codes(relation, codes, "yes" if label is None else label)
