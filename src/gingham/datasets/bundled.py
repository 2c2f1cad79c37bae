"""Three small sets of public facts that come with gingham and need no network."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gingham.arrays import AnyArray
from gingham.datasets.public import Loaded

FOLDER = files("gingham.datasets") / "files"


class Texts(NamedTuple):
    """Counts of words in documents."""

    counts: sp.csr_array  # documents × words
    documents: AnyArray  # their names
    words: AnyArray


def load_elections() -> Loaded:
    """Republican share of the vote for president, in per cent: (state, year), 50 states from 1856 to 1976.

    A state has no entry for the years before it joined the union or while it did not vote. Sources: S. Petersen,
    *A Statistical History of the American Presidential Elections* (1973), and R. Scammon, *American Votes 12*.

    Examples
    --------
    >>> from gingham.datasets import load_elections
    >>> votes = load_elections()
    >>> votes.X.shape, votes.axes
    ((1333, 2), ('state', 'year'))
    """
    header, *rows = csv.reader((FOLDER / "elections.csv").read_text(encoding="utf-8").splitlines())
    entries = [(row[0], year, share) for row in rows for year, share in zip(header[1:], row[1:]) if share]
    X = np.array([entry[:2] for entry in entries])
    return Loaded(X, np.array([float(entry[2]) for entry in entries]), ("state", "year"), {}, None)


def load_senate() -> Loaded:
    """Votes of the US Senate in 2019 and 2020, the 116th Congress: (senator, roll call) → "yea" or "nay".

    Senators are named with party and state; ``names["roll call"]`` has the date of every roll call and what it was
    about. Senators who were absent have no entry. Source: voteview.com, which takes them from the Senate's records.

    Examples
    --------
    >>> from gingham.datasets import load_senate
    >>> votes = load_senate()
    >>> votes.X.shape, str(votes.X[0, 0]), votes.y[0].item()
    ((68239, 2), 'Grassley (R-IA)', 'yea')
    """
    with (FOLDER / "senate.npz").open("rb") as file, np.load(file) as parts:
        table, numbers = parts["votes"], parts["numbers"]
        whole = zip(parts["senators"].tolist(), parts["parties"].tolist())
        senators = np.array([name.replace("(", f"({party}-") for name, party in whole])
        about = [f"{date} {text}" for date, text in zip(parts["dates"].tolist(), parts["questions"].tolist())]
    row, column = np.nonzero(table >= 0)
    X = np.column_stack([senators[row], numbers[column].astype(str)])
    names = {"roll call": dict(zip(numbers.astype(str).tolist(), about))}
    kinds = np.array(["nay", "yea"])
    return Loaded(X, kinds[table[row, column]], ("senator", "roll call"), names, kinds)


def load_bible() -> Texts:
    """Words in the 1,189 chapters of the King James Version of the Bible.

    The 858 words are those of three letters or more that occur in at least forty chapters, without the commonest
    English words such as *and* or *thou*.

    Examples
    --------
    >>> from gingham.datasets import load_bible
    >>> counts, chapters, words = load_bible()
    >>> counts.shape, str(chapters[0]), int(counts[0, list(words).index("light")])
    ((1189, 858), 'Genesis 1', 10)
    """
    with (FOLDER / "bible.npz").open("rb") as file, np.load(file) as parts:
        shape = (len(parts["chapters"]), len(parts["words"]))
        counts = sp.csr_array((parts["count"].astype(np.int64), (parts["chapter"], parts["word"])), shape=shape)
        return Texts(counts, parts["chapters"], parts["words"])
