"""gingham fit --model ranking, gingham recommend."""

import io

import numpy as np
import polars as pl
import pytest


@pytest.fixture(scope="module")
def purchases(tmp_path_factory):
    rng = np.random.default_rng(0)
    customer = rng.integers(0, 120, 2000)
    product = 2 * rng.integers(0, 12, 2000) + customer % 2
    path = tmp_path_factory.mktemp("ranking") / "purchases.csv"
    pl.DataFrame({"customer": customer, "product": [f"p{p:02d}" for p in product], "n": 1}).write_csv(path)
    return path


@pytest.fixture
def model(gingham, purchases, tmp_path):
    out = tmp_path / "m.gingham"
    ran = gingham("fit", purchases, "--model", "ranking", "--axes", "customer,product", "--out", out)
    assert ran.code == 0, ran.err
    assert "pairs" in ran.out
    return out


def test_lists_with_reasons(gingham, model):
    ran = gingham("recommend", model, "--users", "3,4", "-n", 3)
    assert ran.code == 0, ran.err
    table = pl.read_csv(io.StringIO(ran.out))
    assert table.columns == ["user", "item", "place", "score", "base", "reasons"]
    assert table["user"].to_list() == [3] * 3 + [4] * 3


def test_lists_of_everybody_go_to_a_file(gingham, model, tmp_path):
    out = tmp_path / "lists.parquet"
    assert gingham("recommend", model, "--all", "-n", 2, "--out", out).code == 0
    assert pl.read_parquet(out).height == 240


def test_a_new_basket(gingham, model):
    ran = gingham("recommend", model, "--basket", "p00,p02", "-n", 2)
    assert ran.code == 0, ran.err
    assert all(int(item[1:]) % 2 == 0 for item in pl.read_csv(io.StringIO(ran.out))["item"])


def test_the_page(gingham, model, tmp_path):
    page = tmp_path / "page.html"
    assert gingham("recommend", model, "--users", "3", "--items", "p01", "--page", page).code == 0
    assert "p01" in page.read_text("utf-8")


def test_lists_that_obey_rules(gingham, model, tmp_path):
    info = tmp_path / "products.csv"
    brands = pl.DataFrame({"product": [f"p{p:02d}" for p in range(24)], "brand": [f"b{p % 6}" for p in range(24)]})
    brands.write_csv(info)
    ran = gingham("recommend", model, "--users", "3,4", "-n", 4, "--seen", "--info", info, "--at-most", "brand=1",
                  "--at-least", "brand:b0=1", "--at-least", "long_tail=0.25", "--exclude", "p01")  # fmt: skip
    assert ran.code == 0, ran.err
    table = pl.read_csv(io.StringIO(ran.out)).join(brands, left_on="item", right_on="product")
    assert {"free_place", "rule"} <= set(table.columns)
    for _, part in table.group_by("user"):
        assert part["brand"].n_unique() == 4
        assert "b0" in part["brand"].to_list()
        assert "p01" not in part["item"].to_list()
    only = gingham("recommend", model, "--users", "3", "-n", 4, "--seen", "--only", "p05,p07")
    assert set(pl.read_csv(io.StringIO(only.out))["item"]) == {"p05", "p07"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--users", "3", "--at-most", "brand"], "must have the form COLUMN=NUMBER"),
        (["--users", "3", "--at-most", "brand=3"], "give a table about items"),
        ([], "Name the users"),
        (["--users", "3", "--all"], "Name the users"),
        (["--users", "9999"], "has no user '9999'"),
        (["--basket", "caviar"], "has no item 'caviar'"),
    ],
)
def test_mistakes_get_a_sentence(gingham, model, options, words):
    ran = gingham("recommend", model, *options)
    assert ran.code == 2
    assert words in ran.err


def test_options_of_other_kinds_are_refused(gingham, purchases, tmp_path):
    ran = gingham("fit", purchases, "--model", "ranking", "--axes", "customer,product", "--beta", 2,
                  "--out", tmp_path / "m")  # fmt: skip
    assert ran.code == 2
    assert "no use for --beta" in ran.err
    other = tmp_path / "other.gingham"
    assert gingham("fit", purchases, "--model", "cooccurrence", "--axes", "customer,product", "--clusters", "2,2",
                   "--out", other).code == 0  # fmt: skip
    assert "is not a ranking" in gingham("recommend", other, "--all").err


def test_titles_stand_in_lists_and_reasons_and_can_be_typed(gingham, purchases, tmp_path):
    info, out = tmp_path / "products.csv", tmp_path / "titled.gingham"
    words = [
        f"{a} {b}" for a in ("red", "green", "blue", "white") for b in ("soap", "tea", "rope", "salt", "ink", "nuts")
    ]
    pl.DataFrame({"product": [f"p{p:02d}" for p in range(24)], "title": words}).write_csv(info)
    ran = gingham("fit", purchases, "--model", "ranking", "--axes", "customer,product", "--info", f"product={info}",
                  "--out", out)  # fmt: skip
    assert ran.code == 0, ran.err
    ran = gingham("recommend", out, "--basket", "red soap,red rope", "-n", 3)
    table = pl.read_csv(io.StringIO(ran.out))
    titles = dict(zip((f"p{p:02d}" for p in range(24)), words))
    assert [titles[item] for item in table["item"]] == table["title"].to_list()
    assert not table["reasons"].str.contains(r"p\d\d").any()
