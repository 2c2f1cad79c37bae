"""MovieLens in its publisher's formats, as rows of ids and titles; files are downloaded once and checked."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import AnyArray
from gingham.errors import GinghamError
from gingham.files import atomic

TIMEOUT = 30.0


@dataclass(frozen=True)
class Remote:
    """A file at its publisher, with its MD5 checksum where the publisher states one."""

    name: str
    url: str
    md5: str | None = None


MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
FILES = {
    "movielens-100k": Remote("ml-100k.zip", MOVIELENS + "ml-100k.zip", "0e33842e24a9c977be4e0107933c0723"),
    "movielens-1m": Remote("ml-1m.zip", MOVIELENS + "ml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"),
    "movielens-10m": Remote("ml-10m.zip", MOVIELENS + "ml-10m.zip", "ce571fd55effeba0271552578f2648bd"),
    "movielens-25m": Remote("ml-25m.zip", MOVIELENS + "ml-25m.zip", "6b51fb2759a8657d3bfcbfc42b592ada"),
}


class Loaded(NamedTuple):
    """Observations of a data set."""

    X: AnyArray  # (N, d), the publisher's ids
    y: AnyArray  # (N,)
    axes: tuple[str, ...]  # names of the columns of X
    # mapping from axis to a mapping from id to name, where the publisher gives names
    names: Mapping[str, Mapping[Any, str]]
    alphabet: AnyArray | None  # the possible labels, or None


def load_movielens(
    size: str = "100k", folder: str | os.PathLike[str] | None = None, *, download: bool = True
) -> Loaded:
    """MovieLens 100k, 1m, 10m or 25m: (user, movie) → stars."""
    key = f"movielens-{size.lower()}"
    if key not in FILES:
        raise GinghamError(f"size={size!r} is unknown; choose 100k, 1m, 10m or 25m.")
    path = fetch(FILES[key], folder, download=download)
    with open_zip(path) as archive:
        if key == "movielens-100k":
            ratings = table(archive, "u.data", "ascii")
            titles = {int(row[0]): row[1] for row in lines(archive, "u.item", "|", "latin-1")}
        elif key == "movielens-25m":
            ratings = table(archive, "ratings.csv", "utf-8", skip=1)
            rows = csv.reader(io.TextIOWrapper(archive.open(member(archive, "movies.csv")), "utf-8"))
            titles = {int(row[0]): row[1] for at, row in enumerate(rows) if at}
        else:
            ratings = table(archive, "ratings.dat", "ascii")
            coding = "latin-1" if key == "movielens-1m" else "utf-8"
            titles = {int(row[0]): row[1] for row in lines(archive, "movies.dat", "::", coding)}
    halves = key in ("movielens-10m", "movielens-25m")
    stars = np.arange(0.5, 5.01, 0.5) if halves else np.arange(1, 6)
    y = ratings[:, 2] if halves else ratings[:, 2].astype(np.int64)
    return Loaded(ratings[:, :2].astype(np.int64), y, ("user", "movie"), {"movie": titles}, stars)


def open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise GinghamError(f"{str(path)!r} is not a zip file, or it is damaged. Delete it and try again.") from None


def member(archive: zipfile.ZipFile, name: str) -> str:
    for full in archive.namelist():
        if full.rsplit("/", 1)[-1] == name:
            return full
    raise GinghamError(f"{archive.filename!r} has no {name}: it is not the publisher's file.")


def lines(archive: zipfile.ZipFile, name: str, separator: str, coding: str) -> list[list[str]]:
    text = archive.read(member(archive, name)).decode(coding)
    return [line.split(separator) for line in text.splitlines() if line.strip()]


def table(archive: zipfile.ZipFile, name: str, coding: str, skip: int = 0) -> AnyArray:
    """The first three columns as numbers, shape (N, 3)."""
    text = archive.read(member(archive, name)).decode(coding).replace("::", ",").replace("\t", ",")
    try:
        return np.loadtxt(io.StringIO(text), delimiter=",", usecols=(0, 1, 2), skiprows=skip, ndmin=2)
    except ValueError as error:
        raise GinghamError(f"{name} in {archive.filename!r} is not readable: {error}.") from None


def data_folder() -> Path:
    """GINGHAM_DATA, or a folder in the user's cache."""
    given = os.environ.get("GINGHAM_DATA")
    return Path(given) if given else Path.home() / ".cache" / "gingham"


def fetch(remote: Remote, folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> Path:
    """The local path of a file, downloaded if it is not there; a damaged file is refused."""
    home = data_folder() if folder is None else Path(folder)
    path = home / remote.name
    if not path.is_file():
        if not download:
            raise GinghamError(_advice(remote, home, "is not there"))
        home.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(remote.url, timeout=TIMEOUT) as answer, atomic(path) as stream:
                stream.write(answer.read())  # of a whole file: an answer that breaks off is an error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            what = f"could not be downloaded ({reason}); is there a network?"
            raise GinghamError(_advice(remote, home, what)) from None
    if remote.md5 is not None:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found != remote.md5:
            raise GinghamError(
                f"{str(path)!r} is not the file that was published (MD5 {found}, expected {remote.md5}). Delete it and "
                "download it again."
            )
    return path


def _advice(remote: Remote, home: Path, what: str) -> str:
    return (
        f"{remote.name} {what}. Get it from {remote.url} and put it into {str(home)!r} "
        "(or set GINGHAM_DATA to the folder that has it)."
    )
