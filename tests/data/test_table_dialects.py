"""Tables as spreadsheets write them: semicolons, tabs, decimal commas, Excel files."""

from __future__ import annotations

import builtins
import zipfile

import polars as pl
import pytest

from gingham.data.table_files import read_table
from gingham.errors import GinghamError

TABLE = pl.DataFrame({"user": ["a;1", "b", "c"], "film": [1, 2, 2], "stars": [3.5, None, 1.25]})


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_csv_file_is_found(tmp_path, separator):
    path = tmp_path / "t.csv"
    TABLE.write_csv(path, separator=separator)
    assert read_table(str(path)).equals(TABLE)


def test_decimal_commas_are_numbers_where_commas_separate_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user;film;stars;price\na;1,5;3,5;1\nb;2;NA;-2,25\nc;x;4;3\n")
    table = read_table(str(path), is_id="film".__eq__)
    assert table["stars"].to_list() == [3.5, None, 4.0]
    assert table["price"].to_list() == [1.0, -2.25, 3.0]
    assert table["film"].to_list() == ["1,5", "2", "x"]  # ids keep their text
    path.write_text('user,price\na,"1,234"\nb,"2,5"\n')
    assert read_table(str(path))["price"].to_list() == ["1,234", "2,5"]  # thousands, or decimals: nobody can tell
    path.write_text("user;words\na;one, two\nb;1,5\n")
    assert read_table(str(path))["words"].to_list() == ["one, two", "1,5"]


SHEET = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
<row r="1"><c r="A1" t="inlineStr"><is><t>user</t></is></c><c r="B1" t="inlineStr"><is><t>stars</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>a</t></is></c><c r="B2"><v>3</v></c></row></sheetData></worksheet>"""
PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="s" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="worksheets/sheet1.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/></Relationships>',
    "xl/worksheets/sheet1.xml": SHEET,
}


@pytest.fixture
def workbook(tmp_path):
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in PARTS.items():
            archive.writestr(name, text)
    return str(path)


def test_an_excel_file_is_read(workbook):
    pytest.importorskip("fastexcel")
    assert read_table(workbook).rows() == [("a", 3)]


def test_an_excel_file_without_its_reader_says_what_to_install(workbook, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "fastexcel":
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(GinghamError, match=r"install gingham\[excel\]"):
        read_table(workbook)
