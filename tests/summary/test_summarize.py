"""Summaries of planted and of structureless data: sizes, names, facts, errors, and what a page gets."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.data import Mode
from gingham.summary import sizes
from gingham.summary.item_tables import facts_of, properties_of
from gingham.summary.measure import additive_effects
from gingham.summary.names import alike, short_titles, telling
from gingham.summary.sizes import Curve, pooled
from gingham.summary.values import measure_named

TOPICS = {"ships": ["ship", "sail", "harbour", "anchor", "captain", "deck"],
          "bread": ["bread", "flour", "oven", "yeast", "crust", "dough"],
          "chess": ["chess", "pawn", "bishop", "castle", "queen", "mate"]}  # fmt: skip
WORDS = [word for words in TOPICS.values() for word in words] + ["page", "thing", "people"]


def label_values(rng, n=60):
    """Documents of three topics over their words and three that all share."""
    topic = np.arange(n) % 3
    rates = np.full((n, len(WORDS)), 0.05)
    for t in range(3):
        rates[np.ix_(topic == t, range(6 * t, 6 * t + 6))] = 1.5
    rates[:, 18:] = 1.0
    return rng.poisson(rates), topic


def tastes(rng, effect=0.8, n=4000):
    X = np.column_stack([rng.integers(0, 60, n), rng.integers(0, 40, n)])
    y = 3 + 0.5 * rng.normal(size=60)[X[:, 0]] + 0.5 * rng.normal(size=40)[X[:, 1]] + 0.5 * rng.normal(size=n)
    return X, y + np.where(X[:, 0] % 2 == X[:, 1] % 2, effect, -effect)


@pytest.fixture(scope="module")
def documents():
    counts, topic = label_values(np.random.default_rng(0))
    names = {"document": [f"d{i}" for i in range(60)], "word": WORDS}
    info = pl.DataFrame(
        {"document": names["document"], "year": 1990 + topic * 10, "kind": ["sea", "kitchen", "board"] * 20}
    )
    return gg.CoOccurrenceClustering(8, random_state=0).fit(counts, names=names, item_info={"document": info}), topic


def test_planted_topics_are_read_with_their_names(documents):
    model, topic = documents
    summary = model.summary_
    assert summary.found
    assert max(summary.size_by_rule) > 1
    labels = summary.sides[0].labels(3)
    assert all(len(set(labels[topic == t].tolist())) == 1 for t in range(3))
    for cluster in summary.sides[0].cut(3):
        assert any(set(cluster.words) <= set(words) for words in TOPICS.values())
        assert cluster.coverage > 0.9
    shared = [cluster for cluster in summary.sides[1].cut(4) if cluster.shared]
    assert [set(cluster.words) for cluster in shared] == [{"page", "thing", "people"}]
    assert shared[0].name.startswith("shared: ")


def test_facts_of_side_columns_are_found(documents):
    model, _ = documents
    for cluster in model.summary_.sides[0].cut(3):
        assert cluster.facts[0].inside == 1.0
        assert cluster.facts[0].outside == 0.0
        assert {fact.text for fact in cluster.facts} & {"sea", "kitchen", "board"}


def test_boards_are_lifts_of_the_planted_blocks(documents):
    board = documents[0].summary_.board((3, 4))
    best = board.values.max(axis=1)
    assert (best > 2).all()
    assert board.counts.sum() == documents[0].blocks_.sum()
    assert {board.text(i, j)[0] for i in range(3) for j in range(4)} <= set("×÷·")


def test_a_page_gets_plain_values_and_can_work_out_any_size(documents):
    summary = documents[0].summary_
    data = json.loads(json.dumps(summary.to_dict()))
    for side in data["sides"]:
        assert len(side["clusters"]) == 2 * side["n_leaves"] - 1
        assert sum(c["size"] for c in side["clusters"][: side["n_leaves"]]) == side["n_items"]
        assert np.all(np.diff(side["heights"]) >= -1e-9)
        assert sum(side["heights"]) == pytest.approx(1.0, abs=1e-2)  # one cluster explains nothing
    table = data["tables"][0]
    sums = np.array(table["sums"])
    groups = [side.groups(2) for side in summary.sides]
    coarse = np.array([[sums[np.ix_(groups[0] == a, groups[1] == b)].sum() for b in range(2)] for a in range(2)])
    assert summary.board((2, 2)).counts == pytest.approx(coarse)


def test_a_saved_model_keeps_its_summary(documents, tmp_path):
    model, _ = documents
    before = model.summary_
    model.save(tmp_path / "m.gingham")
    loaded = gg.load(tmp_path / "m.gingham")
    assert loaded.summary_.to_dict() == before.to_dict()
    assert loaded.describe().equals(model.describe())
    with pytest.raises(gg.GinghamError, match="Hand them over"):
        gg.summarize(loaded)


def test_numbers_are_shown_in_the_clusters_that_the_model_predicts_with():
    X, y = tastes(np.random.default_rng(1))
    model = gg.CoClusteringRegressor(n_clusters=4, loss="quadratic", random_state=0).fit(X, y)
    summary = model.summary_
    assert summary.size == tuple(len(np.unique(labels)) for labels in model.labels_)
    for side, own in zip(summary.sides, model.labels_):
        assert adjusted_rand_score(side.labels(side.n_leaves), own) == 1.0
    names = list(summary.errors.scores)
    assert names == ["this model", "one constant", "row averages", "column averages", "both averages"]


@pytest.mark.parametrize("kind", ["counts", "shuffled", "additive", "graph"])
def test_nothing_is_found_where_there_is_nothing(kind):
    rng = np.random.default_rng(2)
    if kind == "counts":
        model = gg.CoOccurrenceClustering(10, random_state=0).fit(
            rng.poisson(0.5, (60, 50)) * rng.geometric(0.4, (60, 50))
        )
    elif kind == "graph":
        edges = np.triu(rng.random((60, 60)) < 0.2, 1)
        model = gg.GraphClustering(5, random_state=0).fit((edges | edges.T).astype(float))
    else:
        X, y = tastes(rng, effect=0.0)
        model = gg.CoClusteringRegressor(4, loss="quadratic", random_state=0)
        model.fit(X, y if kind == "additive" else rng.permutation(y))
    summary = model.summary_
    assert not summary.found
    assert set(summary.size_by_rule) == {1}
    assert summary.size == tuple(side.n_leaves for side in summary.sides)  # what was asked for is shown all the same
    assert summary.verdict.startswith("No structure")


def test_given_small_sizes_are_read_as_given(documents):
    counts, _ = label_values(np.random.default_rng(0))
    summary = gg.CoOccurrenceClustering((5, 6), random_state=0).fit(counts).summary_
    assert summary.size == (5, 6)
    assert "were asked for" in summary.why


def test_a_curve_keeps_what_its_share_asks():
    curve = Curve([(3, 3), (2, 3), (2, 2), (1, 2), (1, 1)], np.array([1.0, 0.9, 0.6, 0.2, 0.0]), np.full(5, 0.01))
    assert curve.keeping(0.5) == (2, 2)
    assert curve.keeping(0.8) == (2, 3)
    assert not Curve(curve.sizes, curve.gains, np.full(5, 1.0)).found
    assert pooled([curve, curve]).gains == pytest.approx(curve.gains)


def test_additive_effects_are_those_of_least_squares_with_shrinkage():
    rng = np.random.default_rng(3)
    codes = (rng.integers(0, 4, 300), rng.integers(0, 3, 300))
    y = rng.normal(size=4)[codes[0]] + rng.normal(size=3)[codes[1]]
    design = np.hstack([np.eye(4)[codes[0]], np.eye(3)[codes[1]]])
    effects = np.linalg.solve(design.T @ design + 5 * np.eye(7), design.T @ (y - y.mean()))
    found = additive_effects(codes, (4, 3), y, None, shrinkage=5.0)
    assert found.at(codes) == pytest.approx(y.mean() + design @ effects, abs=2e-3)


def test_two_forms_of_a_word_are_one():
    assert alike("library", "libraries")
    assert alike("key", "keys")
    assert not alike("ship", "sail")
    assert not alike("The Key", "The Keys")


def test_numbers_and_ids_tell_nothing():
    assert telling(["ship", "sail", "deck"])
    assert not telling(["1", "2", "3"])
    assert not telling([f"user {i}" for i in range(9)])


def test_false_discoveries_are_rare():
    """Properties dealt out at random: 200 columns, ten clusters, hardly a fact."""
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"item": range(300), **{f"p{j}": rng.integers(0, 2, 300) for j in range(200)}})
    properties = properties_of(frame, Mode("item", np.arange(300)))
    assert len(properties.texts) == 200
    members = [np.flatnonzero(np.arange(300) % 10 == c) for c in range(10)]
    assert sum(len(found) for found in facts_of(properties, members)) <= 3


def test_columns_become_properties():
    films = list("abcdefgh")
    frame = pl.DataFrame(
        {
            "film": films,
            "genres": ["War|Drama", "Drama", "War", "Comedy"] * 2,
            "year": [1951, 1962, 1973, 1984] * 2,
            "sex": ["M", "F"] * 4,
        }
    )
    found = properties_of(frame, Mode("film", np.array(films)))
    assert {"War", "Drama", "Comedy", "1950s", "sex M"} <= set(found.texts)
    assert found.flags[:, found.texts.index("War")].tolist() == [True, False, True, False] * 2
    with pytest.raises(gg.GinghamError, match="contains none of them"):
        properties_of(frame, Mode("film", np.array(["x"])))


@pytest.mark.parametrize(("measure", "value", "far", "text"), [
    ("lift", 3.34, 9, "×3.3"), ("lift", 0.1, 9, "÷10"), ("lift", 1.05, 9, "·"), ("lift", 1e-4, 9, "almost none"),
    ("difference", 0.21, 0.6, "+0.2"), ("difference", -0.41, 0.6, "−0.4"), ("difference", 0.03, 0.6, "·"),
    ("difference", 0.03, 0.04, "+0.03"), ("difference", 12.34, 40, "+12.3"), ("difference", -1234.5, 2000, "−1234"),
    ("labels", 0.8, 1, "yes 80%"),
])  # fmt: skip
def test_cells_in_words(measure, value, far, text):
    assert measure_named(measure).text(value, "yes", far) == text


def test_info_about_a_side_that_is_not_there_is_refused():
    counts, _ = label_values(np.random.default_rng(0))
    model = gg.CoOccurrenceClustering(3, random_state=0).fit(counts)
    with pytest.raises(gg.GinghamError, match="side 'movie'"):
        gg.summarize(model, item_info={"movie": pl.DataFrame({"movie": [1]})})


def test_a_name_that_says_what_it_is_gets_no_second_word():
    counts = np.random.default_rng(0).poisson(np.kron([[3, 1], [1, 3]], np.ones((10, 8))))
    names = {"shop": [f"shop {i}" for i in range(20)], "thing": [f"{j}" for j in range(16)]}
    summary = gg.summarize(gg.CoOccurrenceClustering(2, random_state=0).fit(counts, names=names))
    assert all(cluster.name.startswith("shop ") for cluster in summary.sides[0].cut(2))
    assert not any("shop shop" in cluster.name for cluster in summary.sides[0].clusters)
    assert all(cluster.name.startswith("thing ") for cluster in summary.sides[1].cut(2))


def test_titles_are_said_as_people_say_them() -> None:
    titles = [
        "Fargo (1996)",
        "Saint, The (1997)",
        "Postino, Il (1994)",
        "Independence Day (ID4) (1996)",
        "Sabrina (1954)",
    ]
    said = ["Fargo", "The Saint", "Postino, Il", "Independence Day", "Sabrina"]
    assert short_titles(titles) == said
    assert short_titles([*titles, "Sabrina (1995)"])[4:] == ["Sabrina (1954)", "Sabrina (1995)"]
    assert short_titles(["milk (1997)", "bread", "tea"]) == ["milk (1997)", "bread", "tea"]  # not a habit of these


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_only_stand_for_averages_are_no_structure(seed) -> None:
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((150, 120)) < 0.3)
    effects = rng.normal(0, 0.5, 150)[X[:, 0]] + rng.normal(0, 0.5, 120)[X[:, 1]]
    y = np.clip(np.round(3 + effects + 0.9 * rng.normal(size=len(X))), 1, 5)
    plain = {"loss": "quadratic", "offsets": False, "random_state": 0}
    with pytest.warns(gg.AdviceWarning, match="no better than averages"):
        summary = gg.CoClusteringRegressor((6, 6), **plain).fit(X, y).summary_
    assert not summary.found
    assert summary.size == (6, 6)
    y = y + np.where(X.sum(axis=1) % 2, 0.5, -0.5)
    assert gg.CoClusteringRegressor((6, 6), **plain).fit(X, y).summary_.found


def test_what_is_held_out_tells_nothing_of_the_clusters_that_it_tests(monkeypatch):
    told, own_clusters = [], sizes.own_clusters
    monkeypatch.setattr(
        sizes, "own_clusters", lambda seen, known: told.append(seen.relations[0].n_entries) or own_clusters(seen, known)
    )
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (2000, 2))
    y = np.where((X[:, 0] < 15) == (X[:, 1] < 10), 5, 1)
    gg.summarize(gg.CoClusteringRegressor((2, 2), alphabet=range(1, 6), random_state=0).fit(X, y))
    assert told[0] < 0.95 * len(y)  # all rows come last, for what is shown


def test_lists_are_divided_at_commas_where_their_parts_come_again():
    from gingham.summary.item_tables import _flags

    lists = np.array(["cow", "cow, raw", "goat", "goat, raw", "sheep, raw", "sheep"], dtype=object)
    assert {name: flag.tolist().count(True) for name, flag in _flags("milk", lists)} == {
        "cow": 2, "goat": 2, "raw": 3, "sheep": 2,
    }  # fmt: skip
    names = np.array(["Smith, John", "Miller, Ann", "Baker, Lou"], dtype=object)
    assert [name for name, _ in _flags("name", names)] == ["Baker, Lou", "Miller, Ann", "Smith, John"]


@pytest.mark.parametrize("separator", [",", ", ", "|", ";"])
@pytest.mark.parametrize("n", [3, 8, 300])
def test_genres_are_recognised_whatever_their_combinations(separator, n):
    rng = np.random.default_rng(n)
    every = np.array(["Action", "Comedy", "Drama", "Film-Noir", "Sci-Fi", "War", "Western"])
    films = np.arange(n)
    if n == 3:
        genres = [["Comedy", "Drama"], ["Drama"], ["Comedy", "War"]]
    else:  # of eight films, each has a combination of its own
        genres = [sorted(rng.choice(every, rng.integers(1, 4), replace=False)) for _ in films]
    table = pl.DataFrame({"film": films, "genres": [separator.join(own) for own in genres]})
    found = properties_of(table, Mode("film", films))
    assert found.titles is None
    assert sorted(found.texts) == sorted({genre for own in genres for genre in own})
    for genre, flag in zip(found.texts, found.flags.T):
        assert flag.tolist() == [genre in own for own in genres]


def test_titles_with_commas_stay_titles():
    titles = ["Usual Suspects, The", "Seven", "American President, The", "Monsters, Inc.", "Net, The", "Jumanji"]
    found = properties_of(pl.DataFrame({"film": range(6), "called": titles}), Mode("film", np.arange(6)))
    assert found.titles.tolist() == titles
    assert found.texts == []
