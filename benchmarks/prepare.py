"""Fetch a public data set and store it in the files that the benchmarks read.

``python benchmarks/prepare.py ml100k`` (or ml1m, jester1) downloads it from its publisher, checks it and writes the
files of benchmarks/README.md into ``--data``, GINGHAM_DATA or benchmarks/data. A benchmark that misses one of these
files does the same by itself; only where there is no network the publisher's archive has to be put there by hand.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gingham.datasets.public import FILES, Remote, fetch, lines, load_movielens, open_zip, table

DATA = Path(__file__).parent / "data"
JESTER = "https://eigentaste.berkeley.edu/dataset/"
GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip


def movielens_100k(folder: Path) -> None:
    """Ratings in the publisher's order, and the official splits as positions among them."""
    with open_zip(fetch(FILES["movielens-100k"], folder)) as archive:
        ratings = np.array(lines(archive, "u.data", "\t", "ascii"), dtype=np.int64)
        movies = lines(archive, "u.item", "|", "latin-1")
        users = lines(archive, "u.user", "|", "latin-1")
        at = {(user, movie): row for row, (user, movie) in enumerate(ratings[:, :2].tolist())}
        splits = {}
        for part in range(1, 6):
            for kind in ("base", "test"):
                pairs = table(archive, f"u{part}.{kind}", "ascii")[:, :2].astype(np.int64).tolist()
                splits[f"u{part}_{kind}_idx"] = np.array([at[user, movie] for user, movie in pairs], dtype=np.int32)
    genres = np.array([[int(flag) for flag in movie[5:24]] for movie in movies], dtype=np.int8)
    save(
        folder / "ml100k.npz",
        rows=(ratings[:, 0] - 1).astype(np.int32),
        cols=(ratings[:, 1] - 1).astype(np.int32),
        vals=ratings[:, 2].astype(np.float32),
        timestamps=ratings[:, 3].astype(np.int32),
        shape=np.array([len(users), len(movies)], dtype=np.int32),
        genres=genres,
        genre_names=np.array(GENRES_100K),
        **splits,
    )
    items = [[int(m[0]) - 1, m[1], m[2], *row] for m, row in zip(movies, genres.tolist())]
    save_csv(folder / "ml100k_items.csv.gz", ["col", "title", "release_date", *GENRES_100K], items)
    people = [[int(user[0]) - 1, *user[1:4]] for user in users]
    save_csv(folder / "ml100k_users.csv.gz", ["row", "age", "gender", "occupation"], people)


def movielens_1m(folder: Path) -> None:
    """Only movies that somebody rated, numbered in the order of their ids."""
    data = load_movielens("1m", folder)
    with open_zip(fetch(FILES["movielens-1m"], folder)) as archive:
        movies = {int(row[0]): row for row in lines(archive, "movies.dat", "::", "latin-1")}
        people = lines(archive, "users.dat", "::", "latin-1")
    ids, cols = np.unique(data.X[:, 1], return_inverse=True)
    names = sorted({genre for at in ids.tolist() for genre in movies[at][2].split("|")})
    genres = np.array([[name in movies[at][2].split("|") for name in names] for at in ids.tolist()], dtype=np.int8)
    save(
        folder / "ml1m.npz",
        rows=(data.X[:, 0] - 1).astype(np.int32),
        cols=cols.astype(np.int32),
        vals=np.asarray(data.y, dtype=np.float32),
        shape=np.array([len(people), len(ids)], dtype=np.int32),
        movie_ids=ids.astype(np.int32),
        genres=genres,
        genre_names=np.array(names),
    )
    items = [[col, at, movies[at][1], movies[at][2]] for col, at in enumerate(ids.tolist())]
    save_csv(folder / "ml1m_items.csv.gz", ["col", "movie_id", "title", "genres"], items)
    rows = [[int(person[0]) - 1, *person[1:4]] for person in people]
    save_csv(folder / "ml1m_users.csv.gz", ["row", "gender", "age_code", "occupation_code"], rows)


def jester(folder: Path) -> None:
    """Ratings from −10 to 10; 99 in the sheets means not rated, and the first column counts the ratings."""
    import pandas

    sheets = []
    for part in (1, 2, 3):
        name = f"jester_dataset_1_{part}.zip"
        with open_zip(fetch(Remote(name, f"{JESTER}{name}"), folder)) as archive:
            sheets.append(pandas.read_excel(archive.open(archive.namelist()[0]), header=None).to_numpy(np.float64))
    matrix = np.vstack(sheets)[:, 1:]
    rows, columns = np.nonzero(matrix != 99)
    save(
        folder / "jester1.npz",
        rows=rows.astype(np.int32),
        cols=columns.astype(np.int32),
        vals=matrix[rows, columns].astype(np.float32),
        shape=(np.array([rows.max(), columns.max()]) + 1).astype(np.int32),
    )


SETS: dict[str, Callable[[Path], None]] = {"ml100k": movielens_100k, "ml1m": movielens_1m, "jester1": jester}
"""What can be fetched, by how the names of its files begin."""


def save(path: Path, **arrays: np.ndarray) -> None:
    partial = path.with_name(f"partial-{path.name}")  # renamed when whole; numpy wants the ending
    np.savez_compressed(partial, allow_pickle=False, **arrays)
    partial.replace(path)


def save_csv(path: Path, header: list[str], rows: list[list[object]]) -> None:
    partial = path.with_suffix(".partial")
    with gzip.open(partial, "wt", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    partial.replace(path)


def data_home(given: str | os.PathLike[str] | None) -> Path:
    """The data folder: as given, or one beside the benchmarks."""
    return Path(given) if given else DATA


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SETS)
    parser.add_argument("--data", default=os.environ.get("GINGHAM_DATA"), help="data folder (or GINGHAM_DATA)")
    args = parser.parse_args()
    folder = data_home(args.data)
    folder.mkdir(parents=True, exist_ok=True)
    SETS[args.name](folder)
    print(f"{args.name} is in {folder}.")


if __name__ == "__main__":
    main()
