"""The page is one file, loads nothing, and shows names as text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from gingham.report import predictor, render, summarize
from gingham.report.page import embedded_json


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def page(fitted):
    model = fitted[0]
    return render(summarize(model.summary_, model._observed(), predictor(model), title="<b>&'\""))


def tags_of(page):
    parser = Tags()
    parser.feed(page)
    return parser.tags


def test_names_make_no_markup(page):
    tags = tags_of(page)
    assert [tag for tag, _ in tags].count("script") == 2
    assert "img" not in [tag for tag, _ in tags]
    assert "b" not in [tag for tag, _ in tags]


def test_nothing_is_loaded(page):
    for tag, attributes in tags_of(page):
        assert tag not in ("iframe", "object", "embed")
        for name in ("src", "href"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:", "#"))
    assert "default-src 'none'" in page


def test_data_survive(page, fitted):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    data = json.loads(found.group(1))
    assert set(data["sides"][0]["items"]["names"]) == {str(item) for item in fitted[0].items_[0]}
    assert data["title"] == "<b>&'\""


@pytest.mark.parametrize("text", ["</script>", "<!--", "&lt;", "\u2028", "]]>"])
def test_embedded_json_cannot_end_the_element(text):
    packed = embedded_json({"x": text, "nan": float("nan")})
    assert "<" not in packed
    assert ">" not in packed
    assert json.loads(packed) == {"x": text, "nan": None}
