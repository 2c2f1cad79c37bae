"""The page of a ranking: what it shows, and that data stay text."""

import numpy as np
import pytest

import gingham as gg
from gingham.report import ranking


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 150, 2500)
    item = 2 * rng.integers(0, 12, 2500) + user % 2
    names = {i: f"thing {i}" for i in range(24)} | {3: "<script>alert(1)</script>"}
    return gg.BasketRanker(names=names, n_groups=2, random_state=0).fit(np.column_stack([user, item]))


def test_the_page_shows_boards_users_items_and_a_certificate(model, tmp_path):
    certificate = gg.certify_ranking({0: [1]}, [[0, 1]])
    path = tmp_path / "page.html"
    ranking.write(model, path, users=[0, 1], items=[4], n=3, certificate=certificate, title="Shop")
    page = path.read_text(encoding="utf-8")
    assert "<title>Shop</title>" in page
    assert "the mean miss rate at 20" in page
    assert page.count("<h2>For ") == 2
    assert "thing 4" in page
    assert "http" not in page.replace("http-equiv", "")


def test_ids_are_text_never_markup(model):
    page = ranking.render(ranking.summarize(model, users=[1], items=[3], n=12))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_reasons_on_the_page_are_those_of_the_model(model):
    summary = ranking.summarize(model, users=[0], n=2)
    _, score, reasons = summary["users"][0]["rows"][0]
    why = model.explain(0, [model.top([0], 1)[0][0]])[0]
    assert score == why.score
    assert {group for _, group in reasons} <= set(why.groups)
    assert max(abs(share) for share, _ in reasons) == pytest.approx(np.abs(why.shares).max())
