"""Loaders read the publishers' formats; downloads are checked, and refused with advice when offline."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import threading
import zipfile

import numpy as np
import pytest

from gingham.datasets import load_movielens, public
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
    files = {key: Remote(file.name, file.url) for key, file in public.FILES.items()}
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
@contextlib.contextmanager
def publisher(content: bytes, log: list[str], stop_at: int | None = None):
    """A server whose first answer may break off."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            log.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: stop_at if len(log) == 1 else None])

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
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


def test_download_is_checked_and_kept(tmp_path):
    log: list[str] = []
    with publisher(CONTENT, log) as url:
        path = fetch(Remote("file.bin", url, MD5), tmp_path)
        fetch(Remote("file.bin", url, MD5), tmp_path)
    assert path.read_bytes() == CONTENT
    assert len(log) == 1


def test_a_download_that_breaks_off_leaves_nothing(tmp_path):
    with publisher(CONTENT, [], stop_at=3000) as url:
        remote = Remote("file.bin", url, MD5)
        with pytest.raises(GinghamError, match=r"could not be downloaded|not the file that was published"):
            fetch(remote, tmp_path)
        assert not list(tmp_path.iterdir())
        assert fetch(remote, tmp_path).read_bytes() == CONTENT


def test_changed_file_is_refused(tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT + b"!")
    with pytest.raises(GinghamError, match="not the file that was published"):
        fetch(Remote("file.bin", "http://127.0.0.1:9/", MD5), tmp_path)


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
        checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()
        monkeypatch.setattr(public, "FILES", {"movielens-100k": Remote("ml-100k.zip", url, checksum)})
        assert run(["datasets", "movielens-100k", "--out", str(tmp_path / "ratings.csv")]) == 0
    assert (tmp_path / "ratings.csv").read_text().splitlines() == ["user,movie,rating", "1,Amélie,3", "2,Heat,5"]
    assert (tmp_path / "cache" / "ml-100k.zip").exists()


def test_offline_gets_advice(tmp_path, monkeypatch):
    monkeypatch.setenv("GINGHAM_DATA", str(tmp_path))
    monkeypatch.setattr(public, "FILES", {"movielens-1m": Remote("ml-1m.zip", "http://127.0.0.1:9/x.zip")})
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
    (tmp_path / "ml-1m.zip").write_bytes(zipped(hello="x"))
    with pytest.raises(GinghamError, match=r"has no ratings\.dat"):
        load_movielens("1m", tmp_path, download=False)
