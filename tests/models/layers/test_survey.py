"""SurveyCoClustering: questions with scales of their own, holes, sets of answers, files."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gingham as gg
from gingham.data.answers import STEPS, answers_of
from gingham.models import SurveyCoClustering
from gingham.models.layers import Sampler

SMALL = {"n_layers": 3, "baskets": 0, "sampler": Sampler(2, 30, 10), "random_state": 0}
COLOURS = np.array(["red", "green", "blue"])


def survey(n=150, seed=0, holes=0.15):
    """A wide frame with four kinds of questions that one trait decides, with holes, and the answers without any."""
    rng = np.random.default_rng(seed)
    trait = rng.normal(size=n)
    near = lambda: trait + rng.normal(0, 0.3, n)  # noqa: E731
    full = {"person": [f"p{k}" for k in range(n)]}
    for k in range(3):
        full[f"vote {k}"] = np.where(near() > 0, "yes", "no").tolist()
        full[f"grade {k}"] = (1 + np.digitize(near(), [-1, 0, 1])).tolist()
        full[f"colour {k}"] = COLOURS[np.digitize(near(), [-0.5, 0.5])].tolist()
        full[f"income {k}"] = np.round(100 + 10 * near(), 2).tolist()
    gone = {name: rng.random(n) < (0 if name == "person" else holes) for name in full}
    wide = {name: [None if hole else one for one, hole in zip(full[name], gone[name])] for name in full}
    return pl.DataFrame(wide), full, gone


@pytest.fixture(scope="module")
def fitted():
    wide, full, gone = survey()
    return SurveyCoClustering(**SMALL).fit(wide), wide, full, gone


def test_holes_are_filled_better_than_by_the_most_common_answer(fitted):
    model, wide, full, gone = fitted
    filled = model.impute(wide)
    assert filled.schema == wide.schema
    for name, truth in full.items():
        hole, found = gone[name], filled[name].to_list()
        assert [one for one, h in zip(found, hole) if not h] == [one for one, h in zip(truth, hole) if not h]
        if name == "person":
            continue
        true, said = (np.array([one for one, h in zip(values, hole) if h]) for values in (truth, found))
        if name.startswith("income"):
            assert np.sqrt(np.mean((true - said) ** 2)) < 0.7 * np.std(true)
        else:
            values, counts = np.unique(truth, return_counts=True)
            assert np.mean(true != said) < 0.7 * np.mean(true != values[counts.argmax()])


def test_every_question_has_its_own_answers(fitted):
    model = fitted[0]
    X = pl.DataFrame({"person": ["p0"] * 4, "question": ["vote 0", "grade 0", "colour 0", "income 0"]})
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert [(row > 0).sum() for row in chances] == [2, 4, 3, STEPS]
    assert set(model.classes_[chances[2] > 0]) == set(COLOURS)
    assert (model.predict(X) == model.classes_[chances.argmax(axis=1)]).all()
    sets = model.predict_set(X, 0.9)
    assert (sets.sum(axis=1) >= 1).all()
    assert not (sets & (chances == 0)).any()


def test_probabilities_of_answers_are_put_together_by_hand():
    """P(y > 1), P(y > 2) of a scale fall; shares of names add up to one."""
    frame = pd.DataFrame({"person": list("abcd"), "step": [1, 2, 3, 3], "name": list("xyzx")})
    scales = SurveyCoClustering(**SMALL).fit(frame).questions_
    assert dict(zip(scales.names, scales.ordered.tolist())) == {"name": False, "step": True}
    name, step = np.flatnonzero(scales.names == "name")[0], np.flatnonzero(scales.names == "step")[0]
    apart = scales.apart(np.array([step, name, step]))
    assert apart.rows.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert apart.steps.tolist() == [0, 1, 0, 1, 2, 0, 1]
    said = scales.together(
        np.array([step, name, step]), apart.rows, apart.steps, np.array([0.7, 0.4, 0.3, 0.6, 0.3, 0.5, 0.8])
    )
    np.testing.assert_allclose(said, [[0.3, 0.3, 0.4], [0.25, 0.5, 0.25], [0.5, 1 / 300, 0.5 - 1 / 300]], atol=2e-3)


def test_no_answer_is_missing_and_scales_can_be_stated():
    wide, _, _ = survey(60)
    text = wide.with_columns(
        pl.col("grade 0").cast(pl.String).replace({"1": "never", "2": "Prefer not to say", "3": "often", "4": "always"})
    )
    model = SurveyCoClustering(**SMALL, scales={"grade 0": ["never", "often", "always"]}).fit(text)
    question = model.questions_.names.tolist().index("grade 0")
    assert model.classes_[model.questions_.answers[question][:3]].tolist() == ["never", "often", "always"]
    assert model.questions_.ordered[question]
    assert "Prefer not to say" not in model.impute(text)["grade 0"].to_list()
    assert answers_of([1.0, 2, " a ", None, float("nan"), "3.50"]).tolist() == ["1", "2", "a", "", "", "3.50"]


def test_a_file_a_summary_and_rows_say_the_same(fitted, tmp_path):
    model, wide, _, _ = fitted
    model.save(tmp_path / "m.gingham")
    back = gg.load(tmp_path / "m.gingham")
    assert back.impute(wide).equals(model.impute(wide))
    assert [side.name for side in model.summary_.sides] == ["person", "answer"]
    long = wide.select("person", *[pl.col(name).cast(pl.String) for name in wide.columns[1:]]).unpivot(
        index="person", variable_name="question", value_name="answer"
    )
    again = SurveyCoClustering(**SMALL).fit(long.select("person", "question"), long["answer"].to_list())
    X = long.select("person", "question")[:200]
    assert np.mean(again.predict(X) == model.predict(X)) > 0.9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m, w: m.set_params(scales={"grade 0": [1, 2, 3]}).fit(w), "not on the scale"),
        (lambda m, w: m.set_params(scales={"hue": ["a"]}).fit(w), "'hue'"),
        (lambda m, w: m.fit(w.select("person")), "first column"),
        (lambda m, w: m.fit(w.select("person", pl.lit("same").alias("q"))), "one answer only"),
        (lambda m, w: m.fit(w.select("person", pl.lit("refused").alias("q"))), "Every answer is missing"),
        (lambda m, w: m.fit(w).predict(pl.DataFrame({"person": ["p0"], "question": ["q9"]})), "'q9' was not"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(change, words):
    with pytest.raises(gg.GinghamError, match=words):
        change(SurveyCoClustering(1, 2, baskets=0, sampler=Sampler(1, 6, 3)), survey(40)[0])
