"""Loaders read the publishers' formats; downloads are checked, resumed, and refused with advice when offline."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import threading
import zipfile
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from gingham.datasets import load_biogrid, load_foodmart, load_jester, load_movielens, load_newsgroups, public
from gingham.datasets.public import Remote, fetch
from gingham.errors import GinghamError


def zipped(**files: str | bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return stream.getvalue()


@pytest.fixture
def unchecked(monkeypatch):
    """The published checksums do not fit the small stand-ins."""
    files = {key: tuple(Remote(r.name, r.url) for r in remotes) for key, remotes in public.FILES.items()}
    monkeypatch.setattr(public, "FILES", files)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("size", "name", "content"),
    [
        (
            "100k",
            "ml-100k.zip",
            {
                "ml-100k__u_dot_data": "1\t10\t3\t88\n2\t11\t5\t89\n",
                "ml-100k__u_dot_item": "10|Amélie|\n11|Heat|\n".encode("latin-1"),
            },
        ),
        (
            "1m",
            "ml-1m.zip",
            {
                "ml-1m__ratings_dot_dat": "1::10::3::88\n2::11::5::89\n",
                "ml-1m__movies_dot_dat": "10::Amélie::x\n11::Heat::y\n".encode("latin-1"),
            },
        ),
        (
            "10m",
            "ml-10m.zip",
            {
                "ml-10M100K__ratings_dot_dat": "1::10::3::88\n2::11::5::89\n",
                "ml-10M100K__movies_dot_dat": "10::Amélie::x\n11::Heat::y\n",
            },
        ),
        (
            "25m",
            "ml-25m.zip",
            {
                "ml-25m__ratings_dot_csv": "userId,movieId,rating,timestamp\n1,10,3.0,88\n2,11,5.0,89\n",
                "ml-25m__movies_dot_csv": 'movieId,title,genres\n10,Amélie,x\n11,"Heat",y\n',
            },
        ),
    ],
)
def test_movielens_in_all_its_formats(tmp_path, size, name, content):
    (tmp_path / name).write_bytes(zipped(**content))
    data = load_movielens(size, tmp_path, download=False)
    assert data.X.tolist() == [[1, 10], [2, 11]]
    assert data.y.tolist() == [3, 5]
    assert data.names["movie"] == {10: "Amélie", 11: "Heat"}
    assert set(data.y) <= set(data.alphabet)


@pytest.mark.usefixtures("unchecked")
def test_jester_leaves_out_what_was_not_rated(tmp_path):
    for part in (1, 2, 3):
        content = zipped(**{f"jester-data-{part}_dot_csv": "2,99,1.5,-3.25\n1,99,99,9.0\n"})
        (tmp_path / f"jester_dataset_1_{part}.zip").write_bytes(content)
    data = load_jester(tmp_path, download=False)
    assert data.X[:3].tolist() == [[0, 1], [0, 2], [1, 2]]
    assert data.y[:3].tolist() == [1.5, -3.25, 9.0]
    assert len(data.y) == 9


# the first line of a tab2 file, as BioGRID writes it
BIOGRID = (
    "#BioGRID Interaction ID\tEntrez Gene Interactor A\tEntrez Gene Interactor B\tBioGRID ID Interactor A\t"
    "BioGRID ID Interactor B\tSystematic Name Interactor A\tSystematic Name Interactor B\t"
    "Official Symbol Interactor A\tOfficial Symbol Interactor B\tSynonyms Interactor A\t"
    "Synonyms Interactor B\tExperimental System\t"
    "Experimental System Type\tAuthor\tPubmed ID\tOrganism Interactor A\tOrganism Interactor B\tThroughput\tScore\t"
    "Modification\tPhenotypes\tQualifications\tTags\tSource Database"
)


def biogrid_row(a: str, b: str, kind: str) -> str:
    """One interaction; quotes are letters like any other."""
    names = [f"Y{a}", f"Y{b}", a, b]
    experiment = ["Two-hybrid", kind, "Ito T (2001)", "11283351", "559292", "559292", "High", *"-----", "BIOGRID"]
    rest = ['5"-end', "-", *experiment]
    return "\t".join(["1", "2", "3", "4", "5", *names, *rest])


@pytest.mark.usefixtures("unchecked")
def test_biogrid_counts_pairs(tmp_path):
    pairs = [("A", "B"), ("B", "A"), ("A", "A"), ("-", "D")]
    rows = [biogrid_row("A", "C", "genetic"), *(biogrid_row(a, b, "physical") for a, b in pairs)]
    content = "\n".join([BIOGRID, *rows])
    assert {len(line.split("\t")) for line in content.splitlines()} == {24}
    content = zipped(**{"BIOGRID-ORGANISM-Saccharomyces_cerevisiae-3_dot_1_dot_77_dot_tab2_dot_txt": content})
    (tmp_path / "BIOGRID-ORGANISM-3.1.77.tab2.zip").write_bytes(content)
    data = load_biogrid(folder=tmp_path, download=False)
    assert data.X.tolist() == [["A", "B"], ["D", "Y-"]]
    assert data.y.tolist() == [2, 1]
    with pytest.raises(GinghamError, match="no file for organism"):
        load_biogrid("Homo", folder=tmp_path, download=False)


@pytest.mark.usefixtures("unchecked")
def test_another_format_of_biogrid_is_refused(tmp_path):
    content = zipped(**{"BIOGRID-ORGANISM-Saccharomyces_cerevisiae_dot_txt": "INTERACTOR_A\tINTERACTOR_B\nx\ty\n"})
    (tmp_path / "BIOGRID-ORGANISM-3.1.77.tab2.zip").write_bytes(content)
    with pytest.raises(GinghamError, match="tab2 or tab3"):
        load_biogrid(folder=tmp_path, download=False)


def test_foodmart(tmp_path):
    (tmp_path / "sales_fact_1998.csv").write_text("product_id,customer_id,unit_sales\n7,3,2.0\n8,3,1.0\n")
    data = load_foodmart(tmp_path)
    assert data.X.tolist() == [[3, 7], [3, 8]]
    with pytest.raises(GinghamError, match="sales_fact"):
        load_foodmart(tmp_path / "elsewhere")
    (tmp_path / "sales_fact_1999.csv").write_text("product,customer\n7,3\n")
    with pytest.raises(GinghamError, match="no column 'customer_id'"):
        load_foodmart(tmp_path)


@contextlib.contextmanager
def publisher(content: bytes, log: list[str | None], stop_at: int | None = None, ranges: bool = True):
    """A server that understands Range, unless told not to; the first answer may break off."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers.get("Range") if ranges else None
            log.append(wanted)
            start = int(wanted[6:-1]) if wanted else 0
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            last = stop_at if len(log) == 1 else None
            self.wfile.write(content[start:last])

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/file"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


CONTENT = np.random.default_rng(0).bytes(5000)
MD5 = "md5:" + hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


def test_download_is_checked_and_kept(tmp_path):
    log: list[str | None] = []
    with publisher(CONTENT, log) as url:
        path = fetch(Remote("file.bin", url, MD5), tmp_path)
        fetch(Remote("file.bin", url, MD5), tmp_path)
    assert path.read_bytes() == CONTENT
    assert log == [None]


def test_broken_download_goes_on(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:2000])
    log: list[str | None] = []
    with publisher(CONTENT, log) as url:
        path = fetch(Remote("file.bin", url, MD5), tmp_path)
    assert log == ["bytes=2000-"]
    assert path.read_bytes() == CONTENT


def test_complete_part_needs_no_more(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    with publisher(CONTENT, []) as url:
        assert fetch(Remote("file.bin", url, MD5), tmp_path).read_bytes() == CONTENT


def test_changed_file_is_refused(tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT + b"!")
    with pytest.raises(GinghamError, match="not the file that was published"):
        fetch(Remote("file.bin", "http://127.0.0.1:9/", MD5), tmp_path)


def test_first_download_is_remembered(tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT)
    unknown = Remote("file.bin", "http://127.0.0.1:9/")
    fetch(unknown, tmp_path)
    (tmp_path / "file.bin").write_bytes(CONTENT + b"!")
    with pytest.raises(GinghamError, match="not the file that was published"):
        fetch(unknown, tmp_path)


def test_a_download_that_breaks_off_is_taken_up_by_the_next_call(tmp_path):
    log: list[str | None] = []
    with publisher(CONTENT, log, stop_at=3000) as url:
        remote = Remote("file.bin", url, MD5)
        with pytest.raises(GinghamError, match=r"broke off|could not be downloaded"):
            fetch(remote, tmp_path)
        assert not (tmp_path / "file.bin").exists()
        assert fetch(remote, tmp_path).read_bytes() == CONTENT
    assert log == [None, "bytes=3000-"]


def test_a_publisher_that_cannot_go_on_sends_all_again(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"something old")
    with publisher(CONTENT, [], ranges=False) as url:
        assert fetch(Remote("file.bin", url, MD5), tmp_path).read_bytes() == CONTENT


def test_a_page_in_the_place_of_a_file_is_refused(tmp_path):
    with publisher(b"<html>moved</html>", []) as url, pytest.raises(GinghamError, match="not the file that was publ"):
        fetch(Remote("file.bin", url, MD5), tmp_path)


def test_a_set_comes_over_the_wire_and_through_the_command_line(tmp_path, monkeypatch, capsys):
    """From an empty cache folder to a table: download, checksum, format, names."""
    from gingham.cli.app import run

    content = zipped(
        **{
            "ml-100k__u_dot_data": "1\t10\t3\t88\n2\t11\t5\t89\n",
            "ml-100k__u_dot_item": "10|Amélie|\n11|Heat|\n".encode("latin-1"),
        }
    )
    monkeypatch.setenv("GINGHAM_DATA", str(tmp_path / "cache"))
    with publisher(content, []) as url:
        checksum = "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()
        monkeypatch.setattr(public, "FILES", {"movielens-100k": (Remote("ml-100k.zip", url, checksum),)})
        assert run(["datasets", "movielens-100k", "--out", str(tmp_path / "ratings.csv")]) == 0
    assert (tmp_path / "ratings.csv").read_text().splitlines() == ["user,movie,rating", "1,Amélie,3", "2,Heat,5"]
    assert (tmp_path / "cache" / "ml-100k.zip").exists()


def test_offline_gets_advice(tmp_path, monkeypatch):
    monkeypatch.setenv("GINGHAM_DATA", str(tmp_path))
    monkeypatch.setattr(public, "FILES", {"movielens-1m": (Remote("ml-1m.zip", "http://127.0.0.1:9/x.zip"),)})
    with pytest.raises(GinghamError, match=r"is there a network.*put it into"):
        load_movielens("1m")
    with pytest.raises(GinghamError, match="is not there"):
        load_movielens("1m", download=False)


def test_unknown_size():
    with pytest.raises(GinghamError, match="choose 100k"):
        load_movielens("2m")


@pytest.mark.usefixtures("unchecked")
def test_not_the_publishers_file(tmp_path):
    (tmp_path / "ml-1m.zip").write_bytes(b"no zip")
    with pytest.raises(GinghamError, match="damaged"):
        load_movielens("1m", tmp_path, download=False)
    (tmp_path / "ml-1m.zip.sha256").unlink()
    (tmp_path / "ml-1m.zip").write_bytes(zipped(hello="x"))
    with pytest.raises(GinghamError, match=r"has no ratings\.dat"):
        load_movielens("1m", tmp_path, download=False)


def test_newsgroups_come_as_counts_and_say_when_they_cannot(tmp_path, monkeypatch):
    asked = {}

    def fetched(**options):
        asked.update(options)
        return SimpleNamespace(data=["guns and orbits"] * 6 + ["orbits of moons"] * 6, target=np.arange(12) % 2)

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetched)
    counts, groups, words = load_newsgroups(tmp_path)
    assert asked["data_home"] == str(tmp_path)
    assert words.tolist() == ["guns", "moons", "orbits"]
    assert counts.toarray().sum(axis=0).tolist() == [6, 6, 12]
    assert len(groups) == 12

    def offline(**options):
        raise URLError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", offline)
    with pytest.raises(GinghamError, match="is there a network"):
        load_newsgroups(tmp_path)
