"""gingham path: a table over β, the best of each criterion, a picture."""

from __future__ import annotations

import json


def test_path_prints_a_table_and_writes_a_picture(gingham, ratings, tmp_path):
    picture = tmp_path / "path.png"
    common = ("path", ratings, "--axes", "user,movie", "--label", "rating", "--clusters", "3", "--alphabet", "1..5")
    ran = gingham(*common, "--betas", "2,.5", "--cv", 2, "--json", "--plot", picture)
    assert ran.code == 0, ran.err
    facts = json.loads(ran.out)
    assert facts["path"]["beta"] == [2.0, 0.5]
    assert set(facts["best"]) == {"cv", "one-se", "certificate"}
    assert facts["path"]["certificate"][1] > facts["path"]["loss"][1]
    assert picture.stat().st_size > 5000
    ran = gingham(*common, "--betas", "1", "--cv", 0)
    assert ran.code == 0
    assert "certificate" in ran.out


def test_bad_betas_are_refused_with_a_sentence(gingham, ratings):
    ran = gingham("path", ratings, "--axes", "user,movie", "--label", "rating", "--betas", "a lot")
    assert ran.code == 2
    assert "--betas" in ran.err
