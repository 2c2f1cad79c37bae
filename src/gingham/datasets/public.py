"""Public data sets in their publishers' formats, as tuples and names; files are downloaded once and checked."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.errors import GinghamError

CHUNK = 2**20
TIMEOUT = 30.0


@dataclass(frozen=True)
class Remote:
    """A file at its publisher.

    ``checksum`` is "md5:…" or "sha256:…"; without one, the first download is remembered and later ones
    must equal it.
    """

    name: str
    url: str
    checksum: str | None = None


MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
FILES = {
    "movielens-100k": (Remote("ml-100k.zip", MOVIELENS + "ml-100k.zip", "md5:0e33842e24a9c977be4e0107933c0723"),),
    "movielens-1m": (Remote("ml-1m.zip", MOVIELENS + "ml-1m.zip", "md5:c4d9eecfca2ab87c1945afe126590906"),),
    "movielens-10m": (Remote("ml-10m.zip", MOVIELENS + "ml-10m.zip", "md5:ce571fd55effeba0271552578f2648bd"),),
    "movielens-25m": (Remote("ml-25m.zip", MOVIELENS + "ml-25m.zip", "md5:6b51fb2759a8657d3bfcbfc42b592ada"),),
    "jester": tuple(
        Remote(f"jester_dataset_1_{part}.zip", f"https://eigentaste.berkeley.edu/dataset/jester_dataset_1_{part}.zip")
        for part in (1, 2, 3)
    ),
    "biogrid-yeast": (
        Remote(
            "BIOGRID-ORGANISM-3.1.77.tab2.zip",
            "https://downloads.thebiogrid.org/Download/BioGRID/Release-Archive/BIOGRID-3.1.77/"
            "BIOGRID-ORGANISM-3.1.77.tab2.zip",
        ),
    ),
}

BIOGRID_KIND = "Experimental System Type"
BIOGRID_GENES = ("Official Symbol Interactor A", "Official Symbol Interactor B")


class Loaded(NamedTuple):
    """Observed tuples of a public set."""

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
    path = fetch(FILES[key][0], folder, download=download)
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


def load_jester(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> Loaded:
    """Jester data set 1: (user, joke) → rating from −10 to 10; 99 in the files means not rated."""
    matrices = [_jester_matrix(fetch(remote, folder, download=download)) for remote in FILES["jester"]]
    matrix = np.vstack(matrices)[:, 1:]  # the first column counts the ratings
    rated = matrix != 99
    return Loaded(np.argwhere(rated), matrix[rated], ("user", "joke"), {}, None)


def _jester_matrix(path: Path) -> AnyArray:
    with open_zip(path) as archive:
        name = next((n for n in archive.namelist() if n.lower().endswith((".xls", ".csv"))), None)
        if name is None:
            raise GinghamError(f"{str(path)!r} holds neither an .xls nor a .csv file.")
        data = archive.read(name)
    if name.lower().endswith(".csv"):
        return np.loadtxt(io.BytesIO(data), delimiter=",", ndmin=2)
    try:
        import pandas

        return pandas.read_excel(io.BytesIO(data), header=None).to_numpy(dtype=np.float64)
    except ImportError:
        raise GinghamError("The Jester files are Excel sheets: install pandas and xlrd to read them.") from None


def load_biogrid(
    organism: str = "Saccharomyces_cerevisiae",
    folder: str | os.PathLike[str] | None = None,
    *,
    kind: str = "physical",
    download: bool = True,
) -> Loaded:
    """Interactions of BioGRID's tab format: pairs of gene symbols; y counts how often a pair was reported."""
    path = fetch(FILES["biogrid-yeast"][0], folder, download=download)
    with open_zip(path) as archive:
        name = next((n for n in archive.namelist() if organism.lower() in n.lower()), None)
        if name is None:
            raise GinghamError(f"{str(path)!r} has no file for organism {organism!r}.")
        rows = csv.DictReader(
            io.TextIOWrapper(archive.open(name), "utf-8", "replace"), delimiter="\t", quoting=csv.QUOTE_NONE
        )
        counts: dict[tuple[str, str], int] = {}
        missing = {BIOGRID_KIND, *BIOGRID_GENES} - set(rows.fieldnames or ())
        if missing:
            raise GinghamError(
                f"{name!r} has no column {sorted(missing)[0]!r}: it is not in BioGRID's tab2 or tab3 format."
            )
        for row in rows:
            if row[BIOGRID_KIND] != kind:
                continue
            a, b = sorted(_gene(row, side) for side in "AB")
            if a != b:
                counts[a, b] = counts.get((a, b), 0) + 1
    if not counts:
        raise GinghamError(f"{name!r} has no interactions of kind {kind!r}.")
    return Loaded(np.array(list(counts)), np.array(list(counts.values())), ("gene", "gene"), {}, None)


def _gene(row: Mapping[str, str], side: str) -> str:
    """The official symbol; where BioGRID has none ("-"), the systematic name."""
    symbol = row[f"Official Symbol Interactor {side}"]
    return symbol if symbol != "-" else row.get(f"Systematic Name Interactor {side}", symbol)


def load_foodmart(folder: str | os.PathLike[str]) -> Loaded:
    """Foodmart's sales fact tables (CSV): (customer, product) → units bought."""
    paths = sorted(Path(folder).glob("sales_fact*.csv"))
    if not paths:
        raise GinghamError(f"{os.fspath(folder)!r} has no sales_fact*.csv, the sales tables of the Foodmart database.")
    X, y = [], []
    for path in paths:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = {"customer_id", "product_id", "unit_sales"} - set(reader.fieldnames or ())
            if missing:
                raise GinghamError(f"{str(path)!r} has no column {sorted(missing)[0]!r}.")
            for row in reader:
                X.append((int(row["customer_id"]), int(row["product_id"])))
                y.append(float(row["unit_sales"]))
    return Loaded(np.array(X), np.array(y), ("customer", "product"), {}, None)


def load_newsgroups(folder: str | os.PathLike[str] | None = None, *, subset: str = "all") -> tuple[Any, AnyArray, Any]:
    """20 Newsgroups through scikit-learn: counts (documents × words, sparse), group of each document, words."""
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer

    home = data_folder() if folder is None else Path(folder)
    try:
        bunch = fetch_20newsgroups(data_home=str(home), subset=subset, remove=("headers", "footers", "quotes"))
    except OSError as error:
        raise GinghamError(
            f"20 Newsgroups is not in {str(home)!r} and could not be downloaded ({error}); is there a network?"
        ) from None
    words = CountVectorizer(min_df=5, stop_words="english")
    return words.fit_transform(bunch.data), bunch.target, words.get_feature_names_out()


def load_king(path: str | os.PathLike[str]) -> Floats:
    """Latencies between DNS servers, (n, n), NaN where none was measured, from files of p2psim's King data set.

    Either ``matrix`` (1,740 servers, a square table of numbers), or a topology file, ``mking-t`` or ``uking-t``
    (a few lines of settings, ``node 1``, ``node 2``, …, then lines ``1,2 latency``); lines ``i j latency`` serve
    too. Values that are not positive mean that there was no measurement. The files are not shipped; they are at
    https://pdos.csail.mit.edu/archive/p2psim/kingdata/.
    """
    file = Path(path)
    if not file.is_file():
        raise GinghamError(
            f"There is no file {str(file)!r}; the King data set is at "
            "https://pdos.csail.mit.edu/archive/p2psim/kingdata/ (take matrix, mking-t or uking-t)."
        )
    lines = [line for line in file.read_text().splitlines() if line.strip()]
    nodes = [at for at, line in enumerate(lines) if line.startswith("node ")]
    if nodes:  # a topology: settings and the list of nodes come first
        lines = lines[nodes[-1] + 1 :]
    try:
        rows = [np.array(line.replace(",", " ").split(), dtype=np.float64) for line in lines]
    except ValueError as error:
        raise GinghamError(f"{str(file)!r} has a line that is not all numbers: {error}.") from None
    widths = {len(row) for row in rows}
    if len(rows) > 3 and widths == {3}:
        triples = np.array(rows)
        codes = triples[:, :2].astype(np.int64)
        codes -= codes.min()
        n = int(codes.max()) + 1
        matrix = np.full((n, n), np.nan)
        matrix[codes[:, 0], codes[:, 1]] = triples[:, 2]
        matrix = np.where(np.isnan(matrix), matrix.T, matrix)
    elif widths == {len(rows)}:
        matrix = np.array(rows)
    else:
        raise GinghamError(
            f"{str(file)!r} has lines of {sorted(widths)[:4]} numbers; expected a square table or triples."
        )
    matrix[~(matrix > 0)] = np.nan
    np.fill_diagonal(matrix, np.nan)
    return matrix


def similarities(latencies: Floats) -> Floats:
    """exp(−latency/median) of each pair of different nodes, NaN where there is none (P1 §6); symmetric by averaging."""
    latencies = np.array(latencies, dtype=np.float64)
    both = np.stack([latencies, latencies.T])
    known = np.isfinite(both)
    mean = np.where(known, both, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean[~known.any(axis=0)] = np.nan
    np.fill_diagonal(mean, np.nan)
    return np.exp(-mean / np.nanmedian(mean[np.triu_indices(len(mean), 1)]))


def open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise GinghamError(f"{str(path)!r} is not a zip file, or it is damaged. Delete it and call again.") from None


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
        _download(remote, path, home)
    _check(remote, path)
    return path


def _download(remote: Remote, path: Path, home: Path) -> None:
    part = path.with_name(path.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            goes_on = have and answer.status == 206
            with part.open("ab" if goes_on else "wb") as stream:
                while chunk := answer.read(CHUNK):
                    stream.write(chunk)
            expected = answer.headers.get("Content-Length")
            if expected is not None and part.stat().st_size - (have if goes_on else 0) < int(expected):
                raise GinghamError(f"The download of {remote.name} broke off; call again and it goes on.")
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # all of it was there already
            part.replace(path)
            return
        raise GinghamError(_advice(remote, home, f"was refused by its publisher ({error.code})")) from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise GinghamError(_advice(remote, home, f"could not be downloaded ({reason}); is there a network?")) from None
    part.replace(path)


def _advice(remote: Remote, home: Path, what: str) -> str:
    return (
        f"{remote.name} {what}. Get it from {remote.url} and put it into {str(home)!r} "
        "(or set GINGHAM_DATA to the folder that has it)."
    )


def _check(remote: Remote, path: Path) -> None:
    known = remote.checksum
    note = path.with_name(path.name + ".sha256")
    if known is None and note.exists():
        known = f"sha256:{note.read_text(encoding='ascii').strip()}"
    method, _, expected = (known or "sha256:").partition(":")
    digest = hashlib.new(method, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    if known is None:
        note.write_text(digest.hexdigest(), encoding="ascii")
    elif digest.hexdigest() != expected:
        raise GinghamError(
            f"{str(path)!r} is not the file that was published ({method} {digest.hexdigest()}, expected {expected}). "
            "Delete it and download it again."
        )
